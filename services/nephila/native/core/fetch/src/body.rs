//! A response body: decoded while it arrives, counted on the wire and decoded, cut off at the limits.

use crate::coding::Codings;
use crate::config::{Config, RESERVE_BYTES};
use crate::error::FetchError;
use crate::framing::Length;
use crate::whole::{inflate, WHOLE_BYTES};

/// Below this many decoded bytes the ratio is not checked: a small page of zeros is harmless.
const RATIO_FLOOR_BYTES: u64 = 1 << 20;
/// Bytes of a backlog that are decoded between two looks at the memory of the body.
const STEP_BYTES: usize = 16 << 10;

/// Invariant: memory is at most twice the limit (or `keep`) and one piece; with the wire form, its limit beside it.
pub struct Body {
    codings: Codings,
    kept: Kept,
    decoding: Decoding,
    /// Bytes that the decoders have taken.
    taken_bytes: u64,
    wire: Option<Vec<u8>>,
    wire_limit: u64,
    pub wire_bytes: u64,
}

/// When the bytes from the wire are decoded.
enum Decoding {
    /// At the end, in one call: a short body is collected.
    Whole(Vec<u8>),
    /// As they arrive, after those that were collected; the number counts the ones that are decoded.
    Backlog(Vec<u8>, usize),
    /// As they arrive.
    Stream,
}

struct Kept {
    data: Vec<u8>,
    limit: u64,
    /// 0: no limit of its own. Otherwise the body is full at this size, which is no error.
    keep: u64,
    ratio: f64,
    full: bool,
}

/// Adds bytes; FetchError (too_large) if the allocation fails: it ends one page, and not the process.
fn append(buffer: &mut Vec<u8>, piece: &[u8]) -> Result<(), FetchError> {
    let size = buffer.len() + piece.len();
    let failed = |_| FetchError::too_large(format!("no memory for {size} bytes"));
    buffer.try_reserve(piece.len()).map_err(failed)?;
    buffer.extend_from_slice(piece);
    Ok(())
}

impl Kept {
    fn gather(&mut self, piece: &[u8], taken_bytes: u64) -> Result<bool, FetchError> {
        append(&mut self.data, piece)?;
        let size = self.data.len() as u64;
        if self.keep > 0 {
            self.full |= size >= self.keep;
        } else if size > self.limit {
            return Err(FetchError::too_large(format!("more than {} bytes decoded", self.limit)));
        } else if size > RATIO_FLOOR_BYTES && size as f64 > self.ratio * taken_bytes as f64 {
            let ratio = self.ratio;
            return Err(FetchError::too_large(format!("ratio over {ratio}: {taken_bytes} bytes make {size}")));
        }
        Ok(!self.full)
    }
}

impl Body {
    /// Memory follows what arrives, at most one read ahead of it. `data`: an empty buffer.
    pub fn new(
        config: &Config,
        codings: Codings,
        keep: u64,
        max_bytes: u64,
        length: Length,
        mut data: Vec<u8>,
    ) -> Body {
        let or = |limit: u64| if max_bytes > 0 { max_bytes } else { limit };
        let wire = (config.raw_capture && !codings.is_empty()).then(Vec::new);
        let expected = if let Length::Known(size) = length { size } else { 0 };
        if codings.is_empty() {
            data.reserve(expected.min(RESERVE_BYTES) as usize);
        }
        let ends = length != Length::UntilClose && expected <= WHOLE_BYTES as u64;
        let whole = ends && keep == 0 && codings.is_gzip();
        let decoding = if whole { Decoding::Whole(Vec::with_capacity(expected as usize)) } else { Decoding::Stream };
        let kept = Kept { data, limit: or(config.max_body_bytes), keep, ratio: config.max_ratio, full: false };
        let wire_limit = or(config.max_wire_bytes);
        Body { codings, kept, decoding, taken_bytes: 0, wire, wire_limit, wire_bytes: 0 }
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
            append(form, data)?;
        }
        match &mut self.decoding {
            Decoding::Whole(collected) => {
                append(collected, data)?;
                if collected.len() > WHOLE_BYTES {
                    self.decoding = Decoding::Backlog(std::mem::take(collected), 0);
                }
            }
            Decoding::Backlog(collected, _) => append(collected, data)?,
            Decoding::Stream => self.decode(data)?,
        }
        if self.kept.keep > 0 && wire >= self.wire_limit {
            self.kept.full = true;
        }
        Ok(!self.kept.full)
    }

    fn decode(&mut self, data: &[u8]) -> Result<(), FetchError> {
        self.taken_bytes += data.len() as u64;
        let (kept, taken_bytes) = (&mut self.kept, self.taken_bytes);
        self.codings.pump(data, &mut |piece| kept.gather(piece, taken_bytes))?;
        Ok(())
    }

    /// No further bytes follow: a collected body is decoded, or becomes a backlog.
    pub fn complete(&mut self) {
        let Decoding::Whole(collected) = &mut self.decoding else { return };
        let room = RESERVE_BYTES.min(self.kept.limit);
        self.decoding = if inflate(collected, room, &mut self.kept.data) {
            self.codings = Codings::default();
            Decoding::Stream
        } else {
            Decoding::Backlog(std::mem::take(collected), 0)
        };
    }

    /// Whether collected bytes are left for `decode_backlog`.
    pub fn has_backlog(&self) -> bool {
        matches!(self.decoding, Decoding::Backlog(..))
    }

    /// Decodes the next few collected bytes.
    pub fn decode_backlog(&mut self) -> Result<(), FetchError> {
        let Decoding::Backlog(collected, from) = &mut self.decoding else { return Ok(()) };
        let (collected, from) = (std::mem::take(collected), *from);
        let until = collected.len().min(from + STEP_BYTES);
        self.decode(&collected[from..until])?;
        let left = until < collected.len();
        self.decoding = if left { Decoding::Backlog(collected, until) } else { Decoding::Stream };
        Ok(())
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
