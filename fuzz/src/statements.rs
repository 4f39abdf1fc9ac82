//! Texts of statements: cutting them up, and planning them.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use onionskin_plan::functions::{self, Piece};
use onionskin_plan::lex::{LexError, Lexer, Statements, TokenKind, split};
use onionskin_plan::{
    Action, Catalog, Known, LexMode, Outcome, Request, Settings, Template, UseScratch,
};
use onionskin_schema::{
    Capabilities, Column, GramForm, KeyRole, PhysicalNames, Policy, Protection, Table, Whole,
};
use onionskin_value::{Charset, Family, SqlType};

fn lex_mode(flags: u8) -> LexMode {
    LexMode {
        ansi_quotes: flags & 1 != 0,
        no_backslash_escapes: flags & 2 != 0,
        ignore_space: flags & 4 != 0,
        charset: match flags & 128 {
            0 => Charset::Utf8mb4,
            _ => Charset::from_name("gbk").unwrap_or_default(),
        },
    }
}

/// The first byte holds flags of `sql_mode`. Nothing is left to compute in what is left of a
/// statement whose calls were cut out, and no variable that is kept.
pub fn functions(input: &[u8]) {
    let Some((&flags, sql)) = input.split_first() else {
        return;
    };
    let mode = lex_mode(flags);
    let secrets = ["key".to_owned()];
    let Ok(Some(calls)) = functions::read(sql, mode, &secrets) else {
        return;
    };
    let mut left = Vec::new();
    for piece in &calls.pieces {
        match piece {
            Piece::Sql(sql) => left.extend_from_slice(sql),
            Piece::Computed(_) => left.extend_from_slice(b"'text'"),
            Piece::Parameter(_) => left.push(b'?'),
        }
    }
    // of a SET, NULL is left to be assigned
    let again = functions::read(&left, mode, &secrets);
    let is_done = match &again {
        Ok(None) => true,
        Ok(Some(again)) => !calls.assigned.is_empty() && again.openings.is_empty(),
        Err(_) => false,
    };
    assert!(is_done, "{again:?} is left of {}", left.escape_ascii());
    let behind = |n: &usize| *n < calls.parameters;
    let parameters = calls.pieces.iter().filter_map(|piece| match piece {
        Piece::Parameter(n) => Some(*n),
        _ => None,
    });
    let parameters: Vec<usize> = parameters.collect();
    assert!(parameters.is_sorted() && parameters.iter().all(behind));
}

/// Statements with calls.
pub fn function_seeds() -> Vec<Vec<u8>> {
    let statements = [
        "INSERT INTO t VALUES (1, AES_ENCRYPT('x', 'k'), ?, MD5(?))",
        "SELECT id, AES_DECRYPT(a, @key) AS x, SHA2('y', 256) FROM t WHERE b = ? ORDER BY id",
        "SELECT CAST(AES_DECRYPT(UNHEX(a), 'k', iv) AS CHAR) FROM t LIMIT 5",
        "UPDATE t SET a = AES_ENCRYPT('x', UNHEX(SHA2('k', 512))) WHERE AES_DECRYPT(a, 'k') = 'x'",
        "DELETE FROM t WHERE b = 5 AND AES_DECRYPT(a, ?) IN ('x', 'y') LIMIT 1",
        "SET @key = CONCAT('a', 'b'), @other := 5; SELECT MD5(a) FROM t",
        "SELECT DECODE(a, 'k') x, PASSWORD('p') FROM t GROUP BY a UNION SELECT 1, 2",
        "CREATE TABLE md5 (password INT, KEY encode (password))",
        "SELECT /*! SHA('x'), */ `aes_encrypt` ('x', KEY('k')), t.md5('x') /* sha( */ -- x",
    ];
    let with_flags = |sql: &&str| [0, 1, 2].map(|flags| [&[flags], sql.as_bytes()].concat());
    statements.iter().flat_map(with_flags).collect()
}

/// The first byte holds flags of `sql_mode`, the rest is the text of one or more statements.
pub fn splitter(input: &[u8]) {
    let Some((&flags, sql)) = input.split_first() else {
        return;
    };
    let mode = lex_mode(flags);

    let mut lexer = Lexer::new(sql, mode);
    let mut end = 0;
    let complete = loop {
        match lexer.next_token() {
            Ok(Some(token)) => {
                assert!(
                    end <= token.start && token.start < token.end && token.end <= sql.len(),
                    "tokens advance"
                );
                end = token.end;
            }
            Ok(None) => break true,
            Err(_) => break false,
        }
    };

    let parts = split(sql, mode);
    // The search ends early at a stored program, which is not to be split.
    let ends_early = parts.as_ref().is_ok_and(|cut| cut.compound.is_some());
    assert!(
        parts.is_ok() == complete || ends_early,
        "what has tokens can be split"
    );
    if let Ok(cut) = parts {
        let mut end = 0;
        let before = cut.parts.last().map_or(0, |part| part.end);
        assert!(
            cut.compound
                .is_none_or(|program| before <= program.start && program.end <= sql.len()),
            "a program stands behind them"
        );
        for part in cut.parts {
            assert!(
                end <= part.start && part.start < part.end && part.end <= sql.len(),
                "statements follow each other"
            );
            end = part.end;
            // A statement that was cut out is one statement. (`--` is a comment at the end only.)
            if sql[part.clone()].ends_with(b"--") {
                continue;
            }
            let again = split(&sql[part.clone()], mode);
            let whole =
                |cut: Statements| matches!(cut.parts[..], [ref one] if *one == (0..part.len()));
            assert!(again.is_ok_and(whole), "a statement is split no further");
        }
    }

    let mut template = Template::default();
    let read = template.read(sql, mode);
    assert_eq!(read.is_ok(), complete);
    if read.is_ok() {
        let mut end = 0;
        for literal in &template.literals {
            assert!(
                end <= literal.start && literal.start < literal.end && literal.end <= sql.len()
            );
            end = literal.end;
        }
        if let Some(rows) = &template.rows {
            assert!(
                rows.first.0 < rows.first.1 && rows.first.1 <= rows.end && rows.end <= sql.len()
            );
            assert!(rows.first_literal + rows.per_row * rows.count <= template.literals.len());
        }
    }
}

struct OneTable(Arc<Table>);

impl Catalog for OneTable {
    fn table(&self, database: &str, name: &str) -> Known {
        let is_it = database.eq_ignore_ascii_case("app") && name.eq_ignore_ascii_case("secret");
        if is_it {
            Known::Table(self.0.clone())
        } else {
            Known::Absent
        }
    }
}

/// `app.secret` with a plaintext `id`, a searchable `k`, and a `c` with grams.
static CATALOG: LazyLock<OneTable> = LazyLock::new(|| {
    let column = |name: &str, text: &str, id: u8, protections: Option<Capabilities>| {
        let sql_type = SqlType::parse(text, text.contains("char").then_some("utf8mb4_general_ci"))
            .expect("a type");
        Column {
            name: name.into(),
            sql_type: Some(sql_type),
            type_text: text.into(),
            nullable: id != 1,
            default: None,
            auto_increment: false,
            refers_to_plaintext: false,
            on_update: false,
            generated: false,
            key: if id == 1 {
                KeyRole::Primary
            } else {
                KeyRole::None
            },
            protection: protections.map(|capabilities| Protection {
                sql_type,
                column_id: [id; 4],
                key_id: 1,
                suite: 1,
                cell_version: 1,
                names: PhysicalNames::new(name, [id; 4], &sql_type, &capabilities),
                capabilities,
                checks: Vec::new(),
                grams: GramForm::Numbers,
                actions: onionskin_schema::KeyActions::default(),
                whole: Whole::Unmarked,
            }),
            invisible: false,
            comment: String::new(),
            explicit_collation: false,
        }
    };
    let searchable = Capabilities {
        eq: true,
        range: true,
        ..Capabilities::default()
    };
    let text = Capabilities {
        like: true,
        ..Capabilities::default()
    };
    OneTable(Arc::new(Table {
        database: "app".into(),
        name: "secret".into(),
        columns: vec![
            column("id", "int(11)", 1, None),
            column("k", "int(11)", 2, Some(searchable)),
            column("c", "varchar(40)", 3, Some(text)),
        ],
        table_id: Some([7; 8]),
        view: false,
        base: None,
        hidden_indexes: Vec::new(),
        guarded: Vec::new(),
        damaged: None,
    }))
});

static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    let columns = BTreeMap::from([("*".to_owned(), vec!["eq".to_owned()])]);
    Policy::parse(&BTreeMap::from([("app.*".to_owned(), columns)])).expect("a policy")
});

/// Plans the statement in a database with one protected table.
///
/// Only statements about a table as a whole may be relayed when its name is in them: none that
/// reads or writes its rows, on the surface or inside of an executable comment.
pub fn plans(input: &[u8]) {
    let Some((&flags, sql)) = input.split_first() else {
        return;
    };
    match split(sql, lex_mode(flags)) {
        Ok(cut) if cut.compound.is_some() => plan_one(flags, sql),
        Ok(cut) => cut
            .parts
            .into_iter()
            .for_each(|part| plan_one(flags, &sql[part])),
        Err(_) => {}
    }
}

fn plan_one(flags: u8, sql: &[u8]) {
    let family = if flags & 4 != 0 {
        Family::MySql
    } else {
        Family::MariaDb
    };
    let settings = Settings {
        lex: lex_mode(flags),
        database: (flags & 8 == 0).then(|| "app".to_owned()),
        strict: flags & 16 == 0,
        high_not: flags & 128 != 0,
        found_rows: flags & 32 != 0,
        scratch: match flags & 64 {
            0 => UseScratch::Never,
            _ => UseScratch::IfNeeded,
        },
        ..Settings::usual(family)
    };
    let mut template = Template::default();
    if template.read(sql, settings.lex).is_err() {
        return;
    }
    let request = Request {
        sql,
        template: &template,
        settings: &settings,
        catalog: &*CATALOG,
        policy: &POLICY,
    };
    let Outcome::Plan(plan) = onionskin_plan::plan(&request) else {
        return;
    };
    let _ = plan.tier();
    if settings.database.is_none() || !matches!(plan.action, Action::Relay) {
        return;
    }
    // These name tables and do nothing with their rows.
    const WHOLE: [&str; 17] = [
        "check",
        "commit",
        "create",
        "drop",
        "flush",
        "grant",
        "kill",
        "lock",
        "optimize",
        "release",
        "rename",
        "repair",
        "revoke",
        "rollback",
        "savepoint",
        "truncate",
        "use",
    ];
    const ROWS: [&str; 6] = ["select", "insert", "update", "delete", "replace", "values"];
    let words = names(sql, settings.lex).unwrap_or_default();
    let is =
        |word: &[u8], list: &[&str]| list.iter().any(|w| word.eq_ignore_ascii_case(w.as_bytes()));
    let whole = match words[..] {
        [first, ..] if is(first, &WHOLE) => true,
        [first, second, ..] => is(first, &["analyze"]) && is(second, &["table", "tables", "local"]),
        _ => false,
    };
    // SHOW … WHERE may hold a subquery.
    let is_show = words.first().is_some_and(|word| is(word, &["show"]));
    let reading = if is_show { &ROWS[..1] } else { &ROWS[..] };
    assert!(
        whole
            || !words.iter().any(|word| is(word, &["secret"]))
            || !words.iter().any(|word| is(word, reading)),
        "relayed, with the rows of the protected table in it"
    );
    let mut lexer = Lexer::new(sql, settings.lex);
    while let Ok(Some(token)) = lexer.next_token() {
        assert!(
            token.kind != TokenKind::Executable || !hides_it(token.text(sql), settings.lex),
            "relayed, with the protected table in an executable comment"
        );
    }
}

/// The bare words of a text that a dot does not qualify (`other.secret` is another table).
fn names(sql: &[u8], mode: LexMode) -> Result<Vec<&[u8]>, LexError> {
    let mut words = Vec::new();
    let mut previous_dot = false;
    let mut lexer = Lexer::new(sql, mode);
    while let Some(token) = lexer.next_token()? {
        if token.kind == TokenKind::Word && !previous_dot {
            words.push(token.text(sql));
        }
        previous_dot = token.is(b'.');
    }
    Ok(words)
}

/// Whether the protected table's name stands in an executable comment.
fn hides_it(comment: &[u8], mode: LexMode) -> bool {
    let inner = comment.strip_suffix(b"*/").unwrap_or(comment);
    let inner = inner
        .iter()
        .position(|byte| *byte == b'!')
        .map_or(inner, |mark| &inner[mark + 1..]);
    let version = inner
        .iter()
        .take(6)
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let inner = &inner[if version < 5 { 0 } else { version }..];
    match names(inner, mode) {
        Ok(words) => words
            .iter()
            .any(|word| word.eq_ignore_ascii_case(b"secret")),
        Err(_) => inner
            .windows(6)
            .any(|word| word.eq_ignore_ascii_case(b"secret")),
    }
}

/// Statements of every kind, with all that is lexically special.
pub fn seeds() -> Vec<Vec<u8>> {
    let statements = [
        "SELECT * FROM secret WHERE k = 5 AND c IS NOT NULL ORDER BY k DESC LIMIT 3",
        "SELECT s.c, COUNT(*) FROM app.secret AS s WHERE s.k IN (1, 2, -3) GROUP BY s.k HAVING COUNT(*) > 1",
        "SELECT k, SUM(k), MIN(k), AVG(k) FROM secret WHERE k BETWEEN 1 AND 99 OR NOT k < 7",
        "SELECT DISTINCT c FROM secret JOIN other ON secret.k = other.k WHERE EXISTS (SELECT 1 FROM secret)",
        "INSERT INTO secret (id, k, c) VALUES (1, 2, 'it''s'), (2, -3, \"x\\\"y\"), (3, NULL, DEFAULT)",
        "INSERT INTO secret VALUES (1, 2, 'a') ON DUPLICATE KEY UPDATE k = VALUES(k), c = 'b'",
        "REPLACE INTO `secret` SET id = 1, k = 0x41, c = _utf8mb4'x' 'y'",
        "UPDATE secret SET k = k + 1, c = 'new' WHERE id = 7 LIMIT 1",
        "DELETE FROM secret WHERE k >= 1.5e3 -- a comment",
        "CREATE TABLE made (id INT PRIMARY KEY AUTO_INCREMENT, c VARCHAR(20) ENCRYPTED FOR (eq, range) NOT NULL DEFAULT 'x')",
        "ALTER TABLE secret ADD COLUMN d DATE, ADD KEY (k)",
        "CREATE INDEX i ON secret (k); DROP TABLE secret; RENAME TABLE secret TO other",
        "SHOW CREATE TABLE secret; DESCRIBE secret; SHOW COLUMNS FROM secret LIKE 'c%'; SHOW INDEX FROM secret",
        "/*!50000 SELECT */ c /* comment */ FROM # more\n secret WHERE a = N'x' AND b = b'01' AND x = X'ff' AND @v = @@g",
        "SET @a = 'secret'; SELECT 'a' 'b', \"c\", `d``e`, 1.5, .5, 1e-3, 0b11, ?",
        "BEGIN NOT ATOMIC SELECT 1; SELECT 2; END; CREATE PROCEDURE p() BEGIN SELECT 1; END",
        "WITH q AS (SELECT k FROM secret UNION SELECT 1) SELECT * FROM q WHERE k <=> ? OR (k, c) = (?, ?)",
        "ANALYZE TABLE secret; FLUSH TABLES secret; GRANT SELECT (k) ON secret TO u; LOCK TABLES secret WRITE",
        "ANALYZE UPDATE secret SET c = 'x' WHERE k = 1",
        "/*! INSERT INTO secret VALUES ('x*/ ') */ -- '",
        "SELECT c FROM /*!50000secret*/ WHERE c = 'x'",
        "/*M!100100 SELECT c FROM secret */; /*!50000 app.secret */",
        "EXPLAIN SELECT k FROM secret FORCE INDEX (i) WHERE k = 1 FOR UPDATE",
        "GET SELECT (secret",
    ];
    (0..)
        .zip(statements)
        .map(|(flags, sql): (u8, &str)| [&[flags % 8], sql.as_bytes()].concat())
        .collect()
}
