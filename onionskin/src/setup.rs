//! What a configuration comes to: every file that it names is read and checked, and nothing is
//! bound, started or changed. `serve`, `reload` and `check` do the same here, so that they find the
//! same faults.

use std::{path::PathBuf, sync::Arc};

use onionskin_keys::{KeySet, ProviderState, read_private_file};
use onionskin_proxy::{
    Backend, BackendTls, Config, EnginePlace, ListenAddress, PinFile, StatementShapes, Whereabouts,
    findings_at_start,
};
use zeroize::Zeroizing;

use crate::{
    admin, config_file::ConfigFile, differences::Facts, error::CommandError, key_place,
    key_place::Patience, members, sockets::listed, tls,
};

/// What goes before the configuration, or stands beside it, for as long as the program runs.
#[derive(Clone, Default)]
pub struct Given {
    /// `--listen`
    pub listen: Vec<ListenAddress>,
    /// `--backend`
    pub backend: Option<Backend>,
    /// `--trace`
    pub trace: bool,
    /// Where statements are counted under `--observe`.
    pub shapes: Option<Arc<StatementShapes>>,
    /// A server of this program's own: its socket.
    pub server: Option<PathBuf>,
    /// A scratch engine of this program's own.
    pub engine: Option<GivenEngine>,
    /// How the provider of the root key has answered.
    pub keys_provider: Arc<ProviderState>,
    /// How often it is asked.
    pub patience: Patience,
}

/// A scratch engine of this program's own.
#[derive(Clone)]
pub struct GivenEngine {
    /// Where it is.
    pub place: EnginePlace,
    /// It goes before `[scratch]`.
    pub is_argument: bool,
}

/// See the module.
pub struct Setup {
    /// What the proxy is told.
    pub config: Config,
    /// The token of the administration address.
    pub token: Option<admin::Token>,
    /// How the members of `backend` are asked, if it is a list.
    pub members: Option<members::Settings>,
    /// What a reload is compared by.
    pub facts: Facts,
}

impl Given {
    /// Where clients connect.
    pub fn addresses<'a>(&'a self, file: &'a ConfigFile) -> &'a [ListenAddress] {
        match self.listen.is_empty() {
            true => &file.listen,
            false => &self.listen,
        }
    }

    /// The same, and behind them those for sessions that only read.
    pub fn all_addresses(&self, file: &ConfigFile) -> Vec<ListenAddress> {
        [self.addresses(file), &file.listen_read].concat()
    }

    /// The server.
    pub fn backend(&self, file: &ConfigFile) -> Backend {
        match (&self.server, &self.backend) {
            (Some(server), _) => Backend::Unix(server.clone()),
            (None, Some(backend)) => backend.clone(),
            (None, None) => file.backend.clone(),
        }
    }
}

/// Longest file of a password, in bytes.
const PASSWORD_LIMIT: u64 = 4 << 10;

impl Setup {
    /// Reads what the configuration names.
    pub fn read(file: &ConfigFile, given: &Given) -> Result<Setup, CommandError> {
        let backend = given.backend(file);
        let members = members(file, given)?;
        let keys = key_place::load_for_long(file, &given.patience, &given.keys_provider)?;
        let keys = Arc::new(keys);
        // files may be put in place while they are read
        let before = Facts::of(file, &keys);
        let (client_tls, client_authority) = tls::for_clients(file)?;
        let token = admin::token(file)?;
        let backend_tls = match given.server {
            // The configuration speaks of another server.
            Some(_) => BackendTls::Never,
            None => tls::for_server(file, &backend)?,
        };
        let scratch = file.scratch_engine(given.engine.as_ref().map(|own| own.place.clone()));
        let config = Config {
            backend,
            suite: file.suite,
            policy: file.policy.clone(),
            masks: file.masks.clone(),
            pins: pins(file, &keys)?,
            client_tls: Some(client_tls),
            proxy_networks: file.proxy_networks.clone(),
            requires_tls: file.requires_tls(),
            client_authority,
            certificates_end: tls::ends(file),
            certificates: file.certificates.clone(),
            tells_clients: file.backend_proxy_protocol,
            member_timeout: members.as_ref().map(|members| members.timeout),
            causal: file.reads.causal_seconds.filter(|_| members.is_some()),
            backend_tls,
            backend_rsa_key: tls::server_key(file)?,
            login: file.login.clone(),
            trace: given.trace,
            shapes: given.shapes.clone(),
            sessions: file.sessions.clone(),
            finish: file.finish.clone(),
            slow: file.slow.clone(),
            scratch,
            like_index: file.like_index,
            functions: file.functions()?,
            keys_provider: file.keys.provider.map(|_| given.keys_provider.clone()),
            counts: file.admin.is_some(),
            // a run begins with the program, and not with a look at the configuration
            audit: None,
            keys,
        };
        // the faults that were looked for above have better words for files that are missing
        let mut facts = Facts::of(file, &config.keys)?;
        if before.is_ok_and(|before| !before.to(&facts).is_empty()) {
            return Err(CommandError::Arguments(format!(
                "a file that {} names was changed while it was read: try again",
                file.path.display()
            )));
        }
        facts.set("listen", &listed(given.addresses(file)));
        if !file.listen_read.is_empty() {
            facts.set("listen_read", &listed(&file.listen_read));
        }
        if members.is_none() {
            facts.set("backend", &config.backend.to_string());
            facts.remove("health");
        }
        match (&given.engine, &config.scratch) {
            (Some(own), _) if own.is_argument => facts.remove("scratch"),
            // as it stands in the file
            (Some(_), _) | (None, None) => {}
            (None, Some(scratch)) => {
                if let Whereabouts::At(socket) = scratch.place.now() {
                    facts.set("scratch.socket", &socket.display().to_string());
                    facts.set("scratch.user", &scratch.user);
                }
            }
        }
        Ok(Setup {
            config,
            token,
            members,
            facts,
        })
    }
}

/// How the members of `backend` are asked; `None` if there is one server only.
fn members(file: &ConfigFile, given: &Given) -> Result<Option<members::Settings>, CommandError> {
    let is_given = given.backend.is_some() || given.server.is_some();
    if is_given && !file.listen_read.is_empty() {
        return Err(CommandError::Arguments(
            "listen_read needs the servers of backend, and another one was given as an argument"
                .into(),
        ));
    }
    let Some(health) = file.health.as_ref().filter(|_| !is_given) else {
        return Ok(None);
    };
    let password = match &health.password_file {
        None => Zeroizing::default(),
        Some(path) => {
            let path = file.folder().join(path);
            let read = read_private_file(&path, PASSWORD_LIMIT);
            let bytes = read.map_err(|error| {
                CommandError::Arguments(format!("[health] password_file: {error}"))
            })?;
            let text = std::str::from_utf8(&bytes).map_err(|_| {
                CommandError::Arguments(format!("{}: this is no text", path.display()))
            })?;
            Zeroizing::new(text.trim_end_matches(['\r', '\n']).to_owned())
        }
    };
    let reached = file.backends.iter().map(|backend| {
        let (user, password) = (health.user.clone(), (*password).clone());
        let (options, may_be_plain) = tls::options(Some(file), backend, user, password)?;
        Ok(members::Reached {
            backend: backend.clone(),
            options,
            may_be_plain,
        })
    });
    Ok(Some(members::Settings {
        members: reached.collect::<Result<_, CommandError>>()?,
        interval: health.interval(),
        timeout: health.timeout(),
        drain: health.drain(),
        reads: (!file.listen_read.is_empty()).then(|| file.reads.settings()),
    }))
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
