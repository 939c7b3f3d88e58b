//! Responses with random faults: no panic, bounded output, and the same outcome however the bytes are split.
//! NEPHILA_FUZZ_S=1800: that many seconds, from a seed that differs each time.

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use nephila_fetch::config::Config;
use nephila_fetch::error::Reason;
use nephila_fetch::exchange::{End, Exchange, Wanted};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit.max(1)
    }
}

const TOKENS: [&[u8]; 16] = [
    b"\r\n",
    b"\n",
    b"\r\n\r\n",
    b"0\r\n\r\n",
    b"ffffffffffffff\r\n",
    b"Content-Length: 0\r\n",
    b"Content-Length: 99999999999\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Encoding: gzip\r\n",
    b"Content-Encoding: br\r\n",
    b"Content-Encoding: zstd\r\n",
    b"HTTP/1.1 100 \r\n\r\n",
    b" folded\r\n",
    b"\x1f\x8b",
    b"\x28\xb5\x2f\xfd",
    b"\0",
];

fn mutate(data: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(data.len() + 1);
        let stop = (at + random.below(40)).min(data.len());
        match random.below(6) {
            0 if at < data.len() => data[at] ^= 1 << random.below(8),
            1 if at < data.len() => data[at] = random.below(256) as u8,
            2 => drop(data.drain(at..stop)),
            3 => {
                let copy = data[at..stop].to_vec();
                data.splice(at..at, copy);
            }
            4 => data.truncate(at),
            _ => drop(data.splice(at..at, TOKENS[random.below(TOKENS.len())].iter().copied())),
        }
    }
}

type Outcome = (u16, Option<Reason>, Vec<u8>);

fn read(config: &Config, wanted: &Wanted, data: &[u8], mut next: impl FnMut() -> usize) -> Outcome {
    let mut exchange = Exchange::new(wanted.clone(), false);
    let mut rest = data;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(next().clamp(1, rest.len()));
        rest = after;
        let mut done = exchange.feed(config, part);
        while exchange.has_backlog() {
            done = exchange.feed(config, b"");
        }
        if done {
            break;
        }
    }
    exchange.end(&End::Closed);
    assert!(exchange.done());
    let response = exchange.into_response();
    (response.head.status, response.error.map(|error| error.reason), response.body)
}

#[test]
fn any_bytes_have_one_outcome() {
    let names = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus")).unwrap();
    let mut corpus: Vec<_> = names.map(|entry| entry.unwrap().path()).collect();
    corpus.sort();
    let corpus: Vec<Vec<u8>> = corpus.into_iter().map(|path| fs::read(path).unwrap()).collect();
    let seconds: u64 = std::env::var("NEPHILA_FUZZ_S").map_or(0, |text| text.parse().unwrap());
    let nanos = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let mut random = Random(if seconds > 0 { nanos | 1 } else { 0x9e37_79b9_7f4a_7c15 });
    let until = Instant::now() + Duration::from_secs(seconds);
    let config = Config { max_wire_bytes: 1 << 20, max_body_bytes: 4 << 20, ..Config::default() };
    let mut cases = 0_u64;
    while cases < 3_000 || Instant::now() < until {
        cases += 1;
        let mut data = corpus[random.below(corpus.len())].clone();
        mutate(&mut data, &mut random);
        let keep = [0, 0, 0, 100][random.below(4)];
        let wanted = Wanted { keep, forwarded: random.below(4) == 0, ..Wanted::default() };
        let whole = read(&config, &wanted, &data, || usize::MAX);
        assert!(whole.2.len() <= 4 << 20);
        let mut split = Random(random.0);
        let many = read(&config, &wanted, &data, || 1 + split.below(60));
        let single = read(&config, &wanted, &data, || 1);
        // A body that is cut off at `keep` may end before or behind a fault in its coding.
        let cut = |one: &Outcome| keep > 0 && (one.1 == Some(Reason::Encoding) || one.2.len() == keep as usize);
        let same = |one: &Outcome| *one == whole || (cut(one) && cut(&whole));
        assert!(same(&many) && same(&single), "{:?}\n{whole:?}\n{many:?}\n{single:?}", data.escape_ascii().to_string());
    }
    println!("{cases} cases");
}
