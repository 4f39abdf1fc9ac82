//! SQL text, a schema and the session's settings in; a [`Plan`] out.
//!
//! Planning is pure: no keys, no clock, no network, so that every decision can be tested from
//! text to text. See `plan.rs` for what a plan is and `statement/` for how one is made.

pub mod by_name;
mod candidates;
mod ddl;
pub mod errors;
mod facts;
mod fetch;
mod finishing;
mod formula;
pub mod grams;
pub mod lex;
pub mod literal;
mod parse;
mod places;
mod plan;
mod planner;
mod predicate;
mod present;
mod query;
mod scope;
mod scratch;
mod statement;
pub mod template;
mod write;

pub use by_name::{Argument, ByName, StatementText};
pub use ddl::{AliasMarks, Copied, Ddl, DdlPiece, Prefixed, Reference};
pub use errors::Refusal;
pub use facts::{Facts, Finds, Item, Question, ShownRows, Verb};
pub use finishing::{
    Aggregate, AggregateCall, Compared, Comparison, Finish, Groups, Limit, Operand, Output, SortBy,
    SortKey, Test,
};
pub use lex::{LexMode, LiteralKind};
pub use parse::SESSION_STACK;
pub use plan::{
    Action, Among, ColumnUse, Defines, Described, Escape, GroupedColumn, Grouping, NewValue,
    OpenFrom, Piece, PlainTime, Plan, Purpose, ResultItem, RowAssign, RowDelete, RowFilter,
    RowUpdate, Show, Slot, Source, Text, Upsert,
};
pub use planner::{Catalog, Known, Request, Settings, UseScratch};
pub use scratch::{
    Carried, Computed, Effect, Load, MetRows, NamedBy, NewRows, NewTable, NewValues, Renamed,
    Scratch, ScratchColumn, ScratchRead, ScratchWrite, TOO_LONG, Written, WrittenColumn,
};
pub use statement::settings::scoped;
pub use statement::{COLLATION, HIDDEN, Outcome, plan};
pub use template::{Literal, Rows, Template};
