//! A client that sends parameters of every type, and what it sees of an answer.

use super::*;

/// A parameter, as a client sends it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum P {
    Null,
    Int(i64),
    Year(u16),
    Double(f64),
    Float(f32),
    Text(&'static str),
    Blob(&'static str),
    Decimal(&'static str),
    Date(u16, u8, u8),
    DateTime(u16, u8, u8, u8, u8, u8, u32),
    Timestamp(u16, u8, u8, u8, u8, u8, u32),
    Time(bool, u32, u8, u8, u8, u32),
    /// Any type, with these bytes.
    Raw(u8, &'static [u8]),
}

impl P {
    pub fn type_code(self) -> u8 {
        match self {
            P::Null => 6,
            P::Int(_) => 8,
            P::Year(_) => 13,
            P::Double(_) => 5,
            P::Float(_) => 4,
            P::Text(_) => 253,
            P::Blob(_) => 252,
            P::Decimal(_) => 246,
            P::Date(..) => 10,
            P::DateTime(..) => 12,
            P::Timestamp(..) => 7,
            P::Time(..) => 11,
            P::Raw(code, _) => code,
        }
    }

    pub fn put(self, out: &mut Vec<u8>) {
        match self {
            P::Null => {}
            P::Int(v) => out.extend(v.to_le_bytes()),
            P::Year(v) => out.extend(v.to_le_bytes()),
            P::Double(v) => out.extend(v.to_le_bytes()),
            P::Float(v) => out.extend(v.to_le_bytes()),
            P::Text(s) | P::Blob(s) | P::Decimal(s) => {
                out.push(u8::try_from(s.len()).expect("a short text"));
                out.extend(s.as_bytes());
            }
            P::Date(y, m, d) => {
                out.push(4);
                out.extend(y.to_le_bytes());
                out.extend([m, d]);
            }
            P::DateTime(y, mo, d, h, mi, s, us) | P::Timestamp(y, mo, d, h, mi, s, us) => {
                out.push(11);
                out.extend(y.to_le_bytes());
                out.extend([mo, d, h, mi, s]);
                out.extend(us.to_le_bytes());
            }
            P::Raw(_, bytes) => out.extend(bytes),
            P::Time(negative, days, h, m, s, us) => {
                out.push(12);
                out.push(u8::from(negative));
                out.extend(days.to_le_bytes());
                out.extend([h, m, s]);
                out.extend(us.to_le_bytes());
            }
        }
    }
}

/// What a client sees of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    Rows(Vec<Vec<u8>>, u16),
    Done { affected: u64, warnings: u16 },
    Error(u16),
    Refused(String),
}

/// A session that sends parameters of any type.
pub struct Client(pub RawClient);

impl Client {
    pub fn open(port: u16) -> Client {
        let mut client = Client(RawClient::login(port));
        client.text("USE app");
        client
    }

    pub fn text(&mut self, sql: &str) -> Seen {
        self.0.command(3, sql.as_bytes());
        self.answer()
    }

    pub fn must(&mut self, sql: &str) {
        let seen = self.text(sql);
        assert!(
            matches!(seen, Seen::Rows(..) | Seen::Done { .. }),
            "{sql}: {seen:?}"
        );
    }

    pub fn execute(&mut self, sql: &str, parameters: &[P]) -> Seen {
        self.0.command(22, sql.as_bytes());
        let prepared = match self.0.read() {
            Reply::Packet(prepared) => prepared,
            Reply::Error(code, message) => return error(code, message),
            other => panic!("{sql}: {other:?}"),
        };
        for count in [&prepared[7..9], &prepared[5..7]] {
            if count != [0, 0] {
                self.0.until_eof();
            }
        }
        let id = &prepared[1..5];
        let mut payload = [id, &[0, 1, 0, 0, 0]].concat();
        if !parameters.is_empty() {
            let mut nulls = vec![0u8; parameters.len().div_ceil(8)];
            for (n, p) in parameters.iter().enumerate() {
                nulls[n / 8] |= u8::from(*p == P::Null) << (n % 8);
            }
            payload.extend(nulls);
            payload.push(1);
            for p in parameters {
                payload.extend([p.type_code(), 0]);
            }
            parameters.iter().for_each(|p| p.put(&mut payload));
        }
        self.0.command(23, &payload);
        let seen = self.answer();
        self.0.command(25, id);
        seen
    }

    pub fn answer(&mut self) -> Seen {
        let first = match self.0.read() {
            Reply::Packet(packet) => packet,
            Reply::Error(code, message) => return error(code, message),
            other => panic!("{other:?}"),
        };
        if first[0] == 0 {
            let mut at = 1;
            let affected = length(&first, &mut at);
            length(&first, &mut at);
            let warnings = u16::from_le_bytes([first[at + 2], first[at + 3]]);
            return Seen::Done { affected, warnings };
        }
        self.0.until_eof();
        let mut rows = Vec::new();
        loop {
            match self.0.read() {
                Reply::Packet(p) if p[0] == 0xfe && p.len() < 9 => {
                    return Seen::Rows(rows, u16::from_le_bytes([p[1], p[2]]));
                }
                Reply::Packet(p) => rows.push(p),
                Reply::Error(code, message) => return error(code, message),
                other => panic!("{other:?}"),
            }
        }
    }
}

fn error(code: u16, message: String) -> Seen {
    // behind the state
    match message.get(6..) {
        Some(text) if text.starts_with("OS") => Seen::Refused(text.into()),
        _ => Seen::Error(code),
    }
}

/// A length-encoded number.
fn length(packet: &[u8], at: &mut usize) -> u64 {
    let first = packet[*at];
    let bytes = match first {
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        _ => {
            *at += 1;
            return first.into();
        }
    };
    let number = packet[*at + 1..*at + 1 + bytes].iter().rev();
    *at += 1 + bytes;
    number.fold(0, |n, byte| n << 8 | u64::from(*byte))
}
