//! The formats, byte by byte: fixed keys and nonces, and what must come out, from `tests/vectors`.
//!
//! `tests/vectors/generate.py` is an independent implementation that wrote these files. They change
//! only with the format version.

use std::{collections::BTreeMap, sync::Arc};

use aws_lc_rs::digest::{SHA256, digest};

use crate::{
    CellFormat, ColumnCipher, ColumnId, DataKey, MetadataKey, Suite, TenantId, TenantNames,
    TenantTree, cell_tenant,
};

/// Bytes of hexadecimal text; white space between digits is ignored.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).expect("a hexadecimal digit") as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

/// One block of `name = hex` lines.
type Record<'a> = BTreeMap<&'a str, Vec<u8>>;

fn records(text: &str) -> Vec<Record<'_>> {
    text.split("\n\n")
        .map(|block| {
            block
                .lines()
                .filter(|line| !line.starts_with('#'))
                .filter_map(|line| line.split_once('='))
                .map(|(name, value)| (name.trim(), hex(value)))
                .collect::<Record<'_>>()
        })
        .filter(|record| !record.is_empty())
        .collect()
}

fn array<const N: usize>(record: &Record<'_>, name: &str) -> [u8; N] {
    record[name].clone().try_into().unwrap()
}

fn check(suite: Suite, text: &str) {
    let mut checked = [0; 4];
    for record in records(text) {
        let data_key = DataKey::from_bytes(array(&record, "data_key"));
        let id = ColumnId {
            table: array(&record, "table"),
            column: array(&record, "column"),
        };
        let join = record
            .get("join")
            .map(|name| String::from_utf8(name.clone()).unwrap());
        let key_id = u16::from_be_bytes(array(&record, "key_id"));
        let first = CellFormat::from_numbers(suite.id(), 1).unwrap();
        let cipher = ColumnCipher::new(first, key_id, &data_key, id, join.as_deref());
        let mut out = Vec::new();
        if let Some(cell) = record.get("cell") {
            let (nonce, payload) = (array(&record, "nonce"), &record["payload"]);
            let sealer = cipher.plain();
            sealer.seal_with_nonce(&nonce, payload, &mut out).unwrap();
            assert_eq!(&out, cell);
            out.clear();
            cipher.open(cell, &mut out).unwrap();
            assert_eq!(out, record["payload"]);
            // The cells of older programs open in a column of today's.
            let newest = ColumnCipher::new(suite, key_id, &data_key, id, join.as_deref());
            out.clear();
            newest.open(cell, &mut out).unwrap();
            assert_eq!(out, record["payload"]);
            checked[0] += 1;
        }
        if let Some(token) = record.get("token") {
            assert_eq!(&cipher.equality_token(&record["weight"])[..], &token[..]);
            checked[1] += 1;
        }
        if let Some(key) = record.get("order_key") {
            out.clear();
            cipher.order_key(&record["value"], &mut out);
            assert_eq!(&out, key);
            out.clear();
            cipher.open_order_key(key, &mut out).unwrap();
            assert_eq!(out, record["value"]);
            checked[2] += 1;
        }
        if let Some(token) = record.get("gram_token") {
            assert_eq!(
                cipher.gram_token(&array(&record, "gram")).word()[..],
                token[..]
            );
            checked[3] += 1;
        }
    }
    assert!(checked.iter().all(|&n| n >= 4), "{checked:?}");
}

#[test]
fn suite_aes() {
    check(Suite::Aes, include_str!("../tests/vectors/aes.txt"));
}

#[test]
fn suite_sm() {
    check(Suite::Sm, include_str!("../tests/vectors/sm.txt"));
}

#[test]
fn synthetic_nonces() {
    let records = records(include_str!("../tests/vectors/sm_synthetic.txt"));
    assert_eq!(records.len(), 12);
    for record in records {
        let data_key = DataKey::from_bytes(array(&record, "data_key"));
        let id = ColumnId {
            table: array(&record, "table"),
            column: array(&record, "column"),
        };
        let key_id = u16::from_be_bytes(array(&record, "key_id"));
        let [version] = array(&record, "version");
        let format = CellFormat::from_numbers(Suite::Sm.id(), version).unwrap();
        let cipher = ColumnCipher::new(format, key_id, &data_key, id, None);
        let payload = &record["payload"];
        let fresh = array(&record, "fresh");
        let nonce = cipher.plain().synthetic_nonce(&fresh, payload);
        assert_eq!(nonce[..], record["nonce"]);
        let mut cell = Vec::new();
        let sealer = cipher.plain();
        sealer.seal_with_nonce(&nonce, payload, &mut cell).unwrap();
        assert_eq!(cell, record["cell"]);
        let mut out = Vec::new();
        for format in [1, 2].map(|version| CellFormat::from_numbers(Suite::Sm.id(), version)) {
            let reader = ColumnCipher::new(format.unwrap(), key_id, &data_key, id, None);
            out.clear();
            reader.open(&cell, &mut out).unwrap();
            assert_eq!(&out, payload);
        }
        // The version is authenticated.
        let mut disguised = cell.clone();
        disguised[0] ^= 0x30;
        assert!(cipher.open(&disguised, &mut out).is_err());
    }
}

#[test]
fn metadata_tags() {
    let records = records(include_str!("../tests/vectors/metadata.txt"));
    assert_eq!(records.len(), 3);
    for record in records {
        let key = MetadataKey::new(&DataKey::from_bytes(array(&record, "data_key")));
        assert_eq!(key.tag(&record["bytes"]), array(&record, "tag"));
    }
}

#[test]
fn tenants() {
    let mut checked = [0; 4];
    for record in records(include_str!("../tests/vectors/tenants.txt")) {
        let tenant = TenantId(array(&record, "tenant"));
        if let Some(space) = record.get("space") {
            let names = TenantNames::new(&DataKey::from_bytes(array(&record, "metadata")));
            let space = std::str::from_utf8(space).unwrap();
            assert_eq!(names.id(space, &record["value"]), tenant);
            checked[0] += 1;
            continue;
        }
        let mut tree = TenantTree::new(array(&record, "root"));
        if let Some(forgotten) = record.get("forgotten") {
            assert_eq!(tree.secret(tenant).unwrap().bytes()[..], record["secret"]);
            for id in forgotten.as_chunks().0 {
                assert!(tree.forget(TenantId(*id)));
            }
            assert!(tree.secret(tenant).is_none());
            let nodes = digest(&SHA256, &tree.secrets());
            assert_eq!(nodes.as_ref(), record["nodes"]);
            checked[1] += 1;
            continue;
        }
        let [suite] = array(&record, "suite");
        let suite = Suite::from_id(suite).unwrap();
        let id = ColumnId {
            table: array(&record, "table"),
            column: array(&record, "column"),
        };
        let key_id = u16::from_be_bytes(array(&record, "key_id"));
        let data_key = DataKey::from_bytes(array(&record, "data_key"));
        let format = CellFormat::of_tenants(suite);
        let cipher = ColumnCipher::new(format, key_id, &data_key, id, None);
        let cipher = cipher.with_tenants(Arc::new(tree));
        let (sealer, payload) = (cipher.of_tenants(), &record["payload"]);
        let nonce = match suite {
            Suite::Aes => array(&record, "nonce"),
            Suite::Sm => sealer.synthetic_nonce(tenant, &array(&record, "fresh"), payload),
        };
        assert_eq!(nonce[..], record["nonce"]);
        let (mut cell, mut out) = (Vec::new(), Vec::new());
        sealer
            .seal_with_nonce(tenant, &nonce, payload, &mut cell)
            .unwrap();
        assert_eq!(cell, record["cell"]);
        assert_eq!(cell_tenant(&cell), Some(tenant));
        cipher.open(&cell, &mut out).unwrap();
        assert_eq!(&out, payload);
        checked[1 + usize::from(suite.id())] += 1;
    }
    assert_eq!(checked, [4, 7, 6, 6]);
}
