//! Any bytes as a trace of format `chakra`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ptosim_fuzz::read("chakra", bytes));
