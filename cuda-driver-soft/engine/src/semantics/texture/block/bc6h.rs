//! BC6H: blocks of colors whose channels are halves, in fourteen modes.

use super::partitions::{Bits, index_place, subset, weight};

/// A run of bits of an endpoint: channel, endpoint, first and last bit. The first bit is the lowest in the block.
type Run = (usize, usize, u32, u32);

/// The fields of a block in a mode.
struct Mode {
    /// True if the endpoints after the first one are differences from it.
    differences: bool,
    subsets: usize,
    /// The size of a channel of the first endpoint in bits.
    first: u32,
    /// The size of each channel of the other endpoints in bits.
    others: [u32; 3],
    runs: &'static str,
}

/// Returns the mode with this number. Runs are in the order of the bits of a block: `g2.4` is bit 4 of the green
/// channel of endpoint 2, and `r0.0-9` is bits 0 to 9.
fn mode(number: usize) -> Option<Mode> {
    let of = |first, others, runs| {
        Some(Mode {
            differences: true,
            subsets: 2,
            first,
            others,
            runs,
        })
    };
    let whole = |differences, first, other, runs| {
        Some(Mode {
            differences,
            subsets: 1,
            first,
            others: [other; 3],
            runs,
        })
    };
    match number {
        0b00000 => of(
            10,
            [5, 5, 5],
            "g2.4 b2.4 b3.4 r0.0-9 g0.0-9 b0.0-9 r1.0-4 g3.4 g2.0-3 g1.0-4 b3.0 g3.0-3 b1.0-4 b3.1 b2.0-3 r2.0-4 b3.2 \
             r3.0-4 b3.3",
        ),
        0b00001 => of(
            7,
            [6, 6, 6],
            "g2.5 g3.4 g3.5 r0.0-6 b3.0 b3.1 b2.4 g0.0-6 b2.5 b3.2 g2.4 b0.0-6 b3.3 b3.5 b3.4 r1.0-5 g2.0-3 g1.0-5 \
             g3.0-3 b1.0-5 b2.0-3 r2.0-5 r3.0-5",
        ),
        0b00010 => of(
            11,
            [5, 4, 4],
            "r0.0-9 g0.0-9 b0.0-9 r1.0-4 r0.10 g2.0-3 g1.0-3 g0.10 b3.0 g3.0-3 b1.0-3 b0.10 b3.1 b2.0-3 r2.0-4 b3.2 \
             r3.0-4 b3.3",
        ),
        0b00110 => of(
            11,
            [4, 5, 4],
            "r0.0-9 g0.0-9 b0.0-9 r1.0-3 r0.10 g3.4 g2.0-3 g1.0-4 g0.10 g3.0-3 b1.0-3 b0.10 b3.1 b2.0-3 r2.0-3 b3.0 \
             b3.2 r3.0-3 g2.4 b3.3",
        ),
        0b01010 => of(
            11,
            [4, 4, 5],
            "r0.0-9 g0.0-9 b0.0-9 r1.0-3 r0.10 b2.4 g2.0-3 g1.0-3 g0.10 b3.0 g3.0-3 b1.0-4 b0.10 b2.0-3 r2.0-3 b3.1 \
             b3.2 r3.0-3 b3.4 b3.3",
        ),
        0b01110 => of(
            9,
            [5, 5, 5],
            "r0.0-8 b2.4 g0.0-8 g2.4 b0.0-8 b3.4 r1.0-4 g3.4 g2.0-3 g1.0-4 b3.0 g3.0-3 b1.0-4 b3.1 b2.0-3 r2.0-4 b3.2 \
             r3.0-4 b3.3",
        ),
        0b10010 => of(
            8,
            [6, 5, 5],
            "r0.0-7 g3.4 b2.4 g0.0-7 b3.2 g2.4 b0.0-7 b3.3 b3.4 r1.0-5 g2.0-3 g1.0-4 b3.0 g3.0-3 b1.0-4 b3.1 b2.0-3 \
             r2.0-5 r3.0-5",
        ),
        0b10110 => of(
            8,
            [5, 6, 5],
            "r0.0-7 b3.0 b2.4 g0.0-7 g2.5 g2.4 b0.0-7 g3.5 b3.4 r1.0-4 g3.4 g2.0-3 g1.0-5 g3.0-3 b1.0-4 b3.1 b2.0-3 \
             r2.0-4 b3.2 r3.0-4 b3.3",
        ),
        0b11010 => of(
            8,
            [5, 5, 6],
            "r0.0-7 b3.1 b2.4 g0.0-7 b2.5 g2.4 b0.0-7 b3.5 b3.4 r1.0-4 g3.4 g2.0-3 g1.0-4 b3.0 g3.0-3 b1.0-5 b2.0-3 \
             r2.0-4 b3.2 r3.0-4 b3.3",
        ),
        0b11110 => Some(Mode {
            differences: false,
            subsets: 2,
            first: 6,
            others: [6; 3],
            runs: "r0.0-5 g3.4 b3.0 b3.1 b2.4 g0.0-5 g2.5 b2.5 b3.2 g2.4 b0.0-5 g3.5 b3.3 b3.5 b3.4 r1.0-5 g2.0-3 \
                   g1.0-5 g3.0-3 b1.0-5 b2.0-3 r2.0-5 r3.0-5",
        }),
        0b00011 => whole(false, 10, 10, "r0.0-9 g0.0-9 b0.0-9 r1.0-9 g1.0-9 b1.0-9"),
        0b00111 => whole(
            true,
            11,
            9,
            "r0.0-9 g0.0-9 b0.0-9 r1.0-8 r0.10 g1.0-8 g0.10 b1.0-8 b0.10",
        ),
        0b01011 => whole(
            true,
            12,
            8,
            "r0.0-9 g0.0-9 b0.0-9 r1.0-7 r0.11-10 g1.0-7 g0.11-10 b1.0-7 b0.11-10",
        ),
        0b01111 => whole(
            true,
            16,
            4,
            "r0.0-9 g0.0-9 b0.0-9 r1.0-3 r0.15-10 g1.0-3 g0.15-10 b1.0-3 b0.15-10",
        ),
        _ => None,
    }
}

/// Parses one run of [`mode`].
fn run(text: &str) -> Option<Run> {
    let (name, bits) = text.split_once('.')?;
    let channel = "rgb".find(name.get(..1)?)?;
    let (first, last) = bits.split_once('-').unwrap_or((bits, bits));
    Some((
        channel,
        name.get(1..)?.parse().ok()?,
        first.parse().ok()?,
        last.parse().ok()?,
    ))
}

fn sign_extend(value: i32, bits: u32) -> i32 {
    value << (32 - bits) >> (32 - bits)
}

/// Widens an endpoint of this many bits to 16 bits, of which one is the sign if it is signed.
fn widen(value: i32, bits: u32, signed: bool) -> i32 {
    if signed {
        let size = value.abs();
        let wide = match size {
            _ if bits >= 16 => size,
            0 => 0,
            _ if size >= (1 << (bits - 1)) - 1 => 0x7fff,
            _ => ((size << 15) + 0x4000) >> (bits - 1),
        };
        if value < 0 { -wide } else { wide }
    } else if bits >= 15 || value == 0 {
        value
    } else if value == (1 << bits) - 1 {
        0xffff
    } else {
        ((value << 15) + 0x4000) >> (bits - 1)
    }
}

/// Returns the half for an interpolated value.
fn finish(value: i32, signed: bool) -> u32 {
    if signed {
        let half = (value.abs() * 31) >> 5;
        half as u32 | if value < 0 { 0x8000 } else { 0 }
    } else {
        ((value * 31) >> 6) as u32
    }
}

/// Decodes a texel: the bits of three halves. A block of a reserved mode is black.
pub(super) fn texel(block: u128, at: usize, signed: bool) -> [u32; 3] {
    let mut bits = Bits::new(block);
    let number = match bits.take(2) {
        short @ (0 | 1) => short,
        low => low | bits.take(3) << 2,
    };
    let Some(mode) = mode(number) else {
        return [0; 3];
    };
    // Endpoints by number and channel.
    let mut ends = [[0i32; 3]; 4];
    for (channel, end, first, last) in mode.runs.split_ascii_whitespace().filter_map(run) {
        let count = first.abs_diff(last) + 1;
        for i in 0..count {
            let to = if first <= last { first + i } else { first - i };
            ends[end][channel] |= (bits.take(1) as i32) << to;
        }
    }
    let partition = if mode.subsets == 2 { bits.take(5) } else { 0 };
    let size = if mode.subsets == 2 { 3 } else { 4 };
    let (skip, count) = index_place(mode.subsets, partition, at, size);
    let weight = weight(size, bits.at(bits.place() + skip, count));
    let subset = 2 * subset(mode.subsets, partition, at);
    std::array::from_fn(|channel| {
        let base = if signed {
            sign_extend(ends[0][channel], mode.first)
        } else {
            ends[0][channel]
        };
        let [a, b] = [subset, subset + 1].map(|end| {
            let other = mode.others[channel];
            let value = match end {
                0 => base,
                _ if mode.differences => {
                    let sum = base + sign_extend(ends[end][channel], other);
                    let kept = sum & ((1 << mode.first) - 1);
                    if signed { sign_extend(kept, mode.first) } else { kept }
                }
                _ if signed => sign_extend(ends[end][channel], other),
                _ => ends[end][channel],
            };
            widen(value, mode.first, signed)
        });
        finish((a * (64 - weight) + b * weight + 32) >> 6, signed)
    })
}
