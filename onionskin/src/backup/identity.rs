//! Which server a backup is of.
//!
//! MySQL has a UUID. MariaDB has nothing of the kind, so the place where it runs stands for it: a
//! server that moves is then taken for another one, which keeps more of its backups, never fewer.

use onionskin_backup::manifest::Server;
use onionskin_rowstream::client::{Client, ClientError, Family};

/// Asks the server.
pub fn of(client: &mut Client) -> Result<Server, ClientError> {
    let version = client.query_text("SELECT @@version")?.unwrap_or_default();
    let server_id = client.query_text("SELECT @@GLOBAL.server_id")?;
    let server_id = server_id.and_then(|id| id.parse().ok());
    if client.family() == Family::MariaDb {
        let mut asked = |variable: &str| client.query_text(&format!("SELECT @@{variable}"));
        // Not put together by the server, whose sql_mode and character sets are anybody's.
        let place = [asked("hostname")?, asked("port")?, asked("datadir")?];
        return Ok(Server {
            server_id,
            place: match place {
                [Some(host), Some(port), Some(datadir)] => Some(format!("{host}:{port} {datadir}")),
                _ => None,
            },
            ..Server::new("mariadb", version)
        });
    }
    Ok(Server {
        server_id,
        uuid: client.query_text("SELECT @@server_uuid")?,
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
