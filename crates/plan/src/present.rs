//! The present time as a value: `DEFAULT CURRENT_TIMESTAMP`, `NOW()`, `CURDATE()`.
//!
//! All of a statement has one time, that of the server when the statement began. A value of a
//! protected column is sealed before the server sees the statement, so the proxy asks for the time
//! first, by a query on the same session, and fills it in ([`Source::Present`]). The server would
//! take a later one for whatever is left to it. Plain columns that rows leave out, or for which
//! they say `DEFAULT` or `NOW()`, are therefore given the time too, as a text ([`Piece::Present`]).
//! A statement that tells the time in any other place (`DATE(NOW())`, a function of the client's,
//! ON UPDATE of a plain column) is left to the scratch engine, which has one clock for all of it.
//!
//! Whether that is so shows only when the whole statement is planned. So it is planned as if
//! nothing stood against it, and again if something did ([`Telling`]).

use std::ops::Range;
use std::sync::Arc;

use onionskin_schema::{Column, Default as ColumnDefault, Table, time_fraction};
use onionskin_value::{Family, Kind};

use crate::lex::{LiteralKind, Token, TokenKind};
use crate::plan::{Action, ColumnUse, Piece, PlainTime, Source};
use crate::planner::{Planned, Planner};
use crate::scratch::CLOCK;
use crate::template::MOMENTS;
use crate::write::set_by_change;

/// Which values of a statement may be the time that the proxy has asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Telling {
    /// None.
    #[default]
    Nothing,
    /// Those of protected columns.
    Protected,
    /// Also those of plain columns.
    All,
}

/// What planning a statement has shown of its times.
#[derive(Default)]
pub(crate) struct Present {
    pub telling: Telling,
    /// Some value is the time.
    used: bool,
    /// Where calls stood in whose place it is put.
    calls: Vec<Range<usize>>,
    /// A plain column takes the server's own time, and could be given one.
    left: bool,
    /// Another place takes the server's own time.
    otherwise: bool,
}

impl Present {
    /// Whether the time has to be asked for before the statement runs.
    pub fn is_asked_for(&self) -> bool {
        self.used
    }
}

/// A plain column's default, as far as the time goes.
enum PlainDefault {
    /// It has nothing to do with the time.
    Other,
    /// It is the time.
    Time(PlainTime),
    /// It is made from the time.
    FromTime,
}

impl Planner<'_> {
    /// The same source; in the place of a default that is the present time, the time. Takes notice
    /// of other defaults that have to be computed.
    pub fn settled(&mut self, column: &ColumnUse, source: Source) -> Source {
        let digits = match source {
            Source::Default | Source::Omitted { .. } => match column.column().computed_default() {
                Some(text) => digits_of_default(column.column(), text),
                None => return source,
            },
            Source::Null if self.null_is_time(column.column()) => {
                column.column().sql_type.as_ref().and_then(time_fraction)
            }
            _ => return source,
        };
        match digits {
            Some(digits) if self.present.telling != Telling::Nothing => {
                self.present.used = true;
                Source::Present {
                    digits,
                    asked: false,
                }
            }
            _ => {
                self.unfilled.get_or_insert_with(|| column.path());
                source
            }
        }
    }

    /// To MariaDB, NULL for a TIMESTAMP that cannot be NULL is the present time.
    fn null_is_time(&self, column: &Column) -> bool {
        let ty = column.sql_type.as_ref();
        self.request.settings.family == Family::MariaDb
            && !column.nullable
            && ty.is_some_and(|t| matches!(t.kind, Kind::Timestamp { .. }))
    }

    /// A call that is the present time, as the value of a protected column that holds it without a
    /// change.
    pub fn present_call(&mut self, tokens: &Range<usize>, column: &ColumnUse) -> Option<Source> {
        let digits = self.time_call(tokens, column.column())?;
        self.present.used = true;
        Some(Source::Present {
            digits,
            asked: true,
        })
    }

    /// The same as the value of a plain column, if the proxy tells it.
    pub fn plain_call(&mut self, tokens: &Range<usize>, column: &Column) -> Option<Piece> {
        let is_told = self.present.telling == Telling::All;
        let digits = self.time_call(tokens, column)?;
        let time = PlainTime::of(column, digits)?;
        self.present.left = true;
        is_told.then_some(Piece::Present(time))
    }

    /// Digits of the fraction of such a call.
    fn time_call(&mut self, tokens: &Range<usize>, column: &Column) -> Option<u8> {
        const DAYS: [&str; 2] = ["curdate", "current_date"];
        if self.present.telling == Telling::Nothing {
            return None;
        }
        let sql = self.sql();
        let (first, behind) = self.tokens.get(tokens.clone())?.split_first()?;
        let sql_type = column.sql_type.as_ref()?;
        let is_day = sql_type.kind == Kind::Date;
        let names: &[&str] = if is_day { &DAYS } else { &MOMENTS };
        if !names.iter().any(|name| first.is_word(sql, name)) {
            return None;
        }
        // with a blank between, the server may look for a function of the client's
        let opens = |open: &Token| open.is(b'(') && open.start == first.end;
        let digits = match behind {
            [] if first.is_word(sql, "now") || first.is_word(sql, "curdate") => return None,
            [] => 0,
            [open, close] if opens(open) && close.is(b')') => 0,
            [open, digits, close]
                if opens(open)
                    && close.is(b')')
                    && digits.kind == TokenKind::Literal(LiteralKind::Integer)
                    && !is_day =>
            {
                number(std::str::from_utf8(digits.text(sql)).ok()?)?
            }
            _ => return None,
        };
        if !is_day && time_fraction(sql_type)? < digits {
            // the column would round it
            return None;
        }
        let range = self.bytes_of(tokens);
        self.present.calls.push(range);
        Some(digits)
    }

    /// What a new row's plain column gets where it gets its default, if that is the time and the
    /// proxy tells it.
    pub fn plain_default(&mut self, column: &Column) -> Option<Piece> {
        match plain_default(column) {
            PlainDefault::Other => None,
            PlainDefault::FromTime => {
                self.present.otherwise = true;
                None
            }
            PlainDefault::Time(time) => {
                self.present.left = true;
                (self.present.telling == Telling::All).then_some(Piece::Present(time))
            }
        }
    }

    /// Takes notice if a plain column, by its name, is assigned a default that has to do with the
    /// time.
    pub fn note_assigned_default(&mut self, table: &Table, name: &str) {
        let default = table.column(name).map(plain_default);
        if default.is_some_and(|d| !matches!(d, PlainDefault::Other)) {
            self.present.otherwise = true;
        }
    }

    /// Protected columns that get the time where a row of the table changes, if the proxy decides
    /// which rows do: where it compares all that is assigned itself.
    pub fn on_change(
        &mut self,
        table: &Arc<Table>,
        is_assigned: impl Fn(usize) -> bool,
    ) -> Vec<(ColumnUse, Source)> {
        if self.present.telling == Telling::Nothing {
            return Vec::new();
        }
        let mut found = Vec::new();
        for index in set_by_change(table, is_assigned) {
            let column = &table.columns[index];
            let digits = column.sql_type.as_ref().and_then(time_fraction);
            let (Some(digits), true) = (digits, column.protection.is_some()) else {
                return Vec::new();
            };
            let used = ColumnUse {
                table: Arc::clone(table),
                index,
            };
            let asked = false;
            found.push((used, Source::Present { digits, asked }));
        }
        self.present.used |= !found.is_empty();
        found
    }

    /// Takes notice of plain columns that get the server's own time where a row of the table
    /// changes.
    pub fn note_own_times(&mut self, table: &Table, is_assigned: impl Fn(&Column) -> bool) {
        let by_itself = |c: &Column| c.protection.is_none() && c.on_update && !is_assigned(c);
        if table.columns.iter().any(by_itself) {
            self.present.otherwise = true;
        }
    }

    /// Takes notice of a view's table, of whose columns it is not known which tell the time.
    pub fn note_hidden_times(&mut self) {
        self.present.otherwise = true;
    }

    /// How the statement has to be planned again, if it does: what it has shown stands against how
    /// it was planned.
    pub fn telling_again(&self, planned: &Planned<Action>) -> Option<Telling> {
        let present = &self.present;
        let Ok(action) = planned else { return None };
        if !present.used {
            return None;
        }
        let is_filled = matches!(action, Action::Server { .. } | Action::Update(_));
        if !is_filled || present.otherwise || self.tells_otherwise() {
            return Some(Telling::Nothing);
        }
        (present.left && present.telling == Telling::Protected).then_some(Telling::All)
    }

    /// Whether anything else in the statement tells the time, or what the question before it would
    /// change.
    fn tells_otherwise(&self) -> bool {
        const CHANGED: [&str; 3] = ["sysdate", "row_count", "found_rows"];
        let sql = self.sql();
        let is_replaced = |t: &Token| {
            let covers = |call: &Range<usize>| call.start <= t.start && t.end <= call.end;
            self.present.calls.iter().any(covers)
        };
        let of_session =
            |t: &Token| t.kind == TokenKind::Variable && t.text(sql).starts_with(b"@@");
        let tells = |t: &Token| {
            let mut words = CLOCK.iter().chain(&CHANGED);
            words.any(|word| t.is_word(sql, word)) || of_session(t)
        };
        let mut others = self.first_rows_tokens().filter(|t| !is_replaced(t));
        // DEFAULT(c) of a plain column is one of the calls
        others.any(tells) || self.may_assign()
    }
}

fn plain_default(column: &Column) -> PlainDefault {
    let Some(ColumnDefault::Server(text)) = &column.default else {
        return PlainDefault::Other;
    };
    if column.protection.is_some() || column.generated {
        return PlainDefault::Other;
    }
    let digits = digits_of_default(column, text);
    match digits.and_then(|digits| PlainTime::of(column, digits)) {
        Some(time) => PlainDefault::Time(time),
        None if is_from_time(text) => PlainDefault::FromTime,
        None => PlainDefault::Other,
    }
}

impl PlainTime {
    fn of(column: &Column, digits: u8) -> Option<PlainTime> {
        match column.sql_type.as_ref()?.kind {
            Kind::Date => Some(PlainTime::Date),
            Kind::DateTime { .. } => Some(PlainTime::DateTime(digits)),
            Kind::Timestamp { .. } => Some(PlainTime::Timestamp(digits)),
            _ => None,
        }
    }
}

/// Digits of the fraction where a default, in the server's words, is the time, and the column holds
/// it without a change.
fn digits_of_default(column: &Column, text: &str) -> Option<u8> {
    let sql_type = column.sql_type.as_ref()?;
    if sql_type.kind == Kind::Date {
        return text.eq_ignore_ascii_case("curdate()").then_some(0);
    }
    let most = time_fraction(sql_type)?;
    let text = text.to_ascii_lowercase();
    let digits = match text.strip_prefix("current_timestamp") {
        Some("") => 0,
        Some(behind) => digits_in_parentheses(behind)?,
        None => digits_in_parentheses(text.strip_prefix("now")?)?,
    };
    (digits <= most).then_some(digits)
}

/// `()`, `(6)`
fn digits_in_parentheses(text: &str) -> Option<u8> {
    match text.strip_prefix('(')?.strip_suffix(')')? {
        "" => Some(0),
        inside => number(inside),
    }
}

fn number(text: &str) -> Option<u8> {
    let is_digit = text.len() == 1 && text.as_bytes()[0].is_ascii_digit();
    let number: u8 = text.parse().ok().filter(|_| is_digit)?;
    (number <= 6).then_some(number)
}

/// Whether a default has a word of the time's. A text that is the default may have one, too.
fn is_from_time(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words = text.split(|c| !is_word(c));
    words.any(|word| {
        let mut names = CLOCK.iter().chain(&["sysdate"]);
        names.any(|name| word.eq_ignore_ascii_case(name))
    })
}

#[cfg(test)]
mod tests {
    use onionskin_value::SqlType;

    use super::*;

    fn column(ty: &str, default: &str) -> Column {
        Column {
            name: "c".into(),
            sql_type: Some(SqlType::parse(ty, None).unwrap()),
            type_text: ty.into(),
            nullable: true,
            default: Some(ColumnDefault::Server(default.into())),
            auto_increment: false,
            refers_to_plaintext: false,
            on_update: false,
            generated: false,
            key: onionskin_schema::KeyRole::None,
            protection: None,
            invisible: false,
            comment: String::new(),
            explicit_collation: false,
        }
    }

    #[test]
    fn defaults_that_are_the_time() {
        let digits = |ty: &str, text: &str| digits_of_default(&column(ty, text), text);
        assert_eq!(digits("datetime", "CURRENT_TIMESTAMP"), Some(0));
        assert_eq!(digits("timestamp(6)", "current_timestamp(6)"), Some(6));
        assert_eq!(digits("datetime(6)", "now()"), Some(0));
        assert_eq!(digits("datetime", "now(6)"), None);
        assert_eq!(digits("date", "curdate()"), Some(0));
        assert_eq!(digits("date", "current_timestamp()"), None);
        assert_eq!(digits("datetime", "curdate()"), None);
        assert_eq!(
            digits("datetime", "(current_timestamp() + interval 1 day)"),
            None
        );
        assert_eq!(digits("datetime", "'2001-01-01 00:00:00'"), None);
        assert_eq!(digits("int(11)", "current_timestamp()"), None);
    }

    #[test]
    fn defaults_of_plain_columns() {
        let is = |ty: &str, text: &str| plain_default(&column(ty, text));
        assert!(matches!(
            is("timestamp(3)", "current_timestamp(3)"),
            PlainDefault::Time(PlainTime::Timestamp(3))
        ));
        assert!(matches!(
            is("date", "curdate()"),
            PlainDefault::Time(PlainTime::Date)
        ));
        for (ty, text) in [
            ("datetime", "(now() + interval 1 day)"),
            ("int(11)", "unix_timestamp()"),
            ("bigint(20)", "year(current_timestamp())"),
        ] {
            assert!(matches!(is(ty, text), PlainDefault::FromTime), "{text}");
        }
        for (ty, text) in [
            ("int(11)", "5"),
            ("bigint(20)", "unknown"),
            ("date", "NULL"),
        ] {
            assert!(matches!(is(ty, text), PlainDefault::Other), "{text}");
        }
    }
}
