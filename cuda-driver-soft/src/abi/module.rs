//! Exports of modules: load and unload them, and find their functions and variables.

use std::ffi::{c_char, c_uint, c_void};

use cuda_driver_sys::{CUdeviceptr, CUdeviceptr_v1, CUfunction, CUjit_option, CUmodule, CUmoduleLoadingMode};

use super::args::{Caller, set};
use super::exports;
use super::image::{Jit, image};
use crate::call::lookup::{self, current_context};
use crate::call::module;
use crate::object::jit::{Log, Options};
use crate::state::error::{Error, Result};
use image::Image;

/// Reads the image in a file, whose path is a C string.
pub(super) fn read_file(c: Caller, name: *const c_char) -> Result<Image> {
    let path = c.path(name)?;
    if path.as_os_str().is_empty() {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    std::fs::read(&path).map(Image::of).map_err(|error| {
        host::log!("cannot read {}: {error}", path.display());
        if path.is_dir() {
            // Driver 580 returns this code for a folder, as for a file that is too large.
            Error::CUDA_ERROR_OUT_OF_MEMORY
        } else {
            Error::CUDA_ERROR_FILE_NOT_FOUND
        }
    })
}

fn load(c: Caller, out: *mut CUmodule, pointer: *const c_void) -> Result<()> {
    current_context()?;
    let out = c.out(out)?;
    let image = image(c, pointer)?;
    out.set(module::load(&image, &Options::default(), &mut Log::default())? as CUmodule);
    Ok(())
}

exports! {
    fn cuModuleLoad [c] (out: *mut CUmodule, name: *const c_char) {
        current_context()?;
        let out = c.out(out)?;
        let image = read_file(c, name)?;
        out.set(module::load(&image, &Options::default(), &mut Log::default())? as CUmodule);
        Ok(())
    }

    fn cuModuleLoadData [c] (out: *mut CUmodule, pointer: *const c_void) {
        load(c, out, pointer)
    }

    fn cuModuleLoadFatBinary [c] (out: *mut CUmodule, pointer: *const c_void) {
        load(c, out, pointer)
    }

    fn cuModuleLoadDataEx [c] (
        out: *mut CUmodule,
        pointer: *const c_void,
        count: c_uint,
        options: *mut CUjit_option,
        values: *mut *mut c_void,
    ) {
        current_context()?;
        let out = c.out(out)?;
        let mut jit = Jit::read(c, count, options, values)?;
        let mut log = Log::default();
        let loaded =
            image(c, pointer).and_then(|image| module::load(&image, &jit.options, &mut log));
        jit.report(c, &log);
        out.set(loaded? as CUmodule);
        Ok(())
    }

    fn cuModuleUnload [c] (hmod: CUmodule) {
        module::unload(hmod as usize)
    }

    fn cuModuleGetLoadingMode [c] (out: *mut CUmoduleLoadingMode) {
        c.out(out)?.set(CUmoduleLoadingMode::CU_MODULE_LAZY_LOADING);
        Ok(())
    }

    fn cuModuleGetFunction [c] (out: *mut CUfunction, hmod: CUmodule, name: *const c_char) {
        let module = lookup::module(hmod as usize)?;
        let (out, name) = (c.out(out)?, c.string(name)?);
        out.set(module.function(&name)? as CUfunction);
        Ok(())
    }

    fn cuModuleGetFunctionCount [c] (out: *mut c_uint, hmod: CUmodule) {
        let out = c.out(out)?;
        out.set(lookup::module(hmod as usize)?.function_count() as c_uint);
        Ok(())
    }

    fn cuModuleEnumerateFunctions [c] (out: *mut CUfunction, count: c_uint, hmod: CUmodule) {
        c.out(out)?;
        let module = lookup::module(hmod as usize)?;
        for (i, function) in module.enumerate(count as usize)?.into_iter().enumerate() {
            c.set_at(out, i, function as CUfunction);
        }
        Ok(())
    }

    fn cuModuleGetGlobal_v2 [c] (
        address: *mut CUdeviceptr,
        bytes: *mut usize,
        hmod: CUmodule,
        name: *const c_char,
    ) {
        let module = lookup::module(hmod as usize)?;
        if address.is_null() && bytes.is_null() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let (found_address, found_bytes) = module.global(&c.string(name)?)?;
        set(c.out_or_null(address), found_address);
        set(c.out_or_null(bytes), found_bytes as usize);
        Ok(())
    }

    healthy fn cuModuleGetGlobal [c] (
        address: *mut CUdeviceptr_v1,
        bytes: *mut c_uint,
        hmod: CUmodule,
        name: *const c_char,
    ) {
        let module = lookup::module(hmod as usize)?;
        let (found_address, found_bytes) = module.global(&c.string(name)?)?;
        let to_32_bits = |n: u64| c_uint::try_from(n).map_err(|_| Error::CUDA_ERROR_INVALID_VALUE);
        if !address.is_null() {
            c.out(address)?.set(to_32_bits(found_address)?);
        }
        set(c.out_or_null(bytes), to_32_bits(found_bytes)?);
        Ok(())
    }
}
