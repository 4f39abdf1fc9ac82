//! Which statements may be replayed.
//!
//! A binlog holds texts, and who administers its server can write any text into it. The replay must
//! not run what no server writes there: `SET GLOBAL general_log_file` writes files with the rights
//! of who restores, `LOAD DATA LOCAL INFILE` reads them, and `INSTALL SONAME` runs libraries. So a
//! statement passes by its first word, from a list of what servers were seen to log.
//!
//! There are two borders. [`Author::Binlog`] is for the texts of events, where it is known in which
//! file and at which position they stand. [`Author::Tool`] is for what the client sends in the end:
//! the server's tool has added statements of its own, and a text may have been made to end early,
//! so that its rest became a statement. The second border sees what the server sees.
//!
//! Servers read `/*!50001 … */` as statements or as comments, depending on their version, and dumps
//! begin statements with it. Here every such comment is read both ways, and all readings must be
//! allowed.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | the list of first words |
//! | `readings` | a statement's first tokens, for every way to read its comments |
//! | `settings` | what SET may not set, and the statement within SET STATEMENT |
//! | `definitions` | what CREATE and ALTER may not name: files, libraries, engines |

mod definitions;
mod readings;
mod settings;
#[cfg(test)]
mod tests;

use definitions::forbidden_in_definition;
use readings::{MAX_READINGS, Token, readings};
use settings::{forbidden_setting, inner_statement};

/// Who has written a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// A server, into its binlog as a QUERY event.
    Binlog,
    /// A server, as an EXECUTE_LOAD_QUERY event.
    Load,
    /// `mariadb-binlog` or `mysqlbinlog`, from events.
    Tool,
}

/// What the tools end statements with.
const DELIMITER: &[u8] = b"/*!*/;";
/// What clients ask for themselves.
const CLIENTS_OWN: [&[u8]; 4] = [
    b"SELECT DATABASE()",
    b"SELECT DATABASE(), USER() LIMIT 1",
    b"SELECT @@version_comment LIMIT 1",
    // Whether the server knows dollar quotes.
    b"SELECT $$",
];

/// Whether the statement may be run; if not, what it is.
pub fn check(text: &[u8], author: Author) -> Result<(), String> {
    if author != Author::Tool && memchr::memmem::find(text, DELIMITER).is_some() {
        return Err("a statement with the mark at which the tools end statements, /*!*/;".into());
    }
    let is_own = |own: &&[u8]| text.trim_ascii().eq_ignore_ascii_case(own);
    if author == Author::Tool && CLIENTS_OWN.iter().any(is_own) {
        return Ok(());
    }
    let readings = readings(text);
    if readings.len() > MAX_READINGS {
        return Err("a statement that begins with too many comments".into());
    }
    let (mut defines, mut sets) = (false, false);
    for tokens in &readings {
        check_reading(text, tokens, author)?;
        let word = |at: usize| tokens.get(at).and_then(Token::word);
        defines |= matches!(word(0), Some("CREATE" | "ALTER"));
        sets |= word(0) == Some("SET") && word(1) != Some("STATEMENT");
    }
    if sets && let Some(word) = forbidden_setting(text) {
        return refused(&["SET", &word]);
    }
    if defines && let Some(what) = forbidden_in_definition(text)? {
        return refused(&[&what]);
    }
    Ok(())
}

fn refused(words: &[&str]) -> Result<(), String> {
    let shown: Vec<String> = words
        .iter()
        .filter(|word| !word.is_empty())
        .map(|word| word.chars().take(60).collect())
        .collect();
    Err(format!("a statement {}", shown.join(" ")))
}

fn check_reading(text: &[u8], tokens: &[Token], author: Author) -> Result<(), String> {
    let word = |at: usize| tokens.get(at).and_then(Token::word).unwrap_or_default();
    let ends = |at: usize| matches!(tokens.get(at), Some(Token::End));
    let tool = author == Author::Tool;
    let (first, second, third) = (word(0), word(1), word(2));
    if author == Author::Load {
        return match (first, second) {
            ("LOAD", "DATA" | "XML") => Ok(()),
            _ => refused(&[first, second, "in the place of a LOAD DATA"]),
        };
    }
    match first {
        // Nothing but comments: what follows may be for other versions.
        "" if ends(0) => Ok(()),
        // MariaDB's BEGIN NOT ATOMIC runs statements.
        "BEGIN" if ends(1) || second == "WORK" && ends(2) => Ok(()),
        "START" if second == "TRANSACTION" => Ok(()),
        "COMMIT" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" | "XA" => Ok(()),
        "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "TRUNCATE" | "WITH" => Ok(()),
        "RENAME" | "GRANT" | "REVOKE" | "FLUSH" => Ok(()),
        "CREATE" if second == "OR" && third == "REPLACE" && word(3) == "SERVER" => {
            refused(&["CREATE SERVER"])
        }
        "CREATE" | "ALTER" | "DROP" if second == "SERVER" => refused(&[first, second]),
        "ALTER" if second == "INSTANCE" && third != "ROTATE" => refused(&[first, second, third]),
        "CREATE" | "ALTER" | "DROP" => Ok(()),
        "ANALYZE" | "OPTIMIZE" | "REPAIR" | "CHECK"
            if matches!(second, "TABLE" | "TABLES" | "VIEW") =>
        {
            Ok(())
        }
        // How a stored function that writes is logged: SELECT `app`.`f`(1).
        "SELECT" if is_call(tokens) => Ok(()),
        "SET" if second == "STATEMENT" => check(inner_statement(text, tokens)?, author),
        "SET" if second == "PASSWORD" || second == "DEFAULT" && third == "ROLE" => Ok(()),
        "SET" if tool => Ok(()),
        "BINLOG" | "USE" if tool => Ok(()),
        "LOAD" if tool && matches!(second, "DATA" | "XML") => Ok(()),
        "" => Err("a statement that does not begin with a word".into()),
        "SET" => refused(&[first, second, third]),
        _ => refused(&[first, second]),
    }
}

fn is_call(tokens: &[Token]) -> bool {
    let name = |at: usize| matches!(tokens.get(at), Some(Token::Quoted(Some(b'`' | b'"'))));
    let sign = |at: usize, sign: u8| tokens.get(at) == Some(&Token::Sign(sign));
    name(1) && sign(2, b'.') && name(3) && sign(4, b'(')
}
