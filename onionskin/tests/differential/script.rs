//! What a case consists of: tables, and steps that run in one session on each side.

use super::schema::Table;
use super::values::Literal;
use mysql::Value;
use std::fmt::Write;

/// A part of a statement.
#[derive(Clone, Debug)]
pub enum Piece {
    Sql(String),
    /// A constant for a column: numbers of its table and of the column in it.
    Constant(Literal, (usize, usize)),
}

/// In which order rows may come.
#[derive(Clone, PartialEq, Debug)]
pub enum Order {
    /// The statement's own order is total.
    Total,
    /// Any.
    Any,
    /// Any as long as these columns, which are numbers or dates, come as on the other side.
    By(Vec<usize>),
    /// It is not even certain which rows.
    OnlyCount,
}

/// What of an answer is certain.
#[derive(Clone, PartialEq, Debug)]
pub struct Check {
    pub order: Order,
    /// Columns of which only NULL or not is certain: one of several values that SQL takes for equal.
    pub lookalikes: Vec<usize>,
    /// Columns whose numbers depend on the order in which others were added up.
    pub approximate: Vec<usize>,
    /// Speaks of the statement before it; left out when that was refused.
    pub follows: bool,
    /// More than one thing can be wrong with it, and which of them is found first is not certain.
    pub several_errors: bool,
}

impl Default for Check {
    fn default() -> Check {
        Check {
            order: Order::Any,
            lookalikes: Vec::new(),
            approximate: Vec::new(),
            follows: false,
            several_errors: false,
        }
    }
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its kind, by which differences are grouped.
    pub label: &'static str,
    pub pieces: Vec<Piece>,
    /// Constants are bound to parameters, in the binary protocol.
    pub prepared: bool,
    pub check: Check,
}

/// An INSERT or REPLACE, kept in parts so that rows and columns can be left out.
#[derive(Clone, Debug)]
pub struct Insert {
    /// `INSERT`, `INSERT IGNORE`, `REPLACE`
    pub verb: &'static str,
    pub table: usize,
    pub table_name: String,
    /// Names of the columns, with their numbers in the table.
    pub columns: Vec<(String, usize)>,
    /// Whether the statement names them.
    pub names_columns: bool,
    pub rows: Vec<Vec<Literal>>,
    /// `ON DUPLICATE KEY UPDATE`
    pub on_duplicate: Vec<Piece>,
    pub prepared: bool,
    pub check: Check,
}

#[derive(Clone, Debug)]
pub enum Step {
    One(Statement),
    Insert(Insert),
    /// Several statements in one text.
    Batch(Vec<Statement>),
}

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    pub tables: Vec<Table>,
    pub steps: Vec<Step>,
    /// The client counts found rows instead of changed ones.
    pub found_rows: bool,
}

impl Statement {
    /// A statement without constants.
    pub fn fixed(label: &'static str, sql: impl Into<String>) -> Statement {
        Statement {
            label,
            pieces: vec![Piece::Sql(sql.into())],
            prepared: false,
            check: Check::default(),
        }
    }

    /// The text with its constants in it.
    pub fn text(&self) -> String {
        self.pieces
            .iter()
            .fold(String::new(), |text, piece| match piece {
                Piece::Sql(sql) => text + sql,
                Piece::Constant(literal, _) => text + &literal.sql,
            })
    }

    /// The text with parameters, and what is bound to them.
    pub fn parameters(&self) -> (String, Vec<Value>) {
        let mut values = Vec::new();
        let text = self
            .pieces
            .iter()
            .fold(String::new(), |text, piece| match piece {
                Piece::Sql(sql) => text + sql,
                Piece::Constant(literal, _) => {
                    values.push(literal.parameter.clone());
                    text + "?"
                }
            });
        (text, values)
    }
}

impl Insert {
    /// The whole statement.
    pub fn statement(&self) -> Statement {
        let mut pieces = Vec::new();
        let mut text = format!("{} INTO {}", self.verb, self.table_name);
        if self.names_columns {
            let names: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
            let _ = write!(text, " ({})", names.join(", "));
        }
        text += " VALUES ";
        for (n, row) in self.rows.iter().enumerate() {
            text += if n > 0 { ", (" } else { "(" };
            for (m, (literal, (_, column))) in row.iter().zip(&self.columns).enumerate() {
                if m > 0 {
                    text += ", ";
                }
                if literal.sql == "DEFAULT" {
                    text += "DEFAULT";
                } else {
                    pieces.push(Piece::Sql(std::mem::take(&mut text)));
                    pieces.push(Piece::Constant(literal.clone(), (self.table, *column)));
                }
            }
            text += ")";
        }
        if !self.on_duplicate.is_empty() {
            text += " ON DUPLICATE KEY UPDATE ";
        }
        pieces.push(Piece::Sql(text));
        pieces.extend(self.on_duplicate.iter().cloned());
        let label = match (self.verb, self.on_duplicate.is_empty()) {
            (_, false) => "insert on duplicate",
            ("REPLACE", _) => "replace",
            ("INSERT IGNORE", _) => "insert ignore",
            _ => "insert",
        };
        Statement {
            label,
            pieces,
            prepared: self.prepared,
            check: self.check.clone(),
        }
    }
}

/// A parameter with its type in the protocol.
fn shown(value: &Value) -> String {
    let kind = match value {
        Value::NULL => "",
        Value::Bytes(_) => "string ",
        Value::Int(_) | Value::UInt(_) => "integer ",
        Value::Float(_) | Value::Double(_) => "double ",
        Value::Date(..) | Value::Time(..) => "temporal ",
    };
    format!("{kind}{}", value.as_sql(true))
}

impl Step {
    /// Its statements; one, unless it is a batch.
    pub fn statements(&self) -> Vec<Statement> {
        match self {
            Step::One(statement) => vec![statement.clone()],
            Step::Insert(insert) => vec![insert.statement()],
            Step::Batch(statements) => statements.clone(),
        }
    }

    /// For people.
    pub fn script(&self) -> String {
        match self.statements().as_slice() {
            [one] if one.prepared => {
                let (text, values) = one.parameters();
                let values: Vec<String> = values.iter().map(shown).collect();
                format!("{text};  -- prepared, with {}", values.join(", "))
            }
            all => {
                let texts: Vec<String> = all.iter().map(Statement::text).collect();
                let note = if all.len() > 1 { "  -- one text" } else { "" };
                format!("{};{note}", texts.join("; "))
            }
        }
    }
}

impl Case {
    /// All of it as a script for one side.
    pub fn script(&self, protected: bool) -> String {
        let mut script = String::new();
        if self.found_rows {
            script += "-- the client sets CLIENT_FOUND_ROWS\n";
        }
        for table in &self.tables {
            let _ = writeln!(script, "{};", table.create(protected));
        }
        for step in &self.steps {
            let _ = writeln!(script, "{}", step.script());
        }
        script
    }
}
