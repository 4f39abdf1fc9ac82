//! What the kernels with registers of 256 bits have in common.

use std::arch::x86_64::*;

/// Implements everything of [`Words`](super::Words) but the substitution for a type around
/// `__m256i`, whose values exist only on processors with AVX2.
macro_rules! words_of_ymm {
    ($type:ident) => {
        const BLOCKS: usize = 8;

        #[inline(always)]
        unsafe fn splat(word: u32) -> Self {
            // SAFETY: the caller's promise
            unsafe { $type(_mm256_set1_epi32(word.cast_signed())) }
        }

        #[inline(always)]
        unsafe fn load(from: *const u8) -> Self {
            // SAFETY: the caller's promise
            unsafe { $type(_mm256_loadu_si256(from.cast())) }
        }

        #[inline(always)]
        unsafe fn load_part(from: *const u8, len: usize) -> Self {
            // SAFETY: the caller's promise
            unsafe { $type(crate::x86::ymm::load_part(from, len)) }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut u8) {
            // SAFETY: the caller's promise
            unsafe { _mm256_storeu_si256(to.cast(), self.0) }
        }

        #[inline(always)]
        unsafe fn store_part(self, to: *mut u8, len: usize) {
            // SAFETY: the caller's promise
            unsafe { crate::x86::ymm::store_part(self.0, to, len) }
        }

        #[inline(always)]
        unsafe fn count_from(first: u32) -> Self {
            // SAFETY: the caller's promise
            unsafe {
                let steps = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
                $type(_mm256_add_epi32(
                    _mm256_set1_epi32(first.cast_signed()),
                    steps,
                ))
            }
        }

        #[inline(always)]
        fn first(self) -> u32 {
            // SAFETY: the value proves the processor
            unsafe { _mm256_cvtsi256_si32(self.0).cast_unsigned() }
        }

        #[inline(always)]
        fn xor(self, other: Self) -> Self {
            // SAFETY: the value proves the processor
            unsafe { $type(_mm256_xor_si256(self.0, other.0)) }
        }

        #[inline(always)]
        fn xor3(self, b: Self, c: Self) -> Self {
            self.xor(b).xor(c)
        }

        #[inline(always)]
        fn next_input(others: Self, _a: Self, _b: Self, sum: Self) -> Self {
            others.xor(sum)
        }

        #[inline(always)]
        fn rotate<const BITS: i32>(self) -> Self {
            // SAFETY: the value proves the processor
            unsafe { $type(crate::x86::ymm::rotate::<BITS>(self.0)) }
        }

        #[inline(always)]
        fn swap_bytes(self) -> Self {
            // SAFETY: the value proves the processor
            unsafe {
                let order = _mm256_broadcastsi128_si256(_mm_setr_epi8(
                    3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12,
                ));
                $type(_mm256_shuffle_epi8(self.0, order))
            }
        }

        #[inline(always)]
        fn transpose([a, b, c, d]: [Self; 4]) -> [Self; 4] {
            // SAFETY: the values prove the processor
            unsafe {
                let ab_low = _mm256_unpacklo_epi32(a.0, b.0);
                let ab_high = _mm256_unpackhi_epi32(a.0, b.0);
                let cd_low = _mm256_unpacklo_epi32(c.0, d.0);
                let cd_high = _mm256_unpackhi_epi32(c.0, d.0);
                [
                    $type(_mm256_unpacklo_epi64(ab_low, cd_low)),
                    $type(_mm256_unpackhi_epi64(ab_low, cd_low)),
                    $type(_mm256_unpacklo_epi64(ab_high, cd_high)),
                    $type(_mm256_unpackhi_epi64(ab_high, cd_high)),
                ]
            }
        }

        #[inline(always)]
        fn shift_in(self, block: &[u8; 16]) -> Self {
            // SAFETY: the value proves the processor; an array of sixteen bytes may be read
            unsafe {
                let block = _mm256_castsi128_si256(_mm_loadu_si128(block.as_ptr().cast()));
                $type(_mm256_permute2x128_si256::<0x02>(self.0, block))
            }
        }

        #[inline(always)]
        fn shift_out(self) -> Self {
            // SAFETY: the value proves the processor
            unsafe { $type(_mm256_permute2x128_si256::<0x81>(self.0, self.0)) }
        }
    };
}

pub(super) use words_of_ymm;

/// # Safety
///
/// The processor has AVX2; `from` may be read for `len` bytes, at most 32.
#[inline(always)]
pub(super) unsafe fn load_part(from: *const u8, len: usize) -> __m256i {
    let mut bytes = [0u8; 32];
    // SAFETY: the caller's promise
    unsafe {
        std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), len);
        _mm256_loadu_si256(bytes.as_ptr().cast())
    }
}

/// # Safety
///
/// The processor has AVX2; `to` may be written for `len` bytes, at most 32.
#[inline(always)]
pub(super) unsafe fn store_part(words: __m256i, to: *mut u8, len: usize) {
    let mut bytes = [0u8; 32];
    // SAFETY: the caller's promise
    unsafe {
        _mm256_storeu_si256(bytes.as_mut_ptr().cast(), words);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, len);
    }
}

/// # Safety
///
/// The processor has AVX2.
#[inline(always)]
pub(super) unsafe fn rotate<const BITS: i32>(words: __m256i) -> __m256i {
    // SAFETY: the caller's promise
    unsafe {
        let order = match BITS {
            8 => _mm_setr_epi8(3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14),
            16 => _mm_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13),
            24 => _mm_setr_epi8(1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12),
            _ => unreachable!(),
        };
        _mm256_shuffle_epi8(words, _mm256_broadcastsi128_si256(order))
    }
}
