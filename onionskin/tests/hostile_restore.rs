//! Restoring what a hostile administrator wrote: binlog files by hand, triggers for the dump,
//! settings for the backup. Whoever restores gives it nothing: no file is read or written, no
//! command runs, and no secret is in the environment of other programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use onionskin_testkit::*;

on_both_servers!(
    texts_that_no_server_logs_are_not_replayed,
    what_servers_log_as_statements_is_replayed,
);

/// Room for a statement that is written over another.
const ROOM: usize = 700;

/// A server with a binlog that can be backed up.
fn scenery(kind: Kind, extra: &[&str]) -> Option<Scenery> {
    if kind == Kind::MariaDb && !has_mariadb_backup() {
        return None;
    }
    let mut options = ServerOptions {
        binlog: Some(Binlog::Statement),
        extra: extra.iter().map(|option| option.to_string()).collect(),
        ..ServerOptions::default()
    };
    if kind == Kind::MySql {
        options
            .extra
            .push("--plugin-load-add=mysql_clone.so".into());
    }
    Some(Scenery::around(Server::start(kind, options)?))
}

fn back_up(scenery: &Scenery) {
    let source = match scenery.server.kind() {
        Kind::MariaDb => "mariadb-backup",
        Kind::MySql => "clone",
    };
    scenery.must(&["backup", "-q", "--source", source, "--to", "base.sealed"]);
}

fn path_of_tools(scenery: &Scenery) -> String {
    match scenery.server.kind() {
        Kind::MariaDb => std::env::var("PATH").expect("a PATH"),
        Kind::MySql => scenery.path_of_mysql(),
    }
}

fn restore(scenery: &Scenery, path: &str, log: &str, to: &str) -> Output {
    let arguments = ["restore", "-q", "base.sealed", "--binlogs", log, "--to", to];
    let mut command = scenery.command(&arguments);
    command.env("PATH", path).output().expect("onionskin runs")
}

/// A piece of a binlog file that is closed. The server writes no checksums.
struct Forgery {
    file: PathBuf,
    original: Vec<u8>,
    at: usize,
    length: usize,
}

impl Forgery {
    /// Where a statement writes `piece`.
    fn of(scenery: &Scenery, session: &mut Session, statement: &str, piece: &str) -> Self {
        session.must("FLUSH BINARY LOGS");
        session.must(statement);
        session.must("FLUSH BINARY LOGS");
        let files = session.text("SHOW BINARY LOGS").expect("files");
        let name = files
            .lines()
            .rev()
            .nth(1)
            .and_then(|line| line.split('\t').next());
        let file = scenery.server.data_dir().join(name.expect("a file"));
        let original = fs::read(&file).expect("a binlog");
        let at = memchr::memmem::find(&original, piece.as_bytes()).expect("the piece");
        Self {
            file,
            original,
            at,
            length: piece.len(),
        }
    }

    /// Of the same length, so that nothing else changes.
    fn write(&self, text: &str) {
        assert!(text.len() <= self.length, "{text}");
        let mut content = self.original.clone();
        content[self.at..][..self.length].fill(b' ');
        content[self.at..][..text.len()].copy_from_slice(text.as_bytes());
        fs::write(&self.file, content).expect("written");
    }

    fn take_back(&self) {
        fs::write(&self.file, &self.original).expect("written");
    }
}

/// The name of a time zone, as long as they can be. Tools write it into a statement as it is.
fn long_time_zone(session: &mut Session) -> String {
    let name = "z".repeat(64);
    session.must("INSERT INTO mysql.time_zone VALUES (77, 'N')");
    session.must("INSERT INTO mysql.time_zone_transition_type VALUES (77, 0, 0, 0, 'X')");
    session.must(&format!(
        "INSERT INTO mysql.time_zone_name VALUES ('{name}', 77)"
    ));
    session.must(&format!("SET time_zone = '{name}'"));
    name
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files_below(&entry.path())),
            _ => found.push(entry.path()),
        }
    }
    found
}

fn texts_that_no_server_logs_are_not_replayed(kind: Kind) {
    let Some(scenery) = scenery(kind, &["--binlog-checksum=NONE"]) else {
        return;
    };
    let mut session = scenery.server.connect();
    session.must("CREATE DATABASE app");
    session.must("CREATE TABLE app.t (id INT PRIMARY KEY)");
    session.must("CREATE TABLE app.zz (line TEXT)");
    back_up(&scenery);
    let path = path_of_tools(&scenery);
    let pad = format!(
        "CREATE TABLE app.pad (a INT COMMENT '{}')",
        "x".repeat(ROOM)
    );
    let forgery = Forgery::of(&scenery, &mut session, &pad, &pad);
    session.must("USE app");
    let zone = long_time_zone(&mut session);
    let now = "INSERT INTO app.zz VALUES (NOW())";
    let zone = Forgery::of(&scenery, &mut session, now, &zone);
    let keys = scenery.home.path().join("keys.json");
    let far = scenery.home.path().join("far");
    fs::create_dir(&far).expect("made");
    fs::set_permissions(&far, fs::Permissions::from_mode(0o777)).expect("set");
    let log = far.join("profile.sh");
    let forged = forged(&keys.display().to_string(), &far, &log);
    let text = fs::read_to_string(scenery.home.path().join("keys.json")).expect("keys");
    let key = text
        .split('"')
        .max_by_key(|piece| piece.len())
        .expect("keys");
    for (number, (text, expected)) in forged.iter().enumerate() {
        match text.starts_with("+1:00") {
            true => {
                forgery.take_back();
                zone.write(text);
            }
            false => forgery.write(text),
        }
        let (archive, to) = (format!("log{number}"), format!("data{number}"));
        scenery.must(&["archive", "--to", &archive, "--once"]);
        let output = restore(&scenery, &path, &archive, &to);
        let said = String::from_utf8_lossy(&output.stderr);
        // All that was found, before one of them ends the test.
        let data = scenery.home.path().join(&to);
        let restored = data.exists();
        let leaked = files_below(&data).iter().any(|file| {
            fs::read(file)
                .is_ok_and(|content| memchr::memmem::find(&content, key.as_bytes()).is_some())
        });
        let written: Vec<_> = files_below(&far);
        assert!(
            !output.status.success() && !restored && !leaked && written.is_empty(),
            "{text}: restored {restored}, the keys in it {leaked}, files {written:?}: {said}"
        );
        let is_said = match expected[0].as_str() {
            // Whatever the client is called.
            "mysql" => said.contains(&expected[1]),
            begin => said.contains(begin) && said.contains(&expected[1]),
        };
        assert!(is_said, "{text}: {said}");
        let left: Vec<_> = scenery.files();
        assert!(
            !left.iter().any(|name| name.contains("replaying")),
            "{left:?}"
        );
        if expected[0] == AT_EVENT {
            let name = forgery.file.file_name().expect("a name").to_string_lossy();
            assert!(said.contains(&format!("{name}:")), "{said}");
        }
        fs::remove_dir_all(scenery.home.path().join(archive)).expect("removed");
    }
    // What comes before it is there for who asks.
    zone.take_back();
    forgery.write(&forged[0].0);
    scenery.must(&["archive", "--to", "log", "--once"]);
    let said = restore(&scenery, &path, "log", "whole").stderr;
    let said = String::from_utf8_lossy(&said).into_owned();
    let until = said
        .split("--until ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let until = until.unwrap_or_else(|| panic!("{said}"));
    let mut command = scenery.command(&["restore", "-q", "base.sealed", "--binlogs", "log"]);
    command
        .args(["--to", "before", "--until", until])
        .env("PATH", &path);
    let output = command.output().expect("onionskin runs");
    assert!(output.status.success(), "{output:?}");
}

/// How the archive itself refuses a text.
const AT_EVENT: &str = "no server writes that to its binlog by itself";

/// Texts that no server logs, and where the refusal of each begins and what is in it: `log` is a
/// file that the server could be made to write, `keys` one that it could be made to send.
fn forged(keys: &str, far: &Path, log: &Path) -> Vec<(String, [String; 2])> {
    let set = format!(
        "SET GLOBAL general_log_file='{}', GLOBAL general_log=ON",
        log.display()
    );
    let load = format!("LOAD DATA LOCAL INFILE '{keys}' INTO TABLE app.zz");
    let at_event = AT_EVENT;
    let at_client = "the archive makes the client send";
    let both = |begin: &str, end: &str| [begin.to_owned(), end.to_owned()];
    vec![
        (load.clone(), both(at_event, "a statement LOAD DATA")),
        (
            format!("/* x */ {load}"),
            both(at_event, "a statement LOAD DATA"),
        ),
        (
            format!("/*!50000 {load} */"),
            both(at_event, "a statement LOAD DATA"),
        ),
        (set.clone(), both(at_event, "a statement SET GLOBAL")),
        (
            format!(
                "CREATE TABLE app.far (a INT) ENGINE=MyISAM DATA DIRECTORY='{}'",
                far.display()
            ),
            both(at_event, "DATA DIRECTORY"),
        ),
        (
            "INSTALL PLUGIN x SONAME 'x.so'".into(),
            both(at_event, "INSTALL PLUGIN"),
        ),
        (
            format!("INSERT INTO app.t VALUES (1)\n/*!*/;\n{set}"),
            both(at_event, "/*!*/;"),
        ),
        // Two statements in one: the server must not see the second one as a statement.
        (
            format!("INSERT INTO app.t VALUES (1); {set}"),
            both("mysql", "ended with"),
        ),
        // They break out of what the tool makes of a time zone; there is not much room.
        (
            "+1:00'/*!*/;SET GLOBAL general_log=ON/*!*/;#".into(),
            both(at_client, "a statement SET GLOBAL"),
        ),
        (
            "+1:00'/*!*/;LOAD DATA LOCAL INFILE'/bin/sh'INTO TABLE zz/*!*/;#".into(),
            both(at_client, "the file \"/bin/sh\""),
        ),
    ]
}

fn what_servers_log_as_statements_is_replayed(kind: Kind) {
    let Some(scenery) = scenery(kind, &["--log-bin-trust-function-creators=ON"]) else {
        return;
    };
    let mut session = scenery.server.connect();
    session.must("CREATE DATABASE app");
    back_up(&scenery);
    session.must("USE app");
    let rows = scenery.home.path().join("rows");
    fs::write(&rows, "loaded\nLOAD DATA LOCAL INFILE\n").expect("written");
    let load = format!("LOAD DATA INFILE '{}' INTO TABLE t (v)", rows.display());
    let mut statements = vec![
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(100) COMMENT 'it\\'s the data directory')",
        "CREATE TABLE log (v VARCHAR(100))",
        "SET @x = 'global'",
        "INSERT INTO t (v) VALUES (@x)",
        "INSERT INTO t (v) VALUES ('one; SET GLOBAL two')",
        "/* a hint */ INSERT INTO t (v) VALUES ('/* three */')",
        "/*!50000 INSERT INTO t (v) VALUES ('by a dump') */",
        "/*!40000 ALTER TABLE t DISABLE KEYS */",
        "/*!50001 DROP VIEW IF EXISTS `vw`*/",
        "CREATE DATABASE /*!32312 IF NOT EXISTS*/ `other` /*!40100 DEFAULT CHARACTER SET utf8mb4 */",
        "/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER tr AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES (NEW.v) */",
        "CREATE FUNCTION f(a INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO t (v) VALUES ('by f'); RETURN a; END",
        "DO f(1)",
        "CREATE PROCEDURE p() BEGIN INSERT INTO t (v) VALUES ('by p'); SET GLOBAL max_connections = 100; END",
        "CALL p()",
        "CREATE VIEW vw AS SELECT * FROM t",
        "CREATE USER 'u'@'%' IDENTIFIED BY 'xX1'",
        "GRANT SELECT ON app.* TO 'u'@'%'",
        "CREATE TEMPORARY TABLE tmp (a INT)",
        "INSERT INTO tmp VALUES (17)",
        "INSERT INTO t (v) SELECT a FROM tmp",
        "DROP TEMPORARY TABLE tmp",
        "BEGIN",
        "INSERT INTO t (v) VALUES ('a')",
        "SAVEPOINT s",
        "INSERT INTO t (v) VALUES ('b')",
        "COMMIT",
        "XA START 'x'",
        "INSERT INTO t (v) VALUES ('xa')",
        "XA END 'x'",
        "XA PREPARE 'x'",
        "XA COMMIT 'x'",
        "ANALYZE TABLE t",
        "OPTIMIZE TABLE t",
        "FLUSH TABLES",
        "CREATE TABLE a AS SELECT 1 AS a",
        "RENAME TABLE a TO b",
        "TRUNCATE TABLE b",
        "DROP TABLE b",
        "UPDATE t SET v = 'z' WHERE id = 1",
        "DELETE FROM t WHERE id = 2",
        "REPLACE INTO t (id, v) VALUES (100, 'r')",
        &load,
    ];
    match kind {
        Kind::MariaDb => statements.extend([
            "SET PASSWORD FOR 'u'@'%' = PASSWORD('q')",
            "SET STATEMENT max_statement_time = 10 FOR INSERT INTO t (v) VALUES ('SET GLOBAL')",
            "SET STATEMENT lock_wait_timeout = 10 FOR ALTER TABLE t ADD COLUMN w INT",
            "CREATE SEQUENCE sq",
            "SET binlog_format = 'ROW'",
            "SELECT NEXT VALUE FOR sq",
            "INSERT INTO t (v) VALUES ('by rows')",
            "SET binlog_format = 'STATEMENT'",
            "SET GLOBAL log_bin_compress = ON",
            "SET GLOBAL log_bin_compress_min_len = 10",
            "INSERT INTO t (v) VALUES (CONCAT('compressed', REPEAT('x', 50)))",
        ]),
        Kind::MySql => statements.extend([
            "ALTER USER 'u'@'%' IDENTIFIED BY 'q'",
            "CREATE ROLE r",
            "GRANT r TO 'u'@'%'",
            "SET DEFAULT ROLE r TO 'u'@'%'",
            "WITH a AS (SELECT 1 AS x) UPDATE t JOIN a ON t.id = a.x SET t.v = 'with'",
            "SET binlog_transaction_compression = ON",
            "INSERT INTO t (v) VALUES ('compressed')",
            "SET binlog_format = 'ROW'",
            "INSERT INTO t (v) VALUES ('by rows')",
        ]),
    }
    for statement in statements {
        session.must(statement);
    }
    scenery.must(&["archive", "--to", "log", "--once"]);
    let path = path_of_tools(&scenery);
    let output = restore(&scenery, &path, "log", "data");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");

    let options = ServerOptions {
        tls: kind == Kind::MySql,
        ..ServerOptions::default()
    };
    let server = Server::start_on(kind, options, &scenery.home.path().join("data"));
    let mut restored = server.connect();
    for question in [
        "SELECT id, v FROM app.t ORDER BY id",
        "SELECT v FROM app.log ORDER BY v",
        "SHOW CREATE TABLE app.t",
        "SELECT COUNT(*) FROM app.vw",
        "SHOW GRANTS FOR 'u'@'%'",
        "SHOW CREATE USER 'u'@'%'",
        "SELECT routine_name FROM information_schema.routines WHERE routine_schema = 'app' ORDER BY 1",
        "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = 'app'",
        "SELECT schema_name FROM information_schema.schemata WHERE schema_name IN ('app', 'other') ORDER BY 1",
    ] {
        let (there, here) = (session.text(question), restored.text(question));
        assert_eq!(
            here.expect("an answer"),
            there.expect("an answer"),
            "{question}"
        );
    }
    let table = session.text("SHOW CREATE TABLE app.t").expect("a table");
    assert!(table.contains("data directory"), "{table}");
}

/// A folder of programs that are found first, and the PATH for it.
fn programs(scenery: &Scenery, scripts: &[(&str, String)]) -> String {
    let folder = scenery.home.path().join("bin");
    fs::create_dir_all(&folder).expect("made");
    // For the server's user.
    fs::set_permissions(scenery.home.path(), fs::Permissions::from_mode(0o755)).expect("set");
    for (name, script) in scripts {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/bash\n{script}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
    }
    format!(
        "{}:{}",
        folder.display(),
        std::env::var("PATH").unwrap_or_default()
    )
}

fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|folder| folder.join(name));
    found
        .find(|path| path.is_file())
        .unwrap_or_else(|| panic!("{name} is not installed"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// Triggers are in files of their own, which the server's administrator can write.
#[test]
fn a_dump_runs_no_commands_of_the_client() {
    let scenery = Scenery::around(Server::mariadb());
    let mut session = scenery.server.connect();
    session.must("CREATE DATABASE app");
    session.must("CREATE TABLE app.t (id INT)");
    let far = scenery.home.path().join("far");
    // The server's parser takes it for a comment, the client for a command.
    let ran = format!("touch {}", far.display());
    session.must(
        "CREATE TRIGGER app.tr BEFORE INSERT ON app.t FOR EACH ROW SET @a = '--- room for the command, which is long ---------------\
         -----------------------------------------------------------------------------------------------------------------------'",
    );
    let file = scenery.server.data_dir().join("app/t.TRG");
    let text = fs::read_to_string(&file).expect("a trigger");
    let begin = text.find("SET @a").expect("the body");
    let end = begin + text[begin..].find("---\\'").expect("its end") + 5;
    fs::write(
        &file,
        format!(
            "{}SET @a = 1\\n\\\\! {ran}\\n{}",
            &text[..begin],
            &text[end..]
        ),
    )
    .expect("written");
    session.must("FLUSH TABLES");
    // Programs of before May 2024 wrote no line that forbids it.
    let dump = format!(
        "set -o pipefail; {} \"$@\" | sed 1d",
        program("mariadb-dump").display()
    );
    let path = programs(&scenery, &[("mariadb-dump", dump)]);
    let arguments = [
        "backup",
        "-q",
        "--source",
        "dump",
        "--to",
        "dump",
        "--",
        "--databases",
        "app",
    ];
    let output = scenery
        .command(&arguments)
        .env("PATH", &path)
        .output()
        .expect("runs");
    assert!(output.status.success(), "{}", said(&output));
    let opened = scenery.must(&["open", "dump"]);
    assert!(opened.contains(&format!("\\! {ran}")), "{opened}");
    assert!(!opened.contains("sandbox"), "{opened}");
    let output = scenery.onionskin(&["verify", "--start", "dump"]);
    assert!(!far.exists(), "{}", said(&output));
}

#[test]
fn other_programs_see_no_secrets() {
    if !has_mariadb_backup() {
        return;
    }
    let scenery = Scenery::around(Server::mariadb());
    let mut session = scenery.server.connect();
    session.must("CREATE DATABASE app");
    session.must("CREATE TABLE app.t (id INT PRIMARY KEY)");
    let seen = scenery.home.path().join("seen");
    fs::create_dir(&seen).expect("made");
    fs::set_permissions(&seen, fs::Permissions::from_mode(0o777)).expect("set");
    let spy = |name: &str| {
        let real = program(name);
        (
            name.to_owned(),
            format!(
                "env > {}/{name}.$$\nexec {} \"$@\"",
                seen.display(),
                real.display()
            ),
        )
    };
    let scripts = ["mariadb", "mariadb-backup"].map(spy);
    let server = (
        "mariadbd".to_owned(),
        format!(
            "exec {} \"$@\"",
            scenery.server.kind().server_program().display()
        ),
    );
    let scripts: Vec<(&str, String)> = [&scripts[..], &[server]]
        .concat()
        .iter()
        .map(|(name, script)| (&*name.clone().leak(), script.clone()))
        .collect();
    let path = programs(&scenery, &scripts);
    let run = |arguments: &[&str]| {
        let output = scenery
            .command(arguments)
            .env("PATH", &path)
            .env("ONIONSKIN_MYSQLD", scenery.home.path().join("bin/mariadbd"))
            .env("ONIONSKIN_NEW_PASSPHRASE", "canary passphrase")
            .env("CREDENTIALS_DIRECTORY", "/nowhere/canary")
            .output()
            .expect("onionskin runs");
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    };
    scenery.must(&[
        "backup",
        "-q",
        "--source",
        "dump",
        "--to",
        "dump",
        "--",
        "--databases",
        "app",
    ]);
    scenery.must(&["backup", "-q", "--source", "mariadb-backup", "--to", "full"]);
    run(&["verify", "--start", "dump"]);
    run(&["restore", "-q", "--to", "data", "full"]);
    let files = files_below(&seen);
    for name in ["mariadb.", "mariadb-backup."] {
        let of = |file: &&PathBuf| {
            file.file_name()
                .is_some_and(|f| f.to_string_lossy().starts_with(name))
        };
        assert!(files.iter().any(|file| of(&file)), "{name}: {files:?}");
    }
    for file in files {
        let text = fs::read_to_string(&file).expect("there");
        assert!(text.contains("PATH="), "{text}");
        assert!(!text.contains("canary"), "{}: {text}", file.display());
    }
}

/// mariadb-backup's stream, made by somebody who is not mariadb-backup.
#[test]
fn settings_in_a_backup_lead_nowhere() {
    if !has_mariadb_backup() {
        return;
    }
    let scenery = Scenery::around(Server::mariadb());
    let real = program("mariadb-backup");
    let script = format!(
        "d=$(mktemp -d); a=(); for o in \"$@\"; do case $o in --stream*|--target-dir*) ;; *) a+=(\"$o\");; esac; done\n\
         {real} \"${{a[@]}}\" --target-dir=$d 1>&2 || exit 1\n\
         sed -i \"$EDIT\" $d/backup-my.cnf; cd $d; find . -type f -printf '%P\\n' | xargs mbstream -c; rm -r $d",
        real = real.display()
    );
    let path = programs(&scenery, &[("mariadb-backup", script)]);
    let back_up = |edit: &str, to: &str| {
        let output = scenery
            .command(&["backup", "-q", "--source", "mariadb-backup", "--to", to])
            .env("PATH", &path)
            .env("EDIT", edit)
            .output()
            .expect("onionskin runs");
        assert!(output.status.success(), "{}", said(&output));
    };
    back_up("s/x/x/", "good");
    scenery.must(&["restore", "-q", "--to", "data", "good"]);
    for (number, (edit, what)) in [
        ("$ a plugin_load=evil=evil.so", "has a line \"plugin_load=evil=evil.so\""),
        ("$ a plugin-dir = /tmp", "has a line \"plugin-dir = /tmp\""),
        ("s,^innodb_data_file_path=.*,innodb_data_file_path=ibdata1:12M;/tmp/onionskin-far:5M:autoextend,", "innodb_data_file_path"),
        ("s,^innodb_page_size=.*,innodb_page_size=16384 --general-log,", "innodb_page_size"),
    ]
    .into_iter()
    .enumerate()
    {
        let (name, to) = (format!("bad{number}"), format!("data{number}"));
        back_up(edit, &name);
        scenery.fails(&["restore", "-q", "--to", &to, &name], 3, what);
        scenery.fails(&["verify", "--start", &name], 3, what);
        assert!(!scenery.home.path().join(to).exists());
    }
    assert!(!Path::new("/tmp/onionskin-far").exists());
}
