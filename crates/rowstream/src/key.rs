//! The unique key by which rows are found again: copied in its order, and changed rows looked up by
//! it.
//!
//! A [`Key`] is the *canonical* form of a key's values: the bytes of strings in their column's
//! character set without the padding that the server strips, and for everything else the text that
//! the server prints in UTC. The same row gives the same bytes, whether it was read by SELECT or in
//! the binary log. Two spellings that a collation takes for equal are two keys here; see
//! [`crate::pending`] for why that is harmless.

use std::fmt::Write;

use onionskin_schema::identifier;

/// What kind of values a column of the key has, which decides how a constant of it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// An integer.
    Integer,
    /// DECIMAL.
    Decimal,
    /// A date or time; TIMESTAMP in UTC.
    Temporal,
    /// CHAR or VARCHAR of a character set.
    Text {
        /// Its name.
        charset: String,
    },
    /// BINARY or VARBINARY.
    Binary,
}

/// A column of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyColumn {
    /// Its name, the same in the old and in the new table.
    pub name: String,
    /// Kind of its values.
    pub kind: KeyKind,
    /// Its place among all of the old table's columns, from 0.
    pub ordinal: usize,
    /// UNSIGNED: the binary log does not say.
    pub unsigned: bool,
    /// COLUMN_TYPE.
    pub column_type: String,
}

/// A unique key whose columns are all NOT NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyDefinition {
    /// The index in the old table.
    pub index: String,
    /// Its columns, in its order.
    pub columns: Vec<KeyColumn>,
}

/// The values of one row's key, in canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub Vec<Vec<u8>>);

impl Key {
    /// For messages: `7`, `'ann', 2020-01-01`.
    pub fn shown(&self, definition: &KeyDefinition) -> String {
        let parts = self
            .0
            .iter()
            .zip(&definition.columns)
            .map(|(part, column)| {
                let text = String::from_utf8_lossy(part);
                match column.kind {
                    KeyKind::Integer | KeyKind::Decimal | KeyKind::Temporal => text.into_owned(),
                    KeyKind::Text { .. } => format!("'{text}'"),
                    KeyKind::Binary => part.iter().fold("0x".to_owned(), |mut out, byte| {
                        let _ = write!(out, "{byte:02x}");
                        out
                    }),
                }
            });
        parts.collect::<Vec<_>>().join(", ")
    }
}

impl KeyDefinition {
    /// The columns as a select list, each with its table's name before it.
    pub fn select_list(&self, table: &str) -> String {
        let names = self
            .columns
            .iter()
            .map(|column| column_of(table, &column.name));
        names.collect::<Vec<_>>().join(", ")
    }

    /// The number that the key is, if it is a single integer.
    pub fn number(&self, key: &Key) -> Option<i128> {
        match (self.columns.as_slice(), key.0.as_slice()) {
            ([column], [part]) if column.kind == KeyKind::Integer => {
                std::str::from_utf8(part).ok()?.parse().ok()
            }
            _ => None,
        }
    }

    /// Puts keys into the order of the index as far as that is known; it makes reads and writes
    /// local.
    pub fn sort(&self, keys: &mut [Key]) {
        if keys.iter().all(|key| self.number(key).is_some()) {
            keys.sort_by_key(|key| self.number(key));
        } else {
            keys.sort();
        }
    }

    /// A condition that holds for the rows behind `from` (all, if there is none) up to and with
    /// `to` (to the end).
    pub fn range(&self, table: &str, from: Option<&Key>, to: Option<&Key>) -> String {
        let mut conditions = Vec::new();
        if let Some(from) = from {
            conditions.push(self.beyond(table, from, '>', false));
        }
        if let Some(to) = to {
            conditions.push(self.beyond(table, to, '<', true));
        }
        match conditions.is_empty() {
            true => "TRUE".into(),
            false => conditions.join(" AND "),
        }
    }

    /// `(a > 1) OR (a = 1 AND b > 2)`: row constructors in comparisons do not use the index.
    fn beyond(&self, table: &str, key: &Key, operator: char, inclusive: bool) -> String {
        let mut alternatives = Vec::new();
        let last = self.columns.len().saturating_sub(1);
        for at in 0..self.columns.len() {
            let mut terms: Vec<String> = (0..at)
                .map(|before| self.term(table, key, before, "="))
                .collect();
            let operator = match at == last && inclusive {
                true => format!("{operator}="),
                false => operator.to_string(),
            };
            terms.push(self.term(table, key, at, &operator));
            alternatives.push(format!("({})", terms.join(" AND ")));
        }
        match alternatives.len() {
            1 => alternatives.concat(),
            // Bounds the scan of the index by the first column.
            _ => format!(
                "({} AND ({}))",
                self.term(table, key, 0, &format!("{operator}=")),
                alternatives.join(" OR ")
            ),
        }
    }

    fn term(&self, table: &str, key: &Key, at: usize, operator: &str) -> String {
        let column = &self.columns[at];
        format!(
            "{} {operator} {}",
            column_of(table, &column.name),
            column.literal(key.0.get(at).map_or(b"", Vec::as_slice))
        )
    }

    /// A condition that holds for the rows with these keys; there is at least one.
    pub fn among(&self, table: &str, keys: &[Key]) -> String {
        let mut out = String::new();
        if let [column] = self.columns.as_slice() {
            let _ = write!(out, "{} IN (", column_of(table, &column.name));
            for (n, key) in keys.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                out.push_str(&column.literal(key.0.first().map_or(b"", Vec::as_slice)));
            }
            out.push(')');
            return out;
        }
        out.push('(');
        for (n, key) in keys.iter().enumerate() {
            if n > 0 {
                out.push_str(" OR ");
            }
            let terms: Vec<String> = (0..self.columns.len())
                .map(|at| self.term(table, key, at, "="))
                .collect();
            let _ = write!(out, "({})", terms.join(" AND "));
        }
        out.push(')');
        out
    }

    /// How many keys one statement takes.
    pub fn batch(&self) -> usize {
        if self.columns.len() == 1 { 1000 } else { 200 }
    }
}

impl KeyColumn {
    /// ZEROFILL shows zeros before a number, which the binary log does not have.
    pub(crate) fn strip_zeros(&self, part: &mut Vec<u8>) {
        if !matches!(self.kind, KeyKind::Integer | KeyKind::Decimal) {
            return;
        }
        let zeros = part.iter().take_while(|&&c| c == b'0').count();
        // One digit stays before the point, or alone.
        let digits = part[zeros..]
            .first()
            .is_some_and(|digit| digit.is_ascii_digit());
        part.drain(
            ..if digits {
                zeros
            } else {
                zeros.saturating_sub(1)
            },
        );
    }

    /// A constant of the column in SQL.
    pub fn literal(&self, part: &[u8]) -> String {
        match &self.kind {
            // What is no number is never sent as one.
            KeyKind::Integer | KeyKind::Decimal if is_number(part) => {
                String::from_utf8_lossy(part).into_owned()
            }
            KeyKind::Temporal if is_temporal(part) => {
                format!("'{}'", String::from_utf8_lossy(part))
            }
            KeyKind::Text { charset } => format!("_{charset} {}", hex_literal(part)),
            _ => hex_literal(part),
        }
    }
}

fn is_number(part: &[u8]) -> bool {
    !part.is_empty() && part.iter().all(|c| matches!(c, b'0'..=b'9' | b'-' | b'.'))
}

fn is_temporal(part: &[u8]) -> bool {
    !part.is_empty()
        && part
            .iter()
            .all(|c| matches!(c, b'0'..=b'9' | b'-' | b'.' | b':' | b' '))
}

/// `` `table`.`column` ``
pub fn column_of(table: &str, column: &str) -> String {
    format!("{}.{}", identifier(table), identifier(column))
}

/// `x'0a0b'`
pub fn hex_literal(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2 + 3);
    push_hex(bytes, &mut out);
    out
}

/// Appends `x'0a0b'`.
pub fn push_hex(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(bytes.len() * 2 + 3);
    out.push_str("x'");
    for &byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    out.push('\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: KeyKind) -> KeyColumn {
        KeyColumn {
            name: name.into(),
            kind,
            ordinal: 0,
            unsigned: false,
            column_type: String::new(),
        }
    }

    fn key(parts: &[&str]) -> Key {
        Key(parts.iter().map(|part| part.as_bytes().to_vec()).collect())
    }

    #[test]
    fn ranges_are_left_open_and_right_closed() {
        let single = KeyDefinition {
            index: "PRIMARY".into(),
            columns: vec![column("a", KeyKind::Integer)],
        };
        assert_eq!(single.range("t", None, None), "TRUE");
        assert_eq!(
            single.range("t", Some(&key(&["1"])), Some(&key(&["9"]))),
            "(`t`.`a` > 1) AND (`t`.`a` <= 9)"
        );
        let double = KeyDefinition {
            index: "u".into(),
            columns: vec![
                column("a", KeyKind::Integer),
                column(
                    "b",
                    KeyKind::Text {
                        charset: "latin1".into(),
                    },
                ),
            ],
        };
        assert_eq!(
            double.range("t", Some(&key(&["1", "x"])), None),
            "(`t`.`a` >= 1 AND ((`t`.`a` > 1) OR (`t`.`a` = 1 AND `t`.`b` > _latin1 x'78')))"
        );
        assert_eq!(
            double.among("t", &[key(&["1", "x"]), key(&["2", ""])]),
            "((`t`.`a` = 1 AND `t`.`b` = _latin1 x'78') OR (`t`.`a` = 2 AND `t`.`b` = _latin1 x''))"
        );
    }

    #[test]
    fn what_is_no_number_is_never_sent_as_one() {
        let number = column("a", KeyKind::Integer);
        assert_eq!(number.literal(b"-12"), "-12");
        assert_eq!(number.literal(b"1 OR 1"), "x'31204f522031'");
        let date = column("d", KeyKind::Temporal);
        assert_eq!(
            date.literal(b"2020-01-02 03:04:05.6"),
            "'2020-01-02 03:04:05.6'"
        );
        assert_eq!(date.literal(b"'"), "x'27'");
    }

    #[test]
    fn zeros_before_a_number_are_no_part_of_the_key() {
        let number = column("a", KeyKind::Decimal);
        for (shown, key) in [
            ("0000000042", "42"),
            ("42", "42"),
            ("0000", "0"),
            ("0", "0"),
            ("00000.50", "0.50"),
            ("0012.00", "12.00"),
            ("-5", "-5"),
            ("", ""),
        ] {
            let mut part = shown.as_bytes().to_vec();
            number.strip_zeros(&mut part);
            assert_eq!(part, key.as_bytes(), "{shown}");
        }
        let mut text = b"007".to_vec();
        column("a", KeyKind::Binary).strip_zeros(&mut text);
        assert_eq!(text, b"007");
    }

    #[test]
    fn integers_sort_as_numbers() {
        let single = KeyDefinition {
            index: "PRIMARY".into(),
            columns: vec![column("a", KeyKind::Integer)],
        };
        let mut keys = vec![key(&["10"]), key(&["9"]), key(&["-1"])];
        single.sort(&mut keys);
        assert_eq!(keys, [key(&["-1"]), key(&["9"]), key(&["10"])]);
    }
}
