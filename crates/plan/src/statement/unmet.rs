//! Tables that are not protected as the configuration or the pins say.
//!
//! The server chooses what it shows under a name. So a statement near a name that is pinned, or for
//! which `[protect]` is enforced, is refused unless the table is what it should be. A table that is
//! missing or plaintext counts as near. Only what leads back goes through: `DROP`, and a definition
//! after which the table is protected as it should be.

use onionskin_schema::{Capabilities, SeenColumn, Surrogate, Table, TableName, same_name};

use super::words::{self, first_words, word_is};
use crate::ddl::{Ddl, DdlPiece, added_keys, alters_table, creates_table, target};
use crate::errors::{self, Refusal};
use crate::lex::Token;
use crate::plan::Action;
use crate::plan::Effect;
use crate::planner::{Known, Planned, Request};
use crate::request::COLLATION;

/// A name that a statement may mean, and why nothing may be done with it.
pub(super) struct Unmet<'n> {
    name: &'n TableName,
    refusal: Refusal,
}

/// The names of a statement whose tables are not what they should be.
pub(super) fn check<'n>(request: &Request, names: &'n [TableName]) -> Vec<Unmet<'n>> {
    let enforces = request.policy.enforces();
    let mut unmet = Vec::new();
    for name in names {
        let (database, table) = (&name.database, &name.name);
        let pinned = request.catalog.pinned(database, table);
        if (!enforces && pinned.is_none()) || table.starts_with(COLLATION) {
            continue;
        }
        let known = match request.catalog.table(database, table) {
            Known::Table(table) => Some(table),
            _ => None,
        };
        let refusal = |entry, why: String| Refusal::new(entry, format!("{name} ({why})"));
        let seen = known.as_deref();
        let by_pin = pinned.and_then(|pinned| pinned.difference(seen));
        let by_policy = || request.policy.unmet(database, table, seen);
        let refusal = match by_pin {
            Some(why) => Some(refusal(&errors::PINNED, why)),
            None => by_policy().map(|why| match seen {
                // applications ask for a table before they make it, and know the server's number
                None => Refusal::new(&errors::NO_TABLE, name.to_string()),
                Some(_) => refusal(&errors::UNPROTECTED, why),
            }),
        };
        unmet.extend(refusal.map(|refusal| Unmet { name, refusal }));
    }
    unmet
}

/// Refuses what has been decided for a statement near such names, unless it leads back. Refuses
/// also definitions that would lead away from what `[protect]` enforces.
pub(super) fn allow(
    request: &Request,
    tokens: &[Token],
    unmet: &[Unmet],
    action: &Action,
) -> Planned<()> {
    if unmet.is_empty() && !request.policy.enforces() {
        return Ok(());
    }
    let words = first_words(request.sql, tokens, 3);
    let drops = word_is(&words, 0, "drop")
        && ["table", "temporary", "view"]
            .iter()
            .any(|w| word_is(&words, 1, w));
    if drops {
        return Ok(());
    }
    let creates = word_is(&words, 0, "create") && creates_table(request.sql, tokens);
    let alters = word_is(&words, 0, "alter") && alters_table(request.sql, tokens);
    let defined = match creates || alters {
        true => target(request, tokens)
            .and_then(|(database, name)| Some(TableName::new(database?, name))),
        false => None,
    };
    let is_defined = |name: &TableName| {
        let defined = defined.as_ref();
        defined.is_some_and(|defined| defined.is_same(name))
    };
    let made = made_view(request, tokens, &words);
    let is_made = |unmet: &Unmet| {
        let made = made.as_ref();
        made.is_some_and(|made| made.is_same(unmet.name)) && unmet.refusal.is(&errors::UNPROTECTED)
    };
    if let Some(other) = unmet.iter().find(|u| !is_defined(u.name) && !is_made(u)) {
        return Err(other.refusal.clone());
    }
    let Some(defined) = &defined else {
        return Ok(());
    };
    let first = || unmet.first().map_or(Ok(()), |u| Err(u.refusal.clone()));
    match action {
        // what is defined comes by here once more
        Action::Copy(_) if creates => Ok(()),
        Action::ScratchWrite(write) if creates && matches!(write.effect, Effect::Create(_)) => {
            Ok(())
        }
        // a table without protected columns becomes what it should be
        Action::Relay if alters => {
            let Some(keys) = added_keys(request, tokens).filter(|keys| keys.alone) else {
                return first();
            };
            let mut columns: Vec<After> = columns_of(&keys.table).into_iter().flatten().collect();
            mark(&mut columns, &keys.surrogates);
            let seen: Vec<SeenColumn<'_>> = columns.iter().map(After::seen).collect();
            let (database, name) = (&defined.database, &defined.name);
            let is_pinned = request.catalog.pinned(database, name).is_some();
            match request.policy.unmet_by(database, name, &seen, false) {
                None if !is_pinned => Ok(()),
                _ => first(),
            }
        }
        Action::Define(ddl) => {
            let mut columns = after(ddl);
            if alters && let Some(keys) = added_keys(request, tokens) {
                mark(&mut columns, &keys.surrogates);
            }
            let seen: Vec<SeenColumn<'_>> = columns.iter().map(After::seen).collect();
            let (database, name) = (&defined.database, &defined.name);
            if let Some(why) = request.policy.unmet_by(database, name, &seen, false) {
                let about = format!("{defined} ({why})");
                return Err(Refusal::new(&errors::UNPROTECTED, about));
            }
            let pinned = request.catalog.pinned(database, name);
            let protected: Vec<(&str, &Capabilities)> = seen
                .iter()
                .filter_map(|column| Some((column.name, column.capabilities?)))
                .collect();
            match pinned {
                // what was pinned is not there: the same may be made anew, and pinned
                Some(pinned) if creates && pinned.is_met_by(&protected) => Ok(()),
                Some(_) => first(),
                None => Ok(()),
            }
        }
        _ => first(),
    }
}

/// The view that a statement makes, if it could be made as well where no other has its name.
fn made_view(request: &Request, tokens: &[Token], first: &[&str]) -> Option<TableName> {
    let made = words::made_view(request, tokens, first)?;
    let unmet = request.policy.unmet(&made.database, &made.name, None);
    unmet.is_none().then_some(made)
}

/// Columns that refer to surrogate keys when the statement is done.
fn mark(columns: &mut [After], surrogates: &[String]) {
    let refers = |column: &&mut After| surrogates.iter().any(|s| same_name(s, &column.name));
    for column in columns.iter_mut().filter(refers) {
        column.surrogate = Surrogate::Reference;
    }
}

/// A column after a definition.
struct After {
    name: String,
    capabilities: Option<Capabilities>,
    surrogate: Surrogate,
}

impl After {
    fn seen(&self) -> SeenColumn<'_> {
        SeenColumn {
            name: &self.name,
            capabilities: self.capabilities.as_ref(),
            surrogate: self.surrogate,
        }
    }
}

/// The columns of a table after a definition, as far as the definition tells. Of a new table these
/// are the protected ones. The rules for definitions have looked at the names of the others.
fn after(ddl: &Ddl) -> Vec<After> {
    let mut columns = ddl.table.as_deref().map(columns_of).unwrap_or_default();
    for piece in &ddl.pieces {
        match piece {
            DdlPiece::Rename(index, name) => {
                if let Some(Some(column)) = columns.get_mut(*index) {
                    name.clone_into(&mut column.name);
                }
            }
            DdlPiece::Redefine(new) => {
                if let Some(Some(column)) = columns.get_mut(new.index) {
                    new.name.clone_into(&mut column.name);
                }
            }
            DdlPiece::Drop(index) => {
                if let Some(column) = columns.get_mut(*index) {
                    *column = None;
                }
            }
            _ => {}
        }
    }
    let new = ddl.new_columns.iter().map(|column| After {
        name: column.name.clone(),
        capabilities: Some(column.capabilities.clone()),
        surrogate: Surrogate::No,
    });
    columns.into_iter().flatten().chain(new).collect()
}

fn columns_of(table: &Table) -> Vec<Option<After>> {
    let columns = SeenColumn::of(table).into_iter();
    columns
        .map(|column| {
            Some(After {
                name: column.name.to_owned(),
                capabilities: column.capabilities.cloned(),
                surrogate: column.surrogate,
            })
        })
        .collect()
}
