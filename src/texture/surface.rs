//! Surface objects.

use core::fmt;
use core::marker::PhantomData;
use core::mem;

use crate::array::{Array, Keep};
use crate::borrowed::handle;
use crate::context::Entered;
use crate::error::dropping;
use crate::sys::{self, CUresourcetype};
use crate::{Borrowed, Context, KernelArg, Result, checked};

/// A surface object: kernels read and write the texels of an array through it.
///
/// ```
/// # use cuda_driver::{Context, Device, LaunchConfig, Module, Stream};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// # let stream = Stream::new(&context)?;
/// use cuda_driver::array::ArrayShape;
/// use cuda_driver::{Array, Surface};
///
/// let array = Array::<u32>::new(&context, ArrayShape::d1(4).surface())?;
/// array.copy_from(&[0; 4])?;
/// let surface = Surface::new(&array)?;
///
/// # const PTX: &str = "
/// # .version 7.0
/// # .target sm_52
/// # .address_size 64
/// # .visible .entry store(.param .u64 surface) {
/// #     .reg .b64 h; .reg .b32 x, v;
/// #     ld.param.u64 h, [surface];
/// #     mov.u32 x, 8; mov.u32 v, 7;
/// #     sust.b.1d.b32.trap [h, {x}], v;
/// #     ret;
/// # }";
/// # let module = Module::from_ptx(&context, PTX)?;
/// // The kernel does `surf1Dwrite(7u, surface, 2 * sizeof(unsigned))`: coordinates are in bytes.
/// let store = module.function("store")?;
/// // SAFETY: the kernel takes a surface of at least three numbers.
/// unsafe { store.launch(&stream, LaunchConfig::default(), (surface.handle(),))? };
/// stream.synchronize()?;
/// assert_eq!(array.to_vec()?, [0, 0, 7, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A surface keeps its array alive.
pub struct Surface {
    raw: sys::CUsurfObject,
    /// `None` if the caller makes the context current.
    context: Option<Context>,
    /// Keeps the array alive.
    keep: Option<Keep>,
}

/// A [`Surface`] as an argument of a kernel: a `cudaSurfaceObject_t` or `unsigned long long`.
///
/// It borrows the surface on the host only: keep the surface until the kernel is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct SurfaceHandle<'a> {
    raw: sys::CUsurfObject,
    surface: PhantomData<&'a ()>,
}

// SAFETY: the handle is a 64-bit number in device code, too.
unsafe impl KernelArg for SurfaceHandle<'_> {}

impl SurfaceHandle<'_> {
    /// Returns the raw handle.
    #[inline]
    #[must_use]
    pub const fn as_raw(self) -> sys::CUsurfObject {
        self.raw
    }
}

impl Surface {
    /// Creates a surface of an array, or of a level of a mipmapped array
    /// ([`cuSurfObjectCreate`](checked::surf_object_create)). The array's shape must allow
    /// [surfaces](crate::array::ArrayShape::surface).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an array that cannot be a surface, such as one of block-compressed
    /// texels. Driver 580 does not check that the array's shape allows surfaces.
    #[inline]
    #[doc(alias = "cuSurfObjectCreate")]
    #[track_caller]
    pub fn new<T>(array: &Array<T>) -> Result<Self> {
        let handle = sys::CUDA_RESOURCE_DESC_st__res__array { hArray: array.as_raw() };
        let resource = sys::CUDA_RESOURCE_DESC {
            resType: CUresourcetype::CU_RESOURCE_TYPE_ARRAY,
            res: sys::CUDA_RESOURCE_DESC_st__res { array: handle },
            flags: 0,
        };
        let _current = array.context().map(Context::enter).transpose()?;
        // SAFETY: the array is kept by the surface.
        let raw = unsafe { checked::surf_object_create(&resource) }?;
        Ok(Self {
            raw,
            context: array.context().cloned(),
            keep: Some(array.keep()),
        })
    }

    /// Returns the surface as an argument of a kernel.
    #[inline]
    #[must_use]
    pub const fn handle(&self) -> SurfaceHandle<'_> {
        SurfaceHandle {
            raw: self.raw,
            surface: PhantomData,
        }
    }

    /// Returns the resource that the surface was created with
    /// ([`cuSurfObjectGetResourceDesc`](checked::surf_object_get_resource_desc)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuSurfObjectGetResourceDesc")]
    #[track_caller]
    pub fn resource(&self) -> Result<sys::CUDA_RESOURCE_DESC> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::surf_object_get_resource_desc(self.raw) }
    }

    /// Destroys the surface ([`cuSurfObjectDestroy`](checked::surf_object_destroy)). Dropping does the same.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuSurfObjectDestroy")]
    #[track_caller]
    pub fn destroy(mut self) -> Result<()> {
        self.end()
    }

    #[inline]
    #[track_caller]
    fn end(&mut self) -> Result<()> {
        // Cleared before the call, because an interposer may panic after the surface was destroyed.
        let raw = mem::take(&mut self.raw);
        if raw == 0 {
            return Ok(());
        }
        let _current = self.enter()?;
        // SAFETY: the handle is live and owned, and this is its last use.
        unsafe { checked::surf_object_destroy(raw) }
    }

    #[inline]
    #[track_caller]
    fn enter(&self) -> Result<Option<Entered<'_>>> {
        self.context.as_ref().map(Context::enter).transpose()
    }

    /// Takes ownership of a surface in `context`.
    ///
    /// # Safety
    /// The handle must be live and belong to that context, no other code may destroy it, and its array must outlive the
    /// returned value.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUsurfObject, context: &Context) -> Self {
        Self {
            raw,
            context: Some(context.clone()),
            keep: None,
        }
    }

    /// Borrows a surface.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value.
    #[inline]
    #[must_use]
    pub const unsafe fn borrow_raw<'a>(raw: sys::CUsurfObject) -> Borrowed<'a, Self> {
        Borrowed::new(Self {
            raw,
            context: None,
            keep: None,
        })
    }
}

handle! {
    [Surface] CUsurfObject,
    leaked: "The references to the context and the array are leaked, so that they stay alive.",
    context: "of the surface; `None` for a borrowed surface, and if the array's context is not known."
}

impl Drop for Surface {
    #[inline]
    fn drop(&mut self) {
        if let Some(dropping) = dropping() {
            dropping.done(self.end());
        }
    }
}

impl fmt::Debug for Surface {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surface")
            .field("raw", &self.raw)
            .field("of_array", &self.keep.is_some())
            .finish_non_exhaustive()
    }
}
