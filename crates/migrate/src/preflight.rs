//! Everything that is refused before anything is touched.

use onionskin_schema::{folded, same_name};
use std::collections::BTreeSet;

use onionskin_rowstream::binlog::check_reader;
use onionskin_rowstream::binlog::requirements::check_server;
use onionskin_rowstream::client::Client;
use onionskin_rowstream::key::KeyDefinition;
use onionskin_rowstream::session::{Login, NamedRow, Session};
use onionskin_value::Family;

use crate::cluster;
use crate::error::{MigrateError, Result};
use crate::facts::{Facts, OF_TABLE, PhysicalColumn, name_literal, names_table};
use crate::statement::{Token, read};

/// An id that no replica has: they are small numbers or made from addresses.
pub(crate) fn server_id(connection: u32) -> u32 {
    0x6F6E_0000 | (connection & 0xffff)
}

/// Longest name of a table whose helpers' names still fit.
const LONGEST_NAME: usize = 64 - "_onionskin_new".len();

/// Databases of the server itself.
const OF_THE_SERVER: &str = "('mysql', 'sys', 'information_schema', 'performance_schema')";

/// After so many strong locks on a table MariaDB lets weaker ones by that came later, for once: a
/// writer would go before our rename, into the old table. What is written there then is found and
/// written again, but not before the new table was seen without it. The default is the greatest
/// number; this many locks no series of attempts takes.
const FEWEST_WRITE_LOCKS: u64 = 1000;

/// Names of the tables beside the one that is changed. All of them sort behind it: a RENAME of
/// several tables takes its locks in the order of names, and must wait for the table itself first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The new table, until it takes the old one's place.
    pub new: String,
    /// The old table afterwards.
    pub old: String,
    /// The checkpoint.
    pub checkpoint: String,
}

impl Names {
    /// For a table.
    pub fn of(table: &str) -> Self {
        Self {
            new: format!("{table}_onionskin_new"),
            old: format!("{table}_onionskin_old"),
            checkpoint: format!("{table}_onionskin"),
        }
    }
}

/// Whether the server writes what is needed to its binary log.
pub fn check_log(
    login: &Login,
    session: &mut Session,
    database: &str,
    family: Family,
) -> Result<()> {
    let refused = |reason: String| MigrateError::Refused {
        table: "the server's tables".into(),
        reason,
    };
    let doing = MigrateError::sql("reading the server's settings");
    let mut client = Client::connect(login)
        .map_err(|error| refused(format!("the binary log cannot be read: {error}")))?;
    check_server(&mut client).map_err(|error| refused(error.to_string()))?;
    check_reader(login, server_id(client.id())).map_err(|error| {
        refused(format!(
            "the binary log cannot be read as a replica reads it ({error}): --backend has to be the server itself and not a proxy, \
             and the account needs REPLICATION SLAVE"
        ))
    })?;
    let version = session.text("SELECT VERSION()").map_err(&doing)?;
    if family == Family::MySql && number(&version) < (8, 0, 13) {
        return Err(refused(format!(
            "MySQL {version} cannot rename locked tables: 8.0.13 is the first that can"
        )));
    }
    if family == Family::MySql
        && session
            .text("SELECT @@GLOBAL.binlog_order_commits")
            .map_err(&doing)?
            != "1"
    {
        return Err(refused(
            "binlog_order_commits is OFF, so that nobody can tell when a change is visible: set it to ON".into(),
        ));
    }
    if family == Family::MariaDb {
        let count = session
            .text("SELECT @@GLOBAL.max_write_lock_count")
            .map_err(&doing)?;
        if count
            .parse::<u64>()
            .is_ok_and(|count| count < FEWEST_WRITE_LOCKS)
        {
            return Err(refused(format!(
                "max_write_lock_count is {count}, so that the server may let writers by before a rename that waits: \
                 SET GLOBAL max_write_lock_count = DEFAULT while this runs"
            )));
        }
    }
    cluster::check(session)?;
    if family == Family::MySql {
        let several = session
            .text(
                "SELECT COUNT(*) FROM performance_schema.replication_group_members \
                 WHERE MEMBER_STATE IN ('ONLINE', 'RECOVERING') HAVING COUNT(*) > 0 AND \
                 (SELECT VARIABLE_VALUE FROM performance_schema.global_variables \
                  WHERE VARIABLE_NAME = 'group_replication_single_primary_mode') = 'OFF'",
            )
            // without the privilege, or the plugin, it is not known
            .unwrap_or_default();
        if !several.is_empty() {
            return Err(refused(
                "the server belongs to a group that all members write to, where a lock holds on one of them: not supported".into(),
            ));
        }
    }
    for row in master_status(session)? {
        for (name, value) in row {
            let filters = name.to_ascii_lowercase().contains("_db");
            if filters && value.as_deref().is_some_and(|value| !value.is_empty()) {
                return Err(refused(format!(
                    "{name} leaves databases out of the binary log, maybe {database}: remove it"
                )));
            }
        }
    }
    Ok(())
}

/// The end of the binary log, under the name that the server's version knows.
pub(crate) fn master_status(session: &mut Session) -> Result<Vec<NamedRow>> {
    match session.named("SHOW MASTER STATUS") {
        Ok(rows) => Ok(rows),
        Err(_) => session
            .named("SHOW BINARY LOG STATUS")
            .map_err(MigrateError::sql("reading the position in the binary log")),
    }
}

/// `file:offset` of the end of the binary log.
pub(crate) fn log_end(session: &mut Session) -> Result<String> {
    let rows = master_status(session)?;
    let row = rows.first().ok_or_else(|| MigrateError::Refused {
        table: "the server's tables".into(),
        reason: "there is no binary log".into(),
    })?;
    let cell = |name: &str| {
        row.iter()
            .find(|(column, _)| same_name(column, name))
            .and_then(|(_, value)| value.clone())
            .unwrap_or_default()
    };
    Ok(format!("{}:{}", cell("File"), cell("Position")))
}

/// A name as the server writes it to its catalogue and its binary log.
pub(crate) fn server_spelling(session: &mut Session, names: [&str; 2]) -> Result<[String; 2]> {
    let setting = session
        .text("SELECT @@GLOBAL.lower_case_table_names")
        .map_err(MigrateError::sql("reading the server's settings"))?;
    match setting.as_str() {
        "0" => Ok(names.map(str::to_owned)),
        "1" => Ok(names.map(folded)),
        other => Err(MigrateError::Refused {
            table: "the server's tables".into(),
            reason: format!(
                "lower_case_table_names is {other}: the binary log may spell their names in another way than the catalogue"
            ),
        }),
    }
}

fn number(version: &str) -> (u32, u32, u32) {
    let mut parts = version
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    (next(), next(), next())
}

/// Whether the table is one that can be changed.
pub fn check_table(session: &mut Session, facts: &Facts) -> Result<()> {
    let Facts {
        database, table, ..
    } = facts;
    let refused = |reason: String| {
        Err(MigrateError::Refused {
            table: format!("{database}.{table}"),
            reason,
        })
    };
    let doing = MigrateError::sql("reading the table's definition");
    if table.chars().count() > LONGEST_NAME {
        return refused(format!(
            "its name is longer than {LONGEST_NAME} characters, so that the names of its helpers do not fit"
        ));
    }
    if database.contains(['*', '.']) || table.contains(['*', '.']) {
        return refused("names with '*' and '.' are not supported".into());
    }
    let here = names_table(OF_TABLE, database, table);
    let rows = session
        .texts(&format!(
            "SELECT TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE {here}"
        ))
        .map_err(&doing)?;
    let cell = |at: usize| {
        rows.first()
            .and_then(|row| row.get(at).cloned().flatten())
            .unwrap_or_default()
    };
    if cell(0) != "BASE TABLE" {
        return refused(format!("it is a {}", cell(0)));
    }
    if !cell(1).eq_ignore_ascii_case("InnoDB") {
        return refused(format!(
            "its engine is {}: only InnoDB keeps readers and writers apart",
            cell(1)
        ));
    }
    if let Some(column) = facts.columns.iter().find(|c| depends_on_zone(c, facts)) {
        return refused(format!(
            "the generated column {} is made from moments in time, by the time zone of whoever writes a row: drop it first, and add it again afterwards",
            column.name
        ));
    }
    let lost = session
        .text(&format!(
            "SELECT INDEX_NAME FROM information_schema.STATISTICS WHERE INDEX_TYPE = 'FULLTEXT' AND COLUMN_NAME NOT LIKE '%$gram\\_%' \
             AND VERSION() NOT LIKE '%MariaDB%' AND {here} LIMIT 1"
        ))
        .map_err(&doing)?;
    if !lost.is_empty() {
        return refused(format!(
            "MySQL's full-text index {lost} would lose rows that are written while the table is copied: drop it first, and add it again afterwards"
        ));
    }
    if let Some(reason) = &facts.logical.damaged {
        return refused(format!("{reason}; keys are named with -c"));
    }
    Ok(())
}

/// Whether a view, a trigger or a routine that the account can see has the table's name in its
/// text, or hides its text.
pub(crate) fn is_led_to(session: &mut Session, table: &str) -> Result<bool> {
    let texts = [
        ("VIEWS", "TABLE_SCHEMA", "VIEW_DEFINITION"),
        ("TRIGGERS", "TRIGGER_SCHEMA", "ACTION_STATEMENT"),
        ("ROUTINES", "ROUTINE_SCHEMA", "ROUTINE_DEFINITION"),
    ];
    let name = name_literal(table);
    let counts = texts.map(|(list, schema, text)| {
        format!(
            "(SELECT COUNT(*) FROM information_schema.{list} WHERE {schema} NOT IN {OF_THE_SERVER} \
             AND (COALESCE({text}, '') = '' OR INSTR(LOWER({text}), LOWER({name})) > 0))"
        )
    });
    let count = session
        .text(&format!("SELECT {}", counts.join(" + ")))
        .map_err(MigrateError::sql("reading views, triggers and routines"))?;
    Ok(count != "0")
}

/// Views, routines, events and triggers of other tables that have the names of the table and of one
/// of these columns in their texts, as far as the account can see them. An error if one of them
/// would store what it gives for a column in the clear.
pub(crate) fn named_elsewhere(
    session: &mut Session,
    (database, table): (&str, &str),
    columns: &BTreeSet<String>,
) -> Result<Vec<String>> {
    if columns.is_empty() {
        return Ok(Vec::new());
    }
    let lists = [
        (
            "VIEWS",
            "view",
            "TABLE_SCHEMA",
            "TABLE_NAME",
            "VIEW_DEFINITION",
        ),
        (
            "TRIGGERS",
            "trigger",
            "TRIGGER_SCHEMA",
            "TRIGGER_NAME",
            "ACTION_STATEMENT",
        ),
        (
            "ROUTINES",
            "routine",
            "ROUTINE_SCHEMA",
            "ROUTINE_NAME",
            "ROUTINE_DEFINITION",
        ),
        (
            "EVENTS",
            "event",
            "EVENT_SCHEMA",
            "EVENT_NAME",
            "EVENT_DEFINITION",
        ),
    ];
    let own = names_table(
        ["EVENT_OBJECT_SCHEMA", "EVENT_OBJECT_TABLE"],
        database,
        table,
    );
    let mut found = Vec::new();
    for (list, kind, schema, name, text) in lists {
        let others = match list {
            "TRIGGERS" => format!("NOT ({own})"),
            _ => "TRUE".to_owned(),
        };
        let rows = session
            .texts(&format!(
                "SELECT {schema}, {name}, {text} FROM information_schema.{list} \
                 WHERE {schema} NOT IN {OF_THE_SERVER} AND {others} AND INSTR(LOWER({text}), LOWER({})) > 0",
                name_literal(table)
            ))
            .map_err(MigrateError::sql("reading views, triggers, routines and events"))?;
        for row in rows {
            let mut cells = row.into_iter().map(Option::unwrap_or_default);
            let mut next = || cells.next().unwrap_or_default();
            let (schema, name, text) = (next(), next(), next());
            let (tokens, unclear) = read(&text);
            if fills_by_place(&tokens, table) {
                return Err(MigrateError::Refused {
                    table: format!("{database}.{table}"),
                    reason: format!(
                        "the {kind} {schema}.{name} puts rows into it without a list of columns: what it gives for a \
                         protected column would be stored as it is: drop it first, or let it name the columns"
                    ),
                });
            }
            let has = |word: &str| tokens.iter().any(|token| token.names(word));
            if unclear || has(table) && columns.iter().any(|column| has(column)) {
                found.push(format!(
                    "the {kind} {schema}.{name} names {table} and a column whose protection changes: look at it, \
                     for the server runs it, and what it says of this column fails after the switch or before it"
                ));
            }
        }
    }
    Ok(found)
}

/// Whether rows are put into the table without the names of their columns. A value is then for the
/// column at its place, and a sealed one takes it.
fn fills_by_place(tokens: &[Token], table: &str) -> bool {
    const MANNERS: [&str; 5] = ["LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "IGNORE", "INTO"];
    const QUERIES: [&str; 4] = ["SELECT", "WITH", "VALUES", "TABLE"];
    let is_one_of = |at: usize, words: &[&str]| tokens.get(at).is_some_and(|t| t.is_one_of(words));
    let is_sign = |at: usize, sign: char| tokens.get(at) == Some(&Token::Sign(sign));
    let fills = |verb: usize| {
        let mut at = verb + 1;
        while is_one_of(at, &MANNERS) {
            at += 1;
        }
        if is_sign(at + 1, '.') {
            at += 2;
        }
        let is_list = is_sign(at + 1, '(')
            && !is_one_of(at + 2, &QUERIES)
            && !is_sign(at + 2, ')')
            && !is_sign(at + 2, '(');
        tokens.get(at).is_some_and(|t| t.names(table)) && !is_list && !is_one_of(at + 1, &["SET"])
    };
    (0..tokens.len()).any(|at| is_one_of(at, &["INSERT", "REPLACE"]) && fills(at))
}

/// Whether what a generated column holds depends on the session that writes the row: sessions of
/// ours have UTC.
fn depends_on_zone(column: &PhysicalColumn, facts: &Facts) -> bool {
    let expression = folded(&column.expression);
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let names = |name: &str| {
        let name = folded(name);
        expression.match_indices(&name).any(|(at, found)| {
            let before = expression[..at].chars().next_back();
            let behind = expression[at + found.len()..].chars().next();
            !before.is_some_and(is_word) && !behind.is_some_and(is_word)
        })
    };
    !expression.is_empty()
        && (names("from_unixtime")
            || names("unix_timestamp")
            || facts
                .columns
                .iter()
                .any(|other| other.data_type == "timestamp" && names(&other.name)))
}

/// Whether the binary log still has the file of a position.
pub(crate) fn is_in_log(session: &mut Session, position: &str) -> Result<bool> {
    let logs = session
        .named("SHOW BINARY LOGS")
        .map_err(MigrateError::sql("listing the binary logs"))?;
    let file = position.rsplit_once(':').map_or("", |(file, _)| file);
    let names = logs.into_iter().filter_map(|row| row.into_iter().next()?.1);
    Ok(names.into_iter().any(|name| name == file))
}

/// Whether values of a column are told apart, and come one after the other, in the same way in both
/// tables.
fn has_same_order(old: Option<&PhysicalColumn>, new: Option<&PhysicalColumn>) -> bool {
    let (Some(old), Some(new)) = (old, new) else {
        return false;
    };
    let is_integer = |column: &PhysicalColumn| {
        column.data_type.ends_with("int") && !column.column_type.contains("zerofill")
    };
    let is_same = old.column_type == new.column_type
        && old.charset == new.charset
        && old.collation == new.collation;
    is_same || is_integer(old) && is_integer(new)
}

/// The key by which rows are found in both tables. Columns for which `may_be_key` does not hold
/// have other values, or another name, in the new table.
pub fn choose_key(
    old: &Facts,
    new: &Facts,
    may_be_key: impl Fn(&str) -> bool,
) -> Result<KeyDefinition> {
    let same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
    for index in &old.unique {
        let stays = index
            .columns
            .iter()
            .all(|name| may_be_key(name) && has_same_order(old.column(name), new.column(name)));
        let is_unique_there = new.unique.iter().any(|other| {
            other.columns.len() == index.columns.len()
                && index
                    .columns
                    .iter()
                    .all(|name| other.columns.iter().any(|there| same(name, there)))
        });
        if stays
            && is_unique_there
            && let Some(key) = old.key(index)
        {
            return Ok(key);
        }
    }
    Err(MigrateError::Refused {
        table: format!("{}.{}", old.database, old.table),
        reason: "no primary or unique key can be used to find its rows in both tables: one is needed whose columns are \
                 NOT NULL, integers, decimals, dates, CHAR, VARCHAR, BINARY or VARBINARY, not generated, not protected, and of the \
                 same type and collation in both tables"
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_put_by_place() {
        let fills = |text: &str| fills_by_place(&read(text).0, "t");
        for text in [
            "INSERT INTO t VALUES (1)",
            "BEGIN insert t select 1; END",
            "REPLACE LOW_PRIORITY INTO `a`.`T` VALUES (1)",
            "INSERT IGNORE INTO t (SELECT 1)",
            "INSERT INTO t () VALUES (1)",
            "INSERT INTO t ((SELECT 1))",
            "INSERT INTO t TABLE u",
        ] {
            assert!(fills(text), "{text}");
        }
        for text in [
            "INSERT INTO t (a) VALUES (1)",
            "INSERT INTO t SET a = 1",
            "INSERT INTO u SELECT a FROM t",
            "SELECT REPLACE(t, 'a', 'b') FROM t",
            "DELETE FROM t",
        ] {
            assert!(!fills(text), "{text}");
        }
    }
}
