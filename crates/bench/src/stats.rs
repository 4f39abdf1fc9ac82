//! Statistics of few, noisy measurements: medians with their spread, and ratios of pairs with a
//! confidence interval.
//!
//! Speeds are compared as *ratios within a round*, because the two runs of a round share the
//! machine's mood, and rounds do not. The logarithms of ratios are about normally distributed, so
//! their mean has a Student interval; the interval of the ratio is its exponential. With few rounds
//! the interval is wide, as it should be: two rounds can show hardly anything, three a difference
//! of a multiple of their scatter.

use serde::{Deserialize, Serialize};

/// Where the measurements of one variant lie.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// The middle one; the mean of the two in the middle if their number is even.
    pub median: f64,
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// How many there are.
    pub runs: usize,
}

impl Summary {
    /// `None` without values.
    pub fn of(values: &[f64]) -> Option<Self> {
        Some(Self {
            median: median(values)?,
            low: values.iter().copied().fold(f64::INFINITY, f64::min),
            high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            runs: values.len(),
        })
    }
}

/// The middle value; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// What the pairs of a comparison say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval lies above 1.
    Higher,
    /// The whole interval lies below 1.
    Lower,
    /// The interval holds 1: the difference, if there is one, is within the noise.
    NoDifference,
    /// Fewer than two pairs: nothing is known about the noise.
    TooFewPairs,
}

/// A measurement over the same measurement of the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratio {
    /// Geometric mean of the ratios of all pairs.
    pub ratio: f64,
    /// Lower end of the 95 % confidence interval; the ratio itself with one pair.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How many pairs there are.
    pub pairs: usize,
    /// What may be said.
    pub verdict: Verdict,
}

impl Ratio {
    /// Of pairs (baseline, variant). Pairs in which either is not a positive number are left out;
    /// `None` without any.
    pub fn of_pairs(pairs: &[(f64, f64)]) -> Option<Self> {
        let logs: Vec<f64> = pairs
            .iter()
            .filter(|(base, other)| *base > 0.0 && *other > 0.0)
            .map(|(base, other)| (other / base).ln())
            .filter(|log| log.is_finite())
            .collect();
        let n = logs.len();
        if n == 0 {
            return None;
        }
        let mean = logs.iter().sum::<f64>() / n as f64;
        if n == 1 {
            let ratio = mean.exp();
            return Some(Self {
                ratio,
                low: ratio,
                high: ratio,
                pairs: 1,
                verdict: Verdict::TooFewPairs,
            });
        }
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
        let half = student_975(n - 1) * (variance / n as f64).sqrt();
        let (low, high) = ((mean - half).exp(), (mean + half).exp());
        let verdict = if low > 1.0 {
            Verdict::Higher
        } else if high < 1.0 {
            Verdict::Lower
        } else {
            Verdict::NoDifference
        };
        Some(Self {
            ratio: mean.exp(),
            low,
            high,
            pairs: n,
            verdict,
        })
    }
}

/// The 97.5 % quantile of Student's t with `degrees` of freedom: tabulated to 30, then by the first
/// terms of its Cornish-Fisher expansion (Abramowitz and Stegun, 26.7.5), which is right to four
/// digits there.
pub fn student_975(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010,
        2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739,
        2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
    ];
    match degrees {
        0 => f64::INFINITY,
        1..=30 => TABLE[degrees - 1],
        _ => {
            let z = 1.959_964_f64;
            let n = degrees as f64;
            z + (z.powi(3) + z) / (4.0 * n)
                + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-4 * b.abs().max(1.0)
    }

    #[test]
    fn the_median_is_the_middle_and_the_spread_the_ends() {
        assert_eq!(Summary::of(&[]), None);
        let odd = Summary::of(&[3.0, 1.0, 100.0]).expect("three values");
        assert_eq!(
            (odd.median, odd.low, odd.high, odd.runs),
            (3.0, 1.0, 100.0, 3)
        );
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn an_interval_is_what_the_textbook_computes() {
        // Logs of the ratios: ln 2, ln 2, ln 0.5, ln 1; mean 0.1733, s = 0.6640, t(3) = 3.1824,
        // half = 1.0565.
        let pairs = [(1.0, 2.0), (10.0, 20.0), (4.0, 2.0), (3.0, 3.0)];
        let ratio = Ratio::of_pairs(&pairs).expect("four pairs");
        assert!(near(ratio.ratio, 2f64.powf(0.25)), "{ratio:?}");
        let s = (((2f64.ln() * 0.75).powi(2) * 2.0
            + (2f64.ln() * 1.25).powi(2)
            + (2f64.ln() * 0.25).powi(2))
            / 3.0)
            .sqrt();
        assert!(near(s, 0.663_6), "{s}");
        let half = 3.1824 * s / 2.0;
        assert!(near(ratio.low, (2f64.ln() / 4.0 - half).exp()), "{ratio:?}");
        assert!(
            near(ratio.high, (2f64.ln() / 4.0 + half).exp()),
            "{ratio:?}"
        );
        assert_eq!(ratio.verdict, Verdict::NoDifference);
    }

    #[test]
    fn verdicts_need_the_whole_interval_on_one_side() {
        let lower = [(100.0, 80.0), (50.0, 40.5), (10.0, 7.9), (30.0, 24.1)];
        assert_eq!(
            Ratio::of_pairs(&lower).expect("pairs").verdict,
            Verdict::Lower
        );
        let higher: Vec<_> = lower.iter().map(|(a, b)| (*b, *a)).collect();
        assert_eq!(
            Ratio::of_pairs(&higher).expect("pairs").verdict,
            Verdict::Higher
        );
        let one = Ratio::of_pairs(&[(1.0, 9.0)]).expect("a pair");
        assert_eq!(one.verdict, Verdict::TooFewPairs);
        assert!(near(one.ratio, 9.0));
        assert_eq!(Ratio::of_pairs(&[(0.0, 1.0), (f64::NAN, 1.0)]), None);
    }

    #[test]
    fn a_machine_that_drifts_shows_no_difference_within_pairs() {
        // The machine slows down by half over the rounds, for both alike: ratios do not see it.
        let pairs: Vec<_> = (0..8)
            .map(|n| {
                let mood = 1.0 - f64::from(n) / 16.0;
                let noise = if n % 2 == 0 { 1.01 } else { 0.99 };
                (1000.0 * mood, 1000.0 * mood * noise)
            })
            .collect();
        let ratio = Ratio::of_pairs(&pairs).expect("pairs");
        assert_eq!(ratio.verdict, Verdict::NoDifference);
        assert!(ratio.high / ratio.low < 1.03, "{ratio:?}");
    }

    #[test]
    fn quantiles_agree_with_printed_tables() {
        for (degrees, expected) in [
            (1, 12.7062),
            (2, 4.3027),
            (10, 2.2281),
            (30, 2.0423),
            (40, 2.0211),
            (60, 2.0003),
            (120, 1.9799),
        ] {
            assert!(
                (student_975(degrees) - expected).abs() < 2e-4,
                "{degrees}: {}",
                student_975(degrees)
            );
        }
    }
}
