//! Which runs a checkpoint writes again, together with what is new: size tiers, as in a log-structured merge tree.
//!
//! A tier is a factor of four in size. Four of a tier become one of the next, so a URL is written O(log4 n) times; more
//! than `MOST` runs are never left. Sizes are what is still referred to: a run that is mostly consumed sinks and goes.

const WAYS: usize = 4;
const SMALLEST: u64 = 4 << 20;
/// Open runs after a checkpoint, the new one included.
pub const MOST: usize = 8;

fn tier(bytes: u64) -> u32 {
    (bytes / SMALLEST).checked_ilog(WAYS as u64).map_or(0, |tier| tier + 1)
}

/// The slots to merge with `fresh` new bytes, of runs (slot, bytes left).
pub fn choose(mut runs: Vec<(u16, u64)>, fresh: u64) -> Vec<u16> {
    runs.sort_unstable_by_key(|(slot, bytes)| (*bytes, *slot));
    let (mut taken, mut bytes) = (0, fresh);
    loop {
        let like = runs[taken..].iter().take_while(|(_, size)| tier(*size) <= tier(bytes)).count();
        if like + 1 < WAYS {
            break;
        }
        bytes += runs[taken..taken + like].iter().map(|(_, size)| size).sum::<u64>();
        taken += like;
    }
    if fresh > 0 || taken > 0 {
        taken = taken.max((runs.len() + 1).saturating_sub(MOST));
    }
    runs[..taken].iter().map(|(slot, _)| *slot).collect()
}
