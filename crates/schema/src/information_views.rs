//! The views of `information_schema` beside `columns` that name columns or constraints, with
//! logical names.
//!
//! They know a physical name by its form alone, which is reserved. See `information_schema.rs` for
//! the view of columns and for how a derived table takes a view's place.

use onionskin_value::Family;

use crate::check::shown_clause;
use crate::information_schema::{information_schema_columns, view_columns};
use crate::key_actions::{DELETE_NULL, UPDATE_CASCADE, UPDATE_NULL};
use crate::prefix::MARK;

/// A view of `information_schema` that names physical columns or shows constraints of ours: its
/// columns on both families, on one of them, and what stands for some of them; which of its rows
/// are left out.
struct Other {
    name: &'static str,
    columns: &'static str,
    mariadb: &'static str,
    mysql: &'static str,
    /// Columns that hold the names of columns, or of indexes that servers name after them.
    names: &'static [&'static str],
    /// Columns that hold SQL text.
    texts: &'static [&'static str],
    rows: &'static str,
    /// A further condition on MySQL.
    rows_mysql: &'static str,
    /// The column with the table's database.
    schema: &'static str,
    /// What is joined to it.
    join: &'static str,
}

/// The flags of the first column of each foreign key over protected columns.
const FLAGS: &str = " LEFT JOIN (SELECT k.CONSTRAINT_SCHEMA AS onionskin_schema, k.CONSTRAINT_NAME AS onionskin_name, \
     k.TABLE_NAME AS onionskin_table, SUBSTRING_INDEX(SUBSTRING_INDEX(c.COLUMN_COMMENT, '|', 12), '|', -1) AS onionskin_flags \
     FROM information_schema.KEY_COLUMN_USAGE k JOIN information_schema.COLUMNS c \
     ON c.TABLE_SCHEMA = k.TABLE_SCHEMA AND c.TABLE_NAME = k.TABLE_NAME \
     AND c.COLUMN_NAME = CONCAT(LEFT(k.COLUMN_NAME, CHAR_LENGTH(k.COLUMN_NAME) - IF(k.COLUMN_NAME REGEXP '[$]eq_[0-9a-f]{4}$', 8, 9)), '$enc') \
     WHERE k.ORDINAL_POSITION = 1 AND k.REFERENCED_TABLE_NAME IS NOT NULL \
     AND k.COLUMN_NAME REGEXP '.[$](eq|ord)_[0-9a-f]{4}$' AND c.COLUMN_COMMENT LIKE 'onionskin:_|%') f \
     ON f.onionskin_schema = s.CONSTRAINT_SCHEMA AND f.onionskin_name = s.CONSTRAINT_NAME AND f.onionskin_table = s.TABLE_NAME";

/// Constraints of ours, by their names.
const NOT_OURS: &str = "CONSTRAINT_NAME NOT REGEXP '^~?onionskin_[0-9a-f]{16}_[0-9a-f]{8}$'";

static OTHERS: [Other; 7] = [
    Other {
        name: "STATISTICS",
        columns: "TABLE_CATALOG, TABLE_SCHEMA, TABLE_NAME, NON_UNIQUE, INDEX_SCHEMA, INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME, \
            COLLATION, CARDINALITY, SUB_PART, PACKED, NULLABLE, INDEX_TYPE, COMMENT, INDEX_COMMENT",
        mariadb: ", IGNORED",
        mysql: ", IS_VISIBLE, EXPRESSION",
        names: &["INDEX_NAME", "COLUMN_NAME"],
        texts: &[],
        // indexes over grams are ours
        rows: "(COLUMN_NAME IS NULL OR COLUMN_NAME NOT REGEXP '.[$]gram_[0-9a-f]{4}$')",
        rows_mysql: " AND (EXPRESSION IS NULL OR EXPRESSION NOT REGEXP '.[$]gram_[0-9a-f]{4}.')",
        schema: "TABLE_SCHEMA",
        join: "",
    },
    Other {
        name: "KEY_COLUMN_USAGE",
        columns: "CONSTRAINT_CATALOG, CONSTRAINT_SCHEMA, CONSTRAINT_NAME, TABLE_CATALOG, TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, \
            ORDINAL_POSITION, POSITION_IN_UNIQUE_CONSTRAINT, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME",
        mariadb: "",
        mysql: "",
        names: &["CONSTRAINT_NAME", "COLUMN_NAME", "REFERENCED_COLUMN_NAME"],
        texts: &[],
        rows: "1 = 1",
        rows_mysql: "",
        schema: "TABLE_SCHEMA",
        join: "",
    },
    Other {
        name: "TABLE_CONSTRAINTS",
        columns: "CONSTRAINT_CATALOG, CONSTRAINT_SCHEMA, CONSTRAINT_NAME, TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_TYPE",
        mariadb: "",
        mysql: ", ENFORCED",
        names: &["CONSTRAINT_NAME"],
        texts: &[],
        rows: NOT_OURS,
        rows_mysql: "",
        schema: "TABLE_SCHEMA",
        join: "",
    },
    Other {
        name: "CHECK_CONSTRAINTS",
        columns: "CONSTRAINT_CATALOG, CONSTRAINT_SCHEMA",
        mariadb: ", TABLE_NAME, CONSTRAINT_NAME, LEVEL, CHECK_CLAUSE",
        mysql: ", CONSTRAINT_NAME, CHECK_CLAUSE",
        // MariaDB names the constraint in a column's definition after the column
        names: &["CONSTRAINT_NAME"],
        texts: &[],
        rows: NOT_OURS,
        rows_mysql: "",
        schema: "CONSTRAINT_SCHEMA",
        join: "",
    },
    Other {
        name: "REFERENTIAL_CONSTRAINTS",
        columns: "CONSTRAINT_CATALOG, CONSTRAINT_SCHEMA, CONSTRAINT_NAME, UNIQUE_CONSTRAINT_CATALOG, UNIQUE_CONSTRAINT_SCHEMA, \
            UNIQUE_CONSTRAINT_NAME, MATCH_OPTION, UPDATE_RULE, DELETE_RULE, TABLE_NAME, REFERENCED_TABLE_NAME",
        mariadb: "",
        mysql: "",
        names: &["CONSTRAINT_NAME", "UNIQUE_CONSTRAINT_NAME"],
        texts: &[],
        rows: "1 = 1",
        rows_mysql: "",
        schema: "CONSTRAINT_SCHEMA",
        join: FLAGS,
    },
    Other {
        name: "COLUMN_PRIVILEGES",
        columns: "GRANTEE, TABLE_CATALOG, TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, PRIVILEGE_TYPE, IS_GRANTABLE",
        mariadb: "",
        mysql: "",
        names: &["COLUMN_NAME"],
        texts: &[],
        rows: "COLUMN_NAME NOT REGEXP '.[$]((eq|ord|gram)_[0-9a-f]{4}$|of_.|as_[-_0-9A-Za-z]{22}$)'",
        rows_mysql: "",
        schema: "TABLE_SCHEMA",
        join: "",
    },
    Other {
        name: "VIEWS",
        columns: "TABLE_CATALOG, TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION, CHECK_OPTION, IS_UPDATABLE, DEFINER, SECURITY_TYPE, \
            CHARACTER_SET_CLIENT, COLLATION_CONNECTION",
        mariadb: ", ALGORITHM",
        mysql: "",
        names: &[],
        texts: &["VIEW_DEFINITION"],
        rows: "1 = 1",
        rows_mysql: "",
        schema: "TABLE_SCHEMA",
        join: "",
    },
];

/// A view of `information_schema` that shows something physical.
#[derive(Clone, Copy)]
pub struct LogicalView(Shown);

#[derive(Clone, Copy)]
enum Shown {
    Columns,
    Other(&'static Other),
}

/// All of them.
pub fn logical_views() -> impl Iterator<Item = LogicalView> {
    let others = OTHERS.iter().map(Shown::Other);
    std::iter::once(Shown::Columns)
        .chain(others)
        .map(LogicalView)
}

impl LogicalView {
    /// Its name, in capital letters.
    pub fn name(self) -> &'static str {
        match self.0 {
            Shown::Columns => "COLUMNS",
            Shown::Other(view) => view.name,
        }
    }

    /// The names of its columns, in capital letters.
    pub fn columns(self, family: Family) -> Vec<&'static str> {
        match self.0 {
            Shown::Columns => view_columns(family),
            Shown::Other(view) => {
                let more = view
                    .more(family)
                    .split(", ")
                    .filter(|name| !name.is_empty());
                view.columns.split(", ").chain(more).collect()
            }
        }
    }

    /// A derived table, in parentheses and without alias, to stand in the view's place.
    ///
    /// It holds no double quotes and no backslashes, so it means the same under every `sql_mode`.
    pub fn derived(self, family: Family) -> String {
        match self.0 {
            Shown::Columns => information_schema_columns(family),
            Shown::Other(view) => derived(view, family),
        }
    }
}

impl Other {
    /// The columns that it has besides on one of the families.
    fn more(&self, family: Family) -> &'static str {
        match family {
            Family::MariaDb => self.mariadb,
            Family::MySql => self.mysql,
        }
    }
}

fn derived(view: &'static Other, family: Family) -> String {
    let mut columns: Vec<String> = LogicalView(Shown::Other(view))
        .columns(family)
        .into_iter()
        .map(|column| match () {
            () if view.names.contains(&column) => format!("{} AS {column}", logical_name(column)),
            () if view.texts.contains(&column) => {
                format!("{} AS {column}", logical_text(column, family))
            }
            () if column == "CHECK_CLAUSE" => {
                format!("{} AS {column}", shown_clause("s.CHECK_CLAUSE"))
            }
            () if column == "UPDATE_RULE" => format!("{} AS {column}", update_rule()),
            () if column == "DELETE_RULE" => format!("{} AS {column}", delete_rule()),
            () if column == "SUB_PART" => format!("{} AS {column}", prefix_part()),
            () if column == "INDEX_COMMENT" => format!("{} AS {column}", index_comment()),
            () => format!("s.{column}"),
        })
        .collect();
    if family == Family::MariaDb
        && let Some(first) = columns.first_mut()
    {
        // a derived table that MariaDB merges would give the result's columns its own letter case;
        // the server can still push conditions on these two
        let column = first.trim_start_matches("s.").to_owned();
        *first = format!(
            "IF(ROW_NUMBER() OVER (PARTITION BY s.{}, s.TABLE_NAME) > 0, s.{column}, s.{column}) AS {column}",
            view.schema
        );
    }
    format!(
        "(SELECT {} FROM information_schema.{} s{} WHERE {}{})",
        columns.join(", "),
        view.name,
        view.join,
        view.rows,
        match family {
            Family::MySql => view.rows_mysql,
            Family::MariaDb => "",
        }
    )
}

/// The logical name for one that a companion or a sealed column has, or an index or constraint that
/// a server named after it.
fn logical_name(column: &str) -> String {
    let cut = |form: &str, length: usize| {
        format!(
            "WHEN s.{column} REGEXP '.[$]{form}$' THEN LEFT(s.{column}, CHAR_LENGTH(s.{column}) - {length})"
        )
    };
    format!(
        "CASE {} {} {} {} ELSE s.{column} END",
        cut("enc", 4),
        cut("eq_[0-9a-f]{4}", 8),
        cut("ord_[0-9a-f]{4}", 9),
        cut("gram_[0-9a-f]{4}", 10)
    )
}

/// What a foreign key says to do to the rows that refer to one, of which the server does none.
fn update_rule() -> String {
    format!(
        "CASE WHEN f.onionskin_flags LIKE '%{UPDATE_CASCADE}%' THEN 'CASCADE' \
         WHEN f.onionskin_flags LIKE '%{UPDATE_NULL}%' THEN 'SET NULL' ELSE s.UPDATE_RULE END"
    )
}

fn delete_rule() -> String {
    format!(
        "CASE WHEN f.onionskin_flags LIKE '%{DELETE_NULL}%' THEN 'SET NULL' ELSE s.DELETE_RULE END"
    )
}

/// The length of a prefix that stands in the index's comment. As bytes, because servers give the
/// two columns different collations.
fn prefix_part() -> String {
    let comment = "CAST(s.INDEX_COMMENT AS BINARY)";
    let digits = "CAST(RIGHT(s.COLUMN_NAME, 4) AS BINARY)";
    format!(
        "CASE WHEN s.COLUMN_NAME REGEXP '.[$](eq|ord)_[0-9a-f]{{4}}$' AND {comment} LIKE CONCAT('{MARK}%', {digits}, ':%') \
         THEN CAST(SUBSTRING_INDEX(SUBSTRING_INDEX({comment}, CONCAT({digits}, ':'), -1), ',', 1) AS SIGNED) ELSE s.SUB_PART END"
    )
}

/// An index's comment, if it is the client's.
fn index_comment() -> String {
    format!("CASE WHEN s.INDEX_COMMENT LIKE '{MARK}%' THEN '' ELSE s.INDEX_COMMENT END")
}

/// The text of a view with logical names, without the companions that it selects.
fn logical_text(column: &str, family: Family) -> String {
    // what says how the table calls the columns; a name ends at a backquote
    let quote = "CHAR(96 USING utf8mb4)";
    let marks = format!(
        "CONCAT(',NULL AS ', {quote}, '[^', {quote}, ']+[$](of_[^', {quote}, ']+|as_[-_0-9A-Za-z]{{22}})', {quote})"
    );
    // MariaDB compares by the collation of both, and the literals have the session's.
    let marks = match family {
        Family::MariaDb => format!("CONVERT({marks} USING utf8mb3)"),
        Family::MySql => marks,
    };
    let without = format!(
        "REGEXP_REPLACE(REGEXP_REPLACE(s.{column}, {marks}, ''), ',([^, ]*[.])?[^, ]+[$](eq|ord|gram)_[0-9a-f]{{4}}. AS .[^, ]+[$](eq|ord|gram)_[0-9a-f]{{4}}.', '')"
    );
    // constants, which are sealed
    let without = format!(
        "REGEXP_REPLACE({without}, 'left[(](0x|X.)[0-9a-fA-F]{{100,}}.?,[0-9]+[)]', '(protected)')"
    );
    format!("REGEXP_REPLACE({without}, '[$](enc|(eq|ord|gram)_[0-9a-f]{{4}})', '')")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_no_sql_mode() {
        for family in [Family::MariaDb, Family::MySql] {
            for view in logical_views() {
                let sql = view.derived(family);
                assert!(!sql.contains(['"', '\\', '`']), "{sql}");
                assert!(sql.starts_with('(') && sql.ends_with(')'));
            }
        }
    }
}
