//! A logical dump for test systems: definitions, rows, views and programs as a proxy shows them,
//! with the values of protected columns replaced.
//!
//! | file | what it is |
//! |---|---|
//! | `run` | the dump from its first line to its last |
//! | `facts` | what is there, as proxy and server say |
//! | `rules`, `plan` | what was asked for, and the mask of every column that follows from it |
//! | `column`, `text`, `alphabet`, `number`, `moment` | masks of values, by type |
//! | `permute`, `key` | the keyed permutations beneath |
//! | `definition`, `programs`, `literal`, `output` | texts of SQL, read and written |
//!
//! Whether a value is replaced is decided for columns, before the first row is read. A value that
//! has no replacement ends the dump.

mod alphabet;
mod column;
mod definition;
mod error;
mod facts;
mod key;
mod literal;
mod moment;
mod number;
mod output;
mod permute;
mod plan;
mod programs;
mod rules;
mod run;
mod text;

pub use error::DumpError;
pub use facts::{IDENTITY, Protections};
pub use key::{KEY_BYTES, MaskKey};
pub use output::Output;
pub use rules::Rules;
pub use run::{LAST_LINE, Request, Summary, run};
