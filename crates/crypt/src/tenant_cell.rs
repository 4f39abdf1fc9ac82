//! Cells of tenants.
//!
//! ```text
//! offset  length
//!      0       1  format version 3 in the high four bits, suite id in the low four
//!      1       2  key id, big-endian
//!      3       4  column id
//!      7       8  tenant id
//!     15      12  nonce, random or synthetic
//!     27       n  ciphertext, as long as the payload
//! 27 + n      16  tag
//! ```
//!
//! The associated data is `"onionskin/1 cell"`, the fifteen header bytes and the eight bytes of the
//! table id. The key of a cell needs two secrets, and is gone with either of them:
//!
//! ```text
//! PRK = HKDF-Extract(salt = "onionskin/1 tenant cells", IKM = key "tenant" of the column (32) ‖ secret of the tenant (16))
//! key = HKDF-Expand(PRK, purpose ‖ 0x00, length)      purpose: "seal", and "nonce" in suite sm
//! ```

use std::sync::Arc;

use zeroize::{Zeroize, Zeroizing};

use crate::{
    CellHeader, ColumnId, OpenError, SealError, Suite, TenantId, TenantSecret, TenantSecrets,
    cell::{AAD_LABEL, cell_header},
    cell_format::{CELL_HEADER_LEN, TENANT_ID_LEN},
    cell_keys::{CellKeys, KeySource},
    derive::{ColumnSecrets, Purpose, Secret},
    recent::Recent,
    tenant::TENANT_SECRET_LEN,
};

const SALT: &[u8] = b"onionskin/1 tenant cells";
const COLUMN_KEY_LEN: usize = 32;
/// Tenants whose keys are kept for each column, about a kilobyte each.
const KEPT_TENANTS: usize = 1024;
const HEADER_LEN: usize = CELL_HEADER_LEN + TENANT_ID_LEN;
const AAD_LEN: usize = AAD_LABEL.len() + HEADER_LEN + 8;

/// Seals and opens the cells of one column under one data key, where these are those of tenants.
pub(crate) struct TenantSealer {
    header: CellHeader,
    header_bytes: [u8; CELL_HEADER_LEN],
    table: [u8; 8],
    column_key: Box<[u8; COLUMN_KEY_LEN]>,
    tenants: Option<Arc<dyn TenantSecrets>>,
    recent: Recent<Arc<CellKeys>>,
}

impl TenantSealer {
    pub(crate) fn new(header: CellHeader, id: &ColumnId, secrets: &ColumnSecrets) -> Self {
        let mut key = secrets.column_key(Purpose::Tenant, id);
        let column_key = Box::new(key);
        key.zeroize();
        Self {
            header_bytes: header.encode(),
            header,
            table: id.table,
            column_key,
            tenants: None,
            recent: Recent::of(KEPT_TENANTS),
        }
    }

    pub(crate) fn set_tenants(&mut self, tenants: Arc<dyn TenantSecrets>) {
        self.tenants = Some(tenants);
        self.recent = Recent::of(KEPT_TENANTS);
    }

    /// Appends the cell of `payload`, which the caller has charged.
    pub(crate) fn seal(
        &self,
        tenant: TenantId,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        let keys = self.keys(tenant)?;
        let header = self.header_for(tenant);
        keys.seal(&header, &self.aad(&header), payload, out)
    }

    /// Appends the payload of `cell`, or leaves `out` as it was.
    pub(crate) fn open(&self, cell: &[u8], out: &mut Vec<u8>) -> Result<(), OpenError> {
        self.header.must_be_of_column(&cell_header(cell)?)?;
        let (header, sealed) = cell
            .split_first_chunk::<HEADER_LEN>()
            .ok_or(OpenError::TooShort)?;
        let tenant = header.last_chunk::<TENANT_ID_LEN>();
        let tenant = TenantId(*tenant.ok_or(OpenError::TooShort)?);
        self.keys(tenant)?.open(sealed, &self.aad(header), out)
    }

    fn header_for(&self, tenant: TenantId) -> [u8; HEADER_LEN] {
        let mut header = [0; HEADER_LEN];
        let (column, id) = header.split_at_mut(CELL_HEADER_LEN);
        column.copy_from_slice(&self.header_bytes);
        id.copy_from_slice(&tenant.0);
        header
    }

    fn aad(&self, header: &[u8; HEADER_LEN]) -> [u8; AAD_LEN] {
        let mut aad = [0; AAD_LEN];
        let (label, rest) = aad.split_at_mut(AAD_LABEL.len());
        let (head, table) = rest.split_at_mut(HEADER_LEN);
        label.copy_from_slice(AAD_LABEL);
        head.copy_from_slice(header);
        table.copy_from_slice(&self.table);
        aad
    }

    /// The keys of a tenant's cells.
    fn keys(&self, tenant: TenantId) -> Result<Arc<CellKeys>, NoKeys> {
        if let Some(keys) = self.recent.get(tenant) {
            return Ok(keys);
        }
        let tenants = self.tenants.as_ref().ok_or(NoKeys::NoTenants)?;
        let secret = tenants.secret(tenant).ok_or(NoKeys::Forgotten)?;
        let suite = self.header.format.suite();
        let source = OfTenant::new(suite, &self.column_key, &secret);
        let keys = Arc::new(CellKeys::derive(suite, &source));
        self.recent.keep(tenant, Arc::clone(&keys));
        Ok(keys)
    }

    #[cfg(test)]
    pub(crate) fn seal_with_nonce(
        &self,
        tenant: TenantId,
        nonce: &[u8; 12],
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        let header = self.header_for(tenant);
        let keys = self.keys(tenant)?;
        keys.seal_with_nonce(nonce, &header, &self.aad(&header), payload, out)
    }

    #[cfg(test)]
    pub(crate) fn synthetic_nonce(
        &self,
        tenant: TenantId,
        fresh: &[u8; 16],
        payload: &[u8],
    ) -> [u8; 12] {
        let aad = self.aad(&self.header_for(tenant));
        let keys = self.keys(tenant).expect("a secret");
        keys.synthetic_nonce(fresh, &aad, payload)
    }
}

impl Drop for TenantSealer {
    fn drop(&mut self) {
        self.column_key.zeroize();
    }
}

/// Why a tenant has no keys.
#[derive(Debug)]
enum NoKeys {
    Forgotten,
    NoTenants,
}

impl From<NoKeys> for SealError {
    fn from(why: NoKeys) -> Self {
        match why {
            NoKeys::Forgotten => SealError::Forgotten,
            NoKeys::NoTenants => SealError::NoTenants,
        }
    }
}

impl From<NoKeys> for OpenError {
    fn from(why: NoKeys) -> Self {
        match why {
            NoKeys::Forgotten => OpenError::Forgotten,
            NoKeys::NoTenants => OpenError::NoTenants,
        }
    }
}

/// The keys of one tenant in one column.
struct OfTenant(Secret);

impl OfTenant {
    fn new(suite: Suite, column_key: &[u8; COLUMN_KEY_LEN], tenant: &TenantSecret) -> Self {
        let mut both = Zeroizing::new([0; COLUMN_KEY_LEN + TENANT_SECRET_LEN]);
        let (column, secret) = both.split_at_mut(COLUMN_KEY_LEN);
        column.copy_from_slice(column_key);
        secret.copy_from_slice(tenant.bytes());
        Self(Secret::extract(suite, SALT, &both[..]))
    }
}

impl KeySource for OfTenant {
    fn key<const N: usize>(&self, purpose: Purpose) -> [u8; N] {
        self.0.expand(&[purpose.label()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CellFormat, ColumnCipher, DataKey, TenantTree};

    #[test]
    fn keys_of_few_tenants_are_kept() {
        let id = ColumnId {
            table: [1; 8],
            column: [2; 4],
        };
        let secrets = ColumnSecrets::new(Suite::Aes, &DataKey::from_bytes([3; 32]));
        let header = CellHeader {
            format: CellFormat::of_tenants(Suite::Aes),
            key_id: 1,
            column: id.column,
        };
        let mut sealer = TenantSealer::new(header, &id, &secrets);
        sealer.set_tenants(Arc::new(TenantTree::new([4; 16])));
        let tenant = |n: u64| TenantId(n.to_be_bytes());
        let favourite = sealer.keys(tenant(0)).unwrap();
        for n in 1..5000 {
            sealer.keys(tenant(n)).unwrap();
            // Who is asked for again and again stays.
            assert!(Arc::ptr_eq(&favourite, &sealer.keys(tenant(0)).unwrap()));
            assert!(sealer.recent.kept() <= KEPT_TENANTS);
        }
        let last = sealer.keys(tenant(4999)).unwrap();
        assert!(Arc::ptr_eq(&last, &sealer.keys(tenant(4999)).unwrap()));
        // Another cipher of the column opens all the same.
        let reader = ColumnCipher::new(header.format, 1, &DataKey::from_bytes([3; 32]), id, None)
            .with_tenants(Arc::new(TenantTree::new([4; 16])));
        let (mut cell, mut opened) = (Vec::new(), Vec::new());
        sealer.seal(tenant(1), b"value", &mut cell).unwrap();
        reader.open(&cell, &mut opened).unwrap();
        assert_eq!(opened, b"value");
    }
}
