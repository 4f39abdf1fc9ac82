//! In which order variants are measured.
//!
//! A machine warms up, its disk fills, its neighbours wake: whoever is always measured last pays
//! for it. So a round runs all variants one after the other, and every second round runs them
//! backwards (A B, B A, A B, …): a drift that is linear in time then hits each variant alike in
//! each two rounds, and the pairs of a round lie close together.

/// The variants of one round, by their numbers.
pub fn order(variants: usize, round: usize) -> Vec<usize> {
    match round % 2 {
        0 => (0..variants).collect(),
        _ => (0..variants).rev().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_variants_run_a_b_b_a() {
        let runs: Vec<usize> = (0..4).flat_map(|round| order(2, round)).collect();
        assert_eq!(runs, [0, 1, 1, 0, 0, 1, 1, 0]);
    }

    #[test]
    fn a_linear_drift_hits_all_variants_alike() {
        for variants in 1..7 {
            let mut at = vec![0; variants];
            let runs = (0..4).flat_map(|round| order(variants, round));
            for (moment, variant) in runs.enumerate() {
                at[variant] += moment;
            }
            assert!(at.iter().all(|sum| *sum == at[0]), "{variants}: {at:?}");
        }
    }
}
