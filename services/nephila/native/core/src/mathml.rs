//! MathML without a source as LaTeX: rows, fractions, roots, scripts, fences, matrices, and the signs of common formulas.
//!
//! Invariants: no recursion, at most `MAX_DEPTH` elements deep, what is deeper is text of that depth. O(bytes).

use std::borrow::Cow;

use crate::entities;
use crate::tokenizer::{Token, Tokenizer};

const MAX_DEPTH: usize = 128;
/// Bytes of the LaTeX of a formula.
const MAX_BYTES: usize = 64 << 10;

const FUNCTIONS: [&str; 24] = [
    "arccos", "arcsin", "arctan", "arg", "cos", "cosh", "cot", "csc", "det", "dim", "exp", "gcd", "inf", "ker", "lim",
    "ln", "log", "max", "min", "sec", "sin", "sinh", "sup", "tan",
];

/// An element that is open.
struct Frame {
    name: String,
    children: Vec<String>,
    text: String,
    open: Option<String>,
    close: Option<String>,
}

impl Frame {
    fn new(name: String) -> Self {
        Frame { name, children: Vec::new(), text: String::new(), open: None, close: None }
    }
}

/// The LaTeX of what stands in a <math>. None where nothing is in it.
pub fn latex(inner: &[u8]) -> Option<String> {
    let mut tok = Tokenizer::new(inner);
    tok.all_attrs = true;
    let mut stack = vec![Frame::new(String::from("math"))];
    let mut size = 0;
    loop {
        match tok.next() {
            Token::Start => {
                let name = String::from_utf8_lossy(tok.slice(tok.name)).to_ascii_lowercase();
                let attr = |name: &[u8]| tok.attr(name).map(|value| decoded(value).into_owned());
                let (open, close) = match name.as_str() {
                    "mfenced" => (attr(b"open"), attr(b"close")),
                    // Columns that are right and left by turns are equations.
                    "mtable" => (attr(b"columnalign").filter(|columns| columns.starts_with("right")), None),
                    _ => (None, None),
                };
                if tok.self_closing {
                    continue;
                }
                if stack.len() < MAX_DEPTH {
                    stack.push(Frame { open, close, ..Frame::new(name) });
                }
            }
            Token::End => {
                let name = String::from_utf8_lossy(tok.slice(tok.name)).to_ascii_lowercase();
                let Some(at) = stack.iter().rposition(|frame| frame.name == name).filter(|at| *at > 0) else {
                    continue;
                };
                while stack.len() > at {
                    close(&mut stack);
                }
            }
            Token::Text(span) => {
                let text = decoded(tok.slice(span));
                size += text.len();
                if size > MAX_BYTES {
                    return None;
                }
                if let Some(frame) = stack.last_mut() {
                    frame.text.push_str(&text);
                }
            }
            Token::RawText(..) => {}
            Token::Eof => break,
        }
    }
    while stack.len() > 1 {
        close(&mut stack);
    }
    let found = stack.pop().map(|frame| written(&frame)).unwrap_or_default();
    (!found.is_empty() && found.len() <= MAX_BYTES).then_some(found)
}

fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    match entities::decode(bytes, true, false) {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

fn close(stack: &mut Vec<Frame>) {
    if let Some(frame) = stack.pop() {
        let made = written(&frame);
        if let Some(parent) = stack.last_mut() {
            // Rows may be empty; scripts count their children.
            parent.children.push(made);
        }
    }
}

/// The LaTeX of an element.
fn written(frame: &Frame) -> String {
    let child = |at: usize| frame.children.get(at).map_or("", String::as_str);
    let text = frame.text.split_whitespace().collect::<Vec<_>>().join(" ");
    match frame.name.as_str() {
        "mi" if FUNCTIONS.contains(&text.as_str()) => format!("\\{text}"),
        "mi" | "mo" | "mn" => signs(&text),
        "mtext" | "ms" if text.is_empty() => String::new(),
        "mtext" | "ms" => format!("\\text{{{text}}}"),
        "mfrac" => format!("\\frac{{{}}}{{{}}}", child(0), child(1)),
        "msqrt" => format!("\\sqrt{{{}}}", joined(&frame.children, " ")),
        "mroot" => format!("\\sqrt[{}]{{{}}}", child(1), child(0)),
        "msub" => format!("{}_{{{}}}", base(child(0)), child(1)),
        "msup" => format!("{}^{{{}}}", base(child(0)), child(1)),
        "msubsup" | "munderover" => format!("{}_{{{}}}^{{{}}}", base(child(0)), child(1), child(2)),
        "munder" if is_large(child(0)) => format!("{}_{{{}}}", child(0), child(1)),
        "munder" => format!("\\underset{{{}}}{{{}}}", child(1), child(0)),
        "mover" if is_large(child(0)) => format!("{}^{{{}}}", child(0), child(1)),
        "mover" => match accent(child(1)) {
            Some(accent) => format!("{accent}{{{}}}", child(0)),
            None => format!("\\overset{{{}}}{{{}}}", child(1), child(0)),
        },
        "mfenced" => {
            let fence = |sign: &Option<String>, other: &str| signs(sign.as_deref().unwrap_or(other));
            let inner = joined(&frame.children, " , ");
            format!("\\left{} {inner} \\right{}", fenced(&fence(&frame.open, "(")), fenced(&fence(&frame.close, ")")))
        }
        "mtable" => {
            let kind = if frame.open.is_some() { "aligned" } else { "matrix" };
            format!("\\begin{{{kind}}} {} \\end{{{kind}}}", joined(&frame.children, " \\\\ "))
        }
        "mtr" | "mlabeledtr" => frame.children.join(" & "),
        "annotation" | "annotation-xml" | "mphantom" | "none" | "mprescripts" => String::new(),
        _ if frame.children.is_empty() => signs(&text),
        _ => joined(&frame.children, " "),
    }
}

fn joined(parts: &[String], between: &str) -> String {
    parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(between)
}

/// What a script stands at: in braces where it is more than one sign.
fn base(text: &str) -> Cow<'_, str> {
    let is_one = text.chars().count() == 1
        || text.strip_prefix('\\').is_some_and(|name| name.chars().all(|c| c.is_ascii_alphabetic()))
        || text.chars().all(|c| c.is_ascii_alphanumeric());
    if is_one {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{{{text}}}"))
    }
}

fn fenced(sign: &str) -> &str {
    if sign.is_empty() {
        "."
    } else {
        sign
    }
}

/// Whether scripts stand above and below such an operator.
fn is_large(text: &str) -> bool {
    matches!(
        text,
        "\\sum"
            | "\\prod"
            | "\\int"
            | "\\oint"
            | "\\bigcup"
            | "\\bigcap"
            | "\\lim"
            | "\\max"
            | "\\min"
            | "\\sup"
            | "\\inf"
    )
}

fn accent(sign: &str) -> Option<&'static str> {
    Some(match sign {
        "¯" | "‾" | "―" | "_" => "\\overline",
        "^" | "ˆ" => "\\hat",
        "~" | "˜" | "\\sim" => "\\tilde",
        "\\to" | "⃗" => "\\vec",
        "˙" | "." => "\\dot",
        "¨" => "\\ddot",
        _ => return None,
    })
}

/// A text with the commands of its signs.
fn signs(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match command(c) {
            Some("") => {}
            Some(command) => {
                out.push_str(command);
                if text.chars().count() > 1 && command.starts_with('\\') {
                    out.push(' ');
                }
            }
            None => out.push(plain(c)),
        }
    }
    out.trim_end().to_owned()
}

/// A letter of an alphabet for mathematics as a letter.
fn plain(c: char) -> char {
    match c {
        '\u{1d400}'..='\u{1d6a3}' => {
            let at = (u32::from(c) - 0x1d400) % 52;
            char::from(if at < 26 { b'A' + at as u8 } else { b'a' + (at - 26) as u8 })
        }
        '\u{1d7ce}'..='\u{1d7ff}' => char::from(b'0' + ((u32::from(c) - 0x1d7ce) % 10) as u8),
        'ℎ' => 'h',
        'ℝ' => 'R',
        _ => c,
    }
}

#[rustfmt::skip]
fn command(c: char) -> Option<&'static str> {
    Some(match c {
        'α' | '𝛼' => "\\alpha", 'β' | '𝛽' => "\\beta", 'γ' | '𝛾' => "\\gamma", 'δ' | '𝛿' => "\\delta",
        'ε' | 'ϵ' | '𝜖' | '𝜀' => "\\epsilon", 'ζ' | '𝜁' => "\\zeta", 'η' | '𝜂' => "\\eta", 'θ' | '𝜃' => "\\theta",
        'ι' => "\\iota", 'κ' | '𝜅' => "\\kappa", 'λ' | '𝜆' => "\\lambda", 'μ' | 'µ' | '𝜇' => "\\mu", 'ν' | '𝜈' => "\\nu",
        'ξ' | '𝜉' => "\\xi", 'π' | '𝜋' => "\\pi", 'ρ' | '𝜌' => "\\rho", 'σ' | '𝜎' => "\\sigma", 'τ' | '𝜏' => "\\tau",
        'υ' => "\\upsilon", 'φ' | 'ϕ' | '𝜙' | '𝜑' => "\\phi", 'χ' | '𝜒' => "\\chi", 'ψ' | '𝜓' => "\\psi",
        'ω' | '𝜔' => "\\omega", 'Γ' => "\\Gamma", 'Δ' | '∆' => "\\Delta", 'Θ' => "\\Theta", 'Λ' => "\\Lambda",
        'Ξ' => "\\Xi", 'Π' => "\\Pi", 'Σ' => "\\Sigma", 'Φ' => "\\Phi", 'Ψ' => "\\Psi", 'Ω' => "\\Omega",
        '∑' => "\\sum", '∏' => "\\prod", '∫' => "\\int", '∮' => "\\oint", '⋃' => "\\bigcup", '⋂' => "\\bigcap",
        '∂' | '𝜕' => "\\partial", '∇' => "\\nabla", '∞' => "\\infty", '√' => "\\sqrt", '±' => "\\pm", '∓' => "\\mp",
        '×' => "\\times", '÷' => "\\div", '⋅' | '·' => "\\cdot", '∘' => "\\circ", '∗' => "*", '≤' => "\\leq",
        '≥' => "\\geq", '≠' => "\\neq", '≈' => "\\approx", '≡' => "\\equiv", '∼' => "\\sim", '≃' => "\\simeq",
        '≅' => "\\cong", '∝' => "\\propto", '≪' => "\\ll", '≫' => "\\gg", '∈' => "\\in", '∉' => "\\notin",
        '⊂' => "\\subset", '⊆' => "\\subseteq", '⊃' => "\\supset", '∪' => "\\cup", '∩' => "\\cap", '∅' => "\\emptyset",
        '∀' => "\\forall", '∃' => "\\exists", '¬' => "\\neg", '∧' => "\\land", '∨' => "\\lor", '⊕' => "\\oplus",
        '⊗' => "\\otimes", '→' | '⟶' => "\\to", '←' => "\\leftarrow", '↔' => "\\leftrightarrow", '⇒' | '⟹' => "\\Rightarrow",
        '⇔' | '⟺' => "\\Leftrightarrow", '↦' => "\\mapsto", '⟨' | '〈' => "\\langle", '⟩' | '〉' => "\\rangle",
        '‖' | '∥' => "\\|", '⌊' => "\\lfloor", '⌋' => "\\rfloor", '⌈' => "\\lceil", '⌉' => "\\rceil", '…' => "\\ldots",
        '⋯' => "\\cdots", '⋮' => "\\vdots", '⋱' => "\\ddots", 'ℓ' => "\\ell", 'ℏ' => "\\hbar", '†' => "\\dagger",
        '−' => "-", '′' => "'", '{' => "\\{", '}' => "\\}", '%' => "\\%", '#' => "\\#", '&' => "\\&", '$' => "\\$",
        '\u{2061}' | '\u{2062}' | '\u{2063}' | '\u{2064}' | '\u{200b}' => "", '\u{a0}' | '\u{2009}' => " ",
        _ => return None,
    })
}
