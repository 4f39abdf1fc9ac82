//! The examples of the standards, on every kernel.

#[path = "support/mod.rs"]
mod support;

use onionskin_sm4::{Sm4, Sm4Gcm};
use support::{hex, kernels};

/// The key of all examples in GB/T 32907, RFC 8998 and the modes' draft.
fn key() -> [u8; 16] {
    hex("0123456789ABCDEF FEDCBA9876543210").try_into().unwrap()
}

/// GB/T 32907-2016, appendix A, first example: the plaintext is the key.
#[test]
fn block() {
    for kernel in kernels() {
        let cipher = Sm4::with_kernel(&key(), kernel);
        let mut blocks = [key()];
        cipher.encrypt_blocks(&mut blocks);
        let expected = hex("681EDF34D206965E 86B3E94F536E4246");
        assert_eq!(blocks[0][..], expected, "{kernel}");
        cipher.decrypt_blocks(&mut blocks);
        assert_eq!(blocks[0], key(), "{kernel}");
    }
}

/// The second example of the same appendix: encrypted a million times over.
#[test]
fn block_a_million_times() {
    for kernel in kernels() {
        let cipher = Sm4::with_kernel(&key(), kernel);
        let mut blocks = [key()];
        for _ in 0..1_000_000 {
            cipher.encrypt_blocks(&mut blocks);
        }
        let expected = hex("595298C7C6FD271F 0402F804C33D3F66");
        assert_eq!(blocks[0][..], expected, "{kernel}");
    }
}

/// draft-ribose-cfrg-sm4-10, appendix A.2.1.
#[test]
fn ecb() {
    let plain = hex("AAAAAAAABBBBBBBBCCCCCCCCDDDDDDDD EEEEEEEEFFFFFFFFAAAAAAAABBBBBBBB");
    let sealed = hex("5EC8143DE509CFF7B5179F8F474B8619 2F1D305A7FB17DF985F81C8482192304");
    for kernel in kernels() {
        let cipher = Sm4::with_kernel(&key(), kernel);
        let mut data = plain.clone();
        cipher.encrypt_blocks(data.as_chunks_mut().0);
        assert_eq!(data, sealed, "{kernel}");
        cipher.decrypt_blocks(data.as_chunks_mut().0);
        assert_eq!(data, plain, "{kernel}");
    }
}

fn iv() -> [u8; 16] {
    hex("000102030405060708090A0B0C0D0E0F").try_into().unwrap()
}

/// draft-ribose-cfrg-sm4-10, appendix A.2.2.
#[test]
fn cbc() {
    let plain = hex("AAAAAAAABBBBBBBBCCCCCCCCDDDDDDDD EEEEEEEEFFFFFFFFAAAAAAAABBBBBBBB");
    let sealed = hex("78EBB11CC40B0A48312AAEB2040244CB 4CB7016951909226979B0D15DC6A8F6D");
    for kernel in kernels() {
        let cipher = Sm4::with_kernel(&key(), kernel);
        let mut data = plain.clone();
        cipher.encrypt_cbc(&mut iv(), data.as_chunks_mut().0);
        assert_eq!(data, sealed, "{kernel}");
        cipher.decrypt_cbc(&mut iv(), data.as_chunks_mut().0);
        assert_eq!(data, plain, "{kernel}");
    }
}

/// draft-ribose-cfrg-sm4-10, appendix A.2.5.
#[test]
fn ctr() {
    let plain = hex(
        "AAAAAAAAAAAAAAAABBBBBBBBBBBBBBBB CCCCCCCCCCCCCCCCDDDDDDDDDDDDDDDD
         EEEEEEEEEEEEEEEEFFFFFFFFFFFFFFFF AAAAAAAAAAAAAAAABBBBBBBBBBBBBBBB",
    );
    let sealed = hex(
        "AC3236CB970CC20791364C395A1342D1 A3CBC1878C6F30CD074CCE385CDD70C7
         F234BC0E24C11980FD1286310CE37B92 6E02FCD0FAA0BAF38B2933851D824514",
    );
    for kernel in kernels() {
        let cipher = Sm4::with_kernel(&key(), kernel);
        let mut data = plain.clone();
        cipher.apply_ctr(&iv(), &mut data);
        assert_eq!(data, sealed, "{kernel}");
        cipher.apply_ctr(&iv(), &mut data);
        assert_eq!(data, plain, "{kernel}");
    }
}

/// RFC 8998, appendix A.1.
#[test]
fn gcm() {
    let nonce = hex("00001234567800000000ABCD").try_into().unwrap();
    let aad = hex("FEEDFACEDEADBEEFFEEDFACEDEADBEEFABADDAD2");
    let plain = hex(
        "AAAAAAAAAAAAAAAABBBBBBBBBBBBBBBB CCCCCCCCCCCCCCCCDDDDDDDDDDDDDDDD
         EEEEEEEEEEEEEEEEFFFFFFFFFFFFFFFF EEEEEEEEEEEEEEEEAAAAAAAAAAAAAAAA",
    );
    let sealed = hex(
        "17F399F08C67D5EE19D0DC9969C4BB7D 5FD46FD3756489069157B282BB200735
         D82710CA5C22F0CCFA7CBF93D496AC15 A56834CBCF98C397B4024A2691233B8D",
    );
    for kernel in kernels() {
        let gcm = Sm4Gcm::with_kernel(&key(), kernel);
        let mut data = plain.clone();
        let tag = gcm.seal_in_place(&nonce, &aad, &mut data);
        assert_eq!(data, sealed, "{kernel}");
        assert_eq!(tag[..], hex("83DE3541E4C2B58177E065A9BF7B62EC"), "{kernel}");
        gcm.open_in_place(&nonce, &aad, &mut data, &tag).unwrap();
        assert_eq!(data, plain, "{kernel}");
    }
}

#[test]
fn debug_shows_no_key() {
    assert_eq!(format!("{:?}", Sm4::new(&key())), "Sm4 { .. }");
    assert_eq!(format!("{:?}", Sm4Gcm::new(&key())), "Sm4Gcm { .. }");
}
