//! Bytes as hexadecimal digits: as SQL reads them, and as HEX() makes them.

/// The two digits of each byte.
const DIGITS_OF: [[u8; 2]; 256] = {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [DIGITS[byte >> 4], DIGITS[byte & 15]];
        byte += 1;
    }
    pairs
};

/// `x'0a0b'`
pub(crate) fn put_hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"x'");
    let start = out.len();
    // with the quote, so that room is made once
    out.resize(start + bytes.len() * 2 + 1, b'\'');
    let (digits, _) = out[start..].as_chunks_mut::<2>();
    for (two, b) in digits.iter_mut().zip(bytes) {
        *two = DIGITS_OF[usize::from(*b)];
    }
}

/// The bytes that HEX() made digits of; `None` if these are none.
pub(crate) fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |b: u8| {
        char::from(b)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    let pairs = digits.chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_hexadecimal_literals() {
        let mut out = Vec::new();
        put_hex(&[0, 0xff, 0x1a], &mut out);
        assert_eq!(out, b"x'00ff1a'");
    }
    #[test]
    fn digits_become_bytes() {
        assert_eq!(unhex(b"00fF5c"), Some(vec![0, 255, 0x5c]));
        assert_eq!(unhex(b""), Some(Vec::new()));
        assert_eq!(unhex(b"0"), None);
        assert_eq!(unhex(b"0g"), None);
    }
}
