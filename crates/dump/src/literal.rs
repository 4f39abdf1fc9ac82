//! Literals of SQL, as a client reads them whose session is set up by the dump's first lines.

/// Appends a text in quotes. Bytes that clients, terminals or editors change are escaped.
pub(crate) fn text(value: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    for byte in value {
        let escape = match byte {
            0 => b'0',
            b'\n' => b'n',
            b'\r' => b'r',
            0x1A => b'Z',
            b'\'' | b'\\' => *byte,
            _ => {
                out.push(*byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', escape]);
    }
    out.push(b'\'');
}

/// Appends bytes in hexadecimal. An empty value has no digits.
pub(crate) fn bytes(value: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"x'");
    for byte in value {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
    out.push(b'\'');
}
