//! Access to the texels of textures and surfaces.

use crate::code::machine::Machine;
use crate::fault::FaultKind;
use crate::memory::access;
use crate::texture::{Plane, Storage, TexelArray};
use ptx::ir::Space;

/// Maximum number of results of an instruction: four values and a predicate.
pub(super) const RESULTS: usize = 5;

/// Access to texels by one lane.
pub(super) struct Texels<'a, 'm> {
    m: &'a mut Machine<'m>,
    lane: usize,
    /// True if all texels that were read so far have memory.
    pub(super) all_resident: bool,
}

impl<'a, 'm> Texels<'a, 'm> {
    /// Returns access for one lane.
    pub(super) fn new(m: &'a mut Machine<'m>, lane: usize) -> Self {
        Texels {
            m,
            lane,
            all_resident: true,
        }
    }

    /// Returns the host address of bytes of device memory. Returns `Err` if the access faults; the machine then has the
    /// fault.
    pub(super) fn place(&mut self, address: u64, (bytes, align): (u64, u64), write: bool) -> Result<*mut u8, ()> {
        let placed = self
            .m
            .spaces
            .place_lane(Space::Global, address, self.lane, (bytes, align), write);
        placed
            .map(|(at, _)| at)
            .map_err(|refusal| self.m.refuse(refusal, bytes as u32, write))
    }

    /// Returns the address of a texel in device memory. If the array has tiles, `address` is the texel's offset.
    /// Returns `None` if the texel has no memory and reads as zeros, and `Err` if an access to it faults.
    pub(super) fn behind(&mut self, image: &TexelArray, address: u64, write: bool) -> Result<Option<u64>, ()> {
        let Some(tiles) = &image.tiles else {
            return Ok(Some(address));
        };
        let found = tiles.place(address).address;
        if found.is_none() && tiles.faults() {
            self.fault(FaultKind::NoTexelMemory { offset: address, write });
            return Err(());
        }
        Ok(found)
    }

    /// Records a fault of this lane.
    pub(super) fn fault(&mut self, kind: FaultKind) {
        self.m.fault = Some((kind, self.lane));
    }

    /// Reads the channels of a texel.
    pub(super) fn texel(&mut self, image: &TexelArray, plane: &Plane, [x, y, z]: [u32; 3]) -> Result<[u32; 4], ()> {
        let bytes = u64::from(image.texel_bytes());
        let edge = image.block_edge();
        let (column, row) = (u64::from(x / edge), u64::from(y / edge));
        let address = plane.address + u64::from(z) * plane.slice + row * plane.pitch + column * bytes;
        let Some(address) = self.behind(image, address, false)? else {
            self.all_resident = false;
            return Ok([0; 4]);
        };
        let each = match image.storage {
            Storage::Channels => image.channel.bytes(),
            Storage::Packed => {
                let at = self.place(address, (4, 4), false)?;
                // SAFETY: `place` found 4 bytes valid for reads, and aligned to them.
                return Ok(unpack(unsafe { access::load32(at) }));
            }
            Storage::Blocks(block) => {
                let at = self.place(address, (bytes, 8), false)?;
                let mut copy = [0; 16];
                for (i, byte) in copy.iter_mut().take(bytes as usize).enumerate() {
                    // SAFETY: `place` found the block valid for reads.
                    *byte = unsafe { access::load8(at.wrapping_add(i)) };
                }
                return Ok(block.texel(&copy, (y % edge * edge + x % edge) as usize));
            }
        };
        let at = self.place(address, (bytes, u64::from(each)), false)?;
        let mut texel = [0; 4];
        for (i, channel) in texel.iter_mut().take(image.channels as usize).enumerate() {
            let at = at.wrapping_add(i * each as usize);
            // SAFETY: `place` found the whole texel valid for reads, and aligned to a channel.
            let bits = unsafe {
                match each {
                    1 => u32::from(access::load8(at)),
                    2 => u32::from(access::load16(at)),
                    _ => access::load32(at),
                }
            };
            *channel = image.channel.widen(bits);
        }
        Ok(texel)
    }
}

/// Returns the channels of a texel of three channels of 10 bits and one of 2, widened to 16 bits.
fn unpack(word: u32) -> [u32; 4] {
    let wide = |shift: u32| {
        let channel = word >> shift & 0x3ff;
        channel << 6 | channel >> 4
    };
    [wide(0), wide(10), wide(20), (word >> 30) * 0x5555]
}
