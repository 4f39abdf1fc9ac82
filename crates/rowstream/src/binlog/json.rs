//! MySQL's binary JSON, printed as the server prints it.
//!
//! A document is a tree with offsets: objects and arrays hold a table of entries, each with a type
//! and either the value itself or where it lies; numbers and texts lie behind. Small trees use two
//! bytes for counts and offsets, large ones four.

use onionskin_wire::Reader;

use super::error::{BinlogError, BinlogResult};
use super::table_map::column_type;
use super::value::decimal;

/// A JSON document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json {
    /// As `SELECT` shows it, in UTF-8.
    pub text: String,
    /// False if the document holds values that no JSON text can express (a DATE, a DECIMAL, binary
    /// strings, which `JSON_OBJECT` and `CAST` put in): written back from the text, they become
    /// strings and doubles.
    pub exact: bool,
}

/// How deep documents may be nested; the server's own limit is 100.
const DEPTH: usize = 128;
const BAD: BinlogError = BinlogError::Malformed("JSON document");

impl Json {
    /// Reads a stored document. An empty one, which `INSERT IGNORE` leaves behind, is `null`.
    pub fn decode(stored: &[u8]) -> BinlogResult<Self> {
        let mut printer = Printer {
            text: String::new(),
            exact: true,
            // A byte prints as six characters at most, and an entry of three bytes as five and what
            // separates it.
            limit: stored.len().saturating_mul(16).saturating_add(64),
        };
        match stored.split_first() {
            None => printer.text.push_str("null"),
            Some((&ty, data)) => printer.value(ty, data, DEPTH)?,
        }
        Ok(Self {
            text: printer.text,
            exact: printer.exact,
        })
    }
}

struct Printer {
    text: String,
    exact: bool,
    /// Documents do not print longer than this; but damaged offsets could point to the same part
    /// again and again.
    limit: usize,
}

impl Printer {
    fn value(&mut self, ty: u8, data: &[u8], depth: usize) -> BinlogResult<()> {
        let depth = depth.checked_sub(1).ok_or(BAD)?;
        if self.text.len() > self.limit {
            return Err(BAD);
        }
        let mut r = Reader::new(data);
        match ty {
            0x00 => return self.tree(data, false, true, depth),
            0x01 => return self.tree(data, true, true, depth),
            0x02 => return self.tree(data, false, false, depth),
            0x03 => return self.tree(data, true, false, depth),
            0x04 => self.text.push_str(match r.u8()? {
                0 => "null",
                1 => "true",
                2 => "false",
                _ => return Err(BAD),
            }),
            0x05 => self.number(r.u16()? as i16),
            0x06 => self.number(r.u16()?),
            0x07 => self.number(r.u32()? as i32),
            0x08 => self.number(r.u32()?),
            0x09 => self.number(r.u64()? as i64),
            0x0a => self.number(r.u64()?),
            0x0b => {
                let text = double(f64::from_bits(r.u64()?)).ok_or(BAD)?;
                self.text.push_str(&text);
            }
            0x0c => {
                let length = variable_length(&mut r)?;
                let text = std::str::from_utf8(r.bytes(length)?).map_err(|_| BAD)?;
                self.string(text);
            }
            0x0f => self.opaque(&mut r)?,
            _ => return Err(BAD),
        }
        Ok(())
    }

    fn number(&mut self, number: impl std::fmt::Display) {
        self.text.push_str(&number.to_string());
    }

    /// An object or an array; offsets count from its beginning.
    fn tree(&mut self, data: &[u8], large: bool, object: bool, depth: usize) -> BinlogResult<()> {
        let width = if large { 4 } else { 2 };
        let number = |r: &mut Reader<'_>| -> BinlogResult<usize> {
            Ok(match large {
                true => r.u32()? as usize,
                false => r.u16()?.into(),
            })
        };
        let mut r = Reader::new(data);
        let count = number(&mut r)?;
        let size = number(&mut r)?;
        let data = data.get(..size).ok_or(BAD)?;
        let mut keys = Reader::new(data);
        keys.skip(2 * width)?;
        let mut values = Reader::new(data);
        values.skip(2 * width)?;
        if object {
            values.skip(count.checked_mul(width + 2).ok_or(BAD)?)?;
        }
        self.text.push(if object { '{' } else { '[' });
        for i in 0..count {
            if i > 0 {
                self.text.push_str(", ");
            }
            if object {
                let at = number(&mut keys)?;
                let length = usize::from(keys.u16()?);
                let key = data
                    .get(at..)
                    .and_then(|key| key.get(..length))
                    .ok_or(BAD)?;
                self.string(std::str::from_utf8(key).map_err(|_| BAD)?);
                self.text.push_str(": ");
            }
            let ty = values.u8()?;
            let entry = values.bytes(width)?;
            // Literals and numbers that fit stand in the entry itself.
            let inline = matches!(ty, 0x04..=0x06) || large && matches!(ty, 0x07 | 0x08);
            if inline {
                self.value(ty, entry, depth)?;
            } else {
                let at = number(&mut Reader::new(entry))?;
                self.value(ty, data.get(at..).ok_or(BAD)?, depth)?;
            }
        }
        self.text.push(if object { '}' } else { ']' });
        Ok(())
    }

    fn string(&mut self, text: &str) {
        self.text.push('"');
        for c in text.chars() {
            match c {
                '"' => self.text.push_str("\\\""),
                '\\' => self.text.push_str("\\\\"),
                '\u{8}' => self.text.push_str("\\b"),
                '\u{c}' => self.text.push_str("\\f"),
                '\n' => self.text.push_str("\\n"),
                '\r' => self.text.push_str("\\r"),
                '\t' => self.text.push_str("\\t"),
                c if c < ' ' => self.text.push_str(&format!("\\u{:04x}", c as u32)),
                c => self.text.push(c),
            }
        }
        self.text.push('"');
    }

    /// A value of one of the server's own types.
    fn opaque(&mut self, r: &mut Reader<'_>) -> BinlogResult<()> {
        self.exact = false;
        let ty = r.u8()?;
        let length = variable_length(r)?;
        let data = r.bytes(length)?;
        let mut r = Reader::new(data);
        match ty {
            column_type::NEWDECIMAL => {
                let (precision, scale) = (r.u8()?, r.u8()?);
                let text = decimal(&mut r, precision.into(), scale.into())?;
                self.text.push_str(&text);
            }
            column_type::DATE
            | column_type::OLD_TIME
            | column_type::OLD_DATETIME
            | column_type::OLD_TIMESTAMP => {
                let packed = r.u64()? as i64;
                let (negative, packed) = (packed < 0, packed.unsigned_abs());
                let (micros, seconds) = (packed & 0xff_ffff, packed >> 24);
                let (days, seconds) = (seconds >> 17, seconds & 0x1_ffff);
                let (year, month, day) = ((days >> 5) / 13, (days >> 5) % 13, days & 31);
                let clock = format!("{:02}:{:02}", seconds >> 6 & 63, seconds & 63);
                let text = match ty {
                    column_type::DATE => format!("{year:04}-{month:02}-{day:02}"),
                    column_type::OLD_TIME => {
                        let sign = if negative { "-" } else { "" };
                        format!("{sign}{:02}:{clock}.{micros:06}", seconds >> 12 & 0x3ff)
                    }
                    _ => format!(
                        "{year:04}-{month:02}-{day:02} {:02}:{clock}.{micros:06}",
                        seconds >> 12
                    ),
                };
                self.string(&text);
            }
            _ => {
                let text = format!("base64:type{ty}:{}", base64(data));
                self.string(&text);
            }
        }
        Ok(())
    }
}

/// Seven bits a byte, the lowest first, the eighth says that more follow.
fn variable_length(r: &mut Reader<'_>) -> BinlogResult<usize> {
    let mut length = 0u64;
    for shift in (0..35).step_by(7) {
        let byte = r.u8()?;
        length |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return usize::try_from(length).map_err(|_| BAD);
        }
    }
    Err(BAD)
}

/// The shortest digits that read back the same; with a point, so that it stays a double.
fn double(value: f64) -> Option<String> {
    if !value.is_finite() {
        return None;
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    let count = digits.bytes().filter(u8::is_ascii_digit).count();
    let place = exponent + 1;
    // The server changes to exponents where there would be zeros only, beyond 15 places.
    let plain = (-14..=15).contains(&place) || place > 15 && count > place.unsigned_abs() as usize;
    if !plain {
        return Some(scientific);
    }
    let text = format!("{value}");
    Some(match text.contains('.') {
        true => text,
        false => text + ".0",
    })
}

fn base64(data: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in data.chunks(3) {
        let bits = [0, 1, 2].map(|i| u32::from(group.get(i).copied().unwrap_or(0)));
        let bits = bits[0] << 16 | bits[1] << 8 | bits[2];
        for i in 0..4 {
            match i <= group.len() {
                true => text.push(ALPHABET[(bits >> (18 - 6 * i) & 63) as usize].into()),
                false => text.push('='),
            }
        }
    }
    text
}
