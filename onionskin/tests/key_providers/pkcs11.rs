//! A real token, SoftHSM's, and what tokens do wrong: a library between the two does it.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::outages::http;
use super::*;

const LIBRARY: &str = "/usr/lib/softhsm/libsofthsm2.so";
const LIST: [&str; 2] = ["keys", "list"];

/// A token with keys, in a folder of its own.
struct Token {
    folder: tempfile::TempDir,
}

impl Token {
    /// `None` where there is no SoftHSM, which is told.
    fn new() -> Option<Token> {
        if !std::path::Path::new(LIBRARY).exists() {
            announce("SKIPPED: SoftHSM: scripts/install-deps.sh tests has not been run");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("tokens")).expect("made");
        let config = format!(
            "directories.tokendir = {}/tokens\nobjectstore.backend = file\n",
            folder.path().display()
        );
        fs::write(folder.path().join("softhsm2.conf"), config).expect("written");
        let token = Token { folder };
        token.add("onionskin");
        token.make_key("root", &["--key-type", "AES:32", "--sensitive"]);
        Some(token)
    }

    /// One more token.
    fn add(&self, label: &str) {
        let made = Command::new("softhsm2-util")
            .args(["--init-token", "--free", "--label", label])
            .args(["--so-pin", "5678", "--pin", "1234"])
            .env("SOFTHSM2_CONF", self.config())
            .output();
        let made = made.expect("it runs");
        assert!(made.status.success(), "{}", said(&made));
    }

    fn make_key(&self, label: &str, more: &[&str]) {
        let made = Command::new("pkcs11-tool")
            .args(["--module", LIBRARY, "--token-label", "onionskin"])
            .args(["--login", "--pin", "1234", "--keygen", "--label", label])
            .args(more)
            .env("SOFTHSM2_CONF", self.config())
            .output();
        let made = made.expect("it runs");
        assert!(made.status.success(), "{}", said(&made));
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("softhsm2.conf")
    }

    /// `[provider.pkcs11]` with the token, and more lines.
    fn section(&self, more: &str) -> String {
        format!("[provider.pkcs11]\nmodule = \"{LIBRARY}\"\ntoken = \"onionskin\"\n{more}")
    }

    /// Pulls it out, or puts it in again.
    fn is_there(&self, is_there: bool) {
        let (there, away) = ("tokens", "away");
        let (from, to) = if is_there {
            (away, there)
        } else {
            (there, away)
        };
        let path = |name: &str| self.folder.path().join(name);
        if is_there {
            fs::remove_dir_all(path(to)).expect("removed");
        }
        fs::rename(path(from), path(to)).expect("moved");
        if !is_there {
            fs::create_dir(path(from)).expect("made");
        }
    }

    /// Where the library is, and where the PIN is.
    fn variables(&self, home: &Home) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("SOFTHSM2_CONF", self.config()),
            ("LOGINS", home.path("logins")),
            ("ONIONSKIN_PKCS11_PIN_FILE", home.path("pin")),
        ]
    }

    fn run_as(&self, home: &Home, arguments: &[&str], more: &[(&str, &str)]) -> Output {
        let mut command = home.command(arguments);
        command
            .envs(self.variables(home))
            .envs(more.iter().copied());
        command.output().expect("it runs")
    }

    fn must(&self, home: &Home, arguments: &[&str]) -> String {
        let output = self.run_as(home, arguments, &[]);
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        said(&output)
    }

    /// A home whose root key the token wraps.
    fn home(&self) -> Home {
        let home = Home::new();
        home.write("pin", "1234\n");
        fs::set_permissions(home.path("pin"), Permissions::from_mode(0o600)).expect("its mode");
        home.configure("", &self.section("key = \"root\"\n"));
        let moved = self.must(&home, &["keys", "rewrap", "--to", "pkcs11"]);
        assert!(moved.contains("keys_provider = \"pkcs11\""), "{moved}");
        home
    }
}

/// The library between.
fn between(home: &Home) -> PathBuf {
    let source = checkout().join("onionskin/tests/key_providers/between.c");
    let path = home.path("between.so");
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&path, &source])
        .arg("-ldl")
        .output();
    let made = made.expect("cc runs");
    assert!(made.status.success(), "{}", said(&made));
    path
}

fn logins(home: &Home) -> usize {
    fs::read_to_string(home.path("logins")).map_or(0, |text| text.lines().count())
}

#[test]
fn a_token_wraps_the_root_key_and_says_what_is_wrong() {
    let Some(token) = Token::new() else { return };
    let home = token.home();
    let wrapped = home.text("keys.json");
    assert!(
        wrapped.contains("\"pkcs11\"") && !wrapped.contains("clear"),
        "{wrapped}"
    );
    let settings = "keys_provider = \"pkcs11\"\nkeys_retry_seconds = 0.3\n";
    home.configure(settings, &token.section("key = \"root\"\n"));
    assert!(
        token
            .must(&home, &["keys", "add"])
            .contains("Key 2 was added")
    );
    assert!(token.must(&home, &LIST).contains("2  "));
    assert_ne!(home.text("keys.json"), wrapped);
    let refused_with = |section: &str, arguments: &[&str], code: i32, what: &str| {
        home.configure(settings, section);
        let output = token.run_as(&home, arguments, &[]);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(code), "{what}: {text}");
        let last = text.trim().lines().last().expect("a line");
        assert!(last.contains(what), "{what}: {text}");
        assert!(!text.contains("1234"), "{text}");
        assert!(!home.path("keys.json.new").exists());
    };
    let sound = token.section("key = \"root\"\n");
    refused_with(
        &token.section("key = \"none\"\n"),
        &LIST,
        2,
        "has no AES key with label \"none\"",
    );
    refused_with(
        &token.section("key = \"root\"\nkey_id = \"a7\"\n"),
        &LIST,
        2,
        "no AES key with label \"root\" and id a7",
    );
    // It may be plugged in again.
    refused_with(
        &sound.replace("\"onionskin\"", "\"another\""),
        &LIST,
        1,
        "no token with label \"another\" now, but others: \"onionskin\"",
    );
    refused_with(
        &sound.replace(LIBRARY, "/nonexistent.so"),
        &LIST,
        2,
        "No such file",
    );
    let text = home.path("text.so");
    home.write("text.so", "no library");
    let text = text.to_str().expect("plain");
    refused_with(
        &sound.replace(LIBRARY, text),
        &LIST,
        2,
        "no library of PKCS#11",
    );
    fs::set_permissions(text, Permissions::from_mode(0o666)).expect("its mode");
    refused_with(&sound.replace(LIBRARY, text), &LIST, 2, "chmod go-w");

    // Keys that a token would give away, or that are weaker than what they wrap.
    token.make_key("shown", &["--key-type", "AES:32"]);
    token.make_key(
        "loose",
        &["--key-type", "AES:32", "--sensitive", "--extractable"],
    );
    token.make_key("short", &["--key-type", "AES:16", "--sensitive"]);
    let again = ["keys", "rewrap", "--to", "pkcs11"];
    for (name, what) in [
        ("shown", "sensitive and not extractable"),
        ("loose", "sensitive and not extractable"),
        ("short", "256 bits"),
    ] {
        // What opens the file now is the same section, so it is in the clear first.
        home.configure("", &sound);
        token.must(&home, &["keys", "rewrap", "--to", "file"]);
        home.configure("", &token.section(&format!("key = \"{name}\"\n")));
        let output = token.run_as(&home, &again, &[]);
        assert_eq!(output.status.code(), Some(2), "{name}: {}", said(&output));
        assert!(said(&output).contains(what), "{name}: {}", said(&output));
        home.configure("", &sound);
        token.must(&home, &again);
    }
    // Another key than the one that has wrapped, and two of one name.
    token.make_key("other", &["--key-type", "AES:32", "--sensitive"]);
    refused_with(
        &token.section("key = \"other\"\n"),
        &LIST,
        2,
        "has not wrapped this root key",
    );
    token.make_key(
        "root",
        &["--key-type", "AES:32", "--sensitive", "--id", "a7"],
    );
    refused_with(&sound, &LIST, 2, "has 2 AES keys with label \"root\"");
    token.add("onionskin");
    refused_with(&sound, &LIST, 2, "2 tokens of");
}

/// What is wrapped for one thing opens for nothing else, and whoever alters it opens nothing.
#[test]
fn what_a_token_has_wrapped_cannot_be_altered() {
    let Some(token) = Token::new() else { return };
    let home = token.home();
    home.configure(
        "keys_provider = \"pkcs11\"\n",
        &token.section("key = \"root\"\n"),
    );
    let sound = home.text("keys.json");
    let file: serde_json::Value = serde_json::from_str(&sound).expect("JSON");
    let wrapped = file["root"]["provider"]["wrapped"].as_str().expect("text");
    let text = STANDARD.decode(wrapped).expect("base64");
    let text = String::from_utf8(text).expect("text");
    let sealed = text.strip_prefix("aes-gcm:").expect("the mechanism");
    let length = STANDARD.decode(sealed).expect("base64").len();
    assert_eq!(length, 12 + 32 + 16);
    let refused = |text: &str, what: &str| {
        let keys = sound.replace(wrapped, &STANDARD.encode(text));
        fs::write(home.path("keys.json"), keys).expect("written");
        let output = token.run_as(&home, &LIST, &[]);
        assert_eq!(output.status.code(), Some(2), "{text}: {}", said(&output));
        assert!(said(&output).contains(what), "{text}: {}", said(&output));
    };
    for other in ["aes-cbc:", "", "aes-gcm:?"] {
        refused(&text.replace("aes-gcm:", other), "no token has wrapped");
    }
    refused("aes-gcm:AAAA", "no token has wrapped");
    // The nonce, the ciphertext, the tag; a piece of them.
    for byte in [0, 20, length - 1] {
        let mut other = STANDARD.decode(sealed).expect("base64");
        other[byte] ^= 1;
        let other = format!("aes-gcm:{}", STANDARD.encode(other));
        refused(&other, "the key file was altered");
    }
    refused(&text[..text.len() - 8], "the key file was altered");
    fs::write(home.path("keys.json"), sound).expect("written");
    token.must(&home, &LIST);
}

#[test]
fn a_key_set_can_begin_at_a_token() {
    let Some(token) = Token::new() else { return };
    let home = token.home();
    fs::remove_file(home.path("keys.json")).expect("removed");
    home.configure(
        "keys_provider = \"pkcs11\"\n",
        &token.section("key = \"root\"\n"),
    );
    let made = token.must(&home, &["init", "--keys-only"]);
    assert!(
        made.contains("wrapped by the provider \"pkcs11\""),
        "{made}"
    );
    assert!(token.must(&home, &["check"]).contains("sound"));
    token.must(&home, &["keys", "rewrap", "--to", "file"]);
    assert!(home.text("keys.json").contains("\"clear\""));
}

#[test]
fn a_wrong_pin_is_tried_once() {
    let Some(token) = Token::new() else { return };
    let home = token.home();
    let library = between(&home);
    let section = token
        .section("key = \"root\"\n")
        .replace(LIBRARY, library.to_str().expect("plain"));
    home.configure(
        "keys_provider = \"pkcs11\"\nkeys_retry_seconds = 5\n",
        &section,
    );
    // A library that prints does not get into the answer.
    token.must(&home, &LIST);
    assert_eq!(logins(&home), 1);
    home.write("pin", "9999");
    fs::set_permissions(home.path("pin"), Permissions::from_mode(0o600)).expect("its mode");
    let output = token.run_as(&home, &LIST, &[]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        said(&output).contains("refuses the PIN. It was tried once"),
        "{}",
        said(&output)
    );
    assert!(!said(&output).contains("9999"), "{}", said(&output));
    assert_eq!(logins(&home), 2);
    // No PIN at all is asked for.
    let nothing = home.must_not(&LIST);
    assert!(nothing.contains("ONIONSKIN_PKCS11_PIN_FILE"), "{nothing}");
    // The last one that a token allows is left to people.
    let last = token.run_as(&home, &LIST, &[("BETWEEN", "final try")]);
    assert!(
        said(&last).contains("would be locked by one more"),
        "{}",
        said(&last)
    );
    assert_eq!(logins(&home), 2);

    // A proxy whose PIN goes wrong asks for ever, and tries it once.
    home.write("pin", "1234");
    fs::set_permissions(home.path("pin"), Permissions::from_mode(0o600)).expect("its mode");
    let settings = "keys_provider = \"pkcs11\"\nkeys_ttl_seconds = 4\ncontrol = \"control.sock\"\n";
    home.configure(settings, &section);
    let mut served = home.serve_with(&token.variables(&home));
    served.until_it_listens();
    home.write("pin", "9999");
    fs::set_permissions(home.path("pin"), Permissions::from_mode(0o600)).expect("its mode");
    let before = logins(&home);
    let refused = home.must_not(&["reload"]);
    assert!(refused.contains("refuses the PIN"), "{refused}");
    let refused = home.must_not(&["reload"]);
    assert!(refused.contains("has refused this PIN before"), "{refused}");
    assert_eq!(served.exit_code(), Some(1), "{}", served.log());
    assert!(served.log().contains("may be used for"), "{}", served.log());
    assert_eq!(logins(&home), before + 1);
}

#[test]
fn what_a_library_does_wrong_is_one_error() {
    let Some(token) = Token::new() else { return };
    let home = token.home();
    let library = between(&home);
    let section = token.section("key = \"root\"\ntimeout_seconds = 1.5\n");
    let section = section.replace(LIBRARY, library.to_str().expect("plain"));
    home.configure(
        "keys_provider = \"pkcs11\"\nkeys_retry_seconds = 0.2\n",
        &section,
    );
    for (fault, what, code) in [
        ("session lost", "C_Decrypt with SessionHandleInvalid", 1),
        ("removed", "C_Decrypt with DeviceRemoved", 1),
        ("no mechanism", "has no AES-GCM (CKM_AES_GCM)", 2),
        (
            "unclear login",
            "refuses the PIN (GeneralError). It was tried once",
            2,
        ),
        ("removed at login", "C_Login with DeviceRemoved", 1),
        ("locked", "is locked after too many wrong PINs", 2),
        (
            "crashes",
            "ended without an answer (signal: 6 (SIGABRT))",
            1,
        ),
        ("hangs", "did not answer within 1.5 seconds", 1),
    ] {
        let begin = Instant::now();
        let output = token.run_as(&home, &LIST, &[("BETWEEN", fault)]);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(code), "{fault}: {text}");
        let last = text.trim().lines().last().expect("a line");
        assert!(last.contains(what), "{fault}: {text}");
        assert!(begin.elapsed() < Duration::from_secs(8), "{fault}");
    }
    // By then it has answered.
    let ends = token.run_as(&home, &LIST, &[("BETWEEN", "crashes at its end")]);
    assert!(ends.status.success(), "{}", said(&ends));
}

/// Nobody is left who waits for a token in the name of a program that was killed.
#[test]
fn a_library_that_hangs_ends_with_the_program() {
    let Some(token) = Token::new() else { return };
    let home = token.home();
    let library = between(&home);
    let section = token.section("key = \"root\"\ntimeout_seconds = 60\n");
    let section = section.replace(LIBRARY, library.to_str().expect("plain"));
    home.configure("keys_provider = \"pkcs11\"\n", &section);
    let mut command = home.command(&LIST);
    command.envs(token.variables(&home)).env("BETWEEN", "hangs");
    let mut child = command.spawn().expect("it starts");
    wait_until("the library hangs", SOON, || logins(&home) == 1);
    let below = children(child.id());
    assert_eq!(below.len(), 1, "a process of its own");
    let read = |name: &str| {
        let text = fs::read(format!("/proc/{}/{name}", below[0])).expect("there");
        String::from_utf8_lossy(&text).into_owned()
    };
    assert!(read("maps").contains("libsofthsm2"));
    let parent = fs::read_to_string(format!("/proc/{}/maps", child.id())).expect("there");
    assert!(!parent.contains("libsofthsm2") && !parent.contains("between.so"));
    for name in ["cmdline", "environ"] {
        let text = read(name);
        assert!(
            !text.contains("1234") && !text.contains("ONIONSKIN_PKCS11"),
            "{text}"
        );
    }
    child.kill().expect("killed");
    child.wait().expect("ended");
    wait_until("its child has ended", SOON, || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", below[0]));
        stat.map_or(true, |stat| stat.contains(") Z "))
    });
}

/// The processes that a process has started.
fn children(parent: u32) -> Vec<u32> {
    let numbers = fs::read_dir("/proc").expect("there").flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |number: &u32| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        // Behind the name in brackets: the state, and the parent.
        let behind = stat.rsplit(')').next().unwrap_or_default();
        behind.split_whitespace().nth(1) == Some(&parent.to_string())
    };
    numbers.filter(is_child).collect()
}

#[test]
fn a_token_that_is_pulled_out_is_waited_for() {
    let Some(server) = Server::start(Kind::MariaDb, ServerOptions::default()) else {
        return;
    };
    let Some(token) = Token::new() else { return };
    if direct_mode() {
        return;
    }
    let home = token.home();
    let admin = free_port();
    let section = token.section("key = \"root\"\n");
    let settings = format!(
        "keys_provider = \"pkcs11\"\nkeys_retry_seconds = 20\nkeys_ttl_seconds = 8\nadmin = \"127.0.0.1:{admin}\"\ncontrol = \"control.sock\"\n"
    );
    home.configure(&settings, &section);
    let config = home.text("onionskin.toml");
    let config = config.replace("127.0.0.1:3306", &server.address());
    let config = config.replace("[scratch]\nengine = \"auto\"\n", "");
    fs::write(home.path("onionskin.toml"), config).expect("written");
    token.is_there(false);
    let mut served = home.serve_with(&token.variables(&home));
    wait_until("it is asked in vain", SOON, || {
        served.log().contains("has no token now")
    });
    assert!(!served.listens());
    token.is_there(true);
    served.until_it_listens();
    assert!(http(admin, "/metrics").contains("onionskin_keys_provider_up 1"));
    server.connect().must("CREATE DATABASE app");
    let mut session = Session::open(served.port, "root", "", Some("app"));
    session.must("CREATE TABLE t (id INT PRIMARY KEY, c VARCHAR(40) ENCRYPTED FOR (eq))");

    token.is_there(false);
    let refused = home.must_not(&["reload"]);
    assert!(
        refused.contains("has no token now") && refused.contains("nothing was changed"),
        "{refused}"
    );
    session.must("INSERT INTO t VALUES (1, 'kept')");
    assert_eq!(
        session.text("SELECT id FROM t WHERE c = 'kept'").unwrap(),
        "1"
    );
    let ready = http(admin, "/ready");
    assert!(
        ready.contains("keys: ok; the provider pkcs11 has not answered"),
        "{ready}"
    );
    token.is_there(true);
    home.must(&["reload"]);
    token.is_there(false);
    drop(session);
    assert_eq!(served.exit_code(), Some(1), "{}", served.log());
    let log = served.log();
    assert!(log.trim().ends_with("may not be used any longer"), "{log}");
    assert!(!log.contains("1234"), "{log}");
}
