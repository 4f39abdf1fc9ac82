//! Typed values: what a column's type means for the bytes that are sealed, searched, sorted and
//! shown.
//!
//! A value passes through this crate in two directions. On its way in, [`store()`] coerces what a
//! statement gives, an [`Input`], to the column's [`SqlType`] as the server would under the
//! session's settings, and appends the *canonical payload*, the bytes that are sealed;
//! [`compare()`] does the like for a constant in a condition, which follows other rules. On its way
//! out, [`format_text`] and [`format_binary`] turn a payload into the cell that the server would
//! send, and [`SqlType::wire`] gives the column definition that goes with it.
//!
//! From payloads come the bytes that make search possible: [`weight()`], whose equality is SQL's
//! `=`, and [`order_bytes`], whose memcmp order is SQL's order. What the server cannot do on tokens
//! is finished by [`cmp`], [`Sum`] and [`add_sub`].
//!
//! The rule everywhere: the server's answer, or a refusal. Wherever MySQL or MariaDB behave in a
//! way that is not reproduced exactly, the result is an error of kind `Unsupported` and never a
//! guess. The tests hold the coercions against a corpus recorded from real servers.

mod arithmetic;
mod byte_tables;
mod charset;
mod collation;
mod compare;
mod context;
mod decimal;
mod fixed_binary;
mod format;
mod inet;
mod json;
mod like;
mod members;
mod mode;
mod payload;
mod store;
mod sum;
mod tables;
mod temporal;
mod time_zone;
mod types;
mod uuid;
mod weight;
mod wire_type;

pub use arithmetic::{Operator, add_sub};
pub use charset::{Charset, Multi, Single, Wide};
pub use collation::{Collation, default_collation};
pub use compare::{Comparand, compare, compare_by_digits};
pub use context::{
    CompareError, Context, DateTimeParts, Input, LATEST_TIMESTAMP, LATEST_TIMESTAMP_UNSIGNED,
    Level, StoreError, Stored, TemporalKind, ValueError, Warning,
};
pub use format::{FormatContext, FormatError, format_binary, format_text};
pub use like::{Escape, GRAM_BYTES, LikePattern, Pattern, grams, has_grams, most_grams};
pub use members::Members;
pub use mode::SqlMode;
pub use store::store;
pub use sum::{Sum, SumError, compare_numbers};
pub use temporal::plain_moment;
pub use time_zone::TimeZone;
pub use types::{
    Digits, Family, Kind, OrderWidth, STRING_ORDER_BYTES, SqlType, TypeError, member_bytes,
};
pub use weight::{WeightError, cmp, order_bytes, payload_from_order, weight};
pub use wire_type::{
    FLAG_BINARY, FLAG_BLOB, FLAG_ENUM, FLAG_SET, FLAG_TIMESTAMP, FLAG_UNSIGNED, FLAG_ZEROFILL,
    WireType,
};
