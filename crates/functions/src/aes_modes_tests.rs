//! Vectors of NIST SP 800-38A, appendix F, and round trips.

use proptest::prelude::*;

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

const KEYS: [(KeyBits, &str); 3] = [
    (KeyBits::Bits128, "2b7e151628aed2a6abf7158809cf4f3c"),
    (
        KeyBits::Bits192,
        "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
    ),
    (
        KeyBits::Bits256,
        "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
    ),
];
const TEXT: &str = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51\
     30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710";
const IV: &str = "000102030405060708090a0b0c0d0e0f";
const COUNTER: &str = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";

/// Mode, key length, how much of the text, the ciphertext.
const VECTORS: [(Mode, KeyBits, usize, &str); 12] = [
    (
        Mode::Ecb,
        KeyBits::Bits128,
        32,
        "3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf",
    ),
    (
        Mode::Ecb,
        KeyBits::Bits256,
        16,
        "f3eed1bdb5d2a03c064b5a7e3db181f8",
    ),
    (
        Mode::Cbc,
        KeyBits::Bits128,
        32,
        "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2",
    ),
    (
        Mode::Cbc,
        KeyBits::Bits192,
        16,
        "4f021db243bc633d7178183a9fa071e8",
    ),
    (
        Mode::Cbc,
        KeyBits::Bits256,
        16,
        "f58c4c04d6e5f1ba779eabfb5f7bfbd6",
    ),
    (Mode::Cfb1, KeyBits::Bits128, 2, "68b3"),
    (Mode::Cfb1, KeyBits::Bits256, 2, "9029"),
    (
        Mode::Cfb8,
        KeyBits::Bits128,
        18,
        "3b79424c9c0dd436bace9e0ed4586a4f32b9",
    ),
    (
        Mode::Cfb128,
        KeyBits::Bits128,
        32,
        "3b3fd92eb72dad20333449f8e83cfb4ac8a64537a0b3a93fcde3cdad9f1ce58b",
    ),
    (
        Mode::Ofb,
        KeyBits::Bits128,
        32,
        "3b3fd92eb72dad20333449f8e83cfb4a7789508d16918f03f53c52dac54ed825",
    ),
    (
        Mode::Ctr,
        KeyBits::Bits128,
        32,
        "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff",
    ),
    (
        Mode::Ctr,
        KeyBits::Bits256,
        16,
        "601ec313775789a5b7a7f504bbf3d228",
    ),
];

#[test]
fn equals_sp_800_38a() {
    for (mode, bits, len, sealed) in VECTORS {
        let (_, key) = KEYS.iter().find(|(of, _)| *of == bits).unwrap();
        let key = AesKey::folded(bits, &bytes(key));
        let iv = iv_of(&bytes(if mode == Mode::Ctr { COUNTER } else { IV })).unwrap();
        let mut buffer = bytes(TEXT)[..len].to_vec();
        transform(mode, Direction::Encrypt, &key, &iv, &mut buffer);
        assert_eq!(buffer, bytes(sealed), "{mode:?} {bits:?}");
        transform(mode, Direction::Decrypt, &key, &iv, &mut buffer);
        assert_eq!(buffer, bytes(TEXT)[..len], "{mode:?} {bits:?} back");
    }
}

#[test]
fn padding_has_to_be_right() {
    let mut block = [7; 16];
    for padding in 0..=255 {
        block[15] = padding;
        for byte in &mut block[16 - usize::from(padding.clamp(1, 16))..] {
            *byte = padding;
        }
        let expected = (1..=16)
            .contains(&padding)
            .then(|| 16 - usize::from(padding));
        assert_eq!(text_len(&block), expected, "{padding}");
    }
    for wrong in 0..15 {
        let mut block = [16; 16];
        block[wrong] = 15;
        assert_eq!(text_len(&block), None);
    }
}

proptest! {
    #[test]
    fn round_trips(
        text in proptest::collection::vec(any::<u8>(), 0..200),
        key in proptest::collection::vec(any::<u8>(), 0..80),
        iv: [u8; 16],
    ) {
        for mode in [Mode::Ecb, Mode::Cbc, Mode::Cfb1, Mode::Cfb8, Mode::Cfb128, Mode::Ofb, Mode::Ctr] {
            for (bits, _) in KEYS {
                let key = AesKey::folded(bits, &key);
                let sealed = encrypt(mode, &key, &iv, &text);
                let opened = decrypt(mode, &key, &iv, &sealed);
                prop_assert_eq!(opened.as_ref(), Some(&text));
            }
        }
    }

    #[test]
    fn any_text_can_be_decrypted(
        text in proptest::collection::vec(any::<u8>(), 0..100),
        key in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        for mode in [Mode::Ecb, Mode::Cbc, Mode::Cfb1, Mode::Cfb8, Mode::Cfb128, Mode::Ofb, Mode::Ctr] {
            let key = AesKey::folded(KeyBits::Bits128, &key);
            let opened = decrypt(mode, &key, &[0; 16], &text);
            prop_assert!(mode.is_padded() || opened.is_some_and(|o| o.len() == text.len()));
        }
    }
}
