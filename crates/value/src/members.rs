//! The members of ENUM and SET types.
//!
//! A type is a small value that is copied freely, so the lists live as long as the process and are
//! kept once for every definition that was met ([`LIMIT`] bounds all of them together). What a
//! member is called is needed in three forms: as it is printed, as the bytes that a cell holds, and
//! as its number, which alone is sealed.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::collation::Collation;
use crate::weight;

/// Bytes of all lists together.
const LIMIT: usize = 16 << 20;

/// Members of an ENUM; the servers' limit.
const ENUM_MEMBERS: usize = 65_535;
/// Members of a SET; the servers' limit.
const SET_MEMBERS: usize = 64;
/// Members of a SET whose numbers have the same order for all: the 64th is a sign to one server.
const ORDERED_MEMBERS: usize = 63;

/// The members of an ENUM or SET, in the order of the definition and numbered from 1. Compared by
/// identity, which is that of the definition.
#[derive(Clone, Copy)]
pub struct Members(&'static List);

struct List {
    /// As the definition has them.
    names: Vec<String>,
    /// The same in the column's charset.
    bytes: Vec<Vec<u8>>,
    collation: Collation,
}

/// Why a list of members cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadMembers {
    /// The definition is none.
    Malformed,
    /// It is one that is not reproduced here.
    Unsupported(&'static str),
}

impl PartialEq for Members {
    fn eq(&self, other: &Members) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Members {}

impl Hash for Members {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::hash(self.0, state);
    }
}

impl std::fmt::Debug for Members {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.definition())
    }
}

type Known = HashMap<(Vec<String>, Collation), &'static List>;

/// All lists, and their size.
fn known() -> &'static Mutex<(Known, usize)> {
    static KNOWN: OnceLock<Mutex<(Known, usize)>> = OnceLock::new();
    KNOWN.get_or_init(Mutex::default)
}

impl Members {
    /// Reads `'a','b''c'`, what stands between the parentheses of a definition.
    pub(crate) fn parse(
        text: &str,
        collation: Collation,
        is_set: bool,
    ) -> Result<Members, BadMembers> {
        let names = unquoted(text).ok_or(BadMembers::Malformed)?;
        Self::new(names, collation, is_set)
    }

    fn new(
        mut names: Vec<String>,
        collation: Collation,
        is_set: bool,
    ) -> Result<Members, BadMembers> {
        let most = if is_set { SET_MEMBERS } else { ENUM_MEMBERS };
        if names.is_empty() || names.len() > most {
            return Err(BadMembers::Malformed);
        }
        if is_set && names.len() > ORDERED_MEMBERS {
            return Err(BadMembers::Unsupported("of 64 members"));
        }
        let charset = collation.charset();
        let mut bytes = Vec::with_capacity(names.len());
        for name in &mut names {
            // The servers do the same in every collation.
            name.truncate(name.trim_end_matches(' ').len());
            if name.chars().any(|c| c.is_control() || c == '\\') {
                return Err(BadMembers::Unsupported(
                    "with control characters or backslashes",
                ));
            }
            // The servers' dictionaries keep the basic plane only.
            if name.chars().any(|c| c > '\u{ffff}') {
                return Err(BadMembers::Unsupported(
                    "with characters beyond the basic plane",
                ));
            }
            if name.is_empty() {
                return Err(BadMembers::Unsupported(
                    "with an empty member, which is shown like the value of an error",
                ));
            }
            if is_set && name.contains(',') {
                return Err(BadMembers::Malformed);
            }
            let mut encoded = Vec::new();
            for c in name.chars() {
                let start = encoded.len();
                if !charset.encode(u32::from(c), &mut encoded) {
                    return Err(BadMembers::Unsupported(
                        "with characters that the column's character set lacks",
                    ));
                }
                // some sets have one place for two characters that look alike
                let stored = &encoded[start..];
                if charset.decode(stored) != Some((u32::from(c), stored.len())) {
                    return Err(BadMembers::Unsupported(
                        "with characters that the column's character set stores as others",
                    ));
                }
            }
            bytes.push(encoded);
        }
        let key = (names, collation);
        let mut guard = known().lock().unwrap_or_else(PoisonError::into_inner);
        let (lists, size) = &mut *guard;
        if let Some(list) = lists.get(&key) {
            return Ok(Members(list));
        }
        let (names, _) = &key;
        let list = List {
            names: names.clone(),
            bytes,
            collation,
        };
        check_distinct(&list)?;
        let more: usize = names.iter().map(|name| 3 * name.len() + 96).sum();
        if *size + more > LIMIT {
            return Err(BadMembers::Unsupported(
                "beside so many other lists of members",
            ));
        }
        *size += more;
        // Kept for ever, see the module's head.
        let list: &'static List = Box::leak(Box::new(list));
        lists.insert(key, list);
        Ok(Members(list))
    }

    /// How many there are.
    pub fn count(self) -> usize {
        self.0.names.len()
    }

    /// Whether a text in the column's charset may name a member.
    pub fn has(self, text: &[u8]) -> bool {
        self.find(text) != Ok(None)
    }

    /// The bytes of member `number`, which counts from 1, in the column's charset.
    pub(crate) fn bytes(self, number: usize) -> Option<&'static [u8]> {
        let list: &'static List = self.0;
        list.bytes.get(number.checked_sub(1)?).map(Vec::as_slice)
    }

    /// Characters of each member.
    pub(crate) fn lengths(self) -> impl Iterator<Item = u64> {
        let list: &'static List = self.0;
        list.names.iter().map(|name| name.chars().count() as u64)
    }

    /// `'a','b''c'`
    pub(crate) fn definition(self) -> String {
        let quoted = |name: &String| format!("'{}'", name.replace('\'', "''"));
        let all: Vec<String> = self.0.names.iter().map(quoted).collect();
        all.join(",")
    }

    /// The number of the member that is a text in the column's charset, or `None`. Spaces behind a
    /// member count here; whether they do is for the caller to say, by cutting them off. `Err`
    /// where the text has no weights.
    pub(crate) fn find(self, text: &[u8]) -> Result<Option<u16>, ()> {
        let collation = self.0.collation;
        for (number, member) in (1u16..).zip(&self.0.bytes) {
            let order = weight::compare_unpadded(collation, text, member).map_err(|_| ())?;
            if order == Ordering::Equal {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }
}

/// Members that are one to the collation make a definition that strict servers refuse; and in a SET
/// nothing may look like the comma.
fn check_distinct(list: &List) -> Result<(), BadMembers> {
    let unknown = |_| BadMembers::Unsupported("of a collation whose weights are not known");
    let mut seen = std::collections::HashSet::new();
    for member in &list.bytes {
        let mut weights = Vec::new();
        weight::unpadded(list.collation, member, &mut weights).map_err(unknown)?;
        if weights.is_empty() {
            return Err(BadMembers::Unsupported("with a member without weight"));
        }
        if !seen.insert(weights) {
            return Err(BadMembers::Unsupported(
                "with members that its collation takes for equal",
            ));
        }
    }
    Ok(())
}

/// The strings of a list in single quotes.
fn unquoted(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text.trim();
    loop {
        let body = rest.strip_prefix('\'')?;
        let mut name = String::new();
        let mut chars = body.char_indices().peekable();
        let end = loop {
            let (at, c) = chars.next()?;
            if c == '\'' {
                match chars.peek() {
                    Some((_, '\'')) => {
                        chars.next();
                    }
                    _ => break at,
                }
            }
            name.push(c);
        };
        names.push(name);
        rest = body[end + 1..].trim_start();
        if rest.is_empty() {
            return Some(names);
        }
        rest = rest.strip_prefix(',')?.trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collation(name: &str) -> Collation {
        Collation::from_name(name).expect(name)
    }

    #[test]
    fn equal_definitions_are_one() {
        let general = collation("utf8mb4_general_ci");
        let list = Members::parse("'a','it''s' , 'é'", general, false).expect("members");
        assert_eq!(
            list,
            Members::parse("'a','it''s','é  '", general, false).expect("members")
        );
        assert_ne!(
            Some(list),
            Members::parse("'a','it''s','é'", collation("utf8mb4_bin"), false).ok()
        );
        assert_eq!(list.definition(), "'a','it''s','é'");
        assert_eq!(list.find(b"IT'S"), Ok(Some(2)));
        assert_eq!(list.find("É".as_bytes()), Ok(Some(3)));
        assert_eq!(list.find(b"it's "), Ok(None));
        assert_eq!(list.bytes(1), Some(b"a".as_slice()));
        assert_eq!((list.bytes(0), list.bytes(4)), (None, None));
    }

    #[test]
    fn members_are_stored_in_the_columns_charset() {
        let list = Members::parse("'é'", collation("latin1_swedish_ci"), true).expect("a member");
        assert_eq!(list.bytes(1), Some([0xE9].as_slice()));
        let list = Members::parse("'я','縗'", collation("gbk_chinese_ci"), false);
        let list = list.expect("members");
        assert_eq!(list.bytes(1), Some(b"\xA7\xF1".as_slice()));
        // its second byte is a backslash
        assert_eq!(list.bytes(2), Some(b"\xBF\x5C".as_slice()));
        assert_eq!(list.find(b"\xA7\xF1"), Ok(Some(1)));
        assert_eq!(list.find(b"\xBF\x5C"), Ok(Some(2)));
        assert_eq!(list.find(b"\xBF"), Err(()));
        assert_eq!(list.definition(), "'я','縗'");
        let list = Members::parse("'Жук'", collation("koi8r_general_ci"), true);
        let list = list.expect("a member");
        assert_eq!(list.bytes(1), Some(b"\xF6\xD5\xCB".as_slice()));
        assert_eq!(list.find(b"\xD6\xF5\xEB"), Ok(Some(1)));
    }

    #[test]
    fn what_the_servers_refuse_or_show_otherwise_is_refused() {
        let general = collation("utf8mb4_general_ci");
        for (text, is_set) in [
            ("", false),
            ("a", false),
            ("'a", false),
            ("'a''", false),
            ("'a' 'b'", false),
            ("'a',", false),
            ("'a','A'", false),
            ("'a','a '", false),
            ("''", false),
            ("'a\\\\'", false),
            ("'😀'", false),
            ("'a,b'", true),
        ] {
            assert!(Members::parse(text, general, is_set).is_err(), "{text}");
        }
        assert!(Members::parse("'a'", collation("utf8mb4_czech_ci"), false).is_err());
        assert!(Members::parse("'€'", collation("ascii_general_ci"), false).is_err());
        assert!(Members::parse("'Ж'", collation("latin2_general_ci"), false).is_err());
        // stored as another that looks like it
        assert!(Members::parse("'晡'", collation("cp932_bin"), false).is_err());
        assert!(Members::parse("'a'", collation("big5_chinese_ci"), false).is_err());
        let many: Vec<String> = (0..65).map(|n| format!("'m{n}'")).collect();
        assert!(Members::parse(&many.join(","), general, true).is_err());
        assert!(Members::parse(&many.join(","), general, false).is_ok());
    }
}
