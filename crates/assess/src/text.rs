//! Words that the server chose, made harmless before they are shown.
//!
//! A table can be named `<script>`, hold the escapes of a terminal, or turn the direction of
//! writing. So every text of the server goes through [`shown`] when it is read, and each way of
//! showing it escapes what it would obey.

use std::fmt::Write;

/// Most characters of one text that are kept. Names have 64.
pub const MAX_SHOWN: usize = 400;

/// Without control characters and marks of direction, and not longer than [`MAX_SHOWN`].
pub fn shown(text: &str) -> String {
    let mut kept: String = text.chars().take(MAX_SHOWN).map(visible).collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        kept.push('…');
    }
    kept
}

fn visible(c: char) -> char {
    let turns = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{61c}');
    match c.is_control() || turns {
        true => '\u{fffd}',
        false => c,
    }
}

/// For texts and attributes of HTML.
pub fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            c => escaped.push(visible(c)),
        }
    }
    escaped
}

/// For running text and table cells of Markdown.
pub fn markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '&' | '$'
        ) {
            escaped.push('\\');
        }
        escaped.push(visible(c));
    }
    escaped
}

/// One word of a shell's command line. A name that the server chose must not become a command when
/// somebody copies the line.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.,:;/=@%+-".contains(c);
    let needs_none = !text.is_empty() && text.chars().all(|c| plain(c) && c != ';');
    match needs_none {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// A string of SQL that means the same under every `sql_mode`.
pub fn sql_string(text: &str) -> String {
    let mut hex = String::from("CONVERT(x'");
    for byte in text.bytes() {
        let _ = write!(hex, "{byte:02x}");
    }
    hex + "' USING utf8mb4)"
}

/// `1 table`, `2 tables`
pub fn count(number: usize, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_replaced() {
        let hostile = "a\u{1b}[2Jb\nc\u{202e}d\u{9b}31m";
        let harmless = shown(hostile);
        assert!(!harmless.chars().any(char::is_control), "{harmless:?}");
        assert!(!harmless.contains('\u{202e}'));
        assert_eq!(harmless.chars().count(), hostile.chars().count());
        assert!(shown(&"x".repeat(100_000)).chars().count() <= MAX_SHOWN + 1);
    }

    #[test]
    fn what_a_page_would_obey_is_escaped() {
        let page = html("<script>alert('x')</script> & \"y\"");
        assert!(!page.contains('<') && !page.contains('"') && !page.contains('\''));
        assert_eq!(markdown("a|b`c`[d](e)<f>"), "a\\|b\\`c\\`\\[d\\](e)\\<f\\>");
    }

    #[test]
    fn a_name_stays_one_word_of_a_shell() {
        assert_eq!(shell_word("app.users"), "app.users");
        assert_eq!(shell_word("a; rm -rf ~"), "'a; rm -rf ~'");
        assert_eq!(shell_word("a'$(x)'"), "'a'\\''$(x)'\\'''");
        assert_eq!(shell_word(""), "''");
    }
}
