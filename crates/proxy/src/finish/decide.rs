//! Conditions that the proxy decides: a plan's [`Test`] with its constants bound.
//!
//! Constants are coerced once for a statement, as for a condition in the server. A value stands
//! below, at or above a constant; NULL stands nowhere, so that no comparison with it is true.

use std::cmp::Ordering;

use onionskin_plan::{
    Aggregate, AggregateCall, Among, Compared, Comparison, Operand, ResultItem, Source, Test,
    errors,
};
use onionskin_value::{
    Charset, Family, FormatContext, FormatError, Input, Kind, LikePattern, Pattern, SqlType,
    TimeZone, cmp, compare_numbers, format_text,
};

use super::arena::Arena;
use super::groups::Running;
use crate::bind::{Binder, Bound, Buffers, Values};
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::state::State;

/// A test that is ready to be asked.
pub(crate) enum Decision {
    All(Vec<Decision>),
    Any(Vec<Decision>),
    /// The server's truth.
    Fetched(usize),
    /// A cell beside a constant.
    Constant {
        left: Operand,
        comparison: Comparison,
        ty: SqlType,
        place: Place,
    },
    /// Two cells of one type.
    Cells {
        left: usize,
        comparison: Comparison,
        right: usize,
        ty: SqlType,
    },
    /// A count, sum or average beside a number.
    Number {
        call: usize,
        comparison: Comparison,
        number: Number,
    },
    /// A text or a binary value, or another one as it is shown.
    Like {
        fetch: usize,
        pattern: LikePattern,
        negated: bool,
        shown: Option<(SqlType, TimeZone)>,
    },
    /// A comparison with NULL.
    Never,
}

/// Where a constant stands among a column's values.
pub(crate) enum Place {
    At(Vec<u8>),
    /// Above this value and below the next one.
    Behind(Vec<u8>),
    BelowAll,
    AboveAll,
}

/// A number as it is compared with: exactly, or as a double.
pub(crate) enum Number {
    Exact(Vec<u8>),
    Real(f64),
}

/// What is asked about: a row, or a group with its aggregates.
pub(crate) struct Asked<'a> {
    pub arena: &'a Arena,
    /// Of a group: its first row.
    pub row: usize,
    pub running: &'a [Running],
    pub family: Family,
    pub increment: u8,
}

/// What tests are bound with.
pub(crate) struct Binding<'a> {
    pub keyed: &'a KeyedPlan,
    pub state: &'a State,
    pub values: Values<'a>,
    pub fetch: &'a [ResultItem],
    pub calls: &'a [AggregateCall],
}

fn unclear(about: &str) -> Failure {
    Failure::refused(&errors::VALUE, about)
}

impl Binding<'_> {
    fn column(&self, fetch: usize) -> Outcome<(usize, SqlType)> {
        let index = self.fetch.get(fetch).and_then(|item| item.open);
        let (index, _) =
            index.ok_or_else(|| Failure::refused(&errors::INTERNAL, "a tested column"))?;
        let ty = self.keyed.plan.columns[index].column().sql_type;
        ty.map(|ty| (index, ty))
            .ok_or_else(|| Failure::refused(&errors::INTERNAL, "a tested column's type"))
    }

    /// Coerces the constants of a test.
    pub fn bind(&self, test: &Test, buffers: &mut Buffers) -> Outcome<Decision> {
        let all = |tests: &[Test], buffers: &mut Buffers| {
            tests
                .iter()
                .map(|t| self.bind(t, buffers))
                .collect::<Outcome<Vec<_>>>()
        };
        Ok(match test {
            Test::All(tests) => Decision::All(all(tests, buffers)?),
            Test::Any(tests) => Decision::Any(all(tests, buffers)?),
            Test::Fetched(at) => Decision::Fetched(*at),
            Test::Compare {
                left: Operand::Fetch(left),
                comparison,
                right: Compared::Fetch(right),
            } => {
                let (_, ty) = self.column(*left)?;
                Decision::Cells {
                    left: *left,
                    comparison: *comparison,
                    right: *right,
                    ty,
                }
            }
            Test::Compare {
                left: left @ Operand::Fetch(fetch),
                comparison,
                right: Compared::Constant(source, among),
            } => self.constant(*left, *fetch, *comparison, (*source, *among), buffers)?,
            Test::Compare {
                left: left @ Operand::Aggregate(call),
                comparison,
                right: Compared::Constant(source, _),
            } => {
                let found = self.calls.get(*call).copied();
                let found =
                    found.ok_or_else(|| Failure::refused(&errors::INTERNAL, "an aggregate"))?;
                match (found.function, found.fetch) {
                    (Aggregate::Min | Aggregate::Max, Some(fetch)) => {
                        self.of_one_kind(fetch, *source)?;
                        self.constant(*left, fetch, *comparison, (*source, None), buffers)?
                    }
                    _ => self.number(*call, *comparison, *source)?,
                }
            }
            Test::Like {
                fetch,
                pattern,
                escape,
                negated,
            } => {
                let (column, ty) = self.column(*fetch)?;
                let mut binder = Binder::new(self.keyed, self.state, self.values, buffers);
                let Pattern::Like(pattern) = binder.pattern(column, *pattern, *escape)? else {
                    return Ok(Decision::Never);
                };
                let is_string = ty.is_character() || ty.is_binary();
                Decision::Like {
                    fetch: *fetch,
                    pattern,
                    negated: *negated,
                    shown: (!is_string).then_some((ty, self.state.time_zone)),
                }
            }
            Test::Compare { .. } => {
                return Err(Failure::refused(&errors::INTERNAL, "a comparison"));
            }
        })
    }

    fn constant(
        &self,
        left: Operand,
        fetch: usize,
        comparison: Comparison,
        (source, among): (Source, Option<Among>),
        buffers: &mut Buffers,
    ) -> Outcome<Decision> {
        let (column, ty) = self.column(fetch)?;
        let mut binder = Binder::new(self.keyed, self.state, self.values, buffers);
        let (bound, payload) = binder.compared(column, source, among)?;
        let place = match bound {
            Bound::Null => return Ok(Decision::Never),
            Bound::Exact => Place::At(payload),
            Bound::Between => Place::Behind(payload),
            Bound::BelowAll => Place::BelowAll,
            Bound::AboveAll => Place::AboveAll,
        };
        Ok(Decision::Constant {
            left,
            comparison,
            ty,
            place,
        })
    }

    /// Beside MIN and MAX the server does not convert a constant to the column's type as it does
    /// beside the column; of the same kind there is nothing to convert.
    fn of_one_kind(&self, fetch: usize, source: Source) -> Outcome<()> {
        let (_, ty) = self.column(fetch)?;
        let (index, negative) = match source {
            Source::Literal { index, negative } => (index, negative),
            Source::Moment { .. } => return Err(unclear("HAVING with DATE or TIMESTAMP")),
            _ => return Ok(()),
        };
        let mut buffers = Vec::new();
        let about = "HAVING";
        let input = self
            .values
            .input(index, negative, self.state, &mut buffers, about)?;
        let dated = matches!(ty.kind, Kind::Date | Kind::DateTime { .. });
        let same = match input {
            Input::Null => true,
            Input::Integer { .. } | Input::Decimal(_) | Input::Double(_) => ty.is_numeric(),
            Input::Text { .. } => ty.is_character() || dated,
            Input::Bytes(_) => ty.is_binary(),
            Input::Temporal(_) => dated,
            _ => false,
        };
        if same {
            Ok(())
        } else {
            Err(unclear("HAVING with a constant of another type"))
        }
    }

    fn number(&self, call: usize, comparison: Comparison, source: Source) -> Outcome<Decision> {
        let mut buffers = Vec::new();
        let input = match source {
            Source::Null => Input::Null,
            Source::Bool(truth) => Input::Integer {
                negative: false,
                magnitude: u64::from(truth),
            },
            Source::Literal { index, negative } => {
                self.values
                    .input(index, negative, self.state, &mut buffers, "HAVING")?
            }
            Source::Moment { .. }
            | Source::Joined { .. }
            | Source::Default
            | Source::Omitted { .. }
            | Source::Implicit
            | Source::Present { .. } => {
                return Err(unclear("HAVING"));
            }
        };
        let number = match input {
            Input::Null => return Ok(Decision::Never),
            Input::Integer {
                negative,
                magnitude,
            } => {
                let sign = if negative { "-" } else { "" };
                Number::Exact(format!("{sign}{magnitude}").into_bytes())
            }
            Input::Decimal(text) => Number::Exact(text.to_vec()),
            Input::Double(value) => Number::Real(value),
            _ => return Err(unclear("HAVING with a constant that is no number")),
        };
        Ok(Decision::Number {
            call,
            comparison,
            number,
        })
    }
}

impl Decision {
    /// Whether the condition is true.
    pub fn holds(&self, of: &Asked) -> Outcome<bool> {
        Ok(match self {
            Decision::All(parts) => {
                for part in parts {
                    if !part.holds(of)? {
                        return Ok(false);
                    }
                }
                true
            }
            Decision::Any(parts) => {
                for part in parts {
                    if part.holds(of)? {
                        return Ok(true);
                    }
                }
                false
            }
            // an integer in either protocol: `0`, or zero bytes
            Decision::Fetched(at) => of
                .arena
                .cell(of.row, *at)
                .is_some_and(|cell| cell.iter().any(|b| !matches!(b, 0 | b'0'))),
            Decision::Never => false,
            Decision::Constant {
                left,
                comparison,
                ty,
                place,
            } => {
                let value = match left {
                    Operand::Fetch(at) => of.arena.cell(of.row, *at),
                    Operand::Aggregate(call) => {
                        of.running.get(*call).and_then(|r| r.best.as_deref())
                    }
                };
                let Some(value) = value else { return Ok(false) };
                comparison.holds(place.order(ty, value)?)
            }
            Decision::Cells {
                left,
                comparison,
                right,
                ty,
            } => match (of.arena.cell(of.row, *left), of.arena.cell(of.row, *right)) {
                (Some(a), Some(b)) => comparison.holds(order(ty, a, b)?),
                _ => false,
            },
            Decision::Like {
                fetch,
                pattern,
                negated,
                shown,
            } => {
                let Some(value) = of.arena.cell(of.row, *fetch) else {
                    return Ok(false);
                };
                let mut text = Vec::new();
                let value = match shown {
                    None => value,
                    Some((ty, time_zone)) => {
                        let ctx = FormatContext {
                            time_zone,
                            family: of.family,
                            results_charset: Charset::Utf8mb4,
                            pad_char: false,
                        };
                        format_text(ty, value, &ctx, &mut text).map_err(|e| match e {
                            FormatError::TimeZone => Failure::refused(&errors::TIME_ZONE, "LIKE"),
                            FormatError::Malformed => Failure::refused(&errors::TAMPERED, "LIKE"),
                        })?;
                        &text
                    }
                };
                let matches = pattern.matches(value);
                let matches =
                    matches.map_err(|e| Failure::refused(&errors::VALUE, e.to_string()))?;
                matches != *negated
            }
            Decision::Number {
                call,
                comparison,
                number,
            } => match of.running.get(*call) {
                Some(running) => match running.beside(number, of.family, of.increment)? {
                    Some(order) => comparison.holds(order),
                    None => false,
                },
                None => false,
            },
        })
    }
}

impl Place {
    /// How a value stands to the constant.
    fn order(&self, ty: &SqlType, value: &[u8]) -> Outcome<Ordering> {
        Ok(match self {
            Place::At(constant) => order(ty, value, constant)?,
            Place::Behind(below) => match order(ty, value, below)? {
                Ordering::Greater => Ordering::Greater,
                _ => Ordering::Less,
            },
            Place::BelowAll => Ordering::Greater,
            Place::AboveAll => Ordering::Less,
        })
    }
}

impl Number {
    /// How a number in text form stands to the constant.
    pub fn order(&self, text: &[u8]) -> Outcome<Ordering> {
        let failed = || unclear("HAVING with a number that cannot be read exactly");
        let real = |text: &[u8]| {
            std::str::from_utf8(text)
                .ok()
                .and_then(|t| t.parse::<f64>().ok())
                .ok_or_else(failed)
        };
        match self {
            Number::Exact(constant) => compare_numbers(text, constant).ok_or_else(failed),
            Number::Real(constant) => real(text)?.partial_cmp(constant).ok_or_else(failed),
        }
    }

    /// The same of a double.
    pub fn order_of_real(&self, value: f64) -> Outcome<Ordering> {
        let failed = || unclear("HAVING with a number that cannot be read exactly");
        let constant = match self {
            Number::Real(constant) => *constant,
            Number::Exact(text) => std::str::from_utf8(text)
                .ok()
                .and_then(|t| t.parse().ok())
                .ok_or_else(failed)?,
        };
        value.partial_cmp(&constant).ok_or_else(failed)
    }
}

/// The order of two values of one type.
pub(super) fn order(ty: &SqlType, a: &[u8], b: &[u8]) -> Outcome<Ordering> {
    cmp(ty, a, b).map_err(|e| Failure::refused(&errors::VALUE, e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(arena: &Arena) -> Asked<'_> {
        Asked {
            arena,
            row: 0,
            running: &[],
            family: Family::MariaDb,
            increment: 4,
        }
    }

    fn text_column() -> SqlType {
        SqlType::parse("varchar(60)", Some("utf8mb4_general_ci")).unwrap()
    }

    fn constant(comparison: Comparison, place: Place) -> Decision {
        Decision::Constant {
            left: Operand::Fetch(0),
            comparison,
            ty: text_column(),
            place,
        }
    }

    #[test]
    fn candidates_are_decided_by_the_whole_value_and_the_collation() {
        let long = "the same beginning of two long texts: ";
        let mut arena = Arena::alone(1);
        arena.push(Some(format!("{long}B").as_bytes())).unwrap();
        let with = |c, text: &str| constant(c, Place::At(format!("{long}{text}").into_bytes()));
        let holds = |d: Decision| d.holds(&asked(&arena)).unwrap();
        assert!(holds(with(Comparison::Greater, "a")));
        assert!(holds(with(Comparison::Equal, "b  ")));
        assert!(!holds(with(Comparison::Less, "b")));
        assert!(holds(with(Comparison::LessOrEqual, "b")));
        assert!(holds(with(Comparison::NotEqual, "c")));
        assert!(!holds(constant(
            Comparison::Equal,
            Place::Behind(format!("{long}B").into_bytes())
        )));
        assert!(holds(constant(
            Comparison::Less,
            Place::Behind(format!("{long}B").into_bytes())
        )));
        assert!(holds(constant(Comparison::Less, Place::AboveAll)));
        assert!(holds(constant(Comparison::Greater, Place::BelowAll)));
    }

    #[test]
    fn null_is_below_and_above_nothing() {
        let mut arena = Arena::alone(1);
        arena.push(None).unwrap();
        for c in [
            Comparison::Less,
            Comparison::GreaterOrEqual,
            Comparison::NotEqual,
        ] {
            let decision = constant(c, Place::At(b"x".to_vec()));
            assert!(!decision.holds(&asked(&arena)).unwrap());
        }
        assert!(!Decision::Never.holds(&asked(&arena)).unwrap());
        assert!(!Decision::Fetched(0).holds(&asked(&arena)).unwrap());
    }

    #[test]
    fn truth_comes_in_either_protocol() {
        for (cell, truth) in [
            (b"1".as_slice(), true),
            (b"0", false),
            (&[1, 0, 0, 0], true),
            (&[0, 0, 0, 0], false),
        ] {
            let mut arena = Arena::alone(1);
            arena.push(Some(cell)).unwrap();
            let got = Decision::Fetched(0).holds(&asked(&arena)).unwrap();
            assert_eq!(got, truth, "{cell:?}");
        }
        let mut arena = Arena::alone(1);
        arena.push(Some(b"0")).unwrap();
        let any = Decision::Any(vec![
            Decision::Fetched(0),
            constant(Comparison::Equal, Place::At(b"0".to_vec())),
        ]);
        assert!(any.holds(&asked(&arena)).unwrap());
        let all = Decision::All(vec![any, Decision::Never]);
        assert!(!all.holds(&asked(&arena)).unwrap());
    }
}
