//! Exports of libraries and their kernels.

use std::ffi::{c_char, c_int, c_uint, c_void};

use cuda_driver_sys::{
    CUdevice, CUdeviceptr, CUfunc_cache, CUfunction, CUfunction_attribute, CUjit_option, CUkernel, CUlibrary,
    CUlibraryOption, CUmodule,
};

use super::args::{Caller, set};
use super::exports;
use super::image::{Jit, image_or_wrapper};
use super::module::read_file;
use crate::call::lookup::{current_context, healthy_if_current};
use crate::call::module;
use crate::object::jit::Log;
use crate::object::{device, library};
use crate::state::error::{Error, Result};

/// Checks library options. The options have no further effect: this driver uses no table of host functions, and always
/// keeps its own copy of the image.
fn check_options(c: Caller, options: *mut CUlibraryOption, values: *mut *mut c_void, count: c_uint) -> Result<()> {
    let mut names = c.items(options.cast_const(), count as usize)?;
    let _ = c.items(values.cast_const(), count as usize)?;
    if names.any(|o| o.name().is_none()) {
        Err(Error::CUDA_ERROR_INVALID_VALUE)
    } else {
        Ok(())
    }
}

exports! {
    // Driver 580 returns `CUDA_ERROR_INVALID_VALUE` for the kernels and functions of an image.
    fn cuLibraryGetUnifiedFunction [c] (out: *mut *mut c_void, library: CUlibrary, name: *const c_char) {
        c.out(out)?;
        c.string(name)?;
        library::get(library as usize)?;
        Err(Error::CUDA_ERROR_INVALID_VALUE)
    }

    fn cuLibraryLoadData [c] (
        out: *mut CUlibrary,
        code: *const c_void,
        jit_options: *mut CUjit_option,
        jit_values: *mut *mut c_void,
        jit_count: c_uint,
        options: *mut CUlibraryOption,
        values: *mut *mut c_void,
        count: c_uint,
    ) {
        let out = c.out(out)?;
        let mut jit = Jit::read(c, jit_count, jit_options, jit_values)?;
        check_options(c, options, values, count)?;
        let mut log = Log::default();
        out.set(library::load(image_or_wrapper(c, code)?, jit.options, &mut log)? as CUlibrary);
        jit.report(c, &log);
        Ok(())
    }

    fn cuLibraryLoadFromFile [c] (
        out: *mut CUlibrary,
        name: *const c_char,
        jit_options: *mut CUjit_option,
        jit_values: *mut *mut c_void,
        jit_count: c_uint,
        options: *mut CUlibraryOption,
        values: *mut *mut c_void,
        count: c_uint,
    ) {
        let out = c.out(out)?;
        let mut jit = Jit::read(c, jit_count, jit_options, jit_values)?;
        check_options(c, options, values, count)?;
        let mut log = Log::default();
        out.set(library::load(read_file(c, name)?, jit.options, &mut log)? as CUlibrary);
        jit.report(c, &log);
        Ok(())
    }

    fn cuLibraryUnload [c] (handle: CUlibrary) {
        module::unload_library(handle as usize)
    }

    fn cuLibraryGetKernel [c] (out: *mut CUkernel, handle: CUlibrary, name: *const c_char) {
        let (out, name) = (c.out(out)?, c.string(name)?);
        out.set(library::get(handle as usize)?.kernel(&name)? as CUkernel);
        Ok(())
    }

    fn cuLibraryGetKernelCount [c] (out: *mut c_uint, handle: CUlibrary) {
        let out = c.out(out)?;
        out.set(library::get(handle as usize)?.kernel_count() as c_uint);
        Ok(())
    }

    fn cuLibraryEnumerateKernels [c] (out: *mut CUkernel, count: c_uint, handle: CUlibrary) {
        c.out(out)?;
        let library = library::get(handle as usize)?;
        for (i, kernel) in library.enumerate(count as usize)?.into_iter().enumerate() {
            c.set_at(out, i, kernel as CUkernel);
        }
        Ok(())
    }

    fn cuLibraryGetModule [c] (out: *mut CUmodule, handle: CUlibrary) {
        let library = library::get(handle as usize)?;
        let out = c.out(out)?;
        out.set(library.module_in(&current_context()?)?.handle as CUmodule);
        Ok(())
    }

    fn cuLibraryGetGlobal [c] (
        address: *mut CUdeviceptr,
        bytes: *mut usize,
        handle: CUlibrary,
        name: *const c_char,
    ) {
        if address.is_null() && bytes.is_null() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let library = library::get(handle as usize)?;
        let name = c.string(name)?;
        let (found_address, found_bytes) = library.module_in(&current_context()?)?.global(&name)?;
        set(c.out_or_null(address), found_address);
        set(c.out_or_null(bytes), found_bytes as usize);
        Ok(())
    }

    fn cuLibraryGetManaged [c] (
        address: *mut CUdeviceptr,
        bytes: *mut usize,
        handle: CUlibrary,
        name: *const c_char,
    ) {
        if address.is_null() && bytes.is_null() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let library = library::get(handle as usize)?;
        let name = c.string(name)?;
        healthy_if_current()?;
        let (found_address, found_bytes) = library.managed(&name)?;
        set(c.out_or_null(address), found_address);
        set(c.out_or_null(bytes), found_bytes as usize);
        Ok(())
    }

    fn cuKernelGetFunction [c] (out: *mut CUfunction, handle: CUkernel) {
        let kernel = library::kernel(handle as usize)?;
        let out = c.out(out)?;
        out.set(kernel.function_in(&current_context()?)? as CUfunction);
        Ok(())
    }

    fn cuKernelGetLibrary [c] (out: *mut CUlibrary, handle: CUkernel) {
        let out = c.out(out)?;
        out.set(library::kernel(handle as usize)?.library as CUlibrary);
        Ok(())
    }

    fn cuKernelGetName [c] (out: *mut *const c_char, handle: CUkernel) {
        let out = c.out(out)?;
        // Valid as long as the library, as the manual promises.
        out.set(library::kernel(handle as usize)?.name.as_ptr());
        Ok(())
    }

    fn cuKernelGetParamInfo [c] (
        handle: CUkernel,
        index: usize,
        offset: *mut usize,
        size: *mut usize,
    ) {
        let offset = c.out(offset)?;
        let kernel = library::kernel(handle as usize)?;
        // Driver 580 needs a current context here, but not in other queries of a kernel.
        current_context()?;
        let (found_offset, found_size) = kernel
            .without_context()?
            .params()
            .nth(index)
            .ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
        offset.set(found_offset as usize);
        set(c.out_or_null(size), found_size as usize);
        Ok(())
    }

    fn cuKernelGetParamCount [c] (handle: CUkernel, count: *mut usize) {
        let kernel = library::kernel(handle as usize)?;
        c.out(count)?.set(kernel.without_context()?.params().len());
        Ok(())
    }

    fn cuKernelGetAttribute [c] (
        out: *mut c_int,
        attribute: CUfunction_attribute,
        handle: CUkernel,
        ordinal: CUdevice,
    ) {
        let kernel = library::kernel(handle as usize)?;
        let out = c.out(out)?;
        out.set(kernel.attribute(attribute.0, device::get(ordinal)?)?);
        Ok(())
    }

    fn cuKernelSetAttribute [c] (
        attribute: CUfunction_attribute,
        value: c_int,
        handle: CUkernel,
        ordinal: CUdevice,
    ) {
        library::kernel(handle as usize)?.set_attribute(attribute.0, value, device::get(ordinal)?)
    }

    fn cuKernelSetCacheConfig [c] (handle: CUkernel, config: CUfunc_cache, ordinal: CUdevice) {
        library::kernel(handle as usize)?;
        device::get(ordinal)?;
        if config.0 > 3 {
            Err(Error::CUDA_ERROR_INVALID_VALUE)
        } else {
            Ok(())
        }
    }
}
