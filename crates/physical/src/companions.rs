//! From a value's payload to what the server stores and compares: the one path for the proxy and
//! for migrations.
//!
//! The sealed cell itself is [`ColumnCipher::seal`] of the payload; a column's companions are made
//! here.

use onionskin_crypt::{ColumnCipher, GRAM_TOKEN_LEN, GramToken, NO_GRAM_TOKEN};
use onionskin_plan::grams::TOO_MANY;
pub use onionskin_plan::grams::most_numbers;
use onionskin_schema::{Capabilities, GramForm};
use onionskin_value::{LikePattern, SqlType, WeightError, grams, order_bytes, weight};

/// Appends the equality token of a payload: what the column's collation takes for equal has the
/// same one. `weights` is scratch.
///
/// With `eq:N` it is the token's first N bits, behind a bit that is always set: a row of zero bytes
/// stands for no token.
pub fn equality_token(
    cipher: &ColumnCipher,
    ty: &SqlType,
    capabilities: &Capabilities,
    payload: &[u8],
    weights: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), WeightError> {
    weights.clear();
    weight(ty, payload, weights)?;
    let token = cipher.equality_token(weights);
    let Some(bits) = capabilities.token_bits() else {
        out.extend_from_slice(token.as_ref());
        return Ok(());
    };
    let first = token.as_ref().iter().take(8);
    let first = first.fold(0, |number, byte| number << 8 | u64::from(*byte));
    let cut = 1 << bits | first >> (64 - u32::from(bits));
    let bytes = usize::from(bits) / 8 + 1;
    out.extend_from_slice(&cut.to_be_bytes()[8 - bytes..]);
    Ok(())
}

/// Appends the order key of a payload. `weights` is scratch.
///
/// With `range:N` it is the key of the first N bits of the value's order bytes.
pub fn order_key(
    cipher: &ColumnCipher,
    ty: &SqlType,
    capabilities: &Capabilities,
    payload: &[u8],
    weights: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), WeightError> {
    weights.clear();
    order_source(ty, capabilities, payload, weights)?;
    cipher.order_key(weights, out);
    Ok(())
}

/// Appends what an order key is made of.
pub fn order_source(
    ty: &SqlType,
    capabilities: &Capabilities,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), WeightError> {
    let start = out.len();
    order_bytes(ty, payload, out)?;
    if let Some(bits) = capabilities.order_bits(ty) {
        out.truncate(start + bits.div_ceil(8));
        if let (Some(last), left @ 1..) = (out.last_mut(), bits % 8) {
            *last &= 0xff << (8 - left);
        }
    }
    Ok(())
}

/// The most tokens that a pattern is searched by. The server reads the rows of each token, 2.5 µs
/// for each row (MariaDB 10.11, a million rows), and three that lie apart leave few candidates.
const MAX_TOKENS: usize = 3;

/// Appends the tokens of a text's grams, each once and sorted, so that neither places nor
/// repetitions show: words with a space between them, or an array of numbers, of which there are
/// `most` at most.
pub fn gram_tokens(
    cipher: &ColumnCipher,
    ty: &SqlType,
    form: GramForm,
    most: usize,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), WeightError> {
    let mut tokens = Vec::with_capacity(payload.len() + 1);
    grams(ty, payload, |gram| tokens.push(cipher.gram_token(gram)))?;
    match form {
        GramForm::Words => put_words(tokens, b"", out),
        GramForm::Numbers => put_numbers(tokens, most, out),
    }
    Ok(())
}

// no token is taken for it
const _: () = assert!(TOO_MANY == NO_GRAM_TOKEN);

/// An array of numbers; of too many, the one that says so.
fn put_numbers(mut tokens: Vec<GramToken>, most: usize, out: &mut Vec<u8>) {
    tokens.sort_unstable();
    tokens.dedup();
    if tokens.len() > most {
        out.extend_from_slice(format!("[{TOO_MANY}]").as_bytes());
        return;
    }
    out.push(b'[');
    let mut digits = itoa::Buffer::new();
    for (n, token) in tokens.iter().enumerate() {
        if n > 0 {
            // as the server prints it
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(digits.format(token.number()).as_bytes());
    }
    out.push(b']');
}

/// Appends what `MATCH … AGAINST (… IN BOOLEAN MODE)` finds the candidates of a pattern by:
/// `+token +token`; nothing if it has no gram.
pub fn gram_search(cipher: &ColumnCipher, pattern: &LikePattern, out: &mut Vec<u8>) {
    put_words(pattern_tokens(cipher, pattern, MAX_TOKENS), b"+", out);
}

/// Tokens of grams that all values have which a pattern matches, about `most` of them at most. Each
/// once and sorted: which part of the pattern they come from does not show.
pub fn pattern_tokens(cipher: &ColumnCipher, pattern: &LikePattern, most: usize) -> Vec<GramToken> {
    let mut tokens = Vec::with_capacity(most);
    pattern.grams(most, |gram| tokens.push(cipher.gram_token(gram)));
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}

fn put_words(mut tokens: Vec<GramToken>, sign: &[u8], out: &mut Vec<u8>) {
    tokens.sort_unstable();
    tokens.dedup();
    out.reserve(tokens.len() * (GRAM_TOKEN_LEN + sign.len() + 1));
    for (n, token) in tokens.iter().enumerate() {
        if n > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(sign);
        out.extend_from_slice(&token.word());
    }
}

#[cfg(test)]
mod tests {
    use onionskin_crypt::{ColumnId, DataKey, Suite};
    use onionskin_value::{Charset, Escape, Input, Pattern};
    use rand::{SeedableRng, rngs::StdRng};

    use super::*;

    fn cipher() -> ColumnCipher {
        let id = ColumnId {
            table: [1; 8],
            column: [2; 4],
        };
        let key = DataKey::generate(&mut StdRng::seed_from_u64(3));
        ColumnCipher::new(Suite::Aes, 1, &key, id, None)
    }

    fn text() -> SqlType {
        SqlType::parse("varchar(50)", Some("utf8mb4_general_ci")).unwrap()
    }

    fn tokens(form: GramForm, most: usize, payload: &str) -> String {
        let mut out = Vec::new();
        gram_tokens(&cipher(), &text(), form, most, payload.as_bytes(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn with(word: &str) -> Capabilities {
        let mut capabilities = Capabilities::default();
        assert!(capabilities.take_word(word), "{word}");
        capabilities
    }

    /// The payload of an INT: its number, so that memcmp orders.
    fn int(number: u32) -> [u8; 4] {
        (number ^ 0x8000_0000).to_be_bytes()
    }

    #[test]
    fn a_token_of_n_bits_is_the_beginning_of_the_whole_one_behind_a_bit() {
        let ty = SqlType::parse("int", None).unwrap();
        let mut weights = Vec::new();
        for number in 0..300 {
            let mut made = |word: &str| {
                let mut out = Vec::new();
                let payload = int(number);
                equality_token(
                    &cipher(),
                    &ty,
                    &with(word),
                    &payload,
                    &mut weights,
                    &mut out,
                )
                .unwrap();
                out
            };
            let whole = made("eq");
            assert_eq!(made("eq:8"), [1, whole[0]]);
            assert_eq!(made("eq:3"), [1 << 3 | whole[0] >> 5]);
            let twelve = 1 << 12 | u16::from(whole[0]) << 4 | u16::from(whole[1]) >> 4;
            assert_eq!(made("eq:12"), twelve.to_be_bytes());
            assert_eq!(made("eq:32"), [&[1], &whole[..4]].concat());
        }
    }

    #[test]
    fn an_order_key_of_n_bits_orders_by_them() {
        let ty = SqlType::parse("int", None).unwrap();
        let mut weights = Vec::new();
        let mut random = StdRng::seed_from_u64(5);
        for bits in [1_u32, 7, 8, 22, 31] {
            let capabilities = with(&format!("range:{bits}"));
            let mut made = |number: u32| {
                let mut out = Vec::new();
                order_key(
                    &cipher(),
                    &ty,
                    &capabilities,
                    &int(number),
                    &mut weights,
                    &mut out,
                )
                .unwrap();
                out
            };
            for _ in 0..200 {
                let a: u32 = rand::RngExt::random(&mut random);
                let b = a ^ 1 << rand::RngExt::random_range(&mut random, 0..32);
                let first = |number: u32| u32::from_be_bytes(int(number)) >> (32 - bits);
                assert_eq!(
                    made(a).cmp(&made(b)),
                    first(a).cmp(&first(b)),
                    "{a} {b} {bits}"
                );
                assert_eq!(made(a).len(), 4 * bits.div_ceil(8) as usize);
            }
        }
    }

    #[test]
    fn values_that_the_collation_takes_for_equal_share_their_equality_token() {
        let token = |payload: &str| {
            let (mut weights, mut out) = (vec![9], Vec::new());
            let payload = payload.as_bytes();
            let all = Capabilities::default();
            equality_token(&cipher(), &text(), &all, payload, &mut weights, &mut out).unwrap();
            out
        };
        assert_eq!(token("Alice"), token("ALICE"));
        assert_ne!(token("Alice"), token("Alicia"));
    }

    #[test]
    fn repetitions_and_places_of_grams_do_not_show() {
        let words = tokens(GramForm::Words, 0, "abcabcabc");
        assert!(words.split(' ').is_sorted() && words.split(' ').count() > 1);
        assert_eq!(words, tokens(GramForm::Words, 0, "abcabc"));
        assert_eq!(tokens(GramForm::Words, 0, ""), "");
        assert_eq!(tokens(GramForm::Numbers, 9, ""), "[]");
    }

    #[test]
    fn a_text_with_too_many_grams_has_one_number() {
        let count = |numbers: &str| numbers.split(", ").count();
        let all = tokens(GramForm::Numbers, 100, "The quick brown fox");
        let most = count(&all);
        assert_eq!(tokens(GramForm::Numbers, most, "The quick brown fox"), all);
        let too_many = tokens(GramForm::Numbers, most - 1, "The quick brown fox");
        assert_eq!(too_many, format!("[{TOO_MANY}]"));
    }

    #[test]
    fn a_pattern_is_searched_by_tokens_that_its_matches_have() {
        let words = tokens(GramForm::Words, 0, "a needle in the hay");
        let input = Input::Text {
            bytes: b"%needle%",
            charset: Charset::Utf8mb4,
        };
        let read = LikePattern::read(&text(), input, Escape::Backslash).unwrap();
        let Pattern::Like(pattern) = read else {
            panic!("a pattern with wildcards");
        };
        let mut search = Vec::new();
        gram_search(&cipher(), &pattern, &mut search);
        let search = String::from_utf8(search).unwrap();
        assert!(!search.is_empty() && search.split(' ').count() <= MAX_TOKENS);
        for token in search.split(' ') {
            assert!(words.contains(token.strip_prefix('+').unwrap()), "{token}");
        }
    }
}
