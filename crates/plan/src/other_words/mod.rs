//! Statements in other words that mean the same, for rules that do not read the ones of MySQL.
//!
//! A session takes them where it would refuse a statement. `table.rs` spells out `TABLE t`,
//! `rows.rs` leaves out the word in `INSERT … VALUES ROW(…)`, `with.rs` writes the parts of
//! `WITH … UPDATE` and `WITH … DELETE` where they are read.

mod rows;
mod table;
mod with;

use onionskin_value::Family;

use crate::errors::{self, Refusal};
use crate::lex::{LexMode, Token, TokenKind, unwrapped};
use crate::request::Settings;

/// A statement that was refused, in words that rules may read. `None`: there are none.
pub fn in_other_words(sql: &[u8], refusal: &Refusal, settings: &Settings) -> Option<Vec<u8>> {
    let is_wrapped = refusal.is_any(&[
        &errors::EXECUTABLE_COMMENT,
        &errors::TRACKING,
        &errors::UNPROTECTED,
        &errors::NO_TABLE,
    ]);
    match () {
        () if is_wrapped => unwrapped(sql, settings.lex),
        () if settings.family == Family::MySql => other_words(sql, settings.lex),
        () => None,
    }
}

/// A statement of MySQL's in other words. `None`: there are none.
fn other_words(sql: &[u8], mode: LexMode) -> Option<Vec<u8>> {
    table::spelled_out(sql, mode)
        .or_else(|| rows::listed(sql, mode))
        .or_else(|| with::inlined(sql, mode))
}

/// Whether a name stands here that belongs to the one before the dot.
fn is_member(all: &[Token], at: usize) -> bool {
    at > 0 && all[at - 1].is(b'.')
}

/// The token of the parenthesis that closes the one at a token.
fn closing(all: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in all.iter().enumerate().skip(open) {
        match token.kind {
            TokenKind::Punct(b'(') => depth += 1,
            TokenKind::Punct(b')') => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return (at > open).then_some(at);
        }
    }
    None
}

fn is_name(token: &Token) -> bool {
    matches!(token.kind, TokenKind::Word | TokenKind::Quoted)
}

fn is_one_of(sql: &[u8], token: &Token, words: &[&str]) -> bool {
    words.iter().any(|word| token.is_word(sql, word))
}
