use proptest::prelude::*;

use super::*;
use crate::vectors::hex;

/// Points of order 1, 2, 4 and 8, and the same beyond the prime and with the highest bit set.
const LOW_ORDER: [&str; 8] = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "cdeb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b880",
];

const SUITES: [Suite; 2] = [Suite::Aes, Suite::Sm];

#[test]
fn a_file_key_comes_back_to_its_recipient_only() {
    for suite in SUITES {
        let identity = Identity::generate(suite);
        let key = FileKey::generate();
        let stanza = identity.recipient().wrap(&key).unwrap();
        assert_eq!(stanza.len(), stanza_len(suite));
        assert!(identity.unwrap(&stanza).unwrap().is_same(&key));
        assert!(Identity::generate(suite).unwrap(&stanza).is_none());
        let again = identity.recipient().wrap(&key).unwrap();
        assert_ne!(stanza, again, "each stanza has a share of its own");
        assert!(identity.unwrap(&again).unwrap().is_same(&key));
    }
}

#[test]
fn every_bit_and_every_length_of_a_stanza_counts() {
    for suite in SUITES {
        let identity = Identity::generate(suite);
        let stanza = identity.recipient().wrap(&FileKey::generate()).unwrap();
        for bit in 0..8 * stanza.len() {
            let mut changed = stanza.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(identity.unwrap(&changed).is_none(), "{suite}, bit {bit}");
        }
        for len in 0..stanza.len() {
            assert!(identity.unwrap(&stanza[..len]).is_none(), "{suite}, {len}");
        }
        assert!(identity.unwrap(&[&stanza[..], &[0]].concat()).is_none());
    }
}

#[test]
fn points_of_low_order_are_no_recipients_and_no_shares() {
    let identity = Identity::generate(Suite::Aes);
    for point in LOW_ORDER {
        let bytes: [u8; 32] = hex(point).try_into().unwrap();
        assert_eq!(x25519::PublicKey::from_bytes(bytes), Err(KeyBytesError));
        let mut stanza = [0; x25519::STANZA_LEN];
        stanza[..32].copy_from_slice(&bytes);
        assert!(identity.unwrap(&stanza).is_none(), "{point}");
    }
}

#[test]
fn a_coordinate_beyond_the_prime_is_no_recipient() {
    // 9, the base point, in its two other forms.
    let mut plus_prime = [0xff; 32];
    (plus_prime[0], plus_prime[31]) = (0xf6, 0x7f);
    let mut high_bit = [0; 32];
    (high_bit[0], high_bit[31]) = (9, 0x80);
    for bytes in [plus_prime, high_bit] {
        assert_eq!(x25519::PublicKey::from_bytes(bytes), Err(KeyBytesError));
    }
    let mut base = [0; 32];
    base[0] = 9;
    assert!(x25519::PublicKey::from_bytes(base).is_ok());
}

#[test]
fn numbers_and_points_of_sm2_have_borders() {
    const ORDER: &str = "fffffffeffffffffffffffffffffffff7203df6b21c6052b53bbf40939d54123";
    let secret = |text: &str| {
        let bytes: [u8; 32] = hex(text).try_into().unwrap();
        Identity::from_bytes(Suite::Sm, &bytes)
    };
    assert!(secret(ORDER).is_err());
    assert!(secret(&"00".repeat(32)).is_err());
    assert!(secret(&"ff".repeat(32)).is_err());
    let last = ORDER.replace("4123", "4122");
    assert!(secret(&last).is_ok());
    // x = p, and an x that is on no point
    let off = "fffffffeffffffffffffffffffffffffffffffff00000000ffffffffffffffff";
    for x in [off, &format!("{:064x}", 2)] {
        let bytes: [u8; 33] = hex(&format!("02{x}")).try_into().unwrap();
        assert!(sm2::PublicKey::from_bytes(&bytes).is_err(), "{x}");
    }
}

// GM/T 0003.5, annex A: the curve's own key pair.
#[test]
fn the_key_pair_of_the_standard() {
    let secret = hex("3945208f7b2144b13f36e38ac6d39f95889393692860b51a42fb81ef4df7c5b8");
    let identity = Identity::from_bytes(Suite::Sm, &secret.try_into().unwrap()).unwrap();
    let Recipient::Sm2(key) = identity.recipient() else {
        panic!("an SM2 identity has an SM2 recipient")
    };
    let point = "0309f9df311e5421a150dd7d161e4bc5c672179fad1833fc076bb08ff356f35020";
    assert_eq!(key.to_bytes()[..], hex(point));
}

/// Gives fixed bytes as k.
struct Fixed(Vec<u8>);

impl rand::TryRng for Fixed {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        unreachable!("a scalar takes bytes")
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        unreachable!("a scalar takes bytes")
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        bytes.copy_from_slice(&self.0);
        Ok(())
    }
}

impl rand::TryCryptoRng for Fixed {}

#[test]
fn debug_output_shows_no_secret() {
    for suite in SUITES {
        let identity = Identity::generate(suite);
        let secret = identity.secret_bytes();
        let texts = [
            format!("{identity:?}"),
            format!("{:?}", FileKey::generate()),
        ];
        let hex: String = secret[..4].iter().map(|b| format!("{b:02x}")).collect();
        for text in texts {
            assert!(
                text.ends_with("{ .. }") || text.ends_with(", .. }"),
                "{text}"
            );
            assert!(!text.to_lowercase().contains(&hex), "{text}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_same_secrets_give_the_same_stanza(
        secret in any::<[u8; 32]>(),
        ephemeral in any::<[u8; 32]>(),
        key in any::<[u8; 16]>(),
    ) {
        let file_key = FileKey::from_bytes(key);
        let identity = x25519::SecretKey::from_bytes(&secret).unwrap();
        let ephemeral = Zeroizing::new(ephemeral);
        let stanza = identity.public_key().wrap_with(&file_key, &ephemeral).unwrap();
        let again = identity.public_key().wrap_with(&file_key, &ephemeral).unwrap();
        prop_assert_eq!(stanza, again);
        prop_assert!(identity.unwrap(&stanza).unwrap().is_same(&file_key));

        // Nearly all are numbers below the order.
        if let Ok(identity) = sm2::SecretKey::from_bytes(&secret) {
            let fixed = || Fixed(ephemeral.to_vec());
            let stanza = identity.public_key().wrap_with(&file_key, &mut fixed()).unwrap();
            let again = identity.public_key().wrap_with(&file_key, &mut fixed()).unwrap();
            prop_assert_eq!(stanza, again);
            prop_assert!(identity.unwrap(&stanza).unwrap().is_same(&file_key));
        }
    }
}
