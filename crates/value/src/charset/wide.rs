//! Character sets of two or four bytes at least for each character. ASCII is not itself in them, so
//! the servers do not read statements in them, and neither do we.

/// A set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wide {
    /// UTF-16, the higher byte first.
    Utf16,
    /// UTF-16, the lower byte first.
    Utf16le,
    /// The basic plane in two bytes, the higher first.
    Ucs2,
    /// Code points in four bytes, the highest first.
    Utf32,
}

const ALL: [(Wide, &str); 4] = [
    (Wide::Utf16, "utf16"),
    (Wide::Utf16le, "utf16le"),
    (Wide::Ucs2, "ucs2"),
    (Wide::Utf32, "utf32"),
];

impl Wide {
    pub(super) fn from_name(name: &str) -> Option<Wide> {
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
            Wide::Ucs2 => 2,
            _ => 4,
        }
    }

    pub(super) fn decode(self, bytes: &[u8]) -> Option<(u32, usize)> {
        let unit = |at: usize| -> Option<u32> {
            let (pair, _) = bytes.get(at..)?.split_first_chunk()?;
            Some(u32::from(match self {
                Wide::Utf16le => u16::from_le_bytes(*pair),
                _ => u16::from_be_bytes(*pair),
            }))
        };
        let (code, length) = match self {
            Wide::Utf32 => (unit(0)? << 16 | unit(2)?, 4),
            _ => match unit(0)? {
                high @ 0xD800..=0xDBFF if self != Wide::Ucs2 => match unit(2)? {
                    low @ 0xDC00..=0xDFFF => {
                        (0x1_0000 + ((high - 0xD800) << 10 | (low - 0xDC00)), 4)
                    }
                    _ => return None,
                },
                code => (code, 2),
            },
        };
        char::from_u32(code).map(|_| (code, length))
    }

    pub(super) fn encode(self, code: u32, out: &mut Vec<u8>) -> bool {
        let Some(character) = char::from_u32(code) else {
            return false;
        };
        match self {
            Wide::Utf32 => out.extend_from_slice(&code.to_be_bytes()),
            Wide::Ucs2 if code > 0xFFFF => return false,
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    out.extend_from_slice(&match self {
                        Wide::Utf16le => unit.to_le_bytes(),
                        _ => unit.to_be_bytes(),
                    });
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_there_and_back() {
        for (set, name) in ALL {
            assert_eq!(Wide::from_name(name), Some(set));
            for character in ['\0', 'a', 'é', '中', '\u{ffff}', '😀', '\u{10ffff}'] {
                let mut bytes = Vec::new();
                let has = set.encode(character.into(), &mut bytes);
                assert_eq!(has, set != Wide::Ucs2 || character <= '\u{ffff}');
                if has {
                    assert_eq!(set.decode(&bytes), Some((character.into(), bytes.len())));
                }
            }
        }
        assert_eq!(Wide::Utf16.decode(&[0xD8, 0]), None);
        assert_eq!(Wide::Utf16.decode(&[0xDC, 0, 0, 0x61]), None);
        assert_eq!(Wide::Utf16.decode(&[0xD8, 0, 0, 0x61]), None);
        assert_eq!(Wide::Ucs2.decode(&[0xD8, 0, 0xDC, 0]), None);
        assert_eq!(Wide::Utf16le.decode(&[0x61, 0]), Some((0x61, 2)));
        assert_eq!(Wide::Utf32.decode(&[0, 0x11, 0, 0]), None);
        assert_eq!(Wide::Utf32.decode(&[0, 0, 0]), None);
    }
}
