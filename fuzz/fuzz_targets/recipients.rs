//! See `onionskin_fuzz::recipients::run`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onionskin_fuzz::recipients::run(input));
