//! Columns that tell of each other: two of one table that are correlated, and two of different
//! tables that a foreign key ties together.

use std::collections::{HashMap, HashSet};

use onionskin_value::WeightError;
use serde::{Deserialize, Serialize};

use super::{
    attacks::{Guesses, frequency, pairs},
    capability::Capability,
    dictionary::Class,
    figures::entropy,
    guessing,
    known::Known,
    play::seeded,
    rows::{ColumnRows, NONE, Split},
    scheme::{Made, Scheme},
    tally::{Spread, Tally},
};

/// Pairs of a table that are attacked: those that tell most of each other.
const MOST_PAIRS: usize = 8;
/// Columns of a table that are looked at for pairs.
const MOST_COLUMNS: usize = 16;

/// Two columns of one table, attacked at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairLeak {
    /// The table.
    pub table: String,
    /// Their names.
    pub columns: [String; 2],
    /// How many bits they tell of each other.
    pub shared_bits: f64,
    /// The share of rows of each that its frequencies alone give away.
    pub alone: [Spread; 2],
    /// The share of rows of each that both together give away.
    pub together: [Spread; 2],
}

/// Two columns that share their tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkLeak {
    /// The column that refers: `visits.patient`.
    pub child: String,
    /// The one that it refers to.
    pub parent: String,
    /// The share of the parent's rows that have rows of the child.
    pub linked: f64,
    /// The share of the parent's rows that have as many rows of the child as no other one.
    pub alone: f64,
    /// The share of the parent's rows that its own frequencies give away.
    pub by_itself: Option<Spread>,
    /// The share of them that the child's frequencies give away.
    pub by_link: Option<Spread>,
}

/// Attacks the pairs of a table.
pub fn pairs(
    table: &str,
    columns: &[ColumnRows],
    splits: &[Split],
) -> Result<Vec<PairLeak>, WeightError> {
    let is_small = |c: &&ColumnRows| {
        (2..=pairs::MOST).contains(&c.dictionary.classes())
            && c.capabilities.contains(&Capability::Eq)
            && c.problem.is_none()
    };
    let small: Vec<&ColumnRows> = columns.iter().filter(is_small).take(MOST_COLUMNS).collect();
    let mut found = Vec::new();
    for (at, first) in small.iter().enumerate() {
        for second in &small[at + 1..] {
            found.push((shared_bits(first, second), *first, *second));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut leaks = Vec::new();
    for (bits, first, second) in found.into_iter().take(MOST_PAIRS) {
        if let Some((alone, together)) = pair([first, second], splits)? {
            leaks.push(PairLeak {
                table: table.to_owned(),
                columns: [first.name.clone(), second.name.clone()],
                shared_bits: bits,
                alone,
                together,
            });
        }
    }
    Ok(leaks)
}

/// The mutual information of two columns, over the rows in which both have a value.
fn shared_bits(first: &ColumnRows, second: &ColumnRows) -> f64 {
    let mut joint: HashMap<(Class, Class), f64> = HashMap::new();
    let (mut one, mut other) = (HashMap::new(), HashMap::new());
    for (a, b) in first.rows.iter().zip(&second.rows) {
        if *a != NONE && *b != NONE {
            let (a, b) = (first.dictionary.class(*a), second.dictionary.class(*b));
            *joint.entry((a, b)).or_default() += 1.0;
            *one.entry(a).or_insert(0.0) += 1.0;
            *other.entry(b).or_insert(0.0) += 1.0;
        }
    }
    let counts = |counted: HashMap<Class, f64>| entropy(&counted.into_values().collect::<Vec<_>>());
    let joint: Vec<f64> = joint.into_values().collect();
    (counts(one) + counts(other) - entropy(&joint)).max(0.0)
}

type Both = [Spread; 2];

/// Rows of both by frequency alone, and together. `None` if what is known is not known row by row.
fn pair(columns: [&ColumnRows; 2], splits: &[Split]) -> Result<Option<(Both, Both)>, WeightError> {
    let mut alone = [Tally::default(), Tally::default()];
    let mut together = [Tally::default(), Tally::default()];
    for (seed, split) in (0..).zip(splits) {
        let mut rng = seeded(seed);
        let mut made = Vec::new();
        for column in columns {
            let scheme = Scheme::drawn(&mut rng);
            made.push(scheme.make(Capability::Eq, &column.dictionary, column.targets(split))?);
        }
        let known = columns.map(|column| column.known(split));
        let Some(guesses) = guess(columns, &made, &known, split) else {
            return Ok(None);
        };
        for at in [0, 1] {
            let class = |place: Option<usize>| place.map(|place| known[at].values[place].class);
            let classes = |guesses: Guesses| guesses.into_iter().map(class).collect::<Vec<_>>();
            let rank = frequency::by_rank(&made[at].seen.counts(), &known[at].counts());
            let dictionary = &columns[at].dictionary;
            alone[at].count(&made[at], &classes(rank), dictionary);
            together[at].count(&made[at], &classes(guesses[at].clone()), dictionary);
        }
    }
    let spreads = |tallies: [Tally; 2]| tallies.map(|t| Spread::of(&t.rows).unwrap_or_default());
    Ok(Some((spreads(alone), spreads(together))))
}

fn guess(
    columns: [&ColumnRows; 2],
    made: &[Made],
    known: &[Known; 2],
    split: &Split,
) -> Option<[Guesses; 2]> {
    let [first, second] = columns;
    let (known_first, known_second) = (first.known_rows(split)?, second.known_rows(split)?);
    let places = [0, 1].map(|at: usize| -> HashMap<Class, usize> {
        let values = known[at].values.iter().enumerate();
        values.map(|(place, value)| (value.class, place)).collect()
    });
    let known_pairs = counted(
        known_first
            .iter()
            .zip(&known_second)
            .filter_map(|(a, b)| Some((*places[0].get(&(*a)?)?, *places[1].get(&(*b)?)?))),
    );
    // An equality token stands for one class.
    let tokens = [0, 1].map(|at: usize| -> HashMap<Class, usize> {
        let truth = made[at].truth.iter().enumerate();
        truth
            .filter_map(|(token, classes)| Some((classes.first()?.0, token)))
            .collect()
    });
    let rows = first.rows.iter().zip(&second.rows).enumerate();
    let seen_pairs = counted(rows.filter_map(|(row, (a, b))| {
        if *a == NONE || *b == NONE || !first.is_target(split, row) {
            return None;
        }
        let token = tokens[0].get(&first.dictionary.class(*a))?;
        Some((*token, *tokens[1].get(&second.dictionary.class(*b))?))
    }));
    pairs::guess(
        &pairs::Pairs {
            members: [made[0].seen.tokens.len(), made[1].seen.tokens.len()],
            rows: seen_pairs,
        },
        &pairs::Pairs {
            members: [known[0].values.len(), known[1].values.len()],
            rows: known_pairs,
        },
    )
}

fn counted(pairs: impl Iterator<Item = (usize, usize)>) -> Vec<(usize, usize, f64)> {
    let mut counted: HashMap<(usize, usize), f64> = HashMap::new();
    for pair in pairs {
        *counted.entry(pair).or_default() += 1.0;
    }
    let mut rows: Vec<_> = counted
        .into_iter()
        .map(|((a, b), rows)| (a, b, rows))
        .collect();
    // sums of floating point numbers depend on their order
    rows.sort_by_key(|(a, b, _)| (*a, *b));
    rows
}

/// A column of one table beside the column of another one that it refers to.
pub struct Link<'a> {
    /// What refers.
    pub child: &'a ColumnRows,
    /// Its table's splits.
    pub child_splits: &'a [Split],
    /// What it refers to.
    pub parent: &'a ColumnRows,
    /// Its table's splits.
    pub parent_splits: &'a [Split],
}

/// Attacks the parent by the frequencies of the child: they share their tokens, so what one is
/// taken for, the other is.
pub fn link(link: &Link<'_>, names: [String; 2]) -> Result<LinkLeak, WeightError> {
    let (child, parent) = (link.child, link.parent);
    let mut of_child: HashMap<Class, u64> = HashMap::new();
    for payload in child.rows.iter().filter(|p| **p != NONE) {
        *of_child
            .entry(child.dictionary.class(*payload))
            .or_default() += 1;
    }
    // the parent's values as classes of the child
    let in_child = |payload: u32| {
        child
            .dictionary
            .class_of_payload(parent.dictionary.payload(payload))
    };
    let parents: Vec<Option<Class>> = parent
        .rows
        .iter()
        .filter(|payload| **payload != NONE)
        .map(|payload| in_child(*payload))
        .collect();
    let mut how_many: HashMap<u64, u64> = HashMap::new();
    let rows_of =
        |class: &Option<Class>| class.and_then(|c| of_child.get(&c)).copied().unwrap_or(0);
    for class in &parents {
        *how_many.entry(rows_of(class)).or_default() += 1;
    }
    let (mut by_itself, mut by_link) = (Vec::new(), Vec::new());
    let splits = link.child_splits.iter().zip(link.parent_splits);
    for (seed, (of_child, of_parent)) in (0..).zip(splits) {
        let mut tally = Tally::default();
        let scheme = Scheme::drawn(&mut seeded(seed));
        let made = scheme.make(
            Capability::Eq,
            &parent.dictionary,
            parent.targets(of_parent),
        )?;
        let known = parent.known(of_parent);
        let rank = frequency::by_rank(&made.seen.counts(), &known.counts());
        let classes = rank.into_iter().map(|p| p.map(|p| known.values[p].class));
        tally.count(&made, &classes.collect::<Vec<_>>(), &parent.dictionary);
        by_itself.extend(tally.rows);

        let made = scheme.make(Capability::Eq, &child.dictionary, child.targets(of_child))?;
        let known = child.known(of_child);
        let guesses = guessing::guesses(Capability::Eq, &child.dictionary, &made.seen, &known)?;
        let right = |guesses: &[Option<Class>]| -> HashSet<Class> {
            let tokens = made.truth.iter().zip(guesses);
            let hits = tokens.filter_map(|(truth, guess)| {
                let (class, _) = truth.first()?;
                (*guess == Some(*class)).then_some(*class)
            });
            hits.collect()
        };
        let shares = guesses.iter().map(|(_, guesses)| {
            let right = right(guesses);
            let hits = parents
                .iter()
                .flatten()
                .filter(|class| right.contains(class));
            share(hits.count(), parents.len())
        });
        by_link.push(shares.fold(0.0, f64::max));
    }
    let linked = parents.iter().filter(|class| rows_of(class) > 0).count();
    let alone = parents
        .iter()
        .map(rows_of)
        .filter(|rows| *rows > 0 && how_many[rows] == 1)
        .count();
    let [child, parent] = names;
    Ok(LinkLeak {
        child,
        parent,
        linked: share(linked, parents.len()),
        alone: share(alone, parents.len()),
        by_itself: Spread::of(&by_itself),
        by_link: Spread::of(&by_link),
    })
}

fn share(part: usize, whole: usize) -> f64 {
    part as f64 / (whole as f64).max(1.0)
}
