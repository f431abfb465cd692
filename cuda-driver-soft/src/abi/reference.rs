//! Exports of texture and surface references: create, find and destroy them, bind them to texels, and set and query
//! their settings.

use std::ffi::{c_char, c_int, c_uint};

use cuda_driver_sys::{
    CUDA_ARRAY_DESCRIPTOR, CUaddress_mode, CUarray, CUarray_format, CUdeviceptr, CUfilter_mode, CUmipmappedArray,
    CUmodule, CUsurfref, CUtexref,
};

use super::args::{Caller, set};
use super::exports;
use crate::call::lookup;
use crate::object::reference;
use crate::object::texture::Resource;
use crate::state::error::{Error, Result};
use crate::state::gate;

/// Returns the result of `wanted` for the resource that a reference is bound to. Returns `CUDA_ERROR_INVALID_VALUE` if
/// the reference is not bound or `wanted` returns `None`.
fn bound<T>(reference: usize, surface: bool, wanted: impl FnOnce(Resource) -> Option<T>) -> Result<T> {
    reference::bound(reference, surface)?
        .and_then(wanted)
        .ok_or(Error::CUDA_ERROR_INVALID_VALUE)
}

fn array(resource: Resource) -> Option<CUarray> {
    match resource {
        Resource::Array(handle) => Some(handle as CUarray),
        _ => None,
    }
}

fn set_address_2d(
    c: Caller,
    reference: CUtexref,
    descriptor: *const CUDA_ARRAY_DESCRIPTOR,
    address: CUdeviceptr,
    pitch: usize,
) -> Result<()> {
    let d = c.read(descriptor)?;
    gate::healthy()?;
    let texels = (d.Width as u64, d.Height as u64, d.Format.0, d.NumChannels);
    reference::set_address_2d(reference as usize, texels, address, pitch as u64)
}

exports! {
    fn cuModuleGetTexRef [c] (out: *mut CUtexref, hmod: CUmodule, name: *const c_char) {
        let module = lookup::module(hmod as usize)?;
        let (out, name) = (c.out(out)?, c.string(name)?);
        out.set(module.reference(&name, false)? as CUtexref);
        Ok(())
    }

    fn cuModuleGetSurfRef [c] (out: *mut CUsurfref, hmod: CUmodule, name: *const c_char) {
        let module = lookup::module(hmod as usize)?;
        let (out, name) = (c.out(out)?, c.string(name)?);
        out.set(module.reference(&name, true)? as CUsurfref);
        Ok(())
    }

    fn cuTexRefCreate [c] (out: *mut CUtexref) {
        let out = c.out(out)?;
        gate::healthy()?;
        out.set(reference::create()? as CUtexref);
        Ok(())
    }

    healthy fn cuTexRefDestroy [_c] (texref: CUtexref) {
        reference::destroy(texref as usize)
    }

    healthy fn cuTexRefSetArray [_c] (texref: CUtexref, array: CUarray, flags: c_uint) {
        reference::set_array(texref as usize, array as usize, flags, false)
    }

    healthy fn cuTexRefSetMipmappedArray [_c] (
        texref: CUtexref,
        mipmap: CUmipmappedArray,
        flags: c_uint,
    ) {
        reference::set_mipmap(texref as usize, mipmap as usize, flags)
    }

    healthy fn cuTexRefSetAddress_v2 [c] (
        offset: *mut usize,
        texref: CUtexref,
        address: CUdeviceptr,
        bytes: usize,
    ) {
        let found =
            reference::set_address(texref as usize, address, bytes as u64, !offset.is_null())?;
        set(c.out_or_null(offset), found as usize);
        Ok(())
    }

    fn cuTexRefSetAddress2D_v3 [c] (
        texref: CUtexref,
        descriptor: *const CUDA_ARRAY_DESCRIPTOR,
        address: CUdeviceptr,
        pitch: usize,
    ) {
        set_address_2d(c, texref, descriptor, address, pitch)
    }

    fn cuTexRefSetAddress2D_v2 [c] (
        texref: CUtexref,
        descriptor: *const CUDA_ARRAY_DESCRIPTOR,
        address: CUdeviceptr,
        pitch: usize,
    ) {
        set_address_2d(c, texref, descriptor, address, pitch)
    }

    healthy fn cuTexRefSetFormat [_c] (texref: CUtexref, format: CUarray_format, channels: c_int) {
        reference::set_format(texref as usize, format.0, channels)
    }

    healthy fn cuTexRefSetAddressMode [_c] (
        texref: CUtexref,
        dimension: c_int,
        mode: CUaddress_mode,
    ) {
        reference::set(texref as usize, |settings| {
            let place = usize::try_from(dimension)
                .ok()
                .and_then(|i| settings.modes.get_mut(i));
            *place.ok_or(Error::CUDA_ERROR_INVALID_VALUE)? = mode.0;
            Ok(())
        })
    }

    healthy fn cuTexRefSetFilterMode [_c] (texref: CUtexref, mode: CUfilter_mode) {
        reference::set(texref as usize, |settings| {
            settings.filter = mode.0;
            Ok(())
        })
    }

    healthy fn cuTexRefSetMipmapFilterMode [_c] (texref: CUtexref, mode: CUfilter_mode) {
        reference::set(texref as usize, |settings| {
            // Driver 580 checks this filter mode, but not the one of `cuTexRefSetFilterMode`.
            if mode.name().is_none() {
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
            settings.mip_filter = mode.0;
            Ok(())
        })
    }

    healthy fn cuTexRefSetMipmapLevelBias [_c] (texref: CUtexref, bias: f32) {
        reference::set(texref as usize, |settings| {
            settings.bias = bias;
            Ok(())
        })
    }

    healthy fn cuTexRefSetMipmapLevelClamp [_c] (texref: CUtexref, least: f32, most: f32) {
        reference::set(texref as usize, |settings| {
            settings.clamp = [least, most];
            Ok(())
        })
    }

    healthy fn cuTexRefSetMaxAnisotropy [_c] (texref: CUtexref, most: c_uint) {
        reference::set(texref as usize, |settings| {
            settings.anisotropy = most;
            Ok(())
        })
    }

    fn cuTexRefSetBorderColor [c] (texref: CUtexref, color: *mut f32) {
        let color = c.array(color.cast_const(), 4)?;
        gate::healthy()?;
        reference::set(texref as usize, |settings| {
            settings.border.copy_from_slice(&color);
            Ok(())
        })
    }

    healthy fn cuTexRefSetFlags [_c] (texref: CUtexref, flags: c_uint) {
        reference::set_flags(texref as usize, flags)
    }

    healthy fn cuTexRefGetArray [c] (out: *mut CUarray, texref: CUtexref) {
        let found = bound(texref as usize, false, array)?;
        c.out(out)?.set(found);
        Ok(())
    }

    healthy fn cuTexRefGetMipmappedArray [c] (out: *mut CUmipmappedArray, texref: CUtexref) {
        let found = bound(texref as usize, false, |resource| match resource {
            Resource::Mipmap(handle) => Some(handle as CUmipmappedArray),
            _ => None,
        })?;
        c.out(out)?.set(found);
        Ok(())
    }

    healthy fn cuTexRefGetAddress_v2 [c] (out: *mut CUdeviceptr, texref: CUtexref) {
        let found = bound(texref as usize, false, |resource| match resource {
            Resource::Linear { address, .. } | Resource::Pitch { address, .. } => Some(address),
            _ => None,
        })?;
        c.out(out)?.set(found);
        Ok(())
    }

    healthy fn cuTexRefGetFormat [c] (
        out: *mut CUarray_format,
        channels: *mut c_int,
        texref: CUtexref,
    ) {
        let (format, count) = reference::format(texref as usize)?;
        set(c.out_or_null(out), CUarray_format(format));
        set(c.out_or_null(channels), count as c_int);
        Ok(())
    }

    healthy fn cuTexRefGetAddressMode [c] (
        out: *mut CUaddress_mode,
        texref: CUtexref,
        dimension: c_int,
    ) {
        let mode = reference::address_mode(texref as usize, dimension)?;
        c.out(out)?.set(CUaddress_mode(mode));
        Ok(())
    }

    healthy fn cuTexRefGetFilterMode [c] (out: *mut CUfilter_mode, texref: CUtexref) {
        let settings = reference::settings(texref as usize)?;
        c.out(out)?.set(CUfilter_mode(settings.filter));
        Ok(())
    }

    healthy fn cuTexRefGetMipmapFilterMode [c] (out: *mut CUfilter_mode, texref: CUtexref) {
        let settings = reference::settings(texref as usize)?;
        c.out(out)?.set(CUfilter_mode(settings.mip_filter));
        Ok(())
    }

    healthy fn cuTexRefGetMipmapLevelBias [c] (out: *mut f32, texref: CUtexref) {
        let settings = reference::settings(texref as usize)?;
        c.out(out)?.set(settings.bias);
        Ok(())
    }

    healthy fn cuTexRefGetMipmapLevelClamp [c] (least: *mut f32, most: *mut f32, texref: CUtexref) {
        let settings = reference::settings(texref as usize)?;
        set(c.out_or_null(least), settings.clamp[0]);
        set(c.out_or_null(most), settings.clamp[1]);
        Ok(())
    }

    healthy fn cuTexRefGetMaxAnisotropy [c] (out: *mut c_int, texref: CUtexref) {
        let settings = reference::settings(texref as usize)?;
        c.out(out)?.set(settings.anisotropy as c_int);
        Ok(())
    }

    healthy fn cuTexRefGetBorderColor [c] (out: *mut f32, texref: CUtexref) {
        let settings = reference::settings(texref as usize)?;
        c.out(out)?;
        for (i, component) in settings.border.into_iter().enumerate() {
            c.set_at(out, i, component);
        }
        Ok(())
    }

    healthy fn cuTexRefGetFlags [c] (out: *mut c_uint, texref: CUtexref) {
        let settings = reference::settings(texref as usize)?;
        c.out(out)?.set(settings.flags);
        Ok(())
    }

    healthy fn cuSurfRefSetArray [_c] (surfref: CUsurfref, array: CUarray, flags: c_uint) {
        reference::set_array(surfref as usize, array as usize, flags, true)
    }

    healthy fn cuSurfRefGetArray [c] (out: *mut CUarray, surfref: CUsurfref) {
        let found = bound(surfref as usize, true, array)?;
        c.out(out)?.set(found);
        Ok(())
    }
}
