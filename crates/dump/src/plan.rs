//! From what was asked for and what is there to a mask, or none, for every column.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use onionskin_value::{Kind, SqlType};

use crate::{
    column::{Mask, Masker, Values, most_chars},
    error::DumpError,
    facts::{ColumnFacts, TableFacts},
    key::MaskKey,
    rules::{ColumnName, Rules},
};

/// What becomes of the columns of a table, in their order. `None`: a column stays.
pub(crate) type TableMasks = Vec<Option<Masker>>;

/// A column beside what is known of it.
struct Member<'a> {
    facts: Option<&'a ColumnFacts>,
    is_unique: bool,
    is_primary: bool,
    parents: BTreeSet<ColumnName>,
}

type Members<'a> = BTreeMap<ColumnName, Member<'a>>;

fn lowered(name: &ColumnName) -> ColumnName {
    let lower = onionskin_schema::pattern::folded;
    ColumnName {
        database: lower(&name.database),
        table: lower(&name.table),
        column: lower(&name.column),
    }
}

/// All columns, and those that foreign keys refer to.
fn members(tables: &[TableFacts]) -> Members<'_> {
    let mut all = Members::new();
    for table in tables {
        let is_in =
            |list: &[String], column: &str| list.iter().any(|n| n.eq_ignore_ascii_case(column));
        for column in &table.columns {
            let name = &column.name.column;
            let definition = &table.definition;
            let member = all.entry(lowered(&column.name)).or_insert_with(empty);
            member.facts = Some(column);
            member.is_unique = definition.unique.iter().any(|key| is_in(key, name));
            member.is_primary = is_in(&definition.primary, name);
        }
        for key in &table.definition.foreign {
            for (child, parent) in key.columns.iter().zip(&key.parents) {
                let of = |database: &str, table: &str, column: &str| {
                    lowered(&ColumnName {
                        database: database.into(),
                        table: table.into(),
                        column: column.into(),
                    })
                };
                let own = &table.name.database;
                let child = of(own, &table.name.name, child);
                let parent = of(key.database.as_ref().unwrap_or(own), &key.table, parent);
                all.entry(parent.clone()).or_insert_with(empty);
                all.entry(child)
                    .or_insert_with(empty)
                    .parents
                    .insert(parent);
            }
        }
    }
    all
}

fn empty<'a>() -> Member<'a> {
    Member {
        facts: None,
        is_unique: false,
        is_primary: false,
        parents: BTreeSet::new(),
    }
}

/// Columns that have to be replaced alike, and what they are called together.
struct Group {
    label: String,
    columns: Vec<ColumnName>,
}

/// What connects a column with others by name. What begins with the lesser digit names the group.
fn links(name: &ColumnName, member: &Member<'_>, rules: &Rules) -> Vec<String> {
    let capabilities = member.facts.and_then(|facts| facts.capabilities.as_ref());
    let join = capabilities.and_then(|c| c.join.as_ref());
    let groups = rules
        .groups_of(name)
        .map(|number| rules.group_label(number));
    let together = groups.map(|label| format!("0 together {label}"));
    together
        .chain(join.map(|join| format!("1 join {join}")))
        .collect()
}

/// Puts columns together that foreign keys, join groups and `--together` connect. A group is called
/// by what names it, or else by its first column that refers to no other one: so it has the same
/// key whatever else is dumped.
fn groups(all: &Members<'_>, rules: &Rules) -> Vec<Group> {
    let names: Vec<&ColumnName> = all.keys().collect();
    let place: HashMap<&ColumnName, usize> = names.iter().copied().zip(0..).collect();
    let mut above: Vec<usize> = (0..names.len()).collect();
    fn top(above: &[usize], mut at: usize) -> usize {
        while above[at] != at {
            at = above[at];
        }
        at
    }
    let mut first: HashMap<String, usize> = HashMap::new();
    let mut labels = Vec::with_capacity(names.len());
    for (at, (name, member)) in all.iter().enumerate() {
        let links = links(name, member, rules);
        let linked = links
            .iter()
            .map(|link| *first.entry(link.clone()).or_insert(at));
        let parents = member.parents.iter().map(|parent| place[parent]);
        for other in linked.chain(parents).collect::<Vec<_>>() {
            let (one, other) = (top(&above, at), top(&above, other));
            above[one.max(other)] = one.min(other);
        }
        let own = match member.parents.is_empty() {
            true => format!("2 column {name}"),
            false => format!("3 column {name}"),
        };
        labels.push(links.into_iter().chain([own]).min().unwrap_or_default());
    }
    let mut made: BTreeMap<usize, Group> = BTreeMap::new();
    for (at, (name, label)) in names.into_iter().zip(labels).enumerate() {
        let group = made.entry(top(&above, at)).or_insert_with(|| Group {
            label: label.clone(),
            columns: Vec::new(),
        });
        group.columns.push(name.clone());
        if label < group.label {
            group.label = label;
        }
    }
    made.into_values().collect()
}

/// The mask of a group; `None` if its columns stay.
fn mask_of(group: &Group, all: &Members<'_>, rules: &Rules) -> Result<Option<Mask>, DumpError> {
    let mut said: Option<(&ColumnName, Mask)> = None;
    let mut kept: Option<&ColumnName> = None;
    let mut protected: Option<&ColumnName> = None;
    for name in &group.columns {
        let Some(facts) = all[name].facts else {
            continue;
        };
        match rules.of(name)? {
            Some(None) => kept = Some(name),
            Some(Some(mask)) => match &said {
                Some((other, before)) if before != mask => {
                    return Err(DumpError::Request(format!(
                        "{other} and {name} belong together and have different masks"
                    )));
                }
                _ => said = Some((name, mask.clone())),
            },
            None if facts.capabilities.is_some() || facts.is_wanted => protected = Some(name),
            None => {}
        }
    }
    let replaced = said.as_ref().map(|(name, _)| *name).or(protected);
    if let (Some(kept), Some(replaced)) = (kept, replaced) {
        return Err(DumpError::Request(format!(
            "{kept} is to stay and {replaced} is replaced, and they belong together: name both"
        )));
    }
    Ok(match said {
        Some((_, mask)) => Some(mask),
        None => protected.map(|_| Mask::Generate),
    })
}

/// What has to be equal for values to be replaced alike.
fn likeness(ty: &SqlType) -> SqlType {
    let kind = match ty.kind {
        _ if ty.is_character() && ty.kind != Kind::Json => Kind::LongText,
        _ if ty.is_binary() => Kind::LongBlob,
        _ => return ty.without_width(),
    };
    SqlType { kind, ..*ty }
}

fn is_bool(ty: &SqlType) -> bool {
    ty.kind == Kind::TinyInt(Some(1)) && !ty.unsigned
}

/// A mask for every column that gets one.
pub(crate) fn masks(
    tables: &[TableFacts],
    rules: &Rules,
    key: &MaskKey,
) -> Result<Vec<TableMasks>, DumpError> {
    let names: Vec<ColumnName> = tables
        .iter()
        .flat_map(|t| &t.columns)
        .map(|c| c.name.clone())
        .collect();
    let unused = rules.unused(&names);
    if !unused.is_empty() {
        return Err(DumpError::Request(format!(
            "no column is named {}",
            unused.join(" or ")
        )));
    }
    let all = members(tables);
    let mut chosen: HashMap<ColumnName, Masker> = HashMap::new();
    for group in groups(&all, rules) {
        let Some(mask) = mask_of(&group, &all, rules)? else {
            continue;
        };
        let here: Vec<(&ColumnName, &Member<'_>, &ColumnFacts)> = group
            .columns
            .iter()
            .filter_map(|name| Some((name, &all[name], all[name].facts?)))
            .collect();
        let exact = group.columns.len() > 1 || here.iter().any(|(_, member, _)| member.is_unique);
        let types = here.iter().filter_map(|(_, _, facts)| facts.ty);
        let chars = types
            .clone()
            .map(|ty| most_chars(&ty))
            .min()
            .unwrap_or_default();
        let are_bools = types.clone().all(|ty| is_bool(&ty));
        for (name, member, facts) in &here {
            check(name, member, facts, &mask)?;
            if facts.is_generated {
                continue;
            }
            let ty = match facts.ty {
                Some(ty) => ty,
                // no value of it is looked at
                None if matches!(mask, Mask::Null | Mask::Fixed(_)) => SqlType::plain(Kind::Blob),
                None => {
                    return Err(DumpError::Request(format!(
                        "{name}: there is no mask for {}: name null or fixed:VALUE, or keep it",
                        facts.type_text
                    )));
                }
            };
            if let Some(first) = types.clone().next()
                && likeness(&first) != likeness(&ty)
                && matches!(mask, Mask::Hash | Mask::Generate)
            {
                let first = here[0].0;
                return Err(DumpError::Request(format!(
                    "{first} and {name} belong together and have different types or collations"
                )));
            }
            let values = Values {
                ty,
                type_text: facts.type_text.clone(),
                exact,
                chars,
                is_bool: are_bools,
            };
            let masker = Masker::new(key.derive("column", group.label.as_bytes()), &mask, &values);
            let masker =
                masker.map_err(|reason| DumpError::Request(format!("{name}: {reason}")))?;
            chosen.insert((*name).clone(), masker);
        }
    }
    let mut take = |column: &ColumnFacts| {
        let masker = chosen.remove(&lowered(&column.name));
        match masker.is_some() || column.is_generated || stays(column, rules)? {
            true => Ok(masker),
            // two tables whose names differ in letter case have one place here
            false => Err(DumpError::Request(format!(
                "{}: no mask was found for it; is there a table whose name differs in letter case only?",
                column.name
            ))),
        }
    };
    let masks = tables
        .iter()
        .map(|t| t.columns.iter().map(&mut take).collect());
    masks.collect()
}

/// Whether a column may be written as it is.
fn stays(column: &ColumnFacts, rules: &Rules) -> Result<bool, DumpError> {
    Ok(match rules.of(&column.name)? {
        Some(said) => said.is_none(),
        None => column.capabilities.is_none() && !column.is_wanted,
    })
}

/// What a mask would break.
fn check(
    name: &ColumnName,
    member: &Member<'_>,
    facts: &ColumnFacts,
    mask: &Mask,
) -> Result<(), DumpError> {
    let wrong = |text: &str| Err(DumpError::Request(format!("{name}: {text}")));
    match mask {
        _ if facts.is_generated => match facts.capabilities {
            // the server computes it anew
            None => Ok(()),
            Some(_) => wrong("a generated column that is protected"),
        },
        Mask::Null if !facts.nullable || member.is_primary => wrong("NULL is not allowed there"),
        Mask::Fixed(_) if member.is_unique => {
            wrong("it is in a unique key, in which one value cannot stand for all")
        }
        _ => Ok(()),
    }
}
