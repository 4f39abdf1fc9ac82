//! Character sets: checking, counting and converting text.
//!
//! Only the sets that onionskin can convert exactly are known. Text in any other set is refused
//! before it reaches this crate, because storing bytes whose meaning is a guess would break the
//! promise that answers are right. Tables come from the servers themselves; where MariaDB and MySQL
//! disagree on a set, it is not known here.

mod multi;
mod single;
mod wide;

pub use multi::Multi;
pub use single::Single;
pub use wide::Wide;

use crate::types::Family;

/// A character set that text arrives in, is stored in, or is sent back in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Charset {
    /// UTF-8 with up to four bytes for a character.
    #[default]
    Utf8mb4,
    /// UTF-8 restricted to the basic multilingual plane, up to three bytes.
    Utf8mb3,
    /// MySQL's latin1: cp1252 whose five undefined bytes stand for the C1 control of the same
    /// number.
    Latin1,
    /// Seven-bit ASCII.
    Ascii,
    /// Bytes without characters.
    Binary,
    /// Another set of one byte for each character.
    Single(Single),
    /// A set of up to four bytes for each character that is no UTF-8.
    Multi(Multi),
    /// A set in which ASCII is not itself.
    Wide(Wide),
}

/// Code points of latin1 bytes 0x80 to 0x9F.
const CP1252: [u16; 32] = [
    0x20AC, 0x0081, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039,
    0x0152, 0x008D, 0x017D, 0x008F, 0x0090, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
    0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x009D, 0x017E, 0x0178,
];

impl Charset {
    /// The set with this name as servers print it; `utf8` means utf8mb3.
    pub fn from_name(name: &str) -> Option<Charset> {
        let name = name.to_ascii_lowercase();
        Some(match name.as_str() {
            "utf8mb4" => Charset::Utf8mb4,
            "utf8mb3" | "utf8" => Charset::Utf8mb3,
            "latin1" => Charset::Latin1,
            "ascii" => Charset::Ascii,
            "binary" => Charset::Binary,
            name => {
                return Multi::from_name(name)
                    .map(Charset::Multi)
                    .or_else(|| Wide::from_name(name).map(Charset::Wide))
                    .or_else(|| Single::from_name(name).map(Charset::Single));
            }
        })
    }

    /// The set to which the collation with this protocol number belongs.
    pub fn from_collation_id(id: u16) -> Option<Charset> {
        if id == 63 {
            return Some(Charset::Binary);
        }
        crate::collation::charset_of_id(id)
    }

    /// The name servers print.
    pub fn name(self) -> &'static str {
        match self {
            Charset::Utf8mb4 => "utf8mb4",
            Charset::Utf8mb3 => "utf8mb3",
            Charset::Latin1 => "latin1",
            Charset::Ascii => "ascii",
            Charset::Binary => "binary",
            Charset::Single(set) => set.name(),
            Charset::Multi(set) => set.name(),
            Charset::Wide(set) => set.name(),
        }
    }

    /// A number of its own for each set.
    pub fn number(self) -> u8 {
        match self {
            Charset::Utf8mb4 => 0,
            Charset::Utf8mb3 => 1,
            Charset::Latin1 => 2,
            Charset::Ascii => 3,
            Charset::Binary => 4,
            Charset::Wide(set) => 8 + set.number(),
            Charset::Multi(set) => 16 + set.number(),
            Charset::Single(set) => 32 + set.number(),
        }
    }

    /// Whether a byte below 0x80 at the beginning of a character is that ASCII character, and each
    /// is written so. The servers read statements in such sets alone.
    pub fn has_ascii(self) -> bool {
        !matches!(self, Charset::Wide(_))
    }

    /// Whether the second byte of a character may be a backslash or a back quote, so that a text
    /// has to be read by characters to find where a string in it ends.
    pub fn hides_ascii(self) -> bool {
        matches!(self, Charset::Multi(set) if set.hides_ascii())
    }

    /// Whether text of this set goes by a table measured on servers. Where such a text is not
    /// well-formed, what the servers make of it is not reproduced.
    pub fn is_measured(self) -> bool {
        matches!(
            self,
            Charset::Single(_) | Charset::Multi(_) | Charset::Wide(_)
        )
    }

    /// The collation of this set that the servers announce its text with, by its number in the
    /// protocol: the set's default.
    pub fn default_collation_id(self, family: Family) -> u16 {
        match self {
            Charset::Utf8mb4 => match family {
                Family::MariaDb => 45,
                Family::MySql => 255,
            },
            Charset::Utf8mb3 => 33,
            Charset::Latin1 => 8,
            Charset::Ascii => 11,
            Charset::Binary => 63,
            Charset::Single(_) | Charset::Multi(_) | Charset::Wide(_) => {
                crate::Collation::default_of(self, family).map_or(0, crate::Collation::id)
            }
        }
    }

    /// Most bytes that one character takes.
    pub fn max_bytes(self) -> u32 {
        match self {
            Charset::Utf8mb4 => 4,
            Charset::Utf8mb3 => 3,
            Charset::Latin1 | Charset::Ascii | Charset::Binary | Charset::Single(_) => 1,
            Charset::Multi(set) => set.max_bytes(),
            Charset::Wide(set) => set.max_bytes(),
        }
    }

    /// Fewest bytes that one character takes.
    pub fn min_bytes(self) -> u32 {
        self.space().len() as u32
    }

    /// The first character of `bytes` as (code point, length), or `None` where `bytes` is empty or
    /// begins with bytes that are no character of this set.
    pub fn decode(self, bytes: &[u8]) -> Option<(u32, usize)> {
        let first = *bytes.first()?;
        match self {
            Charset::Utf8mb4 | Charset::Utf8mb3 => {
                if first < 0x80 {
                    return Some((u32::from(first), 1));
                }
                let (length, least) = match first {
                    0xC2..=0xDF => (2, 0x80),
                    0xE0..=0xEF => (3, 0x800),
                    0xF0..=0xF4 if self == Charset::Utf8mb4 => (4, 0x10000),
                    _ => return None,
                };
                let mut code = u32::from(first) & (0x7F >> length);
                for &byte in bytes.get(1..length)? {
                    if byte & 0xC0 != 0x80 {
                        return None;
                    }
                    code = code << 6 | u32::from(byte & 0x3F);
                }
                if code < least || code > 0x10FFFF || (0xD800..=0xDFFF).contains(&code) {
                    return None;
                }
                Some((code, length))
            }
            Charset::Latin1 => {
                let code = match first {
                    0x80..=0x9F => u32::from(CP1252[usize::from(first - 0x80)]),
                    _ => u32::from(first),
                };
                Some((code, 1))
            }
            Charset::Ascii if first >= 0x80 => None,
            Charset::Ascii | Charset::Binary => Some((u32::from(first), 1)),
            Charset::Single(set) => set.decode(first).map(|code| (code, 1)),
            Charset::Multi(set) => set.decode(bytes),
            Charset::Wide(set) => set.decode(bytes),
        }
    }

    /// Appends the character `code`; false (and nothing appended) where this set has no such
    /// character.
    pub fn encode(self, code: u32, out: &mut Vec<u8>) -> bool {
        match self {
            Charset::Utf8mb4 | Charset::Utf8mb3 => {
                if self == Charset::Utf8mb3 && code > 0xFFFF {
                    return false;
                }
                match char::from_u32(code) {
                    Some(c) => {
                        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                        true
                    }
                    None => false,
                }
            }
            Charset::Latin1 => {
                let byte = match code {
                    0..=0x7F | 0xA0..=0xFF => code as u8,
                    _ => match CP1252.iter().position(|&known| u32::from(known) == code) {
                        Some(at) => 0x80 + at as u8,
                        None => return false,
                    },
                };
                out.push(byte);
                true
            }
            Charset::Ascii if code < 0x80 => {
                out.push(code as u8);
                true
            }
            Charset::Binary if code < 0x100 => {
                out.push(code as u8);
                true
            }
            Charset::Ascii | Charset::Binary => false,
            Charset::Single(set) => match set.encode(code) {
                Some(byte) => {
                    out.push(byte);
                    true
                }
                None => false,
            },
            Charset::Multi(set) => set.encode(code, out),
            Charset::Wide(set) => set.encode(code, out),
        }
    }

    /// Whether text of `self` is, byte for byte, the same text in `target` (for the bytes given).
    pub fn same_bytes(self, target: Charset, bytes: &[u8]) -> bool {
        self == target
            || self == Charset::Binary
            || target == Charset::Binary
            || (self == Charset::Utf8mb3
                && target == Charset::Utf8mb4
                // four bytes are no character of it
                && self.valid_prefix(bytes) == bytes.len())
            || (self.has_ascii() && target.has_ascii() && bytes.is_ascii())
    }

    /// Number of bytes at the front of `bytes` that are well-formed characters of this set.
    pub fn valid_prefix(self, bytes: &[u8]) -> usize {
        match self {
            Charset::Binary | Charset::Latin1 => bytes.len(),
            Charset::Utf8mb4 => match std::str::from_utf8(bytes) {
                Ok(_) => bytes.len(),
                Err(bad) => bad.valid_up_to(),
            },
            Charset::Utf8mb3
            | Charset::Ascii
            | Charset::Single(_)
            | Charset::Multi(_)
            | Charset::Wide(_) => {
                let mut at = 0;
                while let Some((_, length)) = self.decode(&bytes[at..]) {
                    at += length;
                }
                at
            }
        }
    }

    /// Number of characters in `bytes`; a byte that belongs to no character counts as one.
    pub fn count(self, bytes: &[u8]) -> usize {
        if self.max_bytes() == 1 || (self.has_ascii() && bytes.is_ascii()) {
            return bytes.len();
        }
        let mut at = 0;
        let mut characters = 0;
        while at < bytes.len() {
            at += self.decode(&bytes[at..]).map_or(1, |(_, length)| length);
            characters += 1;
        }
        characters
    }

    /// Bytes that a space takes.
    pub(crate) fn space(self) -> &'static [u8] {
        match self {
            Charset::Wide(Wide::Utf16 | Wide::Ucs2) => b"\0 ",
            Charset::Wide(Wide::Utf16le) => b" \0",
            Charset::Wide(Wide::Utf32) => b"\0\0\0 ",
            _ => b" ",
        }
    }

    /// The text without the spaces at its end.
    pub(crate) fn without_spaces(self, mut text: &[u8]) -> &[u8] {
        // in no set a space is the last byte of another character, and wide ones come in whole
        // units
        while let Some(rest) = text.strip_suffix(self.space()) {
            text = rest;
        }
        text
    }

    /// Whether every character of a well-formed text has its place in `target`.
    pub fn fits(self, target: Charset, text: &[u8]) -> bool {
        if self.same_bytes(target, text) {
            return true;
        }
        let mut at = 0;
        let mut scratch = Vec::new();
        while at < text.len() {
            scratch.clear();
            match self.decode(&text[at..]) {
                Some((code, length)) if target.encode(code, &mut scratch) => at += length,
                _ => return false,
            }
        }
        true
    }

    /// The text in UTF-8; `None` where it is not well-formed, and of bytes without characters
    /// beyond ASCII.
    pub fn to_utf8(self, text: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(text.len());
        let mut at = 0;
        while at < text.len() {
            let (code, length) = self.decode(&text[at..])?;
            if self == Charset::Binary && code >= 0x80 {
                return None;
            }
            if !Charset::Utf8mb4.encode(code, &mut out) {
                return None;
            }
            at += length;
        }
        Some(out)
    }

    /// Offset of the end of the `limit`-th character of `bytes`, or its length where there are
    /// fewer.
    pub fn offset_of(self, bytes: &[u8], limit: usize) -> usize {
        if self.max_bytes() == 1 || bytes.len() <= limit || (self.has_ascii() && bytes.is_ascii()) {
            return bytes.len().min(limit);
        }
        let mut at = 0;
        for _ in 0..limit {
            if at >= bytes.len() {
                break;
            }
            at += self.decode(&bytes[at..]).map_or(1, |(_, length)| length);
        }
        at.min(bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latin1_is_cp1252_with_the_holes_filled() {
        for byte in 0..=255u8 {
            let (code, length) = Charset::Latin1
                .decode(&[byte])
                .expect("every byte is a character");
            assert_eq!(length, 1);
            let mut back = Vec::new();
            assert!(Charset::Latin1.encode(code, &mut back));
            assert_eq!(back, [byte]);
        }
        assert_eq!(Charset::Latin1.decode(&[0x80]), Some((0x20AC, 1)));
        assert!(
            !Charset::Latin1.encode(0x80, &mut Vec::new()),
            "U+0080 has no latin1 byte"
        );
    }

    #[test]
    fn utf8_is_strict() {
        for bad in [
            &[0xC0, 0x80][..],
            &[0xED, 0xA0, 0x80],
            &[0xF4, 0x90, 0x80, 0x80],
            &[0xE4, 0xBD],
            &[0x80],
            &[],
        ] {
            assert_eq!(Charset::Utf8mb4.decode(bad), None, "{bad:x?}");
        }
        let grin = "😀".as_bytes();
        assert_eq!(Charset::Utf8mb4.decode(grin), Some((0x1F600, 4)));
        assert_eq!(Charset::Utf8mb3.decode(grin), None);
        assert_eq!(Charset::Utf8mb4.count("aé😀".as_bytes()), 3);
        assert_eq!(Charset::Utf8mb4.offset_of("aé😀".as_bytes(), 2), 3);
    }
}
