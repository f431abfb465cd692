//! Texels of block-compressed formats (BC1 to BC7): blocks of 4 x 4 texels.
//!
//! The manual names the formats only. BC6H and BC7 have exact definitions; for the other formats this module computes
//! the interpolated values of an H200, and the tests compare whole images with its results.

mod bc6h;
mod bc7;
mod partitions;

use super::texel::Channel;

/// A block-compressed format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// Three color channels; texels may be transparent.
    Bc1,
    /// Colors as in BC1, and four bits of alpha.
    Bc2,
    /// Colors as in BC1, and interpolated alpha.
    Bc3,
    /// One interpolated channel; signed if true.
    Bc4(bool),
    /// Two interpolated channels; signed if true.
    Bc5(bool),
    /// Three channels of halves; signed if true.
    Bc6h(bool),
    /// Three or four channels of 8 bits.
    Bc7,
}

impl Block {
    /// Returns the size of a block in bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Block::Bc1 | Block::Bc4(_) => 8,
            _ => 16,
        }
    }

    /// Returns the type of the four channels of a decoded texel.
    pub fn channel(self) -> Channel {
        match self {
            Block::Bc4(true) | Block::Bc5(true) => Channel::S16,
            Block::Bc4(false) | Block::Bc5(false) => Channel::U16,
            Block::Bc6h(_) => Channel::Half,
            _ => Channel::U8,
        }
    }

    /// Returns a channel of the border color, in the representation of [`Channel::widen`]: `given`, or the constant of
    /// a channel that the format does not store.
    pub fn border(self, channel: usize, given: u32) -> u32 {
        let stored = match self {
            Block::Bc4(_) => 1,
            Block::Bc5(_) => 2,
            Block::Bc6h(_) => 3,
            _ => 4,
        };
        match (self, channel) {
            _ if channel < stored => given,
            (Block::Bc4(signed) | Block::Bc5(signed), 3) => one(signed),
            (Block::Bc6h(_), 3) => 0x3c00,
            _ => 0,
        }
    }

    /// Decodes one texel of a block: the texel `at` of 16, row by row. Channels are in the representation of
    /// [`Channel::widen`]. Blocks of 8 bytes are in the first half.
    pub fn texel(self, block: &[u8; 16], at: usize) -> [u32; 4] {
        let [low, high] = [0, 8].map(|from| word(block, from));
        match self {
            Block::Bc1 => color(low, at, true),
            Block::Bc2 => {
                let [r, g, b, _] = color(high, at, false);
                [r, g, b, (low >> (4 * at) & 15) as u32 * 17]
            }
            Block::Bc3 => {
                let [r, g, b, _] = color(high, at, false);
                [r, g, b, alpha(low, at)]
            }
            Block::Bc4(signed) => [channel(low, at, signed), 0, 0, one(signed)],
            Block::Bc5(signed) => [channel(low, at, signed), channel(high, at, signed), 0, one(signed)],
            Block::Bc6h(signed) => {
                let [r, g, b] = bc6h::texel(u128::from_le_bytes(*block), at, signed);
                [r, g, b, 0x3c00]
            }
            Block::Bc7 => bc7::texel(u128::from_le_bytes(*block), at),
        }
    }
}

/// Returns 8 bytes of a block as a number.
fn word(block: &[u8; 16], from: usize) -> u64 {
    let bytes = block[from..from + 8].iter().rev();
    bytes.fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn one(signed: bool) -> u32 {
    if signed { 0x7fff } else { 0xffff }
}

/// Returns the color of a texel of BC1, BC2 or BC3. With `cut`, texels may be transparent (all zeros).
fn color(block: u64, at: usize, cut: bool) -> [u32; 4] {
    let (first, second) = (block as u32 & 0xffff, block as u32 >> 16);
    let index = (block >> (32 + 2 * at) & 3) as u32;
    let four = first > second || !cut;
    if !four && index == 3 {
        return [0; 4];
    }
    let [red, blue] = [11, 0].map(|shift| {
        let [a, b] = [first, second].map(|word| word >> shift & 31);
        match index {
            0 => a << 3 | a >> 2,
            1 => b << 3 | b >> 2,
            2 if four => (2 * a + b) * 22 / 8,
            2 => (a + b) * 33 / 8,
            _ => (a + 2 * b) * 22 / 8,
        }
    });
    let [a, b] = [first, second].map(|word| {
        let green = (word >> 5 & 63) as i32;
        green << 2 | green >> 4
    });
    let green = match index {
        0 => a,
        1 => b,
        2 => between(a, b, if four { 80 } else { 128 }, 2),
        _ => between(b, a, 80, 2),
    };
    [red, green as u32, blue, 255]
}

/// Returns the value that is `weight + eighths / 8` 256ths of the way from `near` to `far`.
fn between(near: i32, far: i32, weight: i32, eighths: i32) -> i32 {
    let distance = far - near;
    (256 * near + distance * weight + distance * eighths / 8 + 128) >> 8
}

/// Returns the index of a texel in a block with two endpoints and three bits a texel.
fn index(block: u64, at: usize) -> usize {
    (block >> (16 + 3 * at) & 7) as usize
}

/// Returns the alpha of a texel of BC3.
fn alpha(block: u64, at: usize) -> u32 {
    let [first, second] = [block as i32 & 255, block as i32 >> 8 & 255];
    let value = match (first > second, index(block, at)) {
        (_, 0) => first,
        (_, 1) => second,
        (true, 2) => between(first, second, 36, 1),
        (true, 3) => between(first, second, 72, 2),
        (true, 4) => between(first, second, 112, -4),
        (true, 5) => between(second, first, 112, -4),
        (true, 6) => between(second, first, 72, 2),
        (true, _) => between(second, first, 36, 1),
        (false, 2) => between(first, second, 48, 2),
        (false, 3) => between(first, second, 96, 2),
        (false, 4) => between(second, first, 96, 2),
        (false, 5) => between(second, first, 48, 2),
        (false, 6) => 0,
        (false, _) => 255,
    };
    value as u32
}

/// Returns the channel of a texel of BC4 or BC5, as an integer of 16 bits.
fn channel(block: u64, at: usize, signed: bool) -> u32 {
    let [first, second] = [0, 8].map(|shift| {
        let byte = (block >> shift) as u8;
        if signed {
            i32::from(byte as i8).max(-127)
        } else {
            i32::from(byte)
        }
    });
    // The weight of the second endpoint in 256ths, and true if the first endpoint gives the low bits.
    let (weight, low_of_first) = match (first > second, index(block, at)) {
        (_, 0) => (0, true),
        (_, 1) => (256, false),
        (true, 2) => (36, true),
        (true, 3) => (72, true),
        (true, 4) => (112, false),
        (true, 5) => (144, true),
        (true, 6) => (184, false),
        (true, _) => (220, false),
        (false, 2) => (48, true),
        (false, 3) => (96, true),
        (false, 4) => (160, false),
        (false, 5) => (208, false),
        (false, 6) => return if signed { -32767i32 as u32 } else { 0 },
        (false, _) => return one(signed),
    };
    // Endpoints widen to 16 bits by repetition of their bits.
    let low = |end: i32| {
        let size = end.abs();
        if signed {
            end.signum() * (2 * size + (size >> 6))
        } else {
            end
        }
    };
    let low = low(if low_of_first { first } else { second });
    (first * (256 - weight) + second * weight + low) as u32
}

#[cfg(test)]
mod tests;
