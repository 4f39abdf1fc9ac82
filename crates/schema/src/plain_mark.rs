//! Marks of columns that stay plaintext by right although no foreign key says so any more.
//!
//! A wildcard of `[protect]` leaves a column plaintext because of its foreign key. Frameworks drop
//! the key, change the column, and add the key again. So before the proxy drops the key it leaves a
//! mark in the table: a CHECK that always holds, whose name is a tag over the column's name. Nobody
//! without the metadata key can make one. A mark says nothing of the table, so that it outlives
//! RENAME TABLE, and it counts for whole numbers only, as foreign keys do.

use onionskin_value::Family;

use crate::{ddl::constraint_name, quote::identifier};

/// Bytes of the tag that stand in the name.
const TAG_BYTES: usize = 8;

/// The constraint's name. `nonce`: on MySQL, names of constraints are unique in the database.
pub fn plain_mark(column: &str, nonce: [u8; 4], tag: impl Fn(&[u8]) -> [u8; 16]) -> String {
    let mut bytes = b"plaintext by right\0".to_vec();
    bytes.extend_from_slice(column.to_lowercase().as_bytes());
    bytes.push(0);
    bytes.extend_from_slice(&nonce);
    let mut short = [0; TAG_BYTES];
    short.copy_from_slice(&tag(&bytes)[..TAG_BYTES]);
    constraint_name(short, nonce)
}

/// Whether a constraint of this name is the mark of a column of this name.
pub(crate) fn marks_column(
    constraint: &str,
    column: &str,
    tag: impl Fn(&[u8]) -> [u8; 16],
) -> bool {
    let digits = constraint.rsplit_once('_').map_or("", |(_, digits)| digits);
    let nonce = crate::quote::unhex::<4>(digits);
    nonce.is_some_and(|nonce| plain_mark(column, nonce, tag) == constraint)
}

/// The statement that leaves a mark in a table whose name stands in quotes. MariaDB copies the
/// table.
///
/// Both families drop it together with any column, because no column that stays is in it. One that
/// names the column would be in the way: MySQL renames no column that a CHECK names, and takes no
/// foreign key over it that writes into it.
pub fn plain_mark_statement(table: &str, mark: &str, family: Family) -> String {
    let mark = identifier(mark);
    match family {
        Family::MySql => {
            format!("ALTER TABLE {table} ADD CONSTRAINT {mark} CHECK (1 = 1) NOT ENFORCED")
        }
        Family::MariaDb => format!("ALTER TABLE {table} ADD CONSTRAINT {mark} CHECK (1 = 1)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(bytes: &[u8]) -> [u8; 16] {
        let mut tag = [7; 16];
        for (n, byte) in bytes.iter().enumerate() {
            tag[n % 8] ^= byte.rotate_left(u32::try_from(n % 7).unwrap_or(0));
        }
        tag
    }

    #[test]
    fn a_mark_is_that_of_one_column() {
        let mark = plain_mark("author_id", [1, 2, 3, 4], tag);
        assert!(crate::is_our_constraint(&mark), "{mark}");
        assert!(marks_column(&mark, "Author_ID", tag));
        assert!(!marks_column(&mark, "author_ie", tag));
        assert!(!marks_column(&mark, "author_id", |_| [0; 16]));
        assert!(!marks_column("onionskin", "author_id", tag));
    }
}
