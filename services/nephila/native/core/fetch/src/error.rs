//! Why a fetch ended without a usable response.

use std::borrow::Cow;

/// The reasons of the contract; `name` is the value of the Python enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Connect,
    ContentType,
    Disconnected,
    Encoding,
    Memory,
    Protocol,
    Proxy,
    ProxyAuth,
    Stale,
    Timeout,
    Tls,
    TooLarge,
    /// The status by which a proxy refuses CONNECT.
    Tunnel(u16),
}

impl Reason {
    pub fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Reason::Connect => "connect",
            Reason::ContentType => "content_type",
            Reason::Disconnected => "disconnected",
            Reason::Encoding => "encoding",
            Reason::Memory => "memory",
            Reason::Protocol => "protocol",
            Reason::Proxy => "proxy",
            Reason::ProxyAuth => "proxy_auth",
            Reason::Stale => "stale",
            Reason::Timeout => "timeout",
            Reason::Tls => "tls",
            Reason::TooLarge => "too_large",
            Reason::Tunnel(status) => return Cow::Owned(format!("tunnel_{status}")),
        })
    }
}

/// A reason and a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchError {
    pub reason: Reason,
    pub detail: String,
    /// The finer reason of the table of reasons; empty where there is none.
    pub cause: &'static str,
}

impl FetchError {
    pub fn new(reason: Reason, detail: impl Into<String>) -> FetchError {
        FetchError { reason, detail: detail.into(), cause: "" }
    }

    pub fn protocol(detail: impl Into<String>) -> FetchError {
        FetchError::new(Reason::Protocol, detail)
    }

    pub fn encoding(detail: impl Into<String>) -> FetchError {
        FetchError::new(Reason::Encoding, detail)
    }

    pub fn too_large(detail: impl Into<String>) -> FetchError {
        FetchError::new(Reason::TooLarge, detail)
    }
}
