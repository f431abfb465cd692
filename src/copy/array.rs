//! Copies of whole arrays.

use super::copy_3d::Copy3d;
use crate::array::Array;
use crate::error::Error;
use crate::refusal::Refusal;
use crate::sys::{CUresult, Function};
use crate::{Download, Result, Upload};

impl<T> Array<T> {
    /// Copies a slice with one value for each texel to the array, row by row ([`Copy3d`]).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the slice has another length, and the errors of [`Copy3d::run`].
    #[inline]
    #[track_caller]
    pub fn copy_from(&self, values: &[T]) -> Result<()>
    where
        T: Upload,
    {
        let size = self.whole(values.len())?;
        Copy3d::new(values, self, size).run()
    }

    /// Copies all texels to a slice with one value for each, row by row ([`Copy3d`]).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the slice has another length, and the errors of [`Copy3d::run`].
    #[inline]
    #[track_caller]
    pub fn copy_to(&self, values: &mut [T]) -> Result<()>
    where
        T: Download,
    {
        let size = self.whole(values.len())?;
        Copy3d::new(self, values, size).run()
    }

    /// Copies all texels to the host, row by row ([`Copy3d`]).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough host memory, and the errors of [`Copy3d::run`].
    #[inline]
    #[track_caller]
    pub fn to_vec(&self) -> Result<Vec<T>>
    where
        T: Download,
    {
        let size = self.size()?;
        let mut values = Vec::new();
        let count = texels(size).unwrap_or(usize::MAX);
        if values.try_reserve_exact(count).is_err() {
            let code = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
            return Err(Error::refused(code, Function::cuMemcpy3D_v2, Refusal::HostMemory));
        }
        values.resize(count, T::zeroed());
        Copy3d::new(self, &mut values, size).run()?;
        Ok(values)
    }

    /// Returns the size of the array, or `CUDA_ERROR_INVALID_VALUE` if it does not have `count` texels.
    #[inline]
    #[track_caller]
    fn whole(&self, count: usize) -> Result<[usize; 3]> {
        let size = self.size()?;
        if texels(size) != Some(count) {
            let code = CUresult::CUDA_ERROR_INVALID_VALUE;
            return Err(Error::refused(code, Function::cuMemcpy3D_v2, Refusal::Texels));
        }
        Ok(size)
    }
}

/// Returns the number of texels of an array; `None` if it does not fit into a `usize`.
#[inline]
fn texels([width, height, depth]: [usize; 3]) -> Option<usize> {
    width.checked_mul(height)?.checked_mul(depth)
}
