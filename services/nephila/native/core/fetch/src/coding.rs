//! Decoders of content codings with bounded output: gzip and zstd (several members), deflate (zlib or raw), br.
//!
//! A decoder hands over at most PIECE_BYTES at a time, so that a decompression bomb costs one piece of memory before
//! the limits of `body` stop it.

use brotli_decompressor::{Allocator, BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};
use memchr::memchr;
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use crate::error::FetchError;

pub const PIECE_BYTES: usize = 64 << 10;
const MAX_CODINGS: usize = 2;
/// Gzip members or zstd frames in one body; concatenated log files have a few.
const MAX_MEMBERS: u32 = 1000;
/// RFC 9659: a content coding needs no larger window than 8 MiB.
const ZSTD_WINDOW_LOG: u32 = 23;
/// Bytes of the header of a gzip member: browsers' servers send ten, a file's name and comment are short.
const MAX_GZIP_HEADER: usize = 4096;
/// Checksum and size at the end of a gzip member.
const GZIP_TRAILER: usize = 8;
/// Values that servers send and that are not codings; browsers read the body unchanged.
const NO_CODING: [&str; 10] = ["", "identity", "none", "binary", "8bit", "7bit", "utf-8", "utf8", "iso-8859-1", "text"];
/// Output of a coding that is the input of another one, over its own input. Compressed data does not compress again.
const NESTED_TIMES: u64 = 4;
const NESTED_FLOOR_BYTES: u64 = 64 << 10;

/// Takes decoded bytes; false: no more are wanted.
pub type Sink<'a> = dyn FnMut(&[u8]) -> Result<bool, FetchError> + 'a;

type Brotli = BrotliState<CarefulAlloc, CarefulAlloc, CarefulAlloc>;

/// Memory of a decoder. A failed allocation ends the stream, and not the process: the decoder gets no cells.
#[derive(Default)]
struct CarefulAlloc(StandardAlloc);

impl<T: Clone + Default> Allocator<T> for CarefulAlloc
where
    StandardAlloc: Allocator<T>,
{
    type AllocatedMemory = <StandardAlloc as Allocator<T>>::AllocatedMemory;

    fn alloc_cell(&mut self, cells: usize) -> Self::AllocatedMemory {
        match Vec::<T>::new().try_reserve_exact(cells) {
            Ok(()) => self.0.alloc_cell(cells),
            Err(_) => Self::AllocatedMemory::default(),
        }
    }

    fn free_cell(&mut self, memory: Self::AllocatedMemory) {
        self.0.free_cell(memory);
    }
}

enum Kind {
    /// None until it begins.
    Gzip(Option<Decompress>),
    Zstd(Box<DCtx<'static>>),
    /// None until the first two bytes tell zlib from raw deflate.
    Deflate(Option<Decompress>),
    Brotli(Box<Brotli>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Before,
    Within,
    /// Bytes of the trailer that have not arrived. They are skipped: a body without them is whole, as in browsers.
    Trailer(usize),
    /// A member has ended; another one, padding or junk follows.
    Behind,
    /// Bytes behind the stream are ignored, as clients do.
    Junk,
}

pub struct Decoder {
    name: &'static str,
    kind: Kind,
    place: Place,
    members: u32,
    start: Vec<u8>,
    /// One piece; empty until the first step.
    out: Vec<u8>,
}

struct Step {
    used: usize,
    ended: bool,
    wanted: bool,
}

impl Decoder {
    fn new(name: &'static str, kind: Kind) -> Decoder {
        Decoder { name, kind, place: Place::Before, members: 1, start: Vec::new(), out: Vec::new() }
    }

    fn of(name: &str) -> Option<Decoder> {
        Some(match name {
            "gzip" | "x-gzip" => Decoder::new("gzip", Kind::Gzip(None)),
            "deflate" | "x-deflate" => Decoder::new("deflate", Kind::Deflate(None)),
            "br" => Decoder::new("br", Kind::Brotli(Box::new(brotli()))),
            "zstd" => Decoder::new("zstd", Kind::Zstd(Box::new(zstd()))),
            _ => return None,
        })
    }

    fn broken(&self) -> FetchError {
        FetchError::encoding(format!("broken {} stream", self.name))
    }

    /// False: the sink wants no more.
    fn pump(&mut self, data: &[u8], sink: &mut Sink<'_>) -> Result<bool, FetchError> {
        let joined: Vec<u8>;
        let mut rest = data;
        if !self.start.is_empty() {
            let mut whole = std::mem::take(&mut self.start);
            whole.extend_from_slice(data);
            joined = whole;
            rest = &joined;
        }
        while !rest.is_empty() {
            match self.place {
                Place::Junk => break,
                Place::Behind => {
                    if !self.next_member(rest)? {
                        break;
                    }
                }
                Place::Before if matches!(self.kind, Kind::Deflate(None)) => {
                    if rest.len() < 2 {
                        self.start = rest.to_vec();
                        break;
                    }
                    let zlib = rest[0] & 0x0f == 8 && u16::from_be_bytes([rest[0], rest[1]]) % 31 == 0;
                    if zlib {
                        if rest[1] & 0x20 != 0 {
                            return Err(self.broken()); // a preset dictionary, which nobody has
                        }
                        rest = &rest[2..];
                    }
                    self.kind = Kind::Deflate(Some(Decompress::new(false)));
                    self.place = Place::Within;
                }
                Place::Before => {
                    if let Kind::Gzip(inner) = &mut self.kind {
                        match gzip_header(rest) {
                            Some(Some(length)) => rest = &rest[length..],
                            Some(None) if rest.len() < MAX_GZIP_HEADER => {
                                self.start = rest.to_vec();
                                break;
                            }
                            _ => return Err(self.broken()),
                        }
                        *inner = Some(Decompress::new(false));
                    }
                    self.place = Place::Within;
                }
                Place::Trailer(left) => {
                    let size = left.min(rest.len());
                    rest = &rest[size..];
                    self.place = if size == left { Place::Behind } else { Place::Trailer(left - size) };
                }
                Place::Within => {
                    let step = self.step(rest, sink)?;
                    if !step.wanted {
                        return Ok(false);
                    }
                    rest = &rest[step.used..];
                    if step.ended {
                        self.place = match self.kind {
                            Kind::Gzip(_) => Place::Trailer(GZIP_TRAILER),
                            Kind::Zstd(_) => Place::Behind,
                            Kind::Deflate(_) | Kind::Brotli(_) => Place::Junk,
                        };
                    }
                }
            }
        }
        Ok(true)
    }

    /// Whether a member begins here; fewer bytes than tell it are kept.
    fn next_member(&mut self, rest: &[u8]) -> Result<bool, FetchError> {
        let magic = if matches!(self.kind, Kind::Gzip(_)) { 2 } else { 4 };
        if rest.len() < magic {
            self.start = rest.to_vec();
            return Ok(false);
        }
        let begins = match self.kind {
            Kind::Gzip(_) => rest[..2] == [0x1f, 0x8b],
            _ => {
                let skippable = rest[1..4] == [0x2a, 0x4d, 0x18] && (0x50..=0x5f).contains(&rest[0]);
                skippable || rest[..4] == [0x28, 0xb5, 0x2f, 0xfd]
            }
        };
        if !begins {
            self.place = Place::Junk;
            return Ok(false);
        }
        self.members += 1;
        if self.members > MAX_MEMBERS {
            return Err(FetchError::encoding(format!("over {MAX_MEMBERS} {} members", self.name)));
        }
        match &mut self.kind {
            Kind::Gzip(inner) => *inner = None,
            Kind::Zstd(inner) => **inner = zstd(),
            _ => unreachable!("only gzip and zstd have members"),
        }
        self.place = Place::Before;
        Ok(true)
    }

    /// Decodes until the input is used up, the member ends or the sink wants no more.
    fn step(&mut self, data: &[u8], sink: &mut Sink<'_>) -> Result<Step, FetchError> {
        let mut used = 0;
        self.out.resize(PIECE_BYTES, 0);
        loop {
            let (took, made, ended) = self.once(&data[used..]).ok_or_else(|| self.broken())?;
            used += took;
            if made > 0 && !sink(&self.out[..made])? {
                return Ok(Step { used, ended, wanted: false });
            }
            // A full piece: there may be more output without further input.
            if ended || (used == data.len() && made < self.out.len()) {
                return Ok(Step { used, ended, wanted: true });
            }
            if took == 0 && made == 0 {
                return Err(self.broken());
            }
        }
    }

    /// One call of the library: bytes used, bytes made, whether the member has ended. None: invalid data.
    fn once(&mut self, data: &[u8]) -> Option<(usize, usize, bool)> {
        match &mut self.kind {
            Kind::Gzip(Some(inner)) | Kind::Deflate(Some(inner)) => {
                let (before_in, before_out) = (inner.total_in(), inner.total_out());
                let status = inner.decompress(data, &mut self.out, FlushDecompress::None).ok()?;
                let took = (inner.total_in() - before_in) as usize;
                let made = (inner.total_out() - before_out) as usize;
                Some((took, made, status == Status::StreamEnd))
            }
            Kind::Gzip(None) | Kind::Deflate(None) => unreachable!("begun before the first step"),
            Kind::Zstd(inner) => {
                let mut input = InBuffer::around(data);
                let mut output = OutBuffer::around(&mut self.out[..]);
                let left = inner.decompress_stream(&mut output, &mut input).ok()?;
                Some((input.pos(), output.pos(), left == 0))
            }
            Kind::Brotli(inner) => {
                let (mut left_in, mut took) = (data.len(), 0);
                let (mut left_out, mut made, mut total) = (self.out.len(), 0, 0);
                let result = BrotliDecompressStream(
                    &mut left_in,
                    &mut took,
                    data,
                    &mut left_out,
                    &mut made,
                    &mut self.out,
                    &mut total,
                    inner,
                );
                match result {
                    BrotliResult::ResultFailure => None,
                    BrotliResult::ResultSuccess => Some((took, made, true)),
                    BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => Some((took, made, false)),
                }
            }
        }
    }

    fn finish(&self) -> Result<(), FetchError> {
        let torn = matches!(self.place, Place::Within) || (self.place == Place::Before && !self.start.is_empty());
        if torn {
            return Err(FetchError::encoding(format!("the {} stream ends early", self.name)));
        }
        Ok(())
    }
}

/// Length of the header of a gzip member (RFC 1952 2.3); Some(None): it has not arrived as a whole, None: it is none.
fn gzip_header(data: &[u8]) -> Option<Option<usize>> {
    let start = [0x1f, 0x8b, 8];
    if data.iter().zip(start).any(|(byte, right)| *byte != right) {
        return None;
    }
    let Some(&flags) = data.get(3) else { return Some(None) };
    if flags & 0xe0 != 0 {
        return None;
    }
    let mut at = 10;
    if flags & 4 != 0 {
        let Some(&[low, high]) = data.get(at..at + 2) else { return Some(None) };
        at += 2 + usize::from(u16::from_le_bytes([low, high]));
    }
    for text in [8, 16] {
        if flags & text != 0 {
            let Some(end) = data.get(at..).and_then(|rest| memchr(0, rest)) else { return Some(None) };
            at += end + 1;
        }
    }
    if flags & 2 != 0 {
        at += 2;
    }
    Some((at <= data.len()).then_some(at))
}

fn brotli() -> Brotli {
    // Strict: windows as in RFC 7932, at most 16 MiB. A "large window" is no content coding, and takes 1 GiB.
    BrotliState::new_strict(CarefulAlloc::default(), CarefulAlloc::default(), CarefulAlloc::default())
}

fn zstd() -> DCtx<'static> {
    let mut inner = DCtx::create();
    inner.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG)).expect("a window of 8 MiB is valid");
    inner
}

/// The decoders of a Content-Encoding header.
#[derive(Default)]
pub struct Codings {
    /// Outermost first.
    decoders: Vec<Decoder>,
    /// Bytes that may still pass between two codings.
    nested_left: u64,
}

impl Codings {
    /// FetchError (encoding) for an unknown coding and for more than two.
    pub fn of(header: &str) -> Result<Codings, FetchError> {
        let lower = header.to_ascii_lowercase();
        let names: Vec<&str> = lower.split(',').map(str::trim).filter(|name| !NO_CODING.contains(name)).collect();
        if names.len() > MAX_CODINGS {
            return Err(FetchError::encoding(format!("{} nested content codings", names.len())));
        }
        let mut decoders = Vec::new();
        for name in names.iter().rev() {
            let shown: String = name.chars().take(30).collect();
            let unknown = || FetchError::encoding(format!("content coding {shown:?} is not supported"));
            decoders.push(Decoder::of(name).ok_or_else(unknown)?);
        }
        Ok(Codings { decoders, nested_left: NESTED_FLOOR_BYTES })
    }

    pub fn is_empty(&self) -> bool {
        self.decoders.is_empty()
    }

    /// gzip alone.
    pub fn is_gzip(&self) -> bool {
        matches!(&self.decoders[..], [one] if matches!(one.kind, Kind::Gzip(_)))
    }

    /// Decodes `data`; false: the sink wants no more.
    pub fn pump(&mut self, data: &[u8], sink: &mut Sink<'_>) -> Result<bool, FetchError> {
        match &mut self.decoders[..] {
            [] => sink(data),
            [one] => one.pump(data, sink),
            [outer, inner] => {
                self.nested_left += NESTED_TIMES * data.len() as u64;
                let left = &mut self.nested_left;
                outer.pump(data, &mut |piece| {
                    *left = left.checked_sub(piece.len() as u64).ok_or_else(|| {
                        let times = NESTED_TIMES;
                        FetchError::too_large(format!("between two content codings over {times} times the bytes sent"))
                    })?;
                    inner.pump(piece, sink)
                })
            }
            _ => unreachable!("two codings at most"),
        }
    }

    /// FetchError (encoding) when a stream is not complete. A stream without a byte is.
    pub fn finish(&self) -> Result<(), FetchError> {
        self.decoders.iter().try_for_each(Decoder::finish)
    }
}
