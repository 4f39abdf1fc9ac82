//! Random values: ordinary ones that recur, boundaries, and what a type does not take.

use super::fixed_binary;
use super::random::Random;
use super::schema::{Column, MEMBERS, Type};
use mysql::Value;

/// A constant: as it stands in a text, and as it is bound to a parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct Literal {
    pub sql: String,
    pub parameter: Value,
    /// Some session may refuse to store it.
    pub risky: bool,
}

impl Literal {
    pub fn null() -> Literal {
        Literal {
            sql: "NULL".into(),
            parameter: Value::NULL,
            risky: false,
        }
    }

    /// A text; binds as bytes.
    pub fn text(text: &str) -> Literal {
        Literal {
            sql: quoted(text),
            parameter: Value::from(text),
            risky: false,
        }
    }

    /// Bytes in hexadecimal.
    pub fn bytes(bytes: &[u8]) -> Literal {
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        Literal {
            sql: format!("x'{hex}'"),
            parameter: Value::Bytes(bytes.to_vec()),
            risky: false,
        }
    }

    /// A number as it stands in a text; integers bind as such.
    pub fn number(text: &str) -> Literal {
        let parameter = match (text.parse::<i64>(), text.parse::<u64>()) {
            (Ok(number), _) => Value::Int(number),
            (_, Ok(number)) => Value::UInt(number),
            _ => Value::from(text),
        };
        Literal {
            sql: text.into(),
            parameter,
            risky: false,
        }
    }

    fn double(number: f64) -> Literal {
        Literal {
            sql: format!("{number:e}"),
            parameter: Value::Double(number),
            risky: false,
        }
    }

    fn risky(mut self) -> Literal {
        self.risky = true;
        self
    }
}

/// A string literal that is right with and without NO_BACKSLASH_ESCAPES, if not the same.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

const WORDS: [&str; 50] = [
    "",
    "a",
    "A",
    "a ",
    "A  ",
    " a",
    "b",
    "B",
    "ab",
    "aB",
    "AB ",
    "alice",
    "Alice",
    "ALICE",
    "alice ",
    "bob",
    "Bob",
    "é",
    "É",
    "e",
    "E",
    "ß",
    "ss",
    "SS",
    "ä",
    "Ä",
    "ae",
    "Æ",
    "æ",
    "ñ",
    "n",
    "ÿ",
    "Ø",
    "o",
    "it's",
    "back\\slash",
    "100%",
    "_",
    "z",
    "Z",
    "1",
    "01",
    "0",
    "-1",
    "1e1",
    "NULL",
    // alike as far as an order key reaches
    "alphabetical order",
    "alphabetical ORDER a",
    "Alphabetical order B",
    "alphabetical order b ",
];

const WIDE_WORDS: [&str; 14] = [
    "日本",
    "日本語",
    "😀",
    "😁",
    "e\u{301}",
    "İ",
    "ı",
    "Ł",
    "ł",
    "Σ",
    "ς",
    "Ǆ",
    "ǆ",
    "\u{200b}a",
];

/// Ordinary values of a column, some of which SQL takes for equal.
pub fn pool(random: &mut Random, column: &Column) -> Vec<Literal> {
    let count = 4 + random.below(8);
    (0..count).map(|_| ordinary(random, column)).collect()
}

/// A value for a row.
pub fn stored(random: &mut Random, column: &Column) -> Literal {
    match random.weighted(&[66, 18, 8, if column.nullable { 8 } else { 1 }]) {
        0 if !column.pool.is_empty() => random.choose(&column.pool).clone(),
        0 | 1 => ordinary(random, column),
        2 => risky(random, column),
        _ if column.nullable => Literal::null(),
        _ => Literal::null().risky(),
    }
}

/// A value for a row that every session stores without a word.
pub fn harmless(random: &mut Random, column: &Column) -> Literal {
    if column.nullable && random.chance(8) {
        return Literal::null();
    }
    for _ in 0..5 {
        let found = match column.pool.is_empty() || random.chance(20) {
            true => ordinary(random, column),
            false => random.choose(&column.pool).clone(),
        };
        if !found.risky {
            return found;
        }
    }
    Literal::number("0").risky()
}

/// A value to compare a column with.
pub fn compared(random: &mut Random, column: &Column) -> Literal {
    for _ in 0..10 {
        let found = match random.weighted(&[72, 16, 8, 4]) {
            0 if !column.pool.is_empty() => random.choose(&column.pool).clone(),
            0 | 1 => ordinary(random, column),
            2 => risky(random, column),
            _ => Literal::null(),
        };
        if !is_rounded_by_an_index(column, &found) {
            return found;
        }
    }
    Literal::null()
}

/// MariaDB rounds a time to what the column holds when it looks it up in an index, and not
/// otherwise: `t = '10:11:12.5'` finds 10:11:12 in an indexed TIME(0).
fn is_rounded_by_an_index(column: &Column, literal: &Literal) -> bool {
    let (Type::Time(digits) | Type::DateTime(digits) | Type::Timestamp(digits)) = column.ty else {
        // Likewise a DATE, and a YEAR out of range; and MySQL a text that is no member of an ENUM.
        let cut = matches!(column.ty, Type::Date | Type::Year | Type::Enum | Type::Set);
        return column.is_indexed && cut && literal.risky;
    };
    let fraction = literal.sql.split_once('.').map_or(0, |(_, rest)| {
        rest.bytes().take_while(u8::is_ascii_digit).count()
    });
    column.is_indexed && fraction > digits as usize
}

/// A value that the column takes (dates with zeros aside).
pub fn ordinary(random: &mut Random, column: &Column) -> Literal {
    match column.ty {
        Type::Int { bytes, unsigned } => integer(random, bytes, unsigned),
        Type::Decimal {
            digits,
            scale,
            unsigned,
        } => decimal(random, digits, scale, unsigned),
        Type::Float => Literal::double(f64::from(random.pick(&[
            0.0f32,
            1.0,
            -1.0,
            0.5,
            1.5,
            0.1,
            1e10,
            -3.25,
            16_777_216.0,
            3.402_823_5e38,
            1.175_494_4e-38,
            100.0,
        ]))),
        Type::Double => Literal::double(random.pick(&[
            0.0,
            1.0,
            -1.0,
            0.5,
            0.1,
            1e100,
            -2.5e-7,
            9_007_199_254_740_993.0,
            f64::MAX,
            f64::MIN_POSITIVE,
            3.0,
        ])),
        // some fit, and some are rounded
        Type::Real { digits, scale } if random.chance(60) => decimal(random, digits, scale, false),
        Type::Real { .. } => Literal::double(random.pick(&[
            0.0, 1.0, -1.0, 0.5, 0.125, 2.34567, 99_999.99, 1e10, -2.5e-7, 99.995, 0.1, 3.0,
        ])),
        Type::Char(limit) | Type::VarChar(limit) => word(random, column.collation, limit as usize),
        Type::Text => word(random, column.collation, 200),
        Type::Binary(limit) | Type::VarBinary(limit) => blob(random, limit as usize),
        Type::Blob => blob(random, 300),
        Type::Date => date(random),
        Type::Time(_) => time(random),
        Type::DateTime(_) => date_time(random, false),
        Type::Timestamp(_) => date_time(random, true),
        Type::Enum => match random.below(4) {
            0 => Literal::number(&random.between(1, 5).to_string()),
            1 => Literal::text(&random.pick(&MEMBERS).to_uppercase()),
            _ => Literal::text(random.pick(&MEMBERS)),
        },
        Type::Set => match random.below(4) {
            0 => Literal::number(&random.between(0, 31).to_string()),
            1 => Literal::text(random.pick(&MEMBERS)),
            2 => Literal::text(""),
            _ => Literal::text(&format!(
                "{},{}",
                MEMBERS[random.below(3)],
                MEMBERS[3 + random.below(2)]
            )),
        },
        Type::Bit(bits) => {
            let number = random.next() & (u64::MAX >> (64 - bits)) & random.pick(&[1, 3, u64::MAX]);
            match random.chance(50) {
                true => Literal::number(&number.to_string()),
                false => Literal {
                    sql: format!("b'{number:b}'"),
                    ..Literal::number(&number.to_string())
                },
            }
        }
        Type::Uuid | Type::Inet6 | Type::Inet4 => fixed_binary::ordinary(random, column.ty),
        Type::Year => {
            let year = random.pick(&["1901", "1970", "1999", "2000", "2024", "2155", "0"]);
            if random.chance(20) {
                Literal::text(year)
            } else {
                Literal::number(year)
            }
        }
    }
}

/// A value that is too great, too long, malformed, of another type, or has to be rounded.
#[expect(clippy::too_many_lines, reason = "one arm for each type")]
fn risky(random: &mut Random, column: &Column) -> Literal {
    let number = |random: &mut Random| {
        let odd = [
            "99999999999999999999",
            "-99999999999999999999",
            "1.5",
            "-0.5",
            "2.49",
            "1e40",
            "256",
            "-129",
            "65536",
            "4294967296",
            "18446744073709551616",
            "-1",
            "0x41",
            "TRUE",
            "1e400",
        ];
        // A literal beyond DOUBLE is an error of the parser itself.
        let text = random.pick(&odd[..14]);
        match text {
            "0x41" => Literal {
                parameter: Value::from("A"),
                ..Literal::number(text)
            },
            "TRUE" => Literal {
                parameter: Value::Int(1),
                ..Literal::number(text)
            },
            _ => Literal::number(text),
        }
    };
    let text = |random: &mut Random| {
        Literal::text(random.pick(&[
            "abc",
            "12abc",
            "",
            " 12",
            "12 ",
            "1.5",
            "-7",
            "+7",
            "1e2",
            "0x10",
            "9999999999999999999999",
            ".5",
            "--1",
        ]))
    };
    let found = match column.ty {
        Type::Int { .. }
        | Type::Decimal { .. }
        | Type::Float
        | Type::Double
        | Type::Real { .. } => {
            if random.chance(60) {
                number(random)
            } else {
                text(random)
            }
        }
        Type::Char(limit) | Type::VarChar(limit) => match random.below(4) {
            0 => Literal::text(&"x".repeat(limit as usize + 1)),
            1 => Literal::text(&format!("{}   ", "y".repeat(limit as usize))),
            2 => Literal::text(random.pick(&WIDE_WORDS)),
            _ => number(random),
        },
        Type::Text => match random.below(3) {
            0 => Literal::text(random.pick(&WIDE_WORDS)),
            1 => Literal::text(&"long ".repeat(60)),
            _ => number(random),
        },
        Type::Binary(limit) | Type::VarBinary(limit) => match random.below(3) {
            0 => Literal::bytes(&vec![7; limit as usize + 1]),
            1 => Literal::text(random.pick(&WIDE_WORDS)),
            _ => number(random),
        },
        Type::Blob => number(random),
        Type::Date | Type::DateTime(_) | Type::Timestamp(_) => match random.below(4) {
            0 => Literal::number(random.pick(&[
                "20200131",
                "20200131112233",
                "0",
                "99991231",
                "101",
                "20201301",
                "700101",
                "20200131112233.5",
            ])),
            1 => text(random),
            _ => Literal::text(random.pick(&[
                "2021-02-29",
                "2020-13-01",
                "2020-00-10",
                "2020-01-00",
                "0000-00-00",
                "2020-02-30 10:00:00",
                "2020-01-31 25:00:00",
                "20-1-2",
                "2020/01/31",
                "20200131",
                "2020-01-31T10:11:12",
                "10000-01-01",
                "2020-01-31 10:11",
                "2020-01-31 10:11:12.9999996",
                "2020-01-31 23:59:59.9999999",
                "1969-12-31 23:59:59",
                "2038-01-19 03:14:08",
                "9999-12-31 23:59:59.9999999",
                "2020-01-31 10:11:12abc",
                "2020-01-31 10:11:12+02:00",
            ])),
        },
        Type::Time(_) => match random.below(3) {
            0 => {
                Literal::number(random.pick(&["101112", "0", "-101112", "8390000", "1099", "10.5"]))
            }
            1 => text(random),
            _ => Literal::text(random.pick(&[
                "838:59:59",
                "-838:59:59",
                "839:00:00",
                "-839:00:00",
                "838:59:59.9999999",
                "1 10:11:12",
                "10:11",
                "10:60:00",
                "10:11:12.9999996",
                "101112",
                "2020-01-31 10:11:12",
                "34 22:59:59",
                "10:11:12abc",
            ])),
        },
        Type::Enum | Type::Set => match random.below(3) {
            0 => Literal::text(
                random.pick(&["none", "", "red,none", "é y,red", "1", "0", "99", "red "]),
            ),
            _ => number(random),
        },
        Type::Bit(_) => match random.below(3) {
            0 => text(random),
            _ => number(random),
        },
        Type::Uuid | Type::Inet6 | Type::Inet4 => match random.below(4) {
            0 => number(random),
            _ => fixed_binary::odd(random),
        },
        Type::Year => match random.below(2) {
            0 => Literal::number(
                random.pick(&["1", "69", "70", "99", "100", "1900", "2156", "-1", "2020.5"]),
            ),
            _ => Literal::text(random.pick(&["0", "00", "69", "70", "99", "2156", "abc", "20201"])),
        },
    };
    found.risky()
}

fn integer(random: &mut Random, bytes: u32, unsigned: bool) -> Literal {
    let bits = bytes * 8;
    let (low, high): (i128, i128) = match unsigned {
        true => (0, (1 << bits) - 1),
        false => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
    };
    let number = match random.weighted(&[55, 15, 15, 15]) {
        0 => random.between(0, 9).into(),
        1 => random.pick(&[low, low + 1, high, high - 1]),
        2 => i128::from(random.between(-100, 100)).clamp(low, high),
        _ => low + (i128::from(random.next()) % (high - low + 1)),
    };
    match random.below(12) {
        0 => Literal::text(&number.to_string()),
        1 => Literal {
            parameter: Value::from(format!("{number}.0")),
            ..Literal::number(&format!("{number}.0"))
        },
        _ => Literal::number(&number.to_string()),
    }
}

fn decimal(random: &mut Random, digits: u32, scale: u32, unsigned: bool) -> Literal {
    let whole = (digits - scale) as usize;
    let mut text = match random.below(4) {
        0 => format!("{}.{}", "9".repeat(whole), "9".repeat(scale as usize)),
        1 => "0".to_owned(),
        2 => random.between(0, 9).to_string(),
        _ => {
            let mut digit = |count: usize| -> String {
                (0..count.min(6))
                    .map(|_| char::from(b'0' + random.below(10) as u8))
                    .collect()
            };
            format!("{}.{}", digit(whole), digit(scale as usize))
        }
    };
    if text.starts_with('.') {
        text.insert(0, '0');
    }
    if text.ends_with('.') {
        text.push('0');
    }
    let is_too_great = whole == 0 && !text.starts_with('0');
    if !unsigned && random.chance(30) {
        text.insert(0, '-');
    }
    let mut found = Literal {
        parameter: Value::from(text.as_str()),
        ..Literal::number(&text)
    };
    if random.chance(15) {
        found.sql = quoted(&text);
    }
    if is_too_great { found.risky() } else { found }
}

fn word(random: &mut Random, collation: Option<&str>, limit: usize) -> Literal {
    let narrow = collation == Some("latin1_swedish_ci");
    let text = if !narrow && random.chance(25) {
        random.pick(&WIDE_WORDS)
    } else {
        random.pick(&WORDS)
    };
    let text = match random.below(12) {
        0 => text.repeat(1 + random.below(8)),
        1 => format!("{text}{}", random.pick(&WORDS)),
        _ => text.to_owned(),
    };
    let text: String = text.chars().take(limit).collect();
    if text.is_ascii() && random.chance(3) {
        return Literal {
            sql: format!("_utf8mb4{}", quoted(&text)),
            ..Literal::text(&text)
        };
    }
    Literal::text(&text)
}

fn blob(random: &mut Random, limit: usize) -> Literal {
    let bytes: Vec<u8> = match random.below(5) {
        0 => Vec::new(),
        1 => random.pick(&WORDS).bytes().collect(),
        2 => vec![random.pick(&[0u8, 0xff, b' ', b'a']); 1 + random.below(limit.max(1))],
        3 => vec![
            random.pick(&[0u8, b'a', 0x80]),
            random.pick(&[0u8, b' ', 0xff]),
        ],
        _ => (0..random.below(9)).map(|_| random.next() as u8).collect(),
    };
    let bytes = &bytes[..bytes.len().min(limit)];
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') && random.chance(50) => Literal::text(text),
        _ => Literal::bytes(bytes),
    }
}

fn date(random: &mut Random) -> Literal {
    let (year, month, day) = random.pick(&[
        (1000, 1, 1),
        (1969, 12, 31),
        (1970, 1, 1),
        (2000, 2, 29),
        (2020, 1, 31),
        (2020, 2, 1),
        (2024, 12, 25),
        (9999, 12, 31),
    ]);
    let text = format!("{year:04}-{month:02}-{day:02}");
    match random.below(8) {
        0 => Literal {
            sql: format!("DATE'{text}'"),
            ..Literal::text(&text)
        },
        1 => Literal {
            parameter: Value::Date(year, month, day, 0, 0, 0, 0),
            ..Literal::text(&text)
        },
        _ => Literal::text(&text),
    }
}

fn time(random: &mut Random) -> Literal {
    let (negative, hours, minutes, seconds, micros) = random.pick(&[
        (false, 0u32, 0u8, 0u8, 0u32),
        (false, 10, 11, 12, 0),
        (false, 10, 11, 12, 500_000),
        (false, 10, 11, 12, 123_456),
        (false, 838, 59, 59, 0),
        (true, 838, 59, 59, 0),
        (true, 0, 0, 1, 0),
        (true, 10, 0, 0, 250_000),
        (false, 23, 59, 59, 0),
        (false, 100, 0, 0, 0),
    ]);
    let sign = if negative { "-" } else { "" };
    let fraction = if micros > 0 {
        format!(".{micros:06}")
    } else {
        String::new()
    };
    let text = format!("{sign}{hours:02}:{minutes:02}:{seconds:02}{fraction}");
    let parameter = Value::Time(
        negative,
        hours / 24,
        (hours % 24) as u8,
        minutes,
        seconds,
        micros,
    );
    match random.below(8) {
        0 => Literal {
            sql: format!("TIME'{text}'"),
            ..Literal::text(&text)
        },
        1 => Literal {
            parameter,
            ..Literal::text(&text)
        },
        _ => Literal::text(&text),
    }
}

fn date_time(random: &mut Random, is_timestamp: bool) -> Literal {
    let all = [
        (1970, 1, 2, 0, 0, 1, 0),
        (2000, 2, 29, 12, 0, 0, 0),
        (2020, 1, 31, 10, 11, 12, 0),
        (2020, 1, 31, 10, 11, 12, 500_000),
        (2020, 1, 31, 10, 11, 12, 123_456),
        (2020, 7, 1, 23, 59, 59, 0),
        (2024, 12, 25, 0, 0, 0, 0),
        (2038, 1, 17, 3, 14, 7, 0),
        (1000, 1, 1, 0, 0, 0, 0),
        (9999, 12, 31, 23, 59, 59, 0),
    ];
    let usable = if is_timestamp { &all[..8] } else { &all[..] };
    let (year, month, day, hour, minute, second, micros) = random.pick(usable);
    let fraction = if micros > 0 {
        format!(".{micros:06}")
    } else {
        String::new()
    };
    let text = format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{fraction}");
    let parameter = Value::Date(year, month, day, hour, minute, second, micros);
    match random.below(8) {
        0 => Literal {
            sql: format!("TIMESTAMP'{text}'"),
            ..Literal::text(&text)
        },
        1 => Literal {
            parameter,
            ..Literal::text(&text)
        },
        2 if hour == 0 && minute == 0 && second == 0 => Literal::text(&text[..10]),
        _ => Literal::text(&text),
    }
}
