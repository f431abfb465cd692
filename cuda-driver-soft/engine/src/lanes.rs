//! The lanes of a warp: rows of 32 values, and masks.

/// Number of lanes in a warp.
pub(crate) const LANES: usize = 32;

/// One value per lane.
pub(crate) type Lanes<T> = [T; LANES];

/// A set of lanes: bit `i` is lane `i`.
pub(crate) type Mask = u32;

/// All lanes.
pub(crate) const FULL: Mask = !0;

/// Returns the coordinates of a thread in its block.
pub(crate) fn thread_of(block: [u32; 3], number: u32) -> [u32; 3] {
    let [x, y, _] = block.map(|n| n.max(1));
    [number % x, number / x % y, number / x / y]
}

/// Returns the number of a thread in its block from its coordinates.
pub(crate) fn number_of(block: [u32; 3], [x, y, z]: [u32; 3]) -> u32 {
    (z * block[1] + y) * block[0] + x
}

/// For each byte of a mask: all ones in the lanes that are set, zero in the others.
static EXPANDED: [[u32; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut lane = 0;
        while lane < 8 {
            if byte >> lane & 1 == 1 {
                table[byte][lane] = !0;
            }
            lane += 1;
        }
        byte += 1;
    }
    table
};

/// Returns all ones in the lanes that are set, and zero in the others. The compiler turns the table lookup into four
/// loads.
#[inline(always)]
pub(crate) fn expand(mask: Mask) -> Lanes<u32> {
    let mut lanes = [0; LANES];
    for (i, byte) in mask.to_le_bytes().into_iter().enumerate() {
        lanes[8 * i..8 * i + 8].copy_from_slice(&EXPANDED[usize::from(byte)]);
    }
    lanes
}

/// Returns the mask of the lanes that are true.
#[inline(always)]
pub(crate) fn pack(values: Lanes<bool>) -> Mask {
    let mut bytes = [0u8; LANES];
    for i in 0..LANES {
        bytes[i] = if values[i] { 0xff } else { 0 };
    }
    pack_bytes(bytes)
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn pack_bytes(bytes: [u8; LANES]) -> Mask {
    use std::arch::x86_64::{__m128i, _mm_movemask_epi8};
    // SAFETY: 32 bytes are two vectors of 16 bytes; any bytes are a value of either.
    let halves: [__m128i; 2] = unsafe { std::mem::transmute(bytes) };
    // SAFETY: the intrinsic needs SSE2, which every x86-64 CPU has.
    let [low, high] = halves.map(|half| unsafe { _mm_movemask_epi8(half) } as u32);
    low | high << 16
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn pack_bytes(bytes: [u8; LANES]) -> Mask {
    let mut mask = 0;
    for (i, eight) in bytes.chunks_exact(8).enumerate() {
        let mut word = [0; 8];
        word.copy_from_slice(eight);
        // The multiplication moves the lowest bit of each byte into the top byte.
        let ones = u64::from_le_bytes(word) & 0x0101_0101_0101_0101;
        mask |= ((ones.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32) << (8 * i);
    }
    mask
}

/// Returns the lanes of a mask, in ascending order.
pub(crate) fn iter(mask: Mask) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        (lane < 32).then_some(lane as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::{FULL, expand, iter, pack};

    #[test]
    fn masks_convert_to_lanes_and_back() {
        for mask in [0, 1, 0x8000_0000, 0xdead_beef, FULL] {
            let lanes = expand(mask);
            assert!((0..32).all(|i| lanes[i] == if mask >> i & 1 == 1 { !0 } else { 0 }));
            assert_eq!(pack(lanes.map(|m| m != 0)), mask);
            assert_eq!(iter(mask).fold(0, |m, i| m | 1 << i), mask);
        }
    }
}
