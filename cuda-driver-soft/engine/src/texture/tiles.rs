//! The memory behind sparse arrays and arrays with deferred mapping. Parts of it may be absent.
//!
//! The [planes](super::Plane) of such an array have offsets for addresses, as if its texels were contiguous.
//! [`Tiles`] finds the memory behind an offset.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Device memory behind a tile.
#[derive(Clone)]
pub struct TileMemory {
    /// Address of the first byte.
    pub address: u64,
    /// Keeps the memory mapped.
    pub keep: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for TileMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TileMemory").field(&self.address).finish()
    }
}

/// A range of offsets, and its tiles.
#[derive(Clone, Copy, Debug)]
pub struct TilePart {
    /// First offset.
    pub start: u64,
    /// Length of the range in bytes, not 0.
    pub bytes: u64,
    /// Number of its first tile.
    pub first: usize,
    /// The layout of the range in its tiles.
    pub layout: TileLayout,
}

/// The layout of a range of offsets in its tiles.
#[derive(Clone, Copy, Debug)]
pub enum TileLayout {
    /// Consecutive bytes, which begin `from` bytes after the start of the first tile. Each tile has `tile` bytes, at
    /// least one.
    Line {
        /// Bytes from the start of the first tile.
        from: u64,
        /// Bytes per tile.
        tile: u64,
    },
    /// A grid of tiles.
    Grid(TileGrid),
}

/// A mipmap level as a grid of tiles. None of the numbers is 0.
#[derive(Clone, Copy, Debug)]
pub struct TileGrid {
    /// Bytes per row of the level.
    pub pitch: u64,
    /// Bytes per slice of the level.
    pub slice: u64,
    /// Size of a tile: bytes per row, rows, slices.
    pub tile: [u64; 3],
    /// Tiles per row, and per column.
    pub across: [u64; 2],
}

/// The place of an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TilePlace {
    /// The address of its memory; `None` if there is no memory.
    pub address: Option<u64>,
    /// Number of bytes from the offset on that are contiguous in memory or absent together; 1 outside of all parts.
    pub run: u64,
}

/// The memory of an array by offset.
#[derive(Debug)]
pub struct Tiles {
    /// In the order of their offsets.
    parts: Vec<TilePart>,
    /// By number of the tile.
    memory: RwLock<BTreeMap<usize, TileMemory>>,
    faults: bool,
}

impl Tiles {
    /// Returns tiles without memory. With `faults`, an access to absent memory faults; otherwise reads return zeros and
    /// writes do nothing.
    pub fn new(parts: Vec<TilePart>, faults: bool) -> Tiles {
        Tiles {
            parts,
            memory: RwLock::default(),
            faults,
        }
    }

    /// Returns true if an access to absent memory faults.
    pub fn faults(&self) -> bool {
        self.faults
    }

    /// Sets or removes the memory of tiles by number.
    pub fn set(&self, changes: impl IntoIterator<Item = (usize, Option<TileMemory>)>) {
        let mut memory = self.memory.write().unwrap_or_else(PoisonError::into_inner);
        let mut gone = Vec::new();
        for (number, new) in changes {
            gone.extend(match new {
                Some(new) => memory.insert(number, new),
                None => memory.remove(&number),
            });
        }
        // Memory may be unmapped when it is dropped, which takes locks of its own.
        drop(memory);
        drop(gone);
    }

    /// Removes the memory of the tiles whose numbers satisfy a condition.
    pub fn remove(&self, is_gone: impl Fn(usize) -> bool) {
        let mapped = self.memory.read().unwrap_or_else(PoisonError::into_inner);
        let gone: Vec<usize> = mapped.keys().copied().filter(|number| is_gone(*number)).collect();
        drop(mapped);
        self.set(gone.into_iter().map(|number| (number, None)));
    }

    /// Returns the place of an offset.
    pub fn place(&self, offset: u64) -> TilePlace {
        let after = self.parts.partition_point(|part| part.start <= offset);
        let part = after.checked_sub(1).map(|i| self.parts[i]);
        let Some(part) = part.filter(|part| offset - part.start < part.bytes) else {
            return TilePlace { address: None, run: 1 };
        };
        let rest = offset - part.start;
        let (tile, inside, run) = match part.layout {
            TileLayout::Line { from, tile } => {
                let (number, inside) = ((from + rest) / tile, (from + rest) % tile);
                (number as usize, inside, (tile - inside).min(part.bytes - rest))
            }
            TileLayout::Grid(grid) => grid.place(rest),
        };
        let memory = self.memory.read().unwrap_or_else(PoisonError::into_inner);
        let memory = memory.get(&(part.first + tile));
        TilePlace {
            address: memory.map(|memory| memory.address + inside),
            run,
        }
    }
}

impl TileGrid {
    /// Returns the number of tiles for this many slices.
    pub fn count(&self, slices: u64) -> u64 {
        self.across[0] * self.across[1] * slices.div_ceil(self.tile[2])
    }

    /// Returns the number of the tile at this column, row and layer of tiles.
    pub fn number(&self, [x, y, z]: [u64; 3]) -> u64 {
        (z * self.across[1] + y) * self.across[0] + x
    }

    /// Returns the number of the tile with an offset, the offset in the tile, and the bytes up to the end of its row.
    fn place(&self, offset: u64) -> (usize, u64, u64) {
        let [width, height, depth] = self.tile;
        let (z, rest) = (offset / self.slice, offset % self.slice);
        let (y, x) = (rest / self.pitch, rest % self.pitch);
        let number = self.number([x / width, y / height, z / depth]);
        let inside = ((z % depth) * height + y % height) * width + x % width;
        (number as usize, inside, (width - x % width).min(self.pitch - x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(address: u64) -> Option<TileMemory> {
        Some(TileMemory {
            address,
            keep: Arc::new(()),
        })
    }

    /// A level of 12 bytes x 3 rows x 2 slices in tiles of 8 x 2 x 1, and 16 bytes at offset 80 in tiles of 12 bytes.
    fn tiles() -> Tiles {
        let grid = TileGrid {
            pitch: 12,
            slice: 36,
            tile: [8, 2, 1],
            across: [2, 2],
        };
        assert_eq!(grid.count(2), 8);
        let part = |start, bytes, first, layout| TilePart {
            start,
            bytes,
            first,
            layout,
        };
        let parts = vec![
            part(0, 72, 0, TileLayout::Grid(grid)),
            part(80, 16, 8, TileLayout::Line { from: 4, tile: 12 }),
        ];
        Tiles::new(parts, false)
    }

    #[test]
    fn places_of_offsets() {
        let tiles = tiles();
        let place = |offset| {
            let TilePlace { address, run } = tiles.place(offset);
            (address, run)
        };
        assert_eq!(place(0), (None, 8));
        tiles.set([(0, memory(100)), (3, memory(200)), (6, memory(300)), (8, memory(1000))]);
        assert_eq!(place(0), (Some(100), 8));
        assert_eq!(place(5), (Some(105), 3));
        assert_eq!(place(8), (None, 4));
        // The second row of the first tile.
        assert_eq!(place(13), (Some(109), 7));
        // The third row is in the second row of tiles, whose second tile ends with the level.
        assert_eq!(place(24), (None, 8));
        assert_eq!(place(33), (Some(201), 3));
        // The second slice.
        assert_eq!(place(36 + 24), (Some(300), 8));
        assert_eq!(place(80), (Some(1004), 8));
        assert_eq!(place(87), (Some(1011), 1));
        assert_eq!(place(88), (None, 8));
        // Between the parts and after them.
        assert_eq!((place(75), place(96)), ((None, 1), (None, 1)));
        tiles.set([(0, None)]);
        assert_eq!(place(0), (None, 8));
    }
}
