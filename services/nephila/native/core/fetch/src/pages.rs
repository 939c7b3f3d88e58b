//! The reader of bodies, as its users implement it: what it gets and what it makes.

use std::any::Any;

use crate::exchange::Response;

/// What a reader makes of a body.
pub type Reading = Box<dyn Any + Send>;

/// What the reader of a body needs to know of its request.
#[derive(Debug)]
pub struct PageRequest {
    /// The base of the page.
    pub url: String,
    /// Whether its main text is read.
    pub main_text: bool,
}

pub trait PageReader: Send + Sync {
    /// Whether `read` has a use for this response.
    fn wants(&self, response: &Response) -> bool;
    /// The reading and its size in bytes. A panic is as None.
    fn read(&self, request: &PageRequest, response: &Response) -> Option<(Reading, usize)>;
}
