//! Which column of which table.

/// The identity of a column: random bytes drawn when the table and the column are created.
///
/// It survives renaming. It is no secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId {
    /// Drawn when the table is created.
    pub table: [u8; 8],
    /// Drawn when the column is created. Stands in the header of every cell.
    pub column: [u8; 4],
}
