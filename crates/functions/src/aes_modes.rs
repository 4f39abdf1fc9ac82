//! AES and its modes of operation, in place.
//!
//! Source: FIPS 197 (the `aes` crate: AES instructions, or bit slices where there are none) and
//! NIST SP 800-38A for the modes. CFB-1 takes the bits of a byte from the highest to the lowest.
//! The padding is PKCS #7 (RFC 5652, 6.3).

use aes::{Aes128, Aes192, Aes256};
use cipher::{
    Array, Block, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit, consts::U16,
    typenum::Unsigned as _,
};
use subtle::{Choice, ConstantTimeEq, ConstantTimeLess};
use zeroize::{Zeroize, Zeroizing};

use crate::{
    cipher_name::{Cipher, KeyBits, Mode},
    derive::AesKey,
};

/// Length of an AES block and of an initialization vector, in bytes.
pub(crate) const BLOCK_LEN: usize = U16::USIZE;
/// An initialization vector.
pub(crate) type Iv = [u8; BLOCK_LEN];

/// Encrypts a text of any length. ECB does not look at the vector.
pub(crate) fn encrypt(mode: Mode, key: &AesKey, iv: &Iv, text: &[u8]) -> Vec<u8> {
    let mut buffer = Vec::with_capacity(text.len() + BLOCK_LEN);
    buffer.extend_from_slice(text);
    if mode.is_padded() {
        let padding = BLOCK_LEN - text.len() % BLOCK_LEN;
        // At most one block, so it fits into a byte.
        buffer.resize(text.len() + padding, padding as u8);
    }
    transform(mode, Direction::Encrypt, key, iv, &mut buffer);
    buffer
}

/// Decrypts a text; `None` where its length or its padding is wrong.
pub(crate) fn decrypt(mode: Mode, key: &AesKey, iv: &Iv, text: &[u8]) -> Option<Vec<u8>> {
    if mode.is_padded() && (text.is_empty() || !text.len().is_multiple_of(BLOCK_LEN)) {
        return None;
    }
    let mut buffer = text.to_vec();
    transform(mode, Direction::Decrypt, key, iv, &mut buffer);
    if mode.is_padded() {
        match text_len(&buffer) {
            Some(len) => {
                buffer[len..].zeroize();
                buffer.truncate(len);
            }
            None => {
                buffer.zeroize();
                return None;
            }
        }
    }
    Some(buffer)
}

/// Length of a padded text without its padding. Takes the same time for every padding that is
/// right, and for every one that is wrong.
fn text_len(padded: &[u8]) -> Option<usize> {
    let block = padded.last_chunk::<BLOCK_LEN>()?;
    let padding = block[BLOCK_LEN - 1];
    let mut right: Choice = padding.ct_ne(&0) & padding.ct_lt(&(BLOCK_LEN as u8 + 1));
    for (from_end, byte) in (0..BLOCK_LEN as u8).zip(block.iter().rev()) {
        right &= !from_end.ct_lt(&padding) | byte.ct_eq(&padding);
    }
    bool::from(right).then(|| padded.len() - usize::from(padding))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Encrypt,
    Decrypt,
}

fn transform(mode: Mode, direction: Direction, key: &AesKey, iv: &Iv, buffer: &mut [u8]) {
    match key.bits() {
        KeyBits::Bits128 => with_aes::<Aes128>(mode, direction, key, iv, buffer),
        KeyBits::Bits192 => with_aes::<Aes192>(mode, direction, key, iv, buffer),
        KeyBits::Bits256 => with_aes::<Aes256>(mode, direction, key, iv, buffer),
    }
}

fn with_aes<C>(mode: Mode, direction: Direction, key: &AesKey, iv: &Iv, buffer: &mut [u8])
where
    C: KeyInit + BlockCipherEncrypt<BlockSize = U16> + BlockCipherDecrypt<BlockSize = U16>,
{
    let aes = C::new_from_slice(key.bytes()).expect("the key has the cipher's length");
    match (mode, direction) {
        (Mode::Ecb, Direction::Encrypt) => aes.encrypt_blocks(whole_blocks(buffer)),
        (Mode::Ecb, Direction::Decrypt) => aes.decrypt_blocks(whole_blocks(buffer)),
        (Mode::Cbc, Direction::Encrypt) => cbc_encrypt(&aes, iv, whole_blocks(buffer)),
        (Mode::Cbc, Direction::Decrypt) => cbc_decrypt(&aes, iv, whole_blocks(buffer)),
        (Mode::Cfb1, direction) => cfb1(&aes, direction, iv, buffer),
        (Mode::Cfb8, direction) => cfb8(&aes, direction, iv, buffer),
        (Mode::Cfb128, direction) => cfb128(&aes, direction, iv, buffer),
        (Mode::Ofb, _) => ofb(&aes, iv, buffer),
        (Mode::Ctr, _) => ctr(&aes, iv, buffer),
    }
}

/// The buffer as blocks. Only padded modes ask for it, so nothing is left over.
fn whole_blocks(buffer: &mut [u8]) -> &mut [Array<u8, U16>] {
    let (blocks, rest) = Array::slice_as_chunks_mut(buffer);
    debug_assert!(rest.is_empty());
    blocks
}

fn xor(into: &mut [u8], with: &[u8]) {
    for (byte, with) in into.iter_mut().zip(with) {
        *byte ^= with;
    }
}

fn cbc_encrypt<C: BlockCipherEncrypt<BlockSize = U16>>(aes: &C, iv: &Iv, blocks: &mut [Block<C>]) {
    let mut before = Array(*iv);
    for block in blocks {
        xor(block, &before);
        aes.encrypt_block(block);
        before = *block;
    }
}

/// Blocks that are decrypted at once: enough to fill the pipeline of the AES instructions.
const AT_ONCE: usize = 16;

fn cbc_decrypt<C: BlockCipherDecrypt<BlockSize = U16>>(aes: &C, iv: &Iv, blocks: &mut [Block<C>]) {
    let mut before = Array(*iv);
    for some in blocks.chunks_mut(AT_ONCE) {
        let mut sealed = [Block::<C>::default(); AT_ONCE];
        let sealed = &mut sealed[..some.len()];
        sealed.copy_from_slice(some);
        aes.decrypt_blocks(some);
        for (block, sealed) in some.iter_mut().zip(sealed) {
            xor(block, &before);
            before = *sealed;
        }
    }
}

fn cfb1<C: BlockCipherEncrypt<BlockSize = U16>>(
    aes: &C,
    direction: Direction,
    iv: &Iv,
    buffer: &mut [u8],
) {
    // A shift register of 128 bits; the newest bit is the lowest.
    let mut register = u128::from_be_bytes(*iv);
    for byte in buffer {
        let mut out = 0;
        for bit in (0..8).rev() {
            let stream = Zeroizing::new(encrypted(aes, &register.to_be_bytes()));
            let given = *byte >> bit & 1;
            let made = given ^ stream[0] >> 7;
            let sealed = match direction {
                Direction::Encrypt => made,
                Direction::Decrypt => given,
            };
            register = register << 1 | u128::from(sealed);
            out = out << 1 | made;
        }
        *byte = out;
    }
}

fn cfb8<C: BlockCipherEncrypt<BlockSize = U16>>(
    aes: &C,
    direction: Direction,
    iv: &Iv,
    buffer: &mut [u8],
) {
    let mut register = u128::from_be_bytes(*iv);
    for byte in buffer {
        let stream = Zeroizing::new(encrypted(aes, &register.to_be_bytes()));
        let given = *byte;
        *byte ^= stream[0];
        let sealed = match direction {
            Direction::Encrypt => *byte,
            Direction::Decrypt => given,
        };
        register = register << 8 | u128::from(sealed);
    }
}

fn cfb128<C: BlockCipherEncrypt<BlockSize = U16>>(
    aes: &C,
    direction: Direction,
    iv: &Iv,
    buffer: &mut [u8],
) {
    let mut register = *iv;
    for piece in buffer.chunks_mut(BLOCK_LEN) {
        let stream = Zeroizing::new(encrypted(aes, &register));
        if direction == Direction::Decrypt {
            register[..piece.len()].copy_from_slice(piece);
        }
        xor(piece, &*stream);
        if direction == Direction::Encrypt {
            register[..piece.len()].copy_from_slice(piece);
        }
    }
}

fn ofb<C: BlockCipherEncrypt<BlockSize = U16>>(aes: &C, iv: &Iv, buffer: &mut [u8]) {
    let mut stream = Zeroizing::new(*iv);
    for piece in buffer.chunks_mut(BLOCK_LEN) {
        *stream = encrypted(aes, &stream);
        xor(piece, &*stream);
    }
}

fn ctr<C: BlockCipherEncrypt<BlockSize = U16>>(aes: &C, iv: &Iv, buffer: &mut [u8]) {
    let mut counter = u128::from_be_bytes(*iv);
    for piece in buffer.chunks_mut(BLOCK_LEN) {
        let stream = Zeroizing::new(encrypted(aes, &counter.to_be_bytes()));
        xor(piece, &*stream);
        counter = counter.wrapping_add(1);
    }
}

fn encrypted<C: BlockCipherEncrypt<BlockSize = U16>>(aes: &C, block: &Iv) -> Iv {
    let mut block = Array(*block);
    aes.encrypt_block(&mut block);
    block.0
}

/// The first 16 bytes of an argument, as the servers take them.
pub(crate) fn iv_of(argument: &[u8]) -> Option<Iv> {
    argument.first_chunk().copied()
}

/// A cipher with its key: what both servers' functions use.
pub(crate) struct KeyedCipher {
    mode: Mode,
    key: AesKey,
    iv: Iv,
}

impl KeyedCipher {
    /// A cipher with a key of its length.
    pub(crate) fn new(cipher: Cipher, key: AesKey, iv: Iv) -> Self {
        debug_assert_eq!(cipher.bits, key.bits());
        KeyedCipher {
            mode: cipher.mode,
            key,
            iv,
        }
    }

    pub(crate) fn encrypt(&self, text: &[u8]) -> Vec<u8> {
        encrypt(self.mode, &self.key, &self.iv, text)
    }

    pub(crate) fn decrypt(&self, text: &[u8]) -> Option<Vec<u8>> {
        decrypt(self.mode, &self.key, &self.iv, text)
    }
}

#[cfg(test)]
#[path = "aes_modes_tests.rs"]
mod tests;
