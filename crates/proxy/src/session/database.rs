//! The session's database is the one that its client has chosen, and the server gets the files that
//! its client has named.
//!
//! A server can do more: `USE` in `init_connect` puts every session elsewhere, and whoever answers
//! in the server's place can say what he likes. Names without a database would mean other tables
//! then, which nobody protects. So what the server says is held against what the client's command
//! asked for; if that is something else, the session ends.

use onionskin_plan::LexMode;
use onionskin_plan::lex::{Used, used};
use onionskin_value::Charset;
use onionskin_wire::messages::Command;

use super::Session;
use crate::error::{Failure, Outcome};
use crate::login::database::{is_called, named};

impl Session {
    /// Takes over what the server calls the session's database. If it says nothing of a USE that
    /// has succeeded, the name is the client's.
    pub(super) fn take_database(&mut self) -> Outcome<()> {
        let told = self.state.told_database.take();
        let chosen = match std::mem::take(&mut self.current.has_chosen) {
            true => self.used().databases.pop(),
            false => None,
        };
        let told = match (told, &chosen) {
            (Some(told), _) => told,
            (None, Some(_)) => chosen.clone(),
            (None, None) => return Ok(()),
        };
        if chosen.is_none() && told == self.state.database {
            return Ok(());
        }
        if !self.has_chosen(told.as_deref()) {
            tracing::warn!(
                id = self.connection_id,
                told = told.as_deref(),
                chosen = self.state.database.as_deref(),
                "the server puts the session into another database"
            );
            return Err(Failure::OutOfStep("another database"));
        }
        self.state.database = told;
        self.state.changed = true;
        Ok(())
    }

    fn has_chosen(&self, told: Option<&str>) -> bool {
        let Some(told) = told else {
            let is_it = |own: &String| {
                let dropped = self.used().dropped;
                dropped.iter().any(|name| is_called(name, own))
            };
            return self.current.may_lose_database || self.state.database.iter().any(is_it);
        };
        let own = self.current.own_database.as_deref();
        let is_it = |name: &String| is_called(name, told);
        own.is_some_and(|own| is_called(own, told)) || self.used().databases.iter().any(is_it)
    }

    /// Whether the client's command names the file that the server has just requested.
    pub(super) fn has_asked_for_file(&self) -> bool {
        let wanted = self.server.payload().get(1..).unwrap_or_default();
        let wanted = self.in_utf8(wanted);
        self.used().files.contains(&wanted)
    }

    /// What the client's command asks for; of a text of several statements, what the one does that
    /// runs.
    fn used(&self) -> Used {
        let payload = self.client.last_payload();
        let mut found = Used::default();
        let text = match Command::of(payload) {
            Ok(Command::InitDb) => {
                let name = payload.get(1..).unwrap_or_default();
                let charset = self.state.client_charset;
                found.databases.extend(named(name, charset));
                None
            }
            Ok(Command::Query) => payload.get(1..),
            Ok(Command::StmtExecute) => self.statements.text_of(payload),
            _ => None,
        };
        // of several, the one that runs
        let text = self.current.executed.as_deref().or(text);
        // the words are those of the text in UTF-8
        let mode = LexMode {
            charset: Charset::Utf8mb4,
            ..self.space.settings.lex
        };
        match text {
            Some(text) => used(&self.in_utf8(text), mode),
            None => found,
        }
    }

    fn in_utf8(&self, text: &[u8]) -> Vec<u8> {
        let charset = self.state.client_charset.filter(|_| !text.is_ascii());
        let converted = charset.and_then(|charset| charset.to_utf8(text));
        converted.unwrap_or_else(|| text.to_vec())
    }
}
