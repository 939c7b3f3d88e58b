//! Sixteen bytes at a time: which of them are of some kind, as a set with a bit for each.

/// Sixteen bytes of a text. Sets of them: bit `i` is byte `i`.
#[derive(Clone, Copy)]
pub struct Sixteen(imp::Bytes);

/// Eight bytes from `at` on; NULs behind the end.
#[inline(always)]
pub fn eight(text: &[u8], at: usize) -> u64 {
    if let Some(word) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        return u64::from_le_bytes(*word);
    }
    match text.last_chunk::<8>() {
        // The last eight, less those before `at`.
        Some(word) if at < text.len() => u64::from_le_bytes(*word) >> (8 * (at + 8 - text.len())),
        _ => text.iter().skip(at).rev().fold(0, |word, b| word << 8 | u64::from(*b)),
    }
}

/// Sixteen bytes from `at` on, the first one lowest; NULs behind the end.
#[inline(always)]
pub fn sixteen(text: &[u8], at: usize) -> u128 {
    match text.get(at..).and_then(|rest| rest.first_chunk::<16>()) {
        Some(word) => u128::from_le_bytes(*word),
        None => u128::from(eight(text, at)) | u128::from(eight(text, at + 8)) << 64,
    }
}

impl Sixteen {
    #[inline(always)]
    pub fn of(bytes: &[u8; 16]) -> Self {
        Sixteen(imp::Bytes::load(bytes))
    }

    /// Those from `at` on; NULs behind the end.
    #[inline(always)]
    pub fn at(text: &[u8], at: usize) -> Self {
        match text.get(at..).and_then(|rest| rest.first_chunk::<16>()) {
            Some(bytes) => Self::of(bytes),
            None => Self::of(&sixteen(text, at).to_le_bytes()),
        }
    }

    #[inline(always)]
    pub fn is(self, byte: u8) -> u32 {
        self.0.is(byte)
    }

    /// Those that are not ASCII.
    #[inline(always)]
    pub fn high(self) -> u32 {
        self.0.high()
    }

    /// `first` to `last`; `last` is below 127.
    #[inline(always)]
    pub fn within(self, first: u8, last: u8) -> u32 {
        self.0.within(first, last)
    }
}

#[cfg(target_arch = "x86_64")]
mod imp {
    use std::arch::x86_64::*;

    #[derive(Clone, Copy)]
    pub struct Bytes(__m128i);

    // SAFETY of all: SSE2 is part of x86-64.
    impl Bytes {
        #[inline(always)]
        pub fn load(bytes: &[u8; 16]) -> Self {
            // SAFETY: 16 bytes.
            Bytes(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
        }

        #[inline(always)]
        pub fn high(self) -> u32 {
            unsafe { _mm_movemask_epi8(self.0) as u32 }
        }

        #[inline(always)]
        pub fn is(self, byte: u8) -> u32 {
            unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(self.0, _mm_set1_epi8(byte as i8))) as u32 }
        }

        #[inline(always)]
        pub fn within(self, first: u8, last: u8) -> u32 {
            unsafe {
                let above = _mm_sub_epi8(self.0, _mm_set1_epi8(first as i8));
                let least = _mm_min_epu8(above, _mm_set1_epi8((last - first) as i8));
                _mm_movemask_epi8(_mm_cmpeq_epi8(above, least)) as u32
            }
        }
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
mod plain {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;

    #[derive(Clone, Copy)]
    pub struct Bytes([u64; 2]);

    /// High bits of the bytes to eight bits side by side: no two products meet.
    #[inline(always)]
    fn packed(marks: [u64; 2]) -> u32 {
        let [low, high] = marks.map(|marks| ((marks >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32);
        low | high << 8
    }

    impl Bytes {
        #[inline(always)]
        pub fn load(bytes: &[u8; 16]) -> Self {
            let word = u128::from_le_bytes(*bytes);
            Bytes([word as u64, (word >> 64) as u64])
        }

        #[inline(always)]
        pub fn high(self) -> u32 {
            packed(self.0.map(|word| word & HIGHS))
        }

        #[inline(always)]
        pub fn is(self, byte: u8) -> u32 {
            packed(self.0.map(|word| {
                let other = word ^ (ONES * u64::from(byte));
                !(((other & !HIGHS) + !HIGHS) | other) & HIGHS
            }))
        }

        #[inline(always)]
        pub fn within(self, first: u8, last: u8) -> u32 {
            packed(self.0.map(|word| {
                let low = word & !HIGHS;
                let from = |byte: u8| low + ONES * u64::from(0x80 - byte);
                from(first) & !from(last + 1) & !word & HIGHS
            }))
        }
    }
}
#[cfg(not(target_arch = "x86_64"))]
use plain as imp;

#[cfg(test)]
mod tests {
    use super::{plain, sixteen, Sixteen};

    #[test]
    fn sets_hold_the_bytes_of_their_kind() {
        for start in 0..=255u8 {
            let bytes: [u8; 16] = std::array::from_fn(|at| start.wrapping_add(at as u8 * 17));
            let set = |is: &dyn Fn(u8) -> bool| bytes.iter().rev().fold(0, |set, b| set << 1 | u32::from(is(*b)));
            assert_eq!(Sixteen::of(&bytes).high(), set(&|b| !b.is_ascii()));
            assert_eq!(plain::Bytes::load(&bytes).high(), set(&|b| !b.is_ascii()));
            for byte in 0..=255 {
                assert_eq!(Sixteen::of(&bytes).is(byte), set(&|b| b == byte));
                assert_eq!(plain::Bytes::load(&bytes).is(byte), set(&|b| b == byte));
            }
            for (first, last) in [(0, 0x1F), (0, b' '), (b'a', b'z'), (b'A', b'Z'), (b'0', b'9'), (126, 126)] {
                assert_eq!(Sixteen::of(&bytes).within(first, last), set(&|b| (first..=last).contains(&b)));
                assert_eq!(plain::Bytes::load(&bytes).within(first, last), set(&|b| (first..=last).contains(&b)));
            }
        }
    }

    #[test]
    fn behind_the_end_are_nuls() {
        let text: Vec<u8> = (1..=40).collect();
        for size in 0..=40 {
            for at in 0..=size + 1 {
                let bytes = sixteen(&text[..size], at).to_le_bytes();
                for (place, byte) in bytes.into_iter().enumerate() {
                    assert_eq!(byte, text[..size].get(at + place).copied().unwrap_or(0));
                }
                assert_eq!(
                    Sixteen::at(&text[..size], at).is(0).count_ones() as usize,
                    16 - (size - at.min(size)).min(16)
                );
            }
        }
    }
}
