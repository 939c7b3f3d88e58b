//! The I/O thread against sockets of loopback.
#![cfg(unix)]

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{spawn, JoinHandle};

use nephila_fetch::config::Config;
use nephila_fetch::error::Reason;
use nephila_fetch::exchange::{Response, Wanted};
use nephila_fetch::fetcher::Fetcher;
use nephila_fetch::messages::{Done, Event, Submit};
use nephila_fetch::pages::{PageReader, PageRequest, Reading};

const PAGE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Accepts connections, and answers each request with the next of `answers`; an empty one closes the connection.
fn serve(answers: &[&'static [u8]]) -> (u16, JoinHandle<u32>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answers = answers.to_vec();
    let thread = spawn(move || {
        let (mut connections, mut left) = (0, answers.into_iter());
        let mut next = left.next();
        while next.is_some() {
            let (mut stream, _) = listener.accept().unwrap();
            connections += 1;
            while let Some(answer) = next {
                if !read_head(&mut stream) {
                    break;
                }
                next = left.next();
                if answer.is_empty() || stream.write_all(answer).is_err() {
                    break;
                }
            }
        }
        connections
    });
    (port, thread)
}

fn read_head(stream: &mut TcpStream) -> bool {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return false,
        }
    }
    true
}

fn request(id: u64, port: u16, addresses: &[[u8; 4]]) -> Submit {
    Submit {
        id,
        addresses: addresses.iter().map(|&parts| IpAddr::V4(Ipv4Addr::from(parts))).collect(),
        port,
        tls_name: None,
        proxy: None,
        key: "site.test http".into(),
        data: b"GET / HTTP/1.1\r\nHost: site.test\r\n\r\n".to_vec(),
        wanted: Wanted::default(),
        report_sent: false,
        page: None,
    }
}

/// Waits for `count` ends.
fn ends(fetcher: &Fetcher, count: usize) -> Vec<Done> {
    let mut found = Vec::new();
    while found.len() < count {
        for event in fetcher.drain() {
            if let Event::Done(done) = event {
                found.push(*done);
            }
        }
        std::thread::yield_now();
    }
    found
}

fn one(fetcher: &Fetcher, submit: Submit) -> Done {
    fetcher.submit(submit);
    fetcher.flush();
    ends(fetcher, 1).pop().unwrap()
}

fn reason(done: &Done) -> Option<Reason> {
    done.response.error.as_ref().map(|error| error.reason)
}

const HERE: [u8; 4] = [127, 0, 0, 1];

/// Connections are used again at once.
fn restless() -> Config {
    Config { rest_s: 0.0, ..Config::default() }
}

#[test]
fn a_connection_serves_fetch_after_fetch() {
    let (port, server) = serve(&[PAGE; 5]);
    let mut fetcher = Fetcher::start(restless(), None).unwrap();
    for id in 0..5 {
        let done = one(&fetcher, request(id, port, &[HERE]));
        assert_eq!((done.id, done.response.body.as_slice()), (id, b"hello".as_slice()));
        assert!(done.head_at.is_some());
    }
    fetcher.close();
    assert_eq!(server.join().unwrap(), 1);
}

#[test]
fn a_kept_connection_that_breaks_is_stale_and_not_repeated() {
    let (port, server) = serve(&[PAGE, b"", b"", PAGE]);
    let fetcher = Fetcher::start(restless(), None).unwrap();
    let reasons: Vec<_> = (0..4).map(|id| reason(&one(&fetcher, request(id, port, &[HERE])))).collect();
    assert_eq!(reasons, [None, Some(Reason::Stale), Some(Reason::Disconnected), None]);
    assert_eq!(server.join().unwrap(), 3);
}

#[test]
fn three_addresses_are_dialled_at_most() {
    let (port, server) = serve(&[PAGE]);
    let fetcher = Fetcher::start(Config::default(), None).unwrap();
    let nobody = |last| [127, 0, 0, last];
    let done = one(&fetcher, request(1, port, &[nobody(9), nobody(8), nobody(7), HERE]));
    assert_eq!(reason(&done), Some(Reason::Connect));
    assert!(!done.response.error.unwrap().detail.is_empty());
    let done = one(&fetcher, request(2, port, &[nobody(9), nobody(8), HERE]));
    assert_eq!(done.response.body, b"hello");
    assert_eq!(done.address, Some(IpAddr::from(HERE)));
    drop(fetcher);
    server.join().unwrap();
}

#[test]
fn an_aborted_fetch_reports_nothing_and_closes_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let fetcher = Fetcher::start(Config::default(), None).unwrap();
    fetcher.submit(request(1, listener.local_addr().unwrap().port(), &[HERE]));
    fetcher.flush();
    let (mut stream, _) = listener.accept().unwrap();
    assert!(read_head(&mut stream));
    fetcher.abort(1);
    assert!(!read_head(&mut stream));
    assert!(fetcher.drain().is_empty());
}

#[test]
fn bytes_before_a_request_are_no_response_to_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let fetcher = Fetcher::start(restless(), None).unwrap();
    for id in 0..200 {
        fetcher.submit(request(id, port, &[HERE]));
        fetcher.flush();
        let (mut stream, _) = listener.accept().unwrap();
        assert!(read_head(&mut stream));
        stream.write_all(PAGE).unwrap();
        assert_eq!(ends(&fetcher, 1)[0].response.body, b"hello");
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged").unwrap();
    }
}

#[test]
fn limits_of_time_end_a_fetch() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = Config { headers_timeout_s: 0.05, ..Config::default() };
    let fetcher = Fetcher::start(config, None).unwrap();
    let done = one(&fetcher, request(1, listener.local_addr().unwrap().port(), &[HERE]));
    assert_eq!(reason(&done), Some(Reason::Timeout));
    assert!(done.response.error.unwrap().detail.starts_with("headers:"));
}

#[test]
fn many_fetches_at_once_each_get_their_own_end() {
    let servers: Vec<_> = (0..20).map(|_| serve(&[PAGE; 10])).collect();
    let fetcher = Fetcher::start(restless(), None).unwrap();
    for round in 0..10 {
        for (place, (port, _)) in servers.iter().enumerate() {
            fetcher.submit(request(round * 20 + place as u64, *port, &[HERE]));
            fetcher.flush();
        }
        let mut ids: Vec<u64> = ends(&fetcher, 20).iter().map(|done| done.id).collect();
        ids.sort_unstable();
        assert_eq!(ids, (round * 20..round * 20 + 20).collect::<Vec<_>>());
    }
    drop(fetcher);
    for (_, server) in servers {
        assert_eq!(server.join().unwrap(), 1);
    }
}

#[test]
fn a_late_second_response_is_not_that_of_the_next_request() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let fetcher = Fetcher::start(Config::default(), None).unwrap();
    fetcher.submit(request(1, port, &[HERE]));
    fetcher.flush();
    let (mut first, _) = listener.accept().unwrap();
    assert!(read_head(&mut first));
    first.write_all(PAGE).unwrap();
    ends(&fetcher, 1);
    fetcher.submit(request(2, port, &[HERE]));
    fetcher.flush();
    let (mut second, _) = listener.accept().unwrap();
    first.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged").unwrap();
    assert!(!read_head(&mut first), "closed");
    assert!(read_head(&mut second));
    second.write_all(PAGE).unwrap();
    assert_eq!(ends(&fetcher, 1)[0].response.body, b"hello");
    assert!(!read_head(&mut second), "no connection of this server is used twice");
}

struct AnyPage;

impl PageReader for AnyPage {
    fn wants(&self, _: &Response) -> bool {
        true
    }

    fn read(&self, _: &PageRequest, _: &Response) -> Option<(Reading, usize)> {
        Some((Box::new(()), 0))
    }
}

#[test]
fn the_thread_sleeps_between_pages() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = Config { keepalive_s: 0.2, ..Config::default() };
    let fetcher = Fetcher::start(config, Some((Arc::new(AnyPage), 1))).unwrap();
    let page = Some(PageRequest { url: "http://site.test/".into(), main_text: true });
    fetcher.submit(Submit { report_sent: true, page, ..request(1, port, &[HERE]) });
    fetcher.flush();
    let (mut stream, _) = listener.accept().unwrap();
    assert!(read_head(&mut stream));
    stream.write_all(PAGE).unwrap();
    assert!(ends(&fetcher, 1)[0].reading.is_some());
    assert!(!read_head(&mut stream), "the idle connection is closed in time");
    assert!(fetcher.turns() < 60, "{} turns in 0.2 s", fetcher.turns());
}
