//! Sparse arrays and arrays with deferred mapping: they have no memory until `cuMemMapArrayAsync` maps some.
//!
//! A sparse array consists of tiles of 64 KiB. The first mipmap level that is smaller than a tile in some dimension,
//! and all levels after it, share a few tiles: the tail of the mipmapped array. An array with deferred mapping gets all
//! of its memory at once.

use std::ops::Range;
use std::sync::Arc;

use crate::object::virtual_memory;
use crate::state::error::{Error, Result};
use engine::texture::{Plane, TexelArray, TextureShape, TileGrid, TileLayout, TileMemory, TilePart, Tiles};

/// Bytes per tile, and the alignment of a tile's memory.
pub(crate) const TILE: u64 = 64 << 10;

/// An array whose memory may be absent.
#[derive(Debug)]
pub(crate) struct Unbacked {
    tiles: Arc<Tiles>,
    layout: Layout,
}

#[derive(Debug)]
enum Layout {
    Sparse(SparseLayout),
    /// The bytes of memory that the array needs.
    Deferred(u64),
}

/// The tiles of a sparse array.
#[derive(Debug)]
struct SparseLayout {
    properties: SparseProperties,
    /// The levels that consist of tiles of their own.
    levels: Vec<SparseLevel>,
    /// Number of layers.
    layers: u64,
    /// Number of the first tile of the tails, which follow each other.
    tails: usize,
}

/// A level that consists of tiles of its own.
#[derive(Debug)]
struct SparseLevel {
    /// Number of the first tile.
    first: usize,
    grid: TileGrid,
    /// Width, height and depth in texels; the depth is 1 in an array with layers.
    size: [u64; 3],
}

/// The properties that `cuArrayGetSparseProperties` returns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SparseProperties {
    /// Texels per tile: width, height, depth.
    pub(crate) tile: [u32; 3],
    /// The first level in the tail. Without a tail, the number of levels of a mipmapped array, and 0 for any other
    /// array.
    pub(crate) first_tail: u32,
    /// Bytes of the tail of each layer, or of the tail that all layers share; 0 without a tail.
    pub(crate) tail_bytes: u64,
    /// True if all layers share one tail.
    pub(crate) has_single_tail: bool,
}

/// A part of an array to map memory to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MapTarget {
    /// A box of a level, in texels.
    Level {
        level: u32,
        layer: u32,
        offset: [u32; 3],
        extent: [u32; 3],
    },
    /// Bytes of a tail.
    Tail { layer: u32, offset: u64, size: u64 },
}

/// Changes of an array's memory. Work of the stream makes them with [`MapChanges::apply`].
pub(crate) struct MapChanges {
    tiles: Arc<Tiles>,
    numbers: TileNumbers,
    /// The memory of the first tile, and bytes per tile; `None` to unmap the tiles.
    memory: Option<(TileMemory, u64)>,
}

impl MapChanges {
    pub(crate) fn apply(self) {
        let Some((TileMemory { address, keep }, bytes)) = self.memory else {
            return self.tiles.remove(|number| self.numbers.contains(number));
        };
        let memory = |(i, number)| {
            let address = address + i as u64 * bytes;
            let keep = Arc::clone(&keep);
            (number, Some(TileMemory { address, keep }))
        };
        self.tiles.set(self.numbers.iter().enumerate().map(memory));
    }
}

/// The numbers of tiles: a box of columns, rows and slices in a grid whose first tile has the number `first`. A large
/// array has many tiles, most of them without memory, so the numbers are not listed.
#[derive(Clone, Debug)]
struct TileNumbers {
    first: usize,
    /// Tiles per row, and per column.
    across: [u64; 2],
    ranges: [Range<u64>; 3],
}

impl TileNumbers {
    /// Returns consecutive numbers.
    fn run(first: usize, count: u64) -> TileNumbers {
        TileNumbers {
            first,
            across: [u64::MAX, 1],
            ranges: [0..count, 0..1, 0..1],
        }
    }

    fn count(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).product()
    }

    fn contains(&self, number: usize) -> bool {
        let Some(number) = number.checked_sub(self.first) else {
            return false;
        };
        let [columns, rows] = self.across;
        let (row, x) = (number as u64 / columns, number as u64 % columns);
        let [in_row, in_column, in_slices] = &self.ranges;
        in_row.contains(&x) && in_column.contains(&(row % rows)) && in_slices.contains(&(row / rows))
    }

    /// Returns the numbers in the order of their memory.
    fn iter(&self) -> impl Iterator<Item = usize> {
        let [columns, rows] = self.across;
        let [in_row, in_column, in_slices] = self.ranges.clone();
        let first = self.first;
        in_slices.flat_map(move |z| {
            let in_row = in_row.clone();
            in_column.clone().flat_map(move |y| {
                let row = (z * rows + y).wrapping_mul(columns);
                in_row.clone().map(move |x| first + row.wrapping_add(x) as usize)
            })
        })
    }
}

fn refuse<T>(why: &str) -> Result<T> {
    host::log!("cuMemMapArrayAsync: {why}");
    Err(Error::CUDA_ERROR_INVALID_VALUE)
}

/// Returns the width, height and depth of a tile in texels: the shapes that all GPUs share, which depend on the bytes
/// per texel or compressed block.
fn tile_size(image: &TexelArray) -> [u32; 3] {
    let bits = image.texel_bytes().trailing_zeros() as usize;
    let edge = image.block_edge();
    let tile = if image.shape == TextureShape::D3 {
        [[64, 32, 32], [32, 32, 32], [32, 32, 16], [32, 16, 16], [16, 16, 16]][bits.min(4)]
    } else {
        [[256, 256, 1], [256, 128, 1], [128, 128, 1], [128, 64, 1], [64, 64, 1]][bits.min(4)]
    };
    [tile[0] * edge, tile[1] * edge, tile[2]]
}

/// Returns the bytes that a GPU needs for a level with `row` bytes in each row. A GPU stores blocks of 64 bytes by 8
/// rows, in groups of up to 16 blocks in the direction of the rows and 32 in the direction of the slices.
fn stored(row: u64, rows: u64, slices: u64) -> u64 {
    let padded = |size: u64, most: u64| size.next_multiple_of(size.next_power_of_two().min(most));
    row.next_multiple_of(64) * padded(rows.max(8), 128) * padded(slices, 32)
}

/// Returns the bytes that a GPU needs for each layer of some levels of an image, and for all layers together.
fn stored_levels(image: &TexelArray, levels: &[Plane]) -> (u64, u64) {
    let is_deep = image.shape == TextureShape::D3;
    let of_level = |plane: &Plane| {
        let [_, height, depth] = plane.size;
        let slices = if is_deep { depth } else { 1 };
        stored(plane.pitch, height.div_ceil(image.block_edge()).into(), slices.into())
    };
    let layers = if is_deep { 1 } else { u64::from(image.levels[0].size[2]) };
    let one: u64 = levels.iter().map(of_level).sum();
    // Each layer begins at a multiple of the first level's blocks.
    let rows = u64::from(image.levels[0].size[1].div_ceil(image.block_edge()));
    let block = 64 * rows.max(8).next_power_of_two().min(128);
    let all = if layers > 1 {
        one.next_multiple_of(block) * layers
    } else {
        one
    };
    (one, all)
}

impl Unbacked {
    /// Returns an array with deferred mapping, whose texels have `bytes` bytes in all.
    pub(crate) fn deferred(image: &TexelArray, bytes: u64) -> Arc<Unbacked> {
        let (_, all) = stored_levels(image, &image.levels);
        let tile = all.max(bytes).next_multiple_of(TILE);
        let part = TilePart {
            start: 0,
            bytes,
            first: 0,
            layout: TileLayout::Line { from: 0, tile },
        };
        Arc::new(Unbacked {
            tiles: Arc::new(Tiles::new(vec![part], true)),
            layout: Layout::Deferred(tile),
        })
    }

    /// Returns a sparse array with the levels of an image. The addresses of the image's planes are offsets from the
    /// first texel.
    pub(crate) fn sparse(image: &TexelArray, is_mipmapped: bool) -> Arc<Unbacked> {
        let tile = tile_size(image);
        let is_deep = image.shape == TextureShape::D3;
        let edge = image.block_edge();
        let in_bytes = [
            u64::from(tile[0] / edge * image.texel_bytes()),
            u64::from(tile[1] / edge),
            u64::from(tile[2]),
        ];
        let layers = if is_deep { 1 } else { u64::from(image.levels[0].size[2]) };
        let is_large = |size: [u32; 3]| {
            let pairs = size.iter().zip(tile);
            pairs
                .take(if is_deep { 3 } else { 2 })
                .all(|(size, tile)| *size >= tile)
        };
        let own = image.levels.iter().take_while(|level| is_large(level.size)).count();
        let mut next = 0;
        let mut parts = Vec::new();
        let mut levels = Vec::new();
        for plane in &image.levels[..own] {
            let rows = u64::from(plane.size[1].div_ceil(edge));
            let grid = TileGrid {
                pitch: plane.pitch,
                slice: plane.slice,
                tile: in_bytes,
                across: [plane.pitch.div_ceil(in_bytes[0]), rows.div_ceil(in_bytes[1])],
            };
            let slices = u64::from(plane.size[2]);
            parts.push(TilePart {
                start: plane.address,
                bytes: plane.slice * slices,
                first: next,
                layout: TileLayout::Grid(grid),
            });
            let [width, height, depth] = plane.size.map(u64::from);
            let size = [width, height, if is_deep { depth } else { 1 }];
            levels.push(SparseLevel {
                first: next,
                grid,
                size,
            });
            next += grid.count(slices) as usize;
        }
        // A tail contains the bytes of its levels one after the other.
        let tails = next;
        let slices = |depth: u32| if is_deep { u64::from(depth) } else { 1 };
        let tail = &image.levels[own..];
        let (one, all) = stored_levels(image, tail);
        let has_single_tail = own == 0;
        let tail_bytes = (if has_single_tail { all } else { one }).next_multiple_of(TILE);
        let mut from = 0;
        for plane in tail {
            let bytes = plane.slice * slices(plane.size[2]);
            for layer in 0..layers {
                let (first, before) = if has_single_tail {
                    (tails, layer * one)
                } else {
                    (tails + (layer * (tail_bytes / TILE)) as usize, 0)
                };
                parts.push(TilePart {
                    start: plane.address + layer * bytes,
                    bytes,
                    first,
                    layout: TileLayout::Line {
                        from: before + from,
                        tile: TILE,
                    },
                });
            }
            from += bytes.next_multiple_of(16);
        }
        let has_tail = !tail.is_empty();
        Arc::new(Unbacked {
            tiles: Arc::new(Tiles::new(parts, false)),
            layout: Layout::Sparse(SparseLayout {
                properties: SparseProperties {
                    tile,
                    first_tail: if has_tail || is_mipmapped { own as u32 } else { 0 },
                    tail_bytes,
                    has_single_tail,
                },
                levels,
                layers,
                tails,
            }),
        })
    }

    pub(crate) fn tiles(&self) -> Arc<Tiles> {
        Arc::clone(&self.tiles)
    }

    /// Returns the properties of a sparse array.
    pub(crate) fn properties(&self) -> Result<SparseProperties> {
        match &self.layout {
            Layout::Sparse(layout) => Ok(layout.properties),
            Layout::Deferred(_) => Err(Error::CUDA_ERROR_INVALID_VALUE),
        }
    }

    /// Returns the bytes of memory that an array with deferred mapping needs.
    pub(crate) fn needed(&self) -> Result<u64> {
        match self.layout {
            Layout::Deferred(bytes) => Ok(bytes),
            Layout::Sparse(_) => Err(Error::CUDA_ERROR_INVALID_VALUE),
        }
    }

    /// Returns the changes that map memory to a part of the array. `memory` is a handle of `cuMemCreate` and an offset
    /// in bytes; `None` unmaps the part.
    pub(crate) fn map(&self, target: MapTarget, memory: Option<(usize, u64)>) -> Result<MapChanges> {
        let (numbers, bytes) = match &self.layout {
            Layout::Sparse(layout) => (layout.tiles(target)?, TILE),
            Layout::Deferred(bytes) => (whole(target), *bytes),
        };
        let memory = match memory {
            None => None,
            Some((handle, offset)) => {
                let pool = virtual_memory::map_tiles(handle)?;
                let all = bytes.checked_mul(numbers.count());
                let end = all.and_then(|all| offset.checked_add(all));
                if !offset.is_multiple_of(TILE) || end.is_none_or(|end| end > pool.bytes()) {
                    return refuse("the offset must be a multiple of 64 KiB, and the memory must contain all tiles");
                }
                let address = pool.base() + offset;
                Some((TileMemory { address, keep: pool }, bytes))
            }
        };
        Ok(MapChanges {
            tiles: self.tiles(),
            numbers,
            memory,
        })
    }
}

/// Returns the only tile of an array with deferred mapping. Like driver 580, it ignores the requested part of the
/// array.
fn whole(_target: MapTarget) -> TileNumbers {
    TileNumbers::run(0, 1)
}

impl SparseLayout {
    /// Returns the numbers of the tiles of a part, in the order of their memory.
    fn tiles(&self, target: MapTarget) -> Result<TileNumbers> {
        match target {
            MapTarget::Level {
                level,
                layer,
                offset,
                extent,
            } => self.in_level(level, layer, offset.map(u64::from), extent.map(u64::from)),
            MapTarget::Tail { layer, offset, size } => self.in_tail(layer, offset, size),
        }
    }

    fn in_level(&self, level: u32, layer: u32, offset: [u64; 3], extent: [u64; 3]) -> Result<TileNumbers> {
        let Some(level) = self.levels.get(level as usize) else {
            return refuse("the array has no such level, or the level is in the tail");
        };
        let layer = u64::from(layer);
        if layer >= self.layers {
            return refuse("the array has no such layer");
        }
        let tile = self.properties.tile.map(u64::from);
        let mut ranges = [0..0, 0..0, 0..0];
        for axis in 0..3 {
            let (begin, end) = (offset[axis], offset[axis] + extent[axis]);
            let is_whole = end.is_multiple_of(tile[axis]) || end == level.size[axis];
            if extent[axis] == 0 || !begin.is_multiple_of(tile[axis]) || end > level.size[axis] || !is_whole {
                return refuse(
                    "the extent must be above 0, the offset a multiple of the tile's size, and the end a multiple of \
                     it within the level, or the level's end",
                );
            }
            ranges[axis] = begin / tile[axis]..end.div_ceil(tile[axis]);
        }
        let [columns, rows, slices] = ranges;
        Ok(TileNumbers {
            first: level.first,
            across: level.grid.across,
            ranges: [columns, rows, slices.start + layer..slices.end + layer],
        })
    }

    fn in_tail(&self, layer: u32, offset: u64, size: u64) -> Result<TileNumbers> {
        let SparseProperties {
            tail_bytes,
            has_single_tail,
            ..
        } = self.properties;
        let tails = if has_single_tail { 1 } else { self.layers };
        let is_inside = offset.checked_add(size).is_some_and(|end| end <= tail_bytes);
        if size == 0 || !is_inside || !offset.is_multiple_of(TILE) || !size.is_multiple_of(TILE) {
            return refuse("offset and size must be multiples of 64 KiB, and the size above 0 and within the tail");
        }
        if u64::from(layer) >= tails {
            return refuse("the array has no such layer");
        }
        let first = self.tails as u64 + u64::from(layer) * (tail_bytes / TILE) + offset / TILE;
        Ok(TileNumbers::run(first as usize, size / TILE))
    }
}

#[cfg(test)]
mod tests {
    use super::TileNumbers;

    #[test]
    fn a_box_contains_the_numbers_that_it_lists() {
        let part = TileNumbers {
            first: 7,
            across: [5, 4],
            ranges: [1..3, 2..4, 1..2],
        };
        let listed: Vec<usize> = part.iter().collect();
        assert_eq!(listed, [38, 39, 43, 44]);
        assert_eq!(part.count(), 4);
        let contained: Vec<usize> = (0..100).filter(|number| part.contains(*number)).collect();
        assert_eq!(contained, listed);
        let run = TileNumbers::run(3, 2);
        assert_eq!(
            (0..9).filter(|number| run.contains(*number)).collect::<Vec<_>>(),
            [3, 4]
        );
        assert_eq!(run.iter().collect::<Vec<_>>(), [3, 4]);
    }
}
