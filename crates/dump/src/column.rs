//! What takes the place of a column's values.

use onionskin_value::{Kind, SqlType};

use crate::{
    alphabet::Alphabets,
    key::MaskKey,
    literal,
    moment::{self, Moments},
    number::{self, Bounds},
    permute::{Permuter, Stream},
    text::{Manner, Texts},
};

/// What is done to a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mask {
    /// NULL.
    Null,
    /// This value.
    Fixed(String),
    /// Another value of the type.
    Hash,
    /// One that looks like it.
    Generate,
}

impl Mask {
    /// From the words of `--mask`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "null" => Ok(Self::Null),
            "hash" => Ok(Self::Hash),
            "generate" => Ok(Self::Generate),
            _ => match text.strip_prefix("fixed:") {
                Some(value) => Ok(Self::Fixed(value.into())),
                None => Err(format!(
                    "{text:?} is no mask: there are null, fixed:VALUE, hash and generate"
                )),
            },
        }
    }
}

/// What the values of a column have to hold to.
#[derive(Clone, Debug)]
pub struct Values {
    /// The type.
    pub ty: SqlType,
    /// As the server writes it.
    pub type_text: String,
    /// Different values must become different: the column is in a unique key, or joined.
    pub exact: bool,
    /// Most characters of texts.
    pub chars: usize,
    /// TINYINT(1).
    pub is_bool: bool,
}

/// Most characters of a text type, or bytes of its values where that is what is bounded.
pub(crate) fn most_chars(ty: &SqlType) -> usize {
    let bytes = |bytes: usize| bytes / ty.charset().min_bytes() as usize;
    match ty.kind {
        Kind::Char { chars } | Kind::VarChar { chars } => chars as usize,
        Kind::TinyText => bytes(255),
        Kind::Text => bytes(65_535),
        _ => bytes(1 << 24),
    }
}

/// How a type's values are replaced.
enum Way {
    Null,
    Fixed(Vec<u8>),
    Texts(Box<Texts>),
    Bytes,
    Integer(Bounds),
    Decimal { precision: usize, scale: usize },
    Double,
    Float,
    Moments(Moments),
    Time { fsp: u8 },
    Year,
    Bit { bits: u8 },
    Member(Vec<String>),
    Set(Vec<String>),
    Uuid,
    Inet6,
    Inet4,
    Json,
}

/// Replaces the values of a column.
pub struct Masker {
    permuter: Permuter,
    way: Way,
    /// As many digits, a near date.
    looks_alike: bool,
    /// Few different values, which need not stay apart: one is drawn for each row.
    draws: bool,
}

impl Masker {
    /// For a column, under its key. The error says why there is no such mask.
    pub fn new(key: MaskKey, mask: &Mask, values: &Values) -> Result<Self, String> {
        let looks_alike = *mask == Mask::Generate;
        let way = match mask {
            Mask::Null => Way::Null,
            Mask::Fixed(value) => {
                let mut out = Vec::new();
                literal::text(value.as_bytes(), &mut out);
                Way::Fixed(out)
            }
            _ => way(values, looks_alike)?,
        };
        Ok(Self {
            permuter: Permuter::new(key),
            way,
            looks_alike,
            draws: looks_alike && !values.exact,
        })
    }

    /// Appends the literal that takes the place of a value. `row` tells rows apart. The error says
    /// what is wrong with the value, without it.
    pub fn replace(&mut self, cell: &[u8], row: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let text = || std::str::from_utf8(cell).map_err(|_| "a text that is no UTF-8".to_owned());
        let none = || "a value that is none of the column's type".to_owned();
        let permuter = &mut self.permuter;
        match &mut self.way {
            Way::Null => out.extend_from_slice(b"NULL"),
            Way::Fixed(value) => out.extend_from_slice(value),
            Way::Texts(texts) => literal::text(texts.replace(permuter, text()?)?.as_bytes(), out),
            Way::Bytes => literal::bytes(&bytes(permuter, cell), out),
            Way::Integer(bounds) => {
                let text = text()?;
                let value = match text {
                    "0" | "1" if bounds.is_bool && self.draws => {
                        i128::from(draw(permuter, row).below(2))
                    }
                    _ => number::integer(permuter, text, *bounds, self.looks_alike)
                        .ok_or_else(none)?,
                };
                out.extend_from_slice(value.to_string().as_bytes());
            }
            Way::Decimal { precision, scale } => {
                let near = self.looks_alike;
                let value = number::decimal(permuter, text()?, *precision, *scale, near);
                out.extend_from_slice(value.ok_or_else(none)?.as_bytes());
            }
            Way::Double => {
                let value = number::double(permuter, text()?).ok_or_else(none)?;
                out.extend_from_slice(value.as_bytes());
            }
            Way::Float => {
                let value = number::float(permuter, text()?).ok_or_else(none)?;
                out.extend_from_slice(value.as_bytes());
            }
            Way::Moments(moments) => {
                let value = moments.replace(permuter, text()?).ok_or_else(none)?;
                literal::text(value.as_bytes(), out);
            }
            Way::Time { fsp } => {
                let value = moment::time(permuter, text()?, *fsp).ok_or_else(none)?;
                literal::text(value.as_bytes(), out);
            }
            Way::Year => {
                let value = year(permuter, text()?, self.looks_alike).ok_or_else(none)?;
                out.extend_from_slice(value.to_string().as_bytes());
            }
            Way::Bit { bits } => {
                let size = 1_u128 << *bits;
                let value = cell.iter().fold(0, |n, byte| n << 8 | u128::from(*byte));
                let image = match *bits {
                    _ if value >= size => return Err(none()),
                    1 if self.draws => u128::from(draw(permuter, row).below(2)),
                    _ => permuter.number(b"bits", size, value),
                };
                let bytes = usize::from(bits.div_ceil(8));
                literal::bytes(&image.to_be_bytes()[16 - bytes..], out);
            }
            Way::Member(names) => {
                let text = text()?;
                // what is stored for a value that was none
                let image = match names.iter().position(|name| name == text) {
                    None if text.is_empty() => "",
                    None => return Err(none()),
                    Some(_) if self.draws => {
                        &names[draw(permuter, row).below(names.len() as u32) as usize]
                    }
                    Some(at) => {
                        let size = names.len() as u128;
                        &names[permuter.number(b"member", size, at as u128) as usize]
                    }
                };
                literal::text(image.as_bytes(), out);
            }
            Way::Set(names) => {
                let image = set(permuter, names, text()?, self.draws.then_some(row));
                literal::text(image.ok_or_else(none)?.as_bytes(), out);
            }
            Way::Uuid => {
                let image = uuid(permuter, text()?).ok_or_else(none)?;
                literal::text(image.as_bytes(), out);
            }
            Way::Inet6 => {
                let address: std::net::Ipv6Addr = text()?.parse().map_err(|_| none())?;
                let image = bytes(permuter, &address.octets());
                let image: [u8; 16] = image.try_into().map_err(|_| none())?;
                literal::text(std::net::Ipv6Addr::from(image).to_string().as_bytes(), out);
            }
            Way::Inet4 => {
                let address: std::net::Ipv4Addr = text()?.parse().map_err(|_| none())?;
                let image = bytes(permuter, &address.octets());
                let image: [u8; 4] = image.try_into().map_err(|_| none())?;
                literal::text(std::net::Ipv4Addr::from(image).to_string().as_bytes(), out);
            }
            Way::Json => out.extend_from_slice(match cell.trim_ascii_start().first() {
                Some(b'[') => b"'[]'",
                Some(b'{') => b"'{}'",
                Some(b'"') => b"'\"\"'",
                Some(b't' | b'f') => b"'false'",
                Some(b'n') => b"'null'",
                _ => b"'0'",
            }),
        }
        Ok(())
    }
}

fn way(values: &Values, looks_alike: bool) -> Result<Way, String> {
    let ty = &values.ty;
    let without_sign = |bits: u32| -> Bounds {
        let (low, high) = match ty.unsigned {
            true => (0, (1_i128 << bits) - 1),
            false => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
        };
        Bounds {
            low,
            high,
            is_bool: values.is_bool,
        }
    };
    if let (Some(digits), true) = (
        decimal_digits(&values.type_text),
        matches!(ty.kind, Kind::Float | Kind::Double),
    ) {
        let (precision, scale) = digits;
        return Ok(Way::Decimal { precision, scale });
    }
    let moments = |is_date, is_timestamp, fsp| {
        Way::Moments(Moments {
            is_date,
            is_timestamp,
            fsp,
            is_near: looks_alike,
        })
    };
    if ty.kind == Kind::Json {
        return match values.exact {
            true => Err("JSON cannot be kept apart: name null or fixed:VALUE".into()),
            false => Ok(Way::Json),
        };
    }
    if ty.is_character() {
        let collation = ty.collation.ok_or("a text without a collation")?;
        if values.exact && !collation.is_searchable() {
            return Err(format!(
                "which texts are equal by {} is not known, and the column is in a unique key or \
                 joined: name null, or keep it",
                collation.name()
            ));
        }
        let manner = Manner {
            looks_alike,
            exact: values.exact,
            chars: values.chars,
        };
        return Ok(Way::Texts(Box::new(Texts::new(
            Alphabets::of(collation),
            manner,
        ))));
    }
    Ok(match ty.kind {
        Kind::TinyInt(_) => Way::Integer(without_sign(8)),
        Kind::SmallInt(_) => Way::Integer(without_sign(16)),
        Kind::MediumInt(_) => Way::Integer(without_sign(24)),
        Kind::Int(_) => Way::Integer(without_sign(32)),
        Kind::BigInt(_) => Way::Integer(without_sign(64)),
        Kind::Decimal { precision, scale } => Way::Decimal {
            precision: precision.into(),
            scale: scale.into(),
        },
        Kind::Float => Way::Float,
        Kind::Double => Way::Double,
        Kind::Date => moments(true, false, 0),
        Kind::DateTime { fsp } => moments(false, false, fsp),
        Kind::Timestamp { fsp } => moments(false, true, fsp),
        Kind::Time { fsp } => Way::Time { fsp },
        Kind::Year => Way::Year,
        Kind::Bit { bits } => Way::Bit { bits },
        Kind::Enum(_) => Way::Member(members(&values.type_text).ok_or("its list of values")?),
        Kind::Set(_) => Way::Set(members(&values.type_text).ok_or("its list of values")?),
        Kind::Uuid => Way::Uuid,
        Kind::Inet6 => Way::Inet6,
        Kind::Inet4 => Way::Inet4,
        _ if ty.is_binary() => Way::Bytes,
        _ => return Err(format!("there is no mask for {}", values.type_text)),
    })
}

fn draw(permuter: &Permuter, row: &[u8]) -> Stream {
    Stream::new(&permuter.key().derive("row", row))
}

fn bytes(permuter: &mut Permuter, cell: &[u8]) -> Vec<u8> {
    let mut symbols: Vec<u32> = cell.iter().map(|byte| u32::from(*byte)).collect();
    permuter.symbols(&mut symbols, &vec![256; cell.len()]);
    symbols.into_iter().map(|symbol| symbol as u8).collect()
}

/// Zero stays; others stay in the same twenty years.
fn year(permuter: &mut Permuter, text: &str, is_near: bool) -> Option<u32> {
    let year: u32 = text.parse().ok()?;
    if year == 0 {
        return Some(0);
    }
    if !(1901..=2155).contains(&year) {
        return None;
    }
    let (low, high) = match is_near {
        true => ((year / 20 * 20).max(1901), (year / 20 * 20 + 19).min(2155)),
        false => (1901, 2155),
    };
    let label = low.to_be_bytes();
    let size = u128::from(high - low + 1);
    Some(low + permuter.number(&label, size, u128::from(year - low)) as u32)
}

fn set(
    permuter: &mut Permuter,
    names: &[String],
    text: &str,
    row: Option<&[u8]>,
) -> Option<String> {
    let mut bits = 0_u128;
    for member in text.split(',').filter(|_| !text.is_empty()) {
        bits |= 1 << names.iter().position(|name| name == member)?;
    }
    let image = match row {
        Some(row) => {
            let mut stream = draw(permuter, row);
            names
                .iter()
                .fold(0, |n, _| n << 1 | u128::from(stream.below(2)))
        }
        None => permuter.number(b"set", 1 << names.len(), bits),
    };
    let chosen = names
        .iter()
        .enumerate()
        .filter(|(at, _)| image >> at & 1 == 1);
    Some(
        chosen
            .map(|(_, name)| name.as_str())
            .collect::<Vec<_>>()
            .join(","),
    )
}

fn uuid(permuter: &mut Permuter, text: &str) -> Option<String> {
    let digits: Vec<u32> = text
        .chars()
        .filter(|c| *c != '-')
        .map(|c| c.to_digit(16))
        .collect::<Option<_>>()?;
    if digits.len() != 32 {
        return None;
    }
    // version and variant stay
    let moves = |at: &usize| ![12, 16].contains(at);
    let moved: Vec<usize> = (0..32).filter(moves).collect();
    let mut symbols: Vec<u32> = moved.iter().map(|at| digits[*at]).collect();
    permuter.symbols(&mut symbols, &[16; 30]);
    let mut digits = digits;
    for (at, symbol) in moved.into_iter().zip(symbols) {
        digits[at] = symbol;
    }
    let mut out = String::with_capacity(36);
    for (at, digit) in digits.into_iter().enumerate() {
        if [8, 12, 16, 20].contains(&at) {
            out.push('-');
        }
        out.push(char::from_digit(digit, 16)?);
    }
    Some(out)
}

/// The digits of FLOAT(m,d) and DOUBLE(m,d).
fn decimal_digits(type_text: &str) -> Option<(usize, usize)> {
    let (_, rest) = type_text.split_once('(')?;
    let (digits, scale) = rest.split_once(')')?.0.split_once(',')?;
    Some((digits.trim().parse().ok()?, scale.trim().parse().ok()?))
}

/// The members of `enum('a','b')`.
fn members(type_text: &str) -> Option<Vec<String>> {
    let (_, list) = type_text.split_once('(')?;
    let mut letters = list.strip_suffix(')')?.chars().peekable();
    let mut out = Vec::new();
    loop {
        if letters.next()? != '\'' {
            return None;
        }
        let mut name = String::new();
        loop {
            match letters.next()? {
                '\'' if letters.peek() == Some(&'\'') => {
                    letters.next();
                    name.push('\'');
                }
                '\'' => break,
                letter => name.push(letter),
            }
        }
        // as the servers keep them
        name.truncate(name.trim_end_matches(' ').len());
        out.push(name);
        match letters.next() {
            None => return Some(out),
            Some(',') => {}
            Some(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn masker(column_type: &str, mask: Mask, exact: bool) -> Masker {
        let ty = SqlType::parse(column_type, Some("utf8mb4_general_ci")).expect("a type");
        let values = Values {
            ty,
            type_text: column_type.into(),
            exact,
            chars: most_chars(&ty),
            is_bool: ty.kind == Kind::TinyInt(Some(1)),
        };
        Masker::new(MaskKey::new([1; 32]), &mask, &values).expect("a mask")
    }

    fn image(masker: &mut Masker, cell: &str, row: u32) -> String {
        let mut out = Vec::new();
        let done = masker.replace(cell.as_bytes(), &row.to_be_bytes(), &mut out);
        done.expect("a value of the type");
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn small_sets_are_permuted_or_drawn() {
        let colours = ["red", "it''s", "a,b"];
        let list = "enum('red','it''s','a,b')";
        assert_eq!(members(list).expect("a list"), ["red", "it's", "a,b"]);
        let mut exact = masker(list, Mask::Generate, true);
        let images: HashSet<String> = ["red", "it's", "a,b"]
            .iter()
            .map(|c| image(&mut exact, c, 0))
            .collect();
        assert_eq!(images.len(), colours.len());
        let mut drawn = masker("tinyint(1)", Mask::Generate, false);
        let images: HashSet<String> = (0..64).map(|row| image(&mut drawn, "1", row)).collect();
        assert_eq!(images.len(), 2, "both of true and false");
        let mut set = masker("set('a','b','c')", Mask::Hash, false);
        let all = ["", "a", "b", "a,b", "c", "a,c", "b,c", "a,b,c"];
        let images: HashSet<String> = all.iter().map(|c| image(&mut set, c, 0)).collect();
        assert_eq!(images.len(), 8);
    }

    #[test]
    fn a_value_of_another_type_is_an_error() {
        for (column_type, cell) in [
            ("int", "x"),
            ("tinyint", "300"),
            ("date", "today"),
            ("enum('a')", "b"),
            ("set('a')", "a,b"),
            ("decimal(5,2)", "1.234"),
            ("uuid", "1"),
            ("inet4", "::1"),
            ("year", "1800"),
        ] {
            for mask in [Mask::Hash, Mask::Generate] {
                let mut out = Vec::new();
                let done = masker(column_type, mask, true).replace(cell.as_bytes(), &[], &mut out);
                assert!(done.is_err(), "{column_type} {cell}");
            }
        }
    }

    #[test]
    fn each_type_has_its_literal() {
        for (column_type, cell, begins) in [
            ("varchar(20)", "Alice", "'"),
            ("varbinary(9)", "xyz", "x'"),
            ("bit(9)", "\u{1}\u{2}", "x'"),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000", "'"),
            ("inet6", "::1", "'"),
            ("inet4", "10.0.0.1", "'"),
            ("json", "{\"a\":1}", "'{}'"),
            ("float(7,2)", "1.50", ""),
            ("double", "-1.5e300", "-"),
            ("time(2)", "10:00:00.25", "'"),
        ] {
            let got = image(&mut masker(column_type, Mask::Generate, false), cell, 0);
            assert!(
                got.starts_with(begins) && got.trim_matches('\'') != cell,
                "{got}"
            );
        }
        assert_eq!(image(&mut masker("int", Mask::Null, false), "1", 0), "NULL");
        let fixed = Mask::parse("fixed:it's").expect("a mask");
        assert_eq!(image(&mut masker("text", fixed, false), "1", 0), "'it\\'s'");
        assert!(Mask::parse("random").is_err());
    }
}
