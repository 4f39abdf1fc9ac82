//! What of a session and of its statements stands in lines of the audit log.

use std::sync::Arc;

use onionskin_plan::lex::{LexMode, TokenKind, tokens};
use onionskin_plan::{Catalog, ColumnUse, Known, Plan};
use onionskin_schema::{Column, Table, same_name};
use onionskin_wire::messages::attributes;

use crate::catalog::{Account, KeyedPlan};
use crate::client_address::ClientAddress;
use crate::metrics::{Kind, Label};
use crate::touched::{Cells, is_same};

/// Connection attributes of a client that are recorded, and bytes of each name and value: a client
/// may say what it likes.
const ATTRIBUTES: usize = 32;
const ATTRIBUTE_BYTES: usize = 256;

/// What is known of a session, and of the command that runs, for its line.
#[derive(Default)]
pub(crate) struct Audited {
    /// Where the client is.
    pub client: String,
    /// What it says of itself.
    pub attributes: Vec<(String, String)>,
    /// Cells that the command has opened.
    pub opened: Cells,
    /// Plans over protected columns that the command has carried out.
    pub plans: Vec<Arc<KeyedPlan>>,
    /// Such a plan has come to where it would be noted, whether a log is written or not.
    #[cfg(debug_assertions)]
    pub has_passed: bool,
}

impl Audited {
    /// Of a new session; `attributes` as they came.
    pub fn of(peer: ClientAddress, attributes: Option<&[u8]>) -> Self {
        Audited {
            client: peer.to_string(),
            attributes: read_attributes(attributes),
            ..Audited::default()
        }
    }
}

/// The protected columns that a statement names, or, where it removes rows or changes tables, all
/// of these tables. A word that may be a column's name counts as it: what the server does with a
/// column's tokens leaves no other trace in the plan.
pub(crate) fn named_columns(
    plan: &Plan,
    label: Label,
    sql: &[u8],
    mode: LexMode,
    account: &Account,
) -> Vec<ColumnUse> {
    let known = plan.names.iter();
    let known = known.map(|name| account.table(&name.database, &name.name));
    let tables: Vec<Arc<Table>> = known
        .filter_map(|known| match known {
            Known::Table(table) if table.is_protected() => Some(table),
            _ => None,
        })
        .collect();
    if tables.is_empty() {
        return Vec::new();
    }
    let is_whole = matches!(label.kind, Kind::Delete | Kind::Definition);
    let words = match is_whole {
        true => None,
        false => words_of(sql, mode),
    };
    let is_named = |column: &Column| {
        let mut words = words.iter().flatten();
        words.any(|word| same_name(&column.name, word))
    };
    let mut named: Vec<ColumnUse> = Vec::new();
    for table in &tables {
        for (index, column) in table.columns.iter().enumerate() {
            let used = ColumnUse {
                table: Arc::clone(table),
                index,
            };
            let is_protected = column.protection.is_some();
            let is_new = !named.iter().any(|known| is_same(known, &used));
            if is_protected && is_new && (words.is_none() || is_named(column)) {
                named.push(used);
            }
        }
    }
    named
}

/// The words of a statement that may be names; `None` if they cannot be told.
fn words_of(sql: &[u8], mode: LexMode) -> Option<Vec<String>> {
    let mut words = Vec::new();
    for token in tokens(sql, mode).ok()? {
        let text = token.text(sql);
        let text = match token.kind {
            TokenKind::Word => std::str::from_utf8(text).ok()?.to_owned(),
            TokenKind::Quoted => {
                let quote = char::from(*text.first()?);
                let inside = text.get(1..text.len().checked_sub(1)?)?;
                let inside = std::str::from_utf8(inside).ok()?;
                inside.replace(&format!("{quote}{quote}"), &quote.to_string())
            }
            TokenKind::Executable => return None,
            _ => continue,
        };
        words.push(text);
    }
    Some(words)
}

/// Attributes as they are recorded.
pub(crate) fn read_attributes(bytes: Option<&[u8]>) -> Vec<(String, String)> {
    let short = |bytes: &[u8]| {
        let bytes = &bytes[..bytes.len().min(ATTRIBUTE_BYTES)];
        String::from_utf8_lossy(bytes).into_owned()
    };
    attributes(bytes.unwrap_or_default())
        .take(ATTRIBUTES)
        .map(|(name, value)| (short(name), short(value)))
        .collect()
}
