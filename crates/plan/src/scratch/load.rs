//! `LOAD DATA LOCAL INFILE`: the scratch engine reads the client's file into a temporary table with the columns of the target, under the
//! statement's own clauses; its rows are then inserted as those of `INSERT … SELECT` are.
//!
//! The parser does not know the statement, so that it is read by its tokens. A file on the server's disk is refused: the server would
//! read plaintext, and the proxy cannot know what the server may read.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use onionskin_schema::Table;
use sqlparser::ast::{Expr, Query, Visit, Visitor};

use super::handed::Handed;
use super::walk::is_call_allowed;
use super::write::{Effect, NewRows, ScratchWrite, defaulted, has_simple_default, written_column};
use super::{Scratch, reads};
use crate::errors;
use crate::lex::{LiteralKind, TokenKind};
use crate::plan::Action;
pub(super) use crate::plan::Load;
use crate::planner::{Known, Planned, Planner, UseScratch, refuse};
use crate::scope::position;

/// Functions and names of an expression.
pub(super) struct Checked {
    pub refused: Option<crate::errors::Refusal>,
}

impl Visitor for Checked {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.refused = refuse::<()>(&errors::NOT_UNDERSTOOD, "a subquery in LOAD DATA").err();
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let checked = match expr {
            Expr::Function(function) => is_call_allowed(function),
            Expr::MatchAgainst { .. } => refuse(&errors::NOT_UNDERSTOOD, "MATCH"),
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

/// Plans a `LOAD DATA`.
pub(crate) fn load(planner: &mut Planner<'_>) -> Planned<Action> {
    let sql = planner.sql();
    let end = planner.tokens.iter().rposition(|t| !t.is(b';'));
    let end = end.map_or(0, |i| i + 1);
    let word = |at: usize, word: &str| {
        planner.tokens[..end]
            .get(at)
            .is_some_and(|t| t.is_word(sql, word))
    };
    let unclear = |about: &str| refuse(&errors::NOT_UNDERSTOOD, about);
    if !word(1, "data") {
        return refuse(&errors::STATEMENT, "");
    }
    let mut at = 2;
    if word(at, "low_priority") || word(at, "concurrent") {
        at += 1;
    }
    if !word(at, "local") {
        return refuse(&errors::SERVER_FILE, "");
    }
    if planner.request.settings.scratch == UseScratch::Never {
        return unclear("LOAD DATA without a scratch engine");
    }
    if !word(at + 1, "infile") {
        return unclear("LOAD DATA");
    }
    let file = at + 2;
    let is_text = |t: &crate::lex::Token| t.kind == TokenKind::Literal(LiteralKind::String);
    if !planner.tokens.get(file).is_some_and(is_text) {
        return unclear("the name of the file");
    }
    at = file + 1;
    let replaces = word(at, "replace");
    if replaces || word(at, "ignore") {
        at += 1;
    }
    if !word(at, "into") || !word(at + 1, "table") {
        return unclear("LOAD DATA");
    }
    at += 2;
    let name = |at: usize| planner.tokens.get(at).and_then(|t| planner.name_of(t));
    let is = |at: usize, byte: u8| planner.tokens[..end].get(at).is_some_and(|t| t.is(byte));
    let Some(first) = name(at) else {
        return unclear("the target of LOAD DATA");
    };
    let (database, table) = match (is(at + 1, b'.'), name(at + 2)) {
        (true, Some(second)) => {
            at += 2;
            (Some(first), second)
        }
        _ => (planner.request.settings.database.clone(), first),
    };
    at += 1;
    let known = database.map(|d| planner.request.catalog.table(&d, &table));
    let Some(Known::Table(table)) = known else {
        return unclear("the target of LOAD DATA");
    };
    if table.view {
        return refuse(&errors::VIEW, "writing beside one");
    }
    let clauses = at;
    let mut names_charset = false;
    while at < end && !is(at, b'(') {
        if word(at, "partition") {
            return unclear("PARTITION");
        }
        if word(at, "set") {
            let of_charset = word(at - 1, "character") || word(at - 1, "char");
            if !of_charset {
                break;
            }
        }
        names_charset |= word(at, "charset") || word(at, "character");
        at += 1;
    }
    let clauses = (clauses, at);
    let (mut indexes, mut assigned_variables) = (Vec::new(), Vec::new());
    let mut list = (at, at);
    if is(at, b'(') {
        let close = planner.closing(at)?;
        list = (at, close + 1);
        for part in planner.split_commas(at + 1..close) {
            let [token] = &planner.tokens[part] else {
                return unclear("a column of LOAD DATA");
            };
            if token.kind == TokenKind::Variable {
                assigned_variables.push(token.text(sql).to_ascii_lowercase());
                continue;
            }
            let name = planner.name_of(token).unwrap_or_default();
            match position(&table, &name) {
                Some(index) => indexes.push(index),
                None => return refuse(&errors::UNKNOWN_COLUMN, format!("'{name}'")),
            }
        }
        at = close + 1;
    } else {
        let shown = |i: &usize| !table.columns[*i].invisible;
        indexes.extend((0..table.columns.len()).filter(shown));
    }
    let assignments = (at, end);
    if at < end {
        if !word(at, "set") {
            return unclear("a clause of LOAD DATA");
        }
        let parts = planner.split_commas(at + 1..end);
        for part in parts {
            let index = assignment(planner, part, &table)?;
            if !indexes.contains(&index) {
                indexes.push(index);
            }
        }
    }
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
        load: Some(Load {
            file,
            clauses,
            names_charset,
            list,
            assignments,
        }),
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
    let unclear = || refuse(&errors::NOT_UNDERSTOOD, "an assignment of LOAD DATA");
    let tokens = &planner.tokens[part.clone()];
    let [name, equals, ..] = tokens else {
        return unclear();
    };
    let name = planner.name_of(name).unwrap_or_default();
    if !equals.is(b'=') || tokens.len() < 3 {
        return unclear();
    }
    let Some(index) = position(table, &name) else {
        return refuse(&errors::UNKNOWN_COLUMN, format!("'{name}'"));
    };
    let range = planner.bytes_of(&(part.start + 2..part.end));
    let text = planner.parse_text.get(range).unwrap_or_default();
    let Ok(expr) = crate::parse::expression(text) else {
        return unclear();
    };
    let mut checked = Checked { refused: None };
    let _ = expr.visit(&mut checked);
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
