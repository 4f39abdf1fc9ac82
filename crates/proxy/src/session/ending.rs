//! Errors in the place of answers, and how a session ends.

use std::time::Duration;

use onionskin_plan::errors;
use onionskin_wire::WireError;

use super::Session;
use crate::error::Failure;

/// How long what the server said last is waited for. It has arrived with the end of the connection,
/// unless that was broken.
const LAST_WORDS: Duration = Duration::from_millis(200);

impl Session {
    /// Sends the client an error in the place of an answer. What the server still has to say is
    /// read and thrown away.
    pub(super) fn refuse(&mut self, failure: &Failure) -> Result<(), WireError> {
        tracing::debug!(id = self.connection_id, ?failure, "refused");
        self.client.cancel_payload();
        if let Err(failure) = self.server.settle() {
            self.farewell(&failure);
            return Err(WireError::Closed);
        }
        // On MariaDB such a statement is the transaction of which something was said, and the
        // server has not seen it. Under settings that the proxy does not follow, what it shows of
        // the error may be something else.
        let is_ours = self.has_next_transaction() || !self.state.is_usual();
        let coded = match failure {
            Failure::Refused(refusal) if is_ours => refusal.coded(),
            _ => None,
        };
        self.may_have_begun(failure);
        let coded = coded.map(Failure::Refused);
        let failure = coded.as_ref().unwrap_or(failure);
        if let Some(packet) = failure.packet() {
            let mut out = Vec::new();
            packet.encode(&mut out);
            self.client.write_payload(&out)?;
            self.keep_failure(failure, &packet);
        }
        self.client.flush()?;
        let learned = self.after_command().and_then(|()| self.note_untold());
        learned.map_err(|_| WireError::Closed)
    }

    /// Ends the session because the server has: with what the server said last, as it came.
    pub(super) fn follow_server(&mut self) -> bool {
        tracing::debug!(id = self.connection_id, "the server has ended the session");
        self.pass_on_farewell();
        false
    }

    /// Passes on what the server said before it closed the connection, if that was more than
    /// nothing. A client without a proxy sees the same.
    fn pass_on_farewell(&mut self) {
        let connection = &mut self.server.connection;
        let limited = connection.transport().set_read_timeout(Some(LAST_WORDS));
        if limited.is_ok()
            && let Some(words) = connection.read_farewell()
        {
            self.client.reset_sequence();
            let told = self.client.write_payload(words);
            let told = told.and_then(|()| self.client.flush());
            tracing::debug!(id = self.connection_id, ?told, "the server's last words");
        }
    }

    /// The last packet before a session that cannot go on is closed.
    pub(super) fn farewell(&mut self, failure: &Failure) {
        self.client.cancel_payload();
        let is_lost = failure.is_lost_server()
            || matches!(failure, Failure::OutOfStep(_)) && self.activity.is_server_gone();
        if is_lost {
            // the client sees the end of the connection, and its statement's outcome is not known
            if !self.activity.is_cut() {
                let (code, id) = (errors::BACKEND_GONE.code, self.connection_id);
                tracing::warn!(code, id, ?failure, "the server went away in a command");
            }
            self.pass_on_farewell();
            let _ = self.client.flush();
            return;
        }
        tracing::info!(
            id = self.connection_id,
            ?failure,
            "the session is broken off"
        );
        if let Failure::Client(WireError::Malformed(_) | WireError::SequenceMismatch { .. }) =
            failure
        {
            let packet = Failure::refused(&errors::MALFORMED, "");
            if let Some(packet) = packet.packet() {
                let mut out = Vec::new();
                packet.encode(&mut out);
                let _ = self.client.write_payload(&out);
            }
        } else if let Failure::Client(WireError::TooLarge { .. }) = failure {
            let packet = Failure::refused(&errors::TOO_BIG, "");
            if let Some(packet) = packet.packet() {
                let mut out = Vec::new();
                packet.encode(&mut out);
                let _ = self.client.write_payload(&out);
            }
        } else if let Some(packet) = failure.packet() {
            let mut out = Vec::new();
            packet.encode(&mut out);
            let _ = self.client.write_payload(&out);
        }
        let _ = self.client.flush();
    }
}
