//! Protected columns of views under names of their own:
//! `CREATE VIEW v AS SELECT name AS n FROM user`.
//!
//! A server shows the comment of the table's column for the view's, and the comment is authentic
//! for the name of the table's column only. So the view has two more columns for each column of
//! another name, which hold nothing and say something by their own names:
//!
//! | column | says |
//! |---|---|
//! | `n$of_name` | what the column is called in the table: for that name its comment is verified |
//! | `n$as_TAG` | that a proxy has called it so: 16 bytes of authentication in 22 letters, over both names and the ids of table and column |
//!
//! Everything else follows the new name (`n$enc`, `n$eq_1a2b`), so that whatever knows physical
//! names by their form knows these.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    comment::{self, ColumnMetadata, CommentError},
    errors::SchemaError,
    protection::{ENC_SUFFIX, MAX_IDENTIFIER, PhysicalNames},
    quote::hex,
};

const ORIGINAL_INFIX: &str = "$of_";
const TAG_INFIX: &str = "$as_";
/// Letters of 16 bytes.
const TAG_LETTERS: usize = 22;

/// What a view calls a protected column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias<'a> {
    /// The view's name for it.
    pub name: &'a str,
    /// The table's name for it.
    pub original: &'a str,
    /// The ids of the table and of the column.
    pub ids: ([u8; 8], [u8; 4]),
}

impl Alias<'_> {
    fn tagged_bytes(&self) -> Vec<u8> {
        let (table_id, column_id) = self.ids;
        let ids = [hex(&table_id), hex(&column_id)].concat();
        // names hold no NUL
        ["onionskin:as|", self.name, "\0", self.original, "\0", &ids]
            .concat()
            .into_bytes()
    }

    /// The names of the two columns that say so.
    pub fn marks(&self, tag: impl Fn(&[u8]) -> [u8; 16]) -> [String; 2] {
        let tag = URL_SAFE_NO_PAD.encode(tag(&self.tagged_bytes()));
        [
            format!("{}{ORIGINAL_INFIX}{}", self.name, self.original),
            format!("{}{TAG_INFIX}{tag}", self.name),
        ]
    }

    /// Refuses a name that is too long, or could not be told from the names of marks.
    pub fn check(&self, names: &PhysicalNames) -> Result<(), SchemaError> {
        if self.name.contains(ORIGINAL_INFIX) || is_mark(self.name) {
            return Err(SchemaError::ReservedName {
                column: self.name.to_owned(),
            });
        }
        let marks = self.marks(|_| [0; 16]);
        let all = names.all().chain(marks.iter().map(String::as_str));
        let longest = all.map(|name| name.chars().count()).max().unwrap_or(0);
        if longest > MAX_IDENTIFIER {
            let length = self.name.chars().count();
            return Err(SchemaError::NameTooLong {
                column: self.name.to_owned(),
                limit: MAX_IDENTIFIER.saturating_sub(longest - length),
            });
        }
        Ok(())
    }
}

/// Whether a name has the form of a mark's.
pub(crate) fn is_mark(name: &str) -> bool {
    let is_tag = |letters: &str| {
        letters.len() == TAG_LETTERS
            && letters
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    let original = name.split_once(ORIGINAL_INFIX);
    let tagged = name.rsplit_once(TAG_INFIX);
    original.is_some_and(|(front, original)| !front.is_empty() && !original.is_empty())
        || tagged.is_some_and(|(front, letters)| !front.is_empty() && is_tag(letters))
}

/// The definition of the view's column `NAME$enc` with this comment, if marks among the view's
/// columns say by what name it is authentic; with the names of the marks and the table's name for
/// it.
pub(crate) fn aliased<'a>(
    comment: &str,
    physical_name: &str,
    columns: impl Iterator<Item = &'a str> + Clone,
    verify: impl Fn(&[u8], &[u8; 16]) -> bool,
) -> Result<(ColumnMetadata, String, [String; 2]), CommentError> {
    let name = physical_name
        .strip_suffix(ENC_SUFFIX)
        .ok_or(CommentError::NotAuthentic)?;
    let marked = |infix: &'static str| {
        columns
            .clone()
            .filter_map(move |column| column.strip_prefix(name)?.strip_prefix(infix))
    };
    for original in marked(ORIGINAL_INFIX) {
        let of_table = format!("{original}{ENC_SUFFIX}");
        let Ok(mut metadata) = comment::decode(comment, &of_table, &verify) else {
            continue;
        };
        let alias = Alias {
            name,
            original,
            ids: (metadata.table_id, metadata.column_id),
        };
        for letters in marked(TAG_INFIX) {
            let tag = URL_SAFE_NO_PAD.decode(letters).ok();
            let tag = tag.and_then(|tag| <[u8; 16]>::try_from(tag).ok());
            if tag.is_some_and(|tag| verify(&alias.tagged_bytes(), &tag)) {
                name.clone_into(&mut metadata.name);
                let marks = [
                    format!("{name}{ORIGINAL_INFIX}{original}"),
                    format!("{name}{TAG_INFIX}{letters}"),
                ];
                return Ok((metadata, original.to_owned(), marks));
            }
        }
    }
    Err(CommentError::NotAuthentic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_known_by_their_form() {
        for name in [
            "n$of_name",
            "a$b$of_c",
            "n$as_AAAAAAAAAAAAAAAAAAAAAA",
            "n$as_-_09azAZAAAAAAAAAAAAAA",
        ] {
            assert!(is_mark(name), "{name}");
        }
        for name in [
            "n",
            "$of_name",
            "n$of_",
            "n$as_",
            "n$as_short",
            "$as_AAAAAAAAAAAAAAAAAAAAAA",
            "n$enc",
        ] {
            assert!(!is_mark(name), "{name}");
        }
    }

    #[test]
    fn the_form_is_pinned() {
        let alias = Alias {
            name: "n",
            original: "name",
            ids: ([1; 8], [2; 4]),
        };
        let marks = alias.marks(|bytes| {
            assert_eq!(bytes, b"onionskin:as|n\x00name\x00010101010101010102020202");
            [0xfb; 16]
        });
        assert_eq!(marks, ["n$of_name", "n$as_-_v7-_v7-_v7-_v7-_v7-w"]);
    }
}
