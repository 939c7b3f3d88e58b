//! A quick first search: whether a regular expression of RE2 may match some bytes.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use regex::bytes::{Regex, RegexBuilder};

/// A pattern of RE2 over bytes (Latin-1). The engine differs in one point: `\s` has the vertical tab as well, so it finds
/// all that RE2 finds.
#[pyclass(module = "nephila.native._core", frozen)]
pub struct PatternFilter {
    regex: Regex,
}

#[pymethods]
impl PatternFilter {
    /// ValueError for a pattern that the core does not know.
    #[new]
    fn new(pattern: &str) -> PyResult<PatternFilter> {
        let regex = RegexBuilder::new(pattern).unicode(false).build();
        Ok(PatternFilter { regex: regex.map_err(|error| PyValueError::new_err(error.to_string()))? })
    }

    /// False: the pattern does not match anywhere. O(n).
    fn may_match(&self, data: &[u8]) -> bool {
        self.regex.is_match(data)
    }
}
