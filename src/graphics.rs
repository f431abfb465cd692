//! Buffers and images of graphics APIs.
//!
//! A program registers them with a function of CUDA's header for the graphics API, such as `cuGraphicsGLRegisterBuffer`
//! of `cudaGL.h`. [`sys::Library::symbol`] returns the address of such a function. Tests check these calls with a fake
//! driver that records them, not on a GPU.

use core::{mem, ptr};

use crate::borrowed::handle;
use crate::error::dropping;
use crate::sys::{self, CUgraphicsMapResourceFlags};
use crate::{Borrowed, Context, Result, Stream, checked};

/// A registered buffer or image of a graphics API. Dropping unregisters it.
///
/// ```no_run
/// # fn f(context: &cuda_driver::Context, registered: cuda_driver::sys::CUgraphicsResource) -> cuda_driver::Result<()> {
/// use cuda_driver::Stream;
/// use cuda_driver::graphics::GraphicsResource;
///
/// let stream = Stream::new(context)?;
/// // SAFETY: `registered` comes from `cuGraphicsGLRegisterBuffer` in this context.
/// let buffer = unsafe { GraphicsResource::from_raw(registered, context) };
/// // SAFETY: OpenGL does not use the buffer until it is unmapped, and the address is not used afterwards.
/// unsafe {
///     GraphicsResource::map(&[&buffer], &stream)?;
///     let memory = buffer.mapped_pointer()?;
///     // … launches in `stream` with `memory.dev_ptr` …
///     GraphicsResource::unmap(&[&buffer], &stream)
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct GraphicsResource {
    raw: sys::CUgraphicsResource,
    /// `None` for a borrowed resource.
    context: Option<Context>,
}

// SAFETY: the handle may be used on any thread; the functions of OpenGL, which are bound to a thread, are not called
// here.
unsafe impl Send for GraphicsResource {}
// SAFETY: as above; the driver synchronises access to its objects.
unsafe impl Sync for GraphicsResource {}

impl GraphicsResource {
    /// Sets the access that the device has to the resource while it is mapped
    /// ([`cuGraphicsResourceSetMapFlags`](checked::graphics_resource_set_map_flags)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_ALREADY_MAPPED` if the resource is mapped.
    #[inline]
    #[doc(alias = "cuGraphicsResourceSetMapFlags")]
    #[track_caller]
    pub fn set_map_flags(&self, flags: CUgraphicsMapResourceFlags) -> Result<()> {
        // SAFETY: the handle is live, and the driver checks the flags.
        unsafe { checked::graphics_resource_set_map_flags(self.raw, flags.0) }
    }

    #[inline]
    fn handles(resources: &[&Self]) -> Vec<sys::CUgraphicsResource> {
        resources.iter().map(|resource| resource.raw).collect()
    }

    /// Maps resources for work that is queued in `stream` from then on
    /// ([`cuGraphicsMapResources`](checked::graphics_map_resources)).
    ///
    /// # Safety
    /// The graphics API must not use the resources while they are mapped. They must not be dropped while they are
    /// mapped.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_ALREADY_MAPPED` if one of them is mapped.
    #[inline]
    #[doc(alias = "cuGraphicsMapResources")]
    #[track_caller]
    pub unsafe fn map(resources: &[&Self], stream: &Stream) -> Result<()> {
        let handles = Self::handles(resources);
        // SAFETY: the handles are live; the rest is upheld by the caller.
        unsafe { checked::graphics_map_resources(&handles, stream.as_raw()) }
    }

    /// Unmaps resources after the work that is queued in `stream`
    /// ([`cuGraphicsUnmapResources`](checked::graphics_unmap_resources)).
    ///
    /// # Safety
    /// The addresses and arrays of the resources must not be used by work that is queued later.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_MAPPED` if one of them is not mapped.
    #[inline]
    #[doc(alias = "cuGraphicsUnmapResources")]
    #[track_caller]
    pub unsafe fn unmap(resources: &[&Self], stream: &Stream) -> Result<()> {
        let handles = Self::handles(resources);
        // SAFETY: the handles are live; the rest is upheld by the caller.
        unsafe { checked::graphics_unmap_resources(&handles, stream.as_raw()) }
    }

    /// Returns the address and the size in bytes of a mapped buffer, which are valid until it is unmapped
    /// ([`cuGraphicsResourceGetMappedPointer`](checked::graphics_resource_get_mapped_pointer)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_MAPPED` if the resource is not mapped, and `CUDA_ERROR_NOT_MAPPED_AS_POINTER` for an
    /// image.
    #[inline]
    #[doc(alias = "cuGraphicsResourceGetMappedPointer")]
    #[track_caller]
    pub fn mapped_pointer(&self) -> Result<checked::GraphicsResourceGetMappedPointer> {
        // SAFETY: the handle is live.
        unsafe { checked::graphics_resource_get_mapped_pointer(self.raw) }
    }

    /// Returns the array of a layer or cube face (`index`) and a mipmap level of a mapped image. It is valid until the
    /// image is unmapped ([`cuGraphicsSubResourceGetMappedArray`](checked::graphics_sub_resource_get_mapped_array)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_MAPPED` if the resource is not mapped, `CUDA_ERROR_NOT_MAPPED_AS_ARRAY` for a buffer,
    /// and `CUDA_ERROR_INVALID_VALUE` if there is no such array.
    #[inline]
    #[doc(alias = "cuGraphicsSubResourceGetMappedArray")]
    #[track_caller]
    pub fn mapped_array(&self, index: u32, level: u32) -> Result<sys::CUarray> {
        // SAFETY: the handle is live, and the driver checks index and level.
        unsafe { checked::graphics_sub_resource_get_mapped_array(self.raw, index, level) }
    }

    /// Returns the mipmapped array of a mapped image, which is valid until it is unmapped
    /// ([`cuGraphicsResourceGetMappedMipmappedArray`](checked::graphics_resource_get_mapped_mipmapped_array)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_MAPPED` if the resource is not mapped, and `CUDA_ERROR_NOT_MAPPED_AS_ARRAY` for a
    /// buffer.
    #[inline]
    #[doc(alias = "cuGraphicsResourceGetMappedMipmappedArray")]
    #[track_caller]
    pub fn mapped_mipmapped_array(&self) -> Result<sys::CUmipmappedArray> {
        // SAFETY: the handle is live.
        unsafe { checked::graphics_resource_get_mapped_mipmapped_array(self.raw) }
    }

    /// Unregisters the resource ([`cuGraphicsUnregisterResource`](checked::graphics_unregister_resource)). Dropping
    /// does the same.
    ///
    /// # Errors
    /// May return `CUDA_ERROR_UNKNOWN`, whose causes the manual does not list, or an error from earlier asynchronous
    /// work.
    #[inline]
    #[doc(alias = "cuGraphicsUnregisterResource")]
    #[track_caller]
    pub fn unregister(mut self) -> Result<()> {
        let raw = mem::replace(&mut self.raw, ptr::null_mut());
        // SAFETY: the handle is live, and null in `self`, so that `drop` does not use it.
        unsafe { self.end(raw) }
    }

    /// Unregisters the resource, if possible with its context current.
    ///
    /// # Safety
    /// The handle must be live, and not be used again.
    #[inline]
    #[track_caller]
    unsafe fn end(&self, raw: sys::CUgraphicsResource) -> Result<()> {
        let _current = self.context.as_ref().map(Context::enter);
        // SAFETY: upheld by the caller.
        unsafe { checked::graphics_unregister_resource(raw) }
    }

    /// Takes ownership of a resource that was registered in `context`.
    ///
    /// # Safety
    /// The handle must be live and belong to that context, and no other code may unregister it. The graphics API's
    /// object must outlive the returned value.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUgraphicsResource, context: &Context) -> Self {
        Self {
            raw,
            context: Some(context.clone()),
        }
    }

    /// Borrows a resource.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value.
    #[inline]
    #[must_use]
    pub const unsafe fn borrow_raw<'a>(raw: sys::CUgraphicsResource) -> Borrowed<'a, Self> {
        Borrowed::new(Self { raw, context: None })
    }
}

handle! {
    [GraphicsResource] CUgraphicsResource,
    leaked: "The reference to the context is leaked, so the context stays alive.",
    context: "of the resource; `None` for a borrowed resource."
}

impl Drop for GraphicsResource {
    #[inline]
    fn drop(&mut self) {
        if !self.raw.is_null() {
            if let Some(dropping) = dropping() {
                // SAFETY: the handle is live, and this is its last use.
                dropping.done(unsafe { self.end(self.raw) });
            }
        }
    }
}
