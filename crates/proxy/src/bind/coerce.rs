//! A value becomes one of the column's type, to store it or to compare the column with it.

use onionskin_plan::{Among, Source, errors};
use onionskin_value::{
    Charset, Comparand, CompareError, Context, Family, Input, Kind, SqlMode, TimeZone, compare,
    compare_by_digits,
};

use super::given::{Given, Origin, Wanted};
use super::rules::is_early;
use super::store::Complaints;
use super::together::{Together, forgets_signs, together};
use super::{Binder, Bound};
use crate::error::{Failure, Outcome};

impl<'a> Binder<'a> {
    /// Coerces a constant that the server compares together with others.
    pub(super) fn coerce_among(
        &mut self,
        column: usize,
        source: Source,
        among: Among,
        row: u64,
    ) -> Outcome<Bound> {
        let used = &self.keyed.plan.columns[column];
        let Some(ty) = used.column().sql_type.as_ref() else {
            return Err(Failure::refused(&errors::INTERNAL, used.path()));
        };
        if self.among != Some((column, among)) {
            self.together = together(among, ty, &self.values, self.state.family);
            self.forgets_signs = forgets_signs(among, ty, &self.values, self.state.family);
            self.among = Some((column, among));
        }
        let unlike = |why| Failure::refused(&errors::VALUE, format!("{} ({why})", used.path()));
        if self.together == Together::Unlike {
            return Err(unlike("constants of several kinds in IN or BETWEEN"));
        }
        self.as_doubles = self.together == Together::AsDoubles;
        self.beside_others = true;
        let bound = self.coerce(column, source, false, row);
        (self.as_doubles, self.beside_others) = (false, false);
        let is_beyond = matches!(bound, Ok(Bound::BelowAll | Bound::AboveAll));
        if self.forgets_signs && is_beyond {
            return Err(unlike("numbers of both signs beside other constants in IN"));
        }
        // MySQL stores each of several constants in a DATE before it compares, which loses the
        // time, or is an error
        let is_date = ty.kind == Kind::Date && self.state.family == Family::MySql;
        if is_date && !among.range && matches!(bound, Ok(Bound::Between)) {
            return Err(unlike("a time of day in a list of dates"));
        }
        // beside others, a moment before 1970 is above the zero date
        if matches!(ty.kind, Kind::Timestamp { .. }) && matches!(bound, Ok(Bound::BelowAll)) {
            return Ok(Bound::Between);
        }
        bound
    }

    /// Coerces a value; the payload lies in the scratch buffer.
    pub(super) fn coerce(
        &mut self,
        column: usize,
        source: Source,
        stores: bool,
        row: u64,
    ) -> Outcome<Bound> {
        let bound = self.coerced(column, source, stores, self.row_of(source, row));
        if let Err(failure) = &bound {
            // before such an error nothing is looked at; MariaDB misses a default there only in an
            // UPDATE
            let at_once = self.state.family == Family::MySql || self.updates();
            let early =
                at_once && matches!(failure, Failure::Value(e) if is_early(e, self.state.family));
            self.buffers.refused_among_others = !early && self.others_may_warn(source);
            let is_one_row = !self.mode.lenient_nulls;
            self.buffers.refused_in_listed_row = is_one_row && self.keyed.plan.facts.lists_columns;
            self.buffers.before_refused.clone_from(&self.warnings);
        }
        bound
    }

    #[inline]
    fn coerced(&mut self, column: usize, source: Source, stores: bool, row: u64) -> Outcome<Bound> {
        let keyed = self.keyed;
        let used = &keyed.plan.columns[column];
        let Some(ty) = used.column().sql_type.as_ref() else {
            return Err(Failure::refused(&errors::INTERNAL, used.path()));
        };
        let wanted = Wanted {
            column,
            used,
            ty,
            source,
            stores,
            row,
        };
        let mut payload = std::mem::take(&mut self.buffers.payload);
        let mut scratch = std::mem::take(&mut self.buffers.literal);
        let mut said = Complaints {
            warnings: Vec::new(),
            times: 1,
        };
        payload.clear();
        let given = self.given(&wanted, &mut scratch, &mut said.warnings);
        let bound = given.and_then(|given| match stores {
            true => self.stored(&wanted, given, &mut payload, &mut said),
            false => self.comparand(&wanted, given, &mut payload),
        });
        self.buffers.payload = payload;
        self.buffers.literal = scratch;
        self.buffers.refused_times = said.times;
        self.keep_warnings(&wanted, said.warnings);
        bound
    }

    /// The value as the column is compared with it; its payload is appended.
    #[inline]
    fn comparand(
        &self,
        wanted: &Wanted<'a>,
        given: Given<'_>,
        payload: &mut Vec<u8>,
    ) -> Outcome<Bound> {
        let ctx = self.context_of(wanted, given.origin);
        const MAX_YEAR: u64 = 9999;
        let is_bound = |source| match source {
            Source::Literal { index, .. } => self.values.is_parameter(index),
            _ => false,
        };
        // a text with the same digits is looked at both ways
        let digits;
        let input = match given.input {
            Input::Integer {
                negative,
                magnitude,
            } if self.as_doubles => {
                let sign = if negative { "-" } else { "" };
                digits = format!("{sign}{magnitude}");
                text_of(digits.as_bytes())
            }
            Input::Decimal(written) if self.as_doubles => text_of(written),
            // MySQL takes sixteen bits of it for a year
            Input::Integer { magnitude, .. }
                if wanted.ty.kind == Kind::Year
                    && magnitude > MAX_YEAR
                    && self.state.family == Family::MySql
                    && is_bound(wanted.source) =>
            {
                return Err(Failure::refused(&errors::VALUE, wanted.used.path()));
            }
            other => other,
        };
        let compared = match wanted.ty.digits {
            None => compare(wanted.ty, input, &ctx, payload),
            Some(_) => self.by_digits(wanted, input, &ctx, payload)?,
        };
        match compared {
            Ok(Comparand::Null) => Ok(Bound::Null),
            Ok(Comparand::Exact) => Ok(Bound::Exact),
            Ok(Comparand::Between) => Ok(Bound::Between),
            Ok(Comparand::BelowAll) => Ok(Bound::BelowAll),
            Ok(Comparand::AboveAll) => Ok(Bound::AboveAll),
            Err(e) => Err(Failure::refused(
                &errors::VALUE,
                format!("{} ({e})", wanted.used.path()),
            )),
        }
    }

    /// A number beside FLOAT(m,d) or DOUBLE(m,d). How near is equal depends on where it stands, and
    /// for parameters on what the server takes them for.
    #[cold]
    fn by_digits(
        &self,
        wanted: &Wanted<'a>,
        input: Input<'_>,
        ctx: &Context<'_>,
        payload: &mut Vec<u8>,
    ) -> Outcome<Result<Comparand, CompareError>> {
        let is_bound = match wanted.source {
            Source::Literal { index, .. } => self.values.is_bound(index),
            _ => false,
        };
        let (mut near, mut exact) = (Vec::new(), Vec::new());
        let by_digits = compare_by_digits(wanted.ty, input, ctx, &mut near);
        let by_itself = compare(wanted.ty, input, ctx, &mut exact);
        let is_same = by_digits == by_itself && near == exact;
        let in_range = self.among.is_some_and(|(_, among)| among.range);
        let (in_range, in_list) = match self.beside_others {
            true => (in_range, !in_range),
            false => (false, false),
        };
        // MySQL makes a FLOAT of such a constant first, if not too much is lost by its measure
        let is_made_float = self.state.family == Family::MySql
            && wanted.ty.kind == Kind::Float
            && !in_list
            && (by_digits == Ok(Comparand::Between) || (in_range && !is_same));
        if is_made_float || (!is_same && is_bound) {
            return Err(Failure::refused(
                &errors::VALUE,
                format!(
                    "{} (a number that is near to one of it)",
                    wanted.used.path()
                ),
            ));
        }
        let (compared, bytes) = match self.beside_others {
            true => (by_itself, exact),
            false => (by_digits, near),
        };
        payload.extend_from_slice(&bytes);
        Ok(compared)
    }

    /// What coercion depends on, for a value that comes from there.
    #[inline]
    pub(super) fn context_of<'c>(&'c self, wanted: &Wanted<'a>, origin: Origin) -> Context<'c>
    where
        'a: 'c,
    {
        let mut ctx = self.context(wanted.column, wanted.row);
        match wanted.source {
            Source::Implicit => ctx.sql_mode = SqlMode::empty(),
            _ if origin == Origin::MissingDefault => ctx.sql_mode = SqlMode::empty(),
            // that is how it was asked for
            Source::Present { .. } if matches!(wanted.ty.kind, Kind::Timestamp { .. }) => {
                ctx.time_zone = &TimeZone::UTC;
            }
            _ => {}
        }
        ctx
    }

    /// The payload of a stored value, for tier 2. `None` is NULL.
    pub fn stored_payload(&mut self, column: usize, source: Source) -> Outcome<Option<&[u8]>> {
        self.stored_payload_of(column, source, 1)
    }

    /// The same for the row with this number.
    pub fn stored_payload_of(
        &mut self,
        column: usize,
        source: Source,
        row: u64,
    ) -> Outcome<Option<&[u8]>> {
        self.last = None;
        match self.coerce(column, source, true, row)? {
            Bound::Null => Ok(None),
            _ => Ok(Some(&self.buffers.payload)),
        }
    }

    /// A constant that tier 2 compares a column with: where it stands, and its payload.
    pub fn compared(
        &mut self,
        column: usize,
        source: Source,
        among: Option<Among>,
    ) -> Outcome<(Bound, Vec<u8>)> {
        self.last = None;
        let bound = match among {
            None => self.coerce(column, source, false, 1)?,
            Some(among) => self.coerce_among(column, source, among, 1)?,
        };
        Ok((bound, self.buffers.payload.clone()))
    }
}

/// The digits of a number as a text.
fn text_of(digits: &[u8]) -> Input<'_> {
    Input::Text {
        bytes: digits,
        charset: Charset::Utf8mb4,
    }
}
