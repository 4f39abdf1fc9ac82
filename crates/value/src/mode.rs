//! The parts of `sql_mode` that values depend on.

/// A set of SQL modes. Modes that do not bear on values are not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SqlMode(u16);

impl SqlMode {
    /// STRICT_TRANS_TABLES or STRICT_ALL_TABLES; tables are taken to be transactional, where both
    /// mean the same.
    pub const STRICT: SqlMode = SqlMode(1);
    /// NO_ZERO_DATE.
    pub const NO_ZERO_DATE: SqlMode = SqlMode(1 << 1);
    /// NO_ZERO_IN_DATE.
    pub const NO_ZERO_IN_DATE: SqlMode = SqlMode(1 << 2);
    /// ALLOW_INVALID_DATES.
    pub const ALLOW_INVALID_DATES: SqlMode = SqlMode(1 << 3);
    /// ERROR_FOR_DIVISION_BY_ZERO.
    pub const ERROR_FOR_DIVISION_BY_ZERO: SqlMode = SqlMode(1 << 4);
    /// PAD_CHAR_TO_FULL_LENGTH.
    pub const PAD_CHAR_TO_FULL_LENGTH: SqlMode = SqlMode(1 << 5);
    /// MariaDB's TIME_ROUND_FRACTIONAL: round excess fractional digits, which it otherwise cuts
    /// off.
    pub const TIME_ROUND_FRACTIONAL: SqlMode = SqlMode(1 << 6);
    /// MySQL's TIME_TRUNCATE_FRACTIONAL: cut off excess fractional digits, which it otherwise
    /// rounds.
    pub const TIME_TRUNCATE_FRACTIONAL: SqlMode = SqlMode(1 << 7);
    /// NO_UNSIGNED_SUBTRACTION: a difference of integers is signed.
    pub const NO_UNSIGNED_SUBTRACTION: SqlMode = SqlMode(1 << 8);

    /// NO_AUTO_VALUE_ON_ZERO: 0 is a value of AUTO_INCREMENT columns, too.
    pub const NO_AUTO_VALUE_ON_ZERO: SqlMode = SqlMode(1 << 9);

    /// HIGH_NOT_PRECEDENCE: `NOT a = b` is `(NOT a) = b`.
    pub const HIGH_NOT_PRECEDENCE: SqlMode = SqlMode(1 << 10);

    /// No mode set.
    pub const fn empty() -> SqlMode {
        SqlMode(0)
    }

    /// Reads the server's comma-separated list; names that do not bear on values are ignored.
    pub fn parse(list: &str) -> SqlMode {
        let mut mode = SqlMode::empty();
        for name in list.split(',') {
            mode |= match name.trim().to_ascii_uppercase().as_str() {
                "STRICT_TRANS_TABLES" | "STRICT_ALL_TABLES" => SqlMode::STRICT,
                "TRADITIONAL" => {
                    SqlMode::STRICT
                        | SqlMode::NO_ZERO_DATE
                        | SqlMode::NO_ZERO_IN_DATE
                        | SqlMode::ERROR_FOR_DIVISION_BY_ZERO
                }
                "NO_ZERO_DATE" => SqlMode::NO_ZERO_DATE,
                "NO_ZERO_IN_DATE" => SqlMode::NO_ZERO_IN_DATE,
                "ALLOW_INVALID_DATES" => SqlMode::ALLOW_INVALID_DATES,
                "ERROR_FOR_DIVISION_BY_ZERO" => SqlMode::ERROR_FOR_DIVISION_BY_ZERO,
                "PAD_CHAR_TO_FULL_LENGTH" => SqlMode::PAD_CHAR_TO_FULL_LENGTH,
                "TIME_ROUND_FRACTIONAL" => SqlMode::TIME_ROUND_FRACTIONAL,
                "TIME_TRUNCATE_FRACTIONAL" => SqlMode::TIME_TRUNCATE_FRACTIONAL,
                "NO_UNSIGNED_SUBTRACTION" => SqlMode::NO_UNSIGNED_SUBTRACTION,
                "NO_AUTO_VALUE_ON_ZERO" => SqlMode::NO_AUTO_VALUE_ON_ZERO,
                "HIGH_NOT_PRECEDENCE" => SqlMode::HIGH_NOT_PRECEDENCE,
                _ => SqlMode::empty(),
            };
        }
        mode
    }

    /// Whether every mode of `other` is set.
    pub const fn contains(self, other: SqlMode) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether STRICT_TRANS_TABLES or STRICT_ALL_TABLES is set.
    pub const fn is_strict(self) -> bool {
        self.contains(SqlMode::STRICT)
    }
}

impl std::ops::BitOr for SqlMode {
    type Output = SqlMode;
    fn bitor(self, other: SqlMode) -> SqlMode {
        SqlMode(self.0 | other.0)
    }
}

impl std::ops::BitOrAssign for SqlMode {
    fn bitor_assign(&mut self, other: SqlMode) {
        self.0 |= other.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_servers_list() {
        let mode = SqlMode::parse(
            "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ENGINE_SUBSTITUTION",
        );
        assert_eq!(mode, SqlMode::STRICT | SqlMode::NO_ZERO_IN_DATE);
        assert!(mode.is_strict() && !mode.contains(SqlMode::NO_ZERO_DATE));
        assert_eq!(SqlMode::parse(""), SqlMode::empty());
    }
}
