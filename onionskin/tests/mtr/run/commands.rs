//! Commands of the test's language.

use super::*;

const GTID_OFF: [&str; 4] = [
    "SET GLOBAL gtid_mode = ON_PERMISSIVE",
    "SET GLOBAL gtid_mode = OFF_PERMISSIVE",
    "SET GLOBAL gtid_mode = OFF",
    "SET GLOBAL enforce_gtid_consistency = OFF",
];
const GTID_ON: [&str; 4] = [
    "SET GLOBAL enforce_gtid_consistency = ON",
    "SET GLOBAL gtid_mode = OFF_PERMISSIVE",
    "SET GLOBAL gtid_mode = ON_PERMISSIVE",
    "SET GLOBAL gtid_mode = ON",
];

impl Runner<'_> {
    pub fn command(&mut self, name: &str, rest: &str) -> Step {
        match name {
            "error" => self.expects_error = true,
            "sorted_result" | "partially_sorted_result" => self.sorted = true,
            "eval" | "evalp" => {
                let sql = self.substituted(rest)?;
                return self.statement(&sql);
            }
            "query" | "query_vertical" | "query_horizontal" => {
                let sql = self.substituted(rest)?;
                return self.statement(&sql);
            }
            "let" => return self.assign(rest),
            "inc" | "dec" => {
                let variable = rest.trim_start_matches('$').trim();
                let value: i64 = self.variable(variable)?.trim().parse().unwrap_or(0);
                let value = value + if name == "inc" { 1 } else { -1 };
                self.variables.insert(variable.into(), value.to_string());
            }
            "source" => return self.include(rest),
            "connect" => return self.connect(rest),
            "connection" => {
                let name = self.substituted(rest)?;
                if !self.lanes.contains_key(&name) && !self.dead.contains_key(&name) {
                    return stop(format!("no connection {name}"));
                }
                self.current = name;
            }
            "disconnect" | "dirty_close" => {
                let name = self.substituted(rest)?;
                self.lanes.remove(&name);
                self.dead.remove(&name);
            }
            "reset_connection" => {
                let lanes = self.lanes()?;
                for conn in [&mut lanes.plain, &mut lanes.control, &mut lanes.proxy] {
                    let reset = conn.reset().and_then(|()| conn.query_drop(CLOCK));
                    reset.map_err(|_| Stop("a connection that is not reset".into()))?;
                }
            }
            // as a new session
            "change_user" => {
                let rest = self.substituted(rest)?;
                let parts: Vec<&str> = rest.split(',').map(str::trim).collect();
                let part = |i: usize| parts.get(i).copied().unwrap_or_default();
                let user = if part(0).is_empty() { "root" } else { part(0) };
                let name = self.current.clone();
                return self.open(&name, user, part(1), part(2));
            }
            // Such a statement waits, as a rule, for what other connections do before it is reaped:
            // it runs then.
            "send" | "send_eval" => {
                let sql = self.substituted(rest)?;
                self.sent.insert(self.current.clone(), sql);
            }
            "reap" => {
                if let Some(sql) = self.sent.remove(&self.current) {
                    return self.statement(&sql);
                }
            }
            "shutdown_server" | "send_shutdown" | "send_quit" | "exec_in_background" => {
                return stop("a server that is shut down");
            }
            "exit" | "die" | "skip" => return stop(format!("`{name}` of the file")),
            // Files, programs, and the form of the output.
            _ => {}
        }
        Ok(())
    }

    /// `name [,] host, user, password, database, …`, in parentheses or not.
    fn connect(&mut self, rest: &str) -> Step {
        let rest = self.substituted(rest)?;
        let rest = rest.trim().trim_start_matches('(').trim_end_matches(')');
        let trimmed = |part: &'_ str| part.trim().trim_matches(['"', '\'']).to_owned();
        let parts: Vec<String> = rest.split(',').map(trimmed).collect();
        let part = |i: usize| parts.get(i).map_or("", String::as_str);
        let user = if part(2).is_empty() { "root" } else { part(2) };
        let database = match part(4) {
            "" => "test",
            "*NO-ONE*" => "",
            given => given,
        };
        if std::mem::take(&mut self.expects_error) {
            // it shall fail: the one before goes on
            return Ok(());
        }
        self.open(part(0), user, part(3), database)
    }

    /// Runs statements in sessions of their own.
    fn on_every_server(&mut self, statements: &[&str]) -> Step {
        for port in [self.ports.plain, self.ports.control, self.ports.behind] {
            let failed = |what: &str| Stop(format!("{what} as root fails"));
            let mut root = seen::connect(port, "root", "", "").map_err(|_| failed("a login"))?;
            for sql in statements {
                root.query_drop(sql).map_err(|_| failed(sql))?;
            }
        }
        Ok(())
    }

    /// Runs a statement in this session and in those to come.
    fn in_every_session(&mut self, sql: &'static str) -> Step {
        self.first_statements.push(sql);
        let lanes = self.lanes()?;
        for conn in [&mut lanes.plain, &mut lanes.control, &mut lanes.proxy] {
            let done = conn.query_drop(sql);
            done.map_err(|e| Stop(format!("`{sql}` fails: {e}")))?;
        }
        Ok(())
    }

    fn include(&mut self, rest: &str) -> Step {
        let name = self.substituted(rest)?;
        let base = Path::new(&name).file_name().unwrap_or_default();
        let base = base.to_string_lossy();
        // What these ask for is there; what they wait for has happened, because nothing runs at the
        // same time.
        const NEEDLESS: &[&str] = &[
            "have_innodb.inc",
            "have_sequence.inc",
            "have_partition.inc",
            "have_compress.inc",
            "have_crypt.inc",
            "have_normal_zlib.inc",
            "have_ssl_crypto_functs.inc",
            "have_ucs2.inc",
            "have_utf8.inc",
            "have_utf8mb4.inc",
            "have_collation.inc",
            "default_optimizer_switch.inc",
            "default_charset.inc",
            "no_valgrind_without_big.inc",
            "no_msan_without_big.inc",
            "not_valgrind.inc",
            "not_embedded.inc",
            "no_view_protocol.inc",
            "long_test.inc",
            "big_test.inc",
            "protocol.inc",
            "count_sessions.inc",
            "wait_until_count_sessions.inc",
            "wait_until_disconnected.inc",
            "wait_condition.inc",
            "have_metadata_lock_info.inc",
            "have_profiling.inc",
            // MySQL's
            "assert.inc",
            "elide_costs.inc",
            "not_binlog_format_statement.inc",
            "not_tsan.inc",
        ];
        if NEEDLESS.contains(&&*base) {
            return Ok(());
        }
        // MySQL's test program starts the servers anew for it.
        if base == "force_myisam_default.inc" {
            return self.in_every_session("SET default_storage_engine = MyISAM");
        }
        match &*base {
            "set_gtid_mode_off.inc" => return self.on_every_server(&GTID_OFF),
            "set_gtid_mode_on.inc" => return self.on_every_server(&GTID_ON),
            _ => {}
        }
        // MySQL's are questions to the server, and skip the file themselves.
        if base.starts_with("have_") && self.suite == Suite::MariaDb
            || base.starts_with("is_embedded")
            || base.starts_with("windows")
        {
            return stop(format!("it needs what {base} asks for"));
        }
        // it looks for words in the server's own files
        if base.starts_with("search_pattern") {
            return Ok(());
        }
        if base.starts_with("restart") {
            return stop(format!("{base} restarts the server"));
        }
        let places = [
            self.home.join(&name),
            self.home.join(self.suite.files()).join(&name),
            self.home.join("include").join(&name),
        ];
        let found: Option<&PathBuf> = places.iter().find(|p| p.exists());
        let Some(text) = found.and_then(|p| std::fs::read(p).ok()) else {
            return stop(format!("{base} is not there"));
        };
        self.depth += 1;
        if self.depth > 8 {
            return stop("files that include each other");
        }
        let result = self.nodes(&language::read(&text));
        self.depth -= 1;
        result
    }
}
