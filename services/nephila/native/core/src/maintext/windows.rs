//! Columns smoothed over the neighbouring lines: the Gaussian of the source paper P1, and a wide flat window.

/// exp(-x²/2σ²) scaled to a sum of 1,024 on both sides, σ = 1.5 lines; the middle first.
pub const GAUSS_NARROW: [i32; 6] = [272, 218, 112, 37, 8, 1];
/// σ = 4 lines.
pub const GAUSS_WIDE: [i32; 13] = [102, 99, 90, 77, 62, 47, 33, 22, 14, 8, 5, 2, 1];
/// Lines on each side of the flat window.
const FLAT: usize = 15;

/// Zero beyond the ends. Values up to 600: the sums stay far below 2^31. O(lines · weights).
#[inline(always)]
pub fn gauss(column: &[i32], weights: &[i32]) -> Vec<i32> {
    let (count, side) = (column.len(), weights.len() - 1);
    let mut padded = vec![0; count + 2 * side];
    padded[side..side + count].copy_from_slice(column);
    let mut sums: Vec<i32> = column.iter().map(|value| value * weights[0]).collect();
    for (at, weight) in weights.iter().enumerate().skip(1) {
        // One weight after the other over all lines: that is vector code.
        let (above, below) = (&padded[side - at..], &padded[side + at..]);
        for (sum, (a, b)) in sums.iter_mut().zip(above.iter().zip(below)) {
            *sum += weight * (a + b);
        }
    }
    for sum in &mut sums {
        *sum >>= 10;
    }
    sums
}

/// The mean over `FLAT` lines on both sides. O(lines).
#[inline(always)]
pub fn flat(column: &[i32]) -> Vec<i32> {
    let mut sums = Vec::with_capacity(column.len() + 1);
    let mut sum = 0i64;
    sums.push(sum);
    for value in column {
        sum += i64::from(*value);
        sums.push(sum);
    }
    let last = column.len();
    (0..last)
        .map(|at| ((sums[(at + FLAT + 1).min(last)] - sums[at.saturating_sub(FLAT)]) / (2 * FLAT as i64 + 1)) as i32)
        .collect()
}
