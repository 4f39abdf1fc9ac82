//! Errors and warnings in the servers' words.

use onionskin_plan::Facts;
use onionskin_value::{Family, Level, Warning};

use crate::error::Failure;
use crate::exchange::{Cells, Rows};

/// The servers' number for words that a later version will not have.
pub(crate) const DEPRECATED: u16 = 1287;
/// MySQL's words about `VALUES()`.
const VALUES_CALL: &str = "'VALUES function' is deprecated and will be removed in a future release. Please use an alias \
                           (INSERT INTO ... VALUES (...) AS alias) and replace VALUES(col) in the ON DUPLICATE KEY UPDATE \
                           clause with alias.col instead";

/// What MySQL says of each call of `VALUES()` in a statement, where the server is sent a text
/// without them.
pub(crate) fn deprecated_calls(facts: &Facts, family: Family) -> Vec<Warning> {
    let calls = match family {
        Family::MySql => facts.values_calls,
        Family::MariaDb => 0,
    };
    let warning = Warning {
        level: Level::Warning,
        code: DEPRECATED,
        message: VALUES_CALL.into(),
    };
    vec![warning; calls]
}

/// Whether an error of the server's stands in what `SHOW WARNINGS` has shown.
pub(crate) fn tells_of(list: &Rows, failure: &Failure) -> bool {
    let Failure::Server { code, .. } = failure else {
        return false;
    };
    list.iter().any(|row| number(row) == Some(*code))
}

/// Gives the error in the list the client's words. One that stands there already has others of its
/// number beside it, which have words of their own.
pub(crate) fn tell_as(list: &mut Rows, code: u16, message: &[u8]) {
    let is_told = |row: &Cells| row.get(2).and_then(Option::as_deref) == Some(message);
    if !hides_token(message) && list.iter().any(is_told) {
        return;
    }
    for row in list.iter_mut().filter(|row| number(row) == Some(code)) {
        if let [Some(level), _, Some(text)] = row.as_mut_slice()
            && level == b"Error"
        {
            *text = message.to_vec();
        }
    }
}

/// The number of a row of `SHOW WARNINGS`.
fn number(row: &[Option<Vec<u8>>]) -> Option<u16> {
    let text = row.get(1)?.as_deref()?;
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Whether an error's text was changed because the server's shows a token.
pub(crate) fn hides_token(message: &[u8]) -> bool {
    message.starts_with(b"Duplicate entry '(protected)'")
}

/// Whether a warning of this code and text is about `VALUES()` in ON DUPLICATE KEY UPDATE, which
/// MySQL will not have for ever.
pub(crate) fn tells_of_values(code: Option<&[u8]>, text: Option<&[u8]>) -> bool {
    let code = code.and_then(|code| std::str::from_utf8(code).ok()?.parse().ok());
    let about = |text| memchr::memmem::find(text, b"VALUES function").is_some();
    code == Some(DEPRECATED) && text.is_some_and(about)
}
