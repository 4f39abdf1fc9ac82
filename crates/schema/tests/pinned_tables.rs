//! Pins, and what an enforced policy says of tables.

mod support;

use std::collections::BTreeMap;

use onionskin_schema::{Capabilities, Pins, PinsError, Policy, Table};
use onionskin_value::Family;
use support::{CATALOG, Golden, Row, table, tag, verify};

fn rows() -> Vec<Row> {
    Golden::read(Family::MariaDb, "keys").rows(CATALOG)
}

fn keys() -> Table {
    table(&rows())
}

#[test]
fn what_is_pinned_is_read_again_and_nothing_else() {
    let pins = Pins::of([&keys()]);
    let text = pins.text(tag);
    assert_eq!(Pins::parse(&text, verify), Ok(pins.clone()));
    assert!(text.starts_with("onionskin pins 1\ntable|"), "{text}");
    for at in 0..text.len() {
        let mut changed = text.clone().into_bytes();
        changed[at] ^= 1;
        let Ok(changed) = String::from_utf8(changed) else {
            continue;
        };
        assert!(Pins::parse(&changed, verify).is_err(), "{at}: {changed}");
        let cut = Pins::parse(&text[..at], verify);
        assert!(cut.is_err(), "cut at {at}");
    }
    let without = text.replacen("column|", "column|x", 1);
    assert_eq!(Pins::parse(&without, verify), Err(PinsError::NotAuthentic));
    let newer = text.replacen("pins 1", "pins 2", 1);
    assert_eq!(Pins::parse(&newer, verify), Err(PinsError::UnknownVersion));
    assert_eq!(Pins::parse("", verify), Err(PinsError::NotOurs));
    let none = Pins::default();
    assert_eq!(Pins::parse(&none.text(tag), verify), Ok(none));
}

#[test]
fn names_and_types_may_hold_anything() {
    let mut strange = keys();
    strange.name = "a|b\nmac|%'ü".into();
    strange.columns[0].name = "table|x".into();
    let pins = Pins::of([&strange]);
    let read = Pins::parse(&pins.text(tag), verify).expect("sound");
    assert_eq!(read, pins);
    assert!(read.get(&strange.database, "A|B\nMAC|%'Ü").is_some());
}

#[test]
fn any_loss_is_a_difference() {
    let table = keys();
    let pins = Pins::of([&table]);
    let pinned = pins.get(&table.database, &table.name).expect("pinned");
    assert_eq!(pinned.difference(Some(&table)), None);
    let differs = |change: &dyn Fn(&mut Table)| {
        let mut other = table.clone();
        change(&mut other);
        let difference = pinned.difference(Some(&other));
        // what a proxy refuses, onionskin pin lists
        let losses = pins.losses(&Pins::of([&other]));
        assert_eq!(
            losses.is_empty(),
            difference.is_none(),
            "{losses:?} {difference:?}"
        );
        difference.unwrap_or_default()
    };
    assert!(pinned.difference(None).is_some());
    assert_eq!(pins.losses(&Pins::default()).len(), 1);
    assert!(differs(&|t| t.table_id = Some([9; 8])).contains("another table"));
    assert!(differs(&|t| t.columns.retain(|c| c.name != "u")).contains("column u is gone"));
    assert!(differs(&|t| t.columns[0].type_text = "bigint".into()).contains("another type"));
    let of = |t: &mut Table, change: &dyn Fn(&mut onionskin_schema::Protection)| {
        change(t.columns[0].protection.as_mut().expect("protected"));
    };
    assert!(differs(&|t| of(t, &|p| p.capabilities.like = true)).contains("other capabilities"));
    let plain = |t: &mut Table| t.columns[0].protection = None;
    assert!(differs(&plain).contains("column a is not protected"));
    let older = |t: &mut Table| {
        for column in &mut t.columns {
            if let Some(p) = &mut column.protection {
                p.whole = onionskin_schema::Whole::Unmarked;
            }
        }
    };
    assert!(differs(&older).contains("older one"));
    // another table has the same columns, and is no less protected
    let mut more = table.clone();
    let mut column = more.columns[0].clone();
    column.name = "more".into();
    more.columns.push(column);
    assert_eq!(pinned.difference(Some(&more)), None);
}

fn policy(pattern: &str, columns: &[(&str, &[&str])]) -> Policy {
    let columns = columns.iter().map(|(column, words)| {
        let words = words.iter().map(ToString::to_string).collect();
        (column.to_string(), words)
    });
    let sections = BTreeMap::from([(pattern.to_owned(), columns.collect())]);
    let mut policy = Policy::parse(&sections).expect("sound");
    policy.enforce(|_| true);
    policy
}

#[test]
fn enforced_sections_hold_for_tables_that_are_there() {
    // a and b: eq and range; plain is plaintext; s is sealed only
    let table = keys();
    let exact = format!("{}.{}", table.database, table.name);
    let unmet = |policy: &Policy, seen: Option<&Table>| {
        policy.unmet(&table.database.to_uppercase(), &table.name, seen)
    };
    let all = &["eq", "range", "like", "join:g"][..];
    let fine = policy(&exact, &[("S", &[]), ("a", all)]);
    assert_eq!(unmet(&fine, Some(&table)), None);
    assert!(unmet(&fine, None).is_some_and(|why| why.contains("no such table")));
    let typo = policy(&exact, &[("s", &[]), ("emial", &[])]);
    assert!(unmet(&typo, Some(&table)).is_some_and(|why| why.contains("emial")));
    let plain = policy(&exact, &[("plain", &[])]);
    assert!(unmet(&plain, Some(&table)).is_some_and(|why| why.contains("plain is not protected")));
    let strict = policy(&exact, &[("a", &[])]);
    assert!(unmet(&strict, Some(&table)).is_some_and(|why| why.contains("allows []")));
    // a pattern does not know which tables there are, nor which columns they have
    let pattern = policy(
        &format!("{}.*", table.database),
        &[("s", &[]), ("emial", &[])],
    );
    assert_eq!(unmet(&pattern, Some(&table)), None);
    assert_eq!(unmet(&pattern, None), None);
    let star = policy("*.*", &[("*", all)]);
    assert!(unmet(&star, Some(&table)).is_some());
    assert_eq!(star.unmet("mysql", "user", Some(&table)), None);
    let mut off = policy(&exact, &[("plain", &[])]);
    off.enforce(|_| false);
    assert_eq!(unmet(&off, Some(&table)), None);
    assert_eq!(
        off.findings(&table.database, &table.name, Some(&table))
            .len(),
        1
    );
}

#[test]
fn capabilities_that_show_no_more() {
    let of = |words: &str| support::capabilities(words);
    let group = Capabilities {
        join: Some("g".into()),
        ..Capabilities::default()
    };
    for (has, allowed) in [
        ("", ""),
        ("", "eq"),
        ("eq", "range"),
        ("eq", "like"),
        ("eq range", "range"),
        ("eq:8", "eq"),
        ("eq:8", "eq:8"),
        ("eq:8", "eq:9"),
        ("eq:8 range:9", "range"),
        ("range:8", "range:9"),
        ("eq", "eq:8 like"),
        ("key_by:who", "key_by:who"),
        ("key_by:who", "eq"),
    ] {
        assert!(
            of(has).show_no_more_than(&of(allowed)),
            "{has} under {allowed}"
        );
    }
    for (has, allowed) in [
        ("eq", ""),
        ("range", "eq"),
        ("like", "eq range"),
        ("range", "like"),
        ("eq", "eq:8"),
        ("eq:9", "eq:8"),
        ("eq:8", "range:30"),
        ("range", "range:9"),
        ("range:10", "eq range:9"),
        ("eq range:9", "eq:32 range:9"),
        ("", "key_by:who"),
        ("key_by:who", "key_by:who=person"),
        ("eq key_by:who", "key_by:who"),
    ] {
        assert!(
            !of(has).show_no_more_than(&of(allowed)),
            "{has} under {allowed}"
        );
    }
    assert!(of("eq").show_no_more_than(&group) && group.show_no_more_than(&group));
    assert!(!group.show_no_more_than(&of("eq")) && !of("other").show_no_more_than(&group));
}
