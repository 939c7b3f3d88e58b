//! Why a fetch ended without a usable response.

/// The reasons of the contract; `name` is the value of the Python enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Connect,
    ContentType,
    Disconnected,
    Encoding,
    Memory,
    Protocol,
    Stale,
    Timeout,
    Tls,
    TooLarge,
}

impl Reason {
    pub fn name(self) -> &'static str {
        match self {
            Reason::Connect => "connect",
            Reason::ContentType => "content_type",
            Reason::Disconnected => "disconnected",
            Reason::Encoding => "encoding",
            Reason::Memory => "memory",
            Reason::Protocol => "protocol",
            Reason::Stale => "stale",
            Reason::Timeout => "timeout",
            Reason::Tls => "tls",
            Reason::TooLarge => "too_large",
        }
    }
}

/// A reason and a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchError {
    pub reason: Reason,
    pub detail: String,
}

impl FetchError {
    pub fn new(reason: Reason, detail: impl Into<String>) -> FetchError {
        FetchError { reason, detail: detail.into() }
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
