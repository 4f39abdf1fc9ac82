//! TLS on both sides, from what the configuration says.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use onionskin_keys::read_private_file;
use onionskin_proxy::{Backend, BackendTls, certificates_end};
use onionskin_rowstream::client::{Address, Client, ClientError, ConnectOptions};
use onionskin_wire::auth::{LinkTrust, ServerKey};
use onionskin_wire::tls::{
    Demands, Identity, MinVersion, ServerVerification, client_config_as, server_config_from,
};
use rustls::{ClientConfig, ServerConfig};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::config_file::{BackendTlsMode, ConfigError, ConfigFile};
use crate::tls_section::TlsVersion;

/// Longest file of a private key, in bytes.
const KEY_LIMIT: u64 = 1 << 20;

/// What the proxy shows its clients: the certificate of `[tls]`, or a new self-signed one.
/// Beside it, the digest of the authority whose certificates they have to show.
pub fn for_clients(
    file: &ConfigFile,
) -> Result<(Arc<ServerConfig>, Option<[u8; 32]>), ConfigError> {
    let (demands, authority) = demands(file)?;
    Ok((shown_to_clients(file, &demands)?, authority))
}

fn shown_to_clients(
    file: &ConfigFile,
    demands: &Demands,
) -> Result<Arc<ServerConfig>, ConfigError> {
    let files = file.tls.as_ref().map(|tls| (&tls.cert, &tls.key));
    let (certificate, key) = match files {
        None | Some((None, None)) => {
            return self_signed(demands).map_err(|text| fault(&file.path, text));
        }
        Some((Some(certificate), Some(key))) => (certificate, key),
        Some(_) => {
            let text = "[tls] needs both cert and key, or neither of them";
            return Err(fault(&file.path, text.into()));
        }
    };
    let (certificate, key) = (file.folder().join(certificate), file.folder().join(key));
    let certificate_bytes = read(&certificate)?;
    let key_bytes = read_private_file(&key, KEY_LIMIT)
        .map_err(|error| fault(&file.path, format!("[tls] key: {error}")))?;
    server_config_from(&certificate_bytes, &key_bytes, demands).map_err(|error| {
        let text = format!(
            "this certificate and the key in {} cannot be used: {error}; both must be PEM and belong together",
            key.display()
        );
        fault(&certificate, text)
    })
}

/// What clients have to bring, and the digest of the authority.
fn demands(file: &ConfigFile) -> Result<(Demands, Option<[u8; 32]>), ConfigError> {
    let Some(tls) = &file.tls else {
        return Ok((Demands::default(), None));
    };
    let (authority, digest) = match &tls.client_ca {
        Some(path) => {
            let path = file.folder().join(path);
            let pem = read(&path)?;
            // it is found out here whose fault it is
            let authority = Demands::authority(&pem).map_err(|error| {
                fault(&path, format!("{error}; it must hold certificates in PEM"))
            })?;
            (Some(authority), Some(Sha256::digest(&pem).into()))
        }
        None => (None, None),
    };
    let oldest = match tls.min_version {
        TlsVersion::Tls13 => MinVersion::Tls13,
        TlsVersion::Tls12 => MinVersion::Tls12,
    };
    Ok((Demands { oldest, authority }, digest))
}

/// `backend_tls`, or what holds where it is not set.
pub fn mode(file: &ConfigFile, backend: &Backend) -> BackendTlsMode {
    let local = matches!(backend, Backend::Unix(_));
    file.backend_tls.unwrap_or(match (local, &file.backend_ca) {
        // Nobody is between.
        (true, _) => BackendTlsMode::Never,
        (false, None) => BackendTlsMode::Preferred,
        (false, Some(_)) => BackendTlsMode::Verify,
    })
}

/// How the proxy speaks to the server.
pub fn for_server(file: &ConfigFile, backend: &Backend) -> Result<BackendTls, ConfigError> {
    let mode = mode(file, backend);
    let authority = || {
        file.backend_ca
            .as_ref()
            .map(|path| file.folder().join(path))
    };
    let identity = identity(file, mode)?;
    let identity = identity
        .as_ref()
        .map(|(chain, key)| Identity { chain, key });
    let verified =
        |verification: ServerVerification, of: PathBuf| -> Result<Arc<ClientConfig>, ConfigError> {
            client_config_as(&verification, identity)
                .map_err(|error| fault(&of, format!("{error}; it must hold certificates in PEM")))
        };
    let unverified = || {
        verified(
            ServerVerification::EncryptionWithoutAuthentication,
            file.path.clone(),
        )
    };
    Ok(match (mode, authority()) {
        (BackendTlsMode::Never, _) => BackendTls::Never,
        (BackendTlsMode::Preferred, None) => BackendTls::IfOffered(unverified()?),
        (BackendTlsMode::Preferred, Some(_)) => {
            let text = "backend_tls = \"preferred\" does not verify the server, so backend_ca has no effect: \
                        write \"verify\" or \"required\", or remove backend_ca";
            return Err(fault(&file.path, text.into()));
        }
        (BackendTlsMode::Required, None) => BackendTls::Required(unverified()?),
        (BackendTlsMode::Required, Some(path)) => BackendTls::Verified(verified(
            ServerVerification::AuthorityOnly(read(&path)?),
            path,
        )?),
        (BackendTlsMode::Verify, Some(path)) => BackendTls::Verified(verified(
            ServerVerification::AuthorityAndName(read(&path)?),
            path,
        )?),
        (BackendTlsMode::Verify, None) => {
            let text = "backend_tls = \"verify\" needs backend_ca, the certificate of the authority that signed the server's";
            return Err(fault(&file.path, text.into()));
        }
    })
}

/// When the certificates of the configuration end, by setting. Files that cannot be read are told
/// of elsewhere.
pub fn ends(file: &ConfigFile) -> Vec<(&'static str, i64)> {
    let tls = file.tls.as_ref();
    let named = [
        ("tls.cert", tls.and_then(|tls| tls.cert.as_ref())),
        ("tls.client_ca", tls.and_then(|tls| tls.client_ca.as_ref())),
        ("backend_ca", file.backend_ca.as_ref()),
        ("backend_cert", file.backend_cert.as_ref()),
    ];
    let end = |(setting, path): (&'static str, Option<&PathBuf>)| {
        let pem = fs::read(file.folder().join(path?)).ok()?;
        Some((setting, certificates_end(&pem)?))
    };
    named.into_iter().filter_map(end).collect()
}

/// A certificate and its key, as they stand in their files.
type Shown = (Vec<u8>, Zeroizing<Vec<u8>>);

/// The certificate that the proxy shows the server, and its key.
fn identity(file: &ConfigFile, mode: BackendTlsMode) -> Result<Option<Shown>, ConfigError> {
    let (certificate, key) = match (&file.backend_cert, &file.backend_key) {
        (None, None) => return Ok(None),
        (Some(certificate), Some(key)) => (certificate, key),
        _ => {
            let text = "backend_cert and backend_key belong together: set both, or neither of them";
            return Err(fault(&file.path, text.into()));
        }
    };
    if !matches!(mode, BackendTlsMode::Required | BackendTlsMode::Verify) {
        let text =
            "backend_cert is shown under TLS only: set backend_tls to \"verify\" or \"required\"";
        return Err(fault(&file.path, text.into()));
    }
    let certificate = file.folder().join(certificate);
    let chain = read(&certificate)?;
    let key = read_private_file(&file.folder().join(key), KEY_LIMIT)
        .map_err(|error| fault(&file.path, format!("backend_key: {error}")))?;
    // it is found out here whose fault it is
    let shown = Identity {
        chain: &chain,
        key: &key,
    };
    let any = ServerVerification::EncryptionWithoutAuthentication;
    client_config_as(&any, Some(shown)).map_err(|error| {
        let text = format!(
            "this certificate and the one of backend_key cannot be used: {error}; both must be PEM and belong together"
        );
        fault(&certificate, text)
    })?;
    Ok(Some((chain, key)))
}

/// The server's RSA key that the configuration names.
pub fn server_key(file: &ConfigFile) -> Result<Option<Arc<ServerKey>>, ConfigError> {
    let Some(path) = &file.backend_rsa_key else {
        return Ok(None);
    };
    let path = file.folder().join(path);
    match ServerKey::from_pem(&read(&path)?) {
        Ok(key) => Ok(Some(Arc::new(key))),
        Err(_) => {
            let text = "this is no RSA public key in PEM: take public_key.pem from the server's data directory";
            Err(fault(&path, text.into()))
        }
    }
}

/// Connections of our own to `backend`, as the configuration says. Whether a server that need not
/// offer TLS does is asked here.
pub fn login(
    file: Option<&ConfigFile>,
    backend: &Backend,
    user: String,
    password: String,
) -> Result<ConnectOptions, ConfigError> {
    let (mut options, may_be_plain) = options(file, backend, user, password)?;
    if may_be_plain && matches!(Client::connect(&options), Err(ClientError::NoTls)) {
        options.tls = None;
    }
    Ok(options)
}

/// The same without a question to the server: whether TLS is to be left out where none is offered.
pub fn options(
    file: Option<&ConfigFile>,
    backend: &Backend,
    user: String,
    password: String,
) -> Result<(ConnectOptions, bool), ConfigError> {
    let (tls, required, tls_verifies) =
        match file.map(|file| for_server(file, backend)).transpose()? {
            None | Some(BackendTls::Never) => (None, false, false),
            Some(BackendTls::IfOffered(tls)) => (Some(tls), false, false),
            Some(BackendTls::Required(tls)) => (Some(tls), true, false),
            Some(BackendTls::Verified(tls)) => (Some(tls), true, true),
        };
    let may_be_plain = tls.is_some() && !required;
    let options = ConnectOptions {
        address: match backend {
            Backend::Tcp { host, port } => Address::Tcp {
                host: host.clone(),
                port: *port,
            },
            Backend::Unix(path) => Address::Unix(path.clone()),
        },
        user,
        password,
        tls,
        trust: LinkTrust {
            tls_verifies,
            rsa_key: file.map(server_key).transpose()?.flatten(),
        },
        identity: None,
    };
    Ok((options, may_be_plain))
}

/// Connections of our own to a proxy. Its certificate is verified if there is an authority for it;
/// otherwise TLS is used where it is offered.
pub fn to_proxy(
    proxy: &Backend,
    authority: Option<&Path>,
    user: String,
    password: String,
) -> Result<ConnectOptions, ConfigError> {
    let (mut options, _) = options(None, proxy, user, password)?;
    if matches!(proxy, Backend::Unix(_)) {
        return Ok(options);
    }
    let (verification, path) = match authority {
        Some(path) => {
            let verification = ServerVerification::AuthorityAndName(read(path)?);
            (verification, path.to_owned())
        }
        None => (
            ServerVerification::EncryptionWithoutAuthentication,
            PathBuf::new(),
        ),
    };
    let made = client_config_as(&verification, None)
        .map_err(|error| fault(&path, format!("{error}; it must hold certificates in PEM")))?;
    options.tls = Some(made);
    options.trust.tls_verifies = authority.is_some();
    if authority.is_none() && matches!(Client::connect(&options), Err(ClientError::NoTls)) {
        options.tls = None;
    }
    Ok(options)
}

/// Encryption for clients that ask for no more. It exists in memory only.
fn self_signed(demands: &Demands) -> Result<Arc<ServerConfig>, String> {
    let names = ["localhost", "127.0.0.1", "::1"].map(String::from);
    let made = rcgen::generate_simple_self_signed(names).map_err(|error| error.to_string())?;
    server_config_from(
        made.cert.pem().as_bytes(),
        made.signing_key.serialize_pem().as_bytes(),
        demands,
    )
    .map_err(|error| error.to_string())
}

fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    fs::read(path).map_err(|source| ConfigError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn fault(path: &Path, text: String) -> ConfigError {
    ConfigError::Tls {
        path: path.to_owned(),
        text,
    }
}
