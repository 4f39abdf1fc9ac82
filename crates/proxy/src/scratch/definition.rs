//! Definitions of tables that are refused because of what stands in them: where no server would
//! have it, the error is the server's own.
//!
//! `DEFAULT 'x'` for an INT, a BIT(65), a DECIMAL(5,7): an application that gets these wrong is
//! told so in the words, and with the number, that it knows. The scratch engine is asked, by a
//! temporary table of the same text.

use onionskin_plan::{LexMode, Refusal, Scratch, errors, lex};
use onionskin_wire::Step;

use super::settings;
use crate::error::{Failure, Outcome};
use crate::session::Session;

/// What servers say of a column that cannot be: a syntax error, an unknown type, an impossible
/// default, a length, precision or scale out of range, members that are there twice, an attribute
/// that does not go with the type.
const OF_DEFINITIONS: [u16; 14] = [
    1063, 1064, 1067, 1074, 1101, 1171, 1291, 1294, 1425, 1426, 1427, 1439, 3013, 4161,
];
/// Words of definitions that mean something else for a temporary table, name other tables, or are
/// the proxy's own.
const OTHERS: [&str; 13] = [
    "directory",
    "encrypted",
    "foreign",
    "like",
    "partition",
    "period",
    "references",
    "select",
    "tablespace",
    "union",
    "versioning",
    "with",
    "without",
];

impl Session {
    /// The failure of a statement that was refused.
    pub fn refused(&mut self, sql: &[u8], refusal: &Refusal) -> Failure {
        let own = || Failure::from(refusal.clone());
        if !refusal.is(&errors::DEFINITION) || self.shared.config.scratch.is_none() {
            return own();
        }
        let collation = &self.space.settings.default_collation;
        let Some((text, name)) = temporary(sql, self.state.lex_mode(), collation) else {
            return own();
        };
        match self.defined(&text, &name) {
            Ok(Some(Failure::Server {
                code,
                state,
                message,
            })) if OF_DEFINITIONS.contains(&code) => Failure::Server {
                code,
                state,
                message,
            },
            Err(failure) if failure.is_fatal() => failure,
            _ => own(),
        }
    }

    /// What the engine says to a temporary table's definition: its error, if it is one.
    fn defined(&mut self, text: &[u8], name: &str) -> Outcome<Option<Failure>> {
        self.with_engine(&Scratch::default(), |session, engine| {
            let server = &mut session.server;
            let settings = settings::of_session(server, engine, &session.state, &[])?;
            if let Some(database) = &session.state.database {
                engine.enter(database)?;
            }
            let gone = format!("DROP TEMPORARY TABLE IF EXISTS {name}");
            engine.put(gone.as_bytes())?;
            engine.share(&settings)?;
            let question = engine.server.put_query(text).map_err(super::engine::ours)?;
            engine.settle()?;
            engine.server.begin(question).map_err(super::engine::ours)?;
            let mut failure = None;
            while !engine.server.tracker.is_complete() {
                if engine.server.step().map_err(super::engine::ours)? == Step::Err {
                    failure = Some(engine.server.error());
                    break;
                }
            }
            engine.put(gone.as_bytes())?;
            Ok(failure)
        })
    }
}

/// The definition of a temporary table like one that a statement makes, and its name; `None` if
/// they may differ in more than that.
fn temporary(sql: &[u8], mode: LexMode, collation: &str) -> Option<(Vec<u8>, String)> {
    let tokens = lex::tokens(sql, mode).ok()?;
    let word = |at: usize, w: &str| tokens.get(at).is_some_and(|t| t.is_word(sql, w));
    let mut at = 1;
    if !word(0, "create") {
        return None;
    }
    if word(at, "or") && word(at + 1, "replace") {
        at += 2;
    }
    at += usize::from(word(at, "temporary"));
    if !word(at, "table") {
        return None;
    }
    at += 1;
    if word(at, "if") {
        at += 3;
    }
    let name = tokens.get(at)?;
    let is_name = matches!(name.kind, lex::TokenKind::Word | lex::TokenKind::Quoted);
    let rest = tokens.get(at + 1..)?;
    if !is_name || !rest.first()?.is(b'(') {
        return None;
    }
    let strange = |t: &lex::Token| {
        t.kind == lex::TokenKind::Executable || OTHERS.iter().any(|w| t.is_word(sql, w))
    };
    if rest.iter().any(strange) {
        return None;
    }
    let mut depth = 0usize;
    let close = rest.iter().position(|token| {
        depth += usize::from(token.is(b'('));
        depth -= usize::from(token.is(b')') && depth > 0);
        depth == 0
    })?;
    let mut text = b"CREATE TEMPORARY TABLE ".to_vec();
    text.extend_from_slice(&sql[name.start..rest[close].end]);
    // Options name engines, files and other servers, which are nothing to the engine. A character
    // set changes what a column may hold.
    let options = &rest[close + 1..];
    let option = |at: usize| {
        let mut behind = options.get(at..)?.iter().skip_while(|t| t.is(b'='));
        let word = behind.next()?.text(sql);
        let is_name = word.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
        is_name.then(|| String::from_utf8_lossy(word).into_owned())
    };
    let mut named = false;
    for (at, token) in options.iter().enumerate() {
        let is = |at: usize, w: &str| options.get(at).is_some_and(|t| t.is_word(sql, w));
        let (words, clause) = match () {
            () if token.is_word(sql, "charset") => (1, "CHARACTER SET"),
            () if token.is_word(sql, "character") && is(at + 1, "set") => (2, "CHARACTER SET"),
            () if token.is_word(sql, "collate") => (1, "COLLATE"),
            () => continue,
        };
        text.extend_from_slice(format!(" {clause} {}", option(at + words)?).as_bytes());
        named = true;
    }
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if !named && collation.bytes().all(is_name) {
        // the database's
        text.extend_from_slice(format!(" COLLATE {collation}").as_bytes());
    }
    let name = std::str::from_utf8(name.text(sql)).ok()?.to_owned();
    Some((text, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_asked_for_as_a_temporary_one() {
        let of = |sql: &str| {
            let (text, name) = temporary(sql.as_bytes(), LexMode::default(), "utf8mb4_general_ci")?;
            Some((String::from_utf8(text).unwrap(), name))
        };
        assert_eq!(
            of("create or replace table if not exists `t` (a bit(65));"),
            Some((
                "CREATE TEMPORARY TABLE `t` (a bit(65)) COLLATE utf8mb4_general_ci".into(),
                "`t`".into()
            ))
        );
        assert_eq!(
            of("CREATE TABLE t (a INT) CHARSET latin1").unwrap().0,
            "CREATE TEMPORARY TABLE t (a INT) CHARACTER SET latin1"
        );
        assert_eq!(
            of("CREATE TABLE t (a BIT(65), KEY (a)) ENGINE=FEDERATED CONNECTION='mysql://u@h/d/t' DEFAULT CHARACTER SET = utf8mb4 COLLATE utf8mb4_bin").unwrap().0,
            "CREATE TEMPORARY TABLE t (a BIT(65), KEY (a)) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
        );
        for other in [
            "CREATE TABLE t (a INT) CHARSET 'x y'",
            "CREATE TABLE d.t (a INT)",
            "CREATE TABLE t (a INT REFERENCES u (b))",
            "CREATE TABLE t (a INT ENCRYPTED FOR (eq))",
            "CREATE TABLE t (a INT) PARTITION BY HASH (a)",
            "CREATE TABLE t SELECT 1",
            "ALTER TABLE t ADD a INT",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
