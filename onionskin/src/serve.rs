//! `onionskin serve`: the proxy, and the private server behind it if it is to have one.

use std::{
    net::ToSocketAddrs,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use onionskin_keys::KeySet;
use onionskin_proxy::{Backend, BackendTls, Config, PinFile, Proxy, findings_at_start};
use tracing_subscriber::filter::LevelFilter;

use crate::{
    admin::Admin,
    config_file::ConfigFile,
    error::CommandError,
    home, logging,
    private::{Installation, PrivateError, PrivateServer, root_is_open},
    termination::Termination,
    tls,
};

/// How many clients can be connected at once. Each costs a thread; the server's own limit usually
/// comes first.
pub const MAX_SESSIONS: usize = 10_000;

/// Run the proxy until SIGTERM or SIGINT
///
/// Arguments come before what stands in the configuration. Logs go to standard error: RUST_LOG
/// chooses what is logged, ONIONSKIN_LOG=json makes every line a JSON object. A passphrase for the
/// keys comes from ONIONSKIN_PASSPHRASE, from the file that ONIONSKIN_PASSPHRASE_FILE names, or
/// from systemd's credential onionskin-passphrase.
#[derive(Args)]
pub struct Serve {
    /// The configuration [default: onionskin.toml]
    #[arg(short = 'c', value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where clients connect: host:port
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// The server: host:port or unix:/path
    #[arg(long, value_name = "ADDR")]
    backend: Option<String>,
    /// Start and watch a MariaDB or MySQL server of its own in this folder; made if it is missing
    ///
    /// Without a configuration, one is made in the folder, with keys. ONIONSKIN_MYSQLD names the
    /// server's program if it is not in PATH.
    #[arg(long, value_name = "DIR", conflicts_with = "backend")]
    private: Option<PathBuf>,
    /// Log every packet by kind and length, without its content
    #[arg(long)]
    trace: bool,
}

impl Serve {
    /// Returns when the proxy was told to end.
    pub fn run(self) -> Result<(), CommandError> {
        logging::start(LevelFilter::INFO);
        let termination = Termination::watch().map_err(|source| CommandError::System {
            doing: "waiting for signals",
            source,
        })?;
        match self.serve(&termination) {
            Err(CommandError::Private(PrivateError::Interrupted)) => Ok(()),
            ended => ended,
        }
    }

    fn serve(self, termination: &Termination) -> Result<(), CommandError> {
        let file = self.config_file()?;
        let address = self.listen.unwrap_or_else(|| file.listen.clone());
        let local = is_local(&address)?;
        let given = self.backend.as_deref().map(parse_backend).transpose()?;
        let keys = home::load_keys(&file)?;
        let client_tls = tls::for_clients(&file)?;
        let admin = Admin::bind(&file)?;

        let mut engine = None;
        let server = match &self.private {
            None => None,
            Some(folder) => {
                let installation = Installation::open(folder, termination)?;
                if file.scratch.is_none() {
                    let scratch = Installation::open_scratch(&installation, termination)?;
                    engine = Some(PrivateServer::start(scratch, termination)?);
                }
                let server = PrivateServer::start(installation, termination)?;
                if !local && root_is_open(server.socket()) {
                    return Err(CommandError::OpenRoot { address });
                }
                Some(server)
            }
        };
        let backend = match &server {
            Some(server) => Backend::Unix(server.socket().to_owned()),
            None => given.unwrap_or(file.backend.clone()),
        };
        if server.is_none() && matches!(backend, Backend::Unix(_)) && !local {
            tracing::warn!(
                "the server is reached over a Unix socket, and the proxy from other machines: accounts that are \
                 recognized by their system user (unix_socket, auth_socket) see the proxy's, so that everybody can use the one of that name"
            );
        }
        let backend_tls = match &server {
            // The configuration speaks of another server.
            Some(_) => BackendTls::Never,
            None => tls::for_server(&file, &backend)?,
        };
        let backend_rsa_key = tls::server_key(&file)?;
        let scratch = file.scratch_engine(engine.as_ref().map(PrivateServer::socket));
        let pins = pins(&file, &keys)?;
        let functions = file.functions()?;
        let proxy = Proxy::bind(Config {
            listen: address.clone(),
            backend,
            keys: Arc::new(keys),
            suite: file.suite,
            policy: file.policy,
            pins,
            client_tls: Some(client_tls),
            backend_tls,
            backend_rsa_key,
            login: file.login,
            trace: self.trace,
            max_sessions: MAX_SESSIONS,
            scratch,
            like_index: file.like_index,
            functions,
            counts: admin.is_some(),
        })
        .map_err(|source| CommandError::Listen { address, source })?;
        let admin = admin.map(|admin| admin.serve(&proxy)).transpose();
        // Until the end of the program, which removes a socket of its own.
        let _admin = admin.map_err(|source| CommandError::System {
            doing: "serving the administration address",
            source,
        })?;
        let stopper = proxy.stopper();
        termination.on_signal(move || stopper.stop());
        tracing::info!("listening on {}", proxy.local_addr());
        let ended = proxy.run();
        for server in server.into_iter().chain(engine) {
            server.stop();
        }
        ended.map_err(|source| CommandError::System {
            doing: "accepting clients",
            source,
        })?;
        tracing::info!("ended");
        Ok(())
    }

    /// The configuration that was named, or else the private server's own, or else the one in this
    /// folder.
    fn config_file(&self) -> Result<ConfigFile, CommandError> {
        if let Some(path) = &self.config {
            return Ok(ConfigFile::read(path)?);
        }
        let here = home::default_config();
        match &self.private {
            // Its data were written under the keys beside them, wherever the program is started
            // from.
            Some(folder) if folder.join(home::CONFIG).exists() => {
                Ok(ConfigFile::read(&folder.join(home::CONFIG))?)
            }
            Some(folder) if !here.exists() => {
                make_private_home(folder)?;
                Ok(ConfigFile::read(&folder.join(home::CONFIG))?)
            }
            _ => Ok(ConfigFile::read(&here)?),
        }
    }
}

/// The pins that the configuration names. Where `[protect]` and they do not agree, a warning says
/// so.
pub fn pins(file: &ConfigFile, keys: &KeySet) -> Result<Option<Arc<PinFile>>, CommandError> {
    let Some(path) = file.pins_path() else {
        return Ok(None);
    };
    let pins = PinFile::load(&path, keys)?;
    for finding in findings_at_start(&file.policy, &pins.pins()) {
        tracing::warn!("{finding}");
    }
    Ok(Some(Arc::new(pins)))
}

/// Nothing needs to be configured: the first start makes what is missing.
fn make_private_home(folder: &Path) -> Result<(), CommandError> {
    home::create_folder(folder)?;
    let keys = folder.join(home::KEYS);
    if !keys.exists() {
        // New keys would not open what is there.
        if Installation::is_initialised(folder) {
            return Err(CommandError::KeysLost {
                data: folder.join("server/data"),
                keys,
            });
        }
        home::create_keys(&keys)?;
        tracing::warn!(
            "new keys in {}: keep a copy in a safe place, without it nothing that is encrypted can be read",
            keys.display()
        );
    }
    let socket = Installation::socket_of(folder)?;
    home::write_config(
        &folder.join(home::CONFIG),
        &format!("unix:{}", socket.display()),
    )
}

/// An address that was given as an argument.
pub fn parse_backend(text: &str) -> Result<Backend, CommandError> {
    text.parse::<Backend>()
        .map_err(|error| CommandError::BackendAddress(error.to_string()))
}

/// Whether only this machine can reach the address.
fn is_local(address: &str) -> Result<bool, CommandError> {
    let mut found = address
        .to_socket_addrs()
        .map_err(|source| CommandError::ListenAddress {
            address: address.to_owned(),
            source,
        })?;
    Ok(found.all(|address| address.ip().is_loopback()))
}
