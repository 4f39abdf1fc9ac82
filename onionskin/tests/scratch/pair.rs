//! A pair with or without a scratch engine, whose tables are created in the same words.

use super::support::*;

pub use super::support::Pair;

/// `{words}` in the definitions stands for the protection of a column.
pub fn pair(kind: Kind, with_engine: bool, tables: &[&str]) -> Option<Pair> {
    let options = PairOptions {
        engine: match with_engine {
            true => Engine::Own,
            false => Engine::Missing,
        },
        ..PairOptions::default()
    };
    let mut pair = Pair::start_with(kind, options)?;
    for table in tables {
        pair.same(table);
    }
    Some(pair)
}
