//! The settings of a server whose rows can be followed.

use super::error::{BinlogError, BinlogResult};
use crate::client::{Client, Family};

/// Checks that the server writes whole rows to its binlog. Sessions may still set something else
/// for themselves; what they write is then an error where it is met.
pub fn check_server(client: &mut Client) -> BinlogResult<()> {
    check_binlog(client)?;
    let settings: [(&'static str, &'static str); 2] =
        [("binlog_format", "ROW"), ("binlog_row_image", "FULL")];
    for (variable, must) in settings {
        let Some(is) = variable_value(client, variable)? else {
            continue;
        };
        if !is.eq_ignore_ascii_case(must) {
            return Err(BinlogError::Setting { variable, is, must });
        }
    }
    if client.family() == Family::MySql
        && let Some(is) = variable_value(client, "binlog_row_value_options")?
        && !is.is_empty()
    {
        return Err(BinlogError::Setting {
            variable: "binlog_row_value_options",
            is,
            must: "empty",
        });
    }
    Ok(())
}

/// Checks only that the server has a binlog.
pub fn check_binlog(client: &mut Client) -> BinlogResult<()> {
    let is = variable_value(client, "log_bin")?.unwrap_or_default();
    match is.as_str() {
        "1" | "ON" => Ok(()),
        _ => Err(BinlogError::Setting {
            variable: "log_bin",
            is: "OFF".into(),
            must: "ON",
        }),
    }
}

/// A global variable as text; `None` if the server does not have it.
pub fn variable_value(client: &mut Client, name: &str) -> BinlogResult<Option<String>> {
    let rows = client.query(&format!("SHOW GLOBAL VARIABLES LIKE '{name}'"))?;
    let cell = rows
        .into_iter()
        .next()
        .and_then(|row| row.into_iter().nth(1));
    Ok(cell
        .flatten()
        .map(|cell| String::from_utf8_lossy(&cell).into_owned()))
}
