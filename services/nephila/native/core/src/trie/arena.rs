//! The memory of a region of the trie: blocks in chunks of at most 128 KB, and which of them are free.
//!
//! Invariant: a block never moves, begins at a multiple of 8 and is never at 0, so a reference (chunk and grain) fits
//! in 31 bits and 0 means "nothing". A block is whole cache lines, and begins with one in a chunk that could be
//! aligned. Chunks have one size once a region is not small, so that what one region gives back serves any other: the
//! heap is not fragmented, and large tries are in huge pages (slabs). Holes that no block fits in stay until the owner
//! copies the living blocks.

use super::slabs;

/// Unit of sizes: a cache line.
pub const LINE: usize = 64;
/// Unit of offsets.
const GRAIN: usize = 8;
/// Grains of a chunk: bits of their number in a reference.
const BITS: u32 = 14;
const FIRST: usize = 256;
const LARGEST: usize = (GRAIN << BITS) - 64;
/// Readable bytes behind the last block: rests and tags are read in words that may reach beyond it.
const SPARE: usize = 24;
/// Freed blocks up to this size (in lines) are kept for blocks of the same size; larger ones wait for the next copy.
const LISTED: usize = 20;

enum Chunk {
    Heap(Vec<u8>),
    Slab(&'static mut [u8]),
}

impl Chunk {
    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        match self {
            Chunk::Heap(bytes) => bytes,
            Chunk::Slab(bytes) => bytes,
        }
    }

    #[inline(always)]
    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Chunk::Heap(bytes) => bytes,
            Chunk::Slab(bytes) => bytes,
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Chunk::Slab(bytes) = self {
            slabs::give(std::mem::take(bytes));
        }
    }
}

#[derive(Default)]
pub struct Arena {
    chunks: Vec<Chunk>,
    /// Where the next block of the last chunk begins.
    fill: usize,
    /// By size in lines: the free blocks of that size. Not in the blocks: reading one costs a wait for memory.
    free: Vec<Vec<u32>>,
    used: usize,
    live: usize,
    /// Bytes that it was made for.
    expected: usize,
}

pub fn round(size: usize) -> usize {
    size.next_multiple_of(LINE)
}

impl Arena {
    /// An arena for about so many bytes: its first chunks are as large as they will be.
    pub fn expecting(bytes: usize) -> Self {
        Arena { expected: bytes, ..Arena::default() }
    }

    /// Reference of a block of at least `size` bytes, of any content. O(1).
    pub fn allocate(&mut self, size: usize) -> u32 {
        let lines = size.div_ceil(LINE);
        self.live += lines * LINE;
        if let Some(free) = self.free.get_mut(lines).and_then(Vec::pop) {
            return free;
        }
        let size = lines * LINE;
        if self.chunks.last().is_none_or(|chunk| self.fill + size + SPARE > chunk.bytes().len()) {
            self.add_chunk(size);
        }
        let at = self.fill;
        self.fill += size;
        self.used += size;
        ((self.chunks.len() - 1) << BITS | at / GRAIN) as u32
    }

    fn add_chunk(&mut self, size: usize) {
        let bytes = (self.used.max(self.expected) / 8).clamp(FIRST, LARGEST);
        let fits = bytes == LARGEST && size + LINE + SPARE <= slabs::CHUNK;
        let slab = if fits { slabs::take() } else { None };
        let chunk = match slab {
            Some(slab) => Chunk::Slab(slab),
            None => Chunk::Heap(vec![0; bytes.max(size + LINE + SPARE)]),
        };
        // The next line, and never at 0.
        let address = chunk.bytes().as_ptr() as usize;
        self.fill = (address + GRAIN).next_multiple_of(LINE) - address;
        if self.fill % GRAIN != 0 {
            self.fill = GRAIN;
        }
        self.chunks.push(chunk);
    }

    pub fn release(&mut self, reference: u32, size: usize) {
        let lines = size.div_ceil(LINE);
        self.live -= lines * LINE;
        if lines > LISTED {
            return;
        }
        if self.free.len() <= lines {
            self.free.reserve_exact(lines + 1 - self.free.len());
            self.free.resize_with(lines + 1, Vec::new);
        }
        self.free[lines].push(reference);
    }

    /// Bytes in allocated blocks.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Is an eighth of the memory holes? Small arenas may have more.
    pub fn wasteful(&self) -> bool {
        self.used - self.live > self.used / 8 + FIRST
    }

    /// Bytes of memory.
    pub fn nbytes(&self) -> usize {
        let chunks: usize = self.chunks.iter().map(|chunk| chunk.bytes().len()).sum();
        let free: usize = self.free.iter().map(|list| list.capacity() * 4).sum();
        let lists = self.free.capacity() * size_of::<Vec<u32>>() + self.chunks.capacity() * size_of::<Chunk>();
        chunks + free + lists
    }

    /// The block and the rest of its chunk.
    #[inline(always)]
    pub fn block(&self, reference: u32) -> &[u8] {
        &self.chunks[(reference >> BITS) as usize].bytes()[(reference as usize & ((1 << BITS) - 1)) * GRAIN..]
    }

    /// A block to read and another to write.
    pub fn pair(&mut self, from: u32, to: u32) -> (&[u8], &mut [u8]) {
        let place = |reference: u32| ((reference >> BITS) as usize, (reference as usize & ((1 << BITS) - 1)) * GRAIN);
        let ((source, first), (target, second)) = (place(from), place(to));
        if source < target {
            let (before, behind) = self.chunks.split_at_mut(target);
            (&before[source].bytes()[first..], &mut behind[0].bytes_mut()[second..])
        } else if source > target {
            let (before, behind) = self.chunks.split_at_mut(source);
            (&behind[0].bytes()[first..], &mut before[target].bytes_mut()[second..])
        } else if first < second {
            let (before, behind) = self.chunks[source].bytes_mut().split_at_mut(second);
            (&before[first..], behind)
        } else {
            let (before, behind) = self.chunks[source].bytes_mut().split_at_mut(first);
            (behind, &mut before[second..])
        }
    }

    #[inline(always)]
    pub fn block_mut(&mut self, reference: u32) -> &mut [u8] {
        &mut self.chunks[(reference >> BITS) as usize].bytes_mut()[(reference as usize & ((1 << BITS) - 1)) * GRAIN..]
    }
}

#[inline(always)]
pub fn u32_at(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(block[at..at + 4].try_into().unwrap())
}

#[inline(always)]
pub fn u64_at(block: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(block[at..at + 8].try_into().unwrap())
}

#[inline(always)]
pub fn u128_at(block: &[u8], at: usize) -> u128 {
    u128::from_le_bytes(block[at..at + 16].try_into().unwrap())
}

#[inline(always)]
pub fn put(block: &mut [u8], at: usize, value: &[u8]) {
    block[at..at + value.len()].copy_from_slice(value);
}
