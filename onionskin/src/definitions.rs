//! What the server shows of tables, for commands that look and change nothing.

use std::collections::BTreeMap;

use onionskin_keys::KeySet;
use onionskin_rowstream::session::{Login, Session, SqlError};
use onionskin_schema::{
    ColumnRow, Policy, Table, TableName, catalog_query, identifier, is_rightly_part,
    mark_references, tables_from_rows,
};
use onionskin_value::Family;

/// Ends of the names of tables that `migrate` makes. They come and go, and no application uses
/// them.
const OF_MIGRATIONS: [&str; 2] = ["_onionskin_new", "_onionskin_old"];

/// Whether `migrate` has made the table beside another one.
pub fn is_of_migration(table: &TableName) -> bool {
    OF_MIGRATIONS.iter().any(|end| table.name.ends_with(end))
}

/// Reads definitions from the server.
pub struct Definitions(Session);

impl Definitions {
    /// Logs in. The error says what else could be tried.
    pub fn connect(login: &Login) -> Result<Self, String> {
        Session::connect(login).map(Self).map_err(|error| {
            format!(
                "the definitions of the tables cannot be read: {error}; see --user, --password-env and --backend"
            )
        })
    }

    /// Whose server it is.
    pub fn family(&mut self) -> Result<Family, SqlError> {
        Ok(match self.0.is_mariadb()? {
            true => Family::MariaDb,
            false => Family::MySql,
        })
    }

    /// The server's version.
    pub fn version(&mut self) -> Result<String, SqlError> {
        let rows = self.0.texts("SELECT VERSION()")?;
        Ok(rows
            .into_iter()
            .flatten()
            .flatten()
            .next()
            .unwrap_or_default())
    }

    /// The cells of a result.
    pub fn texts(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, SqlError> {
        self.0.texts(sql)
    }

    /// The names of all tables and views that look protected.
    pub fn protected_names(&mut self) -> Result<Vec<TableName>, SqlError> {
        let rows = self.texts(
            "SELECT DISTINCT TABLE_SCHEMA, TABLE_NAME FROM information_schema.COLUMNS \
             WHERE COLUMN_NAME LIKE '%$enc' OR COLUMN_COMMENT LIKE 'onionskin:%' ORDER BY 1, 2",
        )?;
        let names = rows.into_iter().filter_map(|row| {
            let mut cells = row.into_iter();
            Some(TableName::new(cells.next()??, cells.next()??))
        });
        Ok(names.collect())
    }

    /// Tables by their names, with what `[protect]` says of their foreign keys.
    pub fn tables(
        &mut self,
        names: &[TableName],
        keys: &KeySet,
        policy: &Policy,
    ) -> Result<Vec<Table>, SqlError> {
        let mut by_database: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for TableName { database, name } in names {
            by_database.entry(database).or_default().push(name);
        }
        let verify = |bytes: &[u8], tag: &[u8; 16]| keys.metadata_key().verify(bytes, tag);
        let mut found = Vec::new();
        for (database, names) in by_database {
            let rows = self.texts(&catalog_query(database, &names))?;
            let mut tables = tables_from_rows(rows.iter().map(|row| ColumnRow::of(row)), verify);
            for table in tables.iter_mut().filter(|table| table.is_part()) {
                let shown = self.texts(&format!(
                    "SHOW CREATE TABLE {}.{}",
                    identifier(&table.database),
                    identifier(&table.name)
                ))?;
                let text = shown.into_iter().next();
                let text = text.and_then(|row| row.into_iter().nth(1).flatten());
                if is_rightly_part(table, Some(&text.unwrap_or_default())) {
                    table.damaged = None;
                }
            }
            for table in &mut tables {
                let tag = |bytes: &[u8]| keys.metadata_key().tag(bytes);
                mark_references(policy, table, |sql| self.texts(sql), tag)?;
            }
            found.append(&mut tables);
        }
        Ok(found)
    }

    /// The collation that new tables of the database get.
    pub fn collation(&mut self, database: &str) -> Result<Option<String>, SqlError> {
        let name: String = database.bytes().map(|b| format!("{b:02x}")).collect();
        let rows = self.texts(&format!(
            "SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA \
             WHERE SCHEMA_NAME = CONVERT(x'{name}' USING utf8mb4)"
        ))?;
        Ok(rows
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().next().flatten()))
    }
}
