//! Why a provider has not done what it was asked.

use onionskin_keys::KeyError;

/// Why a provider has not done what it was asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub why: String,
    /// Whether it may do it later.
    pub may_pass: bool,
}

impl Fault {
    /// Trying again can help.
    pub fn passing(why: impl Into<String>) -> Self {
        Fault {
            why: why.into(),
            may_pass: true,
        }
    }

    /// Somebody has to do something first.
    pub fn lasting(why: impl Into<String>) -> Self {
        Fault {
            why: why.into(),
            may_pass: false,
        }
    }

    /// As the error of this provider.
    pub fn of(self, provider: &str) -> KeyError {
        KeyError::Provider {
            name: provider.to_owned(),
            why: self.why,
            may_pass: self.may_pass,
        }
    }
}
