use std::collections::HashSet;

use super::{Escape, LikePattern, Pattern, grams, most_grams};
use crate::charset::Charset;
use crate::context::Input;
use crate::types::SqlType;

fn text(collation: &str) -> SqlType {
    SqlType::parse("varchar(60)", Some(collation)).unwrap()
}

fn pattern(ty: &SqlType, pattern: &str) -> LikePattern {
    let input = Input::Text {
        bytes: pattern.as_bytes(),
        charset: Charset::Utf8mb4,
    };
    match LikePattern::read(ty, input, Escape::Backslash).unwrap() {
        Pattern::Like(pattern) => pattern,
        Pattern::Null => panic!("not NULL"),
    }
}

fn like(collation: &str, value: &str, wanted: &str) -> bool {
    pattern(&text(collation), wanted)
        .matches(value.as_bytes())
        .unwrap()
}

#[test]
fn wildcards_and_escapes() {
    let is = |value, wanted| like("utf8mb4_general_ci", value, wanted);
    for (value, wanted) in [
        ("", ""),
        ("", "%"),
        ("a", "_"),
        ("aé", "__"),
        ("abcabd", "%abd"),
        ("abcabd", "a%b%d"),
        ("mississippi", "%iss%ip%i"),
        ("100%", "100\\%"),
        ("a_b", "a\\_b"),
        ("a\\", "a\\"),
        ("a\\b", "a\\\\b"),
        ("Ä", "a"),
        ("ab", "%%ab%%"),
        ("a\\", "%\\"),
    ] {
        assert!(is(value, wanted), "{value} LIKE {wanted}");
    }
    for (value, wanted) in [
        ("", "_"),
        ("a", ""),
        ("a ", "a"),
        ("a", "a "),
        ("axb", "a\\_b"),
        ("abc", "ab"),
        ("ab", "%abc"),
        ("1000", "100\\%"),
        ("abcabc", "%abd"),
    ] {
        assert!(!is(value, wanted), "{value} NOT LIKE {wanted}");
    }
}

#[test]
fn characters_are_compared_one_by_one() {
    assert!(!like("utf8mb4_unicode_ci", "ß", "ss"));
    assert!(like("utf8mb4_unicode_ci", "ß", "_"));
    assert!(!like("utf8mb4_unicode_ci", "a\u{301}", "a"));
    assert!(like("utf8mb4_unicode_ci", "a\u{301}", "a_"));
    assert!(like("utf8mb4_unicode_ci", "a\u{301}", "a\u{300}"));
    assert!(!like("utf8mb4_bin", "A", "a"));
    assert!(like("utf8mb4_0900_ai_ci", "É", "e"));
    assert!(!like("utf8mb4_unicode_ci", "😀", "😁"));
    assert!(like("utf8mb4_general_ci", "😀", "😁"));
}

fn like_in(collation: &str, value: &str, wanted: &str) -> bool {
    let ty = text(collation);
    let mut bytes = Vec::new();
    for character in value.chars() {
        assert!(ty.charset().encode(character.into(), &mut bytes), "{value}");
    }
    pattern(&ty, wanted).matches(&bytes).unwrap()
}

#[test]
fn characters_of_several_bytes_are_kept_together() {
    // what is known of ASCII in UTF-8 is no help in UTF-16: 0x6100 is no letter a behind half a
    // character
    assert!(like("utf8mb4_general_ci", "xa", "%A"));
    for collation in ["utf16_general_ci", "utf16le_general_ci", "utf16_unicode_ci"] {
        assert!(like_in(collation, "ba\u{100}xaß", "%XA_"), "{collation}");
        assert!(
            !like_in(collation, "\u{6100}\u{6200}", "%a%"),
            "{collation}"
        );
        assert!(!like_in(collation, "\u{61}\u{6261}", "%b%"), "{collation}");
    }
    assert!(like_in("gbk_bin", "縗x", "_x"));
    assert!(!like_in("gbk_bin", "縗x", "%\\\\x"));
    assert!(like_in("gbk_chinese_ci", "縗X\\", "縗x\\\\"));
    assert!(like_in("cp1251_general_ci", "Жук", "жУ_"));
}

/// Two characters of cp932 mean U+2252.
#[test]
fn what_means_the_same_is_not_like_it_in_another_form() {
    let matches = |collation, wanted: &[u8]| {
        let ty = text(collation);
        let input = Input::Text {
            bytes: wanted,
            charset: ty.charset(),
        };
        match LikePattern::read(&ty, input, Escape::Backslash).unwrap() {
            Pattern::Like(pattern) => pattern.matches(b"\x87\x90").unwrap(),
            Pattern::Null => panic!("not NULL"),
        }
    };
    assert!(matches("cp932_bin", b"\x87\x90"));
    assert!(!matches("cp932_bin", b"\x81\xe0"));
}

/// Numbers below `n`, the same for the same seed.
fn numbers(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |n| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n
    }
}

/// LIKE as it is defined: `%` is any number of characters.
fn by_definition(value: &[char], wanted: &[char]) -> bool {
    match (value, wanted) {
        ([], []) => true,
        (_, ['%', rest @ ..]) => (0..=value.len()).any(|n| by_definition(&value[n..], rest)),
        ([_, value @ ..], ['_', rest @ ..]) => by_definition(value, rest),
        ([v, value @ ..], [w, rest @ ..]) => v == w && by_definition(value, rest),
        _ => false,
    }
}

#[test]
fn random_patterns_match_by_definition() {
    let mut random = numbers(11);
    let mut matched = 0;
    for _ in 0..20_000 {
        let mut word = |of: &[char], longest: usize| -> Vec<char> {
            let length = random(longest + 1);
            (0..length).map(|_| of[random(of.len())]).collect()
        };
        let value = word(&['a', 'b', 'é', '😀'], 9);
        let wanted = word(&['a', 'b', 'é', '😀', '%', '%', '_'], 7);
        let expected = by_definition(&value, &wanted);
        let (value, wanted): (String, String) = (value.iter().collect(), wanted.iter().collect());
        for collation in ["utf8mb4_bin", "utf8mb4_0900_ai_ci", "utf8mb4_general_ci"] {
            assert_eq!(
                like(collation, &value, &wanted),
                expected,
                "{value} LIKE {wanted}"
            );
        }
        let (value, wanted) = (value.replace('😀', "ß"), wanted.replace('😀', "ß"));
        for collation in ["latin1_swedish_ci", "latin1_bin", "utf16_general_ci"] {
            assert_eq!(
                like_in(collation, &value, &wanted),
                expected,
                "{value} LIKE {wanted}, {collation}"
            );
        }
        matched += usize::from(expected);
    }
    assert!((2_000..18_000).contains(&matched), "{matched}");
}

#[test]
fn what_matches_has_the_patterns_grams() {
    let mut random = numbers(7);
    let mut selective = 0;
    for collation in [
        "utf8mb4_general_ci",
        "utf8mb4_unicode_ci",
        "utf8mb4_0900_ai_ci",
        "utf8mb4_bin",
        "latin1_swedish_ci",
    ] {
        let ty = text(collation);
        for _ in 0..4000 {
            let letters = ["a", "A", "b", "%", "_", "é", " "];
            let mut make = |most: usize, wild: usize| -> String {
                let length = random(most);
                (0..length).map(|_| letters[random(wild)]).collect()
            };
            let (value, wanted) = (make(9, 3), make(7, 5));
            let compiled = pattern(&ty, &wanted);
            let mut of_value = HashSet::new();
            grams(&ty, value.as_bytes(), |g| {
                of_value.insert(*g);
            })
            .unwrap();
            let mut missing = false;
            compiled.grams(12, |g| missing |= !of_value.contains(g));
            if compiled.matches(value.as_bytes()).unwrap() {
                assert!(!missing, "{value:?} LIKE {wanted:?}, {collation}");
            } else {
                selective += usize::from(missing);
            }
        }
    }
    assert!(selective > 2000, "{selective}");
}

#[test]
fn a_value_has_a_gram_for_each_character() {
    let count = |value: &str| {
        let mut n = 0;
        grams(&text("utf8mb4_bin"), value.as_bytes(), |_| n += 1).unwrap();
        n
    };
    assert_eq!(
        [count(""), count("a"), count("ab"), count("äöü")],
        [0, 1, 2, 3]
    );
    assert_eq!(most_grams(&text("utf8mb4_bin")), 60);
    let count = |wanted: &str, most| {
        let mut n = 0;
        pattern(&text("utf8mb4_bin"), wanted).grams(most, |_| n += 1);
        n
    };
    assert_eq!(count("ab%", 12), 1);
    assert_eq!(count("%ab%", 12), 0);
    assert_eq!(count("%abc%", 12), 1);
    assert_eq!(count("a_b", 12), 0);
    assert_eq!(count("abc", 12), 3);
    assert!(count(&"x".repeat(60), 12) <= 12);
}
