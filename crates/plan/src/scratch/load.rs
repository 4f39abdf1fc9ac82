//! `LOAD DATA LOCAL INFILE`: the scratch engine reads the client's file into a temporary table with
//! the columns of the target, under the statement's own clauses; its rows are then inserted as
//! those of `INSERT … SELECT` are.
//!
//! The parser does not know the statement, so that it is read by its tokens. A file on the server's
//! disk is refused: the server would read plaintext, and the proxy cannot know what the server may
//! read.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use onionskin_schema::Table;
use sqlparser::ast::{Expr, Query};

use super::handed::Handed;
use super::walk::is_call_allowed;
use super::write::{Effect, NewRows, ScratchWrite, defaulted, has_simple_default, written_column};
use super::{Scratch, reads};
use crate::errors::{self, NotUnderstood, Refusal};
use crate::lex::{LiteralKind, Token, TokenKind};
use crate::plan::Action;
pub(super) use crate::plan::Load;
use crate::planner::{Known, Planned, Planner, UseScratch, refuse};
use crate::scope::position;
use crate::unknown::Place;
use crate::visit::{Visitor, visit};

/// Functions and names of an expression.
pub(super) struct Checked {
    pub refused: Option<Refusal>,
}

impl Visitor for Checked {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.refused = Some(NotUnderstood::Within("a subquery", "LOAD DATA").into());
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let checked = match expr {
            Expr::Function(function) => is_call_allowed(function),
            Expr::MatchAgainst { .. } => NotUnderstood::Clause("MATCH").refuse(),
            _ => Ok(()),
        };
        match checked {
            Ok(()) => ControlFlow::Continue(()),
            Err(refusal) => {
                self.refused = Some(refusal);
                ControlFlow::Break(())
            }
        }
    }
}

/// What the tokens of a `LOAD DATA` say.
struct Statement {
    table: Arc<Table>,
    replaces: bool,
    load: Load,
    /// The columns that get values.
    indexes: Vec<usize>,
    /// The user variables that get fields.
    variables: Vec<Vec<u8>>,
}

/// What stands in the list of fields.
struct Fields {
    /// Its tokens.
    list: (usize, usize),
    indexes: Vec<usize>,
    variables: Vec<Vec<u8>>,
}

/// Reads the statement clause by clause, from left to right.
struct Reader<'p, 'a> {
    planner: &'p Planner<'a>,
    /// The token that comes next.
    at: usize,
    /// One past the last token.
    end: usize,
}

impl Reader<'_, '_> {
    fn word(&self, at: usize, word: &str) -> bool {
        let tokens = &self.planner.tokens[..self.end];
        let sql = self.planner.sql();
        tokens.get(at).is_some_and(|t| t.is_word(sql, word))
    }

    fn is(&self, at: usize, byte: u8) -> bool {
        let tokens = &self.planner.tokens[..self.end];
        tokens.get(at).is_some_and(|t| t.is(byte))
    }

    fn name(&self, at: usize) -> Option<String> {
        let token = self.planner.tokens.get(at)?;
        self.planner.name_of(token)
    }

    fn statement(mut self) -> Planned<Statement> {
        let file = self.file()?;
        let replaces = self.duplicates()?;
        let table = self.target()?;
        let (clauses, names_charset) = self.clauses()?;
        let fields = self.fields(&table)?;
        let assignments = (self.at, self.end);
        let mut indexes = fields.indexes;
        for index in self.assigned(&table)? {
            if !indexes.contains(&index) {
                indexes.push(index);
            }
        }
        Ok(Statement {
            table,
            replaces,
            load: Load {
                file,
                clauses,
                names_charset,
                list: fields.list,
                assignments,
            },
            indexes,
            variables: fields.variables,
        })
    }

    /// `LOAD DATA LOCAL INFILE 'file'`. Returns the token of the file's name.
    fn file(&mut self) -> Planned<usize> {
        if !self.word(1, "data") {
            return refuse(&errors::STATEMENT, "");
        }
        self.at = 2;
        if self.word(self.at, "low_priority") || self.word(self.at, "concurrent") {
            self.at += 1;
        }
        if !self.word(self.at, "local") {
            return refuse(&errors::SERVER_FILE, "");
        }
        if self.planner.request.settings.scratch == UseScratch::Never {
            return NotUnderstood::Without("LOAD DATA", "a scratch engine").refuse();
        }
        if !self.word(self.at + 1, "infile") {
            return NotUnderstood::Clause("LOAD DATA").refuse();
        }
        let file = self.at + 2;
        let is_text = |t: &Token| t.kind == TokenKind::Literal(LiteralKind::String);
        if !self.planner.tokens.get(file).is_some_and(is_text) {
            return NotUnderstood::NameOf("the file").refuse();
        }
        self.at = file + 1;
        Ok(file)
    }

    /// `REPLACE` or `IGNORE`, then `INTO TABLE`. Returns whether rows replace others; with LOCAL,
    /// those that do not are ignored.
    fn duplicates(&mut self) -> Planned<bool> {
        let replaces = self.word(self.at, "replace");
        if replaces || self.word(self.at, "ignore") {
            self.at += 1;
        }
        if !self.word(self.at, "into") || !self.word(self.at + 1, "table") {
            return NotUnderstood::Clause("LOAD DATA").refuse();
        }
        self.at += 2;
        Ok(replaces)
    }

    fn target(&mut self) -> Planned<Arc<Table>> {
        let Some(first) = self.name(self.at) else {
            return NotUnderstood::PartOf("the target", "LOAD DATA").refuse();
        };
        let request = self.planner.request;
        let (database, table) = match (self.is(self.at + 1, b'.'), self.name(self.at + 2)) {
            (true, Some(second)) => {
                self.at += 2;
                (Some(first), second)
            }
            _ => (request.settings.database.clone(), first),
        };
        self.at += 1;
        let known = database.map(|d| request.catalog.table(&d, &table));
        let Some(Known::Table(table)) = known else {
            return NotUnderstood::PartOf("the target", "LOAD DATA").refuse();
        };
        if table.view {
            return refuse(&errors::VIEW, "writing beside one");
        }
        Ok(table)
    }

    /// The clauses about the file's form. Returns their tokens, and whether they name a character
    /// set.
    fn clauses(&mut self) -> Planned<((usize, usize), bool)> {
        let from = self.at;
        let mut names_charset = false;
        while self.at < self.end && !self.is(self.at, b'(') {
            let at = self.at;
            if self.word(at, "partition") {
                return NotUnderstood::Clause("PARTITION").refuse();
            }
            let of_charset = self.word(at - 1, "character") || self.word(at - 1, "char");
            if self.word(at, "set") && !of_charset {
                break;
            }
            names_charset |= self.word(at, "charset") || self.word(at, "character");
            self.at += 1;
        }
        Ok(((from, self.at), names_charset))
    }

    /// The list of columns and variables; without one, the visible columns.
    fn fields(&mut self, table: &Table) -> Planned<Fields> {
        let from = self.at;
        let mut fields = Fields {
            list: (from, from),
            indexes: Vec::new(),
            variables: Vec::new(),
        };
        if !self.is(from, b'(') {
            let shown = |i: &usize| !table.columns[*i].invisible;
            let all = 0..table.columns.len();
            fields.indexes.extend(all.filter(shown));
            return Ok(fields);
        }
        let close = self.planner.closing(from)?;
        fields.list = (from, close + 1);
        for part in self.planner.split_commas(from + 1..close) {
            let [token] = &self.planner.tokens[part] else {
                return NotUnderstood::PartOf("a column", "LOAD DATA").refuse();
            };
            if token.kind == TokenKind::Variable {
                let name = token.text(self.planner.sql());
                fields.variables.push(name.to_ascii_lowercase());
                continue;
            }
            let name = self.planner.name_of(token).unwrap_or_default();
            match position(table, &name) {
                Some(index) => fields.indexes.push(index),
                None => return Err(self.planner.unknown_in(&name, Place::InsertInto)),
            }
        }
        self.at = close + 1;
        Ok(fields)
    }

    /// The columns that `SET` assigns.
    fn assigned(&self, table: &Arc<Table>) -> Planned<Vec<usize>> {
        if self.at >= self.end {
            return Ok(Vec::new());
        }
        if !self.word(self.at, "set") {
            return NotUnderstood::ClauseOf("LOAD DATA").refuse();
        }
        let parts = self.planner.split_commas(self.at + 1..self.end);
        let mut parts = parts.into_iter();
        parts.try_fold(Vec::new(), |mut indexes, part| {
            indexes.push(assignment(self.planner, part, table)?);
            Ok(indexes)
        })
    }
}

/// Plans a `LOAD DATA`.
pub(crate) fn load(planner: &mut Planner<'_>) -> Planned<Action> {
    let end = planner.tokens.iter().rposition(|t| !t.is(b';'));
    let end = end.map_or(0, |i| i + 1);
    let reader = Reader {
        planner,
        at: 0,
        end,
    };
    let Statement {
        table,
        replaces,
        load,
        indexes,
        variables: assigned_variables,
    } = reader.statement()?;
    let variables = reads::variables(planner)?;
    let is_read = |v: &Vec<u8>| !assigned_variables.contains(&v.to_ascii_lowercase());
    let variables = variables.into_iter().filter(is_read).collect();
    let mut columns = Vec::new();
    for index in indexes {
        if !has_simple_default(planner, &table, index) && !table.columns[index].auto_increment {
            // a line may have too few fields
            let column = &table.columns[index].name;
            return refuse(&errors::SCRATCH_TYPE, format!("{}.{column}", table.name));
        }
        columns.push(written_column(planner, &table, index)?);
    }
    let given = columns.len();
    columns.extend(defaulted(planner, &table, &columns, false)?);
    let new = NewRows {
        table,
        columns,
        given,
        head: (0, 0),
        query: (0, 0),
        tail: (end, end),
        ignore: !replaces,
        replaces,
        load: Some(load),
        met: None,
        values: None,
    };
    Ok(Action::ScratchWrite(Box::new(ScratchWrite {
        scratch: Scratch {
            reads: Vec::new(),
            variables,
            renamed: Vec::new(),
            finds_more: false,
        },
        effect: Effect::Insert(Box::new(new)),
    })))
}

/// `column = expression`: which column.
fn assignment(planner: &Planner<'_>, part: Range<usize>, table: &Arc<Table>) -> Planned<usize> {
    let unclear = || NotUnderstood::PartOf("an assignment", "LOAD DATA").refuse();
    let tokens = &planner.tokens[part.clone()];
    let [name, equals, ..] = tokens else {
        return unclear();
    };
    let name = planner.name_of(name).unwrap_or_default();
    if !equals.is(b'=') || tokens.len() < 3 {
        return unclear();
    }
    let Some(index) = position(table, &name) else {
        return Err(planner.unknown_in(&name, Place::Set));
    };
    let range = planner.bytes_of(&(part.start + 2..part.end));
    let text = planner.parse_text.get(range).unwrap_or_default();
    let Ok(expr) = crate::parse::expression(text) else {
        return unclear();
    };
    let mut checked = Checked { refused: None };
    let _ = visit(&expr, &mut checked);
    if let Some(refusal) = checked.refused {
        return Err(refusal);
    }
    let handed = Handed::of(&expr, &[(table.name.clone(), Arc::clone(table))]);
    if table.columns[index].protection.is_none() && handed.is_handed(&expr) {
        let column = &table.columns[index].name;
        let about = format!("{}.{}.{column}", table.database, table.name);
        return refuse(&errors::HANDED_ON, about);
    }
    if crate::write::is_default(&expr) && !has_simple_default(planner, table, index) {
        return unclear();
    }
    Ok(index)
}
