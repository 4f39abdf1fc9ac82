//! A plain server and a protected one with a scratch engine; what both say to a statement, in both protocols.

use super::support::*;
use ::mysql::consts::{ColumnFlags, ColumnType};
use ::mysql::prelude::{Protocol, Queryable};
use ::mysql::{Params, QueryResult, Value};

/// The two, and everything that they need.
#[allow(dead_code)] // not every test looks at every server
pub struct Twins {
    pub plain: Session,
    pub protected: Session,
    pub proxy: Proxy,
    pub behind: Server,
    pub scratch: Server,
    compared: usize,
    refused: Vec<String>,
    different: Vec<String>,
    pub plain_server: Server,
}

/// What a client sees of a column.
#[derive(Clone, PartialEq, Debug)]
struct Definition {
    name: String,
    origin: [String; 4],
    ty: ColumnType,
    flags: ColumnFlags,
    collation: u16,
    decimals: u8,
    length: u32,
}

/// What a client sees of a statement.
#[derive(Clone, PartialEq, Debug, Default)]
struct Seen {
    columns: Vec<Definition>,
    rows: Vec<Vec<Value>>,
    warnings: u16,
    error: Option<(u16, String)>,
    prepared: Vec<Definition>,
}

#[allow(dead_code)] // some tests have settings
pub fn twins(kind: Kind, tables: &str) -> Option<Twins> {
    twins_with(kind, tables, "")
}

/// `{words}` in the definitions stands for the protection of a column. Behind the settings may stand tables of the configuration.
#[allow(dead_code)] // some tests have none
pub fn twins_with(kind: Kind, tables: &str, settings: &str) -> Option<Twins> {
    if direct_mode() {
        return None;
    }
    let behind = Server::start(
        kind,
        ServerOptions {
            general_log: true,
            binlog: Some(Binlog::Row),
            ..ServerOptions::default()
        },
    )?;
    let plain_server = Server::start(kind, ServerOptions::default())?;
    let scratch = Server::start(kind, ServerOptions::default())?;
    let (settings, sections) = settings.split_at(settings.find('[').unwrap_or(settings.len()));
    let socket = scratch.socket().display().to_string();
    let proxy = Proxy::start_with(
        &behind,
        ProxyOptions {
            settings: settings.into(),
            tables: format!("[scratch]\nsocket = \"{socket}\"\n{sections}"),
            ..ProxyOptions::default()
        },
    );
    for server in [&plain_server, &behind] {
        server
            .connect()
            .must("CREATE DATABASE app DEFAULT CHARSET utf8mb4");
    }
    let mut plain = Session::open(plain_server.port(), "root", "", Some("app"));
    let mut protected = proxy.connect_to("app");
    for create in tables.split(';').filter(|c| !c.trim().is_empty()) {
        let (definition, bare) = with_and_without_protection(create);
        plain.must(&bare);
        protected.must(&definition);
    }
    Some(Twins {
        plain,
        protected,
        proxy,
        behind,
        scratch,
        compared: 0,
        refused: Vec::new(),
        different: Vec::new(),
        plain_server,
    })
}

#[allow(dead_code)] // not every test compares in every way
impl Twins {
    /// With rows in the tables.
    pub fn filled(mut self, rows: &[&str]) -> Self {
        for row in rows {
            self.both_text(row);
        }
        self
    }

    /// Runs a statement that must succeed on both.
    pub fn both(&mut self, sql: &str) {
        let (a, b) = (self.plain.must(sql), self.protected.must(sql));
        assert_eq!((a.affected, a.warnings), (b.affected, b.warnings), "{sql}");
    }

    /// Runs a query on both, whatever it answers.
    pub fn both_text(&mut self, sql: &str) {
        self.plain.must(sql);
        self.protected.must(sql);
    }

    /// Compares everything that both say to a statement, as text and prepared.
    pub fn compare(&mut self, sql: &str, parameters: &[Value]) {
        if parameters.is_empty() {
            self.compare_text(sql);
        }
        let a = prepared(&mut self.plain, sql, parameters);
        let b = prepared(&mut self.protected, sql, parameters);
        self.judge(&format!("prepared: {sql} {parameters:?}"), a, b);
    }

    /// As prepared only: what a statement does, it does once.
    pub fn compare_prepared(&mut self, sql: &str) {
        let a = prepared(&mut self.plain, sql, &[]);
        let b = prepared(&mut self.protected, sql, &[]);
        self.judge(&format!("prepared: {sql}"), a, b);
    }

    pub fn compare_text(&mut self, sql: &str) {
        let a = text(&mut self.plain, sql);
        let b = text(&mut self.protected, sql);
        self.judge(sql, a, b);
    }

    fn judge(&mut self, sql: &str, mut a: Seen, mut b: Seen) {
        self.compared += 1;
        if let Some((_, message)) = &b.error
            && message.starts_with("OS")
        {
            self.refused.push(format!("{sql}\n  {message}"));
            return;
        }
        // servers take them from the temporary table, if the optimizer needs one: two plain servers differ
        let gathers = [" JOIN ", " GROUP BY ", " DISTINCT "];
        if gathers.iter().any(|word| sql.contains(word)) {
            let uncertain = ColumnFlags::PRI_KEY_FLAG
                | ColumnFlags::UNIQUE_KEY_FLAG
                | ColumnFlags::MULTIPLE_KEY_FLAG
                | ColumnFlags::PART_KEY_FLAG
                | ColumnFlags::AUTO_INCREMENT_FLAG
                | ColumnFlags::NUM_FLAG
                | ColumnFlags::BINARY_FLAG;
            for seen in [&mut a, &mut b] {
                let columns = seen.columns.iter_mut().chain(&mut seen.prepared);
                columns.for_each(|c| c.flags.remove(uncertain));
            }
        }
        // which of several texts an error has depends on names of databases and hosts
        for seen in [&mut a, &mut b] {
            if let Some((_, message)) = &mut seen.error {
                message.clear();
            }
        }
        if a != b {
            let mut text = format!("{sql}\n");
            for (p, q) in a.columns.iter().zip(&b.columns).filter(|(p, q)| p != q) {
                text += &format!("  column {p:?}\n      but {q:?}\n");
            }
            for (p, q) in a.prepared.iter().zip(&b.prepared).filter(|(p, q)| p != q) {
                text += &format!("  prepared {p:?}\n        but {q:?}\n");
            }
            if a.columns.len() != b.columns.len() || a.prepared.len() != b.prepared.len() {
                text += &format!(
                    "  columns {} but {}, prepared {} but {}\n",
                    a.columns.len(),
                    b.columns.len(),
                    a.prepared.len(),
                    b.prepared.len()
                );
            }
            if a.rows != b.rows {
                text += &format!("  rows {:?}\n   but {:?}\n", a.rows, b.rows);
            }
            if (a.warnings, &a.error) != (b.warnings, &b.error) {
                text += &format!(
                    "  warnings {}, error {:?} but {}, {:?}\n",
                    a.warnings, a.error, b.warnings, b.error
                );
            }
            self.different.push(text);
        }
    }

    /// Ends the server behind the proxy and looks for texts in all of its files, and in the proxy's log.
    pub fn assert_no_trace_of(&mut self, texts: &[&str]) {
        let log = self.proxy.log();
        self.behind.shutdown();
        self.behind.assert_no_trace_of(texts);
        for text in texts {
            assert!(!log.contains(text), "{text} in the proxy's log");
        }
    }

    /// Panics if anything differed, or more was refused than that.
    pub fn conclude(&mut self, refused: usize) {
        self.proxy.assert_healthy();
        announce(&format!(
            "{} answers compared, {} refused, {} different",
            self.compared,
            self.refused.len(),
            self.different.len()
        ));
        assert!(
            self.different.is_empty() && self.refused.len() <= refused,
            "different:\n{}\nrefused:\n{}",
            self.different.join("\n"),
            self.refused.join("\n")
        );
    }
}

fn text(session: &mut Session, sql: &str) -> Seen {
    let mut seen = Seen::default();
    let conn = session.conn();
    let done = conn.query_iter(sql).map(|r| collect(r, &mut seen));
    finish(session, seen, done)
}

fn prepared(session: &mut Session, sql: &str, parameters: &[Value]) -> Seen {
    let mut seen = Seen::default();
    let conn = session.conn();
    let done = conn.prep(sql).and_then(|statement| {
        seen.prepared = statement.columns().iter().map(definition).collect();
        let params = match parameters {
            [] => Params::Empty,
            values => Params::Positional(values.to_vec()),
        };
        let done = conn
            .exec_iter(&statement, params)
            .map(|r| collect(r, &mut seen));
        // or else the client would take it from its cache, with the settings of another time
        conn.close(statement)?;
        done
    });
    finish(session, seen, done)
}

fn finish(
    session: &mut Session,
    mut seen: Seen,
    done: ::mysql::Result<::mysql::Result<()>>,
) -> Seen {
    match done.and_then(|d| d) {
        Ok(()) => seen.warnings = session.conn().warnings(),
        Err(error) => {
            let failure = Failure::from(error);
            seen = Seen {
                error: Some((failure.code, failure.message)),
                ..Seen::default()
            };
        }
    }
    seen
}

fn collect<P: Protocol>(
    mut result: QueryResult<'_, '_, '_, P>,
    seen: &mut Seen,
) -> ::mysql::Result<()> {
    while let Some(set) = result.iter() {
        seen.columns = set.columns().as_ref().iter().map(definition).collect();
        for row in set {
            seen.rows.push(row?.unwrap());
        }
    }
    Ok(())
}

fn definition(column: &::mysql::Column) -> Definition {
    Definition {
        name: column.name_str().into_owned(),
        origin: [
            column.schema_str().into_owned(),
            column.table_str().into_owned(),
            column.org_table_str().into_owned(),
            column.org_name_str().into_owned(),
        ],
        ty: column.column_type(),
        flags: column.flags(),
        collation: column.character_set(),
        decimals: column.decimals(),
        length: column.column_length(),
    }
}
