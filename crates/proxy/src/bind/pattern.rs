//! What stands behind LIKE, for grams and for tier 2.

use onionskin_plan::{ColumnUse, Escape, Source, errors};
use onionskin_value::{Family, Input, Kind, LikePattern, Pattern, SqlMode};

use super::Binder;
use crate::error::{Failure, Outcome};

impl Binder<'_> {
    /// A pattern that a column is matched with.
    pub fn pattern(&mut self, column: usize, source: Source, escape: Escape) -> Outcome<Pattern> {
        let used = &self.keyed.plan.columns[column];
        let unclear = |why: &str| unclear(used, why);
        let Some(ty) = used.column().sql_type.as_ref() else {
            return Err(Failure::refused(&errors::INTERNAL, used.path()));
        };
        let pads = self
            .state
            .sql_mode
            .contains(SqlMode::PAD_CHAR_TO_FULL_LENGTH);
        if pads && matches!(ty.kind, Kind::Char { .. }) {
            return Err(unclear("LIKE under PAD_CHAR_TO_FULL_LENGTH"));
        }
        let escape = self.escape(used, escape)?;
        let mut buffer = Vec::new();
        let input = match source {
            Source::Null => Input::Null,
            Source::Bool(truth) => Input::Bool(truth),
            Source::Literal { index, negative } => {
                let path = used.path();
                let ty = Some(ty);
                self.values
                    .input_for(ty, index, negative, self.state, &mut buffer, &path)?
            }
            Source::Joined { first, count } => {
                let range = first..first + usize::from(count);
                self.values.joined(range, self.state, &mut buffer, used)?
            }
            Source::Moment { .. }
            | Source::Default
            | Source::Omitted { .. }
            | Source::Implicit
            | Source::Present { .. } => {
                return Err(unclear("LIKE"));
            }
        };
        LikePattern::read(ty, input, escape).map_err(|e| unclear(&e.to_string()))
    }
    /// The character behind ESCAPE.
    fn escape(&self, used: &ColumnUse, escape: Escape) -> Outcome<onionskin_value::Escape> {
        let Escape::Literal(index) = escape else {
            return Ok(onionskin_value::Escape::Backslash);
        };
        let mut buffer = Vec::new();
        let path = used.path();
        let input = self
            .values
            .input(index, false, self.state, &mut buffer, &path)?;
        let Input::Text { bytes, .. } = input else {
            return Err(unclear(used, "ESCAPE"));
        };
        match *bytes {
            [byte] if byte.is_ascii() => Ok(onionskin_value::Escape::Character(char::from(byte))),
            // servers refuse it then
            [] if self.state.lex_mode().no_backslash_escapes => Err(unclear(used, "ESCAPE")),
            [] => {
                let is_binary = used.column().sql_type.is_some_and(|ty| ty.is_binary());
                Ok(match self.state.family == Family::MariaDb && !is_binary {
                    true => onionskin_value::Escape::Backslash,
                    false => onionskin_value::Escape::Character('\0'),
                })
            }
            _ => {
                let why = "ESCAPE with more or less than one ASCII character";
                Err(unclear(used, why))
            }
        }
    }
}

/// A pattern of which it is not known what the server does with it.
fn unclear(used: &ColumnUse, why: &str) -> Failure {
    Failure::refused(&errors::VALUE, format!("{} ({why})", used.path()))
}
