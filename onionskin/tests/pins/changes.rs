//! What an operator wants goes on under pins: definitions, migrations, tables of earlier versions.

use super::*;

pub fn definitions_go_on(kind: Kind) {
    let Some(mut place) = Place::start(kind, "enforce = true\n", ENFORCED) else {
        return;
    };
    place.app.must(CUSTOMERS);
    place
        .app
        .must("INSERT INTO cu (name, email, city) VALUES ('Alice', 'a@example.com', 'Bern')");
    place.begin_to_pin();
    let options = ProxyOptions {
        settings: "enforce = true\n".into(),
        tables: ENFORCED.into(),
        keys: Some(place.proxy.keys()),
        environment: vec![("ONIONSKIN_TEST_RECHECK".into(), RECHECK.into())],
        ..ProxyOptions::default()
    };
    let second = Proxy::start_with(&place.server, options);
    let mut beside = second.connect_to("app");
    // more protection needs no new pins
    for sql in [
        "ALTER TABLE cu ADD COLUMN phone VARCHAR(20) ENCRYPTED FOR (eq) AFTER name",
        "ALTER TABLE cu ALTER COLUMN phone SET DEFAULT '117', ADD COLUMN zip VARCHAR(10)",
        "ALTER TABLE cu RENAME COLUMN phone TO mobile, ADD COLUMN note TEXT ENCRYPTED FOR ()",
        "ALTER TABLE cu DROP COLUMN mobile",
        "ALTER TABLE cu ADD INDEX (city), COMMENT 'plain'",
        "ALTER TABLE cu DROP COLUMN note, ADD COLUMN fax VARCHAR(20) ENCRYPTED FOR (range)",
    ] {
        place.app.must(sql);
        place.lives(sql);
        assert_eq!(
            beside.text("SELECT name FROM cu WHERE id = 1").unwrap(),
            "Alice",
            "{sql}"
        );
    }
    let generation = |comment: &str| comment.split('|').nth(19).map(str::to_owned);
    let (name, fax) = (place.comment("cu", "name"), place.comment("cu", "fax"));
    assert_eq!(generation(&name).as_deref(), Some("6"), "{name}");
    assert_eq!(generation(&name), generation(&fax), "{name} {fax}");

    // changes that overlap, through two proxies: each takes its turn
    std::thread::scope(|scope| {
        for (number, proxy) in [(0, &place.proxy), (1, &second), (2, &place.proxy)] {
            scope.spawn(move || {
                let mut session = proxy.connect_to("app");
                for n in 0..3 {
                    let sql = format!(
                        "ALTER TABLE cu ADD COLUMN c{number}{n} VARCHAR(9) ENCRYPTED FOR ()"
                    );
                    session.must(&sql);
                }
            });
        }
    });
    place.lives("changes that overlap");
    let columns = place.app.text("SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'app' AND table_name = 'cu' AND column_name LIKE 'c__'");
    assert_eq!(columns.unwrap(), "9");

    // a change of what was pinned is allowed, and then wanted in the pins
    place
        .app
        .must("ALTER TABLE cu RENAME COLUMN fax TO telefax");
    place.lives("a column that was not pinned");
    place.must_pin(&[]);
    place
        .app
        .must("ALTER TABLE cu RENAME COLUMN telefax TO fax");
    let said = place.writes_are_refused("cu", "OS1109", "a pinned column was renamed");
    assert!(
        said.contains("telefax") && said.contains("onionskin pin --accept"),
        "{said}"
    );
    place.must_pin(&["--accept"]);
    place.lives("pinned anew");
    place.app.must("RENAME TABLE cu TO customer");
    place.writes_are_refused("cu", "OS1109", "renamed through the proxy");
    place.admin.must("RENAME TABLE customer TO cu");
    place.lives("named back");
    drop(second);
    place.nothing_leaked();
}

pub fn migrations_go_on(kind: Kind) {
    let Some(mut place) = Place::start(kind, "", "") else {
        return;
    };
    place.admin.must(PLAIN);
    place
        .app
        .must("INSERT INTO cu (name, email) VALUES ('Alice', 'a@example.com')");
    place.begin_to_pin();
    let renew = |place: &Place, arguments: &[&str]| {
        let mut all = vec!["app.cu", "--drop-old"];
        all.extend(arguments);
        must_migrate(&place.server, Some(&place.proxy), &all)
    };
    renew(&place, &["--encrypt", "name: eq; email: eq"]);
    place.lives("encrypted");
    for arguments in [
        &["--add", "name: range"][..],
        &["--rotate"],
        &["--drop", "name: range"],
        &["--rebuild"],
    ] {
        let before = place.comment("cu", "name");
        renew(&place, arguments);
        assert_ne!(before, place.comment("cu", "name"), "{arguments:?}");
        // not pinned at first: the file was empty for this table
        if arguments[0] == "--add" {
            place.must_pin(&["--accept"]);
        }
        place.lives(&format!("{arguments:?}"));
        assert_eq!(
            place.app.text("SELECT name FROM cu WHERE id = 1").unwrap(),
            "Alice"
        );
    }
    renew(&place, &["--decrypt", "email"]);
    place.lives("a column was decrypted");
    assert_eq!(
        place.app.text("SELECT email FROM cu WHERE id = 1").unwrap(),
        "a@example.com"
    );
    place.take_out("cu", "name");
    let sql = format!("INSERT INTO cu (name) VALUES ('{ZANZIBAR}')");
    std::thread::sleep(A_WHILE);
    let failure = place
        .app
        .run(&sql)
        .expect_err("all of the table is plaintext now");
    assert!(failure.message.starts_with("OS1109"), "{failure}");
    place.nothing_leaked();
}

pub fn what_was_consented_to_is_pinned_after_a_resume(kind: Kind) {
    let Some(mut place) = Place::start(kind, "", "") else {
        return;
    };
    place.app.must(CUSTOMERS);
    place.begin_to_pin();
    place.must_migrate(&["--decrypt", "email", "--cut-over", "postpone"]);
    let text = place.must_migrate(&["--resume", "--decrypt", "email", "--drop-old"]);
    assert!(!text.contains("is not pinned"), "{text}");
    place.lives("email is plaintext");
    place.must_migrate(&["--add", "name: range", "--cut-over", "postpone"]);
    let text = place.must_migrate(&["--resume", "--add", "name: range", "--drop-old"]);
    assert!(!text.contains("is not pinned"), "{text}");
    place.lives("name has a range");
    place.nothing_leaked();
}

pub fn tables_of_earlier_versions_go_on(kind: Kind) {
    let Some(mut place) = Place::start(kind, "enforce = true\n", ENFORCED) else {
        return;
    };
    place.app.must(CUSTOMERS);
    // the comments as earlier versions wrote them: docs/formats.md
    let keys =
        KeySet::load("file:keys.json", place.proxy.folder(), None).expect("the proxy's keys");
    let mut old = Vec::new();
    for column in ["name", "email"] {
        let comment = place.comment("cu", column);
        let fields: Vec<&str> = comment.split('|').collect();
        assert_eq!(fields.len(), 21, "{comment}");
        let body = fields[2..19].join("|");
        let tagged = format!("onionskin:1|{column}$enc\0{body}");
        let tag = keys.metadata_key().tag(tagged.as_bytes());
        let tag: String = tag.iter().map(|byte| format!("{byte:02x}")).collect();
        let comment = format!("onionskin:1|{tag}|{body}");
        place.put_comment("cu", column, &comment);
        old.push(comment);
    }
    place.lives("a table of an earlier version");
    place.begin_to_pin();
    place.lives("pinned");
    // any change of a protected column gives it the mark
    place
        .app
        .must("ALTER TABLE cu ALTER COLUMN name SET DEFAULT 'nobody'");
    for column in ["name", "email"] {
        let comment = place.comment("cu", column);
        assert!(comment.starts_with("onionskin:2|"), "{comment}");
    }
    place.lives("with the mark");
    place.put_comment("cu", "email", &old[1]);
    place.writes_are_refused("cu", "OS1101", "an old comment beside a new one");
    // all of them are what an earlier version wrote: the pins know that there was a mark
    place.put_comment("cu", "name", &old[0]);
    place.lives("the pins are older than the mark");
    let newer = "ALTER TABLE cu ALTER COLUMN name SET DEFAULT 'x'";
    place.app.must(newer);
    place.must_pin(&[]);
    place.put_comment("cu", "name", &old[0]);
    place.put_comment("cu", "email", &old[1]);
    let said = place.writes_are_refused("cu", "OS1109", "all old comments");
    assert!(said.contains("older one"), "{said}");
    place.nothing_leaked();
}
