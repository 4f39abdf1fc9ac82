//! What the server may do with a column, one at a time.

use onionskin_schema::{Capabilities, possible};
use onionskin_value::SqlType;
use serde::{Deserialize, Serialize};

/// One of them. Each is attacked by itself: what several show together is at least as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// None.
    Sealed,
    /// Equality, also in a join group.
    Eq,
    /// LIKE.
    Like,
    /// Order.
    Range,
}

impl Capability {
    /// All of them, what shows least first.
    pub const ALL: [Self; 4] = [Self::Sealed, Self::Eq, Self::Like, Self::Range];

    /// As in `[protect]`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sealed => "sealed",
            Self::Eq => "eq",
            Self::Like => "like",
            Self::Range => "range",
        }
    }

    /// From a word of `[protect]`; a join group's tokens are those of `eq`.
    pub fn of_word(word: &str) -> Option<Self> {
        match word {
            "eq" => Some(Self::Eq),
            "like" => Some(Self::Like),
            "range" => Some(Self::Range),
            "sealed" => Some(Self::Sealed),
            other => other.starts_with("join:").then_some(Self::Eq),
        }
    }

    /// What there is to attack of a column of this type: sealed cells tell lengths, if lengths
    /// differ.
    pub fn of_type(ty: &SqlType) -> Vec<Self> {
        let all = Capabilities {
            eq: true,
            range: true,
            like: true,
            join: None,
        };
        let possible = possible(&all, ty);
        let is_possible = |capability: &Self| match capability {
            Self::Sealed => ty.payload_fixed().is_none(),
            Self::Eq => possible.eq,
            Self::Like => possible.like,
            Self::Range => possible.range,
        };
        Self::ALL.into_iter().filter(is_possible).collect()
    }
}
