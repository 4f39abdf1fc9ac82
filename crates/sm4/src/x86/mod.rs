//! Kernels with the vector instructions of x86-64.
//!
//! All of them work alike: a register holds one 32-bit word of many blocks, four registers are the
//! state of a *group* of blocks, and several groups are interleaved, because every instruction of a
//! round waits for the one before it. The rounds and modes are written once in [`rounds`] and
//! [`modes`], over the trait [`Words`]; a kernel is a type of words and a table of entry points
//! that switch the instructions on for everything inlined into them.

pub(crate) mod aesni;
mod clmul;
pub(crate) mod gfni256;
pub(crate) mod gfni512;
mod maps;
mod modes;
mod rounds;
mod vpclmul;
mod ymm;

/// A register of 32-bit words.
///
/// Having a value proves that the processor has the type's instructions: the functions that make
/// one from nothing are unsafe and want that promised, so the others need not be.
trait Words: Copy {
    /// Words in a register, and so blocks in a group.
    const BLOCKS: usize;
    /// Bytes in a register.
    const BYTES: usize = 4 * Self::BLOCKS;

    /// All words the same.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of this type.
    unsafe fn splat(word: u32) -> Self;

    /// `BYTES` from memory, at any alignment.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of this type, and `from` may be read for `BYTES`.
    unsafe fn load(from: *const u8) -> Self;

    /// The first `len` bytes, at most `BYTES`, and zeros behind them.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of this type, and `from` may be read for `len` bytes.
    unsafe fn load_part(from: *const u8, len: usize) -> Self;

    /// Writes `BYTES`, at any alignment.
    ///
    /// # Safety
    ///
    /// `to` may be written for `BYTES`.
    unsafe fn store(self, to: *mut u8);

    /// Writes the first `len` bytes, at most `BYTES`.
    ///
    /// # Safety
    ///
    /// `to` may be written for `len` bytes.
    unsafe fn store_part(self, to: *mut u8, len: usize);

    /// `first`, and one more for each block, in the order in which [`transpose`](Words::transpose)
    /// leaves the blocks.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of this type.
    unsafe fn count_from(first: u32) -> Self;

    /// The lowest word.
    fn first(self) -> u32;

    fn xor(self, other: Self) -> Self;

    fn xor3(self, b: Self, c: Self) -> Self;

    /// The input of the next round: `others ^ a ^ b`, where `sum` is known to be `a ^ b`. The type
    /// takes the shorter way.
    fn next_input(others: Self, a: Self, b: Self, sum: Self) -> Self;

    /// Each byte times `IN`, the S-box's inner map: the form in which the rounds have the state.
    fn enter(self) -> Self;

    /// The reverse of [`enter`](Words::enter).
    fn leave(self) -> Self;

    /// The inversion and V and W behind it: see [`maps`].
    fn substitute(self) -> (Self, Self);

    /// Each word rotated left by 8, 16 or 24 bits.
    fn rotate<const BITS: i32>(self) -> Self;

    /// Swaps the bytes of each word: the standard's words are big-endian.
    fn swap_bytes(self) -> Self;

    /// In each 128 bits of the four registers, transposes the 4×4 words. Its own inverse.
    ///
    /// Four registers loaded from consecutive memory become the four words of the blocks there: in
    /// the lane `l` and position `r`, of the block that begins at byte `BYTES · r + 16 · l`.
    fn transpose(rows: [Self; 4]) -> [Self; 4];

    /// All bytes move up by one block; the first becomes `block`.
    fn shift_in(self, block: &[u8; 16]) -> Self;

    /// All bytes move down by one block; zeros follow.
    fn shift_out(self) -> Self;
}
