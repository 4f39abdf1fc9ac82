//! SQL text, a schema and the session's settings in; a [`Plan`] out.
//!
//! Planning is pure: no keys, no clock, no network, so that every decision can be tested from
//! text to text. See `plan/` for what a plan is and `statement/` for how one is made.

pub mod by_name;
mod candidates;
mod comparable;
mod constant;
mod ddl;
mod dialect;
pub mod errors;
mod facts;
mod fetch;
mod finishing;
mod formula;
pub mod functions;
pub mod grams;
mod hidden;
pub mod lex;
pub mod literal;
mod named;
mod native;
mod observed;
mod only_reads;
mod other_words;
mod parse;
mod places;
mod plan;
mod planner;
mod predicate;
mod present;
mod query;
mod request;
mod scope;
mod scratch;
mod statement;
pub mod template;
mod tenant;
mod text;
mod unknown;
mod visit;
mod write;

pub use errors::Refusal;
pub use facts::{Facts, Finds, Item, Question, ShownRows, Verb};
pub use finishing::{
    Aggregate, AggregateCall, Compared, Comparison, Finish, Groups, Limit, Operand, Output, SortBy,
    SortKey, Test,
};
pub use hidden::{PRIMARY, index_hint};
pub use lex::{LexMode, LiteralKind};
pub use named::{NamedTable, tables_named};
pub use native::own_words;
pub use observed::without_values;
pub use only_reads::only_reads;
pub use other_words::in_other_words;
pub use parse::SESSION_STACK;
pub use plan::{
    Action, AliasMarks, Among, Argument, ByName, Carried, ColumnUse, Computed, Copied, Ddl,
    DdlPiece, Defines, Described, Doubt, Effect, Escape, GroupedColumn, Grouping, KeptPlain, Load,
    MetRows, NamedBy, NewRows, NewTable, NewValue, NewValues, OfDatabase, OpenFrom, Piece,
    PlainTime, Plan, Prefixed, Protects, Purpose, Redefined, Reference, Refit, Refitted, Renamed,
    ResultItem, RowAssign, RowDelete, RowFilter, RowUpdate, Scratch, ScratchColumn, ScratchRead,
    ScratchWrite, Show, Slot, Source, StatementText, TOO_LONG, Text, Upsert, Written,
    WrittenColumn,
};
pub use request::{BROKEN_VIEW, COLLATION, Catalog, HIDDEN, Known, Request, Settings, UseScratch};
pub use statement::settings::scoped;
pub use statement::{Outcome, asks_of_columns, plan, reads_program, tables_of_program};
pub use template::{Literal, Rows, Template};
pub use write::inexact_key;
