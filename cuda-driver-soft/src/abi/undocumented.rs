//! Exports that are not in `cuda.h`: the profiler's functions, and those for interoperability with OpenGL, EGL and
//! VDPAU. Some programs are linked with them, and others refuse a driver that lacks them. This crate calls them
//! undocumented, although other headers of CUDA, such as `cudaProfiler.h` and `cudaGL.h`, declare them.
//!
//! They have no parameters here, unlike in C: no body reads any, and on all platforms of CUDA the caller cleans up the
//! stack.

use cuda_driver_sys::CUresult;

use super::exports;
use super::table::{Table, not_supported};
use crate::call::lookup::current_context;
use crate::queue::capture;
use crate::state::error::Error;

exports! {
    fn cuProfilerInitialize [_c] () {
        Err(Error::CUDA_ERROR_NOT_SUPPORTED)
    }

    // No profiler can be attached, so there is nothing to start or stop.
    fn cuProfilerStart [_c] () {
        current_context()?;
        capture::check_unsafe()
    }

    fn cuProfilerStop [_c] () {
        current_context()?;
        capture::check_unsafe()
    }
}

/// Passes these functions to a macro, each as `symbol base version per_thread;`: its name, its name for
/// `cuGetProcAddress`, the CUDA version that introduced it, and true if it works on the per-thread default stream. The
/// functions in brackets have bodies of their own; the others return `CUDA_ERROR_NOT_SUPPORTED`.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_undocumented {
    ($callback:ident) => {
        $callback! {
            [
                cuProfilerInitialize cuProfilerInitialize 4000 false;
                cuProfilerStart cuProfilerStart 4000 false;
                cuProfilerStop cuProfilerStop 4000 false;
            ]
            cuGLInit cuGLInit 2000 false;
            cuGLCtxCreate cuGLCtxCreate 2000 false;
            cuGLCtxCreate_v2 cuGLCtxCreate 3020 false;
            cuGLRegisterBufferObject cuGLRegisterBufferObject 2000 false;
            cuGLUnregisterBufferObject cuGLUnregisterBufferObject 2000 false;
            cuGLMapBufferObject cuGLMapBufferObject 2000 false;
            cuGLMapBufferObject_v2 cuGLMapBufferObject 3020 false;
            cuGLMapBufferObject_v2_ptds cuGLMapBufferObject 7000 true;
            cuGLUnmapBufferObject cuGLUnmapBufferObject 2000 false;
            cuGLSetBufferObjectMapFlags cuGLSetBufferObjectMapFlags 2030 false;
            cuGLMapBufferObjectAsync cuGLMapBufferObjectAsync 2030 false;
            cuGLMapBufferObjectAsync_v2 cuGLMapBufferObjectAsync 3020 false;
            cuGLMapBufferObjectAsync_v2_ptsz cuGLMapBufferObjectAsync 7000 true;
            cuGLUnmapBufferObjectAsync cuGLUnmapBufferObjectAsync 2030 false;
            cuGLGetDevices cuGLGetDevices 4010 false;
            cuGLGetDevices_v2 cuGLGetDevices 6050 false;
            cuGraphicsGLRegisterBuffer cuGraphicsGLRegisterBuffer 3000 false;
            cuGraphicsGLRegisterImage cuGraphicsGLRegisterImage 3000 false;
            cuVDPAUGetDevice cuVDPAUGetDevice 3010 false;
            cuVDPAUCtxCreate cuVDPAUCtxCreate 3010 false;
            cuVDPAUCtxCreate_v2 cuVDPAUCtxCreate 3020 false;
            cuGraphicsVDPAURegisterVideoSurface cuGraphicsVDPAURegisterVideoSurface 3010 false;
            cuGraphicsVDPAURegisterOutputSurface cuGraphicsVDPAURegisterOutputSurface 3010 false;
            cuGraphicsEGLRegisterImage cuGraphicsEGLRegisterImage 7000 false;
            cuGraphicsResourceGetMappedEglFrame cuGraphicsResourceGetMappedEglFrame 7000 false;
            cuEGLStreamConsumerConnect cuEGLStreamConsumerConnect 7000 false;
            cuEGLStreamConsumerConnectWithFlags cuEGLStreamConsumerConnectWithFlags 8000 false;
            cuEGLStreamConsumerDisconnect cuEGLStreamConsumerDisconnect 7000 false;
            cuEGLStreamConsumerAcquireFrame cuEGLStreamConsumerAcquireFrame 7000 false;
            cuEGLStreamConsumerReleaseFrame cuEGLStreamConsumerReleaseFrame 7000 false;
            cuEGLStreamProducerConnect cuEGLStreamProducerConnect 7000 false;
            cuEGLStreamProducerDisconnect cuEGLStreamProducerDisconnect 7000 false;
            cuEGLStreamProducerPresentFrame cuEGLStreamProducerPresentFrame 7000 false;
            cuEGLStreamProducerReturnFrame cuEGLStreamProducerReturnFrame 7000 false;
        }
    };
}

macro_rules! define {
    (
        [$($own:ident $own_base:ident $own_since:literal $own_mode:literal;)*]
        $($symbol:ident $base:ident $since:literal $mode:literal;)*
    ) => {
        impl Table {
            $(
                #[allow(missing_docs, non_upper_case_globals)]
                pub const $symbol: unsafe extern "system" fn() -> CUresult = {
                    #[allow(non_snake_case)]
                    unsafe extern "system" fn $symbol() -> CUresult {
                        not_supported(stringify!($symbol))
                    }
                    $symbol
                };
            )*
        }

        /// All undocumented exports.
        pub(super) static ALL: &[Undocumented] = &[
            $(Undocumented {
                symbol: stringify!($own),
                base: stringify!($own_base),
                since: $own_since,
                per_thread: $own_mode,
                own: Table::$own,
            },)*
            $(Undocumented {
                symbol: stringify!($symbol),
                base: stringify!($base),
                since: $since,
                per_thread: $mode,
                own: Table::$symbol,
            },)*
        ];
    };
}
for_each_undocumented! { define }

/// An undocumented export.
pub(super) struct Undocumented {
    pub(super) symbol: &'static str,
    pub(super) base: &'static str,
    pub(super) since: u32,
    pub(super) per_thread: bool,
    /// The function in this crate; in a library that exports it, the exported symbol has another address.
    pub(super) own: unsafe extern "system" fn() -> CUresult,
}
