//! Which server a backup is of.
//!
//! MySQL has a UUID. MariaDB has nothing of the kind, so the place where it runs stands for it: a server that moves is then taken
//! for another one, which keeps more of its backups, never fewer.

use mysql::prelude::Queryable;
use onionskin_backup::manifest::Server;

/// Asks the server.
pub fn of(conn: &mut mysql::Conn) -> Result<Server, mysql::Error> {
    let version: String = conn.query_first("SELECT @@version")?.unwrap_or_default();
    if version.contains("MariaDB") {
        // Not put together by the server, whose sql_mode and character sets are anybody's.
        let place: Option<(String, u32, String)> =
            conn.query_first("SELECT @@hostname, @@port, @@datadir")?;
        return Ok(Server {
            place: place.map(|(host, port, datadir)| format!("{host}:{port} {datadir}")),
            ..Server::new("mariadb", version)
        });
    }
    Ok(Server {
        uuid: conn.query_first("SELECT @@server_uuid")?,
        ..Server::new("mysql", version)
    })
}

/// Whether both are one server, as far as is known.
pub fn may_be_one(one: Option<&Server>, other: Option<&Server>) -> bool {
    let identity = |server: Option<&Server>| server?.identity().map(str::to_owned);
    match (identity(one), identity(other)) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

/// For messages.
pub fn text(server: Option<&Server>) -> &str {
    server.and_then(Server::identity).unwrap_or("not named")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_may_be_the_same() {
        let named = |place: Option<&str>| Server {
            place: place.map(str::to_owned),
            ..Server::new("mariadb", "10.11")
        };
        let (one, two, none) = (named(Some("a")), named(Some("b")), named(None));
        assert!(may_be_one(Some(&one), Some(&one)));
        assert!(!may_be_one(Some(&one), Some(&two)));
        assert!(may_be_one(Some(&one), Some(&none)) && may_be_one(Some(&one), None));
        assert_eq!(text(Some(&two)), "b");
    }
}
