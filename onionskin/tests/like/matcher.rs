//! The matcher beside both servers' own LIKE.

use ::mysql::Value;
use onionskin_testkit::*;
use onionskin_value::{Charset, Escape, Input, LikePattern, Pattern, SqlType};

const COLLATIONS: [&str; 7] = [
    "utf8mb4_general_ci",
    "utf8mb4_unicode_ci",
    "utf8mb4_unicode_520_ci",
    "utf8mb4_bin",
    "utf8mb3_general_ci",
    "latin1_swedish_ci",
    "utf8mb4_0900_ai_ci",
];

fn collations(kind: Kind) -> impl Iterator<Item = &'static str> {
    let known = move |c: &&str| kind == Kind::MySql || !c.contains("0900");
    COLLATIONS.into_iter().filter(known)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// What the matcher says of a value and a pattern in UTF-8; `None` where it refuses.
fn ours(collation: &str, value: &str, pattern: &str, escape: Escape) -> Option<bool> {
    let ty = SqlType::parse("varchar(200)", Some(collation)).unwrap();
    let input = Input::Text {
        bytes: pattern.as_bytes(),
        charset: Charset::Utf8mb4,
    };
    let Pattern::Like(pattern) = LikePattern::read(&ty, input, escape).ok()? else {
        return None;
    };
    let charset = ty.collation.unwrap().charset();
    let mut stored = Vec::new();
    for c in value.chars() {
        assert!(charset.encode(c.into(), &mut stored), "{c:?}");
    }
    Some(pattern.matches(&stored).unwrap())
}

/// Every character of the basic plane, and some of the others, beside the first and the next one
/// that are equal to it.
pub fn characters_are_alike_where_the_server_says_so(kind: Kind) {
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let mut session = server.connect();
    session.must("CREATE DATABASE d; USE d");
    for collation in collations(kind) {
        let ty = SqlType::parse("varchar(9)", Some(collation)).unwrap();
        let charset = ty.collation.unwrap().charset();
        let beyond = (0x10000..0x11_0000).step_by(97);
        let characters: Vec<char> = (1..0x1_0000u32)
            .chain(beyond)
            .filter_map(char::from_u32)
            .filter(|c| charset.encode(u32::from(*c), &mut Vec::new()))
            .collect();
        session.must(&format!(
            "DROP TABLE IF EXISTS chars; CREATE TABLE chars (code INT PRIMARY KEY, c VARCHAR(9) COLLATE {collation}, KEY (c))"
        ));
        for chunk in characters.chunks(4000) {
            let rows: Vec<String> = chunk
                .iter()
                .map(|c| {
                    let text = hex(c.encode_utf8(&mut [0; 4]).as_bytes());
                    format!("({}, _utf8mb4 x'{text}')", u32::from(*c))
                })
                .collect();
            session.must(&format!("INSERT INTO chars VALUES {}", rows.join(",")));
        }
        let found = session.must(
            "SELECT code, other, c LIKE CONCAT('\\\\', o) FROM (
               SELECT code, c, FIRST_VALUE(code) OVER w AS other, FIRST_VALUE(c) OVER w AS o FROM chars
               WINDOW w AS (PARTITION BY c ORDER BY code)
               UNION ALL
               SELECT code, c, LAG(code) OVER w, LAG(c) OVER w FROM chars WINDOW w AS (PARTITION BY c ORDER BY code)
             ) pairs WHERE other <> code",
        );
        let number = |value: &Value| match value {
            Value::Bytes(text) => std::str::from_utf8(text).unwrap().parse::<u32>().unwrap(),
            other => panic!("{other:?}"),
        };
        let mut wrong = Vec::new();
        let rows = &found.sets[0].rows;
        for row in rows {
            let (a, b) = (number(&row[0]), number(&row[1]));
            let [value, other] = [a, b].map(|code| char::from_u32(code).unwrap());
            let theirs = number(&row[2]) == 1;
            let pattern = format!("\\{other}");
            if ours(collation, &value.to_string(), &pattern, Escape::Backslash) != Some(theirs) {
                wrong.push((value, other, theirs));
            }
        }
        let ci = if collation.ends_with("_bin") { 0 } else { 20 };
        assert!(rows.len() >= ci, "{collation}: {} pairs", rows.len());
        assert!(
            wrong.is_empty(),
            "{collation}: {} of {} pairs: {:?}",
            wrong.len(),
            rows.len(),
            &wrong[..wrong.len().min(20)]
        );
    }
}

/// The same numbers in every run.
fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    }
}

pub fn random_patterns_match_what_they_match_on_the_server(kind: Kind) {
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let mut session = server.connect();
    session.must("CREATE DATABASE d; USE d");
    let rounds = if long_run() { 40_000 } else { 4_000 };
    for collation in collations(kind).chain(["binary"]) {
        let mut random = random(11);
        let ascii = ["a", "A", "b", " ", "%", "_", "\\", "|", "c", "ab"];
        let more = ["é", "É", "e", "ß", "ss", "Ä", "ÿ", "æ"];
        let most = ["ǆ", "中", "ｱ", "ア", "\u{301}", "한", "ﬁ", "\u{200b}"];
        let mut letters: Vec<&str> = ascii.into_iter().chain(more).collect();
        if collation != "latin1_swedish_ci" && collation != "binary" {
            letters.extend(most);
        }
        if collation.starts_with("utf8mb4") {
            letters.extend(["😀", "😁", "𝒳"]);
        }
        let ty = match collation {
            "binary" => "VARBINARY(200)".to_owned(),
            _ => format!("VARCHAR(200) COLLATE {collation}"),
        };
        session.must(&format!(
            "DROP TABLE IF EXISTS pairs; CREATE TABLE pairs (id INT PRIMARY KEY, v {ty}, p {ty})"
        ));
        let mut pairs = Vec::new();
        for _ in 0..rounds {
            // few letters in each case, so that something matches
            let some: Vec<&str> = (0..3).map(|_| letters[random(letters.len())]).collect();
            let mut text = |most: usize, wild: bool| -> String {
                let length = random(most);
                (0..length)
                    .map(|_| match random(if wild { 7 } else { 3 }) {
                        n @ 0..3 => some[n],
                        3 | 4 => "%",
                        5 => "_",
                        _ => ["\\", "|"][random(2)],
                    })
                    .collect()
            };
            pairs.push((text(7, false), text(6, true)));
        }
        for (n, chunk) in pairs.chunks(1000).enumerate() {
            let rows: Vec<String> = chunk
                .iter()
                .enumerate()
                .map(|(i, (v, p))| {
                    let [v, p] = [v, p].map(|text| match collation {
                        "binary" => format!("x'{}'", hex(text.as_bytes())),
                        _ => format!("_utf8mb4 x'{}'", hex(text.as_bytes())),
                    });
                    format!("({}, {v}, {p})", n * 1000 + i)
                })
                .collect();
            session.must(&format!("INSERT INTO pairs VALUES {}", rows.join(",")));
        }
        let found = session
            .text("SELECT v LIKE p, v LIKE p ESCAPE '|' FROM pairs ORDER BY id")
            .unwrap();
        let (mut matches, mut wrong) = (0, Vec::new());
        for (line, (value, pattern)) in found.lines().zip(&pairs) {
            let theirs: Vec<bool> = line.split('\t').map(|cell| cell == "1").collect();
            for (theirs, escape) in theirs
                .into_iter()
                .zip([Escape::Backslash, Escape::Character('|')])
            {
                let ours = match collation {
                    "binary" => {
                        let ty = SqlType::parse("varbinary(200)", None).unwrap();
                        let input = Input::Bytes(pattern.as_bytes());
                        match LikePattern::read(&ty, input, escape).unwrap() {
                            Pattern::Like(p) => Some(p.matches(value.as_bytes()).unwrap()),
                            Pattern::Null => None,
                        }
                    }
                    _ => ours(collation, value, pattern, escape),
                };
                matches += usize::from(theirs);
                if ours != Some(theirs) {
                    wrong.push((value, pattern, escape, theirs));
                }
            }
        }
        assert!(matches > rounds / 10, "{collation}: {matches} matches");
        assert!(
            wrong.is_empty(),
            "{collation}: {} wrong: {:?}",
            wrong.len(),
            &wrong[..wrong.len().min(20)]
        );
    }
}
