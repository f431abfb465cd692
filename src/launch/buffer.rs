//! Packed arguments of kernels.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::{fmt, ptr};

use super::arguments::{KernelArg, KernelArgs};
use super::parameter::ParamInfo;
use crate::sys;

/// The arguments of a launch, packed into one buffer: each at the next multiple of its alignment, as in a C struct. The
/// driver takes the whole buffer through the parameter `extra`.
///
/// ```
/// use cuda_driver::{DevicePtr, ParamBuffer};
///
/// let mut buffer = ParamBuffer::new();
/// buffer.push(7u8).push(DevicePtr::null()).push(1.5f32);
/// assert_eq!(buffer.len(), 20);
/// assert_eq!(buffer.parameters()[1].offset, 8);
/// ```
///
/// [`clear`](Self::clear) empties the buffer for the next launch and keeps its memory.
#[derive(Clone, Default)]
pub struct ParamBuffer {
    /// The arguments. Padding inside an argument is not initialised.
    bytes: Vec<MaybeUninit<u8>>,
    parameters: Vec<ParamInfo>,
    /// The length of `bytes`; the `extra` list points to this field.
    size: usize,
}

impl ParamBuffer {
    /// Returns an empty buffer.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            parameters: Vec::new(),
            size: 0,
        }
    }

    /// Adds the next argument.
    #[inline]
    pub fn push<T: KernelArg>(&mut self, value: T) -> &mut Self {
        let place = self.make_room(T::LAYOUT.size(), T::LAYOUT.align());
        let value = (&raw const value).cast();
        // SAFETY: `make_room` returns that many writable bytes, and the value has at least as many.
        unsafe { ptr::copy_nonoverlapping(value, place, T::LAYOUT.size()) };
        self
    }

    /// Adds bytes as the next argument, at a multiple of `align` from the start, for layouts that no Rust type has. An
    /// alignment of 0 counts as 1, and one above 4096, which no parameter has, counts as 4096.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8], align: usize) -> &mut Self {
        // Without the upper limit, the offset could wrap around and be outside the buffer.
        let place = self.make_room(bytes.len(), align.clamp(1, 4096));
        // SAFETY: `make_room` returns that many writable bytes, which do not overlap the slice.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        self
    }

    /// Adds `size` bytes at the next multiple of `align` and returns their address. `align` must be the alignment of a
    /// Rust type, or from 1 to 4096. Skipped bytes are zeroed.
    #[inline]
    fn make_room(&mut self, size: usize, align: usize) -> *mut u8 {
        let len = self.bytes.len();
        // No overflow: `len` and `size` are sizes of objects in memory, so each is less than half of the address space,
        // and alignments are small.
        let offset = len.next_multiple_of(align);
        let end = offset + size;
        if end > self.bytes.capacity() {
            // Reserves at least 128 bytes, so that most buffers grow only once.
            self.bytes.reserve((end - len).max(128));
        }
        // SAFETY: the capacity is at least `end`, which is at least `offset`.
        let place = unsafe { self.bytes.as_mut_ptr().add(offset) };
        for skipped in len..offset {
            // SAFETY: as above.
            unsafe { self.bytes.as_mut_ptr().add(skipped).write(MaybeUninit::new(0)) };
        }
        // SAFETY: the capacity is sufficient, and `MaybeUninit` bytes may be uninitialised.
        unsafe { self.bytes.set_len(end) };
        self.parameters.push(ParamInfo { offset, size });
        self.size = end;
        place.cast()
    }

    /// Removes all arguments.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.parameters.clear();
        self.size = 0;
    }

    /// Returns the length in bytes.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.size
    }

    /// Returns true if the buffer has no bytes.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// Returns the offset and size of each argument.
    #[inline]
    #[must_use]
    pub fn parameters(&self) -> &[ParamInfo] {
        &self.parameters
    }

    /// Returns the `extra` list, which is valid until the buffer is moved or changed.
    #[inline]
    fn extra(&self) -> [*mut c_void; 5] {
        [
            sys::CU_LAUNCH_PARAM_BUFFER_POINTER,
            self.bytes.as_ptr().cast_mut().cast(),
            sys::CU_LAUNCH_PARAM_BUFFER_SIZE,
            ptr::from_ref(&self.size).cast_mut().cast(),
            sys::CU_LAUNCH_PARAM_END,
        ]
    }
}

// SAFETY: the list points to the buffer's bytes and size, which do not move while the buffer is borrowed.
unsafe impl KernelArgs for &ParamBuffer {
    type Storage = [*mut c_void; 5];

    #[inline]
    fn storage(&self) -> Self::Storage {
        self.extra()
    }

    #[inline]
    fn pointers(&self, storage: &mut Self::Storage) -> (*mut *mut c_void, *mut *mut c_void) {
        if self.is_empty() {
            // The driver does not notice that an empty buffer is too short for a kernel with parameters, but rejects
            // such a launch if both pointers are null.
            return (ptr::null_mut(), ptr::null_mut());
        }
        (ptr::null_mut(), storage.as_mut_ptr())
    }

    #[inline]
    fn layout(&self) -> Option<Vec<ParamInfo>> {
        Some(self.parameters().to_vec())
    }

    #[inline]
    fn is_packed(&self) -> bool {
        true
    }
}

impl fmt::Debug for ParamBuffer {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParamBuffer")
            .field("len", &self.size)
            .field("parameters", &self.parameters)
            .finish()
    }
}
