//! Authenticated encryption behind sealed cells and streams: one interface over the suites'
//! ciphers.

use aws_lc_rs::aead::{
    AES_256_GCM, AES_256_GCM_SIV, Aad, Algorithm, LessSafeKey, Nonce, UnboundKey,
};
use onionskin_sm4::Sm4Gcm;
use zeroize::Zeroize;

use crate::{OpenError, SealError, nonce::NONCE_LEN};

pub(crate) const TAG_LEN: usize = 16;

pub(crate) enum Aead {
    Aes(Box<LessSafeKey>),
    Sm4Gcm(Box<Sm4Gcm>),
}

impl Aead {
    /// AES-256-GCM-SIV; wipes `key`.
    pub(crate) fn aes(key: &mut [u8; 32]) -> Self {
        Self::aes_with(&AES_256_GCM_SIV, key)
    }

    /// AES-256-GCM, for callers whose nonces cannot repeat; wipes `key`.
    pub(crate) fn aes_gcm(key: &mut [u8; 32]) -> Self {
        Self::aes_with(&AES_256_GCM, key)
    }

    fn aes_with(algorithm: &'static Algorithm, key: &mut [u8; 32]) -> Self {
        let unbound = UnboundKey::new(algorithm, &key[..]).expect("the key has 32 bytes");
        key.zeroize();
        Aead::Aes(Box::new(LessSafeKey::new(unbound)))
    }

    /// SM4-GCM; wipes `key`.
    pub(crate) fn sm(key: &mut [u8; 16]) -> Self {
        let gcm = Sm4Gcm::new(key);
        key.zeroize();
        Aead::Sm4Gcm(Box::new(gcm))
    }

    /// Encrypts `buf` in place. The length of `buf` is bounded by the caller, far below what either
    /// mode allows.
    pub(crate) fn seal_in_place(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        buf: &mut [u8],
    ) -> Result<[u8; TAG_LEN], SealError> {
        match self {
            Aead::Aes(key) => key
                .seal_in_place_separate_tag(
                    Nonce::assume_unique_for_key(*nonce),
                    Aad::from(aad),
                    buf,
                )
                .ok()
                .and_then(|tag| tag.as_ref().try_into().ok())
                .ok_or(SealError::Failed),
            Aead::Sm4Gcm(gcm) => Ok(gcm.seal_in_place(nonce, aad, buf)),
        }
    }

    /// Decrypts `buf` in place. On error `buf` is wiped: GCM-SIV decrypts before it can verify, and
    /// unverified plaintext must not stay behind.
    pub(crate) fn open_in_place(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        buf: &mut [u8],
        tag: &[u8; TAG_LEN],
    ) -> Result<(), OpenError> {
        let verified = match self {
            Aead::Aes(key) => key
                .open_in_place_separate_tag(
                    Nonce::assume_unique_for_key(*nonce),
                    Aad::from(aad),
                    tag,
                    buf,
                )
                .is_ok(),
            Aead::Sm4Gcm(gcm) => gcm.open_in_place(nonce, aad, buf, tag).is_ok(),
        };
        if verified {
            Ok(())
        } else {
            buf.zeroize();
            Err(OpenError::Tampered)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::hex;

    fn check(aead: &Aead, nonce: &str, aad: &str, plain: &str, result: &str) {
        let nonce: [u8; NONCE_LEN] = hex(nonce).try_into().unwrap();
        let (aad, plain, result) = (hex(aad), hex(plain), hex(result));
        let mut buf = plain.clone();
        let mut tag = aead.seal_in_place(&nonce, &aad, &mut buf).unwrap();
        assert_eq!([&buf[..], &tag[..]].concat(), result);
        let sealed = buf.clone();
        aead.open_in_place(&nonce, &aad, &mut buf, &tag).unwrap();
        assert_eq!(buf, plain);

        buf.copy_from_slice(&sealed);
        tag[0] ^= 1;
        assert_eq!(
            aead.open_in_place(&nonce, &aad, &mut buf, &tag),
            Err(OpenError::Tampered)
        );
        assert!(buf.iter().all(|&b| b == 0), "unverified plaintext stays");
    }

    // RFC 8452, appendix C.2 (AEAD_AES_256_GCM_SIV) and C.3 (the block counter wraps).
    #[test]
    fn rfc_8452() {
        let one = format!("01{}", "00".repeat(31));
        let three = format!("03{}", "00".repeat(11));
        let zeros = "00".repeat(32);
        let cases: [(&str, &str, &str, &str, &str); 14] = [
            (&one, &three, "", "", "07f5f4169bbf55a8400cd47ea6fd400f"),
            (
                &one,
                &three,
                "",
                "0100000000000000",
                "c2ef328e5c71c83b843122130f7364b761e0b97427e3df28",
            ),
            (
                &one,
                &three,
                "",
                "010000000000000000000000",
                "9aab2aeb3faa0a34aea8e2b18ca50da9ae6559e48fd10f6e5c9ca17e",
            ),
            (
                &one,
                &three,
                "",
                "01000000000000000000000000000000",
                "85a01b63025ba19b7fd3ddfc033b3e76c9eac6fa700942702e90862383c6c366",
            ),
            (
                &one,
                &three,
                "",
                "0100000000000000000000000000000002000000000000000000000000000000",
                "4a6a9db4c8c6549201b9edb53006cba821ec9cf850948a7c86c68ac7539d027f
                 e819e63abcd020b006a976397632eb5d",
            ),
            (
                &one,
                &three,
                "01",
                "0200000000000000",
                "1de22967237a813291213f267e3b452f02d01ae33e4ec854",
            ),
            (
                &one,
                &three,
                "01",
                "02000000000000000000000000000000030000000000000000000000000000000400000000000000
                 0000000000000000",
                "c67a1f0f567a5198aa1fcc8e3f21314336f7f51ca8b1af61feac35a86416fa47fbca3b5f749cdf56
                 4527f2314f42fe2503332742b228c647173616cfd44c54eb",
            ),
            (
                &one,
                &three,
                "0100000000000000000000000000000002000000",
                "030000000000000000000000000000000400",
                "462401724b5ce6588d5a54aae5375513a075cfcdf5042112aa29685c912fc2056543",
            ),
            (
                "e66021d5eb8e4f4066d4adb9c33560e4f46e44bb3da0015c94f7088736864200",
                "e0eaf5284d884a0e77d31646",
                "",
                "",
                "169fbb2fbf389a995f6390af22228a62",
            ),
            (
                "bae8e37fc83441b16034566b7a806c46bb91c3c5aedb64a6c590bc84d1a5e269",
                "e4b47801afc0577e34699b9e",
                "4fbdc66f14",
                "671fdd",
                "0eaccb93da9bb81333aee0c785b240d319719d",
            ),
            (
                "a44102952ef94b02b805249bac80e6f61455bfac8308a2d40d8c845117808235",
                "5c9e940fea2f582950a70d5a",
                "0da55210cc1c1b0abde3b2f204d1e9f8b06bc47f",
                "1db2316fd568378da107b52b",
                "8dbeb9f7255bf5769dd56692404099c2587f64979f21826706d497d5",
            ),
            (
                "3c535de192eaed3822a2fbbe2ca9dfc88255e14a661b8aa82cc54236093bbc23",
                "688089e55540db1872504e1c",
                "734320ccc9d9bbbb19cb81b2af4ecbc3e72834321f7aa0f70b7282b4f33df23f167541",
                "ced532ce4159b035277d4dfbb7db62968b13cd4eec",
                "626660c26ea6612fb17ad91e8e767639edd6c9faee9d6c7029675b89eaf4ba1ded1a286594",
            ),
            (
                &zeros,
                "000000000000000000000000",
                "",
                "000000000000000000000000000000004db923dc793ee6497c76dcc03a98e108",
                "f3f80f2cf0cb2dd9c5984fcda908456cc537703b5ba70324a6793a7bf218d3ea
                 ffffffff000000000000000000000000",
            ),
            (
                "b18853f68d833640e42a3c02c25b64869e146d7b233987bddfc240871d7576f7",
                "028ec6eb5ea7e298342a94d4",
                "9c2159058b1f0fe91433a5bdc20e214eab7fecef4454a10ef0657df21ac7",
                "b202b370ef9768ec6561c4fe6b7e7296fa85",
                "857e16a64915a787637687db4a9519635cdd454fc2a154fea91f8363a39fec7d0a49",
            ),
        ];
        for (key, nonce, aad, plain, result) in cases {
            let aead = Aead::aes(&mut hex(key).try_into().unwrap());
            check(&aead, nonce, aad, plain, result);
        }
    }

    // RFC 8998, appendix A.1.
    #[test]
    fn rfc_8998() {
        let aead = Aead::sm(&mut hex("0123456789abcdeffedcba9876543210").try_into().unwrap());
        check(
            &aead,
            "00001234567800000000abcd",
            "feedfacedeadbeeffeedfacedeadbeefabaddad2",
            "aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbccccccccccccccccdddddddddddddddd
             eeeeeeeeeeeeeeeeffffffffffffffffeeeeeeeeeeeeeeeeaaaaaaaaaaaaaaaa",
            "17f399f08c67d5ee19d0dc9969c4bb7d5fd46fd3756489069157b282bb200735
             d82710ca5c22f0ccfa7cbf93d496ac15a56834cbcf98c397b4024a2691233b8d
             83de3541e4c2b58177e065a9bf7b62ec",
        );
    }
}
