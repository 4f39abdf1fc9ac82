//! Definitions: ids and authentication tags are made, the text is sent.

use onionskin_plan::{Ddl, DdlPiece, Refusal, errors};
use onionskin_schema::alter::{self, Position};
use onionskin_schema::{NewColumn, SchemaError, Table, physical_definitions};
use onionskin_value::{Family, Kind, Level, Warning};
use onionskin_wire::messages::Command;

use crate::catalog::Prepared;
use crate::error::{Failure, Outcome};
use crate::session::Session;

fn failed(error: &SchemaError) -> Failure {
    Failure::Refused(Refusal::new(&errors::DEFINITION, error.to_string()))
}

/// What MySQL says to the definitions of columns that it does not get to see.
fn deprecations(columns: &[NewColumn], family: Family) -> Vec<Warning> {
    const SYNTAX: u16 = 1681;
    const ZEROFILL: &str = "The ZEROFILL attribute is deprecated and will be removed in a future release. Use the \
                            LPAD function to zero-pad numbers, or store the formatted numbers in a CHAR column.";
    const WIDTH: &str =
        "Integer display width is deprecated and will be removed in a future release.";
    const UNSIGNED: &str = "UNSIGNED for decimal and floating point data types is deprecated and support for it will \
                            be removed in a future release.";
    let mut warnings = Vec::new();
    for ty in columns.iter().map(|column| &column.sql_type) {
        let has_width = match ty.kind {
            Kind::TinyInt(width) => width.is_some_and(|w| w != 1),
            Kind::SmallInt(width)
            | Kind::MediumInt(width)
            | Kind::Int(width)
            | Kind::BigInt(width) => width.is_some(),
            _ => false,
        };
        for (holds, message) in [
            (ty.zerofill, ZEROFILL),
            (has_width, WIDTH),
            (ty.unsigned && !ty.is_integer(), UNSIGNED),
        ] {
            if holds && family == Family::MySql {
                warnings.push(Warning {
                    level: Level::Warning,
                    code: SYNTAX,
                    message: message.to_owned(),
                });
            }
        }
    }
    warnings
}

impl Session {
    /// Carries a definition out and relays the server's answer.
    pub fn define(&mut self, ddl: &Ddl, prepared: &Prepared) -> Outcome<()> {
        let columns = self.with_ids(ddl);
        self.check_rows(ddl, &columns)?;
        let sql = self.definition_text(ddl, &columns)?;
        self.server.put_query(&sql)?;
        self.server.flush()?;
        self.diagnostics.warnings = deprecations(&columns, self.state.family);
        let done = self.relay_answer(Command::Query, &[]);
        // whatever the answer, what was known is not certain any more
        self.shared.accounts.forget(&prepared.plan.names);
        done
    }

    /// The new columns with their ids.
    fn with_ids(&self, ddl: &Ddl) -> Vec<NewColumn> {
        let config = &self.shared.config;
        let table_id = ddl
            .table
            .as_ref()
            .and_then(|t| t.table_id)
            .unwrap_or_else(|| config.keys.random_table_id());
        let mut columns: Vec<NewColumn> = Vec::new();
        for column in &ddl.new_columns {
            let mut column = column.clone();
            column.table_id = table_id;
            column.key_id = config.keys.active_key();
            column.suite = config.suite.id();
            loop {
                column.column_id = config.keys.random_column_id();
                // the first four digits name the companions
                if columns
                    .iter()
                    .all(|c| c.column_id[..2] != column.column_id[..2])
                {
                    break;
                }
            }
            columns.push(column);
        }
        columns
    }

    /// Rows that exist have no value for a new column that needs one.
    fn check_rows(&mut self, ddl: &Ddl, columns: &[NewColumn]) -> Outcome<()> {
        let Some(table) = &ddl.table else {
            return Ok(());
        };
        let Some(column) = columns.iter().find(|c| alter::needs_empty_table(c)) else {
            return Ok(());
        };
        let sql = format!(
            "SELECT 1 FROM {}.{} LIMIT 1",
            onionskin_schema::identifier(&table.database),
            onionskin_schema::identifier(&table.name)
        );
        if self.server.rows(sql.as_bytes())?.is_empty() {
            return Ok(());
        }
        Err(failed(&SchemaError::RowsNeedValues {
            column: column.name.clone(),
        }))
    }

    fn definition_text(&self, ddl: &Ddl, columns: &[NewColumn]) -> Outcome<Vec<u8>> {
        let family = self.state.family;
        let key = self.shared.config.keys.metadata_key();
        let tag = |bytes: &[u8]| key.tag(bytes);
        let internal = || Failure::refused(&errors::INTERNAL, "a definition");
        let existing = |index: usize| -> Outcome<(&Table, &onionskin_schema::Column)> {
            let table = ddl.table.as_deref().ok_or_else(internal)?;
            Ok((table, table.columns.get(index).ok_or_else(internal)?))
        };
        let mut sql = Vec::new();
        for piece in &ddl.pieces {
            match piece {
                DdlPiece::Sql(text) => sql.extend_from_slice(text),
                DdlPiece::Definitions(i) => {
                    let column = columns.get(*i).ok_or_else(internal)?;
                    let parts =
                        physical_definitions(column, family, tag).map_err(|e| failed(&e))?;
                    sql.extend_from_slice(parts.join(", ").as_bytes());
                }
                DdlPiece::Add { column, place } => {
                    let column = columns.get(*column).ok_or_else(internal)?;
                    let place = match place {
                        None => Position::Last,
                        Some(None) => Position::First,
                        Some(Some(name)) => {
                            let table = ddl.table.as_deref().ok_or_else(internal)?;
                            match table.column(name) {
                                Some(after) => Position::After(after),
                                None => {
                                    return Err(Failure::refused(
                                        &errors::UNKNOWN_COLUMN,
                                        format!("'{name}'"),
                                    ));
                                }
                            }
                        }
                    };
                    let parts =
                        alter::add_column(column, place, family, tag).map_err(|e| failed(&e))?;
                    sql.extend_from_slice(parts.join(", ").as_bytes());
                }
                DdlPiece::IndexColumn(i) => {
                    let column = columns.get(*i).ok_or_else(internal)?;
                    let name = column.index_column_name().map_err(|e| failed(&e))?;
                    sql.extend_from_slice(onionskin_schema::identifier(&name).as_bytes());
                }
                DdlPiece::Drop(i) => {
                    let (table, column) = existing(*i)?;
                    let parts = alter::drop_column(table, column).map_err(|e| failed(&e))?;
                    sql.extend_from_slice(parts.join(", ").as_bytes());
                }
                DdlPiece::Rename(i, name) => {
                    let (table, column) = existing(*i)?;
                    let parts = alter::rename_column(table, column, name, family, tag)
                        .map_err(|e| failed(&e))?;
                    sql.extend_from_slice(parts.join(", ").as_bytes());
                }
                DdlPiece::SetDefault(i, default) => {
                    let (table, column) = existing(*i)?;
                    let parts = alter::set_default(table, column, default.as_ref(), family, tag)
                        .map_err(|e| failed(&e))?;
                    sql.extend_from_slice(parts.join(", ").as_bytes());
                }
            }
        }
        Ok(sql)
    }
}
