//! Foreign keys over protected columns that say CASCADE or SET NULL where the server can do
//! neither.
//!
//! The key on the server refuses the change of a row that others refer to. The client is told that
//! it is this side that cannot do it, not that the key forbids it. Two kinds of statements would
//! not get as far: under IGNORE servers skip the row, and a text that changes in letter case alone
//! has the same token. They are refused before they are sent.

use std::time::Instant;

use onionskin_plan::{Action, Catalog, Ddl, DdlPiece, Known, Plan, Verb, errors, inexact_key};
use onionskin_schema::{TableName, actions_of, same_name, split_token_name};

use crate::catalog::{KeyedPlan, literal};
use crate::error::{Failure, Outcome};
use crate::session::Session;

impl Session {
    /// Refuses a statement that may leave undone what a foreign key says, without an error of the
    /// server's.
    pub(crate) fn must_not_cascade(&mut self, plan: &Plan) -> Outcome<()> {
        let facts = &plan.facts;
        let changes = matches!(facts.verb, Verb::Update | Verb::Delete | Verb::Insert);
        // a new row takes nothing from those that refer to others
        let only_adds = facts.verb == Verb::Insert && !facts.updates_met_rows;
        let skips = facts.ignore && changes && !only_adds;
        let by_engine = changes && matches!(plan.action, Action::ScratchWrite(_));
        if plan.rewritten.is_empty() && !skips && !by_engine {
            return Ok(());
        }
        let mut columns = plan.rewritten.clone();
        if skips || by_engine {
            for name in &plan.names {
                let Known::Table(table) = self.account.table(&name.database, &name.name) else {
                    continue;
                };
                for (column, protection) in table.protected_columns() {
                    let token = column.equality_column().map(|(name, _)| name.to_owned());
                    let joins = protection.capabilities.join.is_some();
                    match skips {
                        true => columns.extend(token.filter(|_| joins)),
                        false => columns.extend(inexact_key(column)),
                    }
                }
            }
        }
        columns.sort_unstable();
        columns.dedup();
        if columns.is_empty() {
            return Ok(());
        }
        match self.cascading(&columns)? {
            None => Ok(()),
            Some(child) => {
                let about = match skips {
                    true => {
                        format!("IGNORE, and a foreign key of {child} says CASCADE or SET NULL")
                    }
                    false => format!(
                        "a new value of a key to which {child} refers with CASCADE or SET NULL"
                    ),
                };
                Err(Failure::refused(&errors::CASCADE, about))
            }
        }
    }

    /// A table that refers to one of these columns with an action that the server cannot do.
    fn cascading(&mut self, columns: &[String]) -> Outcome<Option<String>> {
        let list: Vec<String> = columns.iter().map(|name| literal(name)).collect();
        let list = list.join(", ");
        if let Some(found) = self.cascades.known(&list) {
            return Ok(found);
        }
        let asked = Instant::now();
        let rows = self.server.rows(
            format!(
                "SELECT DISTINCT CAST(c.TABLE_NAME AS BINARY), CAST(c.COLUMN_COMMENT AS BINARY) \
                 FROM information_schema.KEY_COLUMN_USAGE k JOIN information_schema.COLUMNS c \
                 ON c.TABLE_SCHEMA = k.TABLE_SCHEMA AND c.TABLE_NAME = k.TABLE_NAME \
                 WHERE k.REFERENCED_COLUMN_NAME IN ({list}) AND c.COLUMN_COMMENT LIKE 'onionskin:_|%'"
            )
            .as_bytes(),
        )?;
        let found = rows.into_iter().find_map(|row| {
            let mut cells = row.into_iter().flatten();
            let (table, comment) = (cells.next()?, cells.next()?);
            let actions = actions_of(&String::from_utf8_lossy(&comment));
            actions
                .any()
                .then(|| String::from_utf8_lossy(&table).into_owned())
        });
        self.cascades.note(list, asked, found.clone());
        Ok(found)
    }

    /// Whether a foreign key that forbids a change says CASCADE or SET NULL in fact: the refusal.
    pub(crate) fn refused_cascade(
        &mut self,
        failure: &Failure,
        keyed: &KeyedPlan,
    ) -> Outcome<Option<Failure>> {
        let text = failure.servers_text().unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let Some((child, constraint, token)) = referring(&text) else {
            return Ok(None);
        };
        let Some(column) = split_token_name(&token) else {
            return Ok(None);
        };
        self.server.settle()?;
        // the client may ask for it
        self.keep_list_of(failure, keyed)?;
        self.current.interfered = true;
        let rows = self.server.rows(
            format!(
                "SELECT CAST(COLUMN_COMMENT AS BINARY) FROM information_schema.COLUMNS \
                 WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} AND COLUMN_NAME = {}",
                literal(&child.database),
                literal(&child.name),
                literal(&format!("{column}$enc"))
            )
            .as_bytes(),
        )?;
        let comment = rows
            .into_iter()
            .flatten()
            .flatten()
            .next()
            .unwrap_or_default();
        let actions = actions_of(&String::from_utf8_lossy(&comment));
        Ok(actions.any().then(|| {
            let about = format!("rows of {child} refer to the row by the foreign key {constraint}");
            Failure::refused(&errors::CASCADE, about)
        }))
    }

    /// Refuses other actions for a column over which there is a foreign key already.
    pub(crate) fn must_be_only_key(&mut self, ddl: &Ddl) -> Outcome<()> {
        let Some(table) = &ddl.table else {
            return Ok(());
        };
        for piece in &ddl.pieces {
            let DdlPiece::SetActions(index, _) = piece else {
                continue;
            };
            let column = &table.columns[*index];
            let name = TableName::new(&table.database, &table.name);
            let keys = self.foreign_keys_of(&name)?;
            let token = column.equality_column().map_or("", |(token, _)| token);
            if keys.iter().any(|(_, other)| same_name(other, token)) {
                let about = format!("other actions of foreign keys over column {}", column.name);
                return Err(Failure::refused(&errors::CASCADE, about));
            }
            let is_it = |piece: &DdlPiece| match piece {
                DdlPiece::SetActions(other, _)
                | DdlPiece::Rename(other, _)
                | DdlPiece::SetDefault(other, _)
                | DdlPiece::ForgetCheck(other, _) => other == index,
                DdlPiece::Redefine(new) => new.index == *index,
                _ => false,
            };
            if ddl.pieces.iter().filter(|piece| is_it(piece)).count() > 1 {
                let about = format!(
                    "a foreign key beside another change of column {}",
                    column.name
                );
                return Err(Failure::refused(&errors::CASCADE, about));
            }
        }
        Ok(())
    }
}

/// The table that refers to the row, the constraint, and its first column, by the text of the
/// server's error.
fn referring(message: &str) -> Option<(TableName, String, String)> {
    let (_, behind) = message.split_once("a foreign key constraint fails (")?;
    let mut names = behind.split('`').skip(1).step_by(2);
    let (database, table, constraint, column) =
        (names.next()?, names.next()?, names.next()?, names.next()?);
    Some((
        TableName::new(database, table),
        constraint.to_owned(),
        column.to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::referring;

    #[test]
    fn the_error_names_who_refers() {
        let message = "Cannot delete or update a parent row: a foreign key constraint fails (`app`.`c`, CONSTRAINT \
                       `fk` FOREIGN KEY (`a$eq_1a2b`) REFERENCES `a` (`id$eq_0000`))";
        let (table, constraint, column) = referring(message).expect("named");
        assert_eq!(table.to_string(), "app.c");
        assert_eq!((constraint.as_str(), column.as_str()), ("fk", "a$eq_1a2b"));
        assert!(referring("Cannot delete or update a parent row").is_none());
    }
}
