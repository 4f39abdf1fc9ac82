//! The time of a statement, as the server tells it.
//!
//! `DEFAULT CURRENT_TIMESTAMP` and `NOW()` of a protected column are sealed before the server sees
//! the statement. So the session asks for the time first: the server's clock, the session's
//! `time_zone` and `SET timestamp` are in the answer. It costs one round trip, unless the statement
//! is an UPDATE that reads its rows first: then both are asked at once. The question reads no
//! table. It begins no transaction, and leaves `LAST_INSERT_ID()` and `insert_id` as they are.
//! The statement behind it sets `ROW_COUNT()` and the warnings anew. `FOUND_ROWS()` is asked for as
//! well, and kept.
//!
//! | asked | for |
//! |---|---|
//! | `NOW(6)` | DATE and DATETIME, and plain columns beside |
//! | `UTC_TIMESTAMP(6)` | TIMESTAMP, whatever zone the session has |
//! | whether the local time means this moment alone | TIMESTAMP by a call, and plain ones: in the hour that clocks repeat servers take the first of two |

use onionskin_plan::{Action, Piece, Source, errors};

use crate::bind::PresentTime;
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::exchange::{ALL_ROWS, Found, Question};
use crate::session::Session;

const QUESTION: &str =
    "SELECT NOW(6), UTC_TIMESTAMP(6), UNIX_TIMESTAMP(NOW()) = UNIX_TIMESTAMP(), FOUND_ROWS()";

/// The question, and what `FOUND_ROWS()` was before it.
pub(crate) struct AskedTime {
    question: Question,
    before: Found,
}

impl Session {
    /// Whether the time is asked for together with the rows of an UPDATE: nothing that finds them
    /// needs it.
    pub fn asks_time_with_rows(&self, keyed: &KeyedPlan) -> bool {
        let plan = &keyed.plan;
        let Action::Update(update) = &plan.action else {
            return false;
        };
        let is_free = |piece: &Piece| match piece {
            Piece::Sql(_) | Piece::Literal(_) => true,
            Piece::Slot(slot) => matches!(slot.source, Source::Literal { .. } | Source::Null),
            _ => false,
        };
        plan.tells_time
            && update.filter.is_none()
            && plan.rewritten.is_empty()
            && update.select.iter().all(is_free)
    }

    /// Asks for the time if the plan's values need it before anything else is asked. What an
    /// earlier statement was told is forgotten.
    pub fn tell_time(&mut self, keyed: &KeyedPlan) -> Outcome<()> {
        self.buffers.present = None;
        match keyed.plan.tells_time && !self.asks_time_with_rows(keyed) {
            true => self.tell_time_now(),
            false => Ok(()),
        }
    }

    /// Asks for the time, and waits for the answer.
    pub fn tell_time_now(&mut self) -> Outcome<()> {
        let asked = self.ask_time()?;
        self.server.flush()?;
        self.hear_time(asked)
    }

    /// Puts the question. Whoever does so calls [`Session::hear_time`] before he reads the answer
    /// to another one.
    pub fn ask_time(&mut self) -> Outcome<AskedTime> {
        let before = self.server.found;
        let sql = format!("{QUESTION}{ALL_ROWS}");
        let question = self.server.put_select(sql.as_bytes())?;
        Ok(AskedTime { question, before })
    }

    /// Reads the answer.
    pub fn hear_time(&mut self, asked: AskedTime) -> Outcome<()> {
        let unclear = || Failure::refused(&errors::INTERNAL, "the server's time");
        let AskedTime { question, before } = asked;
        let rows = self.server.read_rows(question)?;
        let [row] = rows.as_slice() else {
            return Err(unclear());
        };
        let [Some(local), Some(utc), is_plain, found] = row.as_slice() else {
            return Err(unclear());
        };
        // behind the years that the server can convert it is NULL
        let is_plain = matches!(is_plain.as_deref(), Some(b"1"));
        let present = PresentTime::read(local, utc, is_plain).ok_or_else(unclear)?;
        self.buffers.present = Some(present);
        let found = found.as_deref().and_then(|n| std::str::from_utf8(n).ok());
        let found: Option<u64> = found.and_then(|n| n.parse().ok());
        if before == Found::Servers {
            // the question itself has found one row
            self.server.found = found.map_or(Found::Lost, Found::Is);
        }
        Ok(())
    }
}
