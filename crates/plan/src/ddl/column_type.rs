//! Types in column definitions, as they are written.

use std::ops::Range;

use onionskin_value::{SqlType, member_bytes};

use super::collation::default_collation;
use super::constant::string;
use super::reader::Reader;
use crate::lex::{LiteralKind, TokenKind};

/// The character set of NCHAR and its like.
pub(super) const NATIONAL: &str = "utf8mb3";

/// Reads a type: its first word, and the whole as the servers write it. The error is what is not
/// understood.
pub(super) fn type_words(r: &mut Reader) -> Result<(String, String), &'static str> {
    let mut type_text = String::new();
    let first = r.name().ok_or("its type")?.to_ascii_lowercase();
    if let Some(long) = long_words(&first, r) {
        return Ok((first, long.to_owned()));
    }
    type_text.push_str(match first.as_str() {
        "national" | "nchar" | "nvarchar" => national_words(&first, r).ok_or("its type")?,
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

/// Reads what follows LONG: servers make a MEDIUMTEXT or a MEDIUMBLOB of it.
fn long_words(first: &str, r: &mut Reader) -> Option<&'static str> {
    if first != "long" {
        return None;
    }
    if r.eat("varbinary") || r.eat("byte") {
        return Some("mediumblob");
    }
    if r.is("char") || r.is("character") {
        // LONG CHARACTER SET latin1
        let _ = r.eat_words(&["char", "varying"]) || r.eat_words(&["character", "varying"]);
    } else {
        let _ = r.eat("varchar") || r.eat("varcharacter");
    }
    Some("mediumtext")
}

/// Whether a type's first word says that its character set is the national one.
pub(super) fn is_national(first: &str) -> bool {
    ["national", "nchar", "nvarchar"].contains(&first)
}

/// The type that stands behind the first word of a national one.
fn national_words(first: &str, r: &mut Reader) -> Option<&'static str> {
    let varies = match first {
        "nvarchar" => true,
        "nchar" => r.eat("varying") || r.eat("varchar") || r.eat("varcharacter"),
        _ if r.eat("varchar") || r.eat("varcharacter") => true,
        _ if r.eat("char") || r.eat("character") => r.eat("varying"),
        _ => return None,
    };
    Some(if varies { "varchar" } else { "char" })
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

/// The type of a column that is not protected, or one that is as long in a key. `None` for what is
/// not read here.
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
    let (word, mut type_text) = type_words(&mut r).ok()?;
    if type_text == "serial" {
        "bigint unsigned".clone_into(&mut type_text);
    }
    let mut collation = match is_national(&word) {
        true => default_collation(NATIONAL, reader.request.settings)?.to_owned(),
        false => table_collation.to_owned(),
    };
    // behind the type, before anything else
    while r.is("unsigned") || r.is("zerofill") || r.is("signed") {
        let is_zerofill = r.is("zerofill");
        if !type_text.contains("unsigned") && !r.is("signed") {
            type_text.push_str(" unsigned");
        }
        if is_zerofill {
            type_text.push_str(" zerofill");
        }
        r.at += 1;
    }
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
