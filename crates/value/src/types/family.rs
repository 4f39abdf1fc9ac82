//! The two families of servers.

/// The server family behind the proxy. Texts, limits and some coercions differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// MariaDB, as of 10.11.
    MariaDb,
    /// MySQL, as of 9.7.
    MySql,
}
