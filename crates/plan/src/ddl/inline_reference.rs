//! REFERENCES in the definition of a column.
//!
//! MariaDB makes a foreign key of it since 10.5, MySQL since 9.0. Older servers read it and forget
//! it, and the proxy does as its server does (`Settings::columns_make_keys`). So the statement is
//! read as if the key stood behind the column, as an element of its own: one reader of foreign keys
//! is enough.

use std::ops::Range;

use super::attributes::Attributes;
use super::reader::Reader;

/// A column that a statement defines.
pub(super) struct Defined {
    /// Its tokens, from its name on.
    pub(super) tokens: Range<usize>,
    /// What begins an element of this statement: nothing, or ADD.
    pub(super) begin: &'static str,
}

/// The statement with these keys as elements. `None`: it has none.
pub(super) fn as_elements(r: &Reader, columns: impl Iterator<Item = Defined>) -> Option<Vec<u8>> {
    let makes_keys = r.request.settings.columns_make_keys;
    let (mut text, mut from) = (Vec::new(), 0);
    for Defined { tokens, begin } in columns {
        let reference = Attributes::read(r, tokens.clone()).reference;
        let Some(reference) = reference.filter(|found| ends(r, found.end..tokens.end)) else {
            continue;
        };
        let end = |range: &Range<usize>| Some(r.tokens.get(range.end.checked_sub(1)?)?.end);
        let (key, behind) = (reference.start, end(&tokens)?);
        text.extend_from_slice(&r.sql()[from..r.tokens.get(key)?.start]);
        text.extend_from_slice(&r.sql()[end(&reference)?..behind]);
        if makes_keys {
            let name = r.text(tokens.start..tokens.start + 1);
            text.extend_from_slice(format!(", {begin}FOREIGN KEY (").as_bytes());
            text.extend_from_slice(name);
            text.extend_from_slice(b") ");
            text.extend_from_slice(r.text(reference));
        }
        from = behind;
    }
    if from == 0 {
        return None;
    }
    text.extend_from_slice(&r.sql()[from..]);
    Some(text)
}

/// Whether nothing but the column's place stands behind REFERENCES. Anything else is a syntax error
/// to servers. Such a definition is left as it is: the server says so, or it is refused.
fn ends(r: &Reader, behind: Range<usize>) -> bool {
    match &r.tokens[behind] {
        [] => true,
        [first] => first.is_word(r.sql(), "first"),
        [after, _] => after.is_word(r.sql(), "after"),
        _ => false,
    }
}
