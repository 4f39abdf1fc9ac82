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
    /// Columns of which only NULL or not is certain: one of several values that SQL takes for
    /// equal.
    pub lookalikes: Vec<usize>,
    /// Columns whose numbers depend on the order in which others were added up.
    pub approximate: Vec<usize>,
    /// Speaks of the statement before it; left out when that was refused.
    pub follows: bool,
    /// More than one thing can be wrong with it, and which of them is found first is not certain.
    pub several_errors: bool,
    /// How often it warns is not certain.
    pub uncounted: bool,
}

impl Default for Check {
    fn default() -> Check {
        Check {
            order: Order::Any,
            lookalikes: Vec::new(),
            approximate: Vec::new(),
            follows: false,
            several_errors: false,
            uncounted: false,
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
    /// Its kind, if it is not told by the verb.
    pub label: Option<&'static str>,
    /// `INSERT`, `INSERT IGNORE`, `REPLACE`
    pub verb: &'static str,
    pub table: usize,
    pub table_name: String,
    /// Names of the columns, with their numbers in the table.
    pub columns: Vec<(String, usize)>,
    /// Whether the statement names them.
    pub names_columns: bool,
    pub rows: Vec<Vec<Literal>>,
    /// Each row stands behind the word ROW. MySQL only.
    pub by_word: bool,
    /// The new row's name, behind AS. MySQL only.
    pub new_row: Option<&'static str>,
    /// `ON DUPLICATE KEY UPDATE`
    pub on_duplicate: Vec<Piece>,
    /// What stands behind RETURNING. MariaDB only.
    pub returning: Option<&'static str>,
    pub prepared: bool,
    pub check: Check,
}

#[derive(Clone, Debug)]
pub enum Step {
    One(Statement),
    Insert(Insert),
    /// Several statements in one text.
    Batch(Vec<Statement>),
    /// What is no text.
    Command(Command),
}

/// A command of the protocol.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Command {
    /// `COM_RESET_CONNECTION`
    Reset,
    /// `COM_CHANGE_USER`, to the same user and the database of the case.
    ChangeUser,
    /// `COM_INIT_DB`, to the database of the case.
    Home,
    /// `COM_INIT_DB`, to the other one.
    Away,
}

impl Command {
    /// By which differences are grouped.
    fn label(self) -> &'static str {
        match self {
            Command::Reset => "reset connection",
            Command::ChangeUser => "change user",
            Command::Home | Command::Away => "init database",
        }
    }
}

/// What stands in a text for the name of the case's database. Behind it, [`OTHER`] makes the other
/// one.
pub const DATABASE: &str = "{db}";
/// What the other database's name ends in.
pub const OTHER: &str = "_other";

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    pub tables: Vec<Table>,
    pub steps: Vec<Step>,
    /// The client counts found rows instead of changed ones.
    pub found_rows: bool,
    /// There is a second, empty database ([`OTHER`]).
    pub has_other_database: bool,
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

    /// The statement as one side gets it: the database is named, and a plain server gets no
    /// `ENCRYPTED FOR (…)`.
    pub fn on_side(&self, database: &str, protected: bool) -> Statement {
        let mut statement = self.clone();
        for piece in &mut statement.pieces {
            if let Piece::Sql(text) = piece {
                if text.contains(DATABASE) {
                    *text = text.replace(DATABASE, database);
                }
                if !protected {
                    *text = without_protection(text);
                }
            }
        }
        statement
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
            text += if n > 0 { ", " } else { "" };
            text += if self.by_word { "ROW(" } else { "(" };
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
        if let Some(name) = self.new_row {
            text += &format!(" AS {name}");
        }
        if !self.on_duplicate.is_empty() {
            text += " ON DUPLICATE KEY UPDATE ";
        }
        pieces.push(Piece::Sql(text));
        pieces.extend(self.on_duplicate.iter().cloned());
        if let Some(shown) = self.returning {
            pieces.push(Piece::Sql(format!(" RETURNING {shown}")));
        }
        let by_verb = match (self.verb, self.on_duplicate.is_empty()) {
            (_, false) => "insert on duplicate",
            ("REPLACE", _) => "replace",
            ("INSERT IGNORE", _) => "insert ignore",
            _ => "insert",
        };
        let label = self.label.unwrap_or(by_verb);
        Statement {
            label,
            pieces,
            prepared: self.prepared,
            check: self.check.clone(),
        }
    }
}

/// A definition for the plain server.
pub fn without_protection(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(" ENCRYPTED FOR (") {
        out += &rest[..at];
        rest = rest[at..].split_once(')').map_or("", |(_, behind)| behind);
    }
    out + rest
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
    /// Not prepared.
    pub fn as_text(&mut self) {
        match self {
            Step::One(statement) => statement.prepared = false,
            Step::Insert(insert) => insert.prepared = false,
            Step::Batch(_) | Step::Command(_) => {}
        }
    }

    /// Its statements; one, unless it is a batch.
    pub fn statements(&self) -> Vec<Statement> {
        match self {
            Step::One(statement) => vec![statement.clone()],
            Step::Insert(insert) => vec![insert.statement()],
            Step::Batch(statements) => statements.clone(),
            Step::Command(command) => {
                let label = command.label();
                vec![Statement::fixed(label, format!("-- {label}: {command:?}"))]
            }
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
