//! Where the parts of a CREATE TRIGGER are. Its text is kept to the byte: only what stands before
//! the body is read.

/// The head of a CREATE TRIGGER.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Behind the word TRIGGER.
    pub behind_verb: usize,
    /// Where the body begins, behind FOR EACH ROW and the place among others.
    pub body: usize,
    /// The trigger's name.
    pub name: String,
    /// The table's database, if it is written, and the table.
    pub database: Option<String>,
    pub table: String,
}

/// Reads it; `None` if the text is not one, or not understood.
pub(crate) fn head(sql: &[u8]) -> Option<Head> {
    let mut scanner = Scanner { sql, at: 0 };
    if !scanner.next()?.is("CREATE") {
        return None;
    }
    loop {
        let piece = scanner.next()?;
        // Something else is made; its text may have the word further on.
        let is_other = ["TABLE", "VIEW", "PROCEDURE", "FUNCTION", "EVENT", "PACKAGE"];
        match piece {
            _ if piece.is("TRIGGER") => break,
            _ if is_other.iter().any(|word| piece.is(word)) => return None,
            _ => {}
        }
    }
    let behind_verb = scanner.at;
    let mut piece = scanner.next()?;
    if piece.is("IF") && scanner.next()?.is("NOT") && scanner.next()?.is("EXISTS") {
        piece = scanner.next()?;
    }
    let mut name = piece.name()?;
    piece = scanner.next()?;
    if piece == Piece::Sign(b'.') {
        name = scanner.next()?.name()?;
        piece = scanner.next()?;
    }
    if !piece.is("BEFORE") && !piece.is("AFTER") {
        return None;
    }
    while !scanner.next()?.is("ON") {}
    let mut database = None;
    let mut table = scanner.next()?.name()?;
    piece = scanner.next()?;
    if piece == Piece::Sign(b'.') {
        database = Some(table);
        table = scanner.next()?.name()?;
        piece = scanner.next()?;
    }
    if !piece.is("FOR") || !scanner.next()?.is("EACH") || !scanner.next()?.is("ROW") {
        return None;
    }
    let mut body = scanner.at;
    if let Some(piece) = scanner.next()
        && (piece.is("FOLLOWS") || piece.is("PRECEDES"))
    {
        scanner.next()?.name()?;
        body = scanner.at;
    }
    Some(Head {
        behind_verb,
        body,
        name,
        database,
        table,
    })
}

#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Word(String),
    Quoted(String),
    Sign(u8),
}

impl Piece {
    fn is(&self, word: &str) -> bool {
        matches!(self, Piece::Word(text) if text.eq_ignore_ascii_case(word))
    }

    fn name(self) -> Option<String> {
        match self {
            Piece::Word(text) | Piece::Quoted(text) => Some(text),
            Piece::Sign(_) => None,
        }
    }
}

struct Scanner<'a> {
    sql: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    /// The next piece; `None` at the end, and where a comment may be code.
    fn next(&mut self) -> Option<Piece> {
        loop {
            let rest = self.sql.get(self.at..)?;
            let first = *rest.first()?;
            if first.is_ascii_whitespace() {
                self.at += 1;
            } else if rest.starts_with(b"/*!") || rest.starts_with(b"/*M!") {
                return None;
            } else if rest.starts_with(b"/*") {
                self.at += 2 + find(&rest[2..], b"*/")? + 2;
            } else if first == b'#' || rest.starts_with(b"--") {
                self.at += find(rest, b"\n")? + 1;
            } else if matches!(first, b'`' | b'"' | b'\'') {
                return self.quoted(first);
            } else if is_word(first) {
                let length = rest.iter().take_while(|&&byte| is_word(byte)).count();
                self.at += length;
                return Some(Piece::Word(text(&rest[..length])));
            } else {
                self.at += 1;
                return Some(Piece::Sign(first));
            }
        }
    }

    fn quoted(&mut self, quote: u8) -> Option<Piece> {
        let mut content = Vec::new();
        self.at += 1;
        loop {
            let byte = *self.sql.get(self.at)?;
            self.at += 1;
            if byte == quote {
                if self.sql.get(self.at) != Some(&quote) {
                    return Some(Piece::Quoted(text(&content)));
                }
                self.at += 1;
            }
            content.push(byte);
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_and_the_table_are_found() {
        for (sql, database, table, body) in [
            (
                "CREATE DEFINER=`root`@`localhost` TRIGGER `x` BEFORE INSERT ON `t` FOR EACH ROW SET NEW.a = 1",
                None,
                "t",
                " SET NEW.a = 1",
            ),
            (
                "create or replace definer='a trigger'@\"%\" trigger /* why */ if not exists d.x\nafter update\non d.`t``u` for each row follows y begin end",
                Some("d"),
                "t`u",
                " begin end",
            ),
            (
                "CREATE TRIGGER x AFTER DELETE ON t FOR EACH ROW\nCALL p()",
                None,
                "t",
                "\nCALL p()",
            ),
        ] {
            let head = head(sql.as_bytes()).expect(sql);
            assert_eq!(head.database.as_deref(), database, "{sql}");
            assert_eq!(
                (head.name.as_str(), head.table.as_str()),
                ("x", table),
                "{sql}"
            );
            assert_eq!(&sql[head.body..], body);
            assert!(sql[..head.behind_verb].to_lowercase().ends_with("trigger"));
        }
    }

    #[test]
    fn what_is_not_understood_has_no_head() {
        for sql in [
            "",
            "CREATE TABLE t (a INT) /* TRIGGER */",
            "CREATE PROCEDURE p() COMMENT 'x' TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a = 1",
            "CREATE TRIGGER x BEFORE INSERT ON t",
            "/*!50003 CREATE*/ /*!50003 TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a = 1 */",
            "DROP TRIGGER x",
        ] {
            assert_eq!(head(sql.as_bytes()), None, "{sql}");
        }
    }
}
