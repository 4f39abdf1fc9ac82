//! Comments: what goes in comes out, and nothing else is accepted.

mod support;

use onionskin_schema::{
    Bits, Capabilities, Check, CheckConstant, ColumnMetadata, CommentError, Comparison, Condition,
    DefaultLiteral, SchemaError, SetMark, TENANT_CELLS, Tenant,
    comment::{MAX_COMMENT, decode, encode},
    time_fraction,
};
use onionskin_value::{Family, SqlType};
use proptest::prelude::*;
use support::{FAMILIES, tag, verify};

/// Of a table that was changed twice.
const SET: SetMark = SetMark {
    generation: 3,
    tag: [0xcd; 16],
};

fn sql_type() -> impl Strategy<Value = SqlType> {
    prop::sample::select(vec![
        ("int", None),
        ("tinyint(1) unsigned", None),
        ("decimal(65,30)", None),
        ("datetime(6)", None),
        ("varchar(190)", Some("utf8mb4_unicode_ci")),
        ("longtext", Some("latin1_swedish_ci")),
        ("varbinary(12)", None),
        ("bit(9)", None),
        ("enum('a','it''s','%|')", Some("utf8mb4_general_ci")),
        ("set('x','é')", Some("latin1_swedish_ci")),
    ])
    .prop_map(|(text, collation)| SqlType::parse(text, collation).expect(text))
}

fn checks() -> impl Strategy<Value = Vec<Check>> {
    let constants = || {
        let number = "-?[0-9]{1,4}".prop_map(CheckConstant::Number);
        prop_oneof![number, "[ -~é]{0,5}".prop_map(CheckConstant::Text)]
    };
    let leaf = prop_oneof![
        Just(Condition::NotNull),
        constants().prop_map(|c| Condition::Compare(Comparison::Less, c)),
        prop::collection::vec(constants(), 2..3).prop_map(Condition::NotIn),
    ];
    let condition = prop_oneof![
        leaf.clone(),
        prop::collection::vec(leaf, 2..3).prop_map(Condition::All),
    ];
    let words = any::<(bool, bool)>();
    let check = (condition, words).prop_map(|(condition, (in_column, unenforced))| Check {
        condition,
        in_column,
        unenforced,
    });
    prop::collection::vec(check, 0..2)
}

fn metadata() -> impl Strategy<Value = ColumnMetadata> {
    let default = prop_oneof![
        Just(None),
        Just(Some(DefaultLiteral::Null)),
        prop::collection::vec(any::<u8>(), 0..60).prop_map(|v| Some(DefaultLiteral::Value(v))),
        "[ -~]{0,60}".prop_map(|v| Some(DefaultLiteral::Value(v.into_bytes()))),
        "\\PC{1,60}".prop_map(|v| Some(DefaultLiteral::Expression(v))),
    ];
    let searched = (any::<(bool, bool, bool)>(), prop::option::of("\\PC{1,20}")).prop_map(
        |((eq, range, like), join)| Capabilities {
            eq,
            range,
            like,
            join,
            bits: Bits::default(),
            tenant: None,
        },
    );
    let of_tenants =
        (any::<bool>(), "\\PC{1,20}", "[a-z0-9_]{1,32}").prop_map(|(eq, column, name)| {
            Capabilities {
                eq,
                tenant: Tenant::new(&column, Some(&name)),
                ..Capabilities::default()
            }
        });
    let capabilities = prop_oneof![searched, of_tenants];
    (
        "[^\\x00`]{1,20}",
        sql_type(),
        any::<(bool, bool)>(),
        default,
        "[\\x00-\\u{ffef}]{0,40}",
        capabilities,
        any::<([u8; 4], [u8; 8], u16, u8)>(),
        (1..=15u8).prop_filter("that of tenants", |v| *v != TENANT_CELLS),
        checks(),
    )
        .prop_map(
            |(
                name,
                sql_type,
                (explicit_collation, on_update),
                default,
                comment,
                capabilities,
                ids,
                cell_version,
                checks,
            )| {
                let cell_version = match capabilities.tenant {
                    Some(_) => TENANT_CELLS,
                    None => cell_version,
                };
                ColumnMetadata {
                    name,
                    sql_type,
                    explicit_collation,
                    default,
                    on_update: on_update && time_fraction(&sql_type).is_some(),
                    comment,
                    checks,
                    without_grams: capabilities.like && ids.2 % 2 == 1,
                    actions: onionskin_schema::KeyActions {
                        update: match ids.2 % 3 {
                            0 => onionskin_schema::KeyAction::Server,
                            1 => onionskin_schema::KeyAction::Cascade,
                            _ => onionskin_schema::KeyAction::SetNull,
                        },
                        delete: match ids.3 % 2 {
                            0 => onionskin_schema::KeyAction::Server,
                            _ => onionskin_schema::KeyAction::SetNull,
                        },
                    },
                    capabilities,
                    column_id: ids.0,
                    table_id: ids.1,
                    key_id: ids.2,
                    suite: ids.3,
                    cell_version,
                }
            },
        )
}

fn physical(metadata: &ColumnMetadata) -> String {
    format!("{}$enc", metadata.name)
}

proptest! {
    #[test]
    fn what_goes_in_comes_out(metadata in metadata(), mysql in any::<bool>()) {
        let family = if mysql { Family::MySql } else { Family::MariaDb };
        let text = encode(&metadata, &SET, family, tag).expect("short enough");
        prop_assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && !b"'\"\\`".contains(&byte)), "{text}");
        let decoded = decode(&text, &physical(&metadata), verify).expect("authentic");
        // Display widths do not survive where the server drops them.
        prop_assert_eq!(decoded.sql_type.to_sql(family), metadata.sql_type.to_sql(family));
        prop_assert_eq!(ColumnMetadata { sql_type: metadata.sql_type, ..decoded }, metadata);
    }

    #[test]
    fn any_changed_byte_is_refused(metadata in metadata(), at in any::<prop::sample::Index>(), flip in 1..128u8) {
        let text = encode(&metadata, &SET, Family::MySql, tag).expect("short enough");
        let mut bytes = text.clone().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        let changed = String::from_utf8(bytes).expect("still ASCII");
        prop_assert!(decode(&changed, &physical(&metadata), verify).is_err(), "{changed}");
        prop_assert!(decode(&text[..at], &physical(&metadata), verify).is_err());
        prop_assert_eq!(decode(&text, &format!("x{}", physical(&metadata)), verify), Err(CommentError::NotAuthentic));
    }

    #[test]
    fn nothing_makes_it_panic(text in "\\PC{0,200}", fields in prop::collection::vec("[a-z0-9=%,|]{0,8}", 0..22), name in "\\PC{0,9}") {
        let accept = |_: &[u8], _: &[u8; 16]| true;
        let _ = decode(&text, &name, accept);
        for version in 1..4 {
            let _ = decode(&format!("onionskin:{version}|{text}"), &name, accept);
            let forged = format!("onionskin:{version}|{}|{}", "0".repeat(32), fields.join("|"));
            let _ = decode(&forged, &name, accept);
            let _ = decode(&forged, &format!("{name}$enc"), accept);
        }
    }

    #[test]
    fn nor_does_an_authentic_comment_with_a_changed_field(metadata in metadata(), at in 2..22usize, field in "\\PC{0,12}") {
        let text = encode(&metadata, &SET, Family::MySql, tag).expect("short enough");
        let mut fields: Vec<&str> = text.split('|').collect();
        let at = at.min(fields.len() - 1);
        fields[at] = &field;
        let _ = decode(&fields.join("|"), &physical(&metadata), |_, _| true);
    }
}

fn sample() -> ColumnMetadata {
    ColumnMetadata {
        name: "email".into(),
        sql_type: SqlType::parse("varchar(190)", Some("utf8mb4_bin")).expect("known"),
        explicit_collation: true,
        default: Some(DefaultLiteral::Value(b"it's".to_vec())),
        on_update: false,
        comment: "where to write".into(),
        checks: Vec::new(),
        capabilities: Capabilities {
            eq: true,
            range: false,
            like: false,
            join: Some("people".into()),
            bits: Bits::default(),
            tenant: None,
        },
        without_grams: false,
        actions: Default::default(),
        column_id: [1, 2, 3, 4],
        table_id: [5; 8],
        key_id: 7,
        suite: 1,
        cell_version: 1,
    }
}

#[test]
fn the_form_is_pinned() {
    let text = encode(&sample(), &SET, Family::MySql, |_| [0xab; 16]).expect("short enough");
    assert_eq!(
        text,
        "onionskin:2|abababababababababababababababab|01020304|0505050505050505|7|1|eq,join=people|varchar|varchar(190)\
         |utf8mb4|utf8mb4_bin|c|190|760||||%PWl0J3M=|where to write|3|zc3Nzc3Nzc3Nzc3Nzc3NzQ"
    );
}

#[test]
fn a_column_without_grams_says_so() {
    let metadata = ColumnMetadata {
        capabilities: Capabilities {
            like: true,
            ..Capabilities::default()
        },
        without_grams: true,
        ..sample()
    };
    let text = encode(&metadata, &SET, Family::MariaDb, |_| [0xab; 16]).expect("short enough");
    assert!(text.contains("|utf8mb4_bin|cg|190|"), "{text}");
    // The flag of a column without the capability is no writer's.
    let text = text.replace("|like|", "||");
    let read = decode(&text, "email$enc", |_, _| true);
    assert_eq!(read, Err(CommentError::Malformed));
}

#[test]
fn a_column_with_a_tenant_says_so() {
    let metadata = ColumnMetadata {
        capabilities: Capabilities {
            eq: true,
            tenant: Tenant::new("Of,who", Some("person")),
            ..Capabilities::default()
        },
        cell_version: TENANT_CELLS,
        ..sample()
    };
    let text = encode(&metadata, &SET, Family::MariaDb, |_| [0xab; 16]).expect("short enough");
    assert!(text.contains("|1.3|eq,tenant=person=Of,who|"), "{text}");
    // cells of tenants are in such columns, and in no others
    for (from, to) in [
        ("|1.3|", "|1|"),
        ("|eq,tenant=person=Of,who|", "|eq|"),
        ("|eq,tenant", "|range,tenant"),
        ("|eq,tenant", "|like,tenant"),
        ("=person=", "=Person="),
        ("tenant=person=Of,who", "key_by:who"),
    ] {
        let other = text.replace(from, to);
        assert_ne!(other, text);
        let read = decode(&other, "email$enc", |_, _| true);
        assert_eq!(read, Err(CommentError::Malformed), "{other}");
    }
}

#[test]
fn a_computed_default_is_pinned_too() {
    let metadata = ColumnMetadata {
        sql_type: SqlType::parse("datetime(3)", None).expect("known"),
        explicit_collation: false,
        default: Some(DefaultLiteral::Expression("CURRENT_TIMESTAMP(3)".into())),
        on_update: true,
        comment: String::new(),
        ..sample()
    };
    let text = encode(&metadata, &SET, Family::MySql, |_| [0xab; 16]).expect("short enough");
    assert_eq!(
        text,
        "onionskin:2|abababababababababababababababab|01020304|0505050505050505|7|1|eq,join=people|datetime|datetime(3)\
         |||u|||||3|:CURRENT_TIMESTAMP(3)||3|zc3Nzc3Nzc3Nzc3Nzc3NzQ"
    );
    let decoded = decode(&text, "email$enc", |_, _| true).expect("it is whole");
    assert_eq!(decoded, metadata);
    // only a moment can be set to the present one
    let moved = text.replace("|datetime|datetime(3)|", "|int|int|");
    assert_eq!(
        decode(&moved, "email$enc", |_, _| true),
        Err(CommentError::Malformed)
    );
}

#[test]
fn the_tag_covers_version_name_and_every_field() {
    let text = encode(&sample(), &SET, Family::MySql, |bytes| {
        let tagged = String::from_utf8(bytes.to_vec()).expect("text");
        let (front, body) = tagged.split_once('\0').expect("a separator");
        assert_eq!(front, "onionskin:2|email$enc");
        assert!(
            body.starts_with("01020304|0505050505050505|7|1|eq,"),
            "{body}"
        );
        assert!(
            body.ends_with("|where to write|3|zc3Nzc3Nzc3Nzc3Nzc3NzQ"),
            "{body}"
        );
        [0; 16]
    });
    assert!(text.is_ok());
}

#[test]
fn errors_tell_what_is_wrong() {
    let text = encode(&sample(), &SET, Family::MySql, tag).expect("short enough");
    assert_eq!(
        decode("a user's comment", "email$enc", verify),
        Err(CommentError::NotOurs)
    );
    assert_eq!(
        decode(
            &text.replace("onionskin:2", "onionskin:4"),
            "email$enc",
            verify
        ),
        Err(CommentError::UnknownVersion)
    );
    assert_eq!(
        decode("onionskin:2|12|", "email$enc", verify),
        Err(CommentError::Malformed)
    );
    assert_eq!(
        decode(&text, "phone$enc", verify),
        Err(CommentError::NotAuthentic)
    );
    assert_eq!(
        decode(
            &text.replace("varchar(190)", "geometry"),
            "email$enc",
            |_, _| true
        ),
        Err(CommentError::UnknownType)
    );
}

#[test]
fn a_comment_too_long_for_the_server_is_refused() {
    for family in FAMILIES {
        let mut metadata = sample();
        metadata.comment = "x".repeat(MAX_COMMENT);
        let Err(SchemaError::CommentTooLong { column, excess }) =
            encode(&metadata, &SET, family, tag)
        else {
            panic!("accepted");
        };
        assert_eq!(column, "email");
        metadata.comment.truncate(MAX_COMMENT - excess);
        assert_eq!(
            encode(&metadata, &SET, family, tag).map(|text| text.len()),
            Ok(MAX_COMMENT)
        );
    }
}
