//! Instructions on surfaces: `suld`, `sust`, `sured`.

use super::texels::{RESULTS, Texels};
use crate::fault::FaultKind;
use crate::memory::access;
use crate::semantics::texture::texel;
use crate::texture::{Storage, TexelArray, TextureShape};
use ptx::ir::{AtomOp, Bounds, Geometry, Space, Surface, SurfaceOp, Type};

/// Returns true if images of this shape fit the geometry of the instruction. The faces of cubes are layers.
fn fits(shape: TextureShape, geometry: Geometry) -> bool {
    match geometry {
        Geometry::D1 => shape == TextureShape::D1,
        Geometry::D2 => shape == TextureShape::D2,
        Geometry::D3 => shape == TextureShape::D3,
        Geometry::A1 => shape == TextureShape::A1,
        Geometry::A2 => matches!(shape, TextureShape::A2 | TextureShape::Cube | TextureShape::ACube),
        Geometry::Cube | Geometry::ACube => false,
    }
}

/// Runs an instruction for one lane and returns the values that it loads. Returns `Err` if the lane faults; the machine
/// then has the fault.
pub(super) fn access(
    view: &mut Texels<'_, '_>,
    surface: &Surface,
    image: &TexelArray,
    sources: &[u64],
) -> Result<[u64; RESULTS], ()> {
    let nothing = Ok([0; RESULTS]);
    if !fits(image.shape, surface.geometry) {
        return nothing;
    }
    let plane = image.levels[0];
    let layered = surface.geometry.is_layered();
    let axes = surface.geometry.axes();
    let texel_bytes = u64::from(image.texel_bytes());
    // `each` is the size of an element, `bytes` the size of the access.
    let each = u64::from(surface.ty.size());
    let bytes = if surface.formatted && surface.op == SurfaceOp::Store {
        texel_bytes
    } else {
        each * u64::from(surface.vec)
    };
    let coordinate = |axis: usize| i64::from(sources[usize::from(layered) + axis] as u32 as i32);
    // The x coordinate counts texels in formatted accesses and bytes in others.
    let unit = if surface.formatted { texel_bytes } else { 1 };
    let row = u64::from(plane.size[0]) * texel_bytes;
    let mut at = [0u64; 3];
    for (axis, at) in at.iter_mut().enumerate().take(axes) {
        let (index, most) = if axis == 0 {
            (coordinate(0), (row.saturating_sub(bytes) / unit) as i64)
        } else {
            (coordinate(axis), i64::from(plane.size[axis]) - 1)
        };
        // An access that begins inside is in bounds, even if it ends outside.
        let end = if axis == 0 { (row / unit) as i64 } else { most + 1 };
        *at = match surface.bounds {
            _ if (0..end).contains(&index) => index as u64,
            Bounds::Clamp => index.clamp(0, most.max(0)) as u64,
            Bounds::Zero => return nothing,
            Bounds::Trap => {
                view.fault(outside(surface, &plane.address));
                return Err(());
            }
        };
    }
    if layered {
        let layer = u64::from(sources[0] as u32);
        let layers = u64::from(plane.size[2]);
        at[2] = match surface.bounds {
            _ if layer < layers => layer,
            Bounds::Clamp => layers - 1,
            Bounds::Zero => return nothing,
            Bounds::Trap => {
                view.fault(outside(surface, &plane.address));
                return Err(());
            }
        };
    }
    let x = at[0] * unit;
    if x + bytes > row {
        // On an H200 an access that ends outside reads zeros and writes nothing.
        return nothing;
    }
    let address = plane.address + at[2] * plane.slice + at[1] * plane.pitch + x;
    let write = surface.op != SurfaceOp::Load;
    let Some(address) = view.behind(image, address, write)? else {
        return nothing;
    };
    let values = &sources[usize::from(surface.geometry.written())..];
    match surface.op {
        SurfaceOp::Load => {
            let place = view.place(address, (bytes, bytes), false)?;
            let mut loaded = [0; RESULTS];
            for (i, value) in loaded.iter_mut().take(surface.vec.into()).enumerate() {
                // SAFETY: `place` found all elements valid for reads, and aligned.
                *value = unsafe { load(place.wrapping_add(i * each as usize), each) };
            }
            Ok(loaded)
        }
        // A formatted store does not change packed channels or compressed blocks; only an unformatted one does.
        SurfaceOp::Store if surface.formatted && image.storage != Storage::Channels => nothing,
        SurfaceOp::Store if surface.formatted => {
            let each = image.channel.bytes();
            let place = view.place(address, (bytes, u64::from(each)), write)?;
            for i in 0..image.channels as usize {
                // If there are fewer values than channels, the other channels get the last value.
                let given = i.min(usize::from(surface.vec) - 1);
                let value = texel::store(image.channel, values[given] as u32);
                let at = place.wrapping_add(i * each as usize);
                // SAFETY: `place` found the texel valid for writes, and aligned to a channel.
                unsafe { store(at, each.into(), value.into()) };
            }
            nothing
        }
        SurfaceOp::Store => {
            let place = view.place(address, (bytes, bytes), write)?;
            for (i, value) in values.iter().take(surface.vec.into()).enumerate() {
                // SAFETY: `place` found all elements valid for writes, and aligned.
                unsafe { store(place.wrapping_add(i * each as usize), each, *value) };
            }
            nothing
        }
        SurfaceOp::Reduce(op) => {
            let place = view.place(address, (each, each), write)?;
            let ty = match (surface.formatted, image.channel) {
                (true, _) if each == 8 => Type::U64,
                (true, texel::Channel::S32) => Type::S32,
                (true, _) => Type::U32,
                _ => surface.ty,
            };
            let value = values[0];
            // SAFETY: `place` found the element valid for writes, and so for reads, and aligned.
            unsafe { access::update(place, each as u32, |old| reduce(op, ty, old, value)) };
            nothing
        }
    }
}

/// Returns the fault of an access outside of the surface at this address.
fn outside(surface: &Surface, address: &u64) -> FaultKind {
    FaultKind::IllegalAddress {
        address: *address,
        size: surface.ty.size(),
        write: surface.op != SurfaceOp::Load,
        space: Space::Global,
    }
}

/// Loads a value of 1, 2, 4 or 8 bytes.
///
/// # Safety
/// `at` must be valid for reads of `bytes` bytes, and aligned to them.
unsafe fn load(at: *const u8, bytes: u64) -> u64 {
    // SAFETY: as promised by the caller.
    unsafe {
        match bytes {
            1 => access::load8(at).into(),
            2 => access::load16(at).into(),
            4 => access::load32(at).into(),
            _ => access::load64(at),
        }
    }
}

/// Stores a value of 1, 2, 4 or 8 bytes.
///
/// # Safety
/// `at` must be valid for writes of `bytes` bytes, and aligned to them.
unsafe fn store(at: *mut u8, bytes: u64, value: u64) {
    // SAFETY: as promised by the caller.
    unsafe {
        match bytes {
            1 => access::store8(at, value as u8),
            2 => access::store16(at, value as u16),
            4 => access::store32(at, value as u32),
            _ => access::store64(at, value),
        }
    }
}

/// Returns the value that an atomic operation writes.
fn reduce(op: AtomOp, ty: Type, old: u64, value: u64) -> u64 {
    let signed = |x: u64| {
        if ty.size() == 4 {
            i64::from(x as u32 as i32)
        } else {
            x.cast_signed()
        }
    };
    let unsigned = |x: u64| if ty.size() == 4 { x & 0xffff_ffff } else { x };
    let pick_value = match op {
        AtomOp::Add => return old.wrapping_add(value),
        AtomOp::And => return old & value,
        AtomOp::Or => return old | value,
        AtomOp::Min if ty.is_signed() => signed(value) < signed(old),
        AtomOp::Max if ty.is_signed() => signed(value) > signed(old),
        AtomOp::Min => unsigned(value) < unsigned(old),
        _ => unsigned(value) > unsigned(old),
    };
    if pick_value { value } else { old }
}
