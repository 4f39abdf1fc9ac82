//! Data files: tablespaces, logs of InnoDB, temporary files.

use onionskin_schema::identifier;

use crate::server::check::{Check, known, must_be_on};
use crate::{
    finding::{Layer, Severity, Verdict},
    server::facts::{Facts, Seen, SpaceKind, Tablespace},
    text::count,
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "tablespaces",
        layer: Layer::Files,
        title: "tablespaces of tables",
        judge: tablespaces,
    },
    Check {
        code: "new-tables",
        layer: Layer::Files,
        title: "whether new tables are encrypted",
        judge: new_tables,
    },
    Check {
        code: "other-engines",
        layer: Layer::Files,
        title: "tables that InnoDB does not store",
        judge: other_engines,
    },
    Check {
        code: "system-tablespace",
        layer: Layer::Files,
        title: "system tablespace and data dictionary",
        judge: system,
    },
    Check {
        code: "undo",
        layer: Layer::Files,
        title: "undo logs",
        judge: undo,
    },
    Check {
        code: "redo",
        layer: Layer::Files,
        title: "redo log",
        judge: redo,
    },
    Check {
        code: "doublewrite",
        layer: Layer::Files,
        title: "doublewrite buffer",
        judge: doublewrite,
    },
    Check {
        code: "temporary-tables",
        layer: Layer::Files,
        title: "temporary tables",
        judge: temporary_tables,
    },
    Check {
        code: "temporary-files",
        layer: Layer::Files,
        title: "temporary files of sorts and logs",
        judge: temporary_files,
    },
    Check {
        code: "file-permissions",
        layer: Layer::Files,
        title: "who may read the files",
        judge: permissions,
    },
];

const DISK: &str = "Whoever has a disk, a snapshot of it or a copy of the file reads every plain column, and what \
                    was plain before.";

fn of_kind(
    facts: &Facts,
    kind: SpaceKind,
    judge: impl FnOnce(Vec<&Tablespace>) -> Verdict,
) -> Verdict {
    known(&facts.tablespaces, "", |all| {
        judge(all.iter().filter(|space| space.kind == kind).collect())
    })
}

fn line(space: &&Tablespace) -> String {
    let how = match (space.encrypted, space.rotating) {
        (true, _) => "encrypted",
        (false, true) => "not yet encrypted, its pages are being written",
        (false, false) => "not encrypted",
    };
    format!("{}: {how}", space.name)
}

/// Those that are not encrypted, or that all are.
fn judged(spaces: &[&Tablespace], severity: Severity, reason: &str, mend: String) -> Verdict {
    let plain: Vec<&&Tablespace> = spaces.iter().filter(|space| !space.encrypted).collect();
    match plain.is_empty() {
        true if spaces.is_empty() => Verdict::closed("there are none"),
        true => Verdict::Closed(spaces.iter().map(line).collect()),
        false => Verdict::open(
            severity,
            reason,
            plain.into_iter().map(line).collect(),
            mend,
        ),
    }
}

fn tablespaces(facts: &Facts) -> Verdict {
    of_kind(facts, SpaceKind::Data, |spaces| {
        let first = spaces.iter().find(|space| !space.encrypted);
        let name = first.map_or("", |space| space.name.as_str());
        let (database, table) = name.split_once('/').unwrap_or(("", name));
        // Partitions have files of their own.
        let table = table.split(['#']).next().unwrap_or(table);
        let option = match facts.is_mariadb() {
            true => "ENCRYPTED=YES",
            false => "ENCRYPTION='Y'",
        };
        let mend = match database {
            "" => format!("ALTER TABLESPACE {} {option};", identifier(table)),
            _ => format!(
                "ALTER TABLE {}.{} {option};",
                identifier(database),
                identifier(table)
            ),
        };
        judged(&spaces, Severity::Medium, DISK, mend)
    })
}

const NEW_TABLE: &str = "A table that is made without asking for encryption has none.";
/// Databases that the mend names. The evidence has them all.
const NAMED: usize = 20;

fn new_tables(facts: &Facts) -> Verdict {
    if !facts.is_mariadb() {
        return new_tables_of_mysql(facts);
    }
    must_be_on(facts, "innodb_encrypt_tables", |seen| {
        let mend = "innodb_encrypt_tables = FORCE\ninnodb_encryption_threads = 4";
        Verdict::open(Severity::Low, NEW_TABLE, vec![seen], mend)
    })
}

/// What decides is the default of the table's database. The server's setting is the default of
/// databases that are made from now on.
fn new_tables_of_mysql(facts: &Facts) -> Verdict {
    const SERVER: &str = "default_table_encryption";
    let databases = match &facts.databases {
        Seen::Known(databases) => databases,
        Seen::Hidden(needs) => return Verdict::hidden(needs.clone()),
        Seen::Absent => return Verdict::hidden("a server that shows DEFAULT_ENCRYPTION"),
    };
    let plain: Vec<&str> = databases
        .iter()
        .filter(|(_, encrypted)| !encrypted)
        .map(|(name, _)| name.as_str())
        .collect();
    let of_server = must_be_on(facts, SERVER, |seen| {
        let mend = "SET PERSIST default_table_encryption = ON;\n\
                    SET PERSIST table_encryption_privilege_check = ON;";
        Verdict::open(Severity::Low, NEW_TABLE, vec![seen], mend)
    });
    let verdict = match (plain.is_empty(), of_server) {
        (true, Verdict::Closed(mut seen)) => {
            seen.push(match databases.len() {
                0 => "there is no database yet".into(),
                many => format!("and so it is the default of {}", count(many, "database")),
            });
            Verdict::Closed(seen)
        }
        (true, other) => other,
        (false, of_server) => {
            let told = plain.iter().map(|name| {
                format!("database {name}: DEFAULT ENCRYPTION is 'N', which decides for its tables")
            });
            let mut evidence: Vec<String> = told.collect();
            let alters = plain.iter().take(NAMED);
            let alters =
                alters.map(|n| format!("ALTER DATABASE {} ENCRYPTION='Y';", identifier(n)));
            let mut mend: Vec<String> = alters.collect();
            if plain.len() > NAMED {
                mend.push(format!("-- and so for {} more", plain.len() - NAMED));
            }
            match of_server {
                Verdict::Open {
                    evidence: seen,
                    mend: of_new,
                    ..
                } => {
                    evidence.splice(0..0, seen);
                    mend.insert(0, of_new);
                }
                Verdict::Closed(seen) => {
                    let seen = seen.into_iter();
                    evidence.splice(0..0, seen.map(|s| format!("{s}, for new databases alone")));
                }
                _ => {}
            }
            Verdict::open(Severity::Low, NEW_TABLE, evidence, mend.join("\n"))
        }
    };
    verdict.seen_in_part(facts.missing_tables())
}

fn other_engines(facts: &Facts) -> Verdict {
    known(&facts.foreign_tables, "", |tables| {
        let aria_is_encrypted = facts.is_mariadb() && facts.is_on("aria_encrypt_tables");
        let open: Vec<String> = tables
            .iter()
            .filter(|table| !(aria_is_encrypted && table.engine == "Aria"))
            .map(|table| format!("{}: {}", table.name, table.engine))
            .collect();
        let verdict = match open.is_empty() {
            true => Verdict::closed(format!(
                "{} outside of InnoDB",
                count(tables.len(), "table")
            )),
            false => Verdict::open(
                Severity::Medium,
                "The server encrypts no files of these engines, or is not told to.",
                open,
                "ALTER TABLE DATABASE.TABLE ENGINE=InnoDB;",
            ),
        };
        verdict.seen_in_part(facts.missing_tables())
    })
}

fn system(facts: &Facts) -> Verdict {
    of_kind(facts, SpaceKind::System, |spaces| {
        let mend = match facts.is_mariadb() {
            true => "innodb_encrypt_tables = ON\ninnodb_encryption_threads = 4",
            false => "ALTER TABLESPACE mysql ENCRYPTION='Y';",
        };
        judged(
            &spaces,
            Severity::Low,
            "It holds definitions with their defaults and constants, statistics with values of keys, and \
             the change buffer.",
            mend.into(),
        )
    })
}

fn undo(facts: &Facts) -> Verdict {
    const REASON: &str = "Undo logs hold rows as they were before they were changed, also those that a migration has \
                          encrypted since.";
    if !facts.is_mariadb() {
        return must_be_on(facts, "innodb_undo_log_encrypt", |seen| {
            let mend = "SET PERSIST innodb_undo_log_encrypt = ON;";
            Verdict::open(Severity::Medium, REASON, vec![seen], mend)
        });
    }
    // MariaDB lists undo tablespaces while they are encrypted, and else keeps them silent.
    known(&facts.tablespaces, "", |all| {
        let undo: Vec<&Tablespace> = all.iter().filter(|s| s.kind == SpaceKind::Undo).collect();
        let system = all.iter().find(|s| s.kind == SpaceKind::System);
        let separate = facts.variable("innodb_undo_tablespaces").unwrap_or("0");
        let spaces: Vec<&Tablespace> = match separate {
            "0" => system.into_iter().collect(),
            _ => undo,
        };
        match !spaces.is_empty() && spaces.iter().all(|space| space.encrypted) {
            true => Verdict::Closed(spaces.iter().map(line).collect()),
            false => Verdict::open(
                Severity::Medium,
                REASON,
                vec![format!(
                    "innodb_undo_tablespaces = {separate}, and they are not encrypted"
                )],
                "innodb_encrypt_tables = ON\ninnodb_encryption_threads = 4",
            ),
        }
    })
}

fn redo(facts: &Facts) -> Verdict {
    let (name, mend) = match facts.is_mariadb() {
        true => ("innodb_encrypt_log", "innodb_encrypt_log = ON"),
        false => (
            "innodb_redo_log_encrypt",
            "SET PERSIST innodb_redo_log_encrypt = ON;",
        ),
    };
    must_be_on(facts, name, |seen| {
        Verdict::open(
            Severity::Medium,
            "The redo log holds the latest changes as they were written.",
            vec![seen],
            mend,
        )
    })
}

fn doublewrite(facts: &Facts) -> Verdict {
    if facts
        .variable("innodb_doublewrite")
        .is_some_and(|v| v.eq_ignore_ascii_case("OFF"))
    {
        return Verdict::closed("innodb_doublewrite = OFF");
    }
    known(&facts.tablespaces, "", |spaces| {
        let plain = spaces
            .iter()
            .filter(|s| !s.encrypted && s.kind == SpaceKind::Data)
            .count();
        match plain {
            0 => Verdict::closed("pages are there as in their tablespaces, which are encrypted"),
            _ => Verdict::open(
                Severity::Low,
                "Pages are written there first, as they are in their tablespaces.",
                vec![format!("{} not encrypted", count(plain, "tablespace"))],
                "encrypt the tablespaces: see `tablespaces`",
            ),
        }
    })
}

const IN_MEMORY: &str =
    "put tmpdir on an encrypted file system, or on one in memory:\ntmpdir = /dev/shm/mysql";

fn temporary_tables(facts: &Facts) -> Verdict {
    const REASON: &str = "What a statement sorts, groups or joins is written there, and not wiped.";
    if !facts.is_mariadb() {
        let dir = facts
            .variable("innodb_temp_tablespaces_dir")
            .unwrap_or("the data directory");
        return Verdict::open(
            Severity::Low,
            "MySQL encrypts the temporary tables that it makes by itself only where their session asks for it. \
             What a statement sorts, groups or joins is written there, and not wiped.",
            vec![format!("session temporary tablespaces in {dir}")],
            "innodb_temp_tablespaces_dir on an encrypted file system\ntemptable_max_mmap = 0",
        );
    }
    let names = ["innodb_encrypt_temporary_tables", "encrypt_tmp_disk_tables"];
    let off: Vec<String> = names
        .iter()
        .filter(|name| facts.variable(name).is_some() && !facts.is_on(name))
        .map(|name| format!("{name} = OFF"))
        .collect();
    match (
        off.is_empty(),
        names.iter().all(|n| facts.variable(n).is_some()),
    ) {
        (true, true) => Verdict::closed("both kinds are encrypted"),
        (true, false) => Verdict::hidden("a server that shows its variables"),
        (false, _) => Verdict::open(
            Severity::Low,
            REASON,
            off,
            "innodb_encrypt_temporary_tables = ON\nencrypt_tmp_disk_tables = ON",
        ),
    }
}

fn temporary_files(facts: &Facts) -> Verdict {
    const REASON: &str = "Sorts, ALTER TABLE and large transactions write rows there.";
    if facts.machine.as_ref().is_ok_and(|m| m.temporary_in_memory) {
        return Verdict::closed("tmpdir is in memory; swap is not looked at");
    }
    let tmpdir = format!(
        "tmpdir = {}",
        facts.variable("tmpdir").unwrap_or("not shown")
    );
    if facts.is_mariadb() {
        return must_be_on(facts, "encrypt_tmp_files", |seen| {
            Verdict::open(
                Severity::Low,
                REASON,
                vec![seen, tmpdir],
                "encrypt_tmp_files = ON",
            )
        });
    }
    // Percona Server has the option under this name.
    match facts.is_on("encrypt_tmp_files") {
        true => Verdict::closed("encrypt_tmp_files = ON"),
        false => Verdict::open(
            Severity::Low,
            "MySQL does not encrypt them. Sorts, ALTER TABLE and large transactions write rows there.",
            vec![tmpdir],
            IN_MEMORY,
        ),
    }
}

fn permissions(facts: &Facts) -> Verdict {
    match &facts.machine {
        Err(needs) => Verdict::hidden(needs.clone()),
        Ok(machine) if machine.readable.is_empty() => Verdict::closed(
            "the data directory and the logs outside of it are for their owner and group",
        ),
        Ok(machine) => Verdict::open(
            Severity::High,
            "Every user of the machine can read them.",
            machine
                .readable
                .iter()
                .map(|(path, mode)| format!("{}: {mode:03o}", path.display()))
                .collect(),
            machine
                .readable
                .iter()
                .map(|(path, _)| {
                    format!(
                        "chmod o-rwx {}",
                        crate::text::shell_word(&path.to_string_lossy())
                    )
                })
                .collect::<Vec<_>>()
                .join("\n"),
        ),
    }
}

/// Tablespaces that are not encrypted; none if that is not known.
pub(super) fn plain_tables(facts: &Facts) -> Option<usize> {
    match &facts.tablespaces {
        Seen::Known(all) => Some(
            all.iter()
                .filter(|space| space.kind == SpaceKind::Data && !space.encrypted)
                .count(),
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use onionskin_rowstream::client::Family;

    use super::*;
    use crate::server::facts::{
        Machine,
        samples::{self, facts},
    };

    fn space(name: &str, kind: SpaceKind, encrypted: bool) -> Tablespace {
        Tablespace {
            name: name.into(),
            kind,
            encrypted,
            rotating: false,
        }
    }

    #[test]
    fn tablespaces_are_told_one_by_one() {
        let mut facts = facts(Family::MySql, &[("innodb_undo_log_encrypt", "ON")]);
        facts.tablespaces = Seen::Known(vec![
            space("app/users", SpaceKind::Data, true),
            space("app/o`rders#p#p0", SpaceKind::Data, false),
            space("mysql", SpaceKind::System, false),
        ]);
        let Verdict::Open { evidence, mend, .. } = tablespaces(&facts) else {
            panic!("open");
        };
        assert_eq!(evidence, ["app/o`rders#p#p0: not encrypted"]);
        assert_eq!(mend, "ALTER TABLE `app`.`o``rders` ENCRYPTION='Y';");
        assert!(matches!(undo(&facts), Verdict::Closed(_)));
        assert!(matches!(doublewrite(&facts), Verdict::Open { .. }));
        assert!(matches!(system(&facts), Verdict::Open { .. }));
        facts.tablespaces = Seen::Known(vec![space("app/users", SpaceKind::Data, true)]);
        assert!(matches!(tablespaces(&facts), Verdict::Closed(_)));
    }

    #[test]
    fn the_default_of_each_database_decides() {
        let on = [("default_table_encryption", "ON")];
        let off = [("default_table_encryption", "OFF")];
        let known = |list: &[(&str, bool)]| {
            Seen::Known(list.iter().map(|(n, on)| ((*n).to_owned(), *on)).collect())
        };
        let mut facts = facts(Family::MySql, &on);
        facts.databases = known(&[("made `later`", true), ("old", false)]);
        let Verdict::Open { evidence, mend, .. } = new_tables(&facts) else {
            panic!("tables of the database old are not encrypted");
        };
        assert_eq!(evidence.len(), 2, "{evidence:?}");
        assert!(evidence[0].contains("for new databases alone"));
        assert!(evidence[1].starts_with("database old: "));
        assert_eq!(mend, "ALTER DATABASE `old` ENCRYPTION='Y';");
        facts.databases = known(&[("made `later`", true)]);
        assert!(matches!(new_tables(&facts), Verdict::Closed(_)));
        facts.rights.sees_all_tables = false;
        assert!(matches!(new_tables(&facts), Verdict::NotVisible { .. }));
        facts.rights.sees_all_tables = true;
        // Each database has it, and the next one will not.
        facts.variables = samples::facts(Family::MySql, &off).variables;
        let Verdict::Open { mend, .. } = new_tables(&facts) else {
            panic!("tables of new databases are not encrypted");
        };
        assert!(mend.starts_with("SET PERSIST default_table_encryption"));
        let many: Vec<(String, bool)> = (0..30).map(|n| (format!("d{n}"), false)).collect();
        facts.databases = Seen::Known(many);
        let Verdict::Open { evidence, mend, .. } = new_tables(&facts) else {
            panic!("open");
        };
        assert_eq!(evidence.len(), 31);
        assert!(
            mend.contains("\nALTER DATABASE `d0` ENCRYPTION='Y';\n"),
            "{mend}"
        );
        assert!(mend.ends_with("-- and so for 10 more"), "{mend}");
        facts.databases = Seen::Hidden("more".into());
        assert!(matches!(new_tables(&facts), Verdict::NotVisible { .. }));
        facts.databases = Seen::Absent;
        assert!(matches!(new_tables(&facts), Verdict::NotVisible { .. }));
    }

    #[test]
    fn undo_of_mariadb_is_in_the_system_tablespace_or_beside_it() {
        let system = |encrypted| space("innodb_system", SpaceKind::System, encrypted);
        let mut facts = facts(Family::MariaDb, &[("innodb_undo_tablespaces", "0")]);
        facts.tablespaces = Seen::Known(vec![system(true)]);
        assert!(matches!(undo(&facts), Verdict::Closed(_)));
        facts.tablespaces = Seen::Known(vec![system(false)]);
        assert!(matches!(undo(&facts), Verdict::Open { .. }));
        facts
            .variables
            .insert("innodb_undo_tablespaces".into(), "3".into());
        facts.tablespaces = Seen::Known(vec![system(true)]);
        assert!(
            matches!(undo(&facts), Verdict::Open { .. }),
            "silent ones are plain"
        );
    }

    #[test]
    fn temporary_files_in_memory_are_closed() {
        let mut facts = facts(Family::MySql, &[("tmpdir", "/tmp")]);
        assert!(matches!(temporary_files(&facts), Verdict::Open { .. }));
        facts.machine = Ok(Machine {
            temporary_in_memory: true,
            ..Machine::default()
        });
        assert!(matches!(temporary_files(&facts), Verdict::Closed(_)));
    }
}
