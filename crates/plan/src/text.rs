//! Texts that planning makes, and names in them.

use crate::lex::{Token, TokenKind};
use crate::plan::{Piece, Text};

/// Builds a text, joining neighbouring pieces of SQL.
#[derive(Default)]
pub(crate) struct TextBuilder {
    pieces: Text,
}

impl TextBuilder {
    pub fn sql(&mut self, sql: &[u8]) {
        match self.pieces.last_mut() {
            Some(Piece::Sql(last)) => last.extend_from_slice(sql),
            _ => self.pieces.push(Piece::Sql(sql.to_vec())),
        }
    }

    pub fn piece(&mut self, piece: Piece) {
        match piece {
            Piece::Sql(sql) => self.sql(&sql),
            other => self.pieces.push(other),
        }
    }

    pub fn finish(self) -> Text {
        self.pieces
    }
}

/// An identifier's name; `None` for tokens that are none.
pub(crate) fn identifier(sql: &[u8], token: &Token) -> Option<String> {
    let text = std::str::from_utf8(token.text(sql)).ok()?;
    match token.kind {
        TokenKind::Word => Some(text.to_string()),
        TokenKind::Quoted => {
            let quote = text.chars().next()?;
            let inner = text.get(1..text.len().checked_sub(1)?)?;
            Some(inner.replace(&format!("{quote}{quote}"), &quote.to_string()))
        }
        _ => None,
    }
}

/// Quotes a name for SQL text.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
