//! Columns that are added to tables with rows.
//!
//! `ADD COLUMN … NOT NULL DEFAULT 'x'` gives all rows one value, and so one sealed cell is enough
//! for all of them: cells belong to a column, not to a row, and an UPDATE of many rows seals its
//! constant once, too. The cell and its companions stand in the statement as the defaults of the
//! physical columns. So the server writes them in the moment in which the columns appear: no row is
//! ever without them. The defaults stay until the column's definition changes: a row of somebody
//! who does not know the column yet gets what the client's definition says. The proxy always names
//! it.

use onionskin_crypt::{CellFormat, ColumnCipher, ColumnId};
use onionskin_physical::companions;
use onionskin_plan::grams::most_numbers;
use onionskin_plan::{Ddl, errors};
use onionskin_schema::{DefaultLiteral, Filling, GramForm, NewColumn, Table, alter, identifier};
use onionskin_value::{Context, Family, Kind, SqlMode, SqlType, Stored, TimeZone, store};

use crate::bind::{default_of_definition, implicit_value};
use crate::error::{Failure, Outcome};
use crate::hex::put_hex;
use crate::session::Session;

impl Session {
    /// Gives new columns what the rows of the table get in them. Refuses those whose values are not
    /// one constant.
    pub(crate) fn fill_rows(&mut self, ddl: &Ddl, columns: &mut [NewColumn]) -> Outcome<()> {
        let Some(table) = &ddl.table else {
            return Ok(());
        };
        let is_empty =
            |column: &NewColumn| alter::needs_values(column) && column.filling.is_empty();
        if !columns.iter().any(is_empty) {
            return Ok(());
        }
        let sql = format!("SELECT 1 FROM {} LIMIT 1", path(table));
        if self.server.rows(sql.as_bytes())?.is_empty() {
            return Ok(());
        }
        for column in columns.iter_mut().filter(|column| is_empty(column)) {
            let Some(payload) = self.constant(column, table)? else {
                return Err(needs_migration(column, table, self.state.family));
            };
            let cipher = self.cipher_of_new(column)?;
            let family = self.state.family;
            let sealed = sealed_expressions(&cipher, column, table, family, &payload)?;
            let defaults = sealed.into_iter();
            column.filling = defaults
                .map(|(name, expression)| (name, Filling::Default(expression)))
                .collect();
        }
        Ok(())
    }

    /// The one value that all rows get; `None` if it is not known here.
    fn constant(&self, column: &NewColumn, table: &Table) -> Outcome<Option<Vec<u8>>> {
        let ty = &column.sql_type;
        let input = match &column.default {
            // the server would look at the condition, and tell its text
            _ if !column.checks.is_empty() => return Ok(None),
            Some(DefaultLiteral::Value(text)) => default_of_definition(ty, text),
            None if !column.nullable && has_implicit_value(ty) => implicit_value(ty),
            _ => return Ok(None),
        };
        let context = Context {
            sql_mode: SqlMode::empty(),
            time_zone: &TimeZone::UTC,
            ..self
                .state
                .context(&column.name, &table.database, &table.name)
        };
        let (mut payload, mut warnings) = (Vec::new(), Vec::new());
        let is_stored = match store(ty, input, &context, &mut payload, &mut warnings) {
            Ok(Stored::Null) | Err(_) => false,
            Ok(_) => warnings.is_empty(),
        };
        Ok(is_stored.then_some(payload))
    }

    /// The cipher of a column that has its ids.
    pub(crate) fn cipher_of_new(
        &self,
        column: &NewColumn,
    ) -> Outcome<std::sync::Arc<ColumnCipher>> {
        let cells = CellFormat::from_numbers(column.suite, column.cell_version)
            .ok_or_else(|| Failure::refused(&errors::INTERNAL, &column.name))?;
        let id = ColumnId {
            table: column.table_id,
            column: column.column_id,
        };
        let join = column.capabilities.join.as_deref();
        let keys = &self.shared.config.keys;
        keys.column_cipher(cells, column.key_id, id, join)
            .map_err(|e| Failure::key(&e, &column.name))
    }
}

/// Whether both servers fill such a column without being asked, and say nothing.
fn has_implicit_value(ty: &SqlType) -> bool {
    let is_text = (ty.is_character() || ty.is_binary()) && ty.kind != Kind::Json;
    let is_number =
        ty.is_numeric() || ty.is_bit() || matches!(ty.kind, Kind::Enum(_) | Kind::Set(_));
    (is_text || is_number) && !ty.is_temporal() && !ty.is_fixed_binary()
}

/// What the physical columns hold, as expressions.
pub(crate) fn sealed_expressions(
    cipher: &ColumnCipher,
    column: &NewColumn,
    table: &Table,
    family: Family,
    payload: &[u8],
) -> Outcome<Vec<(String, String)>> {
    let ty = &column.sql_type;
    let names = column.names();
    let (mut weights, mut filling) = (Vec::new(), Vec::new());
    // a literal would be shown in the definition as a text, which its bytes are not
    let bytes = |bytes: &[u8]| {
        let mut literal = Vec::new();
        put_hex(bytes, &mut literal);
        let literal = String::from_utf8_lossy(&literal).into_owned();
        format!("UNHEX({})", literal.trim_start_matches('x'))
    };
    let mut made = Vec::new();
    cipher
        .seal(payload, &mut made)
        .map_err(|e| Failure::seal(&e, &column.name))?;
    filling.push((names.enc.clone(), bytes(&made)));
    let weighed = |e| Failure::refused(&errors::VALUE, format!("{} ({e})", column.name));
    if let Some(name) = &names.eq {
        made.clear();
        companions::equality_token(
            cipher,
            ty,
            &column.capabilities,
            payload,
            &mut weights,
            &mut made,
        )
        .map_err(weighed)?;
        filling.push((name.clone(), bytes(&made)));
    }
    if let Some(name) = &names.ord {
        made.clear();
        companions::order_key(
            cipher,
            ty,
            &column.capabilities,
            payload,
            &mut weights,
            &mut made,
        )
        .map_err(weighed)?;
        filling.push((name.clone(), bytes(&made)));
    }
    if let Some(name) = &names.gram {
        made.clear();
        let form = GramForm::of(family);
        let most = most_numbers(table);
        companions::gram_tokens(cipher, ty, form, most, payload, &mut made).map_err(weighed)?;
        // words of letters and digits, or numbers with commas between them
        let text = String::from_utf8_lossy(&made).into_owned();
        filling.push((
            name.clone(),
            match form {
                GramForm::Words => format!("'{text}'"),
                GramForm::Numbers => format!("CAST('{text}' AS JSON)"),
            },
        ));
    }
    Ok(filling)
}

/// A table's name in a statement.
pub(crate) fn path(table: &Table) -> String {
    format!(
        "{}.{}",
        identifier(&table.database),
        identifier(&table.name)
    )
}

/// Refuses a column whose values rows would get one by one. A default's text is left out, for
/// errors are logged.
fn needs_migration(column: &NewColumn, table: &Table, family: Family) -> Failure {
    let (name, ty) = (&column.name, column.sql_type.to_sql(family));
    let null = if column.nullable { "" } else { " NOT NULL" };
    let about = format!(
        "add column {name} as NULL without DEFAULT, give rows their values with UPDATE, then onionskin migrate {}.{} --modify \"{name} {ty}{null}\" with the rest of its definition",
        table.database, table.name
    );
    Failure::refused(&errors::MIGRATION, about)
}
