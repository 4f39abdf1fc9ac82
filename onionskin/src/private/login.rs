//! Whether whoever reaches the private server may do everything there.

use std::path::Path;

use mysql::{Conn, OptsBuilder};

/// Whether `root` may log in without a password, as after the first start. Also if that cannot be
/// found out.
pub fn root_is_open(socket: &Path) -> bool {
    /// ER_ACCESS_DENIED_ERROR, and its relatives for a missing password and a plugin that does not
    /// fit.
    const DENIED: [u16; 3] = [1045, 1698, 1251];
    let options = OptsBuilder::new()
        .socket(Some(socket.to_string_lossy()))
        .user(Some("root"));
    match Conn::new(options) {
        Ok(_) => true,
        Err(mysql::Error::MySqlError(error)) => !DENIED.contains(&error.code),
        Err(_) => true,
    }
}
