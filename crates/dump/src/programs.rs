//! Views, triggers and routines, and what is left out of a dump.

use onionskin_rowstream::client::Client;
use onionskin_schema::{TableName, identifier};

use crate::{
    definition::{has_constants, mentions, without_definer},
    error::DumpError,
    facts::{one, quoted, texts},
};

/// A statement that a dump ends with.
pub(crate) struct Program {
    pub database: String,
    /// What it is called, for messages.
    pub name: String,
    pub text: String,
    /// `sql_mode` that it was made under; views have none.
    pub mode: Option<String>,
}

/// What is found, and what is left out of it.
#[derive(Default)]
pub(crate) struct Programs {
    pub views: Vec<Program>,
    pub others: Vec<Program>,
    /// Each with its reason.
    pub left_out: Vec<String>,
}

impl Programs {
    /// Takes a text, unless it has constants and these are not wanted.
    fn add(&mut self, with_constants: bool, is_view: bool, program: Program) {
        if !with_constants && has_constants(&program.text) {
            self.left_out.push(format!(
                "{}: its text has constants, which may be values (--constants takes it)",
                program.name
            ));
            return;
        }
        match is_view {
            true => self.views.push(program),
            false => self.others.push(program),
        }
    }

    /// Views, each behind those that it reads.
    pub fn sort_views(&mut self) {
        let mut sorted: Vec<Program> = Vec::new();
        let mut rest = std::mem::take(&mut self.views);
        while !rest.is_empty() {
            let bare = |p: &Program| {
                p.name
                    .rsplit_once('.')
                    .map(|(_, n)| n.to_owned())
                    .unwrap_or_default()
            };
            let names: Vec<String> = rest.iter().map(bare).collect();
            let is_ready = |at: usize| {
                names
                    .iter()
                    .enumerate()
                    .all(|(other, name)| other == at || !mentions(&rest[at].text, name))
            };
            // servers have no circles of views; names may look like one
            let next = (0..rest.len()).find(|at| is_ready(*at)).unwrap_or(0);
            sorted.push(rest.remove(next));
        }
        self.views = sorted;
    }
}

/// Those of a database.
pub(crate) fn read(
    client: &mut Client,
    database: &str,
    views: &[TableName],
    with_constants: bool,
    found: &mut Programs,
) -> Result<(), DumpError> {
    for view in views {
        let text = one(client, &format!("SHOW CREATE VIEW {}", quoted(view)), 1)?;
        let program = Program {
            database: database.into(),
            name: format!("view {view}"),
            text: without_definer(&text),
            mode: None,
        };
        found.add(with_constants, true, program);
    }
    let within = identifier(database);
    for row in texts(client, &format!("SHOW TRIGGERS FROM {within}"))? {
        let name = row.into_iter().next().flatten().unwrap_or_default();
        let sql = format!("SHOW CREATE TRIGGER {within}.{}", identifier(&name));
        program(
            client,
            database,
            &sql,
            format!("trigger {database}.{name}"),
            with_constants,
            found,
        )?;
    }
    for kind in ["FUNCTION", "PROCEDURE"] {
        let pattern = database.replace('\\', "\\\\").replace('\'', "''");
        let sql = format!("SHOW {kind} STATUS WHERE Db = '{pattern}'");
        for row in texts(client, &sql)? {
            let name = row.into_iter().nth(1).flatten().unwrap_or_default();
            let sql = format!("SHOW CREATE {kind} {within}.{}", identifier(&name));
            let called = format!("{} {database}.{name}", kind.to_lowercase());
            program(client, database, &sql, called, with_constants, found)?;
        }
    }
    for row in texts(client, &format!("SHOW EVENTS FROM {within}"))? {
        let name = row.into_iter().nth(1).flatten().unwrap_or_default();
        let left = format!("event {database}.{name}: it would run on the test system");
        found.left_out.push(left);
    }
    Ok(())
}

/// Name, mode, text: the first columns of all of these answers.
fn program(
    client: &mut Client,
    database: &str,
    sql: &str,
    name: String,
    with_constants: bool,
    found: &mut Programs,
) -> Result<(), DumpError> {
    let row = texts(client, sql)?.into_iter().next().unwrap_or_default();
    let cell = |at: usize| row.get(at).cloned().flatten();
    let Some(text) = cell(2) else {
        found
            .left_out
            .push(format!("{name}: this account does not see its text"));
        return Ok(());
    };
    let program = Program {
        database: database.into(),
        name,
        text: without_definer(&text),
        mode: Some(cell(1).unwrap_or_default()),
    };
    found.add(with_constants, false, program);
    Ok(())
}
