//! What is known of an `ALTER TABLE` while its specifications are read, and what is made of it.

use std::ops::Range;
use std::sync::Arc;

use onionskin_schema::{Capabilities, Column, NewColumn, Protection, Surrogate, Table, same_name};
use onionskin_value::SqlType;

use super::specs::{Specification, Specifications, duplicate, refused};
use crate::ddl::attributes::Attributes;
use crate::ddl::column_type::plain_type;
use crate::ddl::foreign_key::{Link, Side, links, plain_by_right, refers_to_plaintext};
use crate::ddl::index::{IndexNames, unique_element};
use crate::ddl::key_length::PlainPart;
use crate::ddl::key_parts::{Indexed, ProtectedPart, existing};
use crate::ddl::reader::Reader;
use crate::ddl::{Pieces, Prefixed, Reference, schema_refusal};
use crate::errors;
use crate::lex::{LiteralKind, Token, TokenKind};
use crate::plan::KeptPlain;
use crate::planner::{Planned, identifier, refuse};
use crate::scope::position;
use crate::statement::is_one_of;

/// The statement and its table.
pub(super) struct Target<'a> {
    /// Stands behind the table's name.
    pub(super) r: Reader<'a>,
    /// The names of the database and of the table, as the statement has them.
    pub(super) names: (&'a str, &'a str),
    pub(super) table: Arc<Table>,
    /// The table is protected, or should be and is damaged.
    pub(super) is_near: bool,
    /// The collation of new columns that name none.
    pub(super) collation: String,
    pub(super) specs: &'a Specifications,
}

/// What is made of the statement.
pub(super) struct Alteration<'a> {
    pub(super) target: Target<'a>,
    pub(super) out: Pieces,
    pub(super) new_columns: Vec<NewColumn>,
    pub(super) index_names: IndexNames,
    pub(super) references: Vec<Reference>,
    /// Names that columns have got so far, and whether these are protected.
    pub(super) names_taken: Vec<(String, bool)>,
    /// How many specifications have been read.
    pub(super) specs_read: usize,
    /// A new column stays plaintext because of its foreign key.
    pub(super) rests_on_keys: bool,
    /// New names of plaintext columns that stay so by right.
    pub(super) renamed_plain: Vec<(String, String)>,
}

/// A protected column of the table.
#[derive(Clone, Copy)]
pub(super) struct ProtectedColumn<'t> {
    /// Its place among the table's columns.
    pub(super) index: usize,
    pub(super) column: &'t Column,
    pub(super) protection: &'t Protection,
}

impl<'a> Target<'a> {
    pub(super) fn sql(&self) -> &'a [u8] {
        self.r.sql()
    }

    pub(super) fn tokens(&self, range: &Range<usize>) -> &'a [Token] {
        &self.r.tokens[range.clone()]
    }

    /// The protected column of this name.
    pub(super) fn protected(&self, name: &str) -> Option<ProtectedColumn<'_>> {
        let index = position(&self.table, name)?;
        let column = &self.table.columns[index];
        let protection = column.protection.as_ref()?;
        Some(ProtectedColumn {
            index,
            column,
            protection,
        })
    }

    /// Whether any of these words is the name of a protected column.
    pub(super) fn mentions_protected(&self, range: &Range<usize>) -> bool {
        let mut names = self.names_in(range);
        names.any(|name| self.protected(&name).is_some())
    }

    /// All names that stand in a range of tokens; keywords may be names as well.
    pub(super) fn names_in(&self, range: &Range<usize>) -> impl Iterator<Item = String> + use<'a> {
        let sql = self.sql();
        self.tokens(range)
            .iter()
            .filter_map(move |t| identifier(sql, t))
    }

    /// A protected column of the table as a foreign key sees it.
    pub(super) fn side(&self, name: &str) -> Option<Side> {
        if self.specs.drops(name) {
            return None;
        }
        Side::existing(&self.table, position(&self.table, name)?)
    }

    /// What a name in an index means, where the statement has added these columns before.
    pub(super) fn indexed(&self, name: &str, new_columns: &[NewColumn]) -> Planned<Indexed> {
        let added = new_columns.iter().position(|c| same_name(&c.name, name));
        if let Some(new) = added {
            let column = &new_columns[new];
            let on = column.index_column_name(false);
            on.map_err(|e| schema_refusal(&e))?;
            return Ok(Indexed::Protected(ProtectedPart {
                name: new_columns[new].name.clone(),
                on: Prefixed::New(new),
                not_unique: column.index_column_name(true).err(),
                ty: column.sql_type,
            }));
        }
        if self.specs.drops(name) {
            return Ok(Indexed::Plain(self.added(name).unwrap_or_default()));
        }
        Ok(match existing(&self.table, name)? {
            Indexed::Plain(PlainPart { ty: None, .. }) => {
                Indexed::Plain(self.added(name).unwrap_or_default())
            }
            known => known,
        })
    }

    /// Whether a primary or unique key that the statement adds has this column.
    pub(super) fn is_in_new_key(&self, name: &str) -> bool {
        self.specs.list.iter().any(|spec| {
            let mut s = Reader::over(self.r.request, self.r.tokens, spec.tokens.clone());
            let adds = s.eat("add") || spec.is_element;
            let key = adds.then(|| unique_element(&self.r, s.at..s.end));
            key.flatten()
                .is_some_and(|key| key.columns.iter().any(|column| same_name(column, name)))
        })
    }

    /// Whether the column is a key's in a group of its own, which only a wildcard gives.
    pub(super) fn is_in_own_group(&self, column: ProtectedColumn<'_>) -> bool {
        let protection = column.protection;
        let group = |table_id| Capabilities::key_group(table_id, protection.column_id);
        let own = self.table.table_id.map(group);
        own.is_some() && protection.capabilities.join == own
    }

    /// A plain column that the statement adds.
    fn added(&self, name: &str) -> Option<PlainPart> {
        self.specs.list.iter().find_map(|spec| {
            let mut s = Reader::over(self.r.request, self.r.tokens, spec.tokens.clone());
            s.eat("add");
            s.eat("column");
            let definition = s.at..s.end;
            let is_it = s.name().is_some_and(|n| same_name(&n, name));
            is_it.then(|| PlainPart {
                ty: plain_type(&self.r, definition.clone(), &self.collation),
                counts: Attributes::read(&self.r, definition).auto_increment,
            })
        })
    }

    /// Whether the statement adds a foreign key by which a column of this name refers to one that
    /// stays plaintext.
    pub(super) fn refers_to_plaintext(&self, column: &str, ty: Option<&SqlType>) -> bool {
        let plain = |name: &str| plain_by_right(&self.r, &self.table, name);
        refers_to_plaintext(&self.r, &self.links(), self.names, (column, ty), plain)
    }

    /// The pairs of columns of the foreign keys that the statement adds.
    pub(super) fn links(&self) -> Vec<Link> {
        // another engine would leave them out
        let names_engine = |spec: &Specification| {
            let s = Reader::over(self.r.request, self.r.tokens, spec.tokens.clone());
            s.is("engine") && !s.says(spec.tokens.clone(), "innodb")
        };
        if self.specs.list.iter().any(names_engine) {
            return Vec::new();
        }
        let elements = self.specs.list.iter().map(|spec| {
            let mut s = Reader::over(self.r.request, self.r.tokens, spec.tokens.clone());
            s.eat("add");
            s.at..s.end
        });
        links(&self.r, elements)
    }

    /// Refuses a name for an unprotected column that `[protect]` gives to a protected one: the
    /// column would look like one, and stay plaintext.
    pub(super) fn check_unclaimed(&self, old: &str, new: &str) -> Planned<()> {
        let (database, table) = self.names;
        let is = self.table.column(old).map(Column::surrogate);
        let is = is.unwrap_or(Surrogate::No);
        let claims = |column: &str, surrogate| {
            let policy = self.r.request.policy;
            let capabilities = policy.capabilities(database, table, column, surrogate);
            // what cannot be read is no reason to let it pass
            capabilities.map_or(true, |c| c.is_some())
        };
        if claims(new, is) && !claims(old, is) {
            let about = format!(
                "the name {new}, which [protect] has for a protected column; encrypt {old} first: onionskin migrate {database}.{table} --encrypt"
            );
            return refuse(&errors::ALTERATION, about);
        }
        Ok(())
    }
}

impl Alteration<'_> {
    /// Notes the new name of a column that stays plaintext because of a foreign key.
    pub(super) fn note_renamed(&mut self, old: &str, new: &str) {
        let column = self.target.table.column(old);
        if column.is_some_and(|c| c.protection.is_none() && c.refers_to_plaintext) {
            self.renamed_plain.push((old.to_owned(), new.to_owned()));
        }
    }

    /// The columns that an enforced wildcard leaves plaintext, and may have no reason any more to
    /// leave so when the statement is done.
    pub(super) fn kept_plain(&self) -> Vec<KeptPlain> {
        let Target {
            names, specs, r, ..
        } = &self.target;
        if !r.request.policy.enforces_in(names.0, names.1) {
            return Vec::new();
        }
        let columns = self.target.table.columns.iter();
        let plain = columns.filter(|c| c.protection.is_none() && c.refers_to_plaintext);
        let kept = plain.filter(|column| !specs.drops(&column.name));
        let kept = kept.map(|column| {
            let mut renamed = self.renamed_plain.iter();
            let new = renamed.find(|(old, _)| same_name(old, &column.name));
            KeptPlain {
                before: column.name.clone(),
                after: new.map_or_else(|| column.name.clone(), |(_, new)| new.clone()),
                dropped: specs.dropped_keys.clone(),
                drops_columns: specs.drops_columns(),
            }
        });
        kept.filter(|kept| {
            let is_renamed = !same_name(&kept.before, &kept.after);
            kept.drops_columns || !kept.dropped.is_empty() || is_renamed
        })
        .collect()
    }

    /// A column gets this name, which must be free.
    pub(super) fn take_name(&mut self, name: &str, is_protected: bool) -> Planned<()> {
        let target = &self.target;
        target.specs.free_name(&target.table, name, is_protected)?;
        let mut taken = self.names_taken.iter();
        if taken.any(|(other, p)| (is_protected || *p) && same_name(other, name)) {
            return Err(duplicate(name));
        }
        if is_protected {
            self.must_not_be_used(name)?;
        }
        self.names_taken.push((name.to_owned(), is_protected));
        Ok(())
    }

    /// Whether a protected column of the table has this name, or one that has got it so far.
    pub(super) fn is_protected(&self, name: &str) -> bool {
        let mut taken = self.names_taken.iter();
        self.target.protected(name).is_some() || taken.any(|(n, p)| *p && same_name(n, name))
    }

    /// Refuses an expression over a column that has got its name so far.
    pub(super) fn must_not_use_new_names(&self, spec: &Specification) -> Planned<()> {
        let is_new = |name: &str| {
            let mut taken = self
                .names_taken
                .iter()
                .filter(|(_, is_protected)| *is_protected);
            taken.any(|(other, _)| same_name(other, name))
        };
        match holds_expression(self.target.sql(), self.target.tokens(&spec.tokens), is_new) {
            true => Err(refused(
                "an expression over a column that this statement names so",
            )),
            false => Ok(()),
        }
    }

    /// Refuses an expression over a protected column that comes behind it: it has been written as
    /// it is.
    fn must_not_be_used(&self, name: &str) -> Planned<()> {
        let target = &self.target;
        let uses = |spec: &Specification| {
            let tokens = target.tokens(&spec.tokens);
            holds_expression(target.sql(), tokens, |other| same_name(other, name))
        };
        match target.specs.list.iter().take(self.specs_read).any(uses) {
            true => {
                let about = format!("an expression over {name} in front of that column");
                Err(refused(&about))
            }
            false => Ok(()),
        }
    }

    /// Writes a specification as it is, unless a protected column and a value stand in it: the
    /// server would see what a protected column is compared with. `DEFAULT n || 'x'` needs no
    /// parentheses on MariaDB.
    pub(super) fn keep_plain(&mut self, spec: Range<usize>) -> Planned<()> {
        self.must_be_plain(&spec)?;
        self.keep(spec);
        Ok(())
    }

    /// The same of one about partitions: these have names of their own, in front of the parentheses
    /// and in them.
    pub(super) fn keep_partitions(&mut self, spec: Range<usize>) -> Planned<()> {
        let tokens = self.target.tokens(&spec);
        if let Some(opens) = tokens.iter().position(|t| t.is(b'(')) {
            self.must_be_plain(&(spec.start + opens..spec.end))?;
        }
        self.keep(spec);
        Ok(())
    }

    fn must_be_plain(&self, range: &Range<usize>) -> Planned<()> {
        let (sql, tokens) = (self.target.sql(), self.target.tokens(range));
        let is_named = |pair: &[Token]| {
            let names_part = ["partition", "subpartition"];
            !names_part.iter().any(|word| pair[0].is_word(sql, word))
                && identifier(sql, &pair[1]).is_some_and(|name| self.is_protected(&name))
        };
        match tokens.iter().any(is_value) && tokens.windows(2).any(is_named) {
            true => Err(refused("an expression over a protected column")),
            false => Ok(()),
        }
    }

    /// Writes a specification as it is.
    pub(super) fn keep(&mut self, spec: Range<usize>) {
        self.out.sql(self.target.r.text(spec));
    }
}

pub(super) fn is_value(token: &Token) -> bool {
    matches!(token.kind, TokenKind::Literal(_))
}

/// Whether a specification has an expression with a value and one of these columns. Parts of keys,
/// types, and what stands behind AFTER are none.
fn holds_expression(sql: &[u8], tokens: &[Token], is_column: impl Fn(&str) -> bool) -> bool {
    const WORDS: [&str; 8] = [
        "check", "as", "order", "like", "rlike", "regexp", "in", "between",
    ];
    let is = |at: usize, words: &[&str]| tokens.get(at).is_some_and(|t| is_one_of(sql, t, words));
    let before = |at: usize, words: &[&str]| at > 0 && is(at - 1, words);
    // of each open parenthesis: whether it has the members of a type
    let mut open = Vec::new();
    let (mut is_named, mut is_expression) = (false, false);
    for (at, token) in tokens.iter().enumerate() {
        if token.is(b'(') {
            open.push(before(at, &["enum", "set"]));
        } else if token.is(b')') {
            open.pop();
        }
        let is_default = before(at, &["default"]) && !is_value(token);
        let is_text = token.kind == TokenKind::Literal(LiteralKind::String);
        is_expression |= is(at, &WORDS)
            || is_default
            || b"=<>!|+*/%&^~".iter().any(|sign| token.is(*sign))
            || (is_text && open.last() == Some(&false));
        if identifier(sql, token).is_some_and(|name| is_column(&name)) && !before(at, &["after"]) {
            is_named = true;
            // a part of a key stands in one parenthesis
            is_expression |= open.len() > 1;
        }
    }
    is_named && is_expression && tokens.iter().any(is_value)
}
