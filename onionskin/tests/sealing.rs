//! `onionskin seal`, `open` and `verify` as they are called: round trips, exit codes, files that
//! are whole or not there, memory, openssl's format, and the independent reader.

use onionskin_testkit::*;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// A folder with keys and a configuration.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Home(tempfile::tempdir().expect("a folder"));
        let output = home.run(&["init"], b"");
        assert!(output.status.success(), "{output:?}");
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onionskin"));
        command
            .args(arguments)
            .current_dir(self.0.path())
            .env_remove("ONIONSKIN_PASSPHRASE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str], input: &[u8]) -> Output {
        feed(self.command(arguments), input)
    }

    fn run_with_passphrase(&self, passphrase: &str, arguments: &[&str], input: &[u8]) -> Output {
        let mut command = self.command(arguments);
        command.env("ONIONSKIN_PASSPHRASE", passphrase);
        feed(command, input)
    }

    /// What standard output held; the exit code must be 0.
    fn must(&self, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let output = self.run(arguments, input);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        output.stdout
    }

    /// The names of the files that are there besides keys and configuration.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("the folder");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("UTF-8")
            })
            .filter(|name| name != "keys.json" && name != "onionskin.toml")
            .collect();
        names.sort();
        names
    }
}

fn feed(mut command: Command, input: &[u8]) -> Output {
    let mut child = command.spawn().expect("onionskin starts");
    let mut stdin = child.stdin.take().expect("piped");
    thread::scope(|scope| {
        // A program that has failed does not read on.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().expect("onionskin ends")
    })
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn assert_fails(output: &Output, code: i32, text: &str) {
    assert_eq!(output.status.code(), Some(code), "{}", said(output));
    assert!(
        said(output).contains(text),
        "{text:?} is not in: {}",
        said(output)
    );
}

/// Compressible and not, in turns; longer than three frames.
fn plaintext() -> Vec<u8> {
    let lines: String = (0..40_000)
        .map(|n| format!("INSERT INTO t VALUES ({n});\n"))
        .collect();
    [
        lines.as_bytes(),
        &noise(1 << 20, 1),
        lines.as_bytes(),
        &noise(1 << 19, 2),
    ]
    .concat()
}

#[test]
fn through_pipes_and_through_files() {
    let home = Home::new();
    let plain = plaintext();
    for suite in ["aes", "sm"] {
        for level in ["0", "3"] {
            let sealed = home.must(&["seal", "--suite", suite, "--level", level], &plain);
            assert_eq!(sealed.len() < plain.len(), level == "3");
            assert!(home.must(&["open"], &sealed) == plain, "{suite} {level}");
            fs::write(home.path("stream"), &sealed).expect("written");
            let out = home.must(
                &["open", "--keys", "keys.json", "--threads", "1", "stream"],
                b"",
            );
            assert!(out == plain);
            for deep in [false, true] {
                let arguments = ["verify", "stream", "--footer"];
                let said = home.must(&arguments[..if deep { 2 } else { 3 }], b"");
                let said = String::from_utf8(said).expect("UTF-8");
                assert!(said.contains(&format!("suite {suite}")), "{said}");
                assert!(said.contains(&format!("{} bytes", plain.len())), "{said}");
                assert_eq!(said.contains("NOT read"), !deep, "{said}");
            }
            fs::remove_file(home.path("stream")).expect("removed");
        }
    }
    fs::write(home.path("plain"), &plain).expect("written");
    home.must(&["seal", "-q", "plain", "-o", "sealed"], b"");
    home.must(&["open", "-q", "sealed", "-o", "opened"], b"");
    assert_eq!(home.files(), ["opened", "plain", "sealed"]);
    assert!(fs::read(home.path("opened")).expect("there") == plain);
}

#[test]
fn what_was_not_read_is_not_called_verified() {
    let home = Home::new();
    let mut sealed = home.must(&["seal", "--level", "0"], &plaintext());
    let middle = sealed.len() / 2;
    sealed[middle] ^= 1;
    fs::create_dir(home.path("backups")).expect("a folder");
    fs::write(home.path("backups/one"), &sealed).expect("written");
    let said = |arguments: &[&str], code: i32| {
        let output = home.run(arguments, b"");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        said
    };
    // Only what was read can be told of: the list reads footers and says so.
    let listed = said(&["backup", "list", "--to", "backups"], 0);
    assert!(listed.contains("footer checked, full"), "{listed}");
    assert!(
        listed.contains("was not read") && !listed.contains("verified"),
        "{listed}"
    );
    let footer = said(&["verify", "--footer", "backups/one"], 0);
    assert!(footer.contains("the content was NOT read"), "{footer}");
    // Whatever is said without reading less was read: the flipped byte is met.
    for arguments in [
        &["verify", "backups/one"][..],
        &["verify", "--deep", "backups/one"],
    ] {
        let verified = said(arguments, 3);
        assert!(!verified.contains("is what was written"), "{verified}");
    }
    said(&["verify", "--deep", "--footer", "backups/one"], 2);
}

#[test]
fn the_configuration_chooses_the_suite() {
    let home = Home::new();
    let config = fs::read_to_string(home.path("onionskin.toml")).expect("there");
    let config: String = config
        .lines()
        .filter(|line| !line.trim_start().starts_with("suite"))
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(home.path("sm.toml"), format!("suite = \"sm\"\n{config}")).expect("written");
    let sealed = home.must(&["seal", "-c", "sm.toml"], b"x");
    assert_eq!(sealed[9], 2, "the suite in the header");
    let sealed = home.must(&["seal", "-c", "sm.toml", "--suite", "aes"], b"x");
    assert_eq!(sealed[9], 1, "the suite in the header");
}

#[test]
fn exit_codes() {
    let (home, other) = (Home::new(), Home::new());
    let plain = plaintext();
    let sealed = home.must(&["seal"], &plain);
    let input = |bytes: &[u8]| {
        fs::write(home.path("stream"), bytes).expect("written");
        home.run(&["verify", "stream"], b"")
    };

    // 2: keys and arguments.
    assert_fails(&other.run(&["open"], &sealed), 2, "wrong key");
    fs::write(other.path("stream"), &sealed).expect("written");
    assert_fails(&other.run(&["verify", "stream"], b""), 2, "wrong key");
    assert_fails(
        &home.run(&["open", "-c", "nowhere.toml"], &sealed),
        2,
        "nowhere.toml",
    );
    assert_fails(
        &home.run(&["open", "--keys", "nowhere.json"], &sealed),
        2,
        "nowhere.json",
    );
    assert_fails(&home.run(&["seal", "--level", "20"], b""), 2, "0 to 19");
    assert_fails(&home.run(&["seal", "--threads", "0"], b""), 2, "1 to 1024");
    assert_fails(
        &home.run(&["seal", "--passphrase"], b""),
        2,
        "ONIONSKIN_PASSPHRASE",
    );
    assert_fails(
        &home.run(&["open", "--format", "openssl"], b""),
        2,
        "--cipher",
    );
    fs::write(home.path("taken"), "somebody else's").expect("written");
    for arguments in [["seal", "-o", "taken"], ["open", "-o", "taken"]] {
        assert_fails(&home.run(&arguments, &sealed), 2, "not overwritten");
    }
    assert_eq!(
        fs::read(home.path("taken")).expect("there"),
        b"somebody else's"
    );

    // 3: damage.
    let mut changed = sealed.clone();
    changed[sealed.len() / 2] ^= 1;
    for (damaged, text) in [
        (&changed[..], "authentication fails"),
        (&sealed[..sealed.len() / 2], "truncated"),
        (&sealed[..sealed.len() - 1], ""),
        (&[&sealed[..], b"x"].concat(), ""),
        (b"", "not a sealed stream"),
        (b"Salted__12345678", "not a sealed stream"),
    ] {
        assert_fails(&home.run(&["open"], damaged), 3, text);
        assert_eq!(input(damaged).status.code(), Some(3));
        let output = home.run(&["open", "-o", "opened"], damaged);
        assert_eq!(output.status.code(), Some(3));
        assert!(plain.starts_with(&home.run(&["open"], damaged).stdout));
    }
    assert!(input(&sealed).status.success());

    // 4: the source.
    let fails = [
        "seal",
        "-o",
        "sealed",
        "--",
        "sh",
        "-c",
        "echo half; exit 3",
    ];
    assert_fails(&home.run(&fails, b""), 4, "exit status: 3");
    let killed = ["seal", "--", "sh", "-c", "echo half; kill -9 $$"];
    let output = home.run(&killed, b"");
    assert_fails(&output, 4, "signal: 9");
    assert_fails(&home.run(&["open"], &output.stdout), 3, "truncated");
    assert_fails(
        &home.run(&["seal", "--", "/nowhere/at-all"], b""),
        2,
        "cannot be started",
    );
    assert_eq!(home.files(), ["stream", "taken"], "nothing is left behind");

    let sealed = home.must(
        &["seal", "--", "sh", "-c", "cat; echo \"$0\"", "done"],
        b"from stdin, ",
    );
    assert_eq!(home.must(&["open"], &sealed), b"from stdin, done\n");
}

#[test]
fn under_a_passphrase() {
    let home = Home::new();
    let seal = ["seal", "--passphrase", "--suite", "sm"];
    let output = home.run_with_passphrase("correct horse", &seal, b"plaintext");
    assert!(output.status.success(), "{}", said(&output));
    let sealed = output.stdout;
    let opened = home.run_with_passphrase("correct horse", &["open"], &sealed);
    assert_eq!(opened.stdout, b"plaintext");
    assert_fails(
        &home.run_with_passphrase("wrong", &["open"], &sealed),
        2,
        "wrong passphrase",
    );
    assert_fails(&home.run(&["open"], &sealed), 2, "ONIONSKIN_PASSPHRASE");
    // A command that is sealed has no business with it.
    let told = [
        "seal",
        "--passphrase",
        "--",
        "sh",
        "-c",
        "echo ${ONIONSKIN_PASSPHRASE-untold}",
    ];
    let sealed = home.run_with_passphrase("correct horse", &told, b"").stdout;
    let opened = home.run_with_passphrase("correct horse", &["open"], &sealed);
    assert_eq!(opened.stdout, b"untold\n");
    // The key file of the folder is not under a passphrase, so one that is set is a mistake.
    assert_fails(
        &home.run_with_passphrase("x", &["seal"], b""),
        2,
        "not under one",
    );
}

#[test]
fn a_full_disk() {
    let home = Home::new();
    let plain = noise(4 << 20, 3);
    let full = || Stdio::from(File::create("/dev/full").expect("/dev/full"));
    for arguments in [&["seal"][..], &["seal", "--level", "0"]] {
        let mut command = home.command(arguments);
        command.stdout(full());
        assert_fails(&feed(command, &plain), 1, "No space left");
    }
    let sealed = home.must(&["seal"], &plain);
    let mut command = home.command(&["open"]);
    command.stdout(full());
    assert_fails(&feed(command, &sealed), 1, "No space left");

    // A file system of 1 MiB, as long as this test runs.
    let small = tempfile::tempdir().expect("a folder");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
        .arg(small.path())
        .output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        announce("a_full_disk ... on a real file system skipped: no tmpfs can be mounted here");
        return;
    }
    let path = small.path().join("backup").display().to_string();
    let sealing = home.run(&["seal", "--level", "0", "-o", &path], &plain);
    let opening = home.run(&["open", "-o", &path], &sealed);
    let left: Vec<_> = fs::read_dir(small.path()).expect("there").collect();
    let unmounted = Command::new("umount").arg(small.path()).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    assert_fails(&sealing, 1, "No space left");
    assert_fails(&opening, 1, "No space left");
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_cut_pipe() {
    let home = Home::new();
    let mut child = home
        .command(&["seal", "--level", "0"])
        .spawn()
        .expect("starts");
    let mut stdin = child.stdin.take().expect("piped");
    let mut stdout = child.stdout.take().expect("piped");
    let writer = thread::spawn(move || while stdin.write_all(&[7; 65536]).is_ok() {});
    let mut some = vec![0; 3 << 20];
    stdout.read_exact(&mut some).expect("read");
    drop(stdout);
    let output = child.wait_with_output().expect("ends");
    assert_fails(&output, 1, "Broken pipe");
    writer.join().expect("the writer sees the end");
    assert_fails(&home.run(&["open"], &some), 3, "truncated");
}

#[test]
fn a_silent_command_does_not_outlive_its_seal() {
    let home = Home::new();
    let lives = |pid: &str| Path::new("/proc").join(pid.trim()).exists();
    // It would never notice that nobody reads it any more.
    let script = "echo $$ > pid; head -c 8M /dev/zero; exec sleep 600";
    for how in ["the output fails", "TERM", "KILL"] {
        let mut seal = home
            .command(&["seal", "--level", "0", "--", "sh", "-c", script])
            .spawn()
            .expect("starts");
        let mut stdout = seal.stdout.take().expect("piped");
        stdout.read_exact(&mut [0; 4096]).expect("read");
        let pid = fs::read_to_string(home.path("pid")).expect("written");
        assert!(lives(&pid), "{how}");
        match how {
            "the output fails" => drop(stdout),
            name => signal(name, seal.id()),
        }
        seal.wait().expect("ends");
        wait_until("the command's end", Duration::from_secs(10), || {
            !lives(&pid)
        });
        fs::remove_file(home.path("pid")).expect("removed");
    }
}

/// A `seal` or `open` to a file that is in the middle of its work.
fn half_way(home: &Home, arguments: &[&str], input: &[u8]) -> Child {
    let mut child = home.command(arguments).spawn().expect("starts");
    let stdin = child.stdin.as_mut().expect("piped");
    stdin.write_all(input).expect("written");
    wait_until("a partial file grows", Duration::from_secs(20), || {
        home.files().iter().any(|name| {
            let len = fs::metadata(home.path(name)).map_or(0, |metadata| metadata.len());
            name.ends_with(".partial") && len > 1 << 20
        })
    });
    child
}

#[test]
fn killed_in_the_middle() {
    let home = Home::new();
    let plain = noise(8 << 20, 4);
    let sealed = home.must(&["seal", "--level", "0"], &plain);
    for (command, input) in [("seal", &plain), ("open", &sealed[..7 << 20].to_vec())] {
        let mut child = half_way(&home, &[command, "-o", "result"], input);
        child.kill().expect("killed");
        assert_eq!(child.wait().expect("ended").signal(), Some(9));
        // What stays has a name that says so, and is no stream.
        let files = home.files();
        assert_eq!(files.len(), 1, "{files:?}");
        assert!(files[0].starts_with(".result.") && files[0].ends_with(".partial"));
        if command == "seal" {
            assert_fails(&home.run(&["verify", &files[0]], b""), 3, "");
            assert_fails(&home.run(&["open", &files[0]], b""), 3, "truncated");
        }
        fs::remove_file(home.path(&files[0])).expect("removed");

        for name in ["TERM", "INT"] {
            let mut child = half_way(&home, &[command, "-o", "result"], input);
            // `wait` would close it, and on a busy machine the end of the input would come first
            let _open = child.stdin.take();
            signal(name, child.id());
            assert_eq!(child.wait().expect("ended").code(), Some(1));
            assert_eq!(home.files(), [""; 0], "nothing is left after SIG{name}");
        }
    }
}

/// The largest resident size that a process has had so far, in KiB.
fn peak_memory(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// Number `n` of the pieces that a long stream is made of: half of it compresses.
fn piece(n: u64, block: &[u8]) -> Vec<u8> {
    let mut piece = block.to_vec();
    piece[..8].copy_from_slice(&n.to_le_bytes());
    piece
}

#[test]
fn memory_is_bounded() {
    const PIECE: usize = 1 << 20;
    let gigabytes: u64 = if long_run() { 10 } else { 2 };
    let pieces = gigabytes << 10;
    let block = [noise(PIECE / 2, 5), vec![b'x'; PIECE / 2]].concat();
    let home = Home::new();
    for (suite, level) in [("aes", "0"), ("aes", "1")] {
        let arguments = [
            "seal",
            "-q",
            "--threads",
            "2",
            "--suite",
            suite,
            "--level",
            level,
        ];
        let mut seal = home.command(&arguments).spawn().expect("starts");
        let mut input = seal.stdin.take().expect("piped");
        let mut open = home.command(&["open", "-q", "--threads", "2"]);
        open.stdin(seal.stdout.take().expect("piped"));
        let mut open = open.spawn().expect("starts");
        let mut output = open.stdout.take().expect("piped");
        let written = block.clone();
        let writer = thread::spawn(move || {
            for n in 0..pieces {
                input.write_all(&piece(n, &written)).expect("written");
            }
        });
        let mut peaks = (0, 0);
        let mut read = vec![0; PIECE];
        for n in 0..pieces {
            output.read_exact(&mut read).expect("read");
            assert!(read == piece(n, &block), "piece {n}");
            let now = (peak_memory(seal.id()), peak_memory(open.id()));
            peaks = (now.0.unwrap_or(peaks.0), now.1.unwrap_or(peaks.1));
        }
        assert_eq!(output.read(&mut read).expect("read"), 0);
        writer.join().expect("all is written");
        assert!(seal.wait().expect("ends").success());
        assert!(open.wait().expect("ends").success());
        println!(
            "{gigabytes} GiB, {suite}, level {level}: seal {} KiB, open {} KiB",
            peaks.0, peaks.1
        );
        assert!(peaks.0 > 1000 && peaks.1 > 1000, "measured: {peaks:?}");
        assert!(peaks.0 < 48 << 10 && peaks.1 < 48 << 10, "KiB: {peaks:?}");
    }
}

fn openssl(arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut command = Command::new("openssl");
    command
        .arg("enc")
        .args(arguments)
        .args(["-pbkdf2", "-pass", "pass:correct horse"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let output = feed(command, input);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    output.stdout
}

#[test]
fn what_openssl_enc_wrote() {
    let home = Home::new();
    let open = |arguments: &[&str], input: &[u8]| {
        let arguments = [&["open", "--format", "openssl"][..], arguments].concat();
        home.run_with_passphrase("correct horse", &arguments, input)
    };
    let plain = noise((3 << 20) + 5, 6);
    const PART: usize = 1 << 20;
    let ciphers = [
        "aes-128-cbc",
        "aes-192-cbc",
        "aes-256-cbc",
        "aes-128-ctr",
        "aes-192-ctr",
        "aes-256-ctr",
        "sm4-cbc",
    ];
    for cipher in ciphers {
        let dashed = format!("-{cipher}");
        for len in [
            0,
            1,
            15,
            16,
            17,
            PART - 1,
            PART,
            PART + 1,
            2 * PART - 16,
            plain.len(),
        ] {
            let written = openssl(&[&dashed], &plain[..len]);
            let output = open(&["--cipher", cipher], &written);
            assert!(output.status.success(), "{cipher} {len}: {}", said(&output));
            assert!(output.stdout == plain[..len], "{cipher} {len}");
            assert!(said(&output).contains("authenticates nothing"));
        }
        let written = openssl(&[&dashed, "-iter", "77", "-md", "sha512"], b"with options");
        let output = open(
            &["--cipher", cipher, "--iter", "77", "--md", "sha512"],
            &written,
        );
        assert_eq!(output.stdout, b"with options");

        // What can be noticed.
        let written = openssl(&[&dashed], &plain[..100]);
        assert_fails(&open(&["--cipher", cipher], &plain[..100]), 3, "Salted__");
        assert_fails(&open(&["--cipher", cipher], &written[..15]), 3, "Salted__");
        if cipher.ends_with("cbc") {
            assert_fails(
                &open(&["--cipher", cipher], &written[..written.len() - 1]),
                3,
                "truncated",
            );
            assert_fails(&open(&["--cipher", cipher], &written[..16]), 3, "truncated");
            let mut wrong = 0;
            for n in 0..4 {
                let arguments = [
                    "open", "--format", "openssl", "--cipher", cipher, "-o", "out",
                ];
                let output = home.run_with_passphrase(&format!("wrong {n}"), &arguments, &written);
                wrong += i32::from(output.status.code() == Some(3));
                let _ = fs::remove_file(home.path("out"));
            }
            // One in 256 has a valid padding by chance.
            assert!(
                wrong >= 3,
                "{cipher}: {wrong} of 4 wrong passphrases were noticed"
            );
        }
    }
    let none = home.run(
        &["open", "--format", "openssl", "--cipher", "aes-128-cbc"],
        b"",
    );
    assert_fails(&none, 2, "ONIONSKIN_PASSPHRASE");
    let cipher = open(&["--cipher", "aes-256-gcm"], b"");
    assert_fails(&cipher, 2, "unknown cipher");
}

/// A Python that has what the independent reader needs, in a virtual environment of the build's own
/// if the system has none; `None`, loudly, without.
fn python() -> Option<PathBuf> {
    let works = |python: &Path| {
        let test = "from cryptography.hazmat.primitives.kdf.argon2 import Argon2id; \
                    from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV";
        let output = Command::new(python).args(["-c", test]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let system = PathBuf::from("python3");
    if works(&system) {
        return Some(system);
    }
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let own = environment.join("bin/python");
    if !works(&own) {
        let _ = Command::new("python3")
            .args(["-m", "venv"])
            .arg(&environment)
            .output();
        let install = ["-m", "pip", "install", "--quiet", "cryptography>=44"];
        let _ = Command::new(&own).args(install).output();
    }
    let zstd = Command::new("zstd").arg("--version").output().is_ok();
    if works(&own) && zstd {
        return Some(own);
    }
    announce(
        "the_independent_reader_agrees ... SKIPPED: it needs Python 3.10 with the package cryptography 44, \
         which pip could not install, and the program zstd",
    );
    None
}

#[test]
fn the_independent_reader_agrees() {
    let Some(python) = python() else { return };
    let reader = checkout().join("crates/backup/tests/reader/sealed.py");
    let home = Home::new();
    let plain = plaintext();
    let read = |sealed: &[u8], arguments: &[&str]| {
        fs::write(home.path("stream"), sealed).expect("written");
        let mut command = Command::new(&python);
        command
            .arg(&reader)
            .args(["open", "stream"])
            .args(arguments)
            .current_dir(home.path(""))
            .env("ONIONSKIN_PASSPHRASE", "correct horse")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        feed(command, b"")
    };
    for suite in ["aes", "sm"] {
        for level in ["0", "3"] {
            let sealed = home.must(&["seal", "--suite", suite, "--level", level], &plain);
            let output = read(&sealed, &["--keys", "keys.json"]);
            assert!(
                output.status.success(),
                "{suite} {level}: {}",
                said(&output)
            );
            assert!(output.stdout == plain, "{suite} {level}");
            let cut = read(&sealed[..sealed.len() - 20], &["--keys", "keys.json"]);
            assert!(!cut.status.success());
        }
        let arguments = ["seal", "--passphrase", "--suite", suite];
        let sealed = home.run_with_passphrase("correct horse", &arguments, b"under a passphrase");
        assert_eq!(read(&sealed.stdout, &[]).stdout, b"under a passphrase");
        let identity = format!("identity-{suite}");
        home.must(&["identity", "--suite", suite, "-o", &identity], b"");
        let recipient = home.must(&["identity", "--of", &identity], b"");
        let recipient = String::from_utf8(recipient).expect("UTF-8");
        let sealed = home.must(&["seal", "--to", recipient.trim()], &plain);
        let output = read(&sealed, &["--identity", &identity]);
        assert!(output.stdout == plain, "{suite}: {}", said(&output));
        assert_eq!(
            read(
                &home.must(&["seal", "--suite", suite], b""),
                &["--keys", "keys.json"]
            )
            .stdout,
            b""
        );
    }
}
