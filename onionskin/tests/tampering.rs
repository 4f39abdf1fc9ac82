//! Ciphertext and metadata that somebody with access to the server has changed, and keys that are
//! not the right ones: an error for the cells and tables concerned, never a wrong value, and never
//! plaintext on the server.

use onionskin_testkit::*;

on_both_servers!(
    tampered_ciphertext_does_not_open,
    tampered_metadata_is_noticed,
    wrong_keys_open_nothing,
);

fn tampered_ciphertext_does_not_open(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let mut admin = scene.server.connect();
    let cell = |admin: &mut Session, column: &str, table: &str, id: u32| {
        admin
            .text(&format!(
                "SELECT HEX(`{column}$enc`) FROM app.{table} WHERE id = {id}"
            ))
            .unwrap()
    };
    let original = cell(&mut admin, "c", "t", 1);
    assert!(!original.is_empty() && original != "NULL");
    let length = original.len() / 2;
    // Every byte of it matters. The CHECK constraint refuses some changes already.
    let mut refused_by_the_server = 0;
    for at in 0..length {
        let mut bytes = original.clone().into_bytes();
        bytes[2 * at] = if bytes[2 * at] == b'0' { b'F' } else { b'0' };
        let changed = String::from_utf8(bytes).unwrap();
        if admin
            .run(&format!(
                "UPDATE app.t SET `c$enc` = X'{changed}' WHERE id = 1"
            ))
            .is_err()
        {
            refused_by_the_server += 1;
            continue;
        }
        let failure = scene.bystander.text("SELECT c FROM t WHERE id = 1");
        let failure = failure.expect_err(&format!(
            "byte {at} of {length} was changed, and the cell opened"
        ));
        assert!(
            !failure.is_disconnect() && !failure.message.contains(MARKER),
            "{failure}"
        );
        assert!(
            scene
                .bystander
                .execute("SELECT c FROM t WHERE id = ?", (1,))
                .is_err(),
            "byte {at}, prepared"
        );
    }
    announce(&format!(
        "{}: {length} changed bytes, {refused_by_the_server} refused by the CHECK constraint",
        kind.name()
    ));
    for (name, text) in [
        ("cut by one byte", original[..original.len() - 2].to_owned()),
        ("longer by one byte", format!("{original}00")),
        ("only the header", original[..8].to_owned()),
        ("empty", String::new()),
        ("zeros", "00".repeat(length)),
        ("of another column", cell(&mut admin, "v", "t", 1)),
        ("of another table", cell(&mut admin, "c", "other", 1)),
    ] {
        if admin
            .run(&format!(
                "UPDATE app.t SET `c$enc` = X'{text}' WHERE id = 1"
            ))
            .is_ok()
        {
            let answer = scene.bystander.text("SELECT c FROM t WHERE id = 1");
            assert!(answer.is_err(), "a cell {name} opened as {answer:?}");
            let all = scene.bystander.text("SELECT * FROM t ORDER BY id");
            assert!(
                all.is_err_and(|failure| !failure.is_disconnect()),
                "a cell {name}"
            );
        }
    }
    // Other rows and other columns of the same row are as they were, and the row can be replaced.
    assert_eq!(
        scene
            .bystander
            .text("SELECT k, v FROM t WHERE id = 1")
            .unwrap(),
        format!("10\t{MARKER} v1")
    );
    scene.others_still_work("tampered ciphertext");
    scene.bystander.must("DELETE FROM t WHERE id = 1");
    scene
        .bystander
        .must("INSERT INTO t VALUES (1, 10, 'repaired', 'again')");
    assert_eq!(
        scene
            .bystander
            .text("SELECT c FROM t WHERE id = 1")
            .unwrap(),
        "repaired"
    );
}

fn tampered_metadata_is_noticed(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let mut admin = scene.server.connect();
    let comment = |admin: &mut Session, table: &str, column: &str| {
        admin
            .text(&format!(
                "SELECT column_comment FROM information_schema.columns
                 WHERE table_schema = 'app' AND table_name = '{table}' AND column_name = '{column}$enc'"
            ))
            .unwrap()
    };
    let original = comment(&mut admin, "t", "c");
    assert!(
        original.starts_with("onionskin"),
        "the comment holds the metadata: {original}"
    );
    let mut flipped = original.clone().into_bytes();
    let middle = flipped.len() / 2;
    flipped[middle] = if flipped[middle] == b'A' { b'B' } else { b'A' };
    let cases = [
        ("changed", String::from_utf8(flipped).unwrap()),
        ("cut", original[..original.len() - 3].to_owned()),
        ("of another column", comment(&mut admin, "t", "v")),
        ("of another table", comment(&mut admin, "other", "c")),
        ("noise", "onionskin \u{1}\u{2} {\"a\":".to_owned()),
        ("only the name", "onionskin".to_owned()),
        ("removed", String::new()),
    ];
    let set_comment = |admin: &mut Session, comment: &str| {
        // The definition as it is, with another comment.
        let shown = admin.must("SHOW CREATE TABLE app.t").sets[0].rows[0][1].clone();
        let shown: String = ::mysql::from_value(shown);
        let line = shown
            .lines()
            .find(|line| line.trim_start().starts_with("`c$enc`"))
            .expect("the column's line");
        let definition = line.trim().trim_end_matches(',');
        let definition = definition
            .split(" COMMENT '")
            .next()
            .expect("the definition without its comment");
        let quoted = comment.replace('\\', "\\\\").replace('\'', "''");
        admin.must(&format!(
            "ALTER TABLE app.t MODIFY {definition} COMMENT '{quoted}'"
        ));
    };
    for (name, changed) in &cases {
        set_comment(&mut admin, changed);
        // An old session with plans in its cache, and a new one.
        for session in [&mut scene.bystander, &mut scene.proxy.connect_to("app")] {
            let write = format!(
                "INSERT INTO t (id, k, c, v) VALUES (70, 70, '{MARKER} comment {name}', 'x')"
            );
            match session.run(&write) {
                Err(failure) => assert!(
                    !failure.is_disconnect() && !failure.message.contains(MARKER),
                    "{failure}"
                ),
                // A proxy that has not noticed yet still writes ciphertext, by the definition that
                // it knows.
                Ok(_) => {
                    // it may notice in this moment
                    admin.must("DELETE FROM app.t WHERE id = 70");
                }
            }
        }
        let mut fresh = scene.proxy.connect_to("app");
        let answer = fresh.text("SELECT c FROM t WHERE id = 2");
        let harmless = answer
            .as_ref()
            .is_ok_and(|text| *text == format!("{MARKER} c2"));
        assert!(answer.is_err() || harmless, "a comment {name}: {answer:?}");
        scene.proxy.assert_healthy();
    }
    // A proxy that never saw the good one refuses, or finds nothing to call `c`.
    let options = ProxyOptions {
        tables: PROTECT.into(),
        keys: Some(scene.proxy.keys()),
        ..ProxyOptions::default()
    };
    let newcomer = Proxy::start_with(&scene.server, options);
    for (name, changed) in &cases {
        set_comment(&mut admin, changed);
        let mut session = newcomer.connect_to("app");
        let answer = session.text("SELECT c FROM t WHERE id = 2");
        assert!(
            answer.is_err(),
            "a comment {name}, and a new proxy: {answer:?}"
        );
        let write =
            format!("INSERT INTO t (id, k, c, v) VALUES (71, 71, '{MARKER} new {name}', 'x')");
        assert!(
            session.run(&write).is_err(),
            "a comment {name}: a new proxy writes"
        );
        assert_eq!(
            session.text("SELECT plain FROM open").unwrap(),
            "plain",
            "other tables work"
        );
    }
    set_comment(&mut admin, &original);
    assert_eq!(
        newcomer
            .connect_to("app")
            .text("SELECT c FROM t WHERE id = 2")
            .unwrap(),
        format!("{MARKER} c2")
    );
    scene.others_still_work("tampered comments");
    assert!(!scene.stores_plaintext());
}

fn wrong_keys_open_nothing(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    if direct_mode() {
        return;
    }
    // A proxy with keys of its own.
    let mut stranger = Proxy::start(&scene.server, PROTECT);
    let mut session = stranger.connect_to("app");
    for statement in [
        "SELECT c FROM t WHERE id = 1".to_owned(),
        "SELECT * FROM t".into(),
        "SELECT id FROM t WHERE k = 10".into(),
        format!("INSERT INTO t (id, k, c, v) VALUES (80, 80, '{MARKER} stranger', 'x')"),
        format!("UPDATE t SET c = '{MARKER} stranger' WHERE id = 1"),
    ] {
        let failure = session.run(&statement).expect_err(&statement);
        assert!(
            !failure.is_disconnect() && !failure.message.contains(MARKER),
            "{statement}: {failure}"
        );
    }
    assert_eq!(
        session.text("SELECT plain FROM open").unwrap(),
        "plain",
        "other tables work"
    );
    stranger.assert_healthy();
    assert_eq!(scene.bystander.text("SELECT COUNT(*) FROM t").unwrap(), "2");
    drop(session);

    // Key files that are no key files: `serve` says so and ends.
    let good = std::fs::read(stranger.keys()).expect("keys.json");
    stranger.terminate();
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    for (name, bytes) in [
        ("cut", &good[..good.len() / 2]),
        ("empty", &[]),
        ("noise", &noise(500, 1)),
        ("changed", &flipped),
    ] {
        std::fs::write(stranger.keys(), bytes).expect("keys.json");
        let listen = format!("127.0.0.1:{}", free_port());
        let (succeeded, text) =
            stranger.command(&["serve", "-c", "onionskin.toml", "--listen", &listen]);
        assert!(!succeeded, "a key file that is {name}: {text}");
        assert!(
            !text.contains("panicked") && text.contains("key"),
            "a key file that is {name}: {text}"
        );
    }
    scene.others_still_work("wrong keys");
    assert!(!scene.stores_plaintext());
}
