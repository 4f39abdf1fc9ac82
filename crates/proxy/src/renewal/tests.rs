use onionskin_schema::{Table, TableName};

use super::{AT_ONCE, TABLE_WEIGHS};
use crate::catalog::Account;

/// An account that uses a table of each of three databases, and a name of each list.
fn account(tables_each: usize) -> Account {
    let account = Account::for_tests();
    for database in ["one", "two", "three"] {
        for number in 0..tables_each {
            let name = format!("t{number}");
            account.know(database, &name, Some(Table::named(database, &name)));
        }
    }
    account
}

fn asked(account: &Account, names: &[TableName]) -> (Vec<String>, Vec<String>) {
    let wanted = account.wanted(0, names);
    let mut lists = wanted.lists;
    lists.sort_unstable();
    let tables = wanted.others.iter();
    let tables =
        tables.flat_map(|(database, names)| names.iter().map(move |n| format!("{database}.{n}")));
    (lists, tables.collect())
}

#[test]
fn what_is_little_is_renewed_at_once() {
    let (lists, tables) = asked(&account(2), &[TableName::new("one", "t0")]);
    assert_eq!(lists, ["one", "three", "two"]);
    assert_eq!(
        tables,
        [
            "one.t0", "one.t1", "three.t0", "three.t1", "two.t0", "two.t1"
        ]
    );
}

#[test]
fn a_statement_waits_for_its_own_databases_where_there_is_much() {
    let many = AT_ONCE / 3 / TABLE_WEIGHS + 1;
    let account = account(many);
    let names = [
        TableName::new("one", "t0"),
        TableName::new("TWO", "t1"),
        TableName::new("none", "t0"),
    ];
    let (lists, tables) = asked(&account, &names);
    assert_eq!(lists, ["one", "two"]);
    assert_eq!(tables.len(), 2 * many);
    assert!(tables.iter().all(|table| !table.starts_with("three.")));
}
