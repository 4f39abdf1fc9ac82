//! Masked columns: what an account sees of a protected column.
//!
//! ```toml
//! [mask."app.users"]
//! email = { app = "clear", support = "first:1", "role:auditor" = "clear", "*" = "null" }
//! ```
//!
//! A column that an account does not see in the clear can be an item of a plain SELECT and nothing
//! else: whatever a statement compares, sorts, groups or computes by it would tell the value bit by
//! bit. Two things see to that:
//!
//! - The ciphers of a plan's columns are behind [`PlanKeys`]. Of a masked column nothing is to be
//!   had but what opens rows for the client, and that masks (`open`). So nothing seals, compares
//!   or finishes by such a column, whatever the plan says.
//! - What the server does with tokens alone needs no cipher. [`check`] looks at the words of the
//!   statement and at the texts for the server before the plan can be used.
//!
//! And what no statement has to name: a server that reads by an index gives rows in its order. The
//! account's statements do not read by indexes over masked columns ([`settle_indexes`]), and
//! [`check`] lets no text out that may.
//!
//! | file | what |
//! |---|---|
//! | `config` | the rules, read and asked for an account |
//! | `show` | a value as it is shown |
//! | `check` | what a statement does with masked columns |
//! | `indexes` | indexes whose order would tell the values |
//! | `words` | whether a statement's text only shows them |

mod check;
mod config;
mod indexes;
mod show;
mod words;

use std::sync::Arc;

use onionskin_crypt::{ColumnCipher, TenantNames};
use onionskin_plan::{ColumnUse, errors};

pub(crate) use check::check;
pub(crate) use config::AccountMasks;
pub use config::{MaskError, MaskSections, Masks};
pub(crate) use indexes::settle_indexes;
pub(crate) use show::Show;

use crate::error::{Failure, Outcome};

/// The ciphers of a plan's columns, each as far as the account may use it.
pub(crate) struct PlanKeys {
    ciphers: Vec<Arc<ColumnCipher>>,
    /// One for each cipher; none at all if nothing is masked.
    shows: Vec<Show>,
    /// By what name each tenant is known.
    tenants: Option<Arc<TenantNames>>,
}

impl PlanKeys {
    /// `shows` has a word about each of the ciphers, or none about all of them.
    pub fn new(
        ciphers: Vec<Arc<ColumnCipher>>,
        shows: Vec<Show>,
        tenants: Option<Arc<TenantNames>>,
    ) -> Self {
        PlanKeys {
            ciphers,
            shows,
            tenants,
        }
    }

    /// By what name each tenant is known, if there is a file of their secrets.
    pub fn tenants(&self) -> Option<&TenantNames> {
        self.tenants.as_deref()
    }

    /// What seals, compares and opens values of a column that the account sees in the clear.
    #[inline]
    pub fn cipher(&self, index: usize, used: &ColumnUse) -> Outcome<&Arc<ColumnCipher>> {
        match self.show(index) {
            Show::Clear => Ok(&self.ciphers[index]),
            _ => Err(Failure::refused(&errors::MASKED, used.path())),
        }
    }

    /// What opens cells, for rows that are shown as `Show` says.
    #[inline]
    pub fn for_client(&self, index: usize) -> (&Arc<ColumnCipher>, Show) {
        (&self.ciphers[index], self.show(index))
    }

    #[inline]
    fn show(&self, index: usize) -> Show {
        self.shows.get(index).copied().unwrap_or(Show::Clear)
    }
}
