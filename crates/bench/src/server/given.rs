//! A server that somebody runs, by its DSN.

use mysql::{Opts, OptsBuilder};

use super::{Address, Session};
use crate::error::BenchError;

/// `mysql://user@host:port`, or `mysql://user:password@host:port`
#[derive(Clone, Debug)]
pub struct Dsn {
    address: Address,
}

impl Dsn {
    /// From the command line, which everybody on the machine can read: `password` is that of an
    /// account that is named without one. A database is of no use and refused, so that nobody
    /// thinks it is the one that is used.
    pub fn parse(text: &str, password: Option<&str>) -> Result<Self, BenchError> {
        let wrong = |said: &str| BenchError::Dsn {
            given: without_password(text),
            said: said.into(),
        };
        let options = Opts::from_url(text).map_err(|error| wrong(&error.to_string()))?;
        if options.get_db_name().is_some_and(|name| !name.is_empty()) {
            return Err(wrong(
                "it names a database, and databases are made as they are needed",
            ));
        }
        let user = options.get_user().unwrap_or_default().to_owned();
        if user.is_empty() {
            return Err(wrong("it names no user"));
        }
        Ok(Self {
            address: Address {
                host: options.get_ip_or_hostname().to_string(),
                port: options.get_tcp_port(),
                user,
                password: options
                    .get_pass()
                    .or(password)
                    .unwrap_or_default()
                    .to_owned(),
            },
        })
    }

    /// Where it leads.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

/// Everything between the last colon of the account and the at sign is taken out.
fn without_password(text: &str) -> String {
    let Some((account, host)) = text.rsplit_once('@') else {
        return text.to_owned();
    };
    let start = account.find("://").map_or(0, |at| at + 3);
    match account[start..].find(':') {
        Some(colon) => format!("{}:***@{host}", &account[..start + colon]),
        None => text.to_owned(),
    }
}

/// The server behind a DSN.
pub struct Given {
    dsn: Dsn,
}

impl Given {
    /// A session, to ask which server it is.
    pub fn peek(dsn: &Dsn) -> Result<Session, BenchError> {
        Self { dsn: dsn.clone() }.session()
    }

    /// Connects, and finds out whether the account may do what is needed, by doing it.
    pub fn open(dsn: Dsn) -> Result<Self, BenchError> {
        let given = Self { dsn };
        let mut session = given.session()?;
        let address = given.address();
        let database = "onionskin_bench_rights";
        let no_rights = |doing: &str, said: String| BenchError::NoRights {
            user: address.user.clone(),
            server: address.text(),
            doing: doing.into(),
            said,
        };
        let found = session.rows("SHOW DATABASES")?;
        if let Some(row) = found
            .iter()
            .find(|row| row[0].starts_with("onionskin_bench_"))
        {
            return Err(BenchError::DatabaseExists {
                database: row[0].clone(),
                server: address.text(),
            });
        }
        session
            .attempt(&format!("CREATE DATABASE {database}"))
            .map_err(|said| no_rights("create databases", said))?;
        let tried = [
            (
                "create tables",
                format!("CREATE TABLE {database}.t (id INT PRIMARY KEY, v INT)"),
            ),
            (
                "change tables",
                format!("ALTER TABLE {database}.t ADD COLUMN w INT"),
            ),
            (
                "insert",
                format!("INSERT INTO {database}.t VALUES (1, 1, 1)"),
            ),
            ("update", format!("UPDATE {database}.t SET v = 2")),
            ("read", format!("SELECT * FROM {database}.t")),
            ("delete", format!("DELETE FROM {database}.t")),
        ]
        .into_iter()
        .find_map(|(doing, sql)| Some((doing, session.attempt(&sql).err()?)));
        let dropped = session.attempt(&format!("DROP DATABASE {database}"));
        match (tried, dropped) {
            (Some((doing, said)), _) => Err(no_rights(doing, said)),
            (None, Err(said)) => Err(no_rights("drop databases", said)),
            (None, Ok(())) => Ok(given),
        }
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        &self.dsn.address
    }

    /// A session of the account.
    pub fn session(&self) -> Result<Session, BenchError> {
        let address = self.address();
        Session::open(
            OptsBuilder::new()
                .ip_or_hostname(Some(address.host.clone()))
                .tcp_port(address.port)
                .prefer_socket(false)
                .user(Some(address.user.clone()))
                .pass(Some(address.password.clone())),
        )
        .map_err(|error| BenchError::Unreachable {
            server: address.text(),
            said: error.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dsn_is_read_and_its_password_never_shown() {
        let dsn = Dsn::parse("mysql://me:s3cret@db.example:3310", Some("other")).expect("sound");
        let address = dsn.address();
        assert_eq!(
            (
                address.text().as_str(),
                address.user.as_str(),
                address.password.as_str()
            ),
            ("db.example:3310", "me", "s3cret")
        );
        for bad in [
            "mysql://me:s3cret@db:3306/app",
            "postgres://me:s3cret@db",
            "mysql://:s3cret@db",
            "mysql://me:s3cret@db:port",
        ] {
            let error = Dsn::parse(bad, Some("s3cret")).expect_err(bad).to_string();
            assert!(!error.contains("s3cret"), "{error}");
            assert!(error.contains("--server"), "{error}");
        }
    }

    #[test]
    fn a_dsn_without_a_password_gets_that_of_the_environment() {
        for (password, expected) in [(Some("it's s3cret"), "it's s3cret"), (None, "")] {
            let dsn = Dsn::parse("mysql://me@db.example", password).expect("sound");
            assert_eq!(dsn.address().password, expected);
            assert_eq!(dsn.address().port, 3306);
        }
    }
}
