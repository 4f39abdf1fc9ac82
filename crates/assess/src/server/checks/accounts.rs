//! Accounts that go past the proxy, or may change what it relies on.

use std::collections::{BTreeMap, BTreeSet};

use crate::server::check::{Check, known};
use crate::{
    finding::{Layer, Severity, Verdict},
    server::facts::{Account, Facts, Grant, Seen},
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "accounts-without-password",
        layer: Layer::Accounts,
        title: "accounts without a password",
        judge: without_password,
    },
    Check {
        code: "accounts-from-anywhere",
        layer: Layer::Accounts,
        title: "accounts that may come from any machine",
        judge: from_anywhere,
    },
    Check {
        code: "accounts-definitions",
        layer: Layer::Accounts,
        title: "accounts that may change definitions",
        judge: definitions,
    },
    Check {
        code: "accounts-settings",
        layer: Layer::Accounts,
        title: "accounts that may change the server's settings and accounts",
        judge: settings,
    },
    Check {
        code: "accounts-files",
        layer: Layer::Accounts,
        title: "accounts that may read and write files",
        judge: files,
    },
    Check {
        code: "accounts-statements",
        layer: Layer::Accounts,
        title: "accounts that see the statements of others",
        judge: statements,
    },
    Check {
        code: "accounts-copies",
        layer: Layer::Accounts,
        title: "accounts that may copy everything: binary log, backup, clone",
        judge: copies,
    },
    Check {
        code: "accounts-encryption",
        layer: Layer::Accounts,
        title: "accounts that may turn the server's encryption off",
        judge: encryption,
    },
    Check {
        code: "no-accounts-at-all",
        layer: Layer::Accounts,
        title: "whether logins are checked (skip_grant_tables)",
        judge: unchecked,
    },
];

/// Those that can log in.
fn able(accounts: &[Account]) -> impl Iterator<Item = &Account> {
    accounts
        .iter()
        .filter(|account| !account.locked && !account.role)
}

/// `'app'@'%'` of `app@%`. Both servers write names so.
fn quoted(name: &str) -> String {
    let (user, host) = name.rsplit_once('@').unwrap_or((name, ""));
    let quote = |text: &str| format!("'{}'", text.replace('\'', "''"));
    format!("{}@{}", quote(user), quote(host))
}

fn without_password(facts: &Facts) -> Verdict {
    known(&facts.accounts, "", |accounts| {
        let open: Vec<&Account> = able(accounts).filter(|a| a.without_password).collect();
        let Some(first) = open.first() else {
            return Verdict::closed("every account that can log in is asked for something");
        };
        Verdict::open(
            Severity::High,
            "Whoever reaches the server's port or socket is let in.",
            open.iter()
                .map(|account| match account.method.is_empty() {
                    true => account.name.clone(),
                    false => format!("{} ({})", account.name, account.method),
                })
                .collect(),
            format!("ALTER USER {} IDENTIFIED BY '...';", quoted(&first.name)),
        )
    })
}

fn from_anywhere(facts: &Facts) -> Verdict {
    known(&facts.accounts, "", |accounts| {
        let is_wide = |host: &str| {
            host.is_empty() || host.contains('%') || host.contains('_') || host.contains('/')
        };
        let open: Vec<&Account> = able(accounts).filter(|a| is_wide(&a.host)).collect();
        let Some(first) = open.first() else {
            return Verdict::closed("every account names its hosts");
        };
        let (user, host) = first.name.rsplit_once('@').unwrap_or_default();
        let from = quoted(&format!("{user}@{host}"));
        let to = quoted(&format!("{user}@PROXY"));
        Verdict::open(
            Severity::Medium,
            "Such an account can log in past the proxy. It sees ciphertext there, and writes plaintext into \
             plain columns and tables. Behind the proxy, accounts need the proxy's address only.",
            open.iter().map(|account| account.name.clone()).collect(),
            format!("RENAME USER {from} TO {to};"),
        )
    })
}

/// Accounts and roles with any of these privileges, with where they hold.
fn holders(facts: &Facts, privileges: &[&str]) -> Result<Vec<(String, String)>, Verdict> {
    let grants: &Vec<Grant> = match &facts.grants {
        Seen::Known(grants) => grants,
        Seen::Hidden(needs) => return Err(Verdict::hidden(needs.clone())),
        Seen::Absent => return Err(Verdict::hidden("GRANT SELECT ON mysql.*")),
    };
    // A locked account may be a role whose privileges others have, so only the servers' own are
    // left out.
    let own = [
        "mysql.sys",
        "mysql.session",
        "mysql.infoschema",
        "mariadb.sys",
    ];
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for grant in grants {
        let user = grant
            .grantee
            .trim_start_matches('\'')
            .split('\'')
            .next()
            .unwrap_or_default();
        if privileges.contains(&grant.privilege.as_str()) && !own.contains(&user) {
            let place = format!("{} on {}", grant.privilege, grant.on);
            found
                .entry(grant.grantee.clone())
                .or_default()
                .insert(place);
        }
    }
    const MAX_PLACES: usize = 6;
    let line = |(grantee, places): (String, BTreeSet<String>)| {
        let shown: Vec<String> = places.iter().take(MAX_PLACES).cloned().collect();
        let more = match places.len() > MAX_PLACES {
            true => format!(" and {} more", places.len() - MAX_PLACES),
            false => String::new(),
        };
        (grantee, format!("{}{more}", shown.join(", ")))
    };
    Ok(found.into_iter().map(line).collect())
}

fn judged(facts: &Facts, privileges: &[&str], severity: Severity, reason: &str) -> Verdict {
    let found = match holders(facts, privileges) {
        Ok(found) => found,
        Err(hidden) => return hidden,
    };
    let Some((first, _)) = found.first() else {
        return Verdict::closed("no account but the server's own");
    };
    let mend = format!("REVOKE {} ON *.* FROM {first};", privileges[0]);
    let lines = found
        .iter()
        .map(|(who, what)| format!("{who}: {what}"))
        .collect();
    Verdict::open(severity, reason, lines, mend)
}

fn definitions(facts: &Facts) -> Verdict {
    judged(
        facts,
        &["ALTER", "DROP", "CREATE", "TRIGGER"],
        Severity::Low,
        "Such an account can put a plain table behind the name of a protected one. `enforce` and pins make the \
         proxy refuse it.",
    )
}

fn settings(facts: &Facts) -> Verdict {
    judged(
        facts,
        &[
            "SUPER",
            "SYSTEM_VARIABLES_ADMIN",
            "PERSIST_RO_VARIABLES_ADMIN",
            "CREATE USER",
            "SET USER",
            "SET_ANY_DEFINER",
        ],
        Severity::Low,
        "Such an account can turn logs on and encryption off, and make accounts that may do more.",
    )
}

fn files(facts: &Facts) -> Verdict {
    let verdict = judged(
        facts,
        &["FILE"],
        Severity::Medium,
        "Such an account reads every file that the server can read, keys among them, and writes rows to files.",
    );
    let place = facts.variable("secure_file_priv");
    match (verdict, place) {
        (
            Verdict::Open {
                reason,
                mut evidence,
                mend,
                needs,
                ..
            },
            Some(place),
        ) => {
            evidence.push(format!(
                "secure_file_priv = {}",
                if place.is_empty() {
                    "'' (anywhere)"
                } else {
                    place
                }
            ));
            let severity = match place {
                "" => Severity::Medium,
                _ => Severity::Low,
            };
            Verdict::Open {
                severity,
                reason,
                evidence,
                mend,
                needs,
            }
        }
        (verdict, _) => verdict,
    }
}

fn statements(facts: &Facts) -> Verdict {
    judged(
        facts,
        &["PROCESS"],
        Severity::Low,
        "SHOW PROCESSLIST shows it the statements of others while they run, with their constants.",
    )
}

fn copies(facts: &Facts) -> Verdict {
    judged(
        facts,
        &[
            "REPLICATION SLAVE",
            "BACKUP_ADMIN",
            "CLONE_ADMIN",
            "BINLOG REPLAY",
            "INNODB_REDO_LOG_ARCHIVE",
        ],
        Severity::Medium,
        "Such an account can take every change, or all data, to another machine, past the server's own encryption.",
    )
}

fn encryption(facts: &Facts) -> Verdict {
    if facts.is_mariadb() {
        return Verdict::NotHere("MariaDB has no privilege for it but SUPER".into());
    }
    judged(
        facts,
        &[
            "TABLE_ENCRYPTION_ADMIN",
            "ENCRYPTION_KEY_ADMIN",
            "BINLOG_ENCRYPTION_ADMIN",
        ],
        Severity::Low,
        "Such an account can make tables without encryption where new ones have to be encrypted, or turn that of \
         the binary log off.",
    )
}

fn unchecked(facts: &Facts) -> Verdict {
    match (facts.is_on("skip_grant_tables"), facts.variables.is_empty()) {
        (true, _) => Verdict::open(
            Severity::High,
            "Everybody is let in with all privileges.",
            vec!["skip_grant_tables = ON".into()],
            "remove skip-grant-tables from the server's options, and restart it",
        ),
        (false, true) => Verdict::hidden("a server that shows its variables"),
        (false, false) => Verdict::closed("logins are checked"),
    }
}

#[cfg(test)]
mod tests {
    use onionskin_rowstream::client::Family;

    use super::*;
    use crate::server::facts::samples::facts;

    fn account(name: &str, without_password: bool, locked: bool) -> Account {
        Account {
            name: name.into(),
            host: name
                .rsplit_once('@')
                .map(|(_, host)| host.into())
                .unwrap_or_default(),
            method: "caching_sha2_password".into(),
            without_password,
            locked,
            requires_tls: false,
            role: false,
        }
    }

    #[test]
    fn accounts_that_cannot_log_in_are_left_out() {
        let mut facts = facts(Family::MySql, &[]);
        facts.accounts = Seen::Known(vec![
            account("a@%", true, true),
            account("b'@%", true, false),
            account("c@10.0.0.1", false, false),
        ]);
        let Verdict::Open { evidence, mend, .. } = without_password(&facts) else {
            panic!("open");
        };
        assert_eq!(evidence, ["b'@% (caching_sha2_password)"]);
        assert_eq!(mend, "ALTER USER 'b'''@'%' IDENTIFIED BY '...';");
        let Verdict::Open { evidence, .. } = from_anywhere(&facts) else {
            panic!("open");
        };
        assert_eq!(evidence, ["b'@%"]);
    }

    #[test]
    fn privileges_are_gathered_by_account() {
        let mut facts = facts(Family::MySql, &[("secure_file_priv", "")]);
        let grant = |grantee: &str, privilege: &str, on: &str| Grant {
            grantee: grantee.into(),
            privilege: privilege.into(),
            on: on.into(),
        };
        facts.grants = Seen::Known(vec![
            grant("'app'@'%'", "ALTER", "app.*"),
            grant("'app'@'%'", "DROP", "app.*"),
            grant("'mysql.sys'@'localhost'", "TRIGGER", "sys.*"),
            grant("'backup'@'%'", "FILE", "*.*"),
        ]);
        let Verdict::Open { evidence, .. } = definitions(&facts) else {
            panic!("open");
        };
        assert_eq!(evidence, ["'app'@'%': ALTER on app.*, DROP on app.*"]);
        let Verdict::Open {
            evidence, severity, ..
        } = files(&facts)
        else {
            panic!("open");
        };
        assert_eq!(evidence[1], "secure_file_priv = '' (anywhere)");
        assert_eq!(severity, Severity::Medium);
        assert!(matches!(statements(&facts), Verdict::Closed(_)));
    }
}
