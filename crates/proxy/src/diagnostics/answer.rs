//! The answers to questions about the last statement.

use std::ops::Range;

use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{
    Action, Facts, Finds, Item, Question, ShownRows, Verb, asks_of_columns, errors,
};
use onionskin_value::{Family, Warning};
use onionskin_wire::rows::{TextRow, put_text_cell};
use onionskin_wire::{Step, WireError};

use super::words::{tell_as, tells_of_values};
use super::{MAX_KEPT_WARNINGS, name_of};
use crate::error::{Failure, Outcome};
use crate::exchange::Found;
use crate::server_errors::{DUPLICATE, UNKNOWN_ERROR, is_check};
use crate::session::{Session, without_physical};

impl Session {
    /// Answers a question about the last statement, if this is one and the server's answer would be
    /// wrong. `Ok(false)`: it is none; what is kept is cleared.
    pub fn ask(&mut self, sql: &[u8], facts: &Facts) -> Outcome<bool> {
        let asks_found = self.asks_found(facts);
        if !self.diagnostics.any() && !asks_found {
            // what only says how to count was for the last statement, too
            self.diagnostics.clear();
            return Ok(false);
        }
        if facts.verb == Verb::Execute && self.asks_by_name(sql) {
            return Err(NotUnderstood::LastStatement("a prepared question").into());
        }
        let keeps = self.state.family == Family::MariaDb;
        // with max_error_count = 0 the server counts what it does not show
        let is_count_lost =
            self.diagnostics.is_lost || self.diagnostics.list.as_ref().is_some_and(Vec::is_empty);
        let question = match facts.question.clone() {
            _ if asks_found && self.server.found == Found::Lost => Question::Unclear,
            Question::Conditions { .. } if self.diagnostics.is_lost => Question::Unclear,
            Question::Count(_) if is_count_lost => Question::Unclear,
            Question::Count(_)
            | Question::Conditions {
                errors_only: false, ..
            } if self.diagnostics.unclear => Question::Unclear,
            Question::Cells(items)
                if (self.diagnostics.unclear || is_count_lost)
                    && items
                        .iter()
                        .any(|i| matches!(i, Item::WarningCount | Item::ErrorCount)) =>
            {
                Question::Unclear
            }
            clear => clear,
        };
        match question {
            Question::None | Question::Keeps | Question::ByName => {
                self.leave_last(facts);
                Ok(false)
            }
            Question::Conditions { errors_only, limit } => {
                let window = match limit {
                    Some(limit) => self.window(sql, &limit)?,
                    None => 0..u64::MAX,
                };
                self.show_conditions(errors_only, window).map(|()| true)
            }
            Question::Count(item) => {
                self.exchange_cells(sql, &[item])?;
                // whether it was a query depends on the server
                self.server.found = Found::Lost;
                Ok(true)
            }
            Question::Cells(_) if asks_of_columns(sql, self.space.settings.lex) => {
                let about = "a table's column beside a question about the last statement";
                Err(Failure::refused(&errors::STATEMENT, about))
            }
            Question::Cells(items) => {
                self.exchange_cells(sql, &items)?;
                // the question was a query
                self.server.found = Found::Servers;
                if !keeps {
                    self.diagnostics.clear();
                }
                Ok(true)
            }
            Question::Unclear => Err(unclear()),
        }
    }

    /// A statement begins that asks nothing: what is kept of the one before goes, unless MariaDB
    /// keeps it over this one.
    pub(crate) fn leave_last(&mut self, facts: &Facts) {
        if self.may_keep_list(facts) && self.diagnostics.any() {
            self.diagnostics.of_earlier = true;
            self.diagnostics.row_count = None;
        } else {
            self.diagnostics.clear();
        }
    }

    /// Whether the server may keep its list of warnings over a statement: MariaDB does.
    pub(crate) fn may_keep_list(&self, facts: &Facts) -> bool {
        self.state.family == Family::MariaDb && facts.may_keep_list()
    }

    /// What is prepared or executed is known: unless MariaDB keeps its list of warnings over it,
    /// what was kept of the statement before goes.
    pub(crate) fn leave_last_by(&mut self, keeps: bool) {
        self.current.keeps_list &= keeps;
        if self.diagnostics.of_earlier && !keeps {
            self.diagnostics.clear();
        }
    }

    /// A statement's text is about to be planned: whether it asks for the server's list of
    /// warnings, or the server may keep the list over it.
    pub(crate) fn will_keep_list(&mut self, sql: &[u8]) {
        let needs_list = |facts: Facts| facts.question.asks() || self.may_keep_list(&facts);
        self.current.keeps_list =
            self.server.may_hold_list && needs_list(Facts::read(sql, self.space.settings.lex));
    }

    /// Reads the server's list of warnings, which a question of the proxy's own is about to end, if
    /// the client's statement would keep it.
    pub(crate) fn save_list(&mut self) -> Outcome<()> {
        let kept = &self.diagnostics;
        let is_known =
            kept.list.is_some() || kept.error.is_some() || kept.hides_servers || kept.is_lost;
        if !std::mem::take(&mut self.current.keeps_list) || is_known {
            return Ok(());
        }
        let mut list = self.server.rows(b"SHOW WARNINGS")?;
        if list.is_empty() {
            return Ok(());
        }
        if let Some((code, message)) = self.diagnostics.told.take() {
            tell_as(&mut list, code, &message);
        }
        let texts = list.iter_mut().filter_map(|row| row.get_mut(2)?.as_mut());
        for text in texts.filter(|_| self.diagnostics.shows_tokens) {
            *text = without_physical(text);
        }
        self.diagnostics.list = Some(list);
        self.diagnostics.of_earlier = true;
        Ok(())
    }

    /// Whether a statement asks for `FOUND_ROWS()`, which is not what the server would say.
    pub(crate) fn asks_found(&self, facts: &Facts) -> bool {
        self.server.found != Found::Servers && facts.says_found_rows
    }

    /// A new statement begins: what the last one has found stays until another one finds rows.
    pub(crate) fn keep_found(&mut self) {
        if let Some(rows) = self.diagnostics.found_rows.take() {
            self.server.found = Found::Is(rows);
        }
    }

    /// The server has run the client's statement and answered it.
    pub(crate) fn has_found(&mut self) {
        self.current.answered = Some((self.server.asked(), self.server.row_count));
        if self.current.sent_error {
            self.may_have_found();
            return;
        }
        self.server.found = match (self.server.found, self.current.finds) {
            (Found::Servers, _) | (_, Finds::Anew) => Found::Servers,
            (_, Finds::AnewOrKeeps) if self.state.family == Family::MySql => Found::Servers,
            (found, Finds::Keeps) => found,
            (_, Finds::AnewOrKeeps | Finds::Unknown) => Found::Lost,
        };
    }

    /// A new statement begins. What the proxy has asked since the last one was answered is not the
    /// client's: the server's `ROW_COUNT()` is about that.
    pub(crate) fn keep_row_count(&mut self) {
        if let Some((asked, rows)) = self.current.answered
            && asked != self.server.asked()
        {
            self.diagnostics.row_count.get_or_insert(rows);
        }
    }

    /// The client's statement has failed. How many rows it has counted until then depends on what
    /// the server has run before it.
    pub(crate) fn may_have_found(&mut self) {
        if self.server.found != Found::Servers && self.current.finds != Finds::Keeps {
            self.server.found = Found::Lost;
        }
    }

    /// A statement has been run in this way, perhaps in several of the proxy's own.
    pub(crate) fn has_found_by(&mut self, action: &Action) {
        match action {
            // what they have found is known
            Action::Finish(_) | Action::Scratch(_) => {}
            Action::Show { .. } => self.server.found = Found::Lost,
            _ => self.has_found(),
        }
    }

    /// Which rows LIMIT leaves.
    fn window(&self, sql: &[u8], limit: &ShownRows) -> Outcome<Range<u64>> {
        let number = |at: usize| {
            let text = self.template.literals.get(at)?.text(sql);
            std::str::from_utf8(text).ok()?.parse::<u64>().ok()
        };
        let count = number(limit.count).ok_or_else(unclear)?;
        let offset = match limit.offset {
            Some(at) => number(at).ok_or_else(unclear)?,
            None => 0,
        };
        Ok(offset..offset.saturating_add(count))
    }

    /// `SHOW WARNINGS`, or `SHOW ERRORS`: the server's rows, and ours behind them; of those the
    /// ones in the window.
    fn show_conditions(&mut self, errors_only: bool, window: Range<u64>) -> Outcome<()> {
        let found = self.server.found;
        let own = std::mem::take(&mut self.diagnostics.warnings);
        let error = self.diagnostics.error.clone();
        let told = self.diagnostics.told.clone();
        let list = std::mem::take(&mut self.diagnostics.list);
        let mut places = Places {
            room: match self.state.family {
                Family::MariaDb => 64,
                Family::MySql => MAX_KEPT_WARNINGS,
            },
            passed: 0,
            window,
        };
        let mut surplus = std::mem::take(&mut self.diagnostics.surplus);
        let servers_surplus = surplus;
        // ours come before an error of the server's, which is the last that was said
        let mut left: &[Warning] = if errors_only { &[] } else { &own };
        // a row's values are stored before its keys and constraints are looked at
        let are_of_first_row = own.iter().all(|w| w.message.ends_with(" at row 1"));
        let sql: &[u8] = match errors_only {
            true => b"SHOW ERRORS",
            false => b"SHOW WARNINGS",
        };
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
                                self.write_warnings(&mut left, &mut places)?;
                            }
                            self.write_cells([cell(0), cell(1), cell(2)], &mut places)?;
                        }
                    }
                    self.write_warnings(&mut left, &mut places)?;
                    // it was the last that was said
                    if let Some((code, message)) = &error
                        && (errors_only || places.room > 0)
                    {
                        for _ in 0..self.diagnostics.error_times {
                            self.write_condition(b"Error", *code, message, &mut places)?;
                        }
                        if self.diagnostics.has_unknown {
                            let text = b"Unknown error";
                            self.write_condition(b"Error", UNKNOWN_ERROR, text, &mut places)?;
                        }
                    }
                    self.write_end(step)?;
                }
                Step::EofAfterColumns { .. } => self.write_end(step)?,
                Step::Row => {
                    let is_of_row = are_of_first_row && is_of_a_row(self.server.payload());
                    if is_of_row {
                        self.write_warnings(&mut left, &mut places)?;
                    }
                    if is_error(self.server.payload()) {
                        self.write_warnings(&mut left, &mut places)?;
                        if let Some((code, message)) = &told
                            && code_of(self.server.payload()) == Some(*code)
                        {
                            self.write_condition(b"Error", *code, message, &mut places)?;
                            continue;
                        }
                    }
                    if self.diagnostics.shows_tokens {
                        let row = Condition::read(self.server.payload())?;
                        self.write_cells(row.cells(), &mut places)?;
                    } else if places.take() {
                        self.relay_payload()?;
                    }
                }
                _ => self.relay_payload()?,
            }
        }
        self.diagnostics.warnings = own;
        self.diagnostics.list = list;
        self.diagnostics.surplus = servers_surplus;
        self.diagnostics.row_count = None;
        self.server.found = found;
        Ok(())
    }

    /// Writes as many of the warnings as there is room for; none are left then.
    fn write_warnings(&mut self, left: &mut &[Warning], places: &mut Places) -> Outcome<()> {
        for warning in std::mem::take(left).iter().take(places.room) {
            let level = name_of(warning.level);
            self.write_condition(level, warning.code, warning.message.as_bytes(), places)?;
        }
        Ok(())
    }

    fn write_condition(
        &mut self,
        level: &[u8],
        code: u16,
        message: &[u8],
        places: &mut Places,
    ) -> Outcome<()> {
        let code = code.to_string();
        self.write_cells([Some(level), Some(code.as_bytes()), Some(message)], places)
    }

    fn write_cells(&mut self, cells: [Option<&[u8]>; 3], places: &mut Places) -> Outcome<()> {
        if !places.take() {
            return Ok(());
        }
        let out = self.client.begin_payload();
        cells.into_iter().for_each(|cell| put_text_cell(out, cell));
        self.client.end_payload().map_err(Failure::Client)
    }

    /// Writes what the server has sent.
    fn relay_payload(&mut self) -> Outcome<()> {
        let payload = self.server.connection.last_payload();
        self.client.write_payload(payload).map_err(Failure::Client)
    }

    /// Sends a question. It raises no warnings of its own, nor does it find rows of an `UPDATE`.
    fn begin_question(&mut self, sql: &[u8]) -> Outcome<()> {
        self.diagnostics.each_row = false;
        let question = self.server.put_query(sql)?;
        self.server.flush()?;
        self.server.begin(question)
    }

    /// Relays the answer to a `SELECT` of such items, with the numbers that the server does not
    /// know.
    fn exchange_cells(&mut self, sql: &[u8], items: &[Item]) -> Outcome<()> {
        let own = self.diagnostics.count() as i64;
        let found = self.server.found;
        let surplus = std::mem::take(&mut self.diagnostics.surplus);
        let error = self.diagnostics.error.is_some();
        let times = self.diagnostics.error_times as i64 + i64::from(self.diagnostics.has_unknown);
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
                Item::FoundRows => match found {
                    Found::Is(n) => Some(Known::Is(n as i64)),
                    Found::Servers | Found::Lost => None,
                },
                Item::WarningCount if error => Some(Known::Is(times + own)),
                Item::WarningCount if self.diagnostics.hides_servers => Some(Known::Is(own)),
                Item::WarningCount if self.diagnostics.list.is_some() => {
                    Some(Known::Is(listed + own - surplus as i64))
                }
                Item::ErrorCount if self.diagnostics.list.is_some() => Some(Known::Is(errors)),
                Item::WarningCount => Some(Known::More(own - surplus as i64)),
                Item::ErrorCount if error => Some(Known::Is(times)),
                Item::ErrorCount if self.diagnostics.hides_servers => Some(Known::Is(0)),
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
                _ => self.relay_payload()?,
            }
        }
        self.diagnostics.warnings = warnings;
        self.diagnostics.surplus = surplus;
        self.diagnostics.row_count = None;
        Ok(())
    }
}

/// A row of `SHOW WARNINGS` without tokens and physical names.
struct Condition([Option<Vec<u8>>; 3]);

impl Condition {
    fn read(row: &[u8]) -> Outcome<Condition> {
        let mut cells = TextRow::new(row);
        let mut next = || {
            let cell = cells.cell().map_err(Failure::Backend)?;
            Ok::<_, Failure>(cell.map(<[u8]>::to_vec))
        };
        let (level, code, text) = (next()?, next()?, next()?);
        Ok(Condition([level, code, text.map(|t| without_physical(&t))]))
    }

    fn cells(&self) -> [Option<&[u8]>; 3] {
        let [level, code, text] = &self.0;
        [level.as_deref(), code.as_deref(), text.as_deref()]
    }
}

/// The places of conditions in an answer.
struct Places {
    /// How many the server would still remember.
    room: usize,
    /// How many there were.
    passed: u64,
    /// Which of them the client wants.
    window: Range<u64>,
}

impl Places {
    /// One more condition: whether the client wants it.
    fn take(&mut self) -> bool {
        self.room = self.room.saturating_sub(1);
        self.passed += 1;
        self.window.contains(&(self.passed - 1))
    }
}

fn unclear() -> Failure {
    Failure::from(NotUnderstood::LastStatement("a question"))
}

/// Whether a row of `SHOW WARNINGS` tells of an error.
fn is_error(row: &[u8]) -> bool {
    let level = TextRow::new(row).next();
    matches!(level, Some(Ok(Some(b"Error"))))
}

/// Whether a row of `SHOW WARNINGS` tells of a row that was left out, or would be without IGNORE:
/// of a key or a CHECK.
fn is_of_a_row(row: &[u8]) -> bool {
    code_of(row).is_some_and(|code| code == DUPLICATE || is_check(code))
}

/// The number in a row of `SHOW WARNINGS`.
fn code_of(row: &[u8]) -> Option<u16> {
    let code = TextRow::new(row).nth(1)?.ok()??;
    std::str::from_utf8(code).ok()?.parse().ok()
}

/// A row of `SHOW WARNINGS` that says that `VALUES()` is out of fashion.
fn is_about_values(row: &[u8]) -> bool {
    let cells: Vec<_> = TextRow::new(row).filter_map(Result::ok).collect();
    let cell = |n: usize| cells.get(n).copied().flatten();
    tells_of_values(cell(1), cell(2))
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
