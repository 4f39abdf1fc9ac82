//! Values of UUID, INET6 and INET4, which only MariaDB has.

use super::random::Random;
use super::schema::Type;
use super::values::Literal;

/// Of the versions 1, 4 and 7, and some of none.
const UUIDS: [[u8; 16]; 7] = [
    [0; 16],
    [0xFF; 16],
    *b"\x12\x3e\x45\x67\xe8\x9b\x12\xd3\xa4\x56\x42\x66\x14\x17\x40\x00",
    *b"\x12\x3e\x45\x67\xe8\x9b\x42\xd3\xa4\x56\x42\x66\x14\x17\x40\x00",
    *b"\xf2\x3e\x45\x67\xe8\x9b\x42\xd3\x84\x56\x02\x66\x14\x17\x40\x00",
    *b"\x01\x7f\x22\xe2\x79\xb0\x7c\xc3\x98\xc4\xdc\x0c\x0c\x07\x39\x8f",
    *b"\x41\x7f\x22\xe2\x79\xb0\x7c\xc3\x98\xc4\x0c\x0c\x0c\x07\x39\x8f",
];

/// One of them as it is printed.
fn uuid(random: &mut Random) -> String {
    let mut text = String::new();
    for (at, byte) in random.choose::<[u8; 16]>(&UUIDS).iter().enumerate() {
        let hyphen = if matches!(at, 4 | 6 | 8 | 10) {
            "-"
        } else {
            ""
        };
        text.push_str(&format!("{hyphen}{byte:02x}"));
    }
    text
}

/// A value that the column takes.
pub fn ordinary(random: &mut Random, ty: Type) -> Literal {
    match ty {
        Type::Uuid => match random.below(6) {
            0 => Literal::bytes(random.choose::<[u8; 16]>(&UUIDS)),
            1 => Literal::text(&uuid(random).to_uppercase().replace('-', "")),
            _ => Literal::text(&uuid(random)),
        },
        Type::Inet6 => Literal::text(random.pick(&[
            "::",
            "::1",
            "0::01",
            "FE80::A",
            "::ffff:1.2.3.4",
            "1:0:0:2::3",
            "64:ff9b::7f00:1",
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        ])),
        _ => Literal::text(random.pick(&[
            "0.0.0.0",
            "1.2.3.4",
            "001.2.3.04",
            "10.0.0.1",
            "127.0.0.1",
            "255.255.255.255",
        ])),
    }
}

/// A text or bytes that none of the columns takes.
pub fn odd(random: &mut Random) -> Literal {
    match random.below(3) {
        0 => Literal::bytes(b"\x01\x02\x03"),
        _ => Literal::text(random.pick(&[
            "",
            "x",
            "1.2.3",
            "::1::",
            "{123e4567-e89b-42d3-a456-426614174000}",
            "123e4567-e89b-42d3-a456-4266141740",
        ])),
    }
}
