//! What the tests share.

// Every test uses some of it.
#![allow(dead_code, unused_imports)]

#[path = "../../src/testing.rs"]
mod testing;

use std::io::Write;
use std::sync::Once;

use onionskin_sm4::Kernel;
pub use testing::Random;

/// The kernels that this processor can run. Says which it cannot.
pub fn kernels() -> Vec<Kernel> {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        for name in Kernel::names().filter(|name| Kernel::named(name).is_none()) {
            skipped(&format!(
                "kernel {name}: this processor lacks its instructions"
            ));
        }
    });
    Kernel::available().collect()
}

/// Says what is not tested, past the test runner, which shows only what failing tests print.
pub fn skipped(what: &str) {
    writeln!(std::io::stderr(), "SKIPPED: {what}").expect("standard error can be written");
}

pub fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits
        .bytes()
        .filter(|c| !c.is_ascii_whitespace())
        .collect();
    let digit = |c: u8| char::from(c).to_digit(16).expect("a hexadecimal digit") as u8;
    digits
        .chunks(2)
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

/// Lengths in blocks where groups and chunks of all kernels begin and end: 8, 16, 32, 64 blocks,
/// and 16 KiB of GCM.
pub fn borders() -> Vec<usize> {
    let mut lengths: Vec<usize> = (0..=200).collect();
    for border in [256, 512, 1024, 2048] {
        lengths.extend([border - 65, border - 1, border, border + 1, border + 17]);
    }
    lengths
}
