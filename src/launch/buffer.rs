//! Arguments of kernels, packed into one buffer.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::{fmt, ptr};

use super::arguments::{KernelArg, KernelArgs};
use super::parameter::ParamInfo;
use crate::sys;

/// The arguments of a launch, packed as the device wants them: each at the next multiple of its alignment, as in a C
/// struct. The driver takes the whole at once (`extra`).
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
/// [`clear`](Self::clear) empties it for the next launch and keeps the memory.
#[derive(Clone, Default)]
pub struct ParamBuffer {
    /// Padding inside an argument is not initialised.
    bytes: Vec<MaybeUninit<u8>>,
    parameters: Vec<ParamInfo>,
    /// The length of `bytes`, where the driver is told to find it.
    size: usize,
}

impl ParamBuffer {
    /// An empty buffer.
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
        let place = self.make_room(size_of::<T>(), align_of::<T>());
        // SAFETY: `make_room` gives so many bytes of our own. They may lie anywhere, so the alignment is not Rust's.
        unsafe { place.cast::<T>().write_unaligned(value) };
        self
    }

    /// Adds bytes as the next argument, at a multiple of `align` from the start. This is for layouts that Rust's types
    /// do not tell; an alignment of 0 counts as 1, and one above 4096, which no parameter has, as 4096.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8], align: usize) -> &mut Self {
        // Without the upper limit the place could wrap around and lie outside the buffer.
        let place = self.make_room(bytes.len(), align.clamp(1, 4096));
        // SAFETY: `make_room` gives so many bytes of our own, and the slice lies elsewhere.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        self
    }

    /// Room for the next argument: so many bytes, at the next multiple of `align`, which is an alignment of a type of
    /// Rust's or at most 4096, and not 0. What is skipped is zero.
    #[inline]
    fn make_room(&mut self, size: usize, align: usize) -> *mut u8 {
        let len = self.bytes.len();
        // Neither overflows: `len` and `size` are sizes of what is in memory, so each is less than half the addresses,
        // and an alignment is far less than the rest.
        let offset = len.next_multiple_of(align);
        let end = offset + size;
        if end > self.bytes.capacity() {
            // More than is asked for: a buffer that is filled again and again grows once.
            self.bytes.reserve((end - len).max(128));
        }
        // SAFETY: the capacity is at least `end`, which is at least `offset`.
        let place = unsafe { self.bytes.as_mut_ptr().add(offset) };
        for skipped in len..offset {
            // SAFETY: as above.
            unsafe {
                self.bytes
                    .as_mut_ptr()
                    .add(skipped)
                    .write(MaybeUninit::new(0))
            };
        }
        // SAFETY: the capacity suffices, and a byte may be uninitialised.
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

    /// The length in bytes.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.size
    }

    /// Whether there are no arguments.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// Offset and size of each argument.
    #[inline]
    #[must_use]
    pub fn parameters(&self) -> &[ParamInfo] {
        &self.parameters
    }

    /// The list that the driver takes; good as long as the buffer is neither moved nor changed.
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

// SAFETY: the buffer makes its list of its own bytes, which it keeps where they are while it is borrowed.
unsafe impl KernelArgs for &ParamBuffer {
    type Storage = [*mut c_void; 5];

    #[inline]
    fn storage(&self) -> Self::Storage {
        self.extra()
    }

    #[inline]
    fn pointers(&self, storage: &mut Self::Storage) -> (*mut *mut c_void, *mut *mut c_void) {
        if self.is_empty() {
            // A driver takes a list that is too short as it is. It refuses to run a kernel that has parameters with
            // nothing at all.
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
