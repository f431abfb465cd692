//! Exports of texture and surface objects: create, destroy and query them.

use std::ffi::c_uint;

use cuda_driver_sys::{
    CUDA_RESOURCE_DESC, CUDA_RESOURCE_DESC_st__res, CUDA_RESOURCE_DESC_st__res__array,
    CUDA_RESOURCE_DESC_st__res__linear, CUDA_RESOURCE_DESC_st__res__mipmap, CUDA_RESOURCE_DESC_st__res__pitch2D,
    CUDA_RESOURCE_DESC_st__res__reserved, CUDA_RESOURCE_VIEW_DESC, CUDA_TEXTURE_DESC, CUaddress_mode, CUarray,
    CUarray_format, CUdevice, CUfilter_mode, CUmipmappedArray, CUresourceViewFormat, CUresourcetype, CUsurfObject,
    CUtexObject,
};

use super::args::Caller;
use super::exports;
use crate::call::lookup::current_context;
use crate::object::device;
use crate::object::texture::{self, Resource, ResourceView, TextureSettings};
use crate::state::error::{Error, Result};

fn resource(c: Caller, description: *const CUDA_RESOURCE_DESC) -> Result<Resource> {
    let description = c.read(description)?;
    if description.flags != 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let res = description.res;
    Ok(match description.resType {
        CUresourcetype::CU_RESOURCE_TYPE_ARRAY => {
            // SAFETY: a handle is valid for any bits, and all bits of the union were read.
            let array = unsafe { res.array };
            Resource::Array(array.hArray as usize)
        }
        CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => {
            // SAFETY: as above.
            let mipmap = unsafe { res.mipmap };
            Resource::Mipmap(mipmap.hMipmappedArray as usize)
        }
        CUresourcetype::CU_RESOURCE_TYPE_LINEAR => {
            // SAFETY: all members are numbers, which are valid for any bits.
            let linear = unsafe { res.linear };
            Resource::Linear {
                address: linear.devPtr,
                format: linear.format.0,
                channels: linear.numChannels,
                bytes: linear.sizeInBytes as u64,
            }
        }
        CUresourcetype::CU_RESOURCE_TYPE_PITCH2D => {
            // SAFETY: as above.
            let pitch = unsafe { res.pitch2D };
            Resource::Pitch {
                address: pitch.devPtr,
                format: pitch.format.0,
                channels: pitch.numChannels,
                width: pitch.width as u64,
                height: pitch.height as u64,
                pitch: pitch.pitchInBytes as u64,
            }
        }
        _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
    })
}

/// Returns the resource's description as the program gave it.
fn description(resource: &Resource) -> CUDA_RESOURCE_DESC {
    let mut res = CUDA_RESOURCE_DESC_st__res {
        reserved: CUDA_RESOURCE_DESC_st__res__reserved { reserved: [0; 32] },
    };
    let kind = match *resource {
        Resource::Array(handle) => {
            res.array = CUDA_RESOURCE_DESC_st__res__array {
                hArray: handle as CUarray,
            };
            CUresourcetype::CU_RESOURCE_TYPE_ARRAY
        }
        Resource::Mipmap(handle) => {
            res.mipmap = CUDA_RESOURCE_DESC_st__res__mipmap {
                hMipmappedArray: handle as CUmipmappedArray,
            };
            CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
        }
        Resource::Linear {
            address,
            format,
            channels,
            bytes,
        } => {
            res.linear = CUDA_RESOURCE_DESC_st__res__linear {
                devPtr: address,
                format: CUarray_format(format),
                numChannels: channels,
                sizeInBytes: bytes as usize,
            };
            CUresourcetype::CU_RESOURCE_TYPE_LINEAR
        }
        Resource::Pitch {
            address,
            format,
            channels,
            width,
            height,
            pitch,
        } => {
            res.pitch2D = CUDA_RESOURCE_DESC_st__res__pitch2D {
                devPtr: address,
                format: CUarray_format(format),
                numChannels: channels,
                width: width as usize,
                height: height as usize,
                pitchInBytes: pitch as usize,
            };
            CUresourcetype::CU_RESOURCE_TYPE_PITCH2D
        }
    };
    CUDA_RESOURCE_DESC {
        resType: kind,
        res,
        flags: 0,
    }
}

fn settings(c: Caller, description: *const CUDA_TEXTURE_DESC) -> Result<TextureSettings> {
    let d = c.read(description)?;
    if d.reserved.iter().any(|word| *word != 0) {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    Ok(TextureSettings {
        modes: d.addressMode.map(|mode| mode.0),
        filter: d.filterMode.0,
        flags: d.flags,
        anisotropy: d.maxAnisotropy,
        mip_filter: d.mipmapFilterMode.0,
        bias: d.mipmapLevelBias,
        clamp: [d.minMipmapLevelClamp, d.maxMipmapLevelClamp],
        border: d.borderColor,
    })
}

fn view(c: Caller, description: *const CUDA_RESOURCE_VIEW_DESC) -> Result<Option<ResourceView>> {
    if description.is_null() {
        return Ok(None);
    }
    let d = c.read(description)?;
    Ok(Some(ResourceView {
        format: d.format.0,
        size: [d.width, d.height, d.depth].map(|n| n as u64),
        levels: [d.firstMipmapLevel, d.lastMipmapLevel],
        layers: [d.firstLayer, d.lastLayer],
    }))
}

exports! {
    fn cuTexObjectCreate [c] (
        out: *mut CUtexObject,
        resource_desc: *const CUDA_RESOURCE_DESC,
        texture_desc: *const CUDA_TEXTURE_DESC,
        view_desc: *const CUDA_RESOURCE_VIEW_DESC,
    ) {
        let context = current_context()?;
        let out = c.out(out)?;
        out.set(texture::create(
            &context,
            resource(c, resource_desc)?,
            settings(c, texture_desc)?,
            view(c, view_desc)?,
        )?);
        Ok(())
    }

    healthy fn cuTexObjectDestroy [_c] (object: CUtexObject) {
        texture::destroy(object, false)
    }

    healthy fn cuTexObjectGetResourceDesc [c] (out: *mut CUDA_RESOURCE_DESC, object: CUtexObject) {
        let made = texture::get(object, false)?;
        c.out(out)?.set(description(&made.resource));
        Ok(())
    }

    healthy fn cuTexObjectGetTextureDesc [c] (out: *mut CUDA_TEXTURE_DESC, object: CUtexObject) {
        let s = texture::get(object, false)?
            .settings
            .ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
        c.out(out)?.set(CUDA_TEXTURE_DESC {
            addressMode: s.modes.map(CUaddress_mode),
            filterMode: CUfilter_mode(s.filter),
            flags: s.flags,
            maxAnisotropy: s.anisotropy,
            mipmapFilterMode: CUfilter_mode(s.mip_filter),
            mipmapLevelBias: s.bias,
            minMipmapLevelClamp: s.clamp[0],
            maxMipmapLevelClamp: s.clamp[1],
            borderColor: s.border,
            reserved: [0; 12],
        });
        Ok(())
    }

    // Driver 580 writes nothing and returns success if the object has no view.
    healthy fn cuTexObjectGetResourceViewDesc [c] (
        out: *mut CUDA_RESOURCE_VIEW_DESC,
        object: CUtexObject,
    ) {
        let made = texture::get(object, false)?;
        let out = c.out(out)?;
        if let Some(v) = made.view {
            out.set(CUDA_RESOURCE_VIEW_DESC {
                format: CUresourceViewFormat(v.format),
                width: v.size[0] as usize,
                height: v.size[1] as usize,
                depth: v.size[2] as usize,
                firstMipmapLevel: v.levels[0],
                lastMipmapLevel: v.levels[1],
                firstLayer: v.layers[0],
                lastLayer: v.layers[1],
                reserved: [0; 16],
            });
        }
        Ok(())
    }

    fn cuSurfObjectCreate [c] (out: *mut CUsurfObject, of: *const CUDA_RESOURCE_DESC) {
        let context = current_context()?;
        let out = c.out(out)?;
        out.set(texture::create_surface(&context, resource(c, of)?)?);
        Ok(())
    }

    healthy fn cuSurfObjectDestroy [_c] (object: CUsurfObject) {
        texture::destroy(object, true)
    }

    healthy fn cuSurfObjectGetResourceDesc [c] (
        out: *mut CUDA_RESOURCE_DESC,
        object: CUsurfObject,
    ) {
        let made = texture::get(object, true)?;
        c.out(out)?.set(description(&made.resource));
        Ok(())
    }

    fn cuDeviceGetTexture1DLinearMaxWidth [c] (
        out: *mut usize,
        format: CUarray_format,
        channels: c_uint,
        device: CUdevice,
    ) {
        let out = c.out(out)?;
        device::get(device)?;
        out.set(texture::most_linear(format.0, channels)? as usize);
        Ok(())
    }
}
