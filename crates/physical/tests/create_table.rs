//! A logical `CREATE TABLE` becomes the one that a server gets.

use std::collections::BTreeMap;

use onionskin_keys::{KeySet, Suite};
use onionskin_physical::{CreateTable, PhysicalTable};
use onionskin_schema::Policy;
use onionskin_value::Family;

fn keys() -> KeySet {
    let folder = tempfile::tempdir().expect("a folder");
    KeySet::create_file(&folder.path().join("keys"), None, &mut rand::rng()).expect("a key file");
    KeySet::load("file:keys", folder.path(), None).expect("keys")
}

fn policy(columns: &[(&str, &[&str])]) -> Policy {
    let columns = columns.iter().map(|(name, words)| {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        ((*name).to_owned(), words)
    });
    let sections = BTreeMap::from([("app.*".to_owned(), columns.collect())]);
    Policy::parse(&sections).expect("a policy")
}

fn physical(
    sql: &str,
    policy: &Policy,
    keys: &KeySet,
    family: Family,
) -> Result<PhysicalTable, String> {
    let table = CreateTable {
        sql,
        database: "app",
        default_collation: "utf8mb4_general_ci",
        family,
        policy,
        keys,
        suite: Suite::Aes,
        like_index: false,
        without_default: &[],
    };
    table.physical()
}

#[test]
fn columns_of_the_policy_get_ids_and_companions() {
    let sql = "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT, c VARCHAR(9))";
    let policy = policy(&[("a", &["eq", "like"]), ("b", &["range"])]);
    let keys = keys();
    for (family, keeps_grams) in [(Family::MariaDb, false), (Family::MySql, true)] {
        let table = physical(sql, &policy, &keys, family).expect("a table");
        let [a, b] = table.columns.as_slice() else {
            panic!("{:?}", table.columns);
        };
        assert_eq!((a.table_id, a.key_id), (b.table_id, keys.active_key()));
        assert_ne!(a.column_id[..2], b.column_id[..2]);
        assert_eq!(a.without_grams, !keeps_grams);
        for name in a.names().all().chain(b.names().all()) {
            assert!(table.sql.contains(&format!("`{name}`")), "{}", table.sql);
        }
        assert_eq!(table.sql.contains("a$gram"), keeps_grams, "{}", table.sql);
        assert!(table.sql.contains("c VARCHAR(9)"), "{}", table.sql);
        let again = physical(sql, &policy, &keys, family).expect("a table");
        assert_ne!(again.columns[0].table_id, a.table_id);
    }
}

#[test]
fn what_protects_nothing_stays_as_it_is() {
    let sql = "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20))";
    let table = physical(sql, &policy(&[]), &keys(), Family::MariaDb).expect("a table");
    assert_eq!((table.sql.as_str(), table.columns.len()), (sql, 0));
}

#[test]
fn what_cannot_be_protected_is_refused_with_the_text_for_clients() {
    let sql = "CREATE TABLE t (id INT PRIMARY KEY, a GEOMETRY)";
    let policy = policy(&[("a", &[])]);
    let refused = physical(sql, &policy, &keys(), Family::MariaDb).expect_err("a geometry");
    assert!(refused.starts_with("OS1"), "{refused}");
}
