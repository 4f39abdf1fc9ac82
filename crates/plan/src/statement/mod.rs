//! From a statement to its plan: is anything protected near, and which rule is for it.
//!
//! "Near" is decided by words, not by the parser: if any identifier of the statement, inside
//! executable comments too, is the name of a protected table in the current database or in a
//! database that the statement names, a rule has to understand the statement completely. If
//! none is, the statement goes through untouched, whether or not it parses.
//!
//! `near.rs` collects the words, `words.rs` tells statements apart by them, `nested.rs` finds
//! queries where none belongs, `definitions.rs` the definitions that no rule reads, `renames.rs`
//! looks at tables' new names, `schema.rs` at EXPLAIN FOR SCHEMA, `histogram.rs` at the columns of
//! histograms; `rows.rs` plans what reads and writes rows. `missing.rs` finds tables that may not
//! be there, with `program_tables.rs` for those of stored programs; `program/` reads the programs
//! themselves. `unmet.rs` refuses tables that are not what the configuration or the pins say,
//! `set_statement.rs` plans statements behind settings of their own, `show.rs` and
//! `columns_view.rs` the others. Of statements in the texts of statements, `by_name.rs` says where
//! they are.

mod columns_view;
mod definitions;
mod end_query;
mod grants;
mod histogram;
mod into;
mod missing;
mod near;
mod nested;
mod program;
mod program_tables;
mod renames;
mod rows;
mod schema;
mod set_statement;
pub(crate) mod settings;
mod show;
mod stray;
mod string_names;
mod unmet;
mod view;
mod words;

use std::sync::Arc;

use onionskin_schema::{Table, TableName};

use crate::errors::{self, NotUnderstood, Refusal};
use crate::facts::Facts;
use crate::lex::{LexError, LexMode, LiteralKind, Token, TokenKind, tokens};
use crate::parse;
use crate::plan::{Action, Defines, Doubt, Plan};
use crate::planner::{Known, Planned, Planner, Request, UseScratch, refuse};
use crate::request::{BROKEN_VIEW, HIDDEN, Settings};
use crate::scratch::takes_over;

use self::columns_view::columns_view;
use self::histogram::Histogram;
pub(crate) use self::near::candidates;
pub use self::program::reads_program;
pub use self::program_tables::tables_of_program;
pub(crate) use self::rows::query_behind;
use self::rows::{explained, on_scratch, planned};
use self::set_statement::{is_set_statement, set_statement};
use self::show::show;
use self::string_names::string_as_name;
use self::words::{
    defines, defines_view, first_words, gives_events, hides_by_name, is_analyze, is_by_name,
    is_describe, is_idle_comment, made_view, manages_accounts, only_names, relayed_by_table_name,
    word_is,
};
pub(crate) use self::words::{flattened, is_one_of};

/// Whether a value and a table's column stand in a question about the last statement: such a text
/// is answered without a plan, and may not be sent.
pub fn asks_of_columns(sql: &[u8], mode: LexMode) -> bool {
    tokens(sql, mode).map_or(true, |all| nested::asks_with_columns(sql, &all, mode))
}

/// What planning answers.
#[derive(Debug)]
pub enum Outcome {
    /// The plan.
    Plan(Box<Plan>),
    /// These tables have to be looked up first.
    Need(Vec<TableName>),
}

type Decided<'a> = (Action, Option<Planner<'a>>);

/// Plans one statement.
pub fn plan(request: &Request) -> Outcome {
    let tokens = match tokens(request.sql, request.settings.lex) {
        Ok(tokens) => tokens,
        // the server will not understand it either, but what is in it is not known
        Err(error) => return unread(NotUnderstood::from(error).into()),
    };
    match schema::of_explain(request, &tokens) {
        Ok(None) => plan_here(request, tokens),
        // all that follows is about the tables of that one
        Ok(Some(database)) => {
            let settings = Settings {
                database: Some(database),
                ..request.settings.clone()
            };
            let settings = &settings;
            plan_here(
                &Request {
                    settings,
                    ..*request
                },
                tokens,
            )
        }
        Err(refusal) => unread(refusal),
    }
}

/// The same in the database that its names without one are of.
fn plan_here(request: &Request, tokens: Vec<Token>) -> Outcome {
    let names = match candidates(request, &tokens) {
        Ok(mut names) => {
            names.extend(program_tables::in_prepared_texts(request, &tokens));
            names
        }
        Err(error) => {
            let refusal = Refusal::from(NotUnderstood::from(error));
            return unread(match error {
                LexError::TooManyNames(_) => refusal,
                _ => refusal.under(&errors::EXECUTABLE_COMMENT),
            });
        }
    };
    let mut unknown = Vec::new();
    let mut near = Vec::new();
    let words = first_words(request.sql, &tokens, 3);
    let shows = word_is(&words, 0, "show") && word_is(&words, 1, "create");
    let may_be_view = shows && (word_is(&words, 2, "table") || word_is(&words, 2, "view"));
    let shows = shows && word_is(&words, 2, "table");
    for name in &names {
        match request.catalog.table(&name.database, &name.name) {
            Known::Unknown => unknown.push(name.clone()),
            Known::Table(table) if table.is_protected() => near.push(table),
            Known::Table(table) if shows && may_have_marks(request, &table) => near.push(table),
            // a view's text may have physical names, whatever its columns are
            Known::Table(table) if may_be_view && near.is_empty() => near.push(table),
            _ => {}
        }
    }
    if !unknown.is_empty() {
        return Outcome::Need(unknown);
    }
    let defines = defines(request.sql, &tokens);
    let facts = Facts::of(request.sql, &tokens, request.settings.lex);
    let definition = definitions::check(request, &tokens, &names);
    let protects = definitions::protects(request, &tokens, !near.is_empty());
    let renamed = renames::check(request, &tokens, &names);
    let unmet = unmet::check(request, &names);
    let asks = facts.question.asks();
    let doubt = missing::doubt(request, &tokens, &names, asks, near.is_empty());
    let hidden = nested::Hidden::of(request, &tokens, &near);
    // far from all protected tables nothing is parsed
    let levels = match near.is_empty() && defines != Defines::Names {
        true => 0,
        false => parse::levels(request.sql, &tokens),
    };
    if levels > parse::MAX_LEVELS && !near.is_empty() && is_parsed(request.sql, &tokens) {
        let plan = Plan::of(Action::Refuse(parse::too_deep()), names, defines);
        return Outcome::Plan(Box::new(plan));
    }
    let for_unmet = match unmet.is_empty() && !request.policy.enforces() {
        true => Vec::new(),
        false => tokens.clone(),
    };
    let program = !near.is_empty() && program::is_program(request.sql, &tokens);
    let is_histogram = Histogram::read(request, &tokens).is_some();
    let decided = parse::with_room(levels, || decide(request, tokens, near)).and_then(|decided| {
        unmet::allow(request, &for_unmet, &unmet, &decided.0)?;
        crate::tenant::check(&decided.0)?;
        // their own rules have read all of them, a program's queries too
        if !program && !is_histogram {
            hidden.check(&decided.0, || missing::names_any(request, &names))?;
        }
        if let Action::Relay = decided.0 {
            definition?;
            doubt.as_ref().map_err(Clone::clone)?;
        }
        renamed.map(|()| decided)
    });
    let plan = match decided {
        Ok((action, None)) => Plan::of(action, names, defines),
        Ok((action, Some(p))) => Plan {
            columns: p.columns,
            pinned: p.pinned,
            probe: p.probe,
            insert_only: p.insert_only,
            rewritten: p.rewritten,
            grouping: p.grouping,
            row_ends: p.row_ends,
            surplus_values: p.surplus_values,
            beside_plain: p.beside_plain,
            upsert: p.upsert.map(Box::new),
            tells_time: p.present.is_asked_for(),
            ..Plan::of(action, names, defines)
        },
        Err(refusal) => {
            let refusal = match request.settings.scratch {
                UseScratch::Never => refusal,
                _ => refusal.beside_engine(),
            };
            Plan::of(Action::Refuse(refusal), names, defines)
        }
    };
    let doubt = match &plan.action {
        Action::Refuse(_) | Action::Show { .. } | Action::ByName(_) => Doubt::None,
        // no server reads a definition as it is written
        Action::Define(_) | Action::Refit(_) | Action::Copy(_) => {
            doubt.unwrap_or_default().of_definition()
        }
        _ => doubt.unwrap_or_default(),
    };
    Outcome::Plan(Box::new(Plan {
        facts,
        doubt,
        program,
        protects,
        ..plan
    }))
}

/// Whether a table without protected columns may have marks of columns that stay plaintext, which
/// are not shown.
fn may_have_marks(request: &Request, table: &Table) -> bool {
    !table.view
        && table.columns.iter().any(|c| c.refers_to_plaintext)
        && request.policy.enforces_in(&table.database, &table.name)
}

/// Whether a statement with these first words goes to the parser as a whole. Definitions and grants
/// are read by tokens; the queries and expressions in them meet the parser's own bound.
fn is_parsed(sql: &[u8], tokens: &[Token]) -> bool {
    const OTHERS: [&str; 6] = ["create", "alter", "drop", "rename", "grant", "revoke"];
    let first = tokens.first();
    !first.is_some_and(|t| OTHERS.iter().any(|word| t.is_word(sql, word)))
}

/// A refusal of what is not read any further. Its words may say anything.
fn unread(refusal: Refusal) -> Outcome {
    let plan = Plan::of(Action::Refuse(refusal), Vec::new(), Defines::Nothing);
    Outcome::Plan(Box::new(plan))
}

/// Finds the rule for a statement. Those before the rules for tables look at words only, and at
/// statements that are far from all protected tables as well.
fn decide<'a>(
    request: &'a Request<'a>,
    mut tokens: Vec<Token>,
    mut near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    let sql = request.sql;
    let words = first_words(sql, &tokens, 4);
    if let Some(made) = made_view(request, &tokens, &words) {
        // whatever is wrong with a view that is there, the server knows whether it is replaced
        let is_made = |table: &Table| {
            let name = TableName::new(&table.database, &table.name);
            table.view && table.damaged.is_some() && made.is_same(&name)
        };
        near.retain(|table| !is_made(table));
    }
    let starts = |w: &str| word_is(&words, 0, w);
    if let Some(action) = by_name(request, &tokens, &words)? {
        return Ok((action, None));
    }
    if gives_events(sql, &tokens, request.settings.lex) {
        return refuse(&errors::STATEMENT, "BINLOG, whose rows are not read");
    }
    if starts("create") && crate::ddl::creates_table(sql, &tokens) {
        return crate::ddl::create_table(request, tokens, near);
    }
    if starts("alter") && crate::ddl::alters_table(sql, &tokens) {
        return crate::ddl::alter_table(request, tokens, near);
    }
    if string_as_name(sql, &tokens) {
        return NotUnderstood::StringAsName.refuse();
    }
    if let Some(action) = without_tables(request, &tokens, near.is_empty())? {
        return Ok((action, None));
    }
    if is_relayed_unseen(sql, &tokens, &words, &near)? {
        return Ok((Action::Relay, None));
    }
    check_damaged(&words, &near, only_names(sql, &tokens))?;
    const WITH_IDLE: [&str; 6] = ["select", "lock", "insert", "replace", "update", "delete"];
    if WITH_IDLE.iter().any(|word| starts(word)) {
        // what mysqldump and MediaWiki write; left out, they change nothing that is answered
        tokens.retain(|t| !is_idle_comment(sql, t));
    }
    if tokens.iter().any(|t| t.kind == TokenKind::Executable) {
        return refuse(&errors::EXECUTABLE_COMMENT, "");
    }
    near_tables(request, tokens, &words, near)
}

/// Statements that are prepared by their names, in SQL.
fn by_name(request: &Request, tokens: &[Token], words: &[&str]) -> Planned<Option<Action>> {
    if hides_by_name(request.sql, tokens, request.settings.lex) {
        return refuse(&errors::EXECUTABLE_COMMENT, "");
    }
    if !is_by_name(words) {
        return Ok(None);
    }
    match crate::by_name::read(request.sql, request.settings.lex, tokens) {
        Some(statement) => Ok(Some(Action::ByName(statement))),
        None => refuse(&errors::DYNAMIC, "a statement text in this form"),
    }
}

/// Statements that are far from all protected tables, and those that read the views of
/// `information_schema`.
fn without_tables(request: &Request, tokens: &[Token], is_far: bool) -> Planned<Option<Action>> {
    if is_far && let Some(action) = settings::with_scope(request, tokens)? {
        return Ok(Some(action));
    }
    match columns_view(request, tokens)? {
        // the rest of the statement goes to the server as it is
        Some(_) if !is_far && !names_system_tables(request, tokens) => {
            NotUnderstood::Beside("information_schema", "a protected table").refuse()
        }
        Some(action) => Ok(Some(action)),
        None => Ok(is_far.then_some(Action::Relay)),
    }
}

/// Whether all tables that a statement reads are the server's own. A word of it may be the name of
/// a protected table all the same, as an alias.
fn names_system_tables(request: &Request, tokens: &[Token]) -> bool {
    let hides = |t: &Token| matches!(t.kind, TokenKind::Executable | TokenKind::Hint);
    let is_system = |database: &str| {
        ["information_schema", "performance_schema"]
            .iter()
            .any(|system| database.eq_ignore_ascii_case(system))
    };
    let present = request.settings.database.as_deref();
    let tables = match tokens.iter().any(hides) {
        true => None,
        false => near::tables_in_tree(request, tokens),
    };
    tables.is_some_and(|tables| {
        let mut databases = tables
            .iter()
            .map(|(database, _)| database.as_deref().or(present));
        databases.all(|database| database.is_some_and(is_system))
    })
}

/// Whether the statement goes to the server as it is because the account cannot see the columns of
/// its tables. What compares, the server refuses; it need not see with what.
fn is_relayed_unseen(
    sql: &[u8],
    tokens: &[Token],
    words: &[&str],
    near: &[Arc<Table>],
) -> Planned<bool> {
    let is_hidden = |t: &Arc<Table>| t.damaged.as_deref() == Some(HIDDEN);
    let Some(table) = near.iter().find(|t| is_hidden(t)) else {
        return Ok(false);
    };
    let tells_nothing = word_is(words, 0, "drop") || !holds_constants(sql, tokens);
    if near.iter().all(is_hidden) && tells_nothing {
        return Ok(true);
    }
    if table.view {
        return Err(Refusal::broken_view(&table.database, &table.name));
    }
    let about = format!("{}.{}", table.database, table.name);
    refuse(&errors::HIDDEN_COLUMNS, about)
}

/// A damaged table can be dropped; a broken view can get another name and be shown, too.
fn check_damaged(words: &[&str], near: &[Arc<Table>], only_names: bool) -> Planned<()> {
    let is = |at, word| word_is(words, at, word);
    let renames = is(0, "rename") && (is(1, "table") || is(1, "tables"));
    let shows = is(0, "show") && is(1, "create") && (is(2, "table") || is(2, "view"));
    let may_be_broken = only_names && (renames || shows);
    for table in near {
        if let Some(reason) = &table.damaged
            && !is(0, "drop")
            && !(may_be_broken && table.view)
        {
            if reason == BROKEN_VIEW {
                return Err(Refusal::broken_view(&table.database, &table.name));
            }
            let about = format!("{}.{} ({reason})", table.database, table.name);
            return refuse(&errors::DAMAGED, about);
        }
    }
    Ok(())
}

/// Finds the rule for a statement that is near protected tables, none of them damaged but to be
/// dropped.
fn near_tables<'a>(
    request: &'a Request<'a>,
    tokens: Vec<Token>,
    words: &[&str],
    near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    let sql = request.sql;
    let starts = |w: &str| word_is(words, 0, w);
    let describes = starts("explain") || starts("describe") || starts("desc");
    if program::is_program(sql, &tokens) {
        program::check(request, &tokens, &near)?;
        return Ok((Action::Relay, None));
    }
    if starts("grant") || starts("revoke") {
        return grants::grant(request, tokens, near);
    }
    if starts("load") {
        let mut planner = Planner::new(request, tokens, near)?;
        let action = crate::scratch::load(&mut planner)?;
        return Ok((action, Some(planner)));
    }
    if let Some(histogram) = Histogram::read(request, &tokens) {
        histogram.check(request)?;
        return Ok((Action::Relay, None));
    }
    if relayed_by_table_name(words) && only_names(sql, &tokens) || manages_accounts(words) {
        return Ok((Action::Relay, None));
    }
    if defines_view(sql, &tokens, words) {
        return view::create_view(request, tokens, near);
    }
    if starts("checksum") {
        let about =
            "CHECKSUM TABLE, which would sum up sealed cells: they differ where values are equal";
        return refuse(&errors::STATEMENT, about);
    }
    if starts("create") || (starts("drop") && word_is(words, 1, "index")) {
        return crate::ddl::index(request, tokens, near);
    }
    if starts("show") || (describes && is_describe(sql, &tokens)) {
        return show(request, tokens, near);
    }
    if describes || is_analyze(request, &tokens) {
        return explained(request, &tokens, near);
    }
    if is_set_statement(request, &tokens) {
        return set_statement(request, &tokens, near);
    }
    reads_or_writes(request, tokens, near)
}

/// Statements that read and write rows: tiers 1 and 2, and tier 3 where those refuse.
fn reads_or_writes<'a>(
    request: &'a Request<'a>,
    tokens: Vec<Token>,
    near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    if request.settings.scratch == UseScratch::Always {
        let refusal = Refusal::new(&errors::VALUE, "");
        return on_scratch_engine(request, tokens, near, refusal);
    }
    let mut planner = Planner::new(request, tokens.clone(), near.clone())?;
    match planned(&mut planner) {
        Ok(action) => Ok((action, Some(planner))),
        Err(refusal) if request.settings.scratch != UseScratch::Never && takes_over(&refusal) => {
            on_scratch_engine(request, tokens, near, refusal)
        }
        Err(refusal) => Err(refusal),
    }
}

/// Whether a constant or a parameter stands in the statement, but for the number of a LIMIT.
fn holds_constants(sql: &[u8], tokens: &[Token]) -> bool {
    (0..tokens.len()).any(|at| match tokens[at].kind {
        TokenKind::Executable => true,
        TokenKind::Literal(kind) => {
            let is_limit = at > 0 && tokens[at - 1].is_word(sql, "limit");
            !(is_limit && kind == LiteralKind::Integer)
        }
        _ => false,
    })
}

/// What tiers 1 and 2 have refused, on tier 3. Its own refusals are the more helpful ones where it
/// knows the kind of statement.
fn on_scratch_engine<'a>(
    request: &'a Request<'a>,
    tokens: Vec<Token>,
    near: Vec<Arc<Table>>,
    refusal: Refusal,
) -> Planned<Decided<'a>> {
    let mut planner = Planner::new(request, tokens, near)?;
    match on_scratch(&mut planner) {
        Ok(Some(action)) => Ok((action, Some(planner))),
        Ok(None) => Err(refusal),
        Err(other) if other.reason().is_some() => Err(refusal),
        Err(other) => Err(other),
    }
}
