//! Unique keys that MariaDB keeps as a hash, because their columns are too long for an index: over
//! a TEXT or BLOB, or over more than 3,072 bytes. Their tokens are short, so the server shows an
//! ordinary key where plaintext has `USING HASH`.

use onionskin_value::{Family, Kind, SqlType};

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
    let bytes = columns.iter().map(|column| {
        let whole = column.sql_type.as_ref().map_or(0, key_bytes);
        prefix_of(list, &column.name).map_or(whole, |prefix| whole.min(prefix))
    });
    is_ours && bytes.sum::<u64>() > KEY_BYTES
}

/// Bytes of the part of a column that is in a key, `name`(10), at four a character.
fn prefix_of(list: &str, name: &str) -> Option<u64> {
    let (_, behind) = list.split_once(&format!("{}(", identifier(name)))?;
    let digits = behind.split(')').next()?;
    Some(4 * digits.parse::<u64>().ok()?)
}

/// Bytes that a value takes in a key. What is not a string takes few.
fn key_bytes(ty: &SqlType) -> u64 {
    let width = ty.collation.map_or(1, |c| c.charset().max_bytes());
    match ty.kind {
        Kind::Char { chars } | Kind::VarChar { chars } => u64::from(chars) * u64::from(width),
        Kind::Binary { len } | Kind::VarBinary { len } => u64::from(len),
        Kind::TinyText | Kind::Text | Kind::MediumText | Kind::LongText | Kind::Json => {
            KEY_BYTES + 1
        }
        Kind::TinyBlob | Kind::Blob | Kind::MediumBlob | Kind::LongBlob => KEY_BYTES + 1,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_column_counts_for_itself() {
        let list = "(`a`,`b`(10),`c` DESC)";
        let prefixes = ["a", "b", "c"].map(|name| prefix_of(list, name));
        assert_eq!(prefixes, [None, Some(40), None]);
    }

    #[test]
    fn a_hash_has_no_order() {
        let shown = shown_hash("UNIQUE KEY `s` (`s` DESC,`n`,`DESC` DESC)");
        assert_eq!(shown, "UNIQUE KEY `s` (`s`,`n`,`DESC`) USING HASH");
    }

    #[test]
    fn bytes_of_a_key_decide() {
        let bytes = |ty: &str, collation| key_bytes(&SqlType::parse(ty, collation).unwrap());
        assert_eq!(bytes("varchar(768)", Some("utf8mb4_bin")), KEY_BYTES);
        assert!(bytes("text", Some("latin1_swedish_ci")) > KEY_BYTES);
        assert!(bytes("varbinary(3073)", None) > KEY_BYTES);
    }
}
