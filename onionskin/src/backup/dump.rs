//! Which program makes a logical dump, and with which options it notes its position in the binlog.
//!
//! The program of the server's own family: mariadb-dump asks a MySQL server in words that MySQL 9
//! no longer knows.

use std::{ffi::OsString, path::PathBuf};

use onionskin_rowstream::client::{self, Client, ClientError};

use crate::private::{Family, ServerProgram};

/// How a server is dumped.
#[derive(Debug, PartialEq, Eq)]
pub struct Dumper {
    /// The program.
    pub program: PathBuf,
    /// Whose options it knows.
    pub family: Family,
    /// Options that make it note its position. None if that is not possible.
    pub position: Vec<OsString>,
    /// Why it is not, if it is not.
    pub without: Option<String>,
}

impl Default for Dumper {
    /// For a server that is known to the program's own configuration alone.
    fn default() -> Self {
        Self {
            program: "mariadb-dump".into(),
            family: Family::MariaDb,
            position: Vec::new(),
            without: None,
        }
    }
}

impl Dumper {
    /// Asks the server.
    pub fn of(client: &mut Client) -> Result<Self, ClientError> {
        let logs = client.query_text("SELECT @@log_bin")?;
        let is_mariadb = client.family() == client::Family::MariaDb;
        let mut dumper = Self::default();
        if !is_mariadb {
            let of_mysql = ServerProgram::of_family(Family::MySql).ok();
            let Some(program) = of_mysql.and_then(|server| server.dump()) else {
                dumper.without = Some(
                    "mysqldump, which would tell it, is not installed beside a mysqld in PATH or in ONIONSKIN_MYSQLD"
                        .into(),
                );
                return Ok(dumper);
            };
            dumper.program = program;
            dumper.family = Family::MySql;
        }
        if logs.as_deref() != Some("1") {
            dumper.without = Some("the server writes no binlog".into());
            return Ok(dumper);
        }
        let mut statuses = ["SHOW BINARY LOG STATUS", "SHOW MASTER STATUS"].into_iter();
        if !statuses.any(|status| client.query(status).is_ok()) {
            dumper.without = Some(
                match is_mariadb {
                    true => "the account may not see it (GRANT BINLOG MONITOR)",
                    false => "the account may not see it (GRANT REPLICATION CLIENT, RELOAD)",
                }
                .into(),
            );
            return Ok(dumper);
        }
        let gtids: Option<String> = match is_mariadb {
            true => None,
            false => client.query_text("SELECT @@gtid_mode")?,
        };
        // 2: as a comment
        let position = match (is_mariadb, gtids.as_deref()) {
            (true, _) => &["--master-data=2"][..],
            (false, Some("ON")) => &["--source-data=2", "--set-gtid-purged=COMMENTED"],
            (false, _) => &["--source-data=2", "--set-gtid-purged=OFF"],
        };
        dumper.position = position.iter().map(OsString::from).collect();
        Ok(dumper)
    }

    /// Leaves out what the user has decided.
    pub fn unless_in(mut self, arguments: &[OsString]) -> Self {
        let decided = |option: &OsString| {
            let name = |text: &OsString| {
                let text = text.to_string_lossy().replace('_', "-");
                let name = text.split('=').next().unwrap_or_default();
                // two names of one option
                name.replace("--master-", "--source-")
            };
            arguments
                .iter()
                .any(|argument| name(argument) == name(option))
        };
        self.position.retain(|option| !decided(option));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_says_goes_first() {
        let dumper = || Dumper {
            position: vec!["--source-data=2".into(), "--set-gtid-purged=OFF".into()],
            ..Dumper::default()
        };
        for (argument, left) in [
            ("--databases", 2),
            ("--master-data=0", 1),
            ("--source_data", 1),
            ("--set-gtid-purged=ON", 1),
        ] {
            let position = dumper().unless_in(&[argument.into()]).position;
            assert_eq!(position.len(), left, "{argument}");
        }
    }
}
