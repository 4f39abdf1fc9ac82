//! Sealed cells: what stands in a column `c$enc`.
//!
//! ```text
//! offset  length
//!      0       1  format version in the high four bits, suite id in the low four: see [`CellFormat`]
//!      1       2  key id, big-endian
//!      3       4  column id
//!      7      12  nonce, random or synthetic
//!     19       n  ciphertext, as long as the payload
//! 19 + n      16  tag
//! ```
//!
//! The associated data is `"onionskin/1 cell"`, the seven header bytes and the eight bytes of the
//! table id. So the header cannot be changed, and a cell that is copied to another table or column
//! does not open. The column id stands in the cell itself, so that a CHECK constraint can refuse
//! cells of other columns, and writers that hold an outdated schema, without knowing any key.
//! Nothing binds a cell to its row: the server can exchange two cells of one column, or bring back
//! an old one.
//!
//! Cells of tenants ([`CellFormat::of_tenants`]) have the tenant's id between the column id and the
//! nonce; see `tenant_cell.rs`.

use crate::{
    CellFormat, ColumnId, KeyId, OpenError, SealError, Suite, TenantId,
    cell_format::{CELL_HEADER_LEN, CELL_OVERHEAD, TENANT_ID_LEN},
    cell_keys::{CellKeys, KeySource},
    derive::{ColumnSecrets, Purpose},
};

/// Longest payload that can be sealed: the largest packet of the MySQL protocol's
/// `max_allowed_packet`, 1 GiB.
pub const MAX_PAYLOAD_LEN: usize = 1 << 30;

pub(crate) const AAD_LABEL: &[u8; 16] = b"onionskin/1 cell";
const AAD_LEN: usize = AAD_LABEL.len() + CELL_HEADER_LEN + 8;

/// Length of the cell of a payload, where cells are not those of tenants. See
/// [`CellFormat::sealed_len`].
pub const fn sealed_len(payload_len: usize) -> usize {
    payload_len.saturating_add(CELL_OVERHEAD)
}

/// What a cell says about itself before any key is used. Not authenticated until the cell opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellHeader {
    /// The suite that it was sealed under, and the version of its format.
    pub format: CellFormat,
    /// The data key it was sealed under.
    pub key_id: KeyId,
    /// The column id of [`ColumnId`].
    pub column: [u8; 4],
}

impl CellHeader {
    pub(crate) fn encode(&self) -> [u8; CELL_HEADER_LEN] {
        let [k0, k1] = self.key_id.to_be_bytes();
        let [c0, c1, c2, c3] = self.column;
        [self.format.first_byte(), k0, k1, c0, c1, c2, c3]
    }

    /// Whether a cell with the header `other` may be one of the column whose new cells have this
    /// header.
    #[inline]
    pub(crate) fn must_be_of_column(&self, other: &CellHeader) -> Result<(), OpenError> {
        if other.format.suite() != self.format.suite() {
            return Err(OpenError::OtherSuite(other.format.suite()));
        }
        if other.format.is_of_tenants() != self.format.is_of_tenants() {
            return Err(OpenError::OtherVersion(other.format.version()));
        }
        if other.column != self.column {
            return Err(OpenError::OtherColumn);
        }
        match other.key_id == self.key_id {
            true => Ok(()),
            false => Err(OpenError::OtherKey(other.key_id)),
        }
    }
}

/// Reads the header of a cell, to find the cipher that opens it.
pub fn cell_header(cell: &[u8]) -> Result<CellHeader, OpenError> {
    if cell.len() < CELL_OVERHEAD {
        return Err(OpenError::TooShort);
    }
    let &[kind, k0, k1, c0, c1, c2, c3] = cell
        .first_chunk::<CELL_HEADER_LEN>()
        .ok_or(OpenError::TooShort)?;
    let (version, suite) = (kind >> 4, kind & 0xf);
    let format = CellFormat::from_numbers(suite, version).ok_or(match Suite::from_id(suite) {
        None if CellFormat::is_version(version) => OpenError::UnknownSuite(suite),
        _ => OpenError::UnknownVersion(version),
    })?;
    if cell.len() < format.overhead() {
        return Err(OpenError::TooShort);
    }
    Ok(CellHeader {
        format,
        key_id: KeyId::from_be_bytes([k0, k1]),
        column: [c0, c1, c2, c3],
    })
}

/// The tenant that a cell names; `None` if it is not a cell of a tenant. Not authenticated until
/// the cell opens.
pub fn cell_tenant(cell: &[u8]) -> Option<TenantId> {
    if !cell_header(cell).ok()?.format.is_of_tenants() {
        return None;
    }
    let id = cell[CELL_HEADER_LEN..].first_chunk::<TENANT_ID_LEN>()?;
    Some(TenantId(*id))
}

/// Seals and opens the cells of one column under one data key, where these are not those of
/// tenants.
pub(crate) struct CellSealer {
    keys: CellKeys,
    header: CellHeader,
    header_bytes: [u8; CELL_HEADER_LEN],
    aad: [u8; AAD_LEN],
}

impl CellSealer {
    pub(crate) fn new(header: CellHeader, id: &ColumnId, secrets: &ColumnSecrets) -> Self {
        let header_bytes = header.encode();
        let mut aad = [0; AAD_LEN];
        let (label, rest) = aad.split_at_mut(AAD_LABEL.len());
        let (head, table) = rest.split_at_mut(CELL_HEADER_LEN);
        label.copy_from_slice(AAD_LABEL);
        head.copy_from_slice(&header_bytes);
        table.copy_from_slice(&id.table);
        Self {
            keys: CellKeys::derive(header.format.suite(), &OfColumn { secrets, id }),
            header,
            header_bytes,
            aad,
        }
    }

    /// Appends the cell of `payload`, which the caller has charged.
    pub(crate) fn seal(&self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), SealError> {
        self.keys.seal(&self.header_bytes, &self.aad, payload, out)
    }

    /// Appends the payload of `cell`, or leaves `out` as it was.
    pub(crate) fn open(&self, cell: &[u8], out: &mut Vec<u8>) -> Result<(), OpenError> {
        // Nearly every cell has the header of a new one: nothing of it has to be read.
        match cell.split_first_chunk::<CELL_HEADER_LEN>() {
            Some((header, sealed)) if *header == self.header_bytes => {
                self.keys.open(sealed, &self.aad, out)
            }
            _ => self.open_of_other_header(cell, out),
        }
    }

    /// The same for a cell of another version, or none of this column.
    #[cold]
    fn open_of_other_header(&self, cell: &[u8], out: &mut Vec<u8>) -> Result<(), OpenError> {
        let header = cell_header(cell)?;
        self.header.must_be_of_column(&header)?;
        // All versions of a suite are sealed alike; the byte that tells them apart is
        // authenticated.
        let mut aad = self.aad;
        aad[AAD_LABEL.len()] = header.format.first_byte();
        self.keys.open(&cell[CELL_HEADER_LEN..], &aad, out)
    }

    #[cfg(test)]
    pub(crate) fn seal_with_nonce(
        &self,
        nonce: &[u8; 12],
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        self.keys
            .seal_with_nonce(nonce, &self.header_bytes, &self.aad, payload, out)
    }

    #[cfg(test)]
    pub(crate) fn synthetic_nonce(&self, fresh: &[u8; 16], payload: &[u8]) -> [u8; 12] {
        self.keys.synthetic_nonce(fresh, &self.aad, payload)
    }
}

/// The keys that a column has of its own.
struct OfColumn<'a> {
    secrets: &'a ColumnSecrets,
    id: &'a ColumnId,
}

impl KeySource for OfColumn<'_> {
    fn key<const N: usize>(&self, purpose: Purpose) -> [u8; N] {
        self.secrets.column_key(purpose, self.id)
    }
}
