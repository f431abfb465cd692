//! Access to the texels of textures and surfaces.

use crate::code::machine::Machine;
use crate::fault::FaultKind;
use crate::memory::access;
use crate::texture::{Plane, TexelArray};
use ptx::ir::Space;

/// Maximum number of results of an instruction: four values and a predicate.
pub(super) const RESULTS: usize = 5;

/// Access to texels by one lane.
pub(super) struct Texels<'a, 'm> {
    m: &'a mut Machine<'m>,
    lane: usize,
}

impl<'a, 'm> Texels<'a, 'm> {
    /// Returns the texels of one lane.
    pub(super) fn new(m: &'a mut Machine<'m>, lane: usize) -> Self {
        Texels { m, lane }
    }

    /// Returns the host address of bytes of device memory.
    pub(super) fn place(&mut self, address: u64, (bytes, align): (u64, u64), write: bool) -> Result<*mut u8, ()> {
        let placed = self
            .m
            .spaces
            .place_lane(Space::Global, address, self.lane, (bytes, align), write);
        placed
            .map(|(at, _)| at)
            .map_err(|refusal| self.m.refuse(refusal, bytes as u32, write))
    }

    /// Records a fault of this lane.
    pub(super) fn fault(&mut self, kind: FaultKind) {
        self.m.fault = Some((kind, self.lane));
    }

    /// Reads the channels of a texel.
    pub(super) fn texel(&mut self, image: &TexelArray, plane: &Plane, [x, y, z]: [u32; 3]) -> Result<[u32; 4], ()> {
        let each = image.channel.bytes();
        let bytes = u64::from(image.texel_bytes());
        let address = plane.address + u64::from(z) * plane.slice + u64::from(y) * plane.pitch + u64::from(x) * bytes;
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
