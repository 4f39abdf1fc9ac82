//! Values that differ where their tokens do not, in keys that others refer to.
//!
//! The token of a text in a collation without letter case is that of all its spellings. A foreign
//! key on the server compares tokens: it does not see that `a` becomes `A`, and neither refuses the
//! change nor carries it on. So before a statement writes such a key, the rows that have the token
//! of a new value are read. If each of them has that value already, byte for byte, no row can
//! change in this way.

use onionskin_plan::{Action, OpenFrom, ResultItem};
use onionskin_schema::{TokenKind, identifier};

use crate::bind::{NewValue, assigned_constants};
use crate::error::{Failure, Outcome};
use crate::exchange::ALL_ROWS;
use crate::hex::put_hex;
use crate::session::{Execution, Session};

/// Tokens that are asked about at once.
const AT_ONCE: usize = 200;

impl Session {
    /// Whether no row can get a value with the token of its present one that is another value.
    /// `columns` are token columns.
    pub(crate) fn keeps_letters(
        &mut self,
        execution: &Execution,
        columns: &[String],
    ) -> Outcome<bool> {
        let new = match self.stored_values(execution, columns) {
            Ok(new) => new,
            // the statement itself will find it
            Err(Failure::Value(_)) => return Ok(true),
            Err(failure) => return Err(failure),
        };
        let differ = |a: &NewValue, b: &NewValue| {
            a.column == b.column && a.token == b.token && a.payload != b.payload
        };
        let mut all = new.iter().enumerate();
        if all.any(|(n, one)| new[..n].iter().any(|other| differ(one, other))) {
            return Ok(false);
        }
        let mut places: Vec<usize> = new.iter().map(|new| new.column).collect();
        places.sort_unstable();
        places.dedup();
        for column in places {
            let of_column: Vec<&NewValue> = new.iter().filter(|n| n.column == column).collect();
            for some in of_column.chunks(AT_ONCE) {
                if !self.are_there_as_they_are(execution, column, some)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// What the statement stores in these columns.
    fn stored_values(
        &mut self,
        execution: &Execution,
        columns: &[String],
    ) -> Outcome<Vec<NewValue>> {
        let plan = &execution.keyed.plan;
        let assigned;
        let text = match &plan.action {
            Action::Server { text, .. } => text,
            Action::Update(update) => {
                assigned = assigned_constants(execution.keyed, update);
                &assigned
            }
            _ => return Ok(Vec::new()),
        };
        let mut binder = execution.binder(&self.state, &mut self.buffers);
        let mut new = binder.new_values(text, execution.rows)?;
        new.retain(|new| {
            let token = plan.columns[new.column].column().equality_column();
            token.is_some_and(|(name, kind)| {
                new.is_order == (kind == TokenKind::Order) && columns.iter().any(|c| c == name)
            })
        });
        Ok(new)
    }

    /// Whether each row that has one of these tokens has the value that goes with it.
    fn are_there_as_they_are(
        &mut self,
        execution: &Execution,
        column: usize,
        new: &[&NewValue],
    ) -> Outcome<bool> {
        let keyed = execution.keyed;
        let used = &keyed.plan.columns[column];
        let Some((token, _)) = used.column().equality_column() else {
            return Ok(false);
        };
        let mut tokens = Vec::new();
        for new in new {
            if !tokens.is_empty() {
                tokens.push(b',');
            }
            put_hex(&new.token, &mut tokens);
        }
        // In a transaction, what is there now counts and not its snapshot, and stays so.
        let lock = match self.server.in_transaction() {
            true => " FOR UPDATE",
            false => "",
        };
        let sql = format!(
            "SELECT {} FROM {}.{} WHERE {} IN ({}){ALL_ROWS}{lock}",
            identifier(used.sealed()),
            identifier(&used.table.database),
            identifier(&used.table.name),
            identifier(token),
            String::from_utf8_lossy(&tokens)
        );
        let question = self.server.put_select(sql.as_bytes())?;
        self.server.flush()?;
        let items = [ResultItem {
            open: Some((column, OpenFrom::Sealed)),
            ..ResultItem::plain()
        }];
        let mut is_known = true;
        self.opened_rows(question, keyed, &items, |_, cells| {
            let is = |cell: &Option<Vec<u8>>| {
                let mut payloads = new.iter().map(|new| &new.payload);
                payloads.any(|payload| cell.as_ref() == Some(payload))
            };
            is_known &= cells.iter().all(is);
            Ok(())
        })?;
        Ok(is_known)
    }
}
