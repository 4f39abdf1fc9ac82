//! Round trips of each kind of statement, to the server and to the scratch engine, compared with
//! `tests/trip_counts.txt`.
//!
//! Half a millisecond away from the server a round trip costs more than all that the proxy
//! computes. So a count that rises fails, and one that falls fails as well, until it is recorded:
//!
//! ```text
//! ONIONSKIN_UPDATE=1 cargo test --locked --profile ci -p onionskin --test trip_counts
//! ```
//!
//! That also writes the table of `docs/round-trips.md`. With `ONIONSKIN_SHOW="UPDATE of"` the
//! commands of all statements whose titles begin so are shown as well.
//!
//! A session runs each statement for the first time, on tables that the proxy has not seen yet, and
//! then again with other values. What the proxy knows of tables does not get old meanwhile
//! (`ONIONSKIN_TEST_RECHECK`), but where that is what is counted.

#[path = "trip_counts/statements.rs"]
mod statements;
#[path = "trip_counts/table.rs"]
mod table;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Params, Value};
use onionskin_testkit::*;

use statements::{GROUPS, ROWS, Statement, TABLES};
use table::{Count, Counts, RECORD, Row, Runs, Table, differences, page, parse, print};

/// Runs of each statement; the last one counts beside the first.
const RUNS: usize = 3;
/// How often a difference has to be seen again.
const AGAIN: usize = 2;
/// Longer than what is known counts as new.
const SECOND: Duration = Duration::from_millis(1100);
/// For so many milliseconds what is known of tables does not get old: longer than this takes, and
/// shorter than the machine has been running, because what a transaction cannot tell is taken for
/// as old as that.
const LASTING: &str = "120000";

/// A proxy between two relays.
struct Stage {
    proxy: Proxy,
    server: Trips,
    engine: Trips,
}

/// A session through the stage, and which of the relay's connections is its own.
struct Client<'a> {
    stage: &'a Stage,
    conn: Conn,
    number: usize,
}

impl Stage {
    /// `keys`: those of another stage. `recheck`: how long what is known of tables is new.
    fn start(
        behind: &Server,
        engine: &Server,
        recheck: Option<&str>,
        keys: Option<PathBuf>,
    ) -> Stage {
        let server = Trips::to_port(behind.port());
        let engine = Trips::to_socket(engine.socket(), &server);
        let options = ProxyOptions {
            settings: "backend_tls = \"never\"\nlike_index = true\n".into(),
            tables: format!("[scratch]\nsocket = \"{}\"\n", engine.socket().display()),
            backend: Some(server.address()),
            keys,
            environment: recheck
                .map(|limit| ("ONIONSKIN_TEST_RECHECK".into(), limit.into()))
                .into_iter()
                .collect(),
            ..ProxyOptions::default()
        };
        Stage {
            proxy: Proxy::start_with(behind, options),
            server,
            engine,
        }
    }

    fn client(&self, database: &str, found_rows: bool) -> Client<'_> {
        let before = self.server.counted().len();
        let conn = connect(self.proxy.port(), database, found_rows);
        let connections = self.server.counted().len();
        assert_eq!(connections, before + 1, "a login makes one connection");
        Client {
            stage: self,
            conn,
            number: before,
        }
    }
}

fn connect(port: u16, database: &str, found_rows: bool) -> Conn {
    let limit = Some(Duration::from_secs(60));
    let mut options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(port)
        .prefer_socket(false)
        .user(Some("root"))
        .db_name(Some(database))
        .read_timeout(limit)
        .write_timeout(limit)
        .max_allowed_packet(Some(64 << 20));
    if found_rows {
        let flags = mysql::consts::CapabilityFlags::CLIENT_FOUND_ROWS;
        options = options.additional_capabilities(flags);
    }
    Conn::new(options).expect("a login")
}

/// All commands that have come by, and their trips.
struct Seen {
    count: Count,
    commands: [Vec<Counted>; 2],
}

impl Client<'_> {
    fn seen(&self) -> Seen {
        let server = self.stage.server.counted();
        let engine = self.stage.engine.counted();
        let all: usize = server.iter().map(|c| c.trips).sum();
        let own = server[self.number].trips;
        Seen {
            count: Count {
                server: own,
                engine: engine.iter().map(|c| c.trips).sum(),
                others: all - own,
            },
            commands: [server, engine],
        }
    }

    /// Counts what a piece of work takes until its answer is there. What the proxy puts in order
    /// behind the answer does not count. Returns the commands, too.
    fn count(&mut self, work: impl FnOnce(&mut Conn)) -> (Count, String) {
        let before = self.seen();
        work(&mut self.conn);
        let after = self.seen();
        let count = Count {
            server: after.count.server - before.count.server,
            engine: after.count.engine - before.count.engine,
            others: after.count.others - before.count.others,
        };
        // the session serves this when it has done with the statement
        self.conn.ping().expect("an answer");
        self.stage.server.settle();
        self.stage.engine.settle();
        (count, said(&before, &after))
    }
}

/// The commands that have come by in between.
fn said(before: &Seen, after: &Seen) -> String {
    let mut text = String::new();
    for (place, name) in ["server", "engine"].into_iter().enumerate() {
        for (number, connection) in after.commands[place].iter().enumerate() {
            let old = before.commands[place].get(number);
            let old = old.map_or(0, |c| c.commands.len());
            for command in &connection.commands[old..] {
                let short: String = command.chars().take(400).collect();
                writeln!(text, "      {name} {number}: {short}").unwrap();
            }
        }
    }
    text
}

/// A statement's texts in one of its runs.
struct Run<'a> {
    statement: &'a Statement,
    number: usize,
    database: &'a str,
}

impl Run<'_> {
    fn fill(&self, text: &str) -> String {
        let text = text.replace('#', &self.number.to_string());
        text.replace("{db}", self.database)
    }

    fn values(&self) -> Vec<Value> {
        let values = self.statement.values.iter().map(|v| self.fill(v));
        let value = |literal: String| match literal.strip_prefix('\'') {
            Some(text) => Value::from(text.trim_end_matches('\'')),
            None => Value::from(literal.parse::<i64>().expect("a number")),
        };
        values.map(value).collect()
    }

    /// With its values as literals.
    fn text(&self) -> String {
        let mut text = self.fill(self.statement.sql);
        for value in self.statement.values {
            text = text.replacen('?', &self.fill(value), 1);
        }
        text
    }
}

/// Runs a statement in its database, and counts. What it says is appended to `shown`.
fn runs(
    stage: &Stage,
    statement: &Statement,
    prepares: bool,
    database: &str,
    shown: &mut String,
) -> Runs {
    let mut client = stage.client(database, statement.found_rows);
    let mut other = stage.client(database, false);
    let mut prepared = None;
    let mut counts = Vec::new();
    for number in 1..=RUNS {
        let run = Run {
            statement,
            number,
            database,
        };
        for sql in statement.before {
            client.conn.query_drop(run.fill(sql)).expect(sql);
        }
        for sql in statement.elsewhere {
            other.conn.query_drop(run.fill(sql)).expect(sql);
        }
        if statement.waits {
            std::thread::sleep(SECOND);
        }
        let (count, said) = client.count(|conn| match prepares {
            false => {
                let sql = run.text();
                conn.query_drop(&sql)
                    .unwrap_or_else(|e| panic!("{sql}: {e}"));
            }
            true => {
                let sql = run.fill(statement.sql);
                let prepared =
                    prepared.get_or_insert_with(|| conn.prep(&sql).expect("it is prepared"));
                let values = Params::from(run.values());
                conn.exec_drop(&*prepared, values)
                    .unwrap_or_else(|e| panic!("{sql}: {e}"));
            }
        });
        writeln!(shown, "    run {number}: {count}\n{said}").unwrap();
        counts.push(count);
        for sql in statement.after {
            client.conn.query_drop(run.fill(sql)).expect(sql);
        }
    }
    Runs {
        first: counts[0],
        later: counts[RUNS - 1],
    }
}

/// Makes a statement's database.
fn set_up(session: &mut Session, statement: &Statement, database: &str) {
    session.must(&format!("CREATE DATABASE {database}"));
    session.must(&format!("USE {database}"));
    for table in TABLES {
        if !statement.names(table.name) {
            continue;
        }
        session.must(table.definition);
        let rows: Vec<String> = (1..=ROWS)
            .map(|n| table.row.replace('#', &n.to_string()))
            .collect();
        if !table.row.is_empty() {
            session.must(&format!(
                "INSERT INTO {} VALUES {}",
                table.name,
                rows.join(", ")
            ));
        }
    }
}

/// The database of a statement that is sent as a text, or prepared.
fn database_of(place: usize, prepares: bool) -> String {
    format!("s{place}{}", if prepares { "p" } else { "t" })
}

/// Whether the developer wants to see a statement's commands.
fn is_shown(title: &str) -> bool {
    let wanted = std::env::var("ONIONSKIN_SHOW").unwrap_or_default();
    !wanted.is_empty() && title.starts_with(&wanted)
}

/// Counts all statements on a server. Behind each title stands what was said.
fn count_all(kind: Kind) -> Option<(Counts, BTreeMap<String, String>)> {
    let behind = Server::start(kind, ServerOptions::default())?;
    let engine = Lent::of(kind)?;
    let setup = Proxy::start_with(
        &behind,
        ProxyOptions {
            settings: "like_index = true\n".into(),
            ..ProxyOptions::default()
        },
    );
    let all = GROUPS.iter().flat_map(|group| group.statements);
    let all: Vec<&Statement> = all
        .filter(|s| s.only.is_none_or(|only| only == kind))
        .collect();
    let mut session = setup.connect();
    for (place, statement) in all.iter().enumerate() {
        for prepares in [false, true] {
            if !(prepares && statement.is_text) {
                set_up(&mut session, statement, &database_of(place, prepares));
            }
        }
    }
    session.must("CREATE DATABASE warm");
    session.must("CREATE TABLE warm.p (id INT PRIMARY KEY, x INT)");
    let keys = || Some(setup.keys());
    let lasting = Stage::start(&behind, &engine, Some(LASTING), keys());
    let usual = Stage::start(&behind, &engine, None, keys());
    for stage in [&lasting, &usual] {
        // which databases there are is known
        let mut client = stage.client("warm", false);
        client.conn.query_drop("SELECT x FROM p").expect("no rows");
    }
    let version = session.text("SELECT VERSION()").expect("a version");
    let numbers: Vec<&str> = version.split(['.', '-']).take(2).collect();
    let mut counts = Counts {
        version: numbers.join("."),
        ..Counts::default()
    };
    let mut said = BTreeMap::new();
    for (place, statement) in all.iter().enumerate() {
        let stage = if statement.waits { &usual } else { &lasting };
        let title = statement.title();
        let mut shown = String::new();
        let mut runs_of = |prepares| {
            writeln!(shown, "  {}", if prepares { "prepared" } else { "text" }).unwrap();
            let database = database_of(place, prepares);
            runs(stage, statement, prepares, &database, &mut shown)
        };
        let text = runs_of(false);
        let prepared = (!statement.is_text).then(|| runs_of(true));
        if is_shown(&title) {
            announce(&format!("{}: {title}\n{shown}", kind.name()));
        }
        let before = counts.rows.insert(title.clone(), Row { text, prepared });
        assert_eq!(before, None, "{title} stands there twice");
        said.insert(title, shown);
    }
    Some((counts, said))
}

fn record_file() -> PathBuf {
    checkout().join("onionskin/tests/trip_counts.txt")
}

fn page_file() -> PathBuf {
    checkout().join("docs/round-trips.md")
}

const PAGE_BEGINS: &str =
    "<!-- made from onionskin/tests/trip_counts.txt by onionskin/tests/trip_counts.rs -->\n";
const PAGE_ENDS: &str = "<!-- end of what is made from onionskin/tests/trip_counts.txt -->\n";

/// The page with the table that belongs to what is recorded.
fn page_with(table: &Table) -> (String, String) {
    let text = std::fs::read_to_string(page_file()).expect("the page");
    let (before, rest) = text
        .split_once(PAGE_BEGINS)
        .expect("where the table begins");
    let (_, behind) = rest.split_once(PAGE_ENDS).expect("where the table ends");
    let made = format!("{before}{PAGE_BEGINS}{}{PAGE_ENDS}{behind}", page(table));
    (text, made)
}

#[test]
fn statements_take_the_round_trips_that_are_recorded() {
    if direct_mode() {
        return;
    }
    let both = std::thread::scope(|scope| {
        let count = |kind| scope.spawn(move || (kind, count_all(kind)));
        let counting = [Kind::MariaDb, Kind::MySql].map(count);
        counting.map(|thread| thread.join().expect("counted"))
    });
    let text = std::fs::read_to_string(record_file()).unwrap_or_default();
    let recorded = parse(&text);
    let updates = std::env::var_os("ONIONSKIN_UPDATE").is_some();
    let mut now = recorded.clone();
    let mut complaints = String::new();
    for (kind, counted) in both {
        // a server that is not there was announced
        let Some((counts, said)) = counted else {
            continue;
        };
        let name = kind.name();
        let before = recorded.get(name).cloned().unwrap_or_default();
        if before.version != counts.version && !updates {
            announce(&format!(
                "NOT COMPARED: round trips were recorded with {name} {}, here is {}",
                before.version, counts.version
            ));
            continue;
        }
        let mut differing = differences(&before, &counts);
        if !differing.is_empty() && !updates {
            // on a machine that is busy for longer than answers are held back, a count may be off
            for _ in 0..AGAIN {
                let again = count_all(kind).map(|(counts, _)| differences(&before, &counts));
                let again = again.unwrap_or_default();
                differing.retain(|difference| again.contains(difference));
                if differing.is_empty() {
                    break;
                }
            }
        }
        for (title, what) in differing {
            writeln!(complaints, "{name}: {title}: {what}").unwrap();
            complaints += said.get(&title).map_or("", String::as_str);
        }
        now.insert(name, counts);
    }
    if updates {
        std::fs::write(record_file(), print(&now)).expect("recorded");
        std::fs::write(page_file(), page_with(&now).1).expect("written");
        return;
    }
    assert!(
        complaints.is_empty(),
        "statements take other round trips than recorded:\n{complaints}\nIf that is meant, record them anew and \
         say why in the commit:\n  {RECORD}"
    );
}

#[test]
fn the_page_shows_what_is_recorded() {
    let text = std::fs::read_to_string(record_file()).expect("recorded counts");
    let recorded = parse(&text);
    assert_eq!(print(&recorded), text, "what is recorded can be read");
    let (is, should) = page_with(&recorded);
    assert!(
        is == should,
        "docs/round-trips.md is not what is recorded: {RECORD}"
    );
}
