//! `keys_provider` and `[provider]`: who wraps the root key of the key file, and how it is reached.
//!
//! The key file names a provider by one word. Where that is, and which program is run, stands here
//! alone: who can write the key file leads nobody elsewhere. Several may be configured at once, so
//! that `onionskin keys rewrap` can move the file from one to another.

use std::{fmt, time::Duration};

use clap::ValueEnum;
use onionskin_keys::KeyProvider;
use onionskin_providers::ExecProvider;
use serde::{Deserialize, Deserializer, de::Error};

/// How long a provider may take to answer, unless the configuration says.
const ANSWER: Duration = Duration::from_secs(10);
/// For how long one is asked again at a start, unless the configuration says.
const RETRY: Duration = Duration::from_secs(30);

/// Where the key file is, and what opens it.
#[derive(Clone, Debug)]
pub struct KeysSection {
    /// `keys`, as [`onionskin_keys::KeySet::load`] understands it.
    pub locator: String,
    /// `keys_provider`
    pub provider: Option<ProviderName>,
    /// `[provider]`
    pub sections: ProviderSections,
    /// `keys_retry_seconds`
    pub retry: Duration,
    /// `keys_ttl_seconds`
    pub ttl: Option<Duration>,
}

impl KeysSection {
    /// A key file that opens by itself.
    pub fn of(locator: String) -> KeysSection {
        KeysSection {
            locator,
            provider: None,
            sections: ProviderSections::default(),
            retry: RETRY,
            ttl: None,
        }
    }

    /// As a configuration says. `Err`: what is wrong with it.
    pub fn new(
        locator: String,
        (provider, sections): (Option<ProviderName>, ProviderSections),
        (retry, ttl): (Option<Duration>, Option<Duration>),
    ) -> Result<KeysSection, String> {
        sections.check(provider)?;
        if provider.is_none() && (retry.is_some() || ttl.is_some()) {
            return Err("keys_retry_seconds and keys_ttl_seconds are about a provider, and keys_provider names none".into());
        }
        Ok(KeysSection {
            provider,
            sections,
            retry: retry.unwrap_or(RETRY),
            ttl,
            ..KeysSection::of(locator)
        })
    }
}

/// A provider's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ProviderName {
    /// A program of the operator's.
    Exec,
}

impl ProviderName {
    /// The one that a key file names.
    pub fn of(text: &str) -> Option<ProviderName> {
        ProviderName::from_str(text, false).ok()
    }
}

impl fmt::Display for ProviderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProviderName::Exec => "exec",
        })
    }
}

/// `[provider]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderSections {
    exec: Option<ExecSection>,
}

/// `[provider.exec]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecSection {
    /// The program by its absolute path, and its arguments.
    command: Vec<String>,
    #[serde(default = "answer", deserialize_with = "seconds")]
    timeout_seconds: Duration,
}

impl ProviderSections {
    /// The provider of this name. Nobody is asked anything yet.
    pub fn provider(&self, name: ProviderName) -> Result<Box<dyn KeyProvider>, String> {
        let missing = || format!("there is no section [provider.{name}]");
        match name {
            ProviderName::Exec => {
                let section = self.exec.as_ref().ok_or_else(missing)?;
                let made = ExecProvider::new(&section.command, section.timeout_seconds);
                let made = made.map_err(|why| format!("[provider.exec]: {why}"))?;
                Ok(Box::new(made))
            }
        }
    }

    /// Whether all that stands there is sound, and there is something for `used`.
    pub fn check(&self, used: Option<ProviderName>) -> Result<(), String> {
        let named = [(ProviderName::Exec, self.exec.is_some())];
        for (name, is_there) in named {
            if is_there || used == Some(name) {
                self.provider(name).map(drop)?;
            }
        }
        Ok(())
    }
}

fn answer() -> Duration {
    ANSWER
}

/// Seconds, whole ones or not.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    match Duration::try_from_secs_f64(f64::deserialize(deserializer)?) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err(D::Error::custom("not a number of seconds above 0")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ProviderSections, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_program_is_named_by_its_path() {
        let sound = read("[exec]\ncommand = [\"/bin/wrap\", \"-k\"]\n").expect("sound");
        assert!(sound.check(Some(ProviderName::Exec)).is_ok());
        let provider = sound.provider(ProviderName::Exec).expect("there");
        assert_eq!(provider.name(), ProviderName::Exec.to_string());
        assert_eq!(ProviderName::of("exec"), Some(ProviderName::Exec));
        assert_eq!(ProviderName::of("Exec"), None);
        for (text, what) in [
            ("[exec]\ncommand = []\n", "no program"),
            ("[exec]\ncommand = [\"wrap\"]\n", "absolute"),
            ("", "[provider.exec]"),
        ] {
            let sections = read(text).expect("read");
            let error = sections.check(Some(ProviderName::Exec)).expect_err(text);
            assert!(error.contains(what), "{error}");
        }
        assert!(read("").expect("nothing").check(None).is_ok());
        for text in [
            "[exec]\ncommand = \"/bin/wrap\"\n",
            "[exec]\n",
            "[exec]\ncommand = [\"/a\"]\nshell = true\n",
            "[exec]\ncommand = [\"/a\"]\ntimeout_seconds = 0\n",
            "[kms]\nkey = \"a\"\n",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
