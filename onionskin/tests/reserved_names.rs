//! Names that are one to a server, and look like two: what `[protect]` names and what belongs to a
//! protected column is known by any spelling that the server takes for it.

use onionskin_testkit::*;

on_both_servers!(
    physical_names_in_other_letters,
    columns_of_the_policy_in_other_letters,
    tables_named_by_words_that_need_quotes,
);

fn start(kind: Kind, settings: &str) -> Option<Pair> {
    let options = PairOptions {
        settings,
        server: ServerOptions {
            general_log: true,
            ..ServerOptions::default()
        },
        ..PairOptions::default()
    };
    Pair::start_with(kind, options)
}

/// The spellings of a name by which some server finds it.
fn spellings(name: &str) -> Vec<String> {
    let mut all = vec![name.to_owned(), name.to_uppercase()];
    for (letter, other) in [
        ('i', "İ"),
        ('k', "\u{212a}"),
        ('s', "ſ"),
        ('e', "é"),
        ('o', "Ö"),
    ] {
        all.push(name.replacen(letter, other, 1));
        all.push(
            name.to_uppercase()
                .replacen(letter.to_ascii_uppercase(), other, 1),
        );
    }
    if let Some((front, end)) = name.split_once('$') {
        all.push(format!("{front}${}", end.to_uppercase()));
        all.push(format!("{}${end}", front.to_uppercase()));
    }
    all.sort();
    all.dedup();
    all
}

/// No definition of a client's is about a physical column, an index or a guard of one.
fn physical_names_in_other_letters(kind: Kind) {
    let settings = "[protect.\"app.*\"]\n\"skill\" = [\"eq\", \"range\"]\n\"email\" = [\"eq\"]\n";
    let Some(mut pair) = start(kind, settings) else {
        return;
    };
    let mut session = pair.proxy.connect_to("app");
    session.must(
        "CREATE TABLE users (id INT PRIMARY KEY, skill VARCHAR(20), email VARCHAR(40), note VARCHAR(9))",
    );
    session.must("INSERT INTO users VALUES (1, 'good', 'a@b', 'x')");
    let mut admin = pair.behind.connect();
    let mut physical = |what: &str| {
        let names = admin.text(what).expect("names");
        names.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let columns = physical(
        "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_NAME = 'users' AND COLUMN_NAME LIKE '%$%'",
    );
    let guards = physical(
        "SELECT CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS \
         WHERE TABLE_NAME = 'users' AND CONSTRAINT_NAME LIKE '%onionskin%'",
    );
    assert!(
        columns.len() >= 4 && !guards.is_empty(),
        "{columns:?} {guards:?}"
    );
    let before = physical("SHOW CREATE TABLE app.users");
    let forms = [
        "ALTER TABLE users ALTER COLUMN {c} SET DEFAULT '{v}'",
        "ALTER TABLE users RENAME COLUMN {c} TO zz",
        "ALTER TABLE users CHANGE {c} zz VARCHAR(60)",
        "ALTER TABLE users MODIFY {c} VARBINARY(999)",
        "ALTER TABLE users DROP COLUMN {c}",
        "ALTER TABLE users DROP {c}",
        "ALTER TABLE users ADD UNIQUE ({c})",
        "ALTER TABLE users ADD x INT AS (LENGTH({c}))",
        "ALTER TABLE users ADD CONSTRAINT cc CHECK ({c} <> '{v}')",
        "ALTER TABLE users ADD COLUMN {c} INT",
        "ALTER TABLE users ALTER COLUMN {c} SET INVISIBLE",
        "CREATE INDEX zi ON users ({c})",
    ];
    for name in columns.iter().flat_map(|name| spellings(name)) {
        for form in forms {
            let sql = form
                .replace("{c}", &format!("`{name}`"))
                .replace("{v}", SECRET);
            let refused = session.run(&sql).expect_err(&sql);
            assert!(refused.message.contains("OS1"), "{sql}: {refused}");
        }
    }
    let forms = [
        "ALTER TABLE users DROP CONSTRAINT {c}",
        "ALTER TABLE users DROP CHECK {c}",
        "ALTER TABLE users ALTER CHECK {c} NOT ENFORCED",
        "ALTER TABLE users ADD CONSTRAINT {c} CHECK (id > 0)",
        "ALTER TABLE users DROP INDEX {c}",
        "DROP INDEX {c} ON users",
    ];
    for name in guards.iter().flat_map(|name| spellings(name)) {
        for form in forms {
            for name in [name.clone(), format!("{name} ")] {
                let sql = form.replace("{c}", &format!("`{name}`"));
                let refused = session.run(&sql).expect_err(&sql);
                assert!(refused.message.contains("OS1"), "{sql}: {refused}");
            }
        }
    }
    assert_eq!(physical("SHOW CREATE TABLE app.users"), before);
    assert_eq!(
        session.text("SELECT skill, email FROM users").unwrap(),
        "good\ta@b"
    );
    pair.nothing_leaked();
}

/// A column that the policy names is protected, or its definition is refused.
fn columns_of_the_policy_in_other_letters(kind: Kind) {
    let settings = "[protect.\"app.*\"]\nenforce = true\n\"email\" = [\"eq\"]\n\"skill\" = [\"eq\"]\n\"οδος\" = [\"eq\"]\n";
    let Some(mut pair) = start(kind, settings) else {
        return;
    };
    let mut session = pair.proxy.connect_to("app");
    let names = [
        ("emaİl", "email"),
        ("EMAİL", "email"),
        ("s\u{212a}ill", "skill"),
        ("ΟΔΟΣ", "οδος"),
        ("οδοσ", "οδος"),
        ("Οδος", "ΟΔΟΣ"),
    ];
    for (n, (written, meant)) in names.iter().enumerate() {
        let table = format!("t{n}");
        for definition in [
            format!("CREATE TABLE {table} (id INT PRIMARY KEY, `{written}` VARCHAR(60))"),
            format!(
                "CREATE TABLE {table} (id INT PRIMARY KEY, `{written}` VARCHAR(60), email VARCHAR(60))"
            ),
            format!("ALTER TABLE {table} ADD COLUMN `{written}` VARCHAR(60)"),
        ] {
            let _ = session.run(&definition);
            for name in [written, meant] {
                for sql in [
                    format!("INSERT INTO {table} (id, `{name}`) VALUES (1, '{SECRET}')"),
                    format!("UPDATE {table} SET `{name}` = '{SECRET}'"),
                    format!("SELECT id FROM {table} WHERE `{name}` = '{SECRET}'"),
                    format!("SELECT id FROM {table} WHERE {table}.`{name}` IN ('{SECRET}', 'b')"),
                ] {
                    let _ = session.run(&sql);
                }
            }
            let _ = session.run(&format!("DROP TABLE IF EXISTS {table}"));
        }
    }
    pair.nothing_leaked();
}

/// A server takes no such name without quotes, but it has the statement in its log.
fn tables_named_by_words_that_need_quotes(kind: Kind) {
    let settings = "[protect.\"app.*\"]\n\"skill\" = [\"eq\"]\n";
    let Some(mut pair) = start(kind, settings) else {
        return;
    };
    let mut session = pair.proxy.connect_to("app");
    let names = [
        "group",
        "values",
        "select",
        "from",
        "null",
        "true",
        "if",
        "left",
        "all",
        "table",
        "into",
        "procedure",
        "5",
        "1e5",
    ];
    for name in names {
        session.must(&format!(
            "CREATE TABLE `{name}` (id INT PRIMARY KEY, skill VARCHAR(20))"
        ));
    }
    for name in names {
        for sql in [
            format!("INSERT INTO {name} VALUES (2, 'Zq9secret')"),
            format!("INSERT {name} VALUES (2, 'Zq9secret')"),
            format!("REPLACE INTO {name} (id, skill) VALUES (2, 'Zq9secret')"),
            format!("DELETE FROM {name} WHERE skill = 'Zq9secret'"),
            format!("UPDATE {name} SET skill = 'Zq9secret'"),
            format!("SELECT {name}.id from{name} WHERE {name}.skill = 'Zq9secret'"),
            format!("SELECT id FROM {name} WHERE skill = 'Zq9secret'"),
        ] {
            let _ = session.run(&sql);
            let _ = session.execute(&sql, ());
            // the first statement of a session and of a proxy that knows nothing yet
            let _ = pair.proxy.connect_to("app").run(&sql);
        }
    }
    pair.assert_no_trace_of(&["Zq9secret"]);
}
