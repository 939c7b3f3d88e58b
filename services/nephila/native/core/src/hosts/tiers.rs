//! The runs that a checkpoint rewrites together with new URLs: size tiers, as in a log-structured merge tree.
//!
//! A tier is a factor of six in size. Six of a tier become one of the next, so a URL is written O(log6 n) times; more
//! than `CROWDED` runs are never left, nor more than `MOST` where one checkpoint can do it all. A size counts the
//! entries that are still referred to, and a run of which less than a quarter is left is rewritten, so files are at
//! most four times as large as the queues.

const WAYS: usize = 6;
const SMALLEST: u64 = 4 << 20;
const SPARSE: u64 = 4;
/// Open runs after a checkpoint that could merge all that was chosen, the new one included.
const MOST: usize = 10;
/// From so many open runs on a checkpoint merges all that is chosen, however long that takes.
pub const CROWDED: usize = 2 * MOST;

/// What a choice looks at.
#[derive(Clone, Copy)]
pub struct Size {
    pub slot: u16,
    pub left: u64,
    pub bytes: u64,
}

fn tier(bytes: u64) -> u32 {
    (bytes / SMALLEST).checked_ilog(WAYS as u64).map_or(0, |tier| tier + 1)
}

/// The slots to merge with `fresh` new bytes.
pub fn choose(runs: impl Iterator<Item = Size>, fresh: u64) -> Vec<u16> {
    let (sparse, mut runs): (Vec<Size>, Vec<Size>) = runs.partition(|run| run.left * SPARSE < run.bytes);
    runs.sort_unstable_by_key(|run| (run.left, run.slot));
    let (mut taken, mut bytes) = (0, fresh + sparse.iter().map(|run| run.left).sum::<u64>());
    loop {
        let like = runs[taken..].iter().take_while(|run| tier(run.left) <= tier(bytes)).count();
        if like + 1 < WAYS {
            break;
        }
        bytes += runs[taken..taken + like].iter().map(|run| run.left).sum::<u64>();
        taken += like;
    }
    if bytes > 0 {
        taken = taken.max((runs.len() + 1).saturating_sub(MOST));
    }
    sparse.iter().chain(&runs[..taken]).map(|run| run.slot).collect()
}
