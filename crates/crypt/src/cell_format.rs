//! Which cells a column has: the suite, and the version of the format.

use crate::Suite;

/// The suite of a column's cells and the version of their format: the first byte of every cell.
///
/// The format belongs to the column. It is chosen when the column is made and stands in its
/// metadata, because the table's CHECK constraint demands that byte. A column that was made with
/// an older format keeps it until the table is rewritten (`onionskin migrate … --rotate`).
///
/// | suite | version | nonces |
/// |---|---|---|
/// | `aes` | 1 | random; a repeated one is harmless under GCM-SIV |
/// | `sm` | 1 | random in cells of older programs, synthetic in those of today |
/// | `sm` | 2 | synthetic in every cell |
///
/// All versions are laid out alike, and a cipher opens those of its suite. What version 2 says is
/// that no program of the time of random nonces can have written to the column: such a program
/// does not know the version and refuses the table, and the CHECK refuses its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellFormat {
    suite: Suite,
    version: u8,
}

impl CellFormat {
    /// What new columns of this suite get.
    pub const fn newest(suite: Suite) -> Self {
        let version = match suite {
            Suite::Aes => 1,
            Suite::Sm => 2,
        };
        Self { suite, version }
    }

    /// The format with these numbers; `None` if this program does not know it.
    pub const fn from_numbers(suite: u8, version: u8) -> Option<Self> {
        let Some(suite) = Suite::from_id(suite) else {
            return None;
        };
        let known = version >= 1 && version <= Self::newest(suite).version;
        match known {
            true => Some(Self { suite, version }),
            false => None,
        }
    }

    /// Whether any suite has a format of this version.
    pub(crate) const fn is_version(version: u8) -> bool {
        matches!(version, 1 | 2)
    }

    /// The suite.
    pub const fn suite(self) -> Suite {
        self.suite
    }

    /// The version, from 1.
    pub const fn version(self) -> u8 {
        self.version
    }

    /// The first byte of a cell.
    pub const fn first_byte(self) -> u8 {
        self.version << 4 | self.suite.id()
    }
}

impl From<Suite> for CellFormat {
    fn from(suite: Suite) -> Self {
        Self::newest(suite)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_formats() {
        let known: Vec<u8> = (0..=0xff)
            .filter_map(|byte| CellFormat::from_numbers(byte & 0xf, byte >> 4))
            .map(CellFormat::first_byte)
            .collect();
        assert_eq!(known, [0x11, 0x12, 0x22]);
        assert_eq!(CellFormat::from(Suite::Aes).first_byte(), 0x11);
        assert_eq!(CellFormat::from(Suite::Sm).first_byte(), 0x22);
    }
}
