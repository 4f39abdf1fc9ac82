//! Streams to recipients as they are called: a machine that makes backups holds no key that opens
//! them; each identity does, and no other one.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use onionskin_testkit::*;
use tempfile::TempDir;

/// As `age-keygen` writes it.
const OF_AGE_KEYGEN: &str = "# created: 2026-01-02T03:04:05Z
# public key: age1xmwwc06ly3ee5rytxm9mflaz2u56jjj36s0mypdrwsvlul66mv4q47ryef
AGE-SECRET-KEY-1EGTZVFFV20835NWYV6270LXYVK2VKNX2MMDKWYKLMGR48UAWX40Q2P2LM0
";

/// A folder without keys and without a configuration.
struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        Desk(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_onionskin"))
            .args(arguments)
            .current_dir(self.0.path())
            .env_remove("ONIONSKIN_PASSPHRASE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("onionskin starts");
        // A program that has failed does not read on.
        let _ = child.stdin.take().expect("piped").write_all(input);
        child.wait_with_output().expect("onionskin ends")
    }

    fn must(&self, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let output = self.run(arguments, input);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        output.stdout
    }

    /// What it said when it failed with this code.
    fn fails(&self, arguments: &[&str], input: &[u8], code: i32, text: &str) -> String {
        let output = self.run(arguments, input);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(text), "{text:?} is not in: {said}");
        said
    }

    /// A new identity in a file; its recipient.
    fn identity(&self, name: &str, suite: &str) -> String {
        new_identity(&self.path(name), suite)
    }
}

/// `onionskin identity > FILE`, under a mask that lets everybody read; the recipient.
fn new_identity(path: &Path, suite: &str) -> String {
    let file = fs::File::create(path).expect("made");
    file.set_permissions(fs::Permissions::from_mode(0o644))
        .expect("set");
    let output = Command::new(env!("CARGO_BIN_EXE_onionskin"))
        .args(["identity", "--suite", suite])
        .stdout(file)
        .output()
        .expect("onionskin runs");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    let recipient = said.trim().strip_prefix("recipient: ").expect("it says so");
    let text = fs::read_to_string(path).expect("there");
    assert!(text.contains(&format!("# recipient: {recipient}\n")));
    assert_eq!(mode(path), 0o600, "a secret is its owner's");
    recipient.to_owned()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o777
}

#[test]
fn each_recipient_opens_it_and_nobody_else() {
    let desk = Desk::new();
    let plain: Vec<u8> = (0..60_000u32).flat_map(u32::to_le_bytes).collect();
    for suite in ["aes", "sm"] {
        let [one, other, stranger] = ["one", "other", "stranger"]
            .map(|name| desk.identity(&format!("{suite}-{name}"), suite));
        assert!(one != other && other != stranger);
        let to = ["seal", "-q", "--to", &one, "--to", &other, "--to", &one];
        let sealed = desk.must(&to, &plain);
        fs::write(desk.path("sealed"), &sealed).expect("written");
        for name in ["one", "other"] {
            let identity = format!("{suite}-{name}");
            let open = ["open", "-q", "--identity", &identity, "sealed"];
            assert!(desk.must(&open, b"") == plain, "{identity}");
            let verify = ["verify", "-q", "--identity", &identity, "sealed"];
            let said = String::from_utf8(desk.must(&verify, b"")).expect("UTF-8");
            let found = format!("suite {suite}, frames of 1024 KiB, under a key that 2 recipients");
            assert!(said.contains(&found), "{said}");
        }
        let strange = format!("{suite}-stranger");
        for command in ["open", "verify"] {
            let arguments = [command, "-q", "--identity", &strange, "sealed"];
            let said = desk.fails(&arguments, b"", 2, "none of these identities opens");
            assert!(said.contains("2 other recipients"), "{said}");
        }
        // Beside another identity; and out of a pipe, as from `age -d`.
        let own = format!("{suite}-one");
        let given = ["open", "-q", "--identity", &strange, "--identity"];
        assert!(desk.must(&[&given[..], &[&own, "sealed"]].concat(), b"") == plain);
        let text = fs::read(desk.path(&own)).expect("there");
        assert!(desk.must(&["open", "-q", "--identity", "-", "sealed"], &text) == plain);
        desk.fails(&["open", "--identity", "-"], &sealed, 2, "name the file");

        // A changed header is damage where an identity fits.
        let mut changed = sealed.clone();
        changed[40] ^= 1;
        let open = ["open", "-q", "--identity", &own];
        desk.fails(&open, &changed, 3, "the header was changed");
        fs::remove_file(desk.path("sealed")).expect("removed");
    }
}

#[test]
fn files_of_age_keygen_and_of_recipients() {
    let desk = Desk::new();
    fs::write(desk.path("key.txt"), OF_AGE_KEYGEN).expect("written");
    desk.fails(
        &["identity", "--of", "key.txt"],
        b"",
        2,
        "key.txt is open to other users (mode 0644): run chmod 600",
    );
    fs::set_permissions(desk.path("key.txt"), fs::Permissions::from_mode(0o600)).expect("set");
    let recipient = desk.must(&["identity", "--of", "key.txt"], b"");
    let recipient = String::from_utf8(recipient).expect("UTF-8");
    let second = desk.identity("second", "aes");
    let list = format!("# who restores\n{recipient}\n{second}\n");
    fs::write(desk.path("team.txt"), list).expect("written");
    let sealed = desk.must(&["seal", "-q", "--recipients", "team.txt"], b"for the team");
    for identity in ["key.txt", "second"] {
        let open = ["open", "-q", "--identity", identity];
        assert_eq!(desk.must(&open, &sealed), b"for the team");
    }
    // Who can add himself reads what is sealed from then on.
    fs::set_permissions(desk.path("team.txt"), fs::Permissions::from_mode(0o666)).expect("set");
    let seal = ["seal", "-q", "--recipients", "team.txt"];
    desk.fails(&seal, b"x", 2, "team.txt can be changed by other users");

    desk.must(&["identity", "-o", "new"], b"");
    assert_eq!(mode(&desk.path("new")), 0o600);
    let before = fs::read(desk.path("new")).expect("there");
    desk.fails(&["identity", "-o", "new"], b"", 2, "is not overwritten");
    assert_eq!(fs::read(desk.path("new")).expect("there"), before);
}

#[test]
fn what_does_not_fit_is_said() {
    let desk = Desk::new();
    let [aes, sm] = ["aes", "sm"].map(|suite| desk.identity(suite, suite));
    let seal = |arguments: &[&str], text: &str| {
        let arguments = [&["seal", "-q"], arguments].concat();
        let said = desk.fails(&arguments, b"x", 2, text);
        assert!(!said.contains("SECRET-KEY"), "{said}");
    };
    seal(&["--to", &aes, "--to", &sm], "cannot be mixed");
    seal(&["--to", &aes, "--suite", "sm"], "suite sm is wanted");
    seal(
        &["--to", &aes, "--to", "bob"],
        "recipient 2 of the arguments: a recipient is expected",
    );
    let secret = fs::read_to_string(desk.path("aes")).expect("there");
    let secret = secret.lines().last().expect("an identity");
    seal(&["--to", secret], "this is an identity, which is secret");
    seal(&["--to", &aes[..aes.len() - 1]], "mistyped or cut");
    seal(&["--to", &aes, "--passphrase"], "cannot be used with");
    seal(&["--recipients", "aes"], "aes, line 3: this is an identity");

    desk.must(&["init"], b"");
    let by_keys = desk.must(&["seal", "-q"], b"under a key");
    let to_one = desk.must(&["seal", "-q", "--to", &aes], b"to a recipient");
    desk.fails(&["open", "-q"], &to_one, 2, "--identity FILE");
    let keys = ["open", "-q", "--keys", "keys.json"];
    desk.fails(&keys, &to_one, 2, "--identity FILE");
    let identity = ["open", "-q", "--identity", "aes"];
    desk.fails(&identity, &by_keys, 2, "name the keys with -c or --keys");
    // With both, each kind opens.
    let both = ["open", "-q", "--identity", "aes", "--keys", "keys.json"];
    assert_eq!(desk.must(&both, &by_keys), b"under a key");
    assert_eq!(desk.must(&both, &to_one), b"to a recipient");
}

/// A server that is backed up by a machine on which no key file is.
fn machine_without_keys() -> Scenery {
    let options = ServerOptions {
        binlog: Some(Binlog::Row),
        ..ServerOptions::default()
    };
    let server = Server::start(Kind::MariaDb, options).expect("MariaDB is never skipped");
    let mut session = server.connect();
    session.must("CREATE DATABASE app");
    session.must("CREATE TABLE app.t (id INT PRIMARY KEY)");
    session.must("INSERT INTO app.t VALUES (1)");
    let scenery = Scenery::around(server);
    fs::rename(
        scenery.home.path().join("keys.json"),
        scenery.home.path().join("put-away.json"),
    )
    .expect("moved");
    scenery
}

/// A key file for the machine, after all.
fn bring_keys(scenery: &Scenery) {
    let path = |name: &str| scenery.home.path().join(name);
    fs::copy(path("put-away.json"), path("keys.json")).expect("copied");
}

#[test]
fn a_machine_without_keys_backs_up_and_archives() {
    if !has_mariadb_backup() {
        return;
    }
    let scenery = machine_without_keys();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let path = elsewhere.path().join("identity");
    let recipient = new_identity(&path, "aes");
    let identity = path.to_str().expect("UTF-8");
    let mut session = scenery.server.connect();

    fs::create_dir(scenery.home.path().join("backups")).expect("made");
    let to = ["backup", "-q", "--to", "backups", "--recipient", &recipient];
    let file = scenery.must(&to);
    let file = file.trim();
    let more = [&to[..], &["--incremental", "backups"]].concat();
    scenery.fails(&more, 2, "knows recipients alone");

    let archive = [
        "archive",
        "--to",
        "log",
        "--once",
        "--recipient",
        &recipient,
    ];
    for id in 2..4 {
        session.must(&format!("INSERT INTO app.t VALUES ({id})"));
        // The second time it goes on by the note beside its last segment.
        assert!(scenery.must(&archive).contains(".sealed"));
        session.must("FLUSH BINARY LOGS");
    }

    // The machine itself reads nothing of it.
    for command in ["verify", "open"] {
        scenery.fails(&[command, "-q", file], 2, "--identity FILE");
    }
    scenery.fails(&["archive", "--to", "log", "--list"], 2, "--identity FILE");
    scenery.fails(&["backup", "list", "--to", "backups"], 2, "");

    let list = ["archive", "--to", "log", "--list", "--identity", identity];
    assert!(scenery.must(&list).contains("no gap"));
    let list = ["backup", "list", "--to", "backups", "--identity", identity];
    assert!(scenery.must(&list).contains("footer checked, full"));
    let restore = ["restore", "-q", file, "--to", "data", "--binlogs", "log"];
    scenery.must(&[&restore[..], &["--identity", identity]].concat());
    let options = ServerOptions {
        tls: false,
        ..ServerOptions::default()
    };
    let data = scenery.home.path().join("data");
    let restored = Server::start_on(Kind::MariaDb, options, &data);
    let ids = restored
        .connect()
        .text("SELECT GROUP_CONCAT(id ORDER BY id) FROM app.t");
    assert_eq!(ids.expect("rows"), "1,2,3");
}

/// The notes in the archive's folder.
fn notes(scenery: &Scenery) -> Vec<PathBuf> {
    let entries = fs::read_dir(scenery.home.path().join("log")).expect("the archive");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "note"))
        .collect()
}

#[test]
fn an_archive_whose_recipients_change() {
    let scenery = machine_without_keys();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let identities = ["one", "other"].map(|name| elsewhere.path().join(name));
    let recipients = [
        new_identity(&identities[0], "aes"),
        new_identity(&identities[1], "sm"),
    ];
    let identities = identities.map(|path| path.to_str().expect("UTF-8").to_owned());
    let mut session = scenery.server.connect();
    let mut id = 1;
    let mut write = || {
        id += 1;
        session.must(&format!("INSERT INTO app.t VALUES ({id})"));
    };
    let to = |recipient| ["archive", "--to", "log", "--once", "--recipient", recipient];
    let by_keys = ["archive", "--to", "log", "--once"];

    // Begun with keys, it needs them once more.
    bring_keys(&scenery);
    scenery.must(&by_keys);
    assert!(notes(&scenery).is_empty());
    let keys = scenery.home.path().join("keys.json");
    fs::remove_file(&keys).expect("removed");
    write();
    scenery.fails(&to(&recipients[0]), 2, "keys.json");
    bring_keys(&scenery);
    scenery.must(&to(&recipients[0]));
    assert_eq!(notes(&scenery).len(), 1);
    // Without keys from now on; and to another recipient, of another suite.
    fs::remove_file(&keys).expect("removed");
    for recipient in [&recipients[0], &recipients[1]] {
        write();
        scenery.must(&to(recipient));
        assert_eq!(notes(&scenery).len(), 1, "that of the newest");
    }

    // Who lists needs all that it was sealed with.
    fn list<'a>(with: &[&'a str]) -> Vec<&'a str> {
        [&["archive", "--to", "log", "--list"], with].concat()
    }
    let both = ["--identity", &identities[0], "--identity", &identities[1]];
    scenery.fails(&list(&both), 2, "name the keys");
    let keys = ["--keys", "put-away.json"];
    scenery.fails(&list(&[&both[..2], &keys].concat()), 2, "none of these");
    let all = list(&[&both[..], &keys].concat());
    assert!(scenery.must(&all).contains("no gap"));

    // Keys do not go on where recipients were, without the identity.
    bring_keys(&scenery);
    scenery.fails(&by_keys, 2, "--identity FILE");

    // A note that is gone is named; one that lies leads to a gap that shows.
    let note = notes(&scenery).remove(0);
    let text = fs::read_to_string(&note).expect("there");
    fs::remove_file(&note).expect("removed");
    write();
    let refused = [&to(&recipients[1])[..], &["--backend", "unix:/nowhere"]].concat();
    scenery.fails(&refused, 2, ".note is not beside it");
    fs::write(&note, text.replace("\"stream\": \"", "\"stream\": \"0")).expect("written");
    scenery.fails(&refused, 3, "tells of another segment");
    let place: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let end = place["segment"]["next"]["position"]
        .as_u64()
        .expect("a place");
    write();
    let log = session_place(&scenery);
    let lie = text.replace(
        &format!("\"position\": {end}"),
        &format!("\"position\": {log}"),
    );
    fs::write(&note, lie).expect("written");
    write();
    scenery.must(&to(&recipients[1]));
    scenery.fails(&all, 3, "the archive has a gap");
}

/// Where the server's binlog has come to.
fn session_place(scenery: &Scenery) -> u64 {
    let status = scenery.server.connect().text("SHOW MASTER STATUS");
    let status = status.expect("a place");
    status
        .split('\t')
        .nth(1)
        .expect("a position")
        .parse()
        .expect("a number")
}
