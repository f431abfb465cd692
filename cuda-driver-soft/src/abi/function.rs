//! Exports of functions: their attributes, cache and shared memory preferences, modules, names, parameters and loading
//! state.

use std::ffi::{c_char, c_int};

use cuda_driver_sys::{
    CUfunc_cache, CUfunction, CUfunction_attribute, CUfunctionLoadingState, CUmodule, CUsharedconfig,
};

use super::args::set;
use super::exports;
use crate::call::lookup;
use crate::state::error::{Error, Result};

/// Returns `CUDA_ERROR_INVALID_VALUE` for NULL. Driver 580 does so in some calls, and returns
/// `CUDA_ERROR_INVALID_HANDLE` in others.
fn not_null(hfunc: CUfunction) -> Result<()> {
    if hfunc.is_null() {
        Err(Error::CUDA_ERROR_INVALID_VALUE)
    } else {
        Ok(())
    }
}

exports! {
    fn cuFuncGetAttribute [c] (
        out: *mut c_int,
        attribute: CUfunction_attribute,
        hfunc: CUfunction,
    ) {
        let out = c.out(out)?;
        out.set(lookup::function(hfunc as usize)?.attribute(attribute.0)?);
        Ok(())
    }

    fn cuFuncSetAttribute [c] (hfunc: CUfunction, attribute: CUfunction_attribute, value: c_int) {
        lookup::function(hfunc as usize)?.set_attribute(attribute.0, value)
    }

    fn cuFuncSetCacheConfig [c] (hfunc: CUfunction, config: CUfunc_cache) {
        // A preference without effect here, which no call returns.
        lookup::function(hfunc as usize)?;
        if config.0 > 3 {
            Err(Error::CUDA_ERROR_INVALID_VALUE)
        } else {
            Ok(())
        }
    }

    fn cuFuncSetSharedMemConfig [c] (hfunc: CUfunction, config: CUsharedconfig) {
        lookup::function(hfunc as usize)?;
        if config.0 > 2 {
            Err(Error::CUDA_ERROR_INVALID_VALUE)
        } else {
            Ok(())
        }
    }

    fn cuFuncGetModule [c] (out: *mut CUmodule, hfunc: CUfunction) {
        let out = c.out(out)?;
        not_null(hfunc)?;
        out.set(lookup::function(hfunc as usize)?.module as CUmodule);
        Ok(())
    }

    fn cuFuncGetName [c] (out: *mut *const c_char, hfunc: CUfunction) {
        let out = c.out(out)?;
        not_null(hfunc)?;
        // The name is valid as long as the function's module, as the manual promises.
        out.set(lookup::function(hfunc as usize)?.name.as_ptr());
        Ok(())
    }

    fn cuFuncGetParamInfo [c] (
        hfunc: CUfunction,
        index: usize,
        offset: *mut usize,
        size: *mut usize,
    ) {
        let offset = c.out(offset)?;
        not_null(hfunc)?;
        let (found_offset, found_size) = lookup::function(hfunc as usize)?.param(index)?;
        offset.set(found_offset);
        set(c.out_or_null(size), found_size);
        Ok(())
    }

    fn cuFuncGetParamCount [c] (hfunc: CUfunction, count: *mut usize) {
        let function = lookup::function(hfunc as usize)?;
        c.out(count)?.set(function.kernel.params().len());
        Ok(())
    }

    fn cuFuncIsLoaded [c] (out: *mut CUfunctionLoadingState, hfunc: CUfunction) {
        let out = c.out(out)?;
        lookup::function(hfunc as usize)?;
        out.set(CUfunctionLoadingState::CU_FUNCTION_LOADING_STATE_LOADED);
        Ok(())
    }

    fn cuFuncLoad [c] (hfunc: CUfunction) {
        lookup::function(hfunc as usize).map(|_| ())
    }
}
