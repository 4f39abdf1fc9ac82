//! Foreign keys over protected columns that say CASCADE or SET NULL where the server can do
//! neither.
//!
//! The key on the server refuses the change of a row that others refer to. The client is told that
//! it is this side that cannot do it, not that the key forbids it. Two kinds of statements would
//! not get as far. They are refused before they are sent.
//!
//! - Under IGNORE servers skip the row.
//! - A text that changes in letter case alone has the same token, so to the server it is the same
//!   key: whatever the foreign key says, even RESTRICT, is not done ([`letters`]).

mod answers;
mod letters;

use std::time::Instant;

use onionskin_plan::{
    Action, Catalog, Ddl, DdlPiece, Effect, Known, NewValue, Plan, Verb, errors, inexact_key,
};
use onionskin_schema::{TableName, actions_of, same_name, split_token_name};

use crate::bind::stored_columns;
use crate::catalog::{KeyedPlan, literal};
use crate::error::{Failure, Outcome};
use crate::session::{Execution, Session};

pub(crate) use self::answers::KeyAnswers;

impl Session {
    /// Refuses a statement that may leave undone what a foreign key says, without an error of the
    /// server's.
    #[inline]
    pub(crate) fn must_not_cascade(&mut self, execution: &Execution) -> Outcome<()> {
        let plan = &execution.keyed.plan;
        let writes_over = !plan.rewritten.is_empty() || plan.facts.verb == Verb::Replace;
        let by_engine = || matches!(plan.action, Action::ScratchWrite(_));
        match plan.facts.ignore || writes_over || by_engine() {
            true => self.must_leave_nothing_undone(execution),
            false => Ok(()),
        }
    }

    #[cold]
    fn must_leave_nothing_undone(&mut self, execution: &Execution) -> Outcome<()> {
        let plan = &execution.keyed.plan;
        self.must_not_skip(plan)?;
        let rewritten = rewritten(plan);
        if rewritten.is_empty() {
            return Ok(());
        }
        let Some(child) = self.referring_to(&rewritten, Actions::Any)? else {
            return Ok(());
        };
        if is_constant(plan, &rewritten) && self.keeps_letters(execution, &rewritten)? {
            return Ok(());
        }
        let about = format!(
            "a key to which {child} refers, where a new value may differ from the present one in nothing that its token shows"
        );
        Err(Failure::refused(&errors::CASCADE, about))
    }

    /// Under IGNORE servers skip the rows that a key forbids to change, or change them all the
    /// same. Where the key says CASCADE or SET NULL in fact, a plain server would do that, also
    /// behind the CASCADE of another key.
    #[inline]
    pub(crate) fn must_not_skip(&mut self, plan: &Plan) -> Outcome<()> {
        match plan.facts.ignore {
            true => self.must_skip_nothing(plan),
            false => Ok(()),
        }
    }

    #[cold]
    fn must_skip_nothing(&mut self, plan: &Plan) -> Outcome<()> {
        let facts = &plan.facts;
        let changes = match facts.verb {
            Verb::Update | Verb::Delete => true,
            // a new row takes nothing from those that refer to others
            Verb::Insert => facts.updates_met_rows,
            _ => false,
        };
        if !changes {
            return Ok(());
        }
        let mut columns = Vec::new();
        for name in &plan.names {
            if let Known::Table(table) = self.account.table(&name.database, &name.name) {
                let protected = table.protected_columns();
                let joined = protected.filter(|(_, p)| p.capabilities.join.is_some());
                let tokens = joined.filter_map(|(column, _)| column.equality_column());
                columns.extend(tokens.map(|(name, _)| name.to_owned()));
            }
        }
        let mut found = match columns.is_empty() {
            true => None,
            false => self.referring_to(&columns, Actions::OfTheProxy)?,
        };
        if found.is_none() && self.shared.accounts.knows_protected() {
            found = self.behind_a_cascade()?;
        }
        match found {
            None => Ok(()),
            Some(child) => {
                let about =
                    format!("IGNORE, and a foreign key of {child} says CASCADE or SET NULL");
                Err(Failure::refused(&errors::CASCADE, about))
            }
        }
    }

    /// A table that refers to one of these token columns. A view's have the suffixes of the
    /// table's, which no other column has.
    fn referring_to(&mut self, columns: &[String], actions: Actions) -> Outcome<Option<String>> {
        let suffixes = columns.iter().filter_map(|name| name.rsplit('$').next());
        let mut suffixes: Vec<String> = suffixes.map(literal).collect();
        suffixes.sort_unstable();
        suffixes.dedup();
        // no pattern: what a backslash means in one depends on the session
        let is_one = format!(
            "SUBSTRING_INDEX(k.REFERENCED_COLUMN_NAME, '$', -1) IN ({})",
            suffixes.join(", ")
        );
        let sql = match actions {
            Actions::Any => format!(
                "SELECT CAST(k.TABLE_NAME AS BINARY), 'any' FROM information_schema.KEY_COLUMN_USAGE k \
                 WHERE {is_one} LIMIT 1"
            ),
            Actions::OfTheProxy => format!(
                "SELECT DISTINCT CAST(c.TABLE_NAME AS BINARY), CAST(c.COLUMN_COMMENT AS BINARY) \
                 FROM information_schema.KEY_COLUMN_USAGE k JOIN information_schema.COLUMNS c \
                 ON c.TABLE_SCHEMA = k.TABLE_SCHEMA AND c.TABLE_NAME = k.TABLE_NAME \
                 WHERE {is_one} AND c.COLUMN_COMMENT LIKE 'onionskin:%'"
            ),
        };
        self.child_by(sql, actions)
    }

    /// A table whose foreign key says CASCADE or SET NULL in fact, and refers to a table whose rows
    /// the server itself deletes or changes by CASCADE.
    fn behind_a_cascade(&mut self) -> Outcome<Option<String>> {
        let sql = "SELECT DISTINCT CAST(c.TABLE_NAME AS BINARY), CAST(c.COLUMN_COMMENT AS BINARY) \
             FROM information_schema.REFERENTIAL_CONSTRAINTS r \
             JOIN information_schema.KEY_COLUMN_USAGE k \
             ON k.REFERENCED_TABLE_SCHEMA = r.CONSTRAINT_SCHEMA AND k.REFERENCED_TABLE_NAME = r.TABLE_NAME \
             JOIN information_schema.COLUMNS c \
             ON c.TABLE_SCHEMA = k.TABLE_SCHEMA AND c.TABLE_NAME = k.TABLE_NAME \
             WHERE 'CASCADE' IN (r.DELETE_RULE, r.UPDATE_RULE) AND c.COLUMN_COMMENT LIKE 'onionskin:%'";
        self.child_by(sql.to_owned(), Actions::OfTheProxy)
    }

    /// The first table of an answer, rows of which are tables and comments of their columns.
    fn child_by(&mut self, sql: String, actions: Actions) -> Outcome<Option<String>> {
        let generation = self.account.generation();
        if let Some(found) = self.key_answers.known(&sql, generation) {
            return Ok(found);
        }
        let asked = Instant::now();
        let rows = self.outside(|s| s.server.rows(sql.as_bytes()))?;
        let found = rows.into_iter().find_map(|row| {
            let mut cells = row.into_iter().flatten();
            let (table, comment) = (cells.next()?, cells.next()?);
            let counts = match actions {
                Actions::Any => true,
                Actions::OfTheProxy => actions_of(&String::from_utf8_lossy(&comment)).any(),
            };
            counts.then(|| String::from_utf8_lossy(&table).into_owned())
        });
        self.key_answers.note(sql, generation, asked, found.clone());
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

/// Which foreign keys count.
#[derive(Clone, Copy)]
enum Actions {
    /// All.
    Any,
    /// Those whose actions the server does not know.
    OfTheProxy,
}

/// Whether the statement says which values these token columns get.
fn is_constant(plan: &Plan, columns: &[String]) -> bool {
    match &plan.action {
        // one that copies a column has no slot for it
        Action::Server { text, .. } => columns.iter().all(|column| {
            stored_columns(text).iter().any(|stored| {
                let token = plan.columns[*stored].column().equality_column();
                token.is_some_and(|(name, _)| name == column)
            })
        }),
        Action::Update(update) => update.assign.iter().all(|assign| {
            let token = plan.columns[assign.column].column().equality_column();
            let is_meant = token.is_some_and(|(name, _)| columns.iter().any(|c| c == name));
            !is_meant || matches!(assign.value, NewValue::Constant(_))
        }),
        _ => false,
    }
}

/// Token columns of keys that may get values which differ where their tokens do not.
fn rewritten(plan: &Plan) -> Vec<String> {
    let mut columns = plan.rewritten.clone();
    let replaces = plan.facts.verb == Verb::Replace;
    match &plan.action {
        Action::Server { .. } if replaces => {
            let used = plan.columns.iter().map(|used| used.column());
            columns.extend(used.filter_map(inexact_key));
        }
        Action::ScratchWrite(write) => match &write.effect {
            Effect::Update(targets) => {
                for target in targets {
                    let table = &write.scratch.reads[target.read].table;
                    let written = target.columns.iter().map(|c| &table.columns[c.index]);
                    columns.extend(written.filter_map(inexact_key));
                }
            }
            Effect::Insert(new) if replaces || new.met.is_some() => {
                columns.extend(new.table.columns.iter().filter_map(inexact_key));
            }
            _ => {}
        },
        _ => {}
    }
    columns.sort_unstable();
    columns.dedup();
    columns
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
