//! Temporary tables: their definitions, and rows as literals that mean the same in any session.

use onionskin_plan::{Carried, ColumnUse, ScratchColumn, ScratchRead, TOO_LONG, errors};
use onionskin_schema::{
    Column, Default, DefaultLiteral, KeyRole, default_collation, default_sql, time_fraction,
};
use onionskin_value::{Charset, Family, FormatContext, Kind, TimeZone, format_text};

use super::documents::Documents;
use crate::error::{Failure, Outcome, too_long};
use crate::exchange::Rows;

/// Bytes of an `INSERT`, about.
const MAX_BATCH_BYTES: usize = 512 << 10;
/// Bytes of the longest key that InnoDB and Aria take.
const KEY: u64 = 2000;
/// The same of MyISAM.
const SHORT_KEY: u64 = 1000;

/// Quotes a name.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The temporary table's full name.
pub(super) fn full_name(read: &ScratchRead) -> String {
    format!("{}.{}", quoted(&read.table.database), quoted(&read.name))
}

/// The column of a table that is written to by which a row is found again: its number among those
/// that were read.
pub(super) const ROW: &str = "`onionskin$key`";
/// The column of such a table that is no longer NULL when a statement has changed the row.
pub(super) const CHANGED: &str = "`onionskin$changed`";

const MYISAM: &str = "ENGINE=MyISAM";
const ARIA: &str = "ENGINE=Aria TRANSACTIONAL=0";
const INNODB: &str = "ENGINE=InnoDB";

/// The storage engine of a table that is read.
fn engine(read: &ScratchRead, family: Family) -> &'static str {
    let mut columns = read.columns.iter().map(|c| &read.table.columns[c.index]);
    match family {
        Family::MySql => INNODB,
        // Aria does not keep what stands below a NULL, and takes one NULL for a change of another
        Family::MariaDb if !read.key.is_empty() => MYISAM,
        Family::MariaDb if columns.any(depends_on_engine) => INNODB,
        Family::MariaDb => ARIA,
    }
}

/// Whether what MariaDB answers of a column depends on the table's storage engine.
fn depends_on_engine(column: &Column) -> bool {
    column.sql_type.is_some_and(|ty| match ty.kind {
        // its bits may be those of another row that Aria or MyISAM has read
        Kind::Bit { .. } => true,
        // an average with more than 65 digits is cut where the plan stores it
        Kind::Decimal { precision, .. } => precision > 50,
        _ => false,
    })
}

/// `CREATE TEMPORARY TABLE …`: the logical columns, and what keys say about them.
///
/// `with_defaults`: see [`needs_defaults`].
pub(super) fn definition(
    read: &ScratchRead,
    documents: &Documents,
    with_defaults: bool,
    family: Family,
) -> String {
    let columns = || read.columns.iter().map(|c| &read.table.columns[c.index]);
    let mut parts = Vec::new();
    let written = !read.key.is_empty();
    let engine = engine(read, family);
    let longest = match engine {
        MYISAM => SHORT_KEY,
        _ => KEY,
    };
    let fits_key = |columns: &[&Column]| fits_key(columns, longest);
    let primary: Vec<&Column> = columns().filter(|c| c.key == KeyRole::Primary).collect();
    let primary_fits = !primary.is_empty() && fits_key(&primary);
    let mut counter = false;
    for (index, column) in read.columns.iter().map(|c| c.index).zip(columns()) {
        let ty = match &read.collation {
            Some(of_table) => column_type_beside(column, of_table, family),
            None => column_type(column, family),
        };
        let mut text = format!("{} {ty}", quoted(&column.name));
        if !column.nullable {
            text.push_str(" NOT NULL");
        } else {
            text.push_str(" NULL");
        }
        let first_of_key = match column.key {
            KeyRole::Primary => {
                primary_fits && primary.first().is_some_and(|c| std::ptr::eq(*c, column))
            }
            KeyRole::Unique | KeyRole::Multiple => fits_key(&[column]),
            KeyRole::None => false,
        };
        if column.auto_increment && first_of_key && !counter {
            counter = true;
            text.push_str(" AUTO_INCREMENT");
        } else if column.auto_increment && read.defines {
            // what servers make of it
            text.push_str(" DEFAULT 0");
        } else if let Some(default) =
            default(column, family, written && with_defaults || read.defines)
        {
            text.push_str(" DEFAULT ");
            text.push_str(&default);
        }
        if column.on_update {
            text.push_str(&format!(" ON UPDATE CURRENT_TIMESTAMP({})", fsp(column)));
        }
        if column.invisible {
            text.push_str(" INVISIBLE");
        }
        if read.defines && !column.comment.is_empty() {
            let comment = column.comment.replace('\\', "\\\\").replace('\'', "''");
            text.push_str(&format!(" COMMENT '{comment}'"));
        }
        if documents.contains(&index) {
            text.push_str(&format!(" CHECK (json_valid({}))", quoted(&column.name)));
        }
        parts.push(text);
    }
    if primary_fits {
        let names: Vec<String> = primary.iter().map(|c| quoted(&c.name)).collect();
        parts.push(format!("PRIMARY KEY ({})", names.join(", ")));
    }
    for column in columns().filter(|c| fits_key(&[c])) {
        match column.key {
            KeyRole::Unique => parts.push(format!("UNIQUE KEY ({})", quoted(&column.name))),
            KeyRole::Multiple => parts.push(format!("KEY ({})", quoted(&column.name))),
            _ => {}
        }
    }
    if columns().next().is_none() {
        parts.push("`onionskin$row` TINYINT NULL".into());
    }
    if written {
        parts.push(format!("{ROW} INT UNSIGNED NULL INVISIBLE"));
        parts.push(format!(
            "{CHANGED} TIMESTAMP(6) NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP(6) INVISIBLE"
        ));
    }
    let collation = match &read.collation {
        Some(collation) => format!("COLLATE={collation}"),
        None => "CHARSET=utf8mb4".into(),
    };
    format!(
        "CREATE TEMPORARY TABLE {} ({}) {engine} DEFAULT {collation}",
        full_name(read),
        parts.join(", ")
    )
}

/// Whether a statement may take the defaults of columns that allow NULL.
///
/// A table whose changed rows get the present time MySQL compares by their bytes, and the bytes of
/// a NULL are those of the default where the row was read, and zeros where a statement has set it.
/// With another default than NULL, a NULL that stays one counts as changed.
pub(super) fn needs_defaults(sql: &[u8]) -> bool {
    const TAKING: [&[u8]; 3] = [b"default", b"insert", b"replace"];
    TAKING.iter().any(|word| mentions(sql, word))
}

fn mentions(sql: &[u8], word: &[u8]) -> bool {
    let mut parts = sql.windows(word.len());
    parts.any(|part| part.eq_ignore_ascii_case(word))
}

/// The statement that lets a table of this many rows be as little known to the optimizer as the
/// server's, if there is need for one.
///
/// Aria counts its rows exactly. MariaDB then reads a table of no rows or of one before it plans
/// the statement, so that no temporary table of its own is in the way, which shows: in the types
/// and flags of results, in a BIT that is a number or bytes. Statements that have no use for one,
/// such as those that look up a row, are spared the time.
pub(super) fn uncounted(
    read: &ScratchRead,
    family: Family,
    rows: u64,
    sql: &[u8],
) -> Option<String> {
    const GATHERING: [&[u8]; 5] = [b"group", b"distinct", b"union", b"over", b"order"];
    let counts = rows <= 1 && engine(read, family) == ARIA;
    (counts && GATHERING.iter().any(|word| mentions(sql, word))).then(|| {
        // that a row may be too long is an error in the strict mode, even where none is
        let table = full_name(read);
        format!("SET STATEMENT innodb_strict_mode = 0 FOR ALTER TABLE {table} {INNODB}")
    })
}

/// A unique key of a table: its name, and its columns as their places among the table's.
pub(super) struct UniqueKey {
    pub name: String,
    pub columns: Vec<usize>,
}

/// The temporary table of rows that new ones meet: with the unique keys of the table, in their
/// order, by which a server tells which of several rows is met. No number is generated in it: a row
/// that asks for one has 0.
pub(super) fn definition_of_met(
    read: &ScratchRead,
    keys: &[UniqueKey],
    unknown: &[usize],
    family: Family,
) -> Outcome<String> {
    let mut parts = Vec::new();
    for c in &read.columns {
        let column = &read.table.columns[c.index];
        let mut text = format!("{} {}", quoted(&column.name), column_type(column, family));
        let null = column.nullable || unknown.contains(&c.index);
        text.push_str(if null { " NULL" } else { " NOT NULL" });
        let known = !unknown.contains(&c.index);
        let default = default(column, family, true).filter(|_| known);
        if column.auto_increment {
            text.push_str(" DEFAULT 0");
        } else if let Some(default) = default {
            text.push_str(" DEFAULT ");
            text.push_str(&default);
        }
        if column.on_update {
            text.push_str(&format!(" ON UPDATE CURRENT_TIMESTAMP({})", fsp(column)));
        }
        parts.push(text);
    }
    let mut longest = 0;
    for key in keys {
        let mut bytes = 0;
        let mut names = Vec::new();
        for &index in &key.columns {
            let column = &read.table.columns[index];
            let unfit = || {
                let about = format!("{}.{} as a part of a key", read.table.name, column.name);
                Failure::refused(&errors::SCRATCH_TYPE, about)
            };
            let in_primary = key.name == "PRIMARY" && unknown.contains(&index);
            if in_primary || !read.columns.iter().any(|c| c.index == index) {
                return Err(unfit());
            }
            if !fits_key(&[column], KEY) && family == Family::MySql {
                return Err(unfit());
            }
            bytes += column.sql_type.map_or(KEY, |ty| ty.payload_max() + 3);
            names.push(quoted(&column.name));
        }
        longest = longest.max(bytes);
        let names = names.join(", ");
        parts.push(match key.name.as_str() {
            "PRIMARY" => format!("PRIMARY KEY ({names})"),
            name => format!("UNIQUE KEY {} ({names})", quoted(name)),
        });
    }
    parts.push(format!("{ROW} INT UNSIGNED NULL"));
    parts.push(format!(
        "{CHANGED} TIMESTAMP(6) NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP(6)"
    ));
    let engine = match family {
        Family::MariaDb if longest <= SHORT_KEY => "ENGINE=MyISAM",
        _ => "ENGINE=InnoDB",
    };
    Ok(format!(
        "CREATE TEMPORARY TABLE {} ({}) {engine} DEFAULT CHARSET=utf8mb4",
        full_name(read),
        parts.join(", ")
    ))
}

/// Digits of a column's fraction of a second.
fn fsp(column: &Column) -> u8 {
    column.sql_type.and_then(|t| time_fraction(&t)).unwrap_or(0)
}

/// Whether plain columns are read: whether they are those of the snapshot is asked behind the read.
/// A temporary table of the client's may stand before the table, which then is not the one that the
/// catalog knows.
pub(super) fn is_checked(read: &ScratchRead) -> bool {
    let plain = |c: &ScratchColumn| c.carried != Carried::Sealed;
    read.columns.iter().any(plain)
}

/// The statement that tells the columns of the table as this session sees it.
pub(super) fn question(read: &ScratchRead) -> String {
    let (database, table) = (quoted(&read.table.database), quoted(&read.table.name));
    format!("SHOW FULL COLUMNS FROM {database}.{table}")
}

/// Whether the answer to [`question`] has the columns that were read.
pub(super) fn are_columns(read: &ScratchRead, rows: &Rows) -> bool {
    let is_text = |cell: Option<&Option<Vec<u8>>>, text: &str| {
        cell.and_then(Option::as_deref)
            .is_some_and(|c| c.eq_ignore_ascii_case(text.as_bytes()))
    };
    let plain = read.columns.iter().filter(|c| c.carried != Carried::Sealed);
    let mut columns = plain.map(|c| &read.table.columns[c.index]);
    columns.all(|column| {
        let Some(row) = rows.iter().find(|r| is_text(r.first(), &column.name)) else {
            return false;
        };
        let text = column.sql_type.filter(|t| t.is_character());
        let collation = text.and_then(|t| t.collation).map(|c| c.name());
        is_text(row.get(1), &column.type_text)
            && collation.is_none_or(|c| is_text(row.get(2), c))
            && is_text(row.get(3), if column.nullable { "YES" } else { "NO" })
    })
}

fn fits_key(columns: &[&Column], longest: u64) -> bool {
    let mut bytes = 0;
    for column in columns {
        let Some(ty) = &column.sql_type else {
            return false;
        };
        // their keys are of prefixes
        let text = column.type_text.to_ascii_lowercase();
        let is_long = text.contains("text") || text.contains("blob") || text == "json";
        if is_long && !ty.is_enumerated() {
            return false;
        }
        bytes += ty.payload_max() + 3;
    }
    bytes <= longest
}

pub(super) fn column_type(column: &Column, family: Family) -> String {
    let mut text = match (&column.protection, &column.sql_type) {
        // MariaDB's, too: functions know a JSON column by the CHECK that goes with the word
        (_, Some(ty)) if ty.kind == Kind::Json => return "json".into(),
        (Some(_), Some(ty)) => ty.to_sql(family),
        _ => column.type_text.clone(),
    };
    if let Some(collation) = column.sql_type.and_then(|t| t.collation) {
        text.push_str(&format!(
            " CHARACTER SET {} COLLATE {}",
            collation.charset().name(),
            collation.name()
        ));
    }
    text
}

/// The same in a table of this collation. MySQL remembers which character sets and collations were
/// written, and hands that on to columns that are made from these; so only what has to be written
/// is.
fn column_type_beside(column: &Column, of_table: &str, family: Family) -> String {
    let text = column_type(column, family);
    let Some(collation) = column.sql_type.and_then(|t| t.collation) else {
        return text;
    };
    let of_type = text
        .rfind(" CHARACTER SET ")
        .filter(|_| family == Family::MySql);
    let Some(of_type) = of_type else {
        return text;
    };
    let (bare, charset) = (&text[..of_type], collation.charset().name());
    if collation.name() == of_table && !column.explicit_collation {
        return bare.to_owned();
    }
    match default_collation(charset, family) == collation.name() {
        true => format!("{bare} CHARACTER SET {charset}"),
        false => format!(
            "{bare} CHARACTER SET {charset} COLLATE {}",
            collation.name()
        ),
    }
}

/// A default tells clients, by a flag, that the column has one. In a table that is `written`, it is
/// also what DEFAULT means.
pub(super) fn default(column: &Column, family: Family, written: bool) -> Option<String> {
    if (column.nullable && !written) || column.generated {
        return None;
    }
    let large = column
        .sql_type
        .is_some_and(|t| (t.is_character() || t.is_binary()) && t.payload_max() >= 0xFF)
        && column.type_text.to_ascii_lowercase().contains(['b', 't'])
        && ["text", "blob"]
            .iter()
            .any(|w| column.type_text.to_ascii_lowercase().contains(w));
    let literal = |bytes: &[u8]| {
        let value = match column.sql_type.is_some_and(|t| t.is_binary()) {
            true => format!("x'{}'", hex(bytes)),
            false => format!("_utf8mb4 x'{}'", hex(bytes)),
        };
        match large {
            true => format!("({value})"),
            false => value,
        }
    };
    match column.default.as_ref()? {
        // expressions; where DEFAULT stands for one, the statement was refused
        Default::Server(text) if written && is_computed(text, family) => None,
        Default::Literal(DefaultLiteral::Null) => None,
        Default::Literal(DefaultLiteral::Expression(text)) => Some(default_sql(text, family)),
        Default::Literal(DefaultLiteral::Value(bits))
            if column.sql_type.is_some_and(|t| t.is_bit()) =>
        {
            String::from_utf8(bits.clone()).ok()
        }
        Default::Literal(DefaultLiteral::Value(bytes)) => Some(literal(bytes)),
        // MariaDB's words are SQL, MySQL's are a value
        Default::Server(text) if family == Family::MariaDb => Some(text.clone()),
        Default::Server(text) => {
            let lower = text.to_ascii_lowercase();
            if lower.starts_with("current_timestamp") || lower.starts_with("b'") {
                return Some(text.clone());
            }
            // bytes are shown as a number
            if lower.starts_with("0x") && column.sql_type.is_some_and(|t| t.is_binary()) {
                return Some(text.clone());
            }
            Some(literal(text.as_bytes()))
        }
    }
}

/// Whether a default has to be computed, in a way that only the server can.
fn is_computed(text: &str, family: Family) -> bool {
    let lower = text.to_ascii_lowercase();
    match family {
        Family::MariaDb => lower.contains("nextval"),
        Family::MySql => lower.contains('(') && !lower.starts_with("current_timestamp"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn put_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// Makes `INSERT` statements of rows.
pub(super) struct Loader<'r> {
    read: &'r ScratchRead,
    family: Family,
    head: Vec<u8>,
    /// The statement so far.
    pub sql: Vec<u8>,
    utc: TimeZone,
    scratch: Vec<u8>,
    /// Bytes of all rows so far.
    pub bytes: u64,
}

impl<'r> Loader<'r> {
    pub fn new(read: &'r ScratchRead, family: Family) -> Self {
        let mut names: Vec<String> = read
            .columns
            .iter()
            .map(|c| quoted(&read.table.columns[c.index].name))
            .collect();
        if !read.key.is_empty() {
            names.push(ROW.into());
        }
        let names = match names.is_empty() {
            true => "`onionskin$row`".into(),
            false => names.join(", "),
        };
        let head = format!("INSERT INTO {} ({names}) VALUES ", full_name(read));
        Loader {
            read,
            family,
            head: head.into_bytes(),
            sql: Vec::new(),
            utc: TimeZone::parse("+00:00", ""),
            scratch: Vec::new(),
            bytes: 0,
        }
    }

    pub fn begin_row(&mut self) {
        match self.sql.is_empty() {
            true => self.sql.extend_from_slice(&self.head),
            false => self.sql.push(b','),
        }
        self.sql.push(b'(');
    }

    /// Adds the number of a row of a table that is written to.
    pub fn number(&mut self, row: usize) {
        if !self.read.columns.is_empty() {
            self.sql.push(b',');
        }
        self.sql.extend_from_slice(row.to_string().as_bytes());
    }

    /// Whether the statement is long enough to be sent.
    pub fn end_row(&mut self) -> bool {
        self.sql.push(b')');
        self.sql.len() >= MAX_BATCH_BYTES
    }

    /// Adds a cell: an opened payload where the column is sealed, the server's text elsewhere.
    pub fn cell(&mut self, n: usize, cell: Option<&[u8]>) -> Outcome<()> {
        if n > 0 {
            self.sql.push(b',');
        }
        let Some(column) = self.read.columns.get(n) else {
            self.sql.push(b'1');
            return Ok(());
        };
        let Some(cell) = cell else {
            self.sql.extend_from_slice(b"NULL");
            return Ok(());
        };
        let used = ColumnUse {
            table: self.read.table.clone(),
            index: column.index,
        };
        self.bytes += cell.len() as u64 + 1;
        match column.carried {
            Carried::Sealed => self.payload(&used, cell),
            carried => put_carried(carried, &used, cell, &mut self.sql),
        }
    }

    fn quote(&mut self, text: &[u8]) {
        self.sql.push(b'\'');
        self.sql.extend_from_slice(text);
        self.sql.push(b'\'');
    }

    /// An opened value.
    fn payload(&mut self, used: &ColumnUse, payload: &[u8]) -> Outcome<()> {
        let Some(ty) = used.column().sql_type.as_ref() else {
            return Err(Failure::refused(&errors::INTERNAL, used.path()));
        };
        let ctx = FormatContext {
            time_zone: &self.utc,
            family: self.family,
            results_charset: Charset::Binary,
            pad_char: false,
        };
        let damaged = |_| Failure::refused(&errors::TAMPERED, used.path());
        let mut text = std::mem::take(&mut self.scratch);
        text.clear();
        match ty.kind {
            _ if ty.is_shown_inexactly() => {
                let value = ty.real(payload);
                let value =
                    value.ok_or_else(|| Failure::refused(&errors::TAMPERED, used.path()))?;
                self.sql.extend_from_slice(format!("{value:e}").as_bytes());
            }
            // by number: names are looked up by rules of their own, and 0 has none
            Kind::Enum(members) if payload == [0, 0] => {
                // to MySQL the text '0' is the value of an error, unless a member is called so
                if self.family == Family::MariaDb || members.has(b"0") {
                    return Err(Failure::refused(&errors::SCRATCH_TYPE, used.path()));
                }
                self.quote(b"0");
            }
            Kind::Enum(_) | Kind::Set(_) => {
                format_text(ty, payload, &ctx, &mut text).map_err(damaged)?;
                let number = payload
                    .iter()
                    .fold(0u64, |n, byte| n << 8 | u64::from(*byte));
                self.sql.extend_from_slice(number.to_string().as_bytes());
            }
            Kind::Json => {
                format_text(ty, payload, &ctx, &mut text).map_err(damaged)?;
                introduce(Charset::Utf8mb4, &mut self.sql);
                put_hex(&text, &mut self.sql);
                self.sql.push(b'\'');
            }
            _ => {
                format_text(ty, payload, &ctx, &mut text).map_err(damaged)?;
                if ty.is_numeric() || ty.kind == Kind::Year {
                    self.sql.extend_from_slice(&text);
                    // without an exponent it is an integer, which has no sign
                    if text == b"-0" {
                        self.sql.extend_from_slice(b"e0");
                    }
                } else if ty.is_temporal() {
                    self.quote(&text);
                } else {
                    let charset = match ty.is_fixed_binary() {
                        // a text, whatever the session's character set is
                        true => Charset::Latin1,
                        false => ty.charset(),
                    };
                    introduce(charset, &mut self.sql);
                    put_hex(&text, &mut self.sql);
                    self.sql.push(b'\'');
                }
            }
        }
        self.scratch = text;
        Ok(())
    }
}

/// Begins a string of hexadecimal digits.
pub(super) fn introduce(charset: Charset, out: &mut Vec<u8>) {
    if charset != Charset::Binary {
        out.push(b'_');
        out.extend_from_slice(charset.name().as_bytes());
        out.push(b' ');
    }
    out.extend_from_slice(b"x'");
}

/// Appends what a server has sent in one of these forms as a literal.
pub(super) fn put_carried(
    carried: Carried,
    used: &ColumnUse,
    cell: &[u8],
    out: &mut Vec<u8>,
) -> Outcome<()> {
    let unfit = || Failure::refused(&errors::SCRATCH_TYPE, used.path());
    match carried {
        Carried::Sealed => return Err(Failure::refused(&errors::INTERNAL, used.path())),
        Carried::Number => {
            let number = |b: &u8| b.is_ascii_digit() || b"+-.eE".contains(b);
            if cell.is_empty() || !cell.iter().all(number) {
                return Err(unfit());
            }
            out.extend_from_slice(cell);
        }
        Carried::Hex if cell == TOO_LONG => return Err(too_long()),
        Carried::Hex => {
            if !cell.iter().all(u8::is_ascii_hexdigit) {
                return Err(unfit());
            }
            let ty = used.column().sql_type.filter(|t| !t.is_json_value());
            introduce(ty.map_or(Charset::Utf8mb4, |t| t.charset()), out);
            out.extend_from_slice(cell);
            out.push(b'\'');
        }
        Carried::Quoted => {
            let plain = |b: &u8| b.is_ascii_hexdigit() || b" -:.+".contains(b);
            if !cell.iter().all(plain) {
                return Err(unfit());
            }
            // in a session whose character set is binary it would be 36 bytes and no UUID
            let ty = used.column().sql_type;
            if ty.is_some_and(|ty| ty.is_fixed_binary()) {
                out.extend_from_slice(b"_latin1");
            }
            out.push(b'\'');
            out.extend_from_slice(cell);
            out.push(b'\'');
        }
        Carried::Epoch => {
            let number = |b: &u8| b.is_ascii_digit() || *b == b'.';
            if cell.is_empty() || !cell.iter().all(number) {
                return Err(unfit());
            }
            if cell.iter().all(|b| b"0.".contains(b)) {
                out.extend_from_slice(b"'0000-00-00 00:00:00'");
            } else {
                out.extend_from_slice(b"FROM_UNIXTIME(");
                out.extend_from_slice(cell);
                out.push(b')');
            }
        }
    }
    Ok(())
}
