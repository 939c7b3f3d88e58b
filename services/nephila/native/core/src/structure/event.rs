//! One event of the outline of a page: an element opens or closes, or text follows.

/// Attributes of an element: a range in `Outline::attrs`.
pub type Attributes = (u32, u32);

/// In place of the attributes of a formula: it has a line of its own.
pub const DISPLAY: Attributes = (u32::MAX, u32::MAX);

#[derive(Clone, Copy)]
pub enum Event {
    /// A range of the text of the page pass, and the number of its last line.
    Text(u32, u32, u32),
    Open {
        tag: u8,
        id: u32,
        attrs: Attributes,
    },
    Close(u32),
    /// White space before a picture: that before text is part of the text.
    Space,
    /// An element without content: br, hr, img; 0 for anything that only ends a line.
    Void {
        tag: u8,
        attrs: Attributes,
    },
}
