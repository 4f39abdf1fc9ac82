//! See `onionskin_fuzz::streams::header`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onionskin_fuzz::streams::header(input));
