//! BC7: blocks of colors whose channels have 8 bits, in eight modes.

use super::partitions::{Bits, index_place, subset, weight};

/// The layout of a block in a mode. All numbers but `subsets` are sizes in bits.
struct Mode {
    subsets: usize,
    partition: u32,
    rotation: u32,
    selection: u32,
    color: u32,
    alpha: u32,
    /// True if each endpoint has a low bit of its own.
    own_low_bit: bool,
    /// True if both endpoints of a subset have a low bit in common.
    shared_low_bit: bool,
    index: u32,
    second_index: u32,
}

impl Mode {
    const fn new(sizes: [u32; 10]) -> Self {
        let [
            subsets,
            partition,
            rotation,
            selection,
            color,
            alpha,
            own,
            shared,
            index,
            second_index,
        ] = sizes;
        Mode {
            subsets: subsets as usize,
            partition,
            rotation,
            selection,
            color,
            alpha,
            own_low_bit: own != 0,
            shared_low_bit: shared != 0,
            index,
            second_index,
        }
    }
}

/// The modes by number. The numbers of each are in the order of the fields of [`Mode`].
const MODES: [Mode; 8] = [
    Mode::new([3, 4, 0, 0, 4, 0, 1, 0, 3, 0]),
    Mode::new([2, 6, 0, 0, 6, 0, 0, 1, 3, 0]),
    Mode::new([3, 6, 0, 0, 5, 0, 0, 0, 2, 0]),
    Mode::new([2, 6, 0, 0, 7, 0, 1, 0, 2, 0]),
    Mode::new([1, 0, 2, 1, 5, 6, 0, 0, 2, 3]),
    Mode::new([1, 0, 2, 0, 7, 8, 0, 0, 2, 2]),
    Mode::new([1, 0, 0, 0, 7, 7, 1, 0, 4, 0]),
    Mode::new([2, 6, 0, 0, 5, 5, 1, 0, 2, 0]),
];

/// Widens a field to 8 bits by repetition of its upper bits.
fn widen(field: usize, bits: u32) -> i32 {
    let high = field << (8 - bits);
    (high | high >> bits) as i32
}

/// Decodes a texel.
pub(super) fn texel(block: u128, at: usize) -> [u32; 4] {
    // A block without a mode is black and transparent.
    let Some(mode) = MODES.get(block.trailing_zeros() as usize) else {
        return [0; 4];
    };
    let mut bits = Bits::new(block);
    bits.take(block.trailing_zeros() + 1);
    let partition = bits.take(mode.partition);
    let rotation = bits.take(mode.rotation);
    let selection = bits.take(mode.selection);
    let ends = 2 * mode.subsets;
    let mut fields = [[0usize; 4]; 6];
    for channel in 0..4 {
        let size = if channel < 3 { mode.color } else { mode.alpha };
        for end in &mut fields[..ends] {
            end[channel] = bits.take(size);
        }
    }
    let low = u32::from(mode.own_low_bit || mode.shared_low_bit);
    let mut low_bit = 0;
    for (i, end) in fields[..ends].iter_mut().enumerate() {
        if mode.own_low_bit || mode.shared_low_bit && i % 2 == 0 {
            low_bit = bits.take(1);
        }
        if low != 0 {
            *end = end.map(|field| field << 1 | low_bit);
        }
    }
    let first = bits.place();
    let (skip, size) = index_place(mode.subsets, partition, at, mode.index);
    let index = bits.at(first + skip, size);
    let mut weights = [weight(mode.index, index); 2];
    if mode.second_index != 0 {
        // The second indices follow the 16 first ones, of which one has one bit less.
        let second = first + 16 * mode.index - 1;
        let (skip, size) = index_place(1, 0, at, mode.second_index);
        weights[1] = weight(mode.second_index, bits.at(second + skip, size));
        if selection != 0 {
            weights.swap(0, 1);
        }
    }
    let subset = 2 * subset(mode.subsets, partition, at);
    let mut texel: [u32; 4] = std::array::from_fn(|channel| {
        let size = if channel < 3 { mode.color } else { mode.alpha };
        if size == 0 {
            return 255;
        }
        let [a, b] = [subset, subset + 1].map(|end| widen(fields[end][channel], size + low));
        let weight = weights[channel / 3];
        ((a * (64 - weight) + b * weight + 32) >> 6) as u32
    });
    if rotation != 0 {
        texel.swap(rotation - 1, 3);
    }
    texel
}
