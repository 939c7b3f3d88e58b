//! Makes the links of a page absolute, with their fragments.

use crate::links::resolve_one;
use crate::urls::Base;
use crate::whatwg;

/// Bytes of all URLs of a page: every relative link costs its whole base.
const MAX_URLS: usize = 16 << 20;

pub struct Resolver<'b> {
    base: &'b Base,
    /// Links below this URL lead nowhere; "" for none.
    nowhere: &'b str,
    left: usize,
}

impl<'b> Resolver<'b> {
    pub fn new(base: &'b Base, nowhere: &'b str) -> Self {
        Resolver { base, nowhere, left: MAX_URLS }
    }

    /// The absolute URL; "" if it leads to no page, or beyond `MAX_URLS`.
    pub fn resolve(&mut self, raw: &str) -> String {
        let href = resolve_one(self.base, raw.as_bytes());
        if href.is_empty() || href.len() > self.left || (!self.nowhere.is_empty() && href.starts_with(self.nowhere)) {
            return String::new();
        }
        let href = match raw.contains('#') {
            true => whatwg::parse(raw, Some(&self.base.url), true).map_or(String::new(), |found| found.text),
            false => href,
        };
        self.left = self.left.saturating_sub(href.len());
        href
    }
}
