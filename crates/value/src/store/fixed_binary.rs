//! Storing into UUID, INET6 and INET4 columns of MariaDB: a text is read, a binary string is the
//! value if it has the length.

use crate::charset::Charset;
use crate::context::{Condition, Input, Report, StoreError, Stored};
use crate::fixed_binary::{Reading, name, read};
use crate::types::SqlType;

/// From which length on the server's messages cut a text.
const WHOLE: usize = 125;

pub(super) fn store_fixed_binary(
    ty: &SqlType,
    input: Input<'_>,
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<Stored, StoreError> {
    let start = out.len();
    match read(ty, input, out) {
        Reading::Value => return Ok(Stored::Value),
        Reading::Incorrect => {}
        Reading::Unsupported(why) => return Err(StoreError::Unsupported(why)),
    }
    let shown = shown(input)?;
    report.warn(Condition::IncorrectTemporal {
        what: name(ty.kind),
        value: &shown,
    })?;
    out.resize(start + ty.payload_max() as usize, 0);
    Ok(Stored::NullOrValue)
}

/// A value as the server's messages quote it.
fn shown(input: Input<'_>) -> Result<Vec<u8>, StoreError> {
    let unsupported = Err(StoreError::Unsupported(
        "a bad value that the server's message distorts",
    ));
    match input {
        Input::Text {
            bytes,
            charset: Charset::Utf8mb4 | Charset::Utf8mb3,
        } => Ok(bytes.to_vec()),
        Input::Text { bytes, charset } if charset != Charset::Binary => match bytes.is_ascii() {
            true => Ok(bytes.to_vec()),
            false => unsupported,
        },
        Input::Text { bytes, .. } | Input::Bytes(bytes) | Input::Hex(bytes) => {
            let mut shown = Vec::new();
            for byte in bytes {
                match byte {
                    0x20..=0x7E => shown.push(*byte),
                    _ => shown.extend_from_slice(format!("\\x{byte:02X}").as_bytes()),
                }
            }
            match shown.len() <= WHOLE {
                true => Ok(shown),
                false => unsupported,
            }
        }
        _ => unsupported,
    }
}
