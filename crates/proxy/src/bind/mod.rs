//! From values to what the server gets: sealed cells, equality tokens, order keys, gram tokens.
//!
//! A [`Binder`] fills the slots of one execution. The same value usually fills two or three slots
//! in a row (cell, token, key), so the coerced payload of the last one is kept.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | the binder: the values, settings and memory of one execution |
//! | `text` | the text or the parameters that the server gets |
//! | `fill` | what a slot is filled with: a cell, a token, a key, grams |
//! | `coerce` | a value becomes one of the column's type, to be stored or compared |
//! | `given` | the value that a slot's source gives: a literal, a parameter, a default, the time |
//! | `store` | what the server makes of a value that it stores, and what it says of it |
//! | `pattern` | what stands behind LIKE |
//! | `check` | which CHECK constraints a value breaks |
//! | `warned` | whether other values may have raised warnings before one that is refused |
//! | `values` | literals and bound parameters |
//! | `moments` | dates and times as parameters beside plain columns |
//! | `parameters` | parameters beside plain columns, which are more than literals to MySQL |
//! | `plain_value` | what a plain column of a unique key holds once a value is stored in it |
//! | `new_values` | the values that a statement stores, beside their tokens |
//! | `together` | what constants mean beside others, in IN and BETWEEN |
//! | `tenant` | whose a row is |
//! | `rules` | what servers say of values before they store them, and what they take instead |

mod buffers;
mod check;
mod coerce;
mod company;
mod fill;
mod given;
mod moments;
mod new_values;
mod parameters;
mod pattern;
mod plain_value;
mod present_time;
mod rules;
mod store;
mod tenant;
mod text;
mod together;
mod values;
mod warned;

use onionskin_crypt::TenantId;
use onionskin_plan::{Action, Among, Facts, Source};
use onionskin_value::{Context, Warning};

pub(crate) use self::buffers::{Buffers, Kept, LookedUp};
pub(crate) use self::given::default_of_definition;
pub(crate) use self::moments::{Moments, check_moments};
pub(crate) use self::new_values::{NewValue, assigned_constants, stored_columns};
pub(crate) use self::parameters::{FromVariable, PlainParameters, check_letters};
pub(crate) use self::plain_value::{PlainColumn, PlainValue};
pub(crate) use self::present_time::PresentTime;
pub(crate) use self::rules::{implicit_value, is_early, no_default, no_default_warning};
pub(crate) use self::text::{check_pieces, prepared_text, put_bytes, put_filled, put_quoted};
use self::together::Together;
pub(crate) use self::values::{Values, converted};
use crate::catalog::KeyedPlan;
use crate::state::State;

/// What a slot's value turned out to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Null,
    Exact,
    Between,
    BelowAll,
    AboveAll,
}

/// A filled slot's bytes lie in the binder's buffer.
pub(crate) enum Filled<'b> {
    Null,
    Bytes(&'b [u8]),
}

/// How a statement takes values that do not fit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StoreMode {
    /// Errors become warnings: `INSERT IGNORE`, `UPDATE IGNORE`.
    pub ignore: bool,
    /// NULL for a NOT NULL column is no error outside of strict mode: all but inserts of one row.
    pub lenient_nulls: bool,
}

impl StoreMode {
    /// That of a statement; `folded` is how many rows its shape has folded into one.
    pub fn of(facts: &Facts, folded: Option<usize>) -> Self {
        StoreMode {
            ignore: facts.ignore,
            lenient_nulls: facts.is_lenient(folded),
        }
    }
}

/// Fills the slots of one execution.
pub(crate) struct Binder<'a> {
    pub keyed: &'a KeyedPlan,
    pub state: &'a State,
    pub values: Values<'a>,
    pub mode: StoreMode,
    /// Indexes over grams are used: see [`Piece::Indexed`].
    pub indexed: bool,
    pub warnings: Vec<Warning>,
    /// The server may have warned of a plain value before the one that is bound.
    plain_may_warn: bool,
    buffers: &'a mut Buffers,
    /// The value that was coerced last; its payload lies in the buffers.
    last: Option<(Last, Bound)>,
    /// Whether a cell was made of it. NULL in the next row looks the same and is another value.
    last_has_cell: bool,
    /// The list or range that was looked at last, and its column.
    among: Option<(usize, Among)>,
    /// What follows from it for its constants.
    together: Together,
    /// Of the same constants: see [`together::forgets_signs`].
    forgets_signs: bool,
    /// The number that is compared stands beside a double, or beside a text that is read as one.
    as_doubles: bool,
    /// The constant that is compared stands in a list or a range.
    beside_others: bool,
    pub plain_parameters: PlainParameters,
    /// Whose the row is whose cells are made; `None` where that is not known.
    pub tenant: Option<TenantId>,
    /// Bound dates and times are refused where the text cannot say them: see
    /// [`Binder::check_moment`].
    pub checks_moments: bool,
}

/// A value that was coerced.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Last {
    column: usize,
    source: Source,
    /// As a stored value, not as one that is compared.
    as_stored: bool,
    row: u64,
}

impl<'a> Binder<'a> {
    pub fn new(
        keyed: &'a KeyedPlan,
        state: &'a State,
        values: Values<'a>,
        buffers: &'a mut Buffers,
    ) -> Self {
        Binder {
            keyed,
            state,
            values,
            mode: StoreMode::default(),
            plain_may_warn: false,
            indexed: false,
            warnings: Vec::new(),
            buffers,
            last: None,
            last_has_cell: false,
            among: None,
            together: Together::Alike,
            forgets_signs: false,
            as_doubles: false,
            beside_others: false,
            plain_parameters: PlainParameters::Literals,
            tenant: None,
            checks_moments: false,
        }
    }

    /// What coercion depends on beside the value and the column's type.
    fn context<'c>(&'c self, column: usize, row: u64) -> Context<'c>
    where
        'a: 'c,
    {
        let used = &self.keyed.plan.columns[column];
        let (column, table) = (&used.column().name, &used.table);
        Context {
            ignore: self.mode.ignore,
            row,
            ..self.state.context(column, &table.database, &table.name)
        }
    }

    /// The number of the row in which a value stands; `row` for one in the rows that the text
    /// folds, or in none.
    fn row_of(&self, source: Source, row: u64) -> u64 {
        let ends = &self.keyed.plan.row_ends;
        match source {
            Source::Literal { index, .. } if ends.last().is_some_and(|end| index < *end) => {
                ends.partition_point(|end| *end <= index) as u64 + 1
            }
            _ => row,
        }
    }

    /// Whether the statement is an `UPDATE`.
    fn updates(&self) -> bool {
        let plan = &self.keyed.plan;
        plan.probe.is_some() || matches!(plan.action, Action::Update(_))
    }
}
