//! What the server makes of a value that it stores, and what it says of it.

use onionskin_plan::Source;
use onionskin_value::{Context, Family, Input, Kind, Level, SqlMode, Stored, Warning, store};

use super::given::{Given, Origin, Wanted};
use super::rules::{
    cannot_be_null, implicit_default, is_time, is_told_otherwise, null_warning, times_out_of_range,
};
use super::{Binder, Bound};
use crate::error::{Failure, Outcome};
use crate::server_errors::{ILL_FORMED, NO_DEFAULT, NOT_NULL, OUT_OF_RANGE, TRUNCATED};

/// What the server says of a value.
pub(super) struct Complaints {
    pub warnings: Vec<Warning>,
    /// How often it raises the error of a value that is refused.
    pub times: u64,
}

impl<'a> Binder<'a> {
    /// The value as it is stored; its payload is appended.
    #[inline]
    pub(super) fn stored(
        &self,
        wanted: &Wanted<'a>,
        given: Given<'_>,
        payload: &mut Vec<u8>,
        said: &mut Complaints,
    ) -> Outcome<Bound> {
        let ctx = self.context_of(wanted, given.origin);
        let (ty, input) = (wanted.ty, given.input);
        let is_parameter = given.origin == Origin::Parameter;
        let stored = store(ty, input, &ctx, payload, &mut said.warnings);
        if is_parameter && self.state.family == Family::MySql {
            let complained = stored.is_err() || !said.warnings.is_empty();
            let is_truncated = |w: &Warning| w.code == TRUNCATED;
            let named = said.warnings.iter().any(is_truncated) || stored.is_err();
            if is_told_otherwise(ty, input, complained, named) {
                return Err(wanted.refused());
            }
        }
        let stored = stored.map_err(|e| {
            said.times = times_out_of_range(ty, input, &ctx, is_parameter);
            Failure::store(e, &wanted.used.path())
        })?;
        if is_parameter {
            self.correct_warnings_of_parameter(wanted, input, &mut said.warnings)?;
        }
        match stored {
            Stored::Null if !wanted.used.column().nullable => {
                self.null_for_not_null(wanted, &ctx, payload, &mut said.warnings)
            }
            Stored::Null => Ok(Bound::Null),
            Stored::NullOrValue if wanted.used.column().nullable => Ok(Bound::Null),
            Stored::Value | Stored::NullOrValue => Ok(Bound::Exact),
        }
    }

    /// Servers warn of some literals, and not of parameters with the same value.
    fn correct_warnings_of_parameter(
        &self,
        wanted: &Wanted<'a>,
        input: Input<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Outcome<()> {
        let is_mysql = self.state.family == Family::MySql;
        if is_mysql && is_time(wanted.ty) {
            // which takes the time of day out of a date, and says nothing
            warnings.retain(|w| w.level != Level::Note);
        }
        // the parser says of literals alone that they are ill-formed, not of parameters
        warnings.retain(|w| w.code != ILL_FORMED);
        let is_text = matches!(input, Input::Text { .. });
        let too_great = warnings.iter().any(|w| w.code == OUT_OF_RANGE);
        match is_text && too_great && is_mysql && wanted.ty.is_integer() {
            // MySQL warns of such a parameter once more
            true => Err(wanted.refused()),
            false => Ok(()),
        }
    }

    /// NULL for a NOT NULL column: an error or, for several rows and with IGNORE, the type's own
    /// default.
    fn null_for_not_null(
        &self,
        wanted: &Wanted<'a>,
        ctx: &Context<'_>,
        payload: &mut Vec<u8>,
        warnings: &mut Vec<Warning>,
    ) -> Outcome<Bound> {
        let (ty, name) = (wanted.ty, &wanted.used.column().name);
        if self.state.family == Family::MariaDb && matches!(ty.kind, Kind::Timestamp { .. }) {
            // MariaDB takes the present time, which is known only where the plan asks for it
            return Err(wanted.refused());
        }
        let lenient =
            self.mode.ignore || (self.mode.lenient_nulls && !self.state.sql_mode.is_strict());
        if !lenient {
            return Err(Failure::Value(cannot_be_null(name)));
        }
        if matches!(ty.kind, Kind::Timestamp { .. } | Kind::Json) {
            return Err(wanted.refused());
        }
        if let Kind::Enum(_) = ty.kind {
            // its first member, or the value that stands for errors
            let number = u8::from(self.state.family == Family::MariaDb);
            payload.extend_from_slice(&[0, number]);
            warnings.push(null_warning(name));
            return Ok(Bound::Exact);
        }
        warnings.push(null_warning(name));
        let plain = Context {
            sql_mode: SqlMode::empty(),
            ..*ctx
        };
        store(ty, implicit_default(ty), &plain, payload, warnings)
            .map_err(|e| Failure::store(e, &wanted.used.path()))?;
        Ok(Bound::Exact)
    }

    /// Takes warnings over as the server lists them.
    #[inline]
    pub(super) fn keep_warnings(&mut self, wanted: &Wanted<'a>, warnings: Vec<Warning>) {
        for warning in warnings {
            if warning.level == Level::Note && !self.state.keeps_notes() {
                continue;
            }
            let once = self.is_said_once(wanted, &warning);
            let known = once && self.warnings.iter().any(|w| w.message == warning.message);
            if !known {
                self.warnings.push(warning);
            }
        }
    }

    /// Whether the server says this once for a statement: that a column which is left out has no
    /// default; on MySQL also that of one that is asked for by the word, and NULLs in an INSERT.
    fn is_said_once(&self, wanted: &Wanted<'a>, warning: &Warning) -> bool {
        let is_mysql = self.state.family == Family::MySql;
        let is_left_out = !matches!(wanted.source, Source::Default);
        match warning.code {
            NO_DEFAULT => is_mysql || is_left_out,
            NOT_NULL => is_mysql && !self.updates(),
            _ => false,
        }
    }
}
