//! Indexes over the beginning of a protected column: `KEY (name(10))`.
//!
//! On the server such an index covers the whole token or order key. It is a way to rows and no
//! more, so no answer depends on it. (A unique one would mean something else, and is none of
//! these.) What the definition said of the length stands in the index's comment, for each column
//! behind the digits that its companion's name ends with: they stay when the column gets another
//! name, or when other columns leave the index.

use crate::{
    protection::split_companion,
    show_create::{Token, tokens},
};

/// What the comment of such an index begins with.
pub(crate) const MARK: &str = "onionskin prefix ";

/// The comment of an index over prefixes of protected columns, each given by its companion's name
/// and the length. `None` for a name that is no companion's.
pub fn prefix_comment(columns: &[(String, u32)]) -> Option<String> {
    let mut parts = Vec::new();
    for (name, length) in columns {
        let (_, _, digits) = split_companion(name)?;
        parts.push(format!("{digits}:{length}"));
    }
    Some(format!("{MARK}{}", parts.join(",")))
}

/// The length that an index's comment gives for the prefix of the column with this companion.
pub(crate) fn prefix_length(comment: &str, companion: &str) -> Option<u32> {
    let (_, _, digits) = split_companion(companion)?;
    let lengths = comment.strip_prefix(MARK)?.split(',');
    let mut lengths = lengths.filter_map(|part| part.split_once(':'));
    let (_, length) = lengths.find(|(of, _)| *of == digits)?;
    length.parse().ok()
}

/// An index's element of SHOW CREATE TABLE with the lengths behind its columns in the place of the
/// comment that gives them.
pub(crate) fn with_prefixes(element: &str) -> String {
    let comment = |token: &Token<'_>| match token {
        Token::Literal(text) => {
            let text = text.trim_matches('\'');
            text.starts_with(MARK).then(|| text.to_owned())
        }
        _ => None,
    };
    let Some(comment) = tokens(element).find_map(|token| comment(&token)) else {
        return element.to_owned();
    };
    let (mut out, mut depth) = (String::with_capacity(element.len()), 0usize);
    for token in tokens(element) {
        match token {
            Token::Word("(") => depth += 1,
            Token::Word(")") => depth = depth.saturating_sub(1),
            Token::Literal(text) if text.trim_matches('\'') == comment => {
                let kept = out.trim_end().trim_end_matches("COMMENT").trim_end().len();
                out.truncate(kept);
                continue;
            }
            _ => {}
        }
        out.push_str(token.text());
        if depth == 1
            && token.is_identifier()
            && let Some(length) = prefix_length(&comment, &token.name())
        {
            out.push_str(&format!("({length})"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(columns: &[(&str, u32)]) -> Vec<(String, u32)> {
        let owned = |(name, length): &(&str, u32)| ((*name).to_owned(), *length);
        columns.iter().map(owned).collect()
    }

    #[test]
    fn lengths_stand_in_the_comment() {
        let of = columns(&[("a$eq_1a2b", 10), ("b c$ord_0001", 7)]);
        let comment = prefix_comment(&of).expect("companions");
        assert_eq!(comment, "onionskin prefix 1a2b:10,0001:7");
        assert_eq!(prefix_length(&comment, "renamed$eq_1a2b"), Some(10));
        assert_eq!(prefix_length(&comment, "b c$ord_0001"), Some(7));
        assert_eq!(prefix_length(&comment, "b c$ord_0002"), None);
        assert_eq!(prefix_length(&comment, "plain"), None);
        assert_eq!(prefix_length("1a2b:10", "a$eq_1a2b"), None);
        assert_eq!(prefix_comment(&columns(&[("plain", 1)])), None);
    }

    #[test]
    fn elements_are_shown_as_they_were_defined() {
        for (element, want) in [
            (
                "KEY `a` (`a$eq_1a2b`,`n`) COMMENT 'onionskin prefix 1a2b:10'",
                "KEY `a` (`a$eq_1a2b`(10),`n`)",
            ),
            (
                "KEY `n` (`n`(3),`a$eq_1a2b` DESC) USING BTREE COMMENT 'onionskin prefix 1a2b:10' /*!80000 INVISIBLE */",
                "KEY `n` (`n`(3),`a$eq_1a2b`(10) DESC) USING BTREE /*!80000 INVISIBLE */",
            ),
            // the column with the length has left
            (
                "KEY `n` (`n`) COMMENT 'onionskin prefix 1a2b:10'",
                "KEY `n` (`n`)",
            ),
            (
                "KEY `a` (`a$eq_1a2b`) COMMENT 'prefix 1a2b:10'",
                "KEY `a` (`a$eq_1a2b`) COMMENT 'prefix 1a2b:10'",
            ),
        ] {
            assert_eq!(with_prefixes(element), want);
        }
    }
}
