//! What follows if the session's server is no longer the primary, or no longer one to read from:
//! see [`crate::members`].
//!
//! The session may finish its transaction, until the time for that is over, and runs nothing else.
//! Then it ends, with an error where its client waits for an answer. Whoever wants to go on
//! connects again, as after a server's shutdown, whose error number this is.
//!
//! Sessions that wait for a command are woken and cut off by [`crate::registry::Registry::drain`],
//! again and again, so that none has to look by itself.

use std::time::Instant;

use super::Session;

impl Session {
    /// Whether the session is of an earlier term.
    #[inline]
    pub(super) fn is_demoted(&self) -> bool {
        self.shared.leading.era() != self.era
    }

    /// Whether it may run another statement all the same.
    pub(super) fn may_finish(&self) -> bool {
        let until = self.shared.leading.until;
        self.is_in_something() && until.is_some_and(|until| Instant::now() < until)
    }

    /// Says whether it is in a transaction, for whoever ends sessions of earlier terms.
    pub(super) fn tell_transaction(&self) {
        let is_it = self.is_in_something();
        if self.activity.is_in_transaction() != is_it {
            self.activity.rests_in_transaction(is_it);
        }
    }

    /// Ends the session. `asked`: a command has come, which is not done.
    #[cold]
    pub(super) fn leave(&mut self, asked: bool) -> bool {
        tracing::info!(
            id = self.connection_id,
            "the session ends: its server is no longer the one that such sessions go to"
        );
        if !asked {
            // as servers announce their end
            self.client.reset_sequence();
        }
        self.shared.leading.tell_demoted(&mut self.client);
        false
    }

    fn is_in_something(&self) -> bool {
        self.server.is_in_transaction() || self.locked_tables
    }
}
