//! Logical tables as applications see them, and physical tables as the server stores them.
//!
//! # Layout
//!
//! A protected column `c` does not exist on the server under its own name. In its place stand
//!
//! | column | type | present when |
//! |---|---|---|
//! | `c$enc` | `VARBINARY` or `BLOB`: the sealed cell | always |
//! | `c$eq_XXXX` | `BINARY(16)`, invisible: equality token | `eq` or `join`, unless `c$ord_XXXX` answers equality |
//! | `c$ord_XXXX` | `BINARY(n)`, invisible: order key | `range` |
//! | `c$gram_XXXX` | `JSON` array of numbers, invisible, with a multi-valued index (MySQL), or `TEXT` of ASCII words with a full-text index (MariaDB): gram tokens | `like` |
//!
//! `XXXX` are the first four hex digits of the column id. Cells are authenticated, tokens cannot
//! be: the suffix makes the statement of a proxy with an outdated schema fail with "unknown
//! column", where it would otherwise compare with tokens made under another key. The `COMMENT` of
//! `c$enc` carries the logical definition, authenticated ([`comment`]). One CHECK constraint for
//! each protected column refuses rows that no proxy wrote.
//!
//! # What is here
//!
//! - [`Table`], [`Column`], [`Protection`]: the model. [`tables_from_rows`] makes it from the rows
//!   of `information_schema.columns`; [`catalog_query`] is the statement that fetches them.
//! - [`NewColumn`] and [`physical_definitions`]: from a logical column to DDL, with [`alter`] for
//!   ALTER TABLE.
//! - [`show_create_table`], [`show_columns_row`], [`show_index_row`], [`logical_views`]: back from
//!   what the server shows to what a server with the logical table would show.
//! - [`Policy`]: which columns of new tables are to be protected.
//!
//! Nothing here reads, writes, encrypts or knows a key: the caller lends a function that makes or
//! verifies tags.

mod alias;
pub mod alter;
mod base;
mod catalog;
mod charset;
mod check;
mod check_named;
pub mod comment;
mod computed;
mod copy;
mod ddl;
mod display;
mod enforced;
mod errors;
mod folding;
mod grants;
mod information_schema;
mod information_views;
mod key_actions;
mod long_unique;
pub mod pattern;
mod pins;
mod plain_mark;
mod policy;
mod prefix;
mod protection;
mod quote;
mod references;
mod refit;
mod selected;
mod set;
mod show_columns;
mod show_create;
mod show_create_view;
mod surrogate;
mod table;
mod table_name;
mod tenant;
mod type_facts;

pub use alias::Alias;
pub use base::{Base, ViewSource, view_source};
pub use catalog::{COLUMNS_QUERY_FIELDS, ColumnRow, catalog_query, tables_from_rows};
pub use charset::default_collation;
pub use check::{Check, CheckConstant, Comparison, Condition, MAX_CHECKS};
pub use check_named::check_named;
pub use comment::{ColumnMetadata, CommentError, MARK as COMMENT_MARK, actions_of};
pub use computed::{computed_default, default_sql, is_present_time, present_time, time_fraction};
pub use copy::{copy_definition, lost_defaults, split_foreign_keys};
pub use ddl::{
    Filling, HELPER_COMMENT, HELPER_PREFIX, MAX_INLINE_CELL, NewColumn, check_protectable,
    constraint_name, guard_name, index_column_name, is_our_constraint, is_reserved_name,
    may_be_ours, physical_definitions, possible,
};
pub use display::{Dialect, bits_of_default, canonical_default};
pub use enforced::SeenColumn;
pub use errors::{ERRORS, ErrorEntry, SchemaError};
pub use folding::{folded, same_name};
pub use grants::is_granted;
pub use information_schema::information_schema_columns;
pub use information_views::{LogicalView, logical_views};
pub use key_actions::{KeyAction, KeyActions};
pub use pins::{PinnedColumn, PinnedTable, Pins, PinsError};
pub use plain_mark::{plain_mark, plain_mark_statement};
pub use policy::{Policy, PolicyMatch};
pub use prefix::prefix_comment;
pub use protection::{
    Bits, CELL_OVERHEAD, Capabilities, GramForm, PhysicalNames, Protection, TokenKind,
    split_token_name,
};
pub use quote::identifier;
pub use references::mark_references;
pub use refit::{Remade, refit_specifications};
pub use selected::{SelectedDefinition, selected_definition};
pub use set::{SetMark, Whole, is_rightly_part};
pub use show_columns::{is_hidden_column, show_columns_row, show_index_row};
pub use show_create::show_create_table;
pub use show_create_view::{show_create_view, show_view_constants};
pub use surrogate::Surrogate;
pub use table::{Column, Default, DefaultLiteral, KeyRole, Table};
pub use table_name::TableName;
pub use tenant::{TENANT_CELLS, Tenant};
