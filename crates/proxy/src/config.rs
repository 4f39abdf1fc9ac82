//! What a proxy is told when it starts.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv6Addr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use onionskin_audit::AuditLog;
use onionskin_keys::{KeySet, ProviderState, Suite};
use onionskin_schema::Policy;
use onionskin_wire::Transport;
use onionskin_wire::auth::{LinkTrust, ServerKey};
use rustls::pki_types::{InvalidDnsNameError, ServerName};

use onionskin_value::Family;
use zeroize::Zeroizing;

use crate::certificates::CertificateRules;
use crate::engine_place::EnginePlace;
use crate::mask::Masks;
use crate::network::Network;
use crate::pins::PinFile;
use crate::statement_shapes::StatementShapes;

/// How long a connection to the server may take to be made.
const CONNECT: Duration = Duration::from_secs(10);

/// Where the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// `host:port`
    Tcp {
        /// A name or an address.
        host: String,
        /// The port.
        port: u16,
    },
    /// `unix:/path`
    Unix(PathBuf),
}

impl FromStr for Backend {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text, 1)
    }
}

impl Backend {
    /// `first_port` is the smallest that is one.
    pub(crate) fn parse(text: &str, first_port: u16) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            if path.is_empty() {
                return Err("unix: needs a path behind it".into());
            }
            return Ok(Backend::Unix(path.into()));
        }
        let neither = || format!("{text:?} is neither host:port nor unix:/path");
        let (host, port) = text.rsplit_once(':').ok_or_else(neither)?;
        let host = match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
            Some(address) => {
                if address.parse::<Ipv6Addr>().is_err() {
                    return Err(format!("{address:?} is no IPv6 address"));
                }
                address
            }
            None if host.contains(':') => {
                return Err(format!(
                    "{text:?} is ambiguous: an IPv6 address stands in brackets, [::1]:3306"
                ));
            }
            None if host.is_empty() || host.contains(['/', '[', ']', ' ']) => {
                return Err(neither());
            }
            None => host,
        };
        match port.parse() {
            Ok(port) if port >= first_port => Ok(Backend::Tcp {
                host: host.to_string(),
                port,
            }),
            _ => Err(format!("{port:?} is no port")),
        }
    }
}

impl std::fmt::Display for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Backend::Unix(path) => write!(f, "unix:{}", path.display()),
            Backend::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Backend::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

impl Backend {
    /// Connects. TCP connections send small packets at once.
    pub fn connect(&self) -> io::Result<Transport> {
        self.connect_within(CONNECT)
    }

    /// Connects, and gives each address no longer than `limit`.
    pub(crate) fn connect_within(&self, limit: Duration) -> io::Result<Transport> {
        let limit = limit.clamp(Duration::from_millis(1), CONNECT);
        match self {
            Backend::Unix(path) => Ok(Transport::Unix(UnixStream::connect(path)?)),
            Backend::Tcp { host, port } => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "no address");
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, limit) {
                        Ok(stream) => return Transport::tcp(stream),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    /// The name that the server's certificate is checked against.
    pub(crate) fn server_name(&self) -> Result<ServerName<'static>, InvalidDnsNameError> {
        ServerName::try_from(self.host())
    }

    fn host(&self) -> String {
        match self {
            Backend::Unix(_) => "localhost".into(),
            Backend::Tcp { host, .. } => host.clone(),
        }
    }
}

/// Whether the connection to the server is encrypted.
#[derive(Clone)]
pub enum BackendTls {
    /// Never.
    Never,
    /// If the server offers it.
    IfOffered(Arc<rustls::ClientConfig>),
    /// Or there is no connection. Any certificate will do.
    Required(Arc<rustls::ClientConfig>),
    /// Or there is no connection. The server's certificate is verified.
    Verified(Arc<rustls::ClientConfig>),
}

/// What holds before a client is logged in.
#[derive(Clone, Debug)]
pub struct LoginLimits {
    /// How long a login may take as a whole, from the moment that the client is accepted.
    pub time: Duration,
    /// Logins at once, each of which holds a connection to the server. Others wait for their turn.
    pub logins: usize,
    /// How many of them may come from one address.
    pub logins_per_address: usize,
}

impl Default for LoginLimits {
    fn default() -> Self {
        LoginLimits {
            time: Duration::from_secs(30),
            // Servers take 151 connections by default: those who are logged in shall have most of
            // them.
            logins: 64,
            logins_per_address: 32,
        }
    }
}

/// How many sessions there may be at once.
#[derive(Clone, Debug)]
pub struct SessionLimits {
    /// In all.
    pub all: usize,
    /// Of one account: the name that clients log in with.
    pub per_account: Option<usize>,
    /// From one IPv4 address, or one IPv6 network of 64 bits.
    pub per_address: Option<usize>,
}

impl Default for SessionLimits {
    /// A session costs a thread; the server's own limit usually comes first.
    fn default() -> Self {
        SessionLimits {
            all: 10_000,
            per_account: None,
            per_address: None,
        }
    }
}

/// What statements may take of the proxy that it finishes itself: it opens, sorts and gathers their
/// rows, or changes them one by one.
#[derive(Clone, Debug)]
pub struct FinishLimits {
    /// Bytes that all of them hold together.
    pub memory: u64,
    /// Rows that one of them reads.
    pub rows: u64,
    /// Seconds in which it reads them.
    pub seconds: u64,
}

impl Default for FinishLimits {
    /// Sixteen statements of the greatest size that there may be.
    fn default() -> Self {
        FinishLimits {
            memory: 1 << 30,
            rows: 10_000_000,
            seconds: 600,
        }
    }
}

/// The log of slow statements.
#[derive(Clone, Debug)]
pub struct SlowLimits {
    /// From so long on a statement is slow. `None`: none is logged.
    pub after: Option<Duration>,
    /// Lines that are written in one second.
    pub lines: u32,
}

impl Default for SlowLimits {
    fn default() -> Self {
        SlowLimits {
            after: None,
            lines: 10,
        }
    }
}

/// The audit log, and what holds where it has no room.
#[derive(Clone)]
pub struct AuditConfig {
    /// The run that is written.
    pub log: Arc<AuditLog>,
    /// Statements on protected columns are refused while there is no room for their lines.
    /// Otherwise they run, and are counted as lost.
    pub stops: bool,
}

/// A proxy's configuration.
pub struct Config {
    /// The server; the first of several.
    pub backend: Backend,
    /// Where `backend` is a list: how long a member may take to accept a connection. Nobody can log
    /// in until [`crate::Lead`] says which of them is the primary.
    pub member_timeout: Option<Duration>,
    /// How long a statement of a session of `listen_read` waits for what sessions of `listen` have
    /// written. `None`: it does not.
    pub causal: Option<Duration>,
    /// The keys.
    pub keys: Arc<KeySet>,
    /// How the provider that unwraps their root key has answered, if there is one.
    pub keys_provider: Option<Arc<ProviderState>>,
    /// The suite of new columns.
    pub suite: Suite,
    /// `[protect]`.
    pub policy: Policy,
    /// What accounts see of protected columns.
    pub masks: Masks,
    /// `pins`: what `onionskin pin` has written.
    pub pins: Option<Arc<PinFile>>,
    /// TLS for clients that ask for it.
    pub client_tls: Option<Arc<rustls::ServerConfig>>,
    /// Addresses of balancers, which tell by the PROXY protocol where their clients are.
    pub proxy_networks: Vec<Network>,
    /// Clients without it are not let in.
    pub requires_tls: bool,
    /// Digest of the authority whose certificates clients have to show. A login under another one
    /// is none under this one.
    pub client_authority: Option<[u8; 32]>,
    /// When certificates end, in seconds since 1970, by the settings that name their files.
    pub certificates_end: Vec<(&'static str, i64)>,
    /// Certificates that accounts have to show.
    pub certificates: CertificateRules,
    /// The server is told by the PROXY protocol where clients are.
    pub tells_clients: bool,
    /// TLS towards the server.
    pub backend_tls: BackendTls,
    /// The server's RSA key, where one was configured: passwords may be encrypted under it.
    pub backend_rsa_key: Option<Arc<ServerKey>>,
    /// Before the login.
    pub login: LoginLimits,
    /// Log every packet's kind and length.
    pub trace: bool,
    /// Where the shapes of all statements are counted, if they are.
    pub shapes: Option<Arc<StatementShapes>>,
    /// Clients at once.
    pub sessions: SessionLimits,
    /// Tier 2.
    pub finish: FinishLimits,
    /// Statements that are logged.
    pub slow: SlowLimits,
    /// The audit log, if one is written.
    pub audit: Option<AuditConfig>,
    /// Tier 3; without it, statements that need it are refused.
    pub scratch: Option<ScratchConfig>,
    /// `like_index`: MariaDB's full-text indexes are made and used for LIKE, although they may miss
    /// rows. MySQL's index misses none and needs no word.
    pub like_index: bool,
    /// Statements are counted: somebody may ask an [`crate::Observer`] for metrics.
    pub counts: bool,
    /// `[functions]`: cryptographic functions are computed here. `None`: they are the server's.
    pub functions: Option<FunctionsConfig>,
}

impl Config {
    /// What makes a connection to the server fit for a password.
    pub(crate) fn trust(&self) -> LinkTrust {
        LinkTrust {
            tls_verifies: matches!(self.backend_tls, BackendTls::Verified(_)),
            rsa_key: self.backend_rsa_key.clone(),
        }
    }

    /// Whether new columns with LIKE get grams.
    pub(crate) fn keeps_grams(&self, family: Family) -> bool {
        onionskin_physical::keeps_grams(self.like_index, family)
    }
}

/// `[functions]`, where it says `evaluate`.
#[derive(Default)] // no Debug: it would show the keys
pub struct FunctionsConfig {
    /// Variables whose values stay here: names in small letters, without `@`.
    pub secrets: Vec<String>,
    /// The keys that `KEY('name')` stands for.
    pub keys: BTreeMap<String, Zeroizing<Vec<u8>>>,
}

/// The scratch engine: a server of the back end's family on the trusted side.
#[derive(Clone, Debug)]
pub struct ScratchConfig {
    /// Its Unix socket, as long as it is there.
    pub place: EnginePlace,
    /// An account without a password, or one that is recognized by its system user.
    pub user: String,
    /// Rows that one statement may bring there.
    pub rows: u64,
    /// Bytes that one statement may bring there.
    pub memory: u64,
    /// Seconds that one statement may run there, if the client's session has no bound of its own.
    pub seconds: u64,
}

impl ScratchConfig {
    /// Rows unless the configuration says otherwise.
    pub const ROWS: u64 = 1_000_000;
    /// Bytes unless the configuration says otherwise.
    pub const MEMORY: u64 = 256 << 20;
    /// Seconds unless the configuration says otherwise.
    pub const SECONDS: u64 = 60;

    /// A scratch engine with the usual bounds.
    pub fn new(place: EnginePlace, user: impl Into<String>) -> Self {
        ScratchConfig {
            place,
            user: user.into(),
            rows: Self::ROWS,
            memory: Self::MEMORY,
            seconds: Self::SECONDS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        assert_eq!("unix:/a/b".parse(), Ok(Backend::Unix("/a/b".into())));
        assert_eq!(
            "[::1]:3306".parse::<Backend>().map(|b| b.host()),
            Ok("::1".into())
        );
        let bad = [
            "",
            "host",
            "host:",
            "host:x",
            "host:0",
            "host:65536",
            "unix:",
            ":3306",
            "::1:3306",
            "[host]:3306",
            "[::1:3306",
            "/run/mysqld.sock:3306",
            "a b:3306",
        ];
        for bad in bad {
            assert!(bad.parse::<Backend>().is_err(), "{bad}");
        }
    }
}
