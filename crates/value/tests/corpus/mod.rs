//! Reading the recorded files.

#![allow(dead_code)]

use onionskin_value::Input;

/// A file of this folder, or of the folder that `ONIONSKIN_CORPUS` names.
pub fn read(name: &str) -> String {
    let folder = std::env::var("ONIONSKIN_CORPUS")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus").to_owned());
    std::fs::read_to_string(format!("{folder}/{name}"))
        .unwrap_or_else(|failure| panic!("{name}: {failure}"))
}

/// Bytes of a text in which `\xHH` stands for a byte and `\*HH{count}` for a run of one.
pub fn unescape(text: &str) -> Vec<u8> {
    let mut rest = text;
    let mut bytes = Vec::new();
    while let Some(first) = rest.chars().next() {
        let hex = |digits: &str| u8::from_str_radix(digits, 16).expect("hex");
        if let Some(tail) = rest.strip_prefix("\\x") {
            bytes.push(hex(&tail[..2]));
            rest = &tail[2..];
        } else if let Some(tail) = rest.strip_prefix("\\*") {
            let (count, after) = tail[3..].split_once('}').expect("a brace");
            bytes.resize(
                bytes.len() + count.parse::<usize>().expect("a count"),
                hex(&tail[..2]),
            );
            rest = after;
        } else {
            bytes.push(first as u8);
            rest = &rest[1..];
        }
    }
    bytes
}

/// The inverse of [`unescape`], as the recorders write it.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::new();
    for run in bytes.chunk_by(|left, right| left == right) {
        let byte = run[0];
        if run.len() >= 16 {
            text.push_str(&format!("\\*{byte:02X}{{{}}}", run.len()));
            continue;
        }
        for _ in run {
            match byte {
                b'\\' => text.push_str("\\x5C"),
                0x20..=0x7E => text.push(char::from(byte)),
                _ => text.push_str(&format!("\\x{byte:02X}")),
            }
        }
    }
    text
}

/// A message as the recorders write it.
pub fn message(text: &str) -> String {
    escape(
        text.replace(" for column 'c' at row 1", "~")
            .replace(" for column `db`.`t`.`c` at row 1", "^")
            .as_bytes(),
    )
}

/// A number as the recorders write it: `I` integer, `D` decimal, `E` double.
pub fn number<'a>(letter: &str, text: &'a str) -> Input<'a> {
    match letter {
        "I" => match text.trim_start_matches('-').parse() {
            Ok(magnitude) => Input::Integer {
                negative: text.starts_with('-'),
                magnitude,
            },
            // Beyond 64 bits an integer literal is a DECIMAL.
            Err(_) => Input::Decimal(text.as_bytes()),
        },
        "D" => Input::Decimal(text.as_bytes()),
        "E" => Input::Double(text.parse().expect("a double")),
        _ => panic!("unknown kind of input {letter}"),
    }
}

/// Bytes of hexadecimal digits.
pub fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex"))
        .collect()
}
