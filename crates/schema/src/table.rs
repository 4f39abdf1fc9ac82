//! The model: logical tables and columns.

use crate::folding::same_name;
use onionskin_value::{Kind, SqlType};

use crate::base::Base;
use crate::protection::{GramForm, Protection, TokenKind};
use crate::set::Whole;
use crate::surrogate::Surrogate;
use crate::tenant::Tenant;

/// A table as applications see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its database.
    pub database: String,
    /// Its name.
    pub name: String,
    /// Its columns in logical order, companions left out.
    pub columns: Vec<Column>,
    /// The id that binds cells to the table; `Some` if any column is protected.
    pub table_id: Option<[u8; 8]>,
    /// It is a view over a protected table. Its companions are not invisible: `SELECT *` has to be
    /// spelled out.
    pub view: bool,
    /// Of a view, what writing through it has to know of the table behind it; `None` for tables,
    /// and for views of which that is not known.
    pub base: Option<Base>,
    /// Indexes over columns that are masked for the account: no statement of its may read by them,
    /// since the order of the rows would tell the values.
    pub hidden_indexes: Vec<String>,
    /// Columns in unique ones among them: whether the account can give such a column a value
    /// depends on what is masked.
    pub guarded: Vec<String>,
    /// Why the table's definition cannot be trusted, if so. Every statement that names it must be
    /// refused.
    pub damaged: Option<String>,
}

impl Table {
    /// A table of which only the names are known.
    pub fn named(database: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            database: database.into(),
            name: name.into(),
            columns: Vec::new(),
            table_id: None,
            view: false,
            base: None,
            hidden_indexes: Vec::new(),
            guarded: Vec::new(),
            damaged: None,
        }
    }

    /// Whether a statement on this table needs any care: a column is protected, or should be and is
    /// damaged.
    pub fn is_protected(&self) -> bool {
        self.table_id.is_some() || self.damaged.is_some()
    }

    /// How often its protected columns were changed, as their comments say; 0 where an earlier
    /// version wrote them.
    pub fn generation(&self) -> u64 {
        let mut protected = self.protected_columns();
        protected.next().map_or(0, |(_, p)| p.whole.generation())
    }

    /// Whether its only fault is that protected columns are missing which belong to the others. In
    /// a view, and for an account that may not see all columns, that is none.
    pub fn is_part(&self) -> bool {
        let mut protected = self.protected_columns();
        self.damaged.is_some() && protected.any(|(_, p)| matches!(p.whole, Whole::Part(_)))
    }

    /// The same with what is known of another look at its foreign keys: rows of
    /// `information_schema.columns` do not tell of them.
    pub fn with_references_of(&self, known: &Self) -> Self {
        let mut table = self.clone();
        for column in &mut table.columns {
            let before = known.columns.iter().find(|c| c.name == column.name);
            column.refers_to_plaintext = before.is_some_and(|c| c.refers_to_plaintext);
        }
        table
    }

    /// The column with this name; letter case does not count, as in the server.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns
            .iter()
            .find(|column| same_name(&column.name, name))
    }

    /// The columns of the primary key, in the table's order.
    pub fn primary_key(&self) -> impl Iterator<Item = &Column> {
        self.columns
            .iter()
            .filter(|column| column.key == KeyRole::Primary)
    }

    /// The columns by which a row is found again: the primary key; in a view that of the table
    /// behind it, as far as the view shows it.
    pub fn row_key(&self) -> impl Iterator<Item = &Column> {
        let behind = self.base.iter().flat_map(|base| &base.key);
        let behind = behind.filter_map(|index| self.columns.get(*index));
        self.primary_key().chain(behind)
    }

    /// The protected columns.
    pub fn protected_columns(&self) -> impl Iterator<Item = (&Column, &Protection)> {
        self.columns
            .iter()
            .filter_map(|column| Some((column, column.protection.as_ref()?)))
    }

    /// Whose its rows are, if cells of different tenants have different keys.
    pub fn tenant(&self) -> Option<&Tenant> {
        let mut protected = self.protected_columns();
        protected.find_map(|(_, p)| p.capabilities.tenant.as_ref())
    }

    /// The protected column to which a physical column belongs.
    pub fn owner_of(&self, physical_name: &str) -> Option<&Column> {
        self.protected_columns()
            .find(|(_, protection)| {
                protection
                    .names
                    .all()
                    .any(|name| same_name(name, physical_name))
            })
            .map(|(column, _)| column)
    }
}

/// A column as applications see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its logical name.
    pub name: String,
    /// Its logical type; `None` for an unprotected column of a type that is not understood.
    pub sql_type: Option<SqlType>,
    /// The logical type as `information_schema.columns` writes it in COLUMN_TYPE.
    pub type_text: String,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// What a row gets that names no value; `None` if there is no default.
    pub default: Option<Default>,
    /// AUTO_INCREMENT.
    pub auto_increment: bool,
    /// Of a plaintext column that a wildcard of `[protect]` matches: whether it stays plaintext
    /// because of a foreign key ([`mark_references`](crate::mark_references)).
    pub refers_to_plaintext: bool,
    /// ON UPDATE CURRENT_TIMESTAMP.
    pub on_update: bool,
    /// Computed from other columns.
    pub generated: bool,
    /// Part in keys.
    pub key: KeyRole,
    /// `None` for a plaintext column.
    pub protection: Option<Protection>,
    /// Left out of `SELECT *`.
    pub invisible: bool,
    /// The user's own comment.
    pub comment: String,
    /// Whether the column's own definition named its character set or collation. MySQL remembers
    /// that and prints it; known for protected columns only.
    pub explicit_collation: bool,
}

impl Column {
    /// Why a wildcard of `[protect]` leaves it plaintext, if it does.
    pub fn surrogate(&self) -> Surrogate {
        let is_number = self.sql_type.is_some_and(|ty| ty.is_integer());
        match () {
            () if self.auto_increment => Surrogate::AutoIncrement,
            () if self.refers_to_plaintext => Surrogate::Reference,
            () if self.generated && is_number => Surrogate::Generated,
            () => Surrogate::No,
        }
    }

    /// Whether a new row must have a value for it.
    pub fn is_required(&self) -> bool {
        self.default.is_none() && !self.nullable
    }

    /// Whether it is one of MySQL's columns that allow NULL and have no default, not even NULL:
    /// `ALTER COLUMN … DROP DEFAULT` makes them. A new row without a value for one is an error.
    /// ENUM is NULL then. Of plain columns this is not known, and no matter.
    pub fn has_lost_default(&self) -> bool {
        let is_enum = |ty: &SqlType| matches!(ty.kind, Kind::Enum(_));
        self.protection.is_some()
            && self.nullable
            && self.default.is_none()
            && !self.sql_type.as_ref().is_some_and(is_enum)
    }

    /// The sealed column's name, if this column is protected.
    pub fn enc_name(&self) -> Option<&str> {
        Some(self.protection.as_ref()?.names.enc.as_str())
    }

    /// The expression by which the default of a protected column is computed.
    pub fn computed_default(&self) -> Option<&str> {
        match &self.default {
            Some(Default::Literal(DefaultLiteral::Expression(text))) => Some(text),
            _ => None,
        }
    }

    /// The name of the equality tokens' column.
    pub fn eq_name(&self) -> Option<&str> {
        self.protection.as_ref()?.names.eq.as_deref()
    }

    /// The name of the order keys' column.
    pub fn ord_name(&self) -> Option<&str> {
        self.protection.as_ref()?.names.ord.as_deref()
    }

    /// The name of the gram tokens' column.
    pub fn gram_name(&self) -> Option<&str> {
        self.protection.as_ref()?.names.gram.as_deref()
    }

    /// The gram tokens' column and its form.
    pub fn grams(&self) -> Option<(&str, GramForm)> {
        let protection = self.protection.as_ref()?;
        Some((protection.names.gram.as_deref()?, protection.grams))
    }

    /// The column that decides equality, and how its values are made.
    pub fn equality_column(&self) -> Option<(&str, TokenKind)> {
        self.protection.as_ref()?.names.equality_column()
    }
}

/// What a row gets that names no value for a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Default {
    /// Of a protected column: the proxy fills it in, or has it computed.
    Literal(DefaultLiteral),
    /// Of a plaintext column, in the server's words: COLUMN_DEFAULT of
    /// `information_schema.columns`.
    Server(String),
}

/// The default of a protected column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultLiteral {
    /// NULL.
    Null,
    /// The value in the text form the server prints for the type (`1.50` for a `DECIMAL(5,2)`
    /// default of 1.5): UTF-8 for text, the bytes themselves for binary types.
    Value(Vec<u8>),
    /// An expression that is computed for each row, the present time among them, in the server's
    /// words: see [`computed_default`](crate::computed_default).
    Expression(String),
}

/// A column's part in the table's keys, as DESCRIBE tells it. Greater means more important.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyRole {
    /// In no key, or not as its first column.
    None,
    /// First column of a key that is not unique.
    Multiple,
    /// A unique key of its own.
    Unique,
    /// In the primary key.
    Primary,
}

impl KeyRole {
    /// From COLUMN_KEY.
    pub fn from_column_key(text: &str) -> Self {
        match text {
            "PRI" => Self::Primary,
            "UNI" => Self::Unique,
            "MUL" => Self::Multiple,
            _ => Self::None,
        }
    }

    /// As COLUMN_KEY.
    pub fn as_column_key(self) -> &'static str {
        match self {
            Self::Primary => "PRI",
            Self::Unique => "UNI",
            Self::Multiple => "MUL",
            Self::None => "",
        }
    }
}
