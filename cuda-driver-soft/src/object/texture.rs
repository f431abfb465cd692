//! Texture and surface objects: their checks, and their images and samplers in the engine.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use cuda_driver_sys::{
    CU_TRSF_NORMALIZED_COORDINATES, CU_TRSF_READ_AS_INTEGER, CU_TRSF_SEAMLESS_CUBEMAP, CU_TRSF_SRGB, CUaddress_mode,
    CUdevice_attribute as Attribute, CUfilter_mode, CUresourceViewFormat,
};

use crate::object::array::{self, ArrayDescriptor};
use crate::object::array_format::{channel, texel_format};
use crate::object::context::{self, Context};
use crate::object::device::Device;
use crate::object::leak;
use crate::state::error::{Error, Result};
use engine::texture::{
    self, Address, Anisotropy, Block, Channel, Object, Plane, Read, Sampler, Storage, TexelArray as Image,
    TextureShape as Shape,
};

const LINEAR: u32 = CUfilter_mode::CU_TR_FILTER_MODE_LINEAR.0;
const READ_AS_INTEGER: u32 = CU_TRSF_READ_AS_INTEGER;
pub(crate) const NORMALIZED: u32 = CU_TRSF_NORMALIZED_COORDINATES;
const SRGB: u32 = CU_TRSF_SRGB;
const SEAMLESS: u32 = CU_TRSF_SEAMLESS_CUBEMAP;
/// The flags that driver 580 accepts for any texture. Only cubemaps accept [`SEAMLESS`] as well.
const FLAGS: u32 = 0x3f;

/// The texels of a texture or surface, as in `CUDA_RESOURCE_DESC`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Resource {
    Array(usize),
    Mipmap(usize),
    Linear {
        address: u64,
        format: u32,
        channels: u32,
        bytes: u64,
    },
    Pitch {
        address: u64,
        format: u32,
        channels: u32,
        width: u64,
        height: u64,
        pitch: u64,
    },
}

/// The sampling settings of a texture, as in `CUDA_TEXTURE_DESC`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TextureSettings {
    pub(crate) modes: [u32; 3],
    pub(crate) filter: u32,
    pub(crate) flags: u32,
    pub(crate) anisotropy: u32,
    pub(crate) mip_filter: u32,
    pub(crate) bias: f32,
    pub(crate) clamp: [f32; 2],
    pub(crate) border: [f32; 4],
}

/// A view of an array, as in `CUDA_RESOURCE_VIEW_DESC`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResourceView {
    pub(crate) format: u32,
    pub(crate) size: [u64; 3],
    pub(crate) levels: [u32; 2],
    pub(crate) layers: [u32; 2],
}

/// The descriptors that an object was created from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectDescriptors {
    pub(crate) resource: Resource,
    /// `None` for a surface.
    pub(crate) settings: Option<TextureSettings>,
    pub(crate) view: Option<ResourceView>,
    /// The context that the object was created in.
    owner: u64,
}

/// Removes the objects of a context that is being destroyed.
pub(crate) fn forget_all_of(context: &Context) {
    objects().retain(|handle, object| {
        let stays = object.owner != context.id();
        if !stays {
            texture::unbind(*handle);
        }
        stays
    });
}

/// Locks and returns the live texture and surface objects, by handle.
fn objects() -> MutexGuard<'static, HashMap<u64, ObjectDescriptors>> {
    static OBJECTS: OnceLock<Mutex<HashMap<u64, ObjectDescriptors>>> = OnceLock::new();
    OBJECTS
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// Returns the channel format and number of channels of texels in linear memory.
fn texels(format: u32, channels: u32) -> Result<(Channel, u32)> {
    match (channel(format), channels) {
        (Some(channel), 1 | 2 | 4) => Ok((channel, channels)),
        _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
}

/// Returns the maximum number of texels of a texture of linear memory: 2^30, or the number that fills 4 GiB if that is
/// less.
pub(crate) fn most_linear(format: u32, channels: u32) -> Result<u64> {
    let (channel, channels) = texels(format, channels)?;
    Ok((1 << 30).min((1 << 32) / u64::from(channel.bytes() * channels)))
}

/// Returns the image of a resource.
pub(crate) fn image(resource: &Resource, device: &Device) -> Result<Image> {
    let limit = |attribute| u64::from(device.limit(attribute));
    let aligned = |address: u64| {
        if address == 0 || !address.is_multiple_of(limit(Attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)) {
            host::log!(
                "texture address {address:#x} is null or not a multiple of CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT"
            );
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(())
    };
    match *resource {
        Resource::Array(0) | Resource::Mipmap(0) => Err(Error::CUDA_ERROR_INVALID_VALUE),
        Resource::Array(handle) => Ok(array::get(handle)?.image.clone()),
        Resource::Mipmap(handle) => Ok(array::mipmap(handle)?.image.clone()),
        Resource::Linear {
            address,
            format,
            channels,
            bytes,
        } => {
            let most = most_linear(format, channels)?;
            let (channel, channels) = texels(format, channels)?;
            let width = bytes / u64::from(channel.bytes() * channels);
            aligned(address)?;
            if width > most {
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
            Ok(flat(Shape::Linear, (channel, channels), address, [width, 1], bytes))
        }
        Resource::Pitch {
            address,
            format,
            channels,
            width,
            height,
            pitch,
        } => {
            let (channel, channels) = texels(format, channels)?;
            let row = width.checked_mul(u64::from(channel.bytes() * channels));
            aligned(address)?;
            let fits = width <= limit(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH)
                && height <= limit(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT)
                && pitch <= limit(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH);
            let tight = pitch.is_multiple_of(limit(Attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT))
                && (pitch == 0 || row.is_some_and(|row| row <= pitch));
            if !fits || !tight {
                host::log!(
                    "texture of {width} x {height} texels with a pitch of {pitch} bytes: \
                     the size or the pitch exceeds the device's limits, or the pitch is less than a row or not a \
                     multiple of CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT"
                );
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
            Ok(flat(Shape::D2, (channel, channels), address, [width, height], pitch))
        }
    }
}

/// Returns an image of texels in linear memory.
fn flat(
    shape: Shape,
    (channel, channels): (Channel, u32),
    address: u64,
    [width, height]: [u64; 2],
    pitch: u64,
) -> Image {
    Image {
        shape,
        channel,
        channels,
        storage: Storage::Channels,
        normalized: false,
        levels: vec![Plane {
            address,
            size: [width as u32, height as u32, 1],
            pitch,
            slice: 0,
        }],
        tiles: None,
    }
}

fn address_mode(mode: u32) -> Address {
    match CUaddress_mode(mode) {
        CUaddress_mode::CU_TR_ADDRESS_MODE_WRAP => Address::Wrap,
        CUaddress_mode::CU_TR_ADDRESS_MODE_MIRROR => Address::Mirror,
        CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER => Address::Border,
        _ => Address::Clamp,
    }
}

/// Returns the engine's sampler for an image with these settings. An address mode out of range counts as clamping.
pub(crate) fn sampler(image: &Image, settings: &TextureSettings) -> Sampler {
    let has = |flag| settings.flags & flag != 0;
    Sampler {
        modes: settings.modes.map(address_mode),
        linear: settings.filter == LINEAR,
        normalized: has(NORMALIZED),
        read: match (has(READ_AS_INTEGER) && !image.normalized, has(SRGB)) {
            (true, _) => Read::Element,
            (_, true) => Read::Srgb,
            _ => Read::Normalized,
        },
        border: settings.border,
        mip_linear: settings.mip_filter == LINEAR,
        bias: settings.bias,
        clamp: settings.clamp,
        anisotropy: Anisotropy::new(settings.anisotropy),
        seamless: has(SEAMLESS),
    }
}

/// Returns the channel format and number of channels of a `CUresourceViewFormat`. Each channel format has three
/// consecutive values there: for one, two and four channels.
fn view_format(format: u32) -> Option<(Channel, u32)> {
    const KINDS: [Channel; 8] = [
        Channel::U8,
        Channel::S8,
        Channel::U16,
        Channel::S16,
        Channel::U32,
        Channel::S32,
        Channel::Half,
        Channel::Float,
    ];
    let index = format.checked_sub(1)?;
    let kind = KINDS.get(index as usize / 3)?;
    Some((*kind, 1 << (index % 3)))
}

/// Returns the descriptor that the array of a resource was created with; `None` for linear memory.
fn array_descriptor(resource: &Resource) -> Result<Option<ArrayDescriptor>> {
    Ok(match *resource {
        Resource::Array(handle) => Some(array::get(handle)?.descriptor),
        Resource::Mipmap(handle) => Some(array::mipmap(handle)?.descriptor),
        Resource::Linear { .. } | Resource::Pitch { .. } => None,
    })
}

/// Returns the width, height and depth that the array of a resource was created with.
fn array_size(resource: &Resource) -> Result<[u64; 3]> {
    let descriptor = array_descriptor(resource)?.ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
    Ok([descriptor.width, descriptor.height, descriptor.depth])
}

/// Returns true if a resource is an array whose format stores sRGB colors.
fn is_srgb(resource: &Resource) -> Result<bool> {
    let descriptor = array_descriptor(resource)?;
    let format = descriptor.and_then(|array| texel_format(array.format, array.channels));
    Ok(format.is_some_and(|format| format.srgb))
}

/// Returns the block-compressed format of a `CUresourceViewFormat`.
fn view_block(format: u32) -> Option<Block> {
    Some(match CUresourceViewFormat(format) {
        CUresourceViewFormat::CU_RES_VIEW_FORMAT_UNSIGNED_BC1 => Block::Bc1,
        CUresourceViewFormat::CU_RES_VIEW_FORMAT_UNSIGNED_BC2 => Block::Bc2,
        CUresourceViewFormat::CU_RES_VIEW_FORMAT_UNSIGNED_BC3 => Block::Bc3,
        CUresourceViewFormat::CU_RES_VIEW_FORMAT_UNSIGNED_BC4 => Block::Bc4(false),
        CUresourceViewFormat::CU_RES_VIEW_FORMAT_SIGNED_BC4 => Block::Bc4(true),
        CUresourceViewFormat::CU_RES_VIEW_FORMAT_UNSIGNED_BC5 => Block::Bc5(false),
        CUresourceViewFormat::CU_RES_VIEW_FORMAT_SIGNED_BC5 => Block::Bc5(true),
        CUresourceViewFormat::CU_RES_VIEW_FORMAT_UNSIGNED_BC6H => Block::Bc6h(false),
        CUresourceViewFormat::CU_RES_VIEW_FORMAT_SIGNED_BC6H => Block::Bc6h(true),
        CUresourceViewFormat::CU_RES_VIEW_FORMAT_UNSIGNED_BC7 => Block::Bc7,
        _ => return None,
    })
}

/// Views the elements of an array as compressed blocks: each element becomes 4 x 4 texels. The caller checks that the
/// elements are unsigned 32-bit integers and have the size of a block.
fn view_as_blocks(image: &mut Image, block: Block) {
    image.storage = Storage::Blocks(block);
    (image.channel, image.channels, image.normalized) = (block.channel(), 4, true);
    let edge = image.block_edge();
    for plane in &mut image.levels {
        let [width, height, depth] = plane.size;
        plane.size = [width * edge, height * edge, depth];
    }
}

/// Applies a view to the image of an array that was created with this size. Driver 580 requires a format and the
/// array's own size, with 0 for a dimension that the array does not have; the size of a view as compressed blocks is in
/// texels. Driver 580 also accepts levels past the last one of a mipmapped array, and layers past the last one of a
/// layered array; here, the last level or layer is used for them. Layers 0 to 0 select all layers of a layered
/// cube map.
fn viewed(mut image: Image, size: [u64; 3], view: &ResourceView, mipmapped: bool) -> Result<Image> {
    let last = image.levels.len() - 1;
    let layers = matches!(image.shape, Shape::A1 | Shape::A2 | Shape::ACube);
    if image.storage != Storage::Channels {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let before = (image.channel, image.texel_bytes());
    let [width, height, depth] = size;
    let size = if let Some(block) = view_block(view.format) {
        view_as_blocks(&mut image, block);
        if before != (Channel::U32, image.texel_bytes()) || height == 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let edge = u64::from(image.block_edge());
        [width * edge, height * edge, depth]
    } else {
        let (channel, channels) = view_format(view.format).ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
        (image.channel, image.channels, image.normalized) = (channel, channels, false);
        if before.1 != image.texel_bytes() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        size
    };
    if view.size != size
        || view.levels[0] > view.levels[1]
        || !mipmapped && view.levels[1] > 0
        || view.layers[0] > view.layers[1]
        || !layers && view.layers[1] > 0
    {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let [first_level, last_level] = view.levels.map(|level| (level as usize).min(last));
    image.levels = image.levels[first_level..=last_level].to_vec();
    // A view of a layered cube map with layer 0 only shows all layers, because six of them make a cube.
    if layers && (view.layers != [0, 0] || image.shape != Shape::ACube) {
        for plane in &mut image.levels {
            let [first, last] = view.layers.map(|layer| layer.min(plane.size[2] - 1));
            plane.address += u64::from(first) * plane.slice;
            plane.size[2] = last - first + 1;
        }
    }
    Ok(image)
}

/// `cuTexObjectCreate`
pub(crate) fn create(
    context: &Context,
    resource: Resource,
    settings: TextureSettings,
    view: Option<ResourceView>,
) -> Result<u64> {
    let in_range = settings.modes.iter().all(|mode| CUaddress_mode(*mode).name().is_some())
        && settings.filter <= LINEAR
        && settings.mip_filter <= LINEAR
        && settings.flags & !(FLAGS | SEAMLESS) == 0;
    if !in_range {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let mut image = image(&resource, context.device)?;
    if is_srgb(&resource)? && settings.flags & SRGB == 0 {
        host::log!("a texture of an array with an sRGB format needs CU_TRSF_SRGB");
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let is_cube = matches!(image.shape, Shape::Cube | Shape::ACube);
    if settings.flags & SEAMLESS != 0 && !is_cube {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    if let Some(view) = &view {
        image = viewed(
            image,
            array_size(&resource)?,
            view,
            matches!(resource, Resource::Mipmap(_)),
        )?;
    }
    let handle = texture::new_handle();
    let sampler = sampler(&image, &settings);
    insert(
        context,
        (handle, Object::Texture(image, sampler)),
        ObjectDescriptors {
            resource,
            settings: Some(settings),
            view,
            owner: context.id(),
        },
    )?;
    leak::note_unless_gone("texture object", handle as usize, None, move || exists(handle));
    Ok(handle)
}

/// Adds an object. Returns `CUDA_ERROR_CONTEXT_IS_DESTROYED` if another thread has ended the context.
fn insert(context: &Context, (handle, object): (u64, Object), descriptors: ObjectDescriptors) -> Result<()> {
    let mut objects = objects();
    // Checked under the lock: the end of a context first marks it, and then takes the lock to remove its objects.
    context.check_alive()?;
    texture::bind(handle, object);
    objects.insert(handle, descriptors);
    Ok(())
}

/// `cuSurfObjectCreate`: accepts arrays only. Driver 580 accepts arrays without `CUDA_ARRAY3D_SURFACE_LDST`, too.
pub(crate) fn create_surface(context: &Context, resource: Resource) -> Result<u64> {
    let Resource::Array(_) = resource else {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    };
    let image = image(&resource, context.device)?;
    if matches!(image.storage, Storage::Blocks(_)) {
        host::log!("arrays of block-compressed formats cannot be surfaces");
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let handle = texture::new_handle();
    insert(
        context,
        (handle, Object::Surface(image)),
        ObjectDescriptors {
            resource,
            settings: None,
            view: None,
            owner: context.id(),
        },
    )?;
    leak::note_unless_gone("surface object", handle as usize, None, move || exists(handle));
    Ok(handle)
}

/// Returns true if a texture or surface object is live. The destruction of its context destroys it, too.
fn exists(handle: u64) -> bool {
    objects().contains_key(&handle)
}

/// `cuTexObjectDestroy`, `cuSurfObjectDestroy`: driver 580 succeeds for an unknown object. Waits for the queued work of
/// the context that the object was created in, which may use the object.
pub(crate) fn destroy(handle: u64, surface: bool) -> Result<()> {
    context::current()?;
    let is = |object: &&ObjectDescriptors| object.settings.is_none() == surface;
    let owner = objects().get(&handle).filter(is).map(|object| object.owner);
    if let Some(owner) = owner {
        // A context that ends unbinds its objects itself.
        if let Ok(context) = context::by_handle(owner as usize) {
            context.drain();
        }
        texture::unbind(handle);
        objects().remove(&handle);
    }
    Ok(())
}

/// Returns the descriptors that an object was created from.
pub(crate) fn get(handle: u64, surface: bool) -> Result<ObjectDescriptors> {
    context::current()?;
    let is = |object: &ObjectDescriptors| object.settings.is_none() == surface;
    objects()
        .get(&handle)
        .copied()
        .filter(is)
        .ok_or(Error::CUDA_ERROR_INVALID_VALUE)
}
