//! `onionskin assess data`: which columns hold personal data.
//!
//! Columns are judged by their names, in several languages, by their types, and by samples of their
//! values. Samples pass by and are not kept: a finding has shapes and counts.
//!
//! | module | what it is |
//! |---|---|
//! | [`kind`] | kinds of personal data |
//! | `words` | what names of columns say |
//! | `shapes`, `check_digits` | what one value looks like |
//! | [`classify`] | what a column holds, from all of that |
//! | `document` | values of JSON |
//! | `sample` | reads tables, a little of each |
//! | `report` | the report |
//!
//! # Load
//!
//! Of a table two or three statements are sent: its columns, the bounds of a whole-numbered primary
//! key, and one sample. A sample reads by the primary key, at four places of it, or the first rows;
//! never the whole table. Between tables there is a pause. What is kept grows with the findings,
//! and with one name for each table.

mod check_digits;
pub mod classify;
mod document;
pub mod kind;
mod report;
mod request;
mod sample;
mod shapes;
mod words;

use crate::AssessError;

pub(crate) use report::toml_key;
pub use report::{ColumnFinding, DataReport, FORMAT, VERSION};
pub use request::Request;

/// Looks at every table of the database.
pub fn assess(request: &Request) -> Result<DataReport, AssessError> {
    sample::assess(request)
}
