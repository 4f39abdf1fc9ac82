//! Statements that read and write rows: parsed, planned, and explained by the server.
//!
//! What the parser does not know is blanked out of the text that it reads; the server gets it all
//! the same.

use std::ops::ControlFlow;
use std::sync::Arc;

use onionskin_schema::Table;
use onionskin_value::Family;
use sqlparser::ast::{
    Delete, Expr, FromTable, LockType, NonBlock, Query, Statement, TableFactor, UnaryOperator,
};

use super::Decided;
use super::into::{blank_into, kept_by_the_server, not_on_the_server};
use super::near::candidates;
use super::words::{is_one_of, known_word};
use crate::errors::{self, NotUnderstood};
use crate::lex::{LiteralKind, Token, TokenKind};
use crate::parse;
use crate::plan::{Action, Piece};
use crate::planner::{Planned, Planner, Request, UseScratch, refuse};
use crate::present::Telling;
use crate::query::Mode;
use crate::visit::visit_expressions;

/// Parses and plans the statements that read and write rows.
pub(super) fn planned(planner: &mut Planner) -> Planned<Action> {
    const FILL: [&str; 3] = ["insert", "replace", "update"];
    let (request, sql) = (planner.request, planner.sql());
    let first = planner.tokens.first();
    if !first.is_some_and(|t| FILL.iter().any(|word| t.is_word(sql, word))) {
        return planned_once(planner);
    }
    let (tokens, near) = (planner.tokens.clone(), planner.near.clone());
    let text = planner.parse_text.clone();
    planner.present.telling = Telling::Protected;
    loop {
        let done = planned_once(planner);
        let Some(telling) = planner.telling_again(&done) else {
            return done;
        };
        *planner = Planner::new(request, tokens.clone(), near.clone())?;
        planner.parse_text.clone_from(&text);
        planner.present.telling = telling;
    }
}

fn planned_once(planner: &mut Planner) -> Planned<Action> {
    let action = planned_as_it_stands(planner)?;
    if let Some(column) = planner.unfilled.take() {
        return refuse(&errors::COMPUTED_DEFAULT, column);
    }
    let computed = std::mem::take(&mut planner.computed);
    if computed.is_empty() {
        return Ok(action);
    }
    planner.one_clock(&computed)?;
    Ok(Action::Compute { computed })
}

fn planned_as_it_stands(planner: &mut Planner) -> Planned<Action> {
    blank_locks(planner);
    blank_modifiers(planner);
    blank_stars(planner);
    blank_index_hints(planner)?;
    let stays = blank_into(planner);
    let statement = parse::statement(&with_joins(planner))?;
    if !not_reads_alike(&statement, planner.request.settings.high_not) {
        return NotUnderstood::Under("NOT without parentheses", "HIGH_NOT_PRECEDENCE").refuse();
    }
    let by_view = planner.near.iter().any(|t| t.view);
    match statement {
        Statement::Query(query) => {
            let given = match planner.query(&query, None, Mode::Top) {
                Err(refusal) if stays => return Err(not_on_the_server(refusal)),
                given => given?,
            };
            match given.finish {
                Some(_) if stays => refuse(&errors::SERVER_HELD, "what the proxy has to finish"),
                Some(finish) => Ok(Action::Finish(Box::new(finish))),
                None => {
                    let text = planner.assemble()?;
                    if stays {
                        return kept_by_the_server(planner, &given.items, text);
                    }
                    Ok(Action::Server {
                        text,
                        result: Some(given.items),
                    })
                }
            }
        }
        Statement::Insert(insert) => planner.insert(&insert),
        Statement::Update(update) => planner.update(&update),
        Statement::Delete(delete) => {
            let action = planner.delete(&with_targets(delete)?)?;
            match action {
                // which rows can be deleted through a view, the server knows
                Action::Server { result: None, .. } => Ok(action),
                _ if by_view => refuse(&errors::VIEW, "writing beside one"),
                _ => Ok(action),
            }
        }
        _ => refuse(&errors::STATEMENT, ""),
    }
}

/// Whether the parser and the server agree on how far each NOT reaches. To the parser, `NOT a = 1`
/// and `! a = 1` are `NOT (a = 1)`; to servers the second is `(NOT a) = 1`, and with `high_not` so
/// is the first.
fn not_reads_alike(statement: &Statement, high_not: bool) -> bool {
    visit_expressions(statement, |expr| match expr {
        Expr::UnaryOp {
            op: op @ (UnaryOperator::Not | UnaryOperator::BangNot),
            expr: operand,
        } if *op == UnaryOperator::BangNot || high_not => match operand.as_ref() {
            Expr::Nested(_)
            | Expr::Identifier(_)
            | Expr::CompoundIdentifier(_)
            | Expr::Value(_)
            | Expr::Function(_)
            | Expr::Subquery(_)
            | Expr::Exists { .. }
            | Expr::UnaryOp { .. } => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        },
        _ => ControlFlow::Continue(()),
    })
    .is_continue()
}

/// Plans a statement for the scratch engine. `None`: it is none that could run there.
pub(super) fn on_scratch(planner: &mut Planner) -> Planned<Option<Action>> {
    let (request, tokens, near) = (
        planner.request,
        planner.tokens.clone(),
        planner.near.clone(),
    );
    let refusal = match by_its_grammar(planner) {
        Err(refusal) => refusal,
        planned => return planned,
    };
    let is_unclear = refusal.reason().is_some() || refusal.is(&errors::AMBIGUOUS);
    if is_unclear
        && let Ok(names) = candidates(request, &tokens)
        && let Ok(mut afresh) = Planner::new(request, tokens, near)
        && let Ok(action) = crate::scratch::by_words(&mut afresh, &names)
    {
        *planner = afresh;
        return Ok(Some(action));
    }
    Err(refusal)
}

fn by_its_grammar(planner: &mut Planner) -> Planned<Option<Action>> {
    let locks = blank_locks(planner);
    let seconds = locks.seconds(planner)?;
    let around = locks.around(planner.request.settings.family);
    blank_gaps(planner);
    blank_modifiers(planner);
    blank_stars(planner);
    let statement = parse::statement(&with_joins(planner))?;
    if !matches!(statement, Statement::Query(_)) && planner.near.iter().any(|t| t.view) {
        return Ok(None);
    }
    match statement {
        Statement::Query(query) => {
            crate::scratch::select(planner, &query, around, seconds).map(Some)
        }
        Statement::Insert(insert) => crate::scratch::insert(planner, &insert),
        Statement::Update(update) => crate::scratch::update(planner, &update).map(Some),
        Statement::Delete(delete) => {
            crate::scratch::delete(planner, &with_targets(delete)?).map(Some)
        }
        _ => Ok(None),
    }
}

/// The parser takes `IGNORE` in `UPDATE IGNORE t` for a table and `t` for its alias.
fn blank_modifiers(planner: &mut Planner) {
    const MODIFIERS: [&str; 3] = ["ignore", "low_priority", "quick"];
    let sql = planner.sql();
    let verb = planner.tokens.first().copied();
    if !verb.is_some_and(|t| t.is_word(sql, "update") || t.is_word(sql, "delete")) {
        return;
    }
    let words: Vec<_> = planner.tokens[1..]
        .iter()
        .take_while(|t| MODIFIERS.iter().any(|m| t.is_word(sql, m)))
        .copied()
        .collect();
    for word in words {
        let range = word.start..word.end;
        let blank = " ".repeat(range.len());
        planner.parse_text.replace_range(range, &blank);
    }
}

/// `DELETE t.*, u.* FROM …` means `DELETE t, u FROM …`.
fn blank_stars(planner: &mut Planner) {
    let sql = planner.sql();
    let tokens = &planner.tokens;
    if !tokens.first().is_some_and(|t| t.is_word(sql, "delete")) {
        return;
    }
    let ends_name = |t: &Token| t.is(b',') || t.is_word(sql, "from") || t.is_word(sql, "using");
    let mut found = Vec::new();
    for three in tokens.windows(3) {
        if three[0].is_word(sql, "where") {
            break;
        }
        if three[0].is(b'.') && three[1].is(b'*') && ends_name(&three[2]) {
            found.push(three[0].start..three[1].end);
        }
    }
    for range in found {
        let blank = " ".repeat(range.len());
        planner.parse_text.replace_range(range, &blank);
    }
}

/// `DELETE FROM t, u USING …` means `DELETE t, u FROM …`.
fn with_targets(mut delete: Delete) -> Planned<Delete> {
    let Some(list) = delete.using.take() else {
        return Ok(delete);
    };
    let (FromTable::WithFromKeyword(targets) | FromTable::WithoutKeyword(targets)) = delete.from;
    for target in targets {
        match target.relation {
            TableFactor::Table {
                name, alias: None, ..
            } if target.joins.is_empty() => delete.tables.push(name),
            _ => return NotUnderstood::PartOf("the target", "DELETE").refuse(),
        }
    }
    delete.from = FromTable::WithFromKeyword(list);
    Ok(delete)
}

/// The text for the parser with JOIN in the place of the commas between the tables of an `UPDATE`,
/// which it does not know there. Where that makes the text longer, places in it are counted anew.
fn with_joins(planner: &mut Planner) -> String {
    const JOIN: &str = " JOIN ";
    let text = planner.parse_text.clone();
    let (sql, tokens) = (planner.sql(), &planner.tokens);
    if !tokens.first().is_some_and(|t| t.is_word(sql, "update")) || !text.is_ascii() {
        return text;
    }
    let mut depth = 0usize;
    let mut commas = Vec::new();
    for token in tokens {
        if token.is(b'(') {
            depth += 1;
        } else if token.is(b')') {
            depth = depth.saturating_sub(1);
        } else if depth == 0 && token.is_word(sql, "set") {
            break;
        } else if depth == 0 && token.is(b',') {
            commas.push(token.start);
        }
    }
    if commas.is_empty() {
        return text;
    }
    let mut joined = String::with_capacity(text.len() + commas.len() * JOIN.len());
    let mut offsets = Vec::with_capacity(text.len());
    let mut commas = commas.into_iter().peekable();
    for (at, character) in text.char_indices() {
        if commas.next_if_eq(&at).is_some() {
            joined.push_str(JOIN);
            offsets.extend([at; JOIN.len()]);
        } else {
            joined.push(character);
            offsets.push(at);
        }
    }
    planner.count_from(offsets);
    joined
}

/// Writes such words for tier 3, which only looks for names: they mean nothing to it.
fn blank_gaps(planner: &mut Planner) {
    let mut replaced = Vec::new();
    for (i, token) in planner.tokens.iter().enumerate() {
        if let Some(word) = known_word(planner.sql(), &planner.tokens, i) {
            let width = token.end - token.start;
            replaced.push((token.start..token.end, format!("{word:width$}")));
        }
    }
    for (range, word) in replaced {
        planner.parse_text.replace_range(range, &word);
    }
}

/// `USE INDEX [FOR ORDER BY] (a, b)`: the indexes may have the names of columns, and have them on
/// the server, too.
fn blank_index_hints(planner: &mut Planner) -> Planned<()> {
    let sql = planner.sql();
    let is = |t: Option<&Token>, words: &[&str]| {
        t.is_some_and(|t| words.iter().any(|w| t.is_word(sql, w)))
    };
    let mut found = Vec::new();
    let tokens = &planner.tokens;
    for at in 0..tokens.len() {
        if !planner.begins_index_hint(at) {
            continue;
        }
        // FOR JOIN, FOR ORDER BY, FOR GROUP BY
        let mut open = at + 2;
        while open < at + 5 && is(tokens.get(open), &["for", "join", "order", "group", "by"]) {
            open += 1;
        }
        if !tokens.get(open).is_some_and(|t| t.is(b'(')) {
            continue;
        }
        let close = (open..tokens.len()).find(|&i| tokens[i].is(b')'));
        // nor does any other end
        let Some(close) = close else { break };
        // nothing but names may go to the server unseen
        let is_name =
            |t: &Token| matches!(t.kind, TokenKind::Word | TokenKind::Quoted) || t.is(b',');
        if !tokens[open + 1..close].iter().all(is_name) {
            return NotUnderstood::IndexHint.refuse();
        }
        found.push((at, close));
    }
    for (first, last) in found {
        let tokens: Vec<Token> = planner.tokens[first..=last].to_vec();
        for token in &tokens {
            planner.pass(token);
        }
        let range = tokens[0].start..tokens[tokens.len() - 1].end;
        let blank = " ".repeat(range.len());
        planner.parse_text.replace_range(range, &blank);
    }
    Ok(())
}

/// How a query waits for rows that others have locked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    AsUsual,
    Never,
    Skips,
    Seconds,
}

impl Wait {
    /// Reads it, where it stands. Returns the token behind it, too.
    fn read(sql: &[u8], tokens: &[Token], at: usize) -> (Self, usize) {
        let is = |n: usize, word: &str| tokens.get(at + n).is_some_and(|t| t.is_word(sql, word));
        let is_number = |t: &Token| t.kind == TokenKind::Literal(LiteralKind::Integer);
        match () {
            () if is(0, "nowait") => (Wait::Never, at + 1),
            () if is(0, "skip") && is(1, "locked") => (Wait::Skips, at + 2),
            () if is(0, "wait") && tokens.get(at + 1).is_some_and(is_number) => {
                (Wait::Seconds, at + 2)
            }
            () => (Wait::AsUsual, at),
        }
    }
}

/// What a statement says of locks that the parser does not read.
#[derive(Default)]
struct Locks {
    /// `LOCK IN SHARE MODE` stands at its end.
    shared: Option<Wait>,
    /// Tokens of numbers of seconds behind locks.
    seconds: Vec<usize>,
    /// How many clauses lock rows.
    clauses: usize,
    /// The last of them stands at the end of the statement.
    at_end: bool,
}

impl Locks {
    /// How the rows of a query are locked whose parts do not say it.
    fn around(&self, family: Family) -> &'static str {
        let nonblock = match self.shared {
            None => return "",
            Some(Wait::Never) => Some(NonBlock::Nowait),
            Some(Wait::Skips) => Some(NonBlock::SkipLocked),
            Some(Wait::AsUsual | Wait::Seconds) => None,
        };
        crate::scratch::lock(LockType::Share, nonblock, family)
    }

    /// How many seconds the one clause of the statement waits, in digits. Which reads would wait so
    /// is not told of several.
    fn seconds(&self, planner: &mut Planner) -> Planned<Option<String>> {
        let token = match self.seconds.as_slice() {
            [] => return Ok(None),
            [token] if self.clauses == 1 && self.at_end => planner.tokens[*token],
            _ => return NotUnderstood::LockClause.refuse(),
        };
        let digits = String::from_utf8_lossy(token.text(planner.sql())).into_owned();
        match planner.literal_index(token.start) {
            Some(literal) => planner.pin(literal),
            None => return NotUnderstood::LockClause.refuse(),
        }
        Ok(Some(digits))
    }
}

const SHARE_LOCK: [&str; 4] = ["lock", "in", "share", "mode"];

/// The parser does not know `LOCK IN SHARE MODE`, and not `WAIT 5` behind a lock, which MariaDB
/// has. At the end of an inner query the former is `FOR SHARE` to it.
fn blank_locks(planner: &mut Planner) -> Locks {
    let sql = planner.sql();
    let has_waits = planner.request.settings.family == Family::MariaDb;
    let last = planner.tokens.iter().rposition(|t| !t.is(b';'));
    let tokens = &planner.tokens[..last.map_or(0, |i| i + 1)];
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|t| t.is_word(sql, word));
    let (mut found, mut known) = (Locks::default(), Vec::new());
    for at in 0..tokens.len() {
        let shares = (0..SHARE_LOCK.len()).all(|n| is(at + n, SHARE_LOCK[n]));
        let behind = match () {
            () if shares => at + SHARE_LOCK.len(),
            () if is(at, "update") && at > 0 && is(at - 1, "for") => at + 1,
            () => continue,
        };
        let (wait, next) = match has_waits {
            true => Wait::read(sql, tokens, behind),
            false => (Wait::AsUsual, behind),
        };
        let is_last = next == tokens.len();
        found.clauses += 1;
        found.at_end = is_last;
        if !is_last && !tokens[next].is(b')') {
            continue;
        }
        let text = match (shares, wait) {
            (true, _) if is_last => {
                found.shared = Some(wait);
                ""
            }
            (true, Wait::AsUsual | Wait::Seconds) => "FOR SHARE",
            (true, Wait::Never) => "FOR SHARE NOWAIT",
            (true, Wait::Skips) => "FOR SHARE SKIP LOCKED",
            (false, Wait::Seconds) => "UPDATE",
            (false, _) => continue,
        };
        found
            .seconds
            .extend((wait == Wait::Seconds).then_some(next - 1));
        known.push((tokens[at].start..tokens[next - 1].end, text));
    }
    for (range, text) in known {
        let width = range.len();
        planner
            .parse_text
            .replace_range(range, &format!("{text:width$}"));
    }
    found
}

/// The query that begins with this token, behind words that are none of it, for tier 3.
pub(crate) fn query_behind(planner: &mut Planner, first: usize) -> Planned<Box<Query>> {
    blank_gaps(planner);
    let begin = planner.tokens.get(first).map_or(0, |t| t.start);
    if !planner.parse_text.get(..begin).is_some_and(str::is_ascii) {
        return NotUnderstood::BeyondAscii("a definition").refuse();
    }
    planner
        .parse_text
        .replace_range(..begin, &" ".repeat(begin));
    match parse::statement(&planner.parse_text)? {
        Statement::Query(query) => Ok(query),
        _ => NotUnderstood::Query.refuse(),
    }
}

/// Whether a statement that is run to be explained is a query, in the words of the family:
/// `ANALYZE SELECT …` on MariaDB, `EXPLAIN ANALYZE SELECT …` on MySQL.
fn may_run(request: &Request, before: &[Token], statement: &[Token]) -> bool {
    let sql = request.sql;
    let first = match request.settings.family {
        Family::MariaDb => "analyze",
        Family::MySql => "explain",
    };
    let query = statement.iter().find(|t| !t.is(b'('));
    let is_query = |t: &Token| t.is_word(sql, "select") || t.is_word(sql, "with");
    before.first().is_some_and(|t| t.is_word(sql, first)) && query.is_some_and(is_query)
}

/// `EXPLAIN` of a statement: the server explains what it would get.
pub(super) fn explained<'a>(
    request: &'a Request<'a>,
    tokens: &[Token],
    near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    let sql = request.sql;
    const STATEMENTS: [&str; 6] = ["select", "insert", "update", "delete", "replace", "with"];
    let Some(mut at) = tokens
        .iter()
        .position(|t| STATEMENTS.iter().any(|w| t.is_word(sql, w)))
    else {
        return NotUnderstood::Clause("EXPLAIN").refuse();
    };
    while at > 0 && tokens[at - 1].is(b'(') {
        at -= 1;
    }
    if tokens[..at]
        .iter()
        .any(|t| matches!(t.kind, TokenKind::Literal(_)))
    {
        return NotUnderstood::ExplainWithLiteral.refuse();
    }
    if !are_options(sql, &tokens[..at]) {
        return NotUnderstood::Clause("EXPLAIN").refuse();
    }
    let runs = tokens[..at].iter().any(|t| t.is_word(sql, "analyze"));
    if runs && !may_run(request, &tokens[..at], &tokens[at..]) {
        return NotUnderstood::Analyze.refuse();
    }
    let mut planner = Planner::new(request, tokens[at..].to_vec(), near)?;
    // the parser must not see EXPLAIN and its options
    let blank = tokens[at].start;
    let ascii_prefix = planner.parse_text.get(..blank).is_some_and(str::is_ascii);
    if !ascii_prefix {
        return NotUnderstood::Clause("EXPLAIN").refuse();
    }
    planner
        .parse_text
        .replace_range(..blank, &" ".repeat(blank));
    let action = match planned(&mut planner) {
        Err(refusal)
            if request.settings.scratch != UseScratch::Never
                && crate::scratch::takes_over(&refusal) =>
        {
            planner = Planner::new(request, tokens[at..].to_vec(), planner.near)?;
            planner
                .parse_text
                .replace_range(..blank, &" ".repeat(blank));
            match on_scratch(&mut planner) {
                Ok(Some(action)) => action,
                _ => return Err(refusal),
            }
        }
        planned => planned?,
    };
    let mut text = vec![Piece::Sql(sql[..blank].to_vec())];
    match action {
        Action::Server { result: None, .. } if runs => {
            return NotUnderstood::Analyze.refuse();
        }
        Action::Server { text: inner, .. } => text.extend(inner),
        Action::Finish(finish) => text.extend(finish.text),
        Action::Update(update) => text.extend(update.select),
        Action::Delete(delete) => text.extend(delete.select),
        Action::Scratch(scratch) if scratch.reads.is_empty() => {
            return NotUnderstood::Without("EXPLAIN", "tables").refuse();
        }
        Action::Scratch(scratch) => text.extend(scratch.explained()),
        // it must not run
        Action::ScratchWrite(write) => match write.scratch.reads.is_empty() {
            true => return NotUnderstood::Without("EXPLAIN", "tables").refuse(),
            false => text.extend(write.scratch.explained()),
        },
        other => return Ok((other, Some(planner))),
    }
    Ok((Action::Server { text, result: None }, Some(planner)))
}

/// Whether EXPLAIN or one of its like, and what may stand between it and the statement, are all of
/// these words.
fn are_options(sql: &[u8], words: &[Token]) -> bool {
    const FLAGS: [&str; 3] = ["extended", "partitions", "analyze"];
    let is = |at: usize, list: &[&str]| words.get(at).is_some_and(|t| is_one_of(sql, t, list));
    let is_sign = |at: usize| usize::from(words.get(at).is_some_and(|t| t.is(b'=')));
    let mut at = 1;
    while at < words.len() {
        at += match () {
            () if is(at, &FLAGS) => 1,
            () if is(at, &["format"]) => 2 + is_sign(at + 1),
            () if is(at, &["into"]) && words[at + 1..].first().is_some_and(is_variable) => 2,
            () if is(at, &["for"]) && is(at + 1, &["schema", "database"]) => 3,
            () => return false,
        };
    }
    at == words.len()
}

fn is_variable(token: &Token) -> bool {
    token.kind == TokenKind::Variable
}
