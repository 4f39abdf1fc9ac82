//! Which key a stream is sealed with, and how it is found again.

use std::{
    cell::{OnceCell, RefCell},
    io::{self, Read},
    path::{Path, PathBuf},
};

use clap::Args;
use onionskin_backup::{Header, KeySource, StreamError, header::TO_RECIPIENTS};
use onionskin_keys::{
    Identity, KeySet, Recipient, RecipientError, StreamKey, Suite,
    recipient_file::{parse_identities, read_identities, read_recipients},
    recipient_text::parse_recipient,
};
use zeroize::Zeroizing;

use crate::{
    config_file::ConfigFile,
    error::CommandError,
    home,
    key_place::{KeyPlace, Patience},
    passphrase::passphrase,
};

/// Longest text of identities on standard input, in bytes.
const IDENTITIES_LIMIT: u64 = 1 << 20;

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
        // A stream opens without the secrets of tenants: a backup may hold the only copy of them.
        let load = |place: KeyPlace| place.load_data_keys(&Patience::AsConfigured);
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

    /// The configuration, for commands that can do without one: the named one, or the default where
    /// it is there.
    pub fn config_if_there(&self) -> Result<Option<ConfigFile>, CommandError> {
        let config = match &self.config {
            Some(config) => config.clone(),
            None if self.keys.is_none() && home::default_config().exists() => {
                home::default_config()
            }
            None => return Ok(None),
        };
        Ok(Some(ConfigFile::read(&config)?))
    }
}

/// Where the keys of streams come from that are read: keys, or identities.
#[derive(Args)]
pub struct OpeningKeys {
    #[command(flatten)]
    keys: KeyArguments,
    /// A file with the identity of a recipient, for what was sealed to recipients; - reads standard
    /// input. May be given several times
    #[arg(long, value_name = "FILE")]
    identity: Vec<PathBuf>,
}

impl OpeningKeys {
    /// The keys among them.
    pub fn keys(&self) -> &KeyArguments {
        &self.keys
    }

    /// Whether any was given.
    pub fn are_given(&self) -> bool {
        self.keys.are_given() || self.has_identities()
    }

    /// Whether what was sealed to recipients can be opened.
    pub fn has_identities(&self) -> bool {
        !self.identity.is_empty()
    }

    /// Standard input cannot be the identity and what is opened.
    pub fn leave_stdin_to(&self, input: Option<&Path>) -> Result<(), CommandError> {
        let is_stdin = |path: &Path| path == Path::new("-");
        match self.identity.iter().any(|path| is_stdin(path)) && input.is_none_or(is_stdin) {
            true => Err(CommandError::Arguments(
                "--identity - reads standard input, so name the file that is to be opened".into(),
            )),
            false => Ok(()),
        }
    }

    fn read_identities(&self) -> Result<Vec<Identity>, CommandError> {
        let mut identities = Vec::new();
        for path in &self.identity {
            identities.extend(match path == Path::new("-") {
                true => identities_of_stdin()?,
                false => read_identities(path)?,
            });
        }
        Ok(identities)
    }

    /// The key that a stream's header asks for.
    pub fn key_for(&self, header: &Header) -> Result<StreamKey, StreamKeyError> {
        match header.key_source {
            KeySource::Passphrase(_) if !self.has_identities() => {
                let passphrase = needed_passphrase().map_err(StreamKeyError::Command)?;
                let key = header.key_from_passphrase(&passphrase);
                key.map_err(StreamKeyError::Stream)
            }
            _ => {
                let finder = KeyFinder::new(self);
                let key = finder.find(header);
                finder.check().map_err(StreamKeyError::Command)?;
                key.map_err(StreamKeyError::Stream)
            }
        }
    }
}

/// Identities that another program writes into a pipe.
fn identities_of_stdin() -> Result<Vec<Identity>, CommandError> {
    let mut text = Zeroizing::new(Vec::with_capacity(1 << 16));
    let mut input = io::stdin().lock().take(IDENTITIES_LIMIT);
    input
        .read_to_end(&mut text)
        .map_err(|source| CommandError::System {
            doing: "reading an identity from standard input",
            source,
        })?;
    Ok(parse_identities("standard input", &text)?)
}

/// Recipients from arguments and files, each once. Empty if none is named at all.
pub fn recipients(texts: &[String], files: &[PathBuf]) -> Result<Vec<Recipient>, CommandError> {
    let mut all: Vec<Recipient> = Vec::new();
    let mut add = |recipient| {
        if !all.contains(&recipient) {
            all.push(recipient);
        }
    };
    for (number, text) in (1..).zip(texts) {
        let recipient = parse_recipient(text);
        add(recipient.map_err(|source| RecipientError::Argument { number, source })?);
    }
    for file in files {
        read_recipients(file)?.into_iter().for_each(&mut add);
    }
    Ok(all)
}

/// Whom a backup or an archive is sealed to.
#[derive(Args)]
pub struct RecipientArguments {
    /// Seal to this recipient, age1… or sm2pub1…, and with no keys: its identity opens it, and this
    /// machine cannot. May be given several times
    #[arg(long, value_name = "RECIPIENT")]
    recipient: Vec<String>,
    /// Seal to the recipients in this file, one on each line
    #[arg(long, value_name = "FILE")]
    recipients: Vec<PathBuf>,
}

impl RecipientArguments {
    /// Whether any is named.
    pub fn are_given(&self) -> bool {
        !(self.recipient.is_empty() && self.recipients.is_empty())
    }

    /// Reads them. Empty if none is named.
    pub fn read(&self) -> Result<Vec<Recipient>, CommandError> {
        recipients(&self.recipient, &self.recipients)
    }
}

/// The suite that is wanted of recipients: that of `--suite`, or that of a configuration which says
/// `sm`. `aes` is what a configuration says by itself.
pub fn wanted_suite(suite: Option<Suite>, config: Option<&ConfigFile>) -> Option<Suite> {
    suite.or(config
        .map(|file| file.suite)
        .filter(|suite| *suite == Suite::Sm))
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
    keys: &'a OpeningKeys,
    /// Read once for any number of streams.
    loaded: OnceCell<Loaded>,
    identities: OnceCell<Vec<Identity>>,
    failed: RefCell<Option<CommandError>>,
}

impl<'a> KeyFinder<'a> {
    /// Looks where `keys` say.
    pub fn new(keys: &'a OpeningKeys) -> Self {
        Self {
            keys,
            loaded: OnceCell::new(),
            identities: OnceCell::new(),
            failed: RefCell::default(),
        }
    }

    /// What was read, or is read now.
    pub fn loaded(&self) -> Result<&Loaded, CommandError> {
        match self.loaded.get() {
            Some(loaded) => Ok(loaded),
            None => {
                let loaded = self.keys.keys.load()?;
                Ok(self.loaded.get_or_init(|| loaded))
            }
        }
    }

    fn identities(&self) -> Result<&[Identity], CommandError> {
        match self.identities.get() {
            Some(identities) => Ok(identities),
            None => {
                let identities = self.keys.read_identities()?;
                Ok(self.identities.get_or_init(|| identities))
            }
        }
    }

    /// The key that a header asks for. Without one the result must go through
    /// [`KeyFinder::settle`].
    ///
    /// With identities alone, only what was sealed to recipients opens: who replaces a file by one
    /// under other keys that happen to lie here is not helped.
    pub fn find(&self, header: &Header) -> Result<StreamKey, StreamError> {
        let only_identities = self.keys.has_identities() && !self.keys.keys.are_given();
        match header.key_source {
            KeySource::Recipients(_) if !self.keys.has_identities() => {
                Err(StreamError::OtherKeySource(TO_RECIPIENTS))
            }
            KeySource::KeyFile(_) | KeySource::Passphrase(_) if only_identities => {
                header.key_from_identities([])
            }
            KeySource::Recipients(_) => match self.identities() {
                Ok(identities) => header.key_from_identities(identities),
                Err(error) => {
                    self.failed.replace(Some(error));
                    Err(StreamError::OtherKeySource(TO_RECIPIENTS))
                }
            },
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
