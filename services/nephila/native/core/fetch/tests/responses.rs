//! Whole responses through the pure readers: the outcome does not depend on where the bytes are split.

use std::io::Write;

use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use flate2::Compression;
use nephila_fetch::config::Config;
use nephila_fetch::error::Reason;
use nephila_fetch::exchange::{End, Exchange, Response, Wanted};

fn read(config: &Config, wanted: &Wanted, reused: bool, parts: &[&[u8]], close: bool) -> Option<Response> {
    let mut exchange = Exchange::new(wanted.clone(), reused);
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let mut done = exchange.feed(config, part);
        while exchange.has_backlog() {
            done = exchange.feed(config, b"");
        }
        if done {
            return Some(exchange.into_response());
        }
    }
    if close {
        exchange.end(&End::Closed);
    }
    exchange.done().then(|| exchange.into_response())
}

type Shown = (u16, Option<Reason>, Vec<u8>, &'static str);

fn shown(response: &Response) -> Shown {
    let reason = response.error.as_ref().map(|error| error.reason);
    (response.head.status, reason, response.body.clone(), response.truncated)
}

/// The outcome for the bytes in one read, byte by byte and split once at every place.
fn everywhere(wanted: &Wanted, data: &[u8]) -> Shown {
    let config = Config::default();
    let whole = shown(&read(&config, wanted, false, &[data], true).expect("ended"));
    let single: Vec<&[u8]> = data.chunks(1).collect();
    assert_eq!(shown(&read(&config, wanted, false, &single, true).unwrap()), whole, "byte by byte");
    for at in 0..data.len() {
        let split = read(&config, wanted, false, &[&data[..at], &data[at..]], true).unwrap();
        assert_eq!(shown(&split), whole, "split at {at}");
    }
    whole
}

fn page(data: &[u8]) -> Shown {
    everywhere(&Wanted::default(), data)
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn coded(coding: &str, wire: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n", wire.len());
    [head.as_bytes(), wire].concat()
}

#[test]
fn framings() {
    let ok = |body: &[u8]| (200, None, body.to_vec(), "");
    assert_eq!(page(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), ok(b"hello"));
    assert_eq!(page(b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"), ok(b"hello"));
    assert_eq!(page(b"\r\nHTTP/1.0 200\r\n\r\nuntil the end"), ok(b"until the end"));
    assert_eq!(page(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), ok(b""));
    let both = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    assert_eq!(page(both), ok(b"hello"));
    assert_eq!(page(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n"), (304, None, vec![], ""));
}

#[test]
fn interim_heads_are_skipped() {
    let early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".as_slice();
    let last = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx".as_slice();
    assert_eq!(page(&[early, last].concat()), (200, None, b"x".to_vec(), ""));
    let many = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(17);
    assert_eq!(page(&[&many, last].concat()).1, Some(Reason::Protocol));
    assert_eq!(page(b"HTTP/1.1 101 Switching Protocols\r\n\r\n").1, Some(Reason::Protocol));
}

#[test]
fn hostile_heads_are_refused() {
    for data in [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n".as_slice(),
        b"\x16\x03\x01\x00\x00\r\n\r\n",
        b"HTTP/3 abc\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 20\r\n\r\n",
        b"HTTP/1.1200 OK\r\n\r\n",
        b"\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n",
    ] {
        let found = page(data);
        assert_eq!((found.1, found.2), (Some(Reason::Protocol), vec![]), "{data:?}");
    }
}

#[test]
fn a_head_without_end_is_refused_at_its_limit() {
    let config = Config::default();
    let mut exchange = Exchange::new(Wanted::default(), false);
    exchange.feed(&config, b"HTTP/1.1 200 OK\r\nX: ");
    let mut fed = 0;
    while !exchange.feed(&config, &[b'a'; 1000]) {
        fed += 1000;
        assert!(fed <= 65_536);
    }
    assert_eq!(exchange.into_response().error.unwrap().reason, Reason::Protocol);
}

#[test]
fn heads_are_read_leniently() {
    let config = Config::default();
    let data = b"HTTP/1.1 200 OK\r\nX-Long: one\r\n  two\r\njunk line\r\nX-Robots-Tag: a\r\nA : \xe9\0\r\n\
        x-robots-tag: b\r\nContent-Length: 1\r\n\r\nx";
    for at in 0..data.len() {
        let response = read(&config, &Wanted::default(), false, &[&data[..at], &data[at..]], false).unwrap();
        assert_eq!(response.head.get("x-long"), Some("one two"));
        assert_eq!(response.head.get("x-robots-tag"), Some("a\nb"));
        assert_eq!(response.head.get("a"), Some("\u{e9}"));
        assert!(response.reuse);
    }
}

#[test]
fn a_head_of_many_names_is_read_in_linear_time() {
    let config = Config { max_wire_bytes: 1, ..Config::default() };
    let names: String = (0..9000).map(|number| format!("{number:x}:\n")).collect();
    let data = format!("HTTP/1.1 200 OK\r\n{names}{names}Content-Length: 0\r\n\r\n");
    let data = &data.as_bytes()[..65_000.min(data.len())];
    let data = [data, b"\nContent-Length: 0\n\n".as_slice()].concat();
    let response = read(&config, &Wanted::default(), false, &[&data], false).unwrap();
    assert!(response.head.headers.len() > 8000);
    assert_eq!(response.head.get("1"), Some(", "));
}

#[test]
fn cut_messages_are_disconnected() {
    for data in [
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort".as_slice(),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Le",
    ] {
        let found = page(data);
        assert_eq!((found.1, found.2), (Some(Reason::Disconnected), vec![]));
    }
    let config = Config::default();
    for (reused, reason) in [(false, Reason::Disconnected), (true, Reason::Stale)] {
        let response = read(&config, &Wanted::default(), reused, &[], true).unwrap();
        assert_eq!(response.error.unwrap().reason, reason);
    }
    let late = read(&config, &Wanted::default(), true, &[b"rest of a page\r\n\r\n"], false).unwrap();
    assert_eq!(late.error.unwrap().reason, Reason::Stale);
}

#[test]
fn a_connection_is_kept_only_behind_an_undisputed_end() {
    let config = Config::default();
    let reuse = |data: &[u8]| read(&config, &Wanted::default(), false, &[data], true).unwrap().reuse;
    assert!(reuse(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"));
    assert!(reuse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"));
    assert!(reuse(b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone"));
    for data in [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and garbage".as_slice(),
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n1\r\na\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nHTTP/1.1 200 OK",
        b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nhello",
    ] {
        assert!(!reuse(data), "{data:?}");
    }
}

#[test]
fn unused_bodies_never_fail_the_status() {
    assert_eq!(page(b"HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\ngone"), (404, None, b"gone".to_vec(), ""));
    assert_eq!(page(b"HTTP/1.1 500 No\r\nContent-Length: 99\r\n\r\ngone"), (500, None, vec![], "disconnect"));
    assert_eq!(page(b"HTTP/1.1 500 No\r\nContent-Length: 99999\r\n\r\ngone"), (500, None, vec![], "length"));
    assert_eq!(page(b"HTTP/1.1 404 No\r\nContent-Encoding: nonsense\r\n\r\ngone"), (404, None, b"gone".to_vec(), ""));
}

#[test]
fn codings_come_off_at_every_split() {
    let text = b"<title>x</title>".repeat(40);
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    zlib.write_all(&text).unwrap();
    let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
    raw.write_all(&text).unwrap();
    let members = [gzip(&text[..100]), gzip(&text[100..]), vec![0; 20]].concat();
    for (coding, wire) in [
        ("gzip", gzip(&text)),
        ("X-GZIP", members),
        ("deflate", zlib.finish().unwrap()),
        ("deflate", raw.finish().unwrap()),
        ("gzip, gzip", gzip(&gzip(&text))),
        ("utf-8", text.clone()),
    ] {
        assert_eq!(page(&coded(coding, &wire)), (200, None, text.clone(), ""), "{coding}");
    }
    assert_eq!(page(&coded("gzip", b"")), (200, None, vec![], ""));
}

#[test]
fn short_and_long_gzip_bodies_have_the_same_outcome() {
    let config = Config::default();
    let noise = |size: usize| -> Vec<u8> {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..size).map(|_| next()).collect()
    };
    let (short, long, wide) = (noise(60_000), noise(90_000), b"ab".repeat(200_000));
    for text in [&short, &long, &wide] {
        let wire = gzip(text);
        let size = wire.len();
        let [sum, end] = [size - 8, size - 4].map(|at| {
            let mut other = wire.clone();
            other[at] ^= 1;
            other
        });
        let mut named = flate2::GzBuilder::new().filename("a").write(Vec::new(), Compression::default());
        named.write_all(text).unwrap();
        let twice = [wire.as_slice(), &wire].concat();
        let double = [text.as_slice(), text].concat();
        for (wire, expected) in [
            (&wire, Some(text)),
            (&named.finish().unwrap(), Some(text)),
            (&twice, Some(&double)),
            (&[wire.as_slice(), b"behind it"].concat(), Some(text)),
            // The trailer is not needed, as in browsers.
            (&sum, Some(text)),
            (&end, Some(text)),
            (&wire[..size - 1].to_vec(), Some(text)),
            (&wire[..size - 8].to_vec(), Some(text)),
            (&wire[..size - 9].to_vec(), None),
        ] {
            let data = coded("gzip", wire);
            for step in [data.len(), 5_000] {
                let parts: Vec<&[u8]> = data.chunks(step).collect();
                let response = read(&config, &Wanted::default(), false, &parts, false).unwrap();
                match expected {
                    Some(text) => assert!(response.error.is_none() && response.body == *text, "{size} {step}"),
                    None => assert_eq!(response.error.unwrap().reason, Reason::Encoding, "{size} {step}"),
                }
            }
        }
    }
}

#[test]
fn a_short_bomb_is_decoded_in_steps() {
    let config = Config { max_body_bytes: 1 << 30, max_ratio: 1e9, ..Config::default() };
    let data = coded("gzip", &gzip(&vec![0; 24 << 20]));
    assert!(data.len() < 64 << 10);
    let mut exchange = Exchange::new(Wanted::default(), false);
    let (mut done, mut before) = (exchange.feed(&config, &data), 0);
    while !done {
        assert!(exchange.has_backlog() && exchange.size() - before < 17 << 20);
        before = exchange.size();
        done = exchange.feed(&config, b"");
    }
    assert_eq!(exchange.into_response().body.len(), 24 << 20);
}

#[test]
fn broken_codings_are_refused() {
    for coding in ["gzip", "deflate", "br", "zstd"] {
        assert_eq!(page(&coded(coding, &b"\x05garbage".repeat(9))).1, Some(Reason::Encoding), "{coding}");
    }
    let whole = gzip(&b"text".repeat(99));
    for stop in 1..whole.len() {
        // A stream that has ended is whole: its trailer of 8 bytes may be missing.
        let right = (stop < whole.len() - 8).then_some(Reason::Encoding);
        assert_eq!(page(&coded("gzip", &whole[..stop])).1, right, "{stop}");
    }
    assert_eq!(page(&coded("compress", b"x")).1, Some(Reason::Encoding));
    assert_eq!(page(&coded("gzip, gzip, gzip", b"x")).1, Some(Reason::Encoding));
    let empty_members = gzip(b"").repeat(1001);
    let config = Config::default();
    let data = coded("gzip", &empty_members);
    let response = read(&config, &Wanted::default(), false, &[&data], false).unwrap();
    assert_eq!(response.error.unwrap().reason, Reason::Encoding);
}

#[test]
fn limits_hold_while_bytes_arrive() {
    let small = Config { max_wire_bytes: 100, max_body_bytes: 100, ..Config::default() };
    let wanted = Wanted::default();
    let refused = |config: &Config, wanted: &Wanted, data: &[u8]| {
        let response = read(config, wanted, false, &[data], true).unwrap();
        response.error.map(|error| error.reason)
    };
    let body = [b'x'; 101];
    let close = [b"HTTP/1.1 200 OK\r\n\r\n".as_slice(), &body].concat();
    let chunks =
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".as_slice(), &b"1\r\nx\r\n".repeat(30)].concat();
    let announced = b"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n".as_slice();
    for data in [&close, &chunks, announced] {
        assert_eq!(refused(&small, &wanted, data), Some(Reason::TooLarge));
    }
    assert_eq!(refused(&small, &Wanted { max_bytes: 101, ..wanted.clone() }, &close), None);
    assert_eq!(refused(&small, &wanted, &coded("gzip", &gzip(&[b'x'; 101]))), Some(Reason::TooLarge));
    let bomb = coded("gzip", &gzip(&vec![0; 8 << 20]));
    assert_eq!(refused(&Config::default(), &wanted, &bomb), Some(Reason::TooLarge));
    let kept = read(&small, &Wanted { keep: 50, ..wanted }, false, &[&close], false).unwrap();
    assert_eq!((kept.body.len(), kept.truncated, kept.reuse), (50, "length", false));
}

#[test]
fn unwanted_media_types_stop_behind_the_head() {
    let media = nephila_fetch::media::MediaFilter::new(vec!["text/*".into()], vec![]);
    let config = Config { media, ..Config::default() };
    let data = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n";
    let response = read(&config, &Wanted::default(), false, &[data], false).unwrap();
    assert_eq!(response.error.unwrap().reason, Reason::ContentType);
    let any = Wanted { any_type: true, ..Wanted::default() };
    assert!(read(&config, &any, false, &[data], false).is_none());
}

#[test]
fn a_large_window_is_no_brotli_stream() {
    // 30 bits of window, and an uncompressed block of 100 bytes.
    let large = [0x11, 0x1e, 0xc6, 0x00, 0x02, b'a', b'a', b'a'];
    let (config, wanted) = (Config::default(), Wanted::default());
    let error = read(&config, &wanted, false, &[&coded("br", &large)], true).unwrap().error.unwrap();
    assert_eq!((error.reason, error.detail.as_str()), (Reason::Encoding, "broken br stream"));
}

#[test]
fn a_claimed_length_needs_no_memory_before_its_bytes() {
    let mut exchange = Exchange::new(Wanted::default(), false);
    let config = Config::default();
    exchange.feed(&config, b"HTTP/1.1 200 OK\r\nContent-Length: 30000000\r\n\r\nabc");
    assert_eq!(exchange.needs(256 << 10), None);
    exchange.feed(&config, &[b'x'; 300 << 10]);
    assert_eq!(exchange.needs(256 << 10), Some((300 << 10) + 3 + (256 << 10)));
}

#[test]
fn a_408_on_a_kept_connection_is_no_response_to_its_request() {
    let data = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let (config, wanted) = (Config::default(), Wanted::default());
    let outcome = |reused| shown(&read(&config, &wanted, reused, &[data], true).unwrap());
    assert_eq!(outcome(true).1, Some(Reason::Stale));
    assert_eq!(outcome(false), (408, None, Vec::new(), ""));
}
