//! A server that counts: it looks the names of addresses up, and is reached by one that it counts
//! broken-off logins of.

use std::process::Command;
use std::time::Duration;

use crate::{Kind, Proxy, ProxyOptions, Server, ServerOptions, Session, announce, wait_until};

/// A server with name resolution, and an address of this machine that it knows by name.
pub struct Far {
    /// The server.
    pub server: Server,
    /// An address of this machine that is no loopback address.
    pub address: String,
    admin: Session,
}

impl Far {
    /// Starts it; `None` where it cannot be, which is said.
    pub fn start(kind: Kind, extra: &[&str]) -> Option<Far> {
        let Some(address) = own_address() else {
            announce("SKIPPED: this machine has no address but 127.0.0.1");
            return None;
        };
        let may = Command::new("unshare").args(["--mount", "true"]).status();
        if !may.is_ok_and(|status| status.success()) {
            announce("SKIPPED: no file of hosts of a server's own without unshare --mount");
            return None;
        }
        let server = Server::start(
            kind,
            ServerOptions {
                hosts: Some(format!("127.0.0.1 localhost\n{address} far.example\n")),
                extra: extra.iter().map(|option| option.to_string()).collect(),
                ..ServerOptions::default()
            },
        )?;
        let mut admin = server.connect();
        // Its method asks for the password where the server has not seen it before.
        admin.must("CREATE USER far@'%' IDENTIFIED BY 'away'");
        admin.must("GRANT ALL ON *.* TO far@'%'");
        Some(Far {
            server,
            address,
            admin,
        })
    }

    /// A proxy that the server sees at the address. `settings` as in [`ProxyOptions`].
    pub fn proxy(&self, settings: &str) -> Proxy {
        let options = ProxyOptions {
            backend: Some(format!("{}:{}", self.address, self.server.port())),
            settings: settings.into(),
            ..ProxyOptions::default()
        };
        Proxy::start_with(&self.server, options)
    }

    /// Connections from the address that the server counted as broken off, since it was started.
    pub fn broken_off(&mut self) -> u64 {
        let sql = format!(
            "SELECT COALESCE(SUM(COUNT_HANDSHAKE_ERRORS), 0) FROM performance_schema.host_cache WHERE ip = '{}'",
            self.address
        );
        let count = self.admin.text(&sql).expect("the host cache");
        count.parse().expect("a number")
    }

    /// The server's connections, this one included.
    pub fn connections(&mut self) -> u64 {
        let sql =
            "SELECT COUNT(*) FROM information_schema.processlist WHERE user <> 'event_scheduler'";
        self.admin
            .text(sql)
            .expect("a count")
            .parse()
            .expect("a number")
    }

    /// Waits until the server has no connection but the administrator's.
    pub fn wait_until_idle(&mut self) {
        wait_until(
            "the server has no login left",
            Duration::from_secs(30),
            || self.connections() == 1,
        );
    }
}

/// An address of this machine by which servers count: they do not for 127.0.0.1.
pub fn own_address() -> Option<String> {
    let output = Command::new("hostname").arg("-I").output().ok()?;
    let addresses = String::from_utf8(output.stdout).ok()?;
    let mut addresses = addresses.split_whitespace();
    addresses.find(|a| a.contains('.')).map(str::to_owned)
}
