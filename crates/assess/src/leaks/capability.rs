//! What the server may do with a column, one at a time.

use onionskin_schema::{Bits, Capabilities, possible};
use onionskin_value::SqlType;
use serde::{Deserialize, Serialize};

/// One of them. Each is attacked by itself: what several show together is at least as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Capability {
    /// None.
    Sealed,
    /// Equality by so many bits of a token.
    CoarseEq(u8),
    /// Equality, also in a join group.
    Eq,
    /// LIKE.
    Like,
    /// Order by so many bits.
    CoarseRange(u8),
    /// Order.
    Range,
}

impl From<Capability> for String {
    fn from(capability: Capability) -> Self {
        capability.word()
    }
}

impl TryFrom<String> for Capability {
    type Error = String;

    fn try_from(word: String) -> Result<Self, Self::Error> {
        Self::of_word(&word).ok_or(word)
    }
}

impl Capability {
    /// Those that keep all bits, what shows least first.
    pub const ALL: [Self; 4] = [Self::Sealed, Self::Eq, Self::Like, Self::Range];

    /// As in `[protect]`.
    pub fn word(self) -> String {
        match self {
            Self::Sealed => "sealed".into(),
            Self::CoarseEq(bits) => format!("eq:{bits}"),
            Self::Eq => "eq".into(),
            Self::Like => "like".into(),
            Self::CoarseRange(bits) => format!("range:{bits}"),
            Self::Range => "range".into(),
        }
    }

    /// From a word of `[protect]`; a join group's tokens are those of `eq`.
    pub fn of_word(word: &str) -> Option<Self> {
        if word == "sealed" {
            return Some(Self::Sealed);
        }
        if word.starts_with("join:") {
            return Some(Self::Eq);
        }
        let mut read = Capabilities::default();
        if !read.take_word(word) {
            return None;
        }
        Some(match (read.bits.eq, read.bits.range) {
            (Some(bits), _) => Self::CoarseEq(bits),
            (_, Some(bits)) => Self::CoarseRange(bits),
            _ if read.eq => Self::Eq,
            _ if read.like => Self::Like,
            _ => Self::Range,
        })
    }

    /// The same with all bits.
    pub fn whole(self) -> Self {
        match self {
            Self::CoarseEq(_) => Self::Eq,
            Self::CoarseRange(_) => Self::Range,
            other => other,
        }
    }

    /// As a column has it.
    pub fn capabilities(self) -> Capabilities {
        let mut found = Capabilities::default();
        if self != Self::Sealed {
            found.take_word(&self.word());
        }
        found
    }

    /// What there is to attack of a column of this type, with all bits: sealed cells tell lengths,
    /// if lengths differ.
    pub fn of_type(ty: &SqlType) -> Vec<Self> {
        let is_possible = |capability: &Self| capability.can_be_had(ty);
        Self::ALL.into_iter().filter(is_possible).collect()
    }

    /// Whether a column of this type can have it.
    pub fn can_be_had(self, ty: &SqlType) -> bool {
        if self == Self::Sealed {
            return ty.payload_fixed().is_none();
        }
        let wanted = self.capabilities();
        possible(&wanted, ty) == wanted && wanted.bits.range == self.range_bits(ty)
    }

    /// Of [`Self::CoarseRange`]: how many bits are kept, if the type has more.
    fn range_bits(self, ty: &SqlType) -> Option<u8> {
        let bits = self.capabilities().order_bits(ty)?;
        u8::try_from(bits).ok()
    }

    /// What a protected column's tokens or order keys are.
    pub fn of_bits(self, bits: Bits) -> Self {
        match (self, bits) {
            (Self::Eq, Bits { eq: Some(n), .. }) => Self::CoarseEq(n),
            (Self::Range, Bits { range: Some(n), .. }) => Self::CoarseRange(n),
            (other, _) => other,
        }
    }
}
