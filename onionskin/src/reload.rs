//! `onionskin reload` and `onionskin check`; and what a running proxy does then.
//!
//! All or nothing: everything that the configuration names is read and checked before anything is
//! exchanged. What cannot change while the proxy runs is refused by name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use onionskin_keys::{KeyDifference, KeySet, ProviderState};
use onionskin_proxy::{AuditConfig, Config, PinFile};
use parking_lot::Mutex;
use rustls::ServerConfig;
use tracing_subscriber::filter::LevelFilter;

use crate::{
    admin::Token,
    config_file::ConfigFile,
    control::{self, Verdict},
    differences::{Difference, Facts},
    error::CommandError,
    home,
    key_place::{KeyPlace, Patience},
    logging, members,
    setup::{Given, Setup},
    sockets::listed,
};

/// Have the running proxy read its configuration, keys and certificates anew
///
/// All or nothing: what is wrong is said, and nothing is changed. Sessions stay. Each statement
/// that begins afterwards runs under the new configuration. Exit code 5: it is in force, and
/// statements that began before still run. Needs `control` in the configuration; SIGHUP does the
/// same, and its outcome stands in the log.
#[derive(Args)]
pub struct Reload {
    /// The configuration of the running proxy [default: onionskin.toml]
    #[arg(short = 'c', value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Reload {
    /// Prints what has changed.
    pub fn run(self) -> Result<(), CommandError> {
        let path = self.config.unwrap_or_else(home::default_config);
        let socket = control_of(&path)?;
        match control::ask(&socket, "reload")? {
            Some((Verdict::Done, text)) => {
                println!("{text}");
                Ok(())
            }
            Some((Verdict::StillRunning, text)) => Err(CommandError::StillRunning(text)),
            Some((Verdict::Refused, text)) => Err(CommandError::Reload(text)),
            None => Err(CommandError::Control(format!(
                "{}: no proxy listens there",
                socket.display()
            ))),
        }
    }
}

/// The control socket alone: what else is wrong with the file, the proxy says.
pub fn control_of(path: &Path) -> Result<PathBuf, CommandError> {
    let none = || {
        CommandError::Control(format!(
            "{} names no control socket: set control = \"/run/onionskin/control.sock\" and start the proxy anew, or send it SIGHUP",
            path.display()
        ))
    };
    match ConfigFile::read(path) {
        Ok(file) => file.control_path().ok_or_else(none),
        Err(error) => Err(CommandError::Reload(error.to_string())),
    }
}

/// Say what a start or a reload with this configuration would say
///
/// Reads the configuration and every file that it names, and changes nothing. Where `backend` is a
/// list, its members are asked what they are. Where `control` is
/// set and a proxy runs, that is asked what a reload would change.
#[derive(Args)]
pub struct Check {
    /// The configuration [default: onionskin.toml]
    #[arg(short = 'c', value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Check {
    /// Prints it.
    pub fn run(self) -> Result<(), CommandError> {
        logging::start(LevelFilter::WARN);
        let path = self.config.unwrap_or_else(home::default_config);
        let file = ConfigFile::read(&path)?;
        let setup = Setup::read(&file, &Given::default())?;
        println!(
            "{}: sound. A start listens on {} and leads to {}.",
            path.display(),
            listed(Given::default().addresses(&file)),
            match &setup.members {
                None => setup.config.backend.to_string(),
                Some(_) => "the primary among the members of backend".into(),
            }
        );
        if let Some(members) = &setup.members {
            tell_members(members);
        }
        let Some(socket) = file.control_path() else {
            return Ok(());
        };
        let whole = std::path::absolute(&path).map_err(|source| CommandError::File {
            path: path.clone(),
            source,
        })?;
        match control::ask(&socket, &format!("check {}", whole.display()))? {
            Some((Verdict::Refused, text)) => return Err(CommandError::Reload(text)),
            Some((_, text)) => println!("A reload: {text}"),
            None => println!("No proxy listens on {}.", socket.display()),
        }
        Ok(())
    }
}

/// What each member says now.
fn tell_members(settings: &members::Settings) {
    let (states, why) = members::ask_once(settings);
    for state in &states {
        let version = state
            .version
            .as_ref()
            .map(|version| format!(" ({version})"));
        println!(
            "  {}: {}{}",
            state.member,
            state.state,
            version.unwrap_or_default()
        );
    }
    if let Some(why) = why {
        let is_led = states.iter().any(|state| state.primary);
        let consequence = if is_led {
            ""
        } else {
            "No member could take sessions: "
        };
        println!("{consequence}{why}.");
    }
}

/// Reads a configuration anew, for a proxy that runs.
pub struct Reloader {
    path: PathBuf,
    given: Given,
    force: onionskin_proxy::Reload,
    /// What is in force. The lock is held from the comparison to the exchange; who reloads sees to
    /// it that nobody else does between the reading and that.
    kept: Mutex<Kept>,
}

/// What is in force, as far as the next reload has to know it.
struct Kept {
    keys: Arc<KeySet>,
    pins: Option<Arc<PinFile>>,
    client_tls: Option<Arc<ServerConfig>>,
    audit: Option<AuditConfig>,
    facts: Facts,
    /// `backend` is a list.
    has_members: bool,
    /// Where the keys are read anew.
    place: KeyPlace,
}

impl Kept {
    fn of(config: &Config, facts: &Facts, place: KeyPlace) -> Kept {
        Kept {
            place,
            has_members: config.member_timeout.is_some(),
            keys: config.keys.clone(),
            pins: config.pins.clone(),
            client_tls: config.client_tls.clone(),
            audit: config.audit.clone(),
            facts: facts.clone(),
        }
    }
}

/// What a proxy began with; taken before that is moved into it.
pub struct Beginning(Kept);

impl Beginning {
    /// Of the setup of the start.
    pub fn of(setup: &Setup, file: &ConfigFile) -> Beginning {
        Beginning(Kept::of(&setup.config, &setup.facts, KeyPlace::of(file)))
    }
}

/// What has come of a reload.
pub struct Done {
    /// What was exchanged.
    pub differences: Vec<Difference>,
    /// Statements that began before and still run.
    pub still_running: usize,
    /// How the members of `backend` are asked from now on.
    pub members: Option<members::Settings>,
    /// For the administration address.
    pub token: Option<Token>,
    /// The file.
    pub file: ConfigFile,
}

impl Reloader {
    /// For a proxy that has begun in this way.
    pub fn new(
        path: &Path,
        given: Given,
        begun: Beginning,
        force: onionskin_proxy::Reload,
    ) -> Reloader {
        Reloader {
            path: path.to_owned(),
            given,
            force,
            kept: Mutex::new(begun.0),
        }
    }

    /// What a reload with the configuration in this file would change.
    pub fn check(&self, path: &Path) -> Result<Vec<Difference>, CommandError> {
        must_be_a_file(path)?;
        // without the lock: nobody waits for a file that does not come
        let (_, setup) = self.read(path)?;
        self.judge(&self.kept.lock(), &setup)
    }

    /// How the provider of the root key has answered.
    pub fn keys_provider(&self) -> &ProviderState {
        &self.given.keys_provider
    }

    /// Asks the provider of the root key once more, and keeps nothing of the answer.
    pub fn ask_provider(&self) -> Result<(), CommandError> {
        let place = self.kept.lock().place.clone();
        let keys = place.load_noting(&Patience::Once, self.keys_provider())?;
        match self.kept.lock().keys.difference(&keys) {
            KeyDifference::Foreign => Err(foreign_keys()),
            // The tenants are no matter of the provider.
            KeyDifference::None | KeyDifference::Numbers | KeyDifference::ForeignTenants(_) => {
                Ok(())
            }
        }
    }

    /// Reads the configuration anew and puts it in force.
    pub fn reload(&self) -> Result<Done, CommandError> {
        let read = self.read(&self.path);
        let mut kept = self.kept.lock();
        let judged = read.and_then(|(file, setup)| {
            let differences = self.judge(&kept, &setup)?;
            Ok((file, setup, differences))
        });
        self.force.count(judged.is_ok());
        let (file, mut setup, differences) = judged?;
        let config = &mut setup.config;
        match kept.keys.difference(&config.keys) {
            KeyDifference::None => config.keys = kept.keys.clone(),
            _ => config.keys.continue_counts(&kept.keys),
        }
        let same_keys = Arc::ptr_eq(&config.keys, &kept.keys);
        if let (Some(before), Some(pins)) = (&kept.pins, &config.pins)
            && same_keys
            && before.pins() == pins.pins()
            && !differences.iter().any(|d| d.is_in("pins"))
        {
            config.pins = Some(before.clone());
        }
        // a certificate that was made for this process is the same one as long as it lives
        let tls = ["tls.cert", "tls.key", "tls.min_version", "tls.client_ca"];
        if !tls
            .iter()
            .any(|name| kept.facts.differ_in(&setup.facts, name))
        {
            config.client_tls = kept.client_tls.clone();
        }
        // of the start
        config.audit = kept.audit.clone();
        let next = Kept::of(config, &setup.facts, KeyPlace::of(&file));
        let done = self.force.put_in_force(setup.config);
        *kept = next;
        Ok(Done {
            differences,
            still_running: done.still_running,
            members: setup.members,
            token: setup.token,
            file,
        })
    }

    /// Reads the configuration and all that it names.
    fn read(&self, path: &Path) -> Result<(ConfigFile, Setup), CommandError> {
        let file = ConfigFile::read(path)?;
        let setup = Setup::read(&file, &self.given)?;
        Ok((file, setup))
    }

    /// How it differs from what is in force, if it may be put there. Changes nothing.
    fn judge(&self, kept: &Kept, setup: &Setup) -> Result<Vec<Difference>, CommandError> {
        match kept.keys.difference(&setup.config.keys) {
            KeyDifference::Foreign => return Err(foreign_keys()),
            KeyDifference::ForeignTenants(why) => {
                return Err(CommandError::Reload(why.to_string()));
            }
            KeyDifference::None | KeyDifference::Numbers => {}
        }
        let differences = kept.facts.to(&setup.facts);
        // the same keys may be in another file by now
        let are_lists = kept.has_members && setup.members.is_some();
        // the members of a list may come and go
        let is_free = |name: &str| name == "keys" || name == "backend" && are_lists;
        let is_fixed = |d: &&Difference| !is_free(&d.name) && d.fixed_because().is_some();
        let fixed: Vec<&Difference> = differences.iter().filter(is_fixed).collect();
        if let Some(first) = fixed.first() {
            let all: Vec<String> = fixed.iter().map(ToString::to_string).collect();
            return Err(CommandError::Reload(format!(
                "what cannot change while the proxy runs ({}): {}; start it anew, or have a new program take over (serve --take-over)",
                first.fixed_because().unwrap_or_default(),
                all.join(", ")
            )));
        }
        Ok(differences)
    }
}

fn foreign_keys() -> CommandError {
    CommandError::Reload(
        "the file that keys names has other keys than this proxy runs with, under which nothing that was written could be read: \
         put the right file back, or start the proxy anew"
            .into(),
    )
}

/// Longest configuration that is checked for others, in bytes.
const CONFIG_LIMIT: u64 = 1 << 20;

/// What is checked for a client is a file of some length: a pipe would keep a thread waiting.
fn must_be_a_file(path: &Path) -> Result<(), CommandError> {
    let found = std::fs::metadata(path).map_err(|source| CommandError::File {
        path: path.to_owned(),
        source,
    })?;
    let what = match (found.is_file(), found.len() <= CONFIG_LIMIT) {
        (false, _) => "this is no file",
        (true, false) => "this is too long for a configuration",
        (true, true) => return Ok(()),
    };
    let text = format!("{}: {what}", path.display());
    Err(CommandError::Reload(text))
}
