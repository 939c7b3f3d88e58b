//! Vectors that a page needs, kept by its thread for the next page: most pages then allocate nothing for their blocks.

use std::cell::Cell;

use super::blocks::{self, Block, Container, Item, Line, Range};
use super::event::Event;
use crate::tokenizer::Attr;

/// Bytes of a vector that a thread keeps; a page of 1 MB stays below.
pub const KEPT: usize = 1 << 20;

#[derive(Default)]
pub struct Room {
    pub events: Vec<Event>,
    pub attrs: Vec<Attr>,
    pub pool: String,
    pub items: Vec<Item>,
    pub lines: Vec<Line>,
    pub cells: Vec<blocks::Cell>,
    pub rows: Vec<Range>,
    pub containers: Vec<Container>,
    pub blocks: Vec<Block>,
}

thread_local! {
    static ROOM: Cell<Room> = Cell::default();
}

impl Room {
    /// The vectors of this thread, empty; new ones while others hold them.
    pub fn take() -> Self {
        ROOM.take()
    }

    /// Keep the vectors that are not too large. O(blocks).
    pub fn keep(mut self) {
        let pool = std::mem::take(&mut self.pool).into_bytes();
        ROOM.set(Room {
            events: emptied(self.events),
            attrs: emptied(self.attrs),
            // Without bytes it is valid.
            pool: String::from_utf8(emptied(pool)).unwrap_or_default(),
            items: emptied(self.items),
            lines: emptied(self.lines),
            cells: emptied(self.cells),
            rows: emptied(self.rows),
            containers: emptied(self.containers),
            blocks: emptied(self.blocks),
        });
    }
}

/// The vector without its content; a new one in place of one that is too large.
pub fn emptied<T>(mut vector: Vec<T>) -> Vec<T> {
    if vector.capacity() * size_of::<T>() > KEPT {
        return Vec::new();
    }
    vector.clear();
    vector
}
