//! What the figures mean for a policy.

use serde::{Deserialize, Serialize};

use super::capability::Capability;

/// From this share on of what would be missed by guessing blindly, a capability gives the column
/// away.
pub const GIVES_AWAY: f64 = 0.25;
/// From this share on it tells something.
pub const TELLS: f64 = 0.05;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// Little more than without it, by these attacks and this knowledge.
    Little,
    /// A part of the rows.
    Some,
    /// A large part.
    Much,
}

impl Risk {
    /// Of a gain over blind guessing.
    pub fn of(gain: f64) -> Self {
        match gain {
            gain if gain >= GIVES_AWAY => Self::Much,
            gain if gain >= TELLS => Self::Some,
            _ => Self::Little,
        }
    }

    /// As it is shown.
    pub fn word(self) -> &'static str {
        match self {
            Self::Little => "little",
            Self::Some => "some",
            Self::Much => "much",
        }
    }
}

/// The share of the rows that blind guessing misses, and the best attack gets.
pub fn gain(best: f64, blind: f64) -> f64 {
    match blind < 1.0 {
        true => ((best - blind) / (1.0 - blind)).max(0.0),
        false => 0.0,
    }
}

/// What came of a capability.
#[derive(Clone, Copy, Debug)]
pub struct Judged {
    /// Which one.
    pub capability: Capability,
    /// How bad it is.
    pub risk: Risk,
    /// See [`Figures::beside`](super::Figures::beside).
    pub beside: f64,
}

/// What to do, from all capabilities of a column that were attacked.
pub fn advice(capability: Capability, judged: &[Judged]) -> String {
    let of = |wanted: Capability| judged.iter().find(|j| j.capability == wanted);
    let risk = of(capability).map_or(Risk::Little, |j| j.risk);
    let is_weaker = |weaker: Capability| of(weaker).is_some_and(|found| found.risk < risk);
    // of those that tell least, the one with the most bits reads least beside what it looks for
    let fewer = judged.iter().filter(|j| {
        j.capability != capability && j.capability.whole() == capability && j.risk < risk
    });
    let fewer = fewer.min_by_key(|j| (j.risk, std::cmp::Reverse(j.capability)));
    match (capability, risk) {
        (_, Risk::Little) => "keep it, as far as these attacks and this knowledge go".into(),
        (Capability::Sealed, _) => {
            "the length alone tells: pad the values in the application, or use a type of one length".into()
        }
        _ if let Some(fewer) = fewer => format!(
            "weaken it: {} tells {}, and a search reads {:.0} rows beside its own",
            fewer.capability.word(),
            fewer.risk.word(),
            fewer.beside
        ),
        (Capability::Range, _) if is_weaker(Capability::Eq) => {
            "weaken it: eq tells less; let the proxy finish ranges over rows that other columns narrow".into()
        }
        (Capability::Like, _) if is_weaker(Capability::Eq) => {
            "weaken it: eq tells less; LIKE works without it over rows that other columns narrow".into()
        }
        (_, Risk::Much) => "drop it: seal the column, and search by another one".into(),
        (_, Risk::Some) => {
            "drop it if the column can be searched by another one; else know what is read (see the classes)".into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_everybody_guesses_is_no_gain() {
        assert_eq!(gain(0.95, 0.95), 0.0);
        assert_eq!(gain(0.5, 0.6), 0.0);
        assert_eq!(gain(1.0, 1.0), 0.0);
        assert!((gain(0.8, 0.6) - 0.5).abs() < 1e-9);
        assert_eq!(Risk::of(0.3), Risk::Much);
        assert_eq!(Risk::of(0.1), Risk::Some);
        assert_eq!(Risk::of(0.01), Risk::Little);
    }

    #[test]
    fn a_weaker_capability_is_proposed_where_it_tells_less() {
        use Capability::{CoarseRange, Eq, Range, Sealed};
        let judged = |capability, risk| Judged {
            capability,
            risk,
            beside: 41.5,
        };
        let range = |eq| advice(Range, &[judged(Eq, eq), judged(Range, Risk::Much)]);
        assert!(range(Risk::Little).starts_with("weaken it: eq"));
        assert!(range(Risk::Much).starts_with("drop it"));
        assert!(advice(Eq, &[judged(Eq, Risk::Little)]).starts_with("keep it"));
        assert!(advice(Sealed, &[judged(Sealed, Risk::Much)]).contains("pad"));
        let coarse = [
            judged(Eq, Risk::Little),
            judged(CoarseRange(8), Risk::Little),
            judged(CoarseRange(12), Risk::Little),
            judged(CoarseRange(16), Risk::Some),
            judged(Range, Risk::Much),
        ];
        assert!(advice(Range, &coarse).starts_with("weaken it: range:12 tells little"));
        assert!(advice(CoarseRange(16), &coarse).starts_with("drop it if"));
    }
}
