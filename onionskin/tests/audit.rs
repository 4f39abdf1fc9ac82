//! The audit log: who has read and written protected columns is in it, whichever way a statement
//! takes and however it ends; none of it is a value; what is changed afterwards is found; and a
//! full disk does what the configuration says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use onionskin_testkit::*;
use serde_json::Value as Json;

on_both_servers!(
    every_way_leaves_a_line,
    a_reader_that_leaves_is_recorded,
    a_full_disk_stops_what_it_must,
    a_full_disk_can_be_counted,
);

const TABLE: &str = "CREATE TABLE people (id INT PRIMARY KEY, name VARCHAR(40) ENCRYPTED FOR (eq), \
     born INT ENCRYPTED FOR (eq, range), note TEXT ENCRYPTED FOR (), plain INT)";

struct Place {
    pair: Pair,
    logs: tempfile::TempDir,
}

impl Place {
    fn start(kind: Kind, more: &str) -> Option<Place> {
        let logs = tempfile::tempdir().expect("a folder");
        let place = Self::at(kind, logs.path(), more)?;
        Some(Place { pair: place, logs })
    }

    fn at(kind: Kind, folder: &Path, more: &str) -> Option<Pair> {
        let heads = folder.with_extension("heads");
        let _ = fs::remove_file(&heads);
        let settings = format!("[audit]\nfolder = {folder:?}\nheads = {heads:?}\n{more}\n");
        let mut pair = Pair::with_settings(kind, "", &settings)?;
        pair.protected.must(TABLE);
        pair.protected
            .must("CREATE VIEW seen AS SELECT id, name FROM people");
        Some(pair)
    }

    /// All lines about statements, in the order in which they were written.
    fn lines(&self) -> Vec<Json> {
        statements(self.logs.path())
    }
}

fn parts(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("listed");
    let mut parts: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    parts.retain(|part| {
        part.extension()
            .is_some_and(|extension| extension == "jsonl")
    });
    parts.sort();
    parts
}

fn statements(folder: &Path) -> Vec<Json> {
    let texts = parts(folder)
        .into_iter()
        .map(|part| fs::read_to_string(part).expect("read"));
    texts
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .map(|line| serde_json::from_str::<Json>(&line).expect("JSON"))
        .filter(|line| line["record"] == "statement")
        .collect()
}

/// What a line says of cells: `opened name=1, born=1; sealed …; named …`.
fn cells(line: &Json) -> String {
    let columns = |field: &str| {
        let Some(columns) = line[field].as_object() else {
            return String::new();
        };
        let all: Vec<String> = columns
            .iter()
            .map(|(column, cells)| format!("{}={cells}", column.trim_start_matches("app.people.")))
            .collect();
        format!(" {field} {}", all.join(","))
    };
    let named = line["named"].as_array().map_or(String::new(), |named| {
        let all: Vec<&str> = named.iter().filter_map(Json::as_str).collect();
        format!(" named {}", all.join(",").replace("app.people.", ""))
    });
    let text = |field: &str| line[field].as_str().unwrap_or_default().to_owned();
    format!(
        "{} {}{}{}{named}",
        text("kind"),
        text("outcome"),
        columns("opened"),
        columns("sealed")
    )
}

fn every_way_leaves_a_line(kind: Kind) {
    let Some(mut place) = Place::start(kind, "") else {
        return;
    };
    let session = &mut place.pair.protected;
    let secret = format!("text {SECRET}");
    let steps: Vec<(&str, String)> = vec![
        ("insert ok sealed born=2,name=2,note=2", format!(
            "INSERT INTO people VALUES (1, '{secret}', 1970, '{secret}', 1), (2, 'b', 1980, NULL, 2)"
        ).replace("NULL", "'n'")),
        ("select ok opened name=1", "SELECT name FROM people WHERE id = 1".into()),
        ("select ok named name", "SELECT id FROM people WHERE name = 'nobody'".into()),
        ("select ok opened note=2", "SELECT plain, note FROM people".into()),
        ("update ok sealed note=1", "UPDATE people SET note = 'm' WHERE id = 2".into()),
        // it is nobody's business, and no line is written
        ("", "SELECT plain FROM people WHERE id = 1".into()),
        ("", "SELECT 1".into()),
        ("select ok opened born=2", "SELECT SUM(born) FROM people".into()),
        ("select ok opened name=2", "SELECT UPPER(name) FROM people".into()),
        ("delete ok named born,name,note", "DELETE FROM people WHERE name = 'nobody'".into()),
        ("insert 1062 sealed born=1,name=1,note=1",
            "INSERT INTO people VALUES (1, 'x', 1, 'x', 1)".into()),
        ("select ok opened born=1 named name", "SELECT born FROM people WHERE name = 'b'".into()),
        // what the server does alone, on tokens
        ("select ok named note", "SELECT id FROM people WHERE note IS NULL".into()),
        ("select ok named name", "SELECT COUNT(DISTINCT `name`) FROM people".into()),
        ("select ok named born", "SELECT id FROM people ORDER BY born LIMIT 1".into()),
        ("select ok named name",
            "SELECT p.id FROM people p JOIN people o ON p.name = o.name".into()),
        ("select ok named name", "SELECT COUNT(*) FROM people GROUP BY Name".into()),
        ("select ok named app.seen.name", "SELECT id FROM seen WHERE name IS NOT NULL".into()),
        ("update ok named name", "UPDATE people SET name = NULL WHERE id = 7".into()),
        ("delete ok named born,name,note", "DELETE FROM people WHERE id = 7".into()),
        ("", "UPDATE people SET plain = 3 WHERE id = 7".into()),
        ("definition ok opened name=2 sealed app.copy.name=2 named born,note",
            "CREATE TABLE copy (id INT PRIMARY KEY, name VARCHAR(40) ENCRYPTED FOR (eq)) SELECT id, name FROM people".into()),
    ];
    let mut expected = Vec::new();
    for (line, sql) in &steps {
        let _ = session.run(sql);
        if !line.is_empty() {
            expected.push((*line, sql.as_str()));
        }
    }
    let read = session.execute("SELECT name FROM people WHERE id = ?", (1,));
    assert!(read.is_ok(), "{read:?}");
    expected.push(("select ok opened name=1", "prepared"));
    let mut raw = RawClient::login(place.pair.proxy.port());
    let id = raw.prepare(b"SELECT note FROM app.people");
    // a cursor, and its rows by one
    raw.command(0x17, &[&id[..], &[1, 1, 0, 0, 0]].concat());
    raw.until_eof();
    expected.push(("select ok named note", "a cursor is opened"));
    for _ in 0..2 {
        raw.command(0x1c, &[&id[..], &[1, 0, 0, 0]].concat());
        raw.until_eof();
        expected.push(("select ok opened note=1", "a row of a cursor"));
    }
    // a line comes behind its answer
    let has_all = || {
        let lines = place.lines();
        lines
            .iter()
            .filter(|line| line["kind"] != "definition" || line["sealed"].is_object())
            .count()
            >= expected.len()
    };
    wait_until("all lines", Duration::from_secs(20), has_all);
    let mut lines = place.lines();
    // the table and its view were made
    lines.retain(|line| line["kind"] != "definition" || line["sealed"].is_object());
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, (wanted, sql)) in lines.iter().zip(&expected) {
        let said = cells(line);
        // whether a write reads first is not what this is about
        let is_write = wanted.starts_with("update") || wanted.starts_with("delete");
        let said = match said.split_once(" opened ") {
            Some((kind, rest)) if is_write => {
                let rest = rest
                    .split_once(' ')
                    .map_or(String::new(), |(_, r)| format!(" {r}"));
                kind.to_owned() + &rest
            }
            _ => said,
        };
        assert_eq!(&said, wanted, "{sql}: {line:#}");
        assert!(
            line["account"]
                .as_str()
                .expect("a text")
                .starts_with("root@"),
            "{line}"
        );
        assert!(
            line["client"]
                .as_str()
                .expect("a text")
                .starts_with("127.0.0.1:"),
            "{line}"
        );
        if !sql.starts_with("a ") {
            assert_eq!(line["database"], "app");
            assert!(line["attributes"]["_client_name"].is_string(), "{line}");
        }
    }
    let first_shape = lines[1]["shape"].as_str().expect("a digest").to_owned();
    let whole: String = parts(place.logs.path())
        .into_iter()
        .map(|part| fs::read_to_string(part).expect("read"))
        .collect();
    let told = whole
        .lines()
        .find(|line| line.contains("\"record\":\"shape\"") && line.contains(&first_shape));
    assert!(
        told.is_some_and(|line| line.contains("WHERE id = ?")),
        "{told:?}"
    );
    assert!(find_all(&Pattern::of_text(SECRET), whole.as_bytes()).is_empty());
    assert!(!whole.contains("nobody"), "{whole}");
    is_whole_until_it_is_changed(&mut place);
}

fn verify(place: &Place) -> (bool, String) {
    place
        .pair
        .proxy
        .command(&["audit-log", "verify", "-c", "onionskin.toml"])
}

fn is_whole_until_it_is_changed(place: &mut Place) {
    let (sound, said) = verify(place);
    assert!(sound && said.contains(", runs"), "{said}");
    place.pair.proxy.kill9();
    place.pair.proxy.restart();
    let (sound, said) = verify(place);
    assert!(
        sound && said.contains(", was killed") && said.contains(", runs"),
        "{said}"
    );
    place.pair.proxy.terminate();
    let (sound, said) = verify(place);
    assert!(sound && said.contains(", ended"), "{said}");
    // of the run that was killed: the others have no statements
    let texts = parts(place.logs.path()).into_iter().map(|part| {
        let text = fs::read_to_string(&part).expect("read");
        (part, text)
    });
    let (part, whole) = texts.max_by_key(|(_, text)| text.len()).expect("a part");
    let changed = [
        whole.replacen("\"rows\":1", "\"rows\":0", 1),
        whole.replacen("root@", "toor@", 1),
        {
            let mut lines: Vec<&str> = whole.lines().collect();
            let at = lines.iter().position(|line| line.contains("\"statement\""));
            lines.remove(at.expect("a line"));
            lines.join("\n") + "\n"
        },
        whole[..whole.len() / 2].to_owned(),
        String::new(),
    ];
    for text in changed {
        assert_ne!(text, whole);
        fs::write(&part, text).expect("written");
        let (sound, said) = verify(place);
        assert!(!sound && said.contains("WRONG"), "{said}");
    }
    fs::write(&part, whole).expect("written");
    assert!(verify(place).0);
    // a section that names nothing
    let file = place.pair.proxy.folder().join("onionskin.toml");
    let config = fs::read_to_string(&file).expect("a configuration");
    let folder = place.logs.path().display().to_string();
    for (to, said) in [
        (
            config.replace(&folder, "/nowhere"),
            "audit log: /nowhere: No such file",
        ),
        (
            config.replace("[audit]", "[audit]\nwhen_full = \"never\""),
            "when_full",
        ),
    ] {
        fs::write(&file, to).expect("written");
        let output = place.pair.proxy.output(&["serve", "-c", "onionskin.toml"]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(said), "{text}");
    }
    fs::write(&file, config).expect("written");
    place.pair.proxy.restart();
}

fn a_reader_that_leaves_is_recorded(kind: Kind) {
    let Some(mut place) = Place::start(kind, "") else {
        return;
    };
    let long = "x".repeat(30_000);
    for first in (0..600).step_by(50) {
        let rows: Vec<String> = (first..first + 50)
            .map(|id| format!("({id}, 'n', 1, '{long}', 1)"))
            .collect();
        let sql = format!("INSERT INTO people VALUES {}", rows.join(","));
        place.pair.protected.must(&sql);
    }
    // a line comes behind its answer
    let inserted = || {
        let lines = place.lines();
        lines.iter().filter(|line| line["kind"] == "insert").count() == 12
    };
    wait_until(
        "the lines of what was inserted",
        Duration::from_secs(20),
        inserted,
    );
    let before = place.lines().len();
    let mut reader = RawClient::login(place.pair.proxy.port());
    reader.send(&packet(0, b"\x03SELECT note FROM app.people"));
    std::thread::sleep(Duration::from_millis(300));
    drop(reader);
    wait_until("the line", Duration::from_secs(20), || {
        place.lines().len() > before
    });
    let lines = place.lines();
    let line = lines.last().expect("a line");
    let opened = line["opened"]["app.people.note"]
        .as_u64()
        .expect("a number");
    assert!(opened > 0 && opened < 600, "{line:#}");
    assert_ne!(line["outcome"], "ok", "{line:#}");
}

/// A small file system, where one can be mounted.
struct Small(tempfile::TempDir);

impl Small {
    fn mount() -> Option<Small> {
        let folder = tempfile::tempdir().expect("a folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"])
            .arg(folder.path())
            .status();
        match mounted.is_ok_and(|status| status.success()) {
            true => Some(Small(folder)),
            false => {
                announce("a full disk for the audit log skipped: no tmpfs can be mounted here");
                None
            }
        }
    }

    fn fill(&self) -> PathBuf {
        let filler = self.0.path().join("filler");
        let mut room = vec![0; 16 << 20];
        let mut file = fs::File::create(&filler).expect("a file");
        while std::io::Write::write_all(&mut file, &room).is_err() && room.len() > 1 {
            room.truncate(room.len() / 2);
        }
        filler
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

fn a_full_disk_stops_what_it_must(kind: Kind) {
    let Some(small) = Small::mount() else {
        return;
    };
    let Some(mut pair) = Place::at(kind, small.0.path(), "") else {
        return;
    };
    pair.protected
        .must("INSERT INTO people VALUES (1, 'a', 1, 'n', 1)");
    let filler = small.fill();
    // there is room for what was under way
    let mut done = 0;
    let shapes = "1,".repeat(200);
    let failure = loop {
        let sql = format!("SELECT name FROM people WHERE id IN ({shapes} {done}) LIMIT {done}");
        match pair.protected.run(&sql) {
            Ok(_) => done += 1,
            Err(failure) => break failure,
        }
        assert!(done < 50_000);
    };
    assert_eq!(failure.code, 1030, "{failure:?}");
    assert!(failure.message.contains("OS1214"), "{failure:?}");
    assert!(done > 100, "{done}");
    // writes as well, and nothing was written
    assert_eq!(
        pair.protected
            .must_fail("UPDATE people SET name = 'b' WHERE id = 1"),
        1030
    );
    assert_eq!(
        pair.protected
            .must_fail("DELETE FROM people WHERE name = 'a'"),
        1030
    );
    pair.protected.must("SELECT plain FROM people");
    let recorded = statements(small.0.path()).len();
    fs::remove_file(filler).expect("removed");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(
        pair.protected
            .text("SELECT name FROM people")
            .expect("an answer"),
        "a"
    );
    let is_recorded = || statements(small.0.path()).len() == recorded + 1;
    wait_until("the line", Duration::from_secs(20), is_recorded);
    let (sound, said) = pair
        .proxy
        .command(&["audit-log", "verify", "-c", "onionskin.toml"]);
    assert!(sound && !said.contains("lost"), "{said}");
    pair.proxy.terminate();
}

fn a_full_disk_can_be_counted(kind: Kind) {
    let Some(small) = Small::mount() else {
        return;
    };
    let Some(mut pair) = Place::at(kind, small.0.path(), "when_full = \"count\"") else {
        return;
    };
    pair.protected
        .must("INSERT INTO people VALUES (1, 'a', 1, 'n', 1)");
    let filler = small.fill();
    let shapes = "1,".repeat(200);
    let mut before = 0;
    for done in 0.. {
        for _ in 0..100 {
            let sql = format!("SELECT name FROM people WHERE id IN ({shapes} {done})");
            pair.protected.must(&sql);
        }
        let now = statements_of_whole_lines(small.0.path());
        if now == before {
            break;
        }
        before = now;
    }
    fs::remove_file(filler).expect("removed");
    std::thread::sleep(Duration::from_millis(300));
    pair.protected.must("SELECT name FROM people");
    let (sound, said) = pair
        .proxy
        .command(&["audit-log", "verify", "-c", "onionskin.toml"]);
    assert!(sound && said.contains("statements lost"), "{said}");
    pair.proxy.terminate();
}

/// Lines that are written whole.
fn statements_of_whole_lines(folder: &Path) -> usize {
    let lines = |part: PathBuf| {
        let text = fs::read_to_string(part).unwrap_or_default();
        let lines = text
            .lines()
            .filter(|line| line.contains("\"record\":\"statement\""));
        lines.count()
    };
    parts(folder).into_iter().map(lines).sum()
}

/// A real daemon, which writes what it gets by each of the three ways.
struct Rsyslog {
    child: std::process::Child,
    folder: tempfile::TempDir,
    udp: u16,
    tcp: u16,
}

impl Rsyslog {
    fn start() -> Option<Rsyslog> {
        let program = "/usr/sbin/rsyslogd";
        if !Path::new(program).exists() {
            announce("SKIPPED: no rsyslogd");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path().display();
        let (udp, tcp) = (free_port(), free_port());
        let config = format!(
            "global(workDirectory=\"{at}\" maxMessageSize=\"64k\")\n\
             template(name=\"text\" type=\"string\" string=\"%app-name% %syslogfacility-text%.%syslogseverity-text% %msg%\\n\")\n\
             module(load=\"imudp\")\ninput(type=\"imudp\" address=\"127.0.0.1\" port=\"{udp}\" ruleset=\"udp\")\n\
             module(load=\"imtcp\")\ninput(type=\"imtcp\" address=\"127.0.0.1\" port=\"{tcp}\" ruleset=\"tcp\")\n\
             module(load=\"imuxsock\" SysSock.Use=\"off\")\ninput(type=\"imuxsock\" Socket=\"{at}/log\" ruleset=\"unix\" RateLimit.Interval=\"0\")\n\
             ruleset(name=\"udp\") {{ action(type=\"omfile\" file=\"{at}/udp.txt\" template=\"text\") }}\n\
             ruleset(name=\"tcp\") {{ action(type=\"omfile\" file=\"{at}/tcp.txt\" template=\"text\") }}\n\
             ruleset(name=\"unix\") {{ action(type=\"omfile\" file=\"{at}/unix.txt\" template=\"text\") }}\n"
        );
        let file = folder.path().join("rsyslog.conf");
        fs::write(&file, config).expect("written");
        let pid = folder.path().join("pid");
        let child = tied_command(program)
            .args(["-n", "-f"])
            .arg(&file)
            .arg("-i")
            .arg(&pid)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("rsyslogd starts");
        wait_until("rsyslogd listens", Duration::from_secs(20), || {
            std::net::TcpStream::connect(("127.0.0.1", tcp)).is_ok()
                && folder.path().join("log").exists()
        });
        Some(Rsyslog {
            child,
            folder,
            udp,
            tcp,
        })
    }

    /// The texts that have come by a way.
    fn texts(&self, way: &str) -> Vec<String> {
        let file = self.folder.path().join(format!("{way}.txt"));
        let text = fs::read_to_string(file).unwrap_or_default();
        let texts = text.lines().map(|line| {
            let text = line.strip_prefix("onionskin authpriv.info ");
            text.unwrap_or(line).trim_start().to_owned()
        });
        texts.collect()
    }
}

impl Drop for Rsyslog {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A syslog daemon gets every line as it is in the files, whichever way it takes.
#[test]
fn a_daemon_gets_every_line() {
    if direct_mode() {
        return;
    }
    let Some(daemon) = Rsyslog::start() else {
        return;
    };
    let ways = [
        ("udp", format!("udp:127.0.0.1:{}", daemon.udp)),
        ("tcp", format!("tcp:127.0.0.1:{}", daemon.tcp)),
        (
            "unix",
            format!("unix:{}", daemon.folder.path().join("log").display()),
        ),
    ];
    for (way, address) in ways {
        let more = format!("syslog = \"{address}\"");
        let Some(mut place) = Place::start(Kind::MariaDb, &more) else {
            return;
        };
        let session = &mut place.pair.protected;
        for n in 0..30 {
            session.must(&format!(
                "INSERT INTO people VALUES ({n}, 'näme {n}', {n}, 'n', {n})"
            ));
            session.must(&format!("SELECT name, born FROM people WHERE id = {n}"));
        }
        place.pair.proxy.terminate();
        let mut lines = Vec::new();
        for part in parts(place.logs.path()) {
            let text = fs::read_to_string(part).expect("read");
            lines.extend(text.lines().map(str::to_owned));
        }
        assert!(lines.len() > 60, "{lines:?}");
        wait_until("all lines", Duration::from_secs(20), || {
            daemon.texts(way).len() >= lines.len()
        });
        assert_eq!(daemon.texts(way), lines, "{way}");
        // it can be verified like the files
        let copy = tempfile::tempdir().expect("a folder");
        let part = parts(place.logs.path()).pop().expect("a part");
        let name = part.file_name().expect("a name");
        let text = daemon.texts(way).join("\n") + "\n";
        fs::write(copy.path().join(name), &text).expect("written");
        let folder = copy.path().to_str().expect("a plain path");
        let verify = [
            "audit-log",
            "verify",
            "-c",
            "onionskin.toml",
            "--folder",
            folder,
        ];
        let (sound, said) = place.pair.proxy.command(&verify);
        assert!(sound, "{way}: {said}");
        fs::write(
            copy.path().join(name),
            text.replacen("people.born", "people.name", 1),
        )
        .expect("written");
        let (sound, said) = place.pair.proxy.command(&verify);
        assert!(!sound, "{way}: {said}");
    }
    // nobody waits for a daemon that is not there
    let more = "syslog = \"udp:127.0.0.1:1\"";
    let Some(mut place) = Place::start(Kind::MariaDb, more) else {
        return;
    };
    place.pair.protected.must("SELECT name FROM people");
    place.pair.proxy.terminate();
    let log = place.pair.proxy.log();
    assert!(log.contains("takes no lines of the audit log"), "{log}");
    let (sound, said) = place
        .pair
        .proxy
        .command(&["audit-log", "verify", "-c", "onionskin.toml"]);
    assert!(sound, "{said}");
}

/// MariaDB's own audit plugin counts what reaches the tables.
#[test]
fn the_server_counts_as_many_reads() {
    let Some(mut place) = Place::start(Kind::MariaDb, "") else {
        return;
    };
    let mut root = place.pair.behind.connect();
    let counted = place.pair.behind.data_dir().join("audit.log");
    root.must("INSTALL SONAME 'server_audit'");
    root.must(&format!(
        "SET GLOBAL server_audit_file_path = '{}'",
        counted.display()
    ));
    root.must("SET GLOBAL server_audit_events = 'TABLE'");
    root.must("SET GLOBAL server_audit_logging = ON");
    let session = &mut place.pair.protected;
    for n in 0..40 {
        session.must(&format!(
            "INSERT INTO people VALUES ({n}, 'name {n}', {n}, 'n', {n})"
        ));
    }
    for n in 0..60 {
        session.must(&format!("SELECT name, born FROM people WHERE id = {n}"));
        let read = session.execute("SELECT note FROM people WHERE born = ?", (n,));
        assert!(read.is_ok(), "{read:?}");
    }
    // a line comes behind its answer, and before the session's next command
    session.must("DO 0");
    root.must("SET GLOBAL server_audit_logging = OFF");
    let log = fs::read_to_string(counted).expect("the server's log");
    let at_server = |what: &str| {
        let what = format!(",{what},app,people,");
        log.lines().filter(|line| line.contains(&what)).count()
    };
    let lines = place.lines();
    let ours = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).count();
    assert_eq!((ours("select"), ours("insert")), (120, 40));
    assert_eq!((at_server("READ"), at_server("WRITE")), (120, 40), "{log}");
}
