//! The comments that hold the schema.

use onionskin_schema::{
    Capabilities, Check, CheckConstant, ColumnMetadata, Comparison, Condition, DefaultLiteral,
    SetMark, comment,
};
use onionskin_value::{Family, SqlType};

/// The mark of all protected columns.
const SET: SetMark = SetMark {
    generation: 3,
    tag: [0xcd; 16],
};

fn sum(bytes: &[u8]) -> [u8; 16] {
    let mut tag = [0u8; 16];
    for (index, byte) in bytes.iter().enumerate() {
        tag[index % 16] = tag[index % 16].wrapping_mul(31).wrapping_add(*byte);
    }
    tag
}

/// A column's comment. The first byte tells whether tags are verified: without, everything behind
/// them is reached.
pub fn run(input: &[u8]) {
    let Some((&verify, text)) = input.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let verified = |bytes: &[u8], tag: &[u8; 16]| verify & 1 == 0 || sum(bytes) == *tag;
    for name in ["c$enc", "c", ""] {
        let Ok(metadata) = comment::decode(text, name, verified) else {
            continue;
        };
        // What was read can be written, and reads and writes the same ever after. It need not be
        // equal: MySQL has no display widths, for example.
        for family in [Family::MariaDb, Family::MySql] {
            let Ok(written) = comment::encode(&metadata, &SET, family, sum) else {
                continue;
            };
            let read = comment::decode(&written, name, |bytes, tag| sum(bytes) == *tag);
            let read = read.unwrap_or_else(|error| panic!("{written}: {error}"));
            let again =
                comment::encode(&read, &SET, family, sum).map_err(|error| error.to_string());
            assert_eq!(again.as_ref(), Ok(&written));
        }
    }
}

/// Genuine comments, to be read with and without a look at the tag.
pub fn seeds() -> Vec<Vec<u8>> {
    let metadata = |text: &str, collation: Option<&str>, default, comment: &str| ColumnMetadata {
        name: "c".into(),
        sql_type: SqlType::parse(text, collation).expect("a type"),
        explicit_collation: collation.is_some(),
        default,
        on_update: false,
        comment: comment.into(),
        checks: Vec::new(),
        capabilities: Capabilities {
            eq: true,
            range: text.starts_with('i'),
            like: collation.is_some(),
            ..Capabilities::default()
        },
        without_grams: comment.is_empty() && collation.is_some(),
        actions: onionskin_schema::KeyActions::default(),
        column_id: [1, 2, 3, 4],
        table_id: [5; 8],
        key_id: 1,
        suite: 1,
        cell_version: 1,
    };
    let check = |condition, in_column| Check {
        condition,
        in_column,
        unenforced: !in_column,
    };
    let number = |digits: &str| CheckConstant::Number(digits.into());
    let checked = ColumnMetadata {
        checks: vec![
            check(Condition::In(vec![number("1"), number("-2")]), true),
            check(
                Condition::Any(vec![
                    Condition::Null,
                    Condition::Compare(Comparison::Less, number("9")),
                ]),
                false,
            ),
        ],
        ..metadata("int(11)", None, None, "")
    };
    let columns = [
        checked,
        metadata("int(11)", None, Some(DefaultLiteral::Null), ""),
        metadata(
            "varchar(40)",
            Some("utf8mb4_general_ci"),
            Some(DefaultLiteral::Value(b"x|y".to_vec())),
            "a 'comment' | ż",
        ),
        metadata(
            "decimal(10,2) unsigned",
            None,
            Some(DefaultLiteral::Value(b"1.50".to_vec())),
            "%|=",
        ),
        metadata("datetime(6)", None, None, ""),
    ];
    let mut seeds = Vec::new();
    for column in &columns {
        let text = comment::encode(column, &SET, Family::MariaDb, sum).expect("a short comment");
        for verify in 0..2 {
            seeds.push([&[verify], text.as_bytes()].concat());
        }
    }
    seeds
}
