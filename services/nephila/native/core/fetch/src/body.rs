//! A response body: decoded while it arrives, counted on the wire and decoded, cut off at the limits.

use crate::coding::Codings;
use crate::config::Config;
use crate::error::FetchError;

/// Below this many decoded bytes the ratio is not checked: a small page of zeros is harmless.
const RATIO_FLOOR_BYTES: u64 = 1 << 20;

/// Invariant: memory is at most twice the limit (or `keep`) and one piece; with the wire form, its limit beside it.
pub struct Body {
    codings: Codings,
    kept: Kept,
    wire: Option<Vec<u8>>,
    wire_limit: u64,
    pub wire_bytes: u64,
}

struct Kept {
    data: Vec<u8>,
    limit: u64,
    /// 0: no limit of its own. Otherwise the body is full at this size, which is no error.
    keep: u64,
    ratio: f64,
    full: bool,
}

impl Kept {
    fn gather(&mut self, piece: &[u8], wire_bytes: u64) -> Result<bool, FetchError> {
        self.data.extend_from_slice(piece);
        let size = self.data.len() as u64;
        if self.keep > 0 {
            self.full |= size >= self.keep;
        } else if size > self.limit {
            return Err(FetchError::too_large(format!("more than {} bytes decoded", self.limit)));
        } else if size > RATIO_FLOOR_BYTES && size as f64 > self.ratio * wire_bytes as f64 {
            let ratio = self.ratio;
            return Err(FetchError::too_large(format!("ratio over {ratio}: {wire_bytes} bytes make {size}")));
        }
        Ok(!self.full)
    }
}

impl Body {
    /// `expected`: the announced size; memory follows what arrives, at most one read ahead. `data`: an empty buffer.
    pub fn new(config: &Config, codings: Codings, keep: u64, max_bytes: u64, expected: u64, mut data: Vec<u8>) -> Body {
        let or = |limit: u64| if max_bytes > 0 { max_bytes } else { limit };
        let wire = (config.raw_capture && !codings.is_empty()).then(Vec::new);
        let room = if codings.is_empty() { expected.min(256 << 10) as usize } else { 0 };
        data.reserve(room);
        let kept = Kept { data, limit: or(config.max_body_bytes), keep, ratio: config.max_ratio, full: false };
        Body { codings, kept, wire, wire_limit: or(config.max_wire_bytes), wire_bytes: 0 }
    }

    /// Bytes from the wire have to be decoded: their size says nothing about the memory that they need.
    pub fn coded(&self) -> bool {
        !self.codings.is_empty()
    }

    /// Decoded bytes so far.
    pub fn size(&self) -> u64 {
        self.kept.data.len() as u64
    }

    /// The largest decoded size.
    pub fn limit(&self) -> u64 {
        self.kept.limit
    }

    /// The body has the size that is wanted; more is not read.
    pub fn full(&self) -> bool {
        self.kept.full
    }

    /// Adds bytes from the wire; false: the body is full. `framing`: bytes of the transfer coding so far, which count
    /// against the wire limit.
    pub fn feed(&mut self, framing: u64, data: &[u8]) -> Result<bool, FetchError> {
        self.wire_bytes += data.len() as u64;
        let wire = self.wire_bytes + framing;
        if wire > self.wire_limit && self.kept.keep == 0 {
            return Err(FetchError::too_large(format!("more than {} bytes on the wire", self.wire_limit)));
        }
        if let Some(form) = &mut self.wire {
            form.extend_from_slice(data);
        }
        let (kept, wire_bytes) = (&mut self.kept, self.wire_bytes);
        self.codings.pump(data, &mut |piece| kept.gather(piece, wire_bytes))?;
        if kept.keep > 0 && wire >= self.wire_limit {
            kept.full = true;
        }
        Ok(!kept.full)
    }

    /// The decoded body, and the one from the wire where it differs and is stored; FetchError (encoding) when a coding
    /// is not complete.
    pub fn finish(mut self) -> Result<(Vec<u8>, Option<Vec<u8>>), FetchError> {
        if !self.kept.full {
            self.codings.finish()?;
        }
        if self.kept.keep > 0 {
            self.kept.data.truncate(self.kept.keep as usize);
        }
        Ok((self.kept.data, self.wire))
    }
}
