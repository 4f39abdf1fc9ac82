//! What a column's cells, tokens and keys promise to the rest of the program.

use onionskin_crypt::{
    CELL_OVERHEAD, CellFormat, CellHeader, ColumnCipher, ColumnId, DataKey, OpenError, Suite,
    cell_header, dangerous_bytes::data_key_from_bytes, order_key_len, sealed_len,
};
use proptest::prelude::*;

const SUITES: [Suite; 2] = [Suite::Aes, Suite::Sm];
const ID: ColumnId = ColumnId {
    table: *b"table001",
    column: *b"col1",
};

fn key(byte: u8) -> DataKey {
    data_key_from_bytes([byte; 32])
}

fn cipher(suite: Suite) -> ColumnCipher {
    ColumnCipher::new(suite, 258, &key(1), ID, None)
}

fn sealed(cipher: &ColumnCipher, payload: &[u8]) -> Vec<u8> {
    let mut cell = Vec::new();
    cipher.seal(payload, &mut cell).unwrap();
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

fn order_key(cipher: &ColumnCipher, value: &[u8]) -> Vec<u8> {
    let mut key = Vec::new();
    cipher.order_key(value, &mut key);
    key
}

#[test]
fn header_names_suite_key_and_column() {
    for suite in SUITES {
        let cell = sealed(&cipher(suite), b"");
        assert_eq!(cell.len(), CELL_OVERHEAD);
        assert_eq!(
            cell_header(&cell),
            Ok(CellHeader {
                format: CellFormat::newest(suite),
                key_id: 258,
                column: *b"col1"
            })
        );
    }
}

#[test]
fn cells_append_and_differ_every_time() {
    for suite in SUITES {
        let cipher = cipher(suite);
        let mut out = b"before".to_vec();
        cipher.seal(b"alice", &mut out).unwrap();
        cipher.seal(b"alice", &mut out).unwrap();
        let len = sealed_len(5);
        assert_eq!(out.len(), 6 + 2 * len);
        let (first, second) = (&out[6..6 + len], &out[6 + len..]);
        // Nonce, ciphertext and tag are all new.
        assert_ne!(first[7..19], second[7..19]);
        assert_ne!(first[19..24], second[19..24]);
        assert_ne!(first[24..], second[24..]);
        assert_eq!(open(&cipher, first).unwrap(), b"alice");
        assert_eq!(open(&cipher, second).unwrap(), b"alice");
    }
}

#[test]
fn a_moved_cell_does_not_open() {
    for suite in SUITES {
        let cell = sealed(&cipher(suite), b"alice");
        let data_key = key(1);
        let elsewhere = |id| ColumnCipher::new(suite, 258, &data_key, id, None);
        let other_table = elsewhere(ColumnId {
            table: *b"table002",
            ..ID
        });
        let other_column = elsewhere(ColumnId {
            column: *b"col2",
            ..ID
        });
        assert_eq!(open(&other_table, &cell), Err(OpenError::Tampered));
        assert_eq!(open(&other_column, &cell), Err(OpenError::OtherColumn));
        // With the header rewritten to name the column it was moved to.
        let mut disguised = cell.clone();
        disguised[3..7].copy_from_slice(b"col2");
        assert_eq!(open(&other_column, &disguised), Err(OpenError::Tampered));
    }
}

#[test]
fn the_cell_says_which_key_opens_it() {
    for suite in SUITES {
        let cell = sealed(&cipher(suite), b"alice");
        let rotated = ColumnCipher::new(suite, 259, &key(2), ID, None);
        assert_eq!(open(&rotated, &cell), Err(OpenError::OtherKey(258)));
        let impostor = ColumnCipher::new(suite, 258, &key(2), ID, None);
        assert_eq!(open(&impostor, &cell), Err(OpenError::Tampered));
    }
    let cell = sealed(&cipher(Suite::Aes), b"alice");
    assert_eq!(
        open(&cipher(Suite::Sm), &cell),
        Err(OpenError::OtherSuite(Suite::Aes))
    );
}

#[test]
fn malformed_headers_are_told_apart() {
    let cipher = cipher(Suite::Aes);
    let cell = sealed(&cipher, b"");
    for len in 0..CELL_OVERHEAD {
        assert_eq!(open(&cipher, &cell[..len]), Err(OpenError::TooShort));
        assert_eq!(cell_header(&cell[..len]), Err(OpenError::TooShort));
    }
    let mut future = cell.clone();
    future[0] = 0x21;
    assert_eq!(open(&cipher, &future), Err(OpenError::UnknownVersion(2)));
    let mut stranger = cell.clone();
    stranger[0] = 0x13;
    assert_eq!(open(&cipher, &stranger), Err(OpenError::UnknownSuite(3)));
    let mut none = cell;
    none[0] = 0;
    assert_eq!(open(&cipher, &none), Err(OpenError::UnknownVersion(0)));
}

#[test]
fn every_flipped_bit_and_every_lost_byte_is_detected() {
    for suite in SUITES {
        let cipher = cipher(suite);
        let cell = sealed(&cipher, b"some payload over one block");
        for bit in 0..cell.len() * 8 {
            let mut bad = cell.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&cipher, &bad).is_err(), "{suite} bit {bit}");
        }
        for len in 0..cell.len() {
            assert!(open(&cipher, &cell[..len]).is_err());
        }
        let mut longer = cell;
        longer.push(0);
        assert_eq!(open(&cipher, &longer), Err(OpenError::Tampered));
    }
}

#[test]
fn join_groups_share_tokens_and_order_keys_but_not_cells() {
    let other = ColumnId {
        table: *b"table002",
        column: *b"col2",
    };
    for suite in SUITES {
        let data_key = key(1);
        let new = |id, join| ColumnCipher::new(suite, 1, &data_key, id, join);
        let (a, b) = (new(ID, Some("customer")), new(other, Some("customer")));
        assert_eq!(a.equality_token(b"alice"), b.equality_token(b"alice"));
        assert_eq!(order_key(&a, b"alice"), order_key(&b, b"alice"));
        assert_eq!(open(&b, &sealed(&a, b"alice")), Err(OpenError::OtherColumn));
        for stranger in [new(ID, None), new(other, None), new(ID, Some("customers"))] {
            assert_ne!(
                a.equality_token(b"alice"),
                stranger.equality_token(b"alice")
            );
            assert_ne!(order_key(&a, b"alice"), order_key(&stranger, b"alice"));
        }
        // Joining changes nothing about sealing: the column's cells stay readable.
        let alone = new(ID, None);
        assert_eq!(open(&alone, &sealed(&a, b"alice")).unwrap(), b"alice");
    }
}

#[test]
fn tokens_are_equal_exactly_for_equal_weights() {
    for suite in SUITES {
        let cipher = cipher(suite);
        assert_eq!(cipher.equality_token(b"a"), cipher.equality_token(b"a"));
        assert_ne!(cipher.equality_token(b"a"), cipher.equality_token(b"a\0"));
        assert_ne!(cipher.equality_token(b""), cipher.equality_token(b"\0"));
        let rotated = ColumnCipher::new(suite, 258, &key(2), ID, None);
        assert_ne!(cipher.equality_token(b"a"), rotated.equality_token(b"a"));
    }
}

#[test]
fn ciphers_are_shared_between_threads_and_show_no_keys() {
    fn shareable<T: Send + Sync>() {}
    shareable::<ColumnCipher>();
    let shown = format!("{:?} {:?}", cipher(Suite::Aes), key(1));
    assert_eq!(
        shown,
        "ColumnCipher { suite: Aes, key_id: 258, id: ColumnId { table: [116, 97, 98, 108, 101, 48, 48, 49], \
         column: [99, 111, 108, 49] }, .. } DataKey { .. }"
    );
}

proptest! {
    #[test]
    fn what_is_sealed_opens(payload in proptest::collection::vec(any::<u8>(), 0..600)) {
        for suite in SUITES {
            let cipher = cipher(suite);
            let cell = sealed(&cipher, &payload);
            prop_assert_eq!(cell.len(), sealed_len(payload.len()));
            prop_assert_eq!(open(&cipher, &cell).unwrap(), &payload[..]);
        }
    }

    #[test]
    fn opening_anything_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        for suite in SUITES {
            prop_assert!(open(&cipher(suite), &bytes).is_err());
        }
    }

    #[test]
    fn forged_bodies_behind_a_true_header_are_refused(
        body in proptest::collection::vec(any::<u8>(), 28..80),
    ) {
        for suite in SUITES {
            let cipher = cipher(suite);
            let mut cell = sealed(&cipher, b"");
            cell.truncate(7);
            cell.extend_from_slice(&body);
            prop_assert_eq!(open(&cipher, &cell), Err(OpenError::Tampered));
        }
    }

    #[test]
    fn integers_keep_their_order(a in any::<i64>(), b in any::<i64>()) {
        // The encoding that a signed column uses: big-endian with the sign bit turned over.
        let bytes = |v: i64| (v ^ i64::MIN).to_be_bytes();
        for suite in SUITES {
            let cipher = cipher(suite);
            let (ka, kb) = (order_key(&cipher, &bytes(a)), order_key(&cipher, &bytes(b)));
            prop_assert_eq!(ka.len(), order_key_len(8));
            prop_assert_eq!(ka.cmp(&kb), a.cmp(&b));
            let mut opened = Vec::new();
            cipher.open_order_key(&ka, &mut opened).unwrap();
            prop_assert_eq!(&opened[..], &bytes(a)[..]);
        }
    }
}
