//! Rows that are held back at the beginning of a result.
//!
//! A cell is bound to the id of its column, so one that opens proves that the snapshot is not older
//! than the table. NULL proves nothing. So nothing is written before a cell of every protected
//! column has opened: until then the statement can still be planned and run again without the
//! client's notice, as it must be when the table was replaced a moment ago.

use crate::error::Outcome;

/// How many bytes of rows are held at most. A result that shows only NULL in a column for that long
/// is written.
const MAX_HELD_BYTES: usize = 1 << 20;

/// Rows as the client gets them, one after the other.
#[derive(Default)]
pub(crate) struct HeldRows {
    bytes: Vec<u8>,
    /// Where each row ends.
    ends: Vec<usize>,
}

impl HeldRows {
    /// Adds the row that `append` writes.
    pub fn add(&mut self, append: impl FnOnce(&mut Vec<u8>) -> Outcome<()>) -> Outcome<()> {
        append(&mut self.bytes)?;
        self.ends.push(self.bytes.len());
        Ok(())
    }

    /// Whether no more is held.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= MAX_HELD_BYTES
    }

    /// The rows, in their order.
    pub fn rows(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins
            .zip(&self.ends)
            .map(|(begin, &end)| &self.bytes[begin..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_were_added() {
        let mut held = HeldRows::default();
        for row in [b"one".as_slice(), b"", b"three"] {
            let added = held.add(|out| {
                out.extend_from_slice(row);
                Ok(())
            });
            assert!(added.is_ok() && !held.is_full());
        }
        assert_eq!(
            held.rows().collect::<Vec<_>>(),
            [b"one".as_slice(), b"", b"three"]
        );
        let added = held.add(|out| {
            out.resize(MAX_HELD_BYTES, 0);
            Ok(())
        });
        assert!(added.is_ok() && held.is_full());
    }
}
