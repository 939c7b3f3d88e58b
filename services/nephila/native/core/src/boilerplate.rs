//! What generators of documentation put around and into a page: signs of permalinks, bars of navigation, tools.
//!
//! Invariant: names are compared as whole words of a class, so that no text of a page is taken for boilerplate by a
//! part of a word.

use crate::search::may_begin;

/// What permalinks of headings are shown as, and the way back from a note.
const SIGNS: &str = "¶#§∞⚓⁋☍🔗⛓\u{FFFC}\u{F0C1}\u{E157}\u{200B}↩\u{FE0E}";
/// Characters of such a sign.
const MAX_SIGN: usize = 3;

/// Classes of a link to its own place.
fn is_permalink(word: &[u8]) -> bool {
    matches!(
        word,
        b"anchorjs-link"
            | b"footnote-backref"
            | b"footnote-return"
            | b"hash-link"
            | b"header-anchor"
            | b"headerlink"
            | b"heading-anchor"
            | b"permalink"
            | b"reversefootnote"
    )
}

/// Classes of blocks and spans that are no content.
fn is_tool(word: &[u8]) -> bool {
    matches!(
        word,
        b"bd-header"
            | b"bd-sidebar"
            | b"bottom-nav"
            | b"bottom-of-page"
            | b"bottomNav"
            | b"breadcrumb"
            | b"breadcrumbs"
            | b"breadcrumbs__container"
            | b"copybtn"
            | b"edit-page-link"
            | b"edit-this-page"
            | b"footer-nav"
            | b"footnav"
            | b"footprev"
            | b"head-vol"
            | b"headerbar"
            | b"headnav"
            | b"hide-when-search"
            | b"hideme"
            | b"md-content__button"
            | b"md-footer"
            | b"md-source-file"
            | b"md-tabs"
            | b"menu-bar"
            | b"nav-wide-wrapper"
            | b"nav-wrapper"
            | b"navfooter"
            | b"navheader"
            | b"navigation-footer"
            | b"out-of-band"
            | b"page-nav"
            | b"page-tools"
            | b"pagination-nav"
            | b"prev-next-area"
            | b"prev-next-footer"
            | b"related"
            | b"related-pages"
            | b"rightside"
            | b"rst-footer-buttons"
            | b"rst-versions"
            | b"sidebar-elems"
            | b"skip-nav"
            | b"skipNav"
            | b"sphinxsidebar"
            | b"sphinxsidebarwrapper"
            | b"sub-nav"
            | b"subNav"
            | b"theme-doc-footer"
            | b"toc-tree"
            | b"top-nav"
            | b"topNav"
            | b"wy-breadcrumbs"
    )
}

/// The text of a permalink.
pub fn is_sign(text: &[u8]) -> bool {
    let Some(text) = std::str::from_utf8(text).ok().map(str::trim).filter(|text| !text.is_empty()) else {
        return false;
    };
    text.chars().count() <= MAX_SIGN && text.chars().all(|c| SIGNS.contains(c))
}

/// False if a class of a link is neither that of a permalink nor of a tool.
pub fn may_name_link(class: &[u8]) -> bool {
    may_begin(class, b"afhprt", b"aelno", b"acorsv")
}

/// Whether a class is that of a permalink.
pub fn names_permalink(class: &[u8]) -> bool {
    words(class).any(is_permalink)
}

/// Whether a class of a span is that of a tool.
pub fn names_small_tool(class: &[u8]) -> bool {
    // The second is what Verso shows beside code under the pointer.
    words(class).any(|word| matches!(word, b"mw-editsection" | b"out-of-band" | b"rightside"))
        || class == b"hover-info messages"
}

/// Whether a class is that of a link which runs the code beside it (rustdoc, mdBook).
pub fn names_link_tool(class: &[u8]) -> bool {
    words(class).any(|word| matches!(word, b"test-arrow" | b"play-button"))
}

/// Whether a class is that of a bar or tool.
pub fn names_tool(class: &[u8]) -> bool {
    words(class).any(is_tool)
}

fn words(class: &[u8]) -> impl Iterator<Item = &[u8]> {
    class.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}
