//! Constants in the queries of views.
//!
//! The server compares with a token, as in any query. What the client wrote has to be shown by
//! `SHOW CREATE VIEW` and by dumps, and the view has nothing else that could carry it. So the
//! constant is `LEFT(X'…', n)`: n bytes of the token, and behind them, sealed, the token and the
//! text. The token is sealed once more so that nobody can give the text to another token.

use onionskin_crypt::{ColumnId, cell_header};
use onionskin_plan::{Ddl, DdlPiece, LiteralKind, Slot, Source, errors};
use onionskin_schema::show_view_constants;
use onionskin_value::Input;

use crate::bind::Filled;
use crate::error::{Failure, Outcome};
use crate::hex::put_hex;
use crate::session::{Execution, Session};

/// These texts are no column's: a name in the place of the ids that are drawn for one.
const ID: ColumnId = ColumnId {
    table: *b"constant",
    column: *b"view",
};

impl Session {
    /// A view's definition with its constants; `None` if it has none.
    pub fn with_view_constants(
        &mut self,
        execution: &Execution,
        ddl: &Ddl,
    ) -> Outcome<Option<Ddl>> {
        let is_constant = |piece: &DdlPiece| matches!(piece, DdlPiece::Constant(_));
        if !ddl.pieces.iter().any(is_constant) {
            return Ok(None);
        }
        let mut ddl = ddl.clone();
        for piece in &mut ddl.pieces {
            if let DdlPiece::Constant(slot) = piece {
                *piece = DdlPiece::Sql(self.view_constant(execution, slot)?);
            }
        }
        Ok(Some(ddl))
    }

    fn view_constant(&mut self, execution: &Execution, slot: &Slot) -> Outcome<Vec<u8>> {
        let text = self.as_shown(execution, slot)?;
        let mut binder = execution.binder(&self.state, &mut self.buffers);
        let token = match binder.fill(slot, 0, 1)? {
            Filled::Bytes(bytes) => bytes.to_vec(),
            Filled::Null => return Err(unlike()),
        };
        // every reader would be warned
        if !binder.warnings.is_empty() {
            return Err(unlike());
        }
        let config = &self.shared.config;
        let cipher = config
            .keys
            .column_cipher(config.suite.into(), config.keys.active_key(), ID, None)
            .map_err(|e| Failure::key(&e, "a view"))?;
        let mut payload = token.clone();
        payload.extend_from_slice(text.as_bytes());
        let mut bytes = token.clone();
        cipher
            .seal(&payload, &mut bytes)
            .map_err(|_| Failure::refused(&errors::INTERNAL, "a view's constant"))?;
        let mut out = b"LEFT(".to_vec();
        put_hex(&bytes, &mut out);
        out.extend_from_slice(format!(", {})", token.len()).as_bytes());
        Ok(out)
    }

    /// A constant as the server would show it.
    fn as_shown(&self, execution: &Execution, slot: &Slot) -> Outcome<String> {
        let values = execution.values;
        let literal = |index: usize| {
            let literal = values.literals.get(index);
            // that a text says its own character set would have to be shown as well
            let literal = literal.filter(|l| l.kind != LiteralKind::Introduced);
            let text = literal.and_then(|l| std::str::from_utf8(l.text(values.sql)).ok());
            text.ok_or_else(unlike)
        };
        match slot.source {
            Source::Moment { index, is_date } => {
                let word = if is_date { "DATE" } else { "TIMESTAMP" };
                Ok(format!("{word}{}", literal(index)?))
            }
            Source::Literal { index, negative } => {
                let written = literal(index)?;
                let mut scratch = Vec::new();
                let input = values.input(index, negative, &self.state, &mut scratch, "a view")?;
                match input {
                    Input::Text { bytes, charset } => {
                        let utf8 = charset.to_utf8(bytes);
                        let text = utf8.and_then(|bytes| String::from_utf8(bytes).ok());
                        Ok(quoted(&text.ok_or_else(unlike)?))
                    }
                    Input::Integer { .. } | Input::Decimal(_) | Input::Double(_) => {
                        let sign = if negative { "-" } else { "" };
                        Ok(format!("{sign}{written}"))
                    }
                    _ => Err(unlike()),
                }
            }
            _ => Err(unlike()),
        }
    }

    /// A view's text with its constants as the client wrote them.
    pub fn show_constants(&self, text: &str) -> String {
        show_view_constants(text, |bytes, length| self.constant_of(bytes, length))
    }

    fn constant_of(&self, bytes: &[u8], length: usize) -> Option<String> {
        let (token, cell) = bytes.split_at_checked(length)?;
        let header = cell_header(cell).ok()?;
        let keys = &self.shared.config.keys;
        let cipher = keys.column_cipher(header.format, header.key_id, ID, None);
        let mut payload = Vec::new();
        cipher.ok()?.open(cell, &mut payload).ok()?;
        String::from_utf8(payload.strip_prefix(token)?.to_vec()).ok()
    }
}

/// A constant that would not be shown as it was written, or that does not mean the same to all.
fn unlike() -> Failure {
    let about = "a constant that a protected column is compared with";
    Failure::refused(&errors::VIEW, about)
}

/// As the servers write texts into the text of a view.
fn quoted(text: &str) -> String {
    let mut out = String::from("'");
    for c in text.chars() {
        match c {
            '\0' => out.push_str("\\0"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\u{1a}' => out.push_str("\\Z"),
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}
