//! See `onionskin_fuzz::streams::frames`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onionskin_fuzz::streams::frames(input));
