//! From a value's payload to what the server stores and compares: the one path for the proxy and for migrations.
//!
//! The sealed cell itself is [`ColumnCipher::seal`] of the payload; a column's companions are made here.

use onionskin_crypt::ColumnCipher;
use onionskin_value::{SqlType, WeightError, order_bytes, weight};

/// Appends the equality token of a payload: what the column's collation takes for equal has the same one. `weights` is
/// scratch.
pub fn equality_token(
    cipher: &ColumnCipher,
    ty: &SqlType,
    payload: &[u8],
    weights: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), WeightError> {
    weights.clear();
    weight(ty, payload, weights)?;
    out.extend_from_slice(cipher.equality_token(weights).as_ref());
    Ok(())
}

/// Appends the order key of a payload. `weights` is scratch.
pub fn order_key(
    cipher: &ColumnCipher,
    ty: &SqlType,
    payload: &[u8],
    weights: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), WeightError> {
    weights.clear();
    order_bytes(ty, payload, weights)?;
    cipher.order_key(weights, out);
    Ok(())
}
