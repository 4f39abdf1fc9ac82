//! `onionskin.toml`.
//!
//! Every setting has a default, unknown ones are errors, and an error says where in the file it is.

use std::{
    collections::BTreeMap,
    fs, io,
    num::{NonZeroU32, NonZeroU64},
    path::{Path, PathBuf},
    time::Duration,
};

use onionskin_keys::Suite;
use onionskin_proxy::{
    Backend, CertificateRules, EnginePlace, FinishLimits, FunctionsConfig, ListenAddress,
    LoginLimits, MaskError, MaskSections, Masks, Network, ScratchConfig, SessionLimits, SlowLimits,
};
use onionskin_schema::{Policy, SchemaError};
use serde::{Deserialize, Deserializer, de::Error};

use crate::audit_section::AuditSection;
use crate::error::CommandError;
use crate::flattened::flattened;
use crate::functions_section::FunctionsSection;
use crate::health_section::{HealthSection, backends, fits};
use crate::provider_section::{Forgotten, KeysSection, ProviderName, ProviderSections};
use crate::reads_section::{self, ReadsSection};
use crate::scratch_section::ScratchSection;
use crate::tls_section::ClientTls;

/// Where the proxy listens unless it is told otherwise.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:3307";
/// Addresses that the proxy listens on, at most.
const MOST_ADDRESSES: usize = 8;
/// Where the server is expected unless it is told otherwise.
pub const DEFAULT_BACKEND: &str = "127.0.0.1:3306";

/// How long sessions of a program go on whose sockets another one has taken over.
const HANDOVER: Duration = Duration::from_secs(3600);

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// There is none.
    #[error("there is no {}: run onionskin init, or name the file with -c", .0.display())]
    Missing(PathBuf),
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// It is not TOML, or has a setting that does not exist, or a value that cannot be.
    #[error("{}: {source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// With line, column and the settings that exist.
        source: Box<toml::de::Error>,
    },
    /// A pattern or a capability in `[protect]`.
    #[error("{}: {source}; capabilities are \"eq\", \"range\", \"like\", \"join:GROUP\" and \"key_by:COLUMN\", and [] means sealed, not searchable", path.display())]
    Protect {
        /// The file.
        path: PathBuf,
        /// Which one.
        source: SchemaError,
    },
    /// A mask that cannot be.
    #[error("{}: {source}", path.display())]
    Mask {
        /// The file.
        path: PathBuf,
        /// Which one.
        source: MaskError,
    },
    /// Certificates, private keys, and settings about them that contradict each other.
    #[error("{}: {text}", path.display())]
    Tls {
        /// The file that the fault is in.
        path: PathBuf,
        /// One sentence and the way out.
        text: String,
    },
    /// Several servers.
    #[error("{}: {text}", path.display())]
    Members {
        /// The file.
        path: PathBuf,
        /// One sentence.
        text: &'static str,
    },
    /// The provider of the root key.
    #[error("{}: {text}", path.display())]
    Provider {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        text: String,
    },
}

/// The file's content.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    #[serde(default = "default_listen", deserialize_with = "addresses")]
    listen: Vec<ListenAddress>,
    #[serde(default, deserialize_with = "addresses")]
    listen_read: Vec<ListenAddress>,
    #[serde(default = "default_backend", deserialize_with = "backends")]
    backend: Vec<Backend>,
    reads: Option<ReadsSection>,
    health: Option<HealthSection>,
    #[serde(default, deserialize_with = "some_parsed")]
    admin: Option<ListenAddress>,
    admin_token_file: Option<PathBuf>,
    control: Option<PathBuf>,
    handover_seconds: Option<u32>,
    #[serde(default = "default_keys")]
    keys: String,
    tenants: Option<String>,
    #[serde(default)]
    forgotten: Forgotten,
    keys_provider: Option<ProviderName>,
    #[serde(default, deserialize_with = "some_time")]
    keys_retry_seconds: Option<Duration>,
    #[serde(default, deserialize_with = "some_time")]
    keys_ttl_seconds: Option<Duration>,
    #[serde(default)]
    provider: ProviderSections,
    #[serde(default, deserialize_with = "networks")]
    proxy_networks: Vec<Network>,
    #[serde(default = "default_suite", deserialize_with = "parsed")]
    suite: Suite,
    #[serde(default)]
    enforce: bool,
    pins: Option<PathBuf>,
    #[serde(default)]
    protect: BTreeMap<String, BTreeMap<String, Entry>>,
    #[serde(default)]
    mask: MaskSections,
    tls: Option<ClientTls>,
    backend_tls: Option<BackendTlsMode>,
    backend_ca: Option<PathBuf>,
    backend_cert: Option<PathBuf>,
    backend_key: Option<PathBuf>,
    backend_rsa_key: Option<PathBuf>,
    #[serde(default)]
    backend_proxy_protocol: bool,
    login_seconds: Option<NonZeroU32>,
    max_logins: Option<NonZeroU32>,
    max_logins_per_address: Option<NonZeroU32>,
    max_sessions: Option<NonZeroU32>,
    max_sessions_per_account: Option<NonZeroU32>,
    max_sessions_per_address: Option<NonZeroU32>,
    finish_memory: Option<NonZeroU64>,
    finish_rows: Option<NonZeroU64>,
    finish_seconds: Option<NonZeroU32>,
    #[serde(default, deserialize_with = "some_time")]
    slow_seconds: Option<Duration>,
    slow_lines: Option<NonZeroU32>,
    audit: Option<AuditSection>,
    scratch: Option<ScratchSection>,
    scratch_rows: Option<u64>,
    scratch_memory: Option<u64>,
    scratch_seconds: Option<std::num::NonZeroU32>,
    #[serde(default)]
    like_index: bool,
    #[serde(default)]
    functions: FunctionsSection,
}

/// A line of a section of `[protect]`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Entry {
    /// `enforce = true`
    Switch(bool),
    /// A column and its capabilities.
    Capabilities(Vec<String>),
    /// A column and one word: `"*_id" = "plain"`.
    Word(String),
}

/// `backend_tls`: how far the connection to the server is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendTlsMode {
    /// Plain.
    Never,
    /// TLS if the server offers it.
    Preferred,
    /// TLS or no connection.
    Required,
    /// TLS, and the certificate must come from `backend_ca` and name the host.
    Verify,
}

/// A configuration that was read and checked.
#[derive(Debug)]
pub struct ConfigFile {
    /// Where it was read from.
    pub path: PathBuf,
    /// `listen`: one or several.
    pub listen: Vec<ListenAddress>,
    /// `listen_read`: where sessions connect that only read.
    pub listen_read: Vec<ListenAddress>,
    /// `[reads]`
    pub reads: ReadsSection,
    /// The server; the first of several.
    pub backend: Backend,
    /// All that `backend` names.
    pub backends: Vec<Backend>,
    /// `[health]`: there if `backend` is a list.
    pub health: Option<HealthSection>,
    /// `admin`
    pub admin: Option<ListenAddress>,
    /// `admin_token_file`
    pub admin_token_file: Option<PathBuf>,
    /// `control`: the socket for `onionskin reload`, and for a program that takes over.
    pub control: Option<PathBuf>,
    /// `handover_seconds`
    pub handover: Duration,
    /// All that stands in the file: names with their sections before them, and values.
    pub settings: BTreeMap<String, String>,
    /// `keys`, `tenants`, `forgotten`, `keys_provider`, `[provider]`
    pub keys: KeysSection,
    /// `proxy_networks`: balancers that tell where their clients are.
    pub proxy_networks: Vec<Network>,
    /// The cipher suite of new columns.
    pub suite: Suite,
    /// `[protect]`
    pub policy: Policy,
    /// `[mask]`
    pub masks: Masks,
    /// `pins`: the file that `onionskin pin` writes.
    pub pins: Option<PathBuf>,
    /// `[tls]`
    pub tls: Option<ClientTls>,
    /// `backend_tls`
    pub backend_tls: Option<BackendTlsMode>,
    /// `backend_ca`
    pub backend_ca: Option<PathBuf>,
    /// `backend_cert`: what the proxy shows the server.
    pub backend_cert: Option<PathBuf>,
    /// `backend_key`
    pub backend_key: Option<PathBuf>,
    /// `backend_proxy_protocol`: the server is told where clients are.
    pub backend_proxy_protocol: bool,
    /// `[tls.accounts]`
    pub certificates: CertificateRules,
    /// `backend_rsa_key`
    pub backend_rsa_key: Option<PathBuf>,
    /// `login_seconds`, `max_logins`, `max_logins_per_address`
    pub login: LoginLimits,
    /// `max_sessions`, `max_sessions_per_account`, `max_sessions_per_address`
    pub sessions: SessionLimits,
    /// `finish_memory`, `finish_rows`, `finish_seconds`
    pub finish: FinishLimits,
    /// `slow_seconds`, `slow_lines`
    pub slow: SlowLimits,
    /// `[audit]`
    pub audit: Option<AuditSection>,
    /// `[scratch]`
    pub scratch: Option<ScratchSection>,
    /// `scratch_rows`
    pub scratch_rows: Option<u64>,
    /// `scratch_memory`
    pub scratch_memory: Option<u64>,
    /// `scratch_seconds`
    pub scratch_seconds: Option<std::num::NonZeroU32>,
    /// `like_index`
    pub like_index: bool,
    /// `[functions]`
    functions: FunctionsSection,
}

impl ConfigFile {
    /// Reads and checks it.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => ConfigError::Missing(path.to_owned()),
            _ => ConfigError::Unreadable {
                path: path.to_owned(),
                source,
            },
        })?;
        Self::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let content: Content = toml::from_str(text).map_err(|source| ConfigError::Malformed {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        let policy =
            policy(content.protect, content.enforce).map_err(|source| ConfigError::Protect {
                path: path.to_owned(),
                source,
            })?;
        let masks = Masks::parse(&content.mask, &policy).map_err(|source| ConfigError::Mask {
            path: path.to_owned(),
            source,
        })?;
        fits(&content.backend, content.health.as_ref()).map_err(|text| ConfigError::Members {
            path: path.to_owned(),
            text,
        })?;
        let read = (&*content.listen_read, content.reads.as_ref());
        reads_section::fits(read, &content.listen, &content.backend).map_err(|text| {
            ConfigError::Members {
                path: path.to_owned(),
                text,
            }
        })?;
        let rules = content.tls.as_ref().map(ClientTls::certificate_rules);
        let certificates = rules.transpose().map_err(|text| ConfigError::Tls {
            path: path.to_owned(),
            text,
        })?;
        let keys = KeysSection::new(
            (content.keys, content.tenants, content.forgotten),
            (content.keys_provider, content.provider),
            (content.keys_retry_seconds, content.keys_ttl_seconds),
        );
        let keys = keys.map_err(|text| ConfigError::Provider {
            path: path.to_owned(),
            text,
        })?;
        Ok(Self {
            path: path.to_owned(),
            listen: content.listen,
            listen_read: content.listen_read,
            reads: content.reads.unwrap_or_default(),
            backend: content.backend[0].clone(),
            backends: content.backend,
            health: content.health,
            admin: content.admin,
            admin_token_file: content.admin_token_file,
            control: content.control,
            handover: content
                .handover_seconds
                .map_or(HANDOVER, |s| Duration::from_secs(s.into())),
            settings: flattened(text),
            keys,
            proxy_networks: content.proxy_networks,
            suite: content.suite,
            policy,
            masks,
            pins: content.pins,
            tls: content.tls,
            backend_tls: content.backend_tls,
            backend_ca: content.backend_ca,
            backend_cert: content.backend_cert,
            backend_key: content.backend_key,
            backend_proxy_protocol: content.backend_proxy_protocol,
            certificates: certificates.unwrap_or_default(),
            backend_rsa_key: content.backend_rsa_key,
            login: login_limits(
                content.login_seconds,
                content.max_logins,
                content.max_logins_per_address,
            ),
            sessions: session_limits(
                content.max_sessions,
                content.max_sessions_per_account,
                content.max_sessions_per_address,
            ),
            finish: finish_limits(
                content.finish_memory,
                content.finish_rows,
                content.finish_seconds,
            ),
            slow: SlowLimits {
                after: content.slow_seconds,
                lines: content
                    .slow_lines
                    .map_or(SlowLimits::default().lines, NonZeroU32::get),
            },
            audit: content.audit,
            scratch: content.scratch,
            scratch_rows: content.scratch_rows,
            scratch_memory: content.scratch_memory,
            scratch_seconds: content.scratch_seconds,
            like_index: content.like_index,
            functions: content.functions,
        })
    }

    /// The scratch engine of this program's own, or else the one that is configured, with the
    /// bounds.
    pub fn scratch_engine(&self, own: Option<EnginePlace>) -> Option<ScratchConfig> {
        let (place, user) = match (own, &self.scratch) {
            (Some(place), _) => (place, "root"),
            (None, Some(section)) => section.place(self.folder()),
            (None, None) => return None,
        };
        let mut engine = ScratchConfig::new(place, user);
        engine.rows = self.scratch_rows.unwrap_or(engine.rows);
        engine.memory = self.scratch_memory.unwrap_or(engine.memory);
        engine.seconds = self
            .scratch_seconds
            .map_or(engine.seconds, |s| u64::from(s.get()));
        Some(engine)
    }

    /// Whether `backend` is a list.
    pub fn has_members(&self) -> bool {
        self.backends.len() > 1
    }

    /// The servers of a list; none where one is named.
    pub fn nodes(&self) -> impl Iterator<Item = &Backend> {
        let is_list = self.has_members();
        self.backends.iter().filter(move |_| is_list)
    }

    /// The server for a command that works on one: with a list it has to be named.
    pub fn one_backend(&self) -> Result<&Backend, CommandError> {
        match self.has_members() {
            false => Ok(&self.backend),
            true => {
                let all: Vec<String> = self.backends.iter().map(ToString::to_string).collect();
                Err(CommandError::Arguments(format!(
                    "backend names several servers: say with --backend which one of them is meant ({})",
                    all.join(", ")
                )))
            }
        }
    }

    /// Where the audit log is, if one is written.
    pub fn audit(&self) -> Option<onionskin_audit::Settings> {
        Some(self.audit.as_ref()?.settings(self.folder()))
    }

    /// What the proxy is to compute in the server's place.
    pub fn functions(&self) -> Result<Option<FunctionsConfig>, CommandError> {
        self.functions.load(self.folder())
    }

    /// The socket for `onionskin reload`, if the configuration names one.
    pub fn control_path(&self) -> Option<PathBuf> {
        let path = self.folder().join(self.control.as_ref()?);
        // programs know it by the same name, wherever they were started
        Some(std::path::absolute(&path).unwrap_or(path))
    }

    /// The files whose content is a part of the configuration, by their settings.
    pub fn files(&self) -> Vec<(String, PathBuf)> {
        let tls = self.tls.iter().flat_map(ClientTls::files);
        let health = self.health.as_ref();
        let health = health.map_or(&None, |health| &health.password_file);
        let others = [
            ("admin_token_file", &self.admin_token_file),
            ("pins", &self.pins),
            ("backend_ca", &self.backend_ca),
            ("backend_cert", &self.backend_cert),
            ("backend_key", &self.backend_key),
            ("backend_rsa_key", &self.backend_rsa_key),
            ("health.password_file", health),
        ];
        let others = others
            .into_iter()
            .filter_map(|(name, path)| Some((name.to_owned(), path.as_ref()?)));
        let of_functions = self.functions.files();
        let all = tls.chain(others).chain(of_functions);
        all.map(|(name, path)| (name, self.folder().join(path)))
            .collect()
    }

    /// Whether clients without TLS are refused: one that has to show a certificate needs it.
    pub fn requires_tls(&self) -> bool {
        let tls = self.tls.as_ref();
        tls.is_some_and(|tls| tls.require || tls.client_ca.is_some())
    }

    /// The file of pins, if the configuration names one.
    pub fn pins_path(&self) -> Option<PathBuf> {
        self.pins.as_ref().map(|path| self.folder().join(path))
    }

    /// The folder that relative paths in the file start from.
    pub fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        }
    }
}

/// Networks as they are written.
fn networks<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Network>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    let read = texts
        .iter()
        .map(|text| text.parse().map_err(D::Error::custom));
    read.collect()
}

/// What is set, and the defaults for what is not. A budget that was made smaller leaves half of it
/// to one address.
fn login_limits(
    seconds: Option<NonZeroU32>,
    logins: Option<NonZeroU32>,
    per_address: Option<NonZeroU32>,
) -> LoginLimits {
    let default = LoginLimits::default();
    let number = |given: NonZeroU32| given.get() as usize;
    let logins = logins.map_or(default.logins, number);
    LoginLimits {
        time: seconds.map_or(default.time, |s| Duration::from_secs(s.get().into())),
        logins,
        logins_per_address: per_address.map_or(logins.div_ceil(2), number),
    }
}

fn session_limits(
    all: Option<NonZeroU32>,
    per_account: Option<NonZeroU32>,
    per_address: Option<NonZeroU32>,
) -> SessionLimits {
    let number = |given: NonZeroU32| given.get() as usize;
    SessionLimits {
        all: all.map_or(SessionLimits::default().all, number),
        per_account: per_account.map(number),
        per_address: per_address.map(number),
    }
}

fn finish_limits(
    memory: Option<NonZeroU64>,
    rows: Option<NonZeroU64>,
    seconds: Option<NonZeroU32>,
) -> FinishLimits {
    let usual = FinishLimits::default();
    FinishLimits {
        memory: memory.map_or(usual.memory, NonZeroU64::get),
        rows: rows.map_or(usual.rows, NonZeroU64::get),
        seconds: seconds.map_or(usual.seconds, |s| u64::from(s.get())),
    }
}

/// The policy of `[protect]`; `enforce` is for sections that do not say it themselves.
fn policy(
    protect: BTreeMap<String, BTreeMap<String, Entry>>,
    enforce: bool,
) -> Result<Policy, SchemaError> {
    const SWITCH: &str = "enforce";
    let mut sections = BTreeMap::new();
    let mut switches = BTreeMap::new();
    for (pattern, entries) in protect {
        let mut columns = BTreeMap::new();
        for (name, entry) in entries {
            match entry {
                Entry::Capabilities(words) => {
                    columns.insert(name, words);
                }
                Entry::Word(word) => {
                    columns.insert(name, vec![word]);
                }
                Entry::Switch(on) if name == SWITCH => {
                    switches.insert(onionskin_schema::folded(&pattern), on);
                }
                Entry::Switch(on) => {
                    return Err(SchemaError::UnknownCapability {
                        pattern,
                        column: name,
                        word: on.to_string(),
                    });
                }
            }
        }
        sections.insert(pattern, columns);
    }
    let mut policy = Policy::configured(&sections)?;
    policy.enforce(|pattern| switches.get(pattern).copied().unwrap_or(enforce));
    Ok(policy)
}

fn default_listen() -> Vec<ListenAddress> {
    DEFAULT_LISTEN.parse().into_iter().collect()
}

/// An address, or a list of addresses.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Given {
    One(String),
    Several(Vec<String>),
}

impl Given {
    /// Reads it.
    pub(crate) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let wrong = |_| D::Error::custom("an address, or a list of addresses");
        Given::deserialize(from).map_err(wrong)
    }
}

/// One address or several.
fn addresses<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<ListenAddress>, D::Error> {
    let texts = match Given::read(from)? {
        Given::One(text) => vec![text],
        Given::Several(texts) => texts,
    };
    if texts.is_empty() || texts.len() > MOST_ADDRESSES {
        return Err(D::Error::custom(format!(
            "there must be an address, and at most {MOST_ADDRESSES}"
        )));
    }
    let addresses = texts.iter().map(|text| text.parse());
    addresses
        .collect::<Result<_, _>>()
        .map_err(D::Error::custom)
}

fn default_backend() -> Vec<Backend> {
    match DEFAULT_BACKEND.parse() {
        Ok(backend) => vec![backend],
        Err(_) => unreachable!("the default is an address"),
    }
}

fn default_keys() -> String {
    "file:keys.json".into()
}

fn default_suite() -> Suite {
    Suite::Aes
}

/// Seconds, whole ones or not.
pub fn some_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let time = Duration::try_from_secs_f64(f64::deserialize(deserializer)?);
    match time {
        Ok(time) if !time.is_zero() => Ok(Some(time)),
        _ => Err(D::Error::custom("not a number of seconds above 0")),
    }
}

/// Whatever has a form as text.
pub fn some_parsed<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    parsed(deserializer).map(Some)
}

fn parsed<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    String::deserialize(deserializer)?
        .parse()
        .map_err(D::Error::custom)
}

#[cfg(test)]
mod tests;
