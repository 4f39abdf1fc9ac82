//! The kernel for every processor: bit slices, without tables, branches or addresses that depend on
//! secrets.
//!
//! A word of the cipher's state, for sixteen blocks at once, is eight registers of 64 bits: the
//! *planes*. Plane `j` has bit `j` of each of the word's four bytes; byte `p` (0 is the lowest) of
//! block `b` is at bit 16·p + b. So the S-box is a circuit of logic gates between planes
//! ([`tower`]), a rotation by whole bytes rotates every plane by a multiple of sixteen bits, and a
//! rotation by two bits renames planes.
//!
//! Wider planes for compilers to turn into vector instructions were tried: with SSE2, four times 64
//! bits took twice as long for a byte.

mod ghash;
mod tower;

use std::array::from_fn;

use crate::kernel::Ops;
use crate::schedule::{self, RoundKeys};
use crate::{BLOCK_LEN, KEY_LEN};

pub(crate) static OPS: Ops = Ops {
    name: "portable",
    available: || true,
    expand,
    encrypt: crypt::<false>,
    decrypt: crypt::<true>,
    cbc_decrypt,
    ctr,
    ctr_behind,
    ghash_powers: ghash::powers,
    ghash: ghash::update,
};

type Block = [u8; BLOCK_LEN];

/// Blocks that go through the rounds at a time.
const BATCH: usize = 16;

/// One word of the state of sixteen blocks.
type Planes = [u64; 8];

/// Every byte's bit moves to the byte `bytes` above it.
#[inline(always)]
fn rotate_bytes(plane: u64, bytes: u32) -> u64 {
    plane.rotate_left(16 * bytes)
}

/// The bytes of `word`, each followed by a zero byte.
#[inline(always)]
fn spread(word: u32) -> u64 {
    let x = u64::from(word);
    let x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    (x | x << 8) & 0x00ff_00ff_00ff_00ff
}

/// The even bytes of `x`: what [`spread`] spread.
#[inline(always)]
fn gather(x: u64) -> u32 {
    let x = x & 0x00ff_00ff_00ff_00ff;
    let x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    (x | x >> 16) as u32
}

/// In every byte position, transposes the 8×8 bits that eight registers hold there. Its own
/// inverse.
#[inline(always)]
fn transpose(rows: &mut [u64; 8]) {
    for (distance, mask) in [
        (1, 0x5555_5555_5555_5555),
        (2, 0x3333_3333_3333_3333),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
    ] {
        for i in (0..8).filter(|i| i & distance == 0) {
            let swap = (rows[i] >> distance ^ rows[i + distance]) & mask;
            rows[i] ^= swap << distance;
            rows[i + distance] ^= swap;
        }
    }
}

/// The planes of word `word` of all blocks.
#[inline(always)]
fn load(blocks: &[Block; BATCH], word: usize) -> Planes {
    let at = |b: usize| {
        let bytes = &blocks[b][4 * word..][..4];
        spread(u32::from_be_bytes(bytes.try_into().expect("four bytes")))
    };
    let mut rows = from_fn(|i| at(i) | at(i + 8) << 8);
    transpose(&mut rows);
    rows
}

#[inline(always)]
fn store(mut planes: Planes, blocks: &mut [Block; BATCH], word: usize) {
    transpose(&mut planes);
    for (i, row) in planes.into_iter().enumerate() {
        blocks[i][4 * word..][..4].copy_from_slice(&gather(row).to_be_bytes());
        blocks[i + 8][4 * word..][..4].copy_from_slice(&gather(row >> 8).to_be_bytes());
    }
}

/// The round function: `x0 ^ L(S(x1 ^ x2 ^ x3 ^ key))`.
#[inline(always)]
fn round(x0: &mut Planes, x1: &Planes, x2: &Planes, x3: &Planes, key: u32) {
    let key = spread(key);
    let t = tower::sbox(&from_fn(|j| {
        let mask = (key >> j & 0x0001_0001_0001_0001) * 0xffff;
        x1[j] ^ x2[j] ^ x3[j] ^ mask
    }));
    // L(t) = t ^ (t <<< 24) ^ ((t ^ (t <<< 8) ^ (t <<< 16)) <<< 2)
    let u: Planes = from_fn(|j| t[j] ^ rotate_bytes(t[j], 1) ^ rotate_bytes(t[j], 2));
    for j in 0..8 {
        let rotated = match j {
            0 | 1 => rotate_bytes(u[j + 6], 1),
            _ => u[j - 2],
        };
        x0[j] ^= t[j] ^ rotate_bytes(t[j], 3) ^ rotated;
    }
}

fn crypt_batch<const DECRYPT: bool>(round_keys: &RoundKeys, blocks: &mut [Block; BATCH]) {
    let [mut a, mut b, mut c, mut d]: [Planes; 4] = from_fn(|word| load(blocks, word));
    for i in (0..32).step_by(4) {
        let key = |n: usize| round_keys[if DECRYPT { 31 - i - n } else { i + n }];
        round(&mut a, &b, &c, &d, key(0));
        round(&mut b, &c, &d, &a, key(1));
        round(&mut c, &d, &a, &b, key(2));
        round(&mut d, &a, &b, &c, key(3));
    }
    for (word, planes) in [d, c, b, a].into_iter().enumerate() {
        store(planes, blocks, word);
    }
}

/// Encrypts or decrypts every block by itself.
fn crypt<const DECRYPT: bool>(round_keys: &RoundKeys, blocks: &mut [Block]) {
    let (batches, rest) = blocks.as_chunks_mut::<BATCH>();
    for blocks in batches {
        crypt_batch::<DECRYPT>(round_keys, blocks);
    }
    if !rest.is_empty() {
        let mut padded = [[0; BLOCK_LEN]; BATCH];
        padded[..rest.len()].copy_from_slice(rest);
        crypt_batch::<DECRYPT>(round_keys, &mut padded);
        rest.copy_from_slice(&padded[..rest.len()]);
    }
}

fn expand(key: &[u8; KEY_LEN]) -> RoundKeys {
    schedule::expand(key, sub_word, |round_key| round_key)
}

/// The S-box on each byte: plane `j` is bit `j` of all four.
fn sub_word(word: u32) -> u32 {
    let planes = from_fn(|bit| word >> bit & 0x0101_0101);
    let substituted = tower::sbox(&planes);
    (0..8).fold(0, |word, bit| {
        word | (substituted[bit] & 0x0101_0101) << bit
    })
}

fn cbc_decrypt(round_keys: &RoundKeys, iv: &mut Block, blocks: &mut [Block]) {
    for chunk in blocks.chunks_mut(BATCH) {
        let mut previous = [[0; BLOCK_LEN]; BATCH];
        let previous = &mut previous[..chunk.len()];
        previous.copy_from_slice(chunk);
        previous.rotate_right(1);
        std::mem::swap(&mut previous[0], iv);
        crypt::<true>(round_keys, chunk);
        for (block, previous) in chunk.iter_mut().zip(previous) {
            xor(block, previous);
        }
    }
}

/// Key stream for a batch, or less.
type Stream = [Block; BATCH];

/// The first `count` blocks of key stream that begins with this counter block; `low` are its last
/// 32 bits.
fn key_stream(round_keys: &RoundKeys, head: [u8; 12], low: u32, count: usize) -> Stream {
    let mut stream = [[0; BLOCK_LEN]; BATCH];
    let mut counter = low;
    for block in &mut stream[..count] {
        *block = crate::ctr::join(head, counter);
        counter = counter.wrapping_add(1);
    }
    crypt::<false>(round_keys, &mut stream[..count]);
    stream
}

fn ctr(round_keys: &RoundKeys, counter: &Block, data: &mut [u8]) {
    let (head, mut low) = crate::ctr::split(counter);
    for chunk in data.chunks_mut(BATCH * BLOCK_LEN) {
        let blocks = chunk.len().div_ceil(BLOCK_LEN);
        xor(
            chunk,
            key_stream(round_keys, head, low, blocks).as_flattened(),
        );
        low = low.wrapping_add(blocks as u32);
    }
}

fn ctr_behind(round_keys: &RoundKeys, j0: &Block, data: &mut [u8]) -> Block {
    let (head, low) = crate::ctr::split(j0);
    let blocks = (1 + data.len().div_ceil(BLOCK_LEN)).min(BATCH);
    let stream = key_stream(round_keys, head, low, blocks);
    let (now, later) = data.split_at_mut(data.len().min((blocks - 1) * BLOCK_LEN));
    xor(now, stream[1..].as_flattened());
    let counter = crate::ctr::join(head, low.wrapping_add(blocks as u32));
    ctr(round_keys, &counter, later);
    stream[0]
}

fn xor(data: &mut [u8], other: &[u8]) {
    for (byte, other) in data.iter_mut().zip(other) {
        *byte ^= other;
    }
}
