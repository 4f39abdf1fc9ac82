//! How the server is reached that is backed up, by ourselves and by the programs that make the
//! backup: as `backend_tls` says.
//!
//! A program that cannot be told to check what `backend_tls` asks for must not be started at all:
//! so the server is asked by ourselves first, under the same setting, and what the program is told
//! is at least encryption.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use onionskin_proxy::Backend;
use onionskin_rowstream::client::{Client, ClientError, ConnectOptions};

use crate::{
    config_file::{BackendTlsMode, ConfigFile},
    error::CommandError,
    private::Family,
    tls,
};

/// How long the server may take to answer a question.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server, and how to speak to it.
pub struct Reach {
    /// Where it listens.
    pub backend: Backend,
    options: ConnectOptions,
    tls: ProgramTls,
    /// What programs show under TLS: a certificate and its key.
    identity: Option<(PathBuf, PathBuf)>,
}

/// What programs are told.
enum ProgramTls {
    /// Nothing: a Unix socket.
    Silent,
    Never,
    /// Encryption, with whomever.
    Encrypted,
    /// A server that this authority knows.
    Authority(PathBuf),
    /// And by the name under which it is reached.
    AuthorityAndName(PathBuf),
}

impl Reach {
    /// A server, under the TLS of the configuration. Where that is required, it is tried.
    pub fn of(
        file: &ConfigFile,
        backend: Backend,
        user: &str,
        password: &str,
    ) -> Result<Self, CommandError> {
        let options = tls::login(Some(file), &backend, user.to_owned(), password.to_owned())?;
        let authority = file
            .backend_ca
            .as_ref()
            .map(|path| file.folder().join(path));
        let tls = match (&backend, tls::mode(file, &backend), authority) {
            (Backend::Unix(_), _, _) => ProgramTls::Silent,
            (_, BackendTlsMode::Verify, Some(path)) => ProgramTls::AuthorityAndName(path),
            (_, BackendTlsMode::Required, Some(path)) => ProgramTls::Authority(path),
            _ if options.tls.is_some() => ProgramTls::Encrypted,
            _ => ProgramTls::Never,
        };
        let identity = file.backend_cert.as_ref().zip(file.backend_key.as_ref());
        let in_folder = |path: &PathBuf| file.folder().join(path);
        let reach = Self {
            backend,
            options,
            tls,
            identity: identity.map(|(cert, key)| (in_folder(cert), in_folder(key))),
        };
        let is_required = matches!(
            tls::mode(file, &reach.backend),
            BackendTlsMode::Required | BackendTlsMode::Verify
        );
        // Any other error is the program's to tell, or to do without.
        if is_required
            && let Err(error @ (ClientError::NoTls | ClientError::Wire(_))) = reach.connect()
        {
            return Err(CommandError::Clone(format!(
                "the server cannot be reached as backend_tls demands: {error}"
            )));
        }
        Ok(reach)
    }

    /// A connection of our own.
    pub fn connect(&self) -> Result<Client, ClientError> {
        let client = Client::connect(&self.options)?;
        client.set_read_timeout(Some(PATIENCE))?;
        Ok(client)
    }

    /// The account.
    pub fn user(&self) -> &str {
        &self.options.user
    }

    /// The account's password.
    pub fn password(&self) -> &str {
        &self.options.password
    }

    /// Where the server is, for a client program of this family. `given` are the user's own
    /// arguments, which decide about TLS if they speak of it.
    pub fn arguments(&self, family: Family, given: &[OsString]) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = match &self.backend {
            Backend::Tcp { host, port } => vec![
                "--protocol=TCP".into(),
                format!("--host={host}").into(),
                format!("--port={port}").into(),
            ],
            Backend::Unix(path) => vec![with_path("--socket=", path.as_os_str().to_owned())],
        };
        if !given.iter().any(speaks_of_tls) {
            arguments.extend(self.tls_arguments(family));
            if let Some((certificate, key)) = &self.identity {
                let option = |name, path: &PathBuf| with_path(name, path.as_os_str().to_owned());
                arguments.push(option("--ssl-cert=", certificate));
                arguments.push(option("--ssl-key=", key));
            }
        }
        arguments
    }

    fn tls_arguments(&self, family: Family) -> Vec<OsString> {
        let authority = |path: &PathBuf| with_path("--ssl-ca=", path.clone().into_os_string());
        let texts = |texts: &[&str]| texts.iter().map(OsString::from).collect::<Vec<_>>();
        match (&self.tls, family) {
            (ProgramTls::Silent, _) => Vec::new(),
            (ProgramTls::Never, Family::MariaDb) => texts(&["--skip-ssl"]),
            (ProgramTls::Never, Family::MySql) => texts(&["--ssl-mode=DISABLED"]),
            (ProgramTls::Encrypted, Family::MariaDb) => {
                texts(&["--ssl", "--skip-ssl-verify-server-cert"])
            }
            (ProgramTls::Encrypted, Family::MySql) => texts(&["--ssl-mode=REQUIRED"]),
            (ProgramTls::Authority(path), Family::MariaDb) => {
                let mut arguments = texts(&["--ssl", "--skip-ssl-verify-server-cert"]);
                arguments.push(authority(path));
                arguments
            }
            (ProgramTls::Authority(path), Family::MySql) => {
                vec!["--ssl-mode=VERIFY_CA".into(), authority(path)]
            }
            (ProgramTls::AuthorityAndName(path), Family::MariaDb) => {
                let mut arguments = texts(&["--ssl", "--ssl-verify-server-cert"]);
                arguments.push(authority(path));
                arguments
            }
            (ProgramTls::AuthorityAndName(path), Family::MySql) => {
                vec!["--ssl-mode=VERIFY_IDENTITY".into(), authority(path)]
            }
        }
    }

    /// The clause of CLONE INSTANCE, and the authority that the plugin is to check. It cannot check
    /// names.
    pub fn clone_tls(&self) -> (&'static str, Option<&PathBuf>) {
        match &self.tls {
            ProgramTls::Silent | ProgramTls::Never => ("REQUIRE NO SSL", None),
            ProgramTls::Encrypted => ("REQUIRE SSL", None),
            ProgramTls::Authority(path) | ProgramTls::AuthorityAndName(path) => {
                ("REQUIRE SSL", Some(path))
            }
        }
    }
}

fn with_path(option: &str, path: OsString) -> OsString {
    let mut argument = OsString::from(option);
    argument.push(path);
    argument
}

fn speaks_of_tls(argument: &OsString) -> bool {
    let argument = argument.to_string_lossy().replace('_', "-");
    [
        "--ssl",
        "--skip-ssl",
        "--disable-ssl",
        "--enable-ssl",
        "--loose-ssl",
        "--tls",
    ]
    .iter()
    .any(|option| argument.starts_with(option))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_speaks_of_tls_decides() {
        for yes in ["--ssl", "--ssl-mode=DISABLED", "--skip_ssl", "--ssl_ca=x"] {
            assert!(speaks_of_tls(&yes.into()), "{yes}");
        }
        for no in ["--single-transaction", "ssl", "--databases"] {
            assert!(!speaks_of_tls(&no.into()), "{no}");
        }
    }
}
