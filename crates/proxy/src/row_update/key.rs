//! The literals by which rows are named that were read.

use onionskin_plan::errors;
use onionskin_value::Charset;
use onionskin_wire::messages::ColumnDefinition;
use onionskin_wire::{ColumnFlags, ColumnType, DefinitionForm};

use crate::error::{Failure, Outcome};
use crate::hex::put_hex;

/// How a key column's text becomes a literal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyKind {
    Number,
    Text,
    /// UUID, INET6 or INET4 of MariaDB: ASCII that is read as a text in every session.
    Ascii,
    Bytes,
    Temporal,
}

/// The kind of the key column that a definition describes.
pub(crate) fn key_kind(packet: &[u8], form: DefinitionForm) -> Outcome<KeyKind> {
    let definition = ColumnDefinition::decode(packet, form).map_err(Failure::Backend)?;
    Ok(match definition.column_type {
        ColumnType::TINY
        | ColumnType::SHORT
        | ColumnType::INT24
        | ColumnType::LONG
        | ColumnType::LONGLONG
        | ColumnType::NEWDECIMAL
        | ColumnType::DECIMAL
        | ColumnType::YEAR => KeyKind::Number,
        ColumnType::DATE | ColumnType::DATETIME | ColumnType::TIMESTAMP | ColumnType::TIME => {
            KeyKind::Temporal
        }
        // no other text or binary string is unsigned
        ColumnType::STRING if definition.flags.contains(ColumnFlags::UNSIGNED) => KeyKind::Ascii,
        ColumnType::STRING
        | ColumnType::VAR_STRING
        | ColumnType::VARCHAR
        | ColumnType::TINY_BLOB
        | ColumnType::MEDIUM_BLOB
        | ColumnType::LONG_BLOB
        | ColumnType::BLOB => {
            if definition.charset == 63 {
                KeyKind::Bytes
            } else {
                KeyKind::Text
            }
        }
        _ => return Err(Failure::refused(&errors::NEEDS_KEY, "a key of this type")),
    })
}

/// Appends a key's cell as a literal.
pub(crate) fn key_literal(
    cell: &[u8],
    kind: KeyKind,
    charset: Option<Charset>,
    out: &mut Vec<u8>,
) -> Outcome<()> {
    match kind {
        KeyKind::Number => out.extend_from_slice(cell),
        KeyKind::Temporal => {
            out.push(b'\'');
            out.extend_from_slice(cell);
            out.push(b'\'');
        }
        KeyKind::Ascii => {
            out.extend_from_slice(b"_latin1 ");
            put_hex(cell, out);
        }
        KeyKind::Bytes => put_hex(cell, out),
        KeyKind::Text => {
            let charset = charset
                .filter(|&c| c != Charset::Binary)
                .ok_or_else(|| Failure::refused(&errors::CHARACTER_SET, "character_set_results"))?;
            // what the character set cannot say came as a question mark
            if charset != Charset::Utf8mb4 && cell.contains(&b'?') {
                return Err(Failure::refused(
                    &errors::CHARACTER_SET,
                    "character_set_results",
                ));
            }
            out.extend_from_slice(format!("_{} ", charset.name()).as_bytes());
            put_hex(cell, out);
        }
    }
    Ok(())
}
