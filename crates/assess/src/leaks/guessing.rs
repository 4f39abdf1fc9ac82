//! Which attacks are played on a capability, and what they guess.

use onionskin_value::WeightError;

use super::{
    attacks::{Guesses, digits, frequency, order},
    capability::Capability,
    dictionary::{Class, Dictionary},
    figures::words,
    known::{Known, Ordered, grams_of},
    seen::Seen,
};

/// An attack by its name, and the value that each token is taken for.
pub type Named = (&'static str, Vec<Option<Class>>);

/// Without looking at anything: all rows are taken for the most frequent value.
pub fn blind(seen: &Seen, known: &Known) -> Vec<Option<Class>> {
    let most = known.values.first().map(|value| value.class);
    vec![most; seen.tokens.len()]
}

/// All attacks on what a capability shows.
pub fn guesses(
    capability: Capability,
    dictionary: &Dictionary,
    seen: &Seen,
    known: &Known,
) -> Result<Vec<Named>, WeightError> {
    let classes = |guesses: Guesses| -> Vec<Option<Class>> {
        let class = |place: Option<usize>| place.map(|place| known.values[place].class);
        guesses.into_iter().map(class).collect()
    };
    Ok(match capability {
        Capability::Sealed => vec![("length", by_length(seen, known))],
        Capability::Eq | Capability::CoarseEq(_) => {
            let rank = frequency::by_rank(&seen.counts(), &known.counts());
            let mut found = vec![("frequency", classes(rank))];
            if dictionary.sql_type().payload_fixed().is_none() {
                let within = frequency::by_rank_within(
                    &seen.counts(),
                    &seen.lengths(),
                    &known.counts(),
                    &known.lengths(),
                );
                found.push(("frequency and length", classes(within)));
            }
            found
        }
        Capability::Like => {
            // the number of different grams, and the length, in one number
            let both = |grams: usize, length: u32| ((grams as u32) << 13) | length;
            let of_tokens = seen.tokens.iter().map(|t| both(words(&t.bytes), t.length));
            let mut of_values = Vec::with_capacity(known.values.len());
            for value in &known.values {
                let grams = grams_of(dictionary, value.payload)?;
                of_values.push(both(grams.len(), value.length));
            }
            let within = frequency::by_rank_within(
                &seen.counts(),
                &of_tokens.collect::<Vec<_>>(),
                &known.counts(),
                &of_values,
            );
            vec![("whole texts", classes(within))]
        }
        Capability::Range | Capability::CoarseRange(_) => {
            let ordered = known.ordered(dictionary, capability)?;
            by_order(seen, &ordered, has_digits(capability, dictionary))
        }
    })
}

/// The most frequent known value of the length.
fn by_length(seen: &Seen, known: &Known) -> Vec<Option<Class>> {
    let most = |length: u32| known.values.iter().find(|v| v.length == length);
    let lengths = seen.tokens.iter().map(|token| token.length);
    lengths
        .map(|length| most(length).map(|v| v.class))
        .collect()
}

/// Whether stand-ins are order keys and nothing else, whose digits can be looked at.
pub fn has_digits(capability: Capability, dictionary: &Dictionary) -> bool {
    match capability {
        Capability::Range => true,
        Capability::CoarseRange(_) => dictionary.sql_type().payload_fixed().is_some(),
        _ => false,
    }
}

fn by_order(seen: &Seen, known: &[Ordered], has_digits: bool) -> Vec<Named> {
    let classes = |guesses: Guesses| -> Vec<Option<Class>> {
        let class = |place: Option<usize>| place.map(|place| known[place].class);
        guesses.into_iter().map(class).collect()
    };
    let counts = seen.counts();
    let of_known: Vec<f64> = known.iter().map(|value| value.rows).collect();
    let mut found = Vec::new();
    if let Some(sorted) = order::sorting(counts.len(), known.len()) {
        found.push(("sorting", classes(sorted)));
    }
    found.push(("cumulative", classes(order::cumulative(&counts, &of_known))));
    if let Some(likeliest) = order::likeliest(&counts, &of_known) {
        found.push(("likelihood", classes(likeliest)));
    }
    if !has_digits {
        return found;
    }
    let expected = expected(known);
    let guessed = digits::guess_digits(&keys(seen), &counts, &expected);
    found.push(("digits", classes(digits::values_of(&guessed, &expected))));
    found
}

/// The cells of all keys.
pub fn keys(seen: &Seen) -> Vec<Vec<u16>> {
    seen.tokens
        .iter()
        .map(|t| digits::cells(&t.bytes))
        .collect()
}

/// Known values by their digits.
pub fn expected(known: &[Ordered]) -> Vec<digits::Expected> {
    let one = |value: &Ordered| digits::Expected {
        digits: digits::digits(&value.bytes),
        weight: value.rows,
    };
    known.iter().map(one).collect()
}

/// The share of rows of which all attacks guess the same value; `None` if there is one attack.
pub fn agreement(seen: &Seen, guesses: &[Named]) -> Option<f64> {
    let (first, others) = guesses.split_first()?;
    if others.is_empty() {
        return None;
    }
    let is_agreed = |at: &usize| {
        first.1[*at].is_some() && others.iter().all(|other| other.1[*at] == first.1[*at])
    };
    let agreed = (0..seen.tokens.len()).filter(is_agreed);
    let agreed: u64 = agreed.map(|at| seen.tokens[at].rows).sum();
    Some(agreed as f64 / (seen.rows() as f64).max(1.0))
}
