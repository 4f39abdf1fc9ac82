//! Dumps of a plain server, as each family's own program makes them, are loaded through a proxy
//! that protects every column: what is in them is there afterwards, and answers alike.

use onionskin_testkit::*;

on_both_servers!(a_plain_schema_is_loaded, the_proxys_own_dump_is_loaded,);

/// What an application has: keys over tables, views of views, defaults, comments.
const SCHEMA: [&str; 12] = [
    "CREATE TABLE city (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) NOT NULL, UNIQUE (name)) COMMENT 'it''s'",
    "CREATE TABLE person (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) NOT NULL DEFAULT 'x', born DATE, \
         city INT, note TEXT, blob_ BLOB, KEY (name), CONSTRAINT lives FOREIGN KEY (city) REFERENCES city (id))",
    "CREATE TABLE `odd ``name` (id INT PRIMARY KEY, `a b` VARCHAR(9))",
    "CREATE VIEW a_view AS SELECT name, born FROM person WHERE city IS NOT NULL",
    "CREATE VIEW b_view AS SELECT name FROM a_view",
    "CREATE ALGORITHM=MERGE SQL SECURITY INVOKER VIEW c_view (n) AS SELECT name FROM city",
    "CREATE VIEW `d view` AS SELECT `a b` FROM `odd ``name`",
    "INSERT INTO city (name) VALUES ('Bern'), ('Rome')",
    "INSERT INTO person (name, born, city, note, blob_) VALUES ('Alice', '1990-05-01', 1, 'Hb4YqMz7', x'00c3a927')",
    "INSERT INTO person (name, born, city) VALUES ('bob', NULL, NULL), ('O''Hara', '2000-02-29', 2)",
    "INSERT INTO `odd ``name` VALUES (1, '/*!50001'), (2, '*/;')",
    "INSERT INTO city (id, name) VALUES (9, 'Zürich')",
];

const QUESTIONS: [&str; 8] = [
    "SELECT * FROM city ORDER BY id",
    "SELECT id, name, born, city, note, HEX(blob_) FROM person ORDER BY id",
    "SELECT * FROM `odd ``name` ORDER BY id",
    "SELECT * FROM a_view ORDER BY name",
    "SELECT * FROM b_view ORDER BY name",
    "SELECT n FROM c_view WHERE n = 'rome'",
    "SELECT * FROM `d view` ORDER BY 1",
    "SELECT name FROM person WHERE name = 'ALICE'",
];

fn options() -> PairOptions<'static> {
    PairOptions {
        engine: Engine::Own,
        settings: "enforce = true\n[protect.\"app.*\"]\n\"*\" = [\"eq\", \"range\"]\n",
        ..PairOptions::default()
    }
}

fn dump(kind: Kind, port: u16) -> String {
    let user = kind.users()[0];
    Cli::dump(kind, port, user.name, user.password, &["app"])
}

fn load(kind: Kind, port: u16, dump: &str) {
    let user = kind.users()[0];
    Cli::tcp(kind, port, user.name, user.password)
        .option("app")
        .must(dump);
}

fn a_plain_schema_is_loaded(kind: Kind) {
    let Some(mut pair) = Pair::start_with(kind, options()) else {
        return;
    };
    for sql in SCHEMA {
        pair.plain.must(sql);
    }
    let made = dump(kind, pair.beside().port());
    load(kind, pair.proxy.port(), &made);
    for sql in QUESTIONS {
        pair.same_rows(sql, &[]);
    }
    pair.nothing_leaked();
}

fn the_proxys_own_dump_is_loaded(kind: Kind) {
    let Some(mut pair) = Pair::start_with(kind, options()) else {
        return;
    };
    for sql in SCHEMA {
        pair.same(sql);
    }
    let made = dump(kind, pair.proxy.port());
    for session in pair.sessions() {
        session.must("DROP DATABASE app");
        session.must("CREATE DATABASE app");
        session.must("USE app");
    }
    // onto a plain server, and where it came from
    for port in [pair.beside().port(), pair.proxy.port()] {
        load(kind, port, &made);
    }
    for sql in QUESTIONS {
        pair.same_rows(sql, &[]);
    }
}
