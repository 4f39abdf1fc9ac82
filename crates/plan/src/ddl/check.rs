//! CHECK constraints over a protected column: what stands in their parentheses.
//!
//! A condition on one column and constants is understood, as far as the proxy can judge a value by
//! it as the server would: comparisons, BETWEEN, IN, LIKE, IS NULL, with AND, OR, and NOT in front
//! of one of these. `onionskin_schema`'s `check.rs` says what is made of it.

use std::ops::Range;

use onionskin_schema::{CheckConstant, Comparison, Condition, MAX_CHECKS, NewColumn, same_name};
use onionskin_value::{
    Charset, Comparand, Escape, Family, Input, Kind, LikePattern, SqlType, compare,
    compare_by_digits,
};

use super::constant::context;
use super::reader::Reader;
use crate::errors::{self, Refusal};
use crate::lex::{LiteralKind, TokenKind};
use crate::planner::{Planned, identifier};

/// Why a condition is not understood.
type Reason = &'static str;

const FORM: Reason = "a condition of another form than comparisons of the column with constants";

/// Refuses the CHECK over a column.
pub(super) fn refused(column: &str, why: &str) -> Refusal {
    Refusal::new(
        &errors::DEFINITION,
        format!("CHECK over column {column}: {why}"),
    )
}

/// Refuses more conditions than a refused cell has room for.
pub(super) fn check_number(column: &NewColumn) -> Planned<()> {
    match column.checks.len() > MAX_CHECKS {
        true => Err(refused(&column.name, "more than 16 of them")),
        false => Ok(()),
    }
}

/// [`check_name`] of those in a column's definition.
pub(super) fn check_own_names(column: &NewColumn, table: &str, family: Family) -> Planned<()> {
    let mut names = column.own_checks.iter();
    names.try_for_each(|name| check_name(&column.name, name.as_deref().unwrap_or(table), family))
}

/// Refuses a constraint's name behind which MySQL does not sort the guard: it looks at constraints
/// in the order of their names. One without a name is named after the table.
pub(super) fn check_name(column: &str, name: &str, family: Family) -> Planned<()> {
    let is_behind = !name.is_ascii() || name.starts_with('~');
    match is_behind && family == Family::MySql {
        true => Err(refused(
            column,
            "on MySQL, a constraint whose name is not ASCII, or is named after such a table",
        )),
        false => Ok(()),
    }
}

/// Reads what stands in the parentheses of a CHECK that concerns this column.
pub(super) fn condition(
    r: &Reader,
    inside: Range<usize>,
    column: &NewColumn,
) -> Planned<Condition> {
    let settings = r.request.settings;
    let mut parser = Parser {
        r: Reader::over(r.request, r.tokens, inside),
        column: &column.name,
        other: None,
        family: settings.family,
        depth: 0,
    };
    let read = match settings.high_not {
        true => Err("the SQL mode HIGH_NOT_PRECEDENCE"),
        false => parser.any(),
    };
    let fail = |why| refused(&column.name, why);
    if let Some(other) = &parser.other {
        let why = format!("it reads {other} as well, and the proxy judges a value by itself");
        return Err(refused(&column.name, &why));
    }
    let condition = read.map_err(fail)?;
    if !parser.r.done() {
        return Err(fail(FORM));
    }
    for constant in condition.constants() {
        check_constant(constant, &column.sql_type, settings.family).map_err(fail)?;
    }
    check_forms(&condition, &column.sql_type).map_err(fail)?;
    Ok(condition)
}

struct Parser<'a> {
    r: Reader<'a>,
    column: &'a str,
    /// Something else that is named where the column should be.
    other: Option<String>,
    family: Family,
    depth: usize,
}

impl Parser<'_> {
    fn any(&mut self) -> Result<Condition, Reason> {
        self.chain("or", Self::all, |part| match part {
            Condition::Any(parts) => Ok(parts),
            other => Err(other),
        })
        .map(|mut parts| match parts.len() {
            1 => parts.remove(0),
            _ => Condition::Any(parts),
        })
    }

    fn all(&mut self) -> Result<Condition, Reason> {
        self.chain("and", Self::negation, |part| match part {
            Condition::All(parts) => Ok(parts),
            other => Err(other),
        })
        .map(|mut parts| match parts.len() {
            1 => parts.remove(0),
            _ => Condition::All(parts),
        })
    }

    /// The parts between these words; a part in parentheses that is such a chain is taken apart, as
    /// servers do.
    fn chain(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Result<Condition, Reason>,
        split: fn(Condition) -> Result<Vec<Condition>, Condition>,
    ) -> Result<Vec<Condition>, Reason> {
        let mut parts = Vec::new();
        loop {
            match split(part(self)?) {
                Ok(several) => parts.extend(several),
                Err(one) => parts.push(one),
            }
            if !self.r.eat(word) {
                return Ok(parts);
            }
        }
    }

    fn negation(&mut self) -> Result<Condition, Reason> {
        match self.r.eat("not") {
            true => negated(self.predicate()?),
            false => self.predicate(),
        }
    }

    fn predicate(&mut self) -> Result<Condition, Reason> {
        const DEEPEST: usize = 20;
        if self.r.eat_punct(b'(') {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err(FORM);
            }
            let inner = self.any()?;
            self.depth -= 1;
            return match self.r.eat_punct(b')') {
                true => Ok(inner),
                false => Err(FORM),
            };
        }
        if let Some(constant) = self.constant()? {
            let operator = self.operator().ok_or(FORM)?;
            self.subject()?;
            return Ok(Condition::Reversed(constant, operator));
        }
        self.subject()?;
        if let Some(operator) = self.operator() {
            return Ok(Condition::Compare(operator, self.wanted_constant()?));
        }
        if self.r.eat("is") {
            let is_not = self.r.eat("not");
            return match (self.r.eat("null"), is_not) {
                (false, _) => Err(FORM),
                (true, false) => Ok(Condition::Null),
                (true, true) => Ok(Condition::NotNull),
            };
        }
        let is_not = self.r.eat("not");
        let found = self.behind_not()?;
        match is_not {
            true => negated(found),
            false => Ok(found),
        }
    }

    /// BETWEEN, IN, LIKE.
    fn behind_not(&mut self) -> Result<Condition, Reason> {
        if self.r.eat("between") {
            let low = self.wanted_constant()?;
            if !self.r.eat("and") {
                return Err(FORM);
            }
            return Ok(Condition::Between(low, self.wanted_constant()?));
        }
        if self.r.eat("in") {
            if !self.r.eat_punct(b'(') {
                return Err(FORM);
            }
            let mut list = vec![self.wanted_constant()?];
            while self.r.eat_punct(b',') {
                list.push(self.wanted_constant()?);
            }
            if !self.r.eat_punct(b')') {
                return Err(FORM);
            }
            // servers print it so
            return Ok(match list.len() {
                1 => Condition::Compare(Comparison::Equal, list.remove(0)),
                _ => Condition::In(list),
            });
        }
        if self.r.eat("like") {
            return Ok(Condition::Like(self.wanted_constant()?));
        }
        Err(FORM)
    }

    /// The column's name.
    fn subject(&mut self) -> Result<(), Reason> {
        self.note_other();
        let name = self.r.name().ok_or(FORM)?;
        match same_name(&name, self.column) {
            true => Ok(()),
            false => Err(FORM),
        }
    }

    fn operator(&mut self) -> Option<Comparison> {
        let start = self.r.at;
        let mut signs = Vec::new();
        let mut end = 0;
        while let Some(token) = self.r.token() {
            let TokenKind::Punct(sign @ (b'<' | b'>' | b'=' | b'!')) = token.kind else {
                break;
            };
            if !signs.is_empty() && token.start != end {
                break;
            }
            signs.push(sign);
            end = token.end;
            self.r.at += 1;
        }
        let found = match signs.as_slice() {
            b"<" => Some(Comparison::Less),
            b"<=" => Some(Comparison::LessOrEqual),
            b">" => Some(Comparison::Greater),
            b">=" => Some(Comparison::GreaterOrEqual),
            b"=" => Some(Comparison::Equal),
            b"<>" | b"!=" => Some(Comparison::NotEqual),
            _ => None,
        };
        if found.is_none() {
            self.r.at = start;
        }
        found
    }

    fn wanted_constant(&mut self) -> Result<CheckConstant, Reason> {
        let found = self.constant()?;
        if found.is_none() {
            self.note_other();
        }
        found.ok_or(FORM)
    }

    /// Notes the name that stands here, if it may be another column's.
    fn note_other(&mut self) {
        const NO_COLUMNS: [&str; 6] = ["null", "not", "case", "binary", "interval", "exists"];
        let is_word = NO_COLUMNS.iter().any(|word| self.r.is(word));
        let start = self.r.at;
        let name = self.r.name();
        let is_call = self.r.token().is_some_and(|token| token.is(b'('));
        self.r.at = start;
        let is_other = |name: &String| !same_name(name, self.column) && !is_word && !is_call;
        self.other = name.filter(is_other).or(self.other.take());
    }

    /// A constant, if one stands here.
    fn constant(&mut self) -> Result<Option<CheckConstant>, Reason> {
        if self.r.eat("true") {
            return Ok(Some(CheckConstant::Truth(true)));
        }
        if self.r.eat("false") {
            return Ok(Some(CheckConstant::Truth(false)));
        }
        if self.r.eat_punct(b'-') {
            // MySQL prints `-(1)`
            let enclosed = self.r.eat_punct(b'(');
            let Some(CheckConstant::Number(number)) = self.literal()? else {
                return Err(FORM);
            };
            if enclosed && !self.r.eat_punct(b')') {
                return Err(FORM);
            }
            // MariaDB prints no minus before zero
            let is_zero = number.bytes().all(|b| matches!(b, b'0' | b'.'));
            let sign = match is_zero && self.family == Family::MariaDb {
                true => "",
                false => "-",
            };
            return Ok(Some(CheckConstant::Number(format!("{sign}{number}"))));
        }
        if self.r.eat_punct(b'+') {
            return match self.literal()? {
                Some(number @ CheckConstant::Number(_)) => Ok(Some(number)),
                _ => Err(FORM),
            };
        }
        self.literal()
    }

    fn literal(&mut self) -> Result<Option<CheckConstant>, Reason> {
        let Some(token) = self.r.token() else {
            return Ok(None);
        };
        let TokenKind::Literal(kind) = token.kind else {
            return Ok(None);
        };
        self.r.at += 1;
        let text = token.text(self.r.sql());
        if matches!(kind, LiteralKind::Integer | LiteralKind::Decimal) {
            let text = std::str::from_utf8(text).map_err(|_| FORM)?;
            return number(text).map(Some);
        }
        // MariaDB prints the character set of some, and not of others
        let is_introduced = kind == LiteralKind::Introduced && self.family == Family::MySql;
        if kind != LiteralKind::String && !is_introduced {
            return Err("a constant that is neither a number nor a text");
        }
        let mode = self.r.request.settings.lex;
        let mut scratch = Vec::new();
        let decoded = crate::literal::decode(text, kind, false, mode, mode.charset, &mut scratch);
        let Some(Input::Text { bytes, charset }) = decoded else {
            return Err("a text that is not UTF-8");
        };
        let text = std::str::from_utf8(bytes).map_err(|_| "a text that is not UTF-8")?;
        if text.chars().any(char::is_control) {
            return Err("a text with control characters");
        }
        let text = text.to_owned();
        // MariaDB does not tell them apart
        let is_old = charset == Charset::Utf8mb3 && self.family == Family::MySql;
        match charset {
            _ if is_old => Ok(Some(CheckConstant::OldText(text))),
            Charset::Utf8mb4 | Charset::Utf8mb3 => Ok(Some(CheckConstant::Text(text))),
            // MySQL prints them so beside a column of that set, once the table was altered
            Charset::Latin1 | Charset::Ascii if is_introduced && text.is_ascii() => {
                Ok(Some(CheckConstant::Text(text)))
            }
            _ => Err("a text in another character set than utf8mb4"),
        }
    }
}

/// A number as servers print it.
fn number(text: &str) -> Result<CheckConstant, Reason> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_written_otherwise = text.ends_with('.') || whole.is_empty();
    let trimmed = whole.trim_start_matches('0');
    if is_written_otherwise || !fraction.is_empty() && whole.len() > 1 && trimmed != whole {
        return Err("a number that servers print in another way");
    }
    Ok(CheckConstant::Number(match (fraction, trimmed) {
        ("", "") => "0".to_owned(),
        ("", digits) => digits.to_owned(),
        _ => text.to_owned(),
    }))
}

/// What servers make of NOT in front of a condition.
fn negated(condition: Condition) -> Result<Condition, Reason> {
    Ok(match condition {
        Condition::Null => Condition::NotNull,
        Condition::NotNull => Condition::Null,
        Condition::Compare(op, constant) => Condition::Compare(op.negated(), constant),
        Condition::Reversed(constant, op) => Condition::Reversed(constant, op.negated()),
        Condition::Between(low, high) => Condition::NotBetween(low, high),
        Condition::NotBetween(low, high) => Condition::Between(low, high),
        Condition::In(list) => Condition::NotIn(list),
        Condition::NotIn(list) => Condition::In(list),
        Condition::Like(pattern) => Condition::NotLike(pattern),
        Condition::NotLike(_) | Condition::All(_) | Condition::Any(_) => {
            return Err("NOT in front of AND, OR or NOT LIKE");
        }
    })
}

/// Whether the proxy compares values of this type with the constant as servers do.
fn check_constant(constant: &CheckConstant, ty: &SqlType, family: Family) -> Result<(), Reason> {
    let is_moment = matches!(ty.kind, Kind::Date | Kind::DateTime { .. });
    let is_enum = matches!(ty.kind, Kind::Enum(_));
    let is_text = ty.is_character() && ty.kind != Kind::Json || is_enum || is_moment;
    let fits = match constant {
        CheckConstant::Text(_) | CheckConstant::OldText(_) => is_text,
        CheckConstant::Number(_) => ty.is_numeric(),
        CheckConstant::Truth(_) => ty.is_integer(),
    };
    if !fits {
        return Err("a constant of another kind than the column");
    }
    if !ty.is_comparable() {
        return Err("a collation whose order the proxy does not know");
    }
    let is_no_day = |text: &str| text.starts_with("0000") || text.contains("-00");
    if is_moment && constant.text().is_some_and(is_no_day) {
        return Err("a date that is a matter of sql_mode");
    }
    let context = context("", family);
    let (mut exact, mut near) = (Vec::new(), Vec::new());
    let compared = compare(ty, constant.input(), &context, &mut exact);
    let by_digits = compare_by_digits(ty, constant.input(), &context, &mut near);
    match compared {
        _ if by_digits != compared || near != exact => {
            Err("a number that is near to one of FLOAT(m,d) or DOUBLE(m,d)")
        }
        Ok(Comparand::Exact) => Ok(()),
        // what is no moment of the column's precision is a matter of the session's settings
        Ok(_) if !is_moment && !is_enum => Ok(()),
        _ => Err("a constant that servers compare in another type"),
    }
}

/// Whether values of this type are judged by such conditions as servers judge them, in every
/// session.
fn check_forms(condition: &Condition, ty: &SqlType) -> Result<(), Reason> {
    use Comparison::{Equal, NotEqual};
    match condition {
        Condition::All(parts) | Condition::Any(parts) => {
            parts.iter().try_for_each(|part| check_forms(part, ty))
        }
        Condition::Compare(Equal | NotEqual, _) | Condition::Reversed(_, Equal | NotEqual) => {
            Ok(())
        }
        // by the names of members, which are kept as their numbers
        Condition::Compare(..)
        | Condition::Reversed(..)
        | Condition::Between(..)
        | Condition::NotBetween(..)
            if matches!(ty.kind, Kind::Enum(_)) =>
        {
            Err("the order of an ENUM's members")
        }
        Condition::Like(pattern) | Condition::NotLike(pattern) => {
            let text = pattern.text().unwrap_or_default();
            if !ty.is_character() || ty.kind == Kind::Json {
                return Err("LIKE with a column that is no text");
            }
            if text.contains('\\') {
                return Err("LIKE with a backslash");
            }
            match LikePattern::read(ty, pattern.input(), Escape::Backslash) {
                Ok(_) => Ok(()),
                Err(_) => Err("LIKE with a pattern of another character set"),
            }
        }
        _ => Ok(()),
    }
}

/// A CHECK as an element of a table's list, or in a column's definition.
pub(super) struct Written {
    /// The tokens in front of CHECK: perhaps `CONSTRAINT name`.
    pub(super) head: Range<usize>,
    /// The constraint's name.
    pub(super) name: Option<String>,
    /// What stands in the parentheses.
    pub(super) inside: Range<usize>,
    /// MySQL's NOT ENFORCED stands behind them.
    pub(super) unenforced: bool,
}

impl Written {
    /// Reads `[CONSTRAINT [name]] CHECK (…)`, on MySQL with `[NOT] ENFORCED`, where the reader
    /// stands. `None`: that is not what stands here.
    pub(super) fn read(r: &mut Reader) -> Option<Self> {
        let mut ahead = Reader::over(r.request, r.tokens, r.at..r.end);
        let mut name = None;
        if ahead.eat("constraint") && !ahead.is("check") {
            name = Some(ahead.name()?);
        }
        let head = r.at..ahead.at;
        if !ahead.eat("check") {
            return None;
        }
        let inside = ahead.parenthesized()?;
        let is_mysql = r.request.settings.family == Family::MySql;
        let unenforced = is_mysql && ahead.eat_words(&["not", "enforced"]);
        if is_mysql && !unenforced {
            ahead.eat("enforced");
        }
        r.at = ahead.at;
        Some(Written {
            head,
            name,
            inside,
            unenforced,
        })
    }

    /// Whether this column is named in it. A name before a parenthesis is a function's.
    pub(super) fn names(&self, r: &Reader, column: &str) -> bool {
        self.inside.clone().any(|at| {
            let name = identifier(r.sql(), &r.tokens[at]);
            let is_call = r.tokens.get(at + 1).is_some_and(|next| next.is(b'('));
            name.is_some_and(|name| same_name(&name, column)) && !is_call
        })
    }
}
