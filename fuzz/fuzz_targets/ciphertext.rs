//! See `onionskin_fuzz::ciphertext::run`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onionskin_fuzz::ciphertext::run(input));
