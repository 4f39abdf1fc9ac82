//! What a prepared text means depends on the session in which it was prepared. Where it is read
//! or planned once more, that has to be as it was.

use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{LexMode, Literal, LiteralKind};
use onionskin_value::{Charset, Family};
use onionskin_wire::BinaryValue;
use onionskin_wire::messages::Param;

use super::Statement;
use crate::bind::Values;
use crate::error::{Failure, Outcome};
use crate::session::Session;

/// What a text means depends on: the database that was current at its preparation, and how it was
/// read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub database: Option<String>,
    reading: Reading,
}

/// How the words of a text are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    lex: LexMode,
    client: Option<Charset>,
    connection: Option<Charset>,
    collation: Collation,
    /// `div_precision_increment` of MySQL, which gives averages their digits when they are
    /// prepared.
    increment: Option<u8>,
}

/// The connection's collation, as far as two moments can be told apart by it. Literals have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Collation {
    /// The id of that of results.
    results: u16,
    /// How often `collation_connection` may have been set, which servers do not track.
    times_set: u64,
}

impl Session {
    /// What a text prepared now depends on.
    pub fn setting(&self) -> Setting {
        Setting {
            database: self.state.database.clone(),
            reading: self.reading(),
        }
    }

    fn reading(&self) -> Reading {
        let state = &self.state;
        Reading {
            lex: self.space.settings.lex,
            client: state.client_charset,
            connection: state.connection_charset,
            collation: Collation {
                results: state.results_collation,
                times_set: self.collations_set,
            },
            increment: (state.family == Family::MySql).then_some(state.div_precision_increment),
        }
    }

    /// Whether words mean now what they meant then; names may mean tables in another database.
    pub(crate) fn reads_as_then(&self, setting: &Setting) -> bool {
        setting.reading == self.reading()
    }

    /// Digits that a division or an average has behind those of its operand, in the statement that
    /// runs.
    pub(crate) fn increment(&self) -> u8 {
        let session = self.state.div_precision_increment;
        self.current.increment.unwrap_or(session)
    }

    /// What a prepared statement computes as it was when it was prepared.
    pub(super) fn compute_as_prepared(&mut self, setting: &Setting) {
        self.current.increment = setting.reading.increment;
    }

    /// A statement that is prepared at the server once more would have the digits of now.
    pub(super) fn must_compute_alike(&self, setting: &Setting) -> Outcome<()> {
        match setting.reading.increment == self.reading().increment {
            true => Ok(()),
            false => Err(prepared_otherwise()),
        }
    }

    /// A text that is planned or sent again would mean other tables in another database.
    pub(super) fn must_be_of_now(&self, statement: &Statement) -> Outcome<()> {
        let setting = &statement.setting;
        let is_alike = self.reads_alike(setting, false)
            || (self.reads_alike(setting, true) && statement.sql.is_ascii());
        let is_there = setting.database == self.state.database;
        match is_alike && is_there && setting.reading.collation == self.reading().collation {
            true => Ok(()),
            false => Err(prepared_otherwise()),
        }
    }

    /// Texts in a statement that is at the server were read there when it was prepared. Here they
    /// are read when they are sealed, which has to come to the same.
    pub(super) fn must_read_alike(&self, statement: &Statement) -> Outcome<()> {
        if self.reads_alike(&statement.setting, false) {
            return Ok(());
        }
        let is_text =
            |l: &&Literal| matches!(l.kind, LiteralKind::String | LiteralKind::Introduced);
        let mut texts = statement.template.literals.iter().filter(is_text);
        let none = texts.clone().next().is_none();
        let is_ascii = texts.all(|l| l.text(&statement.sql).is_ascii());
        match none || (is_ascii && self.reads_alike(&statement.setting, true)) {
            true => Ok(()),
            false => Err(prepared_otherwise()),
        }
    }

    /// MySQL reads a parameter in the character sets of the preparation, MariaDB in those of the
    /// execution, as it is done here.
    pub(super) fn must_bind_alike(&self, setting: &Setting, values: &Values) -> Outcome<()> {
        if self.state.family == Family::MariaDb || self.reads_alike(setting, false) {
            return Ok(());
        }
        let ascii = |param: &Param| match param.value {
            BinaryValue::Bytes(bytes) => bytes.is_ascii(),
            _ => true,
        };
        let mut long = values.long_data.iter().flatten();
        match values.params.iter().all(ascii) && long.all(|bytes| bytes.is_ascii()) {
            true => Ok(()),
            false => Err(prepared_otherwise()),
        }
    }

    /// Whether texts mean now what they meant in another setting. Those of ASCII alone mean the
    /// same in every character set that is read here.
    fn reads_alike(&self, then: &Setting, is_ascii: bool) -> bool {
        let now = self.space.settings.lex;
        let modes = LexMode {
            charset: now.charset,
            ignore_space: now.ignore_space,
            ..then.reading.lex
        };
        let known = self.state.client_charset.is_some();
        modes == now
            && ((is_ascii && known)
                || (then.reading.client, then.reading.connection)
                    == (self.state.client_charset, self.state.connection_charset))
    }
}

/// A prepared statement cannot be executed under the settings of now.
fn prepared_otherwise() -> Failure {
    NotUnderstood::PreparedOtherwise.into()
}
