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

/// The mean over `FLAT` lines on both sides. Values up to 600 of 2^16 lines: the sums are below 2^31. O(lines).
#[inline(always)]
pub fn flat(column: &[i32]) -> Vec<i32> {
    let count = column.len();
    // Sums up to each line, those beyond the ends included.
    let mut sums = Vec::with_capacity(count + 2 * FLAT + 1);
    sums.resize(FLAT + 1, 0);
    let mut sum = 0;
    for value in column {
        sum += value;
        sums.push(sum);
    }
    sums.resize(count + 2 * FLAT + 1, sum);
    let mut means = vec![0; count];
    for (mean, (from, to)) in means.iter_mut().zip(sums.iter().zip(&sums[2 * FLAT + 1..])) {
        *mean = (to - from) / (2 * FLAT as i32 + 1);
    }
    means
}
