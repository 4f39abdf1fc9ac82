//! Digests as text.

/// Two lower-case digits for each byte.
pub(crate) fn lower(bytes: &[u8]) -> String {
    digits(bytes, b"0123456789abcdef")
}

/// Two upper-case digits for each byte.
pub(crate) fn upper(bytes: &[u8]) -> String {
    digits(bytes, b"0123456789ABCDEF")
}

fn digits(bytes: &[u8], alphabet: &[u8; 16]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(alphabet[usize::from(digit)]))
        .collect()
}
