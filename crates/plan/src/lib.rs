//! SQL text, a schema and the session's settings in; a [`Plan`] out.
//!
//! Planning is pure: no keys, no clock, no network, so that every decision can be tested from
//! text to text. See `plan.rs` for what a plan is and `statement.rs` for how one is made.

mod ddl;
pub mod errors;
pub mod lex;
pub mod literal;
mod plan;
mod planner;
mod predicate;
mod query;
mod scope;
mod statement;
pub mod template;
mod write;

pub use ddl::{Ddl, DdlPiece};
pub use errors::Refusal;
pub use lex::{LexMode, LiteralKind};
pub use plan::{
    Action, Aggregate, ColumnUse, Finish, GroupedColumn, Grouping, Limit, NewValue, OpenFrom,
    Output, Piece, Plan, Purpose, ResultItem, RowAssign, RowUpdate, Show, Slot, SortKey, Source,
    Text, Upsert,
};
pub use planner::{Catalog, Known, Request, Settings};
pub use statement::{COLLATION, Outcome, plan};
pub use template::{Literal, Rows, Template};
