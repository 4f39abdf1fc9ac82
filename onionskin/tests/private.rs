//! `onionskin init`, and `onionskin serve --private`: a server of its own, from nothing to its end.

use onionskin_testkit::*;
use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

on_both_servers!(
    serves_from_nothing_and_keeps_what_was_stored,
    starts_its_server_again_when_it_dies,
    leaves_no_server_behind_when_it_is_killed,
    refuses_the_network_while_root_has_no_password,
);

fn serves_from_nothing_and_keeps_what_was_stored(kind: Kind) {
    let Some(mut home) = Home::new(kind) else {
        return;
    };
    home.serve();
    let mut session = home.session();
    session.text("CREATE DATABASE d").unwrap();
    session
        .text("CREATE TABLE d.t (id INT PRIMARY KEY, s VARCHAR(20) ENCRYPTED FOR (eq))")
        .unwrap();
    session.text("INSERT INTO d.t VALUES (1, 'kept')").unwrap();
    // it brings a scratch engine as well
    let computed = session.text("SELECT CONCAT(UPPER(s), id) FROM d.t");
    assert_eq!(computed.unwrap(), "KEPT1");
    drop(session);
    home.terminate();
    assert!(!home.server_lives(), "the server ends with the proxy");

    // Another folder to start from, the same keys and data.
    home.serve();
    assert_eq!(
        home.session()
            .text("SELECT id FROM d.t WHERE s = 'KEPT'")
            .unwrap(),
        "1"
    );
    // A second one on the same folder would ruin the data.
    let second = home
        .command()
        .args(["--listen", "127.0.0.1:0"])
        .output()
        .expect("onionskin runs");
    assert_failed(&second, 1, "in use by another onionskin");
    home.terminate();

    fs::remove_file(home.private().join("onionskin.toml")).unwrap();
    fs::remove_file(home.private().join("keys.json")).unwrap();
    assert_failed(
        &home.command().output().expect("onionskin runs"),
        2,
        "put the file back",
    );
}

fn starts_its_server_again_when_it_dies(kind: Kind) {
    let Some(mut home) = Home::new(kind) else {
        return;
    };
    home.serve();
    let first = home.server_pid().expect("a pid file");
    signal("KILL", first as u32);
    wait_until("another server", Duration::from_secs(60), || {
        home.server_pid().is_some_and(|pid| pid != first) && home.answers()
    });
    home.terminate();
    assert!(!home.server_lives());
}

fn leaves_no_server_behind_when_it_is_killed(kind: Kind) {
    let Some(mut home) = Home::new(kind) else {
        return;
    };
    home.serve();
    let server = home.server_pid().expect("a pid file");
    home.kill9();
    wait_until("the end of the server", Duration::from_secs(60), || {
        !lives(server)
    });
    home.serve();
    assert!(home.answers());
    home.terminate();
}

fn refuses_the_network_while_root_has_no_password(kind: Kind) {
    let Some(mut home) = Home::new(kind) else {
        return;
    };
    let everywhere = format!("0.0.0.0:{}", free_port());
    let open = home
        .command()
        .args(["--listen", &everywhere])
        .output()
        .expect("onionskin runs");
    assert_failed(&open, 2, "ALTER USER");
    assert!(!home.server_lives());

    home.serve();
    home.session()
        .text("ALTER USER 'root'@'localhost' IDENTIFIED BY 'a secret'")
        .unwrap();
    home.terminate();
    home.listen = everywhere;
    home.serve();
    home.terminate();
}

#[test]
fn init_makes_keys_once_and_puts_them_under_a_passphrase() {
    let folder = tempfile::tempdir().unwrap();
    let init = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onionskin"));
        command
            .args(["init", "--backend", "127.0.0.1:1", "--dir"])
            .arg(folder.path().join("new"));
        command.env("ONIONSKIN_PASSPHRASE", "a passphrase");
        command.output().expect("onionskin runs")
    };
    let first = init();
    assert!(first.status.success(), "{first:?}");
    let keys = fs::read_to_string(folder.path().join("new/keys.json")).unwrap();
    assert!(keys.contains("argon2id") && !keys.contains("a passphrase"));
    assert_failed(&init(), 2, "not overwritten");
    assert_eq!(
        fs::read_to_string(folder.path().join("new/keys.json")).unwrap(),
        keys
    );

    let mut serve = Command::new(env!("CARGO_BIN_EXE_onionskin"));
    serve
        .arg("serve")
        .arg("-c")
        .arg(folder.path().join("new/onionskin.toml"))
        .env_remove("ONIONSKIN_PASSPHRASE");
    assert_failed(
        &serve.output().expect("onionskin runs"),
        2,
        "ONIONSKIN_PASSPHRASE",
    );
}

#[test]
fn mistakes_in_the_configuration_are_named() {
    for (line, named) in [
        ("listens = \"127.0.0.1:3307\"", "unknown field `listens`"),
        (
            "[protect.\"a.b\"]\nc = [\"equals\"]",
            "unknown capability \"equals\"",
        ),
        ("suite = \"rot13\"", "\"aes\" or \"sm\""),
        ("backend_tls = \"verify\"", "backend_ca"),
        ("keys = \"file:elsewhere.json\"", "elsewhere.json"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let program = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_onionskin"));
            command
                .current_dir(folder.path())
                .env_remove("ONIONSKIN_PASSPHRASE");
            command
        };
        assert!(
            program()
                .arg("init")
                .output()
                .expect("onionskin runs")
                .status
                .success()
        );
        fs::write(folder.path().join("onionskin.toml"), format!("{line}\n")).unwrap();
        assert_failed(
            &program().arg("serve").output().expect("onionskin runs"),
            2,
            named,
        );
    }
}

/// A folder for a private server, and the program that runs it.
struct Home {
    kind: Kind,
    listen: String,
    child: Option<Child>,
    folder: TempDir,
}

impl Home {
    fn new(kind: Kind) -> Option<Home> {
        // Says why it is skipped where MySQL could not be installed.
        drop(Server::start(kind, ServerOptions::default())?);
        let folder = tempfile::Builder::new()
            .prefix("osv-")
            .tempdir_in("/tmp")
            .unwrap();
        // The server's user passes through where the tests run as root.
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
        Some(Home {
            kind,
            listen: format!("127.0.0.1:{}", free_port()),
            child: None,
            folder,
        })
    }

    fn private(&self) -> PathBuf {
        self.folder.path().join("db")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn command(&self) -> Command {
        let mut command = tied_command(env!("CARGO_BIN_EXE_onionskin"));
        command
            .args(["serve", "--private"])
            .arg(self.private())
            .current_dir(self.folder.path());
        command.env("RUST_LOG", "info").stdin(Stdio::null());
        if self.kind == Kind::MySql {
            command.env("ONIONSKIN_MYSQLD", checkout().join("scripts/mysqld97"));
        }
        command
    }

    fn serve(&mut self) {
        let log = File::create(self.folder.path().join("log")).unwrap();
        let mut command = self.command();
        command.args(["--listen", &self.listen]).stderr(log);
        let mut child = command.spawn().expect("onionskin starts");
        wait_until("onionskin serve --private", Duration::from_secs(90), || {
            let ended = child.try_wait().expect("it can be waited for");
            assert!(ended.is_none(), "{ended:?}\n{}", self.log());
            self.log().contains("listening on")
        });
        self.child = Some(child);
    }

    fn port(&self) -> u16 {
        self.listen.rsplit(':').next().unwrap().parse().unwrap()
    }

    fn session(&self) -> Session {
        Session::open(self.port(), "root", "", None)
    }

    /// Whether a server answers behind the proxy.
    fn answers(&self) -> bool {
        use std::io::Read;
        let mut greeting = [0; 5];
        TcpStream::connect(("127.0.0.1", self.port()))
            .and_then(|mut stream| {
                stream.set_read_timeout(Some(Duration::from_secs(5)))?;
                stream.read_exact(&mut greeting)
            })
            .is_ok()
            && greeting[4] == 10
    }

    fn server_pid(&self) -> Option<i32> {
        fs::read_to_string(self.private().join("server.pid"))
            .ok()?
            .trim()
            .parse()
            .ok()
    }

    fn server_lives(&self) -> bool {
        self.server_pid().is_some_and(lives)
    }

    fn kill9(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    fn terminate(&mut self) {
        let mut child = self.child.take().expect("it runs");
        signal("TERM", child.id());
        let mut status = None;
        wait_until("the end on SIGTERM", Duration::from_secs(60), || {
            status = child.try_wait().expect("it can be waited for");
            status.is_some()
        });
        assert!(
            status.is_some_and(|status| status.success()),
            "{status:?}\n{}",
            self.log()
        );
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.kill9();
        // Its files are not removed from under it.
        for _ in 0..600 {
            if !self.server_lives() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn lives(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn assert_failed(output: &Output, code: i32, named: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(text.contains(named), "{named} is not in: {text}");
}
