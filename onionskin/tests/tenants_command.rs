//! `onionskin tenants`: the file is made once, forgetting asks to be sure and is for good, a proxy
//! that runs follows, and no older copy is taken back.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use onionskin_testkit::*;

const SOON: Duration = Duration::from_secs(15);

/// A folder with a configuration and keys.
struct Home(tempfile::TempDir);

impl Home {
    /// After `onionskin init`, with these settings.
    fn with(settings: &str) -> Home {
        let home = Home(tempfile::tempdir().expect("a folder"));
        home.must(&["init"]);
        let config = home.text("onionskin.toml");
        // Nothing listens there, and nothing is asked.
        let config = config.replace("127.0.0.1:3306", "127.0.0.1:1");
        let config = config.replace("[scratch]\nengine = \"auto\"\n", "");
        home.write("onionskin.toml", format!("{settings}\n{config}"));
        home
    }

    /// With a tenants file.
    fn new() -> Home {
        let home = Home::with("tenants = \"file:tenants.keys\"\ncontrol = \"control.sock\"");
        home.must(&["tenants", "init"]);
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("a file")
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.path("tenants.keys")).expect("a file")
    }

    /// A file for its owner only.
    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).expect("written");
        fs::set_permissions(self.path(name), Permissions::from_mode(0o600)).expect("its mode");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = tied_command(env!("CARGO_BIN_EXE_onionskin"));
        command.current_dir(self.0.path()).args(arguments);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for name in ["ONIONSKIN_PASSPHRASE", "ONIONSKIN_PASSPHRASE_FILE"] {
            command.env_remove(name);
        }
        command
    }

    fn ends(&self, arguments: &[&str], code: i32) -> String {
        let output = self.command(arguments).output().expect("onionskin runs");
        let text = said(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        text
    }

    fn must(&self, arguments: &[&str]) -> String {
        self.ends(arguments, 0)
    }

    fn forget(&self, names: &[&str]) -> String {
        self.must(&[&["tenants", "forget", "--i-know"], names].concat())
    }

    /// The ids that are forgotten. What is told of leftovers does not count.
    fn forgotten(&self) -> Vec<String> {
        let output = self.command(&["tenants", "list", "--json"]).output();
        let stdout = output.expect("onionskin runs").stdout;
        let list: serde_json::Value = serde_json::from_slice(&stdout).expect("JSON");
        let forgotten = list["forgotten"].as_array().expect("a list");
        let id = |one: &serde_json::Value| one["tenant"].as_str().expect("an id").to_owned();
        forgotten.iter().map(id).collect()
    }

    /// The id of a tenant, which is forgotten or is not.
    fn check(&self, name: &str) -> (String, bool) {
        let text = self.must(&["tenants", "check", name]);
        let (_, rest) = text.split_once(": tenant ").expect("a tenant");
        (rest[..16].to_owned(), !rest.contains(", not forgotten"))
    }

    /// The proxy.
    fn serve(&self) -> Served {
        let listen = format!("127.0.0.1:{}", free_port());
        let log = fs::File::create(self.path("proxy.log")).expect("a log");
        let mut command = self.command(&["serve", "--listen", &listen]);
        command
            .stdout(log.try_clone().expect("a handle"))
            .stderr(log);
        let served = Served(command.spawn().expect("it starts"));
        let socket = self.path("control.sock");
        wait_until("the control socket", SOON, || socket.exists());
        served
    }
}

struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn the_file_is_made_once_and_where_the_configuration_says() {
    let home = Home::with("");
    let text = home.ends(&["tenants", "init"], 2);
    assert!(text.contains("tenants = \"file:tenants.keys\""), "{text}");
    let home = Home::with("tenants = \"file:tenants.keys\"");
    // Whatever reads the keys reads this file, too.
    for command in [
        &["check"][..],
        &["tenants", "list"],
        &["explain", "SELECT 1"],
    ] {
        let text = home.ends(command, 2);
        assert!(text.contains("tenants.keys"), "{command:?}: {text}");
    }
    let text = home.ends(&["tenants", "list"], 2);
    assert!(text.contains("onionskin tenants init makes it"), "{text}");
    let text = home.must(&["tenants", "init"]);
    assert!(text.contains("Copy it to a safe place"), "{text}");
    let mode = fs::metadata(home.path("tenants.keys")).expect("the file");
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    let before = home.bytes();
    let text = home.ends(&["tenants", "init"], 2);
    assert!(text.contains("is not overwritten"), "{text}");
    assert_eq!(home.bytes(), before);
    assert!(home.forgotten().is_empty());
    // Nothing of it is in the clear, and a seal needs none of it.
    assert!(before.starts_with(b"\x89ONTEN\r\n"));
    home.write("plain", "text");
    home.write("tenants.keys", "damaged");
    home.must(&["seal", "-q", "-o", "sealed", "plain"]);
    let text = home.ends(&["tenants", "list"], 2);
    assert!(text.contains("malformed"), "{text}");
}

#[test]
fn forgetting_asks_to_be_sure_and_is_for_good() {
    let home = Home::new();
    let before = home.bytes();
    let (id, is_forgotten) = home.check("customers=4711");
    assert!(!is_forgotten);
    let text = home.ends(&["tenants", "forget", "customers=4711"], 2);
    assert!(
        text.contains(&format!("tenant {id}, would be forgotten")),
        "{text}"
    );
    assert!(
        text.contains("nothing was forgotten") && text.contains("--i-know"),
        "{text}"
    );
    assert_eq!(home.bytes(), before);

    let text = home.forget(&["customers=4711"]);
    assert!(
        text.contains(&format!("customers=4711: tenant {id}, forgotten")),
        "{text}"
    );
    assert!(
        text.contains("1 tenants are forgotten, generation 2"),
        "{text}"
    );
    assert!(
        text.contains("Every older copy still opens what was forgotten"),
        "{text}"
    );
    assert!(text.contains("No proxy was told"), "{text}");
    assert_eq!(home.check("customers=4711"), (id.clone(), true));
    assert_eq!(home.forgotten(), std::slice::from_ref(&id));
    let list = home.must(&["tenants", "list"]);
    assert!(list.contains(&format!("{id}  20")), "{list}");
    // Names are nowhere.
    let bytes = home.bytes();
    for word in [&b"customers"[..], b"4711"] {
        assert!(!bytes.windows(word.len()).any(|window| window == word));
    }
    let text = home.forget(&["customers=4711"]);
    assert!(text.contains("was forgotten already"), "{text}");
    assert_eq!(home.bytes(), bytes);

    // The space and the value are both part of the name.
    for other in [
        "customers=471",
        "customers=4711x",
        "customer=s4711",
        "people=4711",
    ] {
        let (other_id, is_forgotten) = home.check(other);
        assert!(!is_forgotten && other_id != id, "{other}");
    }
    // Spaces at the end are none.
    assert_eq!(home.check("customers=4711  "), (id, true));
}

#[test]
fn many_can_be_forgotten_from_a_file() {
    let home = Home::new();
    home.write(
        "names",
        "customers=1\ncustomers=2\r\n\ncustomers=a=b\n  \ncustomers=Zoë \n",
    );
    home.forget(&["customers=3", "customers=1", "--from", "names"]);
    for name in [
        "customers=1",
        "customers=2",
        "customers=3",
        "customers=a=b",
        "customers=Zoë",
    ] {
        assert!(home.check(name).1, "{name}");
    }
    assert_eq!(home.forgotten().len(), 5);
    assert!(!home.check("customers=4").1);
    let mut command = home.command(&["tenants", "forget", "--i-know", "--from", "-"]);
    command.stdin(fs::File::open(home.path("names")).expect("names"));
    let text = said(&command.output().expect("onionskin runs"));
    assert!(text.contains("5 tenants are forgotten"), "{text}");
    for (arguments, why) in [
        (&["--i-know"][..], "name tenants"),
        (&["--i-know", "customers"], "NAME=VALUE"),
        (&["--i-know", "=4711"], "NAME=VALUE"),
        (&["--i-know", "--from", "nowhere"], "nowhere"),
    ] {
        let output = home
            .command(&[&["tenants", "forget"], arguments].concat())
            .output();
        let text = said(&output.expect("onionskin runs"));
        assert!(text.contains(why), "{arguments:?}: {text}");
    }
    let text = home.must(&["tenants", "check", "customers=007"]);
    assert!(text.contains("this one is written customers=7"), "{text}");
}

#[test]
fn a_proxy_that_runs_follows_and_takes_no_older_copy() {
    let home = Home::new();
    let served = home.serve();
    let old = home.bytes();
    let text = home.forget(&["customers=1"]);
    assert!(text.contains("The proxy here has read the file"), "{text}");
    let newer = home.bytes();
    // An old copy, the file of other tenants, and none.
    home.write("tenants.keys", &old);
    let text = home.ends(&["reload"], 2);
    assert!(
        text.contains("is not forgotten in the tenants file"),
        "{text}"
    );
    let text = home.ends(&["check"], 2);
    assert!(
        text.contains("is not forgotten in the tenants file"),
        "{text}"
    );
    fs::remove_file(home.path("tenants.keys")).expect("removed");
    home.ends(&["reload"], 2);
    home.must(&["tenants", "init"]);
    let text = home.ends(&["reload"], 2);
    assert!(
        text.contains("another one than that which the proxy runs with"),
        "{text}"
    );
    let config = home.text("onionskin.toml");
    home.write("onionskin.toml", config.replace("tenants =", "# tenants ="));
    let text = home.ends(&["reload"], 2);
    assert!(text.contains("no tenants file any more"), "{text}");
    home.write("onionskin.toml", config);
    // A file that comes from elsewhere, with more forgotten.
    home.write("tenants.keys", &newer);
    home.must(&["reload"]);
    let elsewhere = Home::with("tenants = \"file:tenants.keys\"");
    elsewhere.write("keys.json", home.text("keys.json"));
    elsewhere.write("tenants.keys", &old);
    elsewhere.forget(&["customers=2", "customers=1"]);
    home.write("tenants.keys", elsewhere.bytes());
    let text = home.must(&["reload"]);
    assert!(
        text.contains("forgotten tenants: 1; generation 2 → 2; generation 2"),
        "{text}"
    );
    // The file of another key file opens nothing.
    let stranger = Home::new();
    home.write("tenants.keys", stranger.bytes());
    let text = home.ends(&["reload"], 2);
    assert!(text.contains("belongs to another key file"), "{text}");
    drop(served);
}

#[test]
fn what_a_broken_change_left_is_told_and_finished() {
    let home = Home::new();
    home.write("tenants.keys.new", "half");
    let text = home.ends(&["tenants", "forget", "--i-know", "customers=1"], 2);
    assert!(
        text.contains("tenants.keys.new was left") && text.contains("shred"),
        "{text}"
    );
    assert!(home.forgotten().is_empty());
    fs::remove_file(home.path("tenants.keys.new")).expect("removed");
    fs::copy(home.path("tenants.keys"), home.path("tenants.keys.old")).expect("copied");
    let text = home.must(&["tenants", "list"]);
    assert!(text.contains("tenants.keys.old was left"), "{text}");
    home.forget(&["customers=1"]);
    assert!(!home.path("tenants.keys.old").exists());

    // A full disk.
    let before = home.bytes();
    let full = Command::new("/bin/sh")
        .current_dir(home.0.path())
        .arg("-c")
        .arg(format!(
            "trap '' XFSZ; ulimit -f 0; exec {} tenants forget --i-know customers=2",
            env!("CARGO_BIN_EXE_onionskin")
        ))
        .output()
        .expect("a shell");
    assert!(!full.status.success(), "{}", said(&full));
    assert_eq!(home.bytes(), before);
    assert!(!home.path("tenants.keys.new").exists());
    assert!(!home.path("tenants.keys.old").exists());
}

/// Killed at any moment, the file is whole, and says what it said or what it was to say.
#[test]
fn a_change_that_is_killed_leaves_a_whole_file() {
    let home = Home::new();
    let mut is_forgotten = 0;
    for n in 0..12u32 {
        let name = format!("customers={n}");
        let mut child = home
            .command(&["tenants", "forget", "--i-know", &name])
            .spawn()
            .expect("it starts");
        std::thread::sleep(Duration::from_millis(u64::from(n)));
        let _ = child.kill();
        let _ = child.wait();
        let _ = fs::remove_file(home.path("tenants.keys.new"));
        is_forgotten += usize::from(home.check(&name).1);
        assert_eq!(home.forgotten().len(), is_forgotten);
    }
    home.forget(&["customers=0"]);
    assert!(home.check("customers=0").1);
    assert!(!home.path("tenants.keys.old").exists());
}
