//! Expressions behind DEFAULT, as the server spells them.
//!
//! A server keeps the expression of a default and prints it in its own words: `UUID()` becomes
//! `uuid()`, and `1+2` becomes `(1 + 2)`. What a protected column's definition shows must be the
//! same text. The scratch engine is of the server's family and version: it is given a temporary
//! table with such a column, and asked what it makes of it. An expression that no server takes for
//! a default is found out at the same time.

use onionskin_plan::{Ddl, DdlPiece, Redefined, Scratch, errors};
use onionskin_schema::{
    DefaultLiteral, computed_default, default_sql, identifier, is_present_time,
};
use onionskin_value::{Family, SqlType};
use onionskin_wire::Step;

use super::engine::ours;
use super::settings;
use crate::error::{Failure, Outcome};
use crate::session::Session;

/// The temporary table, and its database where the session has none.
const TABLE: &str = "`onionskin$default`";
const DATABASE: &str = "onionskin";

/// What servers say of expressions that cannot be a default, beside syntax errors: an impossible
/// default, an unknown column or function, functions and variables that may not stand in one, wrong
/// arguments.
const OF_DEFAULTS: [u16; 13] = [
    1054, 1064, 1067, 1101, 1305, 1582, 1901, 3770, 3771, 3772, 3773, 3774, 4161,
];

impl Session {
    /// The definition with all expressions behind DEFAULT as the server would spell them; `None` if
    /// there are none.
    pub(crate) fn with_spelled_defaults(&mut self, ddl: &Ddl) -> Outcome<Option<Ddl>> {
        let family = self.state.family;
        let mut spelled = ddl.clone();
        let mut found: Vec<(&str, SqlType, &mut String)> = Vec::new();
        for column in &mut spelled.new_columns {
            if let Some(DefaultLiteral::Expression(text)) = &mut column.default {
                found.push((&column.name, column.sql_type, text));
            }
        }
        for piece in &mut spelled.pieces {
            let (index, text) = match piece {
                DdlPiece::SetDefault(index, Some(DefaultLiteral::Expression(text))) => {
                    (*index, text)
                }
                DdlPiece::Redefine(Redefined {
                    index,
                    default: Some(DefaultLiteral::Expression(text)),
                    ..
                }) => (*index, text),
                _ => continue,
            };
            let column = ddl.table.as_ref().and_then(|t| t.columns.get(index));
            let known = column.and_then(|c| Some((c.name.as_str(), c.sql_type?)));
            let Some((name, sql_type)) = known else {
                return Err(Failure::refused(&errors::INTERNAL, "a default"));
            };
            found.push((name, sql_type, text));
        }
        found.retain(|(.., text)| !is_present_time(text, family));
        if found.is_empty() {
            return Ok(None);
        }
        for (name, sql_type, text) in found {
            *text = self.spelled(name, &sql_type, text)?;
        }
        Ok(Some(spelled))
    }

    fn spelled(&mut self, name: &str, sql_type: &SqlType, text: &str) -> Outcome<String> {
        let family = self.state.family;
        let refused = |what: &str| {
            let about = format!("column {name}: {what}");
            Failure::refused(&errors::DEFINITION, about)
        };
        if self.shared.config.scratch.is_none() {
            return Err(refused(
                "an expression as DEFAULT without a scratch engine ([scratch] in the configuration)",
            ));
        }
        let collation = sql_type.collation.map_or(String::new(), |collation| {
            let (charset, name) = (collation.charset().name(), collation.name());
            format!(" CHARACTER SET {charset} COLLATE {name}")
        });
        let is_json = sql_type.kind == onionskin_value::Kind::Json;
        let ty = match is_json {
            true => "json".to_owned(),
            false => format!("{}{collation}", sql_type.to_sql(family)),
        };
        let database = self.state.database.clone();
        let database = database.unwrap_or_else(|| DATABASE.to_owned());
        let table = format!("{}.{TABLE}", identifier(&database));
        let create = format!(
            "CREATE TEMPORARY TABLE {table} ({} {ty} DEFAULT {})",
            identifier(name),
            default_sql(text, family)
        );
        let gone = format!("DROP TEMPORARY TABLE IF EXISTS {table}");
        self.with_engine(&Scratch::default(), |session, engine| {
            let server = &mut session.server;
            let settings = settings::of_session(server, engine, &session.state, &[])?;
            engine.need_database(&database)?;
            engine.put(gone.as_bytes())?;
            // the meaning of its strings depends on the session
            engine.share(&settings)?;
            let question = engine.server.put_query(create.as_bytes()).map_err(ours)?;
            engine.settle()?;
            engine.server.begin(question).map_err(ours)?;
            let mut failure = None;
            while !engine.server.tracker.is_complete() {
                if engine.server.step().map_err(ours)? == Step::Err {
                    failure = Some(engine.server.error());
                    break;
                }
            }
            match failure {
                None => {}
                Some(Failure::Server {
                    code,
                    state,
                    message,
                }) if OF_DEFAULTS.contains(&code) => {
                    return Err(Failure::Server {
                        code,
                        state,
                        message,
                    });
                }
                Some(_) => return Err(refused("a DEFAULT that the scratch engine does not take")),
            }
            engine.load_again()?;
            engine.settle()?;
            let ask = format!("SHOW CREATE TABLE {table}");
            let rows = engine.server.rows(ask.as_bytes()).map_err(ours)?;
            engine.put(gone.as_bytes())?;
            let cell = rows.first().and_then(|row| row.get(1)?.as_deref());
            let shown = std::str::from_utf8(cell.unwrap_or_default()).unwrap_or_default();
            let text = computed_default(shown, family)
                .ok_or_else(|| refused("a DEFAULT that is not understood"))?;
            if family == Family::MariaDb && is_constant(&text) {
                // it is shown as a constant, in each place in another way
                return Err(refused(
                    "a constant as an expression; write it as a literal",
                ));
            }
            if family == Family::MySql && (!text.is_ascii() || text.contains("_utf8mb3")) {
                // strings beyond ASCII, and those that it converts, SHOW COLUMNS prints otherwise
                // than SHOW CREATE TABLE
                return Err(refused("a DEFAULT that the server shows in two ways"));
            }
            Ok(text)
        })
    }
}

/// Whether MariaDB has made a constant of an expression.
fn is_constant(text: &str) -> bool {
    let first = text.bytes().next().unwrap_or_default();
    let is_string = first == b'\'' && text.ends_with('\'');
    let is_number = text
        .bytes()
        .all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    is_string || is_number || text.eq_ignore_ascii_case("null")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_told_from_expressions() {
        for text in ["'a'", "12", "-1.5e3", "NULL"] {
            assert!(is_constant(text), "{text}");
        }
        for text in ["(1 + 2)", "uuid()", "concat('a','b')", "curdate()"] {
            assert!(!is_constant(text), "{text}");
        }
    }
}
