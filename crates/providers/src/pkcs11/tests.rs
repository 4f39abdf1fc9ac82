use std::{fs, sync::Arc, time::Instant};

use super::*;

/// A child that is a script instead, with a file for a library.
fn provider(child: fn() -> Command, pin: &'static str) -> (tempfile::TempDir, Pkcs11Provider) {
    let folder = tempfile::tempdir().unwrap();
    let module = folder.path().join("library.so");
    fs::write(&module, "").unwrap();
    let provider = Pkcs11Provider::new(Pkcs11Settings {
        pin: Arc::new(move || Ok(Zeroizing::new(pin.into()))),
        child,
        time: Duration::from_secs(20),
        ..settings(module)
    });
    (folder, provider.unwrap())
}

fn settings(module: PathBuf) -> Pkcs11Settings {
    Pkcs11Settings {
        module,
        token: Some("token".into()),
        serial: None,
        slot: None,
        key: Some("key".into()),
        key_id: None,
        pin: Arc::new(|| Ok(Zeroizing::new("1234".into()))),
        time: Duration::from_millis(500),
        child: || sh("exit 0"),
    }
}

fn sh(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

fn fault(provider: &Pkcs11Provider) -> (String, bool) {
    match provider.unwrap(&WrappedKey(vec![1; 60]), KeyContext::ROOT) {
        Ok(_) => panic!("it was unwrapped"),
        Err(error) => (error.to_string(), error.may_pass()),
    }
}

#[test]
fn a_token_and_a_key_are_named() {
    let module = PathBuf::from("/usr/lib/x.so");
    type Change = fn(&mut Pkcs11Settings);
    let cases: [(Change, &str); 5] = [
        (|s| s.module = "x.so".into(), "absolute"),
        (|s| s.token = None, "names no token"),
        (|s| s.key = None, "names no key"),
        (|s| s.key_id = Some("0".into()), "hexadecimal"),
        (|s| s.key_id = Some("".into()), "hexadecimal"),
    ];
    for (change, what) in cases {
        let mut settings = settings(module.clone());
        change(&mut settings);
        let error = Pkcs11Provider::new(settings).err().unwrap();
        assert!(error.contains(what), "{error}");
    }
    let by_number = Pkcs11Settings {
        token: None,
        slot: Some(7),
        key: None,
        key_id: Some("01a7".into()),
        ..settings(module)
    };
    assert!(Pkcs11Provider::new(by_number).is_ok());
    assert_eq!(question::id("01a7"), Some(vec![1, 0xa7]));
    assert_eq!(question::id("0ü"), None);
}

/// What a library makes of its process.
#[test]
fn what_a_child_does_wrong_is_one_error() {
    type Child = fn() -> Command;
    let cases: [(Child, &str, bool); 6] = [
        (
            || sh("echo lost >&2; kill -SEGV $$"),
            "(signal: 11 (SIGSEGV)): lost",
            true,
        ),
        (
            || sh("cat >/dev/null; echo '{\"key\":\"SECRET\"}'"),
            "without an answer",
            true,
        ),
        (|| sh("yes"), "more than 65536 bytes", false),
        (
            || sh("echo '{\"done\":\"BwcH\"}'"),
            "no key of 32 bytes",
            false,
        ),
        (|| sh("echo '{\"done\":\"SECRET!\"}'"), "no base64", false),
        (
            || Command::new("/nonexistent/program"),
            "cannot be started",
            false,
        ),
    ];
    for (child, what, passes) in cases {
        let (_folder, provider) = provider(child, "1234");
        let (text, may_pass) = fault(&provider);
        assert!(text.contains(what), "{text}");
        assert!(!text.contains("SECRET") && !text.contains("1234"), "{text}");
        assert_eq!(may_pass, passes, "{text}");
    }
}

#[test]
fn a_library_that_hangs_is_killed() {
    let (_folder, mut provider) = provider(|| sh("sleep 60"), "1234");
    provider.0.time = Duration::from_millis(300);
    let begin = Instant::now();
    let (text, may_pass) = fault(&provider);
    assert!(
        text.contains("did not answer within 0.3 seconds") && may_pass,
        "{text}"
    );
    assert!(begin.elapsed() < Duration::from_secs(5));
}

/// What a library prints before and after is no answer, and neither is how it ends.
#[test]
fn the_answer_is_found_between_other_lines() {
    let (_folder, provider) = provider(
        || {
            let key = STANDARD.encode([7; 32]);
            sh(&format!(
                "printf 'debug\n{{\"done\":\"{key}\"}}\nbye'; kill -ABRT $$"
            ))
        },
        "1234",
    );
    let key = provider
        .unwrap(&WrappedKey(vec![1; 60]), KeyContext::ROOT)
        .unwrap();
    assert_eq!(dangerous_bytes::bytes_of_data_key(&key), &[7; 32]);
}

/// Three wrong ones lock a token.
#[test]
fn a_pin_that_was_refused_is_not_tried_again() {
    let refusing: fn() -> Command =
        || sh("echo '{\"fault\":{\"why\":\"refused\",\"may_pass\":false,\"pin_refused\":true}}'");
    let (folder, first) = provider(refusing, "a wrong one");
    assert!(fault(&first).0.ends_with("refused"));
    let again = |pin: &'static str| {
        let settings = Pkcs11Settings {
            pin: Arc::new(move || Ok(Zeroizing::new(pin.into()))),
            child: refusing,
            ..settings(folder.path().join("library.so"))
        };
        fault(&Pkcs11Provider::new(settings).unwrap())
    };
    let (text, may_pass) = again("a wrong one");
    assert!(
        text.contains("has refused this PIN before") && !may_pass,
        "{text}"
    );
    assert!(again("another one").0.ends_with("refused"));
}

#[test]
fn a_library_that_others_can_write_is_not_loaded() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, provider) = provider(|| sh("exit 0"), "1234");
    let module = folder.path().join("library.so");
    fs::set_permissions(&module, fs::Permissions::from_mode(0o666)).unwrap();
    let (text, may_pass) = fault(&provider);
    assert!(text.contains("chmod go-w") && !may_pass, "{text}");
    fs::remove_file(&module).unwrap();
    assert!(fault(&provider).0.contains("No such file"));
}
