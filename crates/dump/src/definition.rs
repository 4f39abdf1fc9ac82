//! What a definition says, as SHOW CREATE shows it: read by its quotes, parentheses and commas.

/// A foreign key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// Its columns.
    pub columns: Vec<String>,
    /// The database of the table that it refers to, if it is another one.
    pub database: Option<String>,
    /// That table.
    pub table: String,
    /// The columns there.
    pub parents: Vec<String>,
}

/// What matters of `CREATE TABLE`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// Columns, each with where its definition ends in the text.
    pub columns: Vec<(String, usize)>,
    /// The primary key.
    pub primary: Vec<String>,
    /// Columns of all unique keys, the primary one among them.
    pub unique: Vec<Vec<String>>,
    /// Foreign keys.
    pub foreign: Vec<ForeignKey>,
    /// What stands behind the closing parenthesis.
    pub options: String,
}

/// Where a quoted piece ends that begins at `at`; backquotes know no backslashes.
fn end_of_quoted(bytes: &[u8], at: usize) -> Option<usize> {
    let quote = bytes[at];
    let mut here = at + 1;
    loop {
        match bytes.get(here)? {
            b'\\' if quote != b'`' => here += 2,
            byte if *byte == quote && bytes.get(here + 1) == Some(&quote) => here += 2,
            byte if *byte == quote => return Some(here + 1),
            _ => here += 1,
        }
    }
}

impl Definition {
    /// Reads it; `None` if it is none.
    pub fn read(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let mut made = Self::default();
        let mut at = 0;
        let mut depth = 0;
        let mut begin = 0;
        loop {
            match *bytes.get(at)? {
                b'\'' | b'"' | b'`' => {
                    at = end_of_quoted(bytes, at)?;
                    continue;
                }
                b'(' => {
                    depth += 1;
                    if depth == 1 {
                        begin = at + 1;
                    }
                }
                b',' if depth == 1 => {
                    made.item(text, begin, at)?;
                    begin = at + 1;
                }
                b')' if depth == 1 => {
                    made.item(text, begin, at)?;
                    made.options = text[at + 1..].trim().to_owned();
                    return Some(made);
                }
                b')' => depth -= 1,
                _ => {}
            }
            at += 1;
        }
    }

    fn item(&mut self, text: &str, begin: usize, end: usize) -> Option<()> {
        let item = text[begin..end].trim();
        if item.starts_with('`') {
            let end = begin + text[begin..end].trim_end().len();
            self.columns.push((names(item).into_iter().next()?, end));
            return Some(());
        }
        if item.starts_with("PRIMARY KEY") {
            self.primary = names(item);
            self.unique.push(self.primary.clone());
        } else if item.starts_with("UNIQUE KEY") {
            self.unique.push(names(item).into_iter().skip(1).collect());
        } else if item.starts_with("CONSTRAINT `") {
            let name_ends = end_of_quoted(item.as_bytes(), "CONSTRAINT ".len())?;
            let Some(columns) = item[name_ends..].strip_prefix(" FOREIGN KEY ") else {
                return Some(());
            };
            let (columns, rest) = parenthesised(columns)?;
            let (parents, table) = parenthesised(rest.strip_prefix(" REFERENCES ")?)
                .and_then(|(parents, _)| Some((parents, rest.find(parents)?)))
                .map(|(parents, at)| (parents, &rest[..at]))?;
            let mut table = names(table);
            self.foreign.push(ForeignKey {
                columns: names(columns),
                table: table.pop()?,
                database: table.pop(),
                parents: names(parents),
            });
        }
        Some(())
    }
}

/// The first parentheses outside of names, and what is behind them.
fn parenthesised(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let mut open = None;
    let mut at = 0;
    loop {
        at = match *bytes.get(at)? {
            b'`' => end_of_quoted(bytes, at)?,
            b')' => return Some((&text[open?..=at], &text[at + 1..])),
            b'(' => {
                open = open.or(Some(at));
                at + 1
            }
            _ => at + 1,
        };
    }
}

/// The names in backquotes.
fn names(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'`' | b'\'' | b'"' => {
                let Some(end) = end_of_quoted(bytes, at) else {
                    return out;
                };
                if bytes[at] == b'`' {
                    out.push(text[at + 1..end - 1].replace("``", "`"));
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    out
}

/// Whether a view or a program has constants in its text: they may be somebody's values. Zero and
/// one are none.
pub(crate) fn has_constants(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_word =
        |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'`' => match end_of_quoted(bytes, at) {
                Some(end) => at = end,
                None => return true,
            },
            b'\'' | b'"' => return true,
            byte if is_word(byte) => {
                let end = bytes[at..].iter().position(|b| !is_word(*b));
                let end = end.map_or(bytes.len(), |length| at + length);
                let is_number = byte.is_ascii_digit();
                if is_number && !["0", "1"].contains(&&text[at..end]) {
                    return true;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    false
}

/// A definition without the account that made it, which a test system does not have.
pub(crate) fn without_definer(text: &str) -> String {
    let Some(at) = text.find("DEFINER=") else {
        return text.to_owned();
    };
    let bytes = text.as_bytes();
    let mut here = at + "DEFINER=".len();
    if bytes.get(here) == Some(&b'`') {
        let behind = |at| end_of_quoted(bytes, at);
        let Some(user) = behind(here) else {
            return text.to_owned();
        };
        here = user;
        if bytes.get(here) == Some(&b'@')
            && bytes.get(here + 1) == Some(&b'`')
            && let Some(host) = behind(here + 1)
        {
            here = host;
        }
    }
    format!("{}{}", &text[..at], text[here..].trim_start())
}

/// A definition with what stands in comments that servers execute (`/*!80023 INVISIBLE */`) as
/// plain text: the dump is for a server of its own family, and a proxy refuses such comments.
pub(crate) fn without_version_comments(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let (mut at, mut copied, mut is_open) = (0, 0, false);
    while at < bytes.len() {
        let rest = &text.as_bytes()[at..];
        let skipped = match rest {
            [b'`' | b'\'' | b'"', ..] => {
                at = end_of_quoted(bytes, at).unwrap_or(bytes.len());
                continue;
            }
            [b'/', b'*', b'!', ..] => {
                is_open = true;
                3 + rest[3..].iter().take_while(|b| b.is_ascii_digit()).count()
            }
            [b'*', b'/', ..] if is_open => {
                is_open = false;
                2
            }
            _ => {
                at += 1;
                continue;
            }
        };
        out.push_str(&text[copied..at]);
        at += skipped;
        copied = at;
    }
    out + &text[copied..]
}

/// Whether a text names a table or view.
pub(crate) fn mentions(text: &str, name: &str) -> bool {
    names(text)
        .iter()
        .any(|found| found.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: &str = "CREATE TABLE `odd ``name, (` (\n  `id` int(11) NOT NULL AUTO_INCREMENT COMMENT 'it''s, \\') (',\n  \
        `a ``b` varchar(9) DEFAULT ')',\n  `e` enum('x,y','`') NOT NULL,\n  PRIMARY KEY (`id`),\n  \
        UNIQUE KEY `u` (`a ``b`(3),`e` DESC),\n  KEY `k` (`e`),\n  \
        CONSTRAINT `f` FOREIGN KEY (`e`, `id`) REFERENCES `other db`.`par(ent` (`x`, `y)`) ON DELETE CASCADE,\n  \
        CONSTRAINT `c` CHECK (`id` > 3)\n) ENGINE=InnoDB COMMENT='(,)'";

    #[test]
    fn a_definition_is_read_by_its_quotes() {
        let read = Definition::read(SHOWN).expect("a definition");
        let columns: Vec<&str> = read.columns.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(columns, ["id", "a `b", "e"]);
        assert!(SHOWN[..read.columns[1].1].ends_with("DEFAULT ')'"));
        assert_eq!(read.primary, ["id"]);
        assert_eq!(read.unique, [vec!["id"], vec!["a `b", "e"]]);
        let [key] = &read.foreign[..] else {
            panic!("{read:?}")
        };
        assert_eq!(key.columns, ["e", "id"]);
        assert_eq!(key.parents, ["x", "y)"]);
        assert_eq!(
            (key.database.as_deref(), key.table.as_str()),
            (Some("other db"), "par(ent")
        );
        assert_eq!(read.options, "ENGINE=InnoDB COMMENT='(,)'");
        assert_eq!(Definition::read("CREATE TABLE `a` (`b"), None);
    }

    #[test]
    fn constants_are_found() {
        for text in [
            "select 'x'",
            "select 2",
            "select 1.5",
            "x'00'",
            "0x41",
            "`a",
            "\"x\"",
        ] {
            assert!(has_constants(text), "{text}");
        }
        for text in ["select `a2`.`it's` from t2 where a = 1 limit 0", ""] {
            assert!(!has_constants(text), "{text}");
        }
    }

    #[test]
    fn version_comments_are_plain_text() {
        let shown = "`a` int /*!80023 INVISIBLE */,\n `/*!1` int DEFAULT '*/' /*!50100 PARTITION BY HASH (`x`) */";
        assert_eq!(
            without_version_comments(shown),
            "`a` int  INVISIBLE ,\n `/*!1` int DEFAULT '*/'  PARTITION BY HASH (`x`) "
        );
    }

    #[test]
    fn definers_go() {
        let shown = "CREATE ALGORITHM=UNDEFINED DEFINER=`a@``b`@`%` SQL SECURITY DEFINER VIEW `v`";
        assert_eq!(
            without_definer(shown),
            "CREATE ALGORITHM=UNDEFINED SQL SECURITY DEFINER VIEW `v`"
        );
    }
}
