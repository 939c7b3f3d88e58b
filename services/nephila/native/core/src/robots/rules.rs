//! Rules of one agent, packed for matching: the longest pattern that matches wins, Allow wins a tie (RFC 9309 2.2.2).
//!
//! Patterns without a star inside are two sorted tables, of prefixes and of whole paths. Each prefix knows the next
//! shorter prefix of itself, so that one binary search and a walk along at most `length of path` entries finds all that
//! match. Patterns with stars are tried from the strongest, each cut at its stars and matched leftmost: no
//! backtracking.
//!
//! Memory: 16 bytes a rule (20 with stars) and its pattern. A look-up: O(log rules × path) and, for each pattern with
//! stars that could still win, O(path + pattern).

use memchr::memmem;

/// Length of the pattern, then Allow, then the earlier line: the greater rank wins. 0 is no rule.
pub type Rank = u64;
const ALLOW: u64 = 1 << 31;
const LINES: u64 = ALLOW - 1;
const ROOT: u32 = u32::MAX;

/// Patterns with stars that are kept whole, in the order of the file: eight times what real files have. Beyond, a
/// Disallow counts as far as its first star and an Allow not at all, so that the difference is on the polite side.
const MAX_WILDS: usize = 4096;

fn rank_of(length: usize, allow: bool, line: u32) -> Rank {
    (length as u64) << 32 | if allow { ALLOW } else { 0 } | (LINES - u64::from(line).min(LINES))
}

/// The line of a rule, negative for a Disallow; 0 for no rule.
pub fn verdict_of(rank: Rank) -> i64 {
    match rank {
        0 => 0,
        _ if rank & ALLOW != 0 => (LINES - (rank & LINES)) as i64,
        _ => -((LINES - (rank & LINES)) as i64),
    }
}

/// A rule as written, its escapes normalised.
pub struct Rule {
    pub pattern: Vec<u8>,
    pub allow: bool,
    pub line: u32,
}

struct Entry {
    /// End of its text; it begins where the one before ends.
    end: u32,
    /// The longest other entry that is a prefix of this one, or ROOT.
    parent: u32,
    /// The strongest of this entry and its parents.
    rank: Rank,
}

/// Sorted texts with their ranks; each text once.
#[derive(Default)]
struct Table {
    text: Box<[u8]>,
    entries: Box<[Entry]>,
}

impl Table {
    fn new(mut found: Vec<(&[u8], Rank)>) -> Table {
        // The strongest of equal texts comes first and stays.
        found.sort_unstable_by(|a, b| a.0.cmp(b.0).then(b.1.cmp(&a.1)));
        found.dedup_by(|later, first| later.0 == first.0);
        let mut text = Vec::with_capacity(found.iter().map(|one| one.0.len()).sum());
        let entries = found.iter().map(|(one, rank)| {
            text.extend_from_slice(one);
            Entry { end: text.len() as u32, parent: ROOT, rank: *rank }
        });
        let entries: Box<[Entry]> = entries.collect();
        Table { text: text.into_boxed_slice(), entries }
    }

    /// Of prefixes: link each to its parent. O(entries).
    fn linked(mut self) -> Table {
        let mut chain: Vec<u32> = Vec::new();
        for at in 0..self.entries.len() {
            while chain.last().is_some_and(|last| !self.at(at).starts_with(self.at(*last as usize))) {
                chain.pop();
            }
            if let Some(last) = chain.last() {
                self.entries[at].parent = *last;
                self.entries[at].rank = self.entries[at].rank.max(self.entries[*last as usize].rank);
            }
            chain.push(at as u32);
        }
        self
    }

    fn at(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.entries[at - 1].end as usize };
        &self.text[start..self.entries[at].end as usize]
    }

    /// How many texts are not above the path.
    fn up_to(&self, path: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.entries.len());
        while low < high {
            let middle = (low + high) / 2;
            if self.at(middle) <= path {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The strongest prefix of a path.
    fn prefix(&self, path: &[u8]) -> Rank {
        let Some(mut at) = self.up_to(path).checked_sub(1) else { return 0 };
        let last = self.at(at);
        let common = last.iter().zip(path).take_while(|(a, b)| a == b).count();
        // A text that is a prefix of the path is a prefix of this one as well: nothing else sorts between them.
        while self.at(at).len() > common {
            match self.entries[at].parent {
                ROOT => return 0,
                parent => at = parent as usize,
            }
        }
        self.entries[at].rank
    }

    /// The text that is the whole path.
    fn whole(&self, path: &[u8]) -> Rank {
        match self.up_to(path).checked_sub(1) {
            Some(at) if self.at(at) == path => self.entries[at].rank,
            _ => 0,
        }
    }

    fn size_bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.entries)
    }
}

struct Wild {
    /// Its text, stars included and a final `$` not; it begins where the one before ends.
    end: u32,
    anchored: bool,
    rank: Rank,
}

#[derive(Default)]
pub struct Rules {
    prefixes: Table,
    wholes: Table,
    wild_text: Box<[u8]>,
    /// The strongest first.
    wilds: Box<[Wild]>,
}

impl Rules {
    pub fn new(rules: &[Rule]) -> Rules {
        let (mut prefixes, mut wholes, mut wilds) = (Vec::new(), Vec::new(), Vec::new());
        for rule in rules {
            let rank = rank_of(rule.pattern.len(), rule.allow, rule.line);
            let (mut text, mut anchored) = match rule.pattern.strip_suffix(b"$") {
                Some(text) => (text, true),
                None => (&rule.pattern[..], false),
            };
            // A star at the end takes whatever follows: the end is no anchor behind it.
            while let Some(shorter) = text.strip_suffix(b"*") {
                (text, anchored) = (shorter, false);
            }
            if text.contains(&b'*') {
                wilds.push((text, anchored, rank));
            } else if anchored {
                wholes.push((text, rank));
            } else {
                prefixes.push((text, rank));
            }
        }
        wilds.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(b.2.cmp(&a.2)));
        wilds.dedup_by(|later, first| (later.0, later.1) == (first.0, first.1));
        if wilds.len() > MAX_WILDS {
            wilds.sort_unstable_by_key(|one| verdict_of(one.2).abs());
            let beyond = wilds.split_off(MAX_WILDS).into_iter().filter(|one| verdict_of(one.2) < 0);
            prefixes.extend(beyond.map(|one| (one.0.split(|byte| *byte == b'*').next().unwrap_or_default(), one.2)));
        }
        wilds.sort_unstable_by(|a, b| b.2.cmp(&a.2));
        let mut wild_text = Vec::with_capacity(wilds.iter().map(|one| one.0.len()).sum());
        let wilds = wilds.iter().map(|(text, anchored, rank)| {
            wild_text.extend_from_slice(text);
            Wild { end: wild_text.len() as u32, anchored: *anchored, rank: *rank }
        });
        let wilds = wilds.collect();
        let (prefixes, wholes) = (Table::new(prefixes).linked(), Table::new(wholes));
        Rules { prefixes, wholes, wild_text: wild_text.into_boxed_slice(), wilds }
    }

    /// The rule that decides about a path; 0 when none does.
    pub fn find(&self, path: &[u8]) -> Rank {
        let best = self.prefixes.prefix(path).max(self.wholes.whole(path));
        let mut start = 0;
        for wild in &self.wilds {
            let text = &self.wild_text[start..wild.end as usize];
            start = wild.end as usize;
            if wild.rank <= best {
                break;
            }
            if matches(text, wild.anchored, path) {
                return wild.rank;
            }
        }
        best
    }

    pub fn len(&self) -> usize {
        self.prefixes.entries.len() + self.wholes.entries.len() + self.wilds.len()
    }

    pub fn wilds(&self) -> usize {
        self.wilds.len()
    }

    pub fn size_bytes(&self) -> usize {
        let wilds = self.wild_text.len() + size_of_val(&*self.wilds);
        self.prefixes.size_bytes() + self.wholes.size_bytes() + wilds
    }
}

/// Leftmost matches suffice: a star takes any bytes. O(path + pattern).
fn matches(pattern: &[u8], anchored: bool, path: &[u8]) -> bool {
    let mut parts = pattern.split(|byte| *byte == b'*');
    let Some(mut rest) = parts.next().and_then(|prefix| path.strip_prefix(prefix)) else { return false };
    let mut part = parts.next();
    while let Some(one) = part {
        part = parts.next();
        if part.is_none() && anchored {
            return rest.ends_with(one);
        }
        match memmem::find(rest, one) {
            Some(at) => rest = &rest[at + one.len()..],
            None => return false,
        }
    }
    true
}
