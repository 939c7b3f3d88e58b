//! One response on one connection: bytes in, a finished response out. No socket, no clock.

use crate::body::Body;
use crate::chunked::Chunked;
use crate::coding::Codings;
use crate::config::{Config, DRAIN_BYTES};
use crate::error::{FetchError, Reason};
use crate::framing::{framing, is_exact, keeps_alive, Length};
use crate::head::{Head, HeadReader};
use crate::media;

/// Least step of a reservation, as `memory_budget.STEP_BYTES`.
const STEP_BYTES: u64 = 256 << 10;

/// The parts of a request that decide about its response.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The media type is not checked.
    pub any_type: bool,
    /// The body of every status is returned.
    pub forwarded: bool,
    /// The request is a HEAD: the response has no body.
    pub head_only: bool,
    /// 0: the whole body. Otherwise at most this many decoded bytes.
    pub keep: u64,
    /// 0: the limits of the settings. Otherwise both size limits.
    pub max_bytes: u64,
}

#[derive(Debug, Default)]
pub struct Response {
    pub head: Head,
    pub head_bytes: Vec<u8>,
    /// Of a wanted status the decoded body, of another one the body as received.
    pub body: Vec<u8>,
    pub wire_body: Option<Vec<u8>>,
    pub wire_bytes: u64,
    /// The WARC term for the reason why the body is incomplete; empty when it is complete.
    pub truncated: &'static str,
    /// Whether `body` is that of a wanted status.
    pub wanted: bool,
    pub error: Option<FetchError>,
    /// Whether the connection may serve another request.
    pub reuse: bool,
}

enum State {
    Head,
    Known(u64),
    Chunks,
    UntilClose,
    Done,
}

pub struct Exchange {
    wanted: Wanted,
    /// The connection has served an earlier request.
    reused: bool,
    state: State,
    reader: HeadReader,
    chunked: Chunked,
    body: Option<Body>,
    response: Response,
    reuse: bool,
    /// Empty: room for the body.
    buffer: Vec<u8>,
}

/// Whether the response is a document: 2xx, and a redirect status that leads nowhere (Fetch standard, "HTTP-redirect
/// fetch": if location URL is null, return response).
fn is_page(head: &Head) -> bool {
    let leads_nowhere = || head.get("location").is_none_or(|value| value.trim().is_empty());
    (200..300).contains(&head.status) || ((300..400).contains(&head.status) && head.status != 304 && leads_nowhere())
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Closed,
    Lost(String),
    /// The server has refused the connection after the handshake.
    Refused(FetchError),
}

impl Exchange {
    pub fn new(wanted: Wanted, reused: bool) -> Exchange {
        Exchange {
            wanted,
            reused,
            state: State::Head,
            reader: HeadReader::default(),
            chunked: Chunked::default(),
            body: None,
            response: Response::default(),
            reuse: false,
            buffer: Vec::new(),
        }
    }

    /// Whether a byte of the response has arrived.
    pub fn begun(&self) -> bool {
        !matches!(self.state, State::Head) || self.reader.begun()
    }

    /// The body is collected in this buffer, which has served an earlier one. Called before the first byte.
    pub fn collect_in(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.buffer = buffer;
    }

    /// Whether the head is complete.
    pub fn has_head(&self) -> bool {
        self.response.head.status != 0
    }

    pub fn done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Bytes of the body so far.
    pub fn received_bytes(&self) -> u64 {
        self.body.as_ref().map_or(0, |body| body.wire_bytes)
    }

    /// Whether the next bytes are decoded: few of them may need much memory.
    pub fn coded(&self) -> bool {
        self.body.as_ref().map_or(!self.has_head(), Body::coded)
    }

    /// The size that the body needs beyond `covered` bytes, before more is read. Bytes count as they arrive, with a
    /// look-ahead of a quarter: a length that a server claims costs it nothing.
    pub fn needs(&self, covered: u64) -> Option<u64> {
        let body = self.body.as_ref()?;
        let size = body.size();
        if size <= covered {
            return None;
        }
        let ahead = (size / 4).max(STEP_BYTES);
        let left = match self.state {
            State::Known(left) if !body.coded() => left.min(ahead),
            _ => ahead,
        };
        Some((size + left).min(body.limit().max(size)))
    }

    /// Decoded bytes of the body so far.
    pub fn size(&self) -> u64 {
        self.body.as_ref().map_or(0, Body::size)
    }

    /// The response; valid once `done`.
    pub fn into_response(self) -> Response {
        self.response
    }

    /// Adds bytes of the connection; true: the response is complete or has failed.
    pub fn feed(&mut self, config: &Config, data: &[u8]) -> bool {
        let fed = match self.state {
            State::Head => self.on_head(config, data),
            State::Done => Ok(()),
            _ => self.on_body(data),
        };
        if let Err(error) = fed {
            self.fail(error);
        }
        self.done()
    }

    /// The connection has ended.
    pub fn end(&mut self, end: &End) {
        let how = match end {
            End::Closed => "closed".to_owned(),
            End::Lost(why) => format!("lost ({why})"),
            End::Refused(error) => {
                if !self.done() {
                    self.fail(error.clone());
                }
                return;
            }
        };
        match self.state {
            State::Done => {}
            State::UntilClose if *end == End::Closed => {
                if let Err(error) = self.finish(false) {
                    self.fail(error);
                }
            }
            State::Head if !self.reader.begun() => {
                let reason = if self.reused { Reason::Stale } else { Reason::Disconnected };
                self.fail(FetchError::new(reason, format!("the connection was {how} before any answer")));
            }
            State::Head => {
                let detail = format!("the connection was {how} within the headers");
                self.fail(FetchError::new(Reason::Disconnected, detail));
            }
            _ => {
                let detail = format!("the connection was {how} within the body");
                self.fail(FetchError::new(Reason::Disconnected, detail));
            }
        }
    }

    /// The time is over while the body waits for memory.
    pub fn lacks_memory(&mut self, detail: &str) {
        self.fail(FetchError::new(Reason::Memory, detail));
    }

    /// A time limit is exceeded. The status of a response whose body is not wanted is sufficient.
    pub fn time_out(&mut self, detail: &str) {
        if self.has_head() && !self.response.wanted {
            self.complete_without_body("");
        } else {
            self.set_error(FetchError::new(Reason::Timeout, detail));
        }
    }

    fn on_head(&mut self, config: &Config, data: &[u8]) -> Result<(), FetchError> {
        let found = match self.reader.feed(data) {
            // The rest of the previous response, whose length was wrong: this request has no response yet.
            Err(error) if self.reused && error.detail.starts_with("not an HTTP/1") => {
                return Err(FetchError::new(Reason::Stale, "bytes of an earlier answer"));
            }
            other => other?,
        };
        let Some(found) = found else { return Ok(()) };
        if self.reused && found.head.status == 408 {
            return Err(FetchError::new(Reason::Stale, "the server had ended the idle connection (408)"));
        }
        let response = &mut self.response;
        response.head = found.head;
        response.wanted = self.wanted.forwarded || is_page(&response.head);
        if config.raw_capture {
            response.head_bytes = found.raw;
        }
        let media_type = media::essence(response.head.get("content-type").unwrap_or(""));
        if response.wanted && !self.wanted.any_type && !config.media.is_wanted(&media_type) {
            return Err(FetchError::new(Reason::ContentType, format!("{media_type} is not wanted")));
        }
        let (length, exact) = if self.wanted.head_only {
            (Length::Known(0), is_exact(&self.response.head))
        } else {
            framing(&self.response.head)?
        };
        self.reuse = exact && keeps_alive(&self.response.head);
        self.begin_body(config, length)?;
        let rest = &data[found.used..];
        if !self.done() && (!rest.is_empty() || length == Length::Known(0)) {
            self.on_body(rest)?;
        }
        Ok(())
    }

    fn begin_body(&mut self, config: &Config, length: Length) -> Result<(), FetchError> {
        let wanted = self.response.wanted;
        let keep = if wanted { self.wanted.keep } else { DRAIN_BYTES };
        if let Length::Known(size) = length {
            let limit = if self.wanted.max_bytes > 0 { self.wanted.max_bytes } else { config.max_wire_bytes };
            if size > limit && keep == 0 {
                return Err(FetchError::too_large(format!("Content-Length {size} is over {limit}")));
            }
            if !wanted && size > DRAIN_BYTES {
                self.complete_without_body("length");
                return Ok(());
            }
        }
        let codings = match self.response.head.get("content-encoding") {
            Some(header) if wanted => Codings::of(header)?,
            _ => Codings::default(),
        };
        // A body that is known to be short enough is read as a whole, and its end is certain.
        let fits = matches!(length, Length::Known(size) if keep > 0 && size <= keep && codings.is_empty());
        let (keep, max_bytes) = if fits { (0, keep) } else { (keep, self.wanted.max_bytes) };
        let buffer = std::mem::take(&mut self.buffer);
        self.body = Some(Body::new(config, codings, keep, max_bytes, length, buffer));
        self.state = match length {
            Length::Known(size) => State::Known(size),
            Length::Chunked => State::Chunks,
            Length::UntilClose => State::UntilClose,
        };
        Ok(())
    }

    /// Bytes that have arrived wait for their decoder: they follow with `feed` of no bytes.
    pub fn has_backlog(&self) -> bool {
        self.body.as_ref().is_some_and(Body::has_backlog)
    }

    fn on_body(&mut self, data: &[u8]) -> Result<(), FetchError> {
        let body = self.body.as_mut().expect("a body follows its head");
        if data.is_empty() {
            body.decode_backlog()?;
        }
        let complete = match &mut self.state {
            State::Known(left) => {
                let size = (*left).min(data.len() as u64) as usize;
                self.reuse &= size == data.len();
                *left -= size as u64;
                let complete = *left == 0;
                body.feed(0, &data[..size])?;
                complete
            }
            State::Chunks => {
                self.chunked.feed(data, &mut |framing, piece| body.feed(framing, piece))?;
                self.reuse &= !self.chunked.trailing;
                self.chunked.done()
            }
            State::UntilClose => {
                body.feed(0, data)?;
                false
            }
            State::Head | State::Done => unreachable!("no body in these states"),
        };
        if complete {
            body.complete();
            if body.has_backlog() {
                return Ok(());
            }
        }
        // A body that is exactly as long as wanted is full as well; its connection is closed, as nothing tells them apart.
        match (body.full(), complete) {
            (true, _) => self.finish(false),
            (false, true) => self.finish(self.reuse),
            (false, false) => Ok(()),
        }
    }

    fn finish(&mut self, reuse: bool) -> Result<(), FetchError> {
        let body = self.body.take().expect("finished once");
        self.response.wire_bytes = body.wire_bytes;
        if body.full() {
            self.response.truncated = "length";
        }
        (self.response.body, self.response.wire_body) = body.finish()?;
        self.response.reuse = reuse;
        self.state = State::Done;
        Ok(())
    }

    fn complete_without_body(&mut self, truncated: &'static str) {
        self.response.truncated = truncated;
        self.body = None;
        self.state = State::Done;
    }

    fn fail(&mut self, error: FetchError) {
        let stopped = matches!(error.reason, Reason::Stale | Reason::ContentType);
        if self.has_head() && !self.response.wanted && !stopped {
            // The status is sufficient; the body was read only to keep the connection.
            self.complete_without_body("disconnect");
        } else {
            self.set_error(error);
        }
    }

    fn set_error(&mut self, error: FetchError) {
        if let Some(body) = self.body.take() {
            self.response.wire_bytes = body.wire_bytes;
        }
        self.response.body = Vec::new();
        self.response.error = Some(error);
        self.response.reuse = false;
        self.state = State::Done;
    }
}
