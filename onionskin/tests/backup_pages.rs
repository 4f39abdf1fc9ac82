//! Page checksums in all the formats that servers write: `verify` checks them, or says how many it
//! could not.

use onionskin_testkit::*;
use std::fs;

const COLUMNS: &str = "(id INT PRIMARY KEY, c VARCHAR(200), KEY (c))";

/// The line of `verify` about pages, with its notes.
fn pages(scenery: &Scenery, source: &str, file: &str) -> String {
    scenery.must(&["backup", "-q", "--source", source, "--to", file]);
    let output = scenery.onionskin(&["verify", file]);
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    let lines = said.lines().skip_while(|line| !line.starts_with("pages"));
    let lines: Vec<&str> = lines
        .take_while(|line| line.starts_with("pages") || line.starts_with(' '))
        .collect();
    assert!(
        lines[0].ends_with("tablespaces: all have their checksums"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(0), "{said}");
    lines.join("\n")
}

/// How many pages of this kind were not checked.
fn unchecked(said: &str, kind: &str) -> u64 {
    let mut lines = said.lines().filter(|line| line.ends_with(kind));
    let words = |line: &str| line.split_whitespace().find_map(|word| word.parse().ok());
    lines.next().and_then(words).unwrap_or(0)
}

#[test]
fn of_mariadb() {
    if !has_mariadb_backup() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let keys = folder.path().join("keys");
    fs::write(&keys, format!("1;{}\n", "0123456789abcdef".repeat(2))).expect("written");
    let options = ServerOptions {
        extra: vec![
            "--plugin-load-add=file_key_management".into(),
            format!("--file-key-management-filename={}", keys.display()),
        ],
        ..ServerOptions::default()
    };
    let server = Server::start(Kind::MariaDb, options).expect("MariaDB is never skipped");
    let scenery = Scenery::around(server);
    let mut session = scenery.server.connect();
    let fill = |session: &mut Session, table: &str, options: &str| {
        session.must(&format!("CREATE TABLE app.{table} {COLUMNS} {options}"));
        session.must(&format!(
            "INSERT INTO app.{table} SELECT seq, REPEAT(MD5(seq), 5) FROM mysql.seq_1_to_5000"
        ));
        session.must(&format!("FLUSH TABLES app.{table} FOR EXPORT"));
        session.must("UNLOCK TABLES");
    };
    session.must("CREATE DATABASE app");
    fill(&mut session, "plain", "");
    fill(&mut session, "packed", "PAGE_COMPRESSED=1");
    fill(&mut session, "secret", "ENCRYPTED=YES");
    fill(&mut session, "both", "ENCRYPTED=YES PAGE_COMPRESSED=1");
    fill(&mut session, "zipped", "ROW_FORMAT=COMPRESSED");
    let said = pages(&scenery, "mariadb-backup", "new-format");
    for table in ["plain", "packed", "secret", "both", "zipped"] {
        assert!(!said.contains(&format!("{table}.ibd")), "{said}");
    }
    // Of the pages that were flushed last, the doublewrite buffer may hold copies in other formats.
    let mut not_checked = said.lines().filter(|line| line.contains("pages that are"));
    assert!(
        not_checked.all(|line| line.ends_with("in the doublewrite buffer")),
        "{said}"
    );

    // What servers before 10.5 wrote.
    session.must("SET GLOBAL innodb_checksum_algorithm = crc32");
    fill(&mut session, "plain_old", "");
    fill(&mut session, "secret_old", "ENCRYPTED=YES");
    let said = pages(&scenery, "mariadb-backup", "old-format");
    for table in ["plain_old", "secret_old"] {
        assert!(!said.contains(&format!("{table}.ibd")), "{said}");
    }
    assert_eq!(unchecked(&said, "compressed by their server"), 0, "{said}");
    fill(&mut session, "packed_old", "PAGE_COMPRESSED=1");
    let said = pages(&scenery, "mariadb-backup", "old-and-compressed");
    assert!(unchecked(&said, "compressed by their server") > 5, "{said}");
}

#[test]
fn of_mysql() {
    let options = ServerOptions {
        extra: vec!["--plugin-load-add=mysql_clone.so".into()],
        ..ServerOptions::default()
    };
    let Some(server) = Server::start(Kind::MySql, options) else {
        return;
    };
    let scenery = Scenery::around(server);
    let mut session = scenery.server.connect();
    session.must("CREATE DATABASE app");
    session.must("USE app");
    session.must("SET SESSION cte_max_recursion_depth = 10000");
    let fill = |session: &mut Session, table: &str, options: &str| {
        session.must(&format!("CREATE TABLE app.{table} {COLUMNS} {options}"));
        session.must(&format!(
            "INSERT INTO {table} WITH RECURSIVE seq (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM seq WHERE n < 3000) \
             SELECT n, REPEAT(SHA2(n, 256), 3) FROM seq"
        ));
        session.must(&format!("FLUSH TABLES app.{table} FOR EXPORT"));
        session.must("UNLOCK TABLES");
    };
    fill(&mut session, "plain", "");
    fill(
        &mut session,
        "zipped",
        "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4",
    );
    let said = pages(&scenery, "clone", "plain");
    assert!(!said.contains("NOT checked"), "{said}");
    // What MySQL before 5.7.7 wrote, compressed pages among it.
    session.must("SET GLOBAL innodb_checksum_algorithm = innodb");
    fill(&mut session, "old", "");
    fill(
        &mut session,
        "zipped_old",
        "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8",
    );
    let said = pages(&scenery, "clone", "old");
    assert!(!said.contains("NOT checked"), "{said}");
    session.must("SET GLOBAL innodb_checksum_algorithm = none");
    fill(&mut session, "never", "");
    fill(
        &mut session,
        "zipped_never",
        "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8",
    );
    let said = pages(&scenery, "clone", "none");
    assert!(unchecked(&said, "written without checksums") > 20, "{said}");
}
