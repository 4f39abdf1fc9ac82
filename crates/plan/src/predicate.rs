//! Conditions and expressions: where a protected column may stand, and what takes its place.
//!
//! The rules are few. A protected column may be compared with a constant or with a column whose
//! tokens are made under the same key, tested for NULL, and counted. It may not be computed
//! with. Every kind of expression is listed; one that is not is refused.

use std::ops::Range;
use std::sync::Arc;

use onionskin_schema::{TokenKind, same_name};
use onionskin_value::{Family, Kind, SqlType};
use sqlparser::ast::{
    BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, Ident, ObjectName, Query, UnaryOperator,
};

use crate::comparable::{equality, exact_order, no_order, same_tokens};
use crate::errors::{self, NotUnderstood};
use crate::lex::LiteralKind;
use crate::plan::{Among, ColumnUse, Piece, Purpose, Source};
use crate::planner::{Planned, Planner, quoted, refuse};
use crate::query::Mode;
use crate::scope::{Resolved, Scope};

/// Which token a comparison needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Equality,
    Order,
}

fn need_of(op: &BinaryOperator) -> Option<Need> {
    match op {
        BinaryOperator::Eq | BinaryOperator::NotEq | BinaryOperator::Spaceship => {
            Some(Need::Equality)
        }
        BinaryOperator::Lt | BinaryOperator::LtEq | BinaryOperator::Gt | BinaryOperator::GtEq => {
            Some(Need::Order)
        }
        _ => None,
    }
}

impl Planner<'_> {
    /// A protected column in an expression: the place of its name, and the column.
    pub(crate) fn column_of(
        &mut self,
        expr: &Expr,
        scope: &Scope,
    ) -> Planned<Option<(Range<usize>, ColumnUse)>> {
        let parts: &[_] = match expr {
            Expr::Nested(inner) => return self.column_of(inner, scope),
            Expr::Identifier(ident) => std::slice::from_ref(ident),
            Expr::CompoundIdentifier(parts) => parts,
            _ => return Ok(None),
        };
        let mut range = 0..0;
        for part in parts {
            range = self.judge(part)?;
        }
        match scope.resolve(parts)? {
            Resolved::Protected(column) => Ok(Some((range, column))),
            Resolved::Plain | Resolved::Unknown => {
                // a table that is not known may hide what the name means
                if let [bare] = parts
                    && scope.is_open_anywhere()
                    && let Some(table) = self.near.iter().find(|t| {
                        t.column(&bare.value)
                            .is_some_and(|c| c.protection.is_some())
                    })
                {
                    let about = format!("column {} beside an unknown table", bare.value);
                    return refuse(&errors::AMBIGUOUS, format!("{}: {about}", table.name));
                }
                Ok(None)
            }
        }
    }

    /// Walks an expression; protected columns in it are replaced or refused.
    pub(crate) fn scan(&mut self, expr: &Expr, scope: &Scope) -> Planned<()> {
        match expr {
            Expr::Identifier(ident) => self.plain_name(expr, std::slice::from_ref(ident), scope),
            Expr::CompoundIdentifier(parts) => self.plain_name(expr, parts, scope),
            Expr::IsNull(e) | Expr::IsNotNull(e) => self.null_test(e, scope),
            // OR, or under PIPES_AS_CONCAT an operator whose operands end elsewhere
            Expr::BinaryOp {
                left,
                op: BinaryOperator::StringConcat,
                right,
            } if let Some(column) = [left, right]
                .into_iter()
                .find_map(|e| crate::query::computed_from(e, scope)) =>
            {
                refuse(&errors::EXPRESSION, format!("|| beside {}", column.path()))
            }
            Expr::BinaryOp { left, op, right } => match need_of(op) {
                Some(need) => self.comparison(left, right, need, scope),
                None => {
                    self.scan(left, scope)?;
                    self.scan(right, scope)
                }
            },
            Expr::InList {
                expr: e,
                list,
                negated: _,
            } => self.in_list(e, list, scope),
            Expr::InSubquery {
                expr: e,
                subquery,
                negated: _,
            } => self.in_subquery(e, subquery, scope),
            Expr::Between {
                expr: e,
                low,
                high,
                negated: _,
            } => self.between(e, low, high, scope),
            Expr::Exists {
                subquery,
                negated: _,
            } => self.query(subquery, Some(scope), Mode::Exists).map(|_| ()),
            Expr::Subquery(subquery) => self.query(subquery, Some(scope), Mode::Nested).map(|_| ()),
            // BINARY before an operand, which is then compared by its bytes
            Expr::Cast {
                expr: e,
                data_type: DataType::Binary(_),
                ..
            } => match crate::query::computed_from(e, scope) {
                Some(column) => refuse(&errors::EXPRESSION, format!("BINARY {}", column.path())),
                None => self.scan(e, scope),
            },
            Expr::Function(function) => self.function(function, scope),
            Expr::MatchAgainst { columns, .. } => self.full_text(columns, scope),
            _ => {
                let mut operands = operands(expr)?.into_iter();
                operands.try_for_each(|e| self.scan(e, scope))
            }
        }
    }

    /// `MATCH (a, b) AGAINST ('word')` of plain columns. What is looked for is a constant.
    fn full_text(&mut self, columns: &[ObjectName], scope: &Scope) -> Planned<()> {
        for column in columns {
            let idents = column.0.iter().map(|part| part.as_ident().cloned());
            let Some(idents) = idents.collect() else {
                return NotUnderstood::Name.refuse();
            };
            self.scan(&Expr::CompoundIdentifier(idents), scope)?;
        }
        Ok(())
    }

    /// `k IS NULL`: the sealed cell is NULL where the value is, and so is the token. Of a group,
    /// only the token is known.
    fn null_test(&mut self, expr: &Expr, scope: &Scope) -> Planned<()> {
        let Some((range, column)) = self.column_of(expr, scope)? else {
            return self.scan(expr, scope);
        };
        // for the servers, a zero date in a NOT NULL column IS NULL
        let temporal = column.column().sql_type.is_some_and(|t| t.is_temporal());
        if temporal && !column.column().nullable {
            return refuse(&errors::EXPRESSION, format!("{} IS NULL", column.path()));
        }
        let is_it = |g: &ColumnUse| Arc::ptr_eq(&g.table, &column.table) && g.index == column.index;
        let by_token = self.grouped.iter().any(is_it);
        match equality(&column) {
            Ok((token, _)) if by_token => self.replace(range, token),
            _ => self.replace(range, column.sealed()),
        }
        Ok(())
    }

    /// `k IN (SELECT …)`: the query gives tokens.
    fn in_subquery(&mut self, expr: &Expr, subquery: &Query, scope: &Scope) -> Planned<()> {
        match self.column_of(expr, scope)? {
            Some((range, column)) => {
                self.replace(range, equality(&column)?.0);
                self.query(subquery, Some(scope), Mode::Tokens(&column))?;
            }
            None => {
                self.scan(expr, scope)?;
                self.query(subquery, Some(scope), Mode::Nested)?;
            }
        }
        Ok(())
    }

    fn between(&mut self, expr: &Expr, low: &Expr, high: &Expr, scope: &Scope) -> Planned<()> {
        let Some((range, column)) = self.column_of(expr, scope)? else {
            self.note_parameters(&[expr, low, high], scope);
            self.scan(expr, scope)?;
            self.scan(low, scope)?;
            return self.scan(high, scope);
        };
        self.ordered_with(&column, &[low, high])?;
        self.signed_bits(&column, &[low, high])?;
        let name = exact_order(&column).ok_or_else(|| no_order(&column))?;
        self.replace(range, name);
        let among = self.among(&column, &[low, high], true)?;
        self.compared(low, &column, Purpose::CompareOrder, among)?;
        self.compared(high, &column, Purpose::CompareOrder, among)
    }

    /// Refuses what MariaDB compares as signed numbers: the bits of a column that has 64 of them,
    /// between other bits. `b BETWEEN b'11' AND NULL` is false there for the largest values, and
    /// NULL for others.
    fn signed_bits(&self, column: &ColumnUse, bounds: &[&Expr]) -> Planned<()> {
        let kind = column.column().sql_type.map(|t| t.kind);
        let is_mariadb = self.request.settings.family == Family::MariaDb;
        if !is_mariadb || kind != Some(Kind::Bit { bits: 64 }) {
            return Ok(());
        }
        let is_bits = |e: &&Expr| match self.constant(e) {
            Some((_, Source::Literal { index, .. })) => matches!(
                self.request.template.literals[index].kind,
                LiteralKind::Hex | LiteralKind::Bits
            ),
            _ => false,
        };
        match bounds.iter().any(is_bits) {
            true => refuse(
                &errors::EXPRESSION,
                format!("{} between bits, which are signed there", column.path()),
            ),
            false => Ok(()),
        }
    }

    /// A name that must not be a protected column, and must exist: a column that this snapshot
    /// does not know may be protected by now, and constants beside it must not be sent.
    fn plain_name(&mut self, expr: &Expr, parts: &[Ident], scope: &Scope) -> Planned<()> {
        if let Some((_, column)) = self.column_of(expr, scope)? {
            return refuse(&errors::EXPRESSION, column.path());
        }
        if let [ident] = parts {
            let same = |(alias, _): &&(String, _)| same_name(alias, &ident.value);
            if let Some((_, column)) = scope.computed.iter().find(same) {
                return refuse(&errors::EXPRESSION, column.path());
            }
            match scope.alias(&ident.value) {
                Some(Some(column)) => return refuse(&errors::EXPRESSION, column.path()),
                Some(None) => return Ok(()),
                None => {}
            }
            if ident.value.starts_with('@') || is_niladic(&ident.value) {
                return Ok(());
            }
        }
        match scope.resolve(parts)? {
            Resolved::Unknown => Err(self.unknown_column(parts, scope)),
            _ => Ok(()),
        }
    }

    /// Puts a physical column in the place of a name.
    pub(crate) fn replace(&mut self, range: Range<usize>, physical: &str) {
        self.edit_sql(range, quoted(physical));
    }

    /// Puts a slot in the place of a constant that a column is compared with.
    fn compared(
        &mut self,
        expr: &Expr,
        column: &ColumnUse,
        purpose: Purpose,
        among: Option<Among>,
    ) -> Planned<()> {
        let Some((range, source)) = self.comparand(expr, column) else {
            return refuse(&errors::EXPRESSION, column.path());
        };
        let mut slot = self.slot(column, purpose, source);
        if let Piece::Slot(slot) = &mut slot {
            slot.among = among;
        }
        self.edit(range, vec![slot]);
        Ok(())
    }

    /// The list or range that these constants are, if the kind of one may change what another
    /// means: for dates and times in both, for numbers that a double cannot hold in a BETWEEN,
    /// which compares all of them as doubles if one is, and for whole numbers in a list of MySQL's,
    /// which forgets their signs beside others. Where the type has digits, it always matters.
    /// `None` where the plan shows that they are of one kind. Those with the word DATE or TIMESTAMP
    /// stand beside their like only.
    pub(crate) fn among(
        &self,
        column: &ColumnUse,
        list: &[&Expr],
        range: bool,
    ) -> Planned<Option<Among>> {
        let is_moment = |e: &&&Expr| matches!(self.constant(e), Some((_, Source::Moment { .. })));
        match list.iter().filter(is_moment).count() {
            0 => Ok(self.among_others(column, list, range)),
            // each is what it says
            all if all == list.len() => Ok(None),
            _ => refuse(&errors::EXPRESSION, column.path()),
        }
    }

    fn among_others(&self, column: &ColumnUse, list: &[&Expr], range: bool) -> Option<Among> {
        let ty = column.column().sql_type?;
        let is_date = ty.kind == Kind::Date;
        let exact = matches!(ty.kind, Kind::BigInt(_) | Kind::Decimal { .. });
        let is_mysql = self.request.settings.family == Family::MySql;
        let forgets_signs = is_mysql && !range && ty.is_integer();
        let kinds_matter = ty.is_temporal() || range && exact || forgets_signs;
        if !(kinds_matter || ty.digits.is_some()) || list.len() < 2 {
            return None;
        }
        let mut literals = list.iter().filter_map(|e| match self.constant(e) {
            Some((_, Source::Literal { index, .. })) => Some(index),
            _ => None,
        });
        let first = literals.next();
        let (mut end, mut count) = (
            first.map_or(0, |index| index + 1),
            usize::from(first.is_some()),
        );
        for index in literals {
            (end, count) = (index + 1, count + 1);
        }
        let first = first.unwrap_or(end);
        let known = match ty.is_temporal() {
            true => [LiteralKind::String, LiteralKind::String],
            false if forgets_signs => [LiteralKind::Integer, LiteralKind::Integer],
            false => [LiteralKind::Integer, LiteralKind::Decimal],
        };
        let kinds = &self.request.template.literals[first..end];
        let keywords = count < list.len();
        let plain = kinds.iter().all(|l| known.contains(&l.kind)) && !keywords;
        // a list of DATEs wants no time of day in any of them
        let among = Among {
            first,
            end,
            keywords,
            range,
        };
        // MySQL: in a range, a moment before 1970 stands elsewhere beside the zero date
        let is_range_of_stamps = range && matches!(ty.kind, Kind::Timestamp { .. });
        let counts = is_date && !range || is_range_of_stamps || ty.digits.is_some();
        (!plain || counts).then_some(among)
    }

    /// Refuses what `<` compares by name: members of ENUM and SET with anything but numbers.
    fn ordered_with(&self, column: &ColumnUse, others: &[&Expr]) -> Planned<()> {
        let enumerated = column.column().sql_type.is_some_and(|t| t.is_enumerated());
        let is_number = |e: &&Expr| match self.constant(e) {
            Some((_, Source::Literal { index, .. })) => matches!(
                self.request.template.literals[index].kind,
                LiteralKind::Integer | LiteralKind::Decimal
            ),
            Some((_, Source::Null | Source::Bool(_))) => true,
            _ => false,
        };
        if enumerated && !others.iter().all(is_number) {
            return refuse(&errors::EXPRESSION, column.path());
        }
        Ok(())
    }

    /// Refuses a list of numbers and texts for a column that is compared with the ones by number
    /// and with the others by name.
    pub(crate) fn alike(&self, column: &ColumnUse, list: &[Expr]) -> Planned<()> {
        let mixes = |t: &SqlType| t.is_enumerated() || t.is_bit();
        if !column.column().sql_type.is_some_and(|t| mixes(&t)) {
            return Ok(());
        }
        let kind = |e: &Expr| match self.constant(e) {
            Some((_, Source::Literal { index, .. })) => {
                Some(match self.request.template.literals[index].kind {
                    LiteralKind::Decimal => LiteralKind::Integer,
                    kind => kind,
                })
            }
            _ => None,
        };
        let mut kinds = list.iter().filter_map(kind);
        let first = kinds.next();
        if kinds.any(|kind| Some(kind) != first) {
            return refuse(&errors::EXPRESSION, column.path());
        }
        Ok(())
    }

    fn comparison(&mut self, left: &Expr, right: &Expr, need: Need, scope: &Scope) -> Planned<()> {
        let (l, r) = (self.column_of(left, scope)?, self.column_of(right, scope)?);
        match (l, r) {
            (None, None) => {
                self.note_parameters(&[left, right], scope);
                self.scan(left, scope)?;
                self.scan(right, scope)
            }
            (Some((range_l, a)), Some((range_r, b))) => {
                if !same_tokens(&a, &b) {
                    let about = format!("{} and {}", a.path(), b.path());
                    return refuse(&errors::OTHER_KEY, about);
                }
                let (x, y) = match need {
                    Need::Equality => (equality(&a)?.0, equality(&b)?.0),
                    Need::Order if a.column().sql_type.is_some_and(|t| t.is_enumerated()) => {
                        return refuse(&errors::EXPRESSION, a.path());
                    }
                    Need::Order => (
                        exact_order(&a).ok_or_else(|| no_order(&a))?,
                        exact_order(&b).ok_or_else(|| no_order(&b))?,
                    ),
                };
                let (x, y) = (x.to_string(), y.to_string());
                self.replace(range_l, &x);
                self.replace(range_r, &y);
                Ok(())
            }
            (Some((range, column)), None) => self.with_constant(range, column, right, need, scope),
            (None, Some((range, column))) => self.with_constant(range, column, left, need, scope),
        }
    }

    /// Notes the parameters among the operands of a comparison with a plain column.
    fn note_parameters(&mut self, operands: &[&Expr], scope: &Scope) {
        if self.request.settings.family != Family::MySql {
            return;
        }
        let Some(ty) = operands.iter().find_map(|e| scope.plain_type(e)) else {
            return;
        };
        let literals = &self.request.template.literals;
        let parameters = operands.iter().filter_map(|e| match self.constant(e)?.1 {
            Source::Literal { index, .. } => Some(index),
            _ => None,
        });
        let is_parameter = |index: &usize| literals[*index].kind == LiteralKind::Parameter;
        let noted: Vec<_> = parameters.filter(is_parameter).map(|n| (n, ty)).collect();
        self.beside_plain.extend(noted);
    }

    fn with_constant(
        &mut self,
        range: Range<usize>,
        column: ColumnUse,
        other: &Expr,
        need: Need,
        scope: &Scope,
    ) -> Planned<()> {
        if let Expr::Identifier(_) | Expr::CompoundIdentifier(_) = other {
            let what = match other {
                Expr::Identifier(name) if name.value.starts_with('@') => "a variable",
                _ => "a column that is not protected",
            };
            let about = format!("{} and {what}", column.path());
            return refuse(&errors::EXPRESSION, about);
        }
        if let Expr::Subquery(subquery) = other
            && need == Need::Equality
        {
            let name = equality(&column)?.0.to_string();
            self.replace(range, &name);
            return self
                .query(subquery, Some(scope), Mode::Tokens(&column))
                .map(|_| ());
        }
        let (name, purpose) = match need {
            Need::Equality => match equality(&column)? {
                (name, TokenKind::Order) => (name, Purpose::CompareOrder),
                (name, TokenKind::Equality) => (name, Purpose::CompareEquality),
            },
            Need::Order => {
                self.ordered_with(&column, &[other])?;
                let name = exact_order(&column).ok_or_else(|| no_order(&column))?;
                (name, Purpose::CompareOrder)
            }
        };
        let name = name.to_string();
        self.replace(range, &name);
        self.compared(other, &column, purpose, None)
    }

    fn in_list(&mut self, expr: &Expr, list: &[Expr], scope: &Scope) -> Planned<()> {
        let Some((range, column)) = self.column_of(expr, scope)? else {
            let all: Vec<&Expr> = std::iter::once(expr).chain(list).collect();
            self.note_parameters(&all, scope);
            return all.into_iter().try_for_each(|e| self.scan(e, scope));
        };
        self.alike(&column, list)?;
        let (name, kind) = equality(&column)?;
        let purpose = match kind {
            TokenKind::Order => Purpose::CompareOrder,
            TokenKind::Equality => Purpose::CompareEquality,
        };
        let name = name.to_string();
        self.replace(range, &name);
        let all: Vec<&Expr> = list.iter().collect();
        let among = self.among(&column, &all, false)?;
        list.iter()
            .try_for_each(|e| self.compared(e, &column, purpose, among))
    }

    /// The single argument of a call like `MIN(k)`, and whether it is `DISTINCT`.
    pub(crate) fn single_argument(function: &Function) -> Option<(&Expr, bool)> {
        let FunctionArguments::List(list) = &function.args else {
            return None;
        };
        match list.args.as_slice() {
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(e))] if list.clauses.is_empty() => {
                let distinct = matches!(
                    list.duplicate_treatment,
                    Some(sqlparser::ast::DuplicateTreatment::Distinct)
                );
                Some((e, distinct))
            }
            _ => None,
        }
    }

    pub(crate) fn function_name(function: &Function) -> String {
        function
            .name
            .to_string()
            .trim_matches('`')
            .to_ascii_lowercase()
    }

    /// A call; `COUNT` takes protected columns, nothing else does.
    fn function(&mut self, function: &Function, scope: &Scope) -> Planned<()> {
        if let Some(ident) = function.name.0.last().and_then(|p| p.as_ident()) {
            self.judge(ident)?;
        }
        if function.over.is_some()
            || function.filter.is_some()
            || !function.within_group.is_empty()
            || function.null_treatment.is_some()
            || !matches!(function.parameters, FunctionArguments::None)
        {
            return NotUnderstood::PartOf("a window or filter", "a function").refuse();
        }
        if Self::function_name(function) == "count"
            && let Some((argument, distinct)) = Self::single_argument(function)
            && let Some((range, column)) = self.column_of(argument, scope)?
        {
            let name = if distinct {
                equality(&column)?.0.to_string()
            } else {
                column.sealed().to_string()
            };
            self.replace(range, &name);
            return Ok(());
        }
        match &function.args {
            FunctionArguments::None => Ok(()),
            FunctionArguments::Subquery(q) => self.query(q, Some(scope), Mode::Nested).map(|_| ()),
            FunctionArguments::List(list) => {
                let keywords = keywords_of(function);
                for (n, argument) in list.args.iter().enumerate() {
                    match argument {
                        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(word)))
                            if let Some(keywords) = keywords.filter(|_| n == 0) =>
                        {
                            let is_word = |w: &&str| word.value.eq_ignore_ascii_case(w);
                            if word.quote_style.is_some() || !keywords.iter().any(is_word) {
                                return NotUnderstood::PartOf("the unit", "a function").refuse();
                            }
                            self.judge(word)?;
                        }
                        FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => self.scan(e, scope)?,
                        FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => {}
                        _ => return NotUnderstood::PartOf("an argument", "a function").refuse(),
                    }
                }
                for clause in &list.clauses {
                    match clause {
                        FunctionArgumentClause::OrderBy(keys) => {
                            keys.iter().try_for_each(|k| self.scan(&k.expr, scope))?;
                        }
                        FunctionArgumentClause::Limit(e) => self.scan(e, scope)?,
                        FunctionArgumentClause::Separator(_) => {}
                        _ => return NotUnderstood::ClauseOf("a function").refuse(),
                    }
                }
                Ok(())
            }
        }
    }
}

/// What may stand as the first argument: words of the language, such as the unit in
/// `TIMESTAMPDIFF(YEAR, a, b)`. `None` of functions without one, and of a name in quotes, which
/// may be a stored function's: its first argument may be a column.
fn keywords_of(function: &Function) -> Option<&'static [&'static str]> {
    const UNITS: [&str; 18] = [
        "microsecond",
        "second",
        "minute",
        "hour",
        "day",
        "week",
        "month",
        "quarter",
        "year",
        "sql_tsi_second",
        "sql_tsi_minute",
        "sql_tsi_hour",
        "sql_tsi_day",
        "sql_tsi_week",
        "sql_tsi_month",
        "sql_tsi_quarter",
        "sql_tsi_year",
        "frac_second",
    ];
    const FORMATS: [&str; 4] = ["date", "time", "datetime", "timestamp"];
    let name = function.name.0.last()?.as_ident()?;
    if function.name.0.len() > 1 || name.quote_style.is_some() {
        return None;
    }
    match name.value.to_ascii_lowercase().as_str() {
        "timestampdiff" | "timestampadd" => Some(&UNITS),
        "get_format" => Some(&FORMATS),
        _ => None,
    }
}

/// The operands of an expression that means nothing to protected columns: none of them may be one.
/// An expression that is not listed is refused.
fn operands(expr: &Expr) -> Planned<Vec<&Expr>> {
    Ok(match expr {
        Expr::Value(_) | Expr::TypedString(_) | Expr::Wildcard(_) => Vec::new(),
        // a literal behind the name of its character set
        Expr::Prefixed { value, .. } => vec![value],
        Expr::Nested(e)
        | Expr::IsTrue(e)
        | Expr::IsNotTrue(e)
        | Expr::IsFalse(e)
        | Expr::IsNotFalse(e)
        | Expr::IsUnknown(e)
        | Expr::IsNotUnknown(e) => vec![e],
        Expr::UnaryOp { op, expr: e } => match op {
            UnaryOperator::Plus
            | UnaryOperator::Minus
            | UnaryOperator::Not
            | UnaryOperator::BangNot
            | UnaryOperator::BitwiseNot => vec![e],
            _ => return NotUnderstood::Operator.refuse(),
        },
        Expr::Tuple(items) => items.iter().collect(),
        Expr::Like {
            negated: _,
            any: false,
            expr: e,
            pattern,
            escape_char,
        }
        | Expr::ILike {
            negated: _,
            any: false,
            expr: e,
            pattern,
            escape_char,
        } => {
            let escape = escape_char.as_deref();
            [e.as_ref(), pattern].into_iter().chain(escape).collect()
        }
        Expr::RLike {
            negated: _,
            expr: e,
            pattern,
            regexp: _,
        } => vec![e, pattern],
        Expr::Case {
            case_token: _,
            end_token: _,
            operand,
            conditions,
            else_result,
        } => {
            let outer = operand.iter().chain(else_result).map(AsRef::as_ref);
            let whens = conditions.iter().flat_map(|w| [&w.condition, &w.result]);
            outer.chain(whens).collect()
        }
        Expr::Cast { expr: e, .. }
        | Expr::Convert { expr: e, .. }
        | Expr::Collate {
            expr: e,
            collation: _,
        }
        | Expr::Extract { expr: e, .. }
        | Expr::Ceil { expr: e, field: _ }
        | Expr::Floor { expr: e, field: _ } => vec![e],
        Expr::Position { expr: a, r#in: b } => vec![a, b],
        Expr::Substring {
            expr: e,
            substring_from,
            substring_for,
            ..
        } => {
            let bounds = substring_from.iter().chain(substring_for);
            [e].into_iter().chain(bounds).map(AsRef::as_ref).collect()
        }
        Expr::Trim {
            expr: e,
            trim_where: _,
            trim_what,
            trim_characters,
        } => {
            let what = [e].into_iter().chain(trim_what).map(AsRef::as_ref);
            what.chain(trim_characters.iter().flatten()).collect()
        }
        Expr::Interval(interval) => vec![&interval.value],
        _ => return NotUnderstood::Expression.refuse(),
    })
}

/// Functions that are called without parentheses.
fn is_niladic(name: &str) -> bool {
    const NAMES: [&str; 9] = [
        "current_date",
        "current_time",
        "current_timestamp",
        "current_user",
        "localtime",
        "localtimestamp",
        "utc_date",
        "utc_time",
        "utc_timestamp",
    ];
    NAMES.iter().any(|n| name.eq_ignore_ascii_case(n))
}
