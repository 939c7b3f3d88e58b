//! robots.txt (RFC 9309): the rules of one agent out of a file, and verdicts on paths.
//!
//! Reads as Google's open-source parser does. The RFC's comparison of percent-encoded octets (2.2.2) is made as well: a
//! path is allowed only where both readings allow it.

mod lines;
mod rules;

use lines::{decoded, escaped, is_space, lines, token, with_escaped_specials, with_literal_dollars, Kind};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rules::{verdict_of, Rank, Rule, Rules};

const ROBOTS_PATH: &[u8] = b"/robots.txt";

/// The rules of a robots.txt that hold for one agent: the agent's own groups if there are any, else those of `*`.
#[pyclass(frozen, module = "nephila.native")]
pub struct RobotsRules {
    rules: Rules,
    /// The same by the RFC's reading, where a pattern differs.
    rfc: Option<Rules>,
    delay_s: Option<f64>,
}

#[pymethods]
impl RobotsRules {
    /// O(bytes + rules × log rules).
    #[new]
    fn new(py: Python<'_>, body: &[u8], agent: &[u8]) -> RobotsRules {
        py.detach(|| collect(body, &token(agent)))
    }

    /// Number of the line that decides about a path with its query, negative when it forbids; 0: no line does.
    fn decide(&self, path: &[u8]) -> i64 {
        let mut made;
        let mut path = path;
        if path.first() != Some(&b'/') {
            made = vec![b'/'];
            made.extend_from_slice(path);
            path = &made;
        }
        let plain;
        if !path.is_ascii() || path.contains(&b'%') {
            plain = escaped(path);
            path = &plain;
        }
        let literal;
        if let Some(specials) = with_escaped_specials(path) {
            literal = specials;
            path = &literal;
        }
        let verdict = self.verdict(path);
        // RFC 9309 2.2.2: the URI /robots.txt is always allowed.
        if verdict < 0 && (path == ROBOTS_PATH || decoded(path).is_some_and(|plain| plain == ROBOTS_PATH)) {
            return 0;
        }
        verdict
    }

    /// Seconds of the Crawl-delay; None where there is none. Not capped.
    #[getter]
    fn crawl_delay_s(&self) -> Option<f64> {
        self.delay_s
    }

    /// How many rules are kept: each pattern once.
    fn __len__(&self) -> usize {
        self.rules.len()
    }

    /// Rules that a decision may try one after the other: those with a star inside.
    #[getter]
    fn scanned(&self) -> usize {
        self.rules.wilds() + self.rfc.as_ref().map_or(0, Rules::wilds)
    }

    /// Memory that the rules take.
    #[getter]
    fn size_bytes(&self) -> usize {
        size_of::<Self>() + self.rules.size_bytes() + self.rfc.as_ref().map_or(0, Rules::size_bytes)
    }
}

impl RobotsRules {
    /// The verdict of both readings; the one that forbids wins.
    fn verdict(&self, path: &[u8]) -> i64 {
        let rank = self.rules.find(path);
        if forbids(rank) || (self.rfc.is_none() && !path.contains(&b'%')) {
            return verdict_of(rank);
        }
        let plain = decoded(path);
        let other = self.rfc.as_ref().unwrap_or(&self.rules).find(plain.as_deref().unwrap_or(path));
        verdict_of(if forbids(other) { other } else { rank })
    }
}

fn forbids(rank: Rank) -> bool {
    verdict_of(rank) < 0
}

#[derive(Default)]
struct Group {
    rules: Vec<Rule>,
    delay_s: Option<f64>,
}

impl Group {
    fn add(&mut self, allow: bool, value: &[u8], line: u32) {
        let pattern = with_literal_dollars(escaped(value));
        let slash = pattern.iter().rposition(|byte| *byte == b'/');
        if let Some(at) = slash.filter(|at| allow && pattern[*at..].starts_with(b"/index.htm")) {
            // Google: a directory and its index page are one.
            let mut directory = pattern[..=at].to_vec();
            directory.push(b'$');
            self.rules.push(Rule { pattern: directory, allow, line });
        }
        if !pattern.is_empty() {
            self.rules.push(Rule { pattern, allow, line }); // an empty one matches with priority 0, which is no rule
        }
    }

    /// The longest one counts when a group repeats it.
    fn delay(&mut self, value: &[u8]) {
        let word = value.split(|byte| is_space(*byte)).find(|word| !word.is_empty());
        let number = word.and_then(|word| std::str::from_utf8(word).ok()?.parse::<f64>().ok());
        if let Some(delay_s) = number.filter(|one| one.is_finite() && *one >= 0.0) {
            self.delay_s = Some(self.delay_s.map_or(delay_s, |before| before.max(delay_s)));
        }
    }
}

/// One walk over the lines.
fn collect(body: &[u8], token_of: &[u8]) -> RobotsRules {
    let (mut own, mut everyone) = (Group::default(), Group::default());
    let (mut ever_own, mut in_own, mut in_everyone, mut closed) = (false, false, false, false);
    // Crawl-delay, like every other record, closes no group of rules (RFC 9309 2.2.4); but it belongs to the agents
    // named since the last record, or the delay of one would reach those named before.
    let (mut names_own, mut names_everyone, mut delay_closed) = (false, false, false);
    for line in lines(body) {
        match line.kind {
            Kind::Agent => {
                if closed {
                    (in_own, in_everyone, closed) = (false, false, false);
                }
                if delay_closed {
                    (names_own, names_everyone, delay_closed) = (false, false, false);
                }
                if line.value.first() == Some(&b'*') && line.value.get(1).is_none_or(|byte| is_space(*byte)) {
                    (in_everyone, names_everyone) = (true, true);
                } else if !token_of.is_empty() && token(line.value) == token_of {
                    (ever_own, in_own, names_own) = (true, true, true);
                }
            }
            Kind::Allow | Kind::Disallow => {
                delay_closed = true;
                closed |= in_own || in_everyone;
                if in_own {
                    own.add(line.kind == Kind::Allow, line.value, line.number);
                } else if in_everyone && !ever_own {
                    everyone.add(line.kind == Kind::Allow, line.value, line.number);
                }
            }
            Kind::Delay => {
                delay_closed = true;
                if names_own {
                    own.delay(line.value);
                }
                if names_everyone {
                    everyone.delay(line.value);
                }
            }
            Kind::Sitemap | Kind::Other => {}
        }
    }
    let mut group = if ever_own { own } else { everyone };
    let rules = Rules::new(&group.rules);
    let mut differs = false;
    for rule in &mut group.rules {
        if let Some(plain) = decoded(&rule.pattern) {
            (rule.pattern, differs) = (plain, true);
        }
    }
    let rfc = differs.then(|| Rules::new(&group.rules));
    RobotsRules { rules, rfc, delay_s: group.delay_s }
}

/// Addresses of sitemaps, as written, in their order; they belong to no group. O(bytes).
#[pyfunction]
pub fn robots_sitemaps<'py>(py: Python<'py>, body: &[u8]) -> Vec<Bound<'py, PyBytes>> {
    let named = lines(body).filter(|line| line.kind == Kind::Sitemap && !line.value.is_empty());
    named.map(|line| PyBytes::new(py, line.value)).collect()
}

/// "Allow: /x" as a line of a robots.txt has it; empty when it is no rule. O(bytes).
#[pyfunction]
pub fn robots_rule<'py>(py: Python<'py>, body: &[u8], line: u32) -> Bound<'py, PyBytes> {
    let found = lines(body).find(|one| one.number >= line).filter(|one| one.number == line);
    let text = match found {
        Some(one) if one.kind == Kind::Allow => [b"Allow: ", one.value].concat(),
        Some(one) if one.kind == Kind::Disallow => [b"Disallow: ", one.value].concat(),
        _ => Vec::new(),
    };
    PyBytes::new(py, &text)
}
