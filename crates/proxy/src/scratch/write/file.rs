//! `LOAD DATA LOCAL INFILE`: the engine asks for the file. The proxy asks the client for it, and
//! hands it on.
//!
//! The engine reads it into the temporary table of new rows, under the statement's own clauses. It
//! counts the records and raises the warnings. Rows that meet others are skipped (IGNORE, which
//! LOCAL means by itself) or replaced when they are inserted.

use onionskin_plan::{Load, NewRows, ScratchWrite, errors, lex, literal};
use onionskin_value::{Charset, Family, Input};
use onionskin_wire::messages::OkPacket;
use onionskin_wire::{Capabilities, Step, WireError};

use super::super::engine::{Engine, ours};
use super::super::tables::quoted;
use super::rows::{begin_new, drop_new, given_names, table_of_new};
use super::{Change, Finished, names_of, told};
use crate::bind::Values;
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::exchange::Done;
use crate::session::Session;

/// The first byte of the packet that asks for a file.
const REQUEST: u8 = 0xfb;

impl Session {
    #[allow(clippy::too_many_arguments)] // a statement and what it is run with
    pub(super) fn load_file(
        &mut self,
        engine: &mut Engine,
        keyed: &KeyedPlan,
        write: &ScratchWrite,
        new: &NewRows,
        load: &Load,
        values: Values,
        change: &mut Change,
    ) -> Outcome<Finished> {
        let charset = self.may_load()?;
        let settings = self.read_tables(engine, keyed, &write.scratch, values, Some(change))?;
        let (file, text) = self.load_text(new, load, values.sql, &charset)?;
        begin_new(engine, new, self.state.family)?;
        engine.share(&settings)?;
        let ran = self.hand_on(engine, &text, &file);
        let loaded = told(engine, ran, &names_of(write));
        let finished = loaded.and_then(|(_, diagnostics)| {
            let verb = match new.replaces {
                true => "REPLACE",
                false => "INSERT IGNORE",
            };
            let head = format!(
                "{verb} INTO {}.{}",
                quoted(&new.table.database),
                quoted(&new.table.name)
            );
            self.insert_new(engine, new, head.as_bytes(), b"", false, diagnostics)
        });
        engine.put(drop_new(new).as_bytes())?;
        finished
    }

    /// Refuses as the server would if it, or the client, does not want files. Returns the character
    /// set of files that do not say theirs.
    fn may_load(&mut self) -> Outcome<String> {
        let rows = self
            .server
            .rows(b"SELECT @@GLOBAL.local_infile, @@character_set_database")?;
        let cell = |n: usize| {
            rows.first()
                .and_then(|r| r.get(n))
                .and_then(Option::as_deref)
        };
        let (enabled, charset) = (cell(0) == Some(b"1"), cell(1).unwrap_or_default().to_vec());
        if !enabled || !self.client_capabilities.contains(Capabilities::LOCAL_FILES) {
            let (code, message) = match self.state.family {
                Family::MySql => (
                    3948,
                    "Loading local data is disabled; this must be enabled on both the client and server sides",
                ),
                Family::MariaDb => (
                    4166,
                    "The used command is not allowed because the MariaDB server or client has disabled the local infile capability",
                ),
            };
            return Err(Failure::Server {
                code,
                state: *b"HY000",
                message: message.into(),
            });
        }
        if charset.is_empty() || !charset.iter().all(u8::is_ascii_alphanumeric) {
            let about = "character_set_database";
            return Err(Failure::refused(&errors::CHARACTER_SET, about));
        }
        Ok(String::from_utf8_lossy(&charset).into_owned())
    }

    /// The name of the file, and the statement for the engine.
    fn load_text(
        &self,
        new: &NewRows,
        load: &Load,
        sql: &[u8],
        charset: &str,
    ) -> Outcome<(Vec<u8>, Vec<u8>)> {
        let bad = || Failure::refused(&errors::INTERNAL, "the statement's words");
        let mode = self.state.lex_mode();
        let tokens = lex::tokens(sql, mode).map_err(|_| bad())?;
        let part = |(from, to): (usize, usize)| {
            let tokens = tokens.get(from..to).unwrap_or_default();
            match (tokens.first(), tokens.last()) {
                (Some(first), Some(last)) => &sql[first.start..last.end],
                _ => &[][..],
            }
        };
        let file = tokens.get(load.file).ok_or_else(bad)?;
        let lex::TokenKind::Literal(kind) = file.kind else {
            return Err(bad());
        };
        let mut name = Vec::new();
        let decoded = literal::decode(
            file.text(sql),
            kind,
            false,
            mode,
            Charset::Utf8mb4,
            &mut name,
        );
        let name = match decoded {
            Some(Input::Text { bytes, .. }) => bytes.to_vec(),
            _ => return Err(bad()),
        };
        let mut text = format!(
            "LOAD DATA LOCAL INFILE 'onionskin' {}INTO TABLE {} ",
            // what does not fit is an error then, as it is changed otherwise
            if new.replaces { "REPLACE " } else { "" },
            table_of_new(new)
        )
        .into_bytes();
        if !load.names_charset {
            text.extend_from_slice(format!("CHARACTER SET {charset} ").as_bytes());
        }
        text.extend_from_slice(part(load.clauses));
        text.push(b' ');
        match load.list.0 == load.list.1 {
            true => text.extend_from_slice(format!("({})", given_names(new)).as_bytes()),
            false => text.extend_from_slice(part(load.list)),
        }
        text.push(b' ');
        text.extend_from_slice(part(load.assignments));
        Ok((name, text))
    }

    /// Runs the statement there, and brings the client's file to it. The client's packets are read
    /// to the end of the file, whatever becomes of the engine. Otherwise the next one would be
    /// taken for a command.
    fn hand_on(&mut self, engine: &mut Engine, text: &[u8], file: &[u8]) -> Outcome<Done> {
        let (rows, memory) = {
            let config = self.bounds()?;
            (config.rows, config.memory)
        };
        let question = engine.server.put_query(text).map_err(ours)?;
        engine.settle()?;
        engine.server.begin(question).map_err(ours)?;
        let mut step = engine.server.step().map_err(ours)?;
        if step == Step::LocalInfileRequest {
            self.current.read_file = true;
            let mut request = vec![REQUEST];
            request.extend_from_slice(file);
            self.write(&request)?;
            self.flush()?;
            let (mut handed, mut bytes) = (Ok(()), 0);
            loop {
                let payload = self.client.read_payload().map_err(Failure::Client)?;
                let end = payload.is_empty();
                bytes += payload.len() as u64;
                if handed.is_ok() && bytes > memory {
                    handed = Err(Failure::refused(&errors::SCRATCH_BOUND, "the file"));
                }
                if handed.is_ok() {
                    let to = &mut engine.server.connection;
                    let written = to.write_payload(payload);
                    handed = written.map_err(|e| ours(Failure::Backend(e)));
                }
                if end {
                    break;
                }
            }
            handed?;
            engine.server.flush().map_err(ours)?;
            step = engine.wait()?;
        }
        match step {
            Step::Ok { .. } => {
                let ok = OkPacket::decode(engine.server.payload(), engine.server.capabilities);
                let ok = ok.map_err(|e| ours(Failure::Backend(e)))?;
                if ok.affected_rows > rows {
                    return Err(Failure::refused(&errors::SCRATCH_BOUND, "the file"));
                }
                Ok(Done {
                    warnings: ok.warnings,
                    ..Done::default()
                })
            }
            Step::Err => Err(engine.failure()),
            _ => Err(ours(Failure::Backend(WireError::Malformed(
                "no answer to a file",
            )))),
        }
    }
}
