//! See `onionskin_fuzz::comments::run`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onionskin_fuzz::comments::run(input));
