//! Providers of the root key: a key file that one has wrapped opens by it alone; what it does wrong
//! is one clear error; while it is away, what runs goes on.

#[path = "key_providers/aws_kms.rs"]
mod aws_kms;
#[path = "key_providers/outages.rs"]
mod outages;
#[path = "key_providers/pkcs11.rs"]
mod pkcs11;
#[path = "key_providers/vault.rs"]
mod vault;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use onionskin_testkit::*;

const SOON: Duration = Duration::from_secs(15);

/// A folder with a configuration, keys, and programs.
struct Home(tempfile::TempDir);

impl Home {
    /// After `onionskin init`.
    fn new() -> Home {
        let home = Home(tempfile::tempdir().expect("a folder"));
        home.must(&["init"]);
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("a file")
    }

    /// A file for its owner only.
    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("written");
        fs::set_permissions(self.path(name), Permissions::from_mode(0o700)).expect("its mode");
    }

    /// Puts settings before the first section, and sections behind the last one.
    fn configure(&self, settings: &str, sections: &str) {
        let config = self.text("onionskin.toml");
        // What a test has said before is said anew.
        let config = config.split_once(MARK).map_or(&*config, |(_, rest)| rest);
        let config = config.rsplit_once(MARK).map_or(config, |(rest, _)| rest);
        let text = format!("{settings}{MARK}{config}{MARK}{sections}");
        fs::write(self.path("onionskin.toml"), text).expect("written");
    }

    /// A program that `sh` runs, as the provider exec.
    fn by_script(&self, script: &str) -> String {
        self.write("script", script);
        section(&["/bin/sh", self.path("script").to_str().expect("plain")])
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

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("onionskin runs")
    }

    fn must(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        said(&output)
    }

    /// Fails with exit code 2, and with one line.
    fn must_not(&self, arguments: &[&str]) -> String {
        self.fails(arguments, 2)
    }

    /// Fails with one line, before which may stand that it is tried again.
    fn fails(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        let lines: Vec<&str> = text.trim().lines().collect();
        match lines[..] {
            [one] => one.to_owned(),
            [first, last] if first.contains("asking again for") => last.to_owned(),
            _ => panic!("{text}"),
        }
    }

    /// The proxy, with its log in a file.
    fn serve(&self) -> Served {
        self.serve_with(&[])
    }

    /// The same, with variables that name files.
    fn serve_with(&self, variables: &[(&str, PathBuf)]) -> Served {
        let port = free_port();
        let listen = format!("127.0.0.1:{port}");
        let log = self.path("proxy.log");
        let file = fs::File::create(&log).expect("a log");
        let mut command = self.command(&["serve", "--listen", &listen]);
        command.envs(variables.iter().cloned());
        command
            .stdout(file.try_clone().expect("a handle"))
            .stderr(file);
        Served {
            child: command.spawn().expect("it starts"),
            port,
            log,
        }
    }
}

/// Ends what a test has put into a configuration, and begins it.
const MARK: &str = "\n# of the test\n";

struct Served {
    child: Child,
    port: u16,
    log: PathBuf,
}

impl Served {
    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn listens(&self) -> bool {
        std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok()
    }

    fn until_it_listens(&mut self) {
        let log = self.log.clone();
        wait_until("the proxy listens", SOON, || {
            let ended = self.child.try_wait().expect("waited for");
            assert!(
                ended.is_none(),
                "{}",
                fs::read_to_string(&log).unwrap_or_default()
            );
            self.listens()
        });
    }

    fn exit_code(&mut self) -> Option<i32> {
        let mut status = None;
        wait_until("the proxy ends", SOON, || {
            status = self.child.try_wait().expect("waited for");
            status.is_some()
        });
        status.and_then(|status| status.code())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

fn section(command: &[&str]) -> String {
    format!("[provider.exec]\ncommand = {command:?}\n")
}

/// The example in the documents, with a key for it.
fn documented(home: &Home) -> String {
    let page = fs::read_to_string(checkout().join("docs/keys.md")).expect("the page");
    let (_, example) = page.split_once("```python\n").expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    home.write("wrap-root-key", example);
    let made = Command::new("openssl")
        .args([
            "genpkey",
            "-algorithm",
            "RSA",
            "-pkeyopt",
            "rsa_keygen_bits:2048",
            "-out",
        ])
        .arg(home.path("root.pem"))
        .stderr(Stdio::null())
        .status();
    assert!(made.expect("openssl runs").success());
    let path = |name: &str| home.path(name).to_str().expect("plain").to_owned();
    section(&[&path("wrap-root-key"), &path("root.pem")])
}

/// Keeps keys in files named after their numbers, unless it is told to be away. Counts questions.
const DRAWER: &str = r#"
cd "$(dirname "$0")" && cat >request && echo asked >>asked
[ ! -e away ] || { echo 'the store is away' >&2; exit 1; }
python3 - <<'END'
import base64, json
request = json.load(open("request"))
flip = lambda text: base64.b64encode(bytes(b ^ 0x5a for b in base64.b64decode(text))).decode()
if request["operation"] == "wrap":
    print(json.dumps({"wrapped": flip(request["key"])}))
else:
    print(json.dumps({"key": flip(request["wrapped"])}))
END
"#;

#[test]
fn the_documented_program_wraps_the_root_key() {
    let home = Home::new();
    let sections = documented(&home);
    let before = home.text("keys.json");
    assert!(before.contains("\"clear\""));
    home.configure("", &sections);
    let moved = home.must(&["keys", "rewrap", "--to", "exec"]);
    for words in [
        "in the clear",
        "wrapped by the provider \"exec\"",
        "keys_provider = \"exec\"",
    ] {
        assert!(moved.contains(words), "{words}: {moved}");
    }
    let wrapped = home.text("keys.json");
    assert!(
        !wrapped.contains("clear") && wrapped.contains("\"version\": 2"),
        "{wrapped}"
    );
    let mode = fs::metadata(home.path("keys.json"))
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    // Before the configuration says who opens it, nobody does.
    let refused = home.must_not(&["keys", "list"]);
    assert!(refused.contains("keys_provider = \"exec\""), "{refused}");

    home.configure("keys_provider = \"exec\"\n", &sections);
    assert!(home.must(&["keys", "list"]).contains("1"));
    assert!(home.must(&["keys", "add"]).contains("Key 2 was added"));
    assert!(home.must(&["keys", "use", "2"]).contains("2  "));
    assert_ne!(home.text("keys.json"), wrapped);
    assert!(home.must(&["check"]).contains("sound"));
    let sealed = home.must(&["seal", "-o", "sealed", "keys.json"]);
    let opened = home.run(&["open", "sealed"]);
    assert!(
        sealed.trim().is_empty() || !sealed.contains("error"),
        "{sealed}"
    );
    assert_eq!(
        String::from_utf8_lossy(&opened.stdout),
        home.text("keys.json"),
        "{}",
        said(&opened)
    );
    // The file alone is of no use.
    let alone = home.must_not(&["open", "--keys", "keys.json", "sealed"]);
    assert!(alone.contains("-c"), "{alone}");
    let wordless = home.must_not(&["keys", "passphrase", "--remove"]);
    assert!(wordless.contains("rewrap --to passphrase"), "{wordless}");

    // The old file opens as before, and is of the same keys.
    home.write("old.json", &before);
    fs::set_permissions(home.path("old.json"), Permissions::from_mode(0o600)).expect("its mode");
    assert!(
        home.must(&["keys", "--keys", "old.json", "list"])
            .contains("active")
    );

    let mut back = home.command(&["keys", "rewrap", "--to", "passphrase"]);
    let back = back.env("ONIONSKIN_NEW_PASSPHRASE", "p").output();
    let back = back.expect("it runs");
    assert!(
        said(&back).contains("Take keys_provider out"),
        "{}",
        said(&back)
    );
    home.configure("", &sections);
    let mut list = home.command(&["keys", "list"]);
    let list = list
        .env("ONIONSKIN_PASSPHRASE", "p")
        .output()
        .expect("it runs");
    assert!(said(&list).contains("2  "), "{}", said(&list));
}

#[test]
fn a_key_set_can_begin_under_a_provider() {
    let home = Home::new();
    let sections = home.by_script(DRAWER);
    fs::remove_file(home.path("keys.json")).expect("removed");
    home.configure("keys_provider = \"exec\"\n", &sections);
    home.write("away", "");
    let away = home.fails(&["init", "--keys-only"], 1);
    assert!(away.contains("the store is away"), "{away}");
    assert!(!home.path("keys.json").exists());
    fs::remove_file(home.path("away")).expect("removed");
    let made = home.must(&["init", "--keys-only"]);
    assert!(made.contains("wrapped by the provider \"exec\""), "{made}");
    assert!(home.must(&["keys", "list"]).contains("active"));
    let there = home.must_not(&["init", "--keys-only"]);
    assert!(there.contains("exists and is not overwritten"), "{there}");
}

#[test]
fn what_a_program_does_wrong_is_one_error() {
    let home = Home::new();
    let sound = home.by_script(DRAWER);
    home.configure("", &sound);
    home.must(&["keys", "rewrap", "--to", "exec"]);
    let other = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    for (script, what, code) in [
        (
            "sleep 60",
            "did not end within 0.5 seconds and was killed",
            1,
        ),
        ("echo nonsense", "not the expected JSON at line 1", 2),
        ("echo 'no network here' >&2; exit 1", "no network here", 1),
        ("echo 'no such key' >&2; exit 2", "no such key", 2),
        (
            &format!("echo '{{\"key\":\"{other}\"}}'"),
            "authentication fails",
            2,
        ),
        ("yes", "more than 65536 bytes", 2),
    ] {
        let timeout = format!("{}timeout_seconds = 0.5\n", home.by_script(script));
        home.configure(
            "keys_provider = \"exec\"\nkeys_retry_seconds = 0.2\n",
            &timeout,
        );
        let begin = Instant::now();
        let error = home.fails(&["keys", "list"], code);
        assert!(error.contains(what), "{script}: {error}");
        assert!(begin.elapsed() < Duration::from_secs(5), "{script}");
        let error = home.fails(&["keys", "add"], code);
        assert!(error.contains(what), "{script}: {error}");
        assert!(!home.path("keys.json.new").exists());
    }
    let nothing = section(&["/nonexistent/program"]);
    home.configure("keys_provider = \"exec\"\n", &nothing);
    assert!(home.must_not(&["keys", "list"]).contains("No such file"));
    // Faults of the configuration are found where it is read.
    for (settings, sections, what) in [
        ("keys_provider = \"exec\"\n", "", "[provider.exec]"),
        ("keys_provider = \"kms\"\n", "", "`exec`"),
        ("", "[provider.exec]\ncommand = [\"wrap\"]\n", "absolute"),
        ("keys_ttl_seconds = 5\n", "", "keys_provider names none"),
    ] {
        home.configure(settings, sections);
        let output = home.run(&["check"]);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(what), "{}", said(&output));
    }
}

/// Who can write the key file chooses neither whom to ask nor that nobody is asked.
#[test]
fn an_exchanged_key_file_is_refused() {
    let home = Home::new();
    let open = home.text("keys.json");
    let sections = home.by_script(DRAWER);
    home.configure("", &sections);
    home.must(&["keys", "rewrap", "--to", "exec"]);
    let wrapped = home.text("keys.json");
    home.configure("keys_provider = \"exec\"\n", &sections);
    let keys = |text: &str| {
        fs::write(home.path("keys.json"), text).expect("written");
        let _ = fs::remove_file(home.path("asked"));
    };
    let asked = || home.path("asked").exists();
    keys(&open);
    let refused = home.must_not(&["keys", "list"]);
    assert!(
        refused.contains("may have been exchanged") && !asked(),
        "{refused}"
    );
    let mut served = home.serve();
    assert_eq!(served.exit_code(), Some(2), "{}", served.log());
    keys(&wrapped.replace("\"exec\"", "\"other\""));
    let refused = home.must_not(&["keys", "list"]);
    assert!(
        refused.contains("wrapped by \"other\"") && !asked(),
        "{refused}"
    );
    keys(&wrapped.replace(
        "\"name\": \"exec\"",
        "\"name\": \"exec\", \"command\": [\"/bin/x\"]",
    ));
    assert!(home.must_not(&["keys", "list"]).contains("malformed") && !asked());
    keys(&wrapped);
    home.must(&["keys", "list"]);
    assert!(asked());
}
