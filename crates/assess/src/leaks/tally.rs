//! How well guesses did: over seeds, and by classes of values.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    dictionary::{Class, Dictionary},
    scheme::Made,
};

/// A share over seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Its mean.
    pub mean: f64,
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

impl Spread {
    /// Of one share for each seed; `None` without any.
    pub fn of(shares: &[f64]) -> Option<Self> {
        (!shares.is_empty()).then(|| Self {
            mean: shares.iter().sum::<f64>() / shares.len() as f64,
            low: shares.iter().copied().fold(f64::INFINITY, f64::min),
            high: shares.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }

    /// `42 % (40 to 44)`
    pub fn shown(&self) -> String {
        let percent = |share: f64| match share * 100.0 {
            p if p > 0.0 && p < 0.95 || p > 99.05 && p < 100.0 => format!("{p:.2}"),
            p => format!("{p:.0}"),
        };
        let [mean, low, high] = [self.mean, self.low, self.high].map(percent);
        match low == high {
            true => format!("{mean} %"),
            false => format!("{mean} % ({low} to {high})"),
        }
    }
}

/// A class of values, by what they look like and never by what they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassAtRisk {
    /// `frequency`, `length` or `shape`.
    pub by: String,
    /// `of 10 to 99 rows`
    pub class: String,
    /// The share of rows that are of it.
    pub rows: f64,
    /// The share of these that were recovered, over all seeds.
    pub recovered: f64,
}

/// What one attack came to, seed by seed.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Shares of rows.
    pub rows: Vec<f64>,
    /// Shares of different values.
    pub values: Vec<f64>,
    /// Shares of parts: digits, or grams.
    pub parts: Vec<f64>,
    classes: BTreeMap<(&'static str, &'static str), (u64, u64)>,
}

impl Tally {
    /// Counts guesses of one seed; the truth is looked at here alone.
    pub fn count(&mut self, made: &Made, guesses: &[Option<Class>], dictionary: &Dictionary) {
        let mut classes: BTreeMap<Class, (u64, bool)> = BTreeMap::new();
        let (mut all, mut right) = (0, 0);
        let mut hits = Vec::new();
        for (truth, guess) in made.truth.iter().zip(guesses) {
            for (class, rows) in truth {
                let is_hit = *guess == Some(*class);
                all += rows;
                right += if is_hit { *rows } else { 0 };
                let entry = classes.entry(*class).or_default();
                entry.0 += rows;
                entry.1 |= is_hit;
                hits.push((*class, *rows, is_hit));
            }
        }
        let share = |part: u64, whole: u64| part as f64 / (whole as f64).max(1.0);
        let found = classes.values().filter(|(_, is_hit)| *is_hit).count();
        self.rows.push(share(right, all));
        self.values.push(share(found as u64, classes.len() as u64));
        for (class, rows, is_hit) in hits {
            for label in labels(dictionary, class, classes[&class].0) {
                let counted = self.classes.entry(label).or_default();
                counted.0 += rows;
                counted.1 += if is_hit { rows } else { 0 };
            }
        }
    }

    /// Classes of values, with how much of each was recovered.
    pub fn classes(&self) -> Vec<ClassAtRisk> {
        let frequency = self.classes.iter().filter(|((by, _), _)| *by == FREQUENCY);
        let all: u64 = frequency.map(|(_, (rows, _))| rows).sum();
        let one = |((by, class), (rows, right)): (&(&str, &str), &(u64, u64))| ClassAtRisk {
            by: (*by).to_owned(),
            class: (*class).to_owned(),
            rows: *rows as f64 / (all as f64).max(1.0),
            recovered: *right as f64 / (*rows as f64).max(1.0),
        };
        self.classes.iter().map(one).collect()
    }
}

const FREQUENCY: &str = "frequency";

/// In which classes a value is.
fn labels(
    dictionary: &Dictionary,
    class: Class,
    rows: u64,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    let ty = dictionary.sql_type();
    let payload = dictionary.first_of(class);
    let frequency = match rows {
        0..=1 => "1 row",
        2..=9 => "2 to 9 rows",
        10..=99 => "10 to 99 rows",
        100..=999 => "100 to 999 rows",
        _ => "1,000 rows and more",
    };
    let length = ty.payload_fixed().is_none().then_some(match payload.len() {
        0..=3 => "0 to 3 bytes",
        4..=7 => "4 to 7 bytes",
        8..=15 => "8 to 15 bytes",
        _ => "16 bytes and more",
    });
    let is_text = ty.is_character() && ty.charset().has_ascii();
    let shape = is_text.then(|| shape(payload));
    [
        Some((FREQUENCY, frequency)),
        length.map(|l| ("length", l)),
        shape.map(|s| ("shape", s)),
    ]
    .into_iter()
    .flatten()
}

fn shape(text: &[u8]) -> &'static str {
    let is_letter = |b: &u8| b.is_ascii_alphabetic() || !b.is_ascii();
    let letters = text.iter().filter(|b| is_letter(b)).count();
    let digits = text.iter().filter(|b| b.is_ascii_digit()).count();
    match () {
        () if letters + digits < text.len() => "with other characters",
        () if digits == 0 => "letters",
        () if letters == 0 => "digits",
        () => "letters and digits",
    }
}

#[cfg(test)]
mod tests {
    use onionskin_value::{Family, SqlType};

    use super::*;
    use crate::leaks::seen::{Seen, Token};

    #[test]
    fn rows_values_and_classes_are_counted() {
        let ty = SqlType::parse("varchar(20)", Some("utf8mb4_general_ci")).expect("a type");
        let mut dictionary = Dictionary::new(ty, Family::MariaDb, 1_000);
        for value in ["Ulm", "12345", "a-b"] {
            dictionary.add_sent(value.as_bytes()).expect("it fits");
        }
        let token = |rows| Token {
            bytes: vec![],
            rows,
            length: 0,
        };
        let made = Made {
            seen: Seen {
                tokens: vec![token(12), token(3)],
            },
            truth: vec![vec![(0, 12)], vec![(1, 1), (2, 2)]],
        };
        let mut tally = Tally::default();
        tally.count(&made, &[Some(0), Some(2)], &dictionary);
        tally.count(&made, &[None, Some(0)], &dictionary);
        assert_eq!(tally.rows, [14.0 / 15.0, 0.0]);
        assert_eq!(tally.values, [2.0 / 3.0, 0.0]);
        let of = |class: &str| {
            let classes = tally.classes();
            let found = classes.iter().find(|c| c.class == class).expect(class);
            (found.rows, found.recovered)
        };
        assert_eq!(of("10 to 99 rows"), (0.8, 0.5));
        assert_eq!(of("digits"), (1.0 / 15.0, 0.0));
        assert_eq!(of("with other characters"), (2.0 / 15.0, 0.5));
        assert_eq!(of("0 to 3 bytes"), (14.0 / 15.0, 0.5));
    }

    #[test]
    fn spreads_are_short() {
        let shown = |shares: &[f64]| Spread::of(shares).expect("shares").shown();
        assert_eq!(shown(&[0.5, 0.52]), "51 % (50 to 52)");
        assert_eq!(shown(&[1.0, 1.0]), "100 %");
        assert_eq!(shown(&[0.002]), "0.20 %");
        assert_eq!(Spread::of(&[]), None);
    }
}
