//! Which key a stream is sealed with, and how it is found again.

use std::{
    cell::{OnceCell, RefCell},
    path::PathBuf,
};

use clap::Args;
use onionskin_backup::{Header, KeySource, StreamError};
use onionskin_keys::{KeySet, ProviderState, StreamKey, Suite};

use crate::{
    config_file::ConfigFile,
    error::CommandError,
    home,
    key_place::{KeyPlace, Patience},
    passphrase::passphrase,
};

/// Where keys come from.
#[derive(Args)]
pub struct KeyArguments {
    /// The configuration that names the keys [default: onionskin.toml]
    #[arg(short = 'c', value_name = "FILE", conflicts_with = "keys")]
    config: Option<PathBuf>,
    /// A key file, without a configuration
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
}

impl KeyArguments {
    /// Whether any was given.
    pub fn are_given(&self) -> bool {
        self.config.is_some() || self.keys.is_some()
    }

    /// What names the same keys in another command, with a space before it; empty for the default.
    pub fn words(&self) -> String {
        match &self.keys {
            Some(keys) => format!(" --keys {}", keys.display()),
            None => self.config_words(),
        }
    }

    /// What names the same configuration in another command, with a space before it.
    pub fn config_words(&self) -> String {
        let config = self.config.as_ref();
        config.map_or_else(String::new, |config| format!(" -c {}", config.display()))
    }

    /// The configuration, for commands that need the server that it names.
    pub fn config_file(&self) -> Result<ConfigFile, CommandError> {
        if self.keys.is_some() {
            return Err(CommandError::Arguments(
                "the server is named by a configuration: use -c instead of --keys".into(),
            ));
        }
        let config = self.config.clone().unwrap_or_else(home::default_config);
        Ok(ConfigFile::read(&config)?)
    }

    /// Where the keys are, and what opens them.
    pub fn place(&self) -> Result<KeyPlace, CommandError> {
        match &self.keys {
            Some(keys) => Ok(KeyPlace::of_file(keys)),
            None => Ok(KeyPlace::of(&self.config_file()?)),
        }
    }

    /// Reads them.
    pub fn load(&self) -> Result<Loaded, CommandError> {
        let load = |place: KeyPlace| place.load(&Patience::AsConfigured, &ProviderState::default());
        if let Some(keys) = &self.keys {
            return Ok(Loaded {
                keys: load(KeyPlace::of_file(keys))?,
                suite: Suite::Aes,
                config: None,
            });
        }
        let config = self.config.clone().unwrap_or_else(home::default_config);
        if self.config.is_none() && !config.exists() {
            return Err(CommandError::Arguments(format!(
                "there is no {} here: name the configuration with -c or the key file with --keys, \
                 or seal under a passphrase with --passphrase",
                config.display()
            )));
        }
        let file = ConfigFile::read(&config)?;
        Ok(Loaded {
            keys: load(KeyPlace::of(&file))?,
            suite: file.suite,
            config: Some(file),
        })
    }

    /// The key that a stream's header asks for.
    pub fn key_for(&self, header: &Header) -> Result<StreamKey, StreamKeyError> {
        match header.key_source {
            KeySource::KeyFile(_) => {
                let loaded = self.load().map_err(StreamKeyError::Command)?;
                header.key(&loaded.keys).map_err(StreamKeyError::Stream)
            }
            KeySource::Passphrase(_) => {
                let passphrase = needed_passphrase().map_err(StreamKeyError::Command)?;
                let key = header.key_from_passphrase(&passphrase);
                key.map_err(StreamKeyError::Stream)
            }
        }
    }
}

/// What was loaded.
pub struct Loaded {
    /// The keys.
    pub keys: KeySet,
    /// The suite that the configuration prefers.
    pub suite: Suite,
    /// The configuration, if there is one.
    pub config: Option<ConfigFile>,
}

/// Why there is no key for a stream.
pub enum StreamKeyError {
    /// No keys at all.
    Command(CommandError),
    /// Not the stream's.
    Stream(StreamError),
}

impl StreamKeyError {
    /// As a command's error about the stream of this name.
    pub fn of(self, name: &str) -> CommandError {
        match self {
            Self::Command(error) => error,
            Self::Stream(source) => CommandError::Stream {
                name: name.to_owned(),
                source,
            },
        }
    }
}

/// The passphrase, where there is no way without.
pub fn needed_passphrase() -> Result<String, CommandError> {
    passphrase()?.ok_or_else(|| {
        CommandError::Arguments(
            "a passphrase is needed: set the environment variable ONIONSKIN_PASSPHRASE, or ONIONSKIN_PASSPHRASE_FILE to the file that has it"
                .into(),
        )
    })
}

/// Finds the key of a stream for [`verify`], and keeps an error about keys apart from those of the
/// stream.
pub struct KeyFinder<'a> {
    keys: &'a KeyArguments,
    /// Read once for any number of streams.
    loaded: OnceCell<Loaded>,
    failed: RefCell<Option<CommandError>>,
}

impl<'a> KeyFinder<'a> {
    /// Looks where `keys` say.
    pub fn new(keys: &'a KeyArguments) -> Self {
        Self {
            keys,
            loaded: OnceCell::new(),
            failed: RefCell::default(),
        }
    }

    /// What was read, or is read now.
    pub fn loaded(&self) -> Result<&Loaded, CommandError> {
        match self.loaded.get() {
            Some(loaded) => Ok(loaded),
            None => {
                let loaded = self.keys.load()?;
                Ok(self.loaded.get_or_init(|| loaded))
            }
        }
    }

    /// The key that a header asks for. Without one the result must go through
    /// [`KeyFinder::settle`].
    pub fn find(&self, header: &Header) -> Result<StreamKey, StreamError> {
        match header.key_source {
            KeySource::KeyFile(_) => match self.loaded() {
                Ok(loaded) => header.key(&loaded.keys),
                Err(error) => {
                    self.failed.replace(Some(error));
                    Err(StreamError::WrongKey("key"))
                }
            },
            KeySource::Passphrase(_) => match passphrase() {
                Err(error) => {
                    self.failed.replace(Some(error));
                    Err(StreamError::WrongKey("passphrase"))
                }
                Ok(Some(passphrase)) => header.key_from_passphrase(&passphrase),
                Ok(None) => Err(StreamError::OtherKeySource(
                    "under a passphrase, and ONIONSKIN_PASSPHRASE is not set",
                )),
            },
        }
    }

    /// The error about keys, if there was one, else what came of it.
    pub fn settle<T>(
        &self,
        result: Result<T, StreamError>,
    ) -> Result<Result<T, StreamError>, CommandError> {
        self.check().map(|()| result)
    }

    /// The error about keys, if there was one.
    pub fn check(&self) -> Result<(), CommandError> {
        self.failed.take().map_or(Ok(()), Err)
    }
}
