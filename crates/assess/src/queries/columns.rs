//! Which columns are to be protected: what was asked for, what foreign keys tie to it, and what can
//! be protected at all.

use std::collections::{BTreeMap, BTreeSet};

use onionskin_schema::{
    Capabilities, Surrogate,
    pattern::{folded, matches},
};

use super::judge::{Choice, Judge};
use super::schema::{At, Schema};
use crate::{AssessError, text::shown};

/// The columns.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// With what keys and foreign keys may need of them.
    pub choice: Choice,
    /// Columns that stay plain though they were asked for, and why.
    pub plain: Vec<(At, String)>,
    /// Columns that were not asked for, and why they are protected.
    pub added: Vec<(At, String)>,
}

/// Columns by `customers.email,orders.*`. True: it was named.
pub fn by_patterns(schema: &Schema, text: &str) -> Result<BTreeMap<At, bool>, AssessError> {
    let mut wanted = BTreeMap::new();
    for item in text.split(',').map(str::trim).filter(|i| !i.is_empty()) {
        let item = folded(item);
        let (of_table, of_column) = item.rsplit_once('.').ok_or_else(|| {
            AssessError::Request(format!(
                "--columns: {} has no table: write table.column",
                shown(&item)
            ))
        })?;
        let mut found = false;
        for (at, described) in schema.tables.iter().enumerate() {
            let name = folded(&described.table.name);
            let full = format!("{}.{name}", folded(&schema.database));
            if !matches(of_table, &name) && !matches(of_table, &full) {
                continue;
            }
            for (place, column) in described.table.columns.iter().enumerate() {
                if matches(of_column, &folded(&column.name)) && column.protection.is_none() {
                    found = true;
                    *wanted.entry((at, place)).or_insert(false) |= !of_column.contains('*');
                }
            }
        }
        if !found {
            return Err(AssessError::Request(format!(
                "--columns: {} matches no plain column of {}",
                shown(&item),
                shown(&schema.database)
            )));
        }
    }
    match wanted.is_empty() {
        true => Err(AssessError::Request("--columns names no column".into())),
        false => Ok(wanted),
    }
}

/// Decides, and has the judge learn the definitions.
pub fn choose(judge: &mut Judge<'_>, wanted: &BTreeMap<At, bool>) -> Chosen {
    let mut refused: BTreeMap<At, String> = BTreeMap::new();
    loop {
        let chosen = closed(judge.schema, wanted, &refused);
        let before = refused.len();
        learn(judge, &chosen.choice, &mut refused);
        if refused.len() == before {
            return chosen;
        }
    }
}

/// With what foreign keys tie to it, and without what they forbid.
fn closed(schema: &Schema, wanted: &BTreeMap<At, bool>, refused: &BTreeMap<At, String>) -> Chosen {
    let mut columns = wanted.clone();
    let (mut plain, mut added) = (BTreeMap::<At, String>::new(), BTreeMap::<At, String>::new());
    let column = |at: At| &schema.tables[at.0].table.columns[at.1];
    let why_plain = |at: At, plain: &BTreeMap<At, String>| -> Option<String> {
        let own = match column(at).surrogate() {
            Surrogate::AutoIncrement => Some("AUTO_INCREMENT".to_owned()),
            _ if column(at).generated => Some("it is a generated column".to_owned()),
            _ if schema.tied.contains(&at) => {
                Some("a foreign key ties it to another database".to_owned())
            }
            _ => None,
        };
        own.or_else(|| refused.get(&at).or_else(|| plain.get(&at)).cloned())
    };
    loop {
        let mut changes = false;
        for (at, _) in columns.clone() {
            if let Some(why) = why_plain(at, &plain) {
                columns.remove(&at);
                added.remove(&at);
                plain.insert(at, why);
                changes = true;
            }
        }
        for (from, to) in &schema.references {
            let (here, other) = match (columns.contains_key(from), columns.contains_key(to)) {
                (true, false) => (*from, *to),
                (false, true) => (*to, *from),
                _ => continue,
            };
            changes = true;
            let is_wild = here == *from && columns.get(&here) == Some(&false);
            let stays = why_plain(other, &plain);
            if stays.is_some() || is_wild {
                columns.remove(&here);
                added.remove(&here);
                let path = schema.path(other);
                plain.insert(
                    here,
                    format!("a foreign key ties it to {path}, which stays plain"),
                );
            } else {
                columns.insert(other, true);
                let path = schema.path(here);
                added.insert(other, format!("a foreign key ties it to {path}"));
            }
        }
        if !changes {
            break;
        }
    }
    let columns: BTreeSet<At> = columns.into_keys().collect();
    plain.retain(|at, _| wanted.contains_key(at));
    Chosen {
        choice: seeds(schema, &columns),
        plain: plain.into_iter().collect(),
        added: added.into_iter().collect(),
    }
}

/// What keys and foreign keys may need. What they do not is taken away later.
fn seeds(schema: &Schema, columns: &BTreeSet<At>) -> Choice {
    let mut choice: Choice = columns
        .iter()
        .map(|at| {
            let capabilities = Capabilities {
                eq: schema.tables[at.0].keyed.contains(&at.1),
                ..Capabilities::default()
            };
            (*at, capabilities)
        })
        .collect();
    for (from, to) in &schema.references {
        if columns.contains(from) && columns.contains(to) {
            join(&mut choice, schema, *to, *from);
        }
    }
    choice
}

/// Puts two columns into one group. A group is called like a column of it.
pub(super) fn join(choice: &mut Choice, schema: &Schema, a: At, b: At) {
    let group_of = |at: At| choice.get(&at).and_then(|c| c.join.clone());
    let (of_a, of_b) = (group_of(a), group_of(b));
    let name = match (&of_a, &of_b) {
        (Some(group), _) | (None, Some(group)) => group.clone(),
        (None, None) => group_name(&schema.path(a)),
    };
    for (at, capabilities) in choice.iter_mut() {
        let is_in = *at == a || *at == b;
        let is_merged = capabilities.join.is_some() && capabilities.join == of_b;
        if is_in || is_merged {
            capabilities.join = Some(name.clone());
            // the group's tokens answer equality as well
            capabilities.eq = false;
        }
    }
}

fn group_name(path: &str) -> String {
    let plain = |c: char| match c.is_alphanumeric() || c == '.' || c == '_' {
        true => c,
        false => '_',
    };
    path.chars().map(plain).collect()
}

/// Has the definitions planned. What cannot be protected goes into `refused`.
fn learn(judge: &mut Judge<'_>, choice: &Choice, refused: &mut BTreeMap<At, String>) {
    let tables: BTreeSet<usize> = choice.keys().map(|(table, _)| *table).collect();
    for with_keys in [false, true] {
        for table in &tables {
            let learned = match with_keys {
                false => judge.learn(*table, choice),
                true => judge.learn_keys(*table, choice),
            };
            let Err(refusal) = learned else { continue };
            let own = choice.range((*table, 0)..(*table + 1, 0));
            let before = refused.len();
            for (at, capabilities) in own.clone() {
                let alone = Choice::from([(*at, capabilities.clone())]);
                if let Err(refusal) = judge.learn(*table, &alone) {
                    refused.insert(*at, refusal.message());
                }
            }
            if refused.len() == before {
                refused.extend(own.map(|(at, _)| (*at, refusal.message())));
            }
        }
        if !refused.is_empty() {
            return;
        }
    }
}
