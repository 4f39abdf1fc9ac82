//! East Asian character sets of one to four bytes for each character, by tables measured on servers
//! (`charsets/generate.py`, which describes them).
//!
//! Only what the servers turn into a code point is a character here. They also take some pairs of
//! bytes for characters that mean nothing; those are refused.

use std::sync::OnceLock;

/// A set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Multi {
    /// GBK, simplified Chinese.
    Gbk,
    /// GB 18030, all of Unicode; MySQL has it.
    Gb18030,
    /// Big5, traditional Chinese.
    Big5,
    /// Shift JIS as Microsoft has it. (The servers' own sjis is not here: they store a backslash as
    /// `0x815F` in it, so that not even ASCII is itself.)
    Cp932,
    /// EUC-KR.
    Euckr,
    /// GB 2312, simplified Chinese.
    Gb2312,
    /// EUC-JP.
    Ujis,
    /// EUC-JP with Microsoft's additions.
    Eucjpms,
}

const ALL: [(Multi, &str); 8] = [
    (Multi::Gbk, "gbk"),
    (Multi::Gb18030, "gb18030"),
    (Multi::Big5, "big5"),
    (Multi::Cp932, "cp932"),
    (Multi::Euckr, "euckr"),
    (Multi::Gb2312, "gb2312"),
    (Multi::Ujis, "ujis"),
    (Multi::Eucjpms, "eucjpms"),
];

/// The byte before the two of a character of three bytes.
const THREE: u8 = 0x8F;
/// In gb18030, the place of U+10000 in the order of characters of four bytes.
const BEYOND: u32 = 189_000;

/// A set's characters. Half a megabyte at most, made when the set is first met.
pub(crate) struct Table {
    /// Code points by the byte, by the two bytes, by the last two of three; 0 for none.
    one: [u16; 256],
    two: Vec<u16>,
    three: Vec<u16>,
    /// Of characters of four bytes: first place, how many, first code point.
    four: Vec<(u16, u16, u16)>,
    /// The bytes of each character of the basic plane, as a number; 0 for none.
    bytes: Vec<u32>,
}

/// Reads big-endian numbers off a table.
struct Reader(&'static [u8]);

impl Reader {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }
}

impl Table {
    fn read(data: &'static [u8]) -> Option<Table> {
        let mut table = Table {
            one: [0; 256],
            two: vec![0; 0x1_0000],
            three: Vec::new(),
            four: Vec::new(),
            bytes: vec![0; 0x1_0000],
        };
        let mut data = Reader(data);
        while let Some(kind) = data.byte() {
            match kind {
                0..=2 => {
                    let (first, count) = (data.number()?, data.number()?);
                    for number in (u32::from(first)..).take(usize::from(count)) {
                        let code = data.number()?;
                        let place = number as usize;
                        let bytes = match kind {
                            0 => {
                                *table.one.get_mut(place)? = code;
                                number
                            }
                            1 => {
                                *table.two.get_mut(place)? = code;
                                number
                            }
                            _ => {
                                table.three.resize(0x1_0000, 0);
                                *table.three.get_mut(place)? = code;
                                u32::from(THREE) << 16 | number
                            }
                        };
                        table.stored(code, bytes);
                    }
                }
                3 => {
                    let run = (data.number()?, data.number()?, data.number()?);
                    for offset in 0..run.1 {
                        let place = u32::from(run.0) + u32::from(offset);
                        let code = run.2.checked_add(offset)?;
                        table.stored(code, u32::from_be_bytes(four_bytes(place)));
                    }
                    table.four.push(run);
                }
                _ => {
                    for _ in 0..data.number()? {
                        let code = data.number()?;
                        let (high, low) = (data.number()?, data.number()?);
                        *table.bytes.get_mut(usize::from(code))? =
                            u32::from(high) << 16 | u32::from(low);
                    }
                }
            }
        }
        Some(table)
    }

    /// Notes how a character is stored, if shorter or smaller bytes do not mean it already.
    fn stored(&mut self, code: u16, bytes: u32) {
        let slot = &mut self.bytes[usize::from(code)];
        if *slot == 0 {
            *slot = bytes;
        }
    }

    fn four(&self, place: u32) -> Option<u32> {
        let place = u16::try_from(place).ok()?;
        let run = self.four.partition_point(|(first, ..)| *first <= place);
        let (first, count, code) = *self.four.get(run.checked_sub(1)?)?;
        let offset = place - first;
        (offset < count).then(|| u32::from(code) + u32::from(offset))
    }
}

/// The four bytes at a place in gb18030's order.
fn four_bytes(place: u32) -> [u8; 4] {
    [
        0x81 + (place / 12_600) as u8,
        0x30 + (place / 1260 % 10) as u8,
        0x81 + (place / 10 % 126) as u8,
        0x30 + (place % 10) as u8,
    ]
}

/// The place of four bytes in gb18030's order.
fn place_of(bytes: &[u8]) -> Option<u32> {
    match *bytes.get(..4)? {
        [
            a @ 0x81..=0xFE,
            b @ b'0'..=b'9',
            c @ 0x81..=0xFE,
            d @ b'0'..=b'9',
        ] => {
            let (a, b, c, d) = (a - 0x81, b - b'0', c - 0x81, d - b'0');
            let high = u32::from(a) * 10 + u32::from(b);
            Some((high * 126 + u32::from(c)) * 10 + u32::from(d))
        }
        _ => None,
    }
}

impl Multi {
    pub(super) fn from_name(name: &str) -> Option<Multi> {
        ALL.iter()
            .find(|(_, known)| *known == name)
            .map(|(set, _)| *set)
    }

    pub(super) fn number(self) -> u8 {
        self as u8
    }

    pub(super) fn name(self) -> &'static str {
        ALL[usize::from(self.number())].1
    }

    pub(super) fn max_bytes(self) -> u32 {
        match self {
            Multi::Gb18030 => 4,
            Multi::Ujis | Multi::Eucjpms => 3,
            _ => 2,
        }
    }

    /// Whether the second byte of a character may be a backslash or a back quote.
    pub(super) fn hides_ascii(self) -> bool {
        matches!(
            self,
            Multi::Gbk | Multi::Gb18030 | Multi::Big5 | Multi::Cp932
        )
    }

    fn data(self) -> &'static [u8] {
        match self {
            Multi::Gbk => include_bytes!("../../charsets/gbk.bin"),
            Multi::Gb18030 => include_bytes!("../../charsets/gb18030.bin"),
            Multi::Big5 => include_bytes!("../../charsets/big5.bin"),
            Multi::Cp932 => include_bytes!("../../charsets/cp932.bin"),
            Multi::Euckr => include_bytes!("../../charsets/euckr.bin"),
            Multi::Gb2312 => include_bytes!("../../charsets/gb2312.bin"),
            Multi::Ujis => include_bytes!("../../charsets/ujis.bin"),
            Multi::Eucjpms => include_bytes!("../../charsets/eucjpms.bin"),
        }
    }

    fn table(self) -> Option<&'static Table> {
        static READ: [OnceLock<Option<Table>>; ALL.len()] = [const { OnceLock::new() }; ALL.len()];
        READ[usize::from(self.number())]
            .get_or_init(|| Table::read(self.data()))
            .as_ref()
    }

    pub(super) fn decode(self, bytes: &[u8]) -> Option<(u32, usize)> {
        let first = *bytes.first()?;
        if first < 0x80 {
            return Some((u32::from(first), 1));
        }
        let table = self.table()?;
        let known = |code: u16, length| (code != 0).then_some((u32::from(code), length));
        if let Some(found) = known(table.one[usize::from(first)], 1) {
            return Some(found);
        }
        let pair = |pair: &[u8]| usize::from(u16::from_be_bytes([pair[0], pair[1]]));
        if let Some(found) = known(table.two[pair(bytes.get(..2)?)], 2) {
            return Some(found);
        }
        if first == THREE && !table.three.is_empty() {
            return known(table.three[pair(bytes.get(1..3)?)], 3);
        }
        if self != Multi::Gb18030 {
            return None;
        }
        let place = place_of(bytes)?;
        let code = match place.checked_sub(BEYOND) {
            Some(beyond) => Some(0x1_0000 + beyond).filter(|code| *code <= 0x10_FFFF),
            None => table.four(place),
        };
        Some((code?, 4))
    }

    pub(super) fn encode(self, code: u32, out: &mut Vec<u8>) -> bool {
        if code < 0x80 {
            out.push(code as u8);
            return true;
        }
        let Some(table) = self.table() else {
            return false;
        };
        let bytes = match table.bytes.get(code as usize) {
            Some(bytes) => bytes.to_be_bytes(),
            None if self == Multi::Gb18030 && code <= 0x10_FFFF => {
                four_bytes(BEYOND + code - 0x1_0000)
            }
            None => return false,
        };
        let from = bytes.iter().position(|byte| *byte != 0).unwrap_or(4);
        out.extend_from_slice(&bytes[from..]);
        from < 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(set: Multi, code: u32) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        set.encode(code, &mut out).then_some(out)
    }

    #[test]
    fn what_is_stored_means_the_character() {
        for (set, name) in ALL {
            assert_eq!(Multi::from_name(name), Some(set));
            assert_eq!(set.name(), name);
            let mut characters = 0;
            for code in (0..=0x10_FFFF).filter(|code| !(0xD800..=0xDFFF).contains(code)) {
                // both servers store this one as another that looks like it
                if (set, code) == (Multi::Cp932, 0x6661) {
                    continue;
                }
                if let Some(bytes) = encoded(set, code) {
                    assert!(bytes.len() <= set.max_bytes() as usize, "{name} {code:x}");
                    assert_eq!(
                        set.decode(&bytes),
                        Some((code, bytes.len())),
                        "{name} {code:x}"
                    );
                    characters += 1;
                }
            }
            assert!(characters > 6000, "{name}: {characters}");
        }
    }

    #[test]
    fn no_byte_is_a_character_and_begins_one() {
        for (set, name) in ALL {
            let table = set.table().expect("a table");
            for code in 0..0x80 {
                assert_eq!(table.bytes[code as usize], code, "{name}: ASCII is itself");
            }
            for first in 0x80..=0xFFusize {
                let pairs = &table.two[first << 8..(first + 1) << 8];
                let begins = pairs.iter().any(|code| *code != 0);
                assert!(!begins || table.one[first] == 0, "{name} {first:x}");
            }
        }
    }

    #[test]
    fn characters_of_some_sets() {
        assert_eq!(encoded(Multi::Gbk, '中'.into()), Some(vec![0xD6, 0xD0]));
        assert_eq!(Multi::Gbk.decode(b"\xBF\x5Cx"), Some(('縗'.into(), 2)));
        assert_eq!(Multi::Gbk.decode(b"\xBF'"), None);
        assert_eq!(Multi::Gbk.decode(b"\xBF"), None);
        assert_eq!(encoded(Multi::Gbk, '😀'.into()), None);
        assert_eq!(
            encoded(Multi::Gb18030, '😀'.into()),
            Some(vec![0x94, 0x39, 0xFC, 0x36])
        );
        assert_eq!(encoded(Multi::Cp932, 'ソ'.into()), Some(vec![0x83, 0x5C]));
        assert_eq!(Multi::from_name("sjis"), None);
        assert_eq!(encoded(Multi::Euckr, '한'.into()), Some(vec![0xC7, 0xD1]));
        assert_eq!(Multi::Gb18030.decode(b"\xE3\x32\x9A\x36"), None);
    }
}
