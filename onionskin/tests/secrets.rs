//! The program's own secrets: whose files they are in, where a passphrase comes from, and that
//! nobody else looks into the process.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use onionskin_testkit::*;

/// `onionskin` with these arguments and variables, in a folder, with nothing of the test's own
/// environment that matters.
fn onionskin(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = tied_command("sh");
    // As large as the limit may be: what the program starts with is the system's choice.
    command.args(["-c", "ulimit -c $(ulimit -H -c) && exec \"$@\"", "sh"]);
    command.arg(env!("CARGO_BIN_EXE_onionskin"));
    command.current_dir(folder).args(arguments);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for name in [
        "ONIONSKIN_PASSPHRASE",
        "ONIONSKIN_PASSPHRASE_FILE",
        "CREDENTIALS_DIRECTORY",
    ] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    command
}

fn run(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let command = &mut onionskin(folder, arguments, variables);
    command.output().expect("onionskin runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// A folder with a configuration and keys, made under these variables.
fn home(variables: &[(&str, &str)]) -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a folder");
    let made = run(home.path(), &["init"], variables);
    assert!(made.status.success(), "{}", said(&made));
    home
}

fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).expect("written");
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("its mode");
}

/// Starts the proxy, looks at it, ends it, and returns what it has logged.
fn serve(folder: &Path, variables: &[(&str, &str)], look: impl FnOnce(u32)) -> String {
    let port = free_port();
    let listen = format!("127.0.0.1:{port}");
    let arguments = ["serve", "-c", "onionskin.toml", "--listen", &listen];
    let mut child = onionskin(folder, &arguments, variables)
        .spawn()
        .expect("it starts");
    let mut ended = None;
    wait_until("the proxy listens or ends", Duration::from_secs(60), || {
        ended = child.try_wait().expect("waited for");
        ended.is_some() || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    if ended.is_none() {
        look(child.id());
        signal("TERM", child.id());
    }
    said(&child.wait_with_output().expect("it ends"))
}

#[test]
fn the_passphrase_comes_from_a_file_or_a_credential() {
    let secret = "correct horse";
    let home = home(&[("ONIONSKIN_PASSPHRASE", secret)]);
    let folder = home.path();
    let file = folder.join("passphrase");
    let name = file.to_str().expect("a plain path");
    let list = |variables: &[(&str, &str)]| run(folder, &["keys", "list"], variables);
    let from_file = [("ONIONSKIN_PASSPHRASE_FILE", name)];
    for text in ["correct horse", "correct horse\n", "correct horse\r\n"] {
        write(&file, text, 0o600);
        assert!(list(&from_file).status.success(), "{text:?}");
    }
    for (text, mode, what) in [
        ("correct horse\n\n", 0o600, "wrong passphrase"),
        ("\n", 0o600, "empty"),
        ("correct horse", 0o640, "chmod 600"),
    ] {
        write(&file, text, mode);
        let refused = list(&from_file);
        assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
        assert!(
            said(&refused).contains(what),
            "{text:?}: {}",
            said(&refused)
        );
        assert!(!said(&refused).contains("horse"), "{}", said(&refused));
    }
    write(&file, secret, 0o600);
    let both = list(&[("ONIONSKIN_PASSPHRASE", secret), from_file[0]]);
    assert!(said(&both).contains("both set"), "{}", said(&both));
    let neither = list(&[]);
    assert!(
        said(&neither).contains("ONIONSKIN_PASSPHRASE_FILE"),
        "{}",
        said(&neither)
    );

    let credentials = folder.join("credentials");
    fs::create_dir(&credentials).expect("made");
    // systemd chooses the mode.
    write(&credentials.join("onionskin-passphrase"), secret, 0o440);
    let place = [(
        "CREDENTIALS_DIRECTORY",
        credentials.to_str().expect("plain"),
    )];
    assert!(list(&place).status.success(), "{}", said(&list(&place)));
    let wrong = [place[0], ("ONIONSKIN_PASSPHRASE", "wrong")];
    assert!(
        said(&list(&wrong)).contains("wrong passphrase"),
        "the variable goes first"
    );
    let log = serve(folder, &place, |_| {});
    assert!(log.contains("listening"), "{log}");

    let new = folder.join("new");
    write(&new, "another", 0o600);
    let change = [
        from_file[0],
        (
            "ONIONSKIN_NEW_PASSPHRASE_FILE",
            new.to_str().expect("plain"),
        ),
    ];
    let changed = run(folder, &["keys", "passphrase"], &change);
    assert!(changed.status.success(), "{}", said(&changed));
    assert!(
        list(&[("ONIONSKIN_PASSPHRASE", "another")])
            .status
            .success()
    );
}

#[test]
fn files_of_other_users_are_refused() {
    let home = home(&[]);
    let folder = home.path();
    let keys = folder.join("keys.json");
    let config = fs::read_to_string(folder.join("onionskin.toml")).expect("there");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    let (cert, key) = (folder.join("c.pem"), folder.join("k.pem"));
    write(&cert, &made.cert.pem(), 0o644);
    write(&key, &made.signing_key.serialize_pem(), 0o600);
    let with_tls = config + "\n[tls]\ncert = \"c.pem\"\nkey = \"k.pem\"\n";
    fs::write(folder.join("onionskin.toml"), with_tls).expect("written");
    let log = serve(folder, &[], |_| {});
    assert!(log.contains("listening"), "{log}");

    for path in [&keys, &key] {
        fs::set_permissions(path, Permissions::from_mode(0o644)).expect("its mode");
        let log = serve(folder, &[], |_| {});
        assert!(
            !log.contains("listening") && log.contains("chmod 600"),
            "{log}"
        );
        fs::set_permissions(path, Permissions::from_mode(0o600)).expect("its mode");
        if chown(path, Some(12345), None).is_err() {
            announce("SKIPPED: only root can give a file to somebody else");
            continue;
        }
        let log = serve(folder, &[], |_| {});
        assert!(!log.contains("listening") && log.contains("12345"), "{log}");
        chown(path, Some(0), None).expect("root");
    }
}

#[test]
fn a_pipe_in_the_place_of_a_secret_is_not_waited_for() {
    let home = home(&[]);
    let folder = home.path();
    let pipe = |path: &Path| {
        let _ = fs::remove_file(path);
        let made = Command::new("mkfifo")
            .args(["-m", "600"])
            .arg(path)
            .status();
        assert!(made.expect("mkfifo runs").success());
    };
    let text_of = |variables: &[(&str, &str)]| {
        let mut child = onionskin(folder, &["keys", "list"], variables)
            .spawn()
            .expect("it starts");
        wait_until("it ends", Duration::from_secs(30), || {
            child.try_wait().expect("waited for").is_some()
        });
        said(&child.wait_with_output().expect("it has ended"))
    };
    let passphrase = folder.join("passphrase");
    pipe(&passphrase);
    let name = passphrase.to_str().expect("plain");
    let text = text_of(&[("ONIONSKIN_PASSPHRASE_FILE", name)]);
    assert!(text.contains("not a regular file"), "{text}");

    let credential = folder.join("onionskin-passphrase");
    pipe(&credential);
    let place = folder.to_str().expect("plain");
    let text = text_of(&[("CREDENTIALS_DIRECTORY", place)]);
    assert!(text.contains("not a regular file"), "{text}");

    pipe(&folder.join("keys.json.new"));
    let text = text_of(&[]);
    assert!(
        text.contains("keys.json.new") && text.contains("active"),
        "{text}"
    );

    pipe(&folder.join("keys.json"));
    let text = text_of(&[]);
    assert!(text.contains("not a regular file"), "{text}");
}

#[test]
fn what_a_killed_change_left_is_named_at_the_start() {
    let home = home(&[]);
    let folder = home.path();
    let quiet = serve(folder, &[], |_| {});
    assert!(!quiet.contains("keys.json.new"), "{quiet}");
    fs::copy(folder.join("keys.json"), folder.join("keys.json.new")).expect("copied");
    let log = serve(folder, &[], |_| {});
    for part in ["keys.json.new", "under no passphrase", "shred", "listening"] {
        assert!(log.contains(part), "{part}: {log}");
    }
    let list = said(&run(folder, &["keys", "list"], &[]));
    assert!(
        list.contains("keys.json.new") && list.contains("active"),
        "{list}"
    );
}

#[test]
fn there_are_no_core_dumps() {
    let home = home(&[]);
    let mut seen = None;
    serve(home.path(), &[], |pid| {
        let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}"));
        let limits = read("limits").unwrap_or_default();
        let core = limits
            .lines()
            .find(|line| line.starts_with("Max core file size"));
        let core = core
            .unwrap_or_default()
            .split_whitespace()
            .nth(4)
            .unwrap_or_default();
        // What everybody may read is still read, by the measurements among others.
        let open = ["stat", "statm", "status"].map(|name| read(name).is_ok());
        seen = Some((core.to_owned(), open));
    });
    let (core, open) = seen.expect("it listened");
    assert_eq!((core.as_str(), open), ("0", [true; 3]));
}

/// As a user who is not root: another process of his cannot attach, nor read the memory.
#[test]
fn the_same_user_cannot_read_the_memory() {
    let home = home(&[]);
    let folder = home.path();
    let own = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "true"])
        .status();
    if !own.is_ok_and(|status| status.success()) {
        announce("SKIPPED: only root can start a program as somebody else");
        return;
    }
    for path in [
        folder.to_owned(),
        folder.join("keys.json"),
        folder.join("onionskin.toml"),
    ] {
        chown(path, Some(65534), Some(65534)).expect("given away");
    }
    let program = folder.join("program");
    fs::copy(env!("CARGO_BIN_EXE_onionskin"), &program).expect("copied");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("its mode");
    let port = free_port();
    let as_user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let mut child = tied_command("setpriv")
        .args(as_user)
        .arg(&program)
        .args(["serve", "--listen", &format!("127.0.0.1:{port}")])
        .current_dir(folder)
        .env_remove("ONIONSKIN_PASSPHRASE")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    wait_until("the proxy listens", Duration::from_secs(60), || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    let pid = child.id();
    let read = |name: &str| {
        Command::new("setpriv")
            .args(as_user)
            .args(["head", "-c", "1", &format!("/proc/{pid}/{name}")])
            .output()
            .expect("head runs")
    };
    let (environment, memory, status) = (read("environ"), read("maps"), read("status"));
    let _ = child.kill();
    let _ = child.wait();
    assert!(status.status.success(), "{}", said(&status));
    for refused in [environment, memory] {
        assert!(!refused.status.success(), "{}", said(&refused));
        assert!(said(&refused).contains("denied"), "{}", said(&refused));
    }
}
