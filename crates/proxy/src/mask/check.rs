//! What a statement does with masked columns, before its plan can be used.

use onionskin_schema::folded;
use std::sync::Arc;

use memchr::memmem;
use onionskin_plan::lex::{LexMode, tokens};
use onionskin_plan::{
    Action, Catalog, ColumnUse, Defines, Effect, Known, OpenFrom, Piece, Plan, ScratchRead, Text,
    errors, index_hint,
};

use super::Show;
use super::words::{Naming, naming};
use crate::catalog::Account;
use crate::error::{Failure, Outcome};

/// Refuses a plan that learns more of a masked column than the account is to see. Returns what it
/// sees of each of the plan's columns; nothing if that is all of them in the clear.
pub(crate) fn check(
    plan: &Plan,
    sql: &[u8],
    mode: LexMode,
    account: &Account,
) -> Outcome<Vec<Show>> {
    if !account.masks.masks() {
        return Ok(Vec::new());
    }
    let shows = plan.columns.iter().map(|used| shown(account, used));
    let shows: Vec<Show> = shows.collect();
    let masked = masked(plan, account);
    if !masked.is_empty() {
        Check {
            plan,
            shows: &shows,
            masked: &masked,
        }
        .check(sql, mode)?;
    }
    Ok(shows)
}

fn shown(account: &Account, used: &ColumnUse) -> Show {
    account.masks.show(&used.table, &used.column().name)
}

/// The masked columns of all tables that the statement may be about.
fn masked(plan: &Plan, account: &Account) -> Vec<ColumnUse> {
    let known = plan.names.iter();
    let known = known.map(|name| account.table(&name.database, &name.name));
    let known = known.filter_map(|known| match known {
        Known::Table(table) => Some(table),
        _ => None,
    });
    let mut masked: Vec<ColumnUse> = Vec::new();
    for table in known {
        for (index, column) in table.columns.iter().enumerate() {
            let used = ColumnUse {
                table: Arc::clone(&table),
                index,
            };
            if column.protection.is_some() && shown(account, &used) != Show::Clear {
                masked.push(used);
            }
        }
    }
    let others = plan.columns.iter();
    masked.extend(
        others
            .filter(|used| shown(account, used) != Show::Clear)
            .cloned(),
    );
    masked
}

struct Check<'a> {
    plan: &'a Plan,
    /// One for each of the plan's columns.
    shows: &'a [Show],
    masked: &'a [ColumnUse],
}

impl Check<'_> {
    fn refused(&self, used: &ColumnUse) -> Failure {
        Failure::refused(&errors::MASKED, used.path())
    }

    fn check(&self, sql: &[u8], mode: LexMode) -> Outcome<()> {
        let Some(first) = self.masked.first() else {
            return Ok(());
        };
        let items = match &self.plan.action {
            // what it is planned as later is looked at then
            Action::Refuse(_)
            | Action::Show { .. }
            | Action::Compute { .. }
            | Action::ByName(_) => {
                return Ok(());
            }
            // under another name the rules would not find the column
            Action::Define(_) | Action::Copy(_) | Action::Refit(_) => {
                return Err(self.refused(first));
            }
            Action::Relay if self.plan.defines == Defines::Names => return Err(self.refused(first)),
            Action::Server { result, .. } => result.as_deref().unwrap_or_default(),
            Action::Relay
            | Action::Finish(_)
            | Action::Update(_)
            | Action::Delete(_)
            | Action::Scratch(_)
            | Action::ScratchWrite(_) => &[],
        };
        // cells that go to the client as they are opened
        let mut opened = vec![0_usize; self.shows.len()];
        for item in items {
            if let Some((index, OpenFrom::Sealed)) = item.open
                && !item.computed
            {
                opened[index] += 1;
            }
        }
        let names: Vec<&str> = self
            .masked
            .iter()
            .map(|used| used.column().name.as_str())
            .collect();
        let naming = naming(sql, mode, &names);
        let named = || {
            let of = self.masked.iter();
            let mut of = of.filter(|used| mentions(sql, &used.column().name));
            self.refused(of.next().unwrap_or(first))
        };
        if naming == Naming::Used {
            return Err(named());
        }
        for (index, show) in self
            .shows
            .iter()
            .enumerate()
            .filter(|(_, show)| **show != Show::Clear)
        {
            let used = &self.plan.columns[index];
            let is_shown = opened[index] > 0 && naming == Naming::Shown;
            let fits = used
                .column()
                .sql_type
                .as_ref()
                .is_some_and(|ty| show.fits(ty));
            if *show == Show::Refuse || !is_shown || !fits {
                return Err(self.refused(used));
            }
        }
        self.check_indexes()?;
        self.check_guarded(sql, mode)?;
        for used in self.masked {
            let Some(protection) = &used.column().protection else {
                continue;
            };
            let shown = self.plan.columns.iter().zip(&opened);
            let shown = shown.filter(|(other, _)| other.sealed() == used.sealed());
            let shown: usize = shown.map(|(_, times)| times).sum();
            let mut companions = protection.names.companions();
            let is_compared = companions.any(|name| self.times(name) > 0);
            if is_compared || self.times(used.sealed()) > shown {
                return Err(self.refused(used));
            }
        }
        Ok(())
    }

    /// Each text about a table with hidden indexes says that they are not to be used. Where it
    /// cannot, the order of rows does not show.
    fn check_indexes(&self) -> Outcome<()> {
        for used in self.masked {
            let Some(hint) = index_hint(&used.table) else {
                continue;
            };
            let deletes = |text: &Text| match text.first() {
                Some(Piece::Sql(sql)) => sql.to_ascii_lowercase().starts_with(b"delete"),
                _ => false,
            };
            let texts = texts(self.plan);
            let mut about = texts.into_iter().filter(|text| {
                let name = &used.table.name;
                // another name may be spelled in several ways
                let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$');
                !name.bytes().all(is_plain)
                    || memmem::find(&lower(text), folded(name).as_bytes()).is_some()
            });
            if about.any(|text| times(text, hint.as_bytes()) == 0 && !deletes(text)) {
                return Err(self.refused(used));
            }
        }
        Ok(())
    }

    /// A value that a unique key over masked columns refuses tells that another row has theirs. A
    /// statement that may change rows names no column of such a key.
    fn check_guarded(&self, sql: &[u8], mode: LexMode) -> Outcome<()> {
        let guards = |used: &&ColumnUse| {
            let guarded = &used.table.guarded;
            // a companion stands for the column that its name begins with
            let names = guarded.iter().flat_map(|name| {
                let logical = name.split('$').next().unwrap_or_default();
                [name.as_str(), logical]
            });
            naming(sql, mode, &names.collect::<Vec<_>>()) == Naming::Used
        };
        let Some(used) = self.masked.iter().find(guards) else {
            return Ok(());
        };
        let Ok(tokens) = tokens(sql, mode) else {
            return Err(self.refused(used));
        };
        let mut tokens = tokens.iter();
        let changes = tokens.any(|token| token.is_word(sql, "set") || token.is_word(sql, "update"));
        match changes {
            true => Err(self.refused(used)),
            false => Ok(()),
        }
    }

    /// How often a physical name stands in the texts for the server.
    fn times(&self, name: &str) -> usize {
        let texts = texts(self.plan);
        texts
            .into_iter()
            .map(|text| times(text, name.as_bytes()))
            .sum()
    }
}

/// Whether a name stands anywhere in a statement, for the error's words.
fn mentions(sql: &[u8], name: &str) -> bool {
    let sql = sql.to_ascii_lowercase();
    memmem::find(&sql, folded(name).as_bytes()).is_some()
}

/// The text as the server gets it, without constants, in small letters.
fn lower(text: &[Piece]) -> Vec<u8> {
    let mut all = Vec::new();
    for piece in text {
        match piece {
            Piece::Sql(sql) => all.extend(sql.to_ascii_lowercase()),
            Piece::Rows { row, .. } => all.extend(lower(row)),
            Piece::Indexed(inner) => all.extend(lower(inner)),
            Piece::Literal(_) | Piece::Slot(_) | Piece::Present(_) | Piece::Tenant { .. } => {}
        }
    }
    all
}

fn times(text: &[Piece], name: &[u8]) -> usize {
    let of_piece = |piece: &Piece| match piece {
        Piece::Sql(sql) => memmem::find_iter(sql, name).count(),
        Piece::Rows { row, .. } => times(row, name),
        Piece::Indexed(inner) => times(inner, name),
        Piece::Literal(_) | Piece::Slot(_) | Piece::Present(_) | Piece::Tenant { .. } => 0,
    };
    text.iter().map(of_piece).sum()
}

/// All texts that the server gets.
fn texts(plan: &Plan) -> Vec<&Text> {
    let mut texts: Vec<&Text> = plan.probe.iter().chain(&plan.insert_only).collect();
    match &plan.action {
        Action::Server { text, .. } => texts.push(text),
        Action::Finish(finish) => texts.push(&finish.text),
        Action::Update(update) => {
            texts.extend([&update.select, &update.plain]);
            texts.extend(&update.single_row);
        }
        Action::Delete(delete) => texts.push(&delete.select),
        Action::Scratch(scratch) => texts.extend(scratch.reads.iter().flat_map(texts_of_read)),
        Action::ScratchWrite(write) => {
            texts.extend(write.scratch.reads.iter().flat_map(texts_of_read));
            if let Effect::Insert(new) = &write.effect {
                texts.extend(new.met.iter().flat_map(|met| texts_of_read(&met.read)));
            }
        }
        Action::Relay
        | Action::Compute { .. }
        | Action::Define(_)
        | Action::Copy(_)
        | Action::Refit(_)
        | Action::Show { .. }
        | Action::ByName(_)
        | Action::Refuse(_) => {}
    }
    texts
}

fn texts_of_read(read: &ScratchRead) -> impl Iterator<Item = &Text> {
    std::iter::once(&read.text).chain(&read.conditions)
}
