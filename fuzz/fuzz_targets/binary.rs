//! Any bytes as a trace of format `ptob`.
#![no_main]

// With the right length and checksum, so that what lies behind them is read too.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    ptosim::workload::binary::seal(&mut bytes);
    ptosim_fuzz::read("ptob", &bytes);
});
