//! Formats of array texels.

use cuda_driver_sys::CUarray_format;

use engine::texture::{Block, Channel, Storage};

/// The layout of the texels of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TexelFormat {
    /// The type of a channel when a texel is read.
    pub(crate) channel: Channel,
    /// Number of channels when a texel is read: 1, 2 or 4.
    pub(crate) channels: u32,
    pub(crate) storage: Storage,
    /// True if integers are always read as numbers from 0 to 1 or, if they are signed, from -1 to 1.
    pub(crate) normalized: bool,
    /// True if the colors are sRGB, which a texture must convert.
    pub(crate) srgb: bool,
}

/// Returns the type of the channels of a format; `None` if the number of channels is part of the format, or if the
/// format is unknown.
pub(crate) fn channel(format: u32) -> Option<Channel> {
    Some(match CUarray_format(format) {
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8 => Channel::U8,
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT16 => Channel::U16,
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32 => Channel::U32,
        CUarray_format::CU_AD_FORMAT_SIGNED_INT8 => Channel::S8,
        CUarray_format::CU_AD_FORMAT_SIGNED_INT16 => Channel::S16,
        CUarray_format::CU_AD_FORMAT_SIGNED_INT32 => Channel::S32,
        CUarray_format::CU_AD_FORMAT_HALF => Channel::Half,
        CUarray_format::CU_AD_FORMAT_FLOAT => Channel::Float,
        _ => return None,
    })
}

/// Returns the type and number of channels of a format of normalized integers.
fn normalized(format: CUarray_format) -> Option<(Channel, u32)> {
    Some(match format {
        CUarray_format::CU_AD_FORMAT_UNORM_INT8X1 => (Channel::U8, 1),
        CUarray_format::CU_AD_FORMAT_UNORM_INT8X2 => (Channel::U8, 2),
        CUarray_format::CU_AD_FORMAT_UNORM_INT8X4 => (Channel::U8, 4),
        CUarray_format::CU_AD_FORMAT_UNORM_INT16X1 => (Channel::U16, 1),
        CUarray_format::CU_AD_FORMAT_UNORM_INT16X2 => (Channel::U16, 2),
        CUarray_format::CU_AD_FORMAT_UNORM_INT16X4 => (Channel::U16, 4),
        CUarray_format::CU_AD_FORMAT_SNORM_INT8X1 => (Channel::S8, 1),
        CUarray_format::CU_AD_FORMAT_SNORM_INT8X2 => (Channel::S8, 2),
        CUarray_format::CU_AD_FORMAT_SNORM_INT8X4 => (Channel::S8, 4),
        CUarray_format::CU_AD_FORMAT_SNORM_INT16X1 => (Channel::S16, 1),
        CUarray_format::CU_AD_FORMAT_SNORM_INT16X2 => (Channel::S16, 2),
        CUarray_format::CU_AD_FORMAT_SNORM_INT16X4 => (Channel::S16, 4),
        _ => return None,
    })
}

/// Returns the block-compressed format, the number of channels that a descriptor with it must have, and true if its
/// colors are sRGB.
fn block(format: CUarray_format) -> Option<(Block, u32, bool)> {
    Some(match format {
        CUarray_format::CU_AD_FORMAT_BC1_UNORM => (Block::Bc1, 4, false),
        CUarray_format::CU_AD_FORMAT_BC1_UNORM_SRGB => (Block::Bc1, 4, true),
        CUarray_format::CU_AD_FORMAT_BC2_UNORM => (Block::Bc2, 4, false),
        CUarray_format::CU_AD_FORMAT_BC2_UNORM_SRGB => (Block::Bc2, 4, true),
        CUarray_format::CU_AD_FORMAT_BC3_UNORM => (Block::Bc3, 4, false),
        CUarray_format::CU_AD_FORMAT_BC3_UNORM_SRGB => (Block::Bc3, 4, true),
        CUarray_format::CU_AD_FORMAT_BC4_UNORM => (Block::Bc4(false), 1, false),
        CUarray_format::CU_AD_FORMAT_BC4_SNORM => (Block::Bc4(true), 1, false),
        CUarray_format::CU_AD_FORMAT_BC5_UNORM => (Block::Bc5(false), 2, false),
        CUarray_format::CU_AD_FORMAT_BC5_SNORM => (Block::Bc5(true), 2, false),
        CUarray_format::CU_AD_FORMAT_BC6H_UF16 => (Block::Bc6h(false), 3, false),
        CUarray_format::CU_AD_FORMAT_BC6H_SF16 => (Block::Bc6h(true), 3, false),
        CUarray_format::CU_AD_FORMAT_BC7_UNORM => (Block::Bc7, 4, false),
        CUarray_format::CU_AD_FORMAT_BC7_UNORM_SRGB => (Block::Bc7, 4, true),
        _ => return None,
    })
}

/// Returns the layout of the texels of an array of this format and number of channels, or `None` if this driver does
/// not support them.
pub(crate) fn texel_format(format: u32, channels: u32) -> Option<TexelFormat> {
    let name = CUarray_format(format);
    let plain = |channel, channels, normalized| TexelFormat {
        channel,
        channels,
        storage: Storage::Channels,
        normalized,
        srgb: false,
    };
    if let Some(channel) = channel(format) {
        matches!(channels, 1 | 2 | 4).then(|| plain(channel, channels, false))
    } else if let Some((channel, own)) = normalized(name) {
        (channels == own).then(|| plain(channel, own, true))
    } else if let Some((block, own, srgb)) = block(name) {
        (channels == own).then(|| TexelFormat {
            storage: Storage::Blocks(block),
            srgb,
            ..plain(block.channel(), 4, true)
        })
    } else {
        let packed = name == CUarray_format::CU_AD_FORMAT_UNORM_INT_101010_2 && channels == 4;
        packed.then(|| TexelFormat {
            storage: Storage::Packed,
            ..plain(Channel::U16, 4, true)
        })
    }
}
