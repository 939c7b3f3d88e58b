//! The length of a body, and whether its connection stays usable: RFC 9112 6.3 and 9.3. When the length is in doubt,
//! the connection is not used again: what follows may be the rest of a smuggled response.

use crate::error::FetchError;
use crate::head::Head;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    Known(u64),
    Chunked,
    UntilClose,
}

/// The length of the body, and whether the end of the message is certain.
pub fn framing(head: &Head) -> Result<(Length, bool), FetchError> {
    let (transfer, length) = (head.get("transfer-encoding"), head.get("content-length"));
    let undisputed = is_exact(head);
    if matches!(head.status, 204 | 205 | 304) {
        return Ok((Length::Known(0), undisputed));
    }
    if let Some(transfer) = transfer.filter(|value| !value.is_empty()) {
        let codings: Vec<String> = transfer.split(',').map(|one| one.trim().to_ascii_lowercase()).collect();
        let (last, before) = codings.split_last().expect("split returns one part at least");
        // A repeated "chunked" is one, as in browsers; the connection is not used again.
        if last == "chunked" && before.iter().all(|one| one == "identity" || one == "chunked") {
            return Ok((Length::Chunked, undisputed && !before.iter().any(|one| one == "chunked")));
        }
        if last != "identity" || !before.is_empty() {
            return Err(FetchError::protocol(format!("transfer encoding {} is not supported", shown(transfer))));
        }
    }
    let Some(length) = length else { return Ok((Length::UntilClose, false)) };
    if let Some(number) = digits(length) {
        return Ok((Length::Known(number), undisputed));
    }
    let mut parts = length.split(',').map(str::trim);
    let first = parts.next().unwrap_or("");
    match digits(first) {
        Some(number) if parts.all(|one| one == first) => Ok((Length::Known(number), false)),
        _ => Err(FetchError::protocol(format!("Content-Length {} is not a length", shown(length)))),
    }
}

fn shown(value: &str) -> String {
    format!("{:?}", value.chars().take(40).collect::<String>())
}

fn digits(text: &str) -> Option<u64> {
    let plain = (1..=18).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain {
        text.parse().ok()
    } else {
        None
    }
}

/// Whether no Content-Length stands beside a Transfer-Encoding.
pub fn is_exact(head: &Head) -> bool {
    head.get("transfer-encoding").is_none() || head.get("content-length").is_none()
}

/// Whether the server accepts another request on the connection.
pub fn keeps_alive(head: &Head) -> bool {
    if !head.http11 && head.get("transfer-encoding").is_some() {
        return false; // faulty framing: RFC 9112 6.1
    }
    let Some(connection) = head.get("connection") else { return head.http11 };
    let options = connection.to_ascii_lowercase();
    !options.contains("close") && (head.http11 || options.contains("keep-alive"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::parse;

    fn of(lines: &str) -> Result<(Length, bool), FetchError> {
        framing(&parse(format!("HTTP/1.1 200 OK\r\n{lines}\r\n").as_bytes()).unwrap())
    }

    #[test]
    fn lengths() {
        assert_eq!(of("Content-Length: 5\r\n"), Ok((Length::Known(5), true)));
        assert_eq!(of("Content-Length: 5\r\nContent-Length: 5\r\n"), Ok((Length::Known(5), false)));
        assert_eq!(of(""), Ok((Length::UntilClose, false)));
        assert_eq!(of("Transfer-Encoding: Chunked\r\n"), Ok((Length::Chunked, true)));
        assert_eq!(of("Transfer-Encoding: identity, chunked\r\n"), Ok((Length::Chunked, true)));
        assert_eq!(of("Transfer-Encoding: chunked, chunked\r\n"), Ok((Length::Chunked, false)));
        let twice = "Transfer-Encoding: chunked\r\nTransfer-Encoding: Chunked\r\n";
        assert_eq!(of(twice), Ok((Length::Chunked, false)));
        assert_eq!(of("Transfer-Encoding: identity\r\nContent-Length: 3\r\n"), Ok((Length::Known(3), false)));
        assert_eq!(of("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"), Ok((Length::Chunked, false)));
        assert_eq!(of("Transfer-Encoding:\r\nContent-Length: 3\r\n"), Ok((Length::Known(3), false)));
    }

    #[test]
    fn contradictions_are_refused() {
        for lines in [
            "Content-Length: 4\r\nContent-Length: 5\r\n",
            "Content-Length: -1\r\n",
            "Content-Length: +1\r\n",
            "Content-Length: 1e3\r\n",
            "Content-Length: \r\n",
            "Content-Length: 9999999999999999999\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked, identity\r\n",
            "Transfer-Encoding: xchunked\r\n",
        ] {
            assert!(of(lines).is_err(), "{lines:?}");
        }
    }

    #[test]
    fn no_body_by_status() {
        for status in [204, 205, 304] {
            let head = Head { status, http11: true, headers: vec![("content-length".into(), "9".into())] };
            assert_eq!(framing(&head), Ok((Length::Known(0), true)));
        }
    }

    #[test]
    fn reuse_by_version_and_connection() {
        let keeps = |text: &str| keeps_alive(&parse(text.as_bytes()).unwrap());
        assert!(keeps("HTTP/1.1 200 OK\r\n\r\n"));
        assert!(!keeps("HTTP/1.1 200 OK\r\nConnection: Close\r\n\r\n"));
        assert!(!keeps("HTTP/1.0 200 OK\r\n\r\n"));
        assert!(keeps("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\n"));
        assert!(!keeps("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"));
    }
}
