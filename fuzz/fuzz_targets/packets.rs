//! See `onionskin_fuzz::packets::run`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onionskin_fuzz::packets::run(input));
