//! What cells of tenants promise: each opens until its own tenant is forgotten, in its own column
//! of its own table, and in no other form.

use std::{collections::BTreeSet, sync::Arc};

use onionskin_crypt::{
    CellFormat, ColumnCipher, ColumnId, DataKey, OpenError, SealError, Suite, TenantFileKey,
    TenantId, TenantNames, TenantTree, cell_header, cell_tenant,
    dangerous_bytes::data_key_from_bytes,
};
use proptest::prelude::*;

const SUITES: [Suite; 2] = [Suite::Aes, Suite::Sm];
const ID: ColumnId = ColumnId {
    table: *b"table001",
    column: *b"col1",
};
const ROOT: [u8; 16] = [9; 16];

fn key(byte: u8) -> DataKey {
    data_key_from_bytes([byte; 32])
}

fn tenant(n: u64) -> TenantId {
    TenantNames::new(&key(7)).id("customers", n.to_string().as_bytes())
}

fn bare(suite: Suite, id: ColumnId) -> ColumnCipher {
    ColumnCipher::new(CellFormat::of_tenants(suite), 258, &key(1), id, None)
}

/// Without these tenants.
fn cipher_of(suite: Suite, id: ColumnId, forgotten: &[u64]) -> ColumnCipher {
    let mut tree = TenantTree::new(ROOT);
    for &n in forgotten {
        tree.forget(tenant(n));
    }
    bare(suite, id).with_tenants(Arc::new(tree))
}

fn cipher(suite: Suite) -> ColumnCipher {
    cipher_of(suite, ID, &[])
}

fn sealed(cipher: &ColumnCipher, n: u64, payload: &[u8]) -> Vec<u8> {
    let mut cell = Vec::new();
    cipher.seal_for(tenant(n), payload, &mut cell).unwrap();
    cell
}

fn open(cipher: &ColumnCipher, cell: &[u8]) -> Result<Vec<u8>, OpenError> {
    let mut out = b"before".to_vec();
    let result = cipher.open(cell, &mut out);
    assert!(out.starts_with(b"before"));
    if result.is_err() {
        assert_eq!(out, b"before", "a refused cell must leave no bytes behind");
    }
    result.map(|()| out.split_off(6))
}

#[test]
fn a_cell_names_its_tenant() {
    for suite in SUITES {
        let (cipher, format) = (cipher(suite), CellFormat::of_tenants(suite));
        for payload in [&b""[..], b"alice", &[7; 1000]] {
            let cell = sealed(&cipher, 1, payload);
            assert_eq!(cell.len(), payload.len() + 43);
            assert_eq!(cell.len(), format.sealed_len(payload.len()));
            assert_eq!(cell[0], 0x30 | suite.id());
            assert_eq!(cell_header(&cell).unwrap().format, format);
            assert_eq!(cell_tenant(&cell), Some(tenant(1)));
            assert_eq!(cell[7..15], tenant(1).0);
            assert_eq!(open(&cipher, &cell).unwrap(), payload);
            assert_ne!(cell, sealed(&cipher, 1, payload));
            for len in 0..43 {
                let short = cell.get(..len).unwrap();
                assert_eq!(open(&cipher, short), Err(OpenError::TooShort));
                assert_eq!(cell_tenant(short), None);
            }
        }
    }
    let mut plain = Vec::new();
    let column = ColumnCipher::new(Suite::Aes, 1, &key(1), ID, None);
    column.seal(b"a longer payload", &mut plain).unwrap();
    assert_eq!(cell_tenant(&plain), None);
}

#[test]
fn every_changed_bit_is_noticed() {
    for suite in SUITES {
        let cipher = cipher(suite);
        let cell = sealed(&cipher, 1, b"some payload over one block");
        for bit in 0..cell.len() * 8 {
            let mut bad = cell.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&cipher, &bad).is_err(), "{suite} bit {bit}");
        }
        // The tenant of another cell is no better than any other bytes.
        let mut foreign = cell.clone();
        foreign[7..15].copy_from_slice(&tenant(2).0);
        assert_eq!(open(&cipher, &foreign), Err(OpenError::Tampered));
        assert!(open(&cipher, &[&cell[..], &[0]].concat()).is_err());
    }
}

#[test]
fn a_moved_cell_does_not_open() {
    for suite in SUITES {
        let cell = sealed(&cipher(suite), 1, b"alice");
        let (other_table, other_column) = (
            ColumnId {
                table: *b"table002",
                ..ID
            },
            ColumnId {
                column: *b"col2",
                ..ID
            },
        );
        let there = cipher_of(suite, other_table, &[]);
        assert_eq!(open(&there, &cell), Err(OpenError::Tampered));
        let there = cipher_of(suite, other_column, &[]);
        assert_eq!(open(&there, &cell), Err(OpenError::OtherColumn));
        let mut disguised = cell.clone();
        disguised[3..7].copy_from_slice(b"col2");
        assert_eq!(open(&there, &disguised), Err(OpenError::Tampered));
        // Nor under the secrets of another file.
        let stranger = bare(suite, ID).with_tenants(Arc::new(TenantTree::new([8; 16])));
        assert_eq!(open(&stranger, &cell), Err(OpenError::Tampered));
        // Nor under the tenant's secret and another data key.
        let secrets = Arc::new(TenantTree::new(ROOT));
        let format = CellFormat::of_tenants(suite);
        let thief = ColumnCipher::new(format, 258, &key(2), ID, None).with_tenants(secrets);
        assert_eq!(open(&thief, &cell), Err(OpenError::Tampered));
    }
}

#[test]
fn the_two_forms_of_cells_are_kept_apart() {
    for suite in SUITES {
        let of_tenants = cipher(suite);
        let plain = ColumnCipher::new(suite, 258, &key(1), ID, None)
            .with_tenants(Arc::new(TenantTree::new(ROOT)));
        let mut out = Vec::new();
        assert_eq!(
            of_tenants.seal(b"alice", &mut out),
            Err(SealError::NeedsTenant)
        );
        assert_eq!(
            plain.seal_for(tenant(1), b"alice", &mut out),
            Err(SealError::TakesNoTenant)
        );
        assert!(out.is_empty());
        plain.seal(b"a payload of some length", &mut out).unwrap();
        let version = CellFormat::newest(suite).version();
        assert_eq!(
            open(&of_tenants, &out),
            Err(OpenError::OtherVersion(version))
        );
        let cell = sealed(&of_tenants, 1, b"alice");
        assert_eq!(open(&plain, &cell), Err(OpenError::OtherVersion(3)));
        // With the first byte changed, in both directions.
        let mut disguised = cell.clone();
        disguised[0] = CellFormat::newest(suite).first_byte();
        assert_eq!(open(&plain, &disguised), Err(OpenError::Tampered));
        out[0] = CellFormat::of_tenants(suite).first_byte();
        assert_eq!(open(&of_tenants, &out), Err(OpenError::Tampered));
    }
}

#[test]
fn without_secrets_nothing_is_sealed_and_nothing_opens() {
    for suite in SUITES {
        let (cell, mut out) = (sealed(&cipher(suite), 1, b"alice"), Vec::new());
        let none = bare(suite, ID);
        let refused = none.seal_for(tenant(1), b"alice", &mut out);
        assert_eq!(refused, Err(SealError::NoTenants));
        assert_eq!(open(&none, &cell), Err(OpenError::NoTenants));
        let gone = cipher_of(suite, ID, &[1]);
        let refused = gone.seal_for(tenant(1), b"alice", &mut out);
        assert_eq!(refused, Err(SealError::Forgotten));
        assert_eq!(open(&gone, &cell), Err(OpenError::Forgotten));
        let resting = cipher(suite).opening_only();
        let refused = resting.seal_for(tenant(1), b"alice", &mut out);
        assert_eq!(refused, Err(SealError::OpensOnly));
        assert_eq!(open(&resting, &cell).unwrap(), b"alice");
        assert!(out.is_empty());
    }
}

#[test]
fn tokens_do_not_depend_on_tenants() {
    for suite in SUITES {
        let plain = ColumnCipher::new(suite, 258, &key(1), ID, None);
        for cipher in [bare(suite, ID), cipher(suite)] {
            assert_eq!(cipher.equality_token(b"a"), plain.equality_token(b"a"));
        }
    }
}

#[test]
fn the_file_of_tenants_opens_under_its_key_and_header_only() {
    let (key_of_file, other) = (TenantFileKey::new(&key(1)), TenantFileKey::new(&key(2)));
    let mut content = b"nodes".to_vec();
    let sealed = key_of_file.seal(b"header", &mut content).unwrap();
    assert_eq!(content, [0; 5]);
    let opened = key_of_file.open(b"header", &sealed).unwrap();
    assert_eq!(&opened[..], b"nodes");
    assert!(other.open(b"header", &sealed).is_err());
    assert!(key_of_file.open(b"Header", &sealed).is_err());
    for bit in 0..sealed.len() * 8 {
        let mut bad = sealed.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(key_of_file.open(b"header", &bad).is_err());
    }
    for len in 0..sealed.len() {
        assert!(key_of_file.open(b"header", &sealed[..len]).is_err());
    }
}

#[test]
fn many_threads_share_a_cipher() {
    for suite in SUITES {
        let (shared, alone) = (cipher(suite), cipher(suite));
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let (shared, alone) = (&shared, &alone);
                scope.spawn(move || {
                    // More tenants than are kept, and some that all threads use.
                    for n in (0..600).map(|n| if n % 3 == 0 { n } else { n + 1000 * thread }) {
                        let cell = sealed(shared, n, &n.to_be_bytes());
                        assert_eq!(open(shared, &cell).unwrap(), n.to_be_bytes());
                        if n % 50 == 0 {
                            assert_eq!(open(alone, &cell).unwrap(), n.to_be_bytes());
                        }
                    }
                });
            }
        });
        assert_eq!(shared.sealed_units(), 2400);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn opening_anything_never_panics(
        body in proptest::collection::vec(any::<u8>(), 0..120),
        kept in 0..27usize,
    ) {
        for suite in SUITES {
            let cipher = cipher_of(suite, ID, &[1]);
            let mut cell = sealed(&cipher, 2, b"");
            cell.truncate(kept);
            cell.extend_from_slice(&body);
            prop_assert!(open(&cipher, &cell).is_err());
            let _ = (cell_tenant(&cell), open(&cipher, &body));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn forgetting_makes_its_own_cells_unreadable_and_no_others(
        forgotten in proptest::collection::btree_set(0..30u64, 0..12),
        shuffled in any::<u64>(),
    ) {
        for suite in SUITES {
            let writer = cipher(suite);
            let cells: Vec<_> = (0..30).map(|n| sealed(&writer, n, &n.to_be_bytes())).collect();
            let mut order: Vec<u64> = forgotten.iter().copied().collect();
            order.sort_by_key(|n| n.wrapping_mul(shuffled | 1));
            let reader = cipher_of(suite, ID, &order);
            for (n, cell) in (0..30u64).zip(&cells) {
                let expected = match forgotten.contains(&n) {
                    true => Err(OpenError::Forgotten),
                    false => Ok(n.to_be_bytes().to_vec()),
                };
                prop_assert_eq!(open(&reader, cell), expected);
            }
        }
    }

    #[test]
    fn no_two_names_have_one_id(names in proptest::collection::btree_set("[ab]{0,3}/[ab]{0,3}", 0..40)) {
        let keyed = TenantNames::new(&key(7));
        let ids: BTreeSet<TenantId> = names
            .iter()
            .filter_map(|name| name.split_once('/'))
            .map(|(space, value)| keyed.id(space, value.as_bytes()))
            .collect();
        prop_assert_eq!(ids.len(), names.len());
        let other = TenantNames::new(&key(8));
        prop_assert_ne!(keyed.id("a", b"b"), other.id("a", b"b"));
    }
}
