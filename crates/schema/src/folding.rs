//! Names as servers compare them, whatever the case of their letters.
//!
//! Servers fold a name letter by letter, each letter to one other (the Unicode case table of
//! `utf8mb3_general_ci`). [`str::to_lowercase`] follows Unicode's rules for whole words instead:
//! the capital I with a dot becomes two characters, and a sigma at the end of a word another one
//! than elsewhere. A name that is the same to a server and another one here is a way past every
//! rule that goes by names. So no other place folds names.

/// A name in small letters: names that a server takes for the same are equal in this form.
pub fn folded(name: &str) -> String {
    match name.is_ascii() {
        true => name.to_ascii_lowercase(),
        false => name.chars().map(small).collect(),
    }
}

/// Whether two names of columns or tables are the same to a server that does not count letter case.
pub fn same_name(a: &str, b: &str) -> bool {
    if a.is_ascii() && b.is_ascii() {
        return a.eq_ignore_ascii_case(b);
    }
    a.chars().map(small).eq(b.chars().map(small))
}

/// The small letter of a letter.
fn small(letter: char) -> char {
    let mut letters = letter.to_lowercase();
    match (letters.next(), letters.next()) {
        (Some(one), None) => one,
        // the only letter with two characters for its small one; the server drops the dot
        _ if letter == 'İ' => 'i',
        _ => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_ignore_letter_case() {
        assert!(same_name("Größe", "GRÖßE"));
        assert!(same_name("id", "ID"));
        assert!(!same_name("id", "id2"));
        assert!(!same_name("id", "ıd"));
    }

    #[test]
    fn letters_fold_one_by_one() {
        for (a, b) in [
            ("emaİl", "email"),
            ("emaİl$ENC", "email$enc"),
            ("s\u{212a}ill", "skill"),
            ("ΚΩΔΙΚΟΣ", "κωδικοσ"),
            ("\u{212b}ngström", "ångström"),
        ] {
            assert!(same_name(a, b), "{a} {b}");
            assert_eq!(folded(a), folded(b), "{a} {b}");
        }
        for letter in '\u{80}'..='\u{10ffff}' {
            let count = letter.to_lowercase().count();
            assert!(count == 1 || letter == 'İ', "{letter}");
        }
    }
}
