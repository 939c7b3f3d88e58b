//! Page threads against sockets of loopback: a reading comes with the end of its fetch, and a fault costs one reading.
#![cfg(unix)]

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::spawn;

use nephila_fetch::ahead::AHEAD_BYTES;
use nephila_fetch::config::Config;
use nephila_fetch::exchange::{Response, Wanted};
use nephila_fetch::fetcher::Fetcher;
use nephila_fetch::messages::{Done, Event, Submit};
use nephila_fetch::pages::{PageReader, PageRequest, Reading};

const BODY: usize = 60 << 10;
const COUNT: u64 = 150;

/// Answers a connection for each of `bodies`.
fn serve(bodies: Vec<Vec<u8>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    spawn(move || {
        for body in bodies {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1000]).unwrap();
            let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all(&[head.as_bytes(), &body].concat()).unwrap();
        }
    });
    port
}

fn request(id: u64, port: u16, page_url: &str) -> Submit {
    Submit {
        id,
        addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
        port,
        tls_name: None,
        proxy: None,
        key: String::new(),
        data: b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        wanted: Wanted::default(),
        report_sent: false,
        page: (!page_url.is_empty()).then(|| PageRequest { url: page_url.into(), main_text: true }),
    }
}

/// Waits for `count` ends, in the order of their ids.
fn ends(fetcher: &Fetcher, count: usize) -> Vec<Done> {
    let mut found = Vec::new();
    while found.len() < count {
        for event in fetcher.drain() {
            match event {
                Event::Done(done) => found.push(*done),
                Event::Reserve { id, .. } => fetcher.grant(id),
                Event::Sent(_) => {}
            }
        }
        std::thread::yield_now();
    }
    found.sort_by_key(|done| done.id);
    found
}

/// Reads a body to its size; panics on one that begins with "!". It waits while the gate is closed.
struct Sizes {
    gate: Arc<Mutex<()>>,
    calls: Arc<AtomicUsize>,
}

impl PageReader for Sizes {
    fn wants(&self, response: &Response) -> bool {
        !response.body.is_empty()
    }

    fn read(&self, request: &PageRequest, response: &Response) -> Option<(Reading, usize)> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let _open: MutexGuard<'_, ()> = self.gate.lock().unwrap();
        drop(_open);
        assert!(!response.body.starts_with(b"!"), "a fault");
        let text = if request.main_text { "" } else { " without main text" };
        let found = format!("{} {}{text}", request.url, response.body.len());
        Some((Box::new(found), response.body.len()))
    }
}

fn start(threads: usize) -> (Fetcher, Arc<Mutex<()>>, Arc<AtomicUsize>) {
    let (gate, calls) = (Arc::<Mutex<()>>::default(), Arc::<AtomicUsize>::default());
    let reader = Sizes { gate: Arc::clone(&gate), calls: Arc::clone(&calls) };
    (Fetcher::start(Config::default(), Some((Arc::new(reader), threads))).unwrap(), gate, calls)
}

fn read_of(done: &Done) -> Option<&String> {
    done.reading.as_ref().map(|reading| reading.downcast_ref::<String>().unwrap())
}

#[test]
fn a_fault_costs_one_reading_and_every_fetch_ends() {
    let (fetcher, _, _) = start(2);
    let port = serve(vec![b"abc".to_vec(), b"!".to_vec(), vec![], b"de".to_vec(), b"f".to_vec()]);
    for (id, url) in ["a", "b", "c", "", "e"].iter().enumerate() {
        fetcher.submit(request(id as u64, port, url));
        fetcher.flush();
        let done = ends(&fetcher, 1).pop().unwrap();
        let expected = ["a 3", "", "", "", "e 1"][id];
        assert_eq!(read_of(&done).map_or("", String::as_str), expected);
        assert!(done.response.error.is_none());
    }
}

/// Calls `submit` for `count` bodies of BODY bytes, and returns the port that serves them.
fn submit_many(fetcher: &Fetcher, count: u64) {
    let port = serve(vec![vec![b'x'; BODY]; count as usize]);
    (0..count).for_each(|id| fetcher.submit(request(id, port, "u")));
    fetcher.flush();
}

#[test]
fn no_response_begins_beyond_the_bound_until_bodies_are_dropped() {
    let (fetcher, gate, _) = start(1);
    let closed = gate.lock().unwrap();
    submit_many(&fetcher, COUNT);
    let ahead = fetcher.shared().ahead.clone();
    while !ahead.is_full() {
        std::thread::yield_now();
    }
    drop(closed);
    let first = ends(&fetcher, AHEAD_BYTES / BODY / 4);
    std::thread::sleep(std::time::Duration::from_millis(50));
    // Responses that had begun have ended, and each reading is as large as its body; the others are in their sockets.
    let most = ahead.bytes();
    assert!((AHEAD_BYTES..COUNT as usize * BODY).contains(&most), "{most}");
    let mut left = COUNT as usize - first.len();
    drop(first);
    while left > 0 {
        let some = ends(&fetcher, 1);
        assert!(some.iter().all(|done| done.reading.is_some() && done.response.body.len() == BODY));
        left -= some.len();
    }
    assert_eq!(ahead.bytes(), 0);
}

#[test]
fn slow_bodies_stop_no_others() {
    let (fetcher, _, _) = start(1);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let slow = listener.local_addr().unwrap().port();
    let count = 2 * (AHEAD_BYTES / BODY) as u64;
    (0..count).for_each(|id| fetcher.submit(request(id, slow, "u")));
    fetcher.flush();
    let mut streams = Vec::new();
    for _ in 0..count {
        let mut stream = listener.accept().unwrap().0;
        let _ = stream.read(&mut [0; 1000]).unwrap();
        stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", BODY + 1).as_bytes()).unwrap();
        stream.write_all(&[b'x'; BODY]).unwrap();
        streams.push(stream);
    }
    fetcher.submit(request(count, serve(vec![b"abc".to_vec()]), "u"));
    fetcher.flush();
    assert_eq!(ends(&fetcher, 1)[0].id, count);
}

#[test]
fn a_response_that_waits_for_other_bodies_is_not_slow() {
    let config = Config { headers_timeout_s: 0.2, total_timeout_s: 30.0, ..Config::default() };
    let fetcher = Fetcher::start(config, None).unwrap();
    let share = fetcher.shared().ahead.share(AHEAD_BYTES);
    fetcher.submit(request(0, serve(vec![b"abc".to_vec()]), ""));
    fetcher.flush();
    std::thread::sleep(std::time::Duration::from_millis(600));
    assert!(fetcher.drain().is_empty());
    drop(share);
    let done = ends(&fetcher, 1).pop().unwrap();
    assert!(done.response.error.is_none() && done.response.body == b"abc");
}

#[test]
fn closing_drops_bodies_that_wait() {
    let (mut fetcher, gate, calls) = start(1);
    let port = serve(vec![b"x".to_vec(); 5]);
    let closed = gate.lock().unwrap();
    (0..5).for_each(|id| fetcher.submit(request(id, port, "u")));
    fetcher.flush();
    while calls.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    let opener = spawn(move || fetcher.close());
    drop(closed);
    opener.join().unwrap();
    assert!((1..=5).contains(&calls.load(Ordering::Relaxed)));
}
