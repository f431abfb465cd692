//! Products of matrices that four warps compute together: `wgmma.mma_async`.
//!
//! Each warp computes its 16 rows of the result immediately when it runs the instruction. That is correct, because no
//! warp needs the registers of another one, and because the program must neither access the accumulator nor change the
//! matrices in shared memory before it has waited.

use super::fragment::{element_bits, gather, scatter};
use super::{product, sparse};
use crate::code::machine::Machine;
use crate::code::matrix::MatrixInst;
use crate::code::registers::RegFile;
use crate::fault::FaultKind;
use crate::lanes::Mask;
use crate::memory::access;
use ptx::ir::{MatrixPart, Mma, Space, Type, Wgmma};

/// Rows of the result that a warp holds.
const ROWS: usize = 16;
/// Bytes that are contiguous in every layout, and that swizzling moves as a whole.
const UNIT: usize = 16;

/// The layout of a matrix in shared memory, as the manual's matrix descriptor gives it.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    /// The address of the first byte.
    start: u64,
    /// The leading dimension byte offset.
    leading: u64,
    /// The stride dimension byte offset.
    stride: u64,
    /// Bytes of a row of the swizzling pattern; 16 without swizzling.
    width: u64,
    /// The row of 128 bytes at which the pattern begins.
    base: u64,
}

impl Descriptor {
    /// Decodes the operand of the instruction.
    fn new(bits: u64) -> Self {
        let field = |shift: u32| (bits >> shift & 0x3fff) << 4;
        Descriptor {
            start: field(0),
            leading: field(16),
            stride: field(32),
            width: match bits >> 62 {
                0 => 16,
                1 => 128,
                2 => 64,
                _ => 32,
            },
            base: bits >> 49 & 7,
        }
    }

    /// Returns the address of unit number `unit` of a line. If `along_k`, the elements of a unit are consecutive along
    /// k, and a line is a row of A or a column of B. Otherwise a unit has elements of several rows of A, or columns of
    /// B, and a line is a position along k.
    fn address(self, along_k: bool, unit: u64, line: u64) -> u64 {
        let units = self.width / 16;
        let in_pattern = unit % units * 16 + line % 8 * self.width;
        let (unit_parts, line_parts) = (unit / units, line / 8);
        let offset = match (along_k, self.width) {
            // There are two units along k, or four in B of a sparse product. Swizzled units are side by side in a row
            // of the pattern, as far as it reaches.
            (true, _) => unit_parts * self.leading + line_parts * self.stride,
            (false, 16) => unit_parts * self.stride + line_parts * self.leading,
            (false, _) => unit_parts * self.leading + line_parts * self.stride,
        };
        let address = self.start + in_pattern + offset;
        // Swizzling permutes units by the number of the row of 128 bytes that they are in.
        let row = (address >> 7).wrapping_sub(self.base);
        address ^ ((row & (units - 1)) << 4)
    }
}

/// Runs an instruction for the lanes of a warp. Returns `Err` if a lane faults; the machine then has the fault.
pub(super) fn run(
    m: &mut Machine<'_>,
    file: &mut RegFile,
    call: &MatrixInst,
    wgmma: &Wgmma,
    mask: Mask,
) -> Result<(), ()> {
    let [_, n, k] = wgmma.mma.shape;
    let mma = Mma {
        shape: [ROWS as u16, n, k],
        ..wgmma.mma
    };
    let count = call.dsts.len().min(call.srcs.len());
    let (accumulator, mut a) = call.srcs.split_at(count);
    let places = match (mma.sparse, a.split_last()) {
        (Some(_), Some((metadata, rest))) => {
            a = rest;
            Some(sparse::places(file, *metadata, &mma))
        }
        _ => None,
    };
    // The descriptors are the same in all lanes.
    let lane = mask.trailing_zeros() as usize % 32;
    let mut more = call.more.iter().map(|(slot, width)| file.get(*slot, *width, lane));
    let mut next = || more.next().unwrap_or(0);
    let a_at = if wgmma.a_in_registers { 0 } else { next() };
    let (b_at, accumulates) = (next(), next() & 1 != 0);
    let mut a = if wgmma.a_in_registers {
        gather(file, a, mma.stored_shape(), MatrixPart::A, mma.a, false)
    } else {
        let first = m.warp as usize % 4 * ROWS;
        let lines = (first, ROWS);
        let [_, _, k] = mma.stored_shape();
        fetch(m, lane, a_at, wgmma.transposed[0], lines, (mma.a, k.into()))?
    };
    let columns = (0, usize::from(n));
    let mut b = fetch(m, lane, b_at, wgmma.transposed[1], columns, (mma.b, k.into()))?;
    for (elements, negated, ty) in [(&mut a, wgmma.negated[0], mma.a), (&mut b, wgmma.negated[1], mma.b)] {
        if negated {
            let sign = 1 << (element_bits(ty) - 1);
            elements.iter_mut().for_each(|element| *element ^= sign);
        }
    }
    let mut c = if accumulates {
        gather(file, accumulator, mma.shape, MatrixPart::C, mma.c, false)
    } else {
        vec![0; ROWS * usize::from(n)]
    };
    product::add(&mma, &a, &b, &mut c, places.as_deref());
    let part = (mma.shape, MatrixPart::C, mma.d, false);
    scatter(file, &call.dsts, part, mask, &c);
    Ok(())
}

/// Reads `count` rows of A, or columns of B, each of `k` elements, from `first` on. Returns `Err` if the lane faults.
fn fetch(
    m: &mut Machine<'_>,
    lane: usize,
    descriptor: u64,
    transposed: bool,
    (first, count): (usize, usize),
    (ty, k): (Type, usize),
) -> Result<Vec<u64>, ()> {
    let descriptor = Descriptor::new(descriptor);
    let bits = element_bits(ty) as usize;
    let per_unit = 8 * UNIT / bits;
    let mut all = vec![0; count * k];
    if transposed {
        // A unit has elements of several rows of A, or columns of B.
        for unit in 0..count / per_unit {
            for x in 0..k {
                let at = (first / per_unit + unit) as u64;
                let elements = unit_at(m, lane, descriptor.address(false, at, x as u64), bits)?;
                for (i, element) in elements.enumerate() {
                    all[(unit * per_unit + i) * k + x] = element;
                }
            }
        }
    } else {
        for line in 0..count {
            for unit in 0..k / per_unit {
                let at = (first + line) as u64;
                let elements = unit_at(m, lane, descriptor.address(true, unit as u64, at), bits)?;
                for (i, element) in elements.enumerate() {
                    all[line * k + unit * per_unit + i] = element;
                }
            }
        }
    }
    Ok(all)
}

/// Reads the elements of one unit of shared memory. Returns `Err` if the lane faults.
fn unit_at(
    m: &mut Machine<'_>,
    lane: usize,
    address: u64,
    bits: usize,
) -> Result<impl Iterator<Item = u64> + use<>, ()> {
    let bytes = (UNIT as u64, UNIT as u64);
    let found = m.spaces.place_lane(Space::Shared, address, lane, bytes, false);
    let (at, _) = found.map_err(|_| {
        // An H200 reports an illegal address here, unlike for a load from shared memory.
        let kind = FaultKind::IllegalAddress {
            address,
            size: UNIT as u32,
            write: false,
            space: Space::Shared,
        };
        m.fault = Some((kind, lane));
    })?;
    // SAFETY: `place_lane` found the address valid for reads of 16 bytes, and aligned to them.
    let words = unsafe { [access::load64(at), access::load64(at.wrapping_add(8))] };
    let ones = u64::MAX >> (64 - bits);
    Ok(words
        .into_iter()
        .flat_map(move |word| (0..64).step_by(bits).map(move |shift| word >> shift & ones)))
}

#[cfg(test)]
mod tests {
    use super::Descriptor;

    /// Makes a descriptor from start, leading and stride in bytes, and the swizzling mode.
    fn descriptor(start: u64, leading: u64, stride: u64, mode: u64) -> Descriptor {
        Descriptor::new(start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | mode << 62)
    }

    #[test]
    fn rows_along_k() {
        let plain = descriptor(64, 2048, 256, 0);
        assert_eq!(plain.address(true, 0, 0), 64);
        assert_eq!(plain.address(true, 0, 7), 64 + 7 * 16);
        assert_eq!(plain.address(true, 1, 9), 64 + 2048 + 256 + 16);
        // In row 3 of a pattern, unit n is at the place of unit n ^ 3.
        let wide = descriptor(4096, 0, 1024, 1);
        assert_eq!(wide.address(true, 0, 3), 4096 + 3 * 128 + 3 * 16);
        assert_eq!(wide.address(true, 1, 3), 4096 + 3 * 128 + 2 * 16);
        assert_eq!(wide.address(true, 1, 11), 4096 + 1024 + 3 * 128 + 2 * 16);
        // A start inside a row moves the unit, not the pattern.
        let inside = descriptor(4096 + 32, 0, 1024, 1);
        assert_eq!(inside.address(true, 0, 3), 4096 + 3 * 128 + 16);
        // The pattern may begin at another row, here at the second one.
        let moved = Descriptor::new(4224 >> 4 | 64 << 32 | 1 << 49 | 1 << 62);
        assert_eq!(moved.address(true, 0, 0), 4224);
        assert_eq!(moved.address(true, 0, 3), 4224 + 3 * 128 + 3 * 16);
        // Two rows of 64 bytes, or four rows of 32 bytes, are one row of 128 bytes.
        let narrow = descriptor(0, 0, 512, 2);
        assert_eq!(narrow.address(true, 1, 5), 5 * 64 + ((1 ^ 2) << 4));
        let least = descriptor(0, 0, 256, 3);
        assert_eq!(least.address(true, 0, 6), 6 * 32 + 16);
    }

    #[test]
    fn lines_across_k() {
        let plain = descriptor(0, 1024, 256, 0);
        assert_eq!(plain.address(false, 3, 10), 3 * 256 + 1024 + 2 * 16);
        let wide = descriptor(0, 4096, 1024, 1);
        assert_eq!(wide.address(false, 9, 10), 4096 + 1024 + 2 * 128 + ((1 ^ 2) << 4));
    }
}
