//! Any bytes in one of the formats that are JSON; the first byte says which.
#![no_main]

const FORMATS: [&str; 7] = ["native", "wfformat", "simpler", "hicann", "chrome", "chakra", "pytorch"];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((first, rest)) = bytes.split_first() {
        ptosim_fuzz::read(FORMATS[usize::from(*first) % FORMATS.len()], rest);
    }
});
