//! JSON as MySQL keeps it: parsed, its keys in order, printed again.
//!
//! MySQL's JSON columns hold values, not texts: `{"b":1, "a":2.0}` comes back as
//! `{"a": 2.0, "b": 1}`. The rules, found by comparing with a server: members of an object are
//! sorted by the length of their names and then by bytes, of members with one name the last stays,
//! integers of 64 bits stay integers and all other numbers become doubles, and strings are printed
//! with the fewest escapes. The messages for what is no JSON are those of the parser that MySQL is
//! built with. MariaDB keeps the text; what [`normalize`] says of it there is only whether it is
//! JSON.

use crate::format::write_double;

/// Why a text is no JSON: what the server says of it, and the byte where it noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadJson {
    /// The server's message and position.
    Invalid(&'static str, usize),
    /// Nested deeper than the server allows.
    TooDeep,
    /// A number that is not certain to come out as the server reads it.
    Number,
}

/// Levels of arrays and objects that MySQL allows.
const DEPTH: usize = 100;

/// A parsed value; scalars are printed already.
enum Value {
    Scalar(Vec<u8>),
    Array(Vec<Value>),
    Object(Vec<(Vec<u8>, Value)>),
}

/// Appends the normal form of a text in UTF-8.
pub(crate) fn normalize(text: &[u8], out: &mut Vec<u8>) -> Result<(), BadJson> {
    let mut parser = Parser { text, at: 0 };
    parser.skip_space();
    if parser.peek().is_none() {
        return Err(BadJson::Invalid("The document is empty.", parser.at));
    }
    let value = parser.value(0)?;
    parser.skip_space();
    if parser.peek().is_some() {
        return Err(parser.bad("The document root must not be followed by other values."));
    }
    print(&value, out);
    Ok(())
}

fn print(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Scalar(text) => out.extend_from_slice(text),
        Value::Array(items) => {
            out.push(b'[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.extend_from_slice(b", ");
                }
                print(item, out);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            for (n, (name, item)) in members.iter().enumerate() {
                if n > 0 {
                    out.extend_from_slice(b", ");
                }
                quote(name, out);
                out.extend_from_slice(b": ");
                print(item, out);
            }
            out.push(b'}');
        }
    }
}

/// Appends a string in double quotes.
fn quote(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x08 => out.extend_from_slice(b"\\b"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            0x0C => out.extend_from_slice(b"\\f"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0..=0x1F => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
}

/// Keeps the last of members with one name, in the order of MySQL: short names first.
fn sorted(mut members: Vec<(Vec<u8>, Value)>) -> Vec<(Vec<u8>, Value)> {
    // The last of a name comes first, and stays.
    members.reverse();
    members.sort_by(|(left, _), (right, _)| {
        left.len().cmp(&right.len()).then_with(|| left.cmp(right))
    });
    members.dedup_by(|(left, _), (right, _)| left == right);
    members
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
}

type Parsed<T> = Result<T, BadJson>;

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn bad(&self, message: &'static str) -> BadJson {
        BadJson::Invalid(message, self.at)
    }

    fn eat(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Parsed<Value> {
        match self.peek() {
            Some(b'{' | b'[') if depth >= DEPTH => Err(BadJson::TooDeep),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => {
                let mut printed = Vec::new();
                quote(&self.string()?, &mut printed);
                Ok(Value::Scalar(printed))
            }
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &'static [u8]) -> Parsed<Value> {
        for byte in word {
            if !self.eat(*byte) {
                return Err(self.bad("Invalid value."));
            }
        }
        Ok(Value::Scalar(word.to_vec()))
    }

    fn array(&mut self, depth: usize) -> Parsed<Value> {
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.eat(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.skip_space();
            if self.eat(b']') {
                return Ok(Value::Array(items));
            }
            if !self.eat(b',') {
                return Err(self.bad("Missing a comma or ']' after an array element."));
            }
            self.skip_space();
        }
    }

    fn object(&mut self, depth: usize) -> Parsed<Value> {
        self.at += 1;
        let mut members = Vec::new();
        self.skip_space();
        if self.eat(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.bad("Missing a name for object member."));
            }
            let name = self.string()?;
            if name.len() > usize::from(u16::MAX) {
                return Err(BadJson::Number);
            }
            self.skip_space();
            if !self.eat(b':') {
                return Err(self.bad("Missing a colon after a name of object member."));
            }
            self.skip_space();
            members.push((name, self.value(depth + 1)?));
            self.skip_space();
            if self.eat(b'}') {
                return Ok(Value::Object(sorted(members)));
            }
            if !self.eat(b',') {
                return Err(self.bad("Missing a comma or '}' after an object member."));
            }
            self.skip_space();
        }
    }

    fn string(&mut self) -> Parsed<Vec<u8>> {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            match self.peek() {
                None => return Err(self.bad("Missing a closing quotation mark in string.")),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => self.escape(&mut out)?,
                Some(0) => return Err(self.bad("Missing a closing quotation mark in string.")),
                Some(..=0x1F) => return Err(self.bad("Invalid encoding in string.")),
                Some(byte) => {
                    out.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Parsed<()> {
        let start = self.at;
        self.at += 1;
        let byte = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0C,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                self.at += 1;
                let mut code = self.hex(start)?;
                if (0xD800..0xE000).contains(&code) {
                    let invalid =
                        BadJson::Invalid("The surrogate pair in string is invalid.", start);
                    if code >= 0xDC00 || !self.eat(b'\\') || !self.eat(b'u') {
                        return Err(invalid);
                    }
                    let low = self.hex(start)?;
                    if !(0xDC00..0xE000).contains(&low) {
                        return Err(invalid);
                    }
                    code = 0x1_0000 + ((code - 0xD800) << 10 | (low - 0xDC00));
                }
                let c = char::from_u32(code).unwrap_or('?');
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => {
                return Err(BadJson::Invalid(
                    "Invalid escape character in string.",
                    start,
                ));
            }
        };
        out.push(byte);
        self.at += 1;
        Ok(())
    }

    fn hex(&mut self, start: usize) -> Parsed<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                let message = "Incorrect hex digit after \\u escape in string.";
                return Err(BadJson::Invalid(message, start));
            };
            code = code << 4 | digit;
            self.at += 1;
        }
        Ok(code)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Parsed<Value> {
        let start = self.at;
        let negative = self.eat(b'-');
        if !self.eat(b'0') && self.digits() == 0 {
            return Err(self.bad("Invalid value."));
        }
        let whole = self.at;
        if self.eat(b'.') && self.digits() == 0 {
            return Err(self.bad("Miss fraction part in number."));
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.bad("Miss exponent in number."));
            }
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or("0");
        if self.at == whole {
            let integer = match negative {
                true => text.parse::<i64>().map(i128::from).ok(),
                false => text.parse::<u64>().map(i128::from).ok(),
            };
            if let Some(integer) = integer {
                return Ok(Value::Scalar(integer.to_string().into_bytes()));
            }
        }
        let value: f64 = text.parse().map_err(|_| BadJson::Number)?;
        if !value.is_finite() {
            return Err(BadJson::Invalid(
                "Number too big to be stored in double.",
                start,
            ));
        }
        let mut printed = Vec::new();
        write_double(value, &mut printed);
        if !printed.iter().any(|byte| matches!(byte, b'.' | b'e')) {
            printed.extend_from_slice(b".0");
        }
        Ok(Value::Scalar(printed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(text: &str) -> Result<String, BadJson> {
        let mut out = Vec::new();
        normalize(text.as_bytes(), &mut out)?;
        Ok(String::from_utf8(out).expect("UTF-8"))
    }

    #[test]
    fn values_take_the_servers_form() {
        for (given, kept) in [
            (" null ", "null"),
            ("{}", "{}"),
            ("[ ]", "[]"),
            (
                r#"{"bb":1,"a":2,"b":3,"a":[true,false]}"#,
                r#"{"a": [true, false], "b": 3, "bb": 1}"#,
            ),
            (
                "[1, -0, 1.0, 1e2, 18446744073709551615, 18446744073709551616]",
                "[1, 0, 1.0, 100.0, 18446744073709551615, 1.8446744073709552e19]",
            ),
            (r#""a\u00e9\/\u0001\n\ud83d\ude00""#, "\"aé/\\u0001\\n😀\""),
        ] {
            assert_eq!(normal(given).as_deref(), Ok(kept));
        }
    }

    #[test]
    fn what_is_no_json_has_a_message_and_a_place() {
        for (given, message, at) in [
            ("", "The document is empty.", 0),
            (
                "{\"a\":1",
                "Missing a comma or '}' after an object member.",
                6,
            ),
            ("[1 2]", "Missing a comma or ']' after an array element.", 3),
            ("{a:1}", "Missing a name for object member.", 1),
            (
                "{\"a\" 1}",
                "Missing a colon after a name of object member.",
                5,
            ),
            ("nul", "Invalid value.", 3),
            ("abc", "Invalid value.", 0),
            (
                "1 2",
                "The document root must not be followed by other values.",
                2,
            ),
        ] {
            assert_eq!(normal(given), Err(BadJson::Invalid(message, at)), "{given}");
        }
        let deep = format!("{}{}", "[".repeat(101), "]".repeat(101));
        assert_eq!(normal(&deep), Err(BadJson::TooDeep));
        assert!(normal(&deep[1..201]).is_ok());
    }
}
