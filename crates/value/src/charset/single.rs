//! Character sets of one byte for each character, by tables measured on servers
//! (`charsets/generate.py`).
//!
//! All of them are ASCII below 0x80.

use std::sync::OnceLock;

/// One line for each set, see `charsets/generate.py`.
static TABLES: &str = include_str!("../../charsets/single.tsv");

/// A set, by its place among the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Single(u8);

struct Table {
    name: &'static str,
    /// The code point of each byte; 0 for a byte other than 0 that is no character.
    codes: [u16; 256],
    /// The byte of each character from 0x80 on, by code points in their order.
    bytes: Vec<(u16, u8)>,
}

fn tables() -> &'static [Table] {
    static READ: OnceLock<Vec<Table>> = OnceLock::new();
    READ.get_or_init(|| TABLES.lines().filter_map(read).collect())
}

fn read(line: &'static str) -> Option<Table> {
    let mut fields = line.split('\t');
    let name = fields.next()?;
    let digits = fields.next()?;
    let mut codes = [0; 256];
    for (at, code) in codes.iter_mut().enumerate() {
        *code = u16::from_str_radix(digits.get(4 * at..4 * at + 4)?, 16).ok()?;
    }
    let mut bytes: Vec<(u16, u8)> = Vec::with_capacity(128);
    for (byte, code) in (0x80..=0xFF).zip(&codes[0x80..]) {
        if *code >= 0x80 && bytes.iter().all(|(known, _)| known != code) {
            bytes.push((*code, byte));
        }
    }
    for other in fields.next()?.split(',').filter(|other| !other.is_empty()) {
        let (code, byte) = other.split_once(':')?;
        let code = u16::from_str_radix(code, 16).ok()?;
        bytes.retain(|(known, _)| *known != code);
        if byte != "-" {
            bytes.push((code, u8::from_str_radix(byte, 16).ok()?));
        }
    }
    bytes.sort_unstable();
    Some(Table { name, codes, bytes })
}

impl Single {
    pub(super) fn from_name(name: &str) -> Option<Single> {
        let at = tables().iter().position(|table| table.name == name)?;
        Some(Single(at as u8))
    }

    pub(super) fn number(self) -> u8 {
        self.0
    }

    fn table(self) -> &'static Table {
        &tables()[usize::from(self.0)]
    }

    pub(super) fn name(self) -> &'static str {
        self.table().name
    }

    pub(super) fn decode(self, byte: u8) -> Option<u32> {
        let code = self.table().codes[usize::from(byte)];
        (code != 0 || byte == 0).then_some(u32::from(code))
    }

    pub(super) fn encode(self, code: u32) -> Option<u8> {
        if code < 0x80 {
            return Some(code as u8);
        }
        let bytes = &self.table().bytes;
        let at = bytes
            .binary_search_by_key(&code, |(known, _)| u32::from(*known))
            .ok()?;
        Some(bytes[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_set_that_is_ascii_below_0x80() {
        assert_eq!(tables().len(), TABLES.lines().count());
        assert!(tables().len() > 15);
        for (at, table) in tables().iter().enumerate() {
            let set = Single(at as u8);
            assert_eq!(Single::from_name(table.name), Some(set));
            for byte in 0..=0xFF {
                match set.decode(byte) {
                    Some(code) if byte < 0x80 => assert_eq!(code, u32::from(byte)),
                    // what means a character twice is stored as one of the two
                    Some(code) => {
                        let stored = set.encode(code).expect("a byte");
                        assert_eq!(set.decode(stored), Some(code), "{}", table.name);
                    }
                    None => assert!(byte >= 0x80, "{}", table.name),
                }
            }
        }
    }

    #[test]
    fn letters_of_some_sets() {
        let set = |name| Single::from_name(name).expect(name);
        assert_eq!(set("cp1251").decode(0xC6), Some('Ж'.into()));
        assert_eq!(set("koi8r").encode('Ж'.into()), Some(0xF6));
        assert_eq!(set("latin2").encode('ł'.into()), Some(0xB3));
        assert_eq!(set("latin2").encode('ß'.into()), Some(0xDF));
        assert_eq!(set("latin2").encode('€'.into()), None);
        assert_eq!(Single::from_name("gbk"), None);
    }
}
