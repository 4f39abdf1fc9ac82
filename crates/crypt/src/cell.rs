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

use std::sync::atomic::{AtomicU64, Ordering};

use zeroize::Zeroize;

use crate::{
    CellFormat, ColumnId, KeyId, OpenError, SealError, Suite,
    aead::{Aead, TAG_LEN},
    derive::{ColumnSecrets, Purpose, hmac_sm3},
    nonce::{NONCE_LEN, Nonces},
};

/// Bytes before the nonce: version and suite, key id, column id.
pub const CELL_HEADER_LEN: usize = 7;
/// How much longer a cell is than its payload.
pub const CELL_OVERHEAD: usize = CELL_HEADER_LEN + NONCE_LEN + TAG_LEN;
/// Longest payload that can be sealed: the largest packet of the MySQL protocol's
/// `max_allowed_packet`, 1 GiB.
pub const MAX_PAYLOAD_LEN: usize = 1 << 30;

const BODY_START: usize = CELL_HEADER_LEN + NONCE_LEN;
const AAD_LABEL: &[u8; 16] = b"onionskin/1 cell";
const AAD_LEN: usize = AAD_LABEL.len() + CELL_HEADER_LEN + 8;
/// Payload bytes that one unit of [`Suite::seal_bound`] covers.
const UNIT_SHIFT: u32 = 16;

/// Length of the cell of a payload.
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
    fn encode(&self) -> [u8; CELL_HEADER_LEN] {
        let [k0, k1] = self.key_id.to_be_bytes();
        let [c0, c1, c2, c3] = self.column;
        [self.format.first_byte(), k0, k1, c0, c1, c2, c3]
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
    Ok(CellHeader {
        format,
        key_id: KeyId::from_be_bytes([k0, k1]),
        column: [c0, c1, c2, c3],
    })
}

/// Seals and opens the cells of one column under one data key.
pub(crate) struct CellSealer {
    aead: Aead,
    nonces: Nonces,
    header: CellHeader,
    header_bytes: [u8; CELL_HEADER_LEN],
    aad: [u8; AAD_LEN],
    /// Units of [`Suite::seal_bound`] used so far by this process.
    sealed_units: AtomicU64,
}

impl CellSealer {
    pub(crate) fn new(
        format: CellFormat,
        key_id: KeyId,
        id: &ColumnId,
        secrets: &ColumnSecrets,
    ) -> Self {
        let (aead, nonces) = match format.suite() {
            Suite::Aes => {
                let aead = Aead::aes(&mut secrets.column_key(Purpose::Seal, id));
                (aead, Nonces::Random)
            }
            Suite::Sm => {
                let aead = Aead::sm(&mut secrets.column_key(Purpose::Seal, id));
                let mut key: [u8; 32] = secrets.column_key(Purpose::Nonce, id);
                let nonces = Nonces::Synthetic(Box::new(hmac_sm3(&key)));
                key.zeroize();
                (aead, nonces)
            }
        };
        let header = CellHeader {
            format,
            key_id,
            column: id.column,
        };
        let header_bytes = header.encode();
        let mut aad = [0; AAD_LEN];
        let (label, rest) = aad.split_at_mut(AAD_LABEL.len());
        let (head, table) = rest.split_at_mut(CELL_HEADER_LEN);
        label.copy_from_slice(AAD_LABEL);
        head.copy_from_slice(&header_bytes);
        table.copy_from_slice(&id.table);
        Self {
            aead,
            nonces,
            header,
            header_bytes,
            aad,
            sealed_units: AtomicU64::new(0),
        }
    }

    pub(crate) fn header(&self) -> &CellHeader {
        &self.header
    }

    /// Counts the units that a payload costs, or refuses.
    pub(crate) fn charge(&self, payload_len: usize) -> Result<(), SealError> {
        if payload_len > MAX_PAYLOAD_LEN {
            return Err(SealError::TooLong);
        }
        let units = 1 + (payload_len as u64 >> UNIT_SHIFT);
        // Refused calls go on counting; at a billion a second the counter would wrap after five
        // centuries.
        let before = self.sealed_units.fetch_add(units, Ordering::Relaxed);
        if before.saturating_add(units) > self.header.format.suite().seal_bound() {
            return Err(SealError::Exhausted);
        }
        Ok(())
    }

    /// Appends the cell of `payload`, which the caller has charged.
    pub(crate) fn seal(&self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), SealError> {
        let nonce = self.nonces.next(&self.aad, payload)?;
        self.seal_with_nonce(&nonce, payload, out)
    }

    /// Appends the cell of `payload`. The caller has charged it and answers for the nonce.
    pub(crate) fn seal_with_nonce(
        &self,
        nonce: &[u8; NONCE_LEN],
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        let start = out.len();
        out.reserve(sealed_len(payload.len()));
        out.extend_from_slice(&self.header_bytes);
        out.extend_from_slice(nonce);
        out.extend_from_slice(payload);
        match self
            .aead
            .seal_in_place(nonce, &self.aad, &mut out[start + BODY_START..])
        {
            Ok(tag) => {
                out.extend_from_slice(&tag);
                Ok(())
            }
            Err(error) => {
                // The body may still be plaintext; it must not stay in a buffer bound for the
                // server.
                out[start..].zeroize();
                out.truncate(start);
                Err(error)
            }
        }
    }

    /// Appends the payload of `cell`, or leaves `out` as it was.
    pub(crate) fn open(&self, cell: &[u8], out: &mut Vec<u8>) -> Result<(), OpenError> {
        let header = cell_header(cell)?;
        let suite = header.format.suite();
        if suite != self.header.format.suite() {
            return Err(OpenError::OtherSuite(suite));
        }
        if header.column != self.header.column {
            return Err(OpenError::OtherColumn);
        }
        if header.key_id != self.header.key_id {
            return Err(OpenError::OtherKey(header.key_id));
        }
        let (body, tag) = cell
            .get(CELL_HEADER_LEN..)
            .and_then(|rest| rest.split_last_chunk::<TAG_LEN>())
            .ok_or(OpenError::TooShort)?;
        let (nonce, ciphertext) = body
            .split_first_chunk::<NONCE_LEN>()
            .ok_or(OpenError::TooShort)?;

        // All versions of a suite are sealed alike; the byte that tells them apart is
        // authenticated.
        let mut aad = self.aad;
        aad[AAD_LABEL.len()] = header.format.first_byte();
        let start = out.len();
        out.extend_from_slice(ciphertext);
        self.aead
            .open_in_place(nonce, &aad, &mut out[start..], tag)
            .inspect_err(|_| out.truncate(start))
    }

    /// Units of [`Suite::seal_bound`] that were used.
    pub(crate) fn sealed_units(&self) -> u64 {
        self.sealed_units.load(Ordering::Relaxed)
    }

    /// Begins to count at `units`.
    pub(crate) fn count_from(&mut self, units: u64) {
        *self.sealed_units.get_mut() = units;
    }

    #[cfg(test)]
    pub(crate) fn synthetic_nonce(&self, fresh: &[u8; 16], payload: &[u8]) -> [u8; NONCE_LEN] {
        match &self.nonces {
            Nonces::Synthetic(key) => crate::nonce::synthetic(key, fresh, &self.aad, payload),
            Nonces::Random => panic!("the suite has random nonces"),
        }
    }

    #[cfg(test)]
    pub(crate) fn leave_units(&self, units: u64) {
        let bound = self.header.format.suite().seal_bound();
        self.sealed_units.store(bound - units, Ordering::Relaxed);
    }
}
