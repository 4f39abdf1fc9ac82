//! The statements whose round trips are counted.
//!
//! A `#` is the number of the run, so that no two runs have the same values; `{db}` is the
//! database. Each statement has a database of its own, so that the first run meets tables that the
//! proxy has not seen yet.

use onionskin_testkit::Kind;

/// A table that statements name.
pub struct Table {
    pub name: &'static str,
    pub definition: &'static str,
    /// Each of its rows; empty if it has none.
    pub row: &'static str,
}

/// What the databases have, if their statements name it.
pub const TABLES: [Table; 5] = [
    Table {
        name: "t",
        definition: "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, \
                     k INT NOT NULL DEFAULT 0 ENCRYPTED FOR (eq, range), \
                     name VARCHAR(40) ENCRYPTED FOR (eq, join:names), \
                     note VARCHAR(100) ENCRYPTED FOR (), plain INT, KEY (k))",
        row: "(#, #, 'name #', 'note #', #)",
    },
    Table {
        name: "u",
        definition: "CREATE TABLE u (id INT PRIMARY KEY, t_id INT, \
                     name VARCHAR(40) ENCRYPTED FOR (eq, join:names), \
                     note VARCHAR(100) ENCRYPTED FOR (), UNIQUE KEY (name))",
        row: "(#, #, 'name #', 'note #')",
    },
    Table {
        name: "w",
        definition: "CREATE TABLE w (id INT PRIMARY KEY, \
                     words VARCHAR(100) ENCRYPTED FOR (like))",
        row: "(#, 'words #')",
    },
    Table {
        name: "m",
        definition: "CREATE TABLE m (id INT PRIMARY KEY, \
                     made DATETIME DEFAULT CURRENT_TIMESTAMP ENCRYPTED FOR ())",
        row: "(#, '2026-01-01 00:00:00')",
    },
    Table {
        name: "p",
        definition: "CREATE TABLE p (id INT PRIMARY KEY, x INT)",
        row: "(#, #)",
    },
];

/// Rows in each table.
pub const ROWS: usize = 30;

/// A kind of statement.
#[derive(Clone, Copy)]
pub struct Statement {
    name: &'static str,
    /// What is different from another statement of that name.
    but: &'static str,
    pub sql: &'static str,
    /// Literals in the place of its question marks.
    pub values: &'static [&'static str],
    /// Run before it in the same session, and not counted.
    pub before: &'static [&'static str],
    /// Run before it by another client of the proxy.
    pub elsewhere: &'static [&'static str],
    /// Run behind it in the same session.
    pub after: &'static [&'static str],
    /// The client counts rows that are found, not rows that are changed.
    pub found_rows: bool,
    /// What is known of the schema is more than a second old.
    pub waits: bool,
    /// Servers do not prepare it, or each run has another text.
    pub is_text: bool,
    /// The other server does not have it.
    pub only: Option<Kind>,
}

const fn of(name: &'static str, sql: &'static str, values: &'static [&'static str]) -> Statement {
    Statement {
        name,
        but: "",
        sql,
        values,
        before: &[],
        elsewhere: &[],
        after: &[],
        found_rows: false,
        waits: false,
        is_text: false,
        only: None,
    }
}

impl Statement {
    /// What users read.
    pub fn title(&self) -> String {
        format!("{}{}", self.name, self.but)
    }

    /// Whether a table's name stands in it, or in what is run before.
    pub fn names(&self, table: &str) -> bool {
        let texts = [self.sql].into_iter();
        let mut texts = texts.chain(self.before.iter().copied());
        let stands = |text: &str| {
            let mut words = text.split(|c: char| !c.is_alphanumeric());
            words.any(|word| word == table)
        };
        texts.any(stands)
    }

    const fn text(name: &'static str, sql: &'static str) -> Statement {
        Statement {
            is_text: true,
            ..of(name, sql, &[])
        }
    }

    /// In a transaction of the client's, which is rolled back.
    const fn within(self) -> Statement {
        Statement {
            but: ", in a transaction",
            before: &["BEGIN"],
            after: &["ROLLBACK"],
            ..self
        }
    }

    /// The session has just written the row.
    const fn remembered(self, before: &'static [&'static str]) -> Statement {
        Statement {
            but: ", the row is remembered",
            before,
            ..self
        }
    }

    const fn behind(self, before: &'static [&'static str]) -> Statement {
        Statement { before, ..self }
    }

    const fn then(self, after: &'static [&'static str]) -> Statement {
        Statement { after, ..self }
    }

    /// Behind a definition of another client's.
    const fn after(self, elsewhere: &'static [&'static str]) -> Statement {
        Statement { elsewhere, ..self }
    }

    const fn counting_found_rows(self) -> Statement {
        Statement {
            but: ", the client counts found rows",
            found_rows: true,
            ..self
        }
    }

    const fn later(self) -> Statement {
        Statement {
            waits: true,
            ..self
        }
    }

    const fn only(self, kind: Kind) -> Statement {
        Statement {
            only: Some(kind),
            ..self
        }
    }
}

/// A heading and what stands below it.
pub struct Group {
    pub name: &'static str,
    pub statements: &'static [Statement],
}

pub const GROUPS: &[Group] = &[
    Group {
        name: "Queries",
        statements: QUERIES,
    },
    Group {
        name: "Rows that come",
        statements: INSERTS,
    },
    Group {
        name: "Rows that change",
        statements: UPDATES,
    },
    Group {
        name: "Rows that go",
        statements: DELETES,
    },
    Group {
        name: "Definitions, and what follows them",
        statements: DEFINITIONS,
    },
    Group {
        name: "Questions about tables, and sessions",
        statements: SESSIONS,
    },
];

const QUERIES: &[Statement] = &[
    of(
        "SELECT of an unprotected table",
        "SELECT x FROM p WHERE id = ?",
        &["#"],
    ),
    of(
        "SELECT by the key",
        "SELECT name, note FROM t WHERE id = ?",
        &["#"],
    ),
    of(
        "SELECT by an `eq` column",
        "SELECT id, note FROM t WHERE name = ?",
        &["'name #'"],
    ),
    of(
        "SELECT by IN",
        "SELECT id, note FROM t WHERE name IN (?, ?)",
        &["'name #'", "'name 1#'"],
    ),
    of(
        "SELECT by a range",
        "SELECT id, name FROM t WHERE k BETWEEN ? AND ?",
        &["#", "1#"],
    ),
    of(
        "SELECT … ORDER BY a `range` column, LIMIT",
        "SELECT id, k FROM t WHERE id > ? ORDER BY k LIMIT 5",
        &["#"],
    ),
    of(
        "SELECT … GROUP BY an `eq` column",
        "SELECT name, COUNT(*) FROM t WHERE id > ? GROUP BY name",
        &["#"],
    ),
    of(
        "SELECT … ORDER BY a sealed column (tier 2)",
        "SELECT id, note FROM t WHERE id > ? ORDER BY note",
        &["#"],
    ),
    of(
        "SELECT SUM (tier 2)",
        "SELECT SUM(k) FROM t WHERE id > ?",
        &["#"],
    ),
    of(
        "SELECT DISTINCT of a sealed column (tier 2)",
        "SELECT DISTINCT note FROM t WHERE id > ?",
        &["#"],
    ),
    of(
        "SELECT by LIKE without `like` (tier 2)",
        "SELECT id FROM t WHERE note LIKE ?",
        &["'%note #%'"],
    ),
    of(
        "SELECT by LIKE with `like` (tier 2)",
        "SELECT id FROM w WHERE words LIKE ?",
        &["'%words #%'"],
    ),
    of(
        "Join over the key",
        "SELECT t.note, u.note FROM t JOIN u ON u.t_id = t.id WHERE t.id = ?",
        &["#"],
    ),
    of(
        "Join over `join` columns",
        "SELECT t.note, u.note FROM t JOIN u ON u.name = t.name WHERE t.id = ?",
        &["#"],
    ),
    of(
        "IN of a query over `join` columns",
        "SELECT id, note FROM t WHERE name IN (SELECT name FROM u WHERE id = ?)",
        &["#"],
    ),
    of(
        "Function of a protected column (tier 3)",
        "SELECT UPPER(name) FROM t WHERE id = ?",
        &["#"],
    ),
    of(
        "Function of a protected column (tier 3)",
        "SELECT UPPER(name) FROM t WHERE id = ?",
        &["#"],
    )
    .within(),
    of(
        "Expression over two tables (tier 3)",
        "SELECT CONCAT(t.note, u.note) FROM t JOIN u ON u.t_id = t.id WHERE t.id = ?",
        &["#"],
    ),
    of(
        "SELECT by the key",
        "SELECT name, note FROM t WHERE id = ?",
        &["#"],
    )
    .within(),
    of(
        "SELECT … FOR UPDATE by the key",
        "SELECT k, note FROM t WHERE id = ? FOR UPDATE",
        &["#"],
    )
    .within(),
];

const INSERTS: &[Statement] = &[
    of(
        "INSERT of a row",
        "INSERT INTO t (id, k, name, note, plain) VALUES (?, ?, ?, ?, ?)",
        &["10#", "#", "'a'", "'b'", "1"],
    ),
    of(
        "INSERT of three rows",
        "INSERT INTO t (id, k, name) VALUES (?, 1, ?), (?, 2, 'b'), (?, 3, 'c')",
        &["10#", "'a #'", "20#", "30#"],
    ),
    of(
        "INSERT of a row",
        "INSERT INTO t (id, k, name, note, plain) VALUES (?, ?, ?, ?, ?)",
        &["10#", "#", "'a'", "'b'", "1"],
    )
    .within(),
    of(
        "INSERT with AUTO_INCREMENT",
        "INSERT INTO t (k, name, note) VALUES (?, ?, 'x')",
        &["#", "'a #'"],
    ),
    of(
        "INSERT … RETURNING",
        "INSERT INTO t (k, name, note) VALUES (?, ?, 'x') RETURNING id, name",
        &["#", "'a #'"],
    )
    .only(Kind::MariaDb),
    of(
        "INSERT with a default CURRENT_TIMESTAMP of a protected column",
        "INSERT INTO m (id) VALUES (?)",
        &["10#"],
    ),
    of(
        "INSERT with NOW() for a protected column",
        "INSERT INTO m (id, made) VALUES (?, NOW())",
        &["10#"],
    ),
    of(
        "INSERT with an expression (tier 3)",
        "INSERT INTO t (id, k, name) VALUES (?, 1, CONCAT('a', 'b'))",
        &["10#"],
    ),
    of(
        "INSERT IGNORE of a new row",
        "INSERT IGNORE INTO t (id, k, name) VALUES (?, 1, ?)",
        &["10#", "'a #'"],
    ),
    of(
        "INSERT IGNORE of a row that is there",
        "INSERT IGNORE INTO t (id, k, name) VALUES (?, 1, ?)",
        &["#", "'a #'"],
    ),
    of(
        "INSERT … SELECT",
        "INSERT INTO t (id, k, name) SELECT id + ?, k, name FROM t WHERE id = ?",
        &["100", "#"],
    ),
    of(
        "REPLACE of a new row",
        "REPLACE INTO t (id, k, name, note) VALUES (?, 1, ?, 'x')",
        &["10#", "'a #'"],
    ),
    of(
        "REPLACE of a row that is there",
        "REPLACE INTO t (id, k, name, note) VALUES (?, 1, ?, 'x')",
        &["#", "'a #'"],
    ),
    of(
        "REPLACE by a unique `eq` column",
        "REPLACE INTO u (id, t_id, name, note) VALUES (?, 1, ?, 'x')",
        &["#", "'name #'"],
    ),
    of(
        "ON DUPLICATE KEY UPDATE with VALUES(), a new row",
        "INSERT INTO t (id, k, note) VALUES (?, 1, ?) ON DUPLICATE KEY UPDATE note = VALUES(note)",
        &["10#", "'a #'"],
    ),
    of(
        "ON DUPLICATE KEY UPDATE with VALUES(), a row that is there",
        "INSERT INTO t (id, k, note) VALUES (?, 1, ?) ON DUPLICATE KEY UPDATE note = VALUES(note)",
        &["#", "'a #'"],
    ),
    of(
        "ON DUPLICATE KEY UPDATE with VALUES(), a row that is there",
        "INSERT INTO t (id, k, note) VALUES (?, 1, ?) ON DUPLICATE KEY UPDATE note = VALUES(note)",
        &["#", "'a #'"],
    )
    .counting_found_rows(),
    of(
        "ON DUPLICATE KEY UPDATE k = k + 1, a new row (tier 3)",
        "INSERT INTO t (id, k, note) VALUES (?, 1, ?) ON DUPLICATE KEY UPDATE k = k + 1",
        &["10#", "'a #'"],
    ),
    of(
        "ON DUPLICATE KEY UPDATE k = k + 1, a row that is there (tier 3)",
        "INSERT INTO t (id, k, note) VALUES (?, 1, ?) ON DUPLICATE KEY UPDATE k = k + 1",
        &["#", "'a #'"],
    ),
];

const SET_NOTE: &str = "UPDATE t SET note = ? WHERE id = ?";
const SET_NAME: &str = "UPDATE t SET name = ? WHERE id = ?";
const SET_K: &str = "UPDATE t SET k = ? WHERE id = ?";
const COUNT: &str = "UPDATE t SET k = k + ? WHERE id = ?";
const NEW_NOTE: &[&str] = &["'new #'", "#"];

const UPDATES: &[Statement] = &[
    of(
        "UPDATE of an unprotected column by the key",
        "UPDATE t SET plain = ? WHERE id = ?",
        &["5#", "#"],
    ),
    of("UPDATE of a sealed text by the key", SET_NOTE, NEW_NOTE),
    of("UPDATE of a sealed text by the key", SET_NOTE, NEW_NOTE)
        .remembered(&["UPDATE t SET note = 'before' WHERE id = #"]),
    of("UPDATE of a sealed text by the key", SET_NOTE, NEW_NOTE).within(),
    of("UPDATE of a sealed text by the key", SET_NOTE, NEW_NOTE).counting_found_rows(),
    of("UPDATE of an `eq` text by the key", SET_NAME, NEW_NOTE),
    of("UPDATE of an `eq` text by the key", SET_NAME, NEW_NOTE).counting_found_rows(),
    of(
        "UPDATE of an indexed number by the key",
        SET_K,
        &["5#", "#"],
    ),
    of(
        "UPDATE of an indexed number by the key",
        SET_K,
        &["5#", "#"],
    )
    .within(),
    of("UPDATE … SET k = k + 1 by the key", COUNT, &["1", "#"]),
    of("UPDATE … SET k = k + 1 by the key", COUNT, &["1", "#"])
        .remembered(&["UPDATE t SET k = k + 1 WHERE id = #"]),
    of("UPDATE … SET k = k + 1 by the key", COUNT, &["1", "#"]).within(),
    of("UPDATE … SET k = k + 1 by the key", COUNT, &["1", "#"]).counting_found_rows(),
    of(
        "UPDATE of a sealed text of eleven rows",
        "UPDATE t SET note = ? WHERE id BETWEEN ? AND ?",
        &["'new #'", "1#", "2#"],
    ),
    of(
        "UPDATE of a sealed text by an `eq` column",
        "UPDATE t SET note = ? WHERE name = ?",
        &["'new #'", "'name #'"],
    ),
    of(
        "UPDATE of a sealed text by an `eq` column",
        "UPDATE t SET note = ? WHERE name = ?",
        &["'new #'", "'name #'"],
    )
    .within(),
    of(
        "UPDATE of a sealed text by an `eq` column",
        "UPDATE t SET note = ? WHERE name = ?",
        &["'new #'", "'name #'"],
    )
    .counting_found_rows(),
    of(
        "UPDATE … SET k = k + 1 of several rows",
        "UPDATE t SET k = k + 1 WHERE id < ?",
        &["1#"],
    ),
    of(
        "UPDATE … ORDER BY … LIMIT of an indexed number",
        "UPDATE t SET k = ? WHERE id > 3 ORDER BY id LIMIT 2",
        &["5#"],
    ),
    of(
        "UPDATE IGNORE of a sealed text by the key",
        "UPDATE IGNORE t SET note = ? WHERE id = ?",
        NEW_NOTE,
    ),
    of(
        "UPDATE of a protected column to NOW() by the key",
        "UPDATE m SET made = NOW() WHERE id = ?",
        &["#"],
    ),
    of(
        "UPDATE with a function (tier 3)",
        "UPDATE t SET note = CONCAT(note, ?) WHERE id = ?",
        &["'#'", "#"],
    ),
    of(
        "UPDATE with a function (tier 3)",
        "UPDATE t SET note = CONCAT(note, ?) WHERE id = ?",
        &["'#'", "#"],
    )
    .within(),
    of(
        "UPDATE of several tables",
        "UPDATE t JOIN u ON u.t_id = t.id SET t.k = ?, u.note = ? WHERE u.id = ?",
        &["5#", "'new #'", "#"],
    ),
];

const DELETES: &[Statement] = &[
    of("DELETE by the key", "DELETE FROM t WHERE id = ?", &["#"]),
    of(
        "DELETE by an `eq` column",
        "DELETE FROM t WHERE name = ?",
        &["'name #'"],
    ),
    of(
        "DELETE by a range",
        "DELETE FROM t WHERE k BETWEEN ? AND ?",
        &["1#", "1#"],
    ),
    of(
        "DELETE … RETURNING",
        "DELETE FROM t WHERE id = ? RETURNING name",
        &["#"],
    )
    .only(Kind::MariaDb),
    of(
        "DELETE by LIKE without `like` (tier 2)",
        "DELETE FROM t WHERE note LIKE ?",
        &["'note 1#'"],
    ),
    of(
        "DELETE by LIKE without `like` (tier 2)",
        "DELETE FROM t WHERE note LIKE ?",
        &["'note 1#'"],
    )
    .within(),
    of(
        "DELETE by LIKE with `like` (tier 2)",
        "DELETE FROM w WHERE words LIKE ?",
        &["'%words 1#%'"],
    ),
    of(
        "DELETE from several tables",
        "DELETE t, u FROM t JOIN u ON u.t_id = t.id WHERE t.id = ?",
        &["#"],
    ),
    Statement::text("TRUNCATE", "TRUNCATE TABLE t"),
];

const READ: &str = "SELECT name FROM t WHERE id = ?";
const WRITE: &str = "INSERT INTO t (id, k, name) VALUES (?, 1, 'a')";
const SEEN: &str = "SELECT id FROM t WHERE id = 1";
const LATER: &str = "SELECT a second after the last look at the schema";
const ANOTHER: &[&str] = &["ALTER TABLE t ADD COLUMN c# INT"];

const DEFINITIONS: &[Statement] = &[
    Statement::text(
        "CREATE TABLE with protected columns",
        "CREATE TABLE n# (id INT PRIMARY KEY, a INT ENCRYPTED FOR (eq))",
    ),
    Statement::text(
        "CREATE TABLE without",
        "CREATE TABLE n# (id INT PRIMARY KEY, a INT)",
    ),
    Statement::text(
        "ALTER TABLE … ADD a protected column",
        "ALTER TABLE t ADD COLUMN c# INT ENCRYPTED FOR (eq)",
    ),
    Statement::text(
        "ALTER TABLE … ADD an index",
        "ALTER TABLE t ADD INDEX i# (name)",
    ),
    Statement::text("DROP TABLE", "DROP TABLE n#")
        .behind(&["CREATE TABLE n# (id INT PRIMARY KEY, a INT ENCRYPTED FOR (eq))"]),
    of("SELECT after another client's ALTER TABLE", READ, &["#"])
        .behind(&[SEEN])
        .after(ANOTHER),
    of("INSERT after another client's ALTER TABLE", WRITE, &["10#"])
        .behind(&[SEEN])
        .after(ANOTHER),
    of(LATER, READ, &["#"]).behind(&[SEEN]).later(),
    of(LATER, READ, &["#"])
        .within()
        .behind(&["BEGIN", SEEN])
        .later(),
];

const SESSIONS: &[Statement] = &[
    Statement::text("SHOW CREATE TABLE", "SHOW CREATE TABLE t"),
    Statement::text("SHOW COLUMNS", "SHOW COLUMNS FROM t"),
    Statement::text("SHOW TABLES", "SHOW TABLES"),
    of(
        "SELECT of information_schema.columns",
        "SELECT column_name, data_type FROM information_schema.columns \
         WHERE table_schema = '{db}' AND table_name = ?",
        &["'t'"],
    ),
    of("EXPLAIN", "EXPLAIN SELECT note FROM t WHERE id = ?", &["#"]),
    Statement::text("BEGIN", "BEGIN").then(&["ROLLBACK"]),
    Statement::text("COMMIT", "COMMIT")
        .behind(&["BEGIN", "INSERT INTO t (id, k, name) VALUES (10#, 1, 'a')"]),
    Statement::text(
        "SET of a variable of the session",
        "SET SESSION sort_buffer_size = 26214#",
    ),
    Statement::text("SET NAMES", "SET NAMES utf8mb4"),
    Statement::text("SET of a user variable", "SET @a = #"),
    Statement::text("USE", "USE {db}"),
    Statement::text("SHOW WARNINGS", "SHOW WARNINGS"),
    Statement::text("SELECT LAST_INSERT_ID()", "SELECT LAST_INSERT_ID()"),
];
