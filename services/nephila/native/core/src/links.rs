//! From raw links to packed buffers: resolve, canonicalise, fingerprint, drop duplicates.

use std::collections::HashMap;

use nephila_wide::md5;
use url::Url;

use crate::encoding::{query_in, Queries};
use crate::entities;
use crate::page::{Href, Page, RawLink};
use crate::text::collapse_into;
use crate::urls::{self, Base, Refusal};

/// Longest anchor text in bytes.
const MAX_ANCHOR: usize = 200;
/// Longest href in bytes: what servers take. A longer one is a bad link.
const MAX_HREF: usize = 8192;
/// Bytes of all hrefs of a page, duplicates and too long ones included: every relative link costs its whole base.
const MAX_HREFS: usize = 16 << 20;

/// Bits of a link's flags for its place.
const IN_MAIN: u8 = 1 << 4;
const IN_NAV: u8 = 1 << 5;

/// The links of a page as columns; row i of each belongs to link i.
#[derive(Default)]
pub struct Links {
    pub urls: Vec<u8>,
    pub ends: Vec<u32>,
    pub fingerprints: Vec<u8>,
    pub host_spans: Vec<u32>,
    pub anchors: Vec<u8>,
    pub anchor_ends: Vec<u32>,
    pub flags: Vec<u8>,
    pub bad: u32,
    /// Links beyond a limit: of their number, of the bytes of all of them.
    pub left_out: u32,
    /// The link that a raw link came to; `NONE` where it came to none.
    of_raw: Vec<u32>,
}

const NONE: u32 = u32::MAX;

/// A resolved link before duplicates are dropped.
struct Row {
    /// Range in the blob of hrefs.
    href: (u32, u32),
    /// Range of the host key in the same blob.
    host: (u32, u32),
    /// Range in the blob of canonical forms; empty = the href is canonical.
    canonical: (u32, u32),
    raw: u32,
    key: [u8; 16],
}

/// The base that links resolve against: the first <base href> if it comes to an http(s) URL, else the document's URL.
pub fn base_of(page: &Page<'_>, document: Url, queries: Queries) -> Base {
    let own = page.head.base.and_then(|raw| {
        let decoded = entities::decode(raw, true, true);
        let reference = query_in(std::str::from_utf8(&decoded).ok()?.into(), queries);
        let href = urls::parse_http(&reference, Some(&document)).ok()?;
        Url::parse(&href.text).ok()
    });
    Base::new(own.unwrap_or(document), queries)
}

/// Resolve one reference to an href; empty if that is impossible or not http(s).
pub fn resolve_one(base: &Base, raw: &[u8]) -> String {
    let mut out = Vec::new();
    match std::str::from_utf8(raw).map(|raw| urls::resolve(base, raw, &mut out)) {
        Ok(Ok(_)) => String::from_utf8(out).unwrap_or_default(),
        _ => String::new(),
    }
}

/// Mark the links of these lines (rising): by the line in which their text begins, a picture's by the text
/// that follows it. O(occurrences + lines).
pub fn mark_main(page: &Page<'_>, named: &[u32], links: &mut Links) {
    let lines = &page.text.lines;
    let mut spots = page.spots.iter().peekable();
    for line in named {
        // Between this and the line before: text outside the main text, or up to this line.
        let line = *line as usize;
        let from = if line > 0 { lines[line - 1].start + lines[line - 1].len } else { 0 };
        let to = lines[line].start + lines[line].len;
        while spots.next_if(|spot| spot.at < from).is_some() {}
        while let Some(spot) = spots.next_if(|spot| spot.at < to) {
            if let Some(flags) = links.flags.get_mut(links.of_raw[spot.link as usize] as usize) {
                *flags |= IN_MAIN;
            }
        }
    }
}

/// All links of the page up to `MAX_HREFS`. O(bytes of hrefs), duplicates found by hash.
pub fn finish(page: &Page<'_>, base: &Base, max_links: usize) -> Links {
    let mut links = Links::default();
    let mut blob: Vec<u8> = Vec::with_capacity(page.links.len() * 80);
    let mut canonical: Vec<u8> = Vec::new();
    let mut rows: Vec<Row> = Vec::with_capacity(page.links.len());
    let mut spent = 0;
    for (index, raw) in page.links.iter().enumerate() {
        let from = blob.len() as u32;
        let found = match &raw.href {
            Href::Text(text) => urls::resolve(base, text, &mut blob),
            Href::Attribute(bytes) => {
                let decoded = entities::decode(bytes, true, true);
                // The input is valid UTF-8 and attributes begin and end at ASCII bytes.
                let text = std::str::from_utf8(&decoded).unwrap_or("");
                urls::resolve(base, text, &mut blob)
            }
        };
        let parts = match found {
            Ok(parts) => parts,
            Err(Refusal::Bad(_)) => {
                links.bad += 1;
                continue;
            }
            Err(Refusal::Scheme(_)) => continue,
        };
        let size = blob.len() - from as usize;
        spent += size;
        if spent > MAX_HREFS {
            links.left_out += (page.links.len() - index) as u32;
            break;
        }
        if size > MAX_HREF {
            links.bad += 1;
            blob.truncate(from as usize);
            continue;
        }
        let start = canonical.len() as u32;
        urls::canonicalise(&blob[from as usize..], parts, &mut canonical);
        rows.push(Row {
            href: (from, blob.len() as u32),
            host: (from + parts.host.0, from + parts.host.1),
            canonical: (start, canonical.len() as u32),
            raw: index as u32,
            key: [0; 16],
        });
    }
    fingerprint_rows(&mut rows, &blob, &canonical);
    pack(page, &rows, &blob, max_links, &mut links);
    links
}

fn cut(blob: &[u8], range: (u32, u32)) -> &[u8] {
    &blob[range.0 as usize..range.1 as usize]
}

fn fingerprint_rows(rows: &mut [Row], blob: &[u8], canonical: &[u8]) {
    // Hosts repeat: one MD5 each, and most often the host is that of the link before.
    let mut hosts: HashMap<&[u8], usize, foldhash::fast::RandomState> = HashMap::default();
    let mut names: Vec<&[u8]> = Vec::new();
    let mut of_row: Vec<usize> = Vec::with_capacity(rows.len());
    for row in rows.iter() {
        let host = cut(blob, row.host);
        let same = of_row.last().copied().filter(|at| names[*at] == host);
        of_row.push(same.unwrap_or_else(|| {
            *hosts.entry(host).or_insert_with(|| {
                names.push(host);
                names.len() - 1
            })
        }));
    }
    let mut prefixes = vec![[0u8; 4]; names.len()];
    md5::digest_all(names.len(), |at| names[at], |at, sum| prefixes[at].copy_from_slice(&sum[..4]));
    let mut sums = vec![[0u8; 12]; rows.len()];
    let message = |at: usize| {
        let row = &rows[at];
        if row.canonical.0 < row.canonical.1 {
            cut(canonical, row.canonical)
        } else {
            cut(blob, row.href)
        }
    };
    md5::digest_all(rows.len(), message, |at, sum| sums[at].copy_from_slice(&sum[..12]));
    for (at, row) in rows.iter_mut().enumerate() {
        row.key[..4].copy_from_slice(&prefixes[of_row[at]]);
        row.key[4..].copy_from_slice(&sums[at]);
    }
}

fn pack(page: &Page<'_>, rows: &[Row], blob: &[u8], max_links: usize, links: &mut Links) {
    let mut seen: HashMap<[u8; 16], u32, foldhash::fast::RandomState> =
        HashMap::with_capacity_and_hasher(rows.len(), Default::default());
    // Which row a link came from, and which raw link its anchor text.
    let mut anchors: Vec<u32> = Vec::with_capacity(rows.len());
    links.of_raw = vec![NONE; page.links.len()];
    links.urls.reserve(blob.len());
    links.fingerprints.reserve(rows.len() * 16);
    links.ends.reserve(rows.len());
    links.host_spans.reserve(rows.len() * 2);
    links.flags.reserve(rows.len());
    links.anchor_ends.reserve(rows.len());
    let size = |raw: &RawLink<'_>| (raw.anchor.1 - raw.anchor.0) as usize;
    links.anchors.reserve(page.links.iter().map(|raw| size(raw).min(MAX_ANCHOR)).sum());
    for row in rows {
        let raw = &page.links[row.raw as usize];
        if let Some(at) = seen.get(&row.key) {
            if *at == NONE {
                continue;
            }
            links.of_raw[row.raw as usize] = *at;
            let at = *at as usize;
            if !raw.nofollow {
                links.flags[at] &= !1;
            }
            if !raw.in_chrome {
                links.flags[at] &= !IN_NAV;
            }
            let known = page.links[anchors[at] as usize].anchor;
            if known.0 == known.1 {
                anchors[at] = row.raw;
            }
            continue;
        }
        if anchors.len() >= max_links {
            links.left_out += 1;
            seen.insert(row.key, NONE);
            continue;
        }
        seen.insert(row.key, anchors.len() as u32);
        links.of_raw[row.raw as usize] = anchors.len() as u32;
        anchors.push(row.raw);
        let shift = links.urls.len() as u32;
        links.urls.extend_from_slice(cut(blob, row.href));
        links.ends.push(links.urls.len() as u32);
        links.host_spans.push(row.host.0 - row.href.0 + shift);
        links.host_spans.push(row.host.1 - row.href.0 + shift);
        links.fingerprints.extend_from_slice(&row.key);
        links.flags.push(u8::from(raw.nofollow) | raw.kind << 1 | IN_NAV * u8::from(raw.in_chrome));
    }
    for raw in anchors {
        let text = cut(&page.text.text, page.links[raw as usize].anchor);
        collapse_into(text, MAX_ANCHOR, &mut links.anchors);
        links.anchor_ends.push(links.anchors.len() as u32);
    }
}
