//! Columns as the server's catalogue describes them.
//!
//! A row event says of a column its type, but not always its sign, and never whether its bytes are
//! binary. If MariaDB writes no metadata, it does not say the name either. So the catalogue is
//! asked once for each table that is followed.

use onionskin_schema::TableName;

use super::error::{BinlogError, BinlogResult};
use crate::client::Client;

/// What the catalogue says of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name.
    pub name: String,
    /// `DATA_TYPE` in lower case: `int`, `varchar`, `inet6`.
    pub data_type: String,
    /// `COLUMN_TYPE`: `int(10) unsigned`, `enum('a','b')`.
    pub column_type: String,
    /// A number without sign.
    pub unsigned: bool,
    /// Character set of texts; `None` for everything else, binary strings included.
    pub charset: Option<String>,
    /// The server computes it.
    pub generated: bool,
    /// The server computes it whenever it is read; MariaDB leaves such columns out of row events.
    pub virtual_column: bool,
}

/// The columns of a table, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumns {
    /// Columns by position.
    pub columns: Vec<Column>,
}

impl TableColumns {
    /// Reads them from `information_schema`; an error if there is no such table.
    pub fn describe(client: &mut Client, table: &TableName) -> BinlogResult<Self> {
        let sql = format!(
            "SELECT column_name, data_type, column_type, character_set_name, extra FROM information_schema.columns \
             WHERE table_schema = {} AND table_name = {} ORDER BY ordinal_position",
            hex_text(&table.database),
            hex_text(&table.name)
        );
        let text = |cell: &Option<Vec<u8>>| {
            cell.as_ref()
                .map(|cell| String::from_utf8_lossy(cell).into_owned())
        };
        let mut columns = Vec::new();
        for row in client.query(&sql)? {
            let [name, data_type, column_type, charset, extra] = row.as_slice() else {
                return Err(BinlogError::Malformed("catalogue"));
            };
            let column_type = text(column_type).unwrap_or_default();
            let extra = text(extra).unwrap_or_default().to_ascii_uppercase();
            // DEFAULT_GENERATED is a default that is an expression.
            let generated = [
                "VIRTUAL GENERATED",
                "STORED GENERATED",
                "PERSISTENT GENERATED",
            ]
            .iter()
            .any(|word| extra.contains(word));
            columns.push(Column {
                name: text(name).unwrap_or_default(),
                data_type: text(data_type).unwrap_or_default().to_ascii_lowercase(),
                unsigned: column_type.contains("unsigned") || column_type.contains("zerofill"),
                column_type,
                charset: text(charset),
                generated,
                virtual_column: extra.contains("VIRTUAL GENERATED"),
            });
        }
        match columns.is_empty() {
            false => Ok(Self { columns }),
            true => Err(BinlogError::TableChanged {
                table: table.clone(),
                detail: "there is no such table".into(),
            }),
        }
    }
}

/// A text as a literal that means the same under every `sql_mode`.
fn hex_text(text: &str) -> String {
    let mut literal = String::from("CONVERT(x'");
    for byte in text.bytes() {
        literal.push_str(&format!("{byte:02x}"));
    }
    literal.push_str("' USING utf8mb4)");
    literal
}
