//! Tier 3: what neither tokens nor the proxy can do runs as it stands on the *scratch engine*, a
//! server on the trusted side.
//!
//! The plan says what the scratch engine needs for that. Each reference to a base table becomes a
//! [`ScratchRead`]: a statement for the server behind, which returns the rows and columns that the
//! statement can touch, and a temporary table of the scratch session under the same database and
//! name. The statement's text is not changed, so that the names of result columns, which servers
//! take from the text, are those of a plain server. Only where a table is referred to more than
//! once do the other references get names of their own ([`Renamed`]): MySQL cannot open a temporary
//! table twice in one statement.
//!
//! `walk.rs` finds the references, `pushable.rs` says which conditions go to the server, `reads.rs`
//! makes the statements, `functions.rs` lists the functions that return the same on another server.
//! `write.rs` plans statements that change tables by what they compute, `handed.rs` finds what
//! would come out of the seal on that way. `insert.rs` plans INSERT … SELECT, `upsert.rs` plans ON
//! DUPLICATE KEY UPDATE with expressions, `given.rs` INSERT … VALUES of what the proxy does not
//! convert, `create.rs` CREATE TABLE … SELECT; `row_names.rs` says how a row is found again.
//! `by_words.rs` plans queries that `walk.rs` cannot go through.
//!
//! # What is read
//!
//! - Columns whose name stands anywhere in the statement; all of them beside `*` and NATURAL JOIN.
//! - Rows of which the conditions hold that stand alone beside AND in the WHERE clause of the
//!   table's own select, if they compare columns of this table with constants and the server can
//!   decide them as tier 1 does. Not for tables that an outer join may fill with NULLs. The scratch
//!   engine decides these conditions once more: they only save work.
//!
//! # What is refused
//!
//! Tables that are not known (temporary ones among them), system tables, assignments to variables,
//! functions that act, that tell about the session or that belong to the server, partitions,
//! `INTO`.

mod by_words;
mod constants;
mod create;
mod functions;
mod given;
mod handed;
mod insert;
mod load;
mod pushable;
mod reads;
mod row_names;
mod upsert;
mod walk;
mod write;

use onionskin_value::Family;
use sqlparser::ast::Query;

use crate::errors::{self, NotUnderstood, Refusal};
use crate::plan::{Action, Text};
use crate::planner::{Planned, Planner, TextBuilder};

use self::walk::walk;

pub(crate) use self::by_words::query as by_words;
pub(crate) use self::constants::{CLOCK, is_constant_for_a_row};
pub(crate) use self::create::{create, create_by_words};
pub(crate) use self::functions::{carried, is_carried};
pub(crate) use self::insert::insert;
pub(crate) use self::load::load;
pub(crate) use self::walk::lock;
pub(crate) use self::write::{delete, update};
pub(crate) use crate::plan::{
    Carried, NamedBy, Renamed, Scratch, ScratchColumn, ScratchRead, TOO_LONG,
};

impl Scratch {
    /// What `EXPLAIN` asks the server: how it finds the rows of each table.
    pub(crate) fn explained(&self) -> Text {
        let mut text = TextBuilder::default();
        for (n, read) in self.reads.iter().enumerate() {
            if n > 0 {
                text.sql(b" UNION ALL ");
            }
            text.sql(b"(SELECT 1 FROM ");
            text.sql(read.source.as_bytes());
            for (n, condition) in read.conditions.iter().enumerate() {
                text.sql(if n == 0 { b" WHERE (" } else { b" AND (" });
                condition.iter().for_each(|piece| text.piece(piece.clone()));
                text.sql(b")");
            }
            text.sql(b")");
        }
        text.finish()
    }
}

/// Whether a refusal is for want of tiers 1 and 2. What is unsafe or damaged is so on any tier.
pub(crate) fn takes_over(refusal: &Refusal) -> bool {
    let never = [
        &errors::DAMAGED,
        &errors::MASKED,
        &errors::EXECUTABLE_COMMENT,
        &errors::DYNAMIC,
        &errors::TRACKING,
        &errors::CHARACTER_SET,
        &errors::INTERNAL,
        &errors::SERVER_HELD,
        &errors::TENANT,
    ];
    // an error of every server
    let is_servers = refusal.is(&errors::AMBIGUOUS) && refusal.coded().is_some();
    !refusal.is_any(&never) && !is_servers
}

/// Whether more rows may be found than are shown.
fn finds_more(planner: &Planner<'_>) -> bool {
    const WORDS: [&str; 3] = ["sql_calc_found_rows", "limit", "offset"];
    let sql = planner.sql();
    let mut tokens = planner.tokens.iter();
    tokens.any(|t| WORDS.iter().any(|word| t.is_word(sql, word)))
}

/// Plans a query for the scratch engine. `locks`: how it locks rows by `LOCK IN SHARE MODE` at its
/// end, which its tree does not have; `seconds`: how long it waits for them.
pub(crate) fn select(
    planner: &mut Planner<'_>,
    query: &Query,
    locks: &'static str,
    seconds: Option<String>,
) -> Planned<Action> {
    let variables = reads::variables(planner)?;
    let found = walk(planner, query, locks)?;
    if found.repeats && planner.request.settings.family == Family::MySql {
        // it makes a copy of the part, which opens the temporary table once more
        return NotUnderstood::UsedTwice("a part of WITH").refuse();
    }
    let (mut reads, renamed) = {
        let all = 0..planner.tokens.len();
        reads::reads(planner, found.references, all)?
    };
    for read in reads.iter_mut().filter(|read| !read.lock.is_empty()) {
        read.seconds.clone_from(&seconds);
    }
    let finds_more = finds_more(planner);
    Ok(Action::Scratch(Box::new(Scratch {
        reads,
        variables,
        renamed,
        finds_more,
    })))
}
