//! Of MySQL's files.

use super::{AUTO_INCREMENT, DERIVED, HINT, Known, LONGER, PLAN, SUMS, TIES};

pub const KNOWN: &[Known] = &[
    ("*", "EXECUTE ef8", PLAN),
    ("*", "EXECUTE evc", PLAN),
    ("range_none", "execute stmt1", PLAN),
    ("range_none", "EXECUTE stmt1 USING @v1,@v2,@v3,@v4", PLAN),
    (
        "range_none",
        "@trace RLIKE",
        "the optimizer's trace of a statement over tokens",
    ),
    ("range_none", "INSERT INTO t100(I,J)", AUTO_INCREMENT),
    (
        "ctype_utf8",
        "(_utf8mb3 0xe880bd)",
        "utf8mb3 is deprecated, says the server of an introducer, which does not reach it",
    ),
    (
        "ctype_utf8",
        "(N'\\\\')",
        "utf8mb3 is deprecated, says the server of N'…', which does not reach it",
    ),
    (
        "ctype_utf8",
        "select a from t1 group by a",
        "a group of texts that are equal to the collation and not the same is shown as any of them",
    ),
    (
        "derived",
        "UPDATE (SELECT * FROM t1) AS dt SET b=b+1",
        DERIVED,
    ),
    ("insert", "replace into t1 (a,a)", TWICE),
    ("insert", "insert into t1 (a,a) values (1,1,1)", TWICE),
    ("insert", "update ignore t1 set data=", PREPARED_WARNS),
    ("insert", "execute stmt", PREPARED_WARNS),
    ("func_misc", "PREPARE st FROM", PREPARED_WARNS),
    ("func_misc", "EXECUTE st", PREPARED_WARNS),
    (
        "func_group",
        "(RAND())",
        "RAND() gives another value each time",
    ),
    (
        "func_prefix_key",
        "ADD KEY k3 (b(2))",
        "an index over a prefix is one over the whole token: the server warns that it has two of them",
    ),
    ("func_str", "CONVERT(1 USING utf32)", BLANKS),
    ("subquery_none", " IN  (SELECT 1 FROM t1)", BLANKS),
    ("subquery_none", "FORCE INDEX (indexa)", HINT),
    (
        "func_str_myisam",
        "REPLACE(bugdesc,",
        "BLOB or MEDIUMBLOB: the type of REPLACE depends on the temporary table that the optimizer takes",
    ),
    (
        "insert_select",
        "on duplicate key update x=values(x)",
        "the clause behind ON DUPLICATE KEY UPDATE is looked at where there are rows, and the query has none",
    ),
    (
        "join",
        "columns.TABLE_CATALOG",
        "columns of information_schema.COLUMNS are computed, so their types are those of expressions",
    ),
    (
        "type_temporal_fractional",
        "INFORMATION_SCHEMA.COLUMNS",
        "columns of information_schema.COLUMNS are computed, so their types are those of expressions",
    ),
    (
        "with_non_recursive",
        "select VIEW_DEFINITION",
        "the text of a view is computed, so its type is that of an expression",
    ),
    (
        "view",
        "information_schema.views",
        "values in the texts of views are not shown, and views that were refused are not there",
    ),
    (
        "view",
        "DROP VIEW v1",
        "a view whose replacement was refused is still there",
    ),
    (
        "join_outer",
        "LEFT JOIN vmerge",
        "INT or BIGINT: the type of a constant in a view depends on whether the view is merged",
    ),
    (
        "window_functions",
        "LEAD(t2.col1, 5)",
        "INT or BIGINT: the type of LEAD depends on the temporary table that the optimizer takes",
    ),
    (
        "with_non_recursive",
        "update t1, qn set qn.a=qn.a+10",
        DERIVED,
    ),
    ("key", "FROM t WHERE x ", SHORT_KEY),
    (
        "multi_update",
        "select * from t2",
        "whether an assignment to the second table sees that to the first depends on the optimizer's plan, says the file",
    ),
    (
        "multi_update",
        "SELECT ROW_COUNT()",
        "asks about a statement that was refused",
    ),
    ("type_bit_myisam", "insert into t1 values (b'0", MYISAM),
    (
        "type_date",
        "insert into t1 values ('0000-01-01'), ('0000-00-01')",
        MYISAM,
    ),
    ("type_date", "DEFAULT '0000-00-00'", ZERO_DATE),
    ("type_datetime", "DEFAULT '0000-00-00", ZERO_DATE),
    ("type_float", "select sum(b) s", SUMS),
    (
        "type_newdecimal",
        "89000000000000000000000000000000000000000000000000",
        "a number beyond the digits of DECIMAL warns twice",
    ),
    ("type_temporal_fractional", "SHOW CREATE TABLE t1", OF_NULL),
    ("type_temporal_fractional", "SELECT * FROM t1", OF_NULL),
    ("update", "SELECT * FROM t1", TIES),
    (
        "select_none",
        "select * from t1 natural join v1",
        "how often a condition of an outer join warns is the plan's choice",
    ),
    (
        "view",
        "BETWEEN CAST('2005.01.02' AS DATE)",
        "a constant that warns is computed once, and not each time that the optimizer looks at it",
    ),
    (
        "type_temporal_fractional",
        "MODIFY a TIMESTAMP",
        "cells of another type are written anew, and their rows counted",
    ),
    ("type_varchar", "alter table t1 change v v", LONGER),
];

const TWICE: &str = "a column that is named twice (1110) is looked for behind the number of values, and not at PREPARE";
const PREPARED_WARNS: &str = "a warning of a constant comes with each EXECUTE, and not with PREPARE: the server gets another statement then";
const BLANKS: &str = "the name of a column that is a text: several blanks in it are one";
const SHORT_KEY: &str = "the server's own fault (35169384): with an index over VARCHAR(1) it cuts 'ae' before it looks for it, and misses 'æ'";
const MYISAM: &str = "strict mode without transactions: an engine that has none takes what comes behind the first row as if there were no strict mode";
const ZERO_DATE: &str =
    "a DEFAULT of zero date with NO_ZERO_DATE and without strict mode: the proxy does not warn";
const OF_NULL: &str = "a variable that a refused SELECT … INTO should have set";
