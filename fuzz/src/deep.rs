//! Statements that are deep, long or lean to the left, for every operator and clause that the SQL
//! parser knows, planned on a stack of a session's size. A stack that overflows ends the process,
//! whoever catches what.
//!
//! `FORMS` is a list of what can be repeated. An operator that a new version of the parser knows
//! belongs there, but the bound does not rest on the list: it counts tokens, whatever they mean.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::thread;

use onionskin_plan::lex::split;
use onionskin_plan::{
    Catalog, Known, LexMode, Outcome, Request, SESSION_STACK, Settings, Template, UseScratch,
};
use onionskin_schema::{
    Capabilities, Column, GramForm, KeyRole, PhysicalNames, Policy, Protection, Table, Whole,
};
use onionskin_value::{Charset, Family, SqlType};

/// What the code of a session takes of its stack before a statement is planned, counted high.
const TAKEN: usize = 192 << 10;

/// Something that can be repeated around an expression: `open` before it, `link` and `close` behind
/// it.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub open: &'static str,
    pub link: &'static str,
    pub close: &'static str,
}

const fn chain(link: &'static str) -> Form {
    Form {
        open: "",
        link,
        close: "",
    }
}

const fn nest(open: &'static str, close: &'static str) -> Form {
    Form {
        open,
        link: "",
        close,
    }
}

/// Of expressions.
pub const FORMS: &[Form] = &[
    // operators between two operands, and behind one
    chain(" + 1"),
    chain("-1"),
    chain(" * k"),
    chain("/1"),
    chain(" % 1"),
    chain(" DIV 1"),
    chain(" MOD 1"),
    chain(" | 1"),
    chain(" & 1"),
    chain(" ^ 1"),
    chain(" << 1"),
    chain(" >> 1"),
    chain(" || c"),
    chain(" && 1"),
    chain(" AND k = 1"),
    chain(" OR secret.k = 1"),
    chain(" OR (k = 1 AND id < 7)"),
    chain(" XOR 1"),
    chain(" = 1"),
    chain(" < 1"),
    chain(" >= 1"),
    chain(" <> 1"),
    chain(" != k"),
    chain(" <=> 1"),
    chain(" IS NULL"),
    chain(" IS NOT NULL"),
    chain(" IS TRUE"),
    chain(" IS NOT UNKNOWN"),
    chain(" IS DISTINCT FROM 1"),
    chain(" IS NORMALIZED"),
    chain(" IS JSON"),
    chain(" ISNULL"),
    chain(" NOTNULL"),
    chain(" + 1 ISNULL"),
    chain(" BETWEEN 1 AND 2"),
    chain(" NOT BETWEEN 1 AND 2"),
    chain(" = 1 = 1 = 1 BETWEEN 1 AND 1"),
    chain(" = 1 = 1 = 1 = 1 = 1 + 1"),
    chain(" LIKE 'x'"),
    chain(" NOT LIKE 'x' ESCAPE 'y'"),
    chain(" ILIKE 'x'"),
    chain(" SIMILAR TO 'x'"),
    chain(" RLIKE 'x'"),
    chain(" REGEXP 'x'"),
    chain(" NOT REGEXP 'x'"),
    chain(" SOUNDS LIKE 'x'"),
    chain(" GLOB 'x'"),
    chain(" MATCH 'x'"),
    chain(" IN (1)"),
    chain(" NOT IN (1, 2)"),
    chain(" IN (SELECT 1)"),
    chain(" = ANY (SELECT 1)"),
    chain(" > ALL (SELECT k FROM secret)"),
    chain(" COLLATE utf8mb4_bin"),
    chain("::int"),
    chain(" AT TIME ZONE 'x'"),
    chain(" MEMBER OF (1)"),
    chain(" OVERLAPS 1"),
    chain("->'$.a'"),
    chain("->>'$.a'"),
    chain(" #> 'x'"),
    chain(" @> 1"),
    chain(" <@ 1"),
    chain(" @@ 1"),
    chain(" ~ 1"),
    chain(" !~ 1"),
    chain(" ~* 1"),
    chain(" ~~ 1"),
    chain(" ^@ 1"),
    chain(" // 1"),
    chain(" := 1"),
    chain(" == 1"),
    chain(" => 1"),
    chain(" -> 1"),
    chain(" !"),
    chain(" OPERATOR(a.+) 1"),
    chain(" + INTERVAL 1 DAY"),
    chain(" - INTERVAL 1 DAY + NOW()"),
    chain(".a"),
    chain(".`a`"),
    chain("[1]"),
    chain("[1:2]"),
    chain("(1)"),
    chain(" (1)"),
    chain(" 'x'"),
    chain(" a_new_operator 1"),
    chain(" COLLATE a = 1"),
    chain(" OVER w"),
    chain(" UNION SELECT 1"),
    chain(" UNION ALL SELECT k FROM secret"),
    chain(" EXCEPT SELECT 1"),
    chain(" INTERSECT SELECT 1"),
    chain(" MINUS SELECT 1"),
    chain(" UNION (SELECT 1)"),
    chain(" UNION VALUES ROW(1)"),
    chain(" UNION TABLE secret"),
    // lists
    chain(", 1"),
    chain(", -1"),
    chain(", k + 1"),
    chain(", (1, 2)"),
    chain(", k = k + 1"),
    // what stands before an operand
    nest("- ", ""),
    nest("+ ", ""),
    nest("~ ", ""),
    nest("! ", ""),
    nest("NOT ", ""),
    nest("BINARY ", ""),
    nest("PRIOR ", ""),
    nest("CONNECT_BY_ROOT ", ""),
    nest("DISTINCT ", ""),
    nest("@ ", ""),
    nest("|/ ", ""),
    nest("!! ", ""),
    nest("NOT - ", ""),
    nest("@a := ", ""),
    nest("_utf8mb4 ", ""),
    nest("DATE ", ""),
    nest("INTERVAL ", " DAY"),
    nest("1 BETWEEN 1 AND ", ""),
    nest("1 BETWEEN ", " AND 1"),
    nest("1 + ", ""),
    nest("1 IN (", ")"),
    nest("a -> ", ""),
    // brackets
    nest("(", ")"),
    nest("((", ") + 1)"),
    nest("(1, ", ")"),
    nest("ROW(", ")"),
    nest("[", "]"),
    nest("ARRAY[", "]"),
    nest("{'a': ", "}"),
    nest("STRUCT(", ")"),
    nest("STRUCT<INT>(", ")"),
    nest("f(", ")"),
    nest("COALESCE(1, ", ")"),
    nest("IF(1, ", ", 2)"),
    nest("GROUP_CONCAT(", " ORDER BY 1 SEPARATOR 'x')"),
    nest("COUNT(DISTINCT ", ")"),
    nest("SUM(", ") OVER ()"),
    nest("SUM(1) OVER (ORDER BY ", ")"),
    nest(
        "SUM(1) OVER (PARTITION BY ",
        " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    ),
    nest("SUM(1) OVER (ROWS ", " PRECEDING)"),
    nest("SUM(1) FILTER (WHERE ", ")"),
    nest("CAST(", " AS CHAR)"),
    nest("TRY_CAST(", " AS CHAR)"),
    nest("CONVERT(", ", CHAR)"),
    nest("CONVERT(", " USING utf8mb4)"),
    nest("EXTRACT(DAY FROM ", ")"),
    nest("POSITION('x' IN ", ")"),
    nest("SUBSTRING(", " FROM 1 FOR 2)"),
    nest("OVERLAY(", " PLACING 'x' FROM 1)"),
    nest("TRIM(", ")"),
    nest("TRIM(LEADING 'x' FROM ", ")"),
    nest("CEIL(", ")"),
    nest("FLOOR(", " TO DAY)"),
    nest("MATCH (c) AGAINST (", ")"),
    nest("DATE_ADD(k, INTERVAL ", " DAY)"),
    nest("JSON_OBJECT('a' : ", ")"),
    nest("JSON_OBJECT('a', ", ")"),
    nest("CASE WHEN 1 THEN ", " END"),
    nest("CASE WHEN ", " THEN 1 END"),
    nest("CASE ", " WHEN 1 THEN 1 ELSE 2 END"),
    nest("CASE WHEN 1 THEN 1 ELSE ", " END"),
    nest("GROUPING SETS (", ")"),
    nest("ROLLUP (", ")"),
    // queries
    nest("(SELECT ", ")"),
    nest("(SELECT k FROM secret WHERE k = ", ")"),
    nest("EXISTS (SELECT ", ")"),
    nest("NOT EXISTS (SELECT ", ")"),
    nest("1 IN (SELECT ", ")"),
    nest("1 = ANY (SELECT ", ")"),
    nest("(SELECT 1 FROM (SELECT ", ") x)"),
    nest("(WITH x AS (SELECT ", ") SELECT 1)"),
    nest("(SELECT 1 UNION SELECT ", ")"),
    nest("(VALUES ROW(", "))"),
    nest("ARRAY(SELECT ", ")"),
    // comments
    nest("/*!", ""),
    nest("/*! ", " */"),
    nest("/*!50000 1 */ + ", ""),
    nest("/*M!100100 ", ""),
    nest("/* ", " */"),
    nest("/*+ x */ ", ""),
    nest("-- \n", ""),
    nest("#\n", ""),
    nest("/*", ""),
];

/// Statements, of which the middle part is repeated.
pub const STATEMENTS: &[[&str; 3]] = &[
    ["SELECT * FROM secret", " JOIN secret ON 1", ""],
    ["SELECT * FROM secret", " LEFT JOIN secret USING (id)", ""],
    ["SELECT * FROM secret", " CROSS JOIN secret", ""],
    ["SELECT * FROM secret", " NATURAL JOIN secret", ""],
    ["SELECT * FROM secret", " STRAIGHT_JOIN secret", ""],
    ["SELECT * FROM secret", ", secret", ""],
    ["SELECT * FROM secret", ", LATERAL (SELECT 1) x", ""],
    ["SELECT * FROM secret", " JOIN secret", " ON 1 ON 1 ON 1"],
    ["SELECT * FROM secret", " PIVOT(SUM(k) FOR id IN (1))", ""],
    ["SELECT * FROM secret", " TABLESAMPLE (1)", ""],
    ["SELECT * FROM ", "(", "secret)))"],
    ["SELECT * FROM ", "(SELECT * FROM ", "secret) x) x"],
    ["SELECT * FROM ", "(secret JOIN ", "secret))"],
    ["SELECT * FROM ", "(TABLE ", "secret))"],
    [
        "SELECT * FROM JSON_TABLE('x', '$' ",
        "COLUMNS (NESTED PATH '$' ",
        "COLUMNS (a INT PATH '$'))))",
    ],
    ["SELECT * FROM UNNEST(", "[", "1]]"],
    ["", "(", "SELECT * FROM secret))"],
    ["SELECT * FROM secret", " UNION SELECT * FROM secret", ""],
    [
        "SELECT * FROM secret",
        " UNION ALL SELECT * FROM secret WHERE 1 AND 1",
        "",
    ],
    ["SELECT * FROM secret", " EXCEPT SELECT 1", " ORDER BY 1"],
    ["SELECT * FROM secret", " INTERSECT SELECT 1, 2, 3", ""],
    ["TABLE secret", " UNION TABLE secret", ""],
    ["VALUES ROW(1)", ", ROW(1)", ""],
    [
        "WITH ",
        "a AS (WITH ",
        "b AS (SELECT 1) SELECT * FROM secret) SELECT 1) SELECT 1",
    ],
    [
        "WITH a AS (SELECT 1)",
        ", a AS (SELECT k FROM secret)",
        " SELECT * FROM secret",
    ],
    ["SELECT 1", ", k", " FROM secret"],
    ["SELECT 1", ", k + 1 AS `x`", " FROM secret"],
    ["SELECT CASE k", " WHEN 1 THEN 2", " END FROM secret"],
    ["SELECT CASE", " WHEN k = 1 THEN k", " END FROM secret"],
    ["SELECT * FROM secret WHERE k IN (1", ", 2", ")"],
    ["SELECT * FROM secret WHERE c IN ('x'", ", 'y'", ")"],
    ["SELECT * FROM secret WHERE k IN (1", ", -2", ")"],
    [
        "SELECT * FROM secret WHERE (id, k) IN ((1, 1)",
        ", (2, 3)",
        ")",
    ],
    ["SELECT COUNT(*) FROM secret GROUP BY k", ", k", ""],
    [
        "SELECT COUNT(*) FROM secret GROUP BY k",
        ", k",
        " WITH ROLLUP",
    ],
    ["SELECT k FROM secret ORDER BY k", ", k DESC", ""],
    [
        "SELECT k FROM secret WINDOW w AS ()",
        ", w AS (ORDER BY k)",
        "",
    ],
    ["SELECT k FROM secret ", "FOR UPDATE ", ""],
    ["SELECT k FROM secret ", "USE INDEX (a) ", ""],
    ["SELECT k FROM secret PARTITION (a", ", a", ")"],
    ["INSERT INTO secret VALUES (1, 2, 'x')", ", (1, 2, 'x')", ""],
    [
        "INSERT INTO secret VALUES (1, -2, 'x')",
        ", (1, -2, DEFAULT)",
        "",
    ],
    [
        "INSERT INTO secret VALUES (1, -2, NULL)",
        ", (1, NOW() + 1, 'x')",
        "",
    ],
    ["INSERT INTO secret (id", ", k", ") VALUES (1)"],
    ["INSERT INTO secret SET k = 1", ", k = 1", ""],
    [
        "INSERT INTO secret VALUES (1, 2, 'x') ON DUPLICATE KEY UPDATE k = 1",
        ", k = VALUES(k) + 1",
        "",
    ],
    [
        "INSERT INTO secret SELECT 1, 2, 3",
        " UNION SELECT 1, 2, 3",
        "",
    ],
    ["UPDATE secret SET k = 1", ", k = k + 1", ""],
    ["UPDATE secret", ", secret", " SET k = 1"],
    ["UPDATE secret SET k = 1 WHERE id = 1", " OR id = 2", ""],
    ["DELETE FROM secret WHERE id = 1", " OR id = 2", ""],
    ["DELETE secret", ", secret", " FROM secret"],
    ["DELETE FROM secret", ", secret", " USING secret"],
    [
        "ALTER TABLE secret ADD COLUMN a INT",
        ", ADD COLUMN a INT NOT NULL DEFAULT 1",
        "",
    ],
    ["ALTER TABLE secret DROP COLUMN k", ", DROP COLUMN k", ""],
    [
        "ALTER TABLE secret ADD COLUMN a INT ENCRYPTED FOR (eq) DEFAULT ",
        "(",
        "1))",
    ],
    [
        "CREATE TABLE made (a INT",
        ", b VARCHAR(20) CHARACTER SET latin1 NOT NULL DEFAULT 'x'",
        ")",
    ],
    [
        "CREATE TABLE made (a VARCHAR(20) ENCRYPTED DEFAULT ",
        "(",
        "'x'))",
    ],
    [
        "CREATE TABLE made (a BIT(8) ENCRYPTED DEFAULT ",
        "(",
        "1)) + 1",
    ],
    [
        "CREATE TABLE made (a VARCHAR(20) ENCRYPTED DEFAULT (1",
        " + 1",
        "))",
    ],
    [
        "CREATE TABLE made (a VARCHAR(20) ENCRYPTED DEFAULT (1",
        " OVERLAPS 1",
        "))",
    ],
    [
        "CREATE TABLE made (a VARCHAR(20) ENCRYPTED, CHECK (1",
        " + 1",
        "))",
    ],
    ["CREATE TABLE made (a INT AS (1", " + 1", "))"],
    ["CREATE TABLE made (a ", "ARRAY<", "INT>>)"],
    ["CREATE TABLE made (a INT", " ARRAY", ")"],
    ["CREATE TABLE made AS SELECT k", " + 1", " FROM secret"],
    ["CREATE TABLE made SELECT 1", " UNION SELECT 1", ""],
    ["CREATE TABLE secret ", "OR REPLACE ", "(a INT)"],
    [
        "CREATE VIEW made AS SELECT k FROM secret WHERE 1",
        " + 1",
        "",
    ],
    [
        "CREATE VIEW made AS SELECT k FROM secret WHERE 1",
        " OVERLAPS 1",
        "",
    ],
    [
        "CREATE VIEW made AS SELECT k FROM secret",
        " JOIN secret ON 1",
        "",
    ],
    ["CREATE INDEX i ON secret (k", ", k", ")"],
    ["CREATE PROCEDURE p() BEGIN SELECT 1", "; SELECT 1", "; END"],
    ["SELECT CAST(1 AS ", "ARRAY<", "INT>>) FROM secret"],
    ["SELECT CAST(1 AS INT", "[]", ") FROM secret"],
    ["SELECT CAST(1 AS ", "STRUCT<a ", "INT>>) FROM secret"],
    ["SELECT CAST(1 AS ", "Nullable(", "INT)) FROM secret"],
    ["SELECT CAST(1 AS ", "MAP(INT, ", "INT)) FROM secret"],
    ["SELECT CAST(1 AS ", "Nested(a ", "INT)) FROM secret"],
    ["", "EXPLAIN ", "SELECT * FROM secret"],
    ["", "ANALYZE ", "SELECT * FROM secret"],
    ["", "DESCRIBE ", "SELECT * FROM secret"],
    ["EXPLAIN SELECT * FROM secret WHERE 1", " OVERLAPS 1", ""],
    ["EXPLAIN ", "(", "SELECT * FROM secret))"],
    [
        "SET STATEMENT max_statement_time = 1 FOR SELECT * FROM secret WHERE 1",
        " OVERLAPS 1",
        "",
    ],
    [
        "SET STATEMENT max_statement_time = 1",
        ", max_statement_time = 1",
        " FOR SELECT * FROM secret",
    ],
    ["SET @a = 1", ", @a = 1", ""],
    ["SET @a = (SELECT k FROM secret WHERE 1", " OVERLAPS 1", ")"],
    ["DO 1", ", (SELECT k FROM secret)", ""],
    ["CALL p(1", ", (SELECT k FROM secret)", ")"],
    ["SHOW COLUMNS FROM secret WHERE 1", " OVERLAPS 1", ""],
    ["SHOW COLUMNS FROM secret LIKE '", "%", "x'"],
    ["SHOW TABLES WHERE 1", " OR 1 IN (SELECT k FROM secret)", ""],
    ["GRANT SELECT (k", ", k", ") ON secret TO u"],
    ["GRANT SELECT ON secret TO u", ", u", ""],
    ["RENAME TABLE secret TO a", ", a TO b", ""],
    ["LOCK TABLES secret READ", ", secret READ", ""],
    ["DROP TABLE secret", ", secret", ""],
    [
        "LOAD DATA LOCAL INFILE 'x' INTO TABLE secret (id, @a) SET c = 1",
        " + @a",
        "",
    ],
    [
        "LOAD DATA LOCAL INFILE 'x' INTO TABLE secret (id, @a) SET c = 1",
        " OVERLAPS 1",
        "",
    ],
    [
        "LOAD DATA LOCAL INFILE 'x' INTO TABLE secret (id",
        ", c",
        ")",
    ],
    [
        "PREPARE s FROM 'SELECT k FROM secret WHERE 1",
        " OVERLAPS 1",
        "'",
    ],
    ["EXECUTE s USING @a", ", @a", ""],
    ["EXECUTE IMMEDIATE CONCAT(1", ", (1)", ")"],
    [
        "SELECT * FROM information_schema.columns",
        ", information_schema.columns",
        "",
    ],
    [
        "SELECT ",
        "information_schema.columns.",
        "k FROM information_schema.columns",
    ],
    ["SELECT 1 FROM secret /*! , ", "/*!", "*/"],
    ["SELECT 1 FROM secret", " /*!x*/", ""],
    ["SELECT 1 FROM secret", " /*!.*/", ""],
    ["SELECT 1 FROM secret", "/*!a.*/", ".b"],
    ["SELECT 1 FROM secret WHERE k = ", "'x' ", ""],
    ["SELECT ", "x", "/*+ a */ /*+ a */ FROM secret"],
    ["SELECT x", "/*+*/", " FROM secret"],
    ["create ", "or ", "table secret"],
    ["or ", "rename create ", "table secret"],
    ["SELECT 1 FROM secret", ";", "SELECT 1 FROM secret"],
    ["SELECT 1", "; SELECT 1", " FROM secret"],
];

/// A statement with one or two forms, repeated, in a place for an expression.
pub fn with_forms(place: usize, core: &str, forms: &[(Form, usize)]) -> Vec<u8> {
    const PLACES: [(&str, &str); 12] = [
        ("SELECT id FROM secret WHERE ", ""),
        ("SELECT ", " FROM secret"),
        ("SELECT id FROM secret WHERE k = ", " ORDER BY c"),
        ("SELECT COUNT(*) FROM secret GROUP BY ", ""),
        ("SELECT id FROM secret ORDER BY ", " LIMIT 3"),
        ("UPDATE secret SET k = ", " WHERE id = 1"),
        ("INSERT INTO secret (id, k) VALUES (1, ", ")"),
        (
            "INSERT INTO secret (id, k) VALUES (1, 2) ON DUPLICATE KEY UPDATE k = ",
            "",
        ),
        ("DELETE FROM secret WHERE ", ""),
        ("SELECT a.id FROM secret a JOIN secret b ON ", ""),
        ("SELECT k, COUNT(*) FROM secret GROUP BY k HAVING ", ""),
        ("CREATE TABLE made (c VARCHAR(20) ENCRYPTED DEFAULT (", "))"),
    ];
    let (head, tail) = PLACES[place % PLACES.len()];
    let mut text = core.to_owned();
    for (form, count) in forms {
        text = [
            form.open.repeat(*count),
            text,
            form.link.repeat(*count),
            form.close.repeat(*count),
        ]
        .concat();
    }
    [head, &text, tail].concat().into_bytes()
}

/// One of [`STATEMENTS`].
pub fn statement(which: usize, count: usize) -> Vec<u8> {
    let [head, repeated, tail] = STATEMENTS[which % STATEMENTS.len()];
    [head, &repeated.repeat(count), tail].concat().into_bytes()
}

/// Bytes choose: the settings, a place, and up to three forms with how often each is repeated.
pub fn run(input: &[u8]) {
    let byte = |at: usize| usize::from(input.get(at).copied().unwrap_or_default());
    // as long as a test may take for one input; a chain of the last size is refused
    let count = |byte: usize| [1, 3, 20, 47, 200, 1500, 12_000, 60_000][byte % 8];
    let flags = input.first().copied().unwrap_or_default();
    let sql = match byte(1) % 4 {
        0 => statement(byte(2), count(byte(3))),
        forms => {
            let core = ["k", "1", "c", "'x'", "id = 1", "?"][byte(2) % 6];
            let forms: Vec<_> = (0..forms)
                .map(|n| (FORMS[byte(4 + 2 * n) % FORMS.len()], byte(5 + 2 * n)))
                // two of the largest would be gigabytes
                .scan(60_000usize, |left, (form, byte)| {
                    let count = count(byte).min(*left);
                    *left /= count.max(1);
                    Some((form, count))
                })
                .collect();
            with_forms(byte(3), core, &forms)
        }
    };
    on_session_stack(vec![(flags, sql)]);
}

/// Plans statements as sessions do, on a thread with as little stack as theirs have.
pub fn on_session_stack(statements: Vec<(u8, Vec<u8>)>) {
    let session = thread::Builder::new()
        .stack_size(SESSION_STACK - TAKEN)
        .spawn(move || {
            for (flags, sql) in &statements {
                read(*flags, sql);
            }
        });
    if let Err(panic) = session.expect("a thread").join() {
        std::panic::resume_unwind(panic);
    }
}

/// All that reads a text.
pub fn read(flags: u8, sql: &[u8]) {
    let family = match flags & 4 {
        0 => Family::MariaDb,
        _ => Family::MySql,
    };
    let settings = Settings {
        lex: LexMode {
            ansi_quotes: flags & 1 != 0,
            no_backslash_escapes: flags & 2 != 0,
            ignore_space: flags & 4 != 0,
            charset: Charset::Utf8mb4,
        },
        database: Some("app".to_owned()),
        strict: flags & 16 == 0,
        high_not: flags & 128 != 0,
        found_rows: flags & 32 != 0,
        scratch: match flags & 64 {
            0 => UseScratch::Never,
            _ => UseScratch::IfNeeded,
        },
        ..Settings::usual(family)
    };
    let _ = onionskin_plan::by_name::parameters(sql, settings.lex);
    let _ = onionskin_plan::scoped(sql, settings.lex);
    let Ok(cut) = split(sql, settings.lex) else {
        return;
    };
    let parts = match cut.compound {
        Some(_) => std::iter::once(0..sql.len()).collect(),
        None => cut.parts,
    };
    for part in parts.into_iter().take(100) {
        let sql = &sql[part];
        let mut template = Template::default();
        if template.read(sql, settings.lex).is_err() {
            continue;
        }
        let request = Request {
            sql,
            template: &template,
            settings: &settings,
            catalog: &*CATALOG,
            policy: &POLICY,
        };
        // plans are kept and dropped elsewhere, and shown
        if let Outcome::Plan(plan) = onionskin_plan::plan(&request) {
            let _ = (plan.tier(), plan);
        }
    }
}

/// One of each form and statement, with sizes from the ordinary to the absurd.
pub fn seeds() -> Vec<Vec<u8>> {
    let sizes = [2, 3, 5, 7];
    let forms = (0..FORMS.len()).flat_map(|form| {
        sizes.map(|size| vec![(form % 2) as u8 * 68, 1, 0, form as u8, form as u8, size])
    });
    let statements = (0..STATEMENTS.len())
        .flat_map(|which| sizes.map(|size| vec![(which % 2) as u8 * 68, 0, which as u8, size]));
    forms.chain(statements).collect()
}

struct OneTable(Arc<Table>);

impl Catalog for OneTable {
    fn table(&self, database: &str, name: &str) -> Known {
        let is_it = database.eq_ignore_ascii_case("app") && name.eq_ignore_ascii_case("secret");
        match is_it {
            true => Known::Table(self.0.clone()),
            false => Known::Absent,
        }
    }
}

/// `app.secret` with a plaintext `id`, and `k` and `c` that can be searched.
static CATALOG: LazyLock<OneTable> = LazyLock::new(|| {
    let column = |name: &str, text: &str, id: u8| {
        let sql_type = SqlType::parse(text, text.contains("char").then_some("utf8mb4_general_ci"))
            .expect("a type");
        let capabilities = Capabilities {
            eq: true,
            range: true,
            ..Capabilities::default()
        };
        let is_key = id == 1;
        Column {
            name: name.into(),
            sql_type: Some(sql_type),
            type_text: text.into(),
            nullable: !is_key,
            default: None,
            auto_increment: false,
            refers_to_plaintext: false,
            on_update: false,
            generated: false,
            key: match is_key {
                true => KeyRole::Primary,
                false => KeyRole::None,
            },
            protection: (!is_key).then(|| Protection {
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
    OneTable(Arc::new(Table {
        database: "app".into(),
        name: "secret".into(),
        columns: vec![
            column("id", "int(11)", 1),
            column("k", "int(11)", 2),
            column("c", "varchar(40)", 3),
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
