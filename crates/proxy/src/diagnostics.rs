//! What a client may ask about the statement before: `SHOW WARNINGS`, `ROW_COUNT()`, `@@warning_count`, `FOUND_ROWS()`.
//!
//! The server answers for the last statement that it ran itself. It does not know of values that were coerced here, of
//! errors found here, nor that a `COMMIT` of ours was a part of the client's `UPDATE`. What it cannot know is kept
//! here until the next statement, and put into its answers: the server answers the client's text, so that
//! definitions are its own, and single cells are exchanged. A question in any other form is refused while
//! there is something to tell.

use onionskin_plan::errors;
use onionskin_value::{Family, Level, Warning};
use onionskin_wire::messages::Command;
use onionskin_wire::rows::{TextRow, put_text_cell};
use onionskin_wire::{Step, WireError};

use crate::bind::ILL_FORMED;
use crate::error::{Failure, Outcome};
use crate::exchange::Rows;
use crate::session::Session;

/// Warnings kept for `SHOW WARNINGS`; more are only counted (`max_error_count` of MySQL).
const KEPT: usize = 1024;

/// A column without a value and without a default.
const NO_DEFAULT: u16 = 1364;
/// Words that will go.
pub(crate) const DEPRECATED: u16 = 1287;
/// MySQL's words about `VALUES()`.
const VALUES_CALL: &str = "'VALUES function' is deprecated and will be removed in a future release. Please use an alias \
                           (INSERT INTO ... VALUES (...) AS alias) and replace VALUES(col) in the ON DUPLICATE KEY UPDATE \
                           clause with alias.col instead";

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
    /// Which warnings stand beside an error is not known.
    pub unclear: bool,
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
    /// The client's words for an error that the server remembers in words of its own, about a token.
    pub told: Option<(u16, Vec<u8>)>,
    /// All that the server has said of an error, where it has run another statement since: rows of `SHOW WARNINGS`.
    pub list: Option<Rows>,
    /// `ROW_COUNT()`, where the server would speak of another statement.
    pub row_count: Option<i64>,
    /// `FOUND_ROWS()`, likewise.
    pub found_rows: Option<u64>,
}

/// A cell of an answer that the proxy knows better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    RowCount,
    FoundRows,
    WarningCount,
    ErrorCount,
    Other,
}

/// How a statement relates to the one before.
#[derive(Debug, PartialEq, Eq)]
enum Question {
    /// It does not ask.
    None,
    /// It does not ask, and MariaDB keeps the warnings: a `SELECT` without tables.
    Keeps,
    /// `SHOW WARNINGS`
    Warnings,
    /// `SHOW ERRORS`
    Errors,
    /// `SELECT ROW_COUNT(), @@warning_count`
    Cells(Vec<Item>),
    /// In another form.
    Unclear,
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
    }

    /// A new statement begins.
    pub fn clear(&mut self) {
        self.warnings.clear();
        self.more = 0;
        self.surplus = 0;
        self.of_several = false;
        self.each_row = false;
        self.hides_servers = false;
        self.unclear = false;
        self.if_met.clear();
        self.error = None;
        self.error_times = 0;
        self.told = None;
        self.list = None;
        self.row_count = None;
        self.found_rows = None;
    }

    /// Whether the server's counts of warnings are right.
    pub fn adds_nothing(&self) -> bool {
        self.count() == 0 && self.surplus == 0 && self.if_met.is_empty()
    }

    /// An `INSERT` of one row has inserted it, or met another.
    pub fn inserted(&mut self, inserted: bool) {
        let mut if_met = std::mem::take(&mut self.if_met);
        if !inserted {
            self.warnings.append(&mut if_met);
        }
    }

    /// The server has refused a statement of whose values some raised warnings: those of rows behind the one that it
    /// refused did not come to that. MySQL misses a default before it looks at values, or after, as the statement says `DEFAULT` or nothing.
    pub fn failed_at_server(&mut self, code: u16, family: Family) {
        let of_another = |w: &Warning| self.of_several || !w.message.ends_with(" at row 1");
        let missed = family == Family::MySql && code == NO_DEFAULT && !self.warnings.is_empty();
        self.unclear |= missed || self.warnings.iter().any(of_another);
    }

    /// What stands beside an error of the server's behind these warnings, as `SHOW WARNINGS` shows it; `None` if that is not clear.
    pub fn list_with(&self, code: u16, message: &[u8], family: Family) -> Option<Rows> {
        // each DEFAULT is resolved before the first row
        let resolved = |w: &Warning| family == Family::MySql && w.code == NO_DEFAULT;
        let certain = |w: &Warning| w.message.ends_with(" at row 1") || resolved(w);
        if self.more > 0 || !self.warnings.iter().all(certain) {
            return None;
        }
        let row = |level: &[u8], code: u16, message: &[u8]| {
            let cells = [level, code.to_string().as_bytes(), message].map(|c| Some(c.to_vec()));
            cells.to_vec()
        };
        let warnings = self.warnings.iter();
        let mut list: Rows = warnings
            .map(|w| row(name_of(w.level), w.code, w.message.as_bytes()))
            .collect();
        list.push(row(b"Error", code, message));
        Some(list)
    }

    /// How many warnings the proxy has raised.
    pub fn count(&self) -> u64 {
        self.warnings.len() as u64 + self.more
    }

    /// The server's warnings and ours, as many as a packet can count.
    pub fn sum(&self, servers: u16) -> u16 {
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
            if self.warnings.len() >= KEPT {
                self.more += (rows + 1 - row) * of_rows.len() as u64;
                break;
            }
            self.add_row(&of_rows, row);
        }
    }

    /// Takes the warnings out that every row raises. Those about ill-formed text (1300) stay: the server's
    /// parser raises them, once.
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
        let over = self.warnings.len().saturating_sub(KEPT);
        self.warnings.truncate(KEPT);
        self.more += over as u64;
    }

    /// Adds warnings of the server's, as `SHOW WARNINGS` has shown them, of which there were `count`.
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

/// What a statement of this shape asks.
fn question(key: &[u8]) -> Question {
    const CALLS: [&str; 6] = [
        "row_count(",
        "row_count (",
        "found_rows(",
        "found_rows (",
        "warning_count",
        "error_count",
    ];
    let text = String::from_utf8_lossy(key).to_ascii_lowercase();
    match text.as_str() {
        "show warnings" => return Question::Warnings,
        "show errors" => return Question::Errors,
        _ => {}
    }
    let begins = |words: &str| text.starts_with(words);
    if begins("show warnings") || begins("show errors") || begins("show count") {
        return Question::Unclear;
    }
    if begins("get ") && text.contains("diagnostics") {
        return Question::Unclear;
    }
    let reads_tables = text.contains(" from ");
    // a variable, not a column of that name
    let variables = text.contains("@@");
    let asks = |call: &&str| text.contains(*call) && (variables || call.contains('('));
    if !CALLS.iter().any(asks) {
        return match begins("select ") && !reads_tables {
            true => Question::Keeps,
            false => Question::None,
        };
    }
    let Some(list) = text.strip_prefix("select ").filter(|_| !reads_tables) else {
        return Question::Unclear;
    };
    let mut items = Vec::new();
    for item in list.split(',') {
        let item = item.trim();
        // a call ends with its parenthesis, a variable with a space; an alias may follow
        let end = item.find([')', ' ']).map_or(item.len(), |at| at + 1);
        let end = if item[..end].ends_with(' ') && item[end..].starts_with('(') {
            item.find(')').map_or(item.len(), |at| at + 1)
        } else {
            end
        };
        let bare: String = item[..end].chars().filter(|&c| c != ' ').collect();
        let alias = item[end..].trim();
        let alias = alias.strip_prefix("as ").unwrap_or(alias);
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '`');
        items.push(match bare.as_str() {
            _ if !alias.chars().all(is_name) => return Question::Unclear,
            "row_count()" => Item::RowCount,
            "found_rows()" => Item::FoundRows,
            "@@warning_count" | "@@session.warning_count" | "@@local.warning_count" => {
                Item::WarningCount
            }
            "@@error_count" | "@@session.error_count" | "@@local.error_count" => Item::ErrorCount,
            other if CALLS.iter().any(|call| other.contains(call.trim_end())) => {
                return Question::Unclear;
            }
            // a comma inside of a call is none between items
            other if other.contains('(') != other.contains(')') => return Question::Unclear,
            _ => Item::Other,
        });
    }
    Question::Cells(items)
}

/// Whether a statement of this shape uses `VALUES()`, of which MySQL warns before anything else.
pub(crate) fn calls_values(key: &[u8]) -> bool {
    let text = String::from_utf8_lossy(key).to_ascii_lowercase();
    text.split_once(" on duplicate ")
        .is_some_and(|(_, behind)| behind.contains("values"))
}

/// What MySQL says of each call of `VALUES()` in a statement of this shape, where the server is sent a text without them.
pub(crate) fn deprecated_calls(key: &[u8], family: Family) -> Vec<Warning> {
    let text = String::from_utf8_lossy(key).to_ascii_lowercase();
    let (Family::MySql, Some((_, clause))) = (family, text.split_once(" on duplicate ")) else {
        return Vec::new();
    };
    let calls = clause.split("values").skip(1);
    calls
        .filter(|behind| behind.trim_start().starts_with('('))
        .map(|_| Warning {
            level: Level::Warning,
            code: DEPRECATED,
            message: VALUES_CALL.into(),
        })
        .collect()
}

/// Whether a statement of this shape asks about the one before.
pub(crate) fn asks(key: &[u8]) -> bool {
    !matches!(question(key), Question::None | Question::Keeps)
}

impl Session {
    /// Answers a question about the last statement, if the template's is one and the server's answer would be wrong.
    /// `Ok(false)`: it is none; what is kept is cleared.
    pub fn ask(&mut self, sql: &[u8]) -> Outcome<bool> {
        if !self.diagnostics.any() {
            // what only says how to count was for the last statement, too
            self.diagnostics.clear();
            return Ok(false);
        }
        if self.asks_by_name(sql) {
            let about = "a prepared question about the last statement";
            return Err(Failure::refused(&errors::NOT_UNDERSTOOD, about));
        }
        let keeps = self.state.family == Family::MariaDb;
        let question = match question(&self.template.key) {
            Question::Warnings if self.diagnostics.unclear => Question::Unclear,
            Question::Cells(items)
                if self.diagnostics.unclear
                    && items
                        .iter()
                        .any(|i| matches!(i, Item::WarningCount | Item::ErrorCount)) =>
            {
                Question::Unclear
            }
            clear => clear,
        };
        match question {
            Question::Keeps if keeps => {
                self.diagnostics.row_count = None;
                self.diagnostics.found_rows = None;
                Ok(false)
            }
            Question::None | Question::Keeps => {
                self.diagnostics.clear();
                Ok(false)
            }
            Question::Warnings => self.show_warnings(sql, false).map(|()| true),
            Question::Errors => self.show_warnings(sql, true).map(|()| true),
            Question::Cells(items) => {
                self.exchange_cells(sql, &items)?;
                self.diagnostics.row_count = None;
                self.diagnostics.found_rows = None;
                if !keeps {
                    self.diagnostics.clear();
                }
                Ok(true)
            }
            Question::Unclear => {
                let about = "a question about the last statement";
                Err(Failure::refused(&errors::NOT_UNDERSTOOD, about))
            }
        }
    }

    /// `SHOW WARNINGS`, or `SHOW ERRORS`: the server's rows, and ours behind them.
    fn show_warnings(&mut self, sql: &[u8], errors_only: bool) -> Outcome<()> {
        let own = std::mem::take(&mut self.diagnostics.warnings);
        let error = self.diagnostics.error.clone();
        let told = self.diagnostics.told.clone();
        let list = std::mem::take(&mut self.diagnostics.list);
        let mut room = match self.state.family {
            Family::MariaDb => 64,
            Family::MySql => KEPT,
        };
        let mut surplus = std::mem::take(&mut self.diagnostics.surplus);
        let servers_surplus = surplus;
        // ours come before an error of the server's, which is the last that was said
        let mut left: &[Warning] = if errors_only { &[] } else { &own };
        self.begin_question(sql)?;
        while !self.server.tracker.is_complete() {
            let step = self.server.step()?;
            match step {
                Step::Err => return Err(self.server.error()),
                Step::Row if surplus > 0 && is_about_values(self.server.payload()) => surplus -= 1,
                // what the server still shows is of an earlier statement
                Step::Row
                    if error.is_some() || list.is_some() || self.diagnostics.hides_servers => {}
                Step::EndOfRows { .. } => {
                    for row in list.iter().flatten() {
                        let cell = |n: usize| row.get(n).and_then(Option::as_deref);
                        if surplus > 0 && tells_of_values(cell(1), cell(2)) {
                            surplus -= 1;
                        } else if !errors_only || cell(0) == Some(b"Error") {
                            if cell(0) == Some(b"Error") {
                                self.write_warnings(&mut left, &mut room)?;
                            }
                            let out = self.client.begin_payload();
                            (0..3).for_each(|n| put_text_cell(out, cell(n)));
                            self.client.end_payload().map_err(Failure::Client)?;
                            room = room.saturating_sub(1);
                        }
                    }
                    self.write_warnings(&mut left, &mut room)?;
                    // it was the last that was said
                    if let Some((code, message)) = &error
                        && (errors_only || room > 0)
                    {
                        for _ in 0..self.diagnostics.error_times {
                            self.write_condition(b"Error", *code, message)?;
                        }
                    }
                    self.write_end(step)?;
                }
                Step::EofAfterColumns { .. } => self.write_end(step)?,
                _ => {
                    if step == Step::Row {
                        room = room.saturating_sub(1);
                        if is_error(self.server.payload()) {
                            self.write_warnings(&mut left, &mut room)?;
                            if let Some((code, message)) = &told {
                                self.write_condition(b"Error", *code, message)?;
                                continue;
                            }
                        }
                    }
                    let payload = self.server.connection.last_payload();
                    self.client
                        .write_payload(payload)
                        .map_err(Failure::Client)?;
                }
            }
        }
        self.diagnostics.warnings = own;
        self.diagnostics.list = list;
        self.diagnostics.surplus = servers_surplus;
        self.diagnostics.row_count = None;
        self.diagnostics.found_rows = None;
        Ok(())
    }

    /// Writes as many of the warnings as there is room for; none are left then.
    fn write_warnings(&mut self, left: &mut &[Warning], room: &mut usize) -> Outcome<()> {
        for warning in std::mem::take(left).iter().take(*room) {
            let level = name_of(warning.level);
            self.write_condition(level, warning.code, warning.message.as_bytes())?;
            *room -= 1;
        }
        Ok(())
    }

    fn write_condition(&mut self, level: &[u8], code: u16, message: &[u8]) -> Outcome<()> {
        let code = code.to_string();
        let out = self.client.begin_payload();
        for cell in [level, code.as_bytes(), message] {
            put_text_cell(out, Some(cell));
        }
        self.client.end_payload().map_err(Failure::Client)
    }

    /// Sends a question. It raises no warnings of its own, nor does it find rows of an `UPDATE`.
    fn begin_question(&mut self, sql: &[u8]) -> Outcome<()> {
        self.diagnostics.each_row = false;
        self.server.put_query(sql)?;
        self.server.flush()?;
        self.server.begin(Command::Query)
    }

    /// Relays the answer to a `SELECT` of such items, with the numbers that the server does not know.
    fn exchange_cells(&mut self, sql: &[u8], items: &[Item]) -> Outcome<()> {
        let own = self.diagnostics.count() as i64;
        let surplus = std::mem::take(&mut self.diagnostics.surplus);
        let error = self.diagnostics.error.is_some();
        let times = self.diagnostics.error_times as i64;
        let list = self.diagnostics.list.iter().flatten();
        let is_error =
            |row: &&Vec<Option<Vec<u8>>>| row.first().and_then(Option::as_deref) == Some(b"Error");
        let (listed, errors) = (
            list.clone().count() as i64,
            list.filter(is_error).count() as i64,
        );
        let numbers: Vec<Option<Known>> = items
            .iter()
            .map(|item| match item {
                Item::RowCount => self.diagnostics.row_count.map(Known::Is),
                Item::FoundRows => self.diagnostics.found_rows.map(|n| Known::Is(n as i64)),
                Item::WarningCount if error => Some(Known::Is(times + own)),
                Item::WarningCount if self.diagnostics.hides_servers => Some(Known::Is(own)),
                Item::WarningCount if self.diagnostics.list.is_some() => {
                    Some(Known::Is(listed + own - surplus as i64))
                }
                Item::ErrorCount if self.diagnostics.list.is_some() => Some(Known::Is(errors)),
                Item::WarningCount => Some(Known::More(own - surplus as i64)),
                Item::ErrorCount if error => Some(Known::Is(times)),
                Item::ErrorCount | Item::Other => None,
            })
            .collect();
        let warnings = std::mem::take(&mut self.diagnostics.warnings);
        self.begin_question(sql)?;
        while !self.server.tracker.is_complete() {
            let step = self.server.step()?;
            match step {
                Step::Err => return Err(self.server.error()),
                Step::Row => {
                    let out = self.client.begin_payload();
                    exchange(self.server.connection.last_payload(), &numbers, out)?;
                    self.client.end_payload().map_err(Failure::Client)?;
                }
                Step::EndOfRows { .. } | Step::EofAfterColumns { .. } => self.write_end(step)?,
                _ => {
                    let payload = self.server.connection.last_payload();
                    self.client
                        .write_payload(payload)
                        .map_err(Failure::Client)?;
                }
            }
        }
        self.diagnostics.warnings = warnings;
        self.diagnostics.surplus = surplus;
        Ok(())
    }
}

/// Whether an error of the server's stands in what `SHOW WARNINGS` has shown.
pub(crate) fn tells_of(list: &Rows, failure: &Failure) -> bool {
    let Failure::Server { code, .. } = failure else {
        return false;
    };
    list.iter().any(|row| number(row) == Some(*code))
}

/// Gives the error in the list the client's words.
pub(crate) fn tell_as(list: &mut Rows, code: u16, message: &[u8]) {
    for row in list.iter_mut().filter(|row| number(row) == Some(code)) {
        if let [Some(level), _, Some(text)] = row.as_mut_slice()
            && level == b"Error"
        {
            *text = message.to_vec();
        }
    }
}

/// The number of a row of `SHOW WARNINGS`.
fn number(row: &[Option<Vec<u8>>]) -> Option<u16> {
    let text = row.get(1)?.as_deref()?;
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Whether an error's text was changed because the server's shows a token.
pub(crate) fn hides_token(message: &[u8]) -> bool {
    message.starts_with(b"Duplicate entry '(protected)'")
}

/// Whether a row of `SHOW WARNINGS` tells of an error.
fn is_error(row: &[u8]) -> bool {
    let level = TextRow::new(row).next();
    matches!(level, Some(Ok(Some(b"Error"))))
}

/// A row of `SHOW WARNINGS` that says that `VALUES()` is out of fashion.
fn is_about_values(row: &[u8]) -> bool {
    let cells: Vec<_> = TextRow::new(row).filter_map(Result::ok).collect();
    let cell = |n: usize| cells.get(n).copied().flatten();
    tells_of_values(cell(1), cell(2))
}

/// Whether a warning of this code and text is about `VALUES()` in ON DUPLICATE KEY UPDATE, which MySQL will not have for ever.
pub(crate) fn tells_of_values(code: Option<&[u8]>, text: Option<&[u8]>) -> bool {
    let code = code.and_then(|code| std::str::from_utf8(code).ok()?.parse().ok());
    let about = |text| memchr::memmem::find(text, b"VALUES function").is_some();
    code == Some(DEPRECATED) && text.is_some_and(about)
}

/// A number that the server does not know, or not wholly.
enum Known {
    Is(i64),
    More(i64),
}

/// Copies a row of text with some of its numbers exchanged.
fn exchange(row: &[u8], numbers: &[Option<Known>], out: &mut Vec<u8>) -> Outcome<()> {
    let mut cells = TextRow::new(row);
    for number in numbers {
        let cell = cells.cell().map_err(Failure::Backend)?;
        let text = match (number, cell) {
            (Some(Known::Is(n)), _) => n.to_string(),
            (Some(Known::More(n)), Some(cell)) => {
                let servers: i64 = std::str::from_utf8(cell)
                    .ok()
                    .and_then(|text| text.parse().ok())
                    .ok_or(Failure::Backend(WireError::Malformed("a count")))?;
                (servers + n).to_string()
            }
            _ => {
                put_text_cell(out, cell);
                continue;
            }
        };
        put_text_cell(out, Some(text.as_bytes()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_told_from_other_statements() {
        assert_eq!(question(b"SELECT a FROM t"), Question::None);
        assert_eq!(question(b"UPDATE t SET row_count = \x01i"), Question::None);
        assert_eq!(question(b"SELECT error_count FROM jobs"), Question::None);
        assert_eq!(
            question(b"UPDATE jobs SET warning_count = \x01i"),
            Question::None
        );
        assert_eq!(question(b"SELECT \x01i"), Question::Keeps);
        assert_eq!(question(b"SHOW WARNINGS"), Question::Warnings);
        assert_eq!(question(b"show errors"), Question::Errors);
        assert_eq!(question(b"SHOW WARNINGS LIMIT \x01i"), Question::Unclear);
        assert_eq!(question(b"SHOW COUNT(*) WARNINGS"), Question::Unclear);
        assert_eq!(
            question(b"SELECT ROW_COUNT(), LAST_INSERT_ID()"),
            Question::Cells(vec![Item::RowCount, Item::Other])
        );
        assert_eq!(
            question(b"select @@warning_count , @@session.error_count e"),
            Question::Cells(vec![Item::WarningCount, Item::ErrorCount])
        );
        assert_eq!(
            question(b"select row_count () as `n`, found_rows() f"),
            Question::Cells(vec![Item::RowCount, Item::FoundRows])
        );
        for unclear in [
            b"SELECT IF(ROW_COUNT() > \x01i, \x01i, \x01i)".as_slice(),
            b"SELECT ROW_COUNT() + \x01i",
            b"SELECT @@warning_count > \x01i",
            b"SELECT ROW_COUNT() FROM t",
            b"INSERT INTO log VALUES (ROW_COUNT())",
            b"SET @n = ROW_COUNT()",
            b"GET DIAGNOSTICS @n = NUMBER",
        ] {
            assert_eq!(question(unclear), Question::Unclear);
        }
    }

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
        assert_eq!((many.warnings.len(), many.count()), (KEPT, 100_000));
    }
}
