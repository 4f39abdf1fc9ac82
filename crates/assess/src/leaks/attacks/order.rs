//! Attacks on order keys by their places.
//!
//! Tokens and values come sorted. **Sorting**: where a column holds every value of its domain, the
//! first key is the first value, and so on. **Cumulative**: a key is taken for the value with about
//! as many rows before it, and about as many of its own. Naveed, Kamara and Wright solve an
//! assignment for that; here the matching has to keep the order, which an attacker sees, so that
//! dynamic programming finds the cheapest one (Grubbs, Sekniqi, Bindschaedler, Naveed, Ristenpart,
//! S&P 2017). **Likelihood**: of the matchings that keep the order the one under which the rows
//! that are there are likeliest (the multinomial attack of Bindschaedler and others, PVLDB 2018).

use super::{Guesses, alignment};

/// The share of a value that nobody knows of.
const UNKNOWN: f64 = 1e-9;

/// The first is the first. `None` if there are not as many keys as values.
pub fn sorting(tokens: usize, values: usize) -> Option<Guesses> {
    (tokens == values).then(|| (0..tokens).map(Some).collect())
}

/// Where a member of a histogram stands: the share of rows up to its middle, and its own share.
fn places(histogram: &[f64]) -> Vec<(f64, f64)> {
    let sum: f64 = histogram.iter().sum();
    let mut before = 0.0;
    let place = |count: &f64| {
        let own = count / sum.max(f64::MIN_POSITIVE);
        let middle = before + own / 2.0;
        before += own;
        (middle, own)
    };
    histogram.iter().map(place).collect()
}

/// By the share of rows before, and the own share; who has no partner is taken for one without
/// rows. Beyond what [`alignment`] takes, by the share of rows before alone.
pub fn cumulative(tokens: &[f64], values: &[f64]) -> Guesses {
    let (seen, known) = (places(tokens), places(values));
    let cost =
        |t: usize, v: usize| (seen[t].0 - known[v].0).powi(2) + (seen[t].1 - known[v].1).powi(2);
    let longer = if seen.len() <= known.len() {
        &known
    } else {
        &seen
    };
    let alone = |at: usize| longer[at].1.powi(2);
    alignment::cheapest(tokens.len(), values.len(), cost, alone)
        .unwrap_or_else(|| seen.iter().map(|s| nearest(&known, s.0)).collect())
}

/// The matching in order under which the keys are likeliest, if rows are drawn from what is known.
/// `None` beyond what [`alignment`] takes.
pub fn likeliest(tokens: &[f64], values: &[f64]) -> Option<Guesses> {
    let sum: f64 = values.iter().sum();
    let surprise = |share: f64| -share.max(UNKNOWN).ln();
    let cost = |t: usize, v: usize| tokens[t] * surprise(values[v] / sum.max(f64::MIN_POSITIVE));
    let alone = |at: usize| match tokens.len() > values.len() {
        // a key without a value is a value that nobody knows of
        true => tokens[at] * surprise(UNKNOWN),
        false => 0.0,
    };
    alignment::cheapest(tokens.len(), values.len(), cost, alone)
}

/// The value in whose middle about as many rows have passed.
fn nearest(known: &[(f64, f64)], middle: f64) -> Option<usize> {
    let after = known.partition_point(|place| place.0 < middle);
    let candidates = [after.checked_sub(1), (after < known.len()).then_some(after)];
    let distance = |v: &usize| (known[*v].0 - middle).abs();
    candidates
        .into_iter()
        .flatten()
        .min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dense_domain_is_sorted_away() {
        assert_eq!(sorting(3, 3), Some(vec![Some(0), Some(1), Some(2)]));
        assert_eq!(sorting(3, 4), None);
    }

    #[test]
    fn a_known_distribution_places_keys_with_gaps() {
        // ages 20 to 24, of which 22 does not occur here
        let known = [10.0, 40.0, 1.0, 30.0, 19.0];
        let seen = [105.0, 390.0, 310.0, 195.0];
        let guesses = cumulative(&seen, &known);
        assert_eq!(guesses, [Some(0), Some(1), Some(3), Some(4)]);
        assert_eq!(likeliest(&seen, &known), Some(guesses));
        // a key too many: the rarest is left out
        let guesses = likeliest(&[10.0, 1.0, 20.0], &[1.0, 2.0]);
        assert_eq!(guesses, Some(vec![Some(0), None, Some(1)]));
    }

    #[test]
    fn large_domains_go_by_the_rows_before() {
        let known = vec![1.0; 9_000];
        let seen = vec![1.0; 4_500];
        assert!(known.len() * seen.len() > alignment::MAX_PAIRS);
        let guesses = cumulative(&seen, &known);
        assert!(
            guesses[10] == Some(20) || guesses[10] == Some(21),
            "{:?}",
            guesses[10]
        );
        assert!(guesses.is_sorted());
    }
}
