//! `ADD`: columns, indexes, constraints.

use std::ops::Range;

use onionskin_schema::{Capabilities, Table, same_name};

use super::alteration::Alteration;
use super::specs::refused;
use crate::ddl::attributes::check_expressions;
use crate::ddl::check;
use crate::ddl::column::{OwnKey, Wanted, column_definition, protection};
use crate::ddl::column_type::plain_type;
use crate::ddl::foreign_key::{self, Actions, Side, ThisTable};
use crate::ddl::index::{is_key_element, key_element, own_unique, unique_element};
use crate::ddl::reader::Reader;
use crate::ddl::{DdlPiece, schema_refusal};
use crate::errors;
use crate::planner::{Planned, identifier, quoted, refuse};

/// Where a new column goes, as in [`DdlPiece::Add`].
pub(super) type Place = Option<Option<String>>;

/// A protected column of a foreign key.
#[derive(Clone, Copy)]
enum Placed {
    /// Which of the new columns.
    New(usize),
    /// Which of the table's.
    Existing(usize),
}

impl Alteration<'_> {
    /// The reader stands behind ADD, if the specification has that word.
    pub(super) fn add_spec(&mut self, s: Reader) -> Planned<()> {
        let element = s.at..s.end;
        if foreign_key::begins(&s, &element) {
            self.add_foreign_key(&element)
        } else if is_key_element(&s, &element) {
            self.add_key(element)
        } else {
            self.add_column(s)
        }
    }

    fn add_foreign_key(&mut self, element: &Range<usize>) -> Planned<()> {
        self.out.sql(b"ADD ");
        let (target, new_columns) = (&self.target, &self.new_columns);
        let this = ThisTable {
            names: target.names,
            column: &|name| {
                let new = new_columns.iter().position(|c| same_name(&c.name, name));
                match new {
                    Some(new) => Some(Side::new(&new_columns[new], new)),
                    None => target.side(name),
                }
            },
        };
        let (references, out) = (&mut self.references, &mut self.out);
        foreign_key::foreign_key(&target.r, element, &this, references, out)?;
        self.keep_actions(element)
    }

    /// Keeps the actions that the server cannot do in the definition of the key's first column.
    fn keep_actions(&mut self, element: &Range<usize>) -> Planned<()> {
        let target = &self.target;
        let place = |name: &String| {
            let mut new = self.new_columns.iter();
            match new.position(|c| same_name(&c.name, name)) {
                Some(new) => Some(Placed::New(new)),
                None if target.specs.drops(name) => None,
                None => target.protected(name).map(|p| Placed::Existing(p.index)),
            }
        };
        let Ok(written) = Actions::of(&target.r, element) else {
            // between unprotected columns it is the server's
            return Ok(());
        };
        let places: Vec<_> = written.columns.iter().map(place).collect();
        if places.iter().all(Option::is_none) {
            return Ok(());
        }
        let nullable = |place: &Option<Placed>| match place {
            Some(Placed::New(new)) => Some(self.new_columns[*new].nullable),
            Some(Placed::Existing(index)) => Some(target.table.columns[*index].nullable),
            None => None,
        };
        written.check(&places.iter().map(nullable).collect::<Vec<_>>())?;
        let before = |index: usize| target.table.columns[index].protection.as_ref();
        match places.first().copied().flatten() {
            Some(Placed::New(new)) => self.new_columns[new].actions = written.actions,
            Some(Placed::Existing(index))
                if before(index).is_some_and(|p| p.actions != written.actions) =>
            {
                self.out.sql(b", ");
                self.out
                    .0
                    .push(DdlPiece::SetActions(index, written.actions));
            }
            _ => {}
        }
        Ok(())
    }

    /// An index, or a constraint that is no foreign key.
    fn add_key(&mut self, element: Range<usize>) -> Planned<()> {
        self.check_primary_key(&element)?;
        self.out.sql(b"ADD ");
        let lookup = |name: &str| self.target.indexed(name, &self.new_columns);
        let (names, out) = (&mut self.index_names, &mut self.out);
        key_element(&self.target.r, element, &lookup, names, out)
    }

    /// A primary key would make columns NOT NULL whose cells and tokens allow NULL.
    fn check_primary_key(&self, element: &Range<usize>) -> Planned<()> {
        let target = &self.target;
        let key = unique_element(&target.r, element.clone()).filter(|key| key.is_primary);
        let Some(key) = key else {
            return Ok(());
        };
        let is_new = |name: &str| {
            let mut new = self.new_columns.iter();
            new.any(|c| c.nullable && same_name(&c.name, name))
        };
        let allows_null = |name: &String| {
            is_new(name) || target.protected(name).is_some_and(|p| p.column.nullable)
        };
        match key.columns.into_iter().find(allows_null) {
            Some(name) => {
                let about =
                    format!("PRIMARY KEY over the protected column {name}, which allows NULL");
                refuse(&errors::ALTERATION, about)
            }
            None => Ok(()),
        }
    }

    /// The reader stands behind ADD.
    fn add_column(&mut self, mut s: Reader) -> Planned<()> {
        s.eat("column");
        let whole = s.at..s.end;
        let column = s.name().ok_or_else(|| refused("ADD"))?;
        let (definition, place) = split_place(&s, whole)?;
        let ty = plain_type(&s, definition.clone(), &self.target.collation);
        let refers = self.target.refers_to_plaintext(&column, ty.as_ref());
        let names = self.target.names;
        let wanted = protection(&s, definition.clone(), names, &column, refers)?;
        self.take_name(&column, wanted.is_some())?;
        match wanted {
            Some(wanted) => {
                let name = definition.start..definition.start + 1;
                self.add_protected_column(wanted, name, place)
            }
            None => {
                let policy = s.request.policy;
                self.rests_on_keys |= refers && policy.find(names.0, names.1, &column).is_some();
                self.add_plain_column(&definition, place)
            }
        }
    }

    fn add_plain_column(&mut self, definition: &Range<usize>, place: Place) -> Planned<()> {
        let is_protected = |name: &str| self.is_protected(name);
        check_expressions(&self.target.r, definition.clone(), is_protected)?;
        let this = ThisTable {
            names: self.target.names,
            column: &|name| self.target.side(name),
        };
        foreign_key::in_column(&self.target.r, definition, &this)?;
        self.out.sql(b"ADD COLUMN ");
        self.keep(definition.clone());
        self.place(place.as_ref());
        Ok(())
    }

    /// Writes where a plain column goes.
    pub(super) fn place(&mut self, place: Option<&Option<String>>) {
        match place {
            None => {}
            Some(None) => self.out.sql(b" FIRST"),
            Some(Some(after)) => {
                let after = after_text(&self.target.table, after);
                self.out.sql(after.as_bytes());
            }
        }
    }

    fn add_protected_column(
        &mut self,
        wanted: Wanted,
        name: Range<usize>,
        place: Place,
    ) -> Planned<()> {
        let target = &self.target;
        let mut definition = column_definition(&target.r, wanted, &target.collation)?;
        let this = ThisTable {
            names: target.names,
            column: &|name| target.side(name),
        };
        let column = &mut definition.column;
        let group = foreign_key::group_of_other(&target.r, &target.links(), &this, &column.name);
        if let Some(group) = group {
            foreign_key::join(&mut column.capabilities, group);
        }
        // so that foreign keys can refer to it, as in CREATE TABLE
        let has_tokens = column.capabilities.has_whole_tokens() && !column.sql_type.is_enumerated();
        let is_key = definition.key.is_some() || target.is_in_new_key(&column.name);
        if definition.by_wildcard && has_tokens && is_key && column.capabilities.join.is_none() {
            let group = Capabilities::new_key_group(self.new_columns.len());
            column.capabilities.join = Some(group);
        }
        if definition.key == Some(OwnKey::Primary) {
            return Err(refused(
                "a primary key in the definition of an added column",
            ));
        }
        let family = target.r.request.settings.family;
        check::check_own_names(&definition.column, target.names.1, family)?;
        onionskin_schema::check_protectable(&definition.column, family)
            .map_err(|e| schema_refusal(&e))?;
        self.out.0.push(DdlPiece::Add {
            column: self.new_columns.len(),
            place,
        });
        self.new_columns.push(definition.column);
        match definition.key {
            Some(_) => self.add_own_unique(name),
            None => Ok(()),
        }
    }

    /// The key of a column, with this name, that is UNIQUE by its own definition.
    pub(super) fn add_own_unique(&mut self, name: Range<usize>) -> Planned<()> {
        let lookup = |name: &str| self.target.indexed(name, &self.new_columns);
        let (names, out) = (&mut self.index_names, &mut self.out);
        own_unique(&self.target.r, name, &lookup, names, out)
    }
}

/// Cuts FIRST or AFTER off the end of a new column's definition.
pub(super) fn split_place(s: &Reader, whole: Range<usize>) -> Planned<(Range<usize>, Place)> {
    let (start, end) = (whole.start, whole.end);
    let is = |at: usize, word: &str| s.tokens[at].is_word(s.sql(), word);
    if end > start + 1 && is(end - 1, "first") {
        return Ok((start..end - 1, Some(None)));
    }
    if end > start + 2 && is(end - 2, "after") {
        let column = identifier(s.sql(), &s.tokens[end - 1]).ok_or_else(|| refused("AFTER"))?;
        return Ok((start..end - 2, Some(Some(column))));
    }
    Ok((whole, None))
}

fn after_text(table: &Table, after: &str) -> String {
    let physical = table
        .column(after)
        .map_or(after, onionskin_schema::alter::place_name);
    format!(" AFTER {}", quoted(physical))
}
