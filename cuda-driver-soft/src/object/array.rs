//! Arrays and mipmapped arrays: texels that programs access only through handles.
//!
//! An array is one allocation that the host cannot reach by address, lies in imported memory
//! ([`external`](crate::object::external)), or has memory that is mapped later ([`sparse`](crate::object::sparse)).
//! Texels are stored row by row and slice by slice without gaps, and each level begins at a multiple of 16 bytes; the
//! layout of a GPU, which keeps neighbours close together, is not modelled.

use std::sync::{Arc, Mutex, PoisonError};

use cuda_driver_sys::{
    CUDA_ARRAY3D_CUBEMAP, CUDA_ARRAY3D_DEFERRED_MAPPING, CUDA_ARRAY3D_LAYERED, CUDA_ARRAY3D_SPARSE,
    CUDA_ARRAY3D_SURFACE_LDST, CUDA_ARRAY3D_TEXTURE_GATHER, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE,
    CUdevice_attribute as Attribute,
};

use crate::object::array_format::{TexelFormat, texel_format};
use crate::object::context::{self, Context};
use crate::object::device::Device;
use crate::object::sparse::Unbacked;
use crate::object::{freed, memory};
use crate::queue::scheduler::observe_fault;
use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, Missing, Table};
use engine::memory::{Allocation, AllocationKind, address_space};
use engine::texture::{Plane, Storage, TexelArray as Image, TextureShape as Shape};

pub(crate) const LAYERED: u32 = CUDA_ARRAY3D_LAYERED;
pub(crate) const SURFACE: u32 = CUDA_ARRAY3D_SURFACE_LDST;
pub(crate) const CUBEMAP: u32 = CUDA_ARRAY3D_CUBEMAP;
pub(crate) const GATHER: u32 = CUDA_ARRAY3D_TEXTURE_GATHER;
const SPARSE: u32 = CUDA_ARRAY3D_SPARSE;
const DEFERRED: u32 = CUDA_ARRAY3D_DEFERRED_MAPPING;
/// Has no effect in this driver.
const VIDEO: u32 = CUDA_ARRAY3D_VIDEO_ENCODE_DECODE;

/// The properties of an array, as in `CUDA_ARRAY3D_DESCRIPTOR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArrayDescriptor {
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) depth: u64,
    pub(crate) format: u32,
    pub(crate) channels: u32,
    pub(crate) flags: u32,
}

static ARRAYS: Table<Array> = Table::new(HandleKind::Array);
static MIPMAPS: Table<Mipmap> = Table::new(HandleKind::Mipmap);

/// An array, or one level of a mipmapped array.
#[derive(Debug)]
pub(crate) struct Array {
    pub(crate) handle: usize,
    /// ID of the context that owns the array.
    context: u64,
    pub(crate) descriptor: ArrayDescriptor,
    pub(crate) image: Image,
    pub(crate) memory: Texels,
    /// The mipmapped array that this is a level of.
    mipmap: Option<usize>,
}

/// The memory of an array.
#[derive(Clone, Debug)]
pub(crate) enum Texels {
    /// One allocation, or a mapping of imported memory.
    Own(Allocation),
    /// Memory that may be absent.
    Unbacked(Arc<Unbacked>),
}

impl Texels {
    fn unbacked(&self) -> Result<Arc<Unbacked>> {
        match self {
            Texels::Own(_) => Err(Error::CUDA_ERROR_INVALID_VALUE),
            Texels::Unbacked(array) => Ok(Arc::clone(array)),
        }
    }
}

impl Array {
    /// Returns the memory of an array that was created without memory. Returns `CUDA_ERROR_INVALID_VALUE` for all other
    /// arrays and, as on driver 580, for a level of a mipmapped array.
    pub(crate) fn unbacked(&self) -> Result<Arc<Unbacked>> {
        match self.mipmap {
            None => self.memory.unbacked(),
            Some(_) => Err(Error::CUDA_ERROR_INVALID_VALUE),
        }
    }
}

impl Mipmap {
    /// Returns the memory of a mipmapped array that was created without memory, and `CUDA_ERROR_INVALID_VALUE` for all
    /// other mipmapped arrays.
    pub(crate) fn unbacked(&self) -> Result<Arc<Unbacked>> {
        self.memory.unbacked()
    }
}

/// A mipmapped array.
#[derive(Debug)]
pub(crate) struct Mipmap {
    handle: usize,
    /// ID of the context that owns the mipmapped array.
    context: u64,
    pub(crate) descriptor: ArrayDescriptor,
    pub(crate) image: Image,
    memory: Texels,
    /// Handles of the levels, created when they are first requested.
    levels: Mutex<Vec<Option<usize>>>,
}

impl ArrayDescriptor {
    fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Returns the arrangement of the texels, or an error if the sizes and flags contradict each other.
    fn shape(&self) -> Result<Shape> {
        let shape = match (self.has(CUBEMAP), self.has(LAYERED)) {
            (true, layered) => {
                let whole = if layered {
                    self.depth != 0 && self.depth.is_multiple_of(6)
                } else {
                    self.depth == 6
                };
                if self.width != self.height || !whole {
                    return Err(Error::CUDA_ERROR_INVALID_VALUE);
                }
                if layered { Shape::ACube } else { Shape::Cube }
            }
            (_, true) if self.depth == 0 => return Err(Error::CUDA_ERROR_INVALID_VALUE),
            (_, true) if self.height == 0 => Shape::A1,
            (_, true) => Shape::A2,
            _ if self.depth != 0 && self.height == 0 => {
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
            _ if self.depth != 0 => Shape::D3,
            _ if self.height != 0 => Shape::D2,
            _ => Shape::D1,
        };
        if self.has(GATHER) && shape != Shape::D2 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(shape)
    }

    /// Checks the flags and the format of the descriptor, and its size against a device's limits, which differ for
    /// mipmapped arrays. Returns the arrangement and the format of the texels.
    fn check(&self, device: &Device, mipmapped: bool) -> Result<(Shape, TexelFormat)> {
        let known = LAYERED | SURFACE | CUBEMAP | GATHER | VIDEO | SPARSE | DEFERRED;
        if self.flags & !known != 0 || self.width == 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let Some(format) = texel_format(self.format, self.channels) else {
            host::log!(
                "array format {:#x} of {} channels is not supported",
                self.format,
                self.channels
            );
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        };
        if matches!(format.storage, Storage::Blocks(_)) {
            if self.height == 0 {
                host::log!("an array of a block-compressed format needs a height above 0");
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
            if self.has(SURFACE) {
                host::log!("arrays of block-compressed formats cannot be surfaces");
                return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
            }
        }
        let shape = self.shape()?;
        self.check_sparse(shape)?;
        let limits = limits(shape, self.flags, mipmapped);
        let size = [self.width, self.height, self.depth];
        let within =
            |(size, limit): (u64, Option<Attribute>)| limit.is_none_or(|limit| size <= u64::from(device.limit(limit)));
        let fits = |limits: [Option<Attribute>; 3]| size.into_iter().zip(limits).all(within);
        // A 3D array may exceed a limit if it fits into the alternate limits.
        let alternate = [
            Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE,
            Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE,
            Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE,
        ];
        if fits(limits) || (shape == Shape::D3 && fits(alternate.map(Some))) {
            Ok((shape, format))
        } else {
            host::log!("array size {size:?} exceeds the device's limits");
            Err(Error::CUDA_ERROR_INVALID_VALUE)
        }
    }

    /// Returns true if the program maps the memory of the array after its creation.
    pub(crate) fn is_mapped_later(&self) -> bool {
        self.has(SPARSE | DEFERRED)
    }

    /// Returns an error for a sparse array that driver 580 refuses: only 2D, layered 2D and 3D arrays can be sparse,
    /// and they can neither be surfaces nor have deferred mapping.
    fn check_sparse(&self, shape: Shape) -> Result<()> {
        let has_tiles = matches!(shape, Shape::D2 | Shape::D3 | Shape::A2);
        if self.has(SPARSE) && (self.has(SURFACE | DEFERRED) || !has_tiles) {
            host::log!("a sparse array must be 2D, layered 2D or 3D, and have neither surfaces nor deferred mapping");
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(())
    }

    /// Returns the image with this number of levels at an address, and its size in bytes.
    fn image(&self, shape: Shape, format: TexelFormat, levels: u32, address: u64) -> Result<(Image, u64)> {
        let mut image = Image {
            shape,
            channel: format.channel,
            channels: format.channels,
            storage: format.storage,
            normalized: format.normalized,
            levels: Vec::new(),
            tiles: None,
        };
        let (texel, edge) = (u64::from(image.texel_bytes()), image.block_edge());
        let mut bytes = 0u64;
        for level in 0..levels {
            let [width, height, depth] = self.size(shape, level);
            let overflow = Error::CUDA_ERROR_OUT_OF_MEMORY;
            let [columns, rows] = [width, height].map(|size| u64::from(size.div_ceil(edge)));
            let pitch = columns.checked_mul(texel).ok_or(overflow)?;
            let slice = pitch.checked_mul(rows).ok_or(overflow)?;
            image.levels.push(Plane {
                address: address.wrapping_add(bytes),
                size: [width, height, depth],
                pitch,
                slice,
            });
            let all = slice.checked_mul(depth.into()).ok_or(overflow)?;
            // Align each level for the widest access.
            bytes = bytes
                .checked_add(all)
                .and_then(|end| end.checked_next_multiple_of(16))
                .ok_or(overflow)?;
        }
        Ok((image, bytes))
    }

    /// Returns the size of a level in texels. The number of layers and faces is the same in all levels.
    fn size(&self, shape: Shape, level: u32) -> [u32; 3] {
        let shrunk = |n: u64| (n >> level.min(63)).max(1) as u32;
        let depth = if shape == Shape::D3 {
            shrunk(self.depth)
        } else {
            self.depth.max(1) as u32
        };
        [shrunk(self.width), shrunk(self.height), depth]
    }

    /// Returns the largest possible number of levels.
    fn most_levels(&self, shape: Shape) -> u32 {
        let [width, height, depth] = self.size(shape, 0);
        let longest = match shape {
            Shape::D3 => width.max(height).max(depth),
            _ => width.max(height),
        };
        32 - longest.leading_zeros()
    }

    /// Returns the descriptor of a level.
    fn of_level(&self, shape: Shape, level: u32) -> ArrayDescriptor {
        let [width, height, depth] = self.size(shape, level).map(u64::from);
        let or_none = |n: u64, given: u64| if given == 0 { 0 } else { n };
        ArrayDescriptor {
            width,
            height: or_none(height, self.height),
            depth: or_none(depth, self.depth),
            ..*self
        }
    }
}

/// Returns the device attributes that limit the width, height and depth of an array; `None` for no limit.
fn limits(shape: Shape, flags: u32, mipmapped: bool) -> [Option<Attribute>; 3] {
    let [width, height, depth] = match shape {
        Shape::D1 if mipmapped => [
            Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH),
            None,
            None,
        ],
        Shape::D1 => [Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH), None, None],
        Shape::D2 | Shape::Linear if flags & GATHER != 0 => [
            Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH),
            Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT),
            None,
        ],
        Shape::D2 | Shape::Linear if mipmapped => [
            Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH),
            Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT),
            None,
        ],
        Shape::D2 | Shape::Linear => [
            Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH),
            Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT),
            None,
        ],
        Shape::D3 => [
            Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH),
            Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT),
            Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH),
        ],
        Shape::A1 => [
            Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH),
            None,
            Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS),
        ],
        Shape::A2 => [
            Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH),
            Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT),
            Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS),
        ],
        Shape::Cube => [
            Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH),
            Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH),
            None,
        ],
        Shape::ACube => [
            Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH),
            Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH),
            Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS),
        ],
    };
    // One-dimensional surfaces have a limit of their own.
    let width = match shape {
        Shape::D1 if flags & SURFACE != 0 => Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH),
        _ => width,
    };
    [width, height, depth]
}

/// Logs why the handle of an array, or of a texture or surface reference, is invalid, and returns the error. Driver 580
/// returns `CUDA_ERROR_CONTEXT_IS_DESTROYED` for a destroyed object.
pub(crate) fn missing_error(object: &str, handle: usize, missing: Missing) -> Error {
    host::log!("{object} {handle:#x} {missing}");
    match missing {
        Missing::Destroyed => Error::CUDA_ERROR_CONTEXT_IS_DESTROYED,
        Missing::Unknown => Error::CUDA_ERROR_INVALID_HANDLE,
    }
}

/// Returns the array with this handle.
pub(crate) fn get(handle: usize) -> Result<Arc<Array>> {
    ARRAYS
        .get(handle)
        .map_err(|missing| missing_error("array", handle, missing))
}

/// Returns the mipmapped array with this handle.
pub(crate) fn mipmap(handle: usize) -> Result<Arc<Mipmap>> {
    MIPMAPS
        .get(handle)
        .map_err(|missing| missing_error("mipmapped array", handle, missing))
}

fn allocate(context: &Context, bytes: u64) -> Result<Allocation> {
    let address = memory::allocate(context, AllocationKind::Array, bytes)?;
    address_space().find(address).ok_or(Error::CUDA_ERROR_UNKNOWN)
}

impl ArrayDescriptor {
    /// Returns the image of an array with this number of levels, and its memory. `place` returns memory for a size in
    /// bytes.
    fn with_memory(
        &self,
        (shape, format): (Shape, TexelFormat),
        levels: Option<u32>,
        place: impl FnOnce(u64) -> Result<Allocation>,
    ) -> Result<(Image, Texels)> {
        let count = levels.unwrap_or(1);
        let (mut image, bytes) = self.image(shape, format, count, 0)?;
        if !self.is_mapped_later() {
            let memory = place(bytes)?;
            let (image, _) = self.image(shape, format, count, memory.base)?;
            return Ok((image, Texels::Own(memory)));
        }
        let unbacked = if self.has(SPARSE) {
            Unbacked::sparse(&image, levels.is_some())
        } else {
            Unbacked::deferred(&image, bytes)
        };
        image.tiles = Some(unbacked.tiles());
        Ok((image, Texels::Unbacked(unbacked)))
    }
}

/// `cuArrayCreate`, `cuArray3DCreate`
pub(crate) fn create(context: &Context, descriptor: ArrayDescriptor) -> Result<usize> {
    let checked = descriptor.check(context.device, false)?;
    let (image, memory) = descriptor.with_memory(checked, None, |bytes| allocate(context, bytes))?;
    let array = ARRAYS.insert_with(|handle| Array {
        handle,
        context: context.id(),
        descriptor,
        image,
        memory,
        mipmap: None,
    });
    // Checked after the insertion: the end of a context first marks it, and then removes its arrays.
    context.check_alive().inspect_err(|_| _ = ARRAYS.remove(array.handle))?;
    Ok(array.handle)
}

/// `cuMipmappedArrayCreate`: clamps the number of levels to the range from 1 to the largest possible number.
pub(crate) fn create_mipmap(context: &Context, descriptor: ArrayDescriptor, levels: u32) -> Result<usize> {
    create_mipmap_in(context, descriptor, levels, |bytes| allocate(context, bytes))
}

/// Returns the largest possible number of levels of a mipmapped array.
pub(crate) fn most_levels(descriptor: &ArrayDescriptor) -> Result<u32> {
    Ok(descriptor.most_levels(descriptor.shape()?))
}

/// Creates a mipmapped array in memory that `place` returns for its size in bytes.
pub(crate) fn create_mipmap_in(
    context: &Context,
    descriptor: ArrayDescriptor,
    levels: u32,
    place: impl FnOnce(u64) -> Result<Allocation>,
) -> Result<usize> {
    let checked = descriptor.check(context.device, true)?;
    let levels = levels.clamp(1, descriptor.most_levels(checked.0));
    let (image, memory) = descriptor.with_memory(checked, Some(levels), place)?;
    let mipmap = MIPMAPS.insert_with(|handle| Mipmap {
        handle,
        context: context.id(),
        descriptor,
        image,
        memory,
        levels: Mutex::new(vec![None; levels as usize]),
    });
    context.check_alive().inspect_err(|_| _ = remove_mipmap(&mipmap))?;
    Ok(mipmap.handle)
}

/// Waits for all work of an array's context, and for copies of other contexts that use the memory of the array, before
/// the memory is freed. Returns the error of failed work.
fn drain(context: u64, texels: &Texels) -> Result<()> {
    match texels {
        Texels::Own(memory) => memory::drain_users(memory),
        Texels::Unbacked(_) => {
            if let Ok(context) = context::table().get(context as usize) {
                context.drain();
            }
        }
    }
    observe_fault()
}

fn free(memory: &Texels) {
    let Texels::Own(memory) = memory else {
        return;
    };
    // The memory is already free if another thread has destroyed the context in the meantime.
    if let Ok(freed) = address_space().free_if(memory.base, |a| a.id == memory.id) {
        freed::forget(&freed);
    }
}

/// `cuArrayDestroy`: refuses a level, which is destroyed with its mipmapped array.
pub(crate) fn destroy(handle: usize) -> Result<()> {
    let array = get(handle)?;
    if array.mipmap.is_some() {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    drain(array.context, &array.memory)?;
    ARRAYS.remove(handle).map_err(|_| Error::CUDA_ERROR_INVALID_HANDLE)?;
    free(&array.memory);
    Ok(())
}

/// `cuMipmappedArrayDestroy`
pub(crate) fn destroy_mipmap(handle: usize) -> Result<()> {
    let mipmap = mipmap(handle)?;
    drain(mipmap.context, &mipmap.memory)?;
    remove_mipmap(&mipmap)
}

fn remove_mipmap(mipmap: &Mipmap) -> Result<()> {
    MIPMAPS
        .remove(mipmap.handle)
        .map_err(|_| Error::CUDA_ERROR_INVALID_HANDLE)?;
    let levels = mipmap.levels.lock().unwrap_or_else(PoisonError::into_inner);
    for level in levels.iter().flatten() {
        let _ = ARRAYS.remove(*level);
    }
    free(&mipmap.memory);
    Ok(())
}

/// `cuMipmappedArrayGetLevel`: returns the same handle for a level each time.
pub(crate) fn level(handle: usize, level: u32) -> Result<usize> {
    let mipmap = mipmap(handle)?;
    let mut levels = mipmap.levels.lock().unwrap_or_else(PoisonError::into_inner);
    let known = levels.get_mut(level as usize).ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
    if let Some(handle) = *known {
        return Ok(handle);
    }
    // Another thread may have destroyed the mipmapped array since it was looked up. From here on, the destruction waits
    // for the lock, and then finds the new level.
    self::mipmap(handle)?;
    let array = ARRAYS.insert_with(|handle| Array {
        handle,
        context: mipmap.context,
        descriptor: mipmap.descriptor.of_level(mipmap.image.shape, level),
        image: Image {
            levels: vec![mipmap.image.levels[level as usize]],
            ..mipmap.image.clone()
        },
        memory: mipmap.memory.clone(),
        mipmap: Some(mipmap.handle),
    });
    *known = Some(array.handle);
    Ok(array.handle)
}

/// Removes the arrays of a context that is being destroyed, and frees the memory of mipmapped arrays. The memory of
/// other arrays is freed with the context's other allocations.
pub(crate) fn forget_all_of(context: &Context) {
    for mipmap in MIPMAPS.all() {
        if mipmap.context == context.id() {
            let _ = remove_mipmap(&mipmap);
        }
    }
    for array in ARRAYS.all() {
        if array.context == context.id() {
            let _ = ARRAYS.remove(array.handle);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_destroyed_mipmapped_array_gets_no_new_levels() {
        let context = context::for_test();
        let descriptor = ArrayDescriptor {
            width: 8,
            height: 8,
            depth: 0,
            format: cuda_driver_sys::CUarray_format::CU_AD_FORMAT_FLOAT.0,
            channels: 1,
            flags: 0,
        };
        let handle = create_mipmap(&context, descriptor, 4).unwrap();
        let found = mipmap(handle).unwrap();
        let levels = found.levels.lock().unwrap();
        let late = std::thread::spawn(move || level(handle, 1));
        // Gives the thread time to look up the handle. The thread then waits for the lock of the levels.
        std::thread::sleep(Duration::from_millis(100));
        MIPMAPS.remove(handle).unwrap();
        drop(levels);
        assert_eq!(late.join().unwrap(), Err(Error::CUDA_ERROR_CONTEXT_IS_DESTROYED));
        free(&found.memory);
    }
}
