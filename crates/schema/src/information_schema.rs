//! `information_schema.columns` and its like with logical tables.
//!
//! A query of a client on that view cannot be answered row by row, because it may filter, group and
//! join. So the proxy puts a derived table in its place, whose columns have the names and the order
//! of the view's and whose rows are the logical columns. All it needs stands in the comments, in
//! the text form that [`crate::comment`] describes. The server does not verify tags; what it
//! answers about itself is its own word anyway.
//!
//! Three levels: the innermost tells sealed columns and companions apart and gives each its logical
//! name; the middle one brings a companion's part in keys to its sealed column, and notes which
//! names are protected; the outermost drops the companions, numbers what is left and takes the
//! comments apart. The windows are partitioned by database and table, so that the server can push
//! conditions on these two down to the view.

use onionskin_value::Family;

use crate::comment::{DEFAULT_EXPRESSION, DEFAULT_NULL, ENCODED, ON_UPDATE, field};

/// A derived table, in parentheses and without alias, to stand in place of
/// `information_schema.columns`.
///
/// It holds no double quotes and no backslashes, so it means the same under every `sql_mode`.
pub fn information_schema_columns(family: Family) -> String {
    let columns: Vec<String> = view_columns(family)
        .iter()
        .map(|name| match logical(name, family) {
            Some(expression) => format!("{expression} AS {name}"),
            None => format!("m.{name}"),
        })
        .collect();
    let later = match family {
        Family::MariaDb => LATER_COLUMNS_OF_MARIADB,
        Family::MySql => "",
    };
    format!(
        "(SELECT {columns}{later} FROM (SELECT l.*, \
         ELT(MAX(IF(onionskin_role = 'c' AND COLUMN_NAME NOT REGEXP '[$]gram_[0-9a-f]{{4}}$', FIELD(COLUMN_KEY, '', 'MUL', 'UNI', 'PRI'), 1)) OVER ({group}), \
         '', 'MUL', 'UNI', 'PRI') AS onionskin_key, \
         MAX(onionskin_role = 's') OVER ({group}) AS onionskin_protected \
         FROM (SELECT c.*, {ROLE} AS onionskin_role, {LOGICAL_NAME} AS onionskin_name, \
         {default} AS onionskin_default \
         FROM information_schema.COLUMNS c) l) m \
         WHERE onionskin_role <> 'c' OR onionskin_protected = 0)",
        columns = columns.join(", "),
        default = decoded_bytes(&field_of_comment(field::DEFAULT)),
        group = "PARTITION BY TABLE_SCHEMA, TABLE_NAME, onionskin_name",
    )
}

/// `s` sealed, `c` companion or what a view says of its own name for a column, `p` plain. A
/// companion's form alone proves nothing; `onionskin_protected` does.
const ROLE: &str = "CASE WHEN COLUMN_NAME LIKE '_%$enc' AND COLUMN_COMMENT LIKE 'onionskin:_|%' THEN 's' \
     WHEN COLUMN_NAME REGEXP '.[$](eq|ord|gram)_[0-9a-f]{4}$' THEN 'c' \
     WHEN COLUMN_NAME REGEXP '.[$](of_.|as_[-_0-9A-Za-z]{22}$)' THEN 'c' ELSE 'p' END";

const LOGICAL_NAME: &str = "CASE WHEN COLUMN_NAME LIKE '_%$enc' AND COLUMN_COMMENT LIKE 'onionskin:_|%' \
     THEN LEFT(COLUMN_NAME, CHAR_LENGTH(COLUMN_NAME) - 4) \
     WHEN COLUMN_NAME REGEXP '.[$]eq_[0-9a-f]{4}$' THEN LEFT(COLUMN_NAME, CHAR_LENGTH(COLUMN_NAME) - 8) \
     WHEN COLUMN_NAME REGEXP '.[$]ord_[0-9a-f]{4}$' THEN LEFT(COLUMN_NAME, CHAR_LENGTH(COLUMN_NAME) - 9) \
     WHEN COLUMN_NAME REGEXP '.[$]gram_[0-9a-f]{4}$' THEN LEFT(COLUMN_NAME, CHAR_LENGTH(COLUMN_NAME) - 10) \
     WHEN COLUMN_NAME REGEXP '.[$]of_.' THEN SUBSTRING_INDEX(COLUMN_NAME, '$of_', 1) \
     WHEN COLUMN_NAME REGEXP '.[$]as_[-_0-9A-Za-z]{22}$' THEN LEFT(COLUMN_NAME, CHAR_LENGTH(COLUMN_NAME) - 26) \
     ELSE COLUMN_NAME END";

/// The columns that the view has besides since MariaDB 11.4.1, in a comment that servers before it
/// do not read. A protected column is no part of a period, so the sealed one says what is right.
const LATER_COLUMNS_OF_MARIADB: &str =
    " /*M!110401 , m.IS_SYSTEM_TIME_PERIOD_START, m.IS_SYSTEM_TIME_PERIOD_END*/";

/// The columns of the view, in its order, on all versions: MariaDB from 10.11 on and MySQL 8 and 9.
pub(crate) fn view_columns(family: Family) -> Vec<&'static str> {
    let mut columns = vec![
        "TABLE_CATALOG",
        "TABLE_SCHEMA",
        "TABLE_NAME",
        "COLUMN_NAME",
        "ORDINAL_POSITION",
        "COLUMN_DEFAULT",
        "IS_NULLABLE",
        "DATA_TYPE",
        "CHARACTER_MAXIMUM_LENGTH",
        "CHARACTER_OCTET_LENGTH",
        "NUMERIC_PRECISION",
        "NUMERIC_SCALE",
        "DATETIME_PRECISION",
        "CHARACTER_SET_NAME",
        "COLLATION_NAME",
        "COLUMN_TYPE",
        "COLUMN_KEY",
        "EXTRA",
        "PRIVILEGES",
        "COLUMN_COMMENT",
    ];
    columns.extend(match family {
        Family::MariaDb => ["IS_GENERATED", "GENERATION_EXPRESSION"],
        Family::MySql => ["GENERATION_EXPRESSION", "SRS_ID"],
    });
    columns
}

/// The expression for a column of the view that differs for sealed columns; `None` for the others.
fn logical(name: &str, family: Family) -> Option<String> {
    let text = |number| field_of_comment(number);
    let optional = |number| format!("NULLIF({}, '')", field_of_comment(number));
    let number = |number| format!("CAST(NULLIF({}, '') AS UNSIGNED)", field_of_comment(number));
    // of MySQL's these two have a sign; with an unsigned number they would be decimals
    let length = |number_of_field| match family {
        Family::MariaDb => number(number_of_field),
        Family::MySql => number(number_of_field).replace("UNSIGNED", "SIGNED"),
    };
    // what may be as long as a comment would be a TEXT, where the view has a VARCHAR
    let short = |text: String| match family {
        Family::MariaDb => format!("LEFT({text}, 64)"),
        Family::MySql => text,
    };
    let expression = match name {
        "COLUMN_NAME" => "onionskin_name".to_owned(),
        "ORDINAL_POSITION" => {
            return Some(
                // The qualifiers keep the new columns of these names out of it.
                "ROW_NUMBER() OVER (PARTITION BY m.TABLE_SCHEMA, m.TABLE_NAME ORDER BY m.ORDINAL_POSITION)"
                    .to_owned(),
            );
        }
        "COLUMN_DEFAULT" => default(family),
        "DATA_TYPE" => short(text(field::DATA_TYPE)),
        "CHARACTER_MAXIMUM_LENGTH" => length(field::CHARACTERS),
        "CHARACTER_OCTET_LENGTH" => length(field::OCTETS),
        "NUMERIC_PRECISION" => number(field::PRECISION),
        "NUMERIC_SCALE" => number(field::SCALE),
        "DATETIME_PRECISION" => number(field::FRACTION),
        "CHARACTER_SET_NAME" => short(optional(field::CHARSET)),
        "COLLATION_NAME" => short(optional(field::COLLATION)),
        "COLUMN_TYPE" => decoded(&field_of_comment(field::COLUMN_TYPE)),
        "COLUMN_KEY" => "onionskin_key".to_owned(),
        "EXTRA" => extra(family),
        "COLUMN_COMMENT" => decoded(&field_of_comment(field::COMMENT)),
        _ => return None,
    };
    Some(format!("IF(onionskin_role = 's', {expression}, m.{name})"))
}

fn field_of_comment(number: usize) -> String {
    format!("SUBSTRING_INDEX(SUBSTRING_INDEX(COLUMN_COMMENT, '|', {number}), '|', -1)")
}

/// The text of a field that may be in base64.
fn decoded(field: &str) -> String {
    as_text(&decoded_bytes(field))
}

fn decoded_bytes(field: &str) -> String {
    format!(
        "IF(LEFT({field}, 1) = '{ENCODED}', FROM_BASE64(SUBSTR({field}, 2)), CONVERT({field} USING binary))"
    )
}

/// Servers keep three-byte UTF-8 in their dictionaries and print other characters as question
/// marks. Here they come out as they are, because that conversion would leave a warning.
fn as_text(bytes: &str) -> String {
    format!("CONVERT({bytes} USING utf8mb4)")
}

/// COLUMN_DEFAULT, from the decoded field: nothing, `null`, or a value behind the sign that marks
/// it.
fn default(family: Family) -> String {
    let bytes = "SUBSTR(onionskin_default, 2)";
    let text = as_text(bytes);
    let data_type = field_of_comment(field::DATA_TYPE);
    match family {
        // The value as text; binary values in hexadecimal, cut at the first zero byte.
        Family::MySql => format!(
            "CASE WHEN onionskin_default IN ('', '{DEFAULT_NULL}') THEN NULL \
             WHEN LEFT(onionskin_default, 1) = '{DEFAULT_EXPRESSION}' THEN REPLACE(REPLACE({text}, _utf8mb4 X'5C', _utf8mb4 X'5C5C'), _utf8mb4 X'27', _utf8mb4 X'5C27') \
             WHEN {data_type} IN ('binary', 'varbinary') \
             THEN IF(LENGTH({bytes}) = 0, '', CONCAT('0x', HEX(SUBSTRING_INDEX({bytes}, X'00', 1)))) \
             ELSE {text} END"
        ),
        // The value as SQL; quotes are escaped in the defaults of long types, which are
        // expressions. MariaDB 11.8 shows those of binary types in hexadecimal.
        Family::MariaDb => {
            let is_long = format!("({data_type} LIKE '%text' OR {data_type} LIKE '%blob')");
            let quote = format!("IF({is_long}, _utf8mb4 X'5C27', _utf8mb4 X'2727')");
            let escaped = [
                ("5C", "_utf8mb4 X'5C5C'"),
                ("27", quote.as_str()),
                ("0A", "_utf8mb4 X'5C6E'"),
                ("0D", "_utf8mb4 X'5C72'"),
                ("00", "_utf8mb4 X'5C30'"),
            ]
            .iter()
            .fold(text.clone(), |text, (from, to)| {
                format!("REPLACE({text}, _utf8mb4 X'{from}', {to})")
            });
            format!(
                "CASE WHEN onionskin_default = '' THEN NULL \
                 WHEN onionskin_default = '{DEFAULT_NULL}' THEN 'NULL' \
                 WHEN LEFT(onionskin_default, 1) = '{DEFAULT_EXPRESSION}' THEN {text} \
                 WHEN {data_type} IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'decimal', 'float', \
                 'double', 'year', 'bit') THEN {text} \
                 /*M!110800 WHEN {data_type} IN ('binary', 'varbinary') AND LENGTH({bytes}) > 0 \
                 THEN CONCAT(_utf8mb4 X'7827', LOWER(HEX({bytes})), _utf8mb4 X'27') */ \
                 ELSE CONCAT(_utf8mb4 X'27', {escaped}, _utf8mb4 X'27') END"
            )
        }
    }
}

/// EXTRA: what stands there of the sealed column, behind what the comment tells.
fn extra(family: Family) -> String {
    let fraction = field_of_comment(field::FRACTION);
    let digits = format!("NULLIF(LEFT({fraction}, 1), '0')");
    let flags = field_of_comment(field::FLAGS);
    let (computed, present, separator) = match family {
        Family::MySql => (
            format!(
                "IF(LEFT(onionskin_default, 1) = '{DEFAULT_EXPRESSION}', 'DEFAULT_GENERATED', NULL), "
            ),
            format!(
                "CONCAT('on update CURRENT_TIMESTAMP', IFNULL(CONCAT('(', {digits}, ')'), ''))"
            ),
            " ",
        ),
        Family::MariaDb => (
            String::new(),
            format!("CONCAT('on update current_timestamp(', IFNULL({digits}, ''), ')')"),
            ", ",
        ),
    };
    let on_update = format!("IF(INSTR({flags}, '{ON_UPDATE}') > 0, {present}, NULL)");
    let all = format!(
        "CONCAT_WS('{separator}', {computed}{on_update}, IF(INSTR(m.EXTRA, 'INVISIBLE') > 0, 'INVISIBLE', NULL))"
    );
    match family {
        // as wide as the view's
        Family::MariaDb => format!("LEFT({all}, 80)"),
        Family::MySql => all,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_no_sql_mode() {
        for family in [Family::MariaDb, Family::MySql] {
            let sql = information_schema_columns(family);
            assert!(!sql.contains(['"', '\\', '`']), "{sql}");
            assert!(sql.starts_with('(') && sql.ends_with(')'));
            assert_eq!(view_columns(family).len(), 22);
        }
    }
}
