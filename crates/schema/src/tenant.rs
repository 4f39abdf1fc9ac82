//! Whose a row is.
//!
//! `ENCRYPTED FOR (…) KEY BY tenant_id` seals each cell under a key that depends on the row's
//! tenant: a person, a customer, a branch. When the tenant's secret is destroyed, none of its cells
//! opens any more, wherever they lie. The tenant is what a plain column of the row says.

use std::hash::{Hash, Hasher};

use onionskin_value::{Kind, SqlType};

use crate::folding::{folded, same_name};
use crate::quote::identifier;

/// How the word begins that names it in lists of capabilities: `key_by:tenant_id`, or
/// `key_by:id=customer` where the kind of tenant has another name than the column.
pub(crate) const KEY_BY: &str = "key_by:";

/// The version of cells that have a tenant, in every suite.
pub const TENANT_CELLS: u8 = 3;

/// The longest name of a kind of tenant.
const LONGEST_NAME: usize = 32;

/// The column that says whose a row is.
#[derive(Clone, Debug, Eq)]
pub struct Tenant {
    /// The plain column.
    pub column: String,
    /// The kind of tenant: rows of several tables belong to the same one where kind and value are
    /// the same.
    pub name: String,
}

/// Letter case does not count in the column's name.
impl PartialEq for Tenant {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && same_name(&self.column, &other.column)
    }
}

impl Hash for Tenant {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        folded(&self.column).hash(state);
    }
}

impl Tenant {
    /// A tenant by this column. Without a name its kind is called as the column is. `None`: that is
    /// no name for a kind, which has small letters, digits and underscores.
    pub fn new(column: &str, name: Option<&str>) -> Option<Self> {
        let name = name.map_or_else(|| folded(column), str::to_owned);
        let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        let is_name = (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_plain);
        (is_name && !column.is_empty()).then(|| Tenant {
            column: column.to_owned(),
            name,
        })
    }

    /// Reads what stands behind [`KEY_BY`]: `column` or `column=name`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.rsplit_once('=') {
            Some((column, name)) => Tenant::new(column, Some(name)),
            None => Tenant::new(text, None),
        }
    }

    /// As lists of capabilities have it.
    pub(crate) fn word(&self) -> String {
        match self.has_own_name() {
            true => format!("{KEY_BY}{}={}", self.column, self.name),
            false => format!("{KEY_BY}{}", self.column),
        }
    }

    /// As a definition has it: `` KEY BY `id` AS customer ``.
    pub fn clause(&self) -> String {
        let column = identifier(&self.column);
        match self.has_own_name() {
            true => format!("KEY BY {column} AS {}", self.name),
            false => format!("KEY BY {column}"),
        }
    }

    fn has_own_name(&self) -> bool {
        self.name != folded(&self.column)
    }

    /// Whether a column of this type can say whose a row is: the same tenant is the same text.
    pub fn can_be(ty: &SqlType) -> bool {
        match ty.kind {
            _ if ty.is_integer() => true,
            Kind::Char { .. } | Kind::VarChar { .. } => true,
            Kind::Binary { .. } | Kind::VarBinary { .. } => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        for (word, clause) in [
            ("tenant_id", "KEY BY `tenant_id`"),
            ("Tenant_ID", "KEY BY `Tenant_ID`"),
            ("id=customer", "KEY BY `id` AS customer"),
            ("a=b=customer", "KEY BY `a=b` AS customer"),
        ] {
            let tenant = Tenant::parse(word).unwrap();
            assert_eq!(tenant.word(), format!("key_by:{word}"));
            assert_eq!(tenant.clause(), clause);
        }
        assert_eq!(Tenant::parse("Tenant_ID").unwrap().name, "tenant_id");
        for wrong in ["", "=x", "id=", "id=Customer", "id=a b", "größe", "id=ü"] {
            assert_eq!(Tenant::parse(wrong), None, "{wrong}");
        }
    }
}
