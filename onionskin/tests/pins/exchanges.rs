//! A pinned table that somebody exchanges for another one.

use super::*;

pub fn pinned_tables_cannot_be_exchanged(kind: Kind) {
    let Some(mut place) = Place::start(kind, "", "") else {
        return;
    };
    place.app.must("CREATE TABLE cu (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40), email VARCHAR(60) ENCRYPTED FOR (eq))");
    // of a time when the name was in the clear
    let early = place.shown("cu");
    place.app.must("ALTER TABLE cu DROP COLUMN name");
    place
        .app
        .must("ALTER TABLE cu ADD COLUMN name VARCHAR(40) ENCRYPTED FOR (eq)");
    let right = place.shown("cu");
    place
        .app
        .must(&CUSTOMERS.replace("TABLE cu", "TABLE other"));
    place
        .app
        .must("CREATE VIEW seen AS SELECT id, name FROM other");
    place.begin_to_pin();
    place.lives("pinned");
    place.app.must("INSERT INTO seen (name) VALUES ('Bob')");
    let pins = std::fs::read_to_string(place.proxy.folder().join("pins")).unwrap();
    assert!(
        pins.contains("table|app|cu|") && pins.contains("table|app|seen|"),
        "{pins}"
    );

    place.admin.must("RENAME TABLE cu TO aside");
    let said = place.writes_are_refused("cu", "OS1109", "no table");
    assert!(
        said.contains("no such table") && said.contains("onionskin pin --accept"),
        "{said}"
    );
    place.admin.must(PLAIN);
    let said = place.writes_are_refused("cu", "OS1109", "made anew in plaintext");
    assert!(said.contains("plaintext"), "{said}");
    place.admin.must("DROP TABLE cu");
    place.admin.must("RENAME TABLE other TO cu");
    let said = place.writes_are_refused("cu", "OS1109", "another protected table");
    assert!(said.contains("another table"), "{said}");
    place.admin.must("RENAME TABLE cu TO other");
    let constraints: Vec<String> = drop_checks(&early);
    place.admin.must("DROP TABLE aside");
    place.admin.must(&early);
    assert!(!constraints.is_empty(), "{early}");
    let said = place.writes_are_refused("cu", "OS1109", "made from an old definition");
    assert!(said.contains("older one"), "{said}");
    place.admin.must("DROP TABLE cu");
    // the same definition is the same table
    place.admin.must(&right);
    place.lives("made from its own definition");
    // a view that was pinned
    place
        .admin
        .must("CREATE TABLE behind (id INT PRIMARY KEY, name VARCHAR(40))");
    place.admin.must("DROP VIEW seen");
    place
        .admin
        .must("CREATE VIEW seen AS SELECT id, name FROM behind");
    place.writes_are_refused("seen", "OS1109", "a view in plaintext");

    // through the proxy: in plaintext never, protected with a word about the pins
    place.app.must("DROP TABLE cu");
    let failure = place.app.run(PLAIN).expect_err("a plaintext table");
    assert!(failure.message.starts_with("OS1109"), "{failure}");
    place.app.must(CUSTOMERS);
    place.writes_are_refused("cu", "OS1109", "made anew through the proxy");
    let (succeeded, said) = place.pin(&[]);
    assert!(
        !succeeded && said.contains("app.cu is another table"),
        "{said}"
    );
    assert!(
        said.contains("app.seen") && said.contains("--accept"),
        "{said}"
    );
    place.writes_are_refused("cu", "OS1109", "not accepted");
    place.must_pin(&["--accept"]);
    place.lives("accepted, without a new start");

    // a file that somebody has changed
    let file = place.proxy.folder().join("pins");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("|eq|", "|range|")).unwrap();
    place.lives("the pins that were read before stay in force");
    assert!(
        place.proxy.log().contains("pins: it was changed"),
        "{}",
        place.proxy.log()
    );
    place.admin.must("RENAME TABLE cu TO aside");
    place.writes_are_refused("cu", "OS1109", "with a changed file of pins");
    place.proxy.terminate();
    let (succeeded, said) = place.proxy.command(&["serve", "-c", "onionskin.toml"]);
    assert!(!succeeded && said.contains("it was changed"), "{said}");
    std::fs::write(&file, text).unwrap();
    place.proxy.restart();
    place.nothing_leaked();
}

/// The names of our CHECK constraints in a definition.
fn drop_checks(shown: &str) -> Vec<String> {
    let lines = shown
        .lines()
        .filter(|line| line.contains("CONSTRAINT `onionskin_"));
    lines
        .filter_map(|line| line.split('`').nth(1))
        .map(str::to_owned)
        .collect()
}

/// Whoever administers the server puts another authentic table in the place of the pinned one, and
/// waits for the next rotation.
pub fn an_exchanged_table_is_not_migrated(kind: Kind) {
    let Some(mut place) = Place::start(kind, "", "") else {
        return;
    };
    place.app.must(CUSTOMERS);
    let searchable = CUSTOMERS.replace("TABLE cu", "TABLE other");
    place.app.must(&searchable.replace(
        "name VARCHAR(40) ENCRYPTED FOR (eq)",
        "name VARCHAR(40) ENCRYPTED FOR (eq, range)",
    ));
    place.begin_to_pin();
    let pinned = place.pins();

    let exchange = "RENAME TABLE cu TO hidden, other TO cu";
    let put_back = "RENAME TABLE cu TO other, hidden TO cu";
    place.admin.must(exchange);
    for arguments in [
        &["--rotate"][..],
        &["--rebuild"],
        &["--add", "email: range"],
        &["--decrypt", "name"],
        &["--rotate", "--dry-run"],
    ] {
        let text = place.must_not_migrate(arguments);
        assert!(
            text.contains("OS1109") && text.contains("another table"),
            "{arguments:?}: {text}"
        );
        assert!(place.pins() == pinned, "{arguments:?}: pinned anew");
    }
    let left =
        "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME LIKE 'cu%onionskin%'";
    assert_eq!(place.admin.text(left).unwrap(), "0");
    place.admin.must(put_back);
    place.must_migrate(&["--rotate", "--drop-old"]);
    place.lives("the pinned table was rotated");
    let pinned = place.pins();

    // While a migration is on its way.
    place.must_migrate(&["--rotate", "--cut-over", "postpone"]);
    place.admin.must(exchange);
    place.must_not_migrate(&["--resume"]);
    assert!(place.pins() == pinned, "pinned anew by --resume");
    place.admin.must(put_back);
    // The renaming stands in the binary log.
    place.must_migrate(&["--abort"]);
    place.must_migrate(&["--rotate", "--cut-over", "postpone"]);
    place.must_migrate(&["--resume", "--drop-old"]);
    place.lives("a rotation went on");
    let pinned = place.pins();

    // An earlier migration that was given up is put back as one that was switched: authentic, and
    // the server learns more.
    place.must_migrate(&["--add", "name: range", "--cut-over", "postpone"]);
    for sql in [
        "CREATE TABLE kept_state SELECT * FROM cu_onionskin",
        "RENAME TABLE cu_onionskin_new TO kept",
    ] {
        place.admin.must(sql);
    }
    place.must_migrate(&["--abort"]);
    place.must_migrate(&["--rotate", "--cut-over", "postpone"]);
    for sql in [
        "DROP TABLE cu_onionskin_new",
        "UPDATE cu_onionskin p, kept_state k SET p.state = k.state, p.tag = k.tag WHERE p.id = 1 AND k.id = 1",
        "RENAME TABLE cu TO cu_onionskin_old, kept TO cu",
    ] {
        place.admin.must(sql);
    }
    let text = place.must_migrate(&["--resume"]);
    assert!(text.contains("is not pinned as it is now"), "{text}");
    assert!(place.pins() == pinned, "a capability was pinned");
    place.writes_are_refused("cu", "OS1109", "after the attack");
    place.admin.must("DROP TABLE cu");
    place.admin.must("RENAME TABLE cu_onionskin_old TO cu");
    place.lives("the pinned table is back");
    place.nothing_leaked();
}
