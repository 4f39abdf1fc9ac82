//! From a value's payload to what the server stores and compares: the one path for the proxy and for migrations.
//!
//! The sealed cell itself is [`ColumnCipher::seal`] of the payload; a column's companions are made here.

use onionskin_crypt::{ColumnCipher, GRAM_TOKEN_LEN, GramToken};
use onionskin_value::{LikePattern, SqlType, WeightError, grams, order_bytes, weight};

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

/// The most tokens that a pattern is searched by. Grams that overlap narrow little more than the ones beside them.
const MOST_TOKENS: usize = 12;

/// Appends the tokens of a text's grams, as words with a space between them: each once and sorted, so that neither places nor
/// repetitions show.
pub fn gram_tokens(
    cipher: &ColumnCipher,
    ty: &SqlType,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), WeightError> {
    let mut tokens = Vec::with_capacity(payload.len() + 1);
    grams(ty, payload, |gram| tokens.push(cipher.gram_token(gram)))?;
    put_words(tokens, b"", out);
    Ok(())
}

/// Appends what `MATCH … AGAINST (… IN BOOLEAN MODE)` finds the candidates of a pattern by: `+token +token`; nothing if it has no
/// gram.
pub fn gram_search(cipher: &ColumnCipher, pattern: &LikePattern, out: &mut Vec<u8>) {
    let mut tokens = Vec::with_capacity(MOST_TOKENS);
    pattern.grams(MOST_TOKENS, |gram| tokens.push(cipher.gram_token(gram)));
    put_words(tokens, b"+", out);
}

fn put_words(mut tokens: Vec<GramToken>, sign: &[u8], out: &mut Vec<u8>) {
    tokens.sort_unstable();
    tokens.dedup();
    out.reserve(tokens.len() * (GRAM_TOKEN_LEN + sign.len() + 1));
    for (n, GramToken(token)) in tokens.iter().enumerate() {
        if n > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(sign);
        out.extend_from_slice(token);
    }
}
