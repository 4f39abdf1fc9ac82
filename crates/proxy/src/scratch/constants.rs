//! Constant expressions meant for protected columns. The scratch engine computes them, and their
//! values stand in the statement as literals.

use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{
    Action, Computed, LexMode, LiteralKind, Outcome as PlanOutcome, Request, Scratch, Template,
    Verb, errors, lex,
};
use onionskin_value::{
    Charset, Context, Family, Input, Kind, LATEST_TIMESTAMP, SqlMode, SqlType, TimeZone, store,
};
use onionskin_wire::ColumnType;
use onionskin_wire::messages::ColumnDefinition;

use super::engine::{Engine, ours, wire};
use super::settings;
use crate::bind::{Moments, Values, check_letters, check_moments, put_quoted};
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::hex::put_hex;
use crate::session::Session;

/// How often a statement's tables are looked up.
const MAX_LOOKS: usize = 4;
/// Columns of one SELECT.
const AT_ONCE: usize = 500;
/// The collation of binary strings.
const BINARY: u16 = 63;

impl Session {
    /// Runs a statement whose plan is [`Action::Compute`]. `values` holds the parameters of a
    /// prepared one.
    pub fn compute_and_run(&mut self, keyed: &KeyedPlan, values: Values) -> Outcome<()> {
        self.must_mean_the_same(keyed, values)?;
        let moments = match keyed.plan.facts.verb {
            Verb::Insert | Verb::Replace => Moments::OfRows,
            _ => Moments::All,
        };
        check_moments(keyed, values, &self.state, moments)?;
        check_letters(keyed, values, &self.state, |c| c.protection.is_none())?;
        let sql = self.without_parameters(values)?;
        let sql = self.with_computed(&sql)?;
        let mode = self.space.settings.lex;
        self.template
            .read(&sql, mode)
            .map_err(|_| Failure::refused(&errors::INTERNAL, "a computed literal"))?;
        if matches!(self.plan(&sql)?.plan.action, Action::Compute { .. }) {
            return Err(Failure::refused(&errors::INTERNAL, "a computed literal"));
        }
        // what a literal is to the engine need not be what the expression was
        let outer = std::mem::replace(&mut self.current.computing, true);
        let done = self.statement(&sql, false);
        self.current.computing = outer;
        done
    }

    /// The statement with its parameters as literals.
    fn without_parameters(&self, values: Values) -> Outcome<Vec<u8>> {
        let mut sql = Vec::with_capacity(values.sql.len());
        let mut at = 0;
        for (index, literal) in values.literals.iter().enumerate() {
            if literal.kind == LiteralKind::Parameter {
                sql.extend_from_slice(&values.sql[at..literal.start]);
                values.put_literal(index, &self.state, &mut sql)?;
                at = literal.end;
            }
        }
        sql.extend_from_slice(&values.sql[at..]);
        Ok(sql)
    }

    /// The statement with literals in the place of its constant expressions.
    fn with_computed(&mut self, sql: &[u8]) -> Outcome<Vec<u8>> {
        let bad = || Failure::refused(&errors::INTERNAL, "a constant's place");
        let mode = self.space.settings.lex;
        // rows that look alike have expressions of their own
        let mut template = Template::default();
        template.read_unfolded(sql, mode).map_err(|_| bad())?;
        let mut looked_up = 0;
        let plan = loop {
            let outcome = onionskin_plan::plan(&Request {
                sql,
                template: &template,
                settings: &self.space.settings,
                catalog: self.account.as_ref(),
                policy: &self.shared.config.policy,
            });
            match outcome {
                PlanOutcome::Plan(plan) => break plan,
                // words of a literal that stands for a parameter may be names
                PlanOutcome::Need(names) if looked_up < MAX_LOOKS => {
                    looked_up += 1;
                    self.learn(&names)?;
                }
                PlanOutcome::Need(_) => return Err(Failure::Stale),
            }
        };
        let mut computed = match plan.action {
            Action::Compute { computed } => computed,
            Action::Refuse(refusal) => return Err(refusal.into()),
            // with literals in the place of parameters it may run whole on the engine
            _ => return Ok(sql.to_vec()),
        };
        computed.sort_by_key(|c| c.place);
        computed.dedup_by_key(|c| c.place);
        let literals = self.literals(sql, &computed, mode)?;
        let mut out = Vec::with_capacity(sql.len() + 64);
        let mut at = 0;
        for (c, literal) in computed.iter().zip(literals) {
            out.extend_from_slice(sql.get(at..c.place.0).ok_or_else(bad)?);
            out.extend_from_slice(&literal);
            at = c.place.1;
        }
        out.extend_from_slice(sql.get(at..).ok_or_else(bad)?);
        Ok(out)
    }

    /// Computes the expressions.
    fn literals(
        &mut self,
        sql: &[u8],
        computed: &[Computed],
        mode: LexMode,
    ) -> Outcome<Vec<Vec<u8>>> {
        let mut variables: Vec<Vec<u8>> = Vec::new();
        let mut texts = Vec::new();
        for c in computed {
            let text = sql.get(c.place.0..c.place.1).unwrap_or_default();
            let tokens =
                lex::tokens(text, mode).map_err(|_| NotUnderstood::Column(c.column.path()))?;
            let named = tokens.iter().filter(|t| t.kind == lex::TokenKind::Variable);
            variables.extend(named.map(|t| t.text(text).to_vec()));
            texts.push(text);
        }
        variables.sort();
        variables.dedup();
        let nothing = Scratch {
            reads: Vec::new(),
            variables,
            renamed: Vec::new(),
            finds_more: false,
        };
        let Some(charset) = self.state.client_charset else {
            let about = "character_set_client";
            return Err(Failure::refused(&errors::CHARACTER_SET, about));
        };
        // what is no character is shown as one
        if texts
            .iter()
            .any(|text| charset.valid_prefix(text) < text.len())
        {
            let about = "a text that is not well-formed in its character set";
            return Err(Failure::refused(&errors::VALUE, about));
        }
        self.with_engine(&nothing, |session, engine| {
            let server = &mut session.server;
            let users = &nothing.variables;
            let settings = settings::of_session(server, engine, &session.state, users)?;
            engine.share(&settings)?;
            engine.put(b"SET SESSION character_set_results = utf8mb4")?;
            engine.settle()?;
            let mut literals = Vec::new();
            for (texts, computed) in texts.chunks(AT_ONCE).zip(computed.chunks(AT_ONCE)) {
                let mut query = b"SELECT ".to_vec();
                for (n, text) in texts.iter().enumerate() {
                    if n > 0 {
                        query.extend_from_slice(b", ");
                    }
                    query.extend_from_slice(text);
                }
                let question = engine.server.put_query(&query).map_err(ours)?;
                engine.server.flush().map_err(ours)?;
                let (definitions, cells) = engine.server.one_row(question).map_err(wire)?;
                if cells.len() != computed.len() || definitions.len() != cells.len() {
                    return Err(Failure::refused(&errors::INTERNAL, "computed constants"));
                }
                if engine.server.warnings_at_end().map_err(ours)? > 0 {
                    let about = "a constant expression with a warning";
                    return Err(Failure::refused(&errors::VALUE, about));
                }
                let form = engine.server.form;
                let definitions = definitions.iter().map(|definition| {
                    let decoded = ColumnDefinition::decode(definition, form);
                    decoded.map_err(|e| ours(Failure::Backend(e)))
                });
                let definitions = definitions.collect::<Outcome<Vec<_>>>()?;
                let wholes = definitions.iter().zip(&cells).zip(computed);
                let wholes: Vec<_> = wholes
                    .map(|((definition, cell), c)| {
                        cell.as_ref()?;
                        Whole::of(definition, c)
                    })
                    .collect();
                must_have_letters(engine, texts, &definitions, &cells)?;
                let cells = whole_values(engine, texts, &wholes, cells)?;
                for (((definition, cell), c), whole) in
                    definitions.iter().zip(&cells).zip(computed).zip(&wholes)
                {
                    literals.push(match (whole, cell) {
                        (Some(Whole::Text), Some(text)) => quoted_text(text, mode),
                        (Some(Whole::Bytes), Some(bytes)) => bytes_text(bytes),
                        _ => literal(definition, cell.as_deref(), c, mode)?,
                    });
                }
            }
            Ok(literals)
        })
    }
}

/// Refuses texts that a client is shown otherwise than they are: with a question mark for each
/// character that UTF-8 does not have, or that is none. Where such a text is stored, it is an
/// error.
fn must_have_letters(
    engine: &mut Engine,
    texts: &[&[u8]],
    definitions: &[ColumnDefinition],
    cells: &[Option<Vec<u8>>],
) -> Outcome<()> {
    let marks = |cell: &Option<Vec<u8>>| {
        let bytes = cell.iter().flatten();
        bytes.filter(|byte| **byte == b'?').count()
    };
    let shown = definitions.iter().zip(cells).zip(texts);
    let shown: Vec<_> = shown
        .filter(|((d, _), _)| is_string(d.column_type) && d.charset != BINARY)
        .map(|((_, cell), text)| (marks(cell), text))
        .filter(|(marks, _)| *marks > 0)
        .collect();
    if shown.is_empty() {
        return Ok(());
    }
    // the marks that it has, as its own character set counts them
    let count = |text: &[u8]| {
        let rest = [b"CHAR_LENGTH(REPLACE((", text, b"), '?', ''))"].concat();
        [b"CHAR_LENGTH((", text, b")) - ", rest.as_slice()].concat()
    };
    let counts: Vec<Vec<u8>> = shown.iter().map(|(_, text)| count(text)).collect();
    let query = [b"SELECT ", counts.join(b", ".as_slice()).as_slice()].concat();
    let question = engine.server.put_query(&query).map_err(ours)?;
    engine.settle()?;
    // what the engine says of this question is no answer to the client's statement
    let found = match engine.server.one_row(question).map_err(wire) {
        Ok((_, found)) => found,
        Err(Failure::Server { .. }) => Vec::new(),
        Err(failure) => return Err(failure),
    };
    let is_whole = |((marks, _), found): (&(usize, _), &Option<Vec<u8>>)| {
        found.as_deref() == Some(marks.to_string().as_bytes())
    };
    match found.len() == shown.len() && shown.iter().zip(&found).all(is_whole) {
        true => Ok(()),
        false => {
            let about = "a text with a character that UTF-8 does not have";
            Err(Failure::refused(&errors::VALUE, about))
        }
    }
}

/// A value that a client is not shown whole. A number has fewer digits than the server stores: PI()
/// has six behind its point, and on MariaDB 1/3 has four. A text for a column of bytes is shown in
/// another character set than it has. How the whole value is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whole {
    /// Times one, whose digits nobody has counted: DOUBLE.
    Double,
    /// Times one, with as many digits more as a server keeps beyond those that it shows: DECIMAL.
    Decimal,
    /// Stored as a text, which has the digits that are kept: a DECIMAL for a column of texts.
    Text,
    /// As bytes.
    Bytes,
}

impl Whole {
    fn of(definition: &ColumnDefinition, computed: &Computed) -> Option<Self> {
        /// Digits behind the point of a number that has as many as it takes.
        const NOT_COUNTED: u8 = 31;
        let target = computed.column.column().sql_type?;
        let is_text = !target.is_json_value() && (target.is_character() || target.is_binary());
        let takes_bytes = target.is_binary() || target.is_bit();
        match definition.column_type {
            ty if is_string(ty) && takes_bytes && definition.charset != BINARY => {
                Some(Whole::Bytes)
            }
            ColumnType::DOUBLE if definition.decimals >= NOT_COUNTED => None,
            ColumnType::DOUBLE if is_text || target.is_numeric() => Some(Whole::Double),
            ColumnType::NEWDECIMAL if is_text => Some(Whole::Text),
            ColumnType::NEWDECIMAL if target.is_numeric() => Some(Whole::Decimal),
            _ => None,
        }
    }
}

/// The values of these expressions, with those of `wholes` asked for again.
fn whole_values(
    engine: &mut Engine,
    texts: &[&[u8]],
    wholes: &[Option<Whole>],
    mut cells: Vec<Option<Vec<u8>>>,
) -> Outcome<Vec<Option<Vec<u8>>>> {
    const TABLE: &str = "`onionskin`.`onionskin$texts`";
    let places = |is_text: bool| -> Vec<usize> {
        let wanted = |whole: &Whole| (*whole == Whole::Text) == is_text;
        let places = wholes.iter().enumerate();
        let places = places.filter(|(_, whole)| whole.as_ref().is_some_and(wanted));
        places.map(|(at, _)| at).collect()
    };
    let listed = |places: &[usize], each: &dyn Fn(usize) -> Vec<u8>| {
        let all: Vec<Vec<u8>> = places.iter().map(|&at| each(at)).collect();
        all.join(b", ".as_slice())
    };
    let mut fill = |engine: &mut Engine, places: &[usize], query: &[u8]| {
        let question = engine.server.put_query(query).map_err(ours)?;
        engine.settle()?;
        let (_, found) = engine.server.one_row(question).map_err(wire)?;
        let is_whole = found.len() == places.len() && found.iter().all(Option::is_some);
        if !is_whole || engine.server.warnings_at_end().map_err(ours)? > 0 {
            let about = "a constant expression with a warning";
            return Err(Failure::refused(&errors::VALUE, about));
        }
        for (&at, cell) in places.iter().zip(found) {
            cells[at] = cell;
        }
        Ok(())
    };
    let computed = places(false);
    if !computed.is_empty() {
        let again = |at: usize| match wholes[at] {
            Some(Whole::Bytes) => [b"CAST((", texts[at], b") AS BINARY)"].concat(),
            Some(Whole::Double) => [b"(", texts[at], b") * 1e0"].concat(),
            _ => [b"(", texts[at], b") * 1.000000000"].concat(),
        };
        let list = listed(&computed, &again);
        let query = [b"SELECT ", list.as_slice(), b" LIMIT 1"].concat();
        fill(engine, &computed, &query)?;
    }
    let stored = places(true);
    if !stored.is_empty() {
        let column = |at: usize| format!("c{at} LONGTEXT").into_bytes();
        let columns = String::from_utf8_lossy(&listed(&stored, &column)).into_owned();
        let value = |at: usize| [b"(".as_slice(), texts[at], b")"].concat();
        let values = listed(&stored, &value);
        engine.need_database("onionskin")?;
        let gone = format!("DROP TEMPORARY TABLE IF EXISTS {TABLE}");
        engine.put(gone.as_bytes())?;
        let create = format!("CREATE TEMPORARY TABLE {TABLE} ({columns}) DEFAULT CHARSET=utf8mb4");
        engine.put(create.as_bytes())?;
        engine.drop_in_the_end(gone);
        let insert = format!("INSERT INTO {TABLE} VALUES (");
        engine.put(&[insert.as_bytes(), &values, b")"].concat())?;
        let query = format!("SELECT * FROM {TABLE} LIMIT 1");
        fill(engine, &stored, query.as_bytes())?;
    }
    Ok(cells)
}

/// A computed value as a literal that stands for it in this column.
fn literal(
    definition: &ColumnDefinition,
    cell: Option<&[u8]>,
    computed: &Computed,
    mode: LexMode,
) -> Outcome<Vec<u8>> {
    let unfit = || Failure::refused(&errors::VALUE, computed.column.path());
    let Some(cell) = cell else {
        return Ok(b"NULL".to_vec());
    };
    let target: SqlType = computed.column.column().sql_type.ok_or_else(unfit)?;
    let is_time = definition.column_type == ColumnType::TIME;
    Ok(match definition.column_type {
        ColumnType::TINY
        | ColumnType::SHORT
        | ColumnType::INT24
        | ColumnType::LONG
        | ColumnType::LONGLONG
        | ColumnType::NEWDECIMAL => cell.to_vec(),
        ColumnType::DOUBLE => {
            let mut text = cell.to_vec();
            if !text.contains(&b'e') {
                text.extend_from_slice(b"e0");
            }
            text
        }
        ColumnType::DATE | ColumnType::DATETIME | ColumnType::TIMESTAMP | ColumnType::TIME => {
            // as a number it would be another, and a time has a date only as a time
            let fits = match is_time {
                true => matches!(target.kind, Kind::Time { .. }) || target.is_character(),
                false => target.is_temporal() || target.is_character(),
            };
            if !fits {
                return Err(unfit());
            }
            quoted_text(cell, mode)
        }
        ty if is_string(ty) => string(definition, cell, mode),
        ColumnType::JSON if target.is_json_value() && is_kept(cell) => {
            let mut text = b"_utf8mb4 ".to_vec();
            put_hex(cell, &mut text);
            text
        }
        _ => return Err(unfit()),
    })
}

/// Whether a document is the same after it was sealed as text. One with a DECIMAL that ends in
/// zeros is not.
fn is_kept(document: &[u8]) -> bool {
    let context = Context {
        sql_mode: SqlMode::STRICT,
        time_zone: &TimeZone::UTC,
        family: Family::MySql,
        latest_timestamp: LATEST_TIMESTAMP,
        signed_zero: false,
        enum_takes_zero: false,
        ignore: false,
        row: 1,
        column: "",
        database: "",
        table: "",
    };
    let input = Input::Text {
        bytes: document,
        charset: Charset::Utf8mb4,
    };
    let json = SqlType::json(Family::MySql);
    let mut payload = Vec::new();
    store(&json, input, &context, &mut payload, &mut Vec::new()).is_ok() && payload == document
}

fn string(definition: &ColumnDefinition, cell: &[u8], mode: LexMode) -> Vec<u8> {
    let is_text = definition.charset != BINARY;
    if is_text && cell.is_ascii() {
        return quoted_text(cell, mode);
    }
    // the client's character set may not have the character
    if !is_text {
        return bytes_text(cell);
    }
    let mut text = b"_utf8mb4 ".to_vec();
    put_hex(cell, &mut text);
    text
}

fn is_string(ty: ColumnType) -> bool {
    matches!(
        ty,
        ColumnType::VAR_STRING
            | ColumnType::STRING
            | ColumnType::VARCHAR
            | ColumnType::BLOB
            | ColumnType::TINY_BLOB
            | ColumnType::MEDIUM_BLOB
            | ColumnType::LONG_BLOB
    )
}

/// A binary string. Without the name of its set it would be a number beside numbers.
fn bytes_text(bytes: &[u8]) -> Vec<u8> {
    let mut text = b"_binary ".to_vec();
    put_hex(bytes, &mut text);
    text
}

fn quoted_text(cell: &[u8], mode: LexMode) -> Vec<u8> {
    let mut text = Vec::with_capacity(cell.len() + 2);
    put_quoted(cell, mode, &mut text);
    text
}
