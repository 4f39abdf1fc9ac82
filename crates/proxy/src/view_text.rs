//! What `SHOW CREATE TABLE` says of a view: which tables it reads, and which columns of theirs.
//!
//! Servers write a view's query anew: each table stands behind FROM or JOIN, each column behind its
//! table's name.

use onionskin_schema::TableName;

/// A view as it is now, and what is behind it.
pub(crate) struct ViewText {
    /// Its definition.
    pub text: String,
    /// The definitions of the tables behind it, those of views behind it, too.
    pub tables: Vec<String>,
    /// The definitions of views behind it.
    pub views: Vec<String>,
    /// Something behind it is not shown.
    pub is_unclear: bool,
}

impl ViewText {
    /// Whether nothing that is sealed is read.
    pub fn reads_nothing_sealed(&self) -> bool {
        let is_sealed = |text: &String| text.contains("$enc");
        if is_sealed(&self.text) {
            return false;
        }
        if !self.tables.iter().any(is_sealed) {
            return true;
        }
        let texts = std::iter::once(&self.text).chain(&self.views);
        let mut names = texts.flat_map(|text| columns(text));
        !self.is_unclear && names.all(|name| self.is_there(&name))
    }

    /// Whether a column is there by this name, and none is sealed that is called so.
    fn is_there(&self, name: &str) -> bool {
        let word = |line: &str| {
            line.trim_start()
                .split(' ')
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        let is = |line: &str, name: &str| {
            word(line)
                .trim_matches(['`', '"'])
                .eq_ignore_ascii_case(name)
        };
        let sealed = format!("{name}$enc");
        let any = |name: &str| {
            let mut lines = self.tables.iter().flat_map(|text| text.lines());
            lines.any(|line| line.starts_with(' ') && is(line, name))
        };
        any(name) && !any(&sealed)
    }
}

/// A part of a definition.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// A name, or several with dots between them.
    Path(Vec<String>),
    /// Anything else between blanks, and signs by themselves.
    Word(String),
}

/// The tables behind FROM and JOIN. One of the view's own database stands there without it.
pub(crate) fn tables(text: &str, database: &str) -> Vec<TableName> {
    let parts = parts(text);
    let paths = parts
        .iter()
        .enumerate()
        .filter_map(|(at, part)| match part {
            Part::Path(path) if is_table(&parts, at) => Some(path),
            _ => None,
        });
    let mut found: Vec<TableName> = paths
        .filter_map(|path| match path.as_slice() {
            [table] => Some(TableName::new(database, table)),
            [database, table] => Some(TableName::new(database, table)),
            _ => None,
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

/// The columns that are read, by the last parts of their names.
fn columns(text: &str) -> Vec<String> {
    let parts = parts(text);
    // what it is called, and what its columns are
    let query = parts.iter().position(|part| is_word(part, "select"));
    let query = query.unwrap_or(0);
    let columns = parts.iter().enumerate().skip(query);
    let columns = columns.filter_map(|(at, part)| match part {
        Part::Path(path) if path.len() > 1 && !is_table(&parts, at) => path.last().cloned(),
        _ => None,
    });
    columns.collect()
}

fn is_word(part: &Part, word: &str) -> bool {
    matches!(part, Part::Word(other) if other.eq_ignore_ascii_case(word))
}

/// Whether a table stands here: behind FROM or JOIN, and parentheses.
fn is_table(parts: &[Part], at: usize) -> bool {
    let before = parts[..at].iter().rev().find(|part| !is_word(part, "("));
    before.is_some_and(|part| is_word(part, "from") || is_word(part, "join"))
}

fn parts(text: &str) -> Vec<Part> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut dot = false;
    while let Some(first) = rest.chars().next() {
        match first {
            '`' | '"' => {
                let (name, behind) = quoted(rest, first);
                match found.last_mut() {
                    Some(Part::Path(path)) if dot => path.push(name),
                    _ => found.push(Part::Path(vec![name])),
                }
                dot = behind.starts_with('.');
                rest = if dot { &behind[1..] } else { behind };
                continue;
            }
            '\'' => rest = quoted(rest, first).1,
            _ if first.is_alphanumeric() || first == '_' => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$');
                let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
                found.push(Part::Word(word.to_owned()));
                rest = behind;
            }
            _ => {
                if !first.is_whitespace() {
                    found.push(Part::Word(first.to_string()));
                }
                rest = &rest[first.len_utf8()..];
            }
        }
        dot = false;
    }
    found
}

/// What stands in quotes at the beginning, and the text behind it.
fn quoted(text: &str, quote: char) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if quote == '\'' => {
                chars.next();
            }
            c if c == quote => match chars.peek() {
                Some((_, next)) if *next == quote => {
                    chars.next();
                    name.push(quote);
                }
                _ => return (name, &text[at + quote.len_utf8()..]),
            },
            c => name.push(c),
        }
    }
    (name, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOINED: &str = "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`%` SQL SECURITY DEFINER VIEW `v` (`x`,`y`) AS \
        select `a`.`id` AS `x`,concat(`b`.`n``m`,' from `c`.`d` it''s \\' ') AS `y` from ((`t` `a` join `other`.`u` `b` \
        on((`a`.`id` = `b`.`id`))) left join `w` on((`w`.`k` = `a`.`id`))) where exists(select 1 from `z` where (`z`.`q` = 5))";

    #[test]
    fn tables_and_columns_of_a_view() {
        let name = |database: &str, name: &str| TableName::new(database, name);
        let mut wanted = [
            name("app", "t"),
            name("other", "u"),
            name("app", "w"),
            name("app", "z"),
        ];
        wanted.sort();
        assert_eq!(tables(JOINED, "app"), wanted);
        let mut found = columns(JOINED);
        found.sort();
        found.dedup();
        assert_eq!(found, ["id", "k", "n`m", "q"]);
    }

    #[test]
    fn plain_columns_of_a_protected_table() {
        let table = "CREATE TABLE `t` (\n  `id` int NOT NULL,\n  `n$enc` varbinary(60),\n  `p` int,\n  KEY `q` (`p`)\n)";
        let view = |columns: &str| ViewText {
            text: format!("CREATE VIEW `v` AS select {columns} from `t`"),
            tables: vec![table.into()],
            views: Vec::new(),
            is_unclear: false,
        };
        assert!(view("`t`.`id` AS `n`,`t`.`p` AS `p`").reads_nothing_sealed());
        // gone since
        assert!(!view("`t`.`id` AS `id`,`t`.`n` AS `n`").reads_nothing_sealed());
        assert!(!view("`t`.`q` AS `q`").reads_nothing_sealed());
        assert!(!view("`t`.`n$enc` AS `n$enc`").reads_nothing_sealed());
        let above = |below: &str, is_unclear| ViewText {
            text: "CREATE VIEW `v` AS select `w`.`id` AS `id` from `w`".into(),
            tables: vec![table.into()],
            views: vec![format!("CREATE VIEW `w` AS select {below} from `t`")],
            is_unclear,
        };
        let sealed = "`t`.`id` AS `id`,`t`.`n$enc` AS `n$enc`";
        assert!(above(sealed, false).reads_nothing_sealed());
        assert!(!above(sealed, true).reads_nothing_sealed());
        assert!(!above("`t`.`n` AS `id`", false).reads_nothing_sealed());
    }
}
