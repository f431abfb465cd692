//! Tests of the exports of `libcuda.so.1`, as the system's loader sees them.

#![cfg(target_os = "linux")]
// The unsafe blocks call C functions with pointers to this test's own variables.
#![allow(clippy::undocumented_unsafe_blocks)]

use std::path::PathBuf;
use std::process::Command;

use cuda_driver_sys::{CUresult, Function, Library};

fn driver() -> PathBuf {
    let output = Command::new(env!("CARGO_BIN_EXE_soft-cuda"))
        .arg("path")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()).join("libcuda.so.1")
}

/// Exports of NVIDIA's drivers that are not in `cuda.h`.
const UNDECLARED: [&str; 37] = [
    "cuEGLStreamConsumerAcquireFrame",
    "cuEGLStreamConsumerConnect",
    "cuEGLStreamConsumerConnectWithFlags",
    "cuEGLStreamConsumerDisconnect",
    "cuEGLStreamConsumerReleaseFrame",
    "cuEGLStreamProducerConnect",
    "cuEGLStreamProducerDisconnect",
    "cuEGLStreamProducerPresentFrame",
    "cuEGLStreamProducerReturnFrame",
    "cuGLCtxCreate",
    "cuGLCtxCreate_v2",
    "cuGLGetDevices",
    "cuGLGetDevices_v2",
    "cuGLInit",
    "cuGLMapBufferObject",
    "cuGLMapBufferObjectAsync",
    "cuGLMapBufferObjectAsync_v2",
    "cuGLMapBufferObjectAsync_v2_ptsz",
    "cuGLMapBufferObject_v2",
    "cuGLMapBufferObject_v2_ptds",
    "cuGLRegisterBufferObject",
    "cuGLSetBufferObjectMapFlags",
    "cuGLUnmapBufferObject",
    "cuGLUnmapBufferObjectAsync",
    "cuGLUnregisterBufferObject",
    "cuGraphicsEGLRegisterImage",
    "cuGraphicsGLRegisterBuffer",
    "cuGraphicsGLRegisterImage",
    "cuGraphicsResourceGetMappedEglFrame",
    "cuGraphicsVDPAURegisterOutputSurface",
    "cuGraphicsVDPAURegisterVideoSurface",
    "cuProfilerInitialize",
    "cuProfilerStart",
    "cuProfilerStop",
    "cuVDPAUCtxCreate",
    "cuVDPAUCtxCreate_v2",
    "cuVDPAUGetDevice",
];

#[test]
fn exactly_the_expected_symbols_are_exported() {
    let bytes = std::fs::read(driver()).unwrap();
    let mut exported = elf::defined_dynamic_symbols(&bytes);
    exported.sort();
    let mut expected: Vec<&str> = Function::ALL.iter().map(|f| f.name()).collect();
    expected.push("cuda_driver_soft_marker");
    expected.extend(UNDECLARED);
    expected.sort_unstable();
    assert_eq!(exported, expected);
    assert!(
        elf::dynamic_strings(&bytes).iter().any(|s| s == "libcuda.so.1"),
        "the soname is not libcuda.so.1"
    );
}

/// Calls an export of CUDA 12.0 twice while the driver reports CUDA 11.8. The log names the export once.
#[test]
fn a_call_of_a_newer_export_is_logged() {
    const CHILD: &str = "CUDA_DRIVER_SOFT_TEST_NEWER_EXPORT";
    if std::env::var_os(CHILD).is_some() {
        // SAFETY: the library is this project's driver, which has the exports of a CUDA driver.
        let library = unsafe { Library::load_from(driver()) }.unwrap();
        type Unload = unsafe extern "system" fn(*mut std::ffi::c_void) -> CUresult;
        let symbol = library.symbol(c"cuLibraryUnload").unwrap();
        let unload: Unload = unsafe { std::mem::transmute(symbol) };
        for _ in 0..2 {
            let _ = unsafe { unload(std::ptr::null_mut()) };
        }
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_call_of_a_newer_export_is_logged", "--nocapture"])
        .envs([(CHILD, "1"), ("CUDA_SOFT_VERSION", "11.8"), ("CUDA_SOFT_LOG", "1")])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    let said = text.matches("cuLibraryUnload is new in CUDA 12.0").count();
    assert_eq!((output.status.success(), said), (true, 1), "{text}");
}

#[test]
fn the_library_loads_like_any_driver() {
    let path = driver();
    // SAFETY: the library is this project's driver, which has the exports of a CUDA driver.
    let library = unsafe { Library::load_from(&path) }.unwrap();
    assert!(library.is_software());
    assert!(library.path().is_some());
    assert_eq!(library.version(), Some(cuda_driver_sys::CUDA_VERSION));
    assert_eq!(unsafe { library.cuInit(0) }, CUresult::CUDA_SUCCESS);
    let mut count = 0;
    assert_eq!(
        unsafe { library.cuDeviceGetCount(&raw mut count) },
        CUresult::CUDA_SUCCESS
    );
    assert_eq!(count, 1);
    // cuGetProcAddress returns the addresses of the exported symbols.
    for &function in Function::ALL {
        let (mut found, mut status) = (std::ptr::null_mut(), Default::default());
        let name = std::ffi::CString::new(function.base()).unwrap();
        let version = function.since() as i32;
        let flags = if function.stream_mode() == cuda_driver_sys::StreamMode::PerThread {
            2
        } else {
            0
        };
        let code =
            unsafe { library.cuGetProcAddress_v2(name.as_ptr(), &raw mut found, version, flags, &raw mut status) };
        assert_eq!(code, CUresult::CUDA_SUCCESS, "{}", function.name());
        let symbol = library.symbol(function.symbol()).map(|s| s.as_ptr());
        assert_eq!(Some(found), symbol, "{}", function.name());
    }
    // The copy that is linked into this program refuses to start while the loaded one is in use.
    let linked = cuda_driver_soft::library();
    assert_eq!(unsafe { linked.cuInit(0) }, CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
    // The log of the refused copy names the files of both copies.
    let mut text = vec![0_u8; 1 << 16];
    let mut size = text.len();
    let (start, buffer) = (std::ptr::null_mut(), text.as_mut_ptr().cast());
    let dumped = unsafe { linked.cuLogsDumpToMemory(start, buffer, &raw mut size, 0) };
    assert_eq!(dumped, CUresult::CUDA_SUCCESS);
    let text = String::from_utf8_lossy(&text[..size]);
    let this = std::env::current_exe().unwrap();
    let this = this.file_name().unwrap().to_str().unwrap();
    assert!(text.contains("two copies of the software driver"), "{text}");
    assert!(text.contains("libcuda") && text.contains(this), "{text}");
    assert_eq!(unsafe { library.cuInit(0) }, CUresult::CUDA_SUCCESS);
}

/// Parses as much of the ELF format as these tests need (64 bits, little-endian).
mod elf {
    fn number(bytes: &[u8], at: usize, length: usize) -> usize {
        bytes[at..at + length]
            .iter()
            .rev()
            .fold(0, |n, b| n << 8 | usize::from(*b))
    }

    /// Returns (type, offset, size, linked section) of each section.
    fn sections(bytes: &[u8]) -> Vec<(usize, usize, usize, usize)> {
        let (table, size, count) = (number(bytes, 40, 8), number(bytes, 58, 2), number(bytes, 60, 2));
        let section = |i| table + i * size;
        (0..count)
            .map(section)
            .map(|s| {
                (
                    number(bytes, s + 4, 4),
                    number(bytes, s + 24, 8),
                    number(bytes, s + 32, 8),
                    number(bytes, s + 40, 4),
                )
            })
            .collect()
    }

    fn string(bytes: &[u8], at: usize) -> String {
        let end = bytes[at..].iter().position(|b| *b == 0).unwrap();
        String::from_utf8_lossy(&bytes[at..at + end]).into_owned()
    }

    const DYNSYM: usize = 11;
    const SYMBOL: usize = 24;

    pub(super) fn defined_dynamic_symbols(bytes: &[u8]) -> Vec<String> {
        let sections = sections(bytes);
        let (_, start, size, strings) = *sections.iter().find(|s| s.0 == DYNSYM).unwrap();
        let names = sections[strings].1;
        (start..start + size)
            .step_by(SYMBOL)
            .filter(|s| number(bytes, s + 6, 2) != 0)
            .map(|s| string(bytes, names + number(bytes, s, 4)))
            .collect()
    }

    /// Returns all strings of the table that the dynamic symbols and the dynamic section use.
    pub(super) fn dynamic_strings(bytes: &[u8]) -> Vec<String> {
        let sections = sections(bytes);
        let strings = sections.iter().find(|s| s.0 == DYNSYM).unwrap().3;
        let (_, start, size, _) = sections[strings];
        bytes[start..start + size]
            .split(|b| *b == 0)
            .map(|s| String::from_utf8_lossy(s).into_owned())
            .collect()
    }
}
