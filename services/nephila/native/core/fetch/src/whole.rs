//! Short gzip bodies, inflated in one call once they are complete: half the time of a stream.
//!
//! Invariant: what is answered here equals what the stream decoder makes of the same bytes. Everything unusual
//! (optional header fields, several members, bytes behind the end, more output than there is room for) is left to it.

use libdeflater::{crc32, Decompressor};
use memchr::memmem;

/// Longest body on the wire that is collected before it is decoded.
pub const WHOLE_BYTES: usize = 64 << 10;
/// Method deflate, no optional fields.
const PLAIN_START: [u8; 4] = [0x1f, 0x8b, 8, 0];
const HEADER_BYTES: usize = 10;
const TRAILER_BYTES: usize = 8;

/// Inflates one plain gzip member into `out`, at most `room` bytes. False: the stream decoder decides; `out` is empty.
pub fn inflate(data: &[u8], room: u64, out: &mut Vec<u8>) -> bool {
    let Some(end) = data.len().checked_sub(TRAILER_BYTES).filter(|&end| end >= HEADER_BYTES) else { return false };
    // The magic of a further member may stand by chance in one of a thousand bodies.
    if !data.starts_with(&PLAIN_START) || memmem::find(&data[1..], &PLAIN_START[..3]).is_some() {
        return false;
    }
    let number = |at: usize| u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]);
    let (checksum, size) = (number(end), number(end + 4) as usize);
    if size as u64 > room {
        return false;
    }
    out.resize(size, 0);
    let made = Decompressor::new().deflate_decompress(&data[HEADER_BYTES..end], out);
    let exact = made == Ok(size) && crc32(out) == checksum;
    if !exact {
        out.clear();
    }
    exact
}
