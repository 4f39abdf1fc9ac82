//! Plays the attacks on a column: makes stand-ins, hands them to the attacks, and compares.

use std::collections::{HashMap, HashSet};

use onionskin_physical::companions::order_source;
use onionskin_value::WeightError;
use rand::{SeedableRng, rngs::StdRng};

use super::{
    attacks::{digits, grams},
    capability::Capability,
    dictionary::Payload,
    figures::{Figures, apart, entropy},
    guessing,
    known::{Gram, Known, grams_of},
    rows::{ColumnRows, Knowledge, NONE, Split},
    scheme::{Made, Scheme},
    tally::Tally,
};

/// The share of a text's grams that have to be read for the text to count as read.
const READ: f64 = 0.9;
/// Texts whose grams are matched, in each of both sides.
const MOST_TEXTS: usize = 20_000;

/// What came of a capability, over all seeds.
#[derive(Default)]
pub struct Outcome {
    /// Of what the server sees, over all rows.
    pub figures: Figures,
    /// Taking every row for the most frequent known value.
    pub blind: Tally,
    /// By attack, in their order.
    pub attacks: Vec<(&'static str, Tally)>,
}

impl Outcome {
    fn tally(&mut self, attack: &'static str) -> &mut Tally {
        let place = self.attacks.iter().position(|(name, _)| *name == attack);
        let place = place.unwrap_or_else(|| {
            self.attacks.push((attack, Tally::default()));
            self.attacks.len() - 1
        });
        &mut self.attacks[place].1
    }
}

/// A seed's generator.
pub fn seeded(seed: u32) -> StdRng {
    StdRng::seed_from_u64(u64::from(seed))
}

/// The rows of a table that a seed holds apart.
pub fn split(columns: &[ColumnRows], seed: u32) -> Split {
    let apart = columns.iter().find_map(|column| match column.knowledge {
        Knowledge::HeldApart(share) => Some(share),
        _ => None,
    });
    let rows = columns.iter().map(|c| c.rows.len()).max().unwrap_or(0);
    Split::drawn(rows, apart.unwrap_or(0.0), &mut seeded(seed))
}

/// Attacks a column for one capability, by each seed.
pub fn play(
    column: &ColumnRows,
    capability: Capability,
    splits: &[Split],
) -> Result<Outcome, WeightError> {
    let mut outcome = Outcome::default();
    let dictionary = &column.dictionary;
    let scheme = Scheme::drawn(&mut seeded(u32::MAX));
    let whole = column.rows.iter().copied().filter(|p| *p != NONE);
    let whole = scheme.make(capability, dictionary, whole)?;
    outcome.figures = Figures::of(capability, &whole.seen);
    if capability != capability.whole() {
        let rows = column.rows.iter().copied().filter(|p| *p != NONE);
        outcome.figures.beside = Some(scheme.beside(capability, dictionary, rows)?);
        let left = outcome.figures.bits_left.get_or_insert_default();
        *left += shared_bits(&whole);
    }
    for (seed, split) in (0..).zip(splits) {
        let scheme = Scheme::drawn(&mut seeded(seed));
        let made = scheme.make(capability, dictionary, column.targets(split))?;
        let known = column.known(split);
        if seed == 0 && capability != Capability::Sealed {
            outcome.figures.apart = Some(apart(&made.seen.counts(), &known.counts()));
        }
        let blind = guessing::blind(&made.seen, &known);
        outcome.blind.count(&made, &blind, dictionary);
        let guesses = guessing::guesses(capability, dictionary, &made.seen, &known)?;
        if seed == 0 {
            outcome.figures.agree = guessing::agreement(&made.seen, &guesses);
        }
        for (attack, guesses) in guesses {
            outcome.tally(attack).count(&made, &guesses, dictionary);
        }
        match capability {
            _ if guessing::has_digits(capability, dictionary) => {
                let share = digits_read(column, capability, &made, &known)?;
                outcome.tally("digits").parts.push(share);
            }
            Capability::Like => {
                let read = grams_read(column, &scheme, column.targets(split), &known)?;
                let tally = outcome.tally("grams");
                tally.rows.push(read.rows);
                tally.values.push(read.texts);
                tally.parts.push(read.grams);
            }
            _ => {}
        }
    }
    Ok(outcome)
}

/// The bits of a row's value that a stand-in which several values share does not tell, on average.
fn shared_bits(made: &Made) -> f64 {
    let of = |classes: &Vec<(_, u64)>| -> (f64, f64) {
        let counts: Vec<f64> = classes.iter().map(|(_, rows)| *rows as f64).collect();
        (counts.iter().sum(), entropy(&counts))
    };
    let each: Vec<(f64, f64)> = made.truth.iter().map(of).collect();
    let all: f64 = each.iter().map(|(rows, _)| rows).sum();
    each.iter().map(|(rows, bits)| rows * bits).sum::<f64>() / all.max(1.0)
}

/// The share of digits of all rows' keys that are guessed right.
fn digits_read(
    column: &ColumnRows,
    capability: Capability,
    made: &Made,
    known: &Known,
) -> Result<f64, WeightError> {
    let dictionary = &column.dictionary;
    let capabilities = capability.capabilities();
    let expected = guessing::expected(&known.ordered(dictionary, capability)?);
    let counts = made.seen.counts();
    let guessed = digits::guess_digits(&guessing::keys(&made.seen), &counts, &expected);
    let (mut all, mut right) = (0.0, 0.0);
    for ((guess, truth), rows) in guessed.iter().zip(&made.truth).zip(counts) {
        let Some((class, _)) = truth.first() else {
            continue;
        };
        let mut bytes = Vec::new();
        let payload = dictionary.first_of(*class);
        order_source(dictionary.sql_type(), &capabilities, payload, &mut bytes)?;
        let truth = digits::digits(&bytes);
        all += truth.len() as f64 * rows;
        right += truth.iter().zip(guess).filter(|(t, g)| t == g).count() as f64 * rows;
    }
    Ok(if all > 0.0 { right / all } else { 0.0 })
}

/// What was read of texts by their grams.
struct Read {
    /// Share of rows of which nearly all grams are right.
    rows: f64,
    /// Share of different texts of which they are.
    texts: f64,
    /// Share of the grams of all rows that are right.
    grams: f64,
}

/// Different texts with their rows and grams; grams become numbers by `number`.
fn numbered<T>(
    texts: impl Iterator<Item = (Payload, f64)>,
    column: &ColumnRows,
    mut number: impl FnMut(&Gram) -> T,
) -> Result<Vec<(f64, Vec<T>)>, WeightError> {
    let of = |payload| grams_of(&column.dictionary, payload);
    let mut found = Vec::new();
    for (payload, rows) in texts.take(MOST_TEXTS) {
        found.push((rows, of(payload)?.iter().map(&mut number).collect()));
    }
    Ok(found)
}

fn grams_read(
    column: &ColumnRows,
    scheme: &Scheme,
    targets: impl Iterator<Item = Payload>,
    known: &Known,
) -> Result<Read, WeightError> {
    let mut counted: HashMap<Payload, f64> = HashMap::new();
    for payload in targets {
        *counted.entry(payload).or_default() += 1.0;
    }
    let mut counted: Vec<(Payload, f64)> = counted.into_iter().collect();
    counted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));

    // What the server has: tokens, numbered in the order of their words, which tells nothing.
    let mut words: HashMap<Gram, [u8; 6]> = HashMap::new();
    let seen = numbered(counted.into_iter(), column, |gram| {
        *words.entry(*gram).or_insert_with(|| scheme.gram(gram))
    })?;
    let mut order: Vec<[u8; 6]> = words.values().copied().collect();
    order.sort_unstable();
    order.dedup();
    let place = |word: &[u8; 6]| order.binary_search(word).unwrap_or_default() as u32;
    let seen: Vec<(f64, Vec<u32>)> = seen
        .into_iter()
        .map(|(rows, words)| (rows, words.iter().map(place).collect()))
        .collect();
    // What the attacker has: grams, numbered as they come.
    let mut numbers: HashMap<Gram, u32> = HashMap::new();
    let values = known.values.iter().map(|v| (v.payload, v.rows));
    let known = numbered(values, column, |gram| {
        let next = numbers.len() as u32;
        *numbers.entry(*gram).or_insert(next)
    })?;
    let guessed = grams::guess(&texts(&seen), &texts(&known));

    let truth: HashSet<(u32, u32)> = words
        .iter()
        .filter_map(|(gram, word)| Some((place(word), *numbers.get(gram)?)))
        .collect();
    let right: HashSet<u32> = guessed
        .into_iter()
        .filter(|pair| truth.contains(pair))
        .map(|(token, _)| token)
        .collect();
    Ok(score(&seen, &right))
}

fn texts(texts: &[(f64, Vec<u32>)]) -> grams::Texts<'_> {
    grams::Texts {
        texts: texts
            .iter()
            .map(|(rows, g)| (*rows, g.as_slice()))
            .collect(),
    }
}

fn score(seen: &[(f64, Vec<u32>)], right: &HashSet<u32>) -> Read {
    let (mut all_rows, mut rows, mut texts, mut all_grams, mut grams) = (0.0, 0.0, 0, 0.0, 0.0);
    for (count, tokens) in seen {
        let hits = tokens.iter().filter(|t| right.contains(t)).count() as f64;
        let is_read = !tokens.is_empty() && hits >= READ * tokens.len() as f64;
        all_rows += count;
        rows += if is_read { *count } else { 0.0 };
        texts += usize::from(is_read);
        all_grams += count * tokens.len() as f64;
        grams += count * hits;
    }
    let share = |part: f64, whole: f64| part / whole.max(1.0);
    Read {
        rows: share(rows, all_rows),
        texts: share(texts as f64, seen.len() as f64),
        grams: share(grams, all_grams),
    }
}
