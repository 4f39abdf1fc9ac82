use onionskin_plan::{Catalog, Known};
use onionskin_schema::Table;

use super::{Account, NAMES, Rules};

fn known(account: &Account, name: &str) -> bool {
    !matches!(account.table("app", name), Known::Unknown)
}

#[test]
fn names_that_are_no_tables_are_forgotten_first() {
    let account = Account::new(Rules::default(), "");
    let table = Table {
        database: "app".into(),
        name: "t".into(),
        columns: Vec::new(),
        table_id: None,
        view: false,
        damaged: None,
        base: None,
        hidden_indexes: Vec::new(),
        guarded: Vec::new(),
    };
    account.know("app", "t", Some(table.clone()));
    for n in 0..NAMES - 2 {
        account.know("app", &format!("none{n}"), None);
    }
    let generation = account.generation();
    assert!(!account.make_room() && account.generation() == generation);
    account.know("app", "one_more", None);
    assert!(account.make_room() && account.generation() > generation);
    assert!(known(&account, "t") && !known(&account, "none0"));

    for n in 0..NAMES {
        account.know("app", &format!("t{n}"), Some(table.clone()));
    }
    assert!(account.make_room());
    assert!(!known(&account, "t0"));
}
