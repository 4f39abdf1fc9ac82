//! Sealed cells and order keys.

use std::sync::LazyLock;

use onionskin_crypt::{ColumnCipher, ColumnId, DataKey, Suite};
use rand::SeedableRng;
use rand::rngs::StdRng;

const PAYLOADS: [&[u8]; 4] = [b"", b"x", b"a payload of some length", &[0; 300]];

/// Ciphers of both suites, and genuine cells and order keys made by them.
static CIPHERS: LazyLock<Vec<(ColumnCipher, Vec<Vec<u8>>)>> = LazyLock::new(|| {
    let key = DataKey::generate(&mut StdRng::seed_from_u64(1));
    [Suite::Aes, Suite::Sm]
        .map(|suite| {
            let cipher = ColumnCipher::new(
                suite,
                1,
                &key,
                ColumnId {
                    table: [7; 8],
                    column: [3; 4],
                },
                None,
            );
            let sealed = PAYLOADS.map(|payload| {
                let mut cell = Vec::new();
                cipher.seal(payload, &mut cell).expect("the bound is far");
                cell
            });
            (cipher, sealed.into())
        })
        .into()
});

/// The first byte chooses the suite; the next one, if it is small, a genuine cell, to which the
/// rest is added byte by byte (exclusive or). Only what a cipher has sealed opens, and to nothing
/// else than was sealed.
pub fn run(input: &[u8]) {
    let Some((&[suite, choice], rest)) = input.split_first_chunk::<2>() else {
        return;
    };
    let (cipher, genuine) = &CIPHERS[usize::from(suite % 2)];
    let mut cell = rest.to_vec();
    if let Some(original) = genuine.get(usize::from(choice)) {
        cell.clone_from(original);
        cell.iter_mut()
            .zip(rest)
            .for_each(|(byte, mask)| *byte ^= mask);
        cell.extend(rest.get(original.len()..).unwrap_or_default());
    }
    let _ = onionskin_crypt::cell_header(&cell);
    let mut out = b"before".to_vec();
    match cipher.open(&cell, &mut out) {
        Ok(()) => {
            // Cells of an earlier run may have come in through the corpus; the key is the same.
            let sealed = PAYLOADS
                .iter()
                .any(|payload| out == [b"before", *payload].concat());
            assert!(sealed, "a cell that nobody sealed opens");
        }
        Err(error) => {
            assert_eq!(
                out, b"before",
                "nothing is left behind by a cell that does not open"
            );
            let _ = error.to_string();
        }
    }
    let _ = cipher.open_order_key(rest, &mut out);
    let mut order_key = Vec::new();
    cipher.order_key(rest, &mut order_key);
    let mut opened = Vec::new();
    cipher
        .open_order_key(&order_key, &mut opened)
        .expect("an order key opens");
    assert_eq!(opened, rest);
}

/// Genuine cells, and where to change them.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (suite, (_, genuine)) in (0u8..).zip(CIPHERS.iter()) {
        for (choice, cell) in (0u8..).zip(genuine) {
            seeds.push(vec![suite, choice]);
            seeds.push([&[suite, 0xff], &cell[..]].concat());
        }
    }
    seeds
}
