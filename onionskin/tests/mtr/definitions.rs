//! CREATE TABLE: which table it makes, and the same statement with fewer protected columns.

/// A column definition within a CREATE TABLE: its name, and where the text of the element ends.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    pub name: String,
    end: usize,
}

/// `CREATE [OR REPLACE] [TEMPORARY] TABLE`: the name as it stands there, and the columns of the
/// list, if there is one.
#[derive(Clone, PartialEq, Debug)]
pub struct Creation {
    pub table: String,
    pub temporary: bool,
    pub columns: Vec<Column>,
}

/// How much of a column can be protected, from the most to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    Searchable,
    Sealed,
    Plain,
}

/// Reads a CREATE TABLE; `None` for any other statement.
pub fn creation(sql: &str) -> Option<Creation> {
    let mut at = 0;
    let next = |at: &mut usize| -> String {
        let rest = sql[*at..].trim_start();
        *at = sql.len() - rest.len();
        let length = rest
            .find(|c: char| c.is_whitespace() || c == '(')
            .unwrap_or(rest.len());
        *at += length;
        rest[..length].to_ascii_lowercase()
    };
    let mut temporary = false;
    if next(&mut at) != "create" {
        return None;
    }
    loop {
        match next(&mut at).as_str() {
            "or" | "replace" => {}
            "temporary" => temporary = true,
            "table" => break,
            _ => return None,
        }
    }
    let mut before = at;
    let mut name = next(&mut at);
    if name == "if" {
        next(&mut at);
        next(&mut at);
        before = at;
        name = next(&mut at);
    }
    // With its own letters, without its database.
    let name = &sql[before..].trim_start()[..name.len()];
    let table = name.rsplit('.').next()?.trim_matches('`').to_owned();
    let open = at + sql[at..].find(|c: char| !c.is_whitespace())?;
    let mut columns = Vec::new();
    let begins = |word: &str| {
        let inside = sql[open..].trim_start_matches('(').trim_start();
        let head = inside.get(..word.len());
        head.is_some_and(|h| h.eq_ignore_ascii_case(word))
    };
    // `CREATE TABLE t (SELECT …)`
    let of_query = ["select", "with", "like", "values"]
        .iter()
        .any(|w| begins(w));
    if sql[open..].starts_with('(') && !of_query {
        for (from, to) in elements(sql, open) {
            let text = sql[from..to].trim();
            let quoted = text.strip_prefix('`').and_then(|t| t.split('`').next());
            let word = text
                .split(|c: char| c.is_whitespace() || c == '(')
                .next()
                .unwrap_or_default();
            let is_key = [
                "primary",
                "key",
                "index",
                "unique",
                "fulltext",
                "spatial",
                "constraint",
                "foreign",
                "check",
                "period",
                "like",
                "select",
                "with",
            ]
            .contains(&word.to_ascii_lowercase().as_str());
            if let Some(name) = quoted.or_else(|| (!is_key).then_some(word)) {
                let trimmed = sql[from..to].trim_end().len();
                columns.push(Column {
                    name: name.to_owned(),
                    end: from + trimmed,
                });
            }
        }
    }
    Some(Creation {
        table,
        temporary,
        columns,
    })
}

/// The parts between the commas of the list that opens at `open`.
fn elements(sql: &str, open: usize) -> Vec<(usize, usize)> {
    let mut parts = Vec::new();
    let (mut depth, mut quote, mut from) = (0, None, open + 1);
    let mut escaped = false;
    for (i, c) in sql.char_indices().skip_while(|(i, _)| *i < open) {
        match (quote, c) {
            (Some(_), _) if escaped => escaped = false,
            (Some(q), '\\') if q != '`' => escaped = true,
            (Some(q), _) if q == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"' | '`') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => {
                depth -= 1;
                if depth == 0 {
                    parts.push((from, i));
                    break;
                }
            }
            (None, ',') if depth == 1 => {
                parts.push((from, i));
                from = i + 1;
            }
            _ => {}
        }
    }
    parts
}

/// The statement with each column protected as its level says.
pub fn with_levels(sql: &str, creation: &Creation, levels: &[Level]) -> String {
    let mut out = String::new();
    let mut at = 0;
    for (column, level) in creation.columns.iter().zip(levels) {
        out += &sql[at..column.end];
        at = column.end;
        out += match level {
            Level::Searchable => " ENCRYPTED FOR (eq, range)",
            Level::Sealed => " ENCRYPTED FOR ()",
            Level::Plain => "",
        };
    }
    out + &sql[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_and_protected() {
        let sql = "create table if not exists test.`T 1`(a int default ',)', `key` char(3), KEY (a), b decimal(5,2)) engine=x";
        let sql = &sql.replace("T 1", "T1");
        let found = creation(sql).unwrap();
        let names: Vec<&str> = found.columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!((found.table.as_str(), names), ("T1", vec!["a", "key", "b"]));
        let levels = [Level::Searchable, Level::Plain, Level::Sealed];
        assert_eq!(
            with_levels(sql, &found, &levels),
            "create table if not exists test.`T1`(a int default ',)' ENCRYPTED FOR (eq, range), `key` char(3), KEY (a), \
             b decimal(5,2) ENCRYPTED FOR ()) engine=x"
        );
        assert!(creation("create view v as select 1").is_none());
        let of_query = creation(
            "create table t\n(\nwith a (x) as (select 1), b as (select 2) select * from a, b)",
        );
        assert_eq!(of_query.unwrap().columns, vec![]);
        assert!(
            creation("create or replace temporary table t select 1")
                .unwrap()
                .temporary
        );
    }
}
