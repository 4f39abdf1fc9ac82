//! The value that a slot's source gives.

use onionskin_plan::{ColumnUse, Source, errors};
use onionskin_schema::{Default as ColumnDefault, DefaultLiteral, bits_of_default};
use onionskin_value::{
    Charset, DateTimeParts, Family, Input, Kind, SqlType, Warning, plain_moment,
};

use super::Binder;
use super::rules::{
    check_conversion, implicit_default, implicit_value, is_misread, is_number_beyond, no_default,
    no_default_warning, out_of_range,
};
use super::values::number_of_hybrid;
use crate::error::{Failure, Outcome};

/// What a value is wanted for.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub column: usize,
    pub used: &'a ColumnUse,
    pub ty: &'a SqlType,
    pub source: Source,
    /// It is stored, not compared.
    pub stores: bool,
    /// For messages.
    pub row: u64,
}

impl Wanted<'_> {
    /// A value of which it is not known what the server does with it.
    pub fn refused(&self) -> Failure {
        Failure::refused(&errors::VALUE, self.used.path())
    }
}

/// A value, and where it comes from.
#[derive(Clone, Copy)]
pub(super) struct Given<'v> {
    pub input: Input<'v>,
    pub origin: Origin,
}

/// As far as servers treat values differently by it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The text, or the definition of the column.
    Text,
    Parameter,
    /// The column's type, because the column has no default. The server warns of that.
    MissingDefault,
}

impl<'a> Binder<'a> {
    /// The value that is wanted. `scratch` is where it may lie.
    #[inline]
    pub(super) fn given<'s>(
        &self,
        wanted: &Wanted<'a>,
        scratch: &'s mut Vec<u8>,
        warnings: &mut Vec<Warning>,
    ) -> Outcome<Given<'s>>
    where
        'a: 's,
    {
        let input = match wanted.source {
            Source::Literal { index, negative } => {
                return self.literal(wanted, index, negative, scratch);
            }
            Source::Moment { index, is_date } => {
                let parts = self.moment(index, is_date, wanted)?;
                Input::Temporal(parts)
            }
            Source::Joined { first, count } => {
                let range = first..first + usize::from(count);
                self.values
                    .joined(range, self.state, scratch, wanted.used)?
            }
            Source::Default | Source::Omitted { .. } => return self.default(wanted, warnings),
            Source::Null => Input::Null,
            Source::Bool(truth) => Input::Bool(truth),
            // an empty text, which the column's own condition does not take
            Source::Implicit if matches!(wanted.ty.kind, Kind::Json) => {
                return Err(wanted.refused());
            }
            Source::Implicit => implicit_value(wanted.ty),
            Source::Present { digits, asked } => self.present(wanted, digits, asked)?,
        };
        Ok(Given {
            input,
            origin: Origin::Text,
        })
    }

    /// `DATE '2020-01-31'`: a date that there is, as servers print it. Of others it is the server's
    /// to complain.
    fn moment(&self, index: usize, is_date: bool, wanted: &Wanted<'a>) -> Outcome<DateTimeParts> {
        let path = wanted.used.path();
        let mut scratch = Vec::new();
        let input = self
            .values
            .input(index, false, self.state, &mut scratch, &path)?;
        let parts = match input {
            Input::Text { bytes, .. } => plain_moment(bytes, is_date),
            _ => None,
        };
        let takes = matches!(
            wanted.ty.kind,
            Kind::Date | Kind::DateTime { .. } | Kind::Timestamp { .. }
        );
        parts.filter(|_| takes).ok_or_else(|| wanted.refused())
    }

    /// The statement's time.
    fn present(&self, wanted: &Wanted<'a>, digits: u8, asked: bool) -> Outcome<Input<'static>> {
        let Some(time) = self.buffers.present else {
            return Err(Failure::refused(&errors::INTERNAL, "the statement's time"));
        };
        let parts = time.for_column(&wanted.ty.kind, digits, asked);
        Ok(Input::Temporal(parts.ok_or_else(|| wanted.refused())?))
    }

    // --- literals and parameters ---

    #[inline]
    fn literal<'s>(
        &self,
        wanted: &Wanted<'a>,
        index: usize,
        negative: bool,
        scratch: &'s mut Vec<u8>,
    ) -> Outcome<Given<'s>>
    where
        'a: 's,
    {
        let values = &self.values;
        let (ty, used) = (Some(wanted.ty), wanted.used);
        let mut input = values.input_for(ty, index, negative, self.state, scratch, used)?;
        if let Input::Hex(bytes) = input
            && self.state.family == Family::MariaDb
        {
            input = self.mariadb_hex(wanted, index, bytes)?;
        }
        if values.param_number(index).is_none() {
            if let Some(variable) = values.literals.get(index).and_then(|l| values.variable(l)) {
                check_conversion(wanted.ty, input, Some(&variable.collation))?;
            }
            return Ok(Given {
                input,
                origin: Origin::Text,
            });
        }
        if self.state.family == Family::MySql {
            self.check_mysql_parameter(wanted, input)?;
        }
        Ok(Given {
            input,
            origin: Origin::Parameter,
        })
    }

    /// A hexadecimal or binary literal, which MariaDB takes for a number or a text by its form.
    fn mariadb_hex<'s>(
        &self,
        wanted: &Wanted<'a>,
        index: usize,
        bytes: &'s [u8],
    ) -> Outcome<Input<'s>> {
        let as_it_is = Input::Hex(bytes);
        let is_hybrid = self.values.is_hybrid(index);
        if wanted.stores && wanted.ty.is_numeric() && is_hybrid {
            return Ok(number_of_hybrid(bytes).unwrap_or(as_it_is));
        }
        // as a text, and so as the number that stands in it, if there is one
        if !wanted.stores && wanted.ty.is_bit() && !is_hybrid {
            let about = format!("{} (a text compared with BIT)", wanted.used.path());
            return Err(Failure::refused(&errors::VALUE, about));
        }
        Ok(as_it_is)
    }

    /// What MySQL says of a parameter before it looks at the column, and what it reads otherwise.
    fn check_mysql_parameter(&self, wanted: &Wanted<'a>, input: Input<'_>) -> Outcome<()> {
        check_conversion(wanted.ty, input, None)?;
        if is_misread(wanted.ty, input) {
            return Err(wanted.refused());
        }
        if wanted.stores && is_number_beyond(wanted.ty, input) {
            let strict = self.state.sql_mode.is_strict() && !self.mode.ignore;
            // in an INSERT, the other parameters decide whether it is a number or the bytes of a
            // text
            return Err(match strict && self.updates() {
                true => Failure::Value(out_of_range(&wanted.used.column().name, wanted.row)),
                false => wanted.refused(),
            });
        }
        Ok(())
    }

    // --- defaults ---

    fn default(&self, wanted: &Wanted<'a>, warnings: &mut Vec<Warning>) -> Outcome<Given<'a>> {
        let column = wanted.used.column();
        let input = match &column.default {
            None if !column.nullable || column.has_lost_default() => {
                return self.missing_default(wanted, warnings);
            }
            Some(ColumnDefault::Literal(DefaultLiteral::Value(text))) => {
                default_of_definition(wanted.ty, text)
            }
            // the plan has it computed
            Some(ColumnDefault::Literal(DefaultLiteral::Expression(_))) => {
                let path = wanted.used.path();
                return Err(Failure::refused(&errors::COMPUTED_DEFAULT, path));
            }
            Some(ColumnDefault::Literal(DefaultLiteral::Null)) | None if column.nullable => {
                Input::Null
            }
            _ => implicit_default(wanted.ty),
        };
        Ok(Given {
            input,
            origin: Origin::Text,
        })
    }

    /// What a column gets that has no default, where that is no error.
    fn missing_default(
        &self,
        wanted: &Wanted<'a>,
        warnings: &mut Vec<Warning>,
    ) -> Outcome<Given<'static>> {
        let name = &wanted.used.column().name;
        let is_mariadb_update = self.updates() && self.state.family == Family::MariaDb;
        if matches!(wanted.ty.kind, Kind::Enum(_)) && !is_mariadb_update {
            // which takes its first member, and says nothing
            return Ok(Given {
                input: implicit_value(wanted.ty),
                origin: Origin::Text,
            });
        }
        let is_strict = self.state.sql_mode.is_strict() && !self.mode.ignore;
        if is_mariadb_update || is_strict {
            return Err(Failure::Value(no_default(name)));
        }
        if wanted.used.column().nullable && wanted.source == Source::Default {
            // NULL in a new row, an empty value in one that is there, and a warning for each row
            return Err(wanted.refused());
        }
        warnings.push(no_default_warning(name));
        if wanted.used.column().nullable {
            return Ok(Given {
                input: Input::Null,
                origin: Origin::Text,
            });
        }
        if matches!(wanted.ty.kind, Kind::Timestamp { .. } | Kind::Json) {
            // depending on its settings, the server takes the present time
            return Err(wanted.refused());
        }
        Ok(Given {
            input: implicit_default(wanted.ty),
            origin: Origin::MissingDefault,
        })
    }
}

/// The text form of a definition, in the column's own terms.
pub(crate) fn default_of_definition<'t>(ty: &SqlType, text: &'t [u8]) -> Input<'t> {
    if let (true, Some(magnitude)) = (ty.is_bit(), bits_of_default(text)) {
        Input::Integer {
            negative: false,
            magnitude,
        }
    } else if ty.is_binary() {
        Input::Bytes(text)
    } else {
        Input::Text {
            bytes: text,
            charset: Charset::Utf8mb4,
        }
    }
}
