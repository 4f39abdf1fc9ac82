//! The database that a login asks for.

use onionskin_schema::folded;
use onionskin_value::Charset;

use super::error::{LoginError, LoginResult, OTHER_DATABASE};

/// The database that a client's packet names, if it names one.
pub(crate) fn named(name: &[u8], charset: Option<Charset>) -> Option<String> {
    if name.is_empty() {
        return None;
    }
    let converted = charset.and_then(|charset| charset.to_utf8(name));
    let name = converted.unwrap_or_else(|| name.to_vec());
    Some(String::from_utf8_lossy(&name).into_owned())
}

/// Whether this is how a server calls the database of this name: under `lower_case_table_names` in
/// small letters.
pub(crate) fn is_called(name: &str, told: &str) -> bool {
    told == name || told == folded(name)
}

/// A session begins in the database that its client has asked for, or in none. `told` is the
/// server's word.
pub(crate) fn must_be(told: Option<&str>, asked: Option<&str>) -> LoginResult<()> {
    let is_it = match (asked, told) {
        (Some(asked), Some(told)) => is_called(asked, told),
        (asked, told) => asked.is_none() && told.is_none(),
    };
    match is_it {
        true => Ok(()),
        false => {
            tracing::warn!(
                told,
                asked,
                "the server puts a new session into another database"
            );
            Err(LoginError::Refused(OTHER_DATABASE))
        }
    }
}
