//! Calls and their arguments.

use onionskin_schema::folded;
use std::ops::Range;

use super::{CallError, Reader, refused};
use crate::lex::{LexMode, LiteralKind, Token, TokenKind};

/// How deep calls and parentheses of constants may be.
const MAX_DEPTH: usize = 32;

/// A function that the proxy computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// `AES_ENCRYPT(text, key [, vector [, mode or KDF …]])`
    AesEncrypt,
    /// `AES_DECRYPT`, with the same arguments.
    AesDecrypt,
    /// `DES_ENCRYPT(text, key)`
    DesEncrypt,
    /// `DES_DECRYPT(text, key)`
    DesDecrypt,
    /// `ENCODE(text, password)`
    Encode,
    /// `DECODE(text, password)`
    Decode,
    /// `MD5(text)`
    Md5,
    /// `SHA1(text)`, `SHA(text)`
    Sha1,
    /// `SHA2(text, bits)`
    Sha2,
    /// `PASSWORD(text)`
    Password,
    /// `OLD_PASSWORD(text)`
    OldPassword,
    /// `ENCRYPT(text, salt)` of the system's library: not computed, but refused.
    Crypt,
    /// `KDF(key, salt, …)` of MariaDB: not computed, but refused.
    Kdf,
    /// `RANDOM_BYTES(count)`, as an argument.
    RandomBytes,
    /// `HEX(bytes)`, as an argument.
    Hex,
    /// `UNHEX(digits)`, as an argument.
    Unhex,
    /// `TO_BASE64(bytes)`, as an argument.
    ToBase64,
    /// `FROM_BASE64(text)`, as an argument.
    FromBase64,
    /// `CONCAT(text, …)`, as an argument.
    Concat,
    /// `REPEAT(text, count)`, as an argument.
    Repeat,
    /// `KEY('name')`: a key of `[functions.keys]`.
    Key,
}

impl Function {
    /// Those that the proxy looks for, by their names.
    pub(super) const LISTED: [(&'static str, Function); 14] = [
        ("aes_encrypt", Function::AesEncrypt),
        ("aes_decrypt", Function::AesDecrypt),
        ("des_encrypt", Function::DesEncrypt),
        ("des_decrypt", Function::DesDecrypt),
        ("encode", Function::Encode),
        ("decode", Function::Decode),
        ("md5", Function::Md5),
        ("sha1", Function::Sha1),
        ("sha", Function::Sha1),
        ("sha2", Function::Sha2),
        ("password", Function::Password),
        ("old_password", Function::OldPassword),
        ("encrypt", Function::Crypt),
        ("kdf", Function::Kdf),
    ];
    /// Those that it computes as arguments of the others.
    const WITHIN: [(&'static str, Function); 8] = [
        ("random_bytes", Function::RandomBytes),
        ("hex", Function::Hex),
        ("unhex", Function::Unhex),
        ("to_base64", Function::ToBase64),
        ("from_base64", Function::FromBase64),
        ("concat", Function::Concat),
        ("repeat", Function::Repeat),
        ("key", Function::Key),
    ];

    pub(super) fn listed(name: &[u8]) -> Option<Function> {
        Self::find(&Self::LISTED, name)
    }

    /// Whether one of them has this name, which may stand in back quotes.
    pub(super) fn is_named(name: &[u8]) -> bool {
        let inner = name.strip_prefix(b"`").and_then(|n| n.strip_suffix(b"`"));
        Self::any(inner.unwrap_or(name)).is_some()
    }

    fn any(name: &[u8]) -> Option<Function> {
        Self::listed(name).or_else(|| Self::find(&Self::WITHIN, name))
    }

    fn find(table: &[(&str, Function)], name: &[u8]) -> Option<Function> {
        let is_it = |(known, _): &&(&str, Function)| name.eq_ignore_ascii_case(known.as_bytes());
        table.iter().find(is_it).map(|(_, function)| *function)
    }

    /// Its name, as servers write it.
    pub fn name(self) -> &'static str {
        match self {
            Function::AesEncrypt => "AES_ENCRYPT",
            Function::AesDecrypt => "AES_DECRYPT",
            Function::DesEncrypt => "DES_ENCRYPT",
            Function::DesDecrypt => "DES_DECRYPT",
            Function::Encode => "ENCODE",
            Function::Decode => "DECODE",
            Function::Md5 => "MD5",
            Function::Sha1 => "SHA1",
            Function::Sha2 => "SHA2",
            Function::Password => "PASSWORD",
            Function::OldPassword => "OLD_PASSWORD",
            Function::Crypt => "ENCRYPT",
            Function::Kdf => "KDF",
            Function::RandomBytes => "RANDOM_BYTES",
            Function::Hex => "HEX",
            Function::Unhex => "UNHEX",
            Function::ToBase64 => "TO_BASE64",
            Function::FromBase64 => "FROM_BASE64",
            Function::Concat => "CONCAT",
            Function::Repeat => "REPEAT",
            Function::Key => "KEY",
        }
    }

    /// How many arguments it takes, from and to.
    fn arguments(self) -> (usize, usize) {
        match self {
            Function::AesEncrypt | Function::AesDecrypt => (2, 6),
            Function::DesEncrypt | Function::DesDecrypt => (1, 2),
            Function::Encode | Function::Decode | Function::Sha2 | Function::Repeat => (2, 2),
            Function::Concat | Function::Crypt | Function::Kdf => (1, usize::MAX),
            _ => (1, 1),
        }
    }

    /// Whether the proxy can compute it.
    pub(super) fn is_computed(self) -> bool {
        !matches!(self, Function::Crypt | Function::Kdf)
    }

    /// Whether its second argument is a key.
    fn is_keyed(self) -> bool {
        matches!(
            self,
            Function::AesEncrypt
                | Function::AesDecrypt
                | Function::DesEncrypt
                | Function::DesDecrypt
                | Function::Encode
                | Function::Decode
        )
    }

    /// Whether it makes plaintext.
    pub fn opens(self) -> bool {
        matches!(
            self,
            Function::AesDecrypt | Function::DesDecrypt | Function::Decode
        )
    }

    /// Whether it has no key.
    pub(super) fn is_digest(self) -> bool {
        matches!(
            self,
            Function::Md5
                | Function::Sha1
                | Function::Sha2
                | Function::Password
                | Function::OldPassword
        )
    }

    /// Whether its result is a text in the connection's character set, not a binary string.
    pub fn gives_text(self) -> bool {
        self.is_digest() || matches!(self, Function::Hex | Function::ToBase64)
    }
}

/// A call whose arguments are constants.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Which function.
    pub function: Function,
    /// Its name, as the statement writes it.
    pub name: String,
    /// Its result is compared with a cell, in the place of what that opens to. Then the first
    /// argument has to be a text.
    pub compares: bool,
    /// As many as the function takes.
    pub arguments: Vec<Term>,
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// A literal or a parameter, by its number among both.
    Value {
        /// From 0.
        index: usize,
        /// A minus sign stands before it.
        negative: bool,
    },
    /// `NULL`.
    Null,
    /// `TRUE` or `FALSE`.
    Bool(bool),
    /// A variable that the proxy keeps: its name in small letters.
    Secret(String),
    /// A variable of the server's, as the statement writes it. It is no key and no text.
    Variable(Vec<u8>),
    /// What a call gives.
    Call(Box<Call>),
}

impl Term {
    /// Whether a named key is in it, outside of calls that use it as a key.
    pub(super) fn shows_key(&self) -> bool {
        match self {
            Term::Call(call) => call.function == Function::Key || call.shows_key(),
            _ => false,
        }
    }

    /// Adds the variables of the server's that it needs.
    pub fn variables<'t>(&'t self, names: &mut Vec<&'t [u8]>) {
        match self {
            Term::Variable(name) => names.push(name),
            Term::Call(call) => call.variables(names),
            _ => {}
        }
    }
}

impl Call {
    /// Whether a named key is in it that is not used as a key.
    fn shows_key(&self) -> bool {
        self.arguments.iter().enumerate().any(|(n, argument)| {
            let is_key = n == 1 && self.function.is_keyed();
            !is_key && argument.shows_key()
        })
    }

    /// Adds the variables of the server's that it needs.
    pub fn variables<'t>(&'t self, names: &mut Vec<&'t [u8]>) {
        self.arguments.iter().for_each(|a| a.variables(names));
    }
}

impl Reader<'_> {
    /// The function that is called at a token, if it is one that the proxy looks for.
    pub(super) fn function_at(&self, at: usize) -> Option<Function> {
        let name = self.called_at(at)?;
        let function = Function::listed(name)?;
        (!self.is_name(at)).then_some(function)
    }

    /// The name that a token is, without its quotes.
    pub(super) fn name_at(&self, at: usize) -> Option<&[u8]> {
        let token = self.tokens.get(at)?;
        let text = token.text(self.sql);
        match token.kind {
            TokenKind::Word => Some(text),
            TokenKind::Quoted => text.get(1..text.len() - 1),
            _ => None,
        }
    }

    /// The name before a parenthesis, if it has no database before it.
    fn called_at(&self, at: usize) -> Option<&[u8]> {
        let name = self.name_at(at)?;
        let opens = self.tokens.get(at + 1).is_some_and(|t| t.is(b'('));
        let is_qualified = at > 0 && self.tokens[at - 1].is(b'.');
        (opens && !is_qualified).then_some(name)
    }

    /// The name of the function that is called at a token, as the statement writes it.
    pub(super) fn written(&self, at: usize) -> String {
        let name = self.called_at(at).unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    }

    /// The arguments of the call at a token.
    pub(super) fn arguments_at(
        &self,
        function: Function,
        at: usize,
    ) -> Result<Vec<Range<usize>>, CallError> {
        let end = closing(self.tokens, at + 1).ok_or_else(|| refused("parentheses"))?;
        let arguments = match at + 2 == end {
            true => Vec::new(),
            false => between_commas(self.tokens, at + 2..end),
        };
        let (least, most) = function.arguments();
        match (least..=most).contains(&arguments.len()) {
            true => Ok(arguments),
            false => Err(CallError::ArgumentCount(self.written(at))),
        }
    }

    /// The call at a token, if all of its arguments are constants.
    pub(super) fn constant_call(
        &self,
        function: Function,
        at: usize,
    ) -> Result<Option<Call>, CallError> {
        self.call_within(function, at, 0)
    }

    fn call_within(
        &self,
        function: Function,
        at: usize,
        depth: usize,
    ) -> Result<Option<Call>, CallError> {
        let mut arguments = Vec::new();
        for range in self.arguments_at(function, at)? {
            match self.term_within(range, depth)? {
                Some(term) => arguments.push(term),
                None => return Ok(None),
            }
        }
        Ok(Some(Call {
            function,
            name: self.written(at),
            compares: false,
            arguments,
        }))
    }

    /// The constant that these tokens are; `None` if they are something else.
    pub(super) fn term(&self, range: Range<usize>) -> Result<Option<Term>, CallError> {
        self.term_within(range, 0)
    }

    fn term_within(&self, range: Range<usize>, depth: usize) -> Result<Option<Term>, CallError> {
        if depth > MAX_DEPTH {
            return Err(refused("calls within each other"));
        }
        let Some(tokens) = self.tokens.get(range.clone()) else {
            return Ok(None);
        };
        let is_word = |t: &Token, word: &str| t.is_word(self.sql, word);
        Ok(match tokens {
            [sign, number] if sign.is(b'-') => match number.kind {
                TokenKind::Literal(
                    LiteralKind::Integer | LiteralKind::Decimal | LiteralKind::Float,
                ) => Some(self.value(range.start + 1, true)),
                _ => None,
            },
            [one] => match one.kind {
                TokenKind::Literal(_) => Some(self.value(range.start, false)),
                TokenKind::Variable if one.text(self.sql).starts_with(b"@@") => None,
                TokenKind::Variable => Some(match self.secret_name(one) {
                    Some(name) => Term::Secret(name),
                    None => Term::Variable(one.text(self.sql).to_vec()),
                }),
                _ if is_word(one, "null") => Some(Term::Null),
                _ if is_word(one, "true") => Some(Term::Bool(true)),
                _ if is_word(one, "false") => Some(Term::Bool(false)),
                _ => None,
            },
            [open, .., _] if open.is(b'(') && closes_at_end(self.tokens, &range, 0) => {
                self.term_within(range.start + 1..range.end - 1, depth + 1)?
            }
            [_, open, ..] if open.is(b'(') && closes_at_end(self.tokens, &range, 1) => {
                let name = self.called_at(range.start).and_then(Function::any);
                let call = match name {
                    Some(function) => self.call_within(function, range.start, depth + 1)?,
                    None => None,
                };
                call.map(|call| Term::Call(Box::new(call)))
            }
            _ => None,
        })
    }

    fn value(&self, at: usize, negative: bool) -> Term {
        let index = self.before[at].literals;
        Term::Value { index, negative }
    }

    /// Refuses a call whose key or text is a variable of the server's, which has seen it, and one
    /// that would show a named key.
    pub(super) fn must_hide_key(&self, call: &Call) -> Result<(), CallError> {
        if call.shows_key() {
            return Err(refused("KEY in another place than that of a key"));
        }
        for (n, argument) in call.arguments.iter().enumerate() {
            // an initialization vector, a salt and the like are no secrets
            let is_public = n >= 2 && !call.function.is_digest();
            match argument {
                Term::Variable(name) if !is_public => {
                    let name = String::from_utf8_lossy(name);
                    let about = format!(
                        "{name}, a variable of the server's, in {}: name it in secrets of [functions]",
                        call.function.name()
                    );
                    return Err(refused(about));
                }
                Term::Call(inner) => self.must_hide_key(inner)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// The token that closes the parenthesis at a token.
pub(super) fn closing(tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        depth += usize::from(token.is(b'('));
        if token.is(b')') {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

/// Whether the parenthesis at the `nth` token of a range closes with the range.
fn closes_at_end(tokens: &[Token], range: &Range<usize>, nth: usize) -> bool {
    closing(tokens, range.start + nth) == Some(range.end - 1)
}

/// The parts of a range between the commas that stand in no parentheses.
pub(super) fn between_commas(tokens: &[Token], range: Range<usize>) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut depth) = (Vec::new(), range.start, 0usize);
    for at in range.clone() {
        let token = &tokens[at];
        depth += usize::from(token.is(b'('));
        depth = depth.saturating_sub(usize::from(token.is(b')')));
        if depth == 0 && token.is(b',') {
            parts.push(start..at);
            start = at + 1;
        }
    }
    parts.push(start..range.end);
    parts
}

/// The name of a user variable, in small letters; `None` for one that is not read.
pub(super) fn variable_name(text: &[u8], mode: LexMode) -> Option<String> {
    let name = text.strip_prefix(b"@")?;
    if name.starts_with(b"@") {
        return None;
    }
    let name = std::str::from_utf8(name).ok()?;
    let name = match name.as_bytes().first() {
        Some(&quote @ (b'\'' | b'"' | b'`')) => {
            let inner = name.get(1..name.len() - 1)?;
            let quote = char::from(quote);
            let inner = inner.replace(&format!("{quote}{quote}"), &quote.to_string());
            match inner.contains('\\') && !mode.no_backslash_escapes {
                // which letters an escape stands for does not matter: no secret is named so
                true => inner.replace('\\', ""),
                false => inner,
            }
        }
        _ => name.to_owned(),
    };
    Some(folded(&name))
}
