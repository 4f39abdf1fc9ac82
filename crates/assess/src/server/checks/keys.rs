//! Where the keys of the server's own encryption lie.

use super::data_files::plain_tables;
use crate::server::check::{Check, known};
use crate::{
    finding::{Layer, Severity, Verdict},
    server::facts::{Facts, KeyPlace},
    text::shell_word,
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "no-keys",
        layer: Layer::Keys,
        title: "whether the server has keys",
        judge: none,
    },
    Check {
        code: "key-file",
        layer: Layer::Keys,
        title: "where the keys lie",
        judge: place,
    },
];

fn none(facts: &Facts) -> Verdict {
    known(&facts.keys, "", |keys| {
        let active: Vec<&KeyPlace> = keys.iter().filter(|key| key.active).collect();
        match active.is_empty() {
            false => Verdict::Closed(
                active
                    .iter()
                    .map(|key| format!("{} is active", key.name))
                    .collect(),
            ),
            true => Verdict::open(
                Severity::Low,
                "Without a keyring or a key management plugin the server can encrypt nothing of its own: what the \
                 proxy does not protect lies plain in its files.",
                match plain_tables(facts) {
                    Some(plain) => vec![format!("{plain} tablespaces are not encrypted")],
                    None => vec!["no component or plugin is active".into()],
                },
                match facts.is_mariadb() {
                    true => {
                        "plugin_load_add = file_key_management\nfile_key_management_filename = /PATH/OUTSIDE/OF/THE/DATA/keys"
                    }
                    false => {
                        "mysqld.my beside the program: { \"components\": \"file://component_keyring_file\" }"
                    }
                },
            ),
        }
    })
}

fn place(facts: &Facts) -> Verdict {
    known(&facts.keys, "", |keys| {
        let files: Vec<&str> = keys
            .iter()
            .filter(|key| key.active)
            .filter_map(|key| key.file.as_deref())
            .collect();
        if !keys.iter().any(|key| key.active) {
            return Verdict::NotHere("the server has no keys".into());
        }
        if files.is_empty() {
            let names: Vec<String> = keys
                .iter()
                .map(|key| format!("{}: not in a file", key.name))
                .collect();
            return Verdict::Closed(names);
        }
        let data = facts
            .variable("datadir")
            .unwrap_or_default()
            .trim_end_matches('/');
        let mut evidence = Vec::new();
        let mut is_bad = false;
        for file in &files {
            let looked_at = facts.machine.as_ref().ok().and_then(|machine| {
                machine
                    .keys
                    .iter()
                    .find(|key| key.path.as_os_str() == *file)
            });
            let inside = looked_at.map_or(
                !data.is_empty()
                    && file
                        .strip_prefix(data)
                        .is_some_and(|rest| rest.starts_with('/')),
                |key| key.in_data_directory,
            );
            if inside {
                is_bad = true;
                evidence.push(format!("{file} lies in the data directory"));
            }
            if let Some(mode) = looked_at.and_then(|key| key.mode)
                && mode & 0o007 != 0
            {
                is_bad = true;
                evidence.push(format!(
                    "{file} can be read by every user of the machine: {mode:03o}"
                ));
            }
        }
        let hidden = facts.missing_machine();
        let mend = format!("chmod 600 {}", shell_word(files[0]));
        match is_bad {
            true => Verdict::open(
                Severity::High,
                "Whoever copies the data directory, or is a user of the machine, has the keys, too: the \
                 encryption protects nothing.",
                evidence,
                format!("{mend}\nand keep it outside of the data directory, on another volume"),
            ),
            false => {
                let line = |file: &&str| format!("{file} is a file on the server's machine");
                Verdict::open(
                    Severity::Low,
                    "Whoever has all of the machine's disks has the keys. A key server, or a volume that is not \
                     in the same snapshots, keeps them apart.",
                    files.iter().map(line).collect(),
                    "keys from a key server: hashicorp_key_management, component_keyring_kmip and the like",
                )
            }
        }
        .seen_in_part(hidden)
    })
}

#[cfg(test)]
mod tests {
    use onionskin_rowstream::client::Family;

    use super::*;
    use crate::server::facts::{KeyFile, Machine, Seen, samples::facts};

    fn severity(verdict: &Verdict) -> Option<Severity> {
        match verdict {
            Verdict::Open { severity, .. } => Some(*severity),
            _ => None,
        }
    }

    #[test]
    fn a_key_beside_the_data_is_no_protection() {
        let mut facts = facts(Family::MariaDb, &[("datadir", "/var/lib/mysql/")]);
        let at = |file: &str| {
            Seen::Known(vec![KeyPlace {
                name: "file_key_management".into(),
                active: true,
                file: Some(file.into()),
            }])
        };
        facts.keys = at("/var/lib/mysql/keys");
        assert_eq!(severity(&place(&facts)), Some(Severity::High));
        facts.keys = at("/var/lib/mysql-keys/keys");
        assert_eq!(severity(&place(&facts)), Some(Severity::Low));
        let key = |mode| {
            Ok(Machine {
                keys: vec![KeyFile {
                    path: "/var/lib/mysql-keys/keys".into(),
                    mode: Some(mode),
                    in_data_directory: false,
                }],
                ..Machine::default()
            })
        };
        facts.machine = key(0o644);
        assert_eq!(severity(&place(&facts)), Some(Severity::High));
        // MySQL makes its keyring so.
        facts.machine = key(0o640);
        assert_eq!(severity(&place(&facts)), Some(Severity::Low));
        facts.keys = Seen::Known(Vec::new());
        assert!(matches!(place(&facts), Verdict::NotHere(_)));
        assert_eq!(severity(&none(&facts)), Some(Severity::Low));
    }
}
