//! Bytes over a socket, and TLS over anything that reads and writes: of a server, of a proxy, or one within the other.
//! Never blocks.

use std::io::{self, ErrorKind, Read, Write};

use mio::net::TcpStream;
use rustls::ClientConnection;

use crate::error::{FetchError, Reason};
use crate::tls::handshake_error;

/// The text of an error without its number.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or("").to_owned()
}

fn is_later(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}

/// Whether the handshake is done.
pub fn shake_hands(tls: &mut ClientConnection, wire: &mut (impl Read + Write)) -> Result<bool, FetchError> {
    let closed =
        |why: &str| FetchError::new(Reason::Tls, format!("the connection was closed during the handshake: {why}"));
    let mut step = || -> io::Result<bool> {
        wire.flush()?;
        loop {
            while tls.wants_write() {
                tls.write_tls(wire)?;
            }
            if !tls.is_handshaking() {
                return Ok(true);
            }
            if tls.read_tls(wire)? == 0 {
                return Err(io::Error::other("end of data"));
            }
            if let Err(error) = tls.process_new_packets() {
                let _ = tls.write_tls(wire); // the alert; the connection ends in any case
                return Err(io::Error::other(error));
            }
        }
    };
    match step() {
        Err(error) if is_later(&error) => Ok(false),
        Err(error) => Err(match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(refused) => handshake_error(refused),
            None => closed(&plain(&error)),
        }),
        done => Ok(done.unwrap_or(false)),
    }
}

/// Reads decoded bytes; those of records that have arrived come first. 0: the end. An end without an alert counts as
/// an end, as OpenSSL is set to; the framing shows what is missing.
pub fn read_through(
    tls: &mut ClientConnection,
    wire: &mut (impl Read + Write),
    buffer: &mut [u8],
) -> io::Result<usize> {
    loop {
        match tls.reader().read(buffer) {
            Err(error) if is_later(&error) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
            other => return other,
        }
        tls.read_tls(wire)?;
        tls.process_new_packets().map_err(io::Error::other)?;
        if tls.wants_write() {
            let _ = tls.write_tls(wire); // a key update; what does not fit follows with the next write
        }
    }
}

/// Takes bytes as far as there is room for them; some may be written later, by `flush_through`.
pub fn write_through(tls: &mut ClientConnection, wire: &mut impl Write, data: &[u8]) -> io::Result<usize> {
    let size = tls.writer().write(data)?;
    match flush_through(tls, wire) {
        Err(error) if is_later(&error) && (size > 0 || data.is_empty()) => Ok(size),
        Err(error) => Err(error),
        Ok(()) if size == 0 && !data.is_empty() => Err(ErrorKind::WouldBlock.into()),
        Ok(()) => Ok(size),
    }
}

pub fn flush_through(tls: &mut ClientConnection, wire: &mut impl Write) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(wire)?;
    }
    wire.flush()
}

/// Bytes that one connection may read in a turn of the I/O thread: other connections and the time limits follow.
pub const TURN_BYTES: usize = 256 << 10;
/// Part of the turn that a read takes, however few bytes it brings.
const READ_LEAST: usize = 256;

/// A socket that reads no more than TURN_BYTES between two calls of `begin_turn`: beyond them a read would block. So
/// every loop over the bytes of a peer has an end: of TLS records, handshakes, tunnels and bodies.
pub struct Socket {
    pub stream: TcpStream,
    left: usize,
    /// Bytes read so far.
    pub received: u64,
}

impl Socket {
    pub fn new(stream: TcpStream) -> Socket {
        Socket { stream, left: TURN_BYTES, received: 0 }
    }

    pub fn begin_turn(&mut self) {
        self.left = TURN_BYTES;
    }

    /// Whether the socket may hold bytes that this turn does not read.
    pub fn turn_is_over(&self) -> bool {
        self.left == 0
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let size = self.stream.read(buffer)?;
        self.left = self.left.saturating_sub(size.max(READ_LEAST));
        self.received += size as u64;
        Ok(size)
    }
}

impl Write for Socket {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.stream.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A socket, with TLS to a proxy over it where there is one.
pub struct Wire {
    pub socket: Socket,
    pub tls: Option<Box<ClientConnection>>,
}

impl Wire {
    /// Whether TLS to the proxy is established; without it at once.
    pub fn open(&mut self) -> Result<bool, FetchError> {
        match &mut self.tls {
            None => Ok(true),
            Some(tls) => shake_hands(tls, &mut self.socket),
        }
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.read(buffer),
            Some(tls) => read_through(tls, &mut self.socket, buffer),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.write(data),
            Some(tls) => write_through(tls, &mut self.socket, data),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            None => Ok(()),
            Some(tls) => flush_through(tls, &mut self.socket),
        }
    }
}
