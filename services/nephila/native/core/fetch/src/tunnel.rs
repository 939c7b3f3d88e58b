//! The handshakes that open a tunnel through a proxy: CONNECT (RFC 9110 9.3.6) and SOCKS5 (RFC 1928, RFC 1929). No
//! socket: bytes of the proxy go in, bytes for it come out.
//!
//! Reasons: `proxy` = the proxy is broken or refuses to serve, `proxy_auth` = it does not accept the credentials,
//! `tunnel_403` = it refuses CONNECT by this status, `connect` = it cannot reach the server.

use std::net::IpAddr;

use memchr::memmem;

use crate::error::{FetchError, Reason};

const MAX_REPLY_BYTES: usize = 16 << 10;
const NO_AUTH: u8 = 0;
const PASSWORD: u8 = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// The request itself goes to the proxy.
    Plain,
    /// The request CONNECT as sent.
    Connect(Vec<u8>),
    Socks5 {
        user: String,
        password: String,
    },
}

/// The proxy of a request. `host` and `port` are what it connects to: an address that passed the egress guard, or a
/// name that the proxy resolves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    pub name: String,
    /// Name in the certificate of the proxy; None: no TLS to it.
    pub tls_name: Option<String>,
    pub way: Way,
    pub host: String,
    pub port: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Connect,
    Method,
    Password,
    Reply,
    Done,
}

/// One handshake, from its first bytes to an open tunnel.
#[derive(Debug)]
pub struct Tunnel {
    hop: Hop,
    reply: Vec<u8>,
    stage: Stage,
}

impl Tunnel {
    /// The handshake and its first bytes; None: the proxy needs none.
    pub fn begin(hop: &Hop) -> Option<(Tunnel, Vec<u8>)> {
        let (stage, first) = match &hop.way {
            Way::Plain => return None,
            Way::Connect(head) => (Stage::Connect, head.clone()),
            Way::Socks5 { user, .. } if user.is_empty() => (Stage::Method, vec![5, 1, NO_AUTH]),
            Way::Socks5 { .. } => (Stage::Method, vec![5, 2, NO_AUTH, PASSWORD]),
        };
        Some((Tunnel { hop: hop.clone(), reply: Vec::new(), stage }, first))
    }

    /// Whether the tunnel is open.
    pub fn done(&self) -> bool {
        self.stage == Stage::Done
    }

    pub fn broken(&self, why: &str) -> FetchError {
        FetchError::new(Reason::Proxy, format!("{}{why}", self.hop.name))
    }

    /// Bytes of the proxy; returns the next bytes for it.
    pub fn feed(&mut self, data: &[u8]) -> Result<Vec<u8>, FetchError> {
        self.reply.extend_from_slice(data);
        let mut answer = Vec::new();
        while !self.done() {
            let more = match self.stage {
                Stage::Connect => self.read_connect()?,
                Stage::Method => self.read_method()?,
                Stage::Password => self.read_password()?,
                Stage::Reply => self.read_reply()?,
                Stage::Done => None,
            };
            match more {
                None => return Ok(answer),
                Some(more) => answer.extend_from_slice(&more),
            }
        }
        if self.reply.is_empty() {
            Ok(answer)
        } else {
            Err(self.broken(": bytes of a server that was sent nothing"))
        }
    }

    fn read_connect(&mut self) -> Result<Option<Vec<u8>>, FetchError> {
        let reply = &self.reply;
        if !b"HTTP/".starts_with(&reply[..reply.len().min(5)]) {
            return Err(self.broken(" does not speak HTTP"));
        }
        let Some(end) = memmem::find(reply, b"\r\n\r\n") else {
            if reply.len() > MAX_REPLY_BYTES {
                return Err(self.broken(": an endless reply to CONNECT"));
            }
            return Ok(None);
        };
        let line = reply.split(|&byte| byte == b'\r').next().unwrap_or(&[]);
        let word = line.split(|&byte| byte == b' ').nth(1).unwrap_or(&[]);
        if word.len() != 3 || !word.iter().all(u8::is_ascii_digit) {
            return Err(self.broken(": a reply to CONNECT without a status"));
        }
        let status = word.iter().fold(0, |sum, &digit| sum * 10 + u16::from(digit - b'0'));
        if !(200..300).contains(&status) {
            return Err(self.refused(status));
        }
        self.reply.drain(..end + 4);
        self.stage = Stage::Done;
        Ok(Some(Vec::new()))
    }

    fn refused(&self, status: u16) -> FetchError {
        let Hop { name, host, port, .. } = &self.hop;
        match status {
            407 => FetchError::new(Reason::ProxyAuth, format!("{name} does not accept the credentials (407)")),
            502..=504 => FetchError::new(Reason::Connect, format!("{name} cannot reach {host} ({status})")),
            ..=299 => self.broken(&format!(": status {status} in reply to CONNECT")),
            _ => FetchError::new(Reason::Tunnel(status), format!("{name} refuses CONNECT to port {port} ({status})")),
        }
    }

    fn read_method(&mut self) -> Result<Option<Vec<u8>>, FetchError> {
        if self.reply.first().is_some_and(|&version| version != 5) {
            return Err(self.broken(" does not speak SOCKS5"));
        }
        let [_, method, ..] = self.reply[..] else { return Ok(None) };
        self.reply.drain(..2);
        match &self.hop.way {
            _ if method == NO_AUTH => {
                self.stage = Stage::Reply;
                Ok(Some(self.request()))
            }
            Way::Socks5 { user, password } if method == PASSWORD && !user.is_empty() => {
                self.stage = Stage::Password;
                let mut answer = vec![1];
                push_short(&mut answer, user.as_bytes());
                push_short(&mut answer, password.as_bytes());
                Ok(Some(answer))
            }
            _ if method == 0xff => Err(self.denied(": no credentials that it accepts")),
            _ => Err(self.denied(&format!(": method {method} is unknown"))),
        }
    }

    fn denied(&self, why: &str) -> FetchError {
        FetchError::new(Reason::ProxyAuth, format!("{}{why}", self.hop.name))
    }

    fn read_password(&mut self) -> Result<Option<Vec<u8>>, FetchError> {
        let [_, status, ..] = self.reply[..] else { return Ok(None) };
        self.reply.drain(..2);
        if status != 0 {
            return Err(self.denied(" does not accept the credentials"));
        }
        self.stage = Stage::Reply;
        Ok(Some(self.request()))
    }

    fn request(&self) -> Vec<u8> {
        let mut data = vec![5, 1, 0];
        match self.hop.host.parse() {
            Ok(IpAddr::V4(address)) => {
                data.push(1);
                data.extend_from_slice(&address.octets());
            }
            Ok(IpAddr::V6(address)) => {
                data.push(4);
                data.extend_from_slice(&address.octets());
            }
            Err(_) => {
                data.push(3);
                push_short(&mut data, self.hop.host.as_bytes());
            }
        }
        data.extend_from_slice(&self.hop.port.to_be_bytes());
        data
    }

    fn read_reply(&mut self) -> Result<Option<Vec<u8>>, FetchError> {
        let reply = &self.reply;
        if let Some(&code) = reply.get(1).filter(|&&code| code != 0) {
            let (reason, text) = socks_error(code);
            return Err(FetchError::new(reason, format!("{}: {text} ({})", self.hop.name, self.hop.host)));
        }
        let [_, _, _, kind, first, ..] = reply[..] else { return Ok(None) };
        let size = match kind {
            1 => 4,
            3 => 1 + usize::from(first),
            4 => 16,
            _ => return Err(self.broken(&format!(": a bound address of kind {kind}"))),
        };
        if reply.len() < 4 + size + 2 {
            return Ok(None);
        }
        self.reply.drain(..4 + size + 2);
        self.stage = Stage::Done;
        Ok(Some(Vec::new()))
    }
}

/// A length in one byte, and the bytes; more than 255 are cut off.
fn push_short(data: &mut Vec<u8>, bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(255)];
    data.push(bytes.len() as u8);
    data.extend_from_slice(bytes);
}

fn socks_error(code: u8) -> (Reason, String) {
    let (reason, text) = match code {
        1 => (Reason::Proxy, "general failure"),
        2 => (Reason::Proxy, "not allowed by its rules"),
        3 => (Reason::Connect, "network unreachable"),
        4 => (Reason::Connect, "host unreachable"),
        5 => (Reason::Connect, "connection refused"),
        6 => (Reason::Connect, "time to live expired"),
        7 => (Reason::Proxy, "command not supported"),
        8 => (Reason::Proxy, "kind of address not supported"),
        _ => return (Reason::Proxy, format!("error {code}")),
    };
    (reason, text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(way: Way, host: &str) -> Hop {
        Hop { name: "http://p:1".into(), tls_name: None, way, host: host.into(), port: 443 }
    }

    /// Bytes for the proxy, and whether the tunnel is open, for a reply split at every place.
    fn run(hop: &Hop, reply: &[u8]) -> Result<(Vec<u8>, bool), Reason> {
        let at = |stops: &[usize]| {
            let (mut tunnel, mut sent) = Tunnel::begin(hop).unwrap();
            let mut from = 0;
            for &stop in stops.iter().chain([&reply.len()]) {
                sent.extend(tunnel.feed(&reply[from..stop]).map_err(|error| error.reason)?);
                from = stop;
            }
            Ok((sent, tunnel.done()))
        };
        let whole = at(&[]);
        for stop in 0..reply.len() {
            assert_eq!(at(&[stop]), whole, "{stop}");
        }
        assert_eq!(at(&(0..reply.len()).collect::<Vec<_>>()), whole);
        whole
    }

    #[test]
    fn connect() {
        let hop = hop(Way::Connect(b"CONNECT".to_vec()), "a.example");
        assert_eq!(run(&hop, b"HTTP/1.0 200 OK\r\nA: b\r\n\r\n"), Ok((b"CONNECT".to_vec(), true)));
        assert_eq!(run(&hop, b"HTTP/1.0 200 OK\r\n"), Ok((b"CONNECT".to_vec(), false)));
        for (reply, reason) in [
            (b"HTTP/1.1 407 No\r\n\r\n".as_slice(), Reason::ProxyAuth),
            (b"HTTP/1.1 503 No\r\n\r\n", Reason::Connect),
            (b"HTTP/1.1 403 No\r\n\r\n", Reason::Tunnel(403)),
            (b"HTTP/1.1 100 Go\r\n\r\n", Reason::Proxy),
            (b"HTTP/1.1 20 No\r\n\r\n", Reason::Proxy),
            (b"SSH-2.0\r\n\r\n", Reason::Proxy),
        ] {
            assert_eq!(run(&hop, reply), Err(reason));
        }
        let (mut tunnel, _) = Tunnel::begin(&hop).unwrap();
        assert!(tunnel.feed(b"HTTP/1.0 200 OK\r\n\r\nx").is_err());
    }

    #[test]
    fn socks5() {
        let way = |user: &str| Way::Socks5 { user: user.into(), password: "secret".into() };
        let bound = b"\x05\x00\x00\x01\x7f\0\0\x01\x00\x50";
        let open = hop(way(""), "10.0.0.1");
        let sent = b"\x05\x01\x00\x05\x01\x00\x01\x0a\x00\x00\x01\x01\xbb".to_vec();
        assert_eq!(run(&open, &[b"\x05\x00".as_slice(), bound].concat()), Ok((sent, true)));
        let named = hop(way("u"), "a.example");
        let sent = b"\x05\x02\x00\x02\x01\x01u\x06secret\x05\x01\x00\x03\x09a.example\x01\xbb".to_vec();
        assert_eq!(run(&named, &[b"\x05\x02\x01\x00".as_slice(), bound].concat()), Ok((sent, true)));
        for (reply, reason) in [
            (b"\x04\x00".as_slice(), Reason::Proxy),
            (b"\x05\xff", Reason::ProxyAuth),
            (b"\x05\x01", Reason::ProxyAuth),
            (b"\x05\x02\x01\x01", Reason::ProxyAuth),
            (b"\x05\x00\x05\x05", Reason::Connect),
            (b"\x05\x00\x05\x63", Reason::Proxy),
            (b"\x05\x00\x05\x00\x00\x09\x01", Reason::Proxy),
        ] {
            assert_eq!(run(&named, reply), Err(reason), "{reply:?}");
        }
    }
}
