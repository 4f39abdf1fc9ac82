//! Storing into BIT columns: whatever is given counts as bytes, the last of them the lowest.

use crate::context::{Condition, Input, Report, StoreError};
use crate::decimal;
use crate::types::Family;

pub(super) fn store_bit(
    bits: u8,
    input: Input<'_>,
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let number;
    let bytes: &[u8] = match input {
        // A text is its bytes: '1' is 0x31.
        Input::Text { bytes, .. } | Input::Bytes(bytes) | Input::Hex(bytes) => bytes,
        Input::Integer {
            negative,
            magnitude,
        } => {
            // Negative numbers are the bytes of their two's complement.
            let value = if negative {
                if magnitude > 1 << 63 {
                    return Err(StoreError::Unsupported("a number below BIGINT for BIT"));
                }
                magnitude.wrapping_neg()
            } else {
                magnitude
            };
            number = value.to_be_bytes();
            &number
        }
        Input::Decimal(text) => match decimal::parse(text) {
            Ok(parsed) if parsed.end == text.len() && !parsed.number.negative => {
                let value = u64::try_from(parsed.number.to_i128())
                    .map_err(|_| StoreError::Unsupported("a number above BIGINT for BIT"))?;
                number = value.to_be_bytes();
                &number
            }
            _ => return Err(StoreError::Unsupported("a negative decimal for BIT")),
        },
        // The fraction is cut off.
        Input::Double(value) if (0.0..9_007_199_254_740_992.0).contains(&value) => {
            number = (value as u64).to_be_bytes();
            &number
        }
        Input::Double(_) | Input::Temporal(_) | Input::Null | Input::Bool(_) => {
            return Err(StoreError::Unsupported("this kind of value for BIT"));
        }
    };
    if matches!(input, Input::Hex(bytes) if bytes.len() > 8) {
        return Err(StoreError::Unsupported(
            "a hexadecimal literal of more than 8 bytes for BIT",
        ));
    }
    let width = usize::from(bits.div_ceil(8));
    let most = u64::MAX >> (64 - u32::from(bits));
    let leading = bytes.iter().take_while(|byte| **byte == 0).count();
    let significant = &bytes[leading..];
    let value = significant
        .iter()
        .fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    let value = if significant.len() > 8 || value > most {
        // In strict mode the value is too long, otherwise it is out of range, and all bits are set.
        if report.ctx.ignore && report.ctx.family == Family::MySql {
            return Err(StoreError::Unsupported("too many bits, with IGNORE"));
        }
        if report.is_strict() {
            report.warn(Condition::TooLong)?;
        } else {
            report.warn(Condition::OutOfRange)?;
        }
        most
    } else {
        value
    };
    out.extend_from_slice(&value.to_be_bytes()[8 - width..]);
    Ok(())
}
