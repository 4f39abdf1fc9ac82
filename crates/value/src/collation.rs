//! Collations: which charset, whether trailing spaces count, and whether weights are known.

use std::sync::OnceLock;

use crate::byte_tables::{self, Bytes, Pairs};
use crate::charset::{Charset, Multi};
use crate::types::Family;

/// Every collation of the supported charsets, as MariaDB 10.11 and MySQL 9.7 list them:
/// name, protocol number, charset, `P`AD SPACE or `N`O PAD; sorted by name.
const TABLE: &str = include_str!("../weights/collations.tsv");

/// A collation. `Copy`, compared by identity.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Collation(&'static Entry);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Entry {
    name: &'static str,
    id: u16,
    charset: Charset,
    pad_space: bool,
    weights: Weights,
}

/// The rule that makes a collation's weight strings, see [`crate::weight`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Weights {
    /// The bytes themselves.
    Bytes,
    /// The code point of each character, in three bytes.
    CodePoints,
    /// One byte for each byte, from a table.
    Single(Bytes),
    /// As many bytes as the character has, one or two, from a table.
    Pairs(Pairs),
    /// Two bytes for each character of the basic plane, 0xFFFD for others.
    GeneralCi,
    /// UCA 4.0.0 primary weights.
    UnicodeCi,
    /// UCA 5.2.0 primary weights.
    Unicode520Ci,
    /// UCA 9.0.0 primary weights.
    Uca0900AiCi,
    /// UCA 14.0.0 primary weights.
    Uca1400AiCi,
    /// Not known: the column can be sealed and not searched.
    Unknown,
}

fn table() -> &'static [Entry] {
    static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
    ENTRIES.get_or_init(|| {
        let mut entries: Vec<Entry> = TABLE.lines().filter_map(entry).collect();
        entries.push(Entry {
            name: "binary",
            id: 63,
            charset: Charset::Binary,
            pad_space: false,
            weights: Weights::Bytes,
        });
        entries.sort_unstable_by_key(|entry| entry.name);
        entries
    })
}

fn entry(line: &'static str) -> Option<Entry> {
    let mut fields = line.split('\t');
    let name = fields.next()?;
    let id = fields.next()?.parse().ok()?;
    let charset = Charset::from_name(fields.next()?)?;
    let pad_space = fields.next()? == "P";
    let weights = weights_of(name, charset);
    Some(Entry {
        name,
        id,
        charset,
        pad_space,
        weights,
    })
}

fn weights_of(name: &'static str, charset: Charset) -> Weights {
    // What pads differs, the weights are the same.
    let padded = name.replacen("_nopad_", "_", 1);
    let rule = padded
        .strip_prefix(charset.name())
        .and_then(|rest| rest.strip_prefix('_'))
        .unwrap_or_default();
    match (charset, rule) {
        (Charset::Wide(_), "bin") => Weights::CodePoints,
        (_, "bin") | (Charset::Utf8mb4, "0900_bin") => Weights::Bytes,
        // In the basic plane utf8mb3's weights are those of utf8mb4; ASCII's fold case alike.
        (Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Ascii | Charset::Wide(_), "general_ci") => {
            Weights::GeneralCi
        }
        (Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Wide(_), "unicode_ci") => {
            Weights::UnicodeCi
        }
        (Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Wide(_), "unicode_520_ci") => {
            Weights::Unicode520Ci
        }
        (Charset::Utf8mb4, "0900_ai_ci") => Weights::Uca0900AiCi,
        (Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Wide(_), "uca1400_ai_ci") => {
            Weights::Uca1400AiCi
        }
        (Charset::Latin1 | Charset::Single(_), _) => {
            byte_tables::bytes(&padded).map_or(Weights::Unknown, Weights::Single)
        }
        (Charset::Multi(_), _) => {
            byte_tables::pairs(&padded).map_or(Weights::Unknown, Weights::Pairs)
        }
        _ => Weights::Unknown,
    }
}

/// The name of a character set's default collation, of sets that are not known here, too.
pub fn default_collation(charset: &str, family: Family) -> String {
    let suffix = match charset {
        "binary" => return "binary".to_owned(),
        "utf8" => return "utf8mb3_general_ci".to_owned(),
        "utf8mb4" if family == Family::MySql => "0900_ai_ci",
        "latin1" | "dec8" | "swe7" => "swedish_ci",
        "hp8" => "english_ci",
        "big5" | "gb2312" | "gbk" | "gb18030" => "chinese_ci",
        "ujis" | "sjis" | "cp932" | "eucjpms" => "japanese_ci",
        "tis620" => "thai_ci",
        "euckr" => "korean_ci",
        "latin5" => "turkish_ci",
        _ => "general_ci",
    };
    format!("{charset}_{suffix}")
}

/// The charset of the collation with this protocol number.
pub(crate) fn charset_of_id(id: u16) -> Option<Charset> {
    static BY_ID: OnceLock<Vec<(u16, Charset)>> = OnceLock::new();
    let by_id = BY_ID.get_or_init(|| {
        let ids = table().iter().map(|entry| (entry.id, entry.charset));
        let mut ids: Vec<(u16, Charset)> = ids.collect();
        ids.sort_by_key(|(id, _)| *id);
        ids
    });
    let at = by_id.binary_search_by_key(&id, |(id, _)| *id).ok()?;
    Some(by_id[at].1)
}

impl Collation {
    /// The collation with this name, in any case; `utf8_…` means `utf8mb3_…`. `None` where its
    /// charset is not supported: then a column cannot even be sealed, because its values could not
    /// be checked.
    pub fn from_name(name: &str) -> Option<Collation> {
        let mut name = name.to_ascii_lowercase();
        if let Some(rest) = name.strip_prefix("utf8_") {
            name = format!("utf8mb3_{rest}");
        }
        let entries = table();
        let at = entries
            .binary_search_by(|entry| entry.name.cmp(&name))
            .ok()?;
        Some(Collation(&entries[at]))
    }

    /// The collation that text of a character set has where none is named.
    pub fn default_of(charset: Charset, family: Family) -> Option<Collation> {
        Collation::from_name(&default_collation(charset.name(), family))
    }

    /// The name servers print.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// The number of the collation in the protocol.
    pub fn id(self) -> u16 {
        self.0.id
    }

    /// The number that a server announces a column of the collation with, where it does not convert
    /// results. For those of UCA 14.0.0 MariaDB gives the number of the same language's older one,
    /// which all clients know.
    pub fn announced_id(self) -> u16 {
        let Some((charset, rest)) = self.name().split_once("_uca1400_") else {
            return self.id();
        };
        let language = rest
            .split('_')
            .find(|word| !["nopad", "ai", "as", "ci", "cs"].contains(word));
        let older = format!("{charset}_{}_ci", language.unwrap_or("unicode"));
        Collation::from_name(&older).map_or(self.id(), Collation::id)
    }

    /// The charset of the column's stored text.
    pub fn charset(self) -> Charset {
        self.0.charset
    }

    /// Whether comparison pads the shorter string with spaces, so that trailing spaces do not
    /// count.
    pub fn pad_space(self) -> bool {
        self.0.pad_space
    }

    /// Whether servers of the family may have it: gb18030 is MySQL's alone, and what MariaDB added
    /// has its marks. Where MariaDB (from 11.4 on) has the name `utf8mb4_0900_ai_ci`, it stands for
    /// `utf8mb4_uca1400_nopad_ai_ci`: other weights than those known here by that name.
    pub fn is_of(self, family: Family) -> bool {
        match family {
            Family::MariaDb => {
                self.charset() != Charset::Multi(Multi::Gb18030)
                    && self.weights() != Weights::Uca0900AiCi
            }
            Family::MySql => !["_nopad_", "_uca1400_"]
                .iter()
                .any(|mark| self.name().contains(mark)),
        }
    }

    /// Whether weights are known, so that equality tokens and order keys can be made.
    pub fn is_searchable(self) -> bool {
        self.0.weights != Weights::Unknown
    }

    pub(crate) fn weights(self) -> Weights {
        self.0.weights
    }
}

impl std::fmt::Debug for Collation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_collations() {
        for (name, id, charset, pad, searchable) in [
            ("binary", 63, Charset::Binary, false, true),
            ("latin1_swedish_ci", 8, Charset::Latin1, true, true),
            ("utf8mb4_bin", 46, Charset::Utf8mb4, true, true),
            ("UTF8MB4_general_ci", 45, Charset::Utf8mb4, true, true),
            ("utf8mb4_unicode_ci", 224, Charset::Utf8mb4, true, true),
            ("utf8mb4_unicode_520_ci", 246, Charset::Utf8mb4, true, true),
            ("utf8mb4_0900_ai_ci", 255, Charset::Utf8mb4, false, true),
            ("utf8mb4_uca1400_ai_ci", 2304, Charset::Utf8mb4, true, true),
            ("utf8mb4_uca1400_as_ci", 2306, Charset::Utf8mb4, true, false),
            ("utf8_general_ci", 33, Charset::Utf8mb3, true, true),
            ("utf8mb4_czech_ci", 234, Charset::Utf8mb4, true, false),
        ] {
            let collation = Collation::from_name(name).expect(name);
            assert_eq!(
                (
                    collation.id(),
                    collation.charset(),
                    collation.pad_space(),
                    collation.is_searchable()
                ),
                (id, charset, pad, searchable),
                "{name}"
            );
        }
        // as MariaDB 10.11 and 11.8 announce columns after SET character_set_results = NULL
        for (name, announced) in [
            ("utf8mb4_uca1400_ai_ci", 224),
            ("utf8mb4_uca1400_german2_as_cs", 244),
            ("utf8mb3_uca1400_swedish_as_cs", 200),
            ("ucs2_uca1400_nopad_ai_ci", 128),
            ("utf8mb4_general_ci", 45),
        ] {
            let collation = Collation::from_name(name).expect(name);
            assert_eq!(collation.announced_id(), announced, "{name}");
        }
        let is_of = |name, family| Collation::from_name(name).expect(name).is_of(family);
        assert!(!is_of("gb18030_bin", Family::MariaDb));
        assert!(is_of("gb18030_bin", Family::MySql));
        assert!(!is_of("utf8mb4_uca1400_ai_ci", Family::MySql));
        assert!(!is_of("utf8mb4_0900_ai_ci", Family::MariaDb));
        assert!(is_of("utf8mb4_0900_as_cs", Family::MariaDb));
        assert!(!is_of("gbk_chinese_nopad_ci", Family::MySql));
        assert!(is_of("gbk_chinese_nopad_ci", Family::MariaDb));
        assert!(Collation::from_name("swe7_swedish_ci").is_none());
        assert!(Collation::from_name("").is_none());
    }
}
