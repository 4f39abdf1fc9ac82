//! `DROP`, `RENAME`, `ALTER COLUMN`, `MODIFY` and `CHANGE`: columns that the table has.

use std::ops::Range;

use onionskin_schema::{DefaultLiteral, same_name};
use onionskin_value::Family;

use super::alteration::{Alteration, ProtectedColumn};
use super::migration::needed;
use super::specs::{guard, refused};
use crate::ddl::DdlPiece;
use crate::ddl::column::take_encrypted;
use crate::ddl::default::{self, Given};
use crate::ddl::reader::Reader;
use crate::errors;
use crate::planner::{Planned, identifier, refuse};

/// What DROP drops beside columns.
const NO_COLUMNS: [&str; 7] = [
    "index",
    "key",
    "primary",
    "foreign",
    "constraint",
    "check",
    "partition",
];

impl Alteration<'_> {
    /// The reader stands behind DROP.
    pub(super) fn drop_spec(&mut self, mut s: Reader, spec: Range<usize>) -> Planned<()> {
        if NO_COLUMNS.iter().any(|w| s.is(w)) {
            let mut names = self.target.names_in(&spec);
            if names.any(|n| onionskin_schema::is_our_constraint(&n)) {
                return Err(refused("a constraint that belongs to a protected column"));
            }
            self.keep(spec);
            return Ok(());
        }
        s.eat("column");
        guard(&mut s)?;
        let column = s.name().ok_or_else(|| refused("DROP"))?;
        match self.target.protected(&column) {
            Some(protected) if s.done() => {
                let piece = DdlPiece::Drop(protected.index);
                self.out.0.push(piece);
            }
            Some(_) => return Err(refused("DROP COLUMN with an option")),
            None => self.keep(spec),
        }
        Ok(())
    }

    /// The reader stands behind RENAME.
    pub(super) fn rename_spec(&mut self, mut s: Reader, spec: Range<usize>) -> Planned<()> {
        if !s.eat("column") {
            self.keep(spec);
            return Ok(());
        }
        guard(&mut s)?;
        let old = s.name().ok_or_else(|| refused("RENAME COLUMN"))?;
        s.eat("to");
        let new = s.name().ok_or_else(|| refused("RENAME COLUMN"))?;
        let target = &self.target;
        if !same_name(&old, &new) {
            target.specs.free_name(&target.table, &new)?;
        }
        match target.protected(&old) {
            Some(protected) => {
                let piece = DdlPiece::Rename(protected.index, new);
                self.out.0.push(piece);
            }
            None => {
                target.check_unclaimed(&old, &new)?;
                self.keep(spec);
            }
        }
        Ok(())
    }

    /// `ALTER COLUMN`, which is about the column's default; the reader stands behind ALTER.
    pub(super) fn alter_spec(&mut self, mut s: Reader, spec: Range<usize>) -> Planned<()> {
        s.eat("column");
        guard(&mut s)?;
        let name = s.name().ok_or_else(|| refused("ALTER"))?;
        let Some(protected) = self.target.protected(&name) else {
            self.keep(spec);
            return Ok(());
        };
        if protected.column.on_update {
            // servers differ in whether it stays
            let about = "the default of a protected column with ON UPDATE";
            return Err(refused(about));
        }
        let default = if s.eat("set") && s.eat("default") {
            Some(new_default(&mut s, &name, protected)?)
        } else if s.eat("drop") && s.eat("default") {
            None
        } else {
            return Err(refused("ALTER COLUMN"));
        };
        if !s.done() {
            return Err(refused("ALTER COLUMN"));
        }
        let piece = DdlPiece::SetDefault(protected.index, default);
        self.out.0.push(piece);
        Ok(())
    }

    /// `MODIFY` and `CHANGE`, of unprotected columns only; the reader stands before the word.
    pub(super) fn modify_spec(&mut self, mut s: Reader, spec: Range<usize>) -> Planned<()> {
        let is_change = s.eat("change");
        if !is_change {
            s.eat("modify");
        }
        s.eat("column");
        guard(&mut s)?;
        let column = s.name().ok_or_else(|| refused("MODIFY"))?;
        let target = &self.target;
        // the new name in `CHANGE a b …`
        let new = s.token().and_then(|t| identifier(s.sql(), &t));
        if is_change && let Some(new) = new.filter(|new| !same_name(new, &column)) {
            target.specs.free_name(&target.table, &new)?;
            if target.protected(&column).is_none() {
                target.check_unclaimed(&column, &new)?;
            }
        }
        let wanted = take_encrypted(&s, s.at..s.end)?.map(|found| found.capabilities);
        if let Some(known) = target.table.column(&column)
            && (known.protection.is_some() || wanted.is_some())
        {
            return Err(needed(&target.table, known, wanted.as_ref()));
        }
        let is_claimed = target.is_near && {
            let (database, table) = target.names;
            let policy = s.request.policy;
            let found = policy.capabilities(database, table, &column, false);
            found.is_ok_and(|c| c.is_some())
        };
        if target.mentions_protected(&spec) || wanted.is_some() || is_claimed {
            let about = format!("the definition of column {column}");
            return refuse(&errors::ALTERATION, about);
        }
        self.keep(spec);
        Ok(())
    }
}

/// The default behind `SET DEFAULT`, as it is kept for the column.
fn new_default(s: &mut Reader, name: &str, protected: ProtectedColumn) -> Planned<DefaultLiteral> {
    let request = s.request;
    let sql_type = &protected.protection.sql_type;
    let given = default::given(s, name, sql_type.is_bit())?;
    let given = given.ok_or_else(|| refused("SET DEFAULT"))?;
    if matches!(given, Given::Now(..)) && request.settings.family == Family::MySql {
        return Err(refused(
            "SET DEFAULT CURRENT_TIMESTAMP, which MySQL takes in parentheses only, as an expression",
        ));
    }
    let default = default::kept(given, sql_type, name, request)?;
    if default == DefaultLiteral::Null && !protected.column.nullable {
        let about = format!("column {name}: DEFAULT NULL on a NOT NULL column");
        return refuse(&errors::DEFINITION, about);
    }
    Ok(default)
}
