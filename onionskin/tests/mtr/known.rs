//! Differences that are known, with the reason for each. They count as differences, and stand in
//! docs/sql.md; only others fail the test.

use super::report::Difference;
use super::suite::Suite;

#[path = "known/mysql.rs"]
mod mysql;

/// File (`*`: any), a part of the statement, and why the answers differ.
type Known = (&'static str, &'static str, &'static str);

/// Of MariaDB's files.
const KNOWN: &[Known] = &[
    (
        "select",
        "where key1 <= 0.6158",
        "MIN and MAX of a FLOAT beside a decimal constant: with an index the server rounds the constant to FLOAT, without one it compares exactly",
    ),
    (
        "select",
        "where key2 <= 1.6158",
        "MIN and MAX of a FLOAT beside a decimal constant, as above",
    ),
    (
        "select",
        "where key1 >= 0.3762",
        "MIN and MAX of a FLOAT beside a decimal constant, as above",
    ),
    (
        "select",
        "where key2 >= 1.3762",
        "MIN and MAX of a FLOAT beside a decimal constant, as above",
    ),
    (
        "select",
        "wrong-date-value",
        "warnings of a range that the optimizer looks at in an index; the scratch engine has no index and meets no row",
    ),
    ("func_in", "EXECUTE stmt", PLAN),
    (
        "func_math",
        "UUID_SHORT()",
        "UUID_SHORT() gives another value each time",
    ),
    (
        "func_time",
        "SYS_GUID()",
        "SYS_GUID() gives another value each time",
    ),
    (
        "insert",
        "insert into t1 values (default,default,default,default)",
        "another proxy has made the table a moment before: a first try, which the server refused, has taken numbers of AUTO_INCREMENT",
    ),
    (
        "delete",
        "delete ignore t11.*, t12.*",
        "IGNORE makes a warning of a subquery's error, each time that the optimizer runs it",
    ),
    (
        "having",
        "HAVING MAX(t1.b) <> 6",
        "without rows, the server's answer depends on whether its tables are constant to the optimizer",
    ),
    (
        "order_by",
        "select a from t1 order by a",
        "max_sort_length is 4 bytes there: the server sorts by the beginning only, the proxy by the whole",
    ),
    (
        "order_by",
        "select * from t1 order by b",
        "Out of sort memory, with a sort buffer that is too small on purpose: the proxy sorts itself",
    ),
    (
        "order_by",
        "SELECT * FROM t1 ORDER BY a,b",
        "Out of sort memory, with a sort buffer that is too small on purpose: order keys are longer",
    ),
    (
        "subselect",
        "show warnings",
        "an error that aborts a sort raises a second one, which the proxy does not see",
    ),
    (
        "*",
        "show table status",
        "the version of the table's definition file, and what its rows take on disk: sealed cells are longer, and there is a CHECK constraint",
    ),
    (
        "range",
        "INSERT INTO t100(I,J) VALUES(8,26)",
        AUTO_INCREMENT,
    ),
    ("order_by", "SELECT * FROM v1", AUTO_INCREMENT),
    ("order_by", "WHERE b = 1 ORDER BY c DESC LIMIT", TIES),
    (
        "key",
        "alter table t1 add index (c1)",
        "an index without a name gets its column's, also where an index of that name is there already",
    ),
    (
        "join",
        "from information_schema.statistics join information_schema.columns",
        "VARCHAR or TEXT: columns of information_schema.COLUMNS are computed, and temporary tables keep long ones as TEXT",
    ),
    (
        "insert_select",
        "on duplicate key update x=values(z)",
        "the clause behind ON DUPLICATE KEY UPDATE is looked at where there are rows, and the query has none",
    ),
    (
        "ctype_utf8",
        "select a from t1 group by a",
        "a group of texts that are equal to the collation and not the same is shown as any of them; at the plain server it is the first by chance of its plan",
    ),
    (
        "ctype_utf8",
        "found_rows()",
        "asks about a statement that was refused",
    ),
    (
        "func_group",
        "(SELECT SUM(c.a) FROM t1 ttt, t2 ccc",
        "a column of any row of the group",
    ),
    (
        "func_group",
        "RAND()",
        "RAND() gives another value each time",
    ),
    ("type_bit", "order by", TIES),
    ("type_bit_innodb", "order by", TIES),
    ("type_date", "INSERT INTO t1", ZERO_DATE),
    ("type_datetime", "INSERT INTO t1", ZERO_DATE),
    ("type_date", "ALTER TABLE t1 ADD b INT NOT NULL", ZERO_DATE),
    (
        "type_datetime",
        "ALTER TABLE t1 ADD b INT NOT NULL",
        ZERO_DATE,
    ),
    (
        "type_enum",
        "SELECT id,MIN(a),MAX(a)",
        "VARCHAR or CHAR: the type of MIN and MAX of an ENUM depends on the temporary table that the optimizer takes",
    ),
    (
        "type_enum",
        "INSERT IGNORE INTO t1 SELECT * FROM t2",
        "a value that a query makes and no member is warns where the query runs, and once more where its row is stored",
    ),
    (
        "type_timestamp",
        "INSERT INTO t2 SELECT a FROM t1",
        "a value that the column changes warns where the query runs, and once more where its row is stored",
    ),
    (
        "type_timestamp",
        "'1970-01-01 00:00:00.",
        "the first second of 1970 is refused as the server refuses its beginning",
    ),
    (
        "type_timestamp",
        "show create table t1",
        "TIMESTAMP columns under sql_mode MAXDB, or without explicit_defaults_for_timestamp, are defined as if neither were so",
    ),
    (
        "type_blob",
        "alter table t1 add column b blob, alter column b set default",
        "a column that is added and altered by one ALTER TABLE",
    ),
    (
        "type_newdecimal",
        "89000000000000000000000000000000000000000000000000",
        "a number beyond the digits of DECIMAL warns twice",
    ),
    (
        "type_ranges",
        "insert ignore into t1 values (0,1/3",
        "a constant that is computed raises no note when it is stored",
    ),
    (
        "type_geometry_mix_int",
        "SELECT @alter",
        "a text that the file makes of definitions in information_schema",
    ),
    (
        "type_geometry_mix_int",
        "EXECUTE IMMEDIATE @alter",
        "a text that the file makes of definitions in information_schema",
    ),
    (
        "type_temporal_innodb",
        "CREATE TABLE tbl SELECT * FROM t1 WHERE t1.c1",
        "the query runs before the table is made, as a SELECT, where a condition warns",
    ),
    (
        "type_varchar",
        "SHOW WARNINGS",
        "the warning before a DEFAULT that is refused (1067), which is not the server's own to refuse",
    ),
    ("func_str", "load_locale_format_table", ROUTINE),
    ("func_str", "SELECT * FROM locale_format", ROUTINE),
    ("type_time", "CALL p1", ROUTINE),
    (
        "func_in",
        "INSERT IGNORE INTO t1 (c_int) SELECT 0 FROM t1",
        "what an INSERT … SELECT itself lacks is looked at where there are rows, and the query has none",
    ),
    (
        "func_misc",
        "CREATE TABLE `t1` (",
        "a table of so many columns that their companions exceed the row",
    ),
    (
        "func_misc",
        "57813X541X17271",
        "a table of so many columns that their companions exceed the row",
    ),
    (
        "func_misc",
        "drop table t1",
        "a table of so many columns that their companions exceed the row",
    ),
    (
        "func_str",
        "SELECT * FROM t1, t2 WHERE num=str",
        "the optimizer compares some pairs of rows twice",
    ),
    (
        "func_time",
        "timestampadd(week, 1, date(\"0000-00-00\"))",
        KEEPS_WARNINGS,
    ),
    ("func_time_round", "SELECT GREATEST(TIME", KEEPS_WARNINGS),
    (
        "cte_grant",
        "select c,d from mysqltest.t2 where c < 2",
        UNSEEN,
    ),
    ("cte_grant", "select b from t2 where a < 4", UNSEEN),
    (
        "multi_update",
        "last_value (c2) over (order by c2)",
        "two errors in one statement: another one is found first",
    ),
    (
        "select",
        "VARCHAR(16383) CHARACTER SET UTF32, KEY k(a)",
        "the server warns that it cuts the key; that over tokens is not too long",
    ),
    (
        "derived",
        "update (select * from t1) as t1 set a = 5",
        DERIVED,
    ),
    ("derived", "SET P1.M = 2, P2.N = 2", DERIVED),
    (
        "group_by",
        "UPDATE t1 SET c=1 ORDER BY (SELECT c)",
        "two errors in one statement: another one is found first",
    ),
    ("join", "CALL p", ROUTINE),
    ("subselect", "FORCE INDEX (indexa)", HINT),
    (
        "type_enum",
        "insert into t1 (a) values (2)",
        "of an ENUM that is left out the server warns where the table has a trigger, and not where it has none; the proxy writes its first member",
    ),
    ("type_float", "select sum(b) s from t1 group by a", SUMS),
    ("type_varchar", "alter table t1 change v v", LONGER),
    ("view", "SHOW CREATE TABLE t2", MADE_OF_MAX),
    ("func_group", "SHOW CREATE TABLE t2", MADE_OF_MAX),
    ("ctype_utf8", "EXECUTE stmt USING @arg", PLAN),
    ("type_decimal", "EXPLAIN EXTENDED", PLAN),
    (
        "type_blob",
        "WHERE indexed_col=",
        "a note of the optimizer's, which looks at an index that it cannot use; the scratch engine has none",
    ),
    (
        "order_by",
        "key `wnid14` (`wnid`(4))",
        "an index over a prefix is one over the whole token: the server notes that it has two of them",
    ),
    ("select", "SELECT * FROM t2 ORDER BY name", TIES),
    (
        "func_str",
        "REPLACE(bugdesc,",
        "BLOB or MEDIUMBLOB: the type of REPLACE depends on the temporary table that the optimizer takes",
    ),
];

const USING: &str = "EXECUTE … USING @a with an integer: the proxy puts the value into the text, so the width of a text made of it is that of the value, not that of any integer";
const PLAN: &str = "the server's plan: the statement that was prepared is an EXPLAIN";
const MADE_OF_MAX: &str = "a column made from MAX() has no default at the plain server, and the default NULL where it was made from the engine's definition";

const UNSEEN: &str = "a column that the account may not read does not exist for the proxy, which sees the schema with the account's eyes";

const AUTO_INCREMENT: &str = "INSERT … SELECT: InnoDB reserves numbers in growing blocks where it does not know how many rows come; the proxy \
     sends literal rows, so the next number is another";
const TIES: &str = "rows with equal keys, which stand in any order";
const ZERO_DATE: &str = "a DEFAULT of zero date, where sql_mode has forbidden it since: the error has another number, or is raised by what stores it";
const DERIVED: &str = "two errors in one statement: the column is looked up before it is seen that a derived table cannot be changed";
const HINT: &str =
    "the name of a column that is a text with an index hint, which the scratch engine does not get";
const SUMS: &str = "a sum of DOUBLE depends on the order of the rows in its last digits: zero, or little less than zero, which is shown as -0.00";
const LONGER: &str = "a longer VARCHAR has longer cells, for which rows are copied and counted";
const COPIED: &str = "ALTER TABLE adds columns with a CHECK, for which rows are copied and counted; plaintext would be added at once";
const ROUTINE: &str = "a routine that was made before the protected table: its statements do not go through the proxy";
const PACKET: &str = "the statement before: a value of 20 MB, which takes twice as much on the way when it is sealed, exceeds max_allowed_packet, and the server ends the session";
const KEEPS_WARNINGS: &str = "a statement without tables keeps the warnings of the one before, which was another one for the server";

/// Why this difference is known.
pub fn reason(suite: Suite, file: &str, difference: &Difference) -> Option<&'static str> {
    let sql = difference.sql.to_ascii_lowercase();
    let of_query = sql.starts_with("insert") && sql.contains("select");
    if difference.kind == "insert id" && of_query {
        return Some(AUTO_INCREMENT);
    }
    if difference.kind == "affected rows" && sql.starts_with("alter table") && sql.contains(" add ")
    {
        return Some(COPIED);
    }
    if file == "view"
        && let Some(reason) = of_views(difference, &sql)
    {
        return Some(reason);
    }
    let listed = |known: &[Known]| {
        known
            .iter()
            .find(|(f, part, _)| (*f == file || *f == "*") && difference.sql.contains(part))
            .map(|(_, _, reason)| *reason)
    };
    if suite == Suite::MySql {
        return listed(mysql::KNOWN);
    }
    if file == "union" && difference.kind == "the connection broke" {
        return Some(PACKET);
    }
    if file == "func_hybrid_type" && difference.detail.contains("`a` varchar(2) CHARACTER") {
        return Some(USING);
    }
    listed(KNOWN)
}

/// Of the files about views, where names mean little: the same stand for hundreds of views.
fn of_views(difference: &Difference, sql: &str) -> Option<&'static str> {
    let shows = sql.starts_with("show create view");
    let (kind, detail) = (difference.kind.as_str(), difference.detail.as_str());
    if kind.starts_with("error 1356 instead of") {
        return Some(
            "two errors in one statement: that the tables of a view are gone is found before what else is wrong",
        );
    }
    if kind == "number of warnings" && shows
        || kind == "number of rows" && detail.contains("'30' | '4' | '-60'")
    {
        return Some(
            "a view whose replacement was refused is still there, and of DROP VIEW of several none goes if one is missing",
        );
    }
    (kind == "rows" && shows && detail.contains("`My_exp_1_s1`"))
        .then_some("a name that the server makes where two columns of a view would have the same")
}
