//! What planning decides: the text for the server with its slots, and what to do with the result.
//!
//! A literal in the statement and a bound parameter are the same thing, a [`Source`]. Where the
//! server must not see one, the text has a [`Slot`]: which column, for which [`Purpose`], from
//! which source. Migration and restore fill the same slots from rows instead of statements.

use std::sync::Arc;

use onionskin_schema::{Column, Table, TableName};
use onionskin_value::SqlType;

use crate::errors::Refusal;
use crate::facts::Facts;
use crate::finishing::{Aggregate, Finish, Test};

mod by_name;
mod definition;
mod engine;

pub use by_name::{Argument, Around, ByName, Parameter, StatementText};
pub use definition::{
    AliasMarks, Copied, Ddl, DdlPiece, KeptPlain, OfDatabase, Prefixed, Redefined, Reference,
    Refit, Refitted,
};
pub use engine::{
    Carried, Computed, Effect, Load, MetRows, NamedBy, NewRows, NewTable, NewValues, Renamed,
    Scratch, ScratchColumn, ScratchRead, ScratchWrite, TOO_LONG, Written, WrittenColumn,
};

/// A column of a protected table, as plans refer to it.
#[derive(Clone, Debug)]
pub struct ColumnUse {
    /// Its table.
    pub table: Arc<Table>,
    /// Its place among the table's columns.
    pub index: usize,
}

impl ColumnUse {
    /// The column itself.
    pub fn column(&self) -> &Column {
        &self.table.columns[self.index]
    }

    /// The name of its sealed column.
    pub fn sealed(&self) -> &str {
        self.column().enc_name().unwrap_or_default()
    }

    /// `db.table.column`, for messages.
    pub fn path(&self) -> String {
        self.to_string()
    }
}

impl std::fmt::Display for ColumnUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let table = &self.table;
        write!(
            f,
            "{}.{}.{}",
            table.database,
            table.name,
            self.column().name
        )
    }
}

/// Where a slot's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The literal or parameter with this index (within its row, inside [`Piece::Rows`]).
    Literal {
        /// Index into the template's literals.
        index: usize,
        /// A minus sign stands before it.
        negative: bool,
    },
    /// The literal with this index, behind the word DATE or TIMESTAMP.
    Moment {
        /// Index into the template's literals.
        index: usize,
        /// The word is DATE.
        is_date: bool,
    },
    /// Texts that follow each other, put together as by `CONCAT`.
    Joined {
        /// Index into the template's literals.
        first: usize,
        /// How many they are; few, so that a source stays small.
        count: u16,
    },
    /// `NULL`.
    Null,
    /// `TRUE` or `FALSE`.
    Bool(bool),
    /// The column's default, by the word `DEFAULT`.
    Default,
    /// The column's default, because a new row leaves the column out.
    Omitted {
        /// The row's number among those that the text has, from 1.
        row: usize,
    },
    /// What the column's type has in the place of a default. MariaDB stores it without a word where
    /// a new row leaves out a column that ON DUPLICATE KEY UPDATE assigns.
    Implicit,
    /// The time that the server has told for this statement, with so many digits of a second.
    /// `asked`: the statement calls for it, as by `NOW()`. Otherwise it is the column's default.
    Present {
        /// Digits behind the second; more are cut off.
        digits: u8,
        /// By a call.
        asked: bool,
    },
}

/// The time that the server has told for this statement, as a text for a plain column. The numbers
/// are digits behind the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainTime {
    /// The day.
    Date,
    /// The local time.
    DateTime(u8),
    /// The local time, if it means one moment only.
    Timestamp(u8),
}

impl Source {
    /// The same source where literals are counted from the statement's beginning instead of from a
    /// row's.
    pub fn behind(self, base: usize) -> Self {
        match self {
            Source::Literal { index, negative } => Source::Literal {
                index: index + base,
                negative,
            },
            Source::Moment { index, is_date } => Source::Moment {
                index: index + base,
                is_date,
            },
            Source::Joined { first, count } => Source::Joined {
                first: first + base,
                count,
            },
            other => other,
        }
    }
}

/// What a slot's value is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The sealed cell of a value to be stored.
    Seal,
    /// The equality token of a value to be stored.
    StoreEquality,
    /// The order key of a value to be stored.
    StoreOrder,
    /// The gram tokens of a value to be stored.
    StoreGrams,
    /// The tokens, for `MATCH … AGAINST`, of all grams that a value has if a pattern matches it.
    /// There may be none: see [`Piece::Indexed`].
    CandidateGrams(Escape),
    /// The token of one of these grams, as a number: the nth of them. If there are fewer, it is one
    /// of them again.
    CandidateGram(Escape, u8),
    /// The equality token of a constant that the column is compared with.
    CompareEquality,
    /// The order key of a constant that the column is compared with.
    CompareOrder,
    /// The order key of a constant's beginning: rows whose keys stand like this one or are equal
    /// to it are candidates, which the proxy looks at again.
    CandidateOrder,
    /// All cells that hold the value already, one behind the other, as hexadecimal digits (MySQL
    /// takes a parameter of a function for text): see [`Upsert::constants`].
    Kept,
}

impl Purpose {
    /// Whether the value goes through the coercion of a store (else of a comparison).
    pub fn stores(self) -> bool {
        matches!(
            self,
            Purpose::Seal | Purpose::StoreEquality | Purpose::StoreOrder | Purpose::StoreGrams
        )
    }
}

/// A place in the server's text that a value of a protected column fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Index into [`Plan::columns`].
    pub column: usize,
    /// In which form.
    pub purpose: Purpose,
    /// From where.
    pub source: Source,
    /// The list or range that it stands in, where the kinds of the others matter.
    pub among: Option<Among>,
}

/// The constants of an IN or a BETWEEN. The servers choose one type for all of them and the column.
/// So the meaning of one constant depends on the others. A parameter's kind is known when it is
/// bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Among {
    /// Index of the first literal.
    pub first: usize,
    /// One past the index of the last literal.
    pub end: usize,
    /// `NULL`, `TRUE` or `FALSE` stands beside the literals.
    pub keywords: bool,
    /// It is a BETWEEN.
    pub range: bool,
}

/// What is not known of a statement's tables. If they are missing, or lack a column, the
/// statement's values belong to no column, and the server must not get them. If they are not, they
/// are temporary ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Doubt {
    /// Nothing.
    #[default]
    None,
    /// Whether this table is there, which would be protected.
    Table(TableName),
    /// Whether all tables are there. The server is asked to prepare this text, which is the
    /// statement, or the part of it that reads and changes rows, with other values.
    Text {
        /// The text.
        text: Vec<u8>,
        /// The parser has found a table that nobody knows. Otherwise it does not read the
        /// statement.
        is_named: bool,
        /// A table that nobody knows stands where a table may, to the parser or by the words. If
        /// the server does not say whether it is there, the statement is refused.
        stands: bool,
        /// A word is the name of a column that `[protect]` protects, and no table of the statement
        /// has it. If the server knows of no such column either, the statement ends there.
        column: bool,
    },
}

impl Doubt {
    /// The same of a definition, which no server reads as it is written: what the parser has found.
    pub(crate) fn of_definition(self) -> Doubt {
        match self {
            Doubt::Text {
                is_named: false, ..
            } => Doubt::None,
            other => other,
        }
    }
}

/// A part of the server's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text as it is.
    Sql(Vec<u8>),
    /// A literal of the statement, copied as it stands there (a parameter stays one).
    Literal(usize),
    /// A value of a protected column.
    Slot(Slot),
    /// The statement's time, for a plain column.
    Present(PlainTime),
    /// No text: the row whose cells follow is this tenant's.
    Tenant {
        /// A protected column of the table, whose definition says which column tells the tenant:
        /// an index into [`Plan::columns`].
        column: usize,
        /// What the row gives that column; nothing if it leaves it out.
        value: Text,
    },
    /// The folded rows of an `INSERT`: `row` once for each, separated by commas. Literal
    /// indexes inside are relative to the row.
    Rows {
        /// The row's pieces.
        row: Vec<Piece>,
        /// Index of the first row's first literal.
        first_literal: usize,
        /// Literals in each row.
        per_row: usize,
    },
    /// A further condition that uses an index over grams. It is left out where the pattern has no
    /// gram. A full-text index (MariaDB) holds what is committed, whatever a transaction sees. So
    /// statements that lock have no such piece there, and others leave it out in a transaction.
    Indexed(Text),
}

/// The character that takes their meaning from wildcards in a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Escape {
    /// Nothing stands behind the pattern: the backslash.
    Backslash,
    /// The literal behind ESCAPE, by its index.
    Literal(usize),
}

/// The text for the server.
pub type Text = Vec<Piece>;

/// From which physical column a result cell opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenFrom {
    /// The sealed cell.
    Sealed,
    /// The order key, which opens for types of fixed width. The server can make one of another
    /// value.
    OrderKey,
    /// The order key, and behind it a sealed cell that stood beside it, which must have that key.
    Keyed,
}

/// A column of the result.
#[derive(Clone, Debug)]
pub struct ResultItem {
    /// `None`: the server's cell is the client's.
    pub open: Option<(usize, OpenFrom)>,
    /// The name that the client sees, where the server's differs.
    pub name: Option<String>,
    /// The cell is an aggregate or an expression: the client sees no table and column of origin.
    pub computed: bool,
    /// What the client is told of the column.
    pub described: Described,
}

/// Where the definition of a column of the result comes from.
///
/// A column that comes out of a temporary table of the server's has lost properties that it had
/// before. A statement on plaintext would not have needed that table.
#[derive(Clone, Debug, Default)]
pub enum Described {
    /// The server's own is right.
    #[default]
    AsSent,
    /// A column of a table that is known: its flags are those of the table's definition.
    Column {
        /// Which.
        column: ColumnUse,
        /// Beside an outer join, so that only the server knows whether it may be NULL.
        outer: bool,
        /// Of groups that are sorted by an aggregate, in a temporary table.
        sorted: bool,
    },
    /// An aggregate, which the server has computed as a window function.
    Aggregate {
        /// Which.
        function: Aggregate,
        /// Over which plain column, where that is known.
        column: Option<ColumnUse>,
    },
}

impl ResultItem {
    /// A column that is the client's as the server sends it.
    pub fn plain() -> Self {
        ResultItem {
            open: None,
            name: None,
            computed: false,
            described: Described::AsSent,
        }
    }

    /// A protected column that opens from one of its physical ones, under this name if not the
    /// server's.
    pub fn opened(index: usize, from: OpenFrom, name: Option<String>) -> Self {
        ResultItem {
            open: Some((index, from)),
            name,
            ..ResultItem::plain()
        }
    }
}

/// `GROUP BY`: what the server's definitions of the result cannot tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grouping {
    /// The grouped protected columns among the result's. They come out of an aggregate of the
    /// server's, and the client sees columns of their table.
    pub columns: Vec<GroupedColumn>,
}

/// A protected column that a statement groups by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupedColumn {
    /// Which of the result's columns.
    pub item: usize,
    /// The table's name or alias in the statement.
    pub source: String,
}

/// Tier 2 for `UPDATE`: read under row locks, compute, write what changed, in one transaction.
#[derive(Clone, Debug)]
pub struct RowUpdate {
    /// The table as the statement for the server names it, quoted.
    pub target: String,
    /// `SELECT key…, sealed cells… FROM …`, without `FOR UPDATE`.
    pub select: Text,
    /// The rows are written in the order in which they are read: the statement has ORDER BY.
    pub ordered: bool,
    /// The statement's condition names the primary key by equality, so that at most one row
    /// matches: the condition's text, to be checked again with the write.
    pub single_row: Option<Text>,
    /// The key's physical columns, quoted; the first columns of the select.
    pub key: Vec<String>,
    /// Which of them says whose the row is: it stands there for that alone.
    pub tenant: Option<usize>,
    /// The assignments; their cells follow the key, in this order.
    pub assign: Vec<RowAssign>,
    /// `a = b + 1, c = 5`: the assignments that the server does, or nothing.
    pub plain: Text,
    /// Which of the rows are updated, if the server can only narrow them.
    pub filter: Option<RowFilter>,
}

/// Tier 2 for `DELETE`: candidates are read under row locks, those that are meant are deleted by
/// their keys, in one transaction.
#[derive(Clone, Debug)]
pub struct RowDelete {
    /// The table as the statement for the server names it.
    pub target: String,
    /// `SELECT key…, cells… FROM …`, without `FOR UPDATE`.
    pub select: Text,
    /// The key's physical columns, quoted; the first columns of the select.
    pub key: Vec<String>,
    /// Which of the rows are deleted.
    pub filter: RowFilter,
}

/// Which rows an `UPDATE` or `DELETE` means.
#[derive(Clone, Debug)]
pub struct RowFilter {
    /// The last columns of the select, in this order.
    pub fetch: Vec<ResultItem>,
    /// Decides by them; its columns are counted from the first of them.
    pub test: Test,
}

/// A protected column's new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowAssign {
    /// Index into [`Plan::columns`].
    pub column: usize,
    /// What it becomes.
    pub value: NewValue,
}

/// `REPLACE`, or `INSERT … ON DUPLICATE KEY UPDATE`, with columns whose tokens do not tell whether
/// a value stays what it is. A row that is met counts only if it changes, and a value that is
/// sealed again looks like a change. So the cells of the rows to be met are read first. They are
/// sent again where they hold the new value.
#[derive(Clone, Debug)]
pub struct Upsert {
    /// The table as the statement names it.
    pub target: String,
    /// What each new row consists of on the server: names of physical columns, and their pieces.
    /// Of folded rows, the first.
    pub rows: Vec<Vec<(String, Text)>>,
    /// The rows are folded: index of the first row's first literal, literals in each row.
    pub folded: Option<(usize, usize)>,
    /// Columns that get the new row's cell.
    pub columns: Vec<usize>,
    /// Columns that get the same cell in every row that is met.
    pub constants: Vec<Slot>,
    /// The physical columns that ON DUPLICATE KEY UPDATE assigns in a row that is met.
    pub assigned: Vec<Assigned>,
}

/// A column of a row that is met, which gets another value.
#[derive(Clone, Debug)]
pub struct Assigned {
    /// The physical column.
    pub column: String,
    /// It gets the new row's value of the same column.
    pub as_new: bool,
}

/// The right side of an assignment that tier 2 does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewValue {
    /// A constant.
    Constant(Source),
    /// The old value and a constant: `k + 1`.
    Arithmetic {
        /// `+`, `-` or `*`.
        operator: u8,
        /// The other side.
        operand: Source,
    },
    /// A constant for rows that another assignment changes: ON UPDATE CURRENT_TIMESTAMP. It stands
    /// behind all others.
    OnChange(Source),
}

/// Statements about tables whose result shows physical names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Show {
    /// `SHOW CREATE TABLE t`
    CreateTable,
    /// `DESCRIBE t`, `SHOW [FULL] COLUMNS FROM t`; with a column name or a pattern
    Columns {
        /// `LIKE 'pattern'` (index of the literal), applied by the proxy.
        like: Option<usize>,
        /// `DESCRIBE t column`.
        column: Option<String>,
        /// `WHERE Field IN (…)` (indexes of the literals); all columns if there are none.
        named: Vec<usize>,
    },
    /// `SHOW INDEX FROM t`
    Index {
        /// `WHERE Column_name IN (…)`, likewise.
        named: Vec<usize>,
    },
    /// `SHOW CREATE VIEW v`
    CreateView,
}

/// What to do with a statement.
#[derive(Clone, Debug)]
pub enum Action {
    /// Nothing protected is near: the statement's bytes go through untouched.
    Relay,
    /// Tier 1.
    Server {
        /// For the server.
        text: Text,
        /// The columns of the result; `None` when the statement has none, or shows no cells.
        result: Option<Vec<ResultItem>>,
    },
    /// Tier 2, a result.
    Finish(Box<Finish>),
    /// Tier 2, an update.
    Update(Box<RowUpdate>),
    /// Tier 2, a deletion.
    Delete(Box<RowDelete>),
    /// Tier 3.
    Scratch(Box<Scratch>),
    /// Tier 3, a statement that changes tables.
    ScratchWrite(Box<ScratchWrite>),
    /// Tier 3: constant expressions have to be computed. Then the statement is planned with
    /// literals in their place. The places are those of this very text.
    Compute {
        /// The expressions.
        computed: Vec<Computed>,
    },
    /// A definition of tables.
    Define(Box<Ddl>),
    /// `CREATE TABLE … LIKE`: the server has to be asked for the other table's definition. Then it
    /// is a definition like others.
    Copy(Box<Copied>),
    /// The table's definition is asked for, and the statement made anew, if the table is empty.
    Refit(Box<Refit>),
    /// Names of physical columns in the result become logical ones.
    Show {
        /// Which statement.
        what: Show,
        /// For the server.
        text: Text,
        /// About which table.
        table: Arc<Table>,
    },
    /// A statement that is prepared by its name, in SQL: its text is planned for itself.
    ByName(ByName),
    /// Not done.
    Refuse(Refusal),
}

/// A planned statement.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What to do.
    pub action: Action,
    /// The protected columns that slots and results refer to.
    pub columns: Vec<ColumnUse>,
    /// Literals whose values the plan depends on, by index: another value needs another plan.
    pub pinned: Vec<(usize, Vec<u8>)>,
    /// Of an `UPDATE`: a query that tells whether any row matches. Where none does, the server
    /// never looks at the new values, however wrong.
    pub probe: Option<Text>,
    /// Of an `INSERT … ON DUPLICATE KEY UPDATE` with constants: the statement without them. Where
    /// no row is a duplicate, the server never looks at them.
    pub insert_only: Option<Text>,
    /// Of a `SELECT` with `GROUP BY`.
    pub grouping: Option<Grouping>,
    /// How many literals stand before the end of each new row, if there are several rows that are
    /// not folded. Warnings tell the row.
    pub row_ends: Vec<usize>,
    /// Calls of `VALUES()` that the server's text has more than the client's: MySQL warns of each.
    pub surplus_values: u64,
    /// On MySQL, parameters that are compared with plain columns, by literal, and these columns'
    /// types. What such a value means can depend on the types of the other parameters.
    pub beside_plain: Vec<(usize, SqlType)>,
    /// Rows that are met count only if they change.
    pub upsert: Option<Box<Upsert>>,
    /// Token columns that get values which may differ where their tokens do not, and which foreign
    /// keys may refer to.
    pub rewritten: Vec<String>,
    /// Values are the present time. The server is asked for it before they are bound: see
    /// [`Source::Present`].
    pub tells_time: bool,
    /// What the server is asked before it gets the statement's values.
    pub doubt: Doubt,
    /// Every name that was looked up as a table's: what to look up again when the server's answer
    /// shows that the snapshot is stale.
    pub names: Vec<TableName>,
    /// What it defines.
    pub defines: Defines,
    /// The table that its definition would protect, whether it comes to that or not. What is
    /// written to it afterwards is meant for protected columns.
    pub protects: Option<Protects>,
    /// What its words say about how it is run and answered.
    pub facts: Facts,
    /// A stored program near protected tables. It is relayed because it was read, so the session's
    /// settings have to be known, as for what is not relayed.
    pub program: bool,
}

/// A table whose definition has protected columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protects {
    /// Its name.
    pub table: TableName,
    /// It would end with its session.
    pub temporary: bool,
}

/// Whether a statement changes what names mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defines {
    /// It does not.
    Nothing,
    /// A program that it calls may, or words that are not looked at. A change is noticed like the
    /// definitions of other sessions, so that not every CALL ends the plans of everybody. The
    /// session's temporary tables are looked at again.
    Perhaps,
    /// It does: everything that is known of its names is looked up again afterwards.
    Names,
    /// It does for the session: with another role it sees other tables.
    Role,
}

impl Defines {
    /// Whether it may.
    pub fn any(self) -> bool {
        self != Self::Nothing
    }
}

impl Plan {
    /// A plan of an action alone.
    pub(crate) fn of(action: Action, names: Vec<TableName>, defines: Defines) -> Self {
        Plan {
            action,
            columns: Vec::new(),
            pinned: Vec::new(),
            probe: None,
            insert_only: None,
            rewritten: Vec::new(),
            grouping: None,
            row_ends: Vec::new(),
            surplus_values: 0,
            beside_plain: Vec::new(),
            upsert: None,
            tells_time: false,
            doubt: Doubt::None,
            names,
            defines,
            protects: None,
            facts: Facts::default(),
            program: false,
        }
    }

    /// Whether new rows that look alike are folded in the server's text.
    pub fn folds_rows(&self) -> bool {
        match &self.action {
            Action::Server { text, .. } => text.iter().any(|p| matches!(p, Piece::Rows { .. })),
            _ => false,
        }
    }

    /// The tier, for `explain`: 1, 2, 3, or 0 when untouched or refused.
    pub fn tier(&self) -> u8 {
        match &self.action {
            Action::Relay | Action::ByName(_) | Action::Refuse(_) => 0,
            Action::Server { .. }
            | Action::Define(_)
            | Action::Copy(_)
            | Action::Refit(_)
            | Action::Show { .. } => 1,
            Action::Finish(_) | Action::Update(_) | Action::Delete(_) => 2,
            Action::Scratch(_) | Action::ScratchWrite(_) | Action::Compute { .. } => 3,
        }
    }
}
