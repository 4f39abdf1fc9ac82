//! Tier 2 for results, as a plan: what the server is asked for, and what the proxy makes of it.
//!
//! The server narrows the rows and sends sealed cells. The proxy opens them and then works like
//! the upper half of a query processor: [`Finish::filter`] keeps rows, [`Groups`] gathers them,
//! [`Finish::sort`], `distinct` and `limit` come last. Conditions are trees of [`Test`]s; a leaf
//! is either a comparison that only the proxy can make, because it needs the value, or a truth
//! value that the server has computed and sent along.
//!
//! What plain columns contribute stays the server's: an expression that rows are grouped or
//! sorted by is fetched as its rank (`DENSE_RANK() OVER (ORDER BY …)`), so that no collation of a
//! plain column has to be known here; a sum over a plain column as a window function.

pub use onionskin_schema::Comparison;

use crate::plan::{Among, Escape, Piece, ResultItem, Source, Text};

/// Rows are narrowed by the server, finished by the proxy.
#[derive(Clone, Debug)]
pub struct Finish {
    /// What the server is asked for.
    pub text: Text,
    /// Its columns: which of them to open.
    pub fetch: Vec<ResultItem>,
    /// Which rows count; `None` for all of them.
    pub filter: Option<Test>,
    /// Rows are gathered into groups; `None` when each is a row of the result.
    pub groups: Option<Groups>,
    /// What the client gets.
    pub output: Vec<Output>,
    /// Drop rows whose output is equal to an earlier row's.
    pub distinct: bool,
    /// Sort by these.
    pub sort: Vec<SortKey>,
    /// Rows to skip and to return.
    pub limit: Option<Limit>,
}

impl Finish {
    /// Whether a full-text index can narrow the rows.
    pub fn uses_index(&self) -> bool {
        self.text.iter().any(|p| matches!(p, Piece::Indexed(_)))
    }

    /// Whether some aggregate is of different values only.
    pub fn counts_differing(&self) -> bool {
        let calls = self.groups.as_ref().map_or(&[][..], |g| &g.calls);
        calls.iter().any(|call| call.distinct)
    }

    /// Whether groups are sorted by this aggregate.
    pub fn sorts_by(&self, call: &AggregateCall) -> bool {
        let calls = self.groups.as_ref().map_or(&[][..], |g| &g.calls);
        self.sort
            .iter()
            .any(|key| matches!(key.by, SortBy::Aggregate(n) if calls.get(n) == Some(call)))
    }

    /// Whether a server would have sorted the groups in a temporary table, because aggregates are
    /// known only when all groups are.
    pub fn sorts_by_aggregates(&self) -> bool {
        let by_aggregate = |key: &SortKey| matches!(key.by, SortBy::Aggregate(_));
        self.groups.as_ref().is_some_and(|g| g.keys.is_some()) && self.sort.iter().any(by_aggregate)
    }
}

/// Which rows belong together, and what is computed of them.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// The fetched columns that make a group: opened ones by the weight of their value, others by
    /// their bytes. `None` without GROUP BY: all rows are one group, and there is one if there are
    /// no rows.
    pub keys: Option<Vec<usize>>,
    /// The aggregates.
    pub calls: Vec<AggregateCall>,
    /// `HAVING`.
    pub having: Option<Test>,
}

/// An aggregate over a fetched column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregateCall {
    /// Which function.
    pub function: Aggregate,
    /// Of which column; `None` for `COUNT(*)`.
    pub fetch: Option<usize>,
    /// Of different values only.
    pub distinct: bool,
}

/// The aggregates that the proxy computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// `SUM`
    Sum,
    /// `AVG`
    Avg,
    /// `COUNT`
    Count,
    /// `MIN`
    Min,
    /// `MAX`
    Max,
}

/// A column of a finished result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A fetched column; of a group, its first row's.
    Cell {
        /// Which.
        fetch: usize,
    },
    /// An aggregate, with the name that the client sees.
    Aggregate {
        /// Index into [`Groups::calls`].
        call: usize,
        /// The column's name in the result.
        name: String,
    },
}

/// A key of a finishing sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// What is compared.
    pub by: SortBy,
    /// `DESC`.
    pub descending: bool,
}

/// What a finishing sort compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortBy {
    /// The values of a fetched protected column.
    Cell(usize),
    /// A fetched rank, which is an integer.
    Rank(usize),
    /// An aggregate, by its index in [`Groups::calls`].
    Aggregate(usize),
}

/// A condition that the proxy decides. Negations are pushed down to its leaves, so that it is
/// enough to know of each leaf whether it is true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// `AND`
    All(Vec<Test>),
    /// `OR`
    Any(Vec<Test>),
    /// A fetched truth value of the server's.
    Fetched(usize),
    /// Two values; never true if one is NULL.
    Compare {
        /// The left side.
        left: Operand,
        /// How it has to stand to the right one.
        comparison: Comparison,
        /// The right side.
        right: Compared,
    },
    /// LIKE; never true if the value or the pattern is NULL.
    Like {
        /// The fetched protected column.
        fetch: usize,
        /// The pattern.
        pattern: Source,
        /// What takes their meaning from wildcards.
        escape: Escape,
        /// NOT LIKE
        negated: bool,
    },
}

/// What a test looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A fetched protected column.
    Fetch(usize),
    /// An aggregate, by its index in [`Groups::calls`].
    Aggregate(usize),
}

/// What it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// A constant, and the list or range that it stands in where the kinds of the others matter.
    Constant(Source, Option<Among>),
    /// A fetched protected column of the same type.
    Fetch(usize),
}

/// `LIMIT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Rows to skip.
    pub offset: Option<Source>,
    /// Rows to return.
    pub count: Source,
}
