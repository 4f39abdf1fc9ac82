//! What the server's catalogue tells of triggers.

use onionskin_rowstream::checkpoint::Trigger;
use onionskin_rowstream::session::{Session, SqlError};
use onionskin_schema::identifier;

use crate::error::{MigrateError, Result};
use crate::facts::{is_named, name_literal, names_table};

/// What tells a trigger of a table from another one, without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub name: String,
    pub timing: String,
    pub event: String,
    pub definer: String,
    pub sql_mode: String,
    pub created: String,
}

impl Listed {
    /// Whether it is this one.
    pub fn is(&self, trigger: &Trigger) -> bool {
        self.name == trigger.name
            && self.timing == trigger.timing
            && self.event == trigger.event
            && self.definer == trigger.definer
            && self.sql_mode == trigger.sql_mode
            && self.created == trigger.created
    }
}

/// The triggers of a table, in the order in which they run.
pub(crate) fn list(
    session: &mut Session,
    database: &str,
    table: &str,
) -> std::result::Result<Vec<Listed>, SqlError> {
    let rows = session.texts(&format!(
        "SELECT TRIGGER_NAME, ACTION_TIMING, EVENT_MANIPULATION, DEFINER, SQL_MODE, UNIX_TIMESTAMP(CREATED) \
         FROM information_schema.TRIGGERS WHERE {} \
         ORDER BY EVENT_MANIPULATION, ACTION_TIMING, ACTION_ORDER",
        names_table(["EVENT_OBJECT_SCHEMA", "EVENT_OBJECT_TABLE"], database, table)
    ))?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let mut cells = row.into_iter().map(Option::unwrap_or_default);
            let mut next = || cells.next().unwrap_or_default();
            Listed {
                name: next(),
                timing: next(),
                event: next(),
                definer: next(),
                sql_mode: next(),
                created: next(),
            }
        })
        .collect())
}

/// The names of all triggers of a database, and of their tables.
pub(crate) fn in_database(session: &mut Session, database: &str) -> Result<Vec<(String, String)>> {
    let rows = session
        .texts(&format!(
            "SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS WHERE {}",
            is_named("TRIGGER_SCHEMA", &name_literal(database))
        ))
        .map_err(MigrateError::sql("reading the triggers"))?;
    let pair = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter().map(Option::unwrap_or_default);
        let mut next = || cells.next().unwrap_or_default();
        (next(), next())
    };
    Ok(rows.into_iter().map(pair).collect())
}

/// The triggers of a table with their texts, in the order in which they run.
pub(crate) fn read(session: &mut Session, database: &str, table: &str) -> Result<Vec<Trigger>> {
    let doing = || MigrateError::sql("reading the triggers");
    let mut triggers = Vec::new();
    for listed in list(session, database, table).map_err(doing())? {
        let rows = session
            .rows(&format!(
                "SHOW CREATE TRIGGER {}.{}",
                identifier(database),
                identifier(&listed.name)
            ))
            .map_err(doing())?;
        let row = rows.into_iter().next().unwrap_or_default();
        let cell = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
        let text = |at: usize| String::from_utf8_lossy(&cell(at)).into_owned();
        triggers.push(Trigger {
            name: listed.name,
            timing: listed.timing,
            event: listed.event,
            definer: listed.definer,
            statement: cell(2),
            sql_mode: listed.sql_mode,
            charset: text(3),
            collation: text(4),
            database_collation: text(5),
            created: listed.created,
        });
    }
    Ok(triggers)
}
