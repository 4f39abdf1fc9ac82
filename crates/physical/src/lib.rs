//! The physical form of protected columns: what the server stores in the place of a value, and
//! which columns it stores it in.
//!
//! The proxy makes tables and values physical while statements run, a migration while it copies a
//! table. Both have to agree in every byte, so both do it here.
//!
//! | file | holds |
//! |---|---|
//! | [`companions`] | a payload's equality token, order key and gram tokens |
//! | `new_columns` | ids, key and cell format of new columns |
//! | `retype` | a payload of one type becomes one of another |
//! | `tenant` | whose a row is, by the value of the column that says it |
//! | `text` | the text of a planned definition |
//! | `create_table` | a whole logical `CREATE TABLE` made physical |
//!
//! A plan says what is defined and knows no key. The ids and authentication tags are made here.

pub mod companions;
mod create_table;
mod new_columns;
mod retype;
mod tenant;
mod text;

pub use create_table::{CreateTable, PhysicalTable};
pub use new_columns::{keeps_grams, with_ids};
pub use retype::{Retyping, strict};
pub use tenant::tenant_id;
pub use text::definition_text;
