//! The effect of each tag: the standard's "in body", table, frameset and foreign content rules on the stack.

use crate::boilerplate;
use crate::formulas;
use crate::hidden;
use crate::page::{Follow, Frames, Page, KIND_A, KIND_AREA, KIND_FRAME, KIND_IFRAME};
use crate::preformatted;
use crate::stack::{HTML_NS, HTML_POINT, MATH_NS, MATH_TEXT, SVG_NS};
use crate::tags::*;
use crate::tokenizer::Raw;

const IN_SCOPE: u16 = C_SCOPE;

/// Whether such an element may have a shadow root: those that the standard names, and unknown ones.
fn holds_shadow_root(tag: u8) -> bool {
    matches!(tag, 0 | ARTICLE | ASIDE | BLOCKQUOTE | DIV | FOOTER | H1..=H6 | HEADER | MAIN | NAV | P | SECTION | SPAN)
}

impl<'a> Page<'a> {
    #[inline]
    pub fn start_tag(&mut self) {
        let tag = self.tok.tag;
        if self.frames != Frames::No {
            return self.frameset_start(tag);
        }
        if tag == TIME && self.head.time.is_none() {
            self.note_time();
        }
        if self.microdata.is_before(self.tok.pos) {
            // The date of a <meta> is noted with the others of its kind.
            let is_other = self.stack.flags() & F_COMMENT != 0 || tag == META || self.in_template();
            self.microdata.note(self.tok.input, self.tok.name.0 as usize - 1, self.tok.pos, is_other);
        }
        let inline = CATS[tag as usize] & C_SPECIAL == 0 || matches!(tag, IMG | BR | OBJECT | SELECT | XMP);
        if inline && tag != A && self.stack.flags() & F_HIDDEN == 0 {
            self.stack.reopen();
        }
        if self.stack.foreign > 0 && !self.html_rules(tag) {
            self.foreign_start(tag);
        } else {
            self.html_start(tag);
        }
        self.settle();
    }

    #[inline]
    pub fn end_tag(&mut self) {
        let tag = self.tok.tag;
        match self.frames {
            Frames::No => {}
            Frames::Inside(depth) => {
                if tag == FRAMESET {
                    self.frames = if depth > 1 { Frames::Inside(depth - 1) } else { Frames::After };
                }
                return;
            }
            Frames::After => return,
        }
        if self.stack.foreign > 0 && self.stack.items.last().is_some_and(|e| e.ns != HTML_NS) {
            self.foreign_end(tag);
        } else {
            self.html_end(tag);
        }
        self.settle();
    }

    fn frameset_start(&mut self, tag: u8) {
        match (tag, self.frames) {
            (NOFRAMES, _) => self.raw(Raw::Rawtext, Follow::Nothing),
            (HTML, _) => self.html_attrs(),
            (FRAMESET, Frames::Inside(depth)) => self.frames = Frames::Inside(depth + 1),
            (FRAME, Frames::Inside(_)) => self.source(KIND_FRAME),
            _ => {}
        }
    }

    /// Do the HTML rules apply to this start tag although svg or math is open?
    fn html_rules(&self, tag: u8) -> bool {
        let Some(top) = self.stack.items.last() else { return true };
        top.ns == HTML_NS
            || (top.point == MATH_TEXT && !matches!(tag, MGLYPH | MALIGNMARK))
            || (top.ns == MATH_NS && top.tag == ANNOTATION_XML && tag == SVG)
            || top.point == HTML_POINT
    }

    fn foreign_start(&mut self, tag: u8) {
        let breaks = CATS[tag as usize] & C_BREAKOUT != 0
            || (tag == FONT && [&b"color"[..], b"face", b"size"].iter().any(|name| self.tok.attr(name).is_some()));
        if breaks {
            self.leave_foreign();
            return self.html_start(tag);
        }
        let ns = self.stack.items.last().map_or(HTML_NS, |e| e.ns);
        if tag == A {
            let href = self.tok.attr(b"href").or_else(|| self.tok.attr(b"xlink:href"));
            self.anchor_start(href);
        }
        if !self.tok.self_closing {
            return self.push_foreign(tag, ns);
        }
        self.stack.insert();
        if tag == A {
            self.close_anchor();
        }
    }

    fn leave_foreign(&mut self) {
        while self.stack.items.last().is_some_and(|e| e.ns != HTML_NS && e.point == 0) {
            self.stack.pop();
        }
    }

    fn push_foreign(&mut self, tag: u8, ns: u8) {
        let encoded_html = tag == ANNOTATION_XML
            && self.tok.attr(b"encoding").is_some_and(|value| {
                let value = crate::entities::decode(value, true, true);
                value.eq_ignore_ascii_case(b"text/html") || value.eq_ignore_ascii_case(b"application/xhtml+xml")
            });
        self.stack.push_foreign(tag, self.tok.hash, ns, encoded_html);
    }

    fn foreign_end(&mut self, tag: u8) {
        if matches!(tag, P | BR) {
            self.leave_foreign();
            return self.html_end(tag);
        }
        if tag == A {
            self.close_anchor();
        }
        let hash = self.tok.hash;
        let found = self
            .stack
            .items
            .iter()
            .enumerate()
            .rev()
            .find(|(_, e)| e.ns == HTML_NS || (e.tag == tag && e.hash == hash))
            .map(|(at, e)| (at, e.ns));
        match found {
            Some((at, ns)) if ns != HTML_NS => self.stack.pop_to(at),
            // An HTML element below: its own rules apply, also below foreign elements.
            _ => self.html_end(tag),
        }
    }

    /// Switch to a raw text state for the element just opened (it is never pushed).
    pub fn raw(&mut self, kind: Raw, follow: Follow) {
        self.tok.raw = kind;
        self.tok.raw_name = self.tok.slice(self.tok.name);
        self.follow = follow;
    }

    /// The flags that the attributes of the current tag give its element, if hidden text is left out.
    #[inline(always)]
    pub fn hiding(&self, tag: u8) -> u16 {
        if self.keeps_hidden {
            return 0;
        }
        hidden::flags_of(tag, &self.tok)
    }

    #[inline]
    fn open(&mut self, tag: u8) {
        let hiding = self.hiding(tag);
        if CATS[tag as usize] & C_BLOCK == 0 || self.stack.flags() & F_HIDDEN != 0 {
            return self.stack.push(tag, self.tok.hash, hiding);
        }
        self.text.break_line();
        let (place, said) = self.boxes.open(self.stack.place(), tag, &self.tok);
        self.stack.push(tag, self.tok.hash, said | hiding);
        if let Some(top) = self.stack.items.last_mut() {
            // Where the stack is full, this is the element around the text.
            top.place = place;
        }
    }

    /// A <code> that is a block as a <pre> is.
    fn open_code_block(&mut self) {
        let hiding = self.hiding(CODE);
        if hiding & F_HIDDEN != 0 {
            return self.stack.push(CODE, self.tok.hash, hiding);
        }
        self.text.break_line();
        let (place, said) = self.boxes.open(self.stack.place(), PRE, &self.tok);
        self.stack.push_code_block(said | hiding, place);
    }

    fn html_start(&mut self, tag: u8) {
        let cat = CATS[tag as usize];
        match tag {
            0 => return self.unknown_start(),
            SPAN => return self.span_start(),
            HTML => return self.html_attrs(),
            HEAD => return,
            BODY => {
                self.in_body = true;
                self.frameset_ok &= self.in_template();
                return;
            }
            BASE | LINK | META => return self.head_tag(tag),
            TITLE => {
                let first = self.head.title.is_none() && !self.in_template();
                if first {
                    self.head.title = Some(Vec::new());
                }
                return self.raw(Raw::Rcdata, if first { Follow::Title } else { Follow::Nothing });
            }
            SCRIPT => {
                let kind = self.tok.attr(b"type").filter(|kind| formulas::is_script(kind));
                let formula = kind.is_some();
                self.formula = kind.map(|kind| memchr::memmem::find(kind, b"display").is_some());
                let follow = match self.is_json_ld() {
                    true => Follow::JsonLd,
                    false if formula => Follow::Formula,
                    false => Follow::Nothing,
                };
                return self.raw(Raw::Script, follow);
            }
            STYLE | NOFRAMES | NOEMBED => return self.raw(Raw::Rawtext, Follow::Nothing),
            TEXTAREA => {
                self.frameset_ok = false;
                return self.raw(Raw::Rcdata, Follow::Nothing);
            }
            IFRAME => {
                self.frameset_ok = false;
                self.source(KIND_IFRAME);
                if let Some(document) = self.tok.attr(b"srcdoc") {
                    self.frame_document(document);
                }
                return self.raw(Raw::Rawtext, Follow::Nothing);
            }
            XMP | PLAINTEXT => {
                self.stack.close_p();
                self.break_line();
                self.settle();
                let kind = if tag == XMP { Raw::Rawtext } else { Raw::Plaintext };
                self.frameset_ok = false;
                return self.raw(kind, Follow::Visible);
            }
            FRAMESET => {
                if self.frameset_ok && !self.stack.has(TEMPLATE) {
                    self.drop_body();
                    self.frames = Frames::Inside(1);
                }
                return;
            }
            AREA => {
                self.frameset_ok = false;
                return self.area();
            }
            BR => self.break_line(),
            HR => {
                self.stack.close_p();
                if self.stack.in_scope(SELECT, IN_SCOPE).is_some() {
                    self.stack.implied_end_tags(0);
                }
                self.break_line();
            }
            INPUT => {
                self.stack.close_scoped(SELECT, IN_SCOPE);
                if self.tok.attr(b"type").is_some_and(|kind| kind.eq_ignore_ascii_case(b"hidden")) {
                    return;
                }
            }
            _ => {}
        }
        if cat & C_VOID != 0 {
            if !matches!(tag, COL | FRAME) {
                self.stack.insert();
            }
            match tag {
                COL => {
                    self.stack.open_table_part(COL);
                }
                AREA | BR | EMBED | IMG | IMAGE | INPUT | KEYGEN | WBR | HR => self.frameset_ok = false,
                _ => {}
            }
            return;
        }
        self.html_element(tag, cat);
    }

    fn span_start(&mut self) {
        let class = self.tok.attr(b"class").filter(|class| formulas::may_name_span(class));
        let Some(class) = class else { return self.stack.push(SPAN, self.tok.hash, self.hiding(SPAN)) };
        let is_second = formulas::is_rendered(class) || boilerplate::names_small_tool(class);
        let hiding = match () {
            () if is_second || self.formula_of_attribute(class) => F_HIDDEN,
            () if formulas::is_beside_picture(class) => 0,
            () => self.hiding(SPAN),
        };
        self.stack.push(SPAN, self.tok.hash, hiding);
        if formulas::is_display(class) {
            self.display = self.stack.items.last().map_or(0, |top| top.id);
        }
    }

    /// Elements without a number: those of MathJax have a meaning.
    fn unknown_start(&mut self) {
        let name = self.tok.slice(self.tok.name);
        if !name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"mjx-")) {
            return self.stack.push(0, self.tok.hash, self.hiding(0));
        }
        let is_second =
            name.eq_ignore_ascii_case(b"mjx-math") && formulas::has_assistive(&self.tok.input[self.tok.pos..]);
        self.stack.push(0, self.tok.hash, if is_second { F_HIDDEN } else { 0 });
        if self.tok.attr(b"display").is_some_and(|display| display.eq_ignore_ascii_case(b"true")) {
            self.display = self.stack.items.last().map_or(0, |top| top.id);
        }
    }

    /// The formula in an attribute in place of what the element shows; false without one.
    fn formula_of_attribute(&mut self, class: &[u8]) -> bool {
        if self.stack.flags() & F_HIDDEN != 0 || !formulas::may_have_source(class) {
            return false;
        }
        let Some(tex) = formulas::SOURCES.iter().find_map(|name| self.tok.attr(name)) else { return false };
        let display = formulas::is_display(class) || self.is_display();
        self.write_formula(tex, true, display);
        true
    }

    /// Whether formulas have lines of their own here. O(depth), for formulas alone.
    fn is_display(&self) -> bool {
        self.display != 0 && self.stack.items.iter().any(|element| element.id == self.display)
    }

    /// Start tags that put an element on the stack.
    fn html_element(&mut self, tag: u8, cat: u16) {
        match tag {
            A => {
                self.stack.close_anchor();
                self.open(A);
                return self.anchor_start(self.tok.attr(b"href"));
            }
            NOBR => self.stack.close_formatting(NOBR),
            CODE if self.stack.flags() & (F_PRE | F_HIDDEN) == 0 && preformatted::is_block(&self.tok) => {
                return self.open_code_block();
            }
            LI => {
                self.frameset_ok = false;
                self.stack.close_item(&[LI]);
            }
            DD | DT => {
                self.frameset_ok = false;
                self.stack.close_item(&[DD, DT]);
            }
            PRE | LISTING | APPLET | MARQUEE | OBJECT => self.frameset_ok = false,
            FORM if self.stack.has(FORM) && !self.stack.has(TEMPLATE) => return,
            BUTTON => {
                self.frameset_ok = false;
                self.stack.close_scoped(BUTTON, IN_SCOPE);
            }
            TABLE => {
                self.frameset_ok = false;
                if let Some(at) = self.stack.table_mode() {
                    self.stack.pop_to(at);
                }
            }
            CAPTION | COLGROUP | TBODY | THEAD | TFOOT | TR | TD | TH => {
                if !self.stack.open_table_part(tag) {
                    return;
                }
            }
            SELECT => {
                self.frameset_ok = false;
                if self.stack.close_scoped(SELECT, IN_SCOPE) {
                    return;
                }
            }
            OPTION | OPTGROUP => {
                if self.stack.in_scope(SELECT, IN_SCOPE).is_some() {
                    self.stack.implied_end_tags(if tag == OPTION { OPTGROUP } else { 0 });
                } else if self.stack.items.last().is_some_and(|e| e.tag == OPTION && e.ns == HTML_NS) {
                    self.stack.pop();
                }
            }
            RB | RTC | RP | RT => {
                if self.stack.in_scope(RUBY, IN_SCOPE).is_some() {
                    self.stack.implied_end_tags(if matches!(tag, RP | RT) { RTC } else { 0 });
                    // The reading of a word is no part of the word.
                    return self.stack.push(tag, self.tok.hash, if tag == RB { self.hiding(tag) } else { F_HIDDEN });
                }
            }
            TEMPLATE if self.is_shadow_root() => return self.stack.push_shadow_root(),
            SVG | MATH => {
                let ns = if tag == SVG { SVG_NS } else { MATH_NS };
                if !self.tok.self_closing {
                    let formula = if tag == MATH { self.formula() } else { false };
                    self.push_foreign(tag, ns);
                    if let Some(top) = self.stack.items.last_mut().filter(|_| formula) {
                        top.flags |= F_HIDDEN;
                    }
                }
                return;
            }
            _ => {}
        }
        if cat & C_CLOSEP != 0 {
            self.stack.close_p();
        }
        if cat & C_HEADING != 0 && self.stack.items.last().is_some_and(|e| e.cat & C_HEADING != 0 && e.ns == HTML_NS) {
            self.stack.pop();
        }
        self.open(tag);
    }

    fn html_end(&mut self, tag: u8) {
        let cat = CATS[tag as usize];
        match tag {
            P => {
                self.break_line();
                self.stack.close_p();
            }
            BR => self.break_line(),
            BODY | HTML | HEAD => {}
            LI => {
                self.stack.close_scoped(LI, C_SCOPE | C_LIST);
            }
            FORM => self.stack.close_form(),
            TEMPLATE => {
                // Nothing bounds the search: the innermost template goes, with all above it.
                self.stack.close_scoped(TEMPLATE, 0);
            }
            TABLE | TBODY | THEAD | TFOOT | TR | TD | TH | CAPTION | COLGROUP => {
                self.stack.close_scoped(tag, C_TABLE);
            }
            DD | DT => {
                self.stack.close_scoped(tag, IN_SCOPE);
            }
            A => {
                self.close_anchor();
                self.stack.close_formatting(A);
            }
            _ if cat & C_FORMAT != 0 => self.stack.close_formatting(tag),
            _ if cat & C_HEADING != 0 => self.stack.close_heading(),
            _ if cat & C_SCOPED != 0 => {
                self.stack.close_scoped(tag, IN_SCOPE);
            }
            _ => self.stack.close_other(tag, self.tok.hash),
        }
    }

    /// The source of a <math> in place of what it shows; false without one.
    fn formula(&mut self) -> bool {
        let alternative = self.tok.attr(b"alttext");
        let input = self.tok.input;
        let Some((tex, references)) = formulas::source(&input[self.tok.pos..], alternative) else { return false };
        if self.stack.flags() & F_HIDDEN == 0 {
            let is_block =
                |name: &[u8]| self.tok.attr(name).is_some_and(|value| matches!(value, b"block" | b"display"));
            let display = is_block(b"display") || is_block(b"mode") || self.is_display();
            self.write_formula(&tex, references, display);
        }
        true
    }

    /// A block begins or ends here; below a hidden element that is not to be seen.
    #[inline(always)]
    fn break_line(&mut self) {
        if self.stack.flags() & F_HIDDEN == 0 {
            self.text.break_line();
        }
    }

    /// Whether the current <template> is the first shadow root of an element that may have one.
    fn is_shadow_root(&mut self) -> bool {
        let mode = self.tok.attr(b"shadowrootmode").unwrap_or_default();
        let (holds, id) = match self.stack.items.last() {
            Some(host) => (host.ns == HTML_NS && holds_shadow_root(host.tag), host.id),
            // The body is on no stack.
            None => (self.in_body || !self.text.text.is_empty(), u32::MAX),
        };
        holds
            && (mode.eq_ignore_ascii_case(b"open") || mode.eq_ignore_ascii_case(b"closed"))
            && std::mem::replace(&mut self.shadow_host, id) != id
    }

    pub fn in_template(&self) -> bool {
        self.stack.flags() & F_TMPL != 0
    }

    fn source(&mut self, kind: u8) {
        if !self.in_template() {
            if let Some(src) = self.tok.attr(b"src") {
                self.link(src, kind, false);
            }
        }
    }

    fn area(&mut self) {
        if !self.in_template() {
            if let Some(href) = self.tok.attr(b"href") {
                let nofollow = self.nofollow();
                self.link(href, KIND_AREA, nofollow);
            }
        }
    }

    fn anchor_start(&mut self, href: Option<&'a [u8]>) {
        self.close_anchor();
        if self.in_template() {
            return;
        }
        if let Some(href) = href {
            let nofollow = self.nofollow();
            let link = self.link(href, KIND_A, nofollow);
            self.open_anchor(link);
        }
    }
}
