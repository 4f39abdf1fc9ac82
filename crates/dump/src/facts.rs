//! What is there: tables as the proxy shows them, and what the server says of their protection.

use onionskin_rowstream::client::Client;
use onionskin_schema::{Capabilities, Table, TableName, identifier, same_name};
use onionskin_value::{Family, Kind, SqlType};

use crate::{definition::Definition, error::DumpError, rules::ColumnName};

/// Who knows what is protected: it is not seen through the proxy.
pub trait Protections {
    /// The tables with these names, as they are now, their metadata verified.
    fn tables(&mut self, names: &[TableName]) -> Result<Vec<Table>, String>;
    /// Whether the configuration wants the column protected, be it so already or not.
    fn is_wanted(&self, table: &Table, column: &onionskin_schema::Column) -> bool;
    /// What tells the server from others.
    fn identity(&mut self) -> Result<String, String>;
}

/// What tells a server from others, asked alike by both sides.
pub const IDENTITY: &str =
    "SELECT CONCAT_WS('|', @@hostname, @@port, @@server_id, @@datadir, @@version)";

/// A column.
pub(crate) struct ColumnFacts {
    pub name: ColumnName,
    pub type_text: String,
    /// `None`: a type that is not understood.
    pub ty: Option<SqlType>,
    pub nullable: bool,
    pub is_generated: bool,
    /// What it is protected for.
    pub capabilities: Option<Capabilities>,
    /// The configuration wants it protected.
    pub is_wanted: bool,
}

/// A table.
pub(crate) struct TableFacts {
    pub name: TableName,
    /// As the proxy shows it.
    pub shown: String,
    pub definition: Definition,
    pub columns: Vec<ColumnFacts>,
    /// What the server says of it.
    pub protection: Table,
}

impl TableFacts {
    pub fn quoted(&self) -> String {
        quoted(&self.name)
    }

    /// Whether rows are read as of one moment.
    pub fn is_transactional(&self) -> bool {
        self.definition.options.contains("ENGINE=InnoDB")
    }
}

pub(crate) fn quoted(name: &TableName) -> String {
    format!("{}.{}", identifier(&name.database), identifier(&name.name))
}

/// Texts of a result.
pub(crate) fn texts(client: &mut Client, sql: &str) -> Result<Vec<Vec<Option<String>>>, DumpError> {
    let rows = client.query(sql).map_err(DumpError::at(sql))?;
    let text = |cell: Vec<u8>| String::from_utf8_lossy(&cell).into_owned();
    Ok(rows
        .into_iter()
        .map(|row| row.into_iter().map(|cell| cell.map(text)).collect())
        .collect())
}

/// A cell of the first row.
pub(crate) fn one(client: &mut Client, sql: &str, at: usize) -> Result<String, DumpError> {
    let rows = texts(client, sql)?;
    let cell = rows
        .into_iter()
        .next()
        .and_then(|row| row.into_iter().nth(at).flatten());
    cell.ok_or_else(|| DumpError::Mismatch(format!("{sql}: no answer")))
}

/// A table as it is now.
pub(crate) fn table(
    client: &mut Client,
    protections: &mut dyn Protections,
    name: &TableName,
) -> Result<TableFacts, DumpError> {
    let shown = one(client, &format!("SHOW CREATE TABLE {}", quoted(name)), 1)?;
    let unreadable = || DumpError::Mismatch(format!("{name}: its definition cannot be read"));
    let definition = Definition::read(&shown).ok_or_else(unreadable)?;
    let protection = protection(protections, name)?;
    let sql = format!("SHOW FULL COLUMNS FROM {}", quoted(name));
    let rows = texts(client, &sql)?;
    let mut columns = Vec::with_capacity(rows.len());
    for row in rows {
        let cell = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
        let column = cell(0);
        let behind = protection.column(&column);
        let (type_text, collation, extra) = (cell(1), cell(2), cell(6));
        let protected = behind.and_then(|c| c.protection.as_ref());
        let collation = Some(collation.as_str()).filter(|c| !c.is_empty());
        let parsed = || match is_json_text(&shown, &column) {
            true => Some(SqlType::json(Family::MariaDb)),
            false => SqlType::parse(&type_text, collation).ok(),
        };
        columns.push(ColumnFacts {
            ty: protected.map(|p| p.sql_type).or_else(parsed),
            capabilities: protected.map(|p| p.capabilities.clone()),
            is_wanted: behind.is_some_and(|column| protections.is_wanted(&protection, column)),
            name: ColumnName {
                database: name.database.clone(),
                table: name.name.clone(),
                column,
            },
            nullable: cell(3) == "YES",
            is_generated: extra.contains("VIRTUAL")
                || extra.contains("STORED GENERATED")
                || extra.contains("PERSISTENT"),
            type_text,
        });
    }
    let facts = TableFacts {
        name: name.clone(),
        shown,
        definition,
        columns,
        protection,
    };
    agree(&facts)?;
    is_clear(client, &facts)?;
    Ok(facts)
}

/// MariaDB's JSON is a text with a CHECK.
fn is_json_text(shown: &str, column: &str) -> bool {
    let name = identifier(column);
    shown.contains(&format!("CHECK (json_valid({name}))"))
}

/// What the server says of a table.
pub(crate) fn protection(
    protections: &mut dyn Protections,
    name: &TableName,
) -> Result<Table, DumpError> {
    let found = protections.tables(std::slice::from_ref(name));
    let mut found = found.map_err(DumpError::Mismatch)?;
    let gone = || {
        DumpError::Mismatch(format!(
            "{name}: the server does not have this table, and the proxy shows it"
        ))
    };
    let table = found.pop().ok_or_else(gone)?;
    match &table.damaged {
        Some(reason) => Err(DumpError::Mismatch(format!("{name}: {reason}"))),
        None => Ok(table),
    }
}

/// Both sides have the same columns.
fn agree(facts: &TableFacts) -> Result<(), DumpError> {
    let name = &facts.name;
    let shown = facts.columns.iter().map(|c| &c.name.column);
    let behind = facts.protection.columns.iter().map(|c| &c.name);
    let written = facts.definition.columns.iter().map(|(name, _)| name);
    let is_same = shown.clone().count() == behind.clone().count()
        && shown.clone().count() == written.clone().count()
        && shown.clone().zip(behind).all(|(a, b)| same_name(a, b))
        && shown.clone().zip(written).all(|(a, b)| same_name(a, b));
    if is_same {
        return Ok(());
    }
    let is_bare = shown.clone().any(|name| name.ends_with("$enc"));
    Err(DumpError::Mismatch(match is_bare {
        true => format!(
            "{name}: ciphertext is shown. --from has to be a proxy, and one that has the keys"
        ),
        false => format!("{name}: --from shows other columns than the server has"),
    }))
}

/// The account sees the values themselves: a proxy refuses conditions on masked columns.
fn is_clear(client: &mut Client, facts: &TableFacts) -> Result<(), DumpError> {
    let protected = facts.columns.iter().filter(|c| c.capabilities.is_some());
    let conditions: Vec<String> = protected
        .map(|c| format!("{} IS NULL", identifier(&c.name.column)))
        .collect();
    if conditions.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "SELECT 1 FROM {} WHERE {} LIMIT 0",
        facts.quoted(),
        conditions.join(" OR ")
    );
    let doing = format!(
        "{}: whether this account sees its values in the clear (a masked account cannot be used)",
        facts.name
    );
    client.query(&sql).map_err(DumpError::at(doing))?;
    Ok(())
}

/// What a column is read by. FLOAT is shown with six digits, and as DOUBLE with all of them.
pub(crate) fn selected(column: &ColumnFacts, is_replaced: bool) -> String {
    let name = identifier(&column.name.column);
    let is_float = column.ty.is_some_and(|ty| ty.kind == Kind::Float);
    match is_float && !is_replaced && column.capabilities.is_none() {
        true => format!("{name} * 1e0"),
        false => name,
    }
}
