//! Texture objects.

use core::fmt;
use core::marker::PhantomData;
use core::mem;

use super::descriptor::{ResourceView, TextureDescriptor};
use super::resource::TextureResource;
use crate::array::{Keep, Texel};
use crate::borrowed::handle;
use crate::context::Entered;
use crate::error::dropping;
use crate::{Borrowed, Context, Device, KernelArg, Result, checked, sys};

/// A texture object: kernels read an array or device memory through it, with filters and address modes.
///
/// ```
/// # use cuda_driver::{Context, Device, DeviceBuffer, LaunchConfig, Module, Stream};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// # let stream = Stream::new(&context)?;
/// use cuda_driver::array::ArrayShape;
/// use cuda_driver::sys::CUfilter_mode;
/// use cuda_driver::texture::TextureDescriptor;
/// use cuda_driver::{Array, Texture};
///
/// let array = Array::<f32>::new(&context, ArrayShape::d1(2))?;
/// array.copy_from(&[10.0, 20.0])?;
/// let smooth = TextureDescriptor::new().filter_mode(CUfilter_mode::CU_TR_FILTER_MODE_LINEAR);
/// let texture = Texture::new(&array, &smooth)?;
///
/// # const PTX: &str = "
/// # .version 7.0
/// # .target sm_52
/// # .address_size 64
/// # .visible .entry sample(.param .u64 texture, .param .u64 out) {
/// #     .reg .b64 h, o; .reg .f32 x, r<4>;
/// #     ld.param.u64 h, [texture]; ld.param.u64 o, [out];
/// #     mov.f32 x, 0f3F800000;
/// #     tex.1d.v4.f32.f32 {r0, r1, r2, r3}, [h, {x}];
/// #     st.global.f32 [o], r0;
/// #     ret;
/// # }";
/// # let module = Module::from_ptx(&context, PTX)?;
/// # let mut sampled = DeviceBuffer::<f32>::zeroed(&context, 1)?;
/// // The kernel stores `tex1D<float>(texture, 1.0f)`, which is halfway between both texels.
/// let sample = module.function("sample")?;
/// // SAFETY: the kernel takes a texture and an address, and writes one float.
/// unsafe { sample.launch(&stream, LaunchConfig::default(), (texture.handle(), sampled.ptr()))? };
/// stream.synchronize()?;
/// assert_eq!(sampled.to_vec()?, [15.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A texture of an array keeps the array alive. A texture of device memory borrows the memory.
pub struct Texture<'a> {
    raw: sys::CUtexObject,
    /// `None` if the caller makes the context current.
    context: Option<Context>,
    /// Keeps the array alive.
    keep: Option<Keep>,
    memory: PhantomData<&'a ()>,
}

/// A [`Texture`] as an argument of a kernel: a `cudaTextureObject_t` or `unsigned long long`.
///
/// It borrows the texture on the host only: keep the texture until the kernel is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct TextureHandle<'a> {
    raw: sys::CUtexObject,
    texture: PhantomData<&'a ()>,
}

// SAFETY: the handle is a 64-bit number in device code, too.
unsafe impl KernelArg for TextureHandle<'_> {}

impl TextureHandle<'_> {
    /// Returns the raw handle.
    #[inline]
    #[must_use]
    pub const fn as_raw(self) -> sys::CUtexObject {
        self.raw
    }
}

impl<'a> Texture<'a> {
    #[inline]
    const fn of(raw: sys::CUtexObject, context: Option<Context>, keep: Option<Keep>) -> Self {
        Self {
            raw,
            context,
            keep,
            memory: PhantomData,
        }
    }

    /// Creates a texture of an array, a mipmapped array, a view of device memory, or a [`TextureResource`]
    /// ([`cuTexObjectCreate`](checked::tex_object_create)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for modes or flags that do not exist or do not fit the resource, and for
    /// memory whose size or alignment the device does not support.
    #[inline]
    #[doc(alias = "cuTexObjectCreate")]
    #[track_caller]
    pub fn new(resource: impl Into<TextureResource<'a>>, descriptor: &TextureDescriptor) -> Result<Self> {
        Self::create(resource.into(), descriptor, None)
    }

    /// Creates a texture of a view of an array or mipmapped array ([`cuTexObjectCreate`](checked::tex_object_create)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a view that does not fit the resource, and the errors of
    /// [`new`](Self::new).
    #[inline]
    #[doc(alias = "cuTexObjectCreate")]
    #[track_caller]
    pub fn with_view(
        resource: impl Into<TextureResource<'a>>,
        descriptor: &TextureDescriptor,
        view: &ResourceView,
    ) -> Result<Self> {
        Self::create(resource.into(), descriptor, Some(view))
    }

    #[inline]
    #[track_caller]
    fn create(
        resource: TextureResource<'a>,
        descriptor: &TextureDescriptor,
        view: Option<&ResourceView>,
    ) -> Result<Self> {
        let TextureResource { raw, context, keep, .. } = resource;
        let view = view.map(ResourceView::as_raw);
        let current = context.as_ref().map(Context::enter).transpose()?;
        // SAFETY: the array is kept by the texture, and memory is borrowed; the driver checks the rest.
        let raw = unsafe { checked::tex_object_create(&raw, descriptor.as_raw(), view) }?;
        drop(current);
        Ok(Self::of(raw, context, keep))
    }

    /// Returns the texture as an argument of a kernel.
    #[inline]
    #[must_use]
    pub const fn handle(&self) -> TextureHandle<'_> {
        TextureHandle {
            raw: self.raw,
            texture: PhantomData,
        }
    }

    /// Returns the resource that the texture was created with
    /// ([`cuTexObjectGetResourceDesc`](checked::tex_object_get_resource_desc)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuTexObjectGetResourceDesc")]
    #[track_caller]
    pub fn resource(&self) -> Result<sys::CUDA_RESOURCE_DESC> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_object_get_resource_desc(self.raw) }
    }

    /// Returns the descriptor that the texture was created with
    /// ([`cuTexObjectGetTextureDesc`](checked::tex_object_get_texture_desc)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuTexObjectGetTextureDesc")]
    #[track_caller]
    pub fn descriptor(&self) -> Result<TextureDescriptor> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_object_get_texture_desc(self.raw) }.map(TextureDescriptor::from)
    }

    /// Returns the view that the texture was created with; its members are 0 if there was none
    /// ([`cuTexObjectGetResourceViewDesc`](checked::tex_object_get_resource_view_desc)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuTexObjectGetResourceViewDesc")]
    #[track_caller]
    pub fn view(&self) -> Result<sys::CUDA_RESOURCE_VIEW_DESC> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_object_get_resource_view_desc(self.raw) }
    }

    /// Returns the maximum number of values of type `T` that a texture of a row in device memory can have
    /// ([`cuDeviceGetTexture1DLinearMaxWidth`](checked::device_get_texture_1d_linear_max_width)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_DEVICE` if there is no such device.
    #[inline]
    #[doc(alias = "cuDeviceGetTexture1DLinearMaxWidth")]
    #[track_caller]
    pub fn linear_max_width<T: Texel>(device: Device) -> Result<usize> {
        // SAFETY: the driver checks the arguments.
        unsafe { checked::device_get_texture_1d_linear_max_width(T::FORMAT, T::CHANNELS, device.as_raw()) }
    }

    /// Destroys the texture ([`cuTexObjectDestroy`](checked::tex_object_destroy)). Dropping does the same.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuTexObjectDestroy")]
    #[track_caller]
    pub fn destroy(mut self) -> Result<()> {
        self.end()
    }

    #[inline]
    #[track_caller]
    fn end(&mut self) -> Result<()> {
        // Cleared before the call, because an interposer may panic after the texture was destroyed.
        let raw = mem::take(&mut self.raw);
        if raw == 0 {
            return Ok(());
        }
        let _current = self.enter()?;
        // SAFETY: the handle is live and owned, and this is its last use.
        unsafe { checked::tex_object_destroy(raw) }
    }

    #[inline]
    #[track_caller]
    fn enter(&self) -> Result<Option<Entered<'_>>> {
        self.context.as_ref().map(Context::enter).transpose()
    }

    /// Takes ownership of a texture in `context`.
    ///
    /// # Safety
    /// The handle must be live and belong to that context, no other code may destroy it, and its array or memory must
    /// outlive the returned value.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUtexObject, context: &Context) -> Self {
        Self::of(raw, Some(context.clone()), None)
    }

    /// Borrows a texture.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value.
    #[inline]
    #[must_use]
    pub const unsafe fn borrow_raw(raw: sys::CUtexObject) -> Borrowed<'a, Self> {
        Borrowed::new(Self::of(raw, None, None))
    }
}

handle! {
    [Texture<'_>] CUtexObject,
    leaked: "The references to the context and the array are leaked, so that they stay alive.",
    context: "of the texture; `None` for a borrowed texture, and if the resource's context is not known."
}

impl Drop for Texture<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(dropping) = dropping() {
            dropping.done(self.end());
        }
    }
}

impl fmt::Debug for Texture<'_> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Texture")
            .field("raw", &self.raw)
            .field("of_array", &self.keep.is_some())
            .finish_non_exhaustive()
    }
}
