//! What stands behind the list of columns of a `CREATE TABLE`: options, system versioning,
//! partitions. Each is read with what belongs to it, so that a name in one is not taken for
//! another, and the error names the first part that is not understood.

use super::collation::default_collation;
use super::reader::Reader;
use crate::errors::{self, Refusal};
use crate::lex::{Token, TokenKind};
use crate::planner::{Planned, Request, identifier, refuse};

/// The options of a table.
#[derive(Default)]
pub(super) struct Options {
    charset: Option<String>,
    collation: Option<String>,
    /// An engine is named that is not InnoDB. Others leave foreign keys out.
    pub(super) other_engine: bool,
    /// `UNION = (…)`: tables.
    pub(super) is_union: bool,
    /// `WITH SYSTEM VERSIONING`
    pub(super) is_versioned: bool,
    /// How the table is partitioned.
    pub(super) partitions: Option<Partitions>,
}

/// `PARTITION BY …`
#[derive(Default)]
pub(super) struct Partitions {
    /// The names that stand where those of columns may.
    names: Vec<String>,
    /// `KEY ()`: by the primary key, or another unique one.
    by_own_key: bool,
}

/// Words with which a query begins, or what stands before one.
const QUERY: [&str; 7] = [
    "as", "ignore", "replace", "select", "table", "values", "with",
];

impl Options {
    /// Reads them. Executable comments have been looked at before.
    pub(super) fn read(mut r: Reader) -> Planned<Self> {
        let mut options = Options::default();
        while !r.done() {
            if r.eat_punct(b',') {
                continue;
            }
            if let Some(comment) = r.token().filter(|t| t.kind == TokenKind::Executable) {
                match partitions_within(&r, &comment)? {
                    Some(partitions) => options.partitions = Some(partitions),
                    None => options.other_engine |= names_other_engine(comment.text(r.sql())),
                }
                r.at += 1;
            } else if r.eat_words(&["with", "system", "versioning"]) {
                options.is_versioned = true;
            } else if r.is("partition") && r.word_at(1, "by") {
                options.partitions = Some(Partitions::read(&mut r)?);
            } else {
                options.option(&mut r)?;
            }
        }
        Ok(options)
    }

    /// Reads `[DEFAULT] name [=] value`.
    fn option(&mut self, r: &mut Reader) -> Planned<()> {
        if QUERY.iter().any(|word| r.is(word)) {
            let about = "CREATE TABLE … SELECT with a protected table";
            return refuse(&errors::STATEMENT, about);
        }
        let start = r.token();
        let bad = not_understood(r.sql(), start, "the table's options");
        let bad_name = || Refusal::new(&errors::DEFINITION, "the name of its character set");
        r.eat("default");
        if r.eat("charset") || r.eat_words(&["character", "set"]) {
            r.eat_punct(b'=');
            self.charset = Some(r.name_or_string().ok_or_else(bad_name)?);
            return Ok(());
        }
        if r.eat("collate") {
            r.eat_punct(b'=');
            self.collation = Some(r.name_or_string().ok_or_else(bad_name)?);
            return Ok(());
        }
        if r.eat("engine") || r.eat("type") {
            r.eat_punct(b'=');
            let engine = r.name_or_string();
            let is_innodb = engine.is_some_and(|name| name.eq_ignore_ascii_case("innodb"));
            self.other_engine |= !is_innodb;
            return Ok(());
        }
        if r.eat("union") {
            r.eat_punct(b'=');
            self.is_union = true;
            return r.parenthesized().map(|_| ()).ok_or(bad);
        }
        let is_place = r.eat_words(&["data", "directory"]) || r.eat_words(&["index", "directory"]);
        let named = is_place || r.name().is_some();
        r.eat_punct(b'=');
        let value = r.token().is_some_and(|token| {
            let is_value = matches!(
                token.kind,
                TokenKind::Word | TokenKind::Quoted | TokenKind::Literal(_)
            );
            is_value && !(r.is("partition") && r.word_at(1, "by"))
        });
        r.at += usize::from(value);
        match named && value {
            true => Ok(()),
            false => Err(bad),
        }
    }

    /// The collation that they name.
    pub(super) fn collation(&self, r: &Reader) -> Planned<Option<String>> {
        let charset = match (&self.collation, &self.charset) {
            (Some(collation), _) => return Ok(Some(collation.to_ascii_lowercase())),
            (None, Some(charset)) => charset,
            (None, None) => return Ok(None),
        };
        let collation = default_collation(charset, r.request.settings);
        let unknown = || Refusal::new(&errors::DEFINITION, format!("CHARACTER SET {charset}"));
        collation
            .map(|name| Some(name.to_owned()))
            .ok_or_else(unknown)
    }
}

/// `/*!50100 PARTITION BY … */`, as MySQL shows it. `None`: the comment holds something else.
pub(super) fn partitions_within(r: &Reader, comment: &Token) -> Planned<Option<Partitions>> {
    let (body, version) = crate::lex::executable(comment.text(r.sql()));
    let inner = &body[version..];
    let Ok(tokens) = crate::lex::tokens(inner, r.request.settings.lex) else {
        return Ok(None);
    };
    let request = Request {
        sql: inner,
        ..*r.request
    };
    let mut inside = Reader::over(&request, &tokens, 0..tokens.len());
    match inside.is("partition") && inside.word_at(1, "by") {
        true => Partitions::read(&mut inside).map(Some),
        false => Ok(None),
    }
}

/// Whether an executable comment may name an engine that is not InnoDB.
fn names_other_engine(comment: &[u8]) -> bool {
    let text = String::from_utf8_lossy(comment).to_ascii_lowercase();
    (text.contains("engine") || text.contains("type")) && !text.contains("innodb")
}

impl Partitions {
    /// Reads `PARTITION BY …`, up to the end; the reader stands before it.
    pub(super) fn read(r: &mut Reader) -> Planned<Self> {
        r.at += 2;
        let mut found = Partitions::default();
        if r.eat("system_time") {
            system_time(r);
        } else {
            found.method(r)?;
        }
        loop {
            let start = r.token();
            if r.eat("partitions") || r.eat("subpartitions") {
                r.at += 1;
            } else if r.is("subpartition") && r.word_at(1, "by") {
                r.at += 2;
                found.method(r)?;
            } else if r.token().is_some_and(|t| t.is(b'(')) && r.parenthesized().is_some() {
                // bounds are constants: a column's name is no keyword of theirs
            } else if r.done() {
                return Ok(found);
            } else {
                return Err(not_understood(r.sql(), start, "PARTITION BY"));
            }
        }
    }

    /// Reads how rows are spread, and over what.
    fn method(&mut self, r: &mut Reader) -> Planned<()> {
        let start = r.token();
        r.eat("linear");
        let by_key = r.eat("key");
        let known = by_key || r.eat("hash") || r.eat("range") || r.eat("list");
        if by_key && r.eat("algorithm") {
            r.eat_punct(b'=');
            r.at += 1;
        }
        r.eat("columns");
        let inside = r.parenthesized().filter(|_| known);
        let inside = inside.ok_or_else(|| not_understood(r.sql(), start, "PARTITION BY"))?;
        self.by_own_key |= by_key && inside.is_empty();
        let tokens = r.tokens[inside].iter();
        let names = tokens.filter_map(|token| identifier(r.sql(), token));
        self.names.extend(names);
        Ok(())
    }

    /// Refuses those that read protected columns. `has_own_key`: one is part of a key by which `KEY
    /// ()` may spread rows.
    pub(super) fn check(
        &self,
        is_protected: impl Fn(&str) -> bool,
        has_own_key: bool,
    ) -> Planned<()> {
        if let Some(name) = self.names.iter().find(|name| is_protected(name)) {
            let about = format!("PARTITION BY reads column {name}");
            return refuse(&errors::DEFINITION, about);
        }
        match self.by_own_key && has_own_key {
            true => refuse(
                &errors::DEFINITION,
                "PARTITION BY KEY () over a key with a protected column",
            ),
            false => Ok(()),
        }
    }
}

/// Reads what stands behind SYSTEM_TIME: an interval, a limit, AUTO. No column can stand there.
fn system_time(r: &mut Reader) {
    while !r.done() && !r.is("partitions") && !r.is("subpartition") {
        let is_list = r.token().is_some_and(|t| t.is(b'(')) && r.word_at(1, "partition");
        if is_list {
            return;
        }
        r.at += 1;
    }
}

/// Refuses MariaDB's versions of rows. An UPDATE that changes nothing makes one there, and is
/// counted; the proxy leaves such rows alone.
pub(super) fn versioned<T>(entry: &'static errors::Entry) -> Planned<T> {
    let about = "SYSTEM VERSIONING, where rows that an UPDATE leaves as they are get versions, too";
    refuse(entry, about)
}

/// Refuses the part of a definition that begins with a token.
pub(super) fn not_understood(sql: &[u8], token: Option<Token>, whole: &str) -> Refusal {
    // errors are logged, and shown: no constant stands in them
    let part = match token.map(|token| token.kind) {
        Some(TokenKind::Literal(_)) => "a constant".into(),
        Some(TokenKind::Executable) => "a comment that servers execute".into(),
        _ => String::from_utf8_lossy(token.map_or(b"", |token| token.text(sql))),
    };
    let about = format!("{part} in {whole}");
    Refusal::new(&errors::DEFINITION, about)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lex::{LexMode, tokens};

    #[test]
    fn no_constant_stands_in_an_error() {
        for sql in ["'secret'", "/*!50000 'secret' */", "5"] {
            let read = tokens(sql.as_bytes(), LexMode::default()).expect("tokens");
            let message = not_understood(sql.as_bytes(), read.first().copied(), "it").message();
            assert!(
                !message.contains("secret") && !message.contains('5'),
                "{message}"
            );
        }
    }
}
