//! `DROP`, `RENAME`, `ALTER COLUMN`, `MODIFY` and `CHANGE`: columns that the table has.

use std::ops::Range;

use onionskin_schema::{Column, DefaultLiteral, KeyRole, Surrogate, same_name};
use onionskin_value::Family;

use super::add::split_place;
use super::alteration::{Alteration, ProtectedColumn, is_value};
use super::migration::{modification, needed};
use super::specs::{guard, refused};
use crate::ddl::attributes::{Attributes, check_expressions};
use crate::ddl::column::{OwnKey, Wanted, column_definition, take_encrypted};
use crate::ddl::column_type::plain_type;
use crate::ddl::default::{self, Given};
use crate::ddl::reader::Reader;
use crate::ddl::{DdlPiece, Redefined};
use crate::errors::{self, Refusal};
use crate::lex::{LiteralKind, Token, TokenKind};
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
    /// A protected column of the table with a CHECK.
    fn checked_column(&self) -> Option<&str> {
        let mut protected = self.target.table.protected_columns();
        let found = protected.find(|(_, p)| p.is_checked());
        found.map(|(column, _)| column.name.as_str())
    }

    /// Refuses values for a column that the table does not have. They would be those of a protected
    /// one whose definition was refused, say. `is_guarded`: behind IF EXISTS, which makes a note of
    /// it.
    fn must_be_there(&self, name: &str, spec: &Range<usize>, is_guarded: bool) -> Planned<()> {
        let table = &self.target.table;
        let tokens = self.target.tokens(spec);
        let is_length = |token: &Token| token.kind == TokenKind::Literal(LiteralKind::Integer);
        let is_told = |token: &Token| is_value(token) && !(is_guarded && is_length(token));
        if table.column(name).is_some() || !tokens.iter().any(is_told) {
            return Ok(());
        }
        match is_guarded {
            true => Err(refused(&format!(
                "IF EXISTS with values, and column {name} is missing"
            ))),
            false => Err(Refusal::unknown_column(name, &table.name)),
        }
    }

    /// `DROP CONSTRAINT` and `DROP CHECK`: the constraint may be that of a protected column, which
    /// the server has to tell. The reader stands before the word.
    fn drop_constraint(&mut self, mut s: Reader, spec: Range<usize>) -> Planned<()> {
        self.keep_plain(spec)?;
        if self.checked_column().is_none() || !(s.eat("constraint") || s.eat("check")) {
            return Ok(());
        }
        guard(&mut s)?;
        let name = s.name().filter(|_| s.done());
        let name = name.ok_or_else(|| refused("DROP CONSTRAINT"))?;
        self.out.0.push(DdlPiece::DroppedConstraint(name));
        Ok(())
    }

    /// The reader stands behind DROP.
    pub(super) fn drop_spec(&mut self, mut s: Reader, spec: Range<usize>) -> Planned<()> {
        if NO_COLUMNS.iter().any(|w| s.is(w)) {
            return self.drop_constraint(s, spec);
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
            None => self.keep_plain(spec)?,
        }
        Ok(())
    }

    /// The reader stands behind RENAME.
    pub(super) fn rename_spec(&mut self, mut s: Reader, spec: Range<usize>) -> Planned<()> {
        if !s.eat("column") {
            self.keep_plain(spec)?;
            return Ok(());
        }
        guard(&mut s)?;
        let old = s.name().ok_or_else(|| refused("RENAME COLUMN"))?;
        s.eat("to");
        let new = s.name().ok_or_else(|| refused("RENAME COLUMN"))?;
        if !same_name(&old, &new) {
            let is_protected = self.target.protected(&old).is_some();
            self.take_name(&new, is_protected)?;
        }
        let target = &self.target;
        match target.protected(&old) {
            Some(protected) if protected.protection.is_checked() => {
                return Err(with_check(&old));
            }
            Some(protected) => {
                let piece = DdlPiece::Rename(protected.index, new);
                self.out.0.push(piece);
            }
            None => {
                target.check_unclaimed(&old, &new)?;
                self.note_renamed(&old, &new);
                self.keep_plain(spec)?;
            }
        }
        Ok(())
    }

    /// `ALTER COLUMN`, which is about the column's default; the reader stands behind ALTER.
    pub(super) fn alter_spec(&mut self, mut s: Reader, spec: Range<usize>) -> Planned<()> {
        if s.is("check") || s.is("constraint") {
            // the name does not tell whether it is that one
            if let Some(column) = self.checked_column() {
                return Err(refused(&format!(
                    "ALTER CHECK of a table with a CHECK over the protected column {column}"
                )));
            }
        }
        s.eat("column");
        let is_guarded = s.is("if");
        guard(&mut s)?;
        let name = s.name().ok_or_else(|| refused("ALTER"))?;
        self.must_be_there(&name, &spec, is_guarded)?;
        let Some(protected) = self.target.protected(&name) else {
            self.keep_plain(spec)?;
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

    /// `MODIFY` and `CHANGE`; the reader stands before the word. Of a protected column what no cell
    /// depends on may change.
    pub(super) fn modify_spec(&mut self, mut s: Reader, spec: Range<usize>) -> Planned<()> {
        let is_change = s.eat("change");
        if !is_change {
            s.eat("modify");
        }
        s.eat("column");
        let is_guarded = s.is("if");
        guard(&mut s)?;
        let column = s.name().ok_or_else(|| refused("MODIFY"))?;
        self.must_be_there(&column, &spec, is_guarded)?;
        // the new name in `CHANGE a b …`
        let new = s.token().and_then(|t| identifier(s.sql(), &t));
        if is_change && let Some(new) = new.filter(|new| !same_name(new, &column)) {
            let is_protected = self.target.protected(&column).is_some();
            self.take_name(&new, is_protected)?;
            if !is_protected {
                self.target.check_unclaimed(&column, &new)?;
                self.note_renamed(&column, &new);
            }
        }
        let target = &self.target;
        let wanted = take_encrypted(&s, s.at..s.end)?.map(|found| found.capabilities);
        if let Some(protected) = target.protected(&column) {
            let as_before = wanted
                .as_ref()
                .is_none_or(|w| *w == protected.protection.capabilities);
            if !as_before {
                return Err(needed(&target.table, protected.column, wanted.as_ref()));
            }
            // in CHANGE, the definition begins with the new name
            let start = if is_change { s.at } else { s.at - 1 };
            let (piece, key) = self.redefined(&s, start..s.end, protected)?;
            self.out.0.push(piece);
            return match key {
                Some(_) => self.add_own_unique(start..start + 1),
                None => Ok(()),
            };
        }
        if let Some(known) = target.table.column(&column).filter(|_| wanted.is_some()) {
            return Err(needed(&target.table, known, wanted.as_ref()));
        }
        let refers = |c: &Column| c.refers_to_plaintext;
        let is_concerned = target.is_near || target.table.column(&column).is_some_and(refers);
        let definition = if is_change { s.at } else { s.at - 1 };
        let new_type = plain_type(&s, definition..s.end, &target.collation);
        let attributes = Attributes::read(&s, definition..s.end);
        let is_claimed = is_concerned && {
            let (database, table) = target.names;
            let policy = s.request.policy;
            // AUTO_INCREMENT has to stay as well
            let known = target.table.column(&column).map(|c| c.surrogate());
            let surrogate = match known {
                Some(Surrogate::AutoIncrement) if !attributes.auto_increment => Surrogate::No,
                // and so has the expression
                Some(Surrogate::Generated) if attributes.generated.is_none() => Surrogate::No,
                // what refers to a number that the server makes is a number
                Some(Surrogate::Reference) | Some(Surrogate::Generated)
                    if new_type.as_ref().is_some_and(|ty| !ty.is_integer()) =>
                {
                    Surrogate::No
                }
                known => known.unwrap_or(Surrogate::No),
            };
            let found = policy.capabilities(database, table, &column, surrogate);
            found.is_ok_and(|c| c.is_some())
        };
        let (behind, place) = split_place(&s, definition..s.end)?;
        check_expressions(&s, behind.clone(), |name| target.protected(name).is_some())?;
        if wanted.is_some() || is_claimed {
            let about = format!("the definition of column {column}");
            return refuse(&errors::ALTERATION, about);
        }
        self.keep(spec.start..behind.end);
        self.place(place.as_ref());
        Ok(())
    }
}

impl Alteration<'_> {
    /// A protected column's new definition, and a key that stands in it. What needs other cells or
    /// tokens is a migration's work.
    fn redefined(
        &self,
        s: &Reader,
        whole: Range<usize>,
        protected: ProtectedColumn,
    ) -> Planned<(DdlPiece, Option<OwnKey>)> {
        let (target, before) = (&self.target, protected.column);
        let (definition, place) = split_place(s, whole)?;
        let wanted = Wanted::as_before(s, definition, &protected.protection.capabilities)?;
        let new = column_definition(s, wanted, &target.collation)?;
        let column = new.column;
        // a number's width is the server's own on MariaDB, where none is said
        let family = s.request.settings.family;
        let sealed = protected.protection.sql_type;
        let is_renamed = !same_name(&column.name, &before.name);
        let checks = &protected.protection.checks;
        let mut own = checks.iter().filter(|check| check.in_column);
        // MySQL's constraints are the table's, and one more would be added
        let is_repeated = match column.checks.as_slice() {
            [] => true,
            [check] => own.any(|own| own == check),
            _ => false,
        };
        if !is_repeated || is_renamed && protected.protection.is_checked() {
            return Err(with_check(&before.name));
        }
        let nullable = column.nullable && before.key != KeyRole::Primary;
        // outside of strict mode a server makes values of NULLs
        let can_change_null = !is_renamed && s.request.settings.strict;
        let same_cells = column.sql_type.to_sql(family) == sealed.to_sql(family)
            && column.sql_type.collation == sealed.collation
            && (nullable == before.nullable || can_change_null)
            && column.on_update == before.on_update
            && column.invisible == before.invisible;
        match new.key {
            None => {}
            Some(OwnKey::Unique) if !is_renamed => {}
            Some(_) => {
                return Err(refused(
                    "a key in the definition of a protected column that is there: use ADD KEY",
                ));
            }
        }
        if !same_cells {
            let has_place = place.is_some();
            let table = &target.table;
            return Err(modification(table, before, &column, has_place, family));
        }
        let null = nullable.then_some(DefaultLiteral::Null);
        let piece = DdlPiece::Redefine(Redefined {
            index: protected.index,
            name: column.name,
            nullable,
            default: column.default.or(null),
            comment: column.comment.unwrap_or_default(),
            explicit_collation: column.explicit_collation,
            drops_check: column.checks.is_empty() && checks.iter().any(|check| check.in_column),
            place,
        });
        Ok((piece, new.key))
    }
}

/// A column with a CHECK stays as it is.
fn with_check(column: &str) -> Refusal {
    refused(&format!("column {column}, over which there is a CHECK"))
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
