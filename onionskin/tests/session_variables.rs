//! Every variable that a session can set: with other values of it, statements near protected tables
//! do what they do on a plain server, or are refused, however it was set. docs/settings.md names
//! each variable of the servers, and each word of `sql_mode`.

use onionskin_testkit::*;

on_both_servers!(
    statements_mean_what_they_mean_to_the_server,
    what_changes_meanings_is_refused_however_it_is_set,
    a_bound_for_joins_is_not_about_own_questions,
    every_variable_is_in_the_documentation,
);

const TABLES: &str = "
CREATE TABLE m (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20) {eq, range}, n INT {eq, range}, d DATETIME {eq, range}, c CHAR(5) {eq}, x DECIMAL(6,2) {},
  free TEXT {}, plain VARCHAR(20), small TINYINT UNSIGNED, KEY (name), CHECK (small <> 13));
CREATE TABLE stamps (id INT PRIMARY KEY, ts TIMESTAMP NULL {eq, range}, st TIMESTAMP NOT NULL {eq}, y DATE NOT NULL {eq});
CREATE TABLE parents (id INT PRIMARY KEY, mail VARCHAR(20) NOT NULL {eq, join:mails}, UNIQUE KEY (mail));
CREATE TABLE children (id INT PRIMARY KEY, mail VARCHAR(20) {eq, join:mails}, FOREIGN KEY (mail) REFERENCES parents (mail));
CREATE TABLE nokey (a INT {eq}, s VARCHAR(10) {eq});
CREATE TABLE texts (id INT PRIMARY KEY, w VARCHAR(90) COLLATE utf8mb4_general_ci {eq, range}, at DATETIME {eq, range});
CREATE VIEW v AS SELECT id, name, n FROM m
";

/// Other values of variables that change what statements come to, and whether definitions are
/// compared under them, too. One that a server does not know, or does not take, is left out there.
const VALUES: &[(&str, &[&str], bool)] = &[
    ("auto_increment_increment", &["5"], false),
    ("auto_increment_offset", &["3"], false),
    ("autocommit", &["0"], false),
    ("alter_algorithm", &["COPY", "INSTANT"], true),
    ("big_tables", &["1"], false),
    ("block_encryption_mode", &["'aes-256-cbc'"], false),
    ("character_set_client", &["latin1", "gbk"], false),
    ("character_set_connection", &["latin1", "ucs2"], false),
    ("character_set_database", &["latin1"], true),
    ("character_set_filesystem", &["latin1"], false),
    ("character_set_results", &["NULL"], false),
    ("character_set_server", &["latin1"], true),
    ("check_constraint_checks", &["0"], true),
    ("collation_connection", &["utf8mb4_bin"], true),
    ("collation_database", &["latin1_bin"], true),
    ("collation_server", &["utf8mb4_bin"], true),
    ("completion_type", &["CHAIN"], false),
    ("cte_max_recursion_depth", &["5"], false),
    (
        "default_collation_for_utf8mb4",
        &["utf8mb4_general_ci"],
        true,
    ),
    ("default_regex_flags", &["'DOTALL'"], false),
    ("default_storage_engine", &["MyISAM"], true),
    ("default_tmp_storage_engine", &["MyISAM"], true),
    ("default_week_format", &["3"], false),
    ("div_precision_increment", &["0", "9"], false),
    ("end_markers_in_json", &["1"], false),
    ("enforce_storage_engine", &["InnoDB"], true),
    ("explain_format", &["JSON", "TRADITIONAL"], false),
    ("explain_json_format_version", &["1"], false),
    ("explicit_defaults_for_timestamp", &["0"], true),
    ("foreign_key_checks", &["0"], true),
    ("group_concat_max_len", &["4"], false),
    ("in_predicate_conversion_threshold", &["2"], false),
    ("information_schema_stats_expiry", &["0"], false),
    ("innodb_strict_mode", &["0"], true),
    ("insert_id", &["77"], false),
    ("last_insert_id", &["99"], false),
    ("lc_messages", &["'de_DE'"], true),
    ("lc_time_names", &["'de_DE'"], false),
    ("max_error_count", &["0", "1"], true),
    ("max_recursive_iterations", &["5"], false),
    ("max_sort_length", &["4", "64"], false),
    (
        "note_verbosity",
        &["''", "'basic,unusable_keys,explain'"],
        true,
    ),
    ("old", &["1"], true),
    ("old_alter_table", &["1"], true),
    (
        "old_mode",
        &[
            "''",
            "NO_DUP_KEY_WARNINGS_WITH_IGNORE",
            "'UTF8_IS_UTF8MB3,ZERO_DATE_TIME_CAST'",
            "COMPAT_5_1_CHECKSUM",
        ],
        true,
    ),
    ("old_passwords", &["1"], false),
    (
        "optimizer_switch",
        &[
            "'materialization=off'",
            "'semijoin=off'",
            "'derived_merge=off'",
        ],
        false,
    ),
    ("pseudo_replica_mode", &["1"], false),
    ("pseudo_slave_mode", &["1"], true),
    ("rand_seed1", &["5, SESSION rand_seed2 = 7"], false),
    ("restrict_fk_on_non_standard_key", &["0"], true),
    ("resultset_metadata", &["NONE"], false),
    ("show_create_table_verbosity", &["1"], true),
    (
        "show_gipk_in_create_table_and_information_schema",
        &["0"],
        true,
    ),
    ("sql_auto_is_null", &["1"], false),
    ("sql_big_selects", &["0"], false),
    ("sql_buffer_result", &["1"], false),
    ("sql_generate_invisible_primary_key", &["1"], true),
    ("sql_if_exists", &["1"], true),
    ("sql_notes", &["0"], true),
    ("sql_quote_show_create", &["0"], true),
    ("sql_require_primary_key", &["1"], true),
    ("sql_safe_updates", &["1"], false),
    ("sql_select_limit", &["2", "0"], false),
    ("sql_warnings", &["1"], false),
    ("standard_compliant_cte", &["0"], false),
    ("storage_engine", &["MyISAM"], true),
    ("system_versioning_alter_history", &["KEEP"], true),
    ("system_versioning_asof", &["'2020-01-01'"], true),
    ("system_versioning_insert_history", &["1"], false),
    ("time_zone", &["'+05:30'"], true),
    ("timestamp", &["1000000000"], true),
    (
        "transaction_isolation",
        &["'READ-UNCOMMITTED'", "'SERIALIZABLE'"],
        false,
    ),
    (
        "tx_isolation",
        &["'READ-UNCOMMITTED'", "'SERIALIZABLE'"],
        false,
    ),
    ("unique_checks", &["0"], true),
    ("updatable_views_with_limit", &["NO"], false),
    ("use_secondary_engine", &["OFF"], false),
    ("windowing_use_high_precision", &["0"], false),
];

/// Run in this order; what they leave is compared by the queries.
const STATEMENTS: &[&str] = &[
    "INSERT INTO m (name, n, d, c, x, free, plain, small) VALUES ('ann', 5, '2020-01-31 10:11:12', 'a', 1.25, 'free', 'p', 3)",
    "SELECT id, name FROM m WHERE id IS NULL",
    "INSERT INTO m (name, n, d, c, x, free, plain, small) VALUES ('bob', 7, '2021-01-31', 'b', 2.5, 'f', 'q', 4), ('carl', 2000000000, NULL, '', 3, '', 'r', 5), \
     ('dora', -7, '2019-12-31 23:59:59', NULL, NULL, NULL, NULL, NULL)",
    "INSERT INTO m (id, name) VALUES (30, 'a name that is too long for it')",
    "INSERT INTO m (id, n) VALUES (31, 'x')",
    "INSERT IGNORE INTO m (id, n, c) VALUES (32, 'x', 'too long')",
    "INSERT IGNORE INTO m (id, n, x) VALUES (33, '12abc', 1.239), (34, 3000000000, 12345678.9), (35, '', 1.999)",
    "INSERT IGNORE INTO m (id, name) VALUES (1, 'again'), (36, 'new')",
    "INSERT INTO m (id, x) VALUES (37, 1.2345)",
    "INSERT INTO m (id, name, small) VALUES (38, 'm', 13)",
    "INSERT INTO m (id, d) VALUES (39, NOW())",
    "INSERT INTO m (id, plain, name) SELECT 40 + id, plain, UPPER(name) FROM m WHERE name = 'ann'",
    "INSERT INTO m (name) SELECT CONCAT(name, '2') FROM m WHERE name IN ('ann', 'bob') ORDER BY id",
    "INSERT INTO m (id, name) VALUES (1, 'z') ON DUPLICATE KEY UPDATE n = n + 1, plain = 'met'",
    "REPLACE INTO m (id, name, n) VALUES (41, 'replaced', 9)",
    "INSERT INTO stamps (id, ts, st, y) VALUES (1, '2020-06-01 12:00:00', '2020-06-01 12:00:00', '2020-06-01')",
    "INSERT INTO stamps (id, ts, st, y) VALUES (2, NULL, NULL, '2020-06-02')",
    "INSERT INTO stamps (id, ts, y) VALUES (3, NULL, '10:11:12')",
    "INSERT INTO stamps (id, y) VALUES (4, NULL)",
    "INSERT INTO parents VALUES (1, 'one'), (2, 'two')",
    "INSERT INTO children VALUES (1, 'one'), (2, NULL)",
    "INSERT INTO children VALUES (3, 'nobody')",
    "INSERT INTO parents VALUES (3, 'one')",
    "INSERT INTO nokey VALUES (1, 'x'), (2, 'y'), (3, 'z')",
    "INSERT INTO texts (id, w) VALUES (2, CONCAT(REPEAT('a', 70), 'b')), (1, CONCAT(REPEAT('a', 70), 'c')), (3, 'aaaab'), (4, 'aaaaa')",
    "INSERT INTO texts (id, at) VALUES (5, TIME'10:11:12'), (6, '10:11:12')",
    "UPDATE m SET plain = 'u' WHERE name = 'bob'",
    "UPDATE m SET plain = 'w' WHERE n = 7",
    "UPDATE m SET n = n + 1 WHERE id = 1",
    "UPDATE m SET n = n + 1 WHERE n < 3",
    "UPDATE m SET n = 8 WHERE x = 3",
    "UPDATE m SET name = CONCAT(name, '!') WHERE id = 2",
    "UPDATE m SET name = 'long name long name long name' WHERE id = 3",
    "UPDATE m SET n = 1 ORDER BY n DESC LIMIT 1",
    "UPDATE m SET c = 'k' WHERE free = 'f'",
    "UPDATE v SET n = 3 WHERE name = 'dora'",
    "UPDATE v SET n = 4 LIMIT 1",
    "UPDATE nokey SET s = 'q'",
    "UPDATE nokey SET a = a + 1",
    "DELETE FROM nokey WHERE a = 2",
    "DELETE FROM nokey WHERE s > 'a' ORDER BY s LIMIT 1",
    "DELETE FROM m WHERE n > 100000",
    "DELETE FROM parents WHERE mail = 'one'",
    "DELETE FROM m WHERE free = 'nothing'",
];

const QUERIES: &[&str] = &[
    "SELECT id, name, n, c, x, free, plain, small FROM m ORDER BY id",
    "SELECT id, d FROM m WHERE id <> 39 ORDER BY id",
    "SELECT id, ts, st FROM stamps ORDER BY id",
    "SELECT id, y FROM stamps WHERE id <> 3 ORDER BY id",
    "SELECT id, w FROM texts ORDER BY w, id",
    "SELECT id, at FROM texts WHERE id > 4 ORDER BY id",
    "SELECT id FROM texts WHERE at > TIME'09:00:00' ORDER BY id",
    "SELECT * FROM parents ORDER BY id",
    "SELECT * FROM children ORDER BY id",
    "SELECT * FROM nokey ORDER BY a",
    "SELECT id, n FROM m WHERE n IS NOT NULL ORDER BY n, id",
    "SELECT id, n FROM m ORDER BY n DESC, id LIMIT 2",
    "SELECT id, name FROM m ORDER BY name, id",
    "SELECT id, d FROM m WHERE d IS NOT NULL AND id <> 39 ORDER BY d, id LIMIT 3",
    "SELECT id, x FROM m ORDER BY x, id",
    "SELECT DISTINCT n FROM m ORDER BY n",
    "SELECT name, COUNT(*), MAX(n), MIN(d) FROM m WHERE id <> 39 GROUP BY name ORDER BY name",
    "SELECT plain, COUNT(*), MAX(n) FROM m GROUP BY plain ORDER BY 2, 1, 3",
    "SELECT MIN(n), MAX(n), SUM(n), AVG(n), SUM(x), AVG(x), COUNT(DISTINCT n) FROM m",
    "SELECT MIN(name), MAX(name), COUNT(name), MIN(d), MAX(x) FROM m WHERE id <> 39",
    "SELECT n / 3, x / 7 FROM m WHERE id < 4 ORDER BY id",
    "SELECT GROUP_CONCAT(name ORDER BY name), GROUP_CONCAT(n ORDER BY 1) FROM m",
    "SELECT UPPER(name), DATE_FORMAT(d, '%M %W'), WEEK(d) FROM m WHERE id < 4 ORDER BY id",
    "SELECT name FROM m WHERE name LIKE 'a%' ORDER BY id",
    "SELECT name FROM m WHERE name REGEXP 'N+' ORDER BY id",
    "SELECT id FROM m WHERE name > 'b' ORDER BY id",
    "SELECT id FROM m WHERE n BETWEEN '1' AND 9 ORDER BY id",
    "SELECT id FROM m WHERE d >= '2020-01-31' AND d < '2021-02-01' ORDER BY id",
    "SELECT id FROM m WHERE c = '' ORDER BY id",
    "SELECT id FROM m WHERE n IN (1, 2, 3, 4, 5, 6, 7, 8) ORDER BY id",
    "SELECT id FROM m WHERE n NOT IN (1, 2, 3) ORDER BY id",
    "SELECT id FROM m WHERE n = 'abc' ORDER BY id",
    "SELECT id, 1 / 0, name + 1 FROM m WHERE name = 'ann'",
    "SELECT id FROM m WHERE name IN (SELECT CONCAT(mail, '') FROM parents) ORDER BY id",
    "SELECT p.id, c.id FROM parents p LEFT JOIN children c ON p.mail = c.mail ORDER BY p.id",
    "SELECT id, ROW_NUMBER() OVER (ORDER BY n, id), AVG(n) OVER (ORDER BY id ROWS 1 PRECEDING) FROM m ORDER BY id",
    "WITH RECURSIVE r AS (SELECT 1 AS k, name FROM m WHERE id = 1 UNION ALL SELECT k + 1, name FROM r WHERE k < 20) SELECT COUNT(*), MAX(k) FROM r",
    "SELECT HEX(AES_ENCRYPT(name, 'k')) FROM m WHERE id = 1",
    "SELECT COLLATION(name), CHARSET(c), COLLATION('x'), COLLATION(_utf8mb4'x') FROM m WHERE id = 1",
    "SELECT id FROM m WHERE name = _utf8mb4'ANN' ORDER BY id",
    "SELECT id FROM v WHERE name = 'ann' ORDER BY id",
    "SELECT id, name FROM m WHERE id = 1 FOR UPDATE",
    "SELECT LAST_INSERT_ID(), @@identity",
    "SELECT /*+ SET_VAR(sql_mode = '') */ name FROM m WHERE id = 1",
    "SHOW COLUMNS FROM m",
    "SHOW CREATE TABLE m",
    "SHOW CREATE TABLE children",
    "SHOW CREATE VIEW v",
    "SELECT table_name, column_name, column_type, column_default, is_nullable, collation_name FROM information_schema.columns WHERE table_schema = 'app' AND table_name IN ('m', 'stamps') ORDER BY table_name, ordinal_position",
    "SELECT table_name, engine, table_type, table_collation FROM information_schema.tables WHERE table_schema = 'app' ORDER BY table_name",
    "CHECK TABLE m",
];

/// Random without a seed.
const WITH_SEEDS: &[&str] = &[
    "SELECT name, RAND() FROM m WHERE id = 1",
    "SELECT UPPER(name), RAND() FROM m WHERE id = 1",
    "INSERT INTO m (id, n) VALUES (60, RAND() * 1000000)",
    "SELECT n FROM m WHERE id = 60",
];

/// Each makes `made` of the statement, and fills it.
const DEFINITIONS: &[&str] = &[
    "CREATE TABLE made (id INT PRIMARY KEY, c VARCHAR(5) {eq})",
    "CREATE TABLE made (id INT PRIMARY KEY, c VARCHAR(5) CHARACTER SET utf8 {eq})",
    "CREATE TABLE made (id INT PRIMARY KEY, c VARCHAR(5) CHARACTER SET utf8mb4 {eq, range})",
    "CREATE TABLE made (id INT PRIMARY KEY, c VARCHAR(5) {eq}) DEFAULT CHARSET utf8mb4",
    "CREATE TABLE made (id INT PRIMARY KEY, c VARCHAR(5) COLLATE utf8_bin {eq})",
    "CREATE TABLE made (id INT PRIMARY KEY, c VARCHAR(5) {eq}) CHARSET utf8",
    "CREATE TABLE made (id INT PRIMARY KEY, c TIMESTAMP {eq})",
    "CREATE TABLE made (id INT PRIMARY KEY, c TIMESTAMP NOT NULL {eq}, c2 TIMESTAMP)",
    "CREATE TABLE made (id INT PRIMARY KEY, c TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP {eq})",
    "CREATE TABLE made (id INT PRIMARY KEY, t TIMESTAMP, c VARCHAR(20) {eq})",
    "CREATE TABLE made (id INT, c VARCHAR(20) {eq})",
    "CREATE TABLE made (id INT PRIMARY KEY, c VARCHAR(20) {eq}, t DATE, PRIMARY KEY (id))",
    "CREATE TABLE made (id INT PRIMARY KEY, c VARCHAR(20) {eq}) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=3",
    "CREATE TABLE made (id INT PRIMARY KEY, c VARCHAR(20) {eq, join:mails}, FOREIGN KEY (c) REFERENCES parents (mail))",
    "CREATE TABLE made (id INT PRIMARY KEY, c VARCHAR(20) {eq, join:mails}, FOREIGN KEY (c) REFERENCES nowhere (mail))",
    "CREATE TEMPORARY TABLE made (id INT PRIMARY KEY, c VARCHAR(20) {eq})",
    "CREATE TABLE made LIKE m",
    "CREATE TABLE made SELECT id, name AS c FROM m",
];

const FILLINGS: &[&str] = &[
    "INSERT INTO made VALUES (1, 'ab')",
    "INSERT INTO made (id, c) VALUES (2, '2020-01-31 10:11:12')",
    "INSERT INTO made (id, c) VALUES (3, NULL)",
    "INSERT INTO made (id) VALUES (4)",
    "SELECT id FROM made WHERE c = 'AB'",
    "SHOW CREATE TABLE made",
    "ALTER TABLE made ADD e VARCHAR(5) CHARACTER SET utf8mb4",
    "ALTER TABLE made DROP COLUMN nothing",
    "ALTER TABLE made ADD COLUMN f INT, ADD KEY (f)",
    "ALTER TABLE made DROP COLUMN c",
    "SELECT * FROM made WHERE id <> 4 ORDER BY id",
];

/// Statements that a plain server does whatever `max_join_size` is, in a session that does not know
/// the tables yet.
const OF_ANY_SIZE: &[&str] = &[
    "SELECT name, n FROM m WHERE id = 2",
    "INSERT INTO m (id, name, n, free, plain) VALUES (50, 'eve', 4, 'f', 'p')",
    "UPDATE m SET name = 'carla' WHERE n = 2000000000",
    "UPDATE m SET n = n + 1",
    "UPDATE m SET name = CONCAT(name, '!')",
    "UPDATE m SET c = 'k' WHERE free = 'f'",
    "UPDATE v SET n = 3 WHERE name = 'dora'",
    "UPDATE m SET n = 1 ORDER BY n DESC LIMIT 2",
    "INSERT INTO m (id, name) VALUES (50, 'z') ON DUPLICATE KEY UPDATE name = CONCAT(name, '2'), n = n + 1",
    "INSERT INTO m (id, name) VALUES (51, UPPER('y'))",
    "REPLACE INTO m (id, name, n) VALUES (51, 'replaced', 9)",
    "INSERT INTO parents VALUES (7, 'seven')",
    "INSERT INTO children VALUES (7, 'seven')",
    "UPDATE parents SET mail = 'Seven' WHERE id = 7",
    "DELETE FROM m WHERE free = 'nothing'",
    "DELETE FROM nokey WHERE s > 'a' ORDER BY s LIMIT 1",
    "CREATE TABLE made (id INT PRIMARY KEY, c VARCHAR(20) {eq, join:mails}, FOREIGN KEY (c) REFERENCES parents (mail))",
    "CREATE TABLE copied LIKE m",
    "ALTER TABLE made ADD e VARCHAR(5) {eq}",
    "ALTER TABLE made MODIFY e VARCHAR(6) {eq}",
    "CREATE VIEW made_v AS SELECT id, c FROM made",
    "INSERT INTO made VALUES (1, 'seven', 'e')",
    "UPDATE made_v SET c = NULL WHERE id = 1",
    "DROP VIEW made_v",
    "DROP TABLE made, copied",
];

/// Sizes that bound every `SELECT` of more than one row, and how they are set.
const BOUNDS: [&str; 4] = [
    "SET max_join_size = 1",
    "SET SESSION max_join_size = 2, SESSION sql_big_selects = 0",
    "SET max_join_size = 1; SET sql_big_selects = 1; SET sql_big_selects = 0",
    "SET max_join_size = DEFAULT; SET max_join_size = 3",
];

/// How old what a proxy knows of a table may be, and some more.
const A_WHILE: std::time::Duration = std::time::Duration::from_millis(1200);

/// `max_join_size` bounds the client's queries. What the proxy asks for itself is no query of the
/// client's.
fn a_bound_for_joins_is_not_about_own_questions(kind: Kind) {
    for has_engine in [false, true] {
        let options = PairOptions {
            engine: match has_engine {
                true => Engine::Own,
                false => Engine::Missing,
            },
            ..PairOptions::default()
        };
        let Some(mut pair) = Pair::start_with(kind, options) else {
            return;
        };
        for table in TABLES.split(';') {
            pair.create(table);
        }
        for sql in STATEMENTS.iter().take(25) {
            pair.same_if_done(sql);
        }
        let mut compared = Compared::default();
        for bound in BOUNDS {
            pair.plain = Session::open(pair.beside().port(), "root", "", Some("app"));
            pair.protected = pair.proxy.connect_to("app");
            std::thread::sleep(A_WHILE);
            for set in bound.split("; ") {
                pair.run(set);
            }
            for sql in OF_ANY_SIZE {
                let (protected, bare) = with_and_without_protection(sql);
                compared.compare(&mut pair, bound, &protected, &bare);
            }
            assert!(compared.different.is_empty(), "{:#?}", compared.different);
            pair.same("SELECT @@max_join_size, @@sql_big_selects");
            pair.run("SET max_join_size = DEFAULT");
            for table in ["m", "parents", "children", "nokey"] {
                pair.same_rows_in_any_order(&format!("SELECT * FROM {table}"), &[]);
            }
        }
        // what is refused under any bound
        let mut known = vec!["OS1002", "OS1003", "OS1005", "OS1027", "OS1040"];
        if has_engine {
            // it has no keys
            known.push("the session's max_join_size");
        }
        let is_other = |text: &&String| !known.iter().any(|code| text.contains(code));
        let refused: Vec<_> = compared.refused.iter().filter(is_other).collect();
        assert!(refused.is_empty(), "{refused:#?}");
        assert!(compared.answers > 60, "{}", compared.answers);
        println!("{} refused", compared.refused.len());
    }
}

/// What both say, unless the proxy refuses; then the plain server is not asked.
#[derive(Default)]
struct Compared {
    answers: usize,
    refused: Vec<String>,
    different: Vec<String>,
}

impl Compared {
    /// Whether both did it. `bare` is the statement for the plain server.
    fn compare(&mut self, pair: &mut Pair, setting: &str, sql: &str, bare: &str) -> bool {
        let protected = pair.protected.run(sql);
        if let Err(failure) = &protected
            && failure.message.starts_with("OS")
        {
            self.refused.push(format!("{setting}: {sql}: {failure}"));
            return false;
        }
        self.answers += 1;
        let plain = pair.plain.run(bare);
        let done = protected.is_ok() && plain.is_ok();
        let plain = seen(plain, &mut pair.plain);
        let mut protected = seen(protected, &mut pair.protected);
        if plain != protected {
            protected = with_the_moments_of(&plain, &protected);
        }
        if plain != protected {
            self.different.push(format!(
                "{setting}: {sql}\n  plain     {plain}\n  protected {protected}"
            ));
        }
        done
    }
}

/// The two servers store the present time one after the other, so it may be two different seconds.
const MOST_SECONDS_BETWEEN: i64 = 3;

/// `theirs` with each date and time of `other` that stands at the same place and is at most
/// [`MOST_SECONDS_BETWEEN`] away.
fn with_the_moments_of(other: &str, theirs: &str) -> String {
    const FORMAT: &str = "%Y-%m-%d %H:%M:%S";
    const LENGTH: usize = "2020-01-01 00:00:00".len();
    let mut same = theirs.to_owned();
    if other.len() != same.len() {
        return same;
    }
    let mut at = 0;
    while at + LENGTH <= same.len() {
        let moment = |text: &str| {
            let part = text.get(at..at + LENGTH)?;
            // a blank before the year would be skipped
            part.as_bytes().first().filter(|b| b.is_ascii_digit())?;
            chrono::NaiveDateTime::parse_from_str(part, FORMAT).ok()
        };
        let (Some(a), Some(b)) = (moment(other), moment(&same)) else {
            at += 1;
            continue;
        };
        if (a - b).num_seconds().abs() <= MOST_SECONDS_BETWEEN {
            same.replace_range(at..at + LENGTH, &other[at..at + LENGTH]);
        }
        at += LENGTH;
    }
    same
}

#[test]
fn only_moments_that_are_near_are_the_same() {
    let plain = "1\t2026-11-24 07:33:32\t2020-01-01 00:00:00";
    let later = "1\t2026-11-24 07:33:34\t2020-01-01 00:00:00";
    let wrong = "1\t2026-11-24 08:33:32\t2020-01-01 00:00:00";
    assert_eq!(with_the_moments_of(plain, later), plain);
    assert_eq!(with_the_moments_of(plain, wrong), wrong);
    assert_eq!(with_the_moments_of(plain, "2\t2"), "2\t2");
}

/// Rows, counts, and the warnings in any order: which comes first is the plan's choice. Of an error
/// the number: names in its text differ.
fn seen(answer: Answer, session: &mut Session) -> String {
    let done = match answer {
        Ok(done) => done,
        Err(failure) => return format!("error {}", failure.code),
    };
    let mut shown = String::new();
    if done.warnings > 0 {
        let list = session.run("SHOW WARNINGS").map(|list| list.text());
        let list = list.unwrap_or_else(|failure| failure.to_string());
        let mut lines: Vec<&str> = list.lines().collect();
        lines.sort_unstable();
        shown = lines.join("; ");
    }
    format!(
        "{:?} affected {} id {} warnings {} {shown}",
        done.text(),
        done.affected,
        done.insert_id,
        done.warnings
    )
}

const CLEANING: &[&str] = &[
    "SET foreign_key_checks = 0",
    "TRUNCATE TABLE m",
    "TRUNCATE TABLE stamps",
    "TRUNCATE TABLE texts",
    "TRUNCATE TABLE children",
    "TRUNCATE TABLE parents",
    "TRUNCATE TABLE nokey",
    "DROP TABLE IF EXISTS made",
];

/// `None`: the server does not take it.
fn under(pair: &mut Pair, set: &str, defines: bool) -> Option<Compared> {
    let port = pair.beside().port();
    for cleans in [true, false] {
        pair.plain = Session::open(port, "root", "", Some("app"));
        pair.protected = pair.proxy.connect_to("app");
        if cleans {
            CLEANING.iter().for_each(|statement| pair.run(statement));
        }
    }
    let mut compared = Compared::default();
    if !set.is_empty() {
        pair.plain.run(set).ok()?;
        pair.protected.must(set);
    }
    let seeded: &[&str] = match set.contains("rand_seed") {
        true => WITH_SEEDS,
        false => &[],
    };
    for sql in STATEMENTS.iter().chain(seeded).chain(QUERIES) {
        compared.compare(pair, set, sql, sql);
    }
    for definition in DEFINITIONS.iter().filter(|_| defines) {
        let (sql, bare) = with_and_without_protection(definition);
        if compared.compare(pair, set, &sql, &bare) {
            for sql in FILLINGS {
                compared.compare(pair, &format!("{set}, {definition}"), sql, sql);
            }
        }
        for session in [&mut pair.protected, &mut pair.plain] {
            let _ = session.run("DROP TABLE made");
        }
    }
    Some(compared)
}

fn statements_mean_what_they_mean_to_the_server(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(kind, TABLES) else {
        return;
    };
    let without = |lines: &[String], setting: &str| -> Vec<String> {
        let strip = |line: &String| line.replacen(setting, "", 1);
        lines.iter().map(strip).collect()
    };
    // what differs, or is refused, without any setting is another test's
    let usual = under(&mut pair, "", true).expect("no setting");
    let (mut settings, mut answers) = (0, 0);
    let (mut refused, mut different) = (Vec::new(), Vec::new());
    for (name, values, defines) in VALUES {
        for value in *values {
            let set = format!("SET SESSION {name} = {value}");
            let Some(mut compared) = under(&mut pair, &set, *defines) else {
                continue;
            };
            settings += 1;
            answers += compared.answers;
            let bare = without(&compared.different, &set);
            let known = |line: &String| usual.different.contains(line);
            let mut is_new = bare.iter().map(|line| !known(line));
            compared.different.retain(|_| is_new.next().unwrap());
            let bare = without(&compared.refused, &set);
            let known = |line: &String| usual.refused.contains(line);
            let mut is_new = bare.iter().map(|line| !known(line));
            compared.refused.retain(|_| is_new.next().unwrap());
            if !compared.refused.is_empty() {
                let count = compared.refused.len();
                announce(&format!(
                    "{set}: {} answers, {count} refused",
                    compared.answers
                ));
            }
            refused.append(&mut compared.refused);
            different.append(&mut compared.different);
        }
    }
    announce(&format!(
        "{settings} settings, {answers} answers compared, {} refused",
        refused.len()
    ));
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(refused.len() < answers / 4, "{}", refused.join("\n"));
    assert!(settings >= 60, "{settings}");
}

/// Variables under which nothing near protected tables is answered.
const DANGEROUS: &[(&str, &str)] = &[
    ("check_constraint_checks", "0"),
    ("explicit_defaults_for_timestamp", "0"),
    ("lc_messages", "'de_DE'"),
    ("max_error_count", "0"),
    ("max_sort_length", "64"),
    ("old_mode", "'ZERO_DATE_TIME_CAST'"),
    ("sql_mode", "'EMPTY_STRING_IS_NULL'"),
    ("system_versioning_asof", "'2020-01-01 00:00:00'"),
];

/// Ways to set a variable: `NAME` and `VALUE`, and `QUOTED` for the value in a text.
const WAYS: &[&[&str]] = &[
    &["SET NAME = VALUE"],
    &["SET SESSION NAME = VALUE"],
    &["SET LOCAL NAME = VALUE"],
    &["SET @@NAME = VALUE"],
    &["SET @@session.NAME = VALUE"],
    &["SET @o = 1, @@local.NAME = VALUE"],
    &["/*!40101 SET NAME = VALUE */"],
    &["SELECT 1; SET NAME = VALUE"],
    &["PREPARE s FROM 'SET NAME = QUOTED'", "EXECUTE s"],
    &["PREPARE s FROM 'SET @@NAME = QUOTED'", "EXECUTE s"],
    &["EXECUTE IMMEDIATE 'SET NAME = QUOTED'"],
    &["BEGIN NOT ATOMIC SET NAME = VALUE; END"],
    &[
        "DROP PROCEDURE IF EXISTS sets",
        "CREATE PROCEDURE sets() SET SESSION NAME = VALUE",
        "CALL sets()",
    ],
    &[
        "DROP FUNCTION IF EXISTS sets",
        "CREATE FUNCTION sets() RETURNS INT NO SQL BEGIN SET SESSION NAME = VALUE; RETURN 1; END",
        "SELECT sets()",
    ],
    &[
        "DROP FUNCTION IF EXISTS sets",
        "CREATE FUNCTION sets() RETURNS INT NO SQL BEGIN SET @@NAME = VALUE; RETURN 1; END",
        "DO sets()",
    ],
];

/// Ways to set it for one statement.
const FOR_ONE: &[&str] = &[
    "SET STATEMENT NAME = VALUE FOR SELECT id FROM m WHERE name = 'ann'",
    "SELECT /*+ SET_VAR(NAME = VALUE) */ id FROM m WHERE name = 'ann'",
    "INSERT /*+ SET_VAR(NAME = VALUE) */ INTO m (name) VALUES ('kim')",
];

const QUESTION: &str = "SELECT id FROM m WHERE name = 'ann'";

/// What a server, or the proxy, said.
type Answer = Result<Outcome, Failure>;

fn is_refused(answer: &Answer) -> bool {
    matches!(answer, Err(failure) if failure.message.starts_with("OS"))
}

fn what_changes_meanings_is_refused_however_it_is_set(kind: Kind) {
    if direct_mode() {
        return;
    }
    let options = ServerOptions {
        extra: vec!["--log-bin-trust-function-creators=1".into()],
        ..ServerOptions::default()
    };
    let Some(server) = Server::start(kind, options) else {
        return;
    };
    let mut direct = server.connect();
    direct.must("CREATE DATABASE app DEFAULT CHARSET utf8mb4");
    let proxy = Proxy::start(&server, "");
    let mut session = proxy.connect_to("app");
    session.must(
        "CREATE TABLE m (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20) ENCRYPTED FOR (eq))",
    );
    session.must("INSERT INTO m (name) VALUES ('ann')");
    let mut set_by = 0;
    for (name, value) in DANGEROUS {
        let spell = |text: &str| {
            let quoted = value.replace('\'', "''");
            text.replace("NAME", name)
                .replace("VALUE", value)
                .replace("QUOTED", &quoted)
        };
        let set = spell("SET SESSION NAME = VALUE");
        if server.connect().run(&set).is_err() {
            continue;
        }
        for way in WAYS {
            let mut session = proxy.connect_to("app");
            let usual = session.must(&spell("SELECT @@NAME")).text();
            // plans made before must not be used behind it
            session.must(QUESTION);
            session.execute(QUESTION, ()).expect("prepared");
            let tried: Vec<Answer> = way.iter().map(|sql| session.run(&spell(sql))).collect();
            // what was said of the last of them is asked about no more
            session.must("DO 0");
            let now = session.must(&spell("SELECT @@NAME")).text();
            let answers = [session.run(QUESTION), session.execute(QUESTION, ())];
            let refused = answers.each_ref().map(is_refused);
            assert_eq!(
                refused,
                [now != usual; 2],
                "{name}, {way:?}: {tried:?} {answers:?}"
            );
            set_by += usize::from(now != usual);
            session.must(&spell("SET SESSION NAME = DEFAULT"));
            session.must(QUESTION);
            session.execute(QUESTION, ()).expect("prepared");
        }
        for one in FOR_ONE {
            let answer = session.run(&spell(one));
            let is_foreign = matches!(&answer, Err(failure) if failure.code == 1064);
            assert!(
                is_foreign || is_refused(&answer),
                "{}: {answer:?}",
                spell(one)
            );
        }
        let mut session = proxy.connect_to("app");
        session.must(&set);
        assert!(is_refused(&session.run(QUESTION)), "{set}");
        session.conn().reset().expect("a reset");
        session.must("USE app");
        session.must(QUESTION);
        direct.must(&spell("SET GLOBAL NAME = VALUE"));
        assert!(
            is_refused(&proxy.connect_to("app").run(QUESTION)),
            "{name} by default"
        );
        direct.must(&spell("SET GLOBAL NAME = DEFAULT"));
        proxy.connect_to("app").must(QUESTION);
    }
    announce(&format!("set in {set_by} ways"));
    assert!(set_by >= 30, "{set_by}");
}

fn every_variable_is_in_the_documentation(kind: Kind) {
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let page = std::fs::read_to_string(checkout().join("docs/settings.md")).expect("the page");
    let mut session = server.connect();
    let names = match kind {
        Kind::MariaDb => {
            "SELECT LOWER(variable_name) FROM information_schema.system_variables \
             WHERE variable_scope LIKE 'SESSION%' AND read_only = 'NO'"
        }
        Kind::MySql => {
            "SELECT variable_name FROM performance_schema.variables_metadata WHERE variable_scope <> 'GLOBAL'"
        }
    };
    let names = session.must(names).text();
    assert!(names.lines().count() > 120, "{names}");
    let mut words = String::new();
    if kind == Kind::MariaDb {
        let list = "SELECT enum_value_list FROM information_schema.system_variables WHERE variable_name = 'sql_mode'";
        words = session.must(list).text().replace(',', "\n");
    }
    let is_named = |name: &&str| page.contains(&format!("`{name}`"));
    let missing: Vec<&str> = names
        .lines()
        .chain(words.lines())
        .filter(|name| !is_named(name))
        .collect();
    assert!(missing.is_empty(), "not in docs/settings.md: {missing:?}");
}
