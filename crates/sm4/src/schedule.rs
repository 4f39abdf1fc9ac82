//! The key schedule (GB/T 32907-2016, 7.3), over any constant-time S-box.

use crate::KEY_LEN;

/// Round keys in the order of encryption; decryption takes them backwards. The kernel that made
/// them chose their form.
pub(crate) type RoundKeys = [u32; 32];

/// FK, the standard's system parameter.
const FK: [u32; 4] = [0xa3b1_bac6, 0x56aa_3350, 0x677d_9197, 0xb270_22dc];

/// CK: byte `j` of word `i` is 7·(4i + j) modulo 256.
const CK: [u32; 32] = {
    let mut words = [0; 32];
    let mut i = 0;
    while i < 128 {
        words[i / 4] = (words[i / 4] << 8) | ((i as u32 * 7) & 0xff);
        i += 1;
    }
    words
};

/// Expands `key`. `sub_word` applies the S-box to each byte of a word; `form` makes of a round key
/// what the kernel wants.
#[inline(always)]
pub(crate) fn expand(
    key: &[u8; KEY_LEN],
    sub_word: impl Fn(u32) -> u32,
    form: impl Fn(u32) -> u32,
) -> RoundKeys {
    let (words, _) = key.as_chunks::<4>();
    let mut k = FK;
    for (k, word) in k.iter_mut().zip(words) {
        *k ^= u32::from_be_bytes(*word);
    }
    let mut round_keys = [0; 32];
    for (round_key, ck) in round_keys.iter_mut().zip(CK) {
        let t = sub_word(k[1] ^ k[2] ^ k[3] ^ ck);
        k = [
            k[1],
            k[2],
            k[3],
            k[0] ^ t ^ t.rotate_left(13) ^ t.rotate_left(23),
        ];
        *round_key = form(k[3]);
    }
    round_keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sbox::tests::sbox;

    #[test]
    fn standards_example() {
        assert_eq!(CK[0], 0x0007_0e15);
        assert_eq!(CK[31], 0x646b_7279);
        let key = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210_u128.to_be_bytes();
        let round_keys = expand(
            &key,
            |word| u32::from_ne_bytes(word.to_ne_bytes().map(sbox)),
            |round_key| round_key,
        );
        // GB/T 32907-2016, appendix A: rk[0], rk[1], rk[31]
        assert_eq!(round_keys[0], 0xf121_86f9);
        assert_eq!(round_keys[1], 0x4166_2b61);
        assert_eq!(round_keys[31], 0x9124_a012);
    }
}
