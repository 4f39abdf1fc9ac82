//! Which rows a new one may meet: a search by each unique key.
//!
//! A row may spell a key as no other row does, and mean the same. What the key's columns hold once
//! the row is stored is worked out here ([`PlainValue`]). Where that cannot be done, and rows may
//! meet all the same, the statement is refused: whether a row changes could not be counted.

use onionskin_plan::{Piece, Upsert};
use onionskin_schema::{Column, Default as ColumnDefault, same_name};

use super::{NewRow, Search, count_of, new_row};
use crate::bind::{Binder, PlainColumn, PlainValue, StoreMode};
use crate::catalog::KeyedPlan;
use crate::error::Outcome;
use crate::session::{Execution, Session};
use crate::unique_keys::{KeyColumn, Keys, UniqueKey};

/// Words of which the server may be asked once more, beside literals and variables: they have no
/// effect, and say the same, or the present time.
const PURE: [&str; 46] = [
    "as",
    "bin_to_uuid",
    "binary",
    "cast",
    "char",
    "coalesce",
    "concat",
    "crc32",
    "curdate",
    "current_date",
    "current_timestamp",
    "date",
    "false",
    "from_base64",
    "hex",
    "inet6_aton",
    "inet_aton",
    "lcase",
    "left",
    "localtimestamp",
    "lower",
    "lpad",
    "ltrim",
    "md5",
    "n",
    "now",
    "null",
    "right",
    "rpad",
    "rtrim",
    "sha",
    "sha1",
    "sha2",
    "signed",
    "time",
    "timestamp",
    "to_base64",
    "trim",
    "true",
    "ucase",
    "unhex",
    "unsigned",
    "upper",
    "utc_date",
    "utc_timestamp",
    "uuid_to_bin",
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
    let plain = columns.find(|c| c.protection.is_none() && same_name(&c.name, &column.name));
    let mut cells = row.cells.iter();
    let cell = cells.find(|(name, _)| same_name(name, &column.name));
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
        Some(_) if pieces.iter().any(is_fresh) => Ok(Part::MeetsNothing),
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

/// Whether a piece of a row is a call that makes a new value each time.
fn is_fresh(piece: &Piece) -> bool {
    match piece {
        Piece::Sql(sql) => calls_fresh(&String::from_utf8_lossy(sql).to_ascii_lowercase()),
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
                // a variable that is read, or the character set of a literal
                is_number || word.starts_with(['@', '_']) || PURE.contains(&word)
            };
            let is_sign = |c: char| c.is_ascii_whitespace() || "+-*/(),".contains(c);
            sql.chars().all(|c| is_sign(c) || is_of_word(c)) && words(&sql).all(is_known)
        }
        _ => true,
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !is_of_word(c));
    words.filter(|word| !word.is_empty())
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '@')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_effects_is_not_asked_again() {
        let sql = |text: &str| Piece::Sql(text.as_bytes().to_vec());
        for pure in [
            "UNHEX(",
            ")",
            "-",
            "@id",
            "CAST(",
            " AS CHAR)",
            "_latin1",
            "now(6)",
        ] {
            assert!(may_be_asked_again(&sql(pure)), "{pure}");
        }
        for other in [
            "@id := ",
            "SLEEP(",
            "GET_LOCK(",
            "f(",
            "nextval(s)",
            "(SELECT 1)",
            "LAST_INSERT_ID(",
        ] {
            assert!(!may_be_asked_again(&sql(other)), "{other}");
        }
        for fresh in ["UUID()", "UUID_TO_BIN(UUID())", "rand ()"] {
            assert!(is_fresh(&sql(fresh)), "{fresh}");
        }
        assert!(!is_fresh(&sql("UUID_TO_BIN(")));
    }
}
