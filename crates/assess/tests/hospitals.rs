//! The attacks on synthetic hospitals, in the manner of Naveed, Kamara and Wright, "Inference
//! Attacks on Property-Preserving Encrypted Databases" (CCS 2015): columns of large hospitals are
//! attacked with a national distribution. Their data cannot be had; the shapes here are made up
//! after what is published of them. Figures in docs/assess.md are from this test (`--nocapture`).

use onionskin_assess::leaks::attacks::{Guesses, frequency, order};
use rand::{RngExt, SeedableRng, rngs::StdRng};

const HOSPITALS: u32 = 200;
/// Hospitals differ from the nation by a factor of up to so much, value by value.
const SCATTER: f64 = 0.15;

/// A hospital's patients by value: its own distribution, and a sample of it.
fn hospital(nation: &[f64], rng: &mut StdRng) -> Vec<u64> {
    let scattered: Vec<f64> = nation
        .iter()
        .map(|share| share * (1.0 + SCATTER * (2.0 * rng.random::<f64>() - 1.0)))
        .collect();
    let sum: f64 = scattered.iter().sum();
    let mut counts = vec![0; nation.len()];
    for _ in 0..rng.random_range(10_000..100_000) {
        let mut luck = rng.random::<f64>() * sum;
        let place = scattered.iter().position(|share| {
            luck -= share;
            luck < 0.0
        });
        counts[place.unwrap_or(nation.len() - 1)] += 1;
    }
    counts
}

/// The share of patients that an attack recovers, for each hospital, the least first. Values that
/// no patient has leave no token.
fn recovered(nation: &[f64], attack: impl Fn(&[f64], &[f64]) -> Guesses) -> Vec<f64> {
    let mut rng = StdRng::seed_from_u64(2015);
    let share = |_| {
        let counts = hospital(nation, &mut rng);
        let truth: Vec<usize> = (0..counts.len()).filter(|v| counts[*v] > 0).collect();
        let tokens: Vec<f64> = truth.iter().map(|v| counts[*v] as f64).collect();
        let guesses = attack(&tokens, nation);
        let right = guesses.iter().zip(&truth).zip(&tokens);
        let right = right.filter(|((guess, truth), _)| **guess == Some(**truth));
        right.map(|(_, rows)| rows).sum::<f64>() / tokens.iter().sum::<f64>()
    };
    let mut shares: Vec<f64> = (0..HOSPITALS).map(share).collect();
    shares.sort_by(f64::total_cmp);
    shares
}

/// The share of hospitals of which at least this share of the patients is recovered.
fn hospitals_with(shares: &[f64], least: f64) -> f64 {
    shares.iter().filter(|share| **share >= least).count() as f64 / shares.len() as f64
}

/// Minor, moderate, major, extreme.
const MORTALITY_RISK: [f64; 4] = [0.56, 0.24, 0.14, 0.06];
const SEX: [f64; 2] = [0.58, 0.42];

/// Newborns, few children, births, and the old, with a tail that thins out until 124.
fn ages() -> Vec<f64> {
    let hump = |age: f64, middle: f64, width: f64| (-((age - middle) / width).powi(2)).exp();
    (0..125)
        .map(|age| {
            let a = f64::from(age);
            let newborn = if age == 0 { 12.0 } else { 0.0 };
            newborn
                + 0.25 * hump(a, 5.0, 8.0)
                + 0.9 * hump(a, 28.0, 8.0)
                + 1.4 * hump(a, 70.0, 17.0)
        })
        .collect()
}

#[test]
fn few_values_are_read_by_frequency() {
    for (name, nation) in [("mortality risk", &MORTALITY_RISK[..]), ("sex", &SEX)] {
        let shares = recovered(nation, frequency::by_rank);
        let whole = hospitals_with(&shares, 1.0);
        println!(
            "{name}: all patients of {:.1} % of the hospitals",
            100.0 * whole
        );
        assert!(whole >= 0.95, "{name}: {whole}");
    }
}

#[test]
fn ages_are_read_by_their_order() {
    let likeliest =
        |tokens: &[f64], values: &[f64]| order::likeliest(tokens, values).expect("few values");
    // Cumulative counts drift from the nation's, and where a hospital has no patient of some ages a
    // whole stretch may be taken for its neighbours.
    for (name, shares, least) in [
        ("cumulative", recovered(&ages(), order::cumulative), 0.7),
        ("likelihood", recovered(&ages(), likeliest), 0.95),
    ] {
        let most = hospitals_with(&shares, 0.8);
        let middle = shares[shares.len() / 2];
        println!(
            "age, {name}: 80 % of the patients of {:.1} % of the hospitals; {:.1} % in the middle one",
            100.0 * most,
            100.0 * middle
        );
        assert!(most >= least, "{name}: {most}, {middle}");
    }
    // and by frequency alone hardly
    let by_rank = recovered(&ages(), frequency::by_rank);
    assert!(by_rank[by_rank.len() / 2] < 0.5, "{by_rank:?}");
}
