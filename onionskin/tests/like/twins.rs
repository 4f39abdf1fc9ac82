//! A plain table and its protected twin.

use crate::support::*;
use ::mysql::{Params, Value};

/// A plain table on the server and its protected twin behind the proxy; `{words}` stands for the protection of a column.
pub struct Twins {
    pub plain: Session,
    pub protected: Session,
    pub admin: Session,
    pub proxy: Proxy,
    pub server: Server,
}

pub fn twins(kind: Kind, create: &str) -> Option<Twins> {
    twins_with(kind, create, "")
}

/// With full-text indexes in use.
pub fn indexed_twins(kind: Kind, create: &str) -> Option<Twins> {
    twins_with(kind, create, "like_index = true\n")
}

fn twins_with(kind: Kind, create: &str, settings: &str) -> Option<Twins> {
    if direct_mode() {
        return None;
    }
    let options = ServerOptions {
        binlog: Some(Binlog::Row),
        ..ServerOptions::default()
    };
    let server = Server::start(kind, options)?;
    let options = ProxyOptions {
        settings: settings.into(),
        ..ProxyOptions::default()
    };
    let proxy = Proxy::start_with(&server, options);
    let mut plain = server.connect();
    plain.must("CREATE DATABASE plain; CREATE DATABASE app; USE plain");
    let mut protected = proxy.connect_to("app");
    let (definition, bare) = with_and_without_protection(create);
    plain.must(&bare);
    protected.must(&definition);
    Some(Twins {
        plain,
        protected,
        admin: server.connect(),
        proxy,
        server,
    })
}

impl Twins {
    pub fn both(&mut self, sql: &str) -> u64 {
        let (a, b) = (self.plain.must(sql), self.protected.must(sql));
        assert_eq!((a.affected, a.warnings), (b.affected, b.warnings), "{sql}");
        a.affected
    }

    /// The same rows, names and types, as a text and prepared. Rows are compared as sets unless they are sorted.
    pub fn same(&mut self, sql: &str, parameters: &[&str]) -> usize {
        let values: Vec<Value> = parameters.iter().map(|p| Value::from(*p)).collect();
        let params = || Params::Positional(values.clone());
        let a = self.plain.execute(sql, params()).unwrap();
        let b = self.protected.execute(sql, params());
        let b = b.unwrap_or_else(|e| panic!("{sql} {parameters:?}: {e}"));
        let shape = |outcome: &Outcome| -> Vec<_> {
            let columns = outcome.sets[0].columns.iter();
            columns.map(|c| (c.0.clone(), c.1)).collect()
        };
        let rows = |outcome: &Outcome| {
            let mut rows: Vec<String> = outcome.text().lines().map(str::to_owned).collect();
            if !sql.contains("ORDER BY") {
                rows.sort();
            }
            rows
        };
        assert_eq!(shape(&a), shape(&b), "{sql}");
        assert_eq!(rows(&a), rows(&b), "{sql} {parameters:?}");
        let mut text = String::new();
        let mut parts = sql.split('?');
        text += parts.next().unwrap_or_default();
        for (part, value) in parts.zip(parameters) {
            let quoted = value.replace('\\', "\\\\").replace('\'', "''");
            text += &format!("'{quoted}'{part}");
        }
        let (a, b) = (self.plain.must(&text), self.protected.must(&text));
        assert_eq!(rows(&a), rows(&b), "{text}");
        rows(&a).len()
    }

    /// How many rows the server has touched for a statement.
    pub fn touched(&mut self, sql: &str) -> u64 {
        self.protected.must("FLUSH STATUS");
        self.protected.must(sql);
        let status = self
            .protected
            .text("SHOW SESSION STATUS LIKE 'Handler_read_rnd_next'")
            .unwrap();
        status.split('\t').nth(1).unwrap().parse().unwrap()
    }
}
