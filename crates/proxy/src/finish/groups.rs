//! Groups and their aggregates.
//!
//! A group keeps its first row in the arena, for what it shows and is sorted by, and of all other
//! rows no more than the aggregates need. What is kept counts against the arena's bound.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use onionskin_plan::{Aggregate, AggregateCall, errors};
use onionskin_value::{Family, SqlType, Sum, SumError, compare_numbers};

use super::arena::{Arena, put_key};
use super::decide::{Number, order};
use crate::error::{Failure, Outcome};

/// An aggregate on its way.
pub(crate) struct Running {
    pub call: AggregateCall,
    ty: Option<SqlType>,
    pub count: u64,
    sum: Option<Sum>,
    /// The least or greatest payload so far.
    pub best: Option<Vec<u8>>,
    /// The weights of the values so far, of an aggregate of different values.
    seen: Option<HashSet<Vec<u8>, ahash::RandomState>>,
}

/// An aggregate's value.
#[derive(Debug, PartialEq)]
pub(super) enum Computed {
    Null,
    Count(u64),
    /// The text of a DECIMAL.
    Exact(Vec<u8>),
    /// A DOUBLE, and its text.
    Real(f64, Vec<u8>),
    /// A value of the column, as a payload.
    Value(Vec<u8>),
}

fn sum_failure(error: &SumError) -> Failure {
    Failure::refused(&errors::VALUE, error.to_string())
}

impl Running {
    /// An aggregate of nothing yet; `ty` is the type of the opened column that it is over.
    pub fn new(call: AggregateCall, ty: Option<SqlType>) -> Outcome<Self> {
        let sum = match (call.function, ty) {
            (Aggregate::Sum | Aggregate::Avg, Some(ty)) => {
                Some(Sum::new(ty).map_err(|e| sum_failure(&e))?)
            }
            _ => None,
        };
        Ok(Running {
            call,
            ty,
            count: 0,
            sum,
            best: None,
            seen: call.distinct.then(HashSet::default),
        })
    }

    /// Adds a row's value. Returns how many bytes more are kept.
    fn add(&mut self, cell: Option<&[u8]>) -> Outcome<usize> {
        let mut kept = 0;
        if self.call.fetch.is_some() {
            let Some(cell) = cell else { return Ok(0) };
            if let Some(seen) = &mut self.seen {
                let mut key = Vec::new();
                put_key(&mut key, self.ty.as_ref(), Some(cell))
                    .map_err(|e| Failure::refused(&errors::VALUE, e.to_string()))?;
                let size = key.len() + 48;
                if !seen.insert(key) {
                    return Ok(0);
                }
                kept += size;
            }
            if let Some(sum) = &mut self.sum {
                sum.add(cell).map_err(|e| sum_failure(&e))?;
            }
            kept += self.improve(cell)?;
        }
        self.count += 1;
        Ok(kept)
    }

    fn improve(&mut self, cell: &[u8]) -> Outcome<usize> {
        let wanted = match self.call.function {
            Aggregate::Min => Ordering::Less,
            Aggregate::Max => Ordering::Greater,
            _ => return Ok(0),
        };
        let Some(ty) = &self.ty else {
            return Err(Failure::refused(&errors::INTERNAL, "an aggregate's type"));
        };
        match &mut self.best {
            Some(best) if order(ty, cell, best)? != wanted => Ok(0),
            Some(best) => {
                let more = cell.len().saturating_sub(best.capacity());
                best.clear();
                best.extend_from_slice(cell);
                Ok(more)
            }
            None => {
                self.best = Some(cell.to_vec());
                Ok(cell.len())
            }
        }
    }

    /// The value, as the server would compute it.
    pub(super) fn computed(&self, family: Family, increment: u8) -> Outcome<Computed> {
        let mut text = Vec::new();
        Ok(match (self.call.function, &self.sum) {
            (Aggregate::Sum, Some(sum)) => {
                let real = sum.sum_f64();
                match sum.finish_sum(&mut text).map_err(|e| sum_failure(&e))? {
                    false => Computed::Null,
                    true => real.map_or_else(
                        || Computed::Exact(text.clone()),
                        |v| Computed::Real(v, text.clone()),
                    ),
                }
            }
            (Aggregate::Avg, Some(sum)) => {
                let real = sum.avg_f64();
                match sum
                    .finish_avg(family, increment, &mut text)
                    .map_err(|e| sum_failure(&e))?
                {
                    false => Computed::Null,
                    true => real.map_or_else(
                        || Computed::Exact(text.clone()),
                        |v| Computed::Real(v, text.clone()),
                    ),
                }
            }
            (Aggregate::Min | Aggregate::Max, _) => match &self.best {
                Some(best) => Computed::Value(best.clone()),
                None => Computed::Null,
            },
            _ => Computed::Count(self.count),
        })
    }

    /// How the value stands to a number; `None` where it is NULL.
    ///
    /// The server compares an average with more digits than it shows, but not with all of them.
    /// Where that could decide, the statement is refused.
    pub fn beside(
        &self,
        number: &Number,
        family: Family,
        increment: u8,
    ) -> Outcome<Option<Ordering>> {
        Ok(Some(match self.computed(family, increment)? {
            Computed::Null => return Ok(None),
            Computed::Count(count) => number.order(count.to_string().as_bytes())?,
            Computed::Real(value, _) => number.order_of_real(value)?,
            Computed::Exact(shown) => {
                let order = number.order(&shown)?;
                if self.call.function == Aggregate::Avg {
                    for finer in self.finer_averages(family)? {
                        if number.order(&finer)? != order {
                            return Err(Failure::refused(
                                &errors::VALUE,
                                "HAVING AVG(…) beside a number that differs in digits that are not shown",
                            ));
                        }
                    }
                }
                order
            }
            Computed::Value(_) => {
                return Err(Failure::refused(&errors::INTERNAL, "a number's aggregate"));
            }
        }))
    }

    /// The average with many digits, and cut off after the server's groups of nine.
    fn finer_averages(&self, family: Family) -> Outcome<Vec<Vec<u8>>> {
        const MANY: u8 = 24;
        let Some(sum) = &self.sum else {
            return Ok(Vec::new());
        };
        let mut long = Vec::new();
        sum.finish_avg(family, MANY, &mut long)
            .map_err(|e| sum_failure(&e))?;
        let point = long.iter().position(|b| *b == b'.').unwrap_or(long.len());
        let mut all: Vec<Vec<u8>> = [9, 18]
            .iter()
            .filter_map(|digits| long.get(..point + 1 + digits).map(<[u8]>::to_vec))
            .collect();
        all.push(long);
        Ok(all)
    }
}

/// The order of two values of one aggregate; NULL comes first.
pub(super) fn order_computed(
    a: &Computed,
    b: &Computed,
    ty: Option<&SqlType>,
) -> Outcome<Ordering> {
    let odd = || Failure::refused(&errors::INTERNAL, "values of one aggregate");
    Ok(match (a, b) {
        (Computed::Null, Computed::Null) => Ordering::Equal,
        (Computed::Null, _) => Ordering::Less,
        (_, Computed::Null) => Ordering::Greater,
        (Computed::Count(a), Computed::Count(b)) => a.cmp(b),
        (Computed::Exact(a), Computed::Exact(b)) => compare_numbers(a, b).ok_or_else(odd)?,
        (Computed::Real(a, _), Computed::Real(b, _)) => a.partial_cmp(b).ok_or_else(odd)?,
        (Computed::Value(a), Computed::Value(b)) => order(ty.ok_or_else(odd)?, a, b)?,
        _ => return Err(odd()),
    })
}

/// A group: its aggregates; its first row has its number in the arena.
pub(super) struct Group {
    pub running: Vec<Running>,
}

/// The groups so far, in the order in which they came.
pub(super) struct Grouping<'p> {
    keys: Option<&'p [usize]>,
    calls: &'p [AggregateCall],
    types: &'p [Option<SqlType>],
    index: HashMap<Vec<u8>, usize, ahash::RandomState>,
    /// The key of the row that is being added.
    key: Vec<u8>,
    pub groups: Vec<Group>,
}

impl<'p> Grouping<'p> {
    pub fn new(
        keys: Option<&'p [usize]>,
        calls: &'p [AggregateCall],
        types: &'p [Option<SqlType>],
    ) -> Self {
        Grouping {
            keys,
            calls,
            types,
            index: HashMap::default(),
            key: Vec::new(),
            groups: Vec::new(),
        }
    }

    fn begin(&mut self) -> Outcome<usize> {
        let running = self
            .calls
            .iter()
            .map(|call| Running::new(*call, call.fetch.and_then(|f| self.types[f])))
            .collect::<Outcome<Vec<_>>>()?;
        self.groups.push(Group { running });
        Ok(self.groups.len() - 1)
    }

    /// Adds the arena's last row, which stays there if it is the first of its group.
    pub fn add(&mut self, arena: &mut Arena) -> Outcome<()> {
        let row = arena.rows() - 1;
        let key = &mut self.key;
        key.clear();
        for &column in self.keys.unwrap_or_default() {
            put_key(key, self.types[column].as_ref(), arena.cell(row, column))
                .map_err(|e| Failure::refused(&errors::VALUE, e.to_string()))?;
        }
        let mut kept = 0;
        let (group, first) = match self.index.get(key.as_slice()) {
            Some(group) => (*group, false),
            None => {
                kept += key.len() + 64 + self.calls.len() * size_of::<Running>();
                let key = key.clone();
                let group = self.begin()?;
                self.index.insert(key, group);
                (group, true)
            }
        };
        for running in &mut self.groups[group].running {
            let cell = running.call.fetch.and_then(|f| arena.cell(row, f));
            kept += running.add(cell)?;
        }
        if !first {
            arena.pop();
        }
        arena.charge(kept)
    }

    /// Without GROUP BY there is one group, even of no rows.
    pub fn end(&mut self) -> Outcome<()> {
        if self.keys.is_none() && self.groups.is_empty() {
            self.begin()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onionskin_value::Kind;

    fn call(function: Aggregate, fetch: usize) -> AggregateCall {
        AggregateCall {
            function,
            fetch: Some(fetch),
            distinct: false,
        }
    }

    /// A TINYINT's payload.
    fn tiny(value: i8) -> Vec<u8> {
        vec![(value as u8) ^ 0x80]
    }

    fn group(
        rows: &[(Option<&str>, Option<i8>)],
        keys: Option<&[usize]>,
        calls: &[AggregateCall],
    ) -> Vec<Vec<Computed>> {
        let text = SqlType::parse("varchar(9)", Some("utf8mb4_general_ci")).unwrap();
        let types = [Some(text), Some(SqlType::plain(Kind::TinyInt(None)))];
        let mut arena = Arena::alone(2);
        let mut grouping = Grouping::new(keys, calls, &types);
        for (name, number) in rows {
            arena.push(name.map(str::as_bytes)).unwrap();
            arena.push(number.map(tiny).as_deref()).unwrap();
            grouping.add(&mut arena).unwrap();
        }
        grouping.end().unwrap();
        assert!(arena.rows() <= grouping.groups.len());
        grouping
            .groups
            .iter()
            .map(|g| {
                g.running
                    .iter()
                    .map(|r| r.computed(Family::MySql, 4).unwrap())
                    .collect()
            })
            .collect()
    }

    #[test]
    fn rows_gather_by_what_is_equal_to_sql() {
        let rows = [
            (Some("Bo"), Some(5)),
            (None, Some(1)),
            (Some("bO "), None),
            (Some("c"), Some(-7)),
            (None, Some(2)),
            (Some("bo"), Some(6)),
        ];
        let calls = [
            call(Aggregate::Sum, 1),
            call(Aggregate::Avg, 1),
            call(Aggregate::Count, 1),
            call(Aggregate::Min, 1),
            AggregateCall {
                function: Aggregate::Count,
                fetch: None,
                distinct: false,
            },
        ];
        let exact = |text: &str| Computed::Exact(text.as_bytes().to_vec());
        assert_eq!(
            group(&rows, Some(&[0]), &calls),
            [
                [
                    exact("11"),
                    exact("5.5000"),
                    Computed::Count(2),
                    Computed::Value(tiny(5)),
                    Computed::Count(3)
                ],
                [
                    exact("3"),
                    exact("1.5000"),
                    Computed::Count(2),
                    Computed::Value(tiny(1)),
                    Computed::Count(2)
                ],
                [
                    exact("-7"),
                    exact("-7.0000"),
                    Computed::Count(1),
                    Computed::Value(tiny(-7)),
                    Computed::Count(1)
                ],
            ]
        );
    }

    #[test]
    fn no_rows_are_one_group_without_group_by_and_none_with_it() {
        let calls = [call(Aggregate::Sum, 1), call(Aggregate::Count, 1)];
        assert_eq!(
            group(&[], None, &calls),
            [[Computed::Null, Computed::Count(0)]]
        );
        assert!(group(&[], Some(&[0]), &calls).is_empty());
    }

    #[test]
    fn different_values_count_once() {
        let distinct = |function, fetch| AggregateCall {
            function,
            fetch: Some(fetch),
            distinct: true,
        };
        let rows = [
            (Some("a"), Some(3)),
            (Some("A"), Some(3)),
            (Some("b"), Some(4)),
            (None, None),
        ];
        let calls = [distinct(Aggregate::Count, 0), distinct(Aggregate::Sum, 1)];
        assert_eq!(
            group(&rows, None, &calls),
            [[Computed::Count(2), Computed::Exact(b"7".to_vec())]]
        );
    }

    #[test]
    fn an_average_is_compared_only_where_its_hidden_digits_do_not_matter() {
        let ty = SqlType::plain(Kind::TinyInt(None));
        let mut third = Running::new(call(Aggregate::Avg, 0), Some(ty)).unwrap();
        for value in [1, 0, 0] {
            third.add(Some(&tiny(value))).unwrap();
        }
        let beside = |text: &str| {
            third
                .beside(&Number::Exact(text.as_bytes().to_vec()), Family::MySql, 4)
                .map(Option::unwrap)
        };
        assert_eq!(beside("0.3").unwrap(), Ordering::Greater);
        assert_eq!(beside("0.34").unwrap(), Ordering::Less);
        assert!(beside("0.3333").is_err());
        assert!(beside("0.33333").is_err());
        let mut half = Running::new(call(Aggregate::Avg, 0), Some(ty)).unwrap();
        for value in [1, 0] {
            half.add(Some(&tiny(value))).unwrap();
        }
        let number = Number::Exact(b"0.5".to_vec());
        let order = half.beside(&number, Family::MySql, 4).unwrap();
        assert_eq!(order, Some(Ordering::Equal));
    }

    #[test]
    fn aggregates_are_ordered_as_numbers() {
        let exact = |text: &str| Computed::Exact(text.as_bytes().to_vec());
        let order = |a, b| order_computed(&a, &b, None).unwrap();
        assert_eq!(order(exact("9.50"), exact("10.25")), Ordering::Less);
        assert_eq!(order(exact("-9"), exact("-10")), Ordering::Greater);
        assert_eq!(order(Computed::Null, exact("-10")), Ordering::Less);
        assert_eq!(
            order(Computed::Count(9), Computed::Count(10)),
            Ordering::Less
        );
    }
}
