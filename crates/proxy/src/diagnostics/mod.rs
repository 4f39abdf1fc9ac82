//! What a client may ask about the statement before: `SHOW WARNINGS`, `ROW_COUNT()`,
//! `@@warning_count`, `FOUND_ROWS()`.
//!
//! The server answers for the last statement that it ran itself. It does not know of values that
//! were coerced here, of errors found here, nor that a `COMMIT` of ours was a part of the client's
//! `UPDATE`. What it cannot know is kept here until the next statement, and put into its answers:
//! the server answers the question, so that definitions are its own, and rows are put between or
//! single cells exchanged. A question in any other form is refused while there is something to
//! tell.

mod answer;
mod failed;
mod words;

use onionskin_value::{Family, Level, Warning};

pub(crate) use self::words::{
    DEPRECATED, deprecated_calls, hides_token, tell_as, tells_of, tells_of_values,
};
use crate::exchange::{Cells, Rows};
use crate::server_errors::{ILL_FORMED, NO_DEFAULT};

/// Warnings kept for `SHOW WARNINGS`; more are only counted (`max_error_count` of MySQL).
const MAX_KEPT_WARNINGS: usize = 1024;

/// What the server does not know of the last statement.
#[derive(Default)]
pub(crate) struct Diagnostics {
    /// Warnings of coercions.
    pub warnings: Vec<Warning>,
    /// Warnings that were not kept.
    pub more: u64,
    /// Warnings of the server's about calls of `VALUES()` that the client's text does not have.
    pub surplus: u64,
    /// The server's warnings are of an earlier part of the statement, and among ours.
    pub hides_servers: bool,
    /// All of it is of an earlier statement, over which MariaDB keeps it: the answer to the present
    /// one counts none.
    pub of_earlier: bool,
    /// Which warnings stand beside an error is not known.
    pub unclear: bool,
    /// The server's list may be another one than a plain server's. On MariaDB, a question of the
    /// proxy's own has ended one that would stay.
    pub is_lost: bool,
    /// The warnings are of several rows, and do not say of which.
    pub of_several: bool,
    /// Every row that the server finds raises the warnings: those of an `UPDATE`.
    pub each_row: bool,
    /// Warnings of an `INSERT`'s new values for a row that it meets, if it meets one.
    pub if_met: Vec<Warning>,
    /// The error, if the server has no memory of it: number and text.
    pub error: Option<(u16, Vec<u8>)>,
    /// How often it was raised.
    pub error_times: u64,
    /// Behind it stands the error without a cause that MariaDB adds to that of a NULL in the only
    /// new row of a statement which names the row's columns.
    pub has_unknown: bool,
    /// The client's words for an error that the server remembers in words of its own, about a
    /// token.
    pub told: Option<(u16, Vec<u8>)>,
    /// All that the server has said of an error, where it has run another statement since: rows of
    /// `SHOW WARNINGS`.
    pub list: Option<Rows>,
    /// `ROW_COUNT()`, where the server would speak of another statement.
    pub row_count: Option<i64>,
    /// `FOUND_ROWS()`, if the statement has found rows and the server would speak of others.
    /// [`Found`] keeps it for later statements.
    ///
    /// [`Found`]: crate::exchange::Found
    pub found_rows: Option<u64>,
    /// The server's warnings may show tokens: the statement has left out rows of a protected table
    /// that have duplicates.
    pub shows_tokens: bool,
}

impl Diagnostics {
    /// Whether there is anything that the server does not know.
    pub fn any(&self) -> bool {
        !self.warnings.is_empty()
            || self.surplus > 0
            || self.error.is_some()
            || self.told.is_some()
            || self.list.is_some()
            || self.row_count.is_some()
            || self.found_rows.is_some()
            || self.shows_tokens
            || self.hides_servers
            || self.is_lost
    }

    /// A new statement begins.
    pub fn clear(&mut self) {
        self.warnings.clear();
        self.more = 0;
        self.surplus = 0;
        self.of_several = false;
        self.each_row = false;
        self.hides_servers = false;
        self.of_earlier = false;
        self.unclear = false;
        self.is_lost = false;
        self.if_met.clear();
        self.error = None;
        self.error_times = 0;
        self.has_unknown = false;
        self.told = None;
        self.list = None;
        self.row_count = None;
        self.found_rows = None;
        self.shows_tokens = false;
    }

    /// A statement was prepared: warnings of the last one are gone, its counts stay. The server
    /// itself may not have been told.
    pub fn prepared(&mut self, server_knows: bool) {
        let counts = (self.row_count, self.found_rows);
        self.clear();
        (self.row_count, self.found_rows) = counts;
        self.hides_servers = !server_knows;
    }

    /// A statement's values were bound, with these warnings. One without values may leave what is
    /// kept of the statement before.
    pub fn bind_values(&mut self, warnings: Vec<Warning>) {
        if !self.of_earlier || !warnings.is_empty() {
            self.warnings = warnings;
        }
    }

    /// The server has run a statement over which MariaDB keeps what was there before. Warnings of
    /// its own take that place.
    pub fn server_raised(&mut self, warnings: u16) {
        if self.of_earlier && warnings > 0 {
            self.clear();
        }
    }

    /// Whether the server's counts of warnings are right.
    pub fn adds_nothing(&self) -> bool {
        self.of_earlier || self.count() == 0 && self.surplus == 0 && self.if_met.is_empty()
    }

    /// An `INSERT` of one row has inserted it, or met another.
    pub fn inserted(&mut self, inserted: bool) {
        let mut if_met = std::mem::take(&mut self.if_met);
        if !inserted {
            self.warnings.append(&mut if_met);
        }
    }

    /// The server has refused a statement of whose values some raised warnings: those of rows
    /// behind the one that it refused did not come to that. A default is missed before any value is
    /// looked at, or among them, as the statement says `DEFAULT` or nothing.
    pub fn failed_at_server(&mut self, code: u16) {
        let of_another = |w: &Warning| self.of_several || !w.message.ends_with(" at row 1");
        let missed = code == NO_DEFAULT && !self.warnings.is_empty();
        self.unclear |= missed || self.warnings.iter().any(of_another);
    }

    /// What stands beside an error of the server's behind these warnings, as `SHOW WARNINGS` shows
    /// it; `None` if that is not clear.
    pub fn list_with(&self, code: u16, message: &[u8], family: Family) -> Option<Rows> {
        // each DEFAULT is resolved before the first row
        let resolved = |w: &Warning| family == Family::MySql && w.code == NO_DEFAULT;
        let certain = |w: &Warning| w.message.ends_with(" at row 1") || resolved(w);
        if self.more > 0 || !self.warnings.iter().all(certain) {
            return None;
        }
        let warnings = self.warnings.iter();
        let mut list: Rows = warnings
            .map(|w| shown(name_of(w.level), w.code, w.message.as_bytes()))
            .collect();
        list.push(shown(b"Error", code, message));
        Some(list)
    }

    /// How many warnings the proxy has raised.
    pub fn count(&self) -> u64 {
        self.warnings.len() as u64 + self.more
    }

    /// The server's warnings and ours, as many as a packet can count.
    pub fn sum(&self, servers: u16) -> u16 {
        if self.of_earlier {
            return servers;
        }
        u16::try_from(self.total(servers.into())).unwrap_or(u16::MAX)
    }

    fn total(&self, servers: u64) -> u64 {
        servers.saturating_sub(self.surplus) + self.count()
    }

    /// `… Warnings: 0` with the right number.
    pub fn info(&self, info: &[u8]) -> Vec<u8> {
        const MARK: &[u8] = b"Warnings: ";
        let mut text = info.to_vec();
        let number = memchr::memmem::rfind(info, MARK).map(|at| at + MARK.len());
        if let Some(at) = number
            && let Ok(servers) = String::from_utf8_lossy(&info[at..]).parse()
        {
            text.truncate(at);
            text.extend_from_slice(self.total(servers).to_string().as_bytes());
        }
        text
    }

    /// An `UPDATE` has found so many rows: each of them has raised the warnings.
    pub fn found(&mut self, rows: u64) {
        if !std::mem::take(&mut self.each_row) {
            return;
        }
        let of_rows = self.take_of_rows();
        for row in 1..=rows {
            if self.warnings.len() >= MAX_KEPT_WARNINGS {
                self.more += (rows + 1 - row) * of_rows.len() as u64;
                break;
            }
            self.add_row(&of_rows, row);
        }
    }

    /// Takes the warnings out that every row raises. Those about ill-formed text (1300) stay: the
    /// server's parser raises them, once.
    pub fn take_of_rows(&mut self) -> Vec<Warning> {
        let once = std::mem::take(&mut self.warnings);
        let (of_text, of_rows) = once.into_iter().partition(is_of_text);
        self.warnings = of_text;
        of_rows
    }

    /// Adds the warnings of the row with this number.
    pub fn add_row(&mut self, of_rows: &[Warning], row: u64) {
        self.warnings.extend(of_rows.iter().map(|w| of_row(w, row)));
        self.bound();
    }

    /// Counts what there is too much of.
    fn bound(&mut self) {
        let over = self.warnings.len().saturating_sub(MAX_KEPT_WARNINGS);
        self.warnings.truncate(MAX_KEPT_WARNINGS);
        self.more += over as u64;
    }

    /// Adds warnings of the server's, as `SHOW WARNINGS` has shown them, of which there were
    /// `count`. Those about a protected table come without tokens.
    pub fn keep(&mut self, shown: &Rows, count: u16) {
        let text = |cell: Option<&Option<Vec<u8>>>| {
            let bytes = cell.and_then(Option::as_deref).unwrap_or_default();
            String::from_utf8_lossy(bytes).into_owned()
        };
        let found = shown.iter().map(|row| Warning {
            level: match text(row.first()).as_str() {
                "Note" => Level::Note,
                _ => Level::Warning,
            },
            code: text(row.get(1)).parse().unwrap_or_default(),
            message: text(row.get(2)),
        });
        self.warnings.extend(found);
        self.hides_servers = true;
        self.more += u64::from(count).saturating_sub(shown.len() as u64);
        self.bound();
    }
}

/// A condition as `SHOW WARNINGS` shows it.
pub(crate) fn shown(level: &[u8], code: u16, message: &[u8]) -> Cells {
    [level, code.to_string().as_bytes(), message]
        .map(|cell| Some(cell.to_vec()))
        .to_vec()
}

/// As `SHOW WARNINGS` has it.
fn name_of(level: Level) -> &'static [u8] {
    match level {
        Level::Note => b"Note",
        Level::Warning => b"Warning",
    }
}

/// Raised by the parser for a literal, wherever its value goes.
fn is_of_text(warning: &Warning) -> bool {
    warning.code == ILL_FORMED
}

/// The same warning of another row.
fn of_row(warning: &Warning, row: u64) -> Warning {
    let message = match warning.message.strip_suffix(" at row 1") {
        Some(text) => format!("{text} at row {row}"),
        None => warning.message.clone(),
    };
    Warning {
        level: warning.level,
        code: warning.code,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_that_an_update_finds_raises_its_warnings() {
        let warning = |code, message: &str| Warning {
            level: Level::Warning,
            code,
            message: message.to_owned(),
        };
        let mut found = Diagnostics {
            warnings: vec![
                warning(1265, "Data truncated for column 'a' at row 1"),
                warning(1300, "Invalid utf8mb4 character string: 'FF'"),
            ],
            each_row: true,
            ..Diagnostics::default()
        };
        found.found(3);
        let texts: Vec<&str> = found.warnings.iter().map(|w| w.message.as_str()).collect();
        assert_eq!(
            texts,
            [
                "Invalid utf8mb4 character string: 'FF'",
                "Data truncated for column 'a' at row 1",
                "Data truncated for column 'a' at row 2",
                "Data truncated for column 'a' at row 3"
            ]
        );
        assert_eq!(found.count(), 4);
        // only once
        found.found(3);
        assert_eq!(found.count(), 4);

        let mut many = Diagnostics {
            warnings: vec![warning(1265, "Data truncated for column 'a' at row 1")],
            each_row: true,
            ..Diagnostics::default()
        };
        many.found(100_000);
        assert_eq!(
            (many.warnings.len(), many.count()),
            (MAX_KEPT_WARNINGS, 100_000)
        );
    }
}
