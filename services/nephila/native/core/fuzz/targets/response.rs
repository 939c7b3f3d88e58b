//! Any bytes of a server through heads, chunks and decoders: no panic, bounded output, the same outcome at each split.
//! `make fuzz` runs it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nephila_fetch::config::Config;
use nephila_fetch::error::Reason;
use nephila_fetch::exchange::{End, Exchange, Wanted};

const LIMIT: u64 = 1 << 20;

type Outcome = (u16, Option<Reason>, Vec<u8>);

fn read(config: &Config, data: &[u8], step: usize) -> Outcome {
    let mut exchange = Exchange::new(Wanted::default(), false);
    for part in data.chunks(step.max(1)) {
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

fuzz_target!(|data: &[u8]| {
    let config = Config { max_wire_bytes: LIMIT, max_body_bytes: LIMIT, ..Config::default() };
    let whole = read(&config, data, usize::MAX);
    assert!(whole.2.len() as u64 <= LIMIT);
    let split = read(&config, data, 1 + data.len() % 37);
    // A message may be cut and broken: zstd notices a fault within a block only once it has the whole block.
    let torn = |one: &Outcome| matches!(one.1, Some(Reason::Encoding | Reason::Disconnected));
    assert!(whole == split || (torn(&whole) && torn(&split)), "{whole:?} {split:?}");
});
