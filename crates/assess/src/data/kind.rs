//! Kinds of personal data.

use serde::{Deserialize, Serialize};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Kind {
    Card,
    Iban,
    /// A number that a state gives to a person.
    National,
    Email,
    Secret,
    Phone,
    Ip,
    Name,
    BirthDate,
    Address,
    Place,
    Health,
    /// Sex, religion, nationality and the like.
    Trait,
    FreeText,
}

impl Kind {
    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Card => "card numbers",
            Self::Iban => "bank accounts",
            Self::National => "national numbers",
            Self::Email => "e-mail addresses",
            Self::Secret => "secrets and tokens",
            Self::Phone => "telephone numbers",
            Self::Ip => "IP addresses",
            Self::Name => "names of persons",
            Self::BirthDate => "dates of birth",
            Self::Address => "postal addresses",
            Self::Place => "places and postcodes",
            Self::Health => "health",
            Self::Trait => "traits of persons",
            Self::FreeText => "free text",
        }
    }

    /// Whether values show it, so that values without it speak against it.
    pub(super) fn has_shape(self) -> bool {
        matches!(
            self,
            Self::Card | Self::Iban | Self::Email | Self::Phone | Self::Ip
        )
    }
}

/// How sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// A weak name, a weak shape, or a few values.
    Possible,
    /// The name says so, or the values look so.
    Likely,
    /// Nearly all values have the shape, with check digits where there are any.
    Certain,
}

impl Confidence {
    /// As it is shown.
    pub fn word(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Certain => "certain",
        }
    }
}
