//! Which statements may be replayed.
//!
//! A binlog holds texts, and who administers its server can write any text into it. The replay must not run what no server
//! writes there: `SET GLOBAL general_log_file` writes files with the rights of who restores, `LOAD DATA LOCAL INFILE` reads them, and
//! `INSTALL SONAME` runs libraries. So a statement passes by its first word, from a list of what servers were seen to log.
//!
//! There are two borders. [`Author::Binlog`] is for the texts of events, where it is known in which file and at which position they
//! stand. [`Author::Tool`] is for what the client sends in the end: the server's tool has added statements of its own, and a
//! text may have been made to end early, so that its rest became a statement. The second border sees what the server sees.
//!
//! Servers read `/*!50001 … */` as statements or as comments, depending on their version, and dumps begin statements
//! with it. Here every such comment is read both ways, and all readings must be allowed.

use std::collections::BTreeSet;

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
/// So many ways to read a statement's beginning are looked at.
const READINGS: usize = 64;
/// As far as a reading goes.
const TOKENS: usize = 6;

/// Whether the statement may be run; if not, what it is.
pub fn check(text: &[u8], author: Author) -> Result<(), String> {
    if author != Author::Tool && memchr::memmem::find(text, DELIMITER).is_some() {
        return Err("a statement with the mark at which the tools end statements, /*!*/;".into());
    }
    let is_own = |own: &&[u8]| text.trim_ascii().eq_ignore_ascii_case(own);
    if author == Author::Tool && CLIENTS_OWN.iter().any(is_own) {
        return Ok(());
    }
    let mut readings = Vec::new();
    read(text, Vec::new(), &mut readings);
    if readings.len() > READINGS {
        return Err("a statement that begins with too many comments".into());
    }
    let (mut defines, mut sets) = (false, false);
    for tokens in &readings {
        check_reading(text, tokens, author)?;
        let word = |at: usize| tokens.get(at).and_then(Token::word);
        defines |= matches!(word(0), Some("CREATE" | "ALTER"));
        sets |= word(0) == Some("SET") && word(1) != Some("STATEMENT");
    }
    if sets {
        check_setting(text)?;
    }
    match defines {
        true => check_definition(text),
        false => Ok(()),
    }
}

/// A piece of a statement.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A keyword, a name or a number, in upper case; and where it begins.
    Word(String, usize),
    /// In quotes of any kind. `None` if it holds what could end it in another place for another reader.
    Quoted(Option<u8>),
    /// Anything else.
    Sign(u8),
    End,
}

impl Token {
    fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word, _) => Some(word),
            _ => None,
        }
    }
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
        "SET" if second == "STATEMENT" => check_set_statement(text, tokens, author),
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

/// `SET STATEMENT name = value, … FOR statement`, with plain values only: so it is sure where the statement begins.
fn check_set_statement(text: &[u8], tokens: &[Token], author: Author) -> Result<(), String> {
    let odd = || Err("a statement SET STATEMENT with values that are not plain".to_owned());
    let Some(Token::Word(word, at)) = tokens.get(1) else {
        return odd();
    };
    let mut at = at + word.len();
    loop {
        let (name, next) = plain(text, at);
        let (equals, next) = plain(text, next);
        if name.word().is_none() || equals != Token::Sign(b'=') {
            return odd();
        }
        // A number may have a sign, and a point.
        let (mut value, mut next) = plain(text, next);
        if value == Token::Sign(b'-') {
            (value, next) = plain(text, next);
        }
        if !matches!(value, Token::Word(..) | Token::Quoted(Some(b'\''))) {
            return odd();
        }
        let (mut follows, mut behind) = plain(text, next);
        if follows == Token::Sign(b'.') {
            let (fraction, next) = plain(text, behind);
            if fraction.word().is_none() {
                return odd();
            }
            (follows, behind) = plain(text, next);
        }
        match follows {
            Token::Sign(b',') => at = behind,
            Token::Word(word, _) if word == "FOR" => {
                let inner = text.get(behind..).unwrap_or_default();
                // Once is enough.
                let mut readings = Vec::new();
                read(inner, Vec::new(), &mut readings);
                let is_set =
                    |tokens: &Vec<Token>| tokens.iter().find_map(Token::word) == Some("SET");
                return match readings.iter().any(is_set) {
                    true => odd(),
                    false => check(inner, author),
                };
            }
            _ => return odd(),
        }
    }
}

/// The token at a place, and where it ends. Comments that a server might run are signs.
fn plain(text: &[u8], at: usize) -> (Token, usize) {
    match skip(text, at) {
        Gap::Code(at) => token(text, at),
        Gap::End => (Token::End, text.len()),
        Gap::Either { .. } | Gap::Open => (Token::Sign(b'/'), at),
    }
}

/// What settings may not hold, wherever it stands. Texts in quotes are not told from others, because where they end depends on
/// the session.
fn check_setting(text: &[u8]) -> Result<(), String> {
    const FORBIDDEN: [&[u8]; 5] = [
        b"GLOBAL",
        b"PERSIST",
        b"PERSIST_ONLY",
        b"DEBUG",
        b"DEBUG_DBUG",
    ];
    let mut at = user_variable(text);
    while let Some((from, to)) = next_word(text, at) {
        at = to;
        let word = text[from..to].to_ascii_uppercase();
        if FORBIDDEN.contains(&word.as_slice()) {
            return refused(&["SET", &String::from_utf8_lossy(&word)]);
        }
    }
    Ok(())
}

/// What definitions may not hold, wherever it stands: keyword and value. As for settings, quotes do not count.
fn check_definition(text: &[u8]) -> Result<(), String> {
    // Engines that read and write elsewhere; none of them is there as long as the server finds no plugins.
    const ENGINES: [&[u8]; 5] = [b"FEDERATED", b"CONNECT", b"SPIDER", b"S3", b"SPHINX"];
    let word_at = |at: usize| {
        let (_, to) = next_word(text, at).filter(|(from, _)| *from == at)?;
        Some((text[at..to].to_ascii_uppercase(), to))
    };
    let mut at = 0;
    while let Some((from, to)) = next_word(text, at) {
        at = to;
        match text[from..to].to_ascii_uppercase().as_slice() {
            b"DATA" | b"INDEX" => {
                for next in gaps(text, to)? {
                    if let Some((word, to)) = word_at(next)
                        && word == b"DIRECTORY"
                        && names_a_file(text, to)?
                    {
                        return refused(&["with a DATA DIRECTORY or INDEX DIRECTORY"]);
                    }
                }
            }
            b"SONAME" if names_a_file(text, to)? => return refused(&["with a SONAME"]),
            b"ENGINE" => {
                for next in behind_equals(text, to)? {
                    let quote = matches!(text.get(next), Some(b'\'' | b'"' | b'`'));
                    if let Some((word, _)) = word_at(next + usize::from(quote))
                        && ENGINES.contains(&word.as_slice())
                    {
                        let name = String::from_utf8_lossy(&word);
                        return refused(&[&format!("with ENGINE={name}")]);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a text in quotes follows, perhaps behind a sign of equality. The end of one does not count: a comment of a column may
/// end with these words.
fn names_a_file(text: &[u8], at: usize) -> Result<bool, String> {
    let mut places = gaps(text, at)?;
    places.extend(behind_equals(text, at)?);
    Ok(places.into_iter().any(|place| {
        let is_quote = matches!(text.get(place), Some(b'\'' | b'"'));
        let ended = match text.get(place + 1) {
            None => true,
            Some(next) => b",);*'\"".contains(next) || next.is_ascii_whitespace(),
        };
        is_quote && !ended
    }))
}

/// Where values begin, if a sign of equality follows.
fn behind_equals(text: &[u8], at: usize) -> Result<Vec<usize>, String> {
    let mut found = Vec::new();
    for place in gaps(text, at)? {
        if text.get(place) == Some(&b'=') {
            found.extend(gaps(text, place + 1)?);
        }
    }
    Ok(found)
}

/// Behind the name in the tool's SET @`name`:=…, or else the beginning.
fn user_variable(text: &[u8]) -> usize {
    let Some(name) = text.strip_prefix(b"SET @`") else {
        return 0;
    };
    let ends = memchr::memchr2(b'`', b'\\', name);
    match ends.filter(|end| name[*end..].starts_with(b"`:=")) {
        Some(end) => 6 + end,
        None => 0,
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

/// The next run of characters of words, at this place or behind it.
fn next_word(text: &[u8], at: usize) -> Option<(usize, usize)> {
    let from = at + text.get(at..)?.iter().position(|byte| is_of_word(*byte))?;
    let length = text[from..].iter().position(|byte| !is_of_word(*byte));
    Some((from, length.map_or(text.len(), |length| from + length)))
}

/// Where code may go on behind white space and comments, for every way to read them.
fn gaps(text: &[u8], at: usize) -> Result<Vec<usize>, String> {
    let (mut found, mut seen, mut open) = (Vec::new(), BTreeSet::new(), vec![at]);
    while let Some(at) = open.pop() {
        if !seen.insert(at) {
            continue;
        }
        if seen.len() > READINGS {
            return Err("a statement with too many comments in a row".into());
        }
        match skip(text, at) {
            Gap::Code(at) => found.push(at),
            Gap::Either { inside, behind } => {
                open.push(inside);
                open.extend(behind);
            }
            Gap::End | Gap::Open => {}
        }
    }
    Ok(found)
}

/// What lies at a place behind white space and comments that are comments for every server.
enum Gap {
    Code(usize),
    /// A comment that a server may run, or not.
    Either {
        inside: usize,
        behind: Vec<usize>,
    },
    /// A comment without an end.
    Open,
    End,
}

fn skip(text: &[u8], mut at: usize) -> Gap {
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let line = || {
            rest.iter()
                .position(|b| *b == b'\n')
                .map_or(rest.len(), |end| end + 1)
        };
        match rest {
            [] => return Gap::End,
            [b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, ..] => at += 1,
            [b'#', ..] | [b'-', b'-'] => at += line(),
            [b'-', b'-', c, ..] if *c <= b' ' => at += line(),
            // The end of one that was entered.
            [b'*', b'/', ..] => at += 2,
            [b'/', b'*', b'!', ..] | [b'/', b'*', b'M', b'!', ..] => {
                let sign = if rest[2] == b'!' { 3 } else { 4 };
                let digits = rest[sign..]
                    .iter()
                    .take_while(|b| b.is_ascii_digit())
                    .count();
                return Gap::Either {
                    inside: at + sign + digits,
                    behind: ends_of_comment(text, at),
                };
            }
            [b'/', b'*', ..] => match memchr::memmem::find(&rest[2..], b"*/") {
                Some(end) => at += end + 4,
                None => return Gap::Open,
            },
            _ => return Gap::Code(at),
        }
    }
}

/// Where a comment that begins here ends: MariaDB counts one level of comments in it, MySQL does as well in some versions.
fn ends_of_comment(text: &[u8], at: usize) -> Vec<usize> {
    let find = |from: usize, what: &[u8]| {
        let rest = text.get(from..)?;
        memchr::memmem::find(rest, what).map(|found| from + found)
    };
    let Some(first) = find(at + 2, b"*/") else {
        return Vec::new();
    };
    let mut ends = vec![first + 2];
    let (mut level, mut from) = (1, at + 2);
    while level > 0 {
        match (find(from, b"/*"), find(from, b"*/")) {
            (Some(begin), Some(end)) if begin < end => {
                level += 1;
                from = begin + 2;
            }
            (_, Some(end)) => {
                level -= 1;
                from = end + 2;
            }
            (_, None) => return ends,
        }
    }
    if from != first + 2 {
        ends.push(from);
    }
    ends
}

/// All readings of a statement's beginning.
fn read(text: &[u8], tokens: Vec<Token>, readings: &mut Vec<Vec<Token>>) {
    let mut open = vec![(tokens, 0)];
    while let Some((mut tokens, at)) = open.pop() {
        if readings.len() + open.len() > READINGS {
            // Too many; the caller sees that.
            readings.resize(READINGS + 1, Vec::new());
            return;
        }
        match skip(text, at) {
            _ if tokens.len() == TOKENS => readings.push(tokens),
            Gap::Code(at) => {
                let (token, next) = token(text, at);
                tokens.push(token);
                open.push((tokens, next));
            }
            Gap::Either { inside, behind } => {
                open.push((tokens.clone(), inside));
                open.extend(behind.into_iter().map(|at| (tokens.clone(), at)));
            }
            Gap::End => {
                tokens.push(Token::End);
                readings.push(tokens);
            }
            Gap::Open => {
                tokens.push(Token::Sign(b'/'));
                readings.push(tokens);
            }
        }
    }
}

/// The token that begins here.
fn token(text: &[u8], at: usize) -> (Token, usize) {
    let Some(first) = text.get(at).copied() else {
        return (Token::End, at);
    };
    if is_of_word(first) {
        let (from, to) = next_word(text, at).unwrap_or((at, at + 1));
        let word = String::from_utf8_lossy(&text[from..to]).to_ascii_uppercase();
        return (Token::Word(word, from), to);
    }
    if matches!(first, b'\'' | b'"' | b'`') {
        let rest = &text[at + 1..];
        let Some(end) = rest.iter().position(|byte| *byte == first) else {
            return (Token::Quoted(None), text.len());
        };
        let is_plain = !rest[..end].contains(&b'\\') && rest.get(end + 1) != Some(&first);
        return (Token::Quoted(is_plain.then_some(first)), at + end + 2);
    }
    (Token::Sign(first), at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seen in the binlogs of MariaDB 10.11 and MySQL 9.7, and what dumps make servers log.
    const LOGGED: [&str; 66] = [
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "ROLLBACK TO `s`",
        "SAVEPOINT `s`",
        "XA START X'78',X'',1",
        "XA COMMIT X'78',X'',1",
        "CREATE DATABASE app",
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(100))",
        "CREATE TABLE server (directory INT, data TEXT, soname TEXT COMMENT 'a soname', engine INT)",
        "CREATE TABLE t (a INT COMMENT 'the data directory', b INT COMMENT 'search engine=connected')",
        "CREATE TABLE t (a INT COMMENT 'it\\'s the index directory')",
        "CREATE TABLE t (a INT) ENGINE=InnoDB",
        "CREATE DEFINER=`root`@`localhost` FUNCTION `f`(a INT) RETURNS int(11)\n    MODIFIES SQL DATA\nBEGIN RETURN a; END",
        "CREATE DEFINER=`root`@`localhost` TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.v=CONCAT(NEW.v,'!')",
        "CREATE DEFINER=`root`@`localhost` PROCEDURE `p`()\nBEGIN SET GLOBAL max_connections=5; END",
        "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `vw` AS SELECT * FROM t",
        "CREATE OR REPLACE TABLE ex1 (b INT)",
        "CREATE USER 'u'@'%' IDENTIFIED WITH 'caching_sha2_password' AS '$A$00A$S`\\'&:Mo'",
        "CREATE LIBRARY `lib`\n    LANGUAGE JAVASCRIPT\nAS $$export function f(){}$$",
        "CREATE SEQUENCE sq",
        "CREATE TABLESPACE ts ADD DATAFILE 'ts.ibd'",
        "CREATE DATABASE /*!32312 IF NOT EXISTS*/ `dd2` /*!40100 DEFAULT CHARACTER SET utf8mb4 */",
        "ALTER EVENT ev DISABLE",
        "ALTER INSTANCE ROTATE INNODB MASTER KEY",
        "ALTER TABLE t ADD COLUMN z INT",
        "DROP TABLE `cs2` /* generated by server */",
        "DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `tmp`",
        "DROP TABLESPACE ts",
        "RENAME TABLE cs TO cs2",
        "TRUNCATE cs2",
        "GRANT r TO 'u'@'%'",
        "REVOKE r FROM 'w'@'%'",
        "SET PASSWORD FOR 'u'@'%'='*3FBEFEC33FD8E842761B011670846D73057E67BE'",
        "SET DEFAULT ROLE 'r' FOR 'u'@'%'",
        "SET DEFAULT ROLE r TO 'u'@'%'",
        "SET STATEMENT max_statement_time=10 FOR INSERT INTO t(v) VALUES ('SET GLOBAL')",
        "SET STATEMENT max_statement_time=1.5, sql_mode='ANSI', a=-1 FOR ALTER TABLE t ADD COLUMN z INT",
        "SELECT `app`.`f`(1)",
        "SELECT \"app\".\"f\"('x')",
        "ANALYZE TABLE t",
        "OPTIMIZE TABLE t",
        "REPAIR TABLE t",
        "FLUSH TABLES",
        "FLUSH PRIVILEGES",
        "INSERT INTO t(v) VALUES ('LOAD DATA LOCAL INFILE; SET GLOBAL x')",
        "insert into t values (1)",
        "INSERT/**/INTO t VALUES (1)",
        "UPDATE t SET v='z'",
        "DELETE FROM t LIMIT 1",
        "REPLACE INTO t(id,v) VALUES (100,'r')",
        "WITH a AS (SELECT 1 AS x) DELETE t FROM t JOIN a ON t.id=a.x",
        "/* hint */ INSERT INTO t(v) VALUES ('c')",
        "-- by hand\n# twice\n INSERT INTO t(v) VALUES ('c')",
        "/*!50000 INSERT INTO t(v) VALUES ('exec') */",
        "/*!40000 ALTER TABLE t DISABLE KEYS */",
        "/*!50001 DROP VIEW IF EXISTS `vw`*/",
        "/*M!100100 CREATE TABLE `cx` (a int) */",
        "# Dummy event replacing event type 160 that slave cannot handle.",
        "RELEASE SAVEPOINT s",
        "BEGIN WORK",
        "CREATE INDEX i ON t(a)",
        "CREATE UNIQUE INDEX directory ON t(a)",
        "DROP USER 'w'@'%'",
        "ALTER DATABASE app CHARACTER SET utf8mb4",
        "ALTER SEQUENCE sq RESTART 70",
    ];

    #[test]
    fn what_servers_log_is_replayed() {
        for text in LOGGED {
            for author in [Author::Binlog, Author::Tool] {
                check(text.as_bytes(), author).unwrap_or_else(|what| panic!("{text}: {what}"));
            }
        }
        for text in [
            "LOAD DATA INFILE 'x' INTO TABLE t",
            "load /* x */ data local infile 'x'",
        ] {
            check(text.as_bytes(), Author::Load).unwrap();
            check(text.as_bytes(), Author::Tool).unwrap();
        }
        for text in [
            "START TRANSACTION",
            "BINLOG '\n/JoEaw8='",
            "use `app`",
            "SET TIMESTAMP=1795464104.123456",
            "SET @@session.sql_mode=1411383296",
            "SET @@session.character_set_client=utf8mb3,@@session.collation_connection=33",
            "SET INSERT_ID=1",
            "SET @`x`:=_utf8mb3 X'676C6F62616C' COLLATE `utf8mb3_general_ci`",
            "SET @`my global x`:=1",
            "SET @@SESSION.GTID_NEXT= '3e11fa47-71ca-11e1-9e33-c80aa9429562:1'",
            "/*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=1*/",
            "/*!50003 SET @OLD_COMPLETION_TYPE=@@COMPLETION_TYPE,COMPLETION_TYPE=0*/",
            "/*M!100001 SET @@session.gtid_domain_id=0*/",
            "ROLLBACK /* added by mysqlbinlog */",
            "SELECT DATABASE()",
            "select $$",
            "select @@version_comment limit 1",
        ] {
            check(text.as_bytes(), Author::Tool).unwrap_or_else(|what| panic!("{text}: {what}"));
        }
    }

    /// Whose names are in what is said.
    const FORGED: [(&str, &str); 54] = [
        ("LOAD DATA LOCAL INFILE '/k' INTO TABLE t", "LOAD DATA"),
        ("/* x */ load data local infile '/k'", "LOAD DATA"),
        ("SET GLOBAL general_log_file='/x'", "SET GLOBAL"),
        ("SET @@global.general_log=1", "SET"),
        ("SET general_log=1", "SET GENERAL_LOG"),
        ("SET @a=1, GLOBAL general_log=1", "SET"),
        (
            "SET PASSWORD FOR 'u'@'%'='x', GLOBAL general_log=1",
            "SET GLOBAL",
        ),
        (
            "SET DEFAULT ROLE r TO u, @@GLOBAL.general_log=1",
            "SET GLOBAL",
        ),
        (
            "SET STATEMENT max_statement_time=10 FOR SET GLOBAL general_log=1",
            "SET STATEMENT",
        ),
        (
            "SET STATEMENT a='x FOR INSERT' FOR LOAD DATA LOCAL INFILE '/k' INTO TABLE t",
            "LOAD DATA",
        ),
        (
            "SET STATEMENT a='\\'' FOR INSERT' FOR LOAD DATA",
            "SET STATEMENT",
        ),
        (
            "SET STATEMENT a=(SELECT 1) FOR INSERT INTO t VALUES (1)",
            "SET STATEMENT",
        ),
        (
            "SET STATEMENT a=1 /*!50000 FOR LOAD DATA */ FOR INSERT",
            "SET STATEMENT",
        ),
        (
            "SET STATEMENT a=1 FOR /*!50000 SET GLOBAL x=1 */ INSERT",
            "SET STATEMENT",
        ),
        ("INSTALL SONAME 'x'", "INSTALL SONAME"),
        ("UNINSTALL PLUGIN x", "UNINSTALL PLUGIN"),
        ("CHANGE MASTER TO MASTER_HOST='x'", "CHANGE MASTER"),
        ("START SLAVE", "START SLAVE"),
        ("START ALL SLAVES", "START ALL"),
        ("STOP SLAVE", "STOP SLAVE"),
        ("SHUTDOWN", "SHUTDOWN"),
        ("KILL 1", "KILL 1"),
        ("CALL p()", "CALL P"),
        ("DO f()", "DO F"),
        ("HANDLER t OPEN", "HANDLER T"),
        ("EXECUTE IMMEDIATE 'SET GLOBAL x=1'", "EXECUTE IMMEDIATE"),
        ("PREPARE s FROM 'x'", "PREPARE S"),
        ("BEGIN NOT ATOMIC SET GLOBAL x=1; END", "BEGIN NOT"),
        ("BEGIN; SET GLOBAL x=1", "BEGIN"),
        ("IF 1 THEN SET GLOBAL x=1; END IF", "IF 1"),
        ("SELECT 1 INTO OUTFILE '/x'", "SELECT"),
        ("SELECT f(1)", "SELECT"),
        ("(SELECT 1)", "does not begin with a word"),
        (
            "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'x')",
            "CREATE SERVER",
        ),
        (
            "CREATE OR REPLACE SERVER s FOREIGN DATA WRAPPER mysql",
            "CREATE SERVER",
        ),
        ("CREATE /*!50000 SERVER */ s", "CREATE SERVER"),
        ("ALTER SERVER s OPTIONS (HOST 'x')", "ALTER SERVER"),
        ("ALTER INSTANCE DISABLE INNODB REDO_LOG", "ALTER INSTANCE"),
        (
            "CREATE FUNCTION f RETURNS STRING SONAME 'evil.so'",
            "SONAME",
        ),
        (
            "CREATE FUNCTION f RETURNS STRING SONAME/**/'evil.so'",
            "SONAME",
        ),
        (
            "CREATE TABLE t (a INT) DATA DIRECTORY='/tmp'",
            "DATA DIRECTORY",
        ),
        (
            "CREATE TABLE t (a INT) data/* x */directory = '/tmp'",
            "DATA DIRECTORY",
        ),
        (
            "CREATE TABLE t (a INT) INDEX /*!50000 DIRECTORY */ /*!99999 ' */ \"/tmp\"",
            "DIRECTORY",
        ),
        (
            "ALTER TABLE t PARTITION BY HASH (a) (PARTITION p DATA DIRECTORY '../x')",
            "DIRECTORY",
        ),
        (
            "CREATE TABLE t (a INT COMMENT 'a\\') DATA DIRECTORY='/tmp' -- '",
            "DIRECTORY",
        ),
        (
            "CREATE TABLE t (a INT) ENGINE=CONNECT FILE_NAME='/etc/passwd'",
            "ENGINE=CONNECT",
        ),
        (
            "CREATE TABLE t (a INT) ENGINE = `federated`",
            "ENGINE=FEDERATED",
        ),
        ("/*!99999 INSERT */ SET GLOBAL x=1", "SET GLOBAL"),
        ("/*!99999 INSERT /* */ */ SET GLOBAL x=1", "SET GLOBAL"),
        ("/*!50000 SET GLOBAL x=1 */", "SET GLOBAL"),
        (
            "/*M!50000 SET GLOBAL x=1 */ INSERT INTO t VALUES (1)",
            "SET GLOBAL",
        ),
        ("USE mysql", "USE MYSQL"),
        ("BINLOG 'x'", "BINLOG"),
        ("INSERT INTO t VALUES (1)/*!*/;\nSET GLOBAL x=1", "/*!*/;"),
    ];

    #[test]
    fn what_no_server_logs_is_refused() {
        for (text, what) in FORGED {
            let said = check(text.as_bytes(), Author::Binlog).expect_err(text);
            assert!(said.contains(what), "{text}: {said}");
        }
        for text in [
            "INSERT INTO t VALUES (1)",
            "SET GLOBAL x=1",
            "LOAD INDEX INTO CACHE t",
        ] {
            check(text.as_bytes(), Author::Load).expect_err(text);
        }
        for text in [
            "SET GLOBAL general_log=1",
            "SET @@session.sql_mode=1, @@GLOBAL.general_log=1",
            "SET @`a`:=1, GLOBAL general_log=1",
            "SET @`a\\`:=1, GLOBAL general_log=1",
            "SET @a='\\', GLOBAL general_log_file='/x'",
            "SET PERSIST max_connections=1",
            "SET debug_dbug='d:t:o,/tmp/x'",
            "/*!50530 SET @@GLOBAL.general_log=1*/",
            "/*!99999 SET @a=1 */ INSTALL SONAME 'x'",
            "SELECT 1",
            "LOAD INDEX INTO CACHE t",
            "SHUTDOWN",
        ] {
            check(text.as_bytes(), Author::Tool).expect_err(text);
        }
    }

    #[test]
    fn many_comments_are_refused_and_not_followed() {
        for text in [
            format!("{} INSERT INTO t VALUES (1)", "/*!50000*/".repeat(500)),
            format!(
                "CREATE TABLE t (a INT) DATA {} DIRECTORY='/x'",
                "/*!50000*/".repeat(500)
            ),
            format!(
                "CREATE TABLE t (a INT) DATA {} DIRECTORY='/x'",
                "/*!50000 /* */".repeat(500)
            ),
        ] {
            check(text.as_bytes(), Author::Binlog).unwrap_err();
        }
    }
}
