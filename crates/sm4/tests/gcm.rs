//! What GCM must refuse, and the corners of its format, on every kernel.

#[path = "support/mod.rs"]
mod support;

use onionskin_sm4::{Sm4Gcm, TagMismatch};
use support::{Random, kernels};

/// Calls `change` for every single bit of `bytes` flipped.
fn each_flip(bytes: &[u8], mut change: impl FnMut(&[u8], usize)) {
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        change(&flipped, bit);
    }
}

#[test]
fn every_flipped_bit_is_refused() {
    let mut random = Random::new("every_flipped_bit_is_refused");
    for kernel in kernels() {
        let gcm = Sm4Gcm::with_kernel(&random.array(), kernel);
        let nonce: [u8; 12] = random.array();
        for (len, aad_len) in [
            (0, 0),
            (0, 13),
            (1, 0),
            (16, 16),
            (77, 33),
            (300, 2),
            (1100, 0),
        ] {
            let aad = random.bytes(aad_len);
            let mut sealed = random.bytes(len);
            let tag = gcm.seal_in_place(&nonce, &aad, &mut sealed);
            let refused = |nonce: &[u8], aad: &[u8], data: &[u8], tag: &[u8], what: &str| {
                let mut buf = data.to_vec();
                let (nonce, tag) = (nonce.try_into().unwrap(), tag.try_into().unwrap());
                let result = gcm.open_in_place(nonce, aad, &mut buf, tag);
                assert_eq!(result, Err(TagMismatch), "{kernel}, {what} of {len}");
                assert_eq!(buf, data, "{kernel}, {what} of {len}: the buffer changed");
            };
            each_flip(&nonce, |nonce, bit| {
                refused(nonce, &aad, &sealed, &tag, &format!("nonce bit {bit}"));
            });
            each_flip(&aad, |aad, bit| {
                refused(&nonce, aad, &sealed, &tag, &format!("aad bit {bit}"));
            });
            each_flip(&sealed, |data, bit| {
                refused(&nonce, &aad, data, &tag, &format!("ciphertext bit {bit}"));
            });
            each_flip(&tag, |tag, bit| {
                refused(&nonce, &aad, &sealed, tag, &format!("tag bit {bit}"));
            });
            let (zeros, ones, inverted) = ([0; 16], [0xff; 16], tag.map(|byte| !byte));
            for tag in [zeros, ones, inverted] {
                refused(&nonce, &aad, &sealed, &tag, "a made-up tag");
            }
            // Cut short and filled up again
            for kept in 0..16 {
                let mut cut = tag;
                cut[kept..].fill(!tag[15]);
                refused(&nonce, &aad, &sealed, &cut, "a cut tag");
            }
            gcm.open_in_place(&nonce, &aad, &mut sealed, &tag).unwrap();
        }
    }
}

#[test]
fn lengths_are_authenticated() {
    let mut random = Random::new("lengths_are_authenticated");
    for kernel in kernels() {
        let gcm = Sm4Gcm::with_kernel(&random.array(), kernel);
        let nonce = random.array();
        // A tail of zeros hashes like the padding; only the length block tells the difference.
        let aad = [1, 2, 3, 0, 0];
        let plain = random.bytes(40);
        let mut sealed = plain.clone();
        let tag = gcm.seal_in_place(&nonce, &aad, &mut sealed);
        let refused = |aad: &[u8], mut data: Vec<u8>| {
            assert!(
                gcm.open_in_place(&nonce, aad, &mut data, &tag).is_err(),
                "{kernel}"
            );
        };
        refused(&aad[..3], sealed.clone());
        refused(&[1, 2, 3, 0, 0, 0], sealed.clone());
        refused(&aad, sealed[..39].to_vec());
        refused(&aad, sealed[..0].to_vec());
        refused(&aad, [&sealed[..], &[0]].concat());
        // The border between both moved
        refused(&[&aad[..], &sealed[..1]].concat(), sealed[1..].to_vec());
        refused(&[], [&aad[..], &sealed[..]].concat());
        assert!(gcm.open_in_place(&nonce, &aad, &mut sealed, &tag).is_ok());
        assert_eq!(sealed, plain, "{kernel}");
    }
}

#[test]
fn empty_messages_are_authenticated() {
    let mut random = Random::new("empty_messages_are_authenticated");
    for kernel in kernels() {
        let gcm = Sm4Gcm::with_kernel(&random.array(), kernel);
        let nonce = random.array();
        let nothing = gcm.seal_in_place(&nonce, b"", &mut []);
        let header = gcm.seal_in_place(&nonce, b"a", &mut []);
        assert_ne!(nothing, header, "{kernel}");
        assert!(gcm.open_in_place(&nonce, b"", &mut [], &nothing).is_ok());
        assert!(gcm.open_in_place(&nonce, b"a", &mut [], &header).is_ok());
        assert!(gcm.open_in_place(&nonce, b"b", &mut [], &header).is_err());
        assert!(gcm.open_in_place(&nonce, b"a", &mut [], &nothing).is_err());
    }
}

/// What one kernel seals, every other one opens.
#[test]
fn kernels_agree() {
    let mut random = Random::new("kernels_agree");
    for sealing in kernels() {
        for opening in kernels() {
            for len in [0, 1, 128, 1000, 40_000] {
                let (key, nonce) = (random.array(), random.array());
                let plain = random.bytes(len);
                let mut data = plain.clone();
                let tag = Sm4Gcm::with_kernel(&key, sealing).seal_in_place(&nonce, b"x", &mut data);
                Sm4Gcm::with_kernel(&key, opening)
                    .open_in_place(&nonce, b"x", &mut data, &tag)
                    .unwrap_or_else(|_| panic!("{sealing} to {opening}, {len} bytes"));
                assert!(data == plain, "{sealing} to {opening}, {len} bytes");
            }
        }
    }
}
