//! See `onionskin_fuzz::deep::run`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onionskin_fuzz::deep::run(input));
