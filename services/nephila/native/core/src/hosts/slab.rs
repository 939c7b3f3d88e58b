//! Records of one kind in one vector, named by their index; freed records are used again.
//!
//! Invariant: `free` holds each freed index once. A million small records cost no allocation and no pointer each. A slab
//! whose last record goes gives its memory back.

pub const NONE: u32 = u32::MAX;
/// Rows that an empty slab keeps.
const KEPT: usize = 1024;

pub struct Slab<T> {
    rows: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { rows: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub fn add(&mut self, row: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.rows[index as usize] = row;
            return index;
        }
        self.rows.push(row);
        (self.rows.len() - 1) as u32
    }

    pub fn remove(&mut self, index: u32) {
        self.free.push(index);
        if self.free.len() == self.rows.len() && self.rows.len() > KEPT {
            *self = Slab::default();
        }
    }

    /// Remove a record that owns memory.
    pub fn take(&mut self, index: u32) -> T
    where
        T: Default,
    {
        let row = std::mem::take(&mut self.rows[index as usize]);
        self.remove(index);
        row
    }

    pub fn len(&self) -> usize {
        self.rows.len() - self.free.len()
    }

    pub fn nbytes(&self) -> usize {
        self.rows.capacity() * std::mem::size_of::<T>() + self.free.capacity() * 4
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;
    fn index(&self, index: u32) -> &T {
        &self.rows[index as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.rows[index as usize]
    }
}
