//! A plain server and a protected one, with or without a scratch engine: what a client reads of an answer, words included.

use super::support::*;
use ::mysql::Value;
use ::mysql::prelude::Queryable;

/// What both say to a statement.
#[derive(Clone, Debug)]
pub struct Said {
    pub plain: String,
    pub protected: String,
}

impl Said {
    /// The proxy has refused it.
    pub fn is_refused(&self) -> bool {
        self.protected.contains(" OS1")
    }
}

/// The two.
pub struct Pair {
    pub plain: Session,
    pub protected: Session,
    proxy: Proxy,
    _servers: [Server; 3],
}

/// `{words}` in the definitions stands for the protection of a column.
pub fn pair(kind: Kind, with_engine: bool, tables: &[&str]) -> Option<Pair> {
    if direct_mode() {
        return None;
    }
    let plain_server = Server::start(kind, ServerOptions::default())?;
    let behind = Server::start(kind, ServerOptions::default())?;
    let scratch = Server::start(kind, ServerOptions::default())?;
    let engine = format!("[scratch]\nsocket = \"{}\"\n", scratch.socket().display());
    let proxy = Proxy::start(&behind, if with_engine { &engine } else { "" });
    for server in [&plain_server, &behind] {
        server
            .connect()
            .must("CREATE DATABASE app DEFAULT CHARSET utf8mb4");
    }
    let mut pair = Pair {
        plain: Session::open(plain_server.port(), "root", "", Some("app")),
        protected: proxy.connect_to("app"),
        proxy,
        _servers: [plain_server, behind, scratch],
    };
    for table in tables {
        let said = pair.say(table);
        assert_eq!(said.plain, said.protected, "{table}");
    }
    Some(pair)
}

impl Drop for Pair {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.proxy.assert_healthy();
        }
    }
}

#[allow(dead_code)] // not every test says things in every way
impl Pair {
    pub fn say(&mut self, sql: &str) -> Said {
        let (protected, plain) = with_and_without_protection(sql);
        Said {
            plain: words_of(self.plain.run(&plain)),
            protected: words_of(self.protected.run(&protected)),
        }
    }

    /// As a prepared statement of the binary protocol.
    pub fn execute(&mut self, sql: &str) -> Said {
        Said {
            plain: words_of_rows(self.plain.conn().exec(sql, ())),
            protected: words_of_rows(self.protected.conn().exec(sql, ())),
        }
    }

    /// Both say the same.
    pub fn same(&mut self, sql: &str) -> String {
        let said = self.say(sql);
        assert_eq!(said.plain, said.protected, "{sql}");
        said.protected
    }

    /// Both say the same, or it is refused.
    pub fn same_or_refused(&mut self, sql: &str) -> bool {
        let said = self.say(sql);
        if !said.is_refused() {
            assert_eq!(said.plain, said.protected, "{sql}");
        }
        !said.is_refused()
    }
}

fn words_of(done: Result<Outcome, Failure>) -> String {
    match done {
        Ok(done) => {
            let names = |set: &ResultSet| {
                let names = set.columns.iter().map(|(name, ..)| name.as_str());
                names.collect::<Vec<_>>().join(", ")
            };
            let names: Vec<String> = done.sets.iter().map(names).collect();
            format!(
                "[{}] {:?} {} rows, {} warnings",
                names.join("; "),
                done.text(),
                done.affected,
                done.warnings
            )
        }
        Err(failure) => format!("{} {}", failure.code, failure.message),
    }
}

fn words_of_rows(rows: ::mysql::Result<Vec<::mysql::Row>>) -> String {
    match rows {
        Ok(rows) => {
            let rows = rows.into_iter().map(::mysql::Row::unwrap);
            format!("{:?}", rows.collect::<Vec<Vec<Value>>>())
        }
        Err(error) => {
            let failure = Failure::from(error);
            format!("{} {}", failure.code, failure.message)
        }
    }
}
