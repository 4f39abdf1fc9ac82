//! Which rows a new one may meet: a search by each unique key.
//!
//! A row may spell a key as no other row does, and mean the same. What the key's columns hold once
//! the row is stored is worked out here ([`PlainValue`]). Where that cannot be done, and rows may
//! meet all the same, the statement is refused: whether a row changes could not be counted.

use onionskin_plan::{Piece, Upsert};
use onionskin_schema::{Column, Default as ColumnDefault};

use super::{NewRow, Search, count_of, new_row};
use crate::bind::{Binder, PlainColumn, PlainValue, StoreMode};
use crate::catalog::KeyedPlan;
use crate::error::Outcome;
use crate::session::{Execution, Session};
use crate::unique_keys::{KeyColumn, Keys, UniqueKey};

/// Functions of which the server may be asked once more: they have no effect, and say the same.
const PURE: [&str; 24] = [
    "bin_to_uuid",
    "coalesce",
    "concat",
    "crc32",
    "from_base64",
    "hex",
    "inet6_aton",
    "inet_aton",
    "lcase",
    "left",
    "lower",
    "lpad",
    "ltrim",
    "md5",
    "right",
    "rpad",
    "rtrim",
    "sha1",
    "sha2",
    "to_base64",
    "trim",
    "ucase",
    "unhex",
    "uuid_to_bin",
];
/// Words that may stand beside literals.
const WORDS: [&str; 8] = [
    "null",
    "true",
    "false",
    "date",
    "time",
    "timestamp",
    "upper",
    "n",
];
/// What makes a new value each time.
const FRESH: [&str; 4] = ["uuid", "uuid_short", "rand", "random_bytes"];

/// The searches of all rows.
pub(super) enum Searches {
    /// By these keys.
    All(Keys, Vec<Search>),
    /// It cannot be told which rows meet others: the key.
    Unclear(String),
}

/// What a new row meets by a key.
enum ByKey {
    /// No other row.
    Nothing,
    /// What a condition finds, and the rows of the statement with the same identity. Without one,
    /// those with the same condition, and perhaps others.
    Found {
        condition: Vec<u8>,
        identity: Option<Vec<u8>>,
    },
    /// The server alone knows.
    Unclear,
}

/// One column of it.
enum Part {
    MeetsNothing,
    Found {
        condition: Vec<u8>,
        identity: Option<Vec<u8>>,
    },
    Unclear,
}

impl Session {
    /// Which rows are to be looked for.
    pub(super) fn searches(&mut self, execution: &Execution, upsert: &Upsert) -> Outcome<Searches> {
        let keyed = execution.keyed;
        let keys = self.unique_keys(&upsert.target)?;
        let mut binder = Binder::new(keyed, &self.state, execution.values, &mut self.buffers);
        binder.mode = StoreMode {
            ignore: execution.mode.ignore,
            lenient_nulls: true,
        };
        let mut searches = Vec::new();
        let mut spellings: Vec<Spellings> = keys.iter().map(|_| Spellings::default()).collect();
        for row in 0..count_of(execution, upsert) {
            let cells = new_row(upsert, row);
            for (at, key) in keys.iter().enumerate() {
                let (condition, identity) = match by_key(&mut binder, keyed, &cells, key)? {
                    ByKey::Nothing => continue,
                    ByKey::Found {
                        condition,
                        identity,
                    } => (condition, identity),
                    ByKey::Unclear => return Ok(Searches::Unclear(about(key, upsert))),
                };
                if !spellings[at].are_clear_with(&condition, identity.is_some()) {
                    return Ok(Searches::Unclear(about(key, upsert)));
                }
                searches.push(Search {
                    row,
                    key: at,
                    identity: identity.unwrap_or_else(|| condition.clone()),
                    condition,
                });
            }
        }
        Ok(Searches::All(keys, searches))
    }
}

fn about(key: &UniqueKey, upsert: &Upsert) -> String {
    format!("the unique key {} of {}", key.name, upsert.target)
}

/// How rows have spelled a key.
#[derive(Default)]
struct Spellings {
    /// One whose meaning is not known.
    unknown: Option<Vec<u8>>,
    /// Others have been seen.
    any_known: bool,
}

impl Spellings {
    /// Whether it is known of one more which of the others mean the same.
    fn are_clear_with(&mut self, condition: &[u8], is_known: bool) -> bool {
        match (&self.unknown, is_known) {
            (Some(_), true) => false,
            (None, true) => {
                self.any_known = true;
                true
            }
            (Some(unknown), false) => unknown == condition,
            (None, false) => {
                self.unknown = Some(condition.to_vec());
                !self.any_known
            }
        }
    }
}

/// `id = 5 AND k$eq_1a2b = x'…'`, and what it means.
fn by_key(binder: &mut Binder, keyed: &KeyedPlan, row: &NewRow, key: &UniqueKey) -> Outcome<ByKey> {
    let (mut text, mut identity) = (Vec::new(), Some(Vec::new()));
    let mut is_unclear = key.computed;
    for column in &key.columns {
        let (condition, meaning) = match part(binder, keyed, row, column)? {
            // whatever the others are
            Part::MeetsNothing => return Ok(ByKey::Nothing),
            Part::Unclear => {
                is_unclear = true;
                continue;
            }
            Part::Found {
                condition,
                identity,
            } => (condition, identity),
        };
        if !text.is_empty() {
            text.extend_from_slice(b" AND ");
        }
        text.extend_from_slice(&condition);
        identity = identity.zip(meaning).map(|(mut all, meaning)| {
            all.extend_from_slice(&meaning.len().to_be_bytes());
            all.extend_from_slice(&meaning);
            all
        });
    }
    Ok(match is_unclear {
        true => ByKey::Unclear,
        false => ByKey::Found {
            condition: text,
            identity,
        },
    })
}

fn part(binder: &mut Binder, keyed: &KeyedPlan, row: &NewRow, column: &KeyColumn) -> Outcome<Part> {
    let name = format!("`{}`", column.name.replace('`', "``"));
    let table = keyed.plan.columns.first().map(|used| &used.table);
    let mut columns = table.into_iter().flat_map(|table| &table.columns);
    let plain =
        columns.find(|c| c.protection.is_none() && c.name.eq_ignore_ascii_case(&column.name));
    let mut cells = row.cells.iter();
    let cell = cells.find(|(name, _)| name.eq_ignore_ascii_case(&column.name));
    let pieces = match cell {
        Some((_, pieces)) if !is_default(pieces) => pieces,
        _ => {
            let Some(plain) = plain else {
                // a token that a row does not have is NULL
                return Ok(Part::MeetsNothing);
            };
            return Ok(of_default(plain, &name, binder));
        }
    };
    let mut given = Vec::new();
    match plain {
        None => {
            binder.pieces(pieces, row.base, row.number, &mut given)?;
            if given == b"NULL" {
                return Ok(Part::MeetsNothing);
            }
            Ok(Part::Found {
                condition: equal(&name, &given, column.prefix),
                identity: Some(given),
            })
        }
        Some(_) if !pieces.iter().all(may_be_asked_again) => Ok(Part::Unclear),
        Some(plain) => {
            let value = match &plain.sql_type {
                Some(ty) => {
                    let column = PlainColumn {
                        name: &plain.name,
                        ty,
                        nullable: plain.nullable,
                        auto_increment: plain.auto_increment,
                        prefix: column.prefix,
                    };
                    binder.plain_value(&column, pieces, row.base, row.number)
                }
                None => PlainValue::Unknown,
            };
            let identity = match value {
                PlainValue::MeetsNothing => return Ok(Part::MeetsNothing),
                PlainValue::Known { weight, literal } => {
                    given.extend(literal.into_iter().flatten());
                    Some(weight)
                }
                PlainValue::Unknown => None,
            };
            if given.is_empty() {
                binder.pieces(pieces, row.base, row.number, &mut given)?;
            }
            Ok(Part::Found {
                condition: equal(&name, &given, column.prefix),
                identity,
            })
        }
    }
}

/// A condition that finds the rows with this value.
fn equal(name: &str, value: &[u8], prefix: Option<usize>) -> Vec<u8> {
    let (before, behind) = match prefix {
        Some(prefix) => (
            format!("LEFT({name}, {prefix}) = LEFT(("),
            format!("), {prefix})"),
        ),
        None => (format!("{name} = ("), ")".to_owned()),
    };
    [before.as_bytes(), value, behind.as_bytes()].concat()
}

/// A plain column gets its default.
fn of_default(column: &Column, name: &str, binder: &Binder) -> Part {
    let is_strict = binder.state.sql_mode.is_strict() && !binder.mode.ignore;
    match &column.default {
        _ if column.generated => Part::Unclear,
        _ if column.auto_increment => Part::MeetsNothing,
        Some(ColumnDefault::Server(text)) => {
            let text = text.to_ascii_lowercase();
            match text.find('(') {
                None if text.starts_with("current_timestamp") => Part::Unclear,
                None => Part::Found {
                    condition: format!("{name} = DEFAULT({name})").into_bytes(),
                    identity: None,
                },
                Some(_) if calls_fresh(&text) => Part::MeetsNothing,
                Some(_) => Part::Unclear,
            }
        }
        Some(ColumnDefault::Literal(_)) => Part::Unclear,
        // NULL, or an error
        None if column.nullable || is_strict => Part::MeetsNothing,
        None => Part::Unclear,
    }
}

/// Whether one of the words that call a function makes a new value each time.
fn calls_fresh(expression: &str) -> bool {
    let calls = expression
        .split('(')
        .filter_map(|before| words(before).last());
    calls.into_iter().any(|word| FRESH.contains(&word))
}

fn is_default(pieces: &[Piece]) -> bool {
    match pieces {
        [Piece::Sql(sql)] => sql.trim_ascii().eq_ignore_ascii_case(b"default"),
        _ => false,
    }
}

/// Whether a piece of a row may be evaluated once more: other expressions can have effects.
fn may_be_asked_again(piece: &Piece) -> bool {
    match piece {
        Piece::Sql(sql) => {
            let sql = String::from_utf8_lossy(sql).to_ascii_lowercase();
            let is_known = |word: &str| {
                let is_number = word.bytes().all(|b| b.is_ascii_digit());
                is_number || PURE.contains(&word) || WORDS.contains(&word)
            };
            let is_sign = |c: char| c.is_ascii_whitespace() || "+-*/(),".contains(c);
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            sql.chars().all(|c| is_sign(c) || is_word(c)) && words(&sql).all(is_known)
        }
        _ => true,
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| !word.is_empty())
}
