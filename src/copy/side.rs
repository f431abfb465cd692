//! The two sides of a copy.

use core::ffi::c_void;
use core::marker::PhantomData;
use core::{fmt, mem};

use crate::array::Array;
use crate::{Context, DeviceBuffer, DevicePtr, DeviceSlice, DeviceSliceMut, Download, PitchedBuffer, Upload};

/// The source of a [`Copy3d`](super::Copy3d): made from a slice, device memory or an array.
pub struct Source<'a, T> {
    pub(super) side: Side<'a>,
    values: PhantomData<&'a [T]>,
}

/// The target of a [`Copy3d`](super::Copy3d): made from a slice, device memory or an array.
pub struct Target<'a, T> {
    pub(super) side: Side<'a>,
    values: PhantomData<&'a mut [T]>,
}

/// Memory and the place of the copied box in it.
pub(super) struct Side<'a> {
    pub(super) memory: Memory<'a>,
    /// The first value, row and slice.
    pub(super) offset: [usize; 3],
    /// Bytes from one row to the next; 0 without gaps.
    pub(super) pitch: usize,
    /// Rows from one slice to the next; 0 without gaps.
    pub(super) rows: usize,
}

/// The memory of a side, borrowed by its [`Source`] or [`Target`].
pub(super) enum Memory<'a> {
    /// Address and bytes of a slice.
    Host(*mut c_void, usize),
    /// Address and bytes of device memory, and its context if that is known.
    Device(DevicePtr, usize, Option<&'a Context>),
    Array(&'a crate::array::Inner),
}

impl<'a> Side<'a> {
    #[inline]
    const fn of(memory: Memory<'a>) -> Self {
        Self {
            memory,
            offset: [0; 3],
            pitch: 0,
            rows: 0,
        }
    }
}

impl<'a, T> Source<'a, T> {
    #[inline]
    const fn of(memory: Memory<'a>) -> Self {
        Self {
            side: Side::of(memory),
            values: PhantomData,
        }
    }
}

impl<'a, T> Target<'a, T> {
    #[inline]
    const fn of(memory: Memory<'a>) -> Self {
        Self {
            side: Side::of(memory),
            values: PhantomData,
        }
    }
}

impl fmt::Debug for Side<'_> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = match self.memory {
            Memory::Host(..) => "host",
            Memory::Device(..) => "device",
            Memory::Array(_) => "array",
        };
        f.debug_struct(memory)
            .field("offset", &self.offset)
            .field("pitch", &self.pitch)
            .field("rows", &self.rows)
            .finish()
    }
}

impl<T> fmt::Debug for Source<'_, T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.side.fmt(f)
    }
}

impl<T> fmt::Debug for Target<'_, T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.side.fmt(f)
    }
}

impl<'a, T: Upload> From<&'a [T]> for Source<'a, T> {
    #[inline]
    fn from(values: &'a [T]) -> Self {
        // Copies only read through this pointer.
        let address = values.as_ptr().cast_mut().cast();
        Self::of(Memory::Host(address, size_of_val(values)))
    }
}

impl<'a, T: Upload, const N: usize> From<&'a [T; N]> for Source<'a, T> {
    #[inline]
    fn from(values: &'a [T; N]) -> Self {
        values[..].into()
    }
}

impl<'a, T: Upload> From<&'a Vec<T>> for Source<'a, T> {
    #[inline]
    fn from(values: &'a Vec<T>) -> Self {
        values[..].into()
    }
}

impl<'a, T> From<DeviceSlice<'a, T>> for Source<'a, T> {
    #[inline]
    fn from(values: DeviceSlice<'a, T>) -> Self {
        Self::of(Memory::Device(values.ptr(), values.size_bytes(), values.context()))
    }
}

impl<'a, T> From<&'a DeviceSliceMut<'_, T>> for Source<'a, T> {
    #[inline]
    fn from(values: &'a DeviceSliceMut<'_, T>) -> Self {
        values.as_slice().into()
    }
}

impl<'a, T> From<&'a DeviceBuffer<T>> for Source<'a, T> {
    #[inline]
    fn from(values: &'a DeviceBuffer<T>) -> Self {
        values.as_slice().into()
    }
}

/// Sets the pitch, and the number of rows of a slice.
impl<'a, T> From<&'a PitchedBuffer<T>> for Source<'a, T> {
    #[inline]
    fn from(values: &'a PitchedBuffer<T>) -> Self {
        let mut source = Self::of(pitched(values));
        (source.side.pitch, source.side.rows) = (values.pitch(), values.height());
        source
    }
}

impl<'a, T> From<&'a Array<T>> for Source<'a, T> {
    #[inline]
    fn from(array: &'a Array<T>) -> Self {
        Self::of(Memory::Array(array.inner()))
    }
}

impl<'a, T: Download> From<&'a mut [T]> for Target<'a, T> {
    #[inline]
    fn from(values: &'a mut [T]) -> Self {
        let bytes = mem::size_of_val(values);
        Self::of(Memory::Host(values.as_mut_ptr().cast(), bytes))
    }
}

impl<'a, T: Download, const N: usize> From<&'a mut [T; N]> for Target<'a, T> {
    #[inline]
    fn from(values: &'a mut [T; N]) -> Self {
        (&mut values[..]).into()
    }
}

impl<'a, T: Download> From<&'a mut Vec<T>> for Target<'a, T> {
    #[inline]
    fn from(values: &'a mut Vec<T>) -> Self {
        (&mut values[..]).into()
    }
}

impl<'a, T> From<DeviceSliceMut<'a, T>> for Target<'a, T> {
    #[inline]
    fn from(values: DeviceSliceMut<'a, T>) -> Self {
        Self::of(Memory::Device(values.ptr(), values.size_bytes(), values.context()))
    }
}

impl<'a, T> From<&'a mut DeviceBuffer<T>> for Target<'a, T> {
    #[inline]
    fn from(values: &'a mut DeviceBuffer<T>) -> Self {
        values.as_mut_slice().into()
    }
}

/// Sets the pitch, and the number of rows of a slice.
impl<'a, T> From<&'a mut PitchedBuffer<T>> for Target<'a, T> {
    #[inline]
    fn from(values: &'a mut PitchedBuffer<T>) -> Self {
        let mut target = Self::of(pitched(values));
        (target.side.pitch, target.side.rows) = (values.pitch(), values.height());
        target
    }
}

impl<'a, T> From<&'a Array<T>> for Target<'a, T> {
    #[inline]
    fn from(array: &'a Array<T>) -> Self {
        Self::of(Memory::Array(array.inner()))
    }
}

/// Returns the memory of all rows.
#[inline]
fn pitched<T>(values: &PitchedBuffer<T>) -> Memory<'_> {
    let bytes = values.pitch().saturating_mul(values.height());
    Memory::Device(values.ptr(), bytes, Some(values.context()))
}
