//! Every kernel against an independent implementation (RustCrypto's), on random input of every
//! length around the borders of blocks, groups of blocks and chunks.

#[path = "support/mod.rs"]
mod support;

use aes_gcm::{AesGcm, aead::AeadInOut};
use cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit, consts::U12};
use onionskin_sm4::{Sm4, Sm4Gcm};
use support::{Random, borders, kernels};

type Block = [u8; 16];

struct Reference(sm4::Sm4);

impl Reference {
    fn new(key: &Block) -> Self {
        Reference(sm4::Sm4::new(&Array::from(*key)))
    }

    fn encrypt(&self, block: Block) -> Block {
        let mut block = Array::from(block);
        self.0.encrypt_block(&mut block);
        block.into()
    }

    fn decrypt(&self, block: Block) -> Block {
        let mut block = Array::from(block);
        self.0.decrypt_block(&mut block);
        block.into()
    }
}

fn xor(a: Block, b: Block) -> Block {
    std::array::from_fn(|i| a[i] ^ b[i])
}

fn random_blocks(random: &mut Random, count: usize) -> Vec<Block> {
    (0..count).map(|_| random.array()).collect()
}

#[test]
fn blocks() {
    let mut random = Random::new("blocks");
    for kernel in kernels() {
        for count in borders() {
            let key = random.array();
            let (cipher, reference) = (Sm4::with_kernel(&key, kernel), Reference::new(&key));
            let plain = random_blocks(&mut random, count);
            let mut data = plain.clone();
            cipher.encrypt_blocks(&mut data);
            for (i, (ours, plain)) in data.iter().zip(&plain).enumerate() {
                assert_eq!(*ours, reference.encrypt(*plain), "{kernel}, {i} of {count}");
            }
            cipher.decrypt_blocks(&mut data);
            assert_eq!(data, plain, "{kernel}, {count} blocks");
            cipher.decrypt_blocks(&mut data);
            for (i, (ours, plain)) in data.iter().zip(&plain).enumerate() {
                assert_eq!(*ours, reference.decrypt(*plain), "{kernel}, {i} of {count}");
            }
        }
    }
}

#[test]
fn cbc() {
    let mut random = Random::new("cbc");
    for kernel in kernels() {
        for count in borders() {
            let key = random.array();
            let (cipher, reference) = (Sm4::with_kernel(&key, kernel), Reference::new(&key));
            let iv = random.array();
            let plain = random_blocks(&mut random, count);
            let mut previous = iv;
            let expected: Vec<Block> = plain
                .iter()
                .map(|block| {
                    previous = reference.encrypt(xor(*block, previous));
                    previous
                })
                .collect();

            let (mut data, mut chain) = (plain.clone(), iv);
            cipher.encrypt_cbc(&mut chain, &mut data);
            assert_eq!(
                (&data, chain),
                (&expected, previous),
                "{kernel}, {count} blocks"
            );
            let mut chain = iv;
            cipher.decrypt_cbc(&mut chain, &mut data);
            assert_eq!(
                (&data, chain),
                (&plain, previous),
                "{kernel}, {count} blocks"
            );

            // In two pieces
            let (mut data, mut chain) = (expected, iv);
            let (first, second) = data.split_at_mut(count / 3);
            cipher.decrypt_cbc(&mut chain, first);
            cipher.decrypt_cbc(&mut chain, second);
            assert_eq!(
                (&data, chain),
                (&plain, previous),
                "{kernel}, {count} blocks"
            );
        }
    }
}

fn reference_ctr(reference: &Reference, counter: Block, data: &mut [u8]) {
    let mut counter = u128::from_be_bytes(counter);
    for chunk in data.chunks_mut(16) {
        let stream = reference.encrypt(counter.to_be_bytes());
        chunk
            .iter_mut()
            .zip(stream)
            .for_each(|(byte, stream)| *byte ^= stream);
        counter = counter.wrapping_add(1);
    }
}

#[test]
fn ctr_of_every_length() {
    let mut random = Random::new("ctr_of_every_length");
    for kernel in kernels() {
        let lengths = (0..=1300).chain(borders().into_iter().map(|blocks| blocks * 16 + 5));
        for len in lengths {
            let key = random.array();
            let (cipher, reference) = (Sm4::with_kernel(&key, kernel), Reference::new(&key));
            let counter = random.array();
            let mut data = random.bytes(len);
            let mut expected = data.clone();
            reference_ctr(&reference, counter, &mut expected);
            cipher.apply_ctr(&counter, &mut data);
            assert_eq!(data, expected, "{kernel}, {len} bytes");
        }
    }
}

/// The counter is one number of 128 bits, though kernels count in 32.
#[test]
fn ctr_carries() {
    let mut random = Random::new("ctr_carries");
    for kernel in kernels() {
        let key = random.array();
        let (cipher, reference) = (Sm4::with_kernel(&key, kernel), Reference::new(&key));
        for ones in [32, 40, 64, 96, 127, 128] {
            let high = u128::MAX.checked_shl(ones).unwrap_or(0) & 0x0123_4567_89ab_cdef << 64;
            for before in [0, 1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 200] {
                let ones = u128::MAX >> (128 - ones);
                let counter = (high | ones).wrapping_sub(before).to_be_bytes();
                let mut data = random.bytes(16 * 150 + 3);
                let mut expected = data.clone();
                reference_ctr(&reference, counter, &mut expected);
                cipher.apply_ctr(&counter, &mut data);
                assert_eq!(data, expected, "{kernel}, {ones:x} less {before}");
            }
        }
    }
}

#[test]
fn gcm_of_every_length() {
    let mut random = Random::new("gcm_of_every_length");
    for kernel in kernels() {
        let messages = (0..=1300).chain(borders().into_iter().map(|blocks| blocks * 16));
        let associated = (0..=70).cycle();
        for (len, aad_len) in messages.zip(associated) {
            compare_gcm(&mut random, kernel, len, aad_len);
        }
        for aad_len in (0..=600).chain([1000, 1024, 1025, 4096, 70_000]) {
            compare_gcm(&mut random, kernel, 33, aad_len);
        }
        for len in [16 * 1024 - 1, 16 * 1024, 16 * 1024 + 1, 100_000, 1 << 20] {
            compare_gcm(&mut random, kernel, len, 20);
        }
    }
}

fn compare_gcm(random: &mut Random, kernel: onionskin_sm4::Kernel, len: usize, aad_len: usize) {
    let (key, nonce): ([u8; 16], [u8; 12]) = (random.array(), random.array());
    let (aad, plain) = (random.bytes(aad_len), random.bytes(len));
    let reference = AesGcm::<sm4::Sm4, U12>::new(&Array::from(key));
    let mut expected = plain.clone();
    let expected_tag: Block = reference
        .encrypt_inout_detached(&Array::from(nonce), &aad, expected.as_mut_slice().into())
        .unwrap()
        .into();

    let gcm = Sm4Gcm::with_kernel(&key, kernel);
    let mut data = plain.clone();
    let tag = gcm.seal_in_place(&nonce, &aad, &mut data);
    assert!(
        data == expected,
        "{kernel}, {len} bytes, {aad_len} associated"
    );
    assert_eq!(
        tag, expected_tag,
        "{kernel}, {len} bytes, {aad_len} associated"
    );
    gcm.open_in_place(&nonce, &aad, &mut data, &tag).unwrap();
    assert!(data == plain, "{kernel}, {len} bytes, {aad_len} associated");
}

/// No kernel reads or writes outside of what it was given, at any alignment.
#[test]
fn neighbours_stay_as_they_are() {
    let mut random = Random::new("neighbours_stay_as_they_are");
    for kernel in kernels() {
        let key = random.array();
        let (cipher, gcm) = (
            Sm4::with_kernel(&key, kernel),
            Sm4Gcm::with_kernel(&key, kernel),
        );
        for from in 0..70 {
            for len in [0, 1, 15, 16, 17, 100, 128, 255, 256, 257, 1023, 1024, 1111] {
                let before = random.bytes(from + len + 70);
                let mut data = before.clone();
                cipher.apply_ctr(&[9; 16], &mut data[from..from + len]);
                gcm.seal_in_place(&[1; 12], b"", &mut data[from..from + len]);
                let whole = len / 16 * 16;
                cipher.encrypt_blocks(data[from..from + whole].as_chunks_mut().0);
                cipher.decrypt_cbc(&mut [3; 16], data[from..from + whole].as_chunks_mut().0);
                assert_eq!(data[..from], before[..from], "{kernel}, {len} at {from}");
                assert_eq!(
                    data[from + len..],
                    before[from + len..],
                    "{kernel}, {len} at {from}"
                );
            }
        }
    }
}

/// Long inputs are taken up to the start of a cache line first; the result must not show it.
#[test]
fn alignment_does_not_matter() {
    let mut random = Random::new("alignment_does_not_matter");
    let (key, counter, nonce): ([u8; 16], Block, [u8; 12]) =
        (random.array(), random.array(), random.array());
    let reference = Reference::new(&key);
    let plain = random.bytes(4096 + 16 * 7);
    let mut ctr = plain.clone();
    reference_ctr(&reference, counter, &mut ctr);
    let mut cbc = plain.clone();
    let mut previous = counter;
    for block in cbc.as_chunks_mut::<16>().0 {
        let sealed = *block;
        *block = xor(reference.decrypt(sealed), previous);
        previous = sealed;
    }
    let mut gcm = plain.clone();
    let tag: Block = AesGcm::<sm4::Sm4, U12>::new(&Array::from(key))
        .encrypt_inout_detached(&Array::from(nonce), b"", gcm.as_mut_slice().into())
        .unwrap()
        .into();

    for kernel in kernels() {
        let cipher = Sm4::with_kernel(&key, kernel);
        let sealer = Sm4Gcm::with_kernel(&key, kernel);
        let mut memory = vec![0; plain.len() + 200];
        let line = memory.as_ptr().align_offset(64);
        for offset in 0..=64 {
            let data = &mut memory[line + offset..][..plain.len()];
            data.copy_from_slice(&plain);
            cipher.apply_ctr(&counter, data);
            assert!(data == ctr, "{kernel}, CTR, offset {offset}");
            data.copy_from_slice(&plain);
            cipher.decrypt_cbc(&mut counter.clone(), data.as_chunks_mut().0);
            assert!(data == cbc, "{kernel}, CBC, offset {offset}");
            data.copy_from_slice(&plain);
            assert_eq!(
                sealer.seal_in_place(&nonce, b"", data),
                tag,
                "{kernel}, offset {offset}"
            );
            assert!(data == gcm, "{kernel}, GCM, offset {offset}");
            sealer.open_in_place(&nonce, b"", data, &tag).unwrap();
            assert!(data == plain, "{kernel}, GCM, offset {offset}");
        }
    }
}
