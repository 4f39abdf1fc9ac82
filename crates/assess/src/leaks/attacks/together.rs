//! Matching by company: what is already guessed helps to guess what occurs together with it.

use super::{Guesses, assignment};

/// How often each of the first list occurs, and occurs together with each of the second, as shares
/// of rows.
#[derive(Clone, Debug, Default)]
pub struct Together {
    /// Of each.
    pub alone: Vec<f64>,
    /// Of each, with each of the second list.
    pub with: Vec<Vec<f64>>,
}

impl Together {
    /// Nothing counted.
    pub fn new(firsts: usize, seconds: usize) -> Self {
        Self {
            alone: vec![0.0; firsts],
            with: vec![vec![0.0; seconds]; firsts],
        }
    }
}

/// Matches the first list anew: frequencies have to agree, alone and together with those of the
/// second list that are taken for something. Roots are compared, because the error of a count
/// grows with its root.
pub fn rematch(seen: &Together, known: &Together, seconds: &Guesses) -> Guesses {
    let guessed: Vec<(usize, usize)> = seconds
        .iter()
        .enumerate()
        .filter_map(|(token, value)| Some((token, (*value)?)))
        .collect();
    let cost = |token: usize, value: usize| {
        let company = guessed.iter();
        let company = company.map(|(t, v)| apart(seen.with[token][*t], known.with[value][*v]));
        apart(seen.alone[token], known.alone[value]) + company.sum::<f64>()
    };
    let costs: Vec<Vec<f64>> = (0..seen.alone.len())
        .map(|token| {
            (0..known.alone.len())
                .map(|value| cost(token, value))
                .collect()
        })
        .collect();
    assignment::cheapest(&costs)
}

/// What two shares cost that are taken for the same.
fn apart(a: f64, b: f64) -> f64 {
    (a.sqrt() - b.sqrt()).powi(2)
}

/// What guesses for both lists cost: how far what is seen is from what is known.
pub fn distance(seen: &Together, known: &Together, firsts: &Guesses, seconds: &Guesses) -> f64 {
    let mut sum = 0.0;
    for (token, value) in firsts.iter().enumerate() {
        let alone = value.map_or(0.0, |value| known.alone[value]);
        sum += apart(seen.alone[token], alone);
        for (other, second) in seconds.iter().enumerate() {
            let with = value.zip(*second).map_or(0.0, |(v, s)| known.with[v][s]);
            sum += apart(seen.with[token][other], with);
        }
    }
    sum
}
