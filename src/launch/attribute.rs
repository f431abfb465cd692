//! Attributes of launches.

use core::fmt;
use core::marker::PhantomData;

use super::config::Dim3;
use crate::sys::{
    self, CUaccessPolicyWindow, CUaccessProperty, CUclusterSchedulingPolicy, CUlaunchAttribute, CUlaunchAttributeID,
    CUlaunchAttributePortableClusterMode, CUlaunchAttributeValue, CUlaunchAttributeValue_union__clusterDim,
    CUlaunchAttributeValue_union__launchCompletionEvent, CUlaunchAttributeValue_union__preferredClusterDim,
    CUlaunchAttributeValue_union__programmaticEvent, CUlaunchMemSyncDomain, CUlaunchMemSyncDomainMap,
    CUsharedMemoryMode,
};
use crate::{DevicePtr, Event};

/// An attribute of a launch, for [`Function::launch_with`](crate::Function::launch_with) and the occupancy of clusters.
///
/// The documentation of each attribute's constructor names the CUDA version that introduced the attribute. Calls with
/// the attribute return `CUDA_ERROR_NOT_SUPPORTED` if the driver is older. The versions of attributes that this crate
/// does not know are not checked.
///
/// ```
/// use cuda_driver::LaunchAttribute;
///
/// let attributes = [LaunchAttribute::cluster(2), LaunchAttribute::priority(-1)];
/// # assert_eq!(format!("{:?}", attributes[1]), "LaunchAttribute(CU_LAUNCH_ATTRIBUTE_PRIORITY)");
/// ```
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct LaunchAttribute<'a> {
    raw: CUlaunchAttribute,
    /// Keeps the borrow of the event whose handle is in `raw`.
    event: PhantomData<&'a Event>,
}

// SAFETY: an attribute is a value; an event in it may be used on any thread.
unsafe impl Send for LaunchAttribute<'_> {}
// SAFETY: as above.
unsafe impl Sync for LaunchAttribute<'_> {}

impl<'a> LaunchAttribute<'a> {
    #[inline]
    const fn new(id: CUlaunchAttributeID, value: CUlaunchAttributeValue) -> Self {
        Self {
            raw: CUlaunchAttribute { id, pad: [0; 4], value },
            event: PhantomData,
        }
    }

    /// Groups the blocks in clusters of this size, which must divide the grid in each dimension. Needs CUDA 11.8 and
    /// compute capability 9.0.
    #[inline]
    #[must_use]
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION")]
    pub fn cluster(size: impl Into<Dim3>) -> Self {
        let Dim3 { x, y, z } = size.into();
        let cluster = CUlaunchAttributeValue_union__clusterDim { x, y, z };
        Self::new(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
            CUlaunchAttributeValue { clusterDim: cluster },
        )
    }

    /// Lets the driver use clusters of this size, which must divide the grid and be a multiple of the size of
    /// [`cluster`](Self::cluster) in each dimension. That attribute is needed, too. Needs CUDA 12.8.
    #[inline]
    #[must_use]
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION")]
    pub fn preferred_cluster(size: impl Into<Dim3>) -> Self {
        let Dim3 { x, y, z } = size.into();
        let preferred = CUlaunchAttributeValue_union__preferredClusterDim { x, y, z };
        Self::new(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
            CUlaunchAttributeValue {
                preferredClusterDim: preferred,
            },
        )
    }

    /// Chooses how clusters are distributed over the multiprocessors. Needs CUDA 11.8.
    #[inline]
    #[must_use]
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE")]
    pub const fn cluster_scheduling(policy: CUclusterSchedulingPolicy) -> Self {
        Self::new(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
            CUlaunchAttributeValue {
                clusterSchedulingPolicyPreference: policy,
            },
        )
    }

    /// Allows or forbids clusters of a size that not every device of the architecture supports. Needs CUDA 13.2.
    #[inline]
    #[must_use]
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE")]
    pub const fn portable_cluster_size(mode: CUlaunchAttributePortableClusterMode) -> Self {
        Self::new(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE,
            CUlaunchAttributeValue {
                portableClusterSizeMode: mode,
            },
        )
    }

    /// Runs all blocks at once, so that they may wait for each other, as
    /// [`launch_cooperative`](crate::Function::launch_cooperative) does. Needs CUDA 11.8.
    #[inline]
    #[must_use]
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_COOPERATIVE")]
    pub const fn cooperative() -> Self {
        Self::new(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
            CUlaunchAttributeValue { cooperative: 1 },
        )
    }

    /// Sets the priority; a lower number is a higher priority. A number outside of
    /// [`Context::stream_priority_range`](crate::Context::stream_priority_range) is clamped. Needs CUDA 11.8.
    #[inline]
    #[must_use]
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_PRIORITY")]
    pub const fn priority(priority: i32) -> Self {
        Self::new(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY,
            CUlaunchAttributeValue { priority },
        )
    }

    /// Lets the kernel start before the previous kernel of the stream is done: when all blocks of that kernel have
    /// executed `griddepcontrol.launch_dependents` or ended. The kernel must execute `griddepcontrol.wait` before it
    /// uses that kernel's results. Needs CUDA 11.8.
    #[inline]
    #[must_use]
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION")]
    pub const fn programmatic_serialization() -> Self {
        Self::new(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            CUlaunchAttributeValue {
                programmaticStreamSerializationAllowed: 1,
            },
        )
    }

    /// Records an event that is done when all blocks have executed `griddepcontrol.launch_dependents` or ended; with
    /// `at_block_start`, when all blocks have started. The event must have been created with `CU_EVENT_DISABLE_TIMING`,
    /// and must not be [shared](Event::interprocess) with other processes. Needs CUDA 11.8.
    #[inline]
    #[must_use]
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT")]
    pub fn programmatic_event(event: &'a Event, at_block_start: bool) -> Self {
        let event = CUlaunchAttributeValue_union__programmaticEvent {
            event: event.as_raw(),
            flags: 0,
            triggerAtBlockStart: at_block_start.into(),
        };
        Self::new(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
            CUlaunchAttributeValue {
                programmaticEvent: event,
            },
        )
    }

    /// Records an event that is done when all blocks have started. The event must have been created with
    /// `CU_EVENT_DISABLE_TIMING`, and must not be [shared](Event::interprocess) with other processes. Needs CUDA 12.3.
    #[inline]
    #[must_use]
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT")]
    pub fn completion_event(event: &'a Event) -> Self {
        let event = CUlaunchAttributeValue_union__launchCompletionEvent {
            event: event.as_raw(),
            flags: 0,
        };
        Self::new(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
            CUlaunchAttributeValue {
                launchCompletionEvent: event,
            },
        )
    }

    /// Sets how the kernel's accesses to a range of memory use the L2 cache. Needs CUDA 11.8.
    #[inline]
    #[must_use]
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW")]
    pub const fn access_policy(window: AccessPolicyWindow) -> Self {
        Self::new(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
            CUlaunchAttributeValue {
                accessPolicyWindow: window.raw(),
            },
        )
    }

    /// Chooses the domain of the kernel's memory operations; its fences need not wait for operations of other domains.
    /// Needs CUDA 12.0.
    #[inline]
    #[must_use]
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN")]
    pub const fn mem_sync_domain(domain: CUlaunchMemSyncDomain) -> Self {
        Self::new(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
            CUlaunchAttributeValue { memSyncDomain: domain },
        )
    }

    /// Maps the two domains of [`mem_sync_domain`](Self::mem_sync_domain) to numbers below
    /// [`Attributes::mem_sync_domain_count`](crate::device::Attributes::mem_sync_domain_count). Needs CUDA 12.0.
    #[inline]
    #[must_use]
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP")]
    pub const fn mem_sync_domain_map(default: u8, remote: u8) -> Self {
        let map = CUlaunchMemSyncDomainMap {
            default_: default,
            remote,
        };
        Self::new(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
            CUlaunchAttributeValue { memSyncDomainMap: map },
        )
    }

    /// Sets the preferred size of a multiprocessor's shared memory, in percent of
    /// [`Attributes::max_shared_memory_per_multiprocessor`](crate::device::Attributes::max_shared_memory_per_multiprocessor).
    /// The L1 cache has the rest of the memory that both share. Needs CUDA 12.5.
    #[inline]
    #[must_use]
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT")]
    pub const fn shared_memory_carveout(percent: u32) -> Self {
        Self::new(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
            CUlaunchAttributeValue {
                sharedMemCarveout: percent,
            },
        )
    }

    /// Sets the limit of the dynamic shared memory:
    /// [`Attributes::max_shared_memory_per_block`](crate::device::Attributes::max_shared_memory_per_block),
    /// [`Attributes::max_shared_memory_per_block_optin`](crate::device::Attributes::max_shared_memory_per_block_optin),
    /// or even more, which leaves less L1 cache. Needs CUDA 13.2.
    #[inline]
    #[must_use]
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE")]
    pub const fn shared_memory_mode(mode: CUsharedMemoryMode) -> Self {
        Self::new(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE,
            CUlaunchAttributeValue { sharedMemoryMode: mode },
        )
    }

    /// Schedules blocks so as to make better use of NVLink. Needs CUDA 13.0.
    #[inline]
    #[must_use]
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING")]
    pub const fn nvlink_scheduling() -> Self {
        Self::new(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING,
            CUlaunchAttributeValue {
                nvlinkUtilCentricScheduling: 1,
            },
        )
    }

    /// Returns the attribute with the contents of C's record.
    ///
    /// # Safety
    /// The value must be valid for the attribute, and its handles for `'a`. The attribute must not be
    /// `CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE`: the driver writes to its value, which launches only borrow.
    /// Use [`checked::launch_kernel_ex`](crate::checked::launch_kernel_ex) for it.
    #[inline]
    #[must_use]
    pub const unsafe fn from_raw(raw: CUlaunchAttribute) -> Self {
        Self {
            raw,
            event: PhantomData,
        }
    }

    /// Returns C's record.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> &CUlaunchAttribute {
        &self.raw
    }

    /// Returns the number of the attribute.
    #[inline]
    pub const fn id(&self) -> CUlaunchAttributeID {
        self.raw.id
    }

    /// Returns the CUDA version that introduced the attribute; 0 for an unknown one.
    #[inline]
    pub(crate) const fn since(&self) -> u32 {
        match self.raw.id {
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP
            | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN => 12000,
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT => 12030,
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE => 12040,
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => 12050,
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION => 12080,
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING => 13000,
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE
            | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE => 13020,
            // The attributes of CUDA 11.8. Drivers have `cuLaunchKernelEx` from CUDA 11.6 on, but may not know all of
            // these.
            id if id.0 <= CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY.0 => 11080,
            _ => 0,
        }
    }
}

impl fmt::Debug for LaunchAttribute<'_> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LaunchAttribute").field(&self.raw.id).finish()
    }
}

/// A range of memory with a policy of the L2 cache: a part of the accesses, chosen at random, is treated as `hit`, the
/// others as `miss`.
///
/// The size is at most
/// [`Attributes::max_access_policy_window_size`](crate::device::Attributes::max_access_policy_window_size).
/// [`Context::set_limit`](crate::Context::set_limit) of `CU_LIMIT_PERSISTING_L2_CACHE_SIZE` reserves a part of the
/// cache for persisting accesses, and [`Context::reset_persisting_l2_cache`](crate::Context::reset_persisting_l2_cache)
/// makes all persisting lines of the cache normal again.
#[derive(Debug, Clone, Copy)]
pub struct AccessPolicyWindow {
    /// The start of the range.
    pub ptr: DevicePtr,
    /// The size of the range in bytes.
    pub bytes: usize,
    /// The part of the accesses that is treated as `hit`, from 0 to 1.
    pub hit_ratio: f32,
    /// The kind of the accesses in that part.
    pub hit: CUaccessProperty,
    /// The kind of all other accesses in the range; not `CU_ACCESS_PROPERTY_PERSISTING`.
    pub miss: CUaccessProperty,
}

impl AccessPolicyWindow {
    /// Returns a window in which all accesses are persisting.
    #[inline]
    #[must_use]
    pub const fn persisting(ptr: DevicePtr, bytes: usize) -> Self {
        Self {
            ptr,
            bytes,
            hit_ratio: 1.0,
            hit: CUaccessProperty::CU_ACCESS_PROPERTY_PERSISTING,
            miss: CUaccessProperty::CU_ACCESS_PROPERTY_STREAMING,
        }
    }

    /// Returns C's record.
    #[inline]
    #[must_use]
    pub const fn raw(self) -> CUaccessPolicyWindow {
        CUaccessPolicyWindow {
            base_ptr: core::ptr::without_provenance_mut(self.ptr.as_raw() as usize),
            num_bytes: self.bytes,
            hitRatio: self.hit_ratio,
            hitProp: self.hit,
            missProp: self.miss,
        }
    }
}

/// Returns C's description of a launch with attributes. It points to the attributes, which the driver only reads.
#[inline]
pub(crate) const fn described(
    config: &super::LaunchConfig,
    attributes: &[LaunchAttribute<'_>],
    stream: sys::CUstream,
) -> sys::CUlaunchConfig {
    let super::LaunchConfig {
        grid,
        block,
        dynamic_shared_bytes,
    } = *config;
    sys::CUlaunchConfig {
        gridDimX: grid.x,
        gridDimY: grid.y,
        gridDimZ: grid.z,
        blockDimX: block.x,
        blockDimY: block.y,
        blockDimZ: block.z,
        sharedMemBytes: dynamic_shared_bytes,
        hStream: stream,
        attrs: attributes.as_ptr().cast_mut().cast(),
        numAttrs: attributes.len() as u32,
    }
}
