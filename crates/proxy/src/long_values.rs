//! Commands that are longer than the server takes (`max_allowed_packet`): their long values go
//! ahead of them, in pieces.
//!
//! A server ends the session of a client that sends too long a packet, so nothing of that kind is
//! sent: what does not fit in any form is OS1206, with the servers' own number 1153, and the
//! session goes on.
//!
//! | command | what is done |
//! |---|---|
//! | an execution | long parameters go ahead as COM_STMT_SEND_LONG_DATA |
//! | a text that changes rows | it is prepared at the server with a `?` for each long constant, executed as above, and closed |
//! | any other | OS1206 |
//!
//! A value in pieces may be as long as `max_allowed_packet` itself; everything else must be
//! shorter. A sealed value is longer than what it holds ([`onionskin_crypt`]), so the last few
//! bytes below the limit are out of reach.

use onionskin_plan::lex::{Token, TokenKind, tokens};
use onionskin_plan::{LiteralKind, errors};
use onionskin_wire::messages::{
    ComStmtExecute, ComStmtSendLongData, Command, CursorType, ExecuteWriter, Param,
    encode_statement_command,
};
use onionskin_wire::{BinaryValue, ColumnType, ParamType, Step};

use crate::error::{Failure, Outcome, too_long};
use crate::exchange::{Question, Server};
use crate::hex::unhex;
use crate::packet_bound::PacketBound;

/// Constants from this length on are taken out of a text.
const CONSTANT: usize = 64;
/// Parameters from this length on can be sent ahead.
const PARAMETER: usize = 1024;
/// A piece of a value.
const PIECE: usize = 1 << 20;
/// Room for the head of a piece.
const HEAD: usize = 16;
/// A statement can have that many parameters.
const PARAMETERS: usize = 65_535;

/// A constant that was taken out of a text.
struct Taken {
    value: Vec<u8>,
}

impl Server {
    /// Whether a payload is short enough to be sent.
    pub fn takes(&self, length: usize) -> bool {
        length < self.bound.packet
    }

    /// Ends a command that is too long.
    #[cold]
    pub(crate) fn end_long_command(&mut self, command: Command) -> Outcome<Question> {
        let payload = self.connection.take_payload();
        // another question in between would be answered among those that are outstanding
        if command != Command::Query || !self.is_settled() {
            return Err(too_long());
        }
        let sql = payload.get(1..).unwrap_or_default();
        let (text, taken) = take_constants(sql, &self.bound).ok_or_else(too_long)?;
        drop(payload);
        let fits = |t: &Taken| t.value.len() <= self.bound.packet;
        if !self.takes(text.len() + 1) || !taken.iter().all(fits) {
            return Err(too_long());
        }
        let statement = self.prepare_text(&text, Some(taken.len()))?;
        let mut body = Vec::new();
        let none = CursorType::NO_CURSOR;
        let mut writer = ExecuteWriter::begin(&mut body, statement, none, taken.len());
        let written = taken.iter().try_for_each(|taken| {
            let value = BinaryValue::Bytes(&taken.value);
            writer.param(&mut body, ParamType::new(ColumnType::BLOB), &value)
        });
        written.map_err(|_| internal())?;
        writer.finish().map_err(|_| internal())?;
        let count = taken.len();
        drop(taken);
        let executed = self.execution_in_pieces(&body, count);
        let mut close = Vec::new();
        encode_statement_command(&mut close, Command::StmtClose, statement);
        self.put_silent(&close)?;
        self.flush()?;
        executed
    }

    /// Prepares a text of the server's own, with so many parameters, or any. Its error is the
    /// statement's.
    pub fn prepare_text(&mut self, text: &[u8], params: Option<usize>) -> Outcome<u32> {
        let out = self.begin_command();
        out.push(Command::StmtPrepare.to_byte());
        out.extend_from_slice(text);
        let question = self.end_command(Command::StmtPrepare)?;
        self.flush()?;
        self.begin(question)?;
        let mut prepared = None;
        while !self.tracker.is_complete() {
            match self.step()? {
                Step::Err => return Err(self.error()),
                Step::PrepareOk(ok) => prepared = Some(ok),
                _ => {}
            }
        }
        match prepared {
            Some(ok) if params.is_none_or(|params| usize::from(ok.num_params) == params) => {
                Ok(ok.statement_id)
            }
            _ => Err(internal()),
        }
    }

    /// Ends the execution of a statement with so many parameters.
    pub fn end_execution(&mut self, params: usize) -> Outcome<Question> {
        if self.takes(self.connection.payload_in_work().len()) {
            return self.end_command(Command::StmtExecute);
        }
        let payload = self.connection.take_payload();
        self.execution_in_pieces(&payload, params)
    }

    /// Sends an execution, as many of its parameters ahead of it as it takes. Nothing is sent if it
    /// does not fit all the same.
    fn execution_in_pieces(&mut self, body: &[u8], params: usize) -> Outcome<Question> {
        let mut types = Vec::new();
        let head = ComStmtExecute::decode(body, params, &mut types).map_err(|_| internal())?;
        let params: Vec<Param> = head
            .params(&types, |_| false)
            .collect::<Result<_, _>>()
            .map_err(|_| internal())?;
        let ahead = sent_ahead(&params, body.len(), self.bound.packet).ok_or_else(too_long)?;
        let statement_id = head.statement_id;
        let longest = self.bound.packet.saturating_sub(HEAD).clamp(1, PIECE);
        for (n, param) in params.iter().enumerate() {
            let (true, BinaryValue::Bytes(bytes)) = (ahead[n], param.value) else {
                continue;
            };
            let param = u16::try_from(n).map_err(|_| internal())?;
            for data in bytes.chunks(longest) {
                let piece = ComStmtSendLongData {
                    statement_id,
                    param,
                    data,
                };
                self.connection.reset_sequence();
                piece.encode(self.connection.begin_payload());
                self.connection.end_payload().map_err(Failure::Backend)?;
            }
        }
        let mut rest = Vec::new();
        let mut writer = ExecuteWriter::begin(&mut rest, statement_id, head.cursor, params.len());
        for (param, ahead) in params.iter().zip(&ahead) {
            let value = if *ahead {
                &BinaryValue::LongData
            } else {
                &param.value
            };
            let written = writer.param(&mut rest, param.ty, value);
            written.map_err(|_| internal())?;
        }
        writer.finish().map_err(|_| internal())?;
        self.begin_command().extend_from_slice(&rest);
        let question = self.end_command(Command::StmtExecute)?;
        // the pieces have no answer: they must not go without the execution that uses them up
        self.flush()?;
        Ok(question)
    }
}

fn internal() -> Failure {
    Failure::refused(&errors::INTERNAL, "a command in pieces")
}

/// Which parameters go ahead so that the rest fits, the longest first; `None` if it does not.
fn sent_ahead(params: &[Param], length: usize, packet: usize) -> Option<Vec<bool>> {
    let mut ahead = vec![false; params.len()];
    let mut long: Vec<(usize, usize)> = Vec::new();
    for (n, param) in params.iter().enumerate() {
        if let BinaryValue::Bytes(bytes) = param.value
            && bytes.len() >= PARAMETER
            && param.ty.kind.is_length_encoded()
        {
            long.push((bytes.len(), n));
        }
    }
    long.sort_unstable_by(|a, b| b.cmp(a));
    let mut rest = length;
    for (bytes, n) in long {
        if rest < packet {
            break;
        }
        if bytes > packet {
            return None;
        }
        ahead[n] = true;
        rest -= bytes;
    }
    (rest < packet).then_some(ahead)
}

/// A text with a `?` for each long binary constant; `None` where a prepared statement would be
/// another one, or its answer of another form.
fn take_constants(sql: &[u8], bound: &PacketBound) -> Option<(Vec<u8>, Vec<Taken>)> {
    let tokens = tokens(sql, bound.lex).ok()?;
    let first = tokens.first()?;
    let changes = ["insert", "replace", "update"];
    if !changes.iter().any(|word| first.is_word(sql, word)) {
        return None;
    }
    let (mut text, mut taken, mut from) = (Vec::new(), Vec::new(), 0);
    for token in &tokens {
        if token.is_word(sql, "returning")
            || token.is(b'?')
            || token.kind == TokenKind::Literal(LiteralKind::Parameter)
        {
            return None;
        }
        if token.end - token.start < CONSTANT || taken.len() == PARAMETERS {
            continue;
        }
        let Some(value) = constant(token, sql, bound) else {
            continue;
        };
        text.extend_from_slice(sql.get(from..token.start)?);
        text.push(b'?');
        from = token.end;
        taken.push(Taken { value });
    }
    text.extend_from_slice(sql.get(from..)?);
    Some((text, taken))
}

/// The value of a binary constant: `x'…'`, or `_binary'…'` in the form of
/// [`put_bytes`](crate::bind::put_bytes).
fn constant(token: &Token, sql: &[u8], bound: &PacketBound) -> Option<Vec<u8>> {
    let text = token.text(sql);
    match token.kind {
        TokenKind::Literal(LiteralKind::Hex) => digits(text),
        TokenKind::Literal(LiteralKind::Introduced) => match text.strip_prefix(b"_binary'") {
            Some(quoted) if !bound.lex.no_backslash_escapes => unquoted(quoted.strip_suffix(b"'")?),
            Some(_) => None,
            None if bound.introduced => {
                let blank = text.iter().position(|b| *b == b' ')?;
                digits(text.get(blank + 1..)?)
            }
            None => None,
        },
        _ => None,
    }
}

/// The bytes of `x'…'`.
fn digits(text: &[u8]) -> Option<Vec<u8>> {
    unhex(text.strip_prefix(b"x'")?.strip_suffix(b"'")?)
}

/// The inverse of what `put_bytes` escapes. `None` for any other escape, and for a quote, behind
/// which another string may begin.
fn unquoted(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr2(b'\\', b'\'', rest) {
        bytes.extend_from_slice(&rest[..at]);
        let (escaped, tail) = match rest.get(at..)? {
            [b'\\', escaped, tail @ ..] => (*escaped, tail),
            _ => return None,
        };
        bytes.push(match escaped {
            b'0' => 0,
            b'n' => b'\n',
            b'r' => b'\r',
            b'Z' => 0x1a,
            b'\'' | b'\\' => escaped,
            _ => return None,
        });
        rest = tail;
    }
    bytes.extend_from_slice(rest);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use onionskin_plan::lex::LexMode;

    use super::*;
    use crate::bind::put_bytes;

    #[test]
    fn constants_are_taken_out_and_nothing_else() {
        let value: Vec<u8> = (0..5000).map(|n| (n * 31 % 256) as u8).collect();
        let hidden = "x''00".repeat(50);
        for (mode, escapes) in [
            (LexMode::default(), true),
            (
                LexMode {
                    no_backslash_escapes: true,
                    ..LexMode::default()
                },
                false,
            ),
        ] {
            let mut sql = b"INSERT INTO t VALUES (1, ".to_vec();
            put_bytes(&value, mode, &mut sql);
            assert_eq!(sql.contains(&b'_'), escapes);
            sql.extend_from_slice(format!(", '{hidden}', /* x'00' */ x'").as_bytes());
            sql.extend_from_slice("4a".repeat(40).as_bytes());
            sql.extend_from_slice(b"')");
            let bound = PacketBound {
                lex: mode,
                ..PacketBound::default()
            };
            let (text, taken) = take_constants(&sql, &bound).expect("it changes rows");
            let expected = format!("INSERT INTO t VALUES (1, ?, '{hidden}', /* x'00' */ ?)");
            assert_eq!(String::from_utf8_lossy(&text), expected);
            assert_eq!(taken.len(), 2);
            assert!(taken[0].value == value && taken[1].value == [0x4a; 40]);
        }
        let sql = b"SELECT 1";
        assert!(take_constants(sql, &PacketBound::default()).is_none());
    }

    #[test]
    fn the_longest_parameters_go_ahead() {
        let values = [vec![1; 5000], vec![2; 2000], vec![3; 9000], vec![4; 10]];
        let blob = ParamType::new(ColumnType::BLOB);
        let params: Vec<Param> = values
            .iter()
            .map(|v| Param {
                ty: blob,
                value: BinaryValue::Bytes(v),
            })
            .collect();
        let ahead = |packet| sent_ahead(&params, 16_050, packet);
        assert_eq!(ahead(16_051), Some(vec![false; 4]));
        assert_eq!(ahead(10_000), Some(vec![false, false, true, false]));
        assert_eq!(ahead(9_000), Some(vec![false, false, true, false]));
        assert_eq!(ahead(8_999), None, "a value is longer than a packet");
    }
}
