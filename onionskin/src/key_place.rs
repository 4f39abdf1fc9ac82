//! Where keys come from: the file, and what opens it. Whatever reads or changes a key file does it
//! here.

use std::{
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use onionskin_keys::{
    KeyChange, KeyEntry, KeyError, KeyProvider, KeySet, Leftover, ProviderState, RootAccess,
    RootKeeper,
};

use crate::{
    config_file::ConfigFile,
    error::CommandError,
    passphrase::passphrase,
    private::PrivateError,
    provider_section::{Forgotten, KeysSection, ProviderName},
    termination::Termination,
};

/// The pause before it is asked for the second time; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest of them.
const LAST_PAUSE: Duration = Duration::from_secs(2);
/// How often it is looked whether the program is to end.
const LOOK: Duration = Duration::from_millis(50);

/// See the module.
#[derive(Clone, Debug)]
pub struct KeyPlace {
    section: KeysSection,
    /// Where a relative path begins.
    folder: PathBuf,
}

/// How often a provider that does not answer is asked.
#[derive(Clone, Default)]
pub enum Patience {
    /// Once: the keys are there already.
    #[default]
    Once,
    /// As the configuration says.
    AsConfigured,
    /// The same, unless the program is to end.
    Until(Termination),
}

/// What opens a file. Nobody is asked before it is used.
pub struct Opening {
    passphrase: Option<String>,
    provider: Option<Box<dyn KeyProvider>>,
}

impl Opening {
    /// For the file.
    pub fn access(&self) -> RootAccess<'_> {
        match &self.provider {
            Some(provider) => RootAccess::Provider(&**provider),
            None => RootAccess::Passphrase(self.passphrase.as_deref()),
        }
    }
}

impl KeyPlace {
    /// As a configuration says.
    pub fn of(file: &ConfigFile) -> KeyPlace {
        KeyPlace {
            section: file.keys.clone(),
            folder: file.folder().to_owned(),
        }
    }

    /// A key file without a configuration: it has to open by itself.
    pub fn of_file(path: &Path) -> KeyPlace {
        KeyPlace {
            section: KeysSection::of(format!("file:{}", path.display())),
            folder: PathBuf::new(),
        }
    }

    /// `keys_provider`
    pub fn provider(&self) -> Option<ProviderName> {
        self.section.provider
    }

    /// The file.
    pub fn path(&self) -> Result<PathBuf, CommandError> {
        Ok(KeySet::path_of(&self.section.locator, &self.folder)?)
    }

    /// What opens it, as the configuration says.
    pub fn opening(&self) -> Result<Opening, CommandError> {
        match self.section.provider {
            Some(name) => self.opening_by(name),
            None => Ok(Opening {
                passphrase: passphrase()?,
                provider: None,
            }),
        }
    }

    /// A provider that is configured.
    pub fn opening_by(&self, name: ProviderName) -> Result<Opening, CommandError> {
        let provider = self.section.sections.provider(name, &self.folder);
        let provider = provider.map_err(CommandError::Arguments)?;
        Ok(Opening {
            passphrase: None,
            provider: Some(provider),
        })
    }

    /// What opens it, as the file itself says: for a change of who does. A provider has to be
    /// configured all the same.
    pub fn opening_of(&self, keeper: &RootKeeper) -> Result<Opening, CommandError> {
        let passphrase = match keeper {
            RootKeeper::Mode => None,
            RootKeeper::Passphrase => passphrase()?,
            RootKeeper::Provider(name) => {
                let known = ProviderName::of(name);
                let name = known.ok_or_else(|| KeyError::ProviderNeeded(name.clone()))?;
                return self.opening_by(name);
            }
        };
        Ok(Opening {
            passphrase,
            provider: None,
        })
    }

    /// How the file says that its root key is kept.
    pub fn keeper(&self) -> Result<RootKeeper, CommandError> {
        Ok(KeySet::root_of_file(&self.section.locator, &self.folder)?)
    }

    /// Reads the keys, and the secrets of tenants. How the provider has answered is noted.
    pub fn load(&self, patience: &Patience, state: &ProviderState) -> Result<KeySet, CommandError> {
        let keys = self.load_noting(patience, state)?;
        let keys = keys.showing_forgotten_as_null(self.section.forgotten == Forgotten::Null);
        match &self.section.tenants {
            Some(locator) => Ok(keys.load_tenants(locator, &self.folder)?),
            None => Ok(keys),
        }
    }

    /// Reads the keys alone: for what opens no cells.
    pub fn load_data_keys(&self, patience: &Patience) -> Result<KeySet, CommandError> {
        self.load_noting(patience, &ProviderState::default())
    }

    /// The same; how the provider has answered is noted.
    pub fn load_noting(
        &self,
        patience: &Patience,
        state: &ProviderState,
    ) -> Result<KeySet, CommandError> {
        let opening = self.opening()?;
        self.patiently(patience, || {
            let loaded = KeySet::load_by(&self.section.locator, &self.folder, opening.access());
            if let Some(name) = self.section.provider {
                state.note(&name.to_string(), &loaded);
            }
            loaded
        })
    }

    /// The data keys of the file.
    pub fn entries(&self) -> Result<Vec<KeyEntry>, CommandError> {
        let opening = self.opening()?;
        self.patiently(&Patience::AsConfigured, || {
            KeySet::entries_of_file(&self.section.locator, &self.folder, opening.access())
        })
    }

    /// Changes the file. Nobody is asked twice: what was done by half is done anew by hand.
    pub fn change(
        &self,
        opening: &Opening,
        what: KeyChange<'_>,
    ) -> Result<Vec<KeyEntry>, CommandError> {
        let (locator, folder) = (&self.section.locator, &self.folder);
        let access = opening.access();
        let changed = KeySet::change_file(locator, folder, access, what, &mut rand::rng());
        Ok(changed?)
    }

    /// Makes the file.
    pub fn create(&self) -> Result<(), CommandError> {
        let (path, opening) = (self.path()?, self.opening()?);
        let made = KeySet::create_file_for(&path, opening.access(), &mut rand::rng());
        made.map_err(|error| match error {
            KeyError::Exists { path } => CommandError::Exists(path),
            other => other.into(),
        })
    }

    /// What a change has left beside the file.
    pub fn leftover(&self) -> Option<Leftover> {
        KeySet::leftover(&self.section.locator, &self.folder)
    }

    /// What changes have left beside the tenants file.
    fn tenants_leftovers(&self) -> Vec<PathBuf> {
        let tenants = self.section.tenants.as_ref();
        tenants.map_or_else(Vec::new, |locator| {
            KeySet::tenants_leftovers(locator, &self.folder)
        })
    }

    fn patiently<T>(
        &self,
        patience: &Patience,
        ask: impl Fn() -> Result<T, KeyError>,
    ) -> Result<T, CommandError> {
        let until = Instant::now() + self.section.retry;
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match ask() {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let left = until.saturating_duration_since(Instant::now());
            let ends = matches!(patience, Patience::Once) || left.is_zero();
            if ends || !error.may_pass() {
                return Err(error.into());
            }
            let seconds = left.as_secs_f64().ceil();
            if tracing::dispatcher::has_been_set() {
                tracing::warn!("{error}; asking again for {seconds} seconds");
            } else if pause == FIRST_PAUSE {
                // A command without a log: whoever waits for it is told once.
                eprintln!("onionskin: {error}; asking again for {seconds} seconds");
            }
            wait(pause.min(left), patience)?;
            pause = LAST_PAUSE.min(pause * 2);
        }
    }
}

/// Waits, unless the program is to end.
fn wait(time: Duration, patience: &Patience) -> Result<(), CommandError> {
    let until = Instant::now() + time;
    loop {
        if let Patience::Until(termination) = patience
            && termination.requested()
        {
            return Err(PrivateError::Interrupted.into());
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(LOOK));
    }
}

/// The keys that a configuration names, for a command.
pub fn load_at_start(file: &ConfigFile) -> Result<KeySet, CommandError> {
    load_for_long(file, &Patience::AsConfigured, &ProviderState::default())
}

/// The keys that a configuration names, for a program that goes on with them: out of swap, where
/// the system allows it. What a change of the file has left beside it is told.
pub fn load_for_long(
    file: &ConfigFile,
    patience: &Patience,
    state: &ProviderState,
) -> Result<KeySet, CommandError> {
    let place = KeyPlace::of(file);
    let keys = place.load(patience, state)?;
    if let Err(error) = keys.lock_in_memory() {
        tracing::warn!(%error, "the keys cannot be locked in memory and may be written to swap");
    }
    if let Some(leftover) = place.leftover() {
        tracing::warn!("{}", about_leftover(&leftover));
    }
    for leftover in place.tenants_leftovers() {
        tracing::warn!("{}", about_tenants_leftover(&leftover));
    }
    Ok(keys)
}

/// What to do about it.
pub fn about_leftover(leftover: &Leftover) -> String {
    let holds = match leftover.is_open {
        true => "holds the keys under no passphrase",
        false => "may hold the same keys",
    };
    format!(
        "{path} was left by a change of the keys that was broken off, unless onionskin keys runs now. It {holds}: destroy it (shred -u {path}); \
         the key file beside it is whole",
        path = leftover.path.display()
    )
}

/// What to do about a file that a change of the tenants file has left.
pub fn about_tenants_leftover(path: &Path) -> String {
    let is_old = path.extension().is_some_and(|end| end == "old");
    let shown = path.display();
    match is_old {
        // It may be the tenants file itself under a second name: nobody is told to destroy it.
        true => format!(
            "{shown} was left by a change of the tenants that was broken off, unless onionskin tenants runs now. It may open what was forgotten. \
             Run the same onionskin tenants forget once more: it removes that file. Do not write over it by hand"
        ),
        false => format!(
            "{shown} was left by a change of the tenants that was broken off, unless onionskin tenants runs now. \
             Destroy it (shred -u {shown}); the tenants file beside it is whole"
        ),
    }
}
