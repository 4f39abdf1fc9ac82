//! A protected database behind the proxy, and a plain one on a second server, which is the scratch engine too.

use super::{
    Binlog, Kind, Outcome, Pattern, Proxy, ProxyOptions, Server, ServerOptions, Session,
    direct_mode, find_all,
};
use ::mysql::{Params, Value};

/// In every text that must not be found anywhere.
pub const SECRET: &str = "Hb4YqMz7";

/// The two, and everything that they need.
pub struct Stage {
    /// On the plain server.
    pub plain: Session,
    /// Through the proxy.
    pub protected: Session,
    /// The proxy.
    pub proxy: Proxy,
    /// The server behind it.
    pub behind: Server,
    /// The plain server.
    pub beside: Server,
}

impl Stage {
    /// `{words}` in the definitions stands for the protection of a column.
    pub fn start(kind: Kind, tables: &[&str]) -> Option<Stage> {
        if direct_mode() {
            return None;
        }
        let options = ServerOptions {
            general_log: true,
            binlog: Some(Binlog::Row),
            flush_log_at_commit: 1,
            ..ServerOptions::default()
        };
        let behind = Server::start(kind, options)?;
        let beside = Server::start(kind, ServerOptions::default())?;
        let proxy = Proxy::start_with(
            &behind,
            ProxyOptions {
                tables: format!("[scratch]\nsocket = \"{}\"\n", beside.socket().display()),
                ..ProxyOptions::default()
            },
        );
        for server in [&behind, &beside] {
            let charset = "CREATE DATABASE app DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci";
            server.connect().must(charset);
        }
        let mut stage = Stage {
            plain: Session::open(beside.port(), "root", "", Some("app")),
            protected: proxy.connect_to("app"),
            proxy,
            behind,
            beside,
        };
        for table in tables {
            let (definition, bare) = with_and_without_protection(table);
            stage.plain.must(&bare);
            stage.protected.must(&definition);
        }
        Some(stage)
    }

    /// Runs a statement that must succeed on both, with the same counts.
    pub fn both(&mut self, sql: &str) {
        let (a, b) = (self.plain.must(sql), self.protected.must(sql));
        let seen = |o: &Outcome| (o.affected, o.insert_id, o.warnings);
        assert_eq!(seen(&a), seen(&b), "{sql}");
    }

    /// Rows, names, types and counts are the same; in the binary protocol, too.
    pub fn same(&mut self, sql: &str) {
        self.same_with(sql, &[]);
        self.same_text(sql);
    }

    /// The same in the text protocol.
    pub fn same_text(&mut self, sql: &str) {
        let (a, b) = (self.plain.must(sql), self.protected.run(sql));
        let b = b.unwrap_or_else(|e| panic!("{sql}\n→ {e}"));
        assert_same(sql, &a, &b);
    }

    /// The same with parameters.
    pub fn same_with(&mut self, sql: &str, parameters: &[Value]) {
        let params = || match parameters {
            [] => Params::Empty,
            values => Params::Positional(values.to_vec()),
        };
        let a = self.plain.execute(sql, params()).expect(sql);
        let b = self.protected.execute(sql, params());
        let b = b.unwrap_or_else(|e| panic!("prepared: {sql}\n→ {e}"));
        assert_same(sql, &a, &b);
    }

    /// The same error number on both.
    pub fn both_fail(&mut self, sql: &str) -> u16 {
        let (a, b) = (self.plain.must_fail(sql), self.protected.must_fail(sql));
        assert_eq!(a, b, "{sql}");
        a
    }

    /// Nothing of the secret is in the server's files, logs among them.
    pub fn nothing_leaked(&mut self) {
        let patterns = Pattern::of_text(SECRET);
        self.behind.shutdown();
        for file in self.behind.data_files() {
            let bytes = std::fs::read(&file).unwrap_or_default();
            let found = find_all(&patterns, &bytes);
            assert!(found.is_empty(), "{}: {found:?}", file.display());
        }
        self.proxy.assert_healthy();
    }
}

fn assert_same(sql: &str, a: &Outcome, b: &Outcome) {
    let shape = |o: &Outcome| -> Vec<_> {
        let columns = o.sets.iter().flat_map(|set| &set.columns);
        columns.map(|c| (c.0.clone(), c.1)).collect()
    };
    let rows = |o: &Outcome| -> Vec<_> { o.sets.iter().map(|set| set.rows.clone()).collect() };
    assert_eq!(shape(a), shape(b), "{sql}");
    assert_eq!(rows(a), rows(b), "{sql}");
    assert_eq!((a.affected, a.warnings), (b.affected, b.warnings), "{sql}");
}

/// The definition for the proxy and the one for a plain server.
pub fn with_and_without_protection(create: &str) -> (String, String) {
    let (mut definition, mut bare) = (String::new(), String::new());
    for part in create.split_inclusive('}') {
        let (text, words) = part.split_once('{').unwrap_or((part, ""));
        definition += text;
        bare += text;
        if let Some(words) = words.strip_suffix('}') {
            definition += &format!("ENCRYPTED FOR ({words})");
        }
    }
    (definition, bare)
}
