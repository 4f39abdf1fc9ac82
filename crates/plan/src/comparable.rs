//! What a protected column can be compared by on the server, and with which other columns.

use onionskin_schema::TokenKind;
use onionskin_value::{Kind, SqlType};

use crate::errors::{self, Planned, Refusal};
use crate::plan::ColumnUse;

/// The order key column of a column whose order keys are exact.
pub(crate) fn exact_order(column: &ColumnUse) -> Option<&str> {
    let names = &column.column().protection.as_ref()?.names;
    names.ord.as_deref().filter(|_| names.exact_order)
}

/// Why a column cannot be compared by order where the server has to do it alone.
pub(crate) fn no_order(column: &ColumnUse) -> Refusal {
    let entry = match column.column().ord_name() {
        Some(_) => &errors::CANDIDATES,
        None => &errors::NO_RANGE,
    };
    Refusal::new(entry, column.path())
}

/// Whether MIN, MAX and `<` have an order other than that of the column's keys: members of ENUM and
/// SET go by name there, and BIT becomes a number.
pub(crate) fn goes_by_name(column: &ColumnUse) -> bool {
    let ty = column.column().sql_type.as_ref();
    ty.is_some_and(|ty| ty.is_enumerated() || ty.is_bit())
}

/// The order key column whose keys open again to the very value, and are in the order of MIN and
/// MAX.
pub(crate) fn opening_order(column: &ColumnUse) -> Option<&str> {
    let ty = column.column().sql_type.as_ref()?;
    if ty.order_width()?.invertible && !goes_by_name(column) {
        exact_order(column)
    } else {
        None
    }
}

/// The column that answers equality, and in which form.
pub(crate) fn equality(column: &ColumnUse) -> Planned<(&str, TokenKind)> {
    column
        .column()
        .equality_column()
        .ok_or_else(|| Refusal::new(&errors::NO_EQUALITY, column.path()))
}

/// Whether columns of both types make the same tokens, of this kind, of equal values. Equality
/// tokens of texts do not depend on how long a column may be; order keys are as long as the longest
/// value.
pub(crate) fn makes_same_tokens(a: &SqlType, b: &SqlType, kind: Option<TokenKind>) -> bool {
    let (a, b) = (a.without_width(), b.without_width());
    let is_of_a_kind = matches!(
        (a.kind, b.kind),
        (Kind::VarChar { .. }, Kind::VarChar { .. })
            | (Kind::Char { .. }, Kind::Char { .. })
            | (Kind::VarBinary { .. }, Kind::VarBinary { .. })
    );
    let is_equality = kind == Some(TokenKind::Equality);
    a == b || is_of_a_kind && is_equality && a.collation == b.collation
}

/// Whether the tokens of two columns can be compared with each other.
pub(crate) fn same_tokens(a: &ColumnUse, b: &ColumnUse) -> bool {
    let (Some(p), Some(q)) = (&a.column().protection, &b.column().protection) else {
        return false;
    };
    let same_column = a.table.table_id == b.table.table_id && p.column_id == q.column_id;
    let kind = |c: &ColumnUse| c.column().equality_column().map(|(_, kind)| kind);
    let same_group = p.capabilities.join.is_some()
        && p.capabilities.join == q.capabilities.join
        && p.capabilities.bits == q.capabilities.bits
        && p.suite == q.suite
        && p.key_id == q.key_id
        && makes_same_tokens(&p.sql_type, &q.sql_type, kind(a));
    (same_column || same_group) && kind(a) == kind(b)
}
