//! Any bytes as a trace of format `ptob`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ptosim_fuzz::read("ptob", bytes));
