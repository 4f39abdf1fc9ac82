//! The tables of the database, as the server shows them: what the planner is asked about.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use onionskin_rowstream::client::Family as ServerFamily;
use onionskin_schema::{
    COLUMNS_QUERY_FIELDS, ColumnRow, Table, TableName, folded, identifier, same_name,
    tables_from_rows,
};
use onionskin_value::Family;

use crate::{
    AssessError,
    reader::{MAX_ROWS, Reader, Texts},
    text::{shown, sql_string},
};

/// The rows of an answer; none if there is none.
fn lines(reader: &mut Reader, sql: String) -> Result<Vec<Texts>, AssessError> {
    Ok(reader.raw(&sql)?.unwrap_or_default())
}

/// A column: its table's place, and its own in the table.
pub type At = (usize, usize);

/// A table of the database.
#[derive(Clone, Debug)]
pub struct Described {
    /// As it is. Its columns are plain.
    pub table: Arc<Table>,
    /// `SHOW CREATE TABLE`
    pub definition: String,
    /// About how many rows it has.
    pub rows: u64,
    /// Columns in keys.
    pub keyed: BTreeSet<usize>,
    /// Primary and unique keys, over whole columns alone.
    pub unique: Vec<Vec<usize>>,
}

/// The database.
#[derive(Clone, Debug)]
pub struct Schema {
    /// Whose server.
    pub family: Family,
    /// Its name.
    pub database: String,
    /// The collation of tables that name none.
    pub collation: String,
    /// Its tables.
    pub tables: Vec<Described>,
    /// Pairs of columns that foreign keys tie together: the one that refers, and what it refers to.
    pub references: Vec<(At, At)>,
    /// Columns that a foreign key ties to a table of another database.
    pub tied: BTreeSet<At>,
    /// Its views.
    pub views: BTreeSet<String>,
    /// Tables of other databases that statements name, as far as they are there.
    pub outside: HashMap<TableName, Option<Arc<Table>>>,
    /// What was not looked at, and why.
    pub left_out: Vec<String>,
}

impl Schema {
    /// An empty one.
    pub fn new(family: Family, database: &str, collation: &str) -> Self {
        Self {
            family,
            database: database.to_owned(),
            collation: collation.to_owned(),
            tables: Vec::new(),
            references: Vec::new(),
            tied: BTreeSet::new(),
            views: BTreeSet::new(),
            outside: HashMap::new(),
            left_out: Vec::new(),
        }
    }

    /// Reads it.
    pub(super) fn read(reader: &mut Reader, database: &str) -> Result<Self, AssessError> {
        let family = match reader.family() {
            ServerFamily::MariaDb => Family::MariaDb,
            ServerFamily::MySql => Family::MySql,
        };
        if family == Family::MySql {
            // else the numbers of rows may be a day old
            let _ = reader.raw("SET SESSION information_schema_stats_expiry = 0")?;
        }
        let name = sql_string(database);
        let collation = lines(
            reader,
            format!(
                "SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = {name}"
            ),
        )?;
        let collation = collation.into_iter().flatten().flatten().next();
        let mut schema = Self::new(family, database, &collation.unwrap_or_default());
        let mut rows_of = BTreeMap::new();
        for row in lines(
            reader,
            format!(
                "SELECT TABLE_NAME, TABLE_TYPE, TABLE_ROWS FROM information_schema.TABLES \
             WHERE TABLE_SCHEMA = {name} ORDER BY TABLE_NAME LIMIT {MAX_ROWS}"
            ),
        )? {
            let cell = |at: usize| row.get(at).and_then(Option::as_deref).unwrap_or_default();
            match cell(1) {
                "BASE TABLE" => {
                    rows_of.insert(cell(0).to_owned(), cell(2).parse().unwrap_or(0));
                }
                _ => {
                    schema.views.insert(folded(cell(0)));
                }
            }
        }
        if rows_of.is_empty() {
            return Err(AssessError::Request(format!(
                "{} has no tables that this account sees: GRANT SELECT ON {}.*",
                shown(database),
                identifier(&shown(database))
            )));
        }
        schema.read_tables(reader, &rows_of)?;
        schema.read_keys(reader)?;
        Ok(schema)
    }

    /// The tables of these names, with their definitions.
    fn read_tables(
        &mut self,
        reader: &mut Reader,
        rows_of: &BTreeMap<String, u64>,
    ) -> Result<(), AssessError> {
        let name = sql_string(&self.database);
        let columns = lines(
            reader,
            format!(
                "SELECT {COLUMNS_QUERY_FIELDS} FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {name} \
             ORDER BY TABLE_NAME, ORDINAL_POSITION"
            ),
        )?;
        let tables = tables_from_rows(columns.iter().map(|row| ColumnRow::of(row)), |_, _| true);
        for table in tables {
            let Some(rows) = rows_of.get(&table.name).copied() else {
                continue;
            };
            if table.is_protected() {
                self.left_out.push(format!(
                    "{}: it has protected columns already",
                    shown(&table.name)
                ));
            }
            let sql = format!(
                "SHOW CREATE TABLE {}.{}",
                identifier(&self.database),
                identifier(&table.name)
            );
            let definition = lines(reader, sql)?.into_iter().next();
            let definition = definition.and_then(|row| row.into_iter().nth(1).flatten());
            if definition.is_none() {
                self.left_out.push(format!(
                    "{}: its definition is not visible: needs GRANT SELECT",
                    shown(&table.name)
                ));
            }
            self.tables.push(Described {
                table: Arc::new(table),
                definition: definition.unwrap_or_default(),
                rows,
                keyed: BTreeSet::new(),
                unique: Vec::new(),
            });
        }
        Ok(())
    }

    /// Columns in keys, and foreign keys.
    fn read_keys(&mut self, reader: &mut Reader) -> Result<(), AssessError> {
        let name = sql_string(&self.database);
        let parts = lines(
            reader,
            format!(
                "SELECT TABLE_NAME, COLUMN_NAME, INDEX_NAME, NON_UNIQUE, SUB_PART FROM information_schema.STATISTICS \
             WHERE TABLE_SCHEMA = {name} ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX LIMIT {MAX_ROWS}"
            ),
        )?;
        let mut unique: BTreeMap<(String, String), Vec<Option<At>>> = BTreeMap::new();
        for part in parts {
            let cell = |at: usize| part.get(at).and_then(Option::as_deref).unwrap_or_default();
            let column = self.find(cell(0), cell(1));
            if let Some((table, column)) = column {
                self.tables[table].keyed.insert(column);
            }
            if cell(3) == "0" {
                let index = (cell(0).to_owned(), cell(2).to_owned());
                let whole = column.filter(|_| cell(4).is_empty());
                unique.entry(index).or_default().push(whole);
            }
        }
        for parts in unique.into_values() {
            let parts: Option<Vec<At>> = parts.into_iter().collect();
            if let Some(parts) = parts
                && let Some((table, _)) = parts.first()
            {
                let columns = parts.iter().map(|(_, column)| *column).collect();
                self.tables[*table].unique.push(columns);
            }
        }
        let keys = lines(
            reader,
            format!(
                "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, \
             REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE \
             WHERE REFERENCED_TABLE_NAME IS NOT NULL AND (TABLE_SCHEMA = {name} OR REFERENCED_TABLE_SCHEMA = {name}) \
             LIMIT {MAX_ROWS}"
            ),
        )?;
        for row in keys {
            let cell = |at: usize| row.get(at).and_then(Option::as_deref).unwrap_or_default();
            let side = |at: usize| match same_name(cell(at), &self.database) {
                true => self.find(cell(at + 1), cell(at + 2)),
                false => None,
            };
            match (side(0), side(3)) {
                (Some(from), Some(to)) => self.references.push((from, to)),
                (from, to) => self.tied.extend(from.into_iter().chain(to)),
            }
        }
        Ok(())
    }

    /// Reads tables of other databases.
    pub(super) fn read_outside(
        &mut self,
        reader: &mut Reader,
        names: &[TableName],
    ) -> Result<(), AssessError> {
        for name in names {
            if self.outside.contains_key(name) {
                continue;
            }
            let sql = format!(
                "SELECT {COLUMNS_QUERY_FIELDS} FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
                sql_string(&name.database),
                sql_string(&name.name)
            );
            let rows = reader.raw(&sql)?.unwrap_or_default();
            let tables = tables_from_rows(rows.iter().map(|row| ColumnRow::of(row)), |_, _| true);
            let table = tables.into_iter().next().map(Arc::new);
            self.outside.insert(name.clone(), table);
        }
        Ok(())
    }

    /// A column by its names.
    pub fn find(&self, table: &str, column: &str) -> Option<At> {
        let of_table = |t: &Described| same_name(&t.table.name, table);
        let at = self.tables.iter().position(of_table)?;
        let columns = &self.tables[at].table.columns;
        let column = columns.iter().position(|c| same_name(&c.name, column))?;
        Some((at, column))
    }

    /// `customers.email`
    pub fn path(&self, (table, column): At) -> String {
        let table = &self.tables[table].table;
        format!("{}.{}", table.name, table.columns[column].name)
    }
}
