//! Statements from files: SQL, a general log, a slow log, what a proxy has observed. Which it is,
//! the content tells.

use std::collections::HashMap;

use onionskin_plan::LexMode;
use onionskin_plan::lex::{split, used_database};

use super::asked::Asked;
use super::observed;

/// What a text was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Statements that semicolons separate.
    Sql,
    /// `general_log`
    General,
    /// `slow_query_log`
    Slow,
    /// `onionskin serve --observe`
    Observed,
}

impl Source {
    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Sql => "a file of SQL",
            Self::General => "a general log",
            Self::Slow => "a slow log",
            Self::Observed => "what a proxy has observed",
        }
    }

    /// Looks at the first lines.
    fn of(text: &str) -> Self {
        if observed::is_it(text) {
            return Self::Observed;
        }
        for line in text.lines().take(200) {
            if line.starts_with("# Query_time:") || line.starts_with("# User@Host:") {
                return Self::Slow;
            }
            if Entry::of(line).is_some() {
                return Self::General;
            }
        }
        Self::Sql
    }
}

/// Reads statements; those that no database is named for belong to `database`.
pub fn read(text: &str, database: &str, asked: &mut Asked) -> Source {
    let source = Source::of(text);
    match source {
        Source::Sql => read_sql(text, database, asked),
        Source::General => read_general(text, database, asked),
        Source::Slow => read_slow(text, database, asked),
        Source::Observed => observed::read(text, database, asked),
    }
    source
}

fn read_sql(text: &str, database: &str, asked: &mut Asked) {
    let Ok(cut) = split(text.as_bytes(), LexMode::default()) else {
        asked.skip("files that are not text of SQL", 1);
        return;
    };
    let mut current = database.to_owned();
    for part in cut.parts {
        let sql = &text[part];
        match used_database(sql) {
            Some(name) => current = name,
            None => asked.add(sql, &current, 1),
        }
    }
    if cut.compound.is_some() {
        asked.skip(
            "bodies of programs, and what stands behind them in a file",
            1,
        );
    }
}

/// Commands of a general log.
const KNOWN: [&str; 33] = [
    "Binlog Dump",
    "Binlog Dump GTID",
    "Bulk_execute",
    "Change user",
    "Close stmt",
    "Connect",
    "Connect Out",
    "Create DB",
    "Daemon",
    "Debug",
    "Delayed insert",
    "Drop DB",
    "Error",
    "Execute",
    "Fetch",
    "Field List",
    "Init DB",
    "Kill",
    "Long Data",
    "Ping",
    "Prepare",
    "Processlist",
    "Query",
    "Quit",
    "Refresh",
    "Register Slave",
    "Reset Connection",
    "Reset stmt",
    "Set option",
    "Shutdown",
    "Sleep",
    "Statistics",
    "Time",
];

/// The first line of an entry.
struct Entry<'l> {
    session: u64,
    command: &'l str,
    argument: &'l str,
}

impl<'l> Entry<'l> {
    /// MySQL: `2026-11-29T20:00:00.000000Z\t    8 Query\tSELECT 1`. MariaDB:
    /// `261129 20:00:00\t     8 Query\tSELECT 1`, or tabs alone in the place of the same second.
    fn of(line: &'l str) -> Option<Self> {
        let first = line.chars().next()?;
        if !first.is_ascii_digit() && first != '\t' {
            return None;
        }
        let (time, rest) = line.split_once('\t')?;
        let is_time = |c: char| c.is_ascii_digit() || "TZ:.+- ".contains(c);
        if !time.chars().all(is_time) {
            return None;
        }
        let rest = rest.trim_start_matches(['\t', ' ']);
        let (number, rest) = rest.split_once(' ')?;
        let session = number.parse().ok()?;
        let rest = rest.trim_start_matches(' ');
        let (command, argument) = rest.split_once('\t').unwrap_or((rest, ""));
        let command = command.trim_end();
        KNOWN.contains(&command).then_some(Entry {
            session,
            command,
            argument,
        })
    }
}

/// An entry whose lines are still coming.
struct Open {
    session: u64,
    command: String,
    text: String,
}

fn read_general(text: &str, database: &str, asked: &mut Asked) {
    let mut current: HashMap<u64, String> = HashMap::new();
    let mut open: Option<Open> = None;
    for line in text.lines() {
        if is_head(line) {
            end(open.take(), database, &mut current, asked);
            continue;
        }
        match (Entry::of(line), &mut open) {
            (Some(entry), _) => {
                end(open.take(), database, &mut current, asked);
                open = Some(Open {
                    session: entry.session,
                    command: entry.command.to_owned(),
                    text: entry.argument.to_owned(),
                });
            }
            (None, Some(open)) => {
                open.text.push('\n');
                open.text.push_str(line);
            }
            (None, None) => asked.skip("lines of a log that belong to no entry", 1),
        }
    }
    end(open, database, &mut current, asked);
}

/// The lines that a server writes when it opens a log.
fn is_head(line: &str) -> bool {
    let starts = line.contains("started with:");
    starts || line.starts_with("Tcp port:") || line.starts_with("Time  ") || is_columns(line)
}

fn is_columns(line: &str) -> bool {
    line.starts_with("Time") && line.contains("Command") && line.contains("Argument")
}

fn end(open: Option<Open>, database: &str, current: &mut HashMap<u64, String>, asked: &mut Asked) {
    let Some(Open {
        session,
        command,
        text,
    }) = open
    else {
        return;
    };
    let of_session = current.get(&session).map_or(database, String::as_str);
    match command.as_str() {
        "Query" => match used_database(&text) {
            Some(name) => {
                current.insert(session, name);
            }
            None => asked.add(&text, of_session, 1),
        },
        "Prepare" => asked.prepare(&text, of_session),
        "Execute" => asked.execute(&text, of_session),
        "Init DB" => {
            current.insert(session, text.trim().to_owned());
        }
        // `root@localhost on app using Socket`, `root@localhost as anonymous on app`
        "Connect" | "Change user" => {
            current.remove(&session);
            let name = text.split_once(" on ").map(|(_, rest)| rest);
            let name = name.and_then(|rest| rest.split_whitespace().next());
            if let Some(name) = name.filter(|name| *name != "using") {
                current.insert(session, name.to_owned());
            }
        }
        "Quit" => {
            current.remove(&session);
        }
        "Close stmt" | "Statistics" | "Ping" | "Reset stmt" | "Fetch" | "Long Data" => {}
        _ => asked.skip("entries of a log that are no statements", 1),
    }
}

/// A log says `use` where the database is another one than that of the entry before, whoever sent
/// it. MariaDB names the database in each entry.
fn read_slow(text: &str, database: &str, asked: &mut Asked) {
    let mut current = database.to_owned();
    let mut statement = String::new();
    for line in text.lines() {
        let Some(comment) = line.strip_prefix("# ") else {
            if !is_head(line) {
                statement.push_str(line);
                statement.push('\n');
            }
            continue;
        };
        if comment.starts_with("User@Host:") || comment.starts_with("Time:") {
            end_slow(&mut statement, &mut current, asked);
        }
        let schema = comment.split_once("Schema:").map(|(_, rest)| rest);
        let name = schema.and_then(|rest| rest.split_whitespace().next());
        if let Some(name) = name.filter(|name| !name.ends_with(':')) {
            current = name.to_owned();
        }
    }
    end_slow(&mut statement, &mut current, asked);
}

fn end_slow(statement: &mut String, current: &mut String, asked: &mut Asked) {
    let text = std::mem::take(statement);
    let Ok(cut) = split(text.as_bytes(), LexMode::default()) else {
        asked.skip("statements that cannot be read", 1);
        return;
    };
    for part in cut.parts {
        let sql = &text[part];
        let mut words = sql.split_whitespace();
        let is_time = words.next().is_some_and(|w| w.eq_ignore_ascii_case("set"))
            && words.next().is_some_and(|w| w.starts_with("timestamp="));
        match used_database(sql) {
            Some(name) => *current = name,
            None if is_time => {}
            None => asked.add(sql, current, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Database, shape and count.
    type Seen = (String, String, u64);

    fn seen(text: &str) -> (Source, Vec<Seen>, Vec<(String, u64)>) {
        let mut asked = Asked::default();
        let source = read(text, "app", &mut asked);
        let mut shapes: Vec<_> = asked
            .shapes()
            .into_iter()
            .map(|s| (s.database, s.shown, s.count))
            .collect();
        shapes.sort();
        (source, shapes, asked.skipped().to_vec())
    }

    fn shape(database: &str, shown: &str, count: u64) -> Seen {
        (database.into(), shown.into(), count)
    }

    #[test]
    fn a_file_of_sql_is_cut_at_semicolons() {
        let text = "SELECT ';' FROM t; -- a comment;\nUSE `other`;\nSELECT 1;;SELECT\n2";
        let (source, shapes, skipped) = seen(text);
        assert_eq!(source, Source::Sql);
        assert_eq!(
            shapes,
            [
                shape("app", "SELECT ? FROM t", 1),
                shape("other", "SELECT ?", 2)
            ]
        );
        assert!(skipped.is_empty(), "{skipped:?}");
    }

    const MYSQL: &str = "/usr/sbin/mysqld, Version: 8.4.0 (MySQL). started with:\nTcp port: 3306  Unix socket: /x\nTime                 Id Command    Argument\n\
        2026-11-29T20:00:00.123456Z\t    8 Connect\troot@localhost on shop using Socket\n\
        2026-11-29T20:00:00.123457Z\t    8 Query\tSELECT a\n  FROM t\n\n WHERE b = 'x'\n\
        2026-11-29T20:00:00.123458Z\t    9 Connect\troot@localhost on  using TCP/IP\n\
        2026-11-29T20:00:00.123459Z\t    9 Query\tUPDATE t SET a = 1\n\
        2026-11-29T20:00:00.123459Z\t    8 Prepare\tSELECT a FROM t WHERE c = ?\n\
        2026-11-29T20:00:00.123459Z\t    8 Execute\tSELECT a FROM t WHERE c = 'y'\n\
        2026-11-29T20:00:00.123459Z\t    9 Init DB\tother\n\
        2026-11-29T20:00:00.123459Z\t    9 Query\tUPDATE t SET a = 2\n\
        2026-11-29T20:00:00.123459Z\t    8 Close stmt\t\n\
        2026-11-29T20:00:00.123459Z\t    9 Binlog Dump\tx\n\
        2026-11-29T20:00:00.123459Z\t    9 Quit\t\n";

    #[test]
    fn a_general_log_of_mysql() {
        let (source, shapes, skipped) = seen(MYSQL);
        assert_eq!(source, Source::General);
        assert_eq!(
            shapes,
            [
                shape("app", "UPDATE t SET a = ?", 1),
                shape("other", "UPDATE t SET a = ?", 1),
                shape("shop", "SELECT a FROM t WHERE b = ?", 1),
                shape("shop", "SELECT a FROM t WHERE c = ?", 1),
            ]
        );
        assert_eq!(
            skipped,
            [("entries of a log that are no statements".to_owned(), 1)]
        );
    }

    #[test]
    fn a_general_log_of_mariadb() {
        let text = "/usr/sbin/mariadbd, Version: 10.11.6-MariaDB. started with:\nTcp port: 0  Unix socket: /x\nTime\t\t    Id Command\tArgument\n\
            261129 20:00:00\t     4 Connect\troot@localhost on  using Socket\n\
            \t\t     4 Query\tUSE shop\n\
            \t\t     4 Query\tINSERT INTO t VALUES (1, 'a')\n\
            261129 20:00:01\t     4 Query\tINSERT INTO t\nVALUES (2, 'b')\n\
            \t\t     4 Quit\t\n";
        let (source, shapes, skipped) = seen(text);
        assert_eq!(source, Source::General);
        assert_eq!(shapes, [shape("shop", "INSERT INTO t VALUES (?, …), …", 2)]);
        assert!(skipped.is_empty(), "{skipped:?}");
    }

    #[test]
    fn a_slow_log() {
        let text = "/usr/sbin/mysqld, Version: 8.4.0 (MySQL). started with:\nTcp port: 3306  Unix socket: /x\nTime                 Id Command    Argument\n\
            # Time: 2026-11-29T20:00:00.1Z\n# User@Host: root[root] @ localhost []  Id:    12\n# Query_time: 1.0  Lock_time: 0.0 Rows_sent: 1  Rows_examined: 1\n\
            use shop;\nSET timestamp=1790000000;\nSELECT a\nFROM t WHERE b = 'x';\n\
            # Time: 2026-11-29T20:00:01.1Z\n# User@Host: root[root] @ localhost []  Id:    12\n# Query_time: 1.0  Lock_time: 0.0 Rows_sent: 1  Rows_examined: 1\n\
            SET timestamp=1790000001;\nSELECT a FROM t WHERE b = 'y';\n\
            # User@Host: root[root] @ localhost []\n# Thread_id: 3  Schema: other  QC_hit: No\n# Query_time: 2\n\
            SET timestamp=1790000001;\nDELETE FROM t;\n";
        let (source, shapes, skipped) = seen(text);
        assert_eq!(source, Source::Slow);
        assert_eq!(
            shapes,
            [
                shape("other", "DELETE FROM t", 1),
                shape("shop", "SELECT a FROM t WHERE b = ?", 2)
            ]
        );
        assert!(skipped.is_empty(), "{skipped:?}");
    }
}
