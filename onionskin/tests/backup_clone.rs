//! Backups of MySQL by its clone plugin: sealed, verified to the page, started on, restored; and
//! what is refused.

use onionskin_testkit::*;
use std::fs;
use std::path::Path;
use std::process::Command;

const CLONED: [&str; 5] = [
    "app.one",
    "app.zipped",
    "app.packed",
    "app.parted",
    "`odd-name`.`t t`",
];

/// MySQL with the plugin, and tables in all of InnoDB's formats.
fn scenery() -> Option<Scenery> {
    let options = ServerOptions {
        binlog: Some(Binlog::Row),
        extra: vec![
            "--plugin-load-add=mysql_clone.so".into(),
            "--gtid-mode=ON".into(),
            "--enforce-gtid-consistency=ON".into(),
        ],
        ..ServerOptions::default()
    };
    let server = Server::start(Kind::MySql, options)?;
    let mut session = server.connect();
    session.must("CREATE DATABASE app");
    session.must("CREATE DATABASE `odd-name`");
    session.must("CREATE DATABASE hollow");
    let columns = "(id INT PRIMARY KEY, c VARCHAR(200), KEY (c))";
    session.must(&format!("CREATE TABLE app.one {columns}"));
    session.must(&format!(
        "CREATE TABLE app.zipped {columns} ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8"
    ));
    session.must(&format!(
        "CREATE TABLE app.packed {columns} COMPRESSION='zlib'"
    ));
    session.must(&format!(
        "CREATE TABLE app.parted {columns} PARTITION BY HASH (id) PARTITIONS 3"
    ));
    session.must(&format!("CREATE TABLE `odd-name`.`t t` {columns}"));
    session.must("SET SESSION cte_max_recursion_depth = 10000");
    session.must("USE app");
    for table in CLONED {
        session.must(&format!(
            "INSERT INTO {table} WITH RECURSIVE seq (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM seq WHERE n < 3000) \
             SELECT n, REPEAT(SHA2(n, 256), 3) FROM seq"
        ));
    }
    Some(Scenery::around(server))
}

fn sums(session: &mut Session) -> Vec<String> {
    let sum = |table| {
        session
            .text(&format!("CHECKSUM TABLE {table}"))
            .expect("a checksum")
    };
    CLONED.map(sum).to_vec()
}

#[test]
fn a_clone_comes_back_as_a_server() {
    let Some(scenery) = scenery() else { return };
    let mut session = scenery.server.connect();
    let before = sums(&mut session);
    // Pages are compressed when they are written; clone sends those that are not as they lie in
    // memory.
    session.must("FLUSH TABLES app.packed FOR EXPORT");
    session.must("UNLOCK TABLES");
    let status = session.text("SHOW BINARY LOG STATUS").expect("a position");
    let status: Vec<&str> = status.split('\t').collect();
    fs::create_dir(scenery.home.path().join("work")).expect("made");
    let backup = [
        "backup", "--source", "clone", "--work", "work", "--to", "sealed",
    ];
    assert_eq!(scenery.must(&backup).trim(), "sealed");
    let left = fs::read_dir(scenery.home.path().join("work")).expect("there");
    assert_eq!(left.count(), 0, "the copy is removed");
    // What comes later is not in it.
    session.must("DELETE FROM app.one WHERE id > 100");

    let said = scenery.must(&["verify", "--start", "--work", "work", "sealed"]);
    for text in [
        "source    clone".to_owned(),
        "server    mysql 9.".to_owned(),
        format!("binlog    {} at {}", status[0], status[1]),
        format!("gtid      {}", status[4]),
        "tablespaces: all have their checksums".into(),
        "pages that are compressed by their server".into(),
        "tables pass CHECK TABLE".into(),
    ] {
        assert!(said.contains(&text), "{text:?} is not in: {said}");
    }
    assert!(!said.contains("in a format that is not known"), "{said}");
    let listed = scenery.must(&["backup", "list", "--to", "."]);
    assert!(
        listed.contains("clone") && listed.contains("footer checked, full"),
        "{listed}"
    );

    scenery.must(&["restore", "sealed", "--to", "data"]);
    let data = scenery.home.path().join("data");
    assert!(
        !data.join("auto.cnf").exists(),
        "a restored server is another one"
    );
    assert!(data.join("hollow").is_dir());
    let restored = Server::start_on(Kind::MySql, ServerOptions::default(), &data);
    let mut session = restored.connect();
    assert_eq!(sums(&mut session), before);
    let gtid = session
        .text("SELECT @@GLOBAL.gtid_executed")
        .expect("a set");
    assert_eq!(gtid, status[4]);
    for table in CLONED {
        let check = session
            .text(&format!("CHECK TABLE {table}"))
            .expect("checked");
        assert!(check.ends_with("status\tOK"), "{check}");
    }
    session.must("CREATE TABLE hollow.t (id INT)");

    // Programs of others unpack it as well.
    if has_mariadb_backup() {
        let folder = scenery.home.path().join("by-mbstream");
        fs::create_dir(&folder).expect("made");
        scenery.must(&["open", "sealed", "-o", "stream"]);
        let stream = fs::File::open(scenery.home.path().join("stream")).expect("there");
        let unpacked = Command::new("mbstream")
            .arg("-x")
            .current_dir(&folder)
            .stdin(stream)
            .output();
        assert!(unpacked.is_ok_and(|output| output.status.success()));
        let same = Command::new("diff")
            .arg("-r")
            .args([&folder, &data])
            .output()
            .expect("diff runs");
        // Folders that are empty are in the manifest alone.
        let said = String::from_utf8_lossy(&same.stdout).into_owned();
        assert!(
            said.lines()
                .all(|line| line.starts_with("Only in") && line.contains("/data")),
            "{said}"
        );
    }

    scenery.fails(&["restore", "sealed", "--to", "data"], 2, "not empty");
}

#[test]
fn a_clone_is_brought_to_a_transaction_or_a_time() {
    let options = ServerOptions {
        binlog: Some(Binlog::Row),
        extra: [
            "--plugin-load-add=mysql_clone.so",
            "--gtid-mode=ON",
            "--enforce-gtid-consistency=ON",
            // Without these no server reads the copy.
            "--innodb-data-file-path=ibdata1:12M;ibdata2:12M:autoextend",
            "--lower-case-table-names=0",
        ]
        .map(String::from)
        .to_vec(),
        ..ServerOptions::default()
    };
    let Some(server) = Server::start(Kind::MySql, options) else {
        return;
    };
    let scenery = Scenery::around(server);
    let mut session = scenery.server.connect();
    session.must("CREATE DATABASE app");
    session.must("CREATE TABLE app.t (id INT PRIMARY KEY, v VARCHAR(100))");
    session.must("INSERT INTO app.t VALUES (1, 'in the backup')");
    scenery.must(&["backup", "-q", "--source", "clone", "--to", "base.sealed"]);
    session.must("INSERT INTO app.t VALUES (2, 'behind it')");
    let executed = |session: &mut Session| session.text("SELECT @@gtid_executed").expect("a set");
    let set = executed(&mut session);
    let (uuid, numbers) = set.split_once(':').expect("a set");
    let second = format!("{uuid}:{}", numbers.rsplit('-').next().expect("a number"));
    session.must("UPDATE app.t SET v = 'changed' WHERE id = 1");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let noon = session
        .text("SELECT DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%d %H:%i:%s.%f')")
        .expect("a time");
    session.must("DELETE FROM app.t");
    scenery.must(&["archive", "--to", "log", "--once"]);

    let path = scenery.path_of_mysql();
    let restore = |to: &str, until: &str| {
        let output = scenery
            .command(&["restore", "-q", "base.sealed", "--to", to])
            .args(["--binlogs", "log", "--until", until])
            .env("PATH", &path)
            .output()
            .expect("onionskin runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let options = ServerOptions {
            extra: vec!["--innodb-data-file-path=ibdata1:12M;ibdata2:12M:autoextend".into()],
            ..ServerOptions::default()
        };
        let data = scenery.home.path().join(to);
        let server = Server::start_on(Kind::MySql, options, &data);
        let mut session = server.connect();
        let rows = session
            .text("SELECT GROUP_CONCAT(id, ' ', v ORDER BY id) FROM app.t")
            .expect("rows");
        (rows, executed(&mut session))
    };
    let (rows, gtids) = restore("by-gtid", &second);
    assert_eq!(rows, "1 in the backup,2 behind it");
    assert!(gtids.contains(&set), "{gtids}: {set}");
    let (rows, _) = restore("by-time", &noon);
    assert_eq!(rows, "1 changed,2 behind it");
}

#[test]
fn a_clone_over_tcp_goes_through_a_receiver() {
    let Some(scenery) = scenery() else { return };
    let mut session = scenery.server.connect();
    let before = sums(&mut session);
    session.must("CREATE USER 'saver'@'%' IDENTIFIED BY 'it''s \\\\ secret'");
    session.must("GRANT BACKUP_ADMIN, SELECT ON *.* TO 'saver'@'%'");
    let address = format!("127.0.0.1:{}", scenery.server.port());
    scenery.must(&["init", "--dir", "tcp", "--backend", &address]);
    // The account's password goes to a server only that is known.
    let config = scenery.home.path().join("tcp/onionskin.toml");
    let made = std::fs::read_to_string(&config).expect("made");
    let authority = scenery.server.authority().expect("MySQL has one");
    let trust = format!(
        "backend_tls = \"required\"\nbackend_ca = \"{}\"\n",
        authority.display()
    );
    std::fs::write(&config, trust + &made).expect("written");
    let output = scenery
        .command(&[
            "backup",
            "-c",
            "tcp/onionskin.toml",
            "--source",
            "clone",
            "--user",
            "saver",
            "--to",
            "sealed",
        ])
        .env("ONIONSKIN_PASSWORD", "it's \\ secret")
        .output()
        .expect("onionskin runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    scenery.must(&[
        "restore",
        "-c",
        "tcp/onionskin.toml",
        "sealed",
        "--to",
        "data",
    ]);
    let data = scenery.home.path().join("data");
    let restored = Server::start_on(Kind::MySql, ServerOptions::default(), &data);
    assert_eq!(sums(&mut restored.connect()), before);
    let failed = scenery
        .command(&[
            "backup",
            "-c",
            "tcp/onionskin.toml",
            "--source",
            "clone",
            "--user",
            "saver",
            "--to",
            "x",
        ])
        .env("ONIONSKIN_PASSWORD", "wrong password")
        .output()
        .expect("onionskin runs");
    assert_eq!(failed.status.code(), Some(4));
    assert!(!String::from_utf8_lossy(&failed.stderr).contains("wrong password"));
    assert!(!scenery.files().contains(&"x".to_owned()));
}

#[test]
fn what_clone_cannot_copy_is_refused() {
    let Some(scenery) = scenery() else { return };
    let mut session = scenery.server.connect();
    session.must("CREATE TABLE app.old (id INT PRIMARY KEY) ENGINE=MyISAM");
    let backup = ["backup", "--source", "clone", "--to", "x"];
    scenery.fails(&backup, 4, "app.old (MyISAM)");
    session.must("DROP TABLE app.old");
    session.must("UNINSTALL PLUGIN clone");
    scenery.fails(&backup, 4, "INSTALL PLUGIN clone");
    let incremental = [&backup[..], &["--incremental", "y"]].concat();
    scenery.fails(&incremental, 2, "clone always copies everything");
    assert_eq!(scenery.files(), [""; 0]);

    let mariadb = Scenery::build();
    mariadb.fails(&backup, 4, "use --source mariadb-backup");
}

#[test]
fn a_dump_of_mysql_is_started_on_mysql() {
    let Some(scenery) = scenery() else { return };
    let backup = [
        "backup",
        "--source",
        "dump",
        "--to",
        "dump",
        "--",
        "--databases",
        "app",
    ];
    scenery.must(&backup);
    let said = scenery.must(&["verify", "--start", "dump"]);
    assert!(said.contains("server    mysql 9."), "{said}");
    assert!(said.contains("started   9."), "{said}");
    assert!(said.contains("tables pass CHECK TABLE"), "{said}");
}

#[test]
fn a_dump_of_mysql_tells_its_position() {
    let Some(scenery) = scenery() else { return };
    let status = scenery.server.connect().text("SHOW BINARY LOG STATUS");
    let status = status.expect("a position");
    let status: Vec<&str> = status.split('\t').collect();
    let backup = ["backup", "--source", "dump", "--to", "sealed"];
    scenery.must(&[&backup[..], &["--", "--databases", "app"]].concat());
    let said = scenery.must(&["verify", "sealed"]);
    for text in [
        "server    mysql 9.".to_owned(),
        format!("binlog    {} at {}", status[0], status[1]),
        format!("gtid      {}", status[4]),
    ] {
        assert!(said.contains(&text), "{text}: {said}");
    }
}

#[test]
fn clones_and_dumps_of_mysql_follow_backend_tls() {
    let Some(scenery) = scenery() else { return };
    let mut session = scenery.server.connect();
    // No connection over TCP without TLS.
    session.must("SET GLOBAL require_secure_transport = ON");
    let ca = scenery.server.data_dir().join("ca.pem");
    let other = scenery.server.data_dir().join("client-cert.pem");
    let with_ca = |mode: &str, path: &Path| {
        format!(
            "backend_tls = \"{mode}\"\nbackend_ca = \"{}\"",
            path.display()
        )
    };
    // The server's own certificates name no host, so that `verify` has to fail.
    for (number, (settings, works)) in [
        (String::new(), true),
        (with_ca("required", &ca), true),
        ("backend_tls = \"never\"".to_owned(), false),
        (with_ca("verify", &ca), false),
        (with_ca("required", &other), false),
    ]
    .into_iter()
    .enumerate()
    {
        let config = scenery.over_tcp(&format!("home{number}"), "127.0.0.1", &settings);
        for source in ["clone", "dump"] {
            scenery.backs_up(&config, source, works.then_some("mysql 9."));
        }
    }
}
