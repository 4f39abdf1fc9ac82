//! How one configuration differs from another: settings by their names and values, files by what
//! is in them. What is secret is compared and never shown.

use std::collections::BTreeMap;
use std::fmt;

use onionskin_keys::KeySet;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use sha2::{Digest, Sha256};

use crate::{config_file::ConfigFile, error::CommandError};

/// Settings that hold from the start of the program to its end, and why. A section stands for all
/// that is in it.
pub const FIXED: [(&str, &str); 11] = [
    ("listen", "the address is bound at the start"),
    ("listen_read", "the address is bound at the start"),
    (
        "reads.causal_seconds",
        "open sessions tell what they have written, or do not",
    ),
    (
        "backend",
        "open sessions and new ones must be at one server, unless it is a list before and afterwards",
    ),
    ("admin", "the address is bound at the start"),
    ("control", "the socket is bound at the start"),
    ("scratch", "open sessions may be at the engine"),
    ("audit", "a run is written from the start to the end"),
    ("functions", "open sessions keep variables as it says"),
    ("keys", "what was written must stay readable"),
    ("keys_ttl_seconds", "the time has begun"),
];

/// Bytes of a digest that are shown.
const SHOWN: usize = 8;

/// What is known of a setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Fact {
    /// Its value, or what may be shown of it.
    shown: String,
    /// Of the file that it names.
    content: Option<[u8; 32]>,
}

/// All that a configuration says, by the names of settings.
#[derive(Clone, Debug, Default)]
pub struct Facts(BTreeMap<String, Fact>);

/// A setting that is another one than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The setting, with its section before it.
    pub name: String,
    before: Option<Fact>,
    after: Option<Fact>,
}

impl Facts {
    /// What stands in the file, and in the files that it names.
    pub fn of(file: &ConfigFile, keys: &KeySet) -> Result<Facts, CommandError> {
        let mut facts = Facts::default();
        for (name, value) in &file.settings {
            facts.set(name, value);
        }
        for (name, path) in file.files() {
            let bytes = std::fs::read(&path).map_err(|source| CommandError::File {
                path: path.clone(),
                source,
            })?;
            let fact = facts.0.entry(name.clone()).or_default();
            fact.content = Some(Sha256::digest(&bytes).into());
            if name == "tls.cert" {
                let first = CertificateDer::pem_slice_iter(&bytes).next();
                let digest = first.and_then(Result::ok).map(Sha256::digest);
                let digest = digest.unwrap_or_default();
                let text: String = digest[..SHOWN].iter().map(|b| format!("{b:02x}")).collect();
                fact.shown += &format!(" (SHA-256 {text}…)");
            }
        }
        let ids = keys.states().map(|(id, state)| match state.seals() {
            true => id.to_string(),
            false => format!("{id} ({state})"),
        });
        let ids: Vec<String> = ids.collect();
        let (ids, active) = (ids.join(", "), keys.active_key());
        facts.set("data keys", &format!("{ids}; new columns under {active}"));
        if let Some(tenants) = keys.tenants() {
            let (forgotten, generation) = (tenants.forgotten().len(), tenants.generation());
            facts.set(
                "forgotten tenants",
                &format!("{forgotten}; generation {generation}"),
            );
        }
        Ok(facts)
    }

    /// A setting has this value, whatever stands in the file.
    pub fn set(&mut self, name: &str, shown: &str) {
        match shown.is_empty() {
            true => drop(self.0.remove(name)),
            false => self.0.entry(name.to_owned()).or_default().shown = shown.to_owned(),
        }
    }

    /// A section does not count, whatever stands in the file.
    pub fn remove(&mut self, section: &str) {
        let is_in = |name: &str| {
            let rest = name.strip_prefix(section);
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        self.0.retain(|name, _| !is_in(name));
    }

    /// Whether something of a section, or a setting, is set.
    pub fn differ_in(&self, next: &Facts, section: &str) -> bool {
        self.to(next).iter().any(|d| d.is_in(section))
    }

    /// What differs, by the names of settings.
    pub fn to(&self, next: &Facts) -> Vec<Difference> {
        let mut names: Vec<&String> = self.0.keys().chain(next.0.keys()).collect();
        names.sort();
        names.dedup();
        let found = names.into_iter().map(|name| Difference {
            name: name.clone(),
            before: self.0.get(name).cloned(),
            after: next.0.get(name).cloned(),
        });
        found.filter(|d| d.before != d.after).collect()
    }
}

impl Difference {
    /// Whether it is this setting, or in this section.
    pub fn is_in(&self, section: &str) -> bool {
        let rest = self.name.strip_prefix(section);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    /// Why it needs a new start, if it does.
    pub fn fixed_because(&self) -> Option<&'static str> {
        let found = FIXED.iter().find(|(name, _)| self.is_in(name));
        found.map(|(_, why)| *why)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |fact: &Option<Fact>| match fact {
            Some(fact) => fact.shown.clone(),
            None => "not set".to_owned(),
        };
        let (before, after) = (value(&self.before), value(&self.after));
        match before == after {
            true => write!(f, "{}: {after}, with another content", self.name),
            false => write!(f, "{}: {before} → {after}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(settings: &[(&str, &str)]) -> Facts {
        let mut facts = Facts::default();
        for (name, value) in settings {
            facts.set(name, value);
        }
        facts
    }

    #[test]
    fn what_differs_is_told_by_names_and_values() {
        let before = facts(&[("listen", "a"), ("max_logins", "1"), ("scratch_rows", "7")]);
        let after = facts(&[
            ("max_logins", "2"),
            ("scratch_rows", "7"),
            ("tls.cert", "c"),
        ]);
        let found: Vec<String> = before.to(&after).iter().map(ToString::to_string).collect();
        let wanted = [
            "listen: a → not set",
            "max_logins: 1 → 2",
            "tls.cert: not set → c",
        ];
        assert_eq!(found, wanted);
        assert!(before.differ_in(&after, "tls") && !before.differ_in(&after, "tl"));
    }

    #[test]
    fn sections_are_fixed_as_a_whole() {
        let fixed = |name: &str| {
            let differences = facts(&[]).to(&facts(&[(name, "x")]));
            differences[0].fixed_because().is_some()
        };
        assert!(
            fixed("listen")
                && fixed("functions.keys.a")
                && fixed("scratch.socket")
                && fixed("scratch.engine")
        );
        assert!(!fixed("scratch_rows") && !fixed("data keys") && !fixed("backend_ca"));
        assert!(!fixed("protect.\"a.*\".listen"));
    }
}
