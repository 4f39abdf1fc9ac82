//! UUID, INET6 and INET4 of MariaDB: types whose values are a few bytes, as many for each, that
//! are written as texts.

use crate::charset::Charset;
use crate::context::Input;
use crate::types::{Kind, SqlType};
use crate::{inet, uuid};

/// What a value is to a column of such a type.
pub(crate) enum Reading {
    /// The payload was appended.
    Value,
    /// The server says that it is incorrect.
    Incorrect,
    /// The server does something else with it.
    Unsupported(&'static str),
}

/// Reads a value and appends its payload.
pub(crate) fn read(ty: &SqlType, input: Input<'_>, out: &mut Vec<u8>) -> Reading {
    match input {
        // to the server, a binary string too
        Input::Text {
            bytes,
            charset: Charset::Binary,
        }
        | Input::Bytes(bytes)
        | Input::Hex(bytes) => binary(ty, bytes, out),
        Input::Text { bytes, .. } => text(ty, bytes, out),
        _ => Reading::Unsupported("a number or a date for UUID, INET6 or INET4"),
    }
}

fn text(ty: &SqlType, text: &[u8], out: &mut Vec<u8>) -> Reading {
    let read = match ty.kind {
        Kind::Uuid => uuid::parse(text).map(|bytes| out.extend_from_slice(&uuid::kept(&bytes))),
        Kind::Inet6 => inet::parse6(text).map(|bytes| out.extend_from_slice(&bytes)),
        _ => inet::parse4(text).map(|bytes| out.extend_from_slice(&bytes)),
    };
    match read {
        Some(()) => Reading::Value,
        None => Reading::Incorrect,
    }
}

fn binary(ty: &SqlType, bytes: &[u8], out: &mut Vec<u8>) -> Reading {
    if ty.payload_fixed() != Some(bytes.len()) {
        return Reading::Incorrect;
    }
    match <&[u8; uuid::BYTES]>::try_from(bytes) {
        Ok(value) if ty.kind == Kind::Uuid => {
            if uuid::is_impossible(value) {
                return Reading::Unsupported("a binary string that the server takes for another");
            }
            out.extend_from_slice(&uuid::kept(value));
        }
        _ => out.extend_from_slice(bytes),
    }
    Reading::Value
}

/// Appends the text of a payload; `None` if it is none of the type.
pub(crate) fn print(ty: &SqlType, payload: &[u8], out: &mut Vec<u8>) -> Option<()> {
    match ty.kind {
        Kind::Uuid => {
            let value = uuid::value(payload.try_into().ok()?);
            uuid::print(&value, out);
        }
        Kind::Inet6 => inet::print6(payload.try_into().ok()?, out),
        _ => inet::print4(payload.try_into().ok()?, out),
    }
    Some(())
}

/// The type's name.
pub(crate) fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Uuid => "uuid",
        Kind::Inet6 => "inet6",
        _ => "inet4",
    }
}

/// Characters of the longest text, as the server announces it.
pub(crate) fn characters(kind: Kind) -> u32 {
    match kind {
        Kind::Uuid => uuid::CHARACTERS,
        Kind::Inet6 => inet::CHARACTERS_6,
        _ => inet::CHARACTERS_4,
    }
}
