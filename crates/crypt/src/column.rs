//! Everything that one column can do under one data key.

use std::{fmt, ops::Deref, sync::Arc};

use crate::{
    CellFormat, CellHeader, ColumnId, DataKey, KeyId, OpenError, SealError, Suite, TenantId,
    TenantSecrets,
    block_prf::BlockPrf,
    cell::CellSealer,
    derive::{ColumnSecrets, Purpose},
    gram::{self, GRAM_LEN, GramToken},
    mac::{MAC_LEN, MacKey},
    order_key::OrderPrf,
    seal_count::SealCount,
    tenant_cell::TenantSealer,
};

/// Length of an equality token in bytes.
pub const EQUALITY_TOKEN_LEN: usize = MAC_LEN;

/// Equal exactly when the inputs are equal, within a column or a join group.
///
/// The server sees which rows share a token and how often each occurs. Where few different values
/// exist, or some are known to be frequent, that can be as good as the values.
///
/// It is a keyed pseudo-random function cut to 128 bits: two different inputs meet with a
/// probability of n^2 / 2^129 among n different values, 2^-65 for four billion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EqualityToken(pub [u8; EQUALITY_TOKEN_LEN]);

impl Deref for EqualityToken {
    type Target = [u8; EQUALITY_TOKEN_LEN];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl AsRef<[u8]> for EqualityToken {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<EqualityToken> for [u8; EQUALITY_TOKEN_LEN] {
    fn from(token: EqualityToken) -> Self {
        token.0
    }
}

/// Seals, opens and indexes the values of one column under one data key.
///
/// Building one derives four keys and costs microseconds; build it once and share it. It can be
/// used by many threads at once. Keys are wiped when it is dropped.
pub struct ColumnCipher {
    id: ColumnId,
    /// Nothing is sealed under its data key any more.
    opens_only: bool,
    format: CellFormat,
    key_id: KeyId,
    count: SealCount,
    cells: Cells,
    tokens: MacKey,
    order: OrderPrf,
    grams: BlockPrf,
}

/// The two kinds of cells.
enum Cells {
    Plain(CellSealer),
    OfTenants(Box<TenantSealer>),
}

impl ColumnCipher {
    /// Derives the column's keys from `data_key`, which carries the number `key_id`.
    ///
    /// With `join`, equality tokens and order keys are those of the group of that name instead of
    /// the column's own. Sealed cells and gram tokens are always the column's own.
    ///
    /// New cells have this format; those of every version of its suite open, but for cells of
    /// tenants, which open where the format is theirs and nowhere else. A column that exists has
    /// the format of its metadata: another is refused by the table's CHECK constraint.
    pub fn new(
        format: impl Into<CellFormat>,
        key_id: KeyId,
        data_key: &DataKey,
        id: ColumnId,
        join: Option<&str>,
    ) -> Self {
        let format = format.into();
        let suite = format.suite();
        let secrets = ColumnSecrets::new(suite, data_key);
        let header = CellHeader {
            format,
            key_id,
            column: id.column,
        };
        let cells = match format.is_of_tenants() {
            false => Cells::Plain(CellSealer::new(header, &id, &secrets)),
            true => Cells::OfTenants(Box::new(TenantSealer::new(header, &id, &secrets))),
        };
        let tokens = MacKey::new(
            suite,
            &mut match join {
                None => secrets.column_key(Purpose::Equality, &id),
                Some(group) => secrets.group_key(Purpose::Equality, group),
            },
        );
        let order = match suite {
            Suite::Aes => OrderPrf::aes(&mut match join {
                None => secrets.column_key(Purpose::Order, &id),
                Some(group) => secrets.group_key(Purpose::Order, group),
            }),
            Suite::Sm => OrderPrf::sm(&mut match join {
                None => secrets.column_key(Purpose::Order, &id),
                Some(group) => secrets.group_key(Purpose::Order, group),
            }),
        };
        let grams = match suite {
            Suite::Aes => BlockPrf::aes(&mut secrets.column_key(Purpose::Gram, &id)),
            Suite::Sm => BlockPrf::sm(&mut secrets.column_key(Purpose::Gram, &id)),
        };
        Self {
            id,
            opens_only: false,
            format,
            key_id,
            count: SealCount::default(),
            cells,
            tokens,
            order,
            grams,
        }
    }

    /// The suite of this cipher.
    pub fn suite(&self) -> Suite {
        self.format.suite()
    }

    /// The format of new cells.
    pub fn format(&self) -> CellFormat {
        self.format
    }

    /// The data key of this cipher.
    pub fn key_id(&self) -> KeyId {
        self.key_id
    }

    /// The column of this cipher.
    pub fn column_id(&self) -> ColumnId {
        self.id
    }

    /// How much of [`Suite::seal_bound`] was used, for whoever makes the same cipher again.
    pub fn sealed_units(&self) -> u64 {
        self.count.units()
    }

    /// Lets the count begin at `units`: an earlier cipher for the same column has used them.
    #[must_use]
    pub fn having_sealed(mut self, units: u64) -> Self {
        self.count.count_from(units);
        self
    }

    /// The same cipher, which seals nothing: [`SealError::OpensOnly`] is all that
    /// [`ColumnCipher::seal`] gives. It still makes tokens, which conditions are asked with; a row
    /// never has tokens without a sealed cell.
    #[must_use]
    pub fn opening_only(mut self) -> Self {
        self.opens_only = true;
        self
    }

    /// The same cipher with the secrets of tenants. One whose cells are not those of tenants stays
    /// as it is.
    #[must_use]
    pub fn with_tenants(mut self, secrets: Arc<dyn TenantSecrets>) -> Self {
        if let Cells::OfTenants(sealer) = &mut self.cells {
            sealer.set_tenants(secrets);
        }
        self
    }

    /// Appends the sealed cell of `payload` to `out`: [`CellFormat::sealed_len`] bytes, different
    /// every time (unless the kernel's random bytes repeat, and the payload with them).
    ///
    /// On error `out` is unchanged.
    pub fn seal(&self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), SealError> {
        if self.opens_only {
            return Err(SealError::OpensOnly);
        }
        let Cells::Plain(sealer) = &self.cells else {
            return Err(SealError::NeedsTenant);
        };
        self.count.charge(self.format.suite(), payload.len())?;
        sealer.seal(payload, out)
    }

    /// The same for a value of this tenant, where the column's cells are those of tenants
    /// ([`CellFormat::of_tenants`]).
    ///
    /// The cell names the tenant, so that it opens by [`ColumnCipher::open`], until the tenant is
    /// forgotten.
    pub fn seal_for(
        &self,
        tenant: TenantId,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        if self.opens_only {
            return Err(SealError::OpensOnly);
        }
        let Cells::OfTenants(sealer) = &self.cells else {
            return Err(SealError::TakesNoTenant);
        };
        self.count.charge(self.format.suite(), payload.len())?;
        sealer.seal(tenant, payload, out)
    }

    /// Appends the payload of `cell` to `out`, once everything about it is verified. On error `out`
    /// is unchanged.
    ///
    /// [`OpenError::OtherKey`] means that the cell is to be opened with the cipher for that key id.
    pub fn open(&self, cell: &[u8], out: &mut Vec<u8>) -> Result<(), OpenError> {
        match &self.cells {
            Cells::Plain(sealer) => sealer.open(cell, out),
            Cells::OfTenants(sealer) => sealer.open(cell, out),
        }
    }

    /// The token of a value, given as what the column's collation compares: its weight string.
    pub fn equality_token(&self, weight: &[u8]) -> EqualityToken {
        EqualityToken(self.tokens.mac(weight))
    }

    /// Appends the order key of a value to `out`: [`order_key_len`](crate::order_key_len) bytes.
    ///
    /// The value is given as bytes whose `memcmp` order is the order of values, always of the same
    /// width for a column, or else shorter sorts before longer as `memcmp` does. See
    /// [`order_key`](crate::order_key) for what it shows.
    pub fn order_key(&self, digits_source: &[u8], out: &mut Vec<u8>) {
        self.order.key(digits_source, out);
    }

    /// The token of a gram of a text. See [`gram`](crate::gram) for what a set of them shows.
    pub fn gram_token(&self, gram: &[u8; GRAM_LEN]) -> GramToken {
        gram::token(&self.grams, gram)
    }

    /// Appends the bytes that `key` was made of to `out`. On error `out` is unchanged.
    ///
    /// A key that was not made by this cipher is refused with [`OpenError::Tampered`], except with
    /// a probability of 2^-12 for every digit. That is **no authentication**: adding one to the
    /// last cell usually gives the key of the next value. Where the server must not be able to
    /// choose the answer, open the sealed cell of the row.
    pub fn open_order_key(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), OpenError> {
        self.order.open(key, out)
    }

    #[cfg(test)]
    pub(crate) fn plain(&self) -> &CellSealer {
        match &self.cells {
            Cells::Plain(sealer) => sealer,
            Cells::OfTenants(_) => panic!("cells of tenants"),
        }
    }

    #[cfg(test)]
    pub(crate) fn of_tenants(&self) -> &TenantSealer {
        match &self.cells {
            Cells::Plain(_) => panic!("no cells of tenants"),
            Cells::OfTenants(sealer) => sealer,
        }
    }

    #[cfg(test)]
    pub(crate) fn leave_units(&self, units: u64) {
        self.count.leave_units(self.format.suite(), units);
    }
}

impl fmt::Debug for ColumnCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColumnCipher")
            .field("suite", &self.suite())
            .field("key_id", &self.key_id())
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_count_together() {
        for suite in [Suite::Aes, Suite::Sm] {
            let id = ColumnId {
                table: [1; 8],
                column: [2; 4],
            };
            let format = CellFormat::of_tenants(suite);
            let cipher = ColumnCipher::new(format, 1, &DataKey::from_bytes([3; 32]), id, None)
                .with_tenants(Arc::new(crate::TenantTree::new([4; 16])));
            cipher.leave_units(2);
            let mut out = Vec::new();
            let mut seal = |tenant| cipher.seal_for(TenantId([tenant; 8]), b"value", &mut out);
            assert_eq!(seal(1), Ok(()));
            assert_eq!(seal(2), Ok(()));
            assert_eq!(seal(1), Err(SealError::Exhausted));
            assert_eq!(seal(3), Err(SealError::Exhausted));
            assert_eq!(out.len(), 2 * format.sealed_len(5));
        }
    }

    #[test]
    fn sealing_stops_at_the_bound() {
        for suite in [Suite::Aes, Suite::Sm] {
            let id = ColumnId {
                table: [1; 8],
                column: [2; 4],
            };
            let cipher = ColumnCipher::new(suite, 1, &DataKey::from_bytes([3; 32]), id, None);
            let mut out = Vec::new();
            cipher.leave_units(2);
            assert_eq!(cipher.seal(b"one", &mut out), Ok(()));
            assert_eq!(cipher.seal(b"two", &mut out), Ok(()));
            let len = out.len();
            for _ in 0..3 {
                assert_eq!(cipher.seal(b"three", &mut out), Err(SealError::Exhausted));
            }
            assert_eq!(out.len(), len);
            // A payload of 64 KiB is two units.
            cipher.leave_units(2);
            assert_eq!(cipher.seal(&[0; 1 << 16], &mut out), Ok(()));
            cipher.leave_units(1);
            assert_eq!(
                cipher.seal(&[0; 1 << 16], &mut out),
                Err(SealError::Exhausted)
            );
            // An heir of a cipher goes on counting.
            let bound = suite.seal_bound();
            let heir = ColumnCipher::new(suite, 1, &DataKey::from_bytes([3; 32]), id, None);
            let heir = heir.having_sealed(bound - 1);
            let mut one = Vec::new();
            assert_eq!(heir.seal(b"one", &mut one), Ok(()));
            assert_eq!(heir.sealed_units(), bound);
            assert_eq!(heir.seal(b"two", &mut one), Err(SealError::Exhausted));
            // Reading goes on.
            let mut opened = Vec::new();
            cipher.open(&out[..len / 2], &mut opened).unwrap();
            assert_eq!(opened, b"one");
        }
    }
}
