//! The body of a `CREATE TABLE`: what stands in the parentheses.

use std::ops::Range;

use onionskin_schema::{Capabilities, Check, KeyActions, NewColumn, same_name};
use onionskin_value::Family;

use super::attributes::{Attributes, check_expressions};
use super::check;
use super::column::{OwnKey, column_definition, protection};
use super::column_type::plain_type;
use super::foreign_key::{self, Actions, Side, ThisTable};
use super::index::{IndexNames, UniqueElement, is_key_element, key_element, unique_element};
use super::key_length::PlainPart;
use super::key_parts::{Indexed, ProtectedPart};
use super::options::Partitions;
use super::reader::Reader;
use super::tenant::{self, TenantColumn};
use super::{DdlPiece, Pieces, Prefixed, Reference, schema_refusal};
use crate::errors::{self, NotUnderstood, Refusal};
use crate::planner::{Planned, identifier, refuse};

/// An element of the body.
struct Element {
    tokens: Range<usize>,
    kind: ElementKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ElementKind {
    /// Which of the new protected columns.
    Protected(usize),
    Plain,
    ForeignKey,
    /// An index, or a constraint that is no foreign key.
    Key,
    /// A CHECK over one of the new protected columns, by its number among those of the column.
    Check {
        column: usize,
        number: usize,
    },
}

impl Element {
    fn is_column(&self) -> bool {
        matches!(self.kind, ElementKind::Protected(_) | ElementKind::Plain)
    }
}

/// The elements of a new table, and the protected columns among them.
pub(super) struct Body<'a> {
    r: &'a Reader<'a>,
    /// The names of the database and of the table.
    names: (&'a str, &'a str),
    /// The collation of columns that name none.
    collation: String,
    elements: Vec<Element>,
    pub(super) columns: Vec<NewColumn>,
    /// Keys in the definitions of protected columns.
    own_keys: Vec<(OwnKey, usize)>,
    /// Which of the protected columns say NULL.
    say_null: Vec<usize>,
    /// Which of them only a wildcard protects.
    by_wildcard: Vec<usize>,
    /// Columns stay plaintext because of their foreign keys.
    pub(super) rests_on_keys: bool,
}

impl<'a> Body<'a> {
    /// Reads the list between the parentheses. `keeps_keys`: the table is of a kind whose foreign
    /// keys the server keeps. The definitions of plain columns and the keys are read in
    /// [`Self::write`].
    pub(super) fn read(
        r: &'a Reader<'a>,
        list: Range<usize>,
        names: (&'a str, &'a str),
        collation: String,
        keeps_keys: bool,
    ) -> Planned<Self> {
        let mut body = Body {
            r,
            names,
            collation,
            elements: Vec::new(),
            columns: Vec::new(),
            own_keys: Vec::new(),
            say_null: Vec::new(),
            by_wildcard: Vec::new(),
            rests_on_keys: false,
        };
        let elements = r.split(list);
        let surrogates = match keeps_keys {
            true => body.surrogates(&elements),
            false => Vec::new(),
        };
        let policy = r.request.policy;
        let claimed = |name: &String| policy.find(names.0, names.1, name).is_some();
        body.rests_on_keys = surrogates.iter().any(claimed);
        for tokens in elements {
            let kind = if !is_key_element(r, &tokens) {
                body.read_column(&tokens, &surrogates)?
            } else if foreign_key::begins(r, &tokens) {
                ElementKind::ForeignKey
            } else {
                ElementKind::Key
            };
            body.elements.push(Element { tokens, kind });
        }
        body.check_names()?;
        Ok(body)
    }

    /// Refuses a name twice. The server does not see it where one of the columns is protected.
    fn check_names(&self) -> Planned<()> {
        let name = |element: &Element| {
            let token = self.r.tokens.get(element.tokens.start)?;
            identifier(self.r.sql(), token)
        };
        let columns = self.elements.iter().filter(|e| e.is_column());
        let names: Vec<_> = columns.filter_map(|e| Some((name(e)?, e.kind))).collect();
        for (at, (name, kind)) in names.iter().enumerate() {
            let is_seen = |(other, before): &(String, ElementKind)| {
                let concerned = [*kind, *before].iter().any(|k| *k != ElementKind::Plain);
                concerned && same_name(other, name)
            };
            if names[..at].iter().any(is_seen) {
                return Err(Refusal::duplicate_column(name));
            }
        }
        Ok(())
    }

    /// The columns that refer to plaintext ones, so that a wildcard leaves them plaintext.
    fn surrogates(&self, elements: &[Range<usize>]) -> Vec<String> {
        let is_key = |e: &&Range<usize>| is_key_element(self.r, e);
        let (keys, columns): (Vec<_>, Vec<_>) = elements.iter().partition(is_key);
        let name = |tokens: &Range<usize>| {
            let first = self.r.tokens.get(tokens.start)?;
            identifier(self.r.sql(), first)
        };
        let columns: Vec<(String, &Range<usize>)> = columns
            .into_iter()
            .filter_map(|c| Some((name(c)?, c)))
            .collect();
        let links = foreign_key::links(self.r, keys.into_iter().cloned());
        let mut found: Vec<String> = Vec::new();
        // a column may refer to one of this table that refers to another
        loop {
            let ty = |tokens: &Range<usize>| plain_type(self.r, tokens.clone(), &self.collation);
            let plain = |name: &str| {
                let mut columns = columns.iter();
                let (name, tokens) = columns.find(|(other, _)| same_name(other, name))?;
                let is_auto = || {
                    let wanted = protection(self.r, (*tokens).clone(), self.names, name, false);
                    let is_plain = wanted.is_ok_and(|wanted| wanted.is_none());
                    is_plain && Attributes::read(self.r, (*tokens).clone()).auto_increment
                };
                (found.contains(name) || is_auto()).then(|| ty(tokens))?
            };
            let refers = |(name, tokens): &&(String, &Range<usize>)| {
                let ty = ty(tokens);
                let column = (name.as_str(), ty.as_ref());
                !found.contains(name)
                    && foreign_key::refers_to_plaintext(self.r, &links, self.names, column, plain)
            };
            match columns.iter().find(refers) {
                Some((name, _)) => found.push(name.clone()),
                None => return found,
            }
        }
    }

    fn read_column(
        &mut self,
        tokens: &Range<usize>,
        surrogates: &[String],
    ) -> Planned<ElementKind> {
        let Some(name) = self.r.tokens.get(tokens.start) else {
            return NotUnderstood::PartOf("an element", "the definition").refuse();
        };
        let Some(name) = identifier(self.r.sql(), name) else {
            return NotUnderstood::NameOf("a column").refuse();
        };
        let refers = surrogates.contains(&name);
        let wanted = protection(self.r, tokens.clone(), self.names, &name, refers)?;
        let Some(wanted) = wanted else {
            return Ok(ElementKind::Plain);
        };
        let definition = column_definition(self.r, wanted, &self.collation)?;
        let index = self.columns.len();
        self.own_keys.extend(definition.key.map(|key| (key, index)));
        self.say_null.extend(definition.says_null.then_some(index));
        self.by_wildcard
            .extend(definition.by_wildcard.then_some(index));
        self.columns.push(definition.column);
        Ok(ElementKind::Protected(index))
    }

    /// Completes the protected columns by what the keys say of them.
    pub(super) fn settle(&mut self) -> Planned<()> {
        self.form_key_groups();
        let keys = self.elements.iter();
        let keys = keys.filter(|e| e.kind == ElementKind::ForeignKey);
        let links = foreign_key::links(self.r, keys.map(|e| e.tokens.clone()));
        foreign_key::inherit_groups(self.r, &links, self.names, &mut self.columns);
        self.forbid_null_in_primary_key()?;
        self.settle_actions()?;
        self.settle_checks()?;
        for column in &self.columns {
            onionskin_schema::check_protectable(column, self.r.request.settings.family)
                .map_err(|e| schema_refusal(&e))?;
        }
        self.check_tenant()
    }

    /// Refuses KEY BY of a column that cannot say whose a row is.
    fn check_tenant(&self) -> Planned<()> {
        let found = |name: &str| {
            let element = self.column(name)?;
            let tokens = || element.tokens.clone();
            Some(TenantColumn {
                is_protected: element.kind != ElementKind::Plain,
                is_generated: Attributes::read(self.r, tokens()).generated.is_some(),
                ty: plain_type(self.r, tokens(), &self.collation),
            })
        };
        if let Some(said) = tenant::tenant(&self.columns, None, found)? {
            for element in &self.elements {
                tenant::check_element(self.r, element.tokens.clone(), said)?;
            }
        }
        Ok(())
    }

    /// The definition of a column.
    fn column(&self, name: &str) -> Option<&Element> {
        let mut columns = self.elements.iter().filter(|e| e.is_column());
        columns.find(|e| {
            let first = self.r.tokens.get(e.tokens.start);
            let first = first.and_then(|t| identifier(self.r.sql(), t));
            first.is_some_and(|n| same_name(&n, name))
        })
    }

    /// Gives keys that a wildcard has protected a join group each, so that foreign keys can refer
    /// to them.
    fn form_key_groups(&mut self) {
        let in_keys: Vec<String> = self.unique_elements().flat_map(|key| key.columns).collect();
        for index in self.by_wildcard.iter().copied() {
            let is_own = self.own_keys.iter().any(|(_, key)| *key == index);
            let column = &mut self.columns[index];
            let is_key = is_own || in_keys.iter().any(|name| same_name(name, &column.name));
            let has_tokens =
                column.capabilities.has_whole_tokens() && !column.sql_type.is_enumerated();
            if is_key && has_tokens && column.capabilities.join.is_none() {
                column.capabilities.join = Some(Capabilities::new_key_group(index));
            }
        }
    }

    fn unique_elements(&self) -> impl Iterator<Item = UniqueElement> {
        let keys = self.elements.iter();
        let keys = keys.filter(|e| e.kind == ElementKind::Key);
        keys.filter_map(|e| unique_element(self.r, e.tokens.clone()))
    }

    /// Finds the actions of foreign keys that the server cannot do.
    fn settle_actions(&mut self) -> Planned<()> {
        let mut said: Vec<(usize, KeyActions)> = Vec::new();
        let keys = self.elements.iter();
        let keys = keys.filter(|e| e.kind == ElementKind::ForeignKey);
        for tokens in keys.map(|e| &e.tokens) {
            let written = Actions::of(self.r, tokens);
            let indexes = |written: &Actions| -> Vec<Option<usize>> {
                let names = written.columns.iter();
                names.map(|name| self.position(name)).collect()
            };
            // between unprotected columns it is the server's
            let Some((written, indexes)) =
                written.ok().map(|w| (indexes(&w), w)).map(|(i, w)| (w, i))
            else {
                continue;
            };
            if indexes.iter().all(Option::is_none) {
                continue;
            }
            let nullable = |index: &Option<usize>| index.map(|i| self.columns[i].nullable);
            written.check(&indexes.iter().map(nullable).collect::<Vec<_>>())?;
            let Some(first) = indexes[0] else {
                continue;
            };
            let mut before = said.iter().filter(|(index, _)| *index == first);
            if before.any(|(_, actions)| *actions != written.actions) {
                return written.refuse("beside another key over the same column");
            }
            said.push((first, written.actions));
        }
        for (index, actions) in said {
            self.columns[index].actions = actions;
        }
        Ok(())
    }

    /// Finds the CHECK constraints over protected columns, and what they say.
    fn settle_checks(&mut self) -> Planned<()> {
        for element in &mut self.elements {
            if element.kind != ElementKind::Key {
                continue;
            }
            let tokens = element.tokens.clone();
            let mut reader = Reader::over(self.r.request, self.r.tokens, tokens);
            let Some(check) = check::Written::read(&mut reader) else {
                continue;
            };
            let names = |column: &NewColumn| check.names(self.r, &column.name);
            let Some(index) = self.columns.iter().position(names) else {
                continue;
            };
            let column = &mut self.columns[index];
            if !reader.done() {
                let why = "something behind its parentheses";
                return Err(check::refused(&column.name, why));
            }
            let family = self.r.request.settings.family;
            let name = check.name.as_deref().unwrap_or(self.names.1);
            check::check_name(&column.name, name, family)?;
            let condition = check::condition(self.r, check.inside, column)?;
            element.kind = ElementKind::Check {
                column: index,
                number: column.checks.len(),
            };
            column.checks.push(Check {
                condition,
                in_column: false,
                unenforced: check.unenforced,
            });
        }
        for column in &self.columns {
            check::check_number(column)?;
            check::check_own_names(column, self.names.1, self.r.request.settings.family)?;
        }
        Ok(())
    }

    /// Columns of a primary key are NOT NULL. MySQL takes none that says NULL, be it beside NOT
    /// NULL.
    fn forbid_null_in_primary_key(&mut self) -> Planned<()> {
        let is_mysql = self.r.request.settings.family == Family::MySql;
        let keys: Vec<UniqueElement> = self.unique_elements().collect();
        for key in keys.iter().filter(|key| key.is_primary) {
            for (index, column) in self.columns.iter_mut().enumerate() {
                if !key.columns.iter().any(|name| same_name(name, &column.name)) {
                    continue;
                }
                if is_mysql && self.say_null.contains(&index) {
                    let about = format!("column {}: NULL in a PRIMARY KEY", column.name);
                    return refuse(&errors::DEFINITION, about);
                }
                column.nullable = false;
            }
        }
        Ok(())
    }

    /// Writes the elements. Returns the columns of other tables that foreign keys refer to.
    pub(super) fn write(&self, out: &mut Pieces) -> Planned<Vec<Reference>> {
        let this = ThisTable {
            names: self.names,
            column: &|name| {
                let column = self.position(name)?;
                Some(Side::new(&self.columns[column], column))
            },
        };
        let mut references = Vec::new();
        let mut index_names = IndexNames::of_new_table();
        let lookup = |name: &str| self.indexed(name);
        for (i, Element { tokens, kind }) in self.elements.iter().enumerate() {
            if i > 0 {
                out.sql(b", ");
            }
            match kind {
                ElementKind::Protected(column) => {
                    out.0.push(DdlPiece::Definitions(*column));
                    self.write_own_keys(*column, &mut index_names, out)?;
                }
                ElementKind::ForeignKey => {
                    foreign_key::foreign_key(self.r, tokens, &this, &mut references, out)?;
                }
                ElementKind::Check { column, number } => {
                    let mut reader = Reader::over(self.r.request, self.r.tokens, tokens.clone());
                    let head = check::Written::read(&mut reader).map(|check| check.head);
                    out.sql(self.r.text(head.unwrap_or_default()));
                    out.sql(b" ");
                    let (column, number) = (*column, *number);
                    out.0.push(DdlPiece::Check { column, number });
                }
                ElementKind::Key => {
                    key_element(self.r, tokens.clone(), &lookup, &mut index_names, out)?;
                }
                ElementKind::Plain => {
                    // generated columns and defaults must not read protected ones
                    let is_protected = |name: &str| self.position(name).is_some();
                    check_expressions(self.r, tokens.clone(), is_protected)?;
                    out.sql(self.r.text(tokens.clone()));
                }
            }
        }
        Ok(references)
    }

    /// Partitions must not read protected columns. Rows that are spread by tokens would lie in
    /// other partitions than on a plain server.
    pub(super) fn check_partitions(&self, partitions: &Partitions) -> Planned<()> {
        let is_protected = |name: &str| self.position(name).is_some();
        let mut in_keys = self.unique_elements().flat_map(|key| key.columns);
        let has_own_key = !self.own_keys.is_empty() || in_keys.any(|name| is_protected(&name));
        partitions.check(is_protected, has_own_key)
    }

    /// Writes the key that stands in the definition of a protected column, behind the column:
    /// servers look at unique keys in the order in which they are defined, and make up names in
    /// that order.
    fn write_own_keys(
        &self,
        index: usize,
        index_names: &mut IndexNames,
        out: &mut Pieces,
    ) -> Planned<()> {
        for (key, _) in self.own_keys.iter().filter(|(_, of)| *of == index) {
            let column = &self.columns[index];
            let name = column.index_column_name(true);
            name.map_err(|e| schema_refusal(&e))?;
            match key {
                OwnKey::Primary => out.sql(b", PRIMARY KEY"),
                OwnKey::Unique => {
                    out.sql(b", UNIQUE KEY");
                    index_names.write_made_up(column.name.clone(), out);
                }
            }
            out.sql(b" (");
            out.0.push(DdlPiece::IndexColumn(index));
            out.sql(b")");
        }
        Ok(())
    }

    /// Writes the guards of CHECK constraints, behind all other elements: servers look at them
    /// last.
    pub(super) fn write_guards(&self, out: &mut Pieces) {
        for (index, column) in self.columns.iter().enumerate() {
            if !column.checks.is_empty() {
                out.sql(b", ");
                out.0.push(DdlPiece::Guard(index));
            }
        }
    }

    /// Which of the protected columns has this name.
    fn position(&self, name: &str) -> Option<usize> {
        let mut columns = self.columns.iter();
        columns.position(|c| same_name(&c.name, name))
    }

    /// What a name in an index means.
    fn indexed(&self, name: &str) -> Planned<Indexed> {
        if let Some(index) = self.position(name) {
            let column = &self.columns[index];
            let on = column.index_column_name(false);
            on.map_err(|e| schema_refusal(&e))?;
            return Ok(Indexed::Protected(ProtectedPart {
                name: column.name.clone(),
                on: Prefixed::New(index),
                not_unique: column.index_column_name(true).err(),
                ty: column.sql_type,
            }));
        }
        let part = self.column(name).map(|e| PlainPart {
            ty: plain_type(self.r, e.tokens.clone(), &self.collation),
            counts: Attributes::read(self.r, e.tokens.clone()).auto_increment,
        });
        Ok(Indexed::Plain(part.unwrap_or_default()))
    }
}
