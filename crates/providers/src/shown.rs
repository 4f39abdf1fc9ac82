//! What others have said, as a part of an error.

use std::fmt::Write as _;

/// So many characters are shown, at most.
const MOST_SHOWN: usize = 500;
/// Words of so many letters are not shown: 32 bytes are 43 letters of base64 and 64 of
/// hexadecimal, and error messages of tools quote what they were given.
const LONGEST_SHOWN: usize = 40;

/// What somebody has said, to be put behind a sentence: one line, without what may be a key and
/// without what steers a terminal. Empty if it is nothing.
pub(crate) fn behind(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut shown = String::new();
    let is_of_keys = |c: char| c.is_ascii_alphanumeric() || "+/=_-".contains(c);
    let mut rest: &str = text.trim();
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c: char| !is_of_keys(c)).unwrap_or(rest.len());
        let (word, behind) = match end {
            0 => rest.split_at(first.len_utf8()),
            end => rest.split_at(end),
        };
        match (end, first) {
            (0, c) if c.is_whitespace() || c.is_control() => {
                if !shown.ends_with(' ') {
                    shown.push(' ');
                }
            }
            (LONGEST_SHOWN.., _) => {
                let _ = write!(shown, "[{end} characters]");
            }
            _ => shown.push_str(word),
        }
        rest = behind;
    }
    if shown.chars().count() > MOST_SHOWN {
        shown = shown.chars().take(MOST_SHOWN).collect();
        shown.push('…');
    }
    match shown.is_empty() {
        true => String::new(),
        false => format!(": {shown}"),
    }
}
