//! Which cells a column has: the suite, and the version of the format.

use crate::{Suite, aead::TAG_LEN, nonce::NONCE_LEN};

/// Bytes before the nonce: version and suite, key id, column id.
pub const CELL_HEADER_LEN: usize = 7;
/// How much longer a cell is than its payload, where cells are not those of tenants. See
/// [`CellFormat::overhead`].
pub const CELL_OVERHEAD: usize = CELL_HEADER_LEN + NONCE_LEN + TAG_LEN;
/// Bytes of a tenant's id.
pub(crate) const TENANT_ID_LEN: usize = 8;

/// The version of cells of tenants, in every suite.
const TENANTS_VERSION: u8 = 3;

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
/// | both | 3 | as in the suite's newest; the cells are those of tenants |
///
/// The versions 1 and 2 are laid out alike, and a cipher opens those of its suite. What version 2
/// says is that no program of the time of random nonces can have written to the column: such a
/// program does not know the version and refuses the table, and the CHECK refuses its cells.
///
/// A cell of version 3 names its tenant, and is sealed under a key of the tenant. A cipher of such
/// a column opens no others, and other ciphers do not open it.
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

    /// What columns get whose cells are those of tenants.
    pub const fn of_tenants(suite: Suite) -> Self {
        Self {
            suite,
            version: TENANTS_VERSION,
        }
    }

    /// Whether each cell is one of a tenant.
    pub const fn is_of_tenants(self) -> bool {
        self.version == TENANTS_VERSION
    }

    /// How much longer a cell is than its payload.
    pub const fn overhead(self) -> usize {
        match self.is_of_tenants() {
            true => CELL_OVERHEAD + TENANT_ID_LEN,
            false => CELL_OVERHEAD,
        }
    }

    /// Length of the cell of a payload.
    pub const fn sealed_len(self, payload_len: usize) -> usize {
        payload_len.saturating_add(self.overhead())
    }

    /// The format with these numbers; `None` if this program does not know it.
    pub const fn from_numbers(suite: u8, version: u8) -> Option<Self> {
        let Some(suite) = Suite::from_id(suite) else {
            return None;
        };
        let known = version >= 1 && version <= Self::newest(suite).version;
        match known || version == TENANTS_VERSION {
            true => Some(Self { suite, version }),
            false => None,
        }
    }

    /// Whether any suite has a format of this version.
    pub(crate) const fn is_version(version: u8) -> bool {
        matches!(version, 1 | 2 | TENANTS_VERSION)
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
        assert_eq!(known, [0x11, 0x12, 0x22, 0x31, 0x32]);
        for suite in [Suite::Aes, Suite::Sm] {
            let (plain, tenants) = (CellFormat::newest(suite), CellFormat::of_tenants(suite));
            assert_eq!((plain.overhead(), tenants.overhead()), (35, 43));
            assert_eq!((plain.sealed_len(5), tenants.sealed_len(5)), (40, 48));
            assert!(tenants.is_of_tenants() && !plain.is_of_tenants());
            assert_eq!(tenants.sealed_len(usize::MAX), usize::MAX);
        }
        assert_eq!(CellFormat::from(Suite::Aes).first_byte(), 0x11);
        assert_eq!(CellFormat::from(Suite::Sm).first_byte(), 0x22);
    }
}
