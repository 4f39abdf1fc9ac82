//! See `onionskin_fuzz::statements::functions`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onionskin_fuzz::statements::functions(input));
