//! Unique keys that MariaDB keeps as a hash, because their columns are too long for an index: over
//! a TEXT or BLOB, or over more than 3,072 bytes. Their tokens are short, so the server shows an
//! ordinary key where plaintext has `USING HASH`.

use onionskin_value::Family;

use crate::{
    quote::identifier,
    show_create::tokens,
    table::{Column, Table},
};

/// InnoDB's bound for the bytes of a key.
const KEY_BYTES: u64 = 3072;

/// A key that is a hash, as MariaDB shows it: without an order. `element` is its line in SHOW
/// CREATE TABLE.
pub(crate) fn shown_hash(element: &str) -> String {
    let unordered = element.replace(" DESC,", ",").replace(" DESC)", ")");
    format!("{unordered} USING HASH")
}

/// Whether a unique key with logical names is a hash: `element` is its line in SHOW CREATE TABLE.
pub(crate) fn is_hash(element: &str, table: &Table, family: Family) -> bool {
    if family != Family::MariaDb || !element.starts_with("UNIQUE KEY") || !element.ends_with(')') {
        return false;
    }
    // behind the key's own name
    let list = element.find('(').map_or("", |at| &element[at..]);
    let names = tokens(list).filter(|t| t.is_identifier());
    let columns: Vec<&Column> = names.filter_map(|t| table.column(&t.name())).collect();
    // of a key over plain columns, the server's word stands there already
    let is_ours = columns.iter().any(|column| column.protection.is_some());
    // what is not known is short
    let part = |column: &&Column| {
        let ty = column.sql_type.as_ref()?;
        let prefix = prefix_of(list, &column.name);
        Some(match ty.is_unbounded() && prefix.is_none() {
            true => KEY_BYTES + 1,
            false => ty.key_bytes(prefix),
        })
    };
    let bytes = columns.iter().filter_map(part);
    is_ours && bytes.sum::<u64>() > KEY_BYTES
}

/// The characters of a column that are in a key: of `name`(10), ten.
fn prefix_of(list: &str, name: &str) -> Option<u32> {
    let (_, behind) = list.split_once(&format!("{}(", identifier(name)))?;
    behind.split(')').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_column_counts_for_itself() {
        let list = "(`a`,`b`(10),`c` DESC)";
        let prefixes = ["a", "b", "c"].map(|name| prefix_of(list, name));
        assert_eq!(prefixes, [None, Some(10), None]);
    }

    #[test]
    fn a_hash_has_no_order() {
        let shown = shown_hash("UNIQUE KEY `s` (`s` DESC,`n`,`DESC` DESC)");
        assert_eq!(shown, "UNIQUE KEY `s` (`s`,`n`,`DESC`) USING HASH");
    }
}
