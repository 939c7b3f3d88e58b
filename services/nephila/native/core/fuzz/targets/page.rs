//! Any bytes as a page: no panic, and the promises of `page_check`. The first byte chooses the encoding.
//! `make fuzz` runs it.
#![no_main]

use libfuzzer_sys::fuzz_target;

const ENCODINGS: [&str; 4] = ["utf-8", "", "utf-16le", "shift_jis"];

fuzz_target!(|data: &[u8]| {
    let Some((first, body)) = data.split_first() else { return };
    _core::page_check::check(body, ENCODINGS[usize::from(*first) % ENCODINGS.len()]);
});
