//! `ALTER TABLE`: added, dropped and renamed columns, defaults, indexes, harmless options.
//!
//! `specs.rs` takes the statement apart, `alteration.rs` is what its parts share. `add.rs` reads
//! what is new, `change.rs` what becomes of columns that are there, and `migration.rs` names the
//! command for what no statement can do. `refit.rs` finds the columns that are made anew for a
//! foreign key.

mod add;
mod alteration;
mod change;
mod migration;
mod refit;
mod specs;

use std::ops::Range;
use std::sync::Arc;

use onionskin_schema::{KeyRole, Surrogate, Table, same_name};

use self::alteration::{Alteration, Target};
use self::specs::{Beside, Specification, Specifications, refused};
use super::attributes::Attributes;
use super::collation::default_of;
use super::index::{IndexNames, is_key_element};
use super::options::{Partitions, versioned};
use super::reader::Reader;
use super::tenant::{self, TenantColumn};
use super::{
    Ddl, DdlPiece, Decided, Pieces, check_names, define, foreign_key, has_encrypted,
    inline_reference, planned_anew,
};
use crate::errors::{self, Refusal};
use crate::lex::{Token, TokenKind};
use crate::plan::Action;
use crate::planner::{Known, Planned, Request, identifier, refuse};

/// What stands before the specifications.
struct Head {
    ignores: bool,
    database: Option<String>,
    table: String,
}

/// Plans it.
pub(crate) fn alter_table<'a>(
    request: &'a Request<'a>,
    tokens: Vec<Token>,
    near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    let mut r = Reader::whole(request, &tokens);
    let head = head(&mut r)?;
    let Some(database) = &head.database else {
        return Ok((Action::Relay, None));
    };
    let names = (database.as_str(), head.table.as_str());
    let Some(table) = concerned_table(&r, names, &near)? else {
        return Ok((Action::Relay, None));
    };
    if head.ignores {
        return Err(refused("IGNORE"));
    }
    check_sound(names, &table, &near)?;
    if tokens.iter().any(|t| t.kind == TokenKind::Executable) {
        return refuse(&errors::EXECUTABLE_COMMENT, "");
    }
    check_names(request.sql, &tokens)?;
    let is_it = |t: &Arc<Table>| same_name(&t.name, names.1) && same_name(&t.database, names.0);
    let specs = Specifications::read(&r, r.at..r.end, &table)?;
    let defined = specs.list.iter().filter_map(|spec| spec.defined(&r));
    if let Some(text) = inline_reference::as_elements(&r, defined) {
        let action = planned_anew(request, &text, |request, tokens| {
            Ok(alter_table(request, tokens, near)?.0)
        })?;
        return Ok((action, None));
    }
    let target = Target {
        names,
        is_near: near.iter().any(is_it),
        table,
        collation: default_of(request, names.0, Some(names.1)),
        specs: &specs,
        r,
    };
    if let Some(refit) = refit::refit(&target) {
        return Ok((Action::Refit(Box::new(refit)), None));
    }
    let mut alteration = Alteration::of(target);
    for (i, spec) in specs.list.iter().enumerate() {
        if i > 0 {
            let between: &[u8] = if spec.is_joined { b" " } else { b", " };
            alteration.out.sql(between);
        }
        let read = alteration.specification(spec);
        alteration.specs_read += 1;
        if let Err(refusal) = read {
            let target = &alteration.target;
            // a table without rows needs no migration, and may have AUTO_INCREMENT
            let is_auto = target.r.says(spec.tokens.clone(), "auto_increment");
            let is_for_rows =
                refusal.is(&errors::MIGRATION) || (is_auto && refusal.is(&errors::DEFINITION));
            let refit = is_for_rows.then(|| refit::redefined(target, &refusal));
            return match refit.flatten() {
                Some(refit) => Ok((Action::Refit(Box::new(refit)), None)),
                None => Err(refusal),
            };
        }
    }
    alteration.planned()
}

/// What foreign keys an ALTER TABLE adds.
pub(crate) struct AddedKeys {
    /// The table.
    pub(crate) table: Arc<Table>,
    /// Its plaintext columns that refer to surrogate keys then.
    pub(crate) surrogates: Vec<String>,
    /// The statement does nothing else.
    pub(crate) alone: bool,
}

/// The foreign keys that an ALTER TABLE adds; `None` of anything else, and of a statement that is
/// not understood.
pub(crate) fn added_keys(request: &Request, tokens: &[Token]) -> Option<AddedKeys> {
    let mut r = Reader::whole(request, tokens);
    let head = head(&mut r).ok()?;
    let database = head.database.as_ref()?;
    let Known::Table(table) = request.catalog.table(database, &head.table) else {
        return None;
    };
    let specs = Specifications::read(&r, r.at..r.end, &table).ok()?;
    let names = (database.as_str(), head.table.as_str());
    let begins = |spec: &Specification| {
        let mut s = Reader::over(request, tokens, spec.tokens.clone());
        s.eat("add") && foreign_key::begins(&s, &(s.at..s.end))
    };
    let alone = specs.list.iter().all(begins);
    let target = Target {
        names,
        is_near: true,
        table: Arc::clone(&table),
        collation: default_of(request, names.0, Some(names.1)),
        specs: &specs,
        r,
    };
    let plain = table.columns.iter().filter(|c| c.protection.is_none());
    let surrogates = plain
        .filter(|c| target.refers_to_plaintext(&c.name, c.sql_type.as_ref()))
        .map(|c| c.name.clone())
        .collect();
    Some(AddedKeys {
        table,
        surrogates,
        alone,
    })
}

/// Reads up to the table's name.
fn head(r: &mut Reader) -> Planned<Head> {
    r.eat("alter");
    let mut ignores = false;
    while !r.done() && !r.eat("table") {
        ignores |= r.is("ignore");
        r.at += 1;
    }
    // MySQL does not have it, and says so
    if r.eat("if") {
        r.eat("exists");
    }
    let (database, table) = r.table().ok_or_else(|| refused("the table's name"))?;
    Ok(Head {
        ignores,
        database,
        table,
    })
}

/// The table, if the statement has to be read. The reader stands behind its name.
fn concerned_table(
    r: &Reader,
    names: (&str, &str),
    near: &[Arc<Table>],
) -> Planned<Option<Arc<Table>>> {
    let request = r.request;
    let is_claimed = request.policy.concerns(names.0, names.1);
    if !is_claimed && near.is_empty() && !has_encrypted(r.sql(), r.tokens) {
        return Ok(None);
    }
    match request.catalog.table(names.0, names.1) {
        Known::Table(table) => return Ok(Some(table)),
        // one that appears in this moment could exchange a partition with a protected table
        _ if !near.is_empty() => {
            let about = "a table that is not known, beside a protected one";
            return Err(refused(about));
        }
        _ if is_claimed => check_unknown(r, names)?,
        _ => {}
    }
    Ok(None)
}

/// Refuses new names of columns that `[protect]` gives to protected ones, in a table that is not
/// known: it may be a temporary one, which only the server sees. The reader stands behind the
/// table's name.
fn check_unknown(r: &Reader, (database, table): (&str, &str)) -> Planned<()> {
    let comment = r.tokens.iter().any(|t| t.kind == TokenKind::Executable);
    if comment {
        return refuse(&errors::EXECUTABLE_COMMENT, "");
    }
    for spec in r.split(r.at..r.end) {
        for (name, surrogate) in new_names(r, spec) {
            let policy = r.request.policy;
            let found = policy.capabilities(database, table, &name, surrogate);
            // what cannot be read is no reason to let it pass
            if found.map_or(true, |c| c.is_some()) {
                let about = format!(
                    "the column {name}, which [protect] protects, in a table whose columns are not known: a temporary one must have it from the beginning"
                );
                return refuse(&errors::ALTERATION, about);
            }
        }
    }
    Ok(())
}

/// The names that a specification gives to columns.
fn new_names(r: &Reader, spec: Range<usize>) -> Vec<(String, Surrogate)> {
    let mut s = Reader::over(r.request, r.tokens, spec);
    if Beside::of(&s).is_some() {
        return Vec::new();
    }
    if s.eat_words(&["rename", "column"]) || s.is("change") {
        let is_change = s.eat("change");
        s.eat("column");
        s.eat_words(&["if", "exists"]);
        s.name();
        s.eat("to");
        let definition = s.at..s.end;
        let surrogate = match is_change {
            true => surrogate(&s, definition),
            false => Surrogate::No,
        };
        return s.name().map(|name| (name, surrogate)).into_iter().collect();
    }
    if !s.eat("add") {
        return Vec::new();
    }
    s.eat("column");
    s.eat_words(&["if", "not", "exists"]);
    let whole = s.at..s.end;
    let elements = match s.parenthesized() {
        Some(inside) => s.split(inside),
        None => std::iter::once(whole).collect(),
    };
    let columns = elements.into_iter().filter(|e| !is_key_element(r, e));
    let named = columns.filter_map(|element| {
        let first = r.tokens.get(element.start)?;
        Some((identifier(r.sql(), first)?, surrogate(r, element)))
    });
    named.collect()
}

fn surrogate(r: &Reader, definition: Range<usize>) -> Surrogate {
    match Attributes::read(r, definition).auto_increment {
        true => Surrogate::AutoIncrement,
        false => Surrogate::No,
    }
}

/// Refuses damaged tables.
fn check_sound(
    (database, name): (&str, &str),
    table: &Arc<Table>,
    near: &[Arc<Table>],
) -> Planned<()> {
    let is_damaged = |t: &&Arc<Table>| t.damaged.is_some() && !Arc::ptr_eq(t, table);
    if let Some(other) = near.iter().find(is_damaged) {
        let about = format!("{}.{}", other.database, other.name);
        return refuse(&errors::DAMAGED, about);
    }
    match &table.damaged {
        Some(reason) => refuse(&errors::DAMAGED, format!("{database}.{name} ({reason})")),
        None => Ok(()),
    }
}

/// Options that are about no column and no other table, with a value. The default character set and
/// collation are those of columns to come: columns that exist keep theirs.
const FINE: [&str; 17] = [
    "charset",
    "collate",
    "engine",
    "row_format",
    "auto_increment",
    "comment",
    "algorithm",
    "lock",
    "key_block_size",
    "stats_persistent",
    "stats_auto_recalc",
    "stats_sample_pages",
    "checksum",
    "max_rows",
    "min_rows",
    "avg_row_length",
    "compression",
];

/// The same, in two words or without a value.
const FINE_WORDS: [&[&str]; 3] = [&["force"], &["enable", "keys"], &["disable", "keys"]];

impl<'a> Alteration<'a> {
    fn of(target: Target<'a>) -> Self {
        let mut out = Pieces::default();
        out.sql(target.r.text(0..target.r.at));
        out.sql(b" ");
        out.0.push(DdlPiece::Renew);
        let freed = target.specs.freed.clone();
        Alteration {
            target,
            out,
            new_columns: Vec::new(),
            index_names: IndexNames::of_table(freed),
            references: Vec::new(),
            names_taken: Vec::new(),
            specs_read: 0,
            rests_on_keys: false,
            renamed_plain: Vec::new(),
        }
    }

    /// Reads a specification and writes what becomes of it.
    fn specification(&mut self, spec: &Specification) -> Planned<()> {
        let tokens = spec.tokens.clone();
        self.must_not_use_new_names(spec)?;
        self.must_keep_tenant(spec)?;
        let mut s = Reader::over(self.target.r.request, self.target.r.tokens, tokens.clone());
        if let Some(beside) = Beside::of(&s).filter(|_| !spec.is_element) {
            self.beside_spec(beside, s, tokens)
        } else if spec.is_element || s.eat("add") {
            self.add_spec(s)
        } else if s.eat("drop") {
            self.drop_spec(s, tokens)
        } else if s.eat("rename") {
            self.rename_spec(s, tokens)
        } else if s.eat("alter") {
            self.alter_spec(s, tokens)
        } else if s.is("modify") || s.is("change") {
            self.modify_spec(s, tokens)
        } else if s.is("convert") {
            self.convert_spec(tokens)
        } else {
            self.other_spec(s, tokens)
        }
    }

    /// Refuses to change the column that KEY BY names, or to have a foreign key change it.
    fn must_keep_tenant(&self, spec: &Specification) -> Planned<()> {
        let Target { r, table, .. } = &self.target;
        let Some(said) = table.tenant() else {
            return Ok(());
        };
        tenant::check_element(r, spec.tokens.clone(), said)?;
        let mut s = Reader::over(r.request, r.tokens, spec.tokens.clone());
        if s.is("convert") {
            return Err(tenant::unchangeable(said));
        }
        let changes = ["drop", "rename", "alter", "modify", "change"];
        if !changes.iter().any(|word| s.eat(word)) {
            return Ok(());
        }
        s.eat("column");
        s.eat_words(&["if", "exists"]);
        let is_tenant = s.name().is_some_and(|name| same_name(&name, &said.column));
        match is_tenant {
            true => Err(tenant::unchangeable(said)),
            false => Ok(()),
        }
    }

    /// Refuses KEY BY of a column that cannot say whose a row is.
    fn check_tenant(&self) -> Planned<()> {
        let table = &self.target.table;
        let found = |name: &str| {
            let column = table.column(name)?;
            Some(TenantColumn {
                is_protected: column.protection.is_some(),
                is_generated: column.generated,
                ty: column.sql_type,
            })
        };
        let mut said = self.new_columns.iter();
        let is_said = said.any(|column| column.capabilities.tenant.is_some());
        if is_said && table.tenant().is_none() {
            // what gives rows another tenant there is looked at by a migration
            let about = "KEY BY in a table that has none: add the column without it, and run \
                         onionskin migrate TABLE --add \"COLUMN: key_by:TENANT\"";
            return Err(refused(about));
        }
        if !self.new_columns.is_empty() {
            tenant::tenant(&self.new_columns, Some(table), found)?;
        }
        Ok(())
    }

    /// Partitions, versions, files.
    fn beside_spec(&mut self, beside: Beside, mut s: Reader, spec: Range<usize>) -> Planned<()> {
        match beside {
            Beside::Harmless => {}
            Beside::PartitionBy => {
                let partitions = Partitions::read(&mut s)?;
                let is_protected = |name: &str| self.is_protected(name);
                let mut protected = self.target.table.protected_columns();
                let has_own_key = protected.any(|(column, _)| column.key != KeyRole::None);
                partitions.check(is_protected, has_own_key)?;
            }
            Beside::Versioning if self.target.table.is_protected() => {
                return versioned(&errors::ALTERATION);
            }
            Beside::Versioning => {}
            Beside::Refused(name) => return Err(Beside::refusal(name)),
        }
        self.keep_partitions(spec)
    }

    /// `CONVERT TO`: texts would have to be sealed anew, and other tokens be made of them.
    fn convert_spec(&mut self, spec: Range<usize>) -> Planned<()> {
        let protected = self.target.table.protected_columns();
        let texts: Vec<&str> = protected
            .filter(|(_, protection)| protection.sql_type.collation.is_some())
            .map(|(column, _)| column.name.as_str())
            .collect();
        if !texts.is_empty() {
            let about = format!(
                "CONVERT TO over protected texts ({}): change the unprotected columns with MODIFY, and the default of columns to come with DEFAULT CHARACTER SET",
                texts.join(", ")
            );
            return Err(refused(&about));
        }
        self.keep_plain(spec)
    }

    /// Options of the table, and its order.
    fn other_spec(&mut self, s: Reader, spec: Range<usize>) -> Planned<()> {
        let is_order = s.is("order") && !self.target.mentions_protected(&spec);
        match is_order {
            true => must_be_order(s)?,
            false => must_be_fine(s)?,
        }
        self.keep_plain(spec)
    }

    /// The plan, when all specifications have been read.
    fn planned<'p>(self) -> Planned<Decided<'p>> {
        self.check_tenant()?;
        let kept_plain = self.kept_plain();
        let Target { table, specs, .. } = self.target;
        let mut pieces = self.out.0;
        let changes_set = |piece: &DdlPiece| {
            matches!(
                piece,
                DdlPiece::Add { .. }
                    | DdlPiece::Drop(_)
                    | DdlPiece::Rename(..)
                    | DdlPiece::SetDefault(..)
                    | DdlPiece::Redefine(_)
                    | DdlPiece::DroppedConstraint(_)
                    | DdlPiece::SetActions(..)
            )
        };
        if !pieces.iter().any(changes_set) {
            pieces.retain(|piece| *piece != DdlPiece::Renew);
        }
        let present = specs.present.iter().cloned();
        pieces.extend(present.map(DdlPiece::Present));
        let is_plain = self.new_columns.is_empty() && table.table_id.is_none();
        if is_plain && !self.rests_on_keys && kept_plain.is_empty() {
            return Ok((Action::Relay, None));
        }
        define(Ddl {
            pieces,
            new_columns: self.new_columns,
            table: Some(table),
            references: self.references,
            temporary: None,
            rests_on_keys: self.rests_on_keys,
            kept_plain,
            of_database: None,
        })
    }
}

/// Refuses options that are not known to be harmless, wherever they stand: servers want no comma
/// between them.
fn must_be_fine(mut s: Reader) -> Planned<()> {
    while let Some(first) = s.token() {
        if FINE_WORDS.iter().any(|words| s.eat_words(words)) {
            continue;
        }
        s.eat("default");
        let is_fine = s.eat_words(&["character", "set"]) || FINE.iter().any(|option| s.eat(option));
        s.eat_punct(b'=');
        let is_value = |kind| {
            let is_word = matches!(kind, TokenKind::Word | TokenKind::Quoted);
            is_word || matches!(kind, TokenKind::Literal(_))
        };
        let has_value = s.token().is_some_and(|token| is_value(token.kind));
        s.at += 1;
        if !is_fine || !has_value {
            return Err(not_fine(&s, first));
        }
    }
    Ok(())
}

/// Refuses what is no list of columns behind ORDER BY.
fn must_be_order(s: Reader) -> Planned<()> {
    let is_name = |token: &&Token| {
        token.is(b'.') || matches!(token.kind, TokenKind::Word | TokenKind::Quoted)
    };
    let mut tokens = s.tokens[s.at..s.end].iter();
    match tokens.find(|token| !is_name(token)) {
        Some(other) => Err(not_fine(&s, *other)),
        None => Ok(()),
    }
}

/// Refuses the option that begins with a token.
fn not_fine(s: &Reader, first: Token) -> Refusal {
    // errors are logged: no constant stands in them
    match first.kind {
        TokenKind::Literal(_) => refused("a constant among the table's options"),
        _ => refused(&String::from_utf8_lossy(first.text(s.sql()))),
    }
}
