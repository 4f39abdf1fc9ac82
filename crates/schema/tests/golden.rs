//! What this crate makes of recorded answers of real servers. `tests/live.rs` records them.

mod support;

use std::borrow::Cow;

use onionskin_schema::{show_columns_row, show_create_table, show_index_row};
use support::{
    FAMILIES, Golden, Row, SHOW_COLUMNS, SHOW_CREATE, SHOW_FULL_COLUMNS, SHOW_INDEX, cases,
    logical, physical,
};

fn cells(row: &Row) -> Vec<Option<Cow<'_, str>>> {
    row.iter()
        .map(|cell| cell.as_deref().map(Cow::Borrowed))
        .collect()
}

fn owned(row: Vec<Option<Cow<'_, str>>>) -> Row {
    row.into_iter()
        .map(|cell| cell.map(Cow::into_owned))
        .collect()
}

#[test]
fn physical_definitions_are_shown_as_logical_ones() {
    for family in FAMILIES {
        for case in cases(family) {
            let golden = Golden::read(family, case.name);
            let table = golden.table();
            assert_eq!(table.damaged, None, "{family:?} {}", case.name);
            let shown = show_create_table(golden.get(&physical(SHOW_CREATE)), &table, family)
                .expect("understood");
            assert_eq!(
                shown,
                golden.get(&logical(SHOW_CREATE)),
                "{family:?} {}",
                case.name
            );
            for title in [SHOW_COLUMNS, SHOW_FULL_COLUMNS] {
                let shown: Vec<Row> = golden
                    .rows(&physical(title))
                    .iter()
                    .filter_map(|row| show_columns_row(cells(row), &table, family).map(owned))
                    .collect();
                assert_eq!(
                    shown,
                    golden.rows(&logical(title)),
                    "{family:?} {}",
                    case.name
                );
            }
            let shown: Vec<Row> = golden
                .rows(&physical(SHOW_INDEX))
                .iter()
                .filter_map(|row| show_index_row(cells(row), &table).map(owned))
                .collect();
            assert_eq!(
                shown,
                golden.rows(&logical(SHOW_INDEX)),
                "{family:?} {}",
                case.name
            );
        }
    }
}

#[test]
fn the_catalog_gives_back_what_was_defined() {
    for family in FAMILIES {
        for case in cases(family) {
            let table = Golden::read(family, case.name).table();
            for new in case.protected() {
                let column = table.column(&new.name).expect("found");
                let protection = column.protection.as_ref().expect("protected");
                assert_eq!(protection.capabilities, new.capabilities);
                assert_eq!(protection.column_id, new.column_id);
                assert_eq!(protection.names, new.names());
                assert_eq!(table.table_id, Some(new.table_id));
                assert_eq!(column.nullable, new.nullable);
                assert_eq!(column.invisible, new.invisible);
                assert_eq!(
                    column.comment,
                    new.comment.clone().unwrap_or_default().replace('😀', "?")
                );
                assert_eq!(column.type_text, new.sql_type.to_sql(family));
                assert_eq!(
                    column.sql_type.map(|t| (t.to_sql(family), t.collation)),
                    Some((new.sql_type.to_sql(family), new.sql_type.collation))
                );
            }
        }
    }
}
