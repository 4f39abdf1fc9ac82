//! Weights against a sample that `weights/sample.py` took from real servers, and, where the
//! environment names servers, against those for every character.
//!
//! `ONIONSKIN_TEST_SERVER_SOCKET_MARIADB` and `ONIONSKIN_TEST_SERVER_SOCKET_MYSQL` hold the paths
//! of sockets at which root logs in without a password.

mod corpus;

use mysql::prelude::Queryable;
use onionskin_value::{SqlType, cmp, order_bytes, weight};

fn text_type(collation: &str) -> SqlType {
    SqlType::parse("varchar(300)", Some(collation)).expect("a known collation")
}

/// A weight string without the weights of trailing spaces, as comparison sees it.
fn trimmed<'w>(collation: &str, mut weights: &'w [u8]) -> &'w [u8] {
    let space: &[u8] = match collation {
        "utf8mb4_general_ci" => b"\0 ",
        "utf8mb4_unicode_ci" | "utf8mb4_uca1400_ai_ci" => &[0x02, 0x09],
        "utf8mb4_unicode_520_ci" => &[0x02, 0x0A],
        "latin1_swedish_ci" => b" ",
        _ => return weights,
    };
    while let Some(rest) = weights.strip_suffix(space) {
        weights = rest;
    }
    weights
}

fn ours(ty: &SqlType, text: &[u8]) -> Vec<u8> {
    let mut weights = Vec::new();
    weight(ty, text, &mut weights).expect("well-formed text");
    weights
}

#[test]
fn sample() {
    let lines = corpus::read("weights.tsv");
    let mut count = 0;
    for line in lines.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [collation, text, theirs] = fields[..] else {
            panic!("three fields")
        };
        let (text, theirs) = (corpus::hex(text), corpus::hex(theirs));
        assert_eq!(
            ours(&text_type(collation), &text),
            trimmed(collation, &theirs),
            "{line}"
        );
        count += 1;
    }
    assert!(count > 2000, "the sample is missing");
}

#[test]
fn order_is_total_and_agrees_with_its_keys() {
    let words: Vec<&[u8]> = [
        "", " ", "\t", "a", "a ", "a\t", "A", "ab", "a b", "á", "ss", "ß", "zz", "\u{301}", "日",
        "😀",
    ]
    .map(str::as_bytes)
    .to_vec();
    for collation in [
        "utf8mb4_bin",
        "utf8mb4_general_ci",
        "utf8mb4_unicode_ci",
        "utf8mb4_unicode_520_ci",
        "utf8mb4_0900_ai_ci",
    ] {
        let ty = text_type(collation);
        let mut sorted = words.clone();
        sorted.sort_by(|left, right| cmp(&ty, left, right).expect("weights"));
        for pair in sorted.windows(2) {
            let key = |text| {
                let mut bytes = Vec::new();
                order_bytes(&ty, text, &mut bytes).expect("weights");
                bytes
            };
            assert!(key(pair[0]) <= key(pair[1]), "{collation} {pair:?}");
            let equal = cmp(&ty, pair[0], pair[1]).expect("weights").is_eq();
            assert_eq!(
                equal,
                ours(&ty, pair[0]) == ours(&ty, pair[1]),
                "{collation} {pair:?}"
            );
        }
    }
}

fn every_character(variable: &str, collations: &[&str]) {
    let Ok(socket) = std::env::var(variable) else {
        println!("skipped: {variable} is not set");
        return;
    };
    let options = mysql::OptsBuilder::new()
        .socket(Some(socket))
        .user(Some("root"));
    let mut server = mysql::Conn::new(options).expect("a connection");
    let characters: Vec<char> = (0..0x11_0000).filter_map(char::from_u32).collect();
    for collation in collations {
        let ty = text_type(collation);
        for chunk in characters.chunks(256) {
            let columns: Vec<String> = chunk
                .iter()
                .map(|character| {
                    let bytes = character.to_string().into_bytes();
                    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                    format!("WEIGHT_STRING(_utf8mb4 x'{hex}' COLLATE {collation})")
                })
                .collect();
            let row: mysql::Row = server
                .query_first(format!("SELECT {}", columns.join(",")))
                .expect("an answer")
                .expect("a row");
            for (at, character) in chunk.iter().enumerate() {
                let theirs: Vec<u8> = row.get(at).expect("a cell");
                assert_eq!(
                    ours(&ty, character.to_string().as_bytes()),
                    trimmed(collation, &theirs),
                    "{collation} U+{:04X}",
                    u32::from(*character)
                );
            }
        }
    }
}

#[test]
fn every_character_on_mariadb() {
    every_character(
        "ONIONSKIN_TEST_SERVER_SOCKET_MARIADB",
        &[
            "utf8mb4_general_ci",
            "utf8mb4_unicode_ci",
            "utf8mb4_unicode_520_ci",
            "utf8mb4_uca1400_ai_ci",
        ],
    );
}

#[test]
fn every_character_on_mysql() {
    every_character(
        "ONIONSKIN_TEST_SERVER_SOCKET_MYSQL",
        &[
            "utf8mb4_general_ci",
            "utf8mb4_unicode_ci",
            "utf8mb4_unicode_520_ci",
            "utf8mb4_0900_ai_ci",
        ],
    );
}
