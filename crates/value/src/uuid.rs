//! MariaDB's UUID: what it reads, how it prints it, and in which order it keeps it.
//!
//! A value has sixteen bytes in the order in which they are printed. MariaDB keeps those of the
//! versions 1 to 5 with their segments turned round, so that what was made at the same place and
//! near in time lies together, and all others as they are printed. Indexes and ORDER BY go by what
//! is kept, and so do payloads: here they are called *kept* bytes.
//!
//! Measured on MariaDB 10.11.19. Servers before 10.11.5 (10.10.6, 10.9.8, 11.0.3, 11.1.2) turned
//! all values round, which is another order where versions mix.

/// Bytes of a value.
pub(crate) const BYTES: usize = 16;
/// Characters of a value as it is printed.
pub(crate) const CHARACTERS: u32 = 36;

/// Where each segment stands in the printed bytes and in the kept ones, and its length.
const SEGMENTS: [(usize, usize, usize); 5] =
    [(0, 12, 4), (4, 10, 2), (6, 8, 2), (8, 6, 2), (10, 0, 6)];

/// The bytes that a text means. Hyphens may stand between any two digits, as many as one likes.
pub(crate) fn parse(text: &[u8]) -> Option<[u8; BYTES]> {
    let (first, last) = (text.first()?, text.last()?);
    if *first == b'-' || *last == b'-' {
        return None;
    }
    let mut bytes = [0; BYTES];
    let mut digits = 0;
    for character in text.iter().filter(|c| **c != b'-') {
        let digit = char::from(*character).to_digit(16)? as u8;
        let byte = bytes.get_mut(digits / 2)?;
        *byte = *byte << 4 | digit;
        digits += 1;
    }
    (digits == 2 * BYTES && !is_impossible(&bytes)).then_some(bytes)
}

/// Whether MariaDB takes no such text, because it could not tell the kept bytes from those of
/// another value: version 8 or more beside a byte of the variant from 0x01 to 0x80. As binary
/// strings it takes them, and shows another value.
pub(crate) fn is_impossible(bytes: &[u8; BYTES]) -> bool {
    bytes[6] & bytes[8].wrapping_neg() & 0x80 != 0
}

/// The kept bytes of a value.
pub(crate) fn kept(bytes: &[u8; BYTES]) -> [u8; BYTES] {
    let is_turned = (0x01..0x60).contains(&bytes[6]) && bytes[8] & 0x80 != 0;
    if !is_turned {
        return *bytes;
    }
    let mut kept = [0; BYTES];
    for (printed, at, length) in SEGMENTS {
        kept[at..at + length].copy_from_slice(&bytes[printed..printed + length]);
    }
    kept
}

/// The value of kept bytes.
pub(crate) fn value(kept: &[u8; BYTES]) -> [u8; BYTES] {
    // the same test, on the bytes where they are then
    if !is_impossible(kept) {
        return *kept;
    }
    let mut bytes = [0; BYTES];
    for (printed, at, length) in SEGMENTS {
        bytes[printed..printed + length].copy_from_slice(&kept[at..at + length]);
    }
    bytes
}

/// Appends a value as it is printed.
pub(crate) fn print(bytes: &[u8; BYTES], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> Option<String> {
        let mut out = Vec::new();
        print(&parse(text.as_bytes())?, &mut out);
        String::from_utf8(out).ok()
    }

    /// Recorded from MariaDB 10.11.19.
    #[test]
    fn reads_what_the_server_reads() {
        let usual = "123e4567-e89b-12d3-a456-426614174000";
        for text in [
            usual,
            "123E4567E89B12D3A456426614174000",
            "1-2-3e4567e89b12d3a4564266141740----00",
        ] {
            assert_eq!(printed(text).as_deref(), Some(usual), "{text}");
        }
        for text in [
            "",
            "x",
            "{123e4567-e89b-12d3-a456-426614174000}",
            " 123e4567-e89b-12d3-a456-426614174000",
            "123e4567-e89b-12d3-a456-426614174000 ",
            "-23e4567-e89b-12d3-a456-4266141740001",
            "123e4567-e89b-12d3-a456-426614174000-",
            "123e4567-e89b-12d3-a456-42661417400",
            "123e4567-e89b-12d3-a456-4266141740000",
            "123e4567-e89b-82d3-0456-426614174000",
            "123e4567-e89b-80d3-8056-426614174000",
            "0123456789abcdef",
        ] {
            assert_eq!(printed(text), None, "{text}");
        }
        // a variant of zero is told from a turned value
        let zero = "123e4567-e89b-82d3-0056-426614174000";
        assert_eq!(printed(zero).as_deref(), Some(zero));
    }

    /// The order of `SELECT … ORDER BY` on MariaDB 10.11.19.
    #[test]
    fn keeps_what_sorts_as_the_server_does() {
        let order = [
            "00000000-0000-0000-0000-000000000000",
            "ff3e4567-e89b-42d3-a456-006614174000",
            "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
            "123e4567-e89b-12d3-a456-426614174000",
            "123e4567-e89b-42d3-a456-426614174000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
        ];
        let mut before = [0; BYTES];
        for text in order {
            let bytes = parse(text.as_bytes()).expect(text);
            let kept = kept(&bytes);
            assert!(before <= kept, "{text}");
            assert_eq!(value(&kept), bytes, "{text}");
            before = kept;
        }
    }

    #[test]
    fn every_text_comes_back() {
        let mut state = 1u64;
        for _ in 0..20_000 {
            let mut bytes = [0u8; BYTES];
            for byte in &mut bytes {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                *byte = (state >> 33) as u8;
            }
            // all versions beside all variants, zero and its neighbours among them
            bytes[6] = (state >> 41) as u8 & 0xF1;
            bytes[8] = [0, 1, 0x7F, 0x80, 0x81, 0xFF][(state >> 50) as usize % 6];
            if is_impossible(&bytes) {
                continue;
            }
            assert_eq!(value(&kept(&bytes)), bytes, "{bytes:02x?}");
        }
    }
}
