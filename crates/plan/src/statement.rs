//! From a statement to its plan: is anything protected near, and which rule is for it.
//!
//! "Near" is decided by words, not by the parser: if any identifier of the statement, inside
//! executable comments too, is the name of a protected table in the current database or in a
//! database that the statement names, a rule has to understand the statement completely. If
//! none is, the statement goes through untouched, whether or not it parses.

use std::sync::Arc;

use onionskin_schema::{Table, information_schema_columns};
use sqlparser::ast::Statement;
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::{Parser, ParserOptions};
use sqlparser::tokenizer::Tokenizer;

use crate::errors::{self, Refusal};
use crate::lex::{LexError, LexMode, Token, TokenKind, tokens};
use crate::plan::{Action, Piece, Plan, Show};
use crate::planner::{Known, Planned, Planner, Request, TextBuilder, identifier, quoted, refuse};
use crate::query::Mode;

/// Introduces, in the place of a table's name, the default collation of the table whose name
/// follows, or of the database: the catalog answers with a table without columns whose name is
/// the collation's.
pub const COLLATION: &str = "\u{1}collation of ";

/// What planning answers.
#[derive(Debug)]
pub enum Outcome {
    /// The plan.
    Plan(Box<Plan>),
    /// These `(database, name)` have to be looked up first.
    Need(Vec<(String, String)>),
}

/// Plans one statement.
pub fn plan(request: &Request) -> Outcome {
    let tokens = match tokens(request.sql, request.settings.lex) {
        Ok(tokens) => tokens,
        // the server will not understand it either, but what is in it is not known
        Err(error) => {
            return finished(
                Action::Refuse(Refusal::new(&errors::NOT_UNDERSTOOD, error.to_string())),
                Vec::new(),
                false,
            );
        }
    };
    let names = match candidates(request, &tokens) {
        Ok(names) => names,
        Err(error) => {
            let refusal = Refusal::new(&errors::EXECUTABLE_COMMENT, error.to_string());
            return finished(Action::Refuse(refusal), Vec::new(), false);
        }
    };
    let mut unknown = Vec::new();
    let mut near = Vec::new();
    for (database, name) in &names {
        match request.catalog.table(database, name) {
            Known::Unknown => unknown.push((database.clone(), name.clone())),
            Known::Table(table) if table.is_protected() => near.push(table),
            _ => {}
        }
    }
    if !unknown.is_empty() {
        return Outcome::Need(unknown);
    }
    let defines = defines(request.sql, &tokens);
    match decide(request, tokens, near) {
        Ok((action, planner)) => Outcome::Plan(Box::new(match planner {
            Some(p) => Plan {
                action,
                columns: p.columns,
                pinned: p.pinned,
                probe: p.probe,
                insert_only: p.insert_only,
                grouping: p.grouping,
                surplus_values: p.surplus_values,
                upsert: p.upsert.map(Box::new),
                names,
                defines,
            },
            None => Plan {
                action,
                columns: Vec::new(),
                pinned: Vec::new(),
                probe: None,
                insert_only: None,
                grouping: None,
                surplus_values: 0,
                upsert: None,
                names,
                defines,
            },
        })),
        Err(refusal) => finished(Action::Refuse(refusal), names, defines),
    }
}

fn finished(action: Action, names: Vec<(String, String)>, defines: bool) -> Outcome {
    Outcome::Plan(Box::new(Plan {
        action,
        columns: Vec::new(),
        pinned: Vec::new(),
        probe: None,
        insert_only: None,
        grouping: None,
        surplus_values: 0,
        upsert: None,
        names,
        defines,
    }))
}

/// Words that cannot be a table's name without quotes.
fn is_reserved(word: &str) -> bool {
    const WORDS: [&str; 74] = [
        "add",
        "all",
        "alter",
        "and",
        "as",
        "asc",
        "before",
        "between",
        "by",
        "case",
        "change",
        "character",
        "check",
        "collate",
        "column",
        "constraint",
        "create",
        "cross",
        "database",
        "default",
        "delete",
        "desc",
        "describe",
        "distinct",
        "drop",
        "else",
        "exists",
        "explain",
        "false",
        "for",
        "force",
        "foreign",
        "from",
        "group",
        "having",
        "if",
        "ignore",
        "in",
        "index",
        "inner",
        "insert",
        "into",
        "is",
        "join",
        "key",
        "left",
        "like",
        "limit",
        "lock",
        "not",
        "null",
        "on",
        "or",
        "order",
        "primary",
        "procedure",
        "rename",
        "replace",
        "right",
        "select",
        "set",
        "show",
        "table",
        "then",
        "to",
        "true",
        "union",
        "unique",
        "update",
        "use",
        "using",
        "values",
        "when",
        "where",
    ];
    WORDS
        .binary_search_by(|w| w.cmp(&word.to_ascii_lowercase().as_str()))
        .is_ok()
}

/// Every `(database, name)` that an identifier of the statement may mean.
fn candidates(request: &Request, tokens: &[Token]) -> Result<Vec<(String, String)>, LexError> {
    let mut found = Vec::new();
    let database = request.settings.database.as_deref();
    let words = first_words(request.sql, tokens, 2);
    if word_is(&words, 0, "show") && keeps_diagnostics(&words) {
        return Ok(found);
    }
    collect(
        request.sql,
        tokens,
        request.settings.lex,
        database,
        &mut found,
    )?;
    if word_is(&words, 0, "create") || word_is(&words, 0, "alter") {
        // what new columns take their collation from
        let named = crate::ddl::target(request, tokens).and_then(|(d, t)| Some((d?, t)));
        if let Some((database, table)) = named {
            let database = database.to_ascii_lowercase();
            found.push((database.clone(), COLLATION.to_string()));
            let table = format!("{COLLATION}{}", table.to_ascii_lowercase());
            found.push((database, table));
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// `SHOW` statements that name no table; looking their words up would clear what they show.
fn keeps_diagnostics(words: &[&str]) -> bool {
    const KINDS: [&str; 8] = [
        "warnings",
        "errors",
        "count",
        "status",
        "variables",
        "processlist",
        "session",
        "global",
    ];
    KINDS.iter().any(|w| word_is(words, 1, w))
}

/// Whether a double-quoted string stands where a table's name belongs. The server would call it
/// a syntax error, with the statement's values in its log; its author may have meant a
/// protected table.
fn string_as_name(sql: &[u8], tokens: &[Token]) -> bool {
    let mut depth = 0usize;
    for (i, token) in tokens.iter().enumerate() {
        if token.is(b'(') {
            depth += 1;
        } else if token.is(b')') {
            depth = depth.saturating_sub(1);
        }
        let string = token.kind == TokenKind::Literal(crate::lex::LiteralKind::String)
            && token.text(sql).first() == Some(&b'"');
        if !string || i == 0 {
            continue;
        }
        let before = &tokens[i - 1];
        let after = tokens.get(i + 1);
        let names = ["into", "update", "join", "table"]
            .iter()
            .any(|w| before.is_word(sql, w))
            || (depth == 0 && before.is_word(sql, "from"))
            || before.is(b'.')
            || after.is_some_and(|t| t.is(b'.'));
        if names {
            return true;
        }
    }
    false
}

/// Functions that tell about the statement before them, when called.
fn is_diagnostic_call(sql: &[u8], tokens: &[Token], at: usize) -> bool {
    const FUNCTIONS: [&str; 6] = [
        "row_count",
        "found_rows",
        "last_insert_id",
        "database",
        "version",
        "connection_id",
    ];
    tokens.get(at + 1).is_some_and(|t| t.is(b'('))
        && FUNCTIONS.iter().any(|f| tokens[at].is_word(sql, f))
        && at.checked_sub(1).is_some_and(|before| {
            let t = &tokens[before];
            t.is_word(sql, "select") || t.is(b',') || t.is(b'(') || t.is(b'=')
        })
}

fn collect(
    sql: &[u8],
    tokens: &[Token],
    mode: LexMode,
    database: Option<&str>,
    found: &mut Vec<(String, String)>,
) -> Result<(), LexError> {
    for (i, token) in tokens.iter().enumerate() {
        if token.kind == TokenKind::Executable {
            // `/*!50000 …` and `/*M!100100 …`: the digits are a version, not part of a name
            let text = token.text(sql);
            let mark = if text.get(2) == Some(&b'M') { 4 } else { 3 };
            let body = text
                .get(mark..text.len().saturating_sub(2))
                .unwrap_or_default();
            let digits = body
                .iter()
                .take(6)
                .take_while(|b| b.is_ascii_digit())
                .count();
            for skipped in [0, digits] {
                let inner = &body[skipped..];
                collect(
                    inner,
                    &crate::lex::tokens(inner, mode)?,
                    mode,
                    database,
                    found,
                )?;
            }
            continue;
        }
        let Some(name) = identifier(sql, token) else {
            continue;
        };
        if is_diagnostic_call(sql, tokens, i) {
            continue;
        }
        let qualifier = match (i.checked_sub(2), i.checked_sub(1)) {
            (Some(q), Some(dot)) if tokens[dot].is(b'.') => identifier(sql, &tokens[q]),
            _ => None,
        };
        if let Some(qualifier) = qualifier {
            found.push((qualifier.to_ascii_lowercase(), name.to_ascii_lowercase()));
        } else if let Some(database) = database
            && name.len() <= 256
            && !(token.kind == TokenKind::Word && is_reserved(&name))
        {
            found.push((database.to_ascii_lowercase(), name.to_ascii_lowercase()));
        }
    }
    Ok(())
}

fn first_words<'a>(sql: &'a [u8], tokens: &[Token], count: usize) -> Vec<&'a str> {
    tokens
        .iter()
        .take(count)
        .map(|t| match t.kind {
            TokenKind::Word => std::str::from_utf8(t.text(sql)).unwrap_or(""),
            _ => "",
        })
        .collect()
}

fn word_is(words: &[&str], at: usize, word: &str) -> bool {
    words.get(at).is_some_and(|w| w.eq_ignore_ascii_case(word))
}

/// Whether the statement may change what a name means.
fn defines(sql: &[u8], tokens: &[Token]) -> bool {
    let words = first_words(sql, tokens, 1);
    [
        "create", "alter", "drop", "rename", "truncate", "call", "execute",
    ]
    .iter()
    .any(|w| word_is(&words, 0, w))
        || tokens.iter().any(|t| t.kind == TokenKind::Executable)
}

type Decided<'a> = (Action, Option<Planner<'a>>);

fn decide<'a>(
    request: &'a Request<'a>,
    tokens: Vec<Token>,
    near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    let sql = request.sql;
    let words = first_words(sql, &tokens, 4);
    let starts = |w: &str| word_is(&words, 0, w);

    if (starts("prepare") || starts("execute")) && near.is_empty() {
        return dynamic(request, &tokens).map(|action| (action, None));
    }
    if starts("set") && mentions(sql, &tokens, "session_track_") {
        return refuse(&errors::TRACKING, "SET");
    }
    if starts("create") && crate::ddl::creates_table(sql, &tokens) {
        return crate::ddl::create_table(request, tokens, near);
    }
    if starts("alter") && word_is(&words, 1, "table") {
        return crate::ddl::alter_table(request, tokens, near);
    }
    if string_as_name(sql, &tokens) {
        return refuse(
            &errors::NOT_UNDERSTOOD,
            "a name in double quotes without ANSI_QUOTES",
        );
    }
    if let Some(plan) = columns_view(request, &tokens)? {
        return Ok((plan, None));
    }
    if near.is_empty() {
        return Ok((Action::Relay, None));
    }
    if let Some(reason) = near.iter().find_map(|t| t.damaged.as_ref().map(|r| (t, r))) {
        let (table, reason) = reason;
        // a damaged table can be dropped, nothing else
        if !starts("drop") {
            let about = format!("{}.{} ({reason})", table.database, table.name);
            return refuse(&errors::DAMAGED, about);
        }
    }
    if tokens.iter().any(|t| t.kind == TokenKind::Executable) {
        return refuse(&errors::EXECUTABLE_COMMENT, "");
    }
    if relayed_by_table_name(&words) && only_names(sql, &tokens) {
        return Ok((Action::Relay, None));
    }
    if starts("create") || (starts("drop") && word_is(&words, 1, "index")) {
        return crate::ddl::index(request, tokens, near);
    }
    if starts("show")
        || ((starts("describe") || starts("desc") || starts("explain"))
            && is_describe(sql, &tokens))
    {
        return show(request, tokens, near);
    }
    let explain = starts("explain") || starts("describe") || starts("desc");
    if explain {
        return explained(request, &tokens, near);
    }
    let mut planner = Planner::new(request, tokens, near)?;
    let action = planned(&mut planner)?;
    Ok((action, Some(planner)))
}

/// Statements that name tables and nothing inside of them.
fn relayed_by_table_name(words: &[&str]) -> bool {
    let is = |at, w| word_is(words, at, w);
    (is(0, "drop") && (is(1, "table") || is(1, "tables")))
        || (is(0, "drop") && is(1, "temporary"))
        || is(0, "truncate")
        || (is(0, "rename") && (is(1, "table") || is(1, "tables")))
        || (is(0, "lock") && (is(1, "tables") || is(1, "table")))
        || (["analyze", "optimize", "check", "repair"]
            .iter()
            .any(|w| is(0, w))
            && (is(1, "table")
                || (is(2, "table") && (is(1, "local") || is(1, "no_write_to_binlog")))))
        || is(0, "flush")
        || is(0, "use")
        || is(0, "kill")
        || is(0, "grant")
        || is(0, "revoke")
        || (is(0, "drop") && (is(1, "database") || is(1, "schema")))
        || (is(0, "create") && (is(1, "database") || is(1, "schema")))
        || (is(0, "show") && !shows_columns(words))
        || is(0, "commit")
        || is(0, "rollback")
        || is(0, "savepoint")
        || is(0, "release")
}

/// Whether a statement about whole tables holds nothing else: no query and no condition, whose
/// constants would be sent.
fn only_names(sql: &[u8], tokens: &[Token]) -> bool {
    const QUERIES: [&str; 9] = [
        "select", "insert", "update", "delete", "replace", "where", "values", "with", "set",
    ];
    let grants = tokens
        .first()
        .is_some_and(|t| t.is_word(sql, "grant") || t.is_word(sql, "revoke"));
    grants
        || !tokens
            .iter()
            .any(|t| QUERIES.iter().any(|w| t.is_word(sql, w)))
}

/// `SHOW` statements whose result names physical columns or shows definitions.
fn shows_columns(words: &[&str]) -> bool {
    let columns = |at| {
        [
            "create", "columns", "fields", "index", "indexes", "keys", "full", "extended",
        ]
        .iter()
        .any(|w| word_is(words, at, w))
    };
    columns(1)
}

/// `DESCRIBE table [column]`, as opposed to `EXPLAIN statement`.
fn is_describe(sql: &[u8], tokens: &[Token]) -> bool {
    match tokens.get(1) {
        Some(t) if t.kind == TokenKind::Quoted => true,
        Some(t) if t.kind == TokenKind::Word => {
            const STATEMENTS: [&str; 14] = [
                "select",
                "insert",
                "update",
                "delete",
                "replace",
                "with",
                "table",
                "values",
                "extended",
                "partitions",
                "format",
                "analyze",
                "for",
                "into",
            ];
            !STATEMENTS.iter().any(|w| t.is_word(sql, w))
        }
        _ => false,
    }
}

fn mentions(sql: &[u8], tokens: &[Token], what: &str) -> bool {
    tokens.iter().any(|t| {
        matches!(
            t.kind,
            TokenKind::Word | TokenKind::Variable | TokenKind::Quoted
        ) && memchr::memmem::find(&t.text(sql).to_ascii_lowercase(), what.as_bytes()).is_some()
    })
}

/// `PREPARE s FROM 'text'`, `EXECUTE IMMEDIATE 'text'`: only what is visible and harmless.
fn dynamic(request: &Request, tokens: &[Token]) -> Planned<Action> {
    let sql = request.sql;
    let immediate = tokens.get(1).is_some_and(|t| t.is_word(sql, "immediate"));
    let prepare = tokens.first().is_some_and(|t| t.is_word(sql, "prepare"));
    if !immediate && !prepare {
        return Ok(Action::Relay);
    }
    let text = match tokens.last() {
        Some(t) if t.kind == TokenKind::Literal(crate::lex::LiteralKind::String) => t,
        _ => return refuse(&errors::DYNAMIC, "a statement text in a variable"),
    };
    let mut scratch = Vec::new();
    let decoded = crate::literal::decode(
        text.text(sql),
        crate::lex::LiteralKind::String,
        false,
        request.settings.lex,
        onionskin_value::Charset::Utf8mb4,
        &mut scratch,
    );
    let Some(onionskin_value::Input::Text { bytes, .. }) = decoded else {
        return refuse(&errors::DYNAMIC, "a statement text");
    };
    let Ok(inner) = crate::lex::tokens(bytes, request.settings.lex) else {
        return refuse(&errors::DYNAMIC, "a statement text");
    };
    let mut names = Vec::new();
    let database = request.settings.database.as_deref();
    if collect(bytes, &inner, request.settings.lex, database, &mut names).is_err() {
        return refuse(&errors::DYNAMIC, "a statement text");
    }
    for (database, name) in names {
        // a name that was not looked up cannot be asked for from here, so it counts as near
        match request.catalog.table(&database, &name) {
            Known::Table(t) if !t.is_protected() => {}
            Known::Absent => {}
            _ => return refuse(&errors::DYNAMIC, name),
        }
    }
    Ok(Action::Relay)
}

/// `information_schema.columns` becomes a derived table that shows the logical columns.
fn columns_view(request: &Request, tokens: &[Token]) -> Planned<Option<Action>> {
    let sql = request.sql;
    let named =
        |t: &Token, what: &str| identifier(sql, t).is_some_and(|n| n.eq_ignore_ascii_case(what));
    let inside = request
        .settings
        .database
        .as_deref()
        .is_some_and(|d| d.eq_ignore_ascii_case("information_schema"));
    let mut places = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        if !named(token, "columns") {
            continue;
        }
        let qualified =
            i >= 2 && tokens[i - 1].is(b'.') && named(&tokens[i - 2], "information_schema");
        let bare = inside
            && i.checked_sub(1).is_some_and(|before| {
                ["from", "join"]
                    .iter()
                    .any(|w| tokens[before].is_word(sql, w))
            });
        if qualified || bare {
            let first = if qualified { i - 2 } else { i };
            places.push((first, i));
        }
    }
    if places.is_empty() || !tokens[0].is_word(sql, "select") {
        return Ok(None);
    }
    let view = information_schema_columns(request.settings.family);
    let planner = Planner::new(request, tokens.to_vec(), Vec::new())?;
    let mut out = TextBuilder::default();
    let mut at = 0;
    for (first, last) in places {
        if tokens.get(last + 1).is_some_and(|t| t.is(b'.')) {
            return refuse(
                &errors::NOT_UNDERSTOOD,
                "information_schema.columns in a column's name",
            );
        }
        planner.copy(at..tokens[first].start, &mut out, 0);
        out.sql(view.as_bytes());
        let next = tokens.get(last + 1);
        let aliased = next.is_some_and(|t| {
            t.kind == TokenKind::Quoted
                || t.is_word(sql, "as")
                || (t.kind == TokenKind::Word && !is_clause(t.text(sql)))
        });
        if !aliased {
            out.sql(b" AS `COLUMNS`");
        }
        at = tokens[last].end;
    }
    planner.copy(at..sql.len(), &mut out, 0);
    Ok(Some(Action::Server {
        text: out.finish(),
        result: None,
    }))
}

fn is_clause(word: &[u8]) -> bool {
    const WORDS: [&str; 17] = [
        "where",
        "join",
        "inner",
        "left",
        "right",
        "cross",
        "straight_join",
        "natural",
        "on",
        "using",
        "order",
        "group",
        "having",
        "limit",
        "union",
        "for",
        "lock",
    ];
    WORDS
        .iter()
        .any(|w| word.eq_ignore_ascii_case(w.as_bytes()))
}

/// Parses and plans the statements that read and write rows.
fn planned(planner: &mut Planner) -> Planned<Action> {
    blank_share_lock(planner);
    blank_modifiers(planner);
    match parse(&planner.parse_text)? {
        Statement::Query(query) => {
            let given = planner.query(&query, None, Mode::Top)?;
            match given.finish {
                Some(finish) => Ok(Action::Finish(Box::new(finish))),
                None => {
                    let text = planner.assemble()?;
                    Ok(Action::Server {
                        text,
                        result: Some(given.items),
                    })
                }
            }
        }
        Statement::Insert(insert) => planner.insert(&insert),
        Statement::Update(update) => planner.update(&update),
        Statement::Delete(delete) => planner.delete(&delete),
        _ => refuse(&errors::STATEMENT, ""),
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

/// The parser does not know `LOCK IN SHARE MODE` at the end of a `SELECT`.
fn blank_share_lock(planner: &mut Planner) {
    let sql = planner.sql();
    let end = planner
        .tokens
        .iter()
        .rposition(|t| !t.is(b';'))
        .map_or(0, |i| i + 1);
    let words = ["lock", "in", "share", "mode"];
    let Some(from) = end.checked_sub(words.len()) else {
        return;
    };
    let last = &planner.tokens[from..end];
    if last.iter().zip(words).all(|(t, w)| t.is_word(sql, w)) {
        let range = last[0].start..last[3].end;
        let blank = " ".repeat(range.len());
        planner.parse_text.replace_range(range, &blank);
    }
}

fn parse(text: &str) -> Planned<Statement> {
    let dialect = MySqlDialect {};
    let bad = |about: String| Refusal::new(&errors::NOT_UNDERSTOOD, about);
    let tokens = Tokenizer::new(&dialect, text)
        .tokenize_with_location()
        .map_err(|_| bad("its words".into()))?;
    let options = ParserOptions::new().with_trailing_commas(false);
    let mut parser = Parser::new(&dialect)
        .with_options(options)
        .with_tokens_with_locations(tokens);
    let statement = parser
        .parse_statement()
        .map_err(|_| bad("its grammar".into()))?;
    if parser.peek_token().token != sqlparser::tokenizer::Token::EOF {
        return Err(bad("text behind its end".into()));
    }
    Ok(statement)
}

/// `EXPLAIN` of a statement: the server explains what it would get.
fn explained<'a>(
    request: &'a Request<'a>,
    tokens: &[Token],
    near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    let sql = request.sql;
    const STATEMENTS: [&str; 5] = ["select", "insert", "update", "delete", "replace"];
    let Some(at) = tokens
        .iter()
        .position(|t| STATEMENTS.iter().any(|w| t.is_word(sql, w)))
    else {
        return refuse(&errors::NOT_UNDERSTOOD, "EXPLAIN");
    };
    if tokens[..at]
        .iter()
        .any(|t| matches!(t.kind, TokenKind::Literal(_)))
    {
        return refuse(
            &errors::NOT_UNDERSTOOD,
            "EXPLAIN with a literal before the statement",
        );
    }
    if tokens[..at].iter().any(|t| t.is_word(sql, "analyze")) {
        return refuse(&errors::NOT_UNDERSTOOD, "EXPLAIN ANALYZE");
    }
    let mut planner = Planner::new(request, tokens[at..].to_vec(), near)?;
    // the parser must not see EXPLAIN and its options
    let blank = tokens[at].start;
    let ascii_prefix = planner.parse_text.get(..blank).is_some_and(str::is_ascii);
    if !ascii_prefix {
        return refuse(&errors::NOT_UNDERSTOOD, "EXPLAIN");
    }
    planner
        .parse_text
        .replace_range(..blank, &" ".repeat(blank));
    let action = planned(&mut planner)?;
    let mut text = vec![Piece::Sql(sql[..blank].to_vec())];
    match action {
        Action::Server { text: inner, .. } => text.extend(inner),
        Action::Finish(finish) => text.extend(finish.text),
        Action::Update(update) => text.extend(update.select),
        other => return Ok((other, Some(planner))),
    }
    Ok((Action::Server { text, result: None }, Some(planner)))
}

/// `SHOW CREATE TABLE`, `SHOW COLUMNS`, `SHOW INDEX`, `DESCRIBE` of one protected table.
fn show<'a>(
    request: &'a Request<'a>,
    tokens: Vec<Token>,
    near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    let sql = request.sql;
    let [table] = near.as_slice() else {
        return refuse(&errors::NOT_UNDERSTOOD, "SHOW with several tables");
    };
    let is = |at: usize, w: &str| tokens.get(at).is_some_and(|t: &Token| t.is_word(sql, w));
    let done = |what, text: Vec<u8>| {
        let text = vec![Piece::Sql(text)];
        Ok((
            Action::Show {
                what,
                text,
                table: Arc::clone(table),
            },
            None,
        ))
    };
    let end = tokens
        .iter()
        .rposition(|t| !t.is(b';'))
        .map_or(0, |i| i + 1);
    if is(0, "show") && is(1, "create") {
        if !is(2, "table") {
            return refuse(
                &errors::STATEMENT,
                "SHOW CREATE of something that uses a protected table",
            );
        }
        return done(Show::CreateTable, sql.to_vec());
    }
    let name = |at: usize| tokens.get(at).and_then(|t| identifier(sql, t));
    let quoted_table = format!("{}.{}", quoted(&table.database), quoted(&table.name));
    if !is(0, "show") {
        // DESCRIBE [db.]table [column | 'pattern']
        let mut at = 2;
        if tokens.get(at).is_some_and(|t| t.is(b'.')) {
            at += 2;
        }
        let (mut like, mut column) = (None, None);
        if at < end {
            match tokens[at].kind {
                TokenKind::Literal(_) => {
                    let literals = &request.template.literals;
                    like = literals.iter().position(|l| l.start == tokens[at].start);
                }
                _ => column = name(at),
            }
            at += 1;
        }
        if at != end {
            return refuse(&errors::NOT_UNDERSTOOD, "DESCRIBE");
        }
        let text = format!("SHOW COLUMNS FROM {quoted_table}").into_bytes();
        return done(Show::Columns { like, column }, text);
    }
    let mut at = 1;
    let full = is(at, "full");
    if full {
        at += 1;
    }
    let what_columns = is(at, "columns") || is(at, "fields");
    let what_index = is(at, "index") || is(at, "indexes") || is(at, "keys");
    at += 1;
    if !(what_columns || what_index) || !(is(at, "from") || is(at, "in")) {
        return refuse(&errors::NOT_UNDERSTOOD, "SHOW");
    }
    at += 2;
    // `db.table`, or `table FROM db`
    if tokens.get(at).is_some_and(|t| t.is(b'.')) || is(at, "from") || is(at, "in") {
        at += 2;
    }
    if what_index {
        if at != end {
            return refuse(&errors::NOT_UNDERSTOOD, "SHOW INDEX … WHERE");
        }
        return done(
            Show::Index,
            format!("SHOW INDEX FROM {quoted_table}").into_bytes(),
        );
    }
    let mut like = None;
    if is(at, "like") && at + 2 == end {
        let start = tokens[at + 1].start;
        like = request
            .template
            .literals
            .iter()
            .position(|l| l.start == start);
        if like.is_none() {
            return refuse(&errors::NOT_UNDERSTOOD, "SHOW COLUMNS … LIKE");
        }
    } else if at != end {
        return refuse(&errors::NOT_UNDERSTOOD, "SHOW COLUMNS … WHERE");
    }
    let full = if full { "FULL " } else { "" };
    let text = format!("SHOW {full}COLUMNS FROM {quoted_table}").into_bytes();
    done(Show::Columns { like, column: None }, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_words_are_sorted() {
        for word in ["add", "limit", "WHERE", "using"] {
            assert!(is_reserved(word), "{word}");
        }
        assert!(!is_reserved("email"));
    }
}
