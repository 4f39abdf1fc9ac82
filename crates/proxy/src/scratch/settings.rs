//! The settings of the client's session, on the scratch engine.
//!
//! They are read from the server with every statement, in the same round trip as the rows:
//! `@@timestamp` among them, so that NOW() is the server's. User variables follow with their type,
//! character set and collation.

use onionskin_plan::errors;
use onionskin_value::{Family, TimeZone};
use onionskin_wire::messages::ColumnDefinition;
use onionskin_wire::{ColumnFlags, ColumnType};

use super::engine::{Engine, gone};
use crate::error::{Failure, Outcome};
use crate::exchange::{Question, Server};
use crate::state::State;

/// What CHR and JSON_TABLE of MariaDB go by.
const OF_MARIADB: &str = "collation_database";

/// Session variables that the meaning of a SELECT depends on, in the order in which they are set.
pub(super) const VARIABLES: [&str; 34] = [
    "sql_mode",
    "time_zone",
    "timestamp",
    "character_set_client",
    "character_set_results",
    "collation_connection",
    OF_MARIADB,
    "character_set_collations",
    "default_collation_for_utf8mb4",
    "old_mode",
    "last_insert_id",
    "sql_auto_is_null",
    "div_precision_increment",
    "group_concat_max_len",
    "lc_time_names",
    "default_week_format",
    "max_sort_length",
    "sql_select_limit",
    // setting it sets the next one
    "max_join_size",
    "sql_big_selects",
    // the engine then asks for a key or a LIMIT; its tables have no keys
    "sql_safe_updates",
    "block_encryption_mode",
    // of PASSWORD()
    "old_passwords",
    "default_regex_flags",
    "windowing_use_high_precision",
    "cte_max_recursion_depth",
    "max_recursive_iterations",
    "standard_compliant_cte",
    // positions in GROUP_CONCAT's ORDER BY are errors with it
    "sql_buffer_result",
    "max_statement_time",
    "max_execution_time",
    "note_verbosity",
    "sql_notes",
    "tx_isolation",
];

/// The text of the statement that reads them: a column of its own, each variable, then three
/// columns for each user variable.
pub(crate) fn question(variables: &[&str], users: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut sql = b"SELECT 1".to_vec();
    for name in variables {
        sql.extend_from_slice(b", @@");
        sql.extend_from_slice(name.as_bytes());
    }
    for name in users {
        for (before, behind) in [("", ""), ("HEX(", ")"), ("COLLATION(", ")")] {
            sql.extend_from_slice(b", ");
            sql.extend_from_slice(before.as_bytes());
            sql.extend_from_slice(name.as_ref());
            sql.extend_from_slice(behind.as_bytes());
        }
    }
    // with a sql_select_limit of 0, too
    sql.extend_from_slice(b" LIMIT 1");
    sql
}

/// What the server answered.
pub(super) struct Settings {
    /// Statements that make the scratch session alike.
    pub statements: Vec<Vec<u8>>,
    /// One statement after the other sees one state of the tables, within a transaction.
    pub repeatable: bool,
    /// The session does not bound the time of its statements: the engine's bound is set.
    pub bounded: bool,
}

/// The settings of the client's session, where nothing else is asked in the same round trip.
pub(super) fn of_session(
    server: &mut Server,
    engine: &Engine,
    state: &State,
    users: &[Vec<u8>],
) -> Outcome<Settings> {
    let asked = server.put_select(&question(&engine.variables, users))?;
    server.flush()?;
    answer(server, asked, engine, state, users, false)
}

/// Reads the answer to [`question`]. MySQL's `max_execution_time` is a bound for queries only.
pub(super) fn answer(
    server: &mut Server,
    asked: Question,
    engine: &Engine,
    state: &State,
    users: &[Vec<u8>],
    is_query: bool,
) -> Outcome<Settings> {
    let unclear = || Failure::refused(&errors::INTERNAL, "the session's settings");
    let (definitions, cells) = server.one_row(asked)?;
    let count = engine.variables.len();
    if cells.len() != 1 + count + 3 * users.len() || definitions.len() != cells.len() {
        return Err(unclear());
    }
    let mut sql = b"SET ".to_vec();
    let (mut repeatable, mut bounded) = (false, false);
    for (name, cell) in engine.variables.iter().zip(&cells[1..]) {
        let text = cell.as_deref();
        if *name == "tx_isolation" || *name == "transaction_isolation" {
            repeatable = matches!(text, Some(b"REPEATABLE-READ" | b"SERIALIZABLE"));
            continue;
        }
        if sql.len() > 4 {
            sql.extend_from_slice(b", ");
        }
        if *name == "character_set_client" && state.family == Family::MariaDb {
            let collation = engine.variables.iter().zip(&cells[1..]);
            let collation = collation.filter(|(name, _)| **name == "collation_connection");
            let collation = collation.filter_map(|(_, cell)| cell.as_deref()).next();
            if let Some(names) = names(text, collation) {
                sql.extend_from_slice(&names);
                continue;
            }
        }
        sql.extend_from_slice(b"SESSION ");
        sql.extend_from_slice(name.as_bytes());
        sql.extend_from_slice(b" = ");
        let thousands = match *name {
            "max_statement_time" => 1,
            "max_execution_time" => 1000,
            _ => 0,
        };
        let is_none = || text.is_some_and(|t| t.iter().all(|b| b"0.".contains(b)));
        if thousands == 1000 && !is_query || thousands > 0 && is_none() {
            bounded = true;
            let bound = engine.seconds.saturating_mul(thousands);
            sql.extend_from_slice(bound.to_string().as_bytes());
            continue;
        }
        match text {
            None => sql.extend_from_slice(b"NULL"),
            Some(text) => {
                let zone = (*name == "time_zone" && text == b"SYSTEM")
                    .then(|| system_zone(engine, state))
                    .transpose()?
                    .flatten();
                let mut text = zone.as_deref().map_or(text, str::as_bytes).to_vec();
                if *name == "sql_mode" && state.family == Family::MariaDb && is_strict(&text) {
                    // the engine's tables have no transactions there, and only a first row would be
                    // an error
                    text.extend_from_slice(b",STRICT_ALL_TABLES");
                }
                put_value(&text, &mut sql)?;
            }
        }
    }
    let mut statements = vec![sql];
    for (n, name) in users.iter().enumerate() {
        let at = 1 + count + 3 * n;
        let definition =
            ColumnDefinition::decode(&definitions[at], state.form).map_err(Failure::Backend)?;
        let mut sql = b"SET ".to_vec();
        sql.extend_from_slice(name);
        sql.extend_from_slice(b" = ");
        let cell = |i: usize| cells[at + i].as_deref();
        match (cell(0), cell(1), cell(2)) {
            (Some(value), Some(hex), Some(collation)) => {
                put_user(&definition, value, hex, collation, &mut sql)?;
            }
            _ if was_never_set(&definition) => continue,
            _ => sql.extend_from_slice(b"NULL"),
        }
        statements.push(sql);
    }
    Ok(Settings {
        statements,
        repeatable,
        bounded,
    })
}

/// `NAMES utf8mb4 COLLATE utf8mb4_unicode_ci`, where the connection's collation is one of the
/// client's character set. On MariaDB the parameters of prepared statements have a collation of
/// `character_set_client`, of which no variable tells. That is the connection's behind a login and
/// behind SET NAMES, and another one behind `SET character_set_client`.
fn names(client: Option<&[u8]>, collation: Option<&[u8]>) -> Option<Vec<u8>> {
    let (client, collation) = (client?, collation?);
    let name_like = |name: &[u8]| name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let fits = collation.strip_prefix(client)?.starts_with(b"_");
    (fits && name_like(collation)).then(|| [b"NAMES ", client, b" COLLATE ", collation].concat())
}

fn is_strict(sql_mode: &[u8]) -> bool {
    sql_mode
        .split(|b| *b == b',')
        .any(|mode| mode == b"STRICT_TRANS_TABLES")
}

/// A variable that was never set is announced otherwise than one that was set to NULL.
fn was_never_set(definition: &ColumnDefinition) -> bool {
    const UNLIMITED: u32 = 1 << 24;
    definition.column_type == ColumnType::VAR_STRING || definition.length == UNLIMITED
}

/// The zone that the server calls SYSTEM, if the scratch engine calls another one so.
fn system_zone(engine: &Engine, state: &State) -> Outcome<Option<String>> {
    if engine.system_time_zone == state.system_time_zone {
        return Ok(None);
    }
    match TimeZone::parse("SYSTEM", &state.system_time_zone) {
        TimeZone::UTC => Ok(Some("+00:00".into())),
        _ => Err(gone("its system's time zone is not that of the server's")),
    }
}

/// A number, or a text without anything that would have to be escaped.
fn put_value(text: &[u8], out: &mut Vec<u8>) -> Outcome<()> {
    let number = !text.is_empty()
        && text.iter().all(|b| b.is_ascii_digit() || *b == b'.')
        && text.iter().filter(|b| **b == b'.').count() <= 1;
    if number {
        out.extend_from_slice(text);
        return Ok(());
    }
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_,-+:/ .=".contains(b);
    if !text.iter().all(plain) {
        return Err(Failure::refused(&errors::SCRATCH_FUNCTION, "a setting"));
    }
    out.push(b'\'');
    out.extend_from_slice(text);
    out.push(b'\'');
    Ok(())
}

/// The value of a user variable as an expression of the same type.
fn put_user(
    definition: &ColumnDefinition,
    value: &[u8],
    hex: &[u8],
    collation: &[u8],
    out: &mut Vec<u8>,
) -> Outcome<()> {
    let name_like = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let unsigned = definition.flags.contains(ColumnFlags::UNSIGNED);
    let kind = definition.column_type;
    if kind == ColumnType::LONGLONG && unsigned {
        out.extend_from_slice(b"CAST(");
        out.extend_from_slice(value);
        out.extend_from_slice(b" AS UNSIGNED)");
    } else if kind == ColumnType::LONGLONG || kind == ColumnType::NEWDECIMAL {
        out.extend_from_slice(value);
    } else if kind == ColumnType::DOUBLE {
        out.extend_from_slice(value);
        if !value.contains(&b'e') {
            out.extend_from_slice(b"e0");
        }
    } else if collation == b"binary" {
        out.extend_from_slice(b"x'");
        out.extend_from_slice(hex);
        out.push(b'\'');
    } else {
        let charset = collation.split(|b| *b == b'_').next().unwrap_or_default();
        if !collation.iter().all(name_like) || charset.is_empty() {
            return Err(Failure::refused(&errors::SCRATCH_FUNCTION, "a variable"));
        }
        out.push(b'_');
        out.extend_from_slice(charset);
        out.extend_from_slice(b" x'");
        out.extend_from_slice(hex);
        out.extend_from_slice(b"' COLLATE ");
        out.extend_from_slice(collation);
    }
    Ok(())
}

/// The variables of [`VARIABLES`] that a server knows, as its own names. MySQL warns where the
/// database's collation is set, and its functions do not go by it.
pub(super) fn known(server: &mut Server, family: Family) -> Outcome<Vec<&'static str>> {
    let mut sql =
        String::from("SHOW SESSION VARIABLES WHERE Variable_name IN ('transaction_isolation'");
    for name in VARIABLES {
        sql.push_str(&format!(", '{name}'"));
    }
    sql.push(')');
    let rows = server.rows(sql.as_bytes())?;
    let has = |name: &str| {
        rows.iter()
            .any(|r| r.first().and_then(Option::as_deref) == Some(name.as_bytes()))
    };
    let is_meant = |name: &&str| has(name) && !(family == Family::MySql && *name == OF_MARIADB);
    let mut known: Vec<&'static str> = VARIABLES.into_iter().filter(is_meant).collect();
    if !known.contains(&"tx_isolation") && has("transaction_isolation") {
        known.push("transaction_isolation");
    }
    Ok(known)
}
