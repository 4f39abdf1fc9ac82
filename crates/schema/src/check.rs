//! CHECK constraints over one protected column.
//!
//! The server cannot tell from a sealed cell whether a condition holds of its value. So the proxy
//! judges each value that it seals, and the server raises the error: a value of which a condition
//! is false is sent as a *refused cell*, which the constraint on the server does not let in. The
//! constraint has the client's name, so that all is the server's that depends on the row: whether
//! there is one, which error comes first, what IGNORE makes of it, and the error's text.
//!
//! ```text
//! CONSTRAINT name CHECK (SUBSTR(c$enc, 2, 2) <> X'0000' OR SUBSTR(c$enc, 8 + n, 1) = X'00'
//!                        OR 'onionskin:check:BASE64:' IS NULL)
//! ```
//!
//! n is the constraint's number among those of its column, from 0. No key has the id 0, so that the
//! constraint looks at nothing else in the cells of values. The last part is never true; it holds
//! what `information_schema.check_constraints` shows. A condition that is false of NULL has ` AND
//! c$enc IS NOT NULL` behind this, in parentheses.
//!
//! A second constraint, the *guard*, refuses all refused cells. It is the last that a server looks
//! at. If somebody drops a client's constraint at the server, no refused cell is stored.
//!
//! By a constraint that is NOT ENFORCED, which MySQL has, no value is judged. It stands on the
//! server with these words, for what `information_schema` and dumps show.
//!
//! The conditions themselves stand in the comment of the sealed column. They hold the constants of
//! the definition, which are no secret: the same is true of a DEFAULT.

use base64::{Engine, engine::general_purpose::STANDARD};
use onionskin_value::{Charset, Family, Input};
use serde::{Deserialize, Serialize};

use crate::quote::identifier;

/// Most conditions of a column: each has a byte in a refused cell.
pub const MAX_CHECKS: usize = 16;

/// Where the byte of the first condition stands in a refused cell, counted from 1 as SUBSTR does.
const FIRST_BYTE: usize = 8;

/// What stands before the text that `information_schema` shows.
const SHOWN: &str = "onionskin:check:";

/// A CHECK over one protected column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What must not be false.
    #[serde(rename = "c")]
    pub condition: Condition,
    /// It belongs to the column's definition. MySQL does not tell these from others.
    #[serde(rename = "o", default, skip_serializing_if = "is_false")]
    pub in_column: bool,
    /// MySQL's NOT ENFORCED: it is shown, and no value is judged by it.
    #[serde(rename = "u", default, skip_serializing_if = "is_false")]
    pub unenforced: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_false(truth: &bool) -> bool {
    !truth
}

/// A condition on a column's value, without NOT: servers print none around AND and OR.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Condition {
    /// AND of at least two, of which none is an AND; of none, if the constraint was dropped.
    #[serde(rename = "&")]
    All(Vec<Condition>),
    /// OR of at least two, of which none is an OR.
    #[serde(rename = "|")]
    Any(Vec<Condition>),
    /// `IS NULL`
    #[serde(rename = "0")]
    Null,
    /// `IS NOT NULL`
    #[serde(rename = "1")]
    NotNull,
    /// `c < constant`
    #[serde(rename = "c")]
    Compare(Comparison, CheckConstant),
    /// `constant < c`
    #[serde(rename = "r")]
    Reversed(CheckConstant, Comparison),
    /// `BETWEEN`
    #[serde(rename = "b")]
    Between(CheckConstant, CheckConstant),
    /// `NOT BETWEEN`
    #[serde(rename = "nb")]
    NotBetween(CheckConstant, CheckConstant),
    /// `IN`, of at least two.
    #[serde(rename = "i")]
    In(Vec<CheckConstant>),
    /// `NOT IN`, of at least two.
    #[serde(rename = "ni")]
    NotIn(Vec<CheckConstant>),
    /// `LIKE`
    #[serde(rename = "l")]
    Like(CheckConstant),
    /// `NOT LIKE`
    #[serde(rename = "nl")]
    NotLike(CheckConstant),
}

/// How a value is compared with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparison {
    /// `<`
    #[serde(rename = "<")]
    Less,
    /// `<=`
    #[serde(rename = "<=")]
    LessOrEqual,
    /// `>`
    #[serde(rename = ">")]
    Greater,
    /// `>=`
    #[serde(rename = ">=")]
    GreaterOrEqual,
    /// `=`
    #[serde(rename = "=")]
    Equal,
    /// `<>`
    #[serde(rename = "<>")]
    NotEqual,
}

impl Comparison {
    /// As servers print it.
    fn text(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Equal => "=",
            Self::NotEqual => "<>",
        }
    }

    /// What holds exactly where this does not, NULL aside.
    pub fn negated(self) -> Self {
        match self {
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
        }
    }

    /// The same with the sides exchanged.
    pub fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }

    /// Whether it holds of two values that stand like this.
    pub fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
        }
    }
}

/// A constant in a condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckConstant {
    /// A whole number or one with a point, as servers print it; perhaps with a minus.
    #[serde(rename = "n")]
    Number(String),
    /// TRUE or FALSE, which MySQL prints as such.
    #[serde(rename = "t")]
    Truth(bool),
    /// A text of a connection in utf8mb4.
    #[serde(rename = "s")]
    Text(String),
    /// A text of a connection in utf8mb3, which MySQL prints.
    #[serde(rename = "s3")]
    OldText(String),
}

impl CheckConstant {
    /// As it is compared with the column.
    pub fn input(&self) -> Input<'_> {
        match self {
            Self::Number(number) => Input::Decimal(number.as_bytes()),
            Self::Truth(truth) => Input::Bool(*truth),
            Self::Text(text) | Self::OldText(text) => Input::Text {
                bytes: text.as_bytes(),
                charset: Charset::Utf8mb4,
            },
        }
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::OldText(text) => Some(text),
            Self::Number(_) | Self::Truth(_) => None,
        }
    }

    fn shown(&self, family: Family) -> String {
        match (self, family) {
            (Self::Number(number), Family::MariaDb) => number.clone(),
            (Self::Number(number), Family::MySql) => match number.strip_prefix('-') {
                Some(digits) => format!("-({digits})"),
                None => number.clone(),
            },
            (Self::Truth(truth), Family::MariaDb) => u8::from(*truth).to_string(),
            (Self::Truth(truth), Family::MySql) => truth.to_string(),
            (Self::Text(text) | Self::OldText(text), Family::MariaDb) => escaped(text),
            (Self::Text(text), Family::MySql) => format!("_utf8mb4{}", escaped(text)),
            (Self::OldText(text), Family::MySql) => format!("_utf8mb3{}", escaped(text)),
        }
    }
}

/// A text without control characters, as servers print it in an expression.
fn escaped(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

impl Check {
    /// Whether there is still a constraint.
    pub fn is_in_force(&self) -> bool {
        *self != Check::dropped()
    }

    /// What stands in the place of a condition whose constraint was dropped: the numbers of the
    /// others stay what they are. It is true of everything.
    pub(crate) fn dropped() -> Self {
        Check {
            condition: Condition::All(Vec::new()),
            in_column: false,
            unenforced: false,
        }
    }

    /// ` CHECK (…)` on the server, of the sealed column `enc`: see the module.
    pub(crate) fn physical(
        &self,
        column: &str,
        enc: &str,
        number: usize,
        family: Family,
    ) -> String {
        let mut text = self.condition.physical(column, enc, number, family);
        if self.unenforced {
            text.push_str(" NOT ENFORCED");
        }
        text
    }
}

impl Condition {
    /// What it is of NULL; `None`: neither true nor false.
    pub fn of_null(&self) -> Option<bool> {
        match self {
            Self::Null => Some(true),
            Self::NotNull => Some(false),
            Self::All(parts) => Self::together_of_null(parts, false),
            Self::Any(parts) => Self::together_of_null(parts, true),
            _ => None,
        }
    }

    /// What AND and OR are of NULL: one part that is `decisive` decides, and so do all that are the
    /// opposite.
    fn together_of_null(parts: &[Self], decisive: bool) -> Option<bool> {
        let is = |truth| move |part: &Self| part.of_null() == Some(truth);
        match parts.iter().any(is(decisive)) {
            true => Some(decisive),
            false => parts.iter().all(is(!decisive)).then_some(!decisive),
        }
    }

    /// The constants in it.
    pub fn constants(&self) -> Vec<&CheckConstant> {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::constants).collect(),
            Self::Null | Self::NotNull => Vec::new(),
            Self::Compare(_, constant)
            | Self::Reversed(constant, _)
            | Self::Like(constant)
            | Self::NotLike(constant) => vec![constant],
            Self::Between(low, high) | Self::NotBetween(low, high) => vec![low, high],
            Self::In(list) | Self::NotIn(list) => list.iter().collect(),
        }
    }

    /// As `SHOW CREATE TABLE` prints it in the parentheses behind CHECK.
    pub(crate) fn shown(&self, column: &str, family: Family) -> String {
        let constant = |c: &CheckConstant| c.shown(family);
        let list = |list: &[CheckConstant]| {
            let each: Vec<String> = list.iter().map(constant).collect();
            each.join(",")
        };
        let text = match self {
            Self::All(parts) => {
                let each = parts.iter().map(|part| match (part, family) {
                    (Self::Any(_), Family::MariaDb) => {
                        format!("({})", part.shown(column, family))
                    }
                    _ => part.shown(column, family),
                });
                each.collect::<Vec<_>>().join(" and ")
            }
            Self::Any(parts) => {
                let each = parts.iter().map(|part| part.shown(column, family));
                each.collect::<Vec<_>>().join(" or ")
            }
            Self::Null => format!("{column} is null"),
            Self::NotNull => format!("{column} is not null"),
            Self::Compare(op, c) => format!("{column} {} {}", op.text(), constant(c)),
            Self::Reversed(c, op) => format!("{} {} {column}", constant(c), op.text()),
            Self::Between(low, high) => {
                format!("{column} between {} and {}", constant(low), constant(high))
            }
            Self::NotBetween(low, high) => {
                let (low, high) = (constant(low), constant(high));
                format!("{column} not between {low} and {high}")
            }
            Self::In(constants) => format!("{column} in ({})", list(constants)),
            Self::NotIn(constants) => format!("{column} not in ({})", list(constants)),
            Self::Like(pattern) => format!("{column} like {}", constant(pattern)),
            Self::NotLike(pattern) => match family {
                // with two spaces
                Family::MariaDb => format!("{column}  not like {}", constant(pattern)),
                Family::MySql => format!("not(({column} like {}))", constant(pattern)),
            },
        };
        match family {
            Family::MariaDb => text,
            Family::MySql => format!("({text})"),
        }
    }

    fn physical(&self, column: &str, enc: &str, number: usize, family: Family) -> String {
        let enc = identifier(enc);
        let mut shown = self.shown(&identifier(column), family);
        if family == Family::MySql {
            // as `check_constraints` has it
            shown = shown.replace('\\', "\\\\").replace('\'', "\\'");
        }
        let shown = STANDARD.encode(shown);
        let refused = format!(
            "SUBSTR({enc}, 2, 2) <> X'0000' OR SUBSTR({enc}, {}, 1) = X'00' OR '{SHOWN}{shown}:' IS NULL",
            FIRST_BYTE + number
        );
        match self.of_null() {
            Some(false) => format!("CHECK (({refused}) AND {enc} IS NOT NULL)"),
            _ => format!("CHECK ({refused})"),
        }
    }
}

/// `information_schema.check_constraints` shows this of a constraint of which `clause` is the text
/// on the server.
pub(crate) fn shown_clause(clause: &str) -> String {
    format!(
        "CASE WHEN {clause} LIKE '%{SHOWN}%' \
         THEN CONVERT(FROM_BASE64(SUBSTRING_INDEX(SUBSTRING_INDEX({clause}, '{SHOWN}', -1), ':', 1)) USING utf8mb4) \
         ELSE {clause} END"
    )
}

/// The number of the constraint whose text on the server this is, by the places of the cell that it
/// looks at, in their order.
pub(crate) fn number_by(places: &[usize]) -> Option<usize> {
    match places {
        [2, place] => place.checked_sub(FIRST_BYTE).filter(|n| *n < MAX_CHECKS),
        _ => None,
    }
}

/// The guard of the sealed column `enc`, which refuses all refused cells.
pub(crate) fn guard(enc: &str, name: &str) -> String {
    let (enc, name) = (identifier(enc), identifier(name));
    format!("CONSTRAINT {name} CHECK (SUBSTR({enc}, 2, 2) <> X'0000')")
}

/// Appends a refused cell of this length: that of a value of which the conditions with these
/// numbers are false. `first_byte` is that of all cells of the column.
pub(crate) fn refused_cell(
    first_byte: u8,
    column_id: [u8; 4],
    length: usize,
    violated: impl IntoIterator<Item = usize>,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    out.extend_from_slice(&[first_byte, 0, 0]);
    out.extend_from_slice(&column_id);
    out.resize(start + length, 0);
    for number in violated {
        if let Some(byte) = out.get_mut(start + FIRST_BYTE - 1 + number) {
            *byte = 1;
        }
    }
}

/// The text of the conditions in a comment; empty without any.
pub(crate) fn to_field(checks: &[Check]) -> String {
    match checks {
        [] => String::new(),
        // of these types, writing cannot fail
        _ => serde_json::to_string(checks).unwrap_or_default(),
    }
}

/// The conditions of a comment; `None` for what [`to_field`] does not write.
pub(crate) fn from_field(field: &str) -> Option<Vec<Check>> {
    let checks: Vec<Check> = serde_json::from_str(field).ok()?;
    let fits = !checks.is_empty() && checks.len() <= MAX_CHECKS && to_field(&checks) == field;
    fits.then_some(checks)
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;

    fn number(text: &str) -> CheckConstant {
        CheckConstant::Number(text.into())
    }

    fn text(text: &str) -> CheckConstant {
        CheckConstant::Text(text.into())
    }

    /// `(c = -1 or c in (2,3)) and c like 'it\'s%' and 5 > c`
    fn sample() -> Condition {
        Condition::All(vec![
            Condition::Any(vec![
                Condition::Compare(Comparison::Equal, number("-1")),
                Condition::In(vec![number("2"), number("3")]),
            ]),
            Condition::NotLike(text("it's%")),
            Condition::Reversed(number("5"), Comparison::Greater),
        ])
    }

    #[test]
    fn conditions_are_shown_as_servers_print_them() {
        assert_eq!(
            sample().shown("`c`", Family::MariaDb),
            r"(`c` = -1 or `c` in (2,3)) and `c`  not like 'it\'s%' and 5 > `c`"
        );
        assert_eq!(
            sample().shown("`c`", Family::MySql),
            r"(((`c` = -(1)) or (`c` in (2,3))) and (not((`c` like _utf8mb4'it\'s%'))) and (5 > `c`))"
        );
    }

    #[test]
    fn of_null_only_what_asks_for_it_is_certain() {
        let less = || Condition::Compare(Comparison::Less, number("1"));
        let all = |parts: &[Condition]| Condition::All(parts.to_vec()).of_null();
        let any = |parts: &[Condition]| Condition::Any(parts.to_vec()).of_null();
        assert_eq!(less().of_null(), None);
        assert_eq!(all(&[less(), Condition::NotNull]), Some(false));
        assert_eq!(all(&[less(), Condition::Null]), None);
        assert_eq!(all(&[Condition::Null, Condition::Null]), Some(true));
        assert_eq!(any(&[less(), Condition::NotNull]), None);
        assert_eq!(any(&[less(), Condition::Null]), Some(true));
        assert_eq!(any(&[Condition::NotNull, Condition::NotNull]), Some(false));
    }

    #[test]
    fn a_refused_cell_says_what_is_broken_and_nothing_else() {
        let mut cell = vec![9];
        refused_cell(0x22, [1, 2, 3, 4], 35, [0, 2, 15], &mut cell);
        let mut expected = [0; 36];
        expected[..8].copy_from_slice(&[9, 0x22, 0, 0, 1, 2, 3, 4]);
        for place in [8, 10, 23] {
            expected[place] = 1;
        }
        assert_eq!(cell, expected);
        assert_eq!(number_by(&[2, FIRST_BYTE + 15]), Some(15));
        // not one of these, and not the constraint of all cells
        for places in [&[2, 24][..], &[2, 7], &[2], &[1, 4], &[8, 2]] {
            assert_eq!(number_by(places), None, "{places:?}");
        }
    }

    #[test]
    fn the_field_has_one_form() {
        let checks = vec![
            Check {
                condition: sample(),
                in_column: true,
                unenforced: false,
            },
            Check {
                condition: Condition::NotNull,
                in_column: false,
                unenforced: true,
            },
        ];
        let field = to_field(&checks);
        assert_eq!(from_field(&field), Some(checks));
        let spaced = field.replace(',', ", ");
        for other in ["", "[]", "{}", "null", r#"[{"c":"2"}]"#, &spaced] {
            assert_eq!(from_field(other), None, "{other}");
        }
        let many = format!("[{}]", [r#"{"c":"1"}"#; MAX_CHECKS + 1].join(","));
        assert_eq!(from_field(&many), None);
    }

    #[test]
    fn a_negation_holds_exactly_where_the_comparison_does_not() {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        for c in [Less, LessOrEqual, Greater, GreaterOrEqual, Equal, NotEqual] {
            for order in [Ordering::Less, Ordering::Equal, Ordering::Greater] {
                assert_ne!(c.holds(order), c.negated().holds(order), "{c:?} {order:?}");
                assert_eq!(
                    c.holds(order),
                    c.mirrored().holds(order.reverse()),
                    "{c:?} {order:?}"
                );
            }
        }
    }
}
