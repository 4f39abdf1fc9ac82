//! Every kernel against the `openssl` program, where it is installed and knows SM4.

#[path = "support/mod.rs"]
mod support;

use std::io::Write;
use std::process::{Command, Stdio};

use onionskin_sm4::Sm4;
use support::{Random, kernels, skipped};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `data` through `openssl enc`, or `None` if that cannot be run.
fn openssl(cipher: &str, key: &[u8; 16], iv: &[u8; 16], data: &[u8]) -> Option<Vec<u8>> {
    let mut command = Command::new("openssl");
    command.args(["enc", cipher, "-nopad", "-K", &hex(key)]);
    if cipher != "-sm4-ecb" {
        command.args(["-iv", &hex(iv)]);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut input = child.stdin.take().expect("a pipe");
    let output = std::thread::scope(|scope| {
        // What it does not read is no error: then its status tells.
        scope.spawn(move || input.write_all(data).ok());
        child.wait_with_output().ok()
    })?;
    output.status.success().then_some(output.stdout)
}

#[test]
fn openssl_computes_the_same() {
    if openssl("-sm4-ecb", &[0; 16], &[0; 16], &[0; 16]).is_none() {
        skipped("comparison with OpenSSL: the program is not installed or does not know SM4");
        return;
    }
    let mut random = Random::new("openssl_computes_the_same");
    for count in [1, 2, 15, 16, 17, 63, 64, 65, 130, 1000] {
        let (key, iv) = (random.array(), random.array());
        let plain = random.bytes(16 * count);
        let run = |cipher| openssl(cipher, &key, &iv, &plain).expect("openssl ran before");
        let (ecb, cbc, ctr) = (run("-sm4-ecb"), run("-sm4-cbc"), run("-sm4-ctr"));
        for kernel in kernels() {
            let cipher = Sm4::with_kernel(&key, kernel);
            let mut data = plain.clone();
            cipher.encrypt_blocks(data.as_chunks_mut().0);
            assert_eq!(data, ecb, "{kernel}, ECB, {count} blocks");
            cipher.decrypt_blocks(data.as_chunks_mut().0);
            cipher.encrypt_cbc(&mut iv.clone(), data.as_chunks_mut().0);
            assert_eq!(data, cbc, "{kernel}, CBC, {count} blocks");
            cipher.decrypt_cbc(&mut iv.clone(), data.as_chunks_mut().0);
            assert_eq!(data, plain, "{kernel}, CBC, {count} blocks");
            cipher.apply_ctr(&iv, &mut data);
            assert_eq!(data, ctr, "{kernel}, CTR, {count} blocks");
        }
    }
}
