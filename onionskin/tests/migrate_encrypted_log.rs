//! Migrations on servers that encrypt their binary log. A server sends its replicas plain events,
//! whatever lies in its files.

use onionskin_testkit::*;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

on_both_servers!(an_encrypted_log_is_followed);

const ROWS: u32 = 2000;
/// What writers write, to be looked for in files.
const CANARY: &str = "a canary that sings in the log";

/// A server whose binary log is encrypted with keys from a folder.
fn start(kind: Kind, keys: &Path) -> Option<Server> {
    let (extra, environment) = match kind {
        Kind::MariaDb => (with_key_file(keys), Vec::new()),
        Kind::MySql => with_keyring(keys),
    };
    let options = ServerOptions {
        binlog: Some(Binlog::Row),
        extra,
        environment,
        ..ServerOptions::default()
    };
    Server::start(kind, options)
}

fn with_key_file(folder: &Path) -> Vec<String> {
    let file = folder.join("keys");
    let key: String = (0..32)
        .map(|_| format!("{:02x}", rand::random::<u8>()))
        .collect();
    fs::write(&file, format!("1;{key}\n")).expect("a key file");
    vec![
        "--plugin-load-add=file_key_management".into(),
        format!("--file-key-management-filename={}", file.display()),
        "--encrypt-binlog=ON".into(),
    ]
}

/// MySQL reads which keyring to load beside its own program, and where the keyring's file is beside
/// the component: so both get links in a folder of the test.
fn with_keyring(folder: &Path) -> (Vec<String>, Vec<(String, String)>) {
    const COMPONENT: &str = "component_keyring_file";
    let root = checkout().join(".servers/mysql/usr");
    let (program, plugins) = (root.join("sbin/mysqld"), root.join("lib/mysql/plugin"));
    if !program.exists() {
        // Server::start says so.
        return (Vec::new(), Vec::new());
    }
    let [bin, plugin] = ["bin", "plugin"].map(|name| folder.join(name));
    for made in [&bin, &plugin] {
        fs::create_dir(made).expect("a folder");
    }
    let link = |from: PathBuf, to: PathBuf| symlink(from, to).expect("a link");
    let library = format!("{COMPONENT}.so");
    link(plugins.join(&library), plugin.join(&library));
    link(program, bin.join("mysqld"));
    let manifest = format!("{{ \"components\": \"file://{COMPONENT}\" }}\n");
    fs::write(bin.join("mysqld.my"), manifest).expect("a manifest");
    let keyring = folder.join("keyring");
    let settings = format!(
        "{{ \"path\": \"{}\", \"read_only\": false }}\n",
        keyring.display()
    );
    fs::write(plugin.join(format!("{COMPONENT}.cnf")), settings).expect("its settings");
    let linked = bin.join("mysqld").display().to_string();
    (
        vec![
            format!("--plugin-dir={}", plugin.display()),
            "--binlog-encryption=ON".into(),
        ],
        vec![("MYSQLD_PROGRAM".into(), linked)],
    )
}

fn an_encrypted_log_is_followed(kind: Kind) {
    let keys = tempfile::tempdir().expect("a temporary folder");
    let Some(mut server) = start(kind, keys.path()) else {
        return;
    };
    let mut session = table_and_twin(&server, ROWS);
    let write_canary = |session: &mut Session| {
        for table in ["t", "twin"] {
            session.must(&format!(
                "REPLACE INTO {table} VALUES ({ROWS}, '{CANARY}', 1)"
            ));
        }
    };
    let mut written = 0;
    beside_a_writer(server.port(), ROWS, || {
        for change in ["ENGINE=InnoDB", "ADD INDEX (n)"] {
            let arguments = ["app.t", "--alter", change];
            let postponed = [&arguments[..], &["--cut-over", "postpone"]].concat();
            must_migrate(&server, None, &postponed);
            // It comes to the new table by the log alone.
            write_canary(&mut session);
            let text = must_migrate(&server, None, &["app.t", "--resume", "--drop-old"]);
            assert!(text.contains(" 0 repaired"), "{text}");
            let changes = text.split(" changes written").next().unwrap_or_default();
            let changes = changes.rsplit(' ').next().unwrap_or_default();
            written += changes.parse::<u64>().expect("a number of changes");
            session.must(&format!("DELETE FROM t WHERE id = {ROWS}"));
            session.must(&format!("DELETE FROM twin WHERE id = {ROWS}"));
        }
    });
    write_canary(&mut session);
    assert!(written > 0);
    assert_equal_to_twin(&mut session, "afterwards");

    // The setting is in force.
    match kind {
        Kind::MariaDb => assert_eq!(session.text("SELECT @@encrypt_binlog").unwrap(), "1"),
        Kind::MySql => {
            let logs = session.text("SHOW BINARY LOGS").unwrap();
            assert!(logs.lines().all(|log| log.ends_with("\tYes")), "{logs}");
        }
    }
    drop(session);
    server.shutdown();
    let holds_canary = |path: &Path| {
        let bytes = fs::read(path).expect("a file of the server");
        !find_all(&Pattern::of_text(CANARY), &bytes).is_empty()
    };
    // The table itself is not encrypted: what is looked for can be found.
    assert!(holds_canary(&server.data_dir().join("app/t.ibd")));
    let files = server.data_files();
    let logs = files.iter().filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("binlog.") && !name.ends_with(".index")
    });
    let mut length = 0;
    for log in logs {
        assert!(!holds_canary(log), "{}", log.display());
        length += fs::metadata(log).expect("a file").len();
    }
    assert!(length > 100_000, "{length} bytes of binary log");
}
