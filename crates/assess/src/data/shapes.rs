//! What one value looks like. Nothing of the value is kept.

use std::{collections::BTreeSet, net::IpAddr, sync::LazyLock};

use super::{check_digits, kind::Kind};

/// A kind, and what more is known of it.
pub(super) type Shape = (Kind, &'static str);

/// A weak shape counts only for whole columns, or with a name.
pub(super) const WEAK: &str = "weak";

/// Everything that the value looks like.
pub(super) fn shapes(value: &str) -> Vec<Shape> {
    let text = value.trim();
    let mut found = Vec::new();
    if text.is_empty() {
        return found;
    }
    if is_email(text) {
        return vec![(Kind::Email, "")];
    }
    if text.parse::<IpAddr>().is_ok() && (text.contains('.') || text.matches(':').count() > 1) {
        return vec![(Kind::Ip, "")];
    }
    if let Some(what) = secret(text) {
        return vec![(Kind::Secret, what)];
    }
    let dense: String = text
        .chars()
        .filter(|c| !matches!(c, ' ' | '-' | '.' | '/'))
        .collect::<String>()
        .to_uppercase();
    if check_digits::iban(&dense) {
        return vec![(Kind::Iban, "")];
    }
    let is_dated = is_date(text);
    let digits: Option<Vec<u8>> = dense
        .bytes()
        .map(|b| b.is_ascii_digit().then(|| b - b'0'))
        .collect();
    if !is_dated && dense.len() <= 20 {
        if digits.as_deref().is_some_and(check_digits::card) {
            found.push((Kind::Card, ""));
        }
        // A fraction is no number of anybody's.
        let is_fraction = text.matches('.').count() == 1 && text.parse::<f64>().is_ok();
        if !is_fraction {
            let whole = if text.len() == 11 {
                text.to_uppercase()
            } else {
                dense.clone()
            };
            let mut countries = check_digits::countries(&dense, digits.as_deref());
            countries.extend(check_digits::countries(&whole, None));
            countries.dedup();
            found.extend(
                countries
                    .into_iter()
                    .map(|country| (Kind::National, country)),
            );
            if is_ssn(text) {
                found.push((Kind::National, "United States: SSN, by its form alone"));
            } else if !digits.as_deref().is_some_and(is_book)
                && let Some(what) = phone(text)
            {
                found.push((Kind::Phone, what));
            }
        }
    }
    if is_dated {
        found.push((Kind::BirthDate, WEAK));
    }
    if is_address(text) {
        found.push((Kind::Address, ""));
    }
    if let Some(what) = name(text) {
        found.push((Kind::Name, what));
    }
    if is_icd(text) {
        found.push((Kind::Health, WEAK));
    }
    if is_prose(text) {
        found.push((Kind::FreeText, ""));
        if text
            .split_whitespace()
            .any(|word| is_email(word.trim_matches(|c: char| !c.is_alphanumeric())))
        {
            found.push((Kind::Email, "within a text"));
        }
    }
    found
}

/// Written as names of places are, and codes of them: a capital or a letter that has no case first,
/// no digit, and no long word of capitals.
pub(super) fn is_proper(text: &str) -> bool {
    let begins = text
        .chars()
        .next()
        .is_some_and(|c| c.is_alphabetic() && !c.is_lowercase());
    let shouts =
        text.chars().count() > 3 && !text.chars().any(|c| c.is_alphabetic() && !c.is_uppercase());
    begins && !shouts && !text.chars().any(char::is_numeric)
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else {
        return false;
    };
    let is_local = |c: char| c.is_alphanumeric() || "!#$%&'*+/=?^_`{|}~.-".contains(c);
    let is_label =
        |label: &str| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-');
    let top = domain.rsplit('.').next().unwrap_or_default();
    !local.is_empty()
        && text.len() <= 254
        && local.chars().all(is_local)
        && domain.contains('.')
        && domain.split('.').all(is_label)
        && top.chars().count() >= 2
        && top.chars().all(char::is_alphabetic)
}

/// Dates, and times behind them, as servers and people write them.
pub(super) fn is_date(text: &str) -> bool {
    year(text).is_some()
}

/// The year of a date.
pub(super) fn year(text: &str) -> Option<u32> {
    let date = text.split([' ', 'T']).next()?;
    let parts: Vec<&str> = date.split(['-', '/', '.']).collect();
    let [first, second, third] = parts.as_slice() else {
        return None;
    };
    let number = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| text.parse::<u32>().ok())?
    };
    let (year, month, day) = match (first.len(), third.len()) {
        (4, 1..=2) => (number(first)?, number(second)?, number(third)?),
        (1..=2, 4) => (number(third)?, number(second)?, number(first)?),
        _ => return None,
    };
    let is_day = month <= 12 && day <= 31 || day <= 12 && month <= 31;
    ((1000..=2999).contains(&year) && is_day).then_some(year)
}

fn is_ssn(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [area, group, serial] = parts.as_slice() else {
        return false;
    };
    let is = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|b| b.is_ascii_digit())
    };
    is(area, 3) && is(group, 2) && is(serial, 4) && *area != "000" && *area != "666"
}

/// ISBN-13: an EAN of the land of books.
fn is_book(digits: &[u8]) -> bool {
    let weighted = digits
        .iter()
        .enumerate()
        .map(|(at, d)| u32::from(*d) * if at % 2 == 0 { 1 } else { 3 });
    digits.len() == 13
        && (digits.starts_with(&[9, 7, 8]) || digits.starts_with(&[9, 7, 9]))
        && weighted.sum::<u32>().is_multiple_of(10)
}

/// 7 to 15 digits, and something that says how they are meant.
fn phone(text: &str) -> Option<&'static str> {
    let text = text.split(['x', 'X']).next().unwrap_or_default().trim();
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let is_form = (7..=15).contains(&digits)
        && text
            .chars()
            .all(|c| c.is_ascii_digit() || " -().+/".contains(c));
    if !is_form || text.chars().skip(1).any(|c| c == '+') {
        return None;
    }
    let is_bare = text.bytes().all(|b| b.is_ascii_digit());
    let bytes = text.as_bytes();
    if is_bare && digits == 11 && bytes[0] == b'1' && (b'3'..=b'9').contains(&bytes[1]) {
        return Some("China: mobile number");
    }
    let groups = text
        .split(|c: char| !c.is_ascii_digit())
        .filter(|g| !g.is_empty())
        .count();
    match text.starts_with('+') || text.starts_with("00") && groups > 1 {
        true => Some("international"),
        false if is_bare && bytes[0] != b'0' => None,
        false if text.starts_with('0') || text.starts_with('(') => Some(""),
        false if groups >= 3 => Some(""),
        false => Some(WEAK),
    }
}

/// By how they begin, or by how random they are.
fn secret(text: &str) -> Option<&'static str> {
    const BEGIN: [(&str, usize, &str); 27] = [
        ("AKIA", 20, "AWS access key"),
        ("ASIA", 20, "AWS access key"),
        ("ghp_", 30, "GitHub token"),
        ("gho_", 30, "GitHub token"),
        ("ghs_", 30, "GitHub token"),
        ("github_pat_", 30, "GitHub token"),
        ("glpat-", 20, "GitLab token"),
        ("sk_live_", 20, "Stripe key"),
        ("sk_test_", 20, "Stripe key"),
        ("rk_live_", 20, "Stripe key"),
        ("whsec_", 20, "Stripe key"),
        ("xoxb-", 20, "Slack token"),
        ("xoxp-", 20, "Slack token"),
        ("AIza", 35, "Google key"),
        ("ya29.", 30, "Google token"),
        ("SG.", 40, "SendGrid key"),
        ("npm_", 30, "npm token"),
        ("pypi-", 30, "PyPI token"),
        ("hvs.", 20, "Vault token"),
        ("AGE-SECRET-KEY-", 50, "age identity"),
        ("-----BEGIN ", 40, "key in PEM"),
        ("$2a$", 50, "bcrypt"),
        ("$2b$", 50, "bcrypt"),
        ("$2y$", 50, "bcrypt"),
        ("$argon2", 40, "Argon2"),
        ("pbkdf2_", 40, "PBKDF2"),
        ("$6$", 40, "crypt(3)"),
    ];
    if text.len() < 20 {
        return None;
    }
    let begins = |(begin, length, _): &&(&str, usize, &str)| {
        text.starts_with(begin) && text.len() >= *length
    };
    if let Some((_, _, what)) = BEGIN.iter().find(begins) {
        return Some(what);
    }
    if text.starts_with("eyJ") && text.matches('.').count() == 2 {
        return Some("JSON web token");
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_-+/=".contains(c);
    if text.len() > 512 || !text.chars().all(is_word) || text.matches('/').count() > 3 {
        return None;
    }
    let classes = [
        text.bytes().any(|b| b.is_ascii_lowercase()),
        text.bytes().any(|b| b.is_ascii_uppercase()),
        text.bytes().any(|b| b.is_ascii_digit()),
    ];
    (classes == [true; 3] && entropy(text) > 3.8 && turns(text) * 3 > text.len())
        .then_some("random")
}

/// Bits of a character, by how often each stands in the text.
fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let all = text.len() as f64;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| {
            let share = f64::from(*count) / all;
            -share * share.log2()
        })
        .sum()
}

/// How often small letters, capitals and digits take turns. Words of people do so seldom.
fn turns(text: &str) -> usize {
    let class = |b: u8| match b {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    text.as_bytes()
        .windows(2)
        .filter(|pair| class(pair[0]) != class(pair[1]))
        .count()
}

/// A number, and a word for a way; in Chinese, both as characters.
fn is_address(text: &str) -> bool {
    const WAYS: [&str; 62] = [
        "street",
        "st",
        "road",
        "rd",
        "avenue",
        "ave",
        "lane",
        "ln",
        "drive",
        "dr",
        "court",
        "ct",
        "square",
        "way",
        "boulevard",
        "blvd",
        "highway",
        "apt",
        "suite",
        "strasse",
        "straße",
        "str",
        "weg",
        "platz",
        "allee",
        "gasse",
        "ring",
        "ufer",
        "rue",
        "chemin",
        "impasse",
        "quai",
        "place",
        "cours",
        "via",
        "viale",
        "piazza",
        "corso",
        "vicolo",
        "largo",
        "calle",
        "avenida",
        "paseo",
        "plaza",
        "camino",
        "ronda",
        "rua",
        "travessa",
        "praça",
        "alameda",
        "rodovia",
        "ul",
        "al",
        "aleja",
        "ulica",
        "plac",
        "os",
        "straat",
        "laan",
        "gata",
        "vägen",
        "katu",
    ];
    const ENDS: [&str; 10] = [
        "straße", "strasse", "weg", "platz", "allee", "gasse", "ring", "straat", "gatan", "vägen",
    ];
    let length = text.chars().count();
    if !(6..=200).contains(&length) {
        return false;
    }
    let is_chinese = text.chars().filter(|c| is_han(*c)).count() >= 4;
    if is_chinese {
        return ["路", "街", "号", "座", "弄", "县", "区"]
            .iter()
            .filter(|way| text.contains(**way))
            .count()
            >= 2;
    }
    let lower = text.to_lowercase();
    let mut words = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let is_way = |word: &str| {
        let is_compound = ENDS
            .iter()
            .any(|end| word.len() > end.len() + 2 && word.ends_with(end));
        WAYS.contains(&word) || is_compound
    };
    let has_number = text.chars().any(|c| c.is_ascii_digit());
    let count = lower.split_whitespace().count();
    has_number && (2..=20).contains(&count) && words.any(is_way)
}

fn is_han(c: char) -> bool {
    matches!(c, '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}')
}

const SURNAMES_CHINA: &str = "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤";

/// Frequent given names and surnames of many countries, without titles.
const NAMES: &str = include_str!("names.txt");

static KNOWN: LazyLock<BTreeSet<&str>> = LazyLock::new(|| NAMES.split_whitespace().collect());

/// Words of which one stands in a firm's name.
const OF_FIRMS: [&str; 28] = [
    "inc", "llc", "ltd", "plc", "corp", "group", "sons", "partners", "gmbh", "ag", "kg", "ohg",
    "kgaa", "ev", "stiftung", "sa", "sarl", "sas", "fils", "sl", "spa", "srl", "sas", "figli",
    "ltda", "filhos", "sp", "fundacja",
];

/// One to five capitalised words of which one is a frequent name; or a Chinese name.
fn name(text: &str) -> Option<&'static str> {
    let count = text.chars().count();
    if (2..=4).contains(&count) && text.chars().all(is_han) {
        let first = text.chars().next()?;
        return SURNAMES_CHINA.contains(first).then_some("Chinese");
    }
    if count > 60 || text.chars().any(|c| c.is_ascii_digit()) {
        return None;
    }
    let words: Vec<&str> = text
        .split([' ', '-', ',', '.'])
        .filter(|w| !w.is_empty())
        .collect();
    let small = [
        "de", "da", "do", "dos", "das", "di", "del", "della", "van", "von", "der", "la", "le", "y",
        "e",
    ];
    let is_name =
        |word: &&str| word.chars().next().is_some_and(char::is_uppercase) || small.contains(word);
    let is_of_firm = |word: &&str| OF_FIRMS.contains(&word.to_lowercase().as_str());
    if words.iter().any(is_of_firm) {
        return None;
    }
    let is_known = |word: &&str| KNOWN.contains(word.to_lowercase().as_str());
    let is_all = (1..=6).contains(&words.len()) && words.iter().all(is_name);
    (is_all && words.iter().any(is_known)).then_some("")
}

/// `E11`, `J45.1`
fn is_icd(text: &str) -> bool {
    let bytes = text.as_bytes();
    matches!(bytes.len(), 3 | 5 | 6)
        && bytes[0].is_ascii_uppercase()
        && bytes[0] != b'U'
        && bytes[1..3].iter().all(u8::is_ascii_digit)
        && bytes.get(3).is_none_or(|b| *b == b'.')
        && bytes
            .get(4..)
            .is_none_or(|rest| rest.iter().all(u8::is_ascii_digit))
}

fn is_prose(text: &str) -> bool {
    let han = text.chars().filter(|c| is_han(*c)).count();
    han >= 20 || text.chars().count() >= 50 && text.split_whitespace().count() >= 8
}

/// The form of a value: letters as `a`, digits as `9`, each run once.
pub(super) fn form(value: &str) -> String {
    const MAX: usize = 24;
    let mut form = String::new();
    for c in value.trim().chars() {
        let class = match c {
            c if c.is_ascii_digit() => '9',
            c if is_han(c) => '字',
            c if c.is_alphabetic() => 'a',
            c if c.is_whitespace() => ' ',
            c if c.is_ascii_punctuation() => c,
            _ => '·',
        };
        if !form.ends_with(class) {
            form.push(class);
        }
        if form.chars().count() == MAX {
            return form + "…";
        }
    }
    form
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(value: &str) -> Vec<Kind> {
        shapes(value).into_iter().map(|(kind, _)| kind).collect()
    }

    #[test]
    fn values_are_known_by_their_shape() {
        for (value, kind) in [
            ("anna.example@mail.example.org", Kind::Email),
            ("+49 (0) 30 1234567", Kind::Phone),
            ("13812345678", Kind::Phone),
            ("(555) 123-4567", Kind::Phone),
            ("4111 1111 1111 1111", Kind::Card),
            ("DE89 3704 0044 0532 0130 00", Kind::Iban),
            ("111.444.777-35", Kind::National),
            ("131052-308T", Kind::National),
            ("123-45-6789", Kind::National),
            ("192.168.1.17", Kind::Ip),
            ("2001:db8::1", Kind::Ip),
            ("ghp_0123456789abcdefghijABCDEFGHIJ012345", Kind::Secret),
            ("xK9vQ2mZ7pLw4Rt8Yb3Nc6Jd", Kind::Secret),
            ("12 High Street, Springfield", Kind::Address),
            ("Lindenstraße 4", Kind::Address),
            ("Maria Schmidt", Kind::Name),
            ("王小明", Kind::Name),
            ("J45.1", Kind::Health),
        ] {
            assert!(kinds(value).contains(&kind), "{value}: {:?}", kinds(value));
        }
    }

    #[test]
    fn other_values_are_not() {
        for value in [
            "42",
            "3.14159",
            "550e8400-e29b-41d4-a716-446655440000",
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "/var/lib/mysql/app/users.ibd",
            "https://example.org/a/b",
            "ORDER-2024-000123",
            "active",
            "v1.2.3",
        ] {
            assert_eq!(kinds(value), [], "{value}");
        }
        assert_eq!(
            kinds("2024-01-02 03:04:05"),
            [Kind::BirthDate],
            "a date, and no telephone"
        );
    }

    #[test]
    fn a_form_shows_no_value() {
        assert_eq!(form("anna.b@example.org"), "a.a@a.a");
        assert_eq!(form("+49 30 123"), "+9 9 9");
        assert!(form(&"a1".repeat(100)).chars().count() <= 25);
    }
}
