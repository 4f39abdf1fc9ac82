//! Keys whose values the server makes.

/// Whether a column is a surrogate key, which a wildcard of `[protect]` leaves plaintext: the
/// server makes its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surrogate {
    /// It is none.
    No,
    /// AUTO_INCREMENT.
    AutoIncrement,
    /// It refers to a plaintext column by a foreign key.
    Reference,
    /// The server computes it, a whole number, from other columns that it reads. Nothing can be
    /// written into it. Another type would tell the server texts that statements compare it with.
    Generated,
}
