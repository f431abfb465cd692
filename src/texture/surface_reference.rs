//! Surface references, with which modules of older programs access surfaces.

use core::fmt;
use std::ffi::CString;

use crate::array::Array;
use crate::error::Error;
use crate::refusal::Refusal;
use crate::sys::{self, CUresult};
use crate::{Module, Result, checked};

/// A surface reference of a module, to which an array can be bound. CUDA deprecates references, and only the PTX of
/// older programs has them; new programs pass a [`Surface`](crate::Surface) to the kernel.
///
/// A reference of a module keeps that module loaded, unless the module is [borrowed](Module::borrow_raw).
#[derive(Clone)]
pub struct SurfaceReference {
    raw: sys::CUsurfref,
    /// `None` for a borrowed reference.
    module: Option<Module>,
}

// SAFETY: the handle may be used on any thread.
unsafe impl Send for SurfaceReference {}
// SAFETY: as above; the driver synchronises access to its objects.
unsafe impl Sync for SurfaceReference {}

impl Module {
    /// Finds a surface reference by its name ([`cuModuleGetSurfRef`](checked::module_get_surf_ref), which is
    /// deprecated).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_FOUND` if no reference has that name.
    #[inline]
    #[doc(alias = "cuModuleGetSurfRef")]
    #[track_caller]
    pub fn surface_reference(&self, name: &str) -> Result<SurfaceReference> {
        let Ok(name) = CString::new(name) else {
            // No reference has a name that contains a NUL byte.
            let code = CUresult::CUDA_ERROR_NOT_FOUND;
            return Err(Error::refused(
                code,
                sys::Function::cuModuleGetSurfRef,
                Refusal::NulByte,
            ));
        };
        // SAFETY: the module is live.
        let raw = unsafe { checked::module_get_surf_ref(self.as_raw(), &name) }?;
        Ok(SurfaceReference {
            raw,
            module: Some(self.clone()),
        })
    }
}

impl SurfaceReference {
    /// Binds an array, for all kernels of the module ([`cuSurfRefSetArray`](checked::surf_ref_set_array)).
    ///
    /// # Safety
    /// The array must not be destroyed as long as it is bound: until another array is bound, or the module is unloaded.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the array's shape does not allow
    /// [surfaces](crate::array::ArrayShape::surface).
    #[inline]
    #[doc(alias = "cuSurfRefSetArray")]
    #[track_caller]
    pub unsafe fn bind_array<T>(&self, array: &Array<T>) -> Result<()> {
        let _current = array.inner().enter()?;
        // SAFETY: both handles are live; the rest is upheld by the caller. 0 is the only valid value for the flags.
        unsafe { checked::surf_ref_set_array(self.raw, array.as_raw(), 0) }
    }

    /// Returns the handle of the bound array ([`cuSurfRefGetArray`](checked::surf_ref_get_array)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if no array is bound.
    #[inline]
    #[doc(alias = "cuSurfRefGetArray")]
    #[track_caller]
    pub fn array(&self) -> Result<sys::CUarray> {
        let context = self.module.as_ref().and_then(Module::context);
        let _current = context.map(crate::Context::enter).transpose()?;
        // SAFETY: the handle is live as long as its module.
        unsafe { checked::surf_ref_get_array(self.raw) }
    }

    /// Returns the raw handle, which is valid as long as the module is loaded.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> sys::CUsurfref {
        self.raw
    }

    /// Borrows a surface reference.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value and its clones.
    #[inline]
    #[must_use]
    pub const unsafe fn borrow_raw(raw: sys::CUsurfref) -> Self {
        Self { raw, module: None }
    }

    /// Returns the module; `None` for a borrowed reference.
    #[inline]
    #[must_use]
    pub const fn module(&self) -> Option<&Module> {
        self.module.as_ref()
    }
}

impl fmt::Debug for SurfaceReference {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SurfaceReference")
            .field("raw", &self.raw)
            .finish_non_exhaustive()
    }
}
