//! Decoder of the chunked transfer coding (RFC 9112 7.1), piece by piece.

use memchr::memchr;

use crate::error::FetchError;

const MAX_LINE: usize = 4096;
const MAX_TRAILERS: usize = 16 << 10;
/// 32 MiB in chunks of 128 bytes; servers that flush each line write fewer.
const MAX_CHUNKS: u32 = 1 << 18;

/// Takes the framing bytes so far and a piece of body; false: no more is wanted.
pub type Sink<'a> = dyn FnMut(u64, &[u8]) -> Result<bool, FetchError> + 'a;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size,
    Data,
    /// Line end behind the data of a chunk.
    End,
    Trailers,
    Done,
}

#[derive(Debug)]
pub struct Chunked {
    state: State,
    left: u64,
    line: Vec<u8>,
    trailers: usize,
    chunks: u32,
    /// Bytes so far that are not body.
    pub framing: u64,
    /// Bytes follow the end of the message.
    pub trailing: bool,
}

impl Default for Chunked {
    fn default() -> Chunked {
        Chunked { state: State::Size, left: 0, line: Vec::new(), trailers: 0, chunks: 0, framing: 0, trailing: false }
    }
}

impl Chunked {
    pub fn done(&self) -> bool {
        self.state == State::Done
    }

    /// Calls `sink` with each piece of body in `data`. O(bytes).
    pub fn feed(&mut self, data: &[u8], sink: &mut Sink<'_>) -> Result<(), FetchError> {
        let mut rest = data;
        while !rest.is_empty() {
            if self.state == State::Done {
                self.trailing = true;
                return Ok(());
            }
            if self.state == State::Data {
                let size = self.left.min(rest.len() as u64) as usize;
                let (piece, after) = rest.split_at(size);
                rest = after;
                self.left -= size as u64;
                if self.left == 0 {
                    self.state = State::End;
                }
                if !sink(self.framing, piece)? {
                    return Ok(());
                }
                continue;
            }
            let near = &rest[..rest.len().min(MAX_LINE)];
            let newline = memchr(b'\n', near);
            if self.line.len() + newline.unwrap_or(near.len()) >= MAX_LINE {
                return Err(FetchError::protocol("a line of the chunked coding is too long"));
            }
            let Some(newline) = newline else {
                self.line.extend_from_slice(near);
                self.framing += near.len() as u64;
                return Ok(());
            };
            self.framing += newline as u64 + 1;
            if self.line.is_empty() {
                self.on_line(&rest[..newline])?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&rest[..newline]);
                self.on_line(&line)?;
            }
            rest = &rest[newline + 1..];
        }
        Ok(())
    }

    fn on_line(&mut self, line: &[u8]) -> Result<(), FetchError> {
        let stop = line.iter().rposition(|&byte| byte != b'\r').map_or(0, |at| at + 1);
        let line = &line[..stop];
        match self.state {
            State::Size => {
                self.left = size_of(line).ok_or_else(|| {
                    let shown = crate::head::latin1(&line[..line.len().min(20)]);
                    FetchError::protocol(format!("chunk size {shown:?} is not a hexadecimal number"))
                })?;
                self.chunks += 1;
                if self.chunks > MAX_CHUNKS {
                    return Err(FetchError::protocol(format!("over {MAX_CHUNKS} chunks")));
                }
                self.state = if self.left > 0 { State::Data } else { State::Trailers };
            }
            State::End if line.is_empty() => self.state = State::Size,
            State::End => return Err(FetchError::protocol("a chunk is longer than its size says")),
            State::Trailers if line.is_empty() => self.state = State::Done,
            State::Trailers => {
                self.trailers += line.len();
                if self.trailers > MAX_TRAILERS {
                    return Err(FetchError::protocol("trailers over 16 KiB"));
                }
            }
            State::Data | State::Done => unreachable!("no lines in these states"),
        }
        Ok(())
    }
}

/// One to fifteen hexadecimal digits between blanks, before the end or an extension.
fn size_of(line: &[u8]) -> Option<u64> {
    let named = line.split(|&byte| byte == b';').next().unwrap_or(&[]);
    let digits = std::str::from_utf8(named).ok()?.trim_matches([' ', '\t']);
    if !(1..=15).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parts: &[&[u8]]) -> Result<(Vec<u8>, Chunked), FetchError> {
        let (mut chunked, mut body) = (Chunked::default(), Vec::new());
        for part in parts {
            chunked.feed(part, &mut |_, piece| {
                body.extend_from_slice(piece);
                Ok(true)
            })?;
        }
        Ok((body, chunked))
    }

    #[test]
    fn every_split_reads_the_same() {
        let data = b"4;x=y\r\nwiki\r\n \t5 \r\npedia\r\n00b\nhello there\n0\r\nX-Trailer: 1\r\n\r\n";
        for first in 0..=data.len() {
            for second in first..=data.len() {
                let (body, chunked) = read(&[&data[..first], &data[first..second], &data[second..]]).unwrap();
                assert_eq!(body, b"wikipediahello there");
                assert!(chunked.done() && !chunked.trailing);
                assert_eq!(chunked.framing as usize, data.len() - body.len());
            }
        }
    }

    #[test]
    fn a_cut_message_is_not_done() {
        let data = b"4\r\nwiki\r\n0\r\n\r\n";
        for stop in 0..data.len() {
            assert!(!read(&[&data[..stop]]).unwrap().1.done(), "{stop}");
        }
    }

    #[test]
    fn hostile_lines_are_refused_at_every_split() {
        let long = [b"1;".as_slice(), &[b'x'; MAX_LINE], b"\r\na"].concat();
        let trailers = [b"0\r\n".as_slice(), &b"A: bcdefghijklmnopqrst\r\n".repeat(1000)].concat();
        for data in [
            b"zz\r\nhello".as_slice(),
            b"\r\n",
            b"-1\r\n",
            b"0x5\r\nhello",
            b"5 5\r\nhello",
            b"+5\r\nhello",
            b"1234567890abcdef\r\n",
            b"4\r\nwikip\r\n",
            b"\xff\r\n",
            &long,
            &trailers,
        ] {
            for at in (0..data.len()).step_by(1 + data.len() / 300) {
                assert!(read(&[&data[..at], &data[at..]]).is_err(), "{:?} at {at}", &data[..data.len().min(30)]);
            }
        }
    }

    #[test]
    fn bytes_behind_the_end_are_noticed() {
        let (body, chunked) = read(&[b"1\r\na\r\n0\r\n\r\n", b"HTTP/1.1 200 OK"]).unwrap();
        assert_eq!(body, b"a");
        assert!(chunked.trailing);
    }

    #[test]
    fn many_chunks_are_refused() {
        let data = b"1\r\na\r\n".repeat(MAX_CHUNKS as usize + 1);
        assert!(read(&[&data]).is_err());
    }

    #[test]
    fn a_size_of_fifteen_digits_takes_no_memory() {
        let (body, chunked) = read(&[b"fffffffffffffff\r\nab"]).unwrap();
        assert_eq!(body, b"ab");
        assert!(!chunked.done());
    }
}
