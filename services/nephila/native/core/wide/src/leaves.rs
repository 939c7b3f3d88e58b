//! Sums over small symmetric trees of four levels, many lines at a time.

/// Lines whose sums are made together: columns are padded to a multiple of it.
pub const LINES: usize = 32;

/// A symmetric tree: bit `i` of the leaf of a line is whether its number in `columns[i]` is above `thresholds[i]`.
pub struct Tree {
    pub columns: [u16; 4],
    pub thresholds: [i16; 4],
    /// Low and high bytes of the 16 leaves.
    pub low: [u8; 16],
    pub high: [u8; 16],
}

/// Add the leaf of each tree to the sum of each line. O(lines · trees).
///
/// `columns`: one behind the other, `stride` numbers each; the lines are those from `start` on, a multiple of `LINES`
/// of them. The sums of all trees must be within i16.
pub fn add_leaves(trees: &[Tree], columns: &[i16], stride: usize, start: usize, sums: &mut [i16]) {
    assert!(sums.len() % LINES == 0 && start + sums.len() <= stride);
    #[cfg(target_arch = "x86_64")]
    if crate::has_avx2() {
        // SAFETY: the processor has the instructions.
        return unsafe { x86::add_leaves(trees, columns, stride, start, sums) };
    }
    #[cfg(target_arch = "aarch64")]
    return arm::add_leaves(trees, columns, stride, start, sums);
    #[cfg(not(target_arch = "aarch64"))]
    plain(trees, columns, stride, start, sums);
}

/// The four columns of a tree, of the lines in question. Panics where there are none.
#[inline(always)]
fn of_tree<'c>(tree: &Tree, columns: &'c [i16], stride: usize, start: usize, count: usize) -> [&'c [i16]; 4] {
    tree.columns.map(|column| &columns[usize::from(column) * stride + start..][..count])
}

#[cfg(any(test, not(target_arch = "aarch64")))]
fn plain(trees: &[Tree], columns: &[i16], stride: usize, start: usize, sums: &mut [i16]) {
    for tree in trees {
        let of_tree = of_tree(tree, columns, stride, start, sums.len());
        for (at, sums) in sums.chunks_exact_mut(LINES).enumerate() {
            let mut leaf = [0u16; LINES];
            for level in 0..4 {
                let threshold = tree.thresholds[level];
                for (leaf, value) in leaf.iter_mut().zip(&of_tree[level][at * LINES..]) {
                    *leaf |= u16::from(*value > threshold) << level;
                }
            }
            for (sum, leaf) in sums.iter_mut().zip(leaf) {
                let leaf = usize::from(leaf & 15);
                *sum = sum.wrapping_add(i16::from_le_bytes([tree.low[leaf], tree.high[leaf]]));
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{of_tree, Tree, LINES};

    #[target_feature(enable = "avx2")]
    pub unsafe fn add_leaves(trees: &[Tree], columns: &[i16], stride: usize, start: usize, sums: &mut [i16]) {
        for tree in trees {
            let of_tree = of_tree(tree, columns, stride, start, sums.len());
            let thresholds = tree.thresholds.map(|one| _mm256_set1_epi16(one));
            // SAFETY: 16 bytes each.
            let (low, high) =
                unsafe { (_mm_loadu_si128(tree.low.as_ptr().cast()), _mm_loadu_si128(tree.high.as_ptr().cast())) };
            let (low, high) = (_mm256_broadcastsi128_si256(low), _mm256_broadcastsi128_si256(high));
            for (at, sums) in sums.chunks_exact_mut(LINES).enumerate() {
                let mut halves = [_mm256_setzero_si256(); 2];
                for (part, half) in halves.iter_mut().enumerate() {
                    for level in 0..4 {
                        let values = &of_tree[level][at * LINES + 16 * part..][..16];
                        // SAFETY: 16 numbers.
                        let values = unsafe { _mm256_loadu_si256(values.as_ptr().cast()) };
                        let above = _mm256_cmpgt_epi16(values, thresholds[level]);
                        *half = _mm256_or_si256(*half, _mm256_and_si256(above, _mm256_set1_epi16(1 << level)));
                    }
                }
                // Bytes are packed and unpacked by the same pattern of lanes, so the lines are in order again.
                let leaf = _mm256_packus_epi16(halves[0], halves[1]);
                let (low, high) = (_mm256_shuffle_epi8(low, leaf), _mm256_shuffle_epi8(high, leaf));
                let leaves = [_mm256_unpacklo_epi8(low, high), _mm256_unpackhi_epi8(low, high)];
                for (sums, leaves) in sums.chunks_exact_mut(16).zip(leaves) {
                    let place = sums.as_mut_ptr().cast();
                    // SAFETY: 16 numbers.
                    unsafe { _mm256_storeu_si256(place, _mm256_add_epi16(_mm256_loadu_si256(place), leaves)) };
                }
            }
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::aarch64::*;

    use super::{of_tree, Tree, LINES};

    pub fn add_leaves(trees: &[Tree], columns: &[i16], stride: usize, start: usize, sums: &mut [i16]) {
        for tree in trees {
            let of_tree = of_tree(tree, columns, stride, start, sums.len());
            for (at, sums) in sums.chunks_exact_mut(LINES).enumerate() {
                for (part, sums) in sums.chunks_exact_mut(16).enumerate() {
                    let from = at * LINES + 16 * part;
                    let values = of_tree.map(|column| column[from..][..16].first_chunk::<16>().unwrap_or(&[0; 16]));
                    // SAFETY: NEON is part of aarch64; tables and slices have the 16 elements that are read.
                    unsafe { add_sixteen(tree, values, sums) };
                }
            }
        }
    }

    /// `sums` has 16 numbers.
    #[inline(always)]
    unsafe fn add_sixteen(tree: &Tree, values: [&[i16; 16]; 4], sums: &mut [i16]) {
        // SAFETY: see the caller.
        unsafe {
            let mut halves = [vdupq_n_u16(0); 2];
            for (part, half) in halves.iter_mut().enumerate() {
                for level in 0..4 {
                    let numbers = vld1q_s16(values[level].as_ptr().add(8 * part));
                    let above = vcgtq_s16(numbers, vdupq_n_s16(tree.thresholds[level]));
                    *half = vorrq_u16(*half, vandq_u16(above, vdupq_n_u16(1 << level)));
                }
            }
            let leaf = vcombine_u8(vmovn_u16(halves[0]), vmovn_u16(halves[1]));
            let low = vqtbl1q_u8(vld1q_u8(tree.low.as_ptr()), leaf);
            let high = vqtbl1q_u8(vld1q_u8(tree.high.as_ptr()), leaf);
            let leaves = [vzip1q_u8(low, high), vzip2q_u8(low, high)];
            for (part, leaves) in leaves.into_iter().enumerate() {
                let place = sums.as_mut_ptr().add(8 * part);
                vst1q_s16(place, vaddq_s16(vld1q_s16(place), vreinterpretq_s16_u8(leaves)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{add_leaves, plain, Tree, LINES};

    #[test]
    fn vector_code_adds_what_plain_code_adds() {
        let mut state = 3_u64;
        let mut number = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as u32
        };
        let (columns, stride) = (9, 4 * LINES);
        let mut values: Vec<i16> = (0..columns * stride).map(|_| number() as i16 % 100).collect();
        values[..4].copy_from_slice(&[i16::MIN, i16::MAX, -1, 0]);
        let trees: Vec<Tree> = (0..50)
            .map(|_| Tree {
                columns: [(); 4].map(|()| (number() % columns as u32) as u16),
                thresholds: [(); 4].map(|()| number() as i16 % 100),
                low: [(); 16].map(|()| number() as u8),
                high: [(); 16].map(|()| [0, 0xFF, 1, 0xFE][number() as usize % 4]),
            })
            .collect();
        for (start, count) in [(0, stride), (LINES, 2 * LINES), (0, 0), (3 * LINES, LINES)] {
            let (mut found, mut wanted) = (vec![7; count], vec![7; count]);
            add_leaves(&trees, &values, stride, start, &mut found);
            plain(&trees, &values, stride, start, &mut wanted);
            assert_eq!(found, wanted);
            assert!(count == 0 || found.iter().any(|sum| *sum != found[0]));
        }
    }
}
