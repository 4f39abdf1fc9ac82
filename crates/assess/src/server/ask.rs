//! Reads the facts of a server, by statements that are the same for every account. What an account
//! may not see stays hidden.

use std::collections::{BTreeMap, BTreeSet};

use onionskin_rowstream::client::{ConnectOptions, Family};

use super::{
    ask_columns,
    facts::{
        Account, BinaryLog, Channel, Facts, ForeignTable, Grant, KeyPlace, Link, Rights, Seen,
        SpaceKind, Tablespace,
    },
    names,
};
use crate::{
    AssessError,
    reader::{MAX_ROWS, Reader, Refusal, Texts},
};

type Asked<T> = Result<Seen<T>, AssessError>;

/// Privileges that lead past the proxy, or change what it relies on.
pub(super) const POWERS: [&str; 24] = [
    "ALTER",
    "CREATE",
    "DROP",
    "TRIGGER",
    "CREATE USER",
    "SUPER",
    "SYSTEM_VARIABLES_ADMIN",
    "FILE",
    "PROCESS",
    "REPLICATION SLAVE",
    "BINLOG ADMIN",
    "BINLOG REPLAY",
    "BINLOG_ADMIN",
    "REPLICATION SLAVE ADMIN",
    "REPLICATION_SLAVE_ADMIN",
    "BACKUP_ADMIN",
    "CLONE_ADMIN",
    "ENCRYPTION_KEY_ADMIN",
    "TABLE_ENCRYPTION_ADMIN",
    "BINLOG_ENCRYPTION_ADMIN",
    "PERSIST_RO_VARIABLES_ADMIN",
    "SET USER",
    "SET_ANY_DEFINER",
    "INNODB_REDO_LOG_ARCHIVE",
];

/// Asks for everything that statements can tell.
pub(super) fn facts(options: &ConnectOptions, verified: bool) -> Result<Facts, AssessError> {
    let mut reader = Reader::connect(options)?;
    let reader = &mut reader;
    let family = reader.family();
    let first = |rows: Vec<Texts>| rows.into_iter().next().unwrap_or_default();
    let who = reader.rows("SELECT VERSION(), CURRENT_USER()")?;
    let mut who = first(who.unwrap_or_default()).into_iter();
    let version = who.next().flatten().unwrap_or_default();
    let account = who.next().flatten().unwrap_or_default();
    let variables: BTreeMap<String, String> = reader
        .rows("SHOW GLOBAL VARIABLES")?
        .unwrap_or_default()
        .into_iter()
        .filter_map(|row| pair(row).map(|(name, value)| (name.to_lowercase(), value)))
        .collect();
    let accounts = accounts(reader)?;
    let rights = rights(reader, accounts.known().is_some())?;
    let link = match (&options.address, reader.is_tls(), verified) {
        (onionskin_rowstream::client::Address::Unix(_), ..) => Link::Socket,
        (_, true, true) => Link::Verified,
        (_, true, false) => Link::Encrypted,
        (_, false, _) => Link::Plain,
    };
    let is_logging = variables.get("log_bin").is_some_and(|on| on == "ON");
    Ok(Facts {
        family,
        version,
        account,
        link,
        tablespaces: tablespaces(reader)?,
        databases: match family {
            Family::MariaDb => Seen::Absent,
            Family::MySql => databases(reader)?,
        },
        foreign_tables: foreign_tables(reader)?,
        binary_logs: match is_logging {
            true => binary_logs(reader)?,
            false => Seen::Absent,
        },
        consumers: consumers(reader, &variables)?,
        logged_in_tables: logged_in_tables(reader)?,
        keys: keys(reader, &variables)?,
        grants: grants(reader, &rights)?,
        accounts,
        channels: channels(reader)?,
        replicas: replicas(reader)?,
        plain_sessions: plain_sessions(reader, &variables)?,
        leftovers: names::leftovers(reader)?,
        audit_plugins: audit_plugins(reader)?,
        protected: ask_columns::protected(reader)?,
        tables: tables(reader)?,
        rights,
        variables,
        machine: Err(String::new()),
        planted: None,
        searched: None,
        backups: None,
    })
}

/// The first two cells.
fn pair(row: Texts) -> Option<(String, String)> {
    let mut cells = row.into_iter();
    Some((cells.next()??, cells.next().flatten().unwrap_or_default()))
}

fn cell(row: &Texts, at: usize) -> &str {
    row.get(at).and_then(Option::as_deref).unwrap_or_default()
}

/// Rows, or what they need.
pub(super) fn rows(reader: &mut Reader, sql: &str, needs: &str) -> Asked<Vec<Texts>> {
    Ok(match seen(reader.rows(sql)?, needs) {
        // The rest was cut off, and may be anything.
        Seen::Known(rows) if rows.len() >= MAX_ROWS => {
            Seen::Hidden(format!("a server with fewer than {MAX_ROWS} rows of this"))
        }
        seen => seen,
    })
}

pub(super) fn seen<T>(answer: Result<T, Refusal>, needs: &str) -> Seen<T> {
    match answer {
        Ok(rows) => Seen::Known(rows),
        Err(Refusal::Denied(_)) => Seen::Hidden(needs.to_owned()),
        Err(Refusal::Unknown) => Seen::Absent,
        Err(Refusal::Other(said)) => Seen::Hidden(format!("an answer; the server says: {said}")),
    }
}

fn map<T, U>(seen: Seen<T>, change: impl FnOnce(T) -> U) -> Seen<U> {
    match seen {
        Seen::Known(value) => Seen::Known(change(value)),
        Seen::Hidden(needs) => Seen::Hidden(needs),
        Seen::Absent => Seen::Absent,
    }
}

/// What our own account may do. Roles that are not active do not count: they show nothing either.
fn rights(reader: &mut Reader, sees_accounts: bool) -> Result<Rights, AssessError> {
    let lines = reader.rows("SHOW GRANTS")?.unwrap_or_default();
    let mut words = BTreeSet::new();
    let mut restricted = false;
    for line in &lines {
        let line = cell(line, 0);
        restricted |= line.starts_with("REVOKE ");
        let Some(list) = line
            .strip_prefix("GRANT ")
            .and_then(|l| l.split_once(" ON *.* TO "))
        else {
            continue;
        };
        words.extend(list.0.split(',').map(|word| word.trim().to_owned()));
    }
    let has = |word: &str| words.contains(word) || words.contains("ALL PRIVILEGES");
    Ok(Rights {
        sees_all_tables: has("SELECT") && !restricted,
        sees_accounts: sees_accounts && !restricted,
        process: has("PROCESS"),
    })
}

/// Files of InnoDB's.
pub(crate) fn tablespaces(reader: &mut Reader) -> Asked<Vec<Tablespace>> {
    let needs = "GRANT PROCESS ON *.*";
    if reader.family() == Family::MySql {
        let sql = format!(
            "SELECT NAME, SPACE_TYPE, ENCRYPTION FROM information_schema.INNODB_TABLESPACES LIMIT {MAX_ROWS}"
        );
        return Ok(map(rows(reader, &sql, needs)?, |rows| {
            rows.iter().map(mysql_tablespace).collect()
        }));
    }
    let sql = "SELECT NAME, ENCRYPTION_SCHEME, MIN_KEY_VERSION, CURRENT_KEY_VERSION, ROTATING_OR_FLUSHING, SPACE \
               FROM information_schema.INNODB_TABLESPACES_ENCRYPTION";
    let encrypted = rows(reader, sql, needs)?;
    let all = format!(
        "SELECT NAME, SPACE FROM information_schema.INNODB_SYS_TABLESPACES LIMIT {MAX_ROWS}"
    );
    let (Seen::Known(encrypted), Seen::Known(all)) = (encrypted, rows(reader, &all, needs)?) else {
        return Ok(Seen::Hidden(needs.into()));
    };
    let by_space: BTreeMap<&str, &Texts> =
        encrypted.iter().map(|row| (cell(row, 5), row)).collect();
    let mut found: Vec<Tablespace> = all
        .iter()
        .map(|row| mariadb_tablespace(cell(row, 0), by_space.get(cell(row, 1)).copied()))
        .collect();
    // Undo tablespaces stand in the second list only, and only while they are encrypted.
    let known: BTreeSet<&str> = all.iter().map(|row| cell(row, 1)).collect();
    let others = encrypted.iter().filter(|row| !known.contains(cell(row, 5)));
    found.extend(others.map(|row| mariadb_tablespace(cell(row, 0), Some(row))));
    Ok(Seen::Known(found))
}

fn mysql_tablespace(row: &Texts) -> Tablespace {
    let name = cell(row, 0);
    let kind = match (cell(row, 1), name) {
        ("Undo", _) => SpaceKind::Undo,
        (_, "innodb_temporary") => SpaceKind::Temporary,
        ("System", _) | (_, "mysql" | "innodb_system") => SpaceKind::System,
        _ => SpaceKind::Data,
    };
    Tablespace {
        name: name.to_owned(),
        kind,
        encrypted: cell(row, 2) == "Y",
        rotating: false,
    }
}

fn mariadb_tablespace(name: &str, encryption: Option<&Texts>) -> Tablespace {
    let kind = match name {
        "innodb_system" => SpaceKind::System,
        "innodb_temporary" => SpaceKind::Temporary,
        undo if undo.starts_with("innodb_undo") => SpaceKind::Undo,
        _ => SpaceKind::Data,
    };
    let has = |at: usize| encryption.is_some_and(|row| !matches!(cell(row, at), "" | "0"));
    Tablespace {
        name: name.to_owned(),
        kind,
        // A lowest key version of 0 says that some pages are still plain.
        encrypted: has(1) && has(2) && has(3),
        rotating: has(4),
    }
}

const OWN_DATABASES: &str = "('mysql', 'information_schema', 'performance_schema', 'sys', 'INFORMATION_SCHEMA', 'PERFORMANCE_SCHEMA')";

/// Each database has a default of its own. The server's is that of new databases.
fn databases(reader: &mut Reader) -> Asked<Vec<(String, bool)>> {
    let sql = format!(
        "SELECT SCHEMA_NAME, DEFAULT_ENCRYPTION FROM information_schema.SCHEMATA \
         WHERE SCHEMA_NAME NOT IN {OWN_DATABASES} ORDER BY SCHEMA_NAME LIMIT {MAX_ROWS}"
    );
    Ok(map(rows(reader, &sql, "GRANT SELECT ON *.*")?, |rows| {
        let database = |row: &Texts| (cell(row, 0).to_owned(), cell(row, 1) == "YES");
        rows.iter().map(database).collect()
    }))
}

fn foreign_tables(reader: &mut Reader) -> Asked<Vec<ForeignTable>> {
    let sql = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE FROM information_schema.TABLES \
         WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN {OWN_DATABASES} \
         AND ENGINE NOT IN ('InnoDB', 'BLACKHOLE', 'PERFORMANCE_SCHEMA') LIMIT {MAX_ROWS}"
    );
    Ok(map(rows(reader, &sql, "GRANT SELECT ON *.*")?, |rows| {
        let table = |row: &Texts| ForeignTable {
            name: format!("{}.{}", cell(row, 0), cell(row, 1)),
            engine: cell(row, 2).to_owned(),
        };
        rows.iter().map(table).collect()
    }))
}

fn tables(reader: &mut Reader) -> Asked<u64> {
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.TABLES \
         WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN {OWN_DATABASES}"
    );
    Ok(map(rows(reader, &sql, "GRANT SELECT ON *.*")?, |rows| {
        rows.first()
            .and_then(|row| cell(row, 0).parse().ok())
            .unwrap_or_default()
    }))
}

fn binary_logs(reader: &mut Reader) -> Asked<Vec<BinaryLog>> {
    let needs = match reader.family() {
        Family::MariaDb => "GRANT BINLOG MONITOR ON *.*",
        Family::MySql => "GRANT REPLICATION CLIENT ON *.*",
    };
    let logs = seen(reader.named("SHOW BINARY LOGS")?, needs);
    Ok(map(logs, |logs| {
        let log = |row: &Vec<(String, String)>| BinaryLog {
            name: named(row, "log_name"),
            encrypted: row
                .iter()
                .find(|(name, _)| name == "encrypted")
                .map(|(_, value)| value == "Yes"),
        };
        logs.iter().map(log).collect()
    }))
}

fn named(row: &[(String, String)], wanted: &str) -> String {
    let found = row.iter().find(|(name, _)| name == wanted);
    found.map(|(_, value)| value.clone()).unwrap_or_default()
}

fn consumers(reader: &mut Reader, variables: &BTreeMap<String, String>) -> Asked<Vec<String>> {
    if variables
        .get("performance_schema")
        .is_some_and(|on| on == "OFF")
    {
        return Ok(Seen::Absent);
    }
    let needs = "GRANT SELECT ON performance_schema.*";
    let sql = "SELECT NAME FROM performance_schema.setup_consumers WHERE ENABLED = 'YES' AND \
               (NAME LIKE 'events\\_statements%' OR NAME = 'statements_digest')";
    Ok(map(rows(reader, sql, needs)?, |rows| {
        rows.iter().map(|row| cell(row, 0).to_owned()).collect()
    }))
}

/// Statements that were logged into tables stay there when the log is turned off.
fn logged_in_tables(reader: &mut Reader) -> Asked<Vec<String>> {
    let mut found = Vec::new();
    for table in ["mysql.general_log", "mysql.slow_log"] {
        let sql = format!("SELECT 1 FROM {table} LIMIT 1");
        match rows(reader, &sql, "GRANT SELECT ON mysql.*")? {
            Seen::Known(rows) if rows.is_empty() => {}
            Seen::Known(_) => found.push(table.to_owned()),
            Seen::Hidden(needs) => return Ok(Seen::Hidden(needs)),
            Seen::Absent => {}
        }
    }
    Ok(Seen::Known(found))
}

fn audit_plugins(reader: &mut Reader) -> Asked<Vec<String>> {
    let sql = "SELECT PLUGIN_NAME FROM information_schema.PLUGINS \
               WHERE PLUGIN_TYPE = 'AUDIT' AND PLUGIN_STATUS = 'ACTIVE'";
    Ok(map(rows(reader, sql, "GRANT SELECT ON *.*")?, |rows| {
        rows.iter().map(|row| cell(row, 0).to_owned()).collect()
    }))
}

fn keys(reader: &mut Reader, variables: &BTreeMap<String, String>) -> Asked<Vec<KeyPlace>> {
    let variable = |name: &str| variables.get(name).filter(|v| !v.is_empty()).cloned();
    let sql = "SELECT PLUGIN_NAME, PLUGIN_STATUS FROM information_schema.PLUGINS \
               WHERE PLUGIN_TYPE = 'ENCRYPTION' OR PLUGIN_NAME LIKE 'keyring\\_%'";
    let Seen::Known(plugins) = rows(reader, sql, "GRANT SELECT ON *.*")? else {
        return Ok(Seen::Hidden("GRANT SELECT ON *.*".into()));
    };
    let mut found: Vec<KeyPlace> = plugins
        .iter()
        .map(|row| {
            let name = cell(row, 0);
            let file = match name {
                "file_key_management" => variable("file_key_management_filename"),
                "keyring_file" => variable("keyring_file_data"),
                "keyring_encrypted_file" => variable("keyring_encrypted_file_data"),
                _ => None,
            };
            KeyPlace {
                name: name.to_owned(),
                active: cell(row, 1) == "ACTIVE",
                file,
            }
        })
        .collect();
    if reader.family() == Family::MariaDb {
        return Ok(Seen::Known(found));
    }
    let sql = "SELECT STATUS_KEY, STATUS_VALUE FROM performance_schema.keyring_component_status";
    let status = rows(reader, sql, "GRANT SELECT ON performance_schema.*")?;
    let pairs: BTreeMap<String, String> = match status {
        Seen::Known(rows) => rows.into_iter().filter_map(pair).collect(),
        Seen::Hidden(needs) => return Ok(Seen::Hidden(needs)),
        Seen::Absent => return Ok(Seen::Known(found)),
    };
    if let Some(name) = pairs
        .get("Component_name")
        .or(pairs.get("Implementation_name"))
    {
        let file = ["Data_file", "Config_file", "Path"]
            .iter()
            .find_map(|key| pairs.get(*key));
        found.push(KeyPlace {
            name: name.clone(),
            active: pairs.get("Component_status").is_some_and(|s| s == "Active"),
            file: file.filter(|f| f.starts_with('/')).cloned(),
        });
    }
    Ok(Seen::Known(found))
}

fn accounts(reader: &mut Reader) -> Asked<Vec<Account>> {
    let (sql, needs) = match reader.family() {
        Family::MySql => (
            "SELECT User, Host, plugin, authentication_string = '', account_locked = 'Y', ssl_type <> '', 0 FROM mysql.user",
            "GRANT SELECT ON mysql.*",
        ),
        Family::MariaDb => (
            "SELECT User, Host, COALESCE(JSON_VALUE(Priv, '$.plugin'), ''), \
             COALESCE(JSON_VALUE(Priv, '$.authentication_string'), '') = '', \
             COALESCE(JSON_VALUE(Priv, '$.account_locked'), '0') IN ('1', 'true'), \
             COALESCE(JSON_VALUE(Priv, '$.ssl_type'), '0') <> '0', \
             COALESCE(JSON_VALUE(Priv, '$.is_role'), '0') IN ('1', 'true') FROM mysql.global_priv",
            "GRANT SELECT ON mysql.*",
        ),
    };
    let yes = |row: &Texts, at: usize| cell(row, at) == "1";
    Ok(map(rows(reader, sql, needs)?, |rows| {
        let account = |row: &Texts| {
            let method = cell(row, 2);
            let by_system = [
                "auth_socket",
                "unix_socket",
                "gssapi",
                "pam",
                "authentication_ldap_sasl",
            ];
            Account {
                name: format!("{}@{}", cell(row, 0), cell(row, 1)),
                host: cell(row, 1).to_owned(),
                method: method.to_owned(),
                without_password: yes(row, 3) && !by_system.contains(&method),
                locked: yes(row, 4),
                requires_tls: yes(row, 5),
                role: yes(row, 6),
            }
        };
        rows.iter().map(account).collect()
    }))
}

fn grants(reader: &mut Reader, rights: &Rights) -> Asked<Vec<Grant>> {
    let needs = "GRANT SELECT ON mysql.*";
    if !rights.sees_accounts {
        return Ok(Seen::Hidden(needs.into()));
    }
    let words = POWERS.map(|word| format!("'{word}'")).join(", ");
    let mut found = Vec::new();
    for (table, on) in [
        ("USER_PRIVILEGES", "'*.*'"),
        ("SCHEMA_PRIVILEGES", "CONCAT(TABLE_SCHEMA, '.*')"),
        ("TABLE_PRIVILEGES", "CONCAT(TABLE_SCHEMA, '.', TABLE_NAME)"),
    ] {
        let sql = format!(
            "SELECT GRANTEE, PRIVILEGE_TYPE, {on} FROM information_schema.{table} \
             WHERE PRIVILEGE_TYPE IN ({words}) LIMIT {MAX_ROWS}"
        );
        match rows(reader, &sql, needs)? {
            Seen::Known(rows) => found.extend(rows.iter().map(|row| Grant {
                grantee: cell(row, 0).to_owned(),
                privilege: cell(row, 1).to_owned(),
                on: cell(row, 2).to_owned(),
            })),
            Seen::Hidden(needs) => return Ok(Seen::Hidden(needs)),
            Seen::Absent => {}
        }
    }
    Ok(Seen::Known(found))
}

fn channels(reader: &mut Reader) -> Asked<Vec<Channel>> {
    if reader.family() == Family::MySql {
        let sql = "SELECT CHANNEL_NAME, SSL_ALLOWED, SSL_VERIFY_SERVER_CERTIFICATE \
                   FROM performance_schema.replication_connection_configuration WHERE HOST <> ''";
        let needs = "GRANT SELECT ON performance_schema.*";
        return Ok(map(rows(reader, sql, needs)?, |rows| {
            let channel = |row: &Texts| Channel {
                name: cell(row, 0).to_owned(),
                tls: cell(row, 1) == "YES",
                verifies: cell(row, 2) == "YES",
            };
            rows.iter().map(channel).collect()
        }));
    }
    let status = reader.named("SHOW ALL SLAVES STATUS")?;
    Ok(map(seen(status, "GRANT SLAVE MONITOR ON *.*"), |rows| {
        let channel = |row: &Vec<(String, String)>| Channel {
            name: named(row, "connection_name"),
            tls: named(row, "master_ssl_allowed") == "Yes",
            verifies: named(row, "master_ssl_verify_server_cert") == "Yes",
        };
        rows.iter().map(channel).collect()
    }))
}

/// Whoever reads the binary log over the network: replicas, archives, other followers.
fn replicas(reader: &mut Reader) -> Asked<Vec<String>> {
    let sql = "SELECT USER, HOST FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%' LIMIT 1000";
    let processes = reader.rows(sql)?;
    Ok(map(seen(processes, "GRANT PROCESS ON *.*"), |rows| {
        let replica = |row: &Texts| {
            let host = cell(row, 1);
            let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
            format!("{} from {host}", cell(row, 0))
        };
        rows.iter().map(replica).collect()
    }))
}

fn plain_sessions(reader: &mut Reader, variables: &BTreeMap<String, String>) -> Asked<Vec<String>> {
    if variables
        .get("performance_schema")
        .is_some_and(|on| on == "OFF")
    {
        return Ok(Seen::Absent);
    }
    let sql = "SELECT DISTINCT PROCESSLIST_USER, PROCESSLIST_HOST FROM performance_schema.threads \
               WHERE CONNECTION_TYPE = 'TCP/IP' AND PROCESSLIST_USER IS NOT NULL LIMIT 1000";
    let needs = "GRANT SELECT ON performance_schema.*";
    Ok(map(rows(reader, sql, needs)?, |rows| {
        let session = |row: &Texts| format!("{} from {}", cell(row, 0), cell(row, 1));
        rows.iter().map(session).collect()
    }))
}
