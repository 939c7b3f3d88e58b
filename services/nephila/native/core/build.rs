//! Turns ../tags.txt, ../tracking.txt (both shared with the fallback), ../words.txt, ../maintext.txt and entities.txt
//! into tables that the compiler sees.

use std::fmt::Write as _;
use std::{env, fs, path::Path};

const CATEGORIES: [&str; 15] = [
    "special", "scope", "list", "button", "table", "closep", "format", "void", "block", "implied", "heading",
    "breakout", "marker", "attrs", "scoped",
];
/// Bit of each context flag: 0-6 are a line's flags (6, comment, comes from class and id), the others are internal.
const FLAGS: [(&str, u32); 10] =
    [("heading", 0), ("item", 1), ("cell", 2), ("chrome", 3), ("pre", 4), ("main", 5), ("hidden", 8), ("tmpl", 9),
     ("veiled", 10), ("shown", 11)];
/// The flags that come from class and id.
const F_COMMENT: u32 = 6;
const F_TOOL: u32 = 7;

fn main() {
    println!("cargo:rerun-if-changed=../tags.txt");
    for file in
        ["../words.txt", "../terms.txt", "../class_words.txt", "../maintext.txt", "../tracking.txt", "src/entities.txt"]
    {
        println!("cargo:rerun-if-changed={file}");
    }
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("tags.rs"), tags()).expect("OUT_DIR is writable");
    for (name, code) in
        [("entities.rs", entities()), ("words.rs", words() + &terms() + &scores()), ("forest.rs", forest()), ("tracking.rs", tracking())]
    {
        fs::write(Path::new(&out).join(name), code).expect("OUT_DIR is writable");
    }
}

/// Names as a pattern over lower-case bytes, so that the compiler makes a search tree, and the prefixes.
fn tracking() -> String {
    let text = fs::read_to_string("../tracking.txt").expect("tracking.txt is beside the crate");
    let names: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(|line| line.split_whitespace().next().expect("a row has a name"))
        .collect();
    assert!(names.iter().all(|name| name.len() <= 16 && *name == name.to_ascii_lowercase()));
    let prefixes: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix('*')).collect();
    let whole: Vec<String> =
        names.iter().filter(|name| !name.ends_with('*')).map(|name| format!("b{name:?}")).collect();
    let starts: Vec<String> = prefixes.iter().map(|name| format!("name.starts_with(b{name:?})")).collect();
    format!(
        "/// Whether a lower-case name is in tracking.txt.\nfn in_table(name: &[u8]) -> bool {{\n    matches!(name, {}) || {}\n}}\n",
        whole.join(" | "),
        starts.join(" || ")
    )
}

fn tags() -> String {
    let text = fs::read_to_string("../tags.txt").expect("tags.txt lies beside the crate");
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert!(rows.len() < 255, "a tag id is one byte");
    let mut code = String::new();
    // Of other elements the attributes are read: they may be hidden.
    let other = 1u32 << CATEGORIES.iter().position(|name| *name == "attrs").expect("it is one");
    let (mut names, mut cats, mut flags) = (String::from("\"\""), other.to_string(), String::from("0"));
    for (index, name) in CATEGORIES.iter().enumerate() {
        writeln!(code, "pub const C_{}: u16 = {};", name.to_uppercase(), 1u32 << index).unwrap();
    }
    for (name, bit) in FLAGS {
        writeln!(code, "pub const F_{}: u16 = {};", name.to_uppercase(), 1u32 << bit).unwrap();
    }
    writeln!(code, "pub const F_COMMENT: u16 = {};", 1u32 << F_COMMENT).unwrap();
    writeln!(code, "pub const F_TOOL: u16 = {};", 1u32 << F_TOOL).unwrap();
    for (index, row) in rows.iter().enumerate() {
        let (name, cat_words, flag_words) = (row[0], row[1], row[2]);
        let ident = name.to_uppercase().replace('-', "_");
        writeln!(code, "pub const {}: u8 = {};", ident, index + 1).unwrap();
        let bits = |words: &str, find: &dyn Fn(&str) -> Option<u32>| -> u32 {
            words.split(',').filter(|w| *w != "-").map(|w| 1 << find(w).unwrap_or_else(|| panic!("word {w}"))).sum()
        };
        let cat = bits(cat_words, &|w| CATEGORIES.iter().position(|c| *c == w).map(|p| p as u32));
        let flag = bits(flag_words, &|w| FLAGS.iter().find(|f| f.0 == w).map(|f| f.1));
        write!(names, ", {name:?}").unwrap();
        write!(cats, ", {cat}").unwrap();
        write!(flags, ", {flag}").unwrap();
    }
    let count = rows.len() + 1;
    writeln!(code, "pub const COUNT: usize = {count};").unwrap();
    writeln!(code, "pub static NAMES: [&str; {count}] = [{names}];").unwrap();
    let lengths: Vec<usize> = std::iter::once(0).chain(rows.iter().map(|row| row[0].len())).collect();
    writeln!(code, "pub static LENGTHS: [u8; {count}] = {lengths:?};").unwrap();
    writeln!(code, "pub static CATS: [u16; {count}] = [{cats}];").unwrap();
    writeln!(code, "pub static FLAGS: [u16; {count}] = [{flags}];").unwrap();
    writeln!(code, "{}", hash_table(&rows)).unwrap();
    code
}

/// A collision-free table for the name key (bytes little-endian in a u128): slot = key folded, times M, top bits.
fn hash_table(rows: &[Vec<&str>]) -> String {
    let keys: Vec<u128> = rows
        .iter()
        .map(|row| {
            assert!(row[0].len() <= 16);
            row[0].bytes().enumerate().fold(0u128, |key, (i, b)| key | u128::from(b) << (8 * i))
        })
        .collect();
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    loop {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let multiplier = state | 1;
        let mut slots = vec![0u8; 4096];
        let fits = keys.iter().enumerate().all(|(index, key)| {
            let slot = (((*key as u64) ^ (*key >> 64) as u64).wrapping_mul(multiplier) >> 52) as usize;
            let free = slots[slot] == 0;
            slots[slot] = index as u8 + 1;
            free
        });
        if fits {
            let keys = keys.iter().map(|k| format!("{k}")).collect::<Vec<_>>().join(", ");
            return format!(
                "pub const MULTIPLIER: u64 = {multiplier};\npub static SLOTS: [u8; 4096] = {slots:?};\npub static KEYS: [u128; {}] = [0, {keys}];",
                rows.len() + 1
            );
        }
    }
}

fn entities() -> String {
    let text = fs::read_to_string("src/entities.txt").expect("entities.txt lies in src");
    let mut rows: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once('\t')).collect();
    rows.sort_unstable();
    let mut code = format!("pub static ENTITIES: [(&str, &str); {}] = [\n", rows.len());
    for (name, hex) in rows {
        let value: String =
            hex.split(',').map(|h| char::from_u32(u32::from_str_radix(h, 16).unwrap()).unwrap()).collect();
        writeln!(code, "({name:?}, {value:?}),").unwrap();
    }
    code + "];\n"
}

/// Rows of a table that is not empty or a comment.
fn rows(path: &str) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()).map(str::to_owned).collect()
}

/// Groups of attribute words with a table of them all: slot = key folded, times a multiplier, top 13 bits.
fn words() -> String {
    let mut code = String::new();
    let mut keys: Vec<(u128, u32)> = vec![(0, 0)];
    for (group, row) in rows("../words.txt").iter().enumerate() {
        assert!(group < 32, "groups of attributes are bits of a u32");
        let mut words = row.split_whitespace();
        let name = words.next().expect("a row has a name");
        writeln!(code, "#[allow(dead_code)]\npub const GROUP_{}: u32 = {group};", name.to_uppercase()).unwrap();
        for word in words {
            assert!((2..=16).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase()), "{word}");
            let key = packed(word);
            match keys.iter_mut().find(|known| known.0 == key) {
                Some(known) => known.1 |= 1 << group,
                None => keys.push((key, 1 << group)),
            }
        }
    }
    let (multiplier, slots) = spread(&keys.iter().map(|key| key.0).collect::<Vec<_>>());
    let (keys, groups): (Vec<u128>, Vec<u32>) = keys.into_iter().unzip();
    writeln!(code, "const WORD_MULTIPLIER: u64 = {multiplier};\nconst WORD_SHIFT: u32 = 51;").unwrap();
    // Most words are in no table: one kilobyte decides this and stays in the nearest cache.
    let mut taken = vec![0u64; slots.len() / 64];
    slots.iter().enumerate().filter(|(_, key)| **key != 0).for_each(|(slot, _)| taken[slot / 64] |= 1 << (slot % 64));
    writeln!(code, "static WORD_TAKEN: [u64; {}] = {taken:?};", taken.len()).unwrap();
    writeln!(code, "static WORD_SLOTS: [u16; {}] = {slots:?};", slots.len()).unwrap();
    writeln!(code, "static WORD_KEYS: [u128; {}] = {keys:?};", keys.len()).unwrap();
    writeln!(code, "static WORD_GROUPS: [u32; {}] = {groups:?};", groups.len()).unwrap();
    code
}

/// The first 16 bytes of a word, the first one lowest.
fn packed(word: &str) -> u128 {
    word.bytes().take(16).enumerate().fold(0u128, |key, (i, b)| key | u128::from(b) << (8 * i))
}

/// Words of lines with their groups in a table with linear probing: a quarter of its slots is taken at most. A word is
/// in it as it is read: with bit 5 of each byte set, which makes small letters of ASCII and Latin-1; of other letters
/// there is a key for small letters, one for a capital before them, and one for capitals.
fn terms() -> String {
    let mut names: Vec<String> = Vec::new();
    let mut terms: Vec<(u128, u16)> = vec![(0, 0)];
    for row in rows("../terms.txt") {
        let mut words = row.split_whitespace();
        let (name, _language) = (words.next().expect("a group"), words.next().expect("a language"));
        let group = names.iter().position(|known| known == name).unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
        for word in words {
            assert!(word.len() > 1 && word.chars().all(char::is_alphabetic), "{word}");
            let first = word.chars().next().map_or(0, char::len_utf8);
            let capital = word[..first].to_uppercase() + &word[first..];
            for word in [word.to_owned(), capital, word.to_uppercase()] {
                let size = word.len().min(16);
                let key = packed(&word) | u128::MAX / 255 * 0x20 & (u128::MAX >> (128 - 8 * size));
                match terms.iter_mut().find(|known| known.0 == key) {
                    Some(known) => known.1 |= 1 << group,
                    None => terms.push((key, 1 << group)),
                }
            }
        }
    }
    assert!(names.len() <= 16, "groups are bits of a u16");
    let bits = (4 * terms.len()).next_power_of_two().ilog2();
    let (keys, groups): (Vec<u128>, Vec<u16>) = terms.into_iter().unzip();
    let slots = probed(&keys, bits);
    let bits_of = |(at, name): (usize, &String)| {
        format!("#[allow(dead_code)]\npub const TERM_{}: u16 = 1 << {at};\n", name.to_uppercase())
    };
    let consts: String = names.iter().enumerate().map(bits_of).collect();
    format!(
        "{consts}pub const TEXT_GROUPS: usize = {};\n{}const TERM_SHIFT: u32 = {};\nstatic TERM_SLOTS: [u16; {}] = {slots:?};\n\
         static TERM_KEYS: [u128; {}] = {keys:?};\nstatic TERM_GROUPS: [u16; {}] = {groups:?};\n",
        names.len(),
        text_heads(&keys[1..]),
        64 - bits,
        slots.len(),
        keys.len(),
        groups.len()
    )
}

/// A bit for the first two bytes and the size of each term.
fn text_heads(keys: &[u128]) -> String {
    let (multiplier, shift) = (0x9E37_79B1_u32, 19);
    let mut heads = [0u64; 1 << (32 - 19 - 6)];
    for key in keys {
        let size = 16 - key.leading_zeros() / 8;
        let slot = ((*key as u32 & 0xFFFF) | size << 16).wrapping_mul(multiplier) >> shift;
        heads[slot as usize / 64] |= 1 << (slot % 64);
    }
    format!(
        "const HEAD_MULTIPLIER: u32 = {multiplier};\nconst HEAD_SHIFT: u32 = {shift};\n\
         static TEXT_HEADS: [u64; {}] = {heads:?};\n",
        heads.len()
    )
}

const PROBE_MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// A table of 2^bits slots with linear probing: each names a key, or the first, which is none.
fn probed(keys: &[u128], bits: u32) -> Vec<u16> {
    let mut slots = vec![0u16; 1 << bits];
    for (index, key) in keys.iter().enumerate().skip(1) {
        let mut slot =
            (((*key as u64) ^ (*key >> 64) as u64).wrapping_mul(PROBE_MULTIPLIER) >> (64 - bits)) as usize;
        while slots[slot] != 0 {
            assert_ne!(keys[slots[slot] as usize], *key, "a word is listed once");
            slot = (slot + 1) % slots.len();
        }
        slots[slot] = index as u16;
    }
    slots
}

/// Scores of class words in a table with linear probing: a quarter of its slots is taken at most.
fn scores() -> String {
    let (mut keys, mut scores): (Vec<u128>, Vec<i16>) = (vec![0], vec![0]);
    for row in rows("../class_words.txt") {
        let (word, score) = row.split_once(' ').expect("word and score");
        assert!((2..=16).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase()), "{word}");
        keys.push(packed(word));
        scores.push(score.parse().expect("a score is a number"));
    }
    let bits = (4 * keys.len()).next_power_of_two().ilog2();
    let slots = probed(&keys, bits);
    format!(
        "const PROBE_MULTIPLIER: u64 = {PROBE_MULTIPLIER};\nconst SCORE_SHIFT: u32 = {};\nstatic SCORE_SLOTS: [u16; {}] = {slots:?};\n\
         static SCORE_KEYS: [u128; {}] = {keys:?};\nstatic SCORES: [i16; {}] = {scores:?};\n",
        64 - bits,
        slots.len(),
        keys.len(),
        scores.len()
    )
}

/// A multiplier that sends all keys but the first to slots of their own; an empty slot names the first.
fn spread(keys: &[u128]) -> (u64, Vec<u16>) {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    loop {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let multiplier = state | 1;
        let mut slots = vec![0u16; 1 << 13];
        let fits = keys.iter().enumerate().skip(1).all(|(index, key)| {
            let slot = (((*key as u64) ^ (*key >> 64) as u64).wrapping_mul(multiplier) >> 51) as usize;
            let free = slots[slot] == 0;
            slots[slot] = index as u16;
            free
        });
        if fits {
            return (multiplier, slots);
        }
    }
}

/// The trees of the main-text model. Every row has four levels.
fn forest() -> String {
    let mut code = String::new();
    let mut names: Vec<String> = Vec::new();
    let (mut largest, mut trees): (i16, Vec<String>) = (0, Vec::new());
    for row in rows("../maintext.txt") {
        let (head, tail) = row.split_once(':').expect("a row has a colon");
        match head {
            "bias" => writeln!(code, "const BIAS: i32 = {};", tail.trim()).unwrap(),
            "features" => names = tail.split_whitespace().map(str::to_owned).collect(),
            "chances" => {
                let chances: Vec<u16> = tail.split_whitespace().map(|word| word.parse().unwrap()).collect();
                writeln!(code, "pub static CHANCES: [u16; {}] = {chances:?};", chances.len()).unwrap();
            }
            _ => {
                let levels: Vec<(&str, &str)> =
                    head.split_whitespace().map(|level| level.split_once('>').expect("name>threshold")).collect();
                let column = |name: &str| names.iter().position(|known| known == name).expect("a known feature");
                let columns: Vec<usize> = levels.iter().map(|level| column(level.0)).collect();
                let thresholds: Vec<i16> = levels.iter().map(|level| level.1.parse().unwrap()).collect();
                let leaves: Vec<i16> = tail.split_whitespace().map(|leaf| leaf.parse().unwrap()).collect();
                assert_eq!((columns.len(), leaves.len()), (4, 16));
                largest = leaves.iter().fold(largest, |most, leaf| most.max(leaf.abs()));
                let bytes = |half: usize| leaves.iter().map(|leaf| leaf.to_le_bytes()[half]).collect::<Vec<_>>();
                let (low, high) = (bytes(0), bytes(1));
                trees.push(format!(
                    "Tree {{ columns: {columns:?}, thresholds: {thresholds:?}, low: {low:?}, high: {high:?} }}"
                ));
            }
        }
    }
    writeln!(code, "/// The sum of so many leaves is within i16.\nconst WITHIN_I16: usize = {};", i16::MAX / largest)
        .unwrap();
    writeln!(code, "pub static NAMES: [&str; {}] = {names:?};", names.len()).unwrap();
    writeln!(code, "static TREES: [Tree; {}] = [{}];", trees.len(), trees.join(",\n")).unwrap();
    code
}
