//! How much was sealed under one column's key.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{SealError, Suite, cell::MAX_PAYLOAD_LEN};

/// Payload bytes that one unit of [`Suite::seal_bound`] covers.
const UNIT_SHIFT: u32 = 16;

/// Units of [`Suite::seal_bound`] that this process has used of a column.
///
/// Cells of tenants have keys of their own, each with less to seal than the column. They count
/// together all the same: that errs to the safe side.
#[derive(Default)]
pub(crate) struct SealCount(AtomicU64);

impl SealCount {
    /// Counts the units that a payload costs, or refuses.
    pub(crate) fn charge(&self, suite: Suite, payload_len: usize) -> Result<(), SealError> {
        if payload_len > MAX_PAYLOAD_LEN {
            return Err(SealError::TooLong);
        }
        let units = 1 + (payload_len as u64 >> UNIT_SHIFT);
        // Refused calls go on counting; at a billion a second the counter would wrap after five
        // centuries.
        let before = self.0.fetch_add(units, Ordering::Relaxed);
        if before.saturating_add(units) > suite.seal_bound() {
            return Err(SealError::Exhausted);
        }
        Ok(())
    }

    /// Units that were used.
    pub(crate) fn units(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Begins to count at `units`.
    pub(crate) fn count_from(&mut self, units: u64) {
        *self.0.get_mut() = units;
    }

    #[cfg(test)]
    pub(crate) fn leave_units(&self, suite: Suite, units: u64) {
        self.0.store(suite.seal_bound() - units, Ordering::Relaxed);
    }
}
