//! The tokenizer alone, for the html5lib tokenizer tests.

use pyo3::prelude::*;

use crate::entities;
use crate::tokenizer::{Raw, Token, Tokenizer};

type Attributes = Vec<(String, String)>;

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Tokens of `text` from a state on: ("C", text, []), ("S" or "s" if self-closing, name, attributes), ("E", name, []).
/// Comments and doctypes are left out. `state` is a name of html5lib's tests, `last` the last start tag's name.
#[pyfunction(name = "_tokens")]
pub fn tokens(text: &str, state: &str, last: &str) -> Vec<(char, String, Attributes)> {
    let mut tok = Tokenizer::new(text.as_bytes());
    tok.all_attrs = true;
    tok.raw_name = last.as_bytes();
    tok.raw = match state {
        "RCDATA state" => Raw::Rcdata,
        "RAWTEXT state" => Raw::Rawtext,
        "Script data state" => Raw::Script,
        "PLAINTEXT state" => Raw::Plaintext,
        "CDATA section state" => Raw::Cdata,
        _ => Raw::Data,
    };
    let mut out: Vec<(char, String, Attributes)> = Vec::new();
    loop {
        let token = tok.next();
        let piece = match token {
            Token::Eof => return out,
            // The tree drops NULs of the data state; here they are kept.
            Token::Text(span) => {
                let parts: Vec<String> = tok
                    .slice(span)
                    .split(|b| *b == 0)
                    .map(|part| lossy(&entities::decode(part, true, false)))
                    .collect();
                parts.join("\0")
            }
            Token::RawText(span, Raw::Cdata) => {
                let parts: Vec<String> = tok
                    .slice(span)
                    .split(|b| *b == 0)
                    .map(|part| lossy(&entities::decode(part, false, false)))
                    .collect();
                parts.join("\0")
            }
            Token::RawText(span, kind) => lossy(&entities::decode(tok.slice(span), kind == Raw::Rcdata, false)),
            Token::Start | Token::End => {
                out.push(tag(&tok, token));
                continue;
            }
        };
        match out.last_mut() {
            Some(('C', text, _)) => text.push_str(&piece),
            _ => out.push(('C', piece, Vec::new())),
        }
    }
}

fn tag(tok: &Tokenizer<'_>, token: Token) -> (char, String, Attributes) {
    let clean = |bytes: &[u8]| lossy(&entities::decode(bytes, false, true));
    let name = clean(&tok.slice(tok.name).to_ascii_lowercase());
    if token == Token::End {
        return ('E', name, Vec::new());
    }
    let mut attributes: Attributes = Vec::new();
    for attr in &tok.attrs {
        let name = clean(&tok.slice(attr.name).to_ascii_lowercase());
        if !attributes.iter().any(|known| known.0 == name) {
            attributes.push((name, lossy(&entities::decode(tok.slice(attr.value), true, true))));
        }
    }
    (if tok.self_closing { 's' } else { 'S' }, name, attributes)
}
