//! A connection to a server: TCP, TLS to a proxy, the handshake with the proxy, TLS to the server. Never blocks.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use mio::net::TcpStream;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use crate::error::{FetchError, Reason};
use crate::exchange::End;
use crate::tls::{certificate_asked, demand, handshake_error, with_demand, without_certificate};
use crate::tunnel::{Hop, Tunnel};
use crate::wire::{flush_through, plain, read_through, shake_hands, write_through, Socket, Wire};

/// Bytes of TLS without content that a connection may receive: handshakes, tickets, alerts, key updates. Certificates
/// have at most 64 KiB.
const BARREN_BYTES: u64 = 256 << 10;
/// Greatest size of records over their content: one byte in a record of TLS 1.2 has 30, within TLS to a proxy 52.
const RECORD_FACTOR: u64 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Tcp,
    ProxyTls,
    Proxy,
    Tls,
    Open,
}

pub struct Link {
    wire: Wire,
    tls: Option<Box<ClientConnection>>,
    /// The name of the proxy, for people.
    proxy: Option<String>,
    /// The handshake with the proxy.
    tunnel: Option<Tunnel>,
    stage: Stage,
    /// The server has asked for a certificate of the client, and has sent no answer yet.
    asked: bool,
    out: Vec<u8>,
    written: usize,
    /// Decoded bytes so far.
    content: u64,
}

/// The result of a read.
#[derive(Debug, PartialEq, Eq)]
pub enum Got {
    Bytes(usize),
    /// The socket is empty: its next byte makes an event.
    Later,
    /// The turn of the connection is over; bytes may be left.
    TurnOver,
    End(End),
}

fn session(config: &Arc<ClientConfig>, name: &str) -> Result<Box<ClientConnection>, FetchError> {
    let invalid = |_| FetchError::new(Reason::Tls, format!("handshake: {name:?} is no server name"));
    let parsed = ServerName::try_from(name.to_owned()).map_err(invalid)?;
    ClientConnection::new(Arc::clone(config), parsed).map(Box::new).map_err(|error| handshake_error(&error))
}

impl Link {
    /// Begins a connection. `tls_name`: the name in the certificate of the server; None: no TLS to it. `config` is
    /// called when a connection needs TLS.
    pub fn dial(
        address: IpAddr,
        port: u16,
        tls_name: Option<&str>,
        hop: Option<&Hop>,
        config: &mut dyn FnMut() -> Arc<ClientConfig>,
    ) -> Result<Link, FetchError> {
        let tls = tls_name.map(|name| session(&config(), name)).transpose()?;
        let outer = hop.and_then(|hop| hop.tls_name.as_deref()).map(|name| session(&config(), name)).transpose()?;
        let (tunnel, out) = hop.and_then(Tunnel::begin).map_or((None, Vec::new()), |(one, first)| (Some(one), first));
        let proxy = hop.map(|hop| hop.name.clone());
        let stream =
            TcpStream::connect(SocketAddr::new(address, port)).map_err(|error| refused(proxy.as_deref(), &error))?;
        let wire = Wire { socket: Socket::new(stream), tls: outer };
        Ok(Link { wire, tls, proxy, tunnel, stage: Stage::Tcp, asked: false, out, written: 0, content: 0 })
    }

    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.wire.socket.stream
    }

    /// Allows the next TURN_BYTES.
    pub fn begin_turn(&mut self) {
        self.wire.socket.begin_turn();
    }

    /// Whether bytes may be left that make no event.
    pub fn turn_is_over(&self) -> bool {
        self.wire.socket.turn_is_over()
    }

    /// Whether the peer sends TLS records instead of content.
    fn is_barren(&self) -> bool {
        self.has_tls() && self.wire.socket.received > BARREN_BYTES + RECORD_FACTOR * self.content
    }

    /// Whether reads may return data that has left the socket before.
    pub fn has_tls(&self) -> bool {
        self.tls.is_some() || self.wire.tls.is_some()
    }

    /// Whether the proxy is connected, and its server is not.
    pub fn in_tunnel(&self) -> bool {
        self.proxy.is_some() && self.stage > Stage::ProxyTls
    }

    /// Whether the connection is open, all handshakes included.
    pub fn open(&mut self) -> Result<bool, FetchError> {
        loop {
            let (done, next) = match self.stage {
                Stage::Tcp => (self.connected()?, Stage::ProxyTls),
                Stage::ProxyTls => (self.wire.open().map_err(|error| self.of_proxy(error))?, Stage::Proxy),
                Stage::Proxy => (self.pass_proxy()?, Stage::Tls),
                Stage::Tls => match &mut self.tls {
                    None => (true, Stage::Open),
                    Some(tls) => {
                        let done = shake_hands(tls, &mut self.wire);
                        self.asked |= certificate_asked();
                        let asked = self.asked;
                        (done.map_err(|error| with_demand(error, asked))?, Stage::Open)
                    }
                },
                Stage::Open => return Ok(true),
            };
            if !done {
                if self.is_barren() {
                    return Err(FetchError::new(Reason::Tls, format!("handshake: over {BARREN_BYTES} bytes")));
                }
                return Ok(false);
            }
            self.stage = next;
        }
    }

    fn of_proxy(&self, error: FetchError) -> FetchError {
        let name = self.proxy.as_deref().unwrap_or("");
        FetchError::new(Reason::Proxy, format!("{name}: {}", error.detail))
    }

    fn connected(&self) -> Result<bool, FetchError> {
        let stream = &self.wire.socket.stream;
        let refused = |error: io::Error| refused(self.proxy.as_deref(), &error);
        if let Some(error) = stream.take_error().map_err(refused)? {
            return Err(refused(error));
        }
        match stream.peer_addr() {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(false),
            Err(error) => return Err(refused(error)),
        }
        let _ = stream.set_nodelay(true); // without it the connection is slower, not wrong
        Ok(true)
    }

    /// The server sends nothing before it receives something, so no byte that is read here belongs to it.
    fn pass_proxy(&mut self) -> Result<bool, FetchError> {
        let Some(tunnel) = &mut self.tunnel else { return Ok(true) };
        let mut data = [0; 4096];
        loop {
            let mut step = || -> io::Result<usize> {
                while self.written < self.out.len() {
                    self.written += self.wire.write(&self.out[self.written..])?;
                }
                self.wire.flush()?;
                self.wire.read(&mut data)
            };
            match step() {
                Ok(0) => return Err(tunnel.broken(" closed the connection within the handshake")),
                Ok(size) => {
                    self.out = tunnel.feed(&data[..size])?;
                    self.written = 0;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(tunnel.broken(&format!(": {}", plain(&error)))),
            }
            if tunnel.done() {
                self.out.clear();
                self.tunnel = None;
                return Ok(true);
            }
        }
    }

    /// Writes what fits now; the rest follows in `flush`.
    pub fn send(&mut self, data: &[u8]) -> io::Result<()> {
        self.out.extend_from_slice(data);
        self.flush()
    }

    pub fn flush(&mut self) -> io::Result<()> {
        match self.write_out() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            other => other,
        }
    }

    fn write_out(&mut self) -> io::Result<()> {
        while self.written < self.out.len() {
            let rest = &self.out[self.written..];
            self.written += match &mut self.tls {
                None => self.wire.write(rest)?,
                Some(tls) => write_through(tls, &mut self.wire, rest)?,
            };
        }
        self.out.clear();
        self.written = 0;
        match &mut self.tls {
            None => self.wire.flush(),
            Some(tls) => flush_through(tls, &mut self.wire),
        }
    }

    /// Reads once.
    pub fn read(&mut self, buffer: &mut [u8]) -> Got {
        loop {
            let read = match &mut self.tls {
                None => self.wire.read(buffer),
                Some(tls) => read_through(tls, &mut self.wire, buffer),
            };
            return match read {
                // Some servers that want a certificate close without an alert.
                Ok(0) if self.asked => Got::End(End::Refused(without_certificate())),
                Ok(0) => Got::End(End::Closed),
                Ok(size) => {
                    self.asked = false;
                    self.content += size as u64;
                    Got::Bytes(size)
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock && self.is_barren() => {
                    Got::End(End::Lost(format!("over {BARREN_BYTES} bytes of TLS records without content")))
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => match self.turn_is_over() {
                    true => Got::TurnOver,
                    false => Got::Later,
                },
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Got::End(match demand(&error) {
                    Some(refusal) => End::Refused(refusal),
                    None => End::Lost(plain(&error)),
                }),
            };
        }
    }
}

fn refused(proxy: Option<&str>, error: &io::Error) -> FetchError {
    match proxy {
        None => FetchError::new(Reason::Connect, plain(error)),
        Some(name) => FetchError::new(Reason::Proxy, format!("{name}: {}", plain(error))),
    }
}
