//! Marks of plaintext columns whose foreign key is dropped.
//!
//! They are left before the statement itself: if it fails, a mark is there that changes nothing.
//! But where the statement drops columns they come behind it: see [`plain_mark_statement`].

use onionskin_plan::{Ddl, KeptPlain};
use onionskin_schema::{
    TableName, identifier, mark_references, plain_mark, plain_mark_statement, same_name,
};

use crate::catalog::{literal, texts};
use crate::error::{Failure, Outcome};
use crate::session::Session;

impl Session {
    /// Leaves the marks that columns need in order to stay plaintext under an enforced wildcard.
    /// Returns the statements that leave those which the definition would take away again.
    pub(crate) fn marks_before(&mut self, ddl: &Ddl) -> Outcome<Vec<String>> {
        let (Some(table), Some(first)) = (&ddl.table, ddl.kept_plain.first()) else {
            return Ok(Vec::new());
        };
        let keys = self.foreign_keys_of(&TableName::new(&table.database, &table.name))?;
        // without its foreign keys: what a mark says already
        let mut bare = table.as_ref().clone();
        for column in &mut bare.columns {
            column.refers_to_plaintext = false;
        }
        let shared = std::sync::Arc::clone(&self.shared);
        let config = &shared.config;
        let tag = |bytes: &[u8]| config.keys.metadata_key().tag(bytes);
        let server = &mut self.server;
        let without_keys = |sql: &str| match sql.contains("KEY_COLUMN_USAGE") {
            true => Ok::<_, Failure>(Vec::new()),
            false => texts(server, sql),
        };
        mark_references(&config.policy, &mut bare, without_keys, tag)?;
        let mut statements = Vec::new();
        for kept in &ddl.kept_plain {
            let is_marked = bare.column(&kept.before);
            let is_marked = is_marked.is_some_and(|column| column.refers_to_plaintext);
            if needs_mark(kept, &keys, is_marked) {
                let mark = plain_mark(&kept.after, config.keys.random_column_id(), tag);
                let (database, name) = (identifier(&table.database), identifier(&table.name));
                let name = format!("{database}.{name}");
                statements.push(plain_mark_statement(&name, &mark, self.state.family));
            }
        }
        if first.drops_columns {
            return Ok(statements);
        }
        for sql in statements {
            self.server.run(sql.as_bytes())?;
        }
        Ok(Vec::new())
    }

    /// Leaves marks when the client has its answer. If that fails the table is refused from now on,
    /// and the log says why.
    pub(crate) fn mark_afterwards(&mut self, marks: &[String], names: &[TableName]) -> Outcome<()> {
        // what the server has said of the definition is kept: this ends it
        self.diagnostics.hides_servers = true;
        for sql in marks {
            match self.server.run(sql.as_bytes()) {
                Ok(_) => {}
                Err(Failure::Server { code, .. }) => {
                    tracing::warn!(
                        code,
                        "a column that a wildcard leaves plaintext has lost its mark"
                    );
                    self.server.settle()?;
                }
                Err(failure) => return Err(failure),
            }
        }
        self.live.forget(names);
        Ok(())
    }

    /// The foreign keys of a table: the constraint's name, and one of its columns.
    pub(crate) fn foreign_keys_of(&mut self, table: &TableName) -> Outcome<Vec<(String, String)>> {
        let sql = format!(
            "SELECT CAST(CONSTRAINT_NAME AS BINARY), CAST(COLUMN_NAME AS BINARY) \
             FROM information_schema.KEY_COLUMN_USAGE \
             WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} AND REFERENCED_COLUMN_NAME IS NOT NULL",
            literal(&table.database),
            literal(&table.name)
        );
        let rows = texts(&mut self.server, &sql)?;
        let pairs = rows.into_iter().filter_map(|row| {
            let mut cells = row.into_iter().flatten();
            Some((cells.next()?, cells.next()?))
        });
        Ok(pairs.collect())
    }
}

/// Whether a column loses what keeps it plaintext: its foreign key, or the name that its mark has.
fn needs_mark(kept: &KeptPlain, keys: &[(String, String)], is_marked: bool) -> bool {
    let is_renamed = !same_name(&kept.before, &kept.after);
    let loses_key = keys.iter().any(|(constraint, column)| {
        let is_dropped = |name: &String| same_name(name, constraint);
        same_name(column, &kept.before) && kept.dropped.iter().any(is_dropped)
    });
    match is_marked {
        true => is_renamed || kept.drops_columns,
        false => loses_key,
    }
}
