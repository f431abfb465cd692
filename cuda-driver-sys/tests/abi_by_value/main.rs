//! Tests that the six exports that take a record by value receive their arguments unchanged. The tests call them in a
//! library that a C compiler built.
//!
//! The library is built from `stub.c` in this folder by this machine's C compiler. If that compiler does not build for
//! this target, `CUDA_ABI_STUB` must name the library; see `ci/platforms.sh`.
#![cfg(all(feature = "loader", any(target_os = "linux", windows)))]

use core::ffi::{c_char, c_uint, c_void};
use core::ptr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use cuda_driver_sys::library::{Call, Interposer, Options, Source};
use cuda_driver_sys::{
    CUdeviceptr, CUevent, CUipcEventHandle, CUipcMemHandle, CUmem_advise, CUmemLocation, CUmemLocationType, CUresult,
    CUstream, Function, Library,
};

/// The stub, which stores the arguments of calls until [`seen`](Self::seen) takes them.
struct Stub {
    library: &'static Library,
    seen: unsafe extern "system" fn(*mut u8, usize) -> usize,
}

impl Stub {
    fn new(options: Options) -> Self {
        // SAFETY: the stub's exports have the types of their names.
        let source = unsafe { Source::path(stub()) };
        let library = Library::new(source, options).expect("the stub loads");
        let seen = library.symbol(c"abi_seen").expect("the stub exports it");
        // SAFETY: `abi_seen` of the stub has this type.
        let seen = unsafe {
            core::mem::transmute::<*mut c_void, unsafe extern "system" fn(*mut u8, usize) -> usize>(seen.as_ptr())
        };
        Self { library, seen }
    }

    /// Returns the bytes of the arguments since the last call of this method.
    fn seen(&self) -> Vec<u8> {
        let mut bytes = vec![0; 256];
        // SAFETY: the buffer has that many bytes.
        let length = unsafe { (self.seen)(bytes.as_mut_ptr(), bytes.len()) };
        bytes.truncate(length);
        bytes
    }
}

/// Held by one test at a time, because the stub stores the arguments of all calls in one place.
static ALONE: Mutex<()> = Mutex::new(());

/// Returns the stub's file.
fn stub() -> &'static Path {
    static STUB: OnceLock<PathBuf> = OnceLock::new();
    STUB.get_or_init(build)
}

fn build() -> PathBuf {
    if let Some(stub) = std::env::var_os("CUDA_ABI_STUB") {
        return stub.into();
    }
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/abi_by_value/stub.c");
    let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("abi_by_value.so");
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let compiler = cc::Build::new()
        .cargo_metadata(false)
        .target(&host)
        .host(&host)
        .opt_level(2)
        .try_get_compiler()
        .expect("the C compiler that also links Rust programs");
    let output = compiler
        .to_command()
        .args(["-std=c11", "-Wall", "-Werror", "-fPIC", "-shared", source, "-o"])
        .arg(&library)
        .output()
        .expect("the C compiler starts");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    library
}

/// Returns 64 different bytes.
fn pattern(seed: u8) -> [c_char; 64] {
    core::array::from_fn(|index| (index as u8).wrapping_mul(3).wrapping_add(seed) as c_char)
}

fn bytes_of(pattern: [c_char; 64]) -> Vec<u8> {
    pattern.iter().map(|byte| *byte as u8).collect()
}

fn location(ty: u32, id: i32) -> CUmemLocation {
    CUmemLocation {
        type_: CUmemLocationType(ty),
        ..Default::default()
    }
    .with_id(id)
}

/// The bytes of the arguments in order, as the stub stores them.
macro_rules! bytes {
    ($($argument:expr),*) => {{
        let mut bytes: Vec<u8> = Vec::new();
        $(bytes.extend($argument);)*
        bytes
    }};
}

/// Calls all six exports with arguments that vary with `seed`.
fn all_six(stub: &Stub, seed: u8) {
    let Stub { library, .. } = stub;
    let handle = pattern(seed);
    let flags = 0x0102_0304_u32.wrapping_mul(u32::from(seed));
    let event = CUipcEventHandle { reserved: handle };
    let memory = CUipcMemHandle { reserved: handle };
    let device = 0xfeed_0000_0000_0000 | u64::from(seed);
    let count = 0x1234_5678_9abc_usize + usize::from(seed);
    let id = -2_000_000_000 + i32::from(seed);
    let place = location(u32::from(seed), id);
    let place_bytes = bytes!(u32::from(seed).to_ne_bytes(), id.to_ne_bytes());
    let stream: CUstream = ptr::without_provenance_mut(usize::MAX - usize::from(seed));

    let mut opened: CUevent = ptr::null_mut();
    // SAFETY: the stub writes the event and reads the handle.
    let code = unsafe { library.cuIpcOpenEventHandle(&raw mut opened, event) };
    assert_eq!((code, opened.addr()), (CUresult(1001), 0x1001));
    assert_eq!(stub.seen(), bytes_of(handle));

    let mut pointer: CUdeviceptr = 0;
    // SAFETY: the stub writes the pointer and reads the handle.
    let code = unsafe { library.legacy().cuIpcOpenMemHandle(&raw mut pointer, memory, flags) };
    assert_eq!((code, pointer), (CUresult(1002), 0x1002));
    assert_eq!(stub.seen(), bytes!(bytes_of(handle), flags.to_ne_bytes()));

    // SAFETY: as above.
    let code = unsafe { library.cuIpcOpenMemHandle_v2(&raw mut pointer, memory, flags) };
    assert_eq!((code, pointer), (CUresult(1003), 0x1_0000_0003));
    assert_eq!(stub.seen(), bytes!(bytes_of(handle), flags.to_ne_bytes()));

    // SAFETY: the stub dereferences no pointer here.
    let code = unsafe { library.cuMemAdvise_v2(device, count, CUmem_advise(flags), place) };
    assert_eq!(code, CUresult(1004));
    let expected = bytes!(
        device.to_ne_bytes(),
        count.to_ne_bytes(),
        flags.to_ne_bytes(),
        place_bytes.clone()
    );
    assert_eq!(stub.seen(), expected);

    let expected = bytes!(
        device.to_ne_bytes(),
        count.to_ne_bytes(),
        place_bytes,
        flags.to_ne_bytes(),
        stream.addr().to_ne_bytes()
    );
    // SAFETY: as above.
    let code = unsafe { library.cuMemPrefetchAsync_v2(device, count, place, flags, stream) };
    assert_eq!(code, CUresult(if library.is_per_thread() { 1006 } else { 1005 }));
    assert_eq!(stub.seen(), expected);
    // SAFETY: as above.
    let code = unsafe { library.cuMemPrefetchAsync_v2_ptsz(device, count, place, flags, stream) };
    assert_eq!(code, CUresult(1006));
    assert_eq!(stub.seen(), expected);
}

mod table {
    use core::ffi::*;

    use cuda_driver_sys::*;

    macro_rules! sizes {
        ([] $($symbol:ident ($($name:ident: $ty:ty),*) $base:ident $since:literal $mode:ident $(($twin:ident))?;)*) => {
            &[$((stringify!($symbol), &[$((size_of::<$ty>(), align_of::<$ty>())),*])),*]
        };
    }

    /// The exports, each with the sizes and alignments of its parameters.
    pub(super) const EXPORTS: &[(&str, &[(usize, usize)])] = for_each_function! { sizes };
}

/// The functions that [`all_six`] calls are all exports with a record by value. A record is larger than its alignment;
/// other parameters are not.
#[test]
fn six_exports_take_records_by_value() {
    let exports = table::EXPORTS.iter();
    let with_record = exports.filter(|(_, parameters)| parameters.iter().any(|(size, align)| size > align));
    let symbols: Vec<&str> = with_record.map(|(symbol, _)| *symbol).collect();
    assert_eq!(
        symbols,
        [
            "cuIpcOpenEventHandle",
            "cuIpcOpenMemHandle_v2",
            "cuMemAdvise_v2",
            "cuMemPrefetchAsync_v2",
            "cuMemPrefetchAsync_v2_ptsz",
            "cuIpcOpenMemHandle",
        ]
    );
}

#[test]
fn records_arrive_whole_and_in_place() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for per_thread in [false, true] {
        let stub = Stub::new(Options::new().per_thread_default_stream(per_thread));
        // The first call of each function resolves it; later calls use the slot.
        for seed in [1, 2, 77, 255] {
            all_six(&stub, seed);
        }
    }
}

/// Forwards every call, and changes the location of `cuMemAdvise_v2`.
struct Elsewhere;

impl Interposer for Elsewhere {
    fn call(&self, mut call: Call<'_>) -> CUresult {
        if call.function() == Function::cuMemAdvise_v2 {
            // SAFETY: the third parameter is an enumeration, which is a 32-bit integer, the fourth a location.
            let (advice, asked) = unsafe { (call.argument::<c_uint>(2), call.argument::<CUmemLocation>(3)) };
            assert_eq!(advice, Some(7));
            let asked = asked.expect("four arguments");
            let there = location(asked.type_.0 + 1, 5);
            // SAFETY: as above.
            assert!(unsafe { call.set_argument(3, there) });
        }
        call.forward()
    }
}

#[test]
fn interposers_forward_records() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    struct Nothing;
    impl Interposer for Nothing {}
    // SAFETY: the interposer forwards every call and returns its result.
    let stub = Stub::new(unsafe { Options::new().interposer(Nothing) });
    for seed in [3, 4] {
        all_six(&stub, seed);
    }

    // SAFETY: only this test calls the library, and the stub only stores the arguments.
    let stub = Stub::new(unsafe { Options::new().interposer(Elsewhere) });
    // SAFETY: the stub dereferences no pointer here.
    let code = unsafe { stub.library.cuMemAdvise_v2(1, 2, CUmem_advise(7), location(1, -1)) };
    assert_eq!(code, CUresult(1004));
    let expected = bytes!(
        1_u64.to_ne_bytes(),
        2_usize.to_ne_bytes(),
        7_u32.to_ne_bytes(),
        2_u32.to_ne_bytes(),
        5_i32.to_ne_bytes()
    );
    assert_eq!(stub.seen(), expected);
}
