//! Definitions: `CREATE TABLE`, `ALTER TABLE`, `CREATE INDEX`.
//!
//! These are read from tokens, not from a syntax tree: only the parts that concern protected
//! columns need to be understood, and `ENCRYPTED FOR (…)` is ours alone. What is not understood
//! near a protected column is refused. Ids and authentication tags are made when the plan is
//! carried out, so the text has pieces for them.

use std::ops::Range;
use std::sync::Arc;

use onionskin_schema::{Capabilities, DefaultLiteral, NewColumn, SchemaError, Table};
use onionskin_value::{Charset, Family, Input, SqlType};

use crate::errors::{self, Refusal};
use crate::lex::{Token, TokenKind};
use crate::plan::Action;
use crate::planner::{Known, Planned, Planner, Request, identifier, quoted, refuse};
use crate::scope::position;
use crate::statement::COLLATION;

/// A definition with places for what only its execution knows.
#[derive(Clone, Debug)]
pub struct Ddl {
    /// Its text.
    pub pieces: Vec<DdlPiece>,
    /// New protected columns; their ids are still zero.
    pub new_columns: Vec<NewColumn>,
    /// The table, when it exists already and has protected columns.
    pub table: Option<Arc<Table>>,
}

/// A part of a definition's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DdlPiece {
    /// Text as it is.
    Sql(Vec<u8>),
    /// The physical definitions of a new column, in `CREATE TABLE`.
    Definitions(usize),
    /// The specifications that add a new column, in `ALTER TABLE`.
    Add {
        /// Which of the new columns.
        column: usize,
        /// Where: `None` at the end, `Some(None)` first, `Some(Some(name))` after a column.
        place: Option<Option<String>>,
    },
    /// The column that an index on a new column is built on.
    IndexColumn(usize),
    /// The specifications that drop a protected column, by its index in [`Ddl::table`].
    Drop(usize),
    /// The specifications that rename a protected column.
    Rename(usize, String),
    /// The specifications that change a protected column's default.
    SetDefault(usize, Option<DefaultLiteral>),
}

fn schema_refusal(error: &SchemaError) -> Refusal {
    let entry = match error {
        SchemaError::IndexWithoutCapability { .. } => &errors::INDEX,
        _ => &errors::DEFINITION,
    };
    Refusal::new(entry, error.to_string())
}

/// Whether the statement is `CREATE [OR REPLACE] [TEMPORARY] TABLE`.
pub(crate) fn creates_table(sql: &[u8], tokens: &[Token]) -> bool {
    tokens
        .iter()
        .take(5)
        .take_while(|t| t.kind == TokenKind::Word)
        .any(|t| t.is_word(sql, "table"))
}

/// Walks over the tokens of a definition.
struct Reader<'a> {
    request: &'a Request<'a>,
    tokens: &'a [Token],
    at: usize,
    end: usize,
}

impl<'a> Reader<'a> {
    fn over(request: &'a Request<'a>, tokens: &'a [Token], range: Range<usize>) -> Self {
        Reader {
            request,
            tokens,
            at: range.start,
            end: range.end,
        }
    }

    fn sql(&self) -> &'a [u8] {
        self.request.sql
    }

    fn token(&self) -> Option<Token> {
        if self.at < self.end {
            self.tokens.get(self.at).copied()
        } else {
            None
        }
    }

    fn is(&self, word: &str) -> bool {
        self.token().is_some_and(|t| t.is_word(self.sql(), word))
    }

    fn eat(&mut self, word: &str) -> bool {
        let found = self.is(word);
        self.at += usize::from(found);
        found
    }

    fn eat_punct(&mut self, byte: u8) -> bool {
        let found = self.token().is_some_and(|t| t.is(byte));
        self.at += usize::from(found);
        found
    }

    fn name(&mut self) -> Option<String> {
        let name = identifier(self.sql(), &self.token()?)?;
        self.at += 1;
        Some(name)
    }

    fn done(&self) -> bool {
        self.at >= self.end
    }

    /// Skips `( … )`; returns the tokens inside.
    fn parenthesized(&mut self) -> Option<Range<usize>> {
        if !self.token()?.is(b'(') {
            return None;
        }
        let open = self.at;
        let mut depth = 0usize;
        while let Some(t) = self.token() {
            if t.is(b'(') {
                depth += 1;
            } else if t.is(b')') {
                depth -= 1;
                if depth == 0 {
                    self.at += 1;
                    return Some(open + 1..self.at - 1);
                }
            }
            self.at += 1;
        }
        None
    }

    /// The bytes from a token to the one before `end`.
    fn text(&self, range: Range<usize>) -> &'a [u8] {
        match (self.tokens.get(range.start), range.end.checked_sub(1)) {
            (Some(first), Some(last)) if range.start < range.end => {
                &self.sql()[first.start..self.tokens[last].end]
            }
            _ => b"",
        }
    }

    /// `[database.]table`
    fn table(&mut self) -> Option<(Option<String>, String)> {
        let first = self.name()?;
        if self.eat_punct(b'.') {
            return Some((Some(first), self.name()?));
        }
        Some((self.request.settings.database.clone(), first))
    }

    /// Cuts a range at commas outside of parentheses.
    fn split(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        let (mut depth, mut from) = (0usize, range.start);
        for at in range.clone() {
            let t = &self.tokens[at];
            if t.is(b'(') {
                depth += 1;
            } else if t.is(b')') {
                depth = depth.saturating_sub(1);
            } else if t.is(b',') && depth == 0 {
                parts.push(from..at);
                from = at + 1;
            }
        }
        parts.push(from..range.end);
        parts
    }
}

/// Builds a definition's text.
#[derive(Default)]
struct Pieces(Vec<DdlPiece>);

impl Pieces {
    fn sql(&mut self, text: &[u8]) {
        match self.0.last_mut() {
            Some(DdlPiece::Sql(last)) => last.extend_from_slice(text),
            _ => self.0.push(DdlPiece::Sql(text.to_vec())),
        }
    }
}

/// A column's attributes beside its protection.
struct ColumnDef {
    column: NewColumn,
    /// `UNIQUE` or `PRIMARY KEY` in the column's own definition.
    key: Option<&'static str>,
}

fn has_encrypted(sql: &[u8], tokens: &[Token]) -> bool {
    tokens
        .windows(2)
        .any(|w| w[0].is_word(sql, "encrypted") && w[1].is_word(sql, "for"))
}

/// `ENCRYPTED FOR (eq, range, join:NAME)` in a column's definition: the capabilities and the
/// definition's tokens without it.
#[allow(clippy::type_complexity)] // the pair is taken apart at once
fn take_encrypted(
    reader: &Reader,
    range: Range<usize>,
) -> Planned<Option<(Capabilities, Range<usize>, Range<usize>)>> {
    let sql = reader.sql();
    let found = range.clone().find(|&i| {
        reader.tokens[i].is_word(sql, "encrypted")
            && reader
                .tokens
                .get(i + 1)
                .is_some_and(|t| t.is_word(sql, "for"))
    });
    let Some(start) = found else { return Ok(None) };
    let mut inner = Reader::over(reader.request, reader.tokens, start + 2..range.end);
    let bad = || Refusal::new(&errors::DEFINITION, "ENCRYPTED FOR (eq, range, join:NAME)");
    let words = inner.parenthesized().ok_or_else(bad)?;
    let mut capabilities = Capabilities::default();
    if !words.is_empty() {
        for part in reader.split(words) {
            let mut word = Reader::over(reader.request, reader.tokens, part);
            if word.eat("eq") {
                capabilities.eq = true;
            } else if word.eat("range") {
                capabilities.range = true;
            } else if word.eat("join") {
                if !word.eat_punct(b':') && !word.eat_punct(b'=') {
                    return Err(bad());
                }
                capabilities.join = Some(word.name().ok_or_else(bad)?);
            } else {
                return Err(bad());
            }
            if !word.done() {
                return Err(bad());
            }
        }
    }
    let stop = inner.at;
    Ok(Some((capabilities, range.start..start, stop..range.end)))
}

fn default_collation(charset: &str, family: Family) -> Option<&'static str> {
    Some(match (charset.to_ascii_lowercase().as_str(), family) {
        ("utf8mb4", Family::MariaDb) => "utf8mb4_general_ci",
        ("utf8mb4", Family::MySql) => "utf8mb4_0900_ai_ci",
        ("utf8" | "utf8mb3", Family::MariaDb) => "utf8mb3_general_ci",
        ("utf8" | "utf8mb3", Family::MySql) => "utf8mb3_general_ci",
        ("latin1", _) => "latin1_swedish_ci",
        ("ascii", _) => "ascii_general_ci",
        ("binary", _) => "binary",
        _ => return None,
    })
}

/// Reads a protected column's definition: `name type attributes`.
fn column_definition(
    reader: &Reader,
    parts: &[Range<usize>],
    capabilities: Capabilities,
    table_collation: &str,
) -> Planned<ColumnDef> {
    let sql = reader.sql();
    let family = reader.request.settings.family;
    let tokens: Vec<Token> = parts
        .iter()
        .flat_map(|r| reader.tokens[r.clone()].iter().copied())
        .collect();
    let mut r = Reader::over(reader.request, &tokens, 0..tokens.len());
    let bad = |about: &str| Refusal::new(&errors::DEFINITION, about.to_string());
    let name = r.name().ok_or_else(|| bad("a column's name"))?;
    let attribute =
        |what: &str| Refusal::new(&errors::DEFINITION, format!("column {name}: {what}"));

    let mut type_text = String::new();
    let first = r
        .name()
        .ok_or_else(|| attribute("its type"))?
        .to_ascii_lowercase();
    let mut binary_text = false;
    type_text.push_str(match first.as_str() {
        "integer" => "int",
        "int1" => "tinyint",
        "int2" => "smallint",
        "int3" | "middleint" => "mediumint",
        "int4" => "int",
        "int8" => "bigint",
        "bool" | "boolean" => "tinyint(1)",
        "dec" | "numeric" | "fixed" => "decimal",
        "real" => "double",
        "float4" => "float",
        "float8" => "double",
        "character" | "char" if r.eat("varying") => "varchar",
        "character" => "char",
        "varcharacter" => "varchar",
        "long" => "mediumtext",
        other => other,
    });
    if first == "double" {
        r.eat("precision");
    }
    if let Some(inside) = r.parenthesized() {
        let text = String::from_utf8_lossy(r.text(inside)).replace(char::is_whitespace, "");
        type_text.push_str(&format!("({text})"));
    } else if type_text == "decimal" {
        type_text.push_str("(10,0)");
    } else if type_text == "char" || type_text == "binary" {
        type_text.push_str("(1)");
    }
    let (mut charset, mut collation) = (None, None);
    let (mut not_null, mut null, mut key) = (false, false, None);
    let (mut default, mut comment, mut invisible) = (None, None, false);
    while let Some(token) = r.token() {
        if r.eat("unsigned") {
            type_text.push_str(" unsigned");
        } else if r.eat("signed") {
        } else if r.eat("zerofill") {
            if !type_text.contains("unsigned") {
                type_text.push_str(" unsigned");
            }
            type_text.push_str(" zerofill");
        } else if r.is("character") || r.is("charset") || (r.is("char") && charset.is_none()) {
            if !r.eat("charset") {
                r.at += 1;
                if !r.eat("set") {
                    return Err(attribute("CHARACTER SET"));
                }
            }
            charset = Some(r.name().ok_or_else(|| attribute("CHARACTER SET"))?);
        } else if r.eat("collate") {
            r.eat_punct(b'=');
            collation = Some(r.name().ok_or_else(|| attribute("COLLATE"))?);
        } else if r.eat("binary") {
            binary_text = true;
        } else if r.eat("not") {
            if !r.eat("null") {
                return Err(attribute("NOT"));
            }
            not_null = true;
        } else if r.eat("null") {
            null = true;
        } else if r.eat("default") {
            default = Some(default_literal(&mut r).ok_or_else(|| attribute("DEFAULT"))?);
        } else if r.eat("comment") {
            comment = Some(string(&mut r).ok_or_else(|| attribute("COMMENT"))?);
        } else if r.eat("invisible") {
            invisible = true;
        } else if r.eat("visible") {
            invisible = false;
        } else if r.eat("unique") {
            r.eat("key");
            key = Some("UNIQUE KEY");
        } else if r.eat("primary") {
            r.eat("key");
            key = Some("PRIMARY KEY");
        } else if r.eat("key") {
            key = Some("PRIMARY KEY");
        } else {
            let text = String::from_utf8_lossy(token.text(sql)).into_owned();
            return Err(attribute(&text));
        }
    }
    // BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE
    if type_text == "serial" {
        return Err(attribute("SERIAL is AUTO_INCREMENT"));
    }
    let explicit = charset.is_some() || collation.is_some() || binary_text;
    let effective = match (&collation, &charset) {
        (Some(collation), _) => collation.to_ascii_lowercase(),
        (None, Some(charset)) => default_collation(charset, family)
            .ok_or_else(|| attribute("CHARACTER SET"))?
            .to_string(),
        (None, None) => table_collation.to_string(),
    };
    let effective = if binary_text {
        format!("{}_bin", effective.split('_').next().unwrap_or("utf8mb4"))
    } else {
        effective
    };
    let sql_type =
        SqlType::parse(&type_text, Some(&effective)).map_err(|e| attribute(&e.to_string()))?;
    if sql_type.collation.is_none() && sql_type.is_character() {
        return Err(attribute("its collation"));
    }
    let default = match default {
        Some(default) => Some(canonical(&default, &sql_type, &name, reader.request)?),
        None => None,
    };
    if matches!(default, Some(DefaultLiteral::Null)) && not_null {
        return Err(attribute("DEFAULT NULL on a NOT NULL column"));
    }
    let _ = null;
    let column = NewColumn {
        name,
        sql_type,
        explicit_collation: explicit,
        nullable: !not_null && key != Some("PRIMARY KEY"),
        default,
        comment,
        invisible,
        capabilities,
        column_id: [0; 4],
        table_id: [0; 8],
        key_id: 0,
        suite: 0,
    };
    Ok(ColumnDef { column, key })
}

fn string(r: &mut Reader) -> Option<String> {
    match default_literal(r)? {
        DefaultLiteral::Value(bytes) => String::from_utf8(bytes).ok(),
        DefaultLiteral::Null => None,
    }
}

/// A constant after `DEFAULT`, in text form.
fn default_literal(r: &mut Reader) -> Option<DefaultLiteral> {
    if r.eat("null") {
        return Some(DefaultLiteral::Null);
    }
    if r.eat("true") {
        return Some(DefaultLiteral::Value(b"1".to_vec()));
    }
    if r.eat("false") {
        return Some(DefaultLiteral::Value(b"0".to_vec()));
    }
    let negative = r.eat_punct(b'-');
    let token = r.token()?;
    let TokenKind::Literal(kind) = token.kind else {
        return None;
    };
    r.at += 1;
    let text = token.text(r.sql());
    let mut scratch = Vec::new();
    let mode = r.request.settings.lex;
    let value =
        match crate::literal::decode(text, kind, negative, mode, Charset::Utf8mb4, &mut scratch)? {
            Input::Text {
                bytes,
                charset: Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Ascii,
            } => bytes.to_vec(),
            Input::Integer { .. } | Input::Decimal(_) | Input::Double(_) => {
                let mut number = if negative { b"-".to_vec() } else { Vec::new() };
                number.extend_from_slice(text);
                number
            }
            Input::Bytes(bytes) => bytes.to_vec(),
            _ => return None,
        };
    Some(DefaultLiteral::Value(value))
}

/// A default as the server would keep and print it.
fn canonical(
    default: &DefaultLiteral,
    sql_type: &SqlType,
    column: &str,
    request: &Request,
) -> Planned<DefaultLiteral> {
    let timestamp = matches!(sql_type.kind, onionskin_value::Kind::Timestamp { .. });
    if timestamp && matches!(default, DefaultLiteral::Value(_)) {
        // the server keeps an instant, and shows it in each session's time zone
        return refuse(
            &errors::DEFINITION,
            format!("column {column}: TIMESTAMP with a DEFAULT"),
        );
    }
    let year = matches!(sql_type.kind, onionskin_value::Kind::Year);
    if year && matches!(default, DefaultLiteral::Value(text) if text.len() != 4) {
        // the number 0 is the year 0, the text '0' is 2000
        return refuse(
            &errors::DEFINITION,
            format!("column {column}: YEAR with a DEFAULT that is not of four digits"),
        );
    }
    let context = onionskin_value::Context {
        sql_mode: onionskin_value::SqlMode::STRICT,
        time_zone: &onionskin_value::TimeZone::UTC,
        family: request.settings.family,
        ignore: false,
        row: 1,
        column,
        database: "",
        table: "",
    };
    let printed = onionskin_schema::canonical_default(default, sql_type, &context)
        .map_err(|e| schema_refusal(&e))?;
    // six digits are printed of a FLOAT; a default that loses some of its own would be another
    let payload = |default: &DefaultLiteral| {
        let DefaultLiteral::Value(text) = default else {
            return None;
        };
        let input = Input::Text {
            bytes: text,
            charset: Charset::Utf8mb4,
        };
        let mut out = Vec::new();
        onionskin_value::store(sql_type, input, &context, &mut out, &mut Vec::new()).ok()?;
        Some(out)
    };
    let real = matches!(
        sql_type.kind,
        onionskin_value::Kind::Float | onionskin_value::Kind::Double
    );
    if real && payload(default) != payload(&printed) {
        return refuse(
            &errors::DEFINITION,
            format!("column {column}: a DEFAULT of more digits than are shown"),
        );
    }
    Ok(printed)
}

/// What an element of a `CREATE TABLE` list or an `ADD` specification is.
fn is_key_element(reader: &Reader, range: &Range<usize>) -> bool {
    const WORDS: [&str; 10] = [
        "key",
        "index",
        "primary",
        "unique",
        "fulltext",
        "spatial",
        "constraint",
        "foreign",
        "check",
        "period",
    ];
    let sql = reader.sql();
    reader
        .tokens
        .get(range.start)
        .is_some_and(|t| WORDS.iter().any(|w| t.is_word(sql, w)))
}

/// The column that an index names: existing or new.
enum Indexed {
    Plain,
    Existing(String),
    New(usize),
}

/// Rewrites an index's element: its columns, and its name where the server would take it from
/// a physical column.
fn key_element(
    reader: &Reader,
    range: Range<usize>,
    lookup: &dyn Fn(&str) -> Planned<Indexed>,
    taken: &mut Vec<String>,
    out: &mut Pieces,
) -> Planned<()> {
    let sql = reader.sql();
    let mut r = Reader::over(reader.request, reader.tokens, range.clone());
    let start = r.at;
    if r.eat("constraint")
        && !(r.is("primary") || r.is("unique") || r.is("foreign") || r.is("check"))
    {
        let name = r
            .name()
            .ok_or_else(|| Refusal::new(&errors::NOT_UNDERSTOOD, "CONSTRAINT"))?;
        taken.push(name);
    }
    let mention = |range: Range<usize>| -> Planned<Option<String>> {
        for token in &reader.tokens[range] {
            if let Some(name) = identifier(sql, token)
                && !matches!(lookup(&name)?, Indexed::Plain)
            {
                return Ok(Some(name));
            }
        }
        Ok(None)
    };
    if r.is("foreign") || r.is("check") || r.is("fulltext") || r.is("spatial") || r.is("period") {
        if let Some(name) = mention(r.at..range.end)? {
            let what = String::from_utf8_lossy(r.token().map_or(b"", |t| t.text(sql))).into_owned();
            return refuse(&errors::INDEX, format!("{what} over column {name}"));
        }
        out.sql(reader.text(range));
        return Ok(());
    }
    let primary = r.eat("primary");
    let unique = r.eat("unique");
    let keyed = r.eat("key") || r.eat("index");
    if !(keyed || primary || unique) {
        return refuse(&errors::NOT_UNDERSTOOD, "an element of the definition");
    }
    r.eat("if");
    r.eat("not");
    r.eat("exists");
    let before_name = r.at;
    let named = !r.is("using") && !r.token().is_some_and(|t| t.is(b'('));
    if named && let Some(name) = r.name() {
        taken.push(name);
    }
    while !r.done() && !r.token().is_some_and(|t| t.is(b'(')) {
        r.at += 1;
    }
    let list_open = r.at;
    let Some(list) = r.parenthesized() else {
        return refuse(&errors::NOT_UNDERSTOOD, "an index without columns");
    };
    let parts = reader.split(list);
    let mut first_protected = None;
    let mut texts = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        let mut p = Reader::over(reader.request, reader.tokens, part.clone());
        let name = p.name();
        let column = match &name {
            Some(name) => lookup(name)?,
            None => Indexed::Plain,
        };
        match (&column, name) {
            (Indexed::Plain, _) => {
                if let Some(name) = mention(part.clone())? {
                    return refuse(&errors::INDEX, format!("an expression over column {name}"));
                }
            }
            (_, Some(name)) => {
                if p.token().is_some_and(|t| t.is(b'(')) {
                    return refuse(&errors::INDEX, format!("a prefix of column {name}"));
                }
                if i == 0 {
                    first_protected = Some(name);
                }
            }
            (_, None) => {}
        }
        texts.push((column, part.clone(), p.at));
    }
    out.sql(reader.text(start..before_name));
    if let (Some(name), false, false) = (&first_protected, named, primary) {
        let mut candidate = name.clone();
        let mut n = 2;
        while taken.iter().any(|t| t.eq_ignore_ascii_case(&candidate)) {
            candidate = format!("{name}_{n}");
            n += 1;
        }
        out.sql(format!(" {}", quoted(&candidate)).as_bytes());
        taken.push(candidate);
    }
    out.sql(b" ");
    out.sql(reader.text(before_name..list_open));
    out.sql(b" (");
    for (i, (column, part, after)) in texts.into_iter().enumerate() {
        if i > 0 {
            out.sql(b",");
        }
        match column {
            Indexed::Plain => out.sql(reader.text(part)),
            Indexed::Existing(name) => {
                out.sql(quoted(&name).as_bytes());
                out.sql(b" ");
                out.sql(reader.text(after..part.end));
            }
            Indexed::New(n) => {
                out.0.push(DdlPiece::IndexColumn(n));
                out.sql(b" ");
                out.sql(reader.text(after..part.end));
            }
        }
    }
    out.sql(b") ");
    out.sql(reader.text(r.at..range.end));
    Ok(())
}

type Decided<'a> = (Action, Option<Planner<'a>>);

fn define<'a>(ddl: Ddl) -> Planned<Decided<'a>> {
    Ok((Action::Define(Box::new(ddl)), None))
}

pub(crate) fn create_table<'a>(
    request: &'a Request<'a>,
    tokens: Vec<Token>,
    near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    let sql = request.sql;
    let end = tokens
        .iter()
        .rposition(|t| !t.is(b';'))
        .map_or(0, |i| i + 1);
    let mut r = Reader::over(request, &tokens, 0..end);
    let bad = |about: &str| Refusal::new(&errors::NOT_UNDERSTOOD, about.to_string());
    r.eat("create");
    if r.eat("or") {
        r.eat("replace");
    }
    let temporary = r.eat("temporary");
    r.eat("table");
    if r.eat("if") {
        r.eat("not");
        r.eat("exists");
    }
    let (database, name) = r.table().ok_or_else(|| bad("the table's name"))?;
    let explicit = has_encrypted(sql, &tokens);
    let Some(database) = database else {
        return if explicit {
            refuse(&errors::DEFINITION, "no database is selected")
        } else {
            Ok((Action::Relay, None))
        };
    };
    let concerned = request.policy.concerns(&database, &name);
    let is_target = |t: &Arc<Table>| {
        t.name.eq_ignore_ascii_case(&name) && t.database.eq_ignore_ascii_case(&database)
    };
    let others = near.iter().any(|t| !is_target(t));
    if !explicit && !concerned && !others {
        if temporary && !near.is_empty() {
            return refuse(
                &errors::STATEMENT,
                "a temporary table that hides a protected one",
            );
        }
        return Ok((Action::Relay, None));
    }
    let Some(list) = r.parenthesized() else {
        return refuse(
            &errors::STATEMENT,
            "CREATE TABLE … LIKE or AS SELECT with a protected table",
        );
    };
    let options = r.at..end;
    for i in options.clone() {
        if ["select", "as", "like", "with", "table", "values"]
            .iter()
            .any(|w| tokens[i].is_word(sql, w))
        {
            return refuse(
                &errors::STATEMENT,
                "CREATE TABLE … SELECT with a protected table",
            );
        }
    }
    if tokens[list.clone()]
        .first()
        .is_some_and(|t| t.is_word(sql, "like") || t.is_word(sql, "select"))
    {
        return refuse(
            &errors::STATEMENT,
            "CREATE TABLE … LIKE with a protected table",
        );
    }
    if others {
        return refuse(
            &errors::STATEMENT,
            "a definition that refers to another protected table",
        );
    }
    let table_collation = match table_collation(request, &tokens, options.clone())? {
        Some(collation) => collation,
        None => default_of(request, &database, None),
    };

    let elements = r.split(list.clone());
    let mut columns: Vec<Option<usize>> = Vec::new();
    let mut new_columns: Vec<NewColumn> = Vec::new();
    let mut extra_keys = Vec::new();
    for element in &elements {
        if is_key_element(&r, element) {
            columns.push(None);
            continue;
        }
        let name_token = tokens.get(element.start).ok_or_else(|| bad("a column"))?;
        let column = identifier(sql, name_token).ok_or_else(|| bad("a column's name"))?;
        let auto = tokens[element.clone()]
            .iter()
            .any(|t| t.is_word(sql, "auto_increment"));
        let encrypted = take_encrypted(&r, element.clone())?;
        let (capabilities, parts) = match encrypted {
            Some((capabilities, before, after)) => (Some(capabilities), vec![before, after]),
            None => {
                let found = request
                    .policy
                    .capabilities(&database, &name, &column, auto)
                    .map_err(|e| schema_refusal(&e))?;
                (found, vec![element.clone()])
            }
        };
        let Some(capabilities) = capabilities else {
            columns.push(None);
            continue;
        };
        if auto {
            return refuse(
                &errors::DEFINITION,
                format!("column {column}: AUTO_INCREMENT"),
            );
        }
        let definition = column_definition(&r, &parts, capabilities, &table_collation)?;
        columns.push(Some(new_columns.len()));
        if let Some(kind) = definition.key {
            extra_keys.push((kind, new_columns.len()));
        }
        new_columns.push(definition.column);
    }
    if new_columns.is_empty() {
        return Ok((Action::Relay, None));
    }
    if temporary {
        return refuse(
            &errors::STATEMENT,
            "a temporary table with protected columns",
        );
    }
    // columns of the primary key are NOT NULL
    for element in elements.iter().filter(|e| is_key_element(&r, e)) {
        let words = &tokens[element.clone()];
        if words.iter().any(|t| t.is_word(sql, "primary")) {
            for column in &mut new_columns {
                let named = words
                    .iter()
                    .filter_map(|t| identifier(sql, t))
                    .any(|n| n.eq_ignore_ascii_case(&column.name));
                if named {
                    column.nullable = false;
                }
            }
        }
    }
    for column in &new_columns {
        onionskin_schema::check_protectable(column, request.settings.family)
            .map_err(|e| schema_refusal(&e))?;
    }
    let lookup = |name: &str| -> Planned<Indexed> {
        let found = new_columns
            .iter()
            .position(|c| c.name.eq_ignore_ascii_case(name));
        match found {
            None => Ok(Indexed::Plain),
            Some(i) => {
                new_columns[i]
                    .index_column_name()
                    .map_err(|e| schema_refusal(&e))?;
                Ok(Indexed::New(i))
            }
        }
    };
    let mentions = |range: Range<usize>| {
        tokens[range]
            .iter()
            .filter_map(|t| identifier(sql, t))
            .find(|n| new_columns.iter().any(|c| c.name.eq_ignore_ascii_case(n)))
    };
    let mut out = Pieces::default();
    out.sql(r.text(0..list.start));
    let mut taken = Vec::new();
    for (i, (element, column)) in elements.iter().zip(&columns).enumerate() {
        if i > 0 {
            out.sql(b", ");
        }
        match column {
            Some(column) => out.0.push(DdlPiece::Definitions(*column)),
            None if is_key_element(&r, element) => {
                key_element(&r, element.clone(), &lookup, &mut taken, &mut out)?;
            }
            None => {
                // generated columns and defaults must not read protected columns
                if let Some(name) = mentions(element.start + 1..element.end) {
                    return refuse(
                        &errors::DEFINITION,
                        format!("an expression reads column {name}"),
                    );
                }
                out.sql(r.text(element.clone()));
            }
        }
    }
    for (kind, column) in extra_keys {
        new_columns[column]
            .index_column_name()
            .map_err(|e| schema_refusal(&e))?;
        let name = &new_columns[column].name;
        let key_name = if kind == "UNIQUE KEY" {
            quoted(name)
        } else {
            String::new()
        };
        out.sql(format!(", {kind} {key_name}(").as_bytes());
        out.0.push(DdlPiece::IndexColumn(column));
        out.sql(b")");
    }
    if let Some(name) = mentions(options.clone()) {
        return refuse(
            &errors::DEFINITION,
            format!("partitions or options read column {name}"),
        );
    }
    out.sql(b") ");
    out.sql(r.text(list.end + 1..end));
    define(Ddl {
        pieces: out.0,
        new_columns,
        table: None,
    })
}

/// The default collation of a table or of a database.
fn default_of(request: &Request, database: &str, table: Option<&str>) -> String {
    let name = format!("{COLLATION}{}", table.unwrap_or_default());
    match request.catalog.table(database, &name) {
        Known::Table(found) => found.name.clone(),
        _ => request.settings.default_collation.clone(),
    }
}

/// The table that a `CREATE TABLE` or `ALTER TABLE` is about.
pub(crate) fn target(request: &Request, tokens: &[Token]) -> Option<(Option<String>, String)> {
    let mut r = Reader::over(request, tokens, 0..tokens.len());
    while r.at < 5 && !r.is("table") {
        r.at += 1;
    }
    if !r.eat("table") {
        return None;
    }
    if r.eat("if") {
        r.eat("not");
        r.eat("exists");
    }
    r.table()
}

/// The collation that a table's options name.
fn table_collation(
    request: &Request,
    tokens: &[Token],
    options: Range<usize>,
) -> Planned<Option<String>> {
    let mut r = Reader::over(request, tokens, options);
    let (mut charset, mut collation) = (None, None);
    while !r.done() {
        if r.eat("charset")
            || (r.is("character") && {
                r.at += 1;
                r.eat("set")
            })
        {
            r.eat_punct(b'=');
            charset = r.name();
        } else if r.eat("collate") {
            r.eat_punct(b'=');
            collation = r.name();
        } else {
            r.at += 1;
        }
    }
    Ok(match (collation, charset) {
        (Some(collation), _) => Some(collation.to_ascii_lowercase()),
        (None, Some(charset)) => Some(
            default_collation(&charset, request.settings.family)
                .ok_or_else(|| {
                    Refusal::new(&errors::DEFINITION, format!("CHARACTER SET {charset}"))
                })?
                .to_string(),
        ),
        (None, None) => None,
    })
}

/// `CREATE [UNIQUE] INDEX i ON t (…)`, `DROP INDEX i ON t`.
pub(crate) fn index<'a>(
    request: &'a Request<'a>,
    tokens: Vec<Token>,
    near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    let sql = request.sql;
    let end = tokens
        .iter()
        .rposition(|t| !t.is(b';'))
        .map_or(0, |i| i + 1);
    let mut r = Reader::over(request, &tokens, 0..end);
    if r.eat("drop") {
        return Ok((Action::Relay, None));
    }
    r.eat("create");
    if r.eat("or") {
        r.eat("replace");
    }
    if r.is("fulltext") || r.is("spatial") {
        // over plain columns it is none of our business
        r.at += 1;
    }
    let special = r.at > 1 && !tokens[r.at - 1].is_word(sql, "create");
    r.eat("unique");
    if !r.eat("index") {
        return refuse(
            &errors::STATEMENT,
            "CREATE of something that uses a protected table",
        );
    }
    while !r.done() && !r.is("on") {
        r.at += 1;
    }
    r.eat("on");
    let (database, name) = r
        .table()
        .ok_or_else(|| Refusal::new(&errors::NOT_UNDERSTOOD, "CREATE INDEX"))?;
    let known = database.as_deref().map(|d| request.catalog.table(d, &name));
    let (Some(Known::Table(table)), [only]) = (known, near.as_slice()) else {
        return refuse(&errors::NOT_UNDERSTOOD, "CREATE INDEX");
    };
    if !Arc::ptr_eq(&table, only) {
        return refuse(&errors::NOT_UNDERSTOOD, "CREATE INDEX");
    }
    let open = r.at;
    let Some(list) = r.parenthesized() else {
        return refuse(&errors::NOT_UNDERSTOOD, "CREATE INDEX");
    };
    let lookup = existing_lookup(&table);
    let mut out = Pieces::default();
    out.sql(r.text(0..open));
    out.sql(b" (");
    for (i, part) in r.split(list).into_iter().enumerate() {
        if i > 0 {
            out.sql(b",");
        }
        let mut p = Reader::over(request, &tokens, part.clone());
        let column = match p.name() {
            Some(name) => lookup(&name)?,
            None => Indexed::Plain,
        };
        match column {
            Indexed::Existing(name) => {
                if special || p.token().is_some_and(|t| t.is(b'(')) {
                    return refuse(&errors::INDEX, "a prefix, FULLTEXT or SPATIAL index");
                }
                out.sql(quoted(&name).as_bytes());
                out.sql(b" ");
                out.sql(r.text(p.at..part.end));
            }
            _ => {
                for token in &tokens[part.clone()] {
                    if let Some(name) = identifier(sql, token)
                        && !matches!(lookup(&name)?, Indexed::Plain)
                    {
                        return refuse(&errors::INDEX, format!("an expression over column {name}"));
                    }
                }
                out.sql(r.text(part));
            }
        }
    }
    out.sql(b") ");
    out.sql(r.text(r.at..end));
    define(Ddl {
        pieces: out.0,
        new_columns: Vec::new(),
        table: Some(table),
    })
}

fn existing_lookup(table: &Arc<Table>) -> impl Fn(&str) -> Planned<Indexed> + use<> {
    let table = Arc::clone(table);
    move |name: &str| {
        let Some(column) = table.column(name).filter(|c| c.protection.is_some()) else {
            return Ok(Indexed::Plain);
        };
        let name = onionskin_schema::index_column_name(column).map_err(|e| schema_refusal(&e))?;
        Ok(Indexed::Existing(name.to_string()))
    }
}

pub(crate) fn alter_table<'a>(
    request: &'a Request<'a>,
    tokens: Vec<Token>,
    near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    let sql = request.sql;
    let end = tokens
        .iter()
        .rposition(|t| !t.is(b';'))
        .map_or(0, |i| i + 1);
    let mut r = Reader::over(request, &tokens, 0..end);
    let bad = |about: &str| Refusal::new(&errors::ALTERATION, about.to_string());
    r.eat("alter");
    r.eat("table");
    let (database, name) = r.table().ok_or_else(|| bad("the table's name"))?;
    let Some(database) = database else {
        return Ok((Action::Relay, None));
    };
    let explicit = has_encrypted(sql, &tokens);
    let concerned = request.policy.concerns(&database, &name);
    let table = match request.catalog.table(&database, &name) {
        Known::Table(t) => Some(t),
        _ => None,
    };
    let target_near = near
        .iter()
        .any(|t| t.name.eq_ignore_ascii_case(&name) && t.database.eq_ignore_ascii_case(&database));
    if !explicit && !concerned && near.is_empty() {
        return Ok((Action::Relay, None));
    }
    if near.len() > usize::from(target_near) {
        return refuse(&errors::ALTERATION, "it names another protected table");
    }
    let Some(table) = table else {
        return Ok((Action::Relay, None));
    };
    if let Some(reason) = &table.damaged {
        return refuse(&errors::DAMAGED, format!("{database}.{name} ({reason})"));
    }
    if tokens.iter().any(|t| t.kind == TokenKind::Executable) {
        return refuse(&errors::EXECUTABLE_COMMENT, "");
    }
    let table_collation = default_of(request, &database, Some(&name));
    let lookup = existing_lookup(&table);
    let mut out = Pieces::default();
    out.sql(r.text(0..r.at));
    out.sql(b" ");
    let mut new_columns = Vec::new();
    let mut taken = Vec::new();
    for (i, spec) in r.split(r.at..end).into_iter().enumerate() {
        if i > 0 {
            out.sql(b", ");
        }
        let mut s = Reader::over(request, &tokens, spec.clone());
        let protected =
            |name: &str| position(&table, name).filter(|&i| table.columns[i].protection.is_some());
        if s.eat("add") {
            if is_key_element(&s, &(s.at..spec.end)) {
                out.sql(b"ADD ");
                key_element(&s, s.at..spec.end, &lookup, &mut taken, &mut out)?;
                continue;
            }
            s.eat("column");
            if s.is("if") || s.token().is_some_and(|t| t.is(b'(')) {
                return Err(bad("ADD (…) or IF NOT EXISTS"));
            }
            let start = s.at;
            let column = s.name().ok_or_else(|| bad("ADD"))?;
            // FIRST or AFTER at the end
            let mut stop = spec.end;
            let mut place = None;
            if stop > start + 1 && tokens[stop - 1].is_word(sql, "first") {
                place = Some(None);
                stop -= 1;
            } else if stop > start + 2 && tokens[stop - 2].is_word(sql, "after") {
                place = Some(identifier(sql, &tokens[stop - 1]));
                stop -= 2;
            }
            let auto = tokens[start..stop]
                .iter()
                .any(|t| t.is_word(sql, "auto_increment"));
            let (capabilities, parts) = match take_encrypted(&s, start..stop)? {
                Some((capabilities, before, after)) => (Some(capabilities), vec![before, after]),
                None => (
                    request
                        .policy
                        .capabilities(&database, &name, &column, auto)
                        .map_err(|e| schema_refusal(&e))?,
                    std::iter::once(start..stop).collect(),
                ),
            };
            let Some(capabilities) = capabilities else {
                for token in &tokens[start + 1..stop] {
                    if identifier(sql, token).is_some_and(|n| protected(&n).is_some()) {
                        return Err(bad("an expression over a protected column"));
                    }
                }
                out.sql(b"ADD COLUMN ");
                out.sql(s.text(start..stop));
                match place {
                    None => {}
                    Some(None) => out.sql(b" FIRST"),
                    Some(Some(after)) => out.sql(after_text(&table, &after).as_bytes()),
                }
                continue;
            };
            if auto {
                return refuse(
                    &errors::DEFINITION,
                    format!("column {column}: AUTO_INCREMENT"),
                );
            }
            let definition = column_definition(&s, &parts, capabilities, &table_collation)?;
            if definition.key.is_some() {
                return Err(bad("a key in the definition of an added column"));
            }
            onionskin_schema::check_protectable(&definition.column, request.settings.family)
                .map_err(|e| schema_refusal(&e))?;
            out.0.push(DdlPiece::Add {
                column: new_columns.len(),
                place,
            });
            new_columns.push(definition.column);
        } else if s.eat("drop") {
            const OTHERS: [&str; 7] = [
                "index",
                "key",
                "primary",
                "foreign",
                "constraint",
                "check",
                "partition",
            ];
            if OTHERS.iter().any(|w| s.is(w)) {
                let ours = tokens[spec.clone()]
                    .iter()
                    .filter_map(|t| identifier(sql, t))
                    .any(|n| onionskin_schema::is_our_constraint(&n));
                if ours {
                    return Err(bad("a constraint that belongs to a protected column"));
                }
                out.sql(s.text(spec));
                continue;
            }
            s.eat("column");
            let column = s.name().ok_or_else(|| bad("DROP"))?;
            match protected(&column) {
                Some(index) if s.done() => {
                    out.0.push(DdlPiece::Drop(index));
                }
                Some(_) => return Err(bad("DROP COLUMN with an option")),
                None => out.sql(s.text(spec)),
            }
        } else if s.eat("rename") {
            if s.eat("column") {
                let old = s.name().ok_or_else(|| bad("RENAME COLUMN"))?;
                s.eat("to");
                let new = s.name().ok_or_else(|| bad("RENAME COLUMN"))?;
                match protected(&old) {
                    Some(index) => {
                        out.0.push(DdlPiece::Rename(index, new));
                    }
                    None => out.sql(s.text(spec)),
                }
            } else {
                out.sql(s.text(spec));
            }
        } else if s.eat("alter") {
            s.eat("column");
            let column = s.name().ok_or_else(|| bad("ALTER"))?;
            match protected(&column) {
                None => out.sql(s.text(spec)),
                Some(index) => {
                    let default = if s.eat("set") && s.eat("default") {
                        let default = default_literal(&mut s).ok_or_else(|| bad("SET DEFAULT"))?;
                        let sql_type = table.columns[index]
                            .sql_type
                            .ok_or_else(|| bad("SET DEFAULT"))?;
                        Some(canonical(&default, &sql_type, &column, request)?)
                    } else if s.eat("drop") && s.eat("default") {
                        None
                    } else {
                        return Err(bad("ALTER COLUMN"));
                    };
                    if !s.done() {
                        return Err(bad("ALTER COLUMN"));
                    }
                    out.0.push(DdlPiece::SetDefault(index, default));
                }
            }
        } else if s.is("modify") || s.is("change") {
            let change = s.eat("change");
            if !change {
                s.eat("modify");
            }
            s.eat("column");
            let column = s.name().ok_or_else(|| bad("MODIFY"))?;
            let mentions = tokens[spec.clone()]
                .iter()
                .filter_map(|t| identifier(sql, t))
                .any(|n| protected(&n).is_some());
            let by_policy = request
                .policy
                .capabilities(&database, &name, &column, false)
                .is_ok_and(|c| c.is_some());
            if mentions || has_encrypted(sql, &tokens[spec.clone()]) || (by_policy && target_near) {
                return refuse(
                    &errors::ALTERATION,
                    format!("the definition of column {column}"),
                );
            }
            out.sql(s.text(spec));
        } else {
            const FINE: [&str; 18] = [
                "engine",
                "row_format",
                "auto_increment",
                "comment",
                "algorithm",
                "lock",
                "force",
                "enable",
                "disable",
                "key_block_size",
                "stats_persistent",
                "stats_auto_recalc",
                "stats_sample_pages",
                "checksum",
                "max_rows",
                "min_rows",
                "avg_row_length",
                "compression",
            ];
            if !FINE.iter().any(|w| s.is(w)) {
                let what = s.token().map_or(String::new(), |t| {
                    String::from_utf8_lossy(t.text(sql)).into_owned()
                });
                return Err(bad(&what));
            }
            out.sql(s.text(spec));
        }
    }
    let protected_table = table.table_id.is_some();
    if new_columns.is_empty() && !protected_table {
        return Ok((Action::Relay, None));
    }
    define(Ddl {
        pieces: out.0,
        new_columns,
        table: Some(table),
    })
}

fn after_text(table: &Table, after: &str) -> String {
    let physical = table
        .column(after)
        .map_or(after, onionskin_schema::alter::last_physical_name);
    format!(" AFTER {}", quoted(physical))
}
