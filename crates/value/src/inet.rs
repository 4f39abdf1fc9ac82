//! MariaDB's INET6 and INET4: which texts it reads as addresses, and how it prints them.
//!
//! Values are the bytes of addresses, the highest first. That is the order of indexes and of ORDER
//! BY, too. Measured on MariaDB 10.11.19.

/// Bytes of an INET6.
pub(crate) const BYTES_6: usize = 16;
/// Bytes of an INET4.
pub(crate) const BYTES_4: usize = 4;
/// Characters of the longest INET6 as the server announces it.
pub(crate) const CHARACTERS_6: u32 = 39;
/// Characters of the longest INET4.
pub(crate) const CHARACTERS_4: u32 = 15;

/// The address that a text means: four numbers of at most three digits, up to 255, with points
/// between them. Zeros may stand before a number.
pub(crate) fn parse4(text: &[u8]) -> Option<[u8; BYTES_4]> {
    let mut bytes = [0; BYTES_4];
    let mut parts = text.split(|byte| *byte == b'.');
    for byte in &mut bytes {
        let part = parts.next()?;
        if !(1..=3).contains(&part.len()) || !part.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let number = part
            .iter()
            .fold(0u16, |number, digit| number * 10 + u16::from(digit - b'0'));
        *byte = u8::try_from(number).ok()?;
    }
    parts.next().is_none().then_some(bytes)
}

/// The address that a text means: eight groups of at most four hexadecimal digits, of which `::`
/// stands for one or more that are zero. The last two may be written as an INET4.
pub(crate) fn parse6(text: &[u8]) -> Option<[u8; BYTES_6]> {
    let gap = text.windows(2).position(|pair| pair == b"::");
    let (head, tail) = match gap {
        Some(at) => (&text[..at], &text[at + 2..]),
        None => (text, b"".as_slice()),
    };
    let mut bytes = [0; BYTES_6];
    // an INET4 stands at the end of the text, and nowhere else
    let (first, behind) = match gap {
        Some(_) => (groups(head, false)?, groups(tail, true)?),
        None => (groups(head, true)?, Vec::new()),
    };
    let given = first.len() + behind.len();
    let is_whole = match gap {
        Some(_) => given < BYTES_6,
        None => given == BYTES_6,
    };
    if !is_whole {
        return None;
    }
    bytes[..first.len()].copy_from_slice(&first);
    bytes[BYTES_6 - behind.len()..].copy_from_slice(&behind);
    Some(bytes)
}

/// The bytes of groups with one colon between each two; none of an empty text. At most those of an
/// address.
fn groups(text: &[u8], may_end_in_inet4: bool) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    if text.is_empty() {
        return Some(bytes);
    }
    let mut parts = text.split(|byte| *byte == b':').peekable();
    while let Some(part) = parts.next() {
        if may_end_in_inet4 && parts.peek().is_none() && part.contains(&b'.') {
            bytes.extend_from_slice(&parse4(part)?);
            break;
        }
        if !(1..=4).contains(&part.len()) {
            return None;
        }
        let mut group = 0u16;
        for digit in part {
            group = group << 4 | char::from(*digit).to_digit(16)? as u16;
        }
        bytes.extend_from_slice(&group.to_be_bytes());
    }
    (bytes.len() <= BYTES_6).then_some(bytes)
}

/// Appends an INET4 as it is printed.
pub(crate) fn print4(bytes: &[u8; BYTES_4], out: &mut Vec<u8>) {
    for (at, byte) in bytes.iter().enumerate() {
        if at > 0 {
            out.push(b'.');
        }
        out.extend_from_slice(itoa::Buffer::new().format(*byte).as_bytes());
    }
}

/// Appends an INET6 as it is printed: `::` for the first of the longest runs of zero groups, even
/// for a single one, and the last two groups as an INET4 behind six groups of zeros, or five and
/// `ffff`.
pub(crate) fn print6(bytes: &[u8; BYTES_6], out: &mut Vec<u8>) {
    let group = |at: usize| u16::from_be_bytes([bytes[2 * at], bytes[2 * at + 1]]);
    let (mut gap, mut zeros) = (0, 0);
    let mut at = 0;
    while at < 8 {
        let run = (at..8).take_while(|at| group(*at) == 0).count();
        if run > zeros {
            (gap, zeros) = (at, run);
        }
        at += run.max(1);
    }
    let ends_in_inet4 = gap == 0 && (zeros == 6 || zeros == 5 && group(5) == 0xFFFF);
    let mut at = 0;
    let mut is_behind_group = false;
    while at < 8 {
        if zeros > 0 && at == gap {
            out.extend_from_slice(b"::");
            at += zeros;
            is_behind_group = false;
            continue;
        }
        if is_behind_group {
            out.push(b':');
        }
        is_behind_group = true;
        if at == 6 && ends_in_inet4 {
            let last = [bytes[12], bytes[13], bytes[14], bytes[15]];
            print4(&last, out);
            break;
        }
        out.extend_from_slice(format!("{:x}", group(at)).as_bytes());
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown6(text: &str) -> Option<String> {
        let mut out = Vec::new();
        print6(&parse6(text.as_bytes())?, &mut out);
        String::from_utf8(out).ok()
    }

    fn shown4(text: &str) -> Option<String> {
        let mut out = Vec::new();
        print4(&parse4(text.as_bytes())?, &mut out);
        String::from_utf8(out).ok()
    }

    /// Recorded from MariaDB 10.11.19.
    #[test]
    fn addresses_of_version_6_are_shown_as_the_server_shows_them() {
        for (text, shown) in [
            ("::", "::"),
            ("::1", "::1"),
            ("1::", "1::"),
            ("fe80::1", "fe80::1"),
            ("::1.2.3.4", "::1.2.3.4"),
            ("::ffff:1.2.3.4", "::ffff:1.2.3.4"),
            ("64:ff9b::1.2.3.4", "64:ff9b::102:304"),
            ("::102", "::102"),
            ("::1:2", "::0.1.0.2"),
            ("0:0:1::", "0:0:1::"),
            ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
            ("1:0:0:2:0:0:3:4", "1::2:0:0:3:4"),
            ("ABCD::00FF", "abcd::ff"),
            ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
            ("0:0:0:0:0:0:0:0", "::"),
            ("::ffff:0:1.2.3.4", "::ffff:0:102:304"),
            ("::ffff:0:0", "::ffff:0.0.0.0"),
            ("::0.0.0.1", "::1"),
            ("::0.1.0.0", "::0.1.0.0"),
            ("::1:0:0", "::1:0:0"),
            ("1:0:2:0:3:0:4:0", "1::2:0:3:0:4:0"),
            ("1:0:0:2::", "1:0:0:2::"),
            ("0:1:1:1:1:1:1:1", "::1:1:1:1:1:1:1"),
            ("1:1:1:1:1:1:1:0", "1:1:1:1:1:1:1::"),
            ("1:1:1:1:1:1:1.2.3.4", "1:1:1:1:1:1:102:304"),
            ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7::"),
            ("::2:3:4:5:6:7:8", "::2:3:4:5:6:7:8"),
            ("::001.2.3.4", "::1.2.3.4"),
        ] {
            assert_eq!(shown6(text).as_deref(), Some(shown), "{text}");
        }
        for text in [
            "1.2.3.4",
            ":1",
            ":::",
            "1::2::3",
            "12345::",
            "1:2:3:4:5:6:7:8:9",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:",
            "1:2:3:4::5:6:7:8",
            "::1.2.3",
            "::1.2.3.256",
            "::0001.2.3.4",
            "::1.2.3.4:5",
            " ::1",
            "::1 ",
            "::1%eth0",
            "1",
            "",
            ":",
            "::1:",
            "1:2:3:4:5:6:7:1.2.3.4",
            "00000::1",
        ] {
            assert_eq!(shown6(text), None, "{text}");
        }
    }

    /// Recorded from MariaDB 10.11.19.
    #[test]
    fn addresses_of_version_4_are_shown_as_the_server_shows_them() {
        for (text, shown) in [
            ("1.2.3.4", "1.2.3.4"),
            ("0.0.0.0", "0.0.0.0"),
            ("255.255.255.255", "255.255.255.255"),
            ("01.002.003.004", "1.2.3.4"),
        ] {
            assert_eq!(shown4(text).as_deref(), Some(shown), "{text}");
        }
        for text in [
            "1.2.3",
            "1.2.3.4.5",
            "1.2.3.256",
            "0001.2.3.4",
            "1..3.4",
            ".1.2.3.4",
            "1.2.3.4.",
            "1.2.3.",
            " 1.2.3.4",
            "1.2.3.4 ",
            "::ffff:1.2.3.4",
            "",
        ] {
            assert_eq!(shown4(text), None, "{text}");
        }
    }
}
