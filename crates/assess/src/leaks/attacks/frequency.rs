//! Frequency analysis: the most frequent token is the most frequent value, the next the next.
//!
//! Naveed, Kamara and Wright also match histograms so that the sum of squared differences is least
//! (ℓ2-optimization), by an assignment solver. For that cost sorting *is* the solver. Let two
//! tokens have the frequencies a ≥ b, and their values c ≥ d. Then
//!
//! ```text
//! (a − d)² + (b − c)² − (a − c)² − (b − d)² = 2 (a − b) (c − d) ≥ 0
//! ```
//!
//! so that uncrossing a pair never costs more, and the matching in which nothing is crossed, which
//! is the sorted one, is among the cheapest. Where there are more values than tokens, or fewer, the
//! missing ones have the frequency 0 and stand at the end. A test compares both. By the same
//! argument the sorted matching is the most likely one, if rows are drawn from the known
//! distribution (Bindschaedler, Grubbs, Cash, Ristenpart, Shmatikov, PVLDB 2018).

use std::collections::BTreeMap;

use super::Guesses;

/// Matches by rank. Equal frequencies are matched in the order in which they stand: by chance, if
/// tokens are pseudo-random.
pub fn by_rank(tokens: &[f64], values: &[f64]) -> Guesses {
    let all = |n: usize| (0..n).collect::<Vec<_>>();
    let mut guesses = vec![None; tokens.len()];
    match_places(
        tokens,
        values,
        all(tokens.len()),
        all(values.len()),
        &mut guesses,
    );
    guesses
}

/// The same within classes that are seen beside the tokens, such as the length of the sealed cell.
pub fn by_rank_within(
    tokens: &[f64],
    token_classes: &[u32],
    values: &[f64],
    value_classes: &[u32],
) -> Guesses {
    let by_class = |classes: &[u32]| {
        let mut places: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (place, class) in classes.iter().enumerate() {
            places.entry(*class).or_default().push(place);
        }
        places
    };
    let mut guesses = vec![None; tokens.len()];
    let mut of_values = by_class(value_classes);
    for (class, of_tokens) in by_class(token_classes) {
        let of_values = of_values.remove(&class).unwrap_or_default();
        match_places(tokens, values, of_tokens, of_values, &mut guesses);
    }
    guesses
}

fn match_places(
    tokens: &[f64],
    values: &[f64],
    mut of_tokens: Vec<usize>,
    mut of_values: Vec<usize>,
    guesses: &mut Guesses,
) {
    of_tokens.sort_by(|a, b| tokens[*b].total_cmp(&tokens[*a]));
    of_values.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
    for (token, value) in of_tokens.into_iter().zip(of_values) {
        guesses[token] = Some(value);
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng, rngs::StdRng};

    use super::*;
    use crate::leaks::attacks::assignment;

    #[test]
    fn the_most_frequent_is_the_most_frequent() {
        let guesses = by_rank(&[3.0, 9.0, 1.0], &[0.2, 0.7, 0.1, 0.05]);
        assert_eq!(guesses, [Some(0), Some(1), Some(2)]);
        // more tokens than values
        assert_eq!(by_rank(&[1.0, 2.0], &[1.0]), [None, Some(0)]);
    }

    #[test]
    fn classes_are_matched_by_themselves() {
        let guesses = by_rank_within(&[5.0, 4.0, 3.0], &[1, 2, 2], &[0.1, 0.6, 0.3], &[2, 2, 7]);
        assert_eq!(guesses, [None, Some(1), Some(0)]);
    }

    #[test]
    fn no_assignment_has_less_squared_difference() {
        let mut rng = StdRng::seed_from_u64(15);
        for _ in 0..50 {
            let size = rng.random_range(1..12);
            let mut histogram = || -> Vec<f64> {
                (0..size)
                    .map(|_| f64::from(rng.random_range(0..40)) / 40.0)
                    .collect()
            };
            let (tokens, values) = (histogram(), histogram());
            let cost = |t: usize, v: usize| (tokens[t] - values[v]).powi(2);
            let sum = |guesses: &Guesses| -> f64 {
                let pairs = guesses.iter().enumerate();
                pairs.map(|(t, v)| cost(t, v.expect("as many"))).sum()
            };
            let costs: Vec<Vec<f64>> = (0..size)
                .map(|t| (0..size).map(|v| cost(t, v)).collect())
                .collect();
            let solved = sum(&assignment::cheapest(&costs));
            let sorted = sum(&by_rank(&tokens, &values));
            assert!((solved - sorted).abs() < 1e-9, "{solved} {sorted}");
        }
    }
}
