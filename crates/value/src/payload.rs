//! Canonical payloads of numbers: the bytes that are sealed.
//!
//! Fixed width wherever the type is, so that the length of a sealed value tells nothing, and in an
//! order that memcmp agrees with, so that payload and order key are the same bytes.

use crate::types::{Kind, SqlType};

/// The least and the greatest value of an integer type.
pub(crate) fn int_range(ty: &SqlType) -> (i128, i128) {
    let bits = ty.int_bytes() as u32 * 8;
    if ty.unsigned {
        (0, (1 << bits) - 1)
    } else {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    }
}

/// Appends an integer, which must be in the type's range: big-endian, the sign bit flipped where
/// signed.
pub(crate) fn write_int(ty: &SqlType, value: i128, out: &mut Vec<u8>) {
    let (least, _) = int_range(ty);
    let biased = (value - least) as u64;
    let bytes = ty.int_bytes();
    out.extend_from_slice(&biased.to_be_bytes()[8 - bytes..]);
}

/// Reads an integer back; `None` where the length is wrong.
pub(crate) fn read_int(ty: &SqlType, payload: &[u8]) -> Option<i128> {
    if payload.len() != ty.int_bytes() {
        return None;
    }
    let biased = payload
        .iter()
        .fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    Some(i128::from(biased) + int_range(ty).0)
}

/// Appends a double so that memcmp orders: sign bit flipped, negative numbers inverted.
pub(crate) fn write_f64(value: f64, out: &mut Vec<u8>) {
    let bits = value.to_bits();
    let ordered = if bits >> 63 == 0 {
        bits | 1 << 63
    } else {
        !bits
    };
    out.extend_from_slice(&ordered.to_be_bytes());
}

/// Reads a double back; `None` where the length is wrong.
pub(crate) fn read_f64(payload: &[u8]) -> Option<f64> {
    let ordered = u64::from_be_bytes(payload.try_into().ok()?);
    Some(f64::from_bits(if ordered >> 63 == 1 {
        ordered & !(1 << 63)
    } else {
        !ordered
    }))
}

/// Appends a float likewise.
pub(crate) fn write_f32(value: f32, out: &mut Vec<u8>) {
    let bits = value.to_bits();
    let ordered = if bits >> 31 == 0 {
        bits | 1 << 31
    } else {
        !bits
    };
    out.extend_from_slice(&ordered.to_be_bytes());
}

/// Reads a float back; `None` where the length is wrong.
pub(crate) fn read_f32(payload: &[u8]) -> Option<f32> {
    let ordered = u32::from_be_bytes(payload.try_into().ok()?);
    Some(f32::from_bits(if ordered >> 31 == 1 {
        ordered & !(1 << 31)
    } else {
        !ordered
    }))
}

/// The value of a FLOAT or DOUBLE payload.
pub(crate) fn read_real(ty: &SqlType, payload: &[u8]) -> Option<f64> {
    match ty.kind {
        Kind::Float => read_f32(payload).map(f64::from),
        Kind::Double => read_f64(payload),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_order_and_return() {
        for kind in [
            Kind::TinyInt(None),
            Kind::SmallInt(None),
            Kind::MediumInt(None),
            Kind::Int(None),
            Kind::BigInt(None),
        ] {
            for unsigned in [false, true] {
                let ty = SqlType {
                    unsigned,
                    ..SqlType::plain(kind)
                };
                let (least, greatest) = int_range(&ty);
                let mut before = Vec::new();
                for value in [
                    least,
                    least + 1,
                    (least + greatest) / 2,
                    greatest - 1,
                    greatest,
                ] {
                    let mut payload = Vec::new();
                    write_int(&ty, value, &mut payload);
                    assert_eq!(payload.len(), ty.int_bytes());
                    assert_eq!(read_int(&ty, &payload), Some(value));
                    assert!(before < payload);
                    before = payload;
                }
                assert_eq!(read_int(&ty, &[]), None);
            }
        }
    }

    #[test]
    fn reals_order_and_return() {
        let mut before = Vec::new();
        for value in [
            f64::MIN,
            -1.5,
            -f64::MIN_POSITIVE,
            -0.0,
            0.0,
            1e-300,
            1.0,
            f64::MAX,
        ] {
            let mut payload = Vec::new();
            write_f64(value, &mut payload);
            assert!(before < payload);
            assert_eq!(read_f64(&payload).map(f64::to_bits), Some(value.to_bits()));
            before = payload;
        }
        let mut payload = Vec::new();
        write_f32(-2.5, &mut payload);
        assert_eq!(read_f32(&payload), Some(-2.5));
    }
}
