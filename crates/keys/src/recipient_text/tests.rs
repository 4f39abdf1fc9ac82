use super::*;

const SUITES: [Suite; 2] = [Suite::Aes, Suite::Sm];

#[test]
fn every_key_has_one_text() {
    for suite in SUITES {
        let identity = Identity::generate(suite);
        let secret = identity_text(&identity);
        let public = recipient_text(&identity.recipient());
        assert_eq!(identity_text(&parse_identity(&secret).unwrap()), secret);
        assert_eq!(parse_recipient(&public).unwrap(), identity.recipient());
        let padded = format!(" {public}\r");
        assert_eq!(parse_recipient(&padded).unwrap(), identity.recipient());
        // the other case, and a mixture
        assert!(parse_recipient(&public.to_uppercase()).is_err());
        assert!(parse_identity(&secret.to_lowercase()).is_err());
        let mut mixed = public.clone().into_bytes();
        mixed.last_mut().unwrap().make_ascii_uppercase();
        let mixed = String::from_utf8(mixed).unwrap();
        assert!(mixed == public || parse_recipient(&mixed).is_err());
    }
}

#[test]
fn every_mistyped_letter_and_every_length_is_found() {
    for suite in SUITES {
        let identity = Identity::generate(suite);
        let (public, secret) = (
            recipient_text(&identity.recipient()),
            identity_text(&identity),
        );
        for at in 0..public.len() {
            for letter in ["q", "p", "l", "1", "b", "é", " "] {
                let changed = format!("{}{letter}{}", &public[..at], &public[at + 1..]);
                assert!(
                    changed == public || parse_recipient(&changed).is_err(),
                    "{changed}"
                );
            }
            assert!(parse_recipient(&public[..at]).is_err());
        }
        for at in 0..secret.len() {
            let changed = format!("{}X{}", &secret[..at], &secret[at + 1..]);
            assert!(changed == *secret || parse_identity(&changed).is_err());
        }
    }
}

#[test]
fn what_stands_in_the_wrong_place_is_named() {
    let identity = Identity::generate(Suite::Aes);
    let (public, secret) = (
        recipient_text(&identity.recipient()),
        identity_text(&identity),
    );
    let recipient = |text: &str| parse_recipient(text).unwrap_err();
    let identity = |text: &str| parse_identity(text).unwrap_err();
    assert_eq!(recipient(&secret), KeyTextError::Secret);
    assert_eq!(identity(&public), KeyTextError::Public);
    for foreign in [
        "age1yubikey1q0pl3lyhfy2xfhs26a8a2g9v4tqlxmahgmwemt6vg57dsyy7eeyj5cd9vhx",
        "age1pq1qqq",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA",
    ] {
        assert_eq!(recipient(foreign), KeyTextError::OtherKind, "{foreign}");
    }
    assert_eq!(
        identity("AGE-PLUGIN-YUBIKEY-1QQPG"),
        KeyTextError::OtherKind
    );
    assert_eq!(recipient(""), KeyTextError::NotARecipient);
    assert_eq!(recipient("bob@example.com"), KeyTextError::NotARecipient);
    assert_eq!(identity("password"), KeyTextError::NotAnIdentity);
    // The right checksum over the wrong bytes: zeros, a point of low order; and a key too long.
    assert_eq!(recipient(&encode("age", &[0; 32])), KeyTextError::Unusable);
    assert_eq!(
        recipient(&encode("sm2pub", &[2; 33])),
        KeyTextError::Unusable
    );
    assert_eq!(recipient(&encode("age", &[9; 33])), KeyTextError::Mistyped);
    let zero = encode("SM2-SECRET-KEY-", &[0; 32]);
    assert_eq!(identity(&zero), KeyTextError::Unusable);
}
