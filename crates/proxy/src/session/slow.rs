//! Statements that took longer than `slow_seconds`: a line in the log for each, with its shape, and
//! where its time went.

use super::Session;
use crate::metrics::{Ended, KINDS, TIERS};
use crate::refused::{LENGTH, UNREAD, seconds};
use crate::slow_log::Arrival;

/// In the place of a shape.
pub(super) const BROKEN_OFF: &str = "(the session was broken off)";
const SEVERAL: &str = "(a text of several statements)";
const NOT_KEPT: &str = "(a prepared statement whose text is not kept)";

impl Session {
    pub(super) fn arrival(&self) -> Arrival {
        Arrival {
            lex: self.space.settings.lex,
            charset: self.state.client_charset,
            is_read: self.state.tracked && self.state.mode_is_read,
            written: self.client.written(),
        }
    }

    /// Logs a slow statement, unless there were too many of them in this second.
    #[cold]
    pub(super) fn log_slow(&mut self, slow: &Ended, is_whole: bool) {
        let most = self.shared.config.slow.lines;
        let Some(left_out) = self.shared.slow_log.admits(seconds(), most) else {
            return;
        };
        let shape = match is_whole {
            true => self.told_shape(),
            false => BROKEN_OFF.into(),
        };
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let bytes = self.client.written().saturating_sub(self.arrival.written);
        tracing::warn!(
            id = self.connection_id,
            tier = TIERS[slow.tier as usize].1,
            kind = KINDS[slow.kind as usize].1,
            seconds = seconds(slow.time),
            server = seconds(slow.at_server),
            scratch = seconds(slow.at_engine),
            proxy = seconds(slow.in_proxy),
            rows = slow.rows,
            bytes,
            left_out,
            shape,
            "slow statement"
        );
    }

    /// Whether the command's text may be read in another way by now than when it arrived, or is not
    /// there any more.
    pub(super) fn is_read_otherwise(&self) -> bool {
        let (then, now) = (self.arrival, self.arrival());
        let is_same = (then.lex, then.charset, then.is_read) == (now.lex, now.charset, now.is_read);
        !is_same || self.current.read_file
    }

    /// The shape of the command's statement. Where its text may be read in another way by now than
    /// when it arrived, as behind a change of `sql_mode`, nothing is told of it.
    pub(super) fn told_shape(&mut self) -> String {
        if self.is_read_otherwise() {
            return UNREAD.into();
        }
        if self.current.part.is_some() {
            return SEVERAL.into();
        }
        match self.statement_text() {
            None => NOT_KEPT.into(),
            Some((_, None)) => UNREAD.into(),
            Some((_, Some(template))) if template.multiple => SEVERAL.into(),
            Some((_, Some(template))) => template.shown(LENGTH),
        }
    }
}
