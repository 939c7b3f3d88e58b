//! A TCP connection with or without TLS: opening, writing what fits, reading what is there. Never blocks.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use mio::net::TcpStream;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use crate::error::{FetchError, Reason};
use crate::exchange::End;
use crate::tls::handshake_error;
use crate::tunnel::{Hop, Tunnel};

pub struct Link {
    pub stream: TcpStream,
    tls: Option<Box<ClientConnection>>,
    /// The proxy of this connection, by its name.
    proxy: Option<String>,
    /// The handshake with the proxy, until it is done.
    tunnel: Option<Tunnel>,
    connected: bool,
    out: Vec<u8>,
    written: usize,
}

/// The result of a read.
#[derive(Debug, PartialEq, Eq)]
pub enum Got {
    Bytes(usize),
    Later,
    End(End),
}

/// The text of an error without its number.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or("").to_owned()
}

fn refused(proxy: Option<&str>, error: &io::Error) -> FetchError {
    match proxy {
        None => FetchError::new(Reason::Connect, plain(error)),
        Some(name) => FetchError::new(Reason::Proxy, format!("{name}: {}", plain(error))),
    }
}

impl Link {
    /// Begins a connection; `tls`: settings and the name in the certificate of the server.
    pub fn dial(
        address: IpAddr,
        port: u16,
        tls: Option<(Arc<ClientConfig>, &str)>,
        hop: Option<&Hop>,
    ) -> Result<Link, FetchError> {
        let tls = match tls {
            None => None,
            Some((config, name)) => {
                let invalid = |_| FetchError::new(Reason::Tls, format!("handshake: {name:?} is no server name"));
                let name = ServerName::try_from(name.to_owned()).map_err(invalid)?;
                let session = ClientConnection::new(config, name).map_err(|error| handshake_error(&error))?;
                Some(Box::new(session))
            }
        };
        let proxy = hop.map(|hop| hop.name.clone());
        let stream =
            TcpStream::connect(SocketAddr::new(address, port)).map_err(|error| refused(proxy.as_deref(), &error))?;
        let (tunnel, out) = hop.and_then(Tunnel::begin).map_or((None, Vec::new()), |(one, first)| (Some(one), first));
        Ok(Link { stream, tls, proxy, tunnel, connected: false, out, written: 0 })
    }

    pub fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether the connection is open, TLS included.
    pub fn open(&mut self) -> Result<bool, FetchError> {
        let proxy = self.proxy.as_deref();
        if !self.connected {
            if let Some(error) = self.stream.take_error().map_err(|error| refused(proxy, &error))? {
                return Err(refused(proxy, &error));
            }
            match self.stream.peer_addr() {
                Ok(_) => self.connected = true,
                Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(false),
                Err(error) => return Err(refused(proxy, &error)),
            }
            let _ = self.stream.set_nodelay(true); // without it the connection is slower, not wrong
        }
        Ok(self.pass_proxy()? && self.shake_hands()?)
    }

    /// Whether the proxy is connected, and its server is not.
    pub fn in_tunnel(&self) -> bool {
        self.connected && self.proxy.is_some()
    }

    /// The handshake with the proxy, before any TLS. The server sends nothing before it receives something, so no byte
    /// that is read here belongs to it.
    fn pass_proxy(&mut self) -> Result<bool, FetchError> {
        let Some(tunnel) = &mut self.tunnel else { return Ok(true) };
        let lost = |tunnel: &Tunnel, error: &io::Error| tunnel.broken(&format!(": {}", plain(error)));
        let mut data = [0; 4096];
        loop {
            while self.written < self.out.len() {
                match self.stream.write(&self.out[self.written..]) {
                    Ok(size) => self.written += size,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                    Err(error) => return Err(lost(tunnel, &error)),
                }
            }
            match self.stream.read(&mut data) {
                Ok(0) => return Err(tunnel.broken(" closed the connection within the handshake")),
                Ok(size) => {
                    self.out = tunnel.feed(&data[..size])?;
                    self.written = 0;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(lost(tunnel, &error)),
            }
            if tunnel.done() {
                self.out.clear();
                self.tunnel = None;
                return Ok(true);
            }
        }
    }

    fn shake_hands(&mut self) -> Result<bool, FetchError> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        let closed =
            |why: &str| FetchError::new(Reason::Tls, format!("the connection was closed during the handshake: {why}"));
        loop {
            while tls.wants_write() {
                match tls.write_tls(&mut self.stream) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                    Err(error) => return Err(closed(&plain(&error))),
                }
            }
            if !tls.is_handshaking() {
                return Ok(true);
            }
            match tls.read_tls(&mut self.stream) {
                Ok(0) => return Err(closed("end of data")),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(closed(&plain(&error))),
            }
            if let Err(error) = tls.process_new_packets() {
                let _ = tls.write_tls(&mut self.stream); // the alert; the connection ends in any case
                return Err(handshake_error(&error));
            }
        }
    }

    /// Writes what fits now; the rest follows in `flush`.
    pub fn send(&mut self, data: &[u8]) -> io::Result<()> {
        self.out.extend_from_slice(data);
        self.flush()
    }

    pub fn flush(&mut self) -> io::Result<()> {
        loop {
            let rest = &self.out[self.written..];
            let step = match &mut self.tls {
                None if rest.is_empty() => break,
                None => self.stream.write(rest).map(|size| self.written += size),
                Some(tls) => {
                    // rustls takes 64 KiB; further bytes wait until these are written.
                    let size = tls.writer().write(rest)?;
                    self.written += size;
                    if !tls.wants_write() {
                        break;
                    }
                    tls.write_tls(&mut self.stream).map(drop)
                }
            };
            match step {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(())
    }

    /// Reads once; data of TLS records that have arrived comes first.
    pub fn read(&mut self, buffer: &mut [u8]) -> Got {
        loop {
            let read = match &mut self.tls {
                None => self.stream.read(buffer),
                Some(tls) => match tls.reader().read(buffer) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => match self.receive() {
                        Ok(()) => continue,
                        Err(error) => Err(error),
                    },
                    // An end without an alert counts as an end, as OpenSSL is set to; framing tells what is missing.
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(0),
                    other => other,
                },
            };
            return match read {
                Ok(0) => Got::End(End::Closed),
                Ok(size) => Got::Bytes(size),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Got::Later,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Got::End(End::Lost(plain(&error))),
            };
        }
    }

    /// Reads TLS records from the socket.
    fn receive(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        tls.read_tls(&mut self.stream)?;
        tls.process_new_packets().map_err(io::Error::other)?;
        if tls.wants_write() {
            let _ = tls.write_tls(&mut self.stream); // a key update; what does not fit follows with the next request
        }
        Ok(())
    }
}
