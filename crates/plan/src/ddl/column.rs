//! A protected column's definition: name, type, attributes, `ENCRYPTED FOR (…)`.

use std::ops::Range;

use onionskin_schema::{Capabilities, DefaultLiteral, NewColumn};
use onionskin_value::{Charset, Family, Input, Kind, SqlType};

use super::collation::default_collation;
use super::default;
use super::key_length::{KeyKind, KeyLength, member_bytes};
use super::reader::Reader;
use super::schema_refusal;
use crate::errors::{self, Refusal};
use crate::lex::{LiteralKind, Token, TokenKind};
use crate::planner::{Planned, Request, refuse};

/// What a VARCHAR or VARBINARY can have in a row of 65,535 bytes, beside its length and the flag of NULL.
const ROW_BYTES: u32 = 65_532;

/// A column's attributes beside its protection.
pub(super) struct ColumnDef {
    pub(super) column: NewColumn,
    /// `UNIQUE` or `PRIMARY KEY` in the column's own definition.
    pub(super) key: Option<&'static str>,
}

/// Reads a type: its first word, and the whole as the servers write it. The error is what is not understood.
fn type_words(r: &mut Reader) -> Result<(String, String), &'static str> {
    let mut type_text = String::new();
    let first = r.name().ok_or("its type")?.to_ascii_lowercase();
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
    let enumerated = matches!(type_text.as_str(), "enum" | "set");
    if let Some(inside) = r.parenthesized() {
        if enumerated {
            let names = members(r, inside).ok_or("its members")?;
            type_text.push_str(&format!("({names})"));
        } else {
            let text = String::from_utf8_lossy(r.text(inside)).replace(char::is_whitespace, "");
            type_text.push_str(&format!("({text})"));
        }
    } else if type_text == "decimal" {
        type_text.push_str("(10,0)");
    } else if type_text == "char" || type_text == "binary" {
        type_text.push_str("(1)");
    }
    Ok((first, type_text))
}

/// The type of a column that is not protected, or one that is as long in a key. `None` for what is not read here.
pub(super) fn plain_type(
    reader: &Reader,
    element: Range<usize>,
    table_collation: &str,
) -> Option<SqlType> {
    let mut r = Reader::over(reader.request, reader.tokens, element);
    r.name()?;
    if r.is("enum") || r.is("set") {
        // lists of members are kept for good: those of plain columns are not read
        let is_set = r.eat("set") || !r.eat("enum");
        let inside = r.parenthesized()?;
        let ty = match member_bytes(r.split(inside).len(), is_set) {
            1 => "tinyint",
            2 => "smallint",
            3 => "mediumint",
            4 => "int",
            _ => "bigint",
        };
        return SqlType::parse(ty, None).ok();
    }
    let (_, type_text) = type_words(&mut r).ok()?;
    let mut collation = table_collation.to_owned();
    while !r.done() {
        if r.parenthesized().is_some() {
            // an expression may have a collation of its own
        } else if r.eat("collate") {
            collation = r.name_or_string()?.to_ascii_lowercase();
            break;
        } else if r.eat("charset")
            || (r.is("character") || r.is("char")) && {
                r.at += 1;
                r.eat("set")
            }
        {
            let charset = r.name_or_string()?;
            collation = default_collation(&charset, reader.request.settings)?.to_string();
        } else {
            r.at += 1;
        }
    }
    SqlType::parse(&type_text, Some(&collation)).ok()
}

/// Reads a protected column's definition: `name type attributes`.
pub(super) fn column_definition(
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

    let (first, mut type_text) = type_words(&mut r).map_err(&attribute)?;
    let mut binary_text = false;
    let (mut charset, mut collation) = (None, None);
    let mut signed = false;
    let (mut not_null, mut null, mut key) = (false, false, None);
    let (mut default, mut comment, mut invisible) = (None, None, false);
    let mut on_update = None;
    let mut is_json = type_text == "json";
    while let Some(token) = r.token() {
        if r.eat("unsigned") {
            type_text.push_str(" unsigned");
        } else if r.eat("signed") {
            signed = true;
        } else if r.eat("zerofill") {
            if type_text.contains("zerofill") {
                return Err(attribute("ZEROFILL twice"));
            }
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
            charset = Some(
                r.name_or_string()
                    .ok_or_else(|| attribute("CHARACTER SET"))?,
            );
        } else if r.eat("collate") {
            r.eat_punct(b'=');
            collation = Some(r.name_or_string().ok_or_else(|| attribute("COLLATE"))?);
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
            let given = default::given(&mut r, &name, type_text.starts_with("bit"))?;
            default = Some(given.ok_or_else(|| attribute("DEFAULT"))?);
        } else if r.eat("on") {
            let fraction = match r.eat("update") {
                true => default::present(&mut r),
                false => None,
            };
            on_update = Some(fraction.ok_or_else(|| attribute("ON UPDATE"))?);
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
        } else if type_text == "longtext"
            && family == Family::MariaDb
            && is_json_check(&mut r, &name)
        {
            is_json = true;
        } else {
            let text = String::from_utf8_lossy(token.text(sql)).into_owned();
            return Err(attribute(&text));
        }
    }
    if signed && type_text.contains("unsigned") {
        return Err(attribute("SIGNED beside UNSIGNED or ZEROFILL"));
    }
    if first == "json" && (charset.is_some() || collation.is_some()) {
        return Err(attribute("CHARACTER SET of JSON"));
    }
    if type_text.starts_with("decimal(0,") {
        // a precision of 0 stands for the default, but not beside a scale
        return Err(attribute("its precision"));
    }
    // BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE
    if type_text == "serial" {
        return Err(attribute("SERIAL is AUTO_INCREMENT"));
    }
    let explicit = charset.is_some() || collation.is_some() || binary_text;
    let effective = match (&collation, &charset) {
        (Some(collation), _) => collation.to_ascii_lowercase(),
        (None, Some(charset)) => default_collation(charset, reader.request.settings)
            .ok_or_else(|| attribute("CHARACTER SET"))?
            .to_string(),
        (None, None) => table_collation.to_string(),
    };
    let effective = if binary_text {
        format!("{}_bin", effective.split('_').next().unwrap_or("utf8mb4"))
    } else {
        effective
    };
    let sql_type = match is_json {
        true if type_text == "longtext" && effective != "utf8mb4_bin" => {
            return Err(attribute("CHECK"));
        }
        true => SqlType::json(family),
        false => {
            SqlType::parse(&type_text, Some(&effective)).map_err(|e| attribute(&e.to_string()))?
        }
    };
    if sql_type.collation.is_none() && sql_type.is_character() {
        return Err(attribute("its collation"));
    }
    // the server does not get to see it
    if sql_type.collation.is_some_and(|c| !c.is_of(family)) {
        return Err(attribute(match effective.as_str() {
            "utf8mb4_0900_ai_ci" => {
                "utf8mb4_0900_ai_ci on MariaDB: write utf8mb4_uca1400_nopad_ai_ci"
            }
            _ => "a collation that this server does not have",
        }));
    }
    let bytes = match sql_type.kind {
        Kind::VarChar { chars } => chars.saturating_mul(sql_type.charset().max_bytes()),
        Kind::VarBinary { len } => len,
        _ => 0,
    };
    if bytes > ROW_BYTES {
        // outside of strict mode the server makes a TEXT or BLOB of it, and warns
        return Err(attribute("it is longer than a row"));
    }
    let kind = match key {
        Some("PRIMARY KEY") => Some(KeyKind::Primary),
        Some(_) => Some(KeyKind::Unique),
        None => None,
    };
    if let Some(kind) = kind {
        KeyLength::new(family, kind).add(&name, &sql_type, None)?;
    }
    let default = match default {
        Some(given) => Some(default::kept(given, &sql_type, &name, reader.request)?),
        None => None,
    };
    if let Some(fraction) = on_update {
        default::check_on_update(fraction, &sql_type, &name)?;
        if default.is_none() && not_null && family == Family::MariaDb {
            // MariaDB makes up a zero date
            return Err(attribute("ON UPDATE without a DEFAULT, and NOT NULL"));
        }
    }
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
        on_update: on_update.is_some(),
        comment,
        invisible,
        capabilities,
        without_grams: false,
        column_id: [0; 4],
        table_id: [0; 8],
        key_id: 0,
        suite: 0,
        cell_version: 0,
    };
    Ok(ColumnDef { column, key })
}

/// `ENCRYPTED FOR (eq, range, like, join:NAME)` in a column's definition: the capabilities and the
/// definition's tokens without it.
#[allow(clippy::type_complexity)] // the pair is taken apart at once
pub(super) fn take_encrypted(
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
    let bad = || {
        Refusal::new(
            &errors::DEFINITION,
            "ENCRYPTED FOR (eq, range, like, join:NAME)",
        )
    };
    let words = inner.parenthesized().ok_or_else(bad)?;
    let mut capabilities = Capabilities::default();
    if !words.is_empty() {
        for part in reader.split(words) {
            let mut word = Reader::over(reader.request, reader.tokens, part);
            if word.eat("eq") {
                capabilities.eq = true;
            } else if word.eat("range") {
                capabilities.range = true;
            } else if word.eat("like") {
                capabilities.like = true;
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

/// `CHECK (json_valid(`name`))`: how MariaDB prints that a LONGTEXT is JSON.
fn is_json_check(r: &mut Reader, name: &str) -> bool {
    let start = r.at;
    if r.eat("check")
        && let Some(inside) = r.parenthesized()
    {
        let mut check = Reader::over(r.request, r.tokens, inside);
        let column = (check.eat("json_valid") && check.eat_punct(b'('))
            .then(|| check.name())
            .flatten();
        if column.is_some_and(|c| c.eq_ignore_ascii_case(name))
            && check.eat_punct(b')')
            && check.done()
        {
            return true;
        }
    }
    r.at = start;
    false
}

/// The members of an ENUM or SET, quoted in the one form that types are read from.
fn members(r: &Reader, inside: Range<usize>) -> Option<String> {
    let mut names = Vec::new();
    for part in r.split(inside) {
        let mut one = Reader::over(r.request, r.tokens, part);
        let token = one.token()?;
        if token.kind != TokenKind::Literal(LiteralKind::String) {
            return None;
        }
        names.push(format!("'{}'", string(&mut one)?.replace('\'', "''")));
        if !one.done() {
            return None;
        }
    }
    Some(names.join(","))
}

/// A constant after `DEFAULT` of a BIT column, as `b'…'`. A text would count as bytes; it is not taken.
pub(super) fn bit_default(r: &mut Reader) -> Option<DefaultLiteral> {
    if r.eat("null") {
        return Some(DefaultLiteral::Null);
    }
    let number = if r.eat("true") {
        1
    } else if r.eat("false") {
        0
    } else {
        let token = r.token()?;
        let TokenKind::Literal(kind @ (LiteralKind::Integer | LiteralKind::Bits)) = token.kind
        else {
            return None;
        };
        r.at += 1;
        let mut scratch = Vec::new();
        let text = token.text(r.sql());
        let mode = r.request.settings.lex;
        match crate::literal::decode(text, kind, false, mode, Charset::Utf8mb4, &mut scratch)? {
            Input::Integer { magnitude, .. } => magnitude,
            Input::Hex(bytes) if bytes.len() <= 8 => bytes
                .iter()
                .fold(0, |number, byte| number << 8 | u64::from(*byte)),
            _ => return None,
        }
    };
    Some(DefaultLiteral::Value(format!("b'{number:b}'").into_bytes()))
}

fn string(r: &mut Reader) -> Option<String> {
    match default_literal(r)? {
        DefaultLiteral::Value(bytes) => String::from_utf8(bytes).ok(),
        DefaultLiteral::Null | DefaultLiteral::Expression(_) => None,
    }
}

/// A constant after `DEFAULT`, in text form.
pub(super) fn default_literal(r: &mut Reader) -> Option<DefaultLiteral> {
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
        match crate::literal::decode(text, kind, negative, mode, mode.charset, &mut scratch)? {
            Input::Text {
                bytes,
                charset: Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Ascii,
            } => bytes.to_vec(),
            // a name's character set is the client's, and what it says is kept in UTF-8
            Input::Text { bytes, charset } if kind == LiteralKind::String => {
                charset.to_utf8(bytes)?
            }
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

/// Whether a value is not stored as it stands.
fn raises_warnings(text: &[u8], ty: &SqlType, context: &onionskin_value::Context<'_>) -> bool {
    let input = match ty.is_binary() {
        true => Input::Bytes(text),
        false => Input::Text {
            bytes: text,
            charset: Charset::Utf8mb4,
        },
    };
    let mut warnings = Vec::new();
    let stored = onionskin_value::store(ty, input, context, &mut Vec::new(), &mut warnings);
    stored.is_ok() && !warnings.is_empty()
}

/// A default as the server would keep and print it.
pub(super) fn canonical(
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
    let blob = matches!(
        sql_type.kind,
        Kind::TinyBlob | Kind::Blob | Kind::MediumBlob | Kind::LongBlob
    );
    if blob
        && request.settings.family == Family::MariaDb
        && matches!(default, DefaultLiteral::Value(text) if !text.is_ascii())
    {
        // MariaDB converts it to the character set of the table, of all things
        return refuse(
            &errors::DEFINITION,
            format!("column {column}: BLOB with a DEFAULT that is not ASCII"),
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
        // A default that the server does not take, it refuses itself.
        latest_timestamp: onionskin_value::LATEST_TIMESTAMP_UNSIGNED,
        signed_zero: false,
        enum_takes_zero: false,
        ignore: false,
        row: 1,
        column,
        database: "",
        table: "",
    };
    let printed = onionskin_schema::canonical_default(default, sql_type, &context)
        .map_err(|e| schema_refusal(&e))?;
    if let DefaultLiteral::Value(text) = default
        && !sql_type.is_bit()
        && raises_warnings(text, sql_type, &context)
    {
        // the server keeps what is left of it, and warns
        return refuse(
            &errors::DEFINITION,
            format!("column {column}: a DEFAULT that the column would change"),
        );
    }
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
