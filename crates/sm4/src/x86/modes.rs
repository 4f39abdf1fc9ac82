//! The modes that kernels speed up, over any type of words.
//!
//! Nothing here is done in closures or by `map`: their code is not inlined by force, and what is
//! not inlined into an entry point of the kernel is compiled without its instructions.
//!
//! Every function here takes long inputs in chunks of `G` interleaved groups and what remains in as
//! few groups as hold it, at most `G` of them and at most four.

// Loops over an index are what unrolls into registers.
#![allow(clippy::needless_range_loop)]

use super::{Words, rounds};
use crate::BLOCK_LEN;
use crate::schedule::RoundKeys;

type Block = [u8; BLOCK_LEN];

/// Register `r` of group `g` of at least `BYTES · (4g + r)` and at most `len` bytes; zeros beyond.
///
/// # Safety
///
/// The processor has the instructions of `W`; `from` may be read for `len` bytes.
#[inline(always)]
unsafe fn load<W: Words, const PART: bool>(from: *const u8, len: usize, row: usize) -> W {
    let at = W::BYTES * row;
    // SAFETY: whole registers are read only where the caller has promised all of them, and parts up
    // to `len`
    unsafe {
        match PART {
            false => W::load(from.wrapping_add(at)),
            true => W::load_part(from.wrapping_add(at), len.saturating_sub(at).min(W::BYTES)),
        }
    }
}

/// The counterpart of [`load`].
///
/// # Safety
///
/// `to` may be written for `len` bytes, which are `BYTES · 4G` unless `PART`.
#[inline(always)]
unsafe fn store<W: Words, const PART: bool>(words: W, to: *mut u8, len: usize, row: usize) {
    let at = W::BYTES * row;
    // SAFETY: as in `load`
    unsafe {
        match PART {
            false => words.store(to.wrapping_add(at)),
            true => words.store_part(to.wrapping_add(at), len.saturating_sub(at).min(W::BYTES)),
        }
    }
}

/// The words of `G` groups of blocks from memory, in the rounds' form.
///
/// # Safety
///
/// As for [`load`].
#[inline(always)]
unsafe fn load_groups<W: Words, const G: usize, const PART: bool>(
    from: *const u8,
    len: usize,
) -> [[W; 4]; G] {
    // SAFETY: as promised by the caller
    unsafe {
        let mut groups = [[W::splat(0); 4]; G];
        for g in 0..G {
            for r in 0..4 {
                let bytes = load::<W, PART>(from, len, 4 * g + r);
                groups[g][r] = bytes.swap_bytes().enter();
            }
            groups[g] = W::transpose(groups[g]);
        }
        groups
    }
}

/// The registers of bytes that belong to words in the rounds' form.
#[inline(always)]
fn to_bytes<W: Words, const G: usize>(mut groups: [[W; 4]; G]) -> [[W; 4]; G] {
    for g in 0..G {
        groups[g] = W::transpose(groups[g]);
        for r in 0..4 {
            groups[g][r] = groups[g][r].leave().swap_bytes();
        }
    }
    groups
}

/// Encrypts or decrypts the blocks in `len` bytes.
///
/// # Safety
///
/// The processor has the instructions of `W`; `data` may be read and written for `len` bytes, which
/// is a multiple of sixteen, and the full `4G` registers unless `PART`.
#[inline(always)]
unsafe fn ecb_chunk<W: Words, const G: usize, const DECRYPT: bool, const PART: bool>(
    round_keys: &RoundKeys,
    data: *mut u8,
    len: usize,
) {
    // SAFETY: the caller has promised the memory and the instructions
    unsafe {
        let groups = load_groups::<W, G, PART>(data, len);
        let rows = to_bytes(rounds::crypt::<W, G, DECRYPT>(groups, round_keys));
        for row in 0..4 * G {
            store::<W, PART>(rows[row / 4][row % 4], data, len, row);
        }
    }
}

/// # Safety
///
/// The processor has the instructions of `W`.
#[inline(always)]
pub(super) unsafe fn ecb<W: Words, const G: usize, const DECRYPT: bool>(
    round_keys: &RoundKeys,
    blocks: &mut [Block],
) {
    let data = blocks.as_flattened_mut();
    let group = 4 * W::BYTES;
    let mut chunks = data.chunks_exact_mut(G * group);
    // SAFETY: the pointers come from slices of the lengths that go with them
    unsafe {
        for chunk in &mut chunks {
            ecb_chunk::<W, G, DECRYPT, false>(round_keys, chunk.as_mut_ptr(), chunk.len());
        }
        let rest = chunks.into_remainder();
        let (at, len) = (rest.as_mut_ptr(), rest.len());
        match len.div_ceil(group) {
            0 => {}
            1 => ecb_chunk::<W, 1, DECRYPT, true>(round_keys, at, len),
            2 => ecb_chunk::<W, 2, DECRYPT, true>(round_keys, at, len),
            3 => ecb_chunk::<W, 3, DECRYPT, true>(round_keys, at, len),
            _ => ecb_chunk::<W, 4, DECRYPT, true>(round_keys, at, len),
        }
    }
}

/// What to do first so that a cache line begins behind it: at most `most` bytes, a whole number of
/// blocks. Nothing for short data or where no block is at the start of a line. A register of 64
/// bytes that is not aligned crosses lines every time.
#[inline(always)]
fn up_to_line(data: &[u8], most: usize) -> usize {
    const LINE: usize = 64;
    let beyond = (data.as_ptr().addr() + most) % LINE;
    match data.len() > 2 * most && beyond != 0 && beyond.is_multiple_of(BLOCK_LEN) {
        true => most - beyond,
        false => 0,
    }
}

/// As [`ecb_chunk`], then adds the ciphertext of the block before, and leaves the last one's in
/// `iv`.
///
/// # Safety
///
/// As for [`ecb_chunk`]; `len` is not 0.
#[inline(always)]
unsafe fn cbc_chunk<W: Words, const G: usize, const PART: bool>(
    round_keys: &RoundKeys,
    iv: &mut Block,
    data: *mut u8,
    len: usize,
) {
    // SAFETY: the caller has promised the memory and the instructions
    unsafe {
        let next_iv = data.add(len - BLOCK_LEN).cast::<Block>().read();
        let groups = load_groups::<W, G, PART>(data, len);
        let rows = to_bytes(rounds::crypt::<W, G, true>(groups, round_keys));
        // From the end, so that the ciphertext before a register is still there.
        for row in (0..4 * G).rev() {
            let previous = match row {
                0 => load::<W, PART>(data, len, 0).shift_in(iv),
                _ => load::<W, PART>(data.wrapping_sub(BLOCK_LEN), len + BLOCK_LEN, row),
            };
            store::<W, PART>(rows[row / 4][row % 4].xor(previous), data, len, row);
        }
        *iv = next_iv;
    }
}

/// # Safety
///
/// The processor has the instructions of `W`.
#[inline(always)]
pub(super) unsafe fn cbc_decrypt<W: Words, const G: usize>(
    round_keys: &RoundKeys,
    iv: &mut Block,
    blocks: &mut [Block],
) {
    let data = blocks.as_flattened_mut();
    let group = 4 * W::BYTES;
    let (first, data) = data.split_at_mut(up_to_line(data, G * group));
    if !first.is_empty() {
        // SAFETY: the pointer comes from a slice of the length that goes with it
        unsafe { cbc_chunk::<W, G, true>(round_keys, iv, first.as_mut_ptr(), first.len()) }
    }
    let mut chunks = data.chunks_exact_mut(G * group);
    // SAFETY: the pointers come from slices of the lengths that go with them
    unsafe {
        for chunk in &mut chunks {
            cbc_chunk::<W, G, false>(round_keys, iv, chunk.as_mut_ptr(), chunk.len());
        }
        let rest = chunks.into_remainder();
        let (at, len) = (rest.as_mut_ptr(), rest.len());
        match len.div_ceil(group) {
            0 => {}
            1 => cbc_chunk::<W, 1, true>(round_keys, iv, at, len),
            2 => cbc_chunk::<W, 2, true>(round_keys, iv, at, len),
            3 => cbc_chunk::<W, 3, true>(round_keys, iv, at, len),
            _ => cbc_chunk::<W, 4, true>(round_keys, iv, at, len),
        }
    }
}

/// The three words of the counter block that stay the same, in the rounds' form.
type Head<W> = [W; 3];

/// The key stream of `G` groups.
#[inline(always)]
fn key_stream<W: Words, const G: usize>(
    round_keys: &RoundKeys,
    &[a, b, c]: &Head<W>,
    low: u32,
) -> [[W; 4]; G] {
    let mut counters = [[a, b, c, a]; G];
    for g in 0..G {
        let first = low.wrapping_add((g * W::BLOCKS) as u32);
        // SAFETY: the values prove the processor
        counters[g][3] = unsafe { W::count_from(first) }.enter();
    }
    to_bytes(rounds::crypt::<W, G, false>(counters, round_keys))
}

/// # Safety
///
/// As for [`ecb_chunk`], but `len` need not be a multiple of sixteen.
#[inline(always)]
unsafe fn ctr_chunk<W: Words, const G: usize, const PART: bool>(
    round_keys: &RoundKeys,
    head: &Head<W>,
    low: u32,
    data: *mut u8,
    len: usize,
) {
    let rows = key_stream::<W, G>(round_keys, head, low);
    for row in 0..4 * G {
        // SAFETY: the caller has promised the memory and the instructions
        unsafe {
            let text = load::<W, PART>(data, len, row);
            store::<W, PART>(text.xor(rows[row / 4][row % 4]), data, len, row);
        }
    }
}

/// The constant words of a counter block.
///
/// # Safety
///
/// The processor has the instructions of `W`.
#[inline(always)]
unsafe fn enter_head<W: Words>(head: &[u8; 12]) -> Head<W> {
    let words = crate::ctr::words(head);
    // SAFETY: as promised by the caller
    unsafe {
        [
            W::splat(words[0]).enter(),
            W::splat(words[1]).enter(),
            W::splat(words[2]).enter(),
        ]
    }
}

/// # Safety
///
/// The processor has the instructions of `W`.
#[inline(always)]
pub(super) unsafe fn ctr<W: Words, const G: usize>(
    round_keys: &RoundKeys,
    counter: &Block,
    data: &mut [u8],
) {
    let (head, low) = crate::ctr::split(counter);
    // SAFETY: as promised by the caller
    unsafe { ctr_from::<W, G>(round_keys, &enter_head(&head), low, data) }
}

/// # Safety
///
/// The processor has the instructions of `W`.
#[inline(always)]
unsafe fn ctr_from<W: Words, const G: usize>(
    round_keys: &RoundKeys,
    head: &Head<W>,
    mut low: u32,
    data: &mut [u8],
) {
    let group = 4 * W::BYTES;
    let (first, data) = data.split_at_mut(up_to_line(data, G * group));
    if !first.is_empty() {
        // SAFETY: the pointer comes from a slice of the length that goes with it
        unsafe {
            ctr_chunk::<W, G, true>(round_keys, head, low, first.as_mut_ptr(), first.len());
        }
        low = low.wrapping_add((first.len() / BLOCK_LEN) as u32);
    }
    let mut chunks = data.chunks_exact_mut(G * group);
    // SAFETY: the pointers come from slices of the lengths that go with them
    unsafe {
        for chunk in &mut chunks {
            ctr_chunk::<W, G, false>(round_keys, head, low, chunk.as_mut_ptr(), chunk.len());
            low = low.wrapping_add((G * W::BLOCKS) as u32);
        }
        let rest = chunks.into_remainder();
        let (at, len) = (rest.as_mut_ptr(), rest.len());
        match len.div_ceil(group) {
            0 => {}
            1 => ctr_chunk::<W, 1, true>(round_keys, head, low, at, len),
            2 => ctr_chunk::<W, 2, true>(round_keys, head, low, at, len),
            3 => ctr_chunk::<W, 3, true>(round_keys, head, low, at, len),
            _ => ctr_chunk::<W, 4, true>(round_keys, head, low, at, len),
        }
    }
}

/// [`ctr_chunk`] with one block of key stream before that of the data. Returns it.
///
/// # Safety
///
/// The processor has the instructions of `W`; `data` may be read and written for `len` bytes, at
/// most a block less than `G` groups.
#[inline(always)]
unsafe fn ctr_behind_chunk<W: Words, const G: usize>(
    round_keys: &RoundKeys,
    head: &Head<W>,
    low: u32,
    data: *mut u8,
    len: usize,
) -> Block {
    let mut first = [0; BLOCK_LEN];
    // SAFETY: the caller has promised the memory and the instructions; the first register of data
    // is shorter by the block before it, and so the others are that much earlier
    unsafe {
        let rows = key_stream::<W, G>(round_keys, head, low);
        rows[0][0].store_part(first.as_mut_ptr(), BLOCK_LEN);
        let first_len = len.min(W::BYTES - BLOCK_LEN);
        let text = W::load_part(data, first_len);
        text.xor(rows[0][0].shift_out()).store_part(data, first_len);
        let (before, len) = (data.wrapping_sub(BLOCK_LEN), len + BLOCK_LEN);
        for row in 1..4 * G {
            let text = load::<W, true>(before, len, row);
            store::<W, true>(text.xor(rows[row / 4][row % 4]), before, len, row);
        }
    }
    first
}

/// # Safety
///
/// The processor has the instructions of `W`.
#[inline(always)]
pub(super) unsafe fn ctr_behind<W: Words, const G: usize>(
    round_keys: &RoundKeys,
    j0: &Block,
    data: &mut [u8],
) -> Block {
    let (head, low) = crate::ctr::split(j0);
    let group = 4 * W::BYTES;
    // SAFETY: as promised by the caller; the pointer comes from a slice of the length that goes
    // with it
    unsafe {
        let head = &enter_head(&head);
        if data.len() <= group - BLOCK_LEN {
            return ctr_behind_chunk::<W, 1>(round_keys, head, low, data.as_mut_ptr(), data.len());
        }
        let most = G * group - BLOCK_LEN;
        let first = match up_to_line(data, most) {
            0 => most.min(data.len()),
            first => first,
        };
        let (now, later) = data.split_at_mut(first);
        let block = ctr_behind_chunk::<W, G>(round_keys, head, low, now.as_mut_ptr(), now.len());
        let low = low.wrapping_add((1 + now.len() / BLOCK_LEN) as u32);
        ctr_from::<W, G>(round_keys, head, low, later);
        block
    }
}
