//! Tests of programs that request too much memory, or use memory that is not theirs: calls are refused, or kernels
//! fault. The contract tests check the values of the limits.

use crate::common::{Context, Kernel, check, cuda, expect, in_child, lacks_software, ptr, software};
use cuda_driver_sys::*;
use std::ffi::{CString, c_void};
use std::ptr::{null_mut, without_provenance_mut};

fn alloc(bytes: usize) -> CUdeviceptr {
    let mut address = 0;
    check(unsafe { cuda().cuMemAlloc(&mut address, bytes) });
    address
}

/// Returns PTX with this text after the directives that begin a module.
fn module(text: &str) -> CString {
    CString::new(format!(".version 7.7\n.target sm_52\n.address_size 64\n{text}")).unwrap()
}

fn attribute(kernel: &Kernel, attribute: CUfunction_attribute) -> i32 {
    let mut value = -1;
    check(unsafe { cuda().cuFuncGetAttribute(&mut value, attribute, kernel.function) });
    value
}

#[cfg(target_os = "linux")]
#[test]
fn allocations_use_no_memory_before_the_first_access() {
    fn resident_mib() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
        let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kib / 1024
    }
    in_child("limits::allocations_use_no_memory_before_the_first_access", &[], || {
        let (cuda, _context) = (cuda(), Context::new());
        let before = resident_mib();
        let device = alloc(1 << 30);
        let (mut managed, mut pinned) = (0, null_mut());
        unsafe {
            check(cuda.cuMemAllocManaged(&mut managed, 256 << 20, 1));
            if software() {
                // NVIDIA's driver locks the pages.
                check(cuda.cuMemHostAlloc(&mut pinned, 256 << 20, 0));
            }
            let after = resident_mib();
            assert!(after < before + 100, "{before} MiB, then {after} MiB");
            // A part in the middle can be filled and read.
            check(cuda.cuMemsetD8(device + (512 << 20), 7, 1 << 20));
            let mut words = [9u8; 4];
            let at = device + (513 << 20) - 2;
            check(cuda.cuMemcpyDtoH(words.as_mut_ptr().cast(), at, 4));
            assert_eq!(words[..2], [7, 7]);
            check(cuda.cuMemFree(device));
        }
    });
}

#[test]
fn variables_of_modules_are_device_memory() {
    if lacks_software() {
        return;
    }
    in_child(
        "limits::variables_of_modules_are_device_memory",
        &[("CUDA_SOFT_MEMORY", "4194304")],
        || {
            let (cuda, _context) = (cuda(), Context::new());
            let (mut free, mut total) = (0, 0);
            let mut image = null_mut();
            let variable = |bytes: usize| module(&format!(".visible .global .b8 v[{bytes}];\n"));
            unsafe {
                check(cuda.cuMemGetInfo(&mut free, &mut total));
                assert_eq!((free, total), (4 << 20, 4 << 20));
                check(cuda.cuModuleLoadData(&mut image, variable(3 << 20).as_ptr().cast()));
                check(cuda.cuMemGetInfo(&mut free, &mut total));
                assert_eq!(free, 1 << 20);
                let mut more = null_mut();
                let two = variable(2 << 20);
                expect(cuda.cuModuleLoadData(&mut more, two.as_ptr().cast()), 2);
                let mut address = 0;
                expect(cuda.cuMemAlloc(&mut address, (1 << 20) + 1), 2);
                check(cuda.cuMemAlloc(&mut address, 1 << 20));
                check(cuda.cuModuleUnload(image));
                check(cuda.cuModuleLoadData(&mut more, two.as_ptr().cast()));
            }
        },
    );
}

/// Returns a kernel that calls `malloc(p[1])` until it returns NULL, at most a million times, and stores the number of
/// successful calls in `p[0]`.
fn grabber() -> Kernel {
    let text = module(
        ".extern .func (.param .b64 r) malloc(.param .b64 s);\n.visible .entry k(.param .u64 p)\n{\n\
        .reg .b64 %rd<4>; .reg .b32 %r<2>; .reg .pred %p<3>;\nld.param.u64 %rd1,[p];\nld.global.u64 %rd2,[%rd1+8];\nmov.u32 %r1,0;\n\
        L:\n{ .param .b64 a; .param .b64 b; st.param.b64 [a],%rd2; call (b),malloc,(a); ld.param.b64 %rd3,[b]; }\n\
        setp.eq.u64 %p1,%rd3,0;\n@%p1 bra E;\nst.u8 [%rd3],%r1;\nadd.u32 %r1,%r1,1;\nsetp.lt.u32 %p2,%r1,1000000;\n@%p2 bra L;\n\
        E: st.global.u32 [%rd1],%r1;\nret;\n}\n",
    );
    Kernel::from_ptx(&text, "k")
}

/// Returns the number of allocations of `bytes` bytes that succeed in a kernel, a million at most.
fn grab(kernel: &Kernel, bytes: u64) -> u64 {
    let place = alloc(16);
    let mut words = [0, bytes];
    unsafe {
        check(cuda().cuMemcpyHtoD(place, words.as_ptr().cast(), 16));
        check(launch_with_one_thread(kernel, place));
        check(cuda().cuMemcpyDtoH(words.as_mut_ptr().cast(), place, 16));
    }
    words[0]
}

fn launch_with_one_thread(kernel: &Kernel, mut p: u64) -> CUresult {
    kernel.launch(1, 1, null_mut(), &mut [ptr(&mut p)])
}

#[test]
fn kernels_cannot_allocate_more_than_the_heap() {
    let cuda = cuda();
    let mut limit = 0;
    // Memory that kernels allocate belongs to their context: a full heap stays full.
    {
        let _context = Context::new();
        let kernel = grabber();
        check(unsafe { cuda.cuCtxGetLimit(&mut limit, CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE) });
        let most = limit as u64 >> 20;
        let got = grab(&kernel, 1 << 20);
        assert!((1..=most).contains(&got), "{got} MiB of {most}");
        assert_eq!(grab(&kernel, 1 << 20), 0);
        if software() {
            // A GPU rounds this size up to 0, and the allocation succeeds.
            assert_eq!(grab(&kernel, u64::MAX), 0);
        }
    }
    {
        // An allocation of 0 bytes returns an address, too, and uses some memory.
        let _context = Context::new();
        let got = grab(&grabber(), 0);
        assert!((10_000..1_000_000).contains(&got), "{got}");
    }
    {
        let _context = Context::new();
        let kernel = grabber();
        check(unsafe { cuda.cuCtxSetLimit(CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE, 64 << 20) });
        let got = grab(&kernel, 1 << 20);
        assert!((32..=64).contains(&got), "{got} MiB of 64");
        // The heap is in use now, so its size can no longer be changed.
        expect(
            unsafe { cuda.cuCtxSetLimit(CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE, 16 << 20) },
            1,
        );
    }
    let _context = Context::new();
    let got = grab(&grabber(), 1000);
    let most = limit as u64 / 1000;
    assert!((most / 2..=most).contains(&got), "{got} kB of {limit} B");
}

#[test]
fn calls_need_the_local_memory_of_the_deepest_chain() {
    let _context = Context::new();
    let out = alloc(4);
    // `k` calls f0 to f3, and f3 calls f0. Each function has 150 kB of local memory, so the deepest chain, from `k`
    // through f3 to f0, needs 300 kB.
    let function = |i: u32, calls: &str| {
        format!(
            ".func (.param .b32 r) f{i}(.param .b32 n)\n{{\n.reg .b32 %r<3>; .reg .b64 %rd<4>;\n.local .align 8 .b8 s[150000];\n\
            ld.param.u32 %r1,[n];\nmul.wide.u32 %rd1,%r1,8;\nmov.u64 %rd2,s;\nadd.s64 %rd3,%rd2,%rd1;\nst.local.u32 [%rd3],%r1;\n\
            {calls}ld.local.u32 %r2,[%rd3];\nst.param.b32 [r],%r2;\nret;\n}}\n"
        )
    };
    let call = |i: u32| {
        format!("{{ .param .b32 a; .param .b32 b; st.param.b32 [a],%r1; call (b),f{i},(a); ld.param.b32 %r1,[b]; }}\n")
    };
    let text = |last: &str| {
        let functions: String = (0..3).map(|i| function(i, "")).collect();
        let calls: String = (0..4).map(call).collect();
        module(&format!(
            "{functions}{}.visible .entry k(.param .u64 p)\n{{\n.reg .b32 %r<2>; .reg .b64 %rd<2>;\nld.param.u64 %rd1,[p];\n\
            mov.u32 %r1,7;\n{calls}st.global.u32 [%rd1],%r1;\nret;\n}}\n",
            function(3, last)
        ))
    };
    let kernel = Kernel::from_ptx(&text(&call(0)), "k");
    let size = attribute(&kernel, CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    assert!((300_000..302_000).contains(&size), "{size}");
    let mut word = 0u32;
    check(launch_with_one_thread(&kernel, out));
    check(unsafe { cuda().cuMemcpyDtoH((&raw mut word).cast(), out, 4) });
    assert_eq!(word, 7);
}

#[cfg(target_os = "linux")]
#[test]
fn registration() {
    // The test needs a process of its own: another test could map memory into the hole.
    in_child("limits::registration", &[], registration_alone);
}

#[cfg(target_os = "linux")]
fn registration_alone() {
    const PAGE: usize = 4096;
    /// Maps pages with these access rights.
    fn pages(count: usize, rights: i32) -> *mut c_void {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let at = unsafe { libc::mmap(null_mut(), count * PAGE, rights, flags, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        at
    }
    const READ_ONLY: u32 = 8;
    let (cuda, _context) = (cuda(), Context::new());
    let register = |at: *mut c_void, bytes: usize, flags: u32, code: u32| unsafe {
        expect(cuda.cuMemHostRegister(at, bytes, flags), code);
        if code == 0 {
            check(cuda.cuMemHostUnregister(at));
        }
    };
    let both = libc::PROT_READ | libc::PROT_WRITE;
    let own = pages(16, both);
    register(own, 16 * PAGE, 0, 0);
    register(own.wrapping_byte_add(5), 100, 0, 0);
    let began = std::time::Instant::now();
    // More memory than the machine has.
    register(own, 1 << 46, 0, 2);
    register(own, usize::MAX, 0, 1);
    register(0x1000 as *mut c_void, PAGE, 0, 1);
    register((1usize << 50) as *mut c_void, PAGE, 0, 1);
    register(0usize.wrapping_sub(PAGE) as *mut c_void, PAGE, 0, 801);
    let hole = pages(16, both);
    unsafe { libc::munmap(hole.byte_add(8 * PAGE), PAGE) };
    register(hole, 16 * PAGE, 0, 1);
    register(hole, 8 * PAGE, 0, 0);
    register(pages(16, libc::PROT_NONE), 16 * PAGE, 0, 1);
    assert!(
        began.elapsed() < std::time::Duration::from_secs(60),
        "the registrations took more than 60 s"
    );
    let constant = pages(16, libc::PROT_READ);
    register(constant, 16 * PAGE, 0, 1);
    register(constant, 16 * PAGE, READ_ONLY, 0);
    // Copies can read the memory, but not write to it.
    let (device, mut back) = (alloc(PAGE), [1u8; 16]);
    unsafe {
        check(cuda.cuMemHostRegister(constant, PAGE, READ_ONLY));
        check(cuda.cuMemcpyDtoD(device, constant as u64, PAGE));
        check(cuda.cuMemcpyDtoH(back.as_mut_ptr().cast(), device, 16));
        assert_eq!(back, [0; 16]);
        if software() {
            expect(cuda.cuMemcpyDtoD(constant as u64, device, PAGE), 1);
            expect(cuda.cuMemcpy(constant as u64, device, PAGE), 1);
        }
        check(cuda.cuMemHostUnregister(constant));
    }
}

#[test]
fn a_kernel_that_writes_to_read_only_memory_faults() {
    static CONSTANT: [u32; 4096] = [7; 4096];
    in_child("limits::a_kernel_that_writes_to_read_only_memory_faults", &[], || {
        let (cuda, context) = (cuda(), Context::new());
        let text = module(
            ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<2>; .reg .b32 %r<2>;\nld.param.u64 %rd1,[p];\n\
                ld.global.u32 %r1,[%rd1];\nst.global.u32 [%rd1],%r1;\nret;\n}\n",
        );
        let kernel = Kernel::from_ptx(&text, "k");
        let at = (&raw const CONSTANT).cast_mut().cast::<c_void>();
        check(unsafe { cuda.cuMemHostRegister(at, size_of_val(&CONSTANT), 8) });
        check(launch_with_one_thread(&kernel, at as u64));
        expect(unsafe { cuda.cuCtxSynchronize() }, 700);
        std::mem::forget(context);
    });
}

/// A program may free registered memory without ending the registration. The driver ends the registration when it
/// allocates a part of that memory again: kernels can no longer access the rest.
#[cfg(target_os = "linux")]
#[test]
fn a_forgotten_registration_ends_with_its_memory() {
    if lacks_software() {
        return;
    }
    in_child(
        "limits::a_forgotten_registration_ends_with_its_memory",
        &[("CUDA_SOFT_LOG", "1")],
        || {
            let (cuda, context) = (cuda(), Context::new());
            let reader = module(
                ".visible .entry k(.param .u64 p, .param .u64 q)\n{\n.reg .b64 %rd<3>; .reg .b32 %r<2>;\nld.param.u64 %rd1,[p];\n\
                ld.param.u64 %rd2,[q];\nld.global.u32 %r1,[%rd1];\nst.global.u32 [%rd2],%r1;\nret;\n}\n",
            );
            let kernel = Kernel::from_ptx(&reader, "k");
            // Allocators get blocks of this size from the system, and return them as soon as they are freed. The second
            // size is smaller, so that the new memory cannot cover all of the old.
            const BYTES: usize = 40 << 20;
            const AGAIN: usize = 33 << 20;
            let layout = std::alloc::Layout::from_size_align(BYTES, 1 << 16).unwrap();
            let mut out = alloc(4);
            for _ in 0..100 {
                let own = unsafe { std::alloc::alloc(layout) };
                let mut pinned = null_mut();
                unsafe {
                    check(cuda.cuMemHostRegister(own.cast(), BYTES, 0));
                    std::alloc::dealloc(own, layout);
                    check(cuda.cuMemHostAlloc(&mut pinned, AGAIN, 0));
                }
                let start = own as u64;
                let end = start + BYTES as u64;
                let first = pinned as u64;
                let beyond = first + AGAIN as u64;
                if first < end && beyond > start {
                    let mut freed = if first > start { start } else { beyond };
                    let params = &mut [ptr(&mut freed), ptr(&mut out)];
                    check(kernel.launch(1, 1, null_mut(), params));
                    expect(unsafe { cuda.cuCtxSynchronize() }, 700);
                    std::mem::forget(context);
                    return;
                }
                // The new memory is elsewhere. It stays allocated, so the next attempt gets another place.
                check(unsafe { cuda.cuMemHostUnregister(own.cast()) });
            }
            panic!("the allocator never reused the memory, so nothing was tested");
        },
    );
}

#[test]
fn sizes_that_wrap_around() {
    if lacks_software() {
        // NVIDIA's driver accepts these sizes, and fails later.
        return;
    }
    let (cuda, _context) = (cuda(), Context::new());
    let device = alloc(256);
    let host = [7u8; 256];
    let copy = |y: usize, pitch: usize, height: usize| CUDA_MEMCPY2D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: host.as_ptr().cast(),
        srcPitch: pitch,
        srcY: y,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: device,
        dstPitch: 16,
        WidthInBytes: 4,
        Height: height,
        ..CUDA_MEMCPY2D::default()
    };
    unsafe {
        for (y, pitch, height) in [
            (usize::MAX, 16, 1),
            (usize::MAX, 16, 2),
            (usize::MAX, 4, usize::MAX),
            (1, 16, usize::MAX),
            (1, usize::MAX, 2),
        ] {
            expect(cuda.cuMemcpy2D(&copy(y, pitch, height)), 1);
        }
        let mut cuboid = CUDA_MEMCPY3D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcDevice: device,
            srcPitch: 16,
            srcHeight: 4,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstDevice: device,
            dstPitch: 16,
            dstHeight: 4,
            WidthInBytes: 4,
            Height: 2,
            Depth: 2,
            srcZ: usize::MAX,
            ..CUDA_MEMCPY3D::default()
        };
        expect(cuda.cuMemcpy3D(&cuboid), 1);
        (cuboid.srcZ, cuboid.srcHeight) = (0, usize::MAX / 8);
        expect(cuda.cuMemcpy3D(&cuboid), 1);
        let kernel = Kernel::from_ptx(&module(".visible .entry k(.param .u64 p) { ret; }\n"), "k");
        let mut value = [0u8; 8];
        let f = kernel.function;
        expect(cuda.cuParamSetv(f, 0, value.as_mut_ptr().cast(), u32::MAX), 1);
        expect(cuda.cuParamSetv(f, i32::MAX, value.as_mut_ptr().cast(), 8), 1);
        // For 0 bytes the address is not read, so it may be invalid.
        check(cuda.cuParamSetv(f, 0, without_provenance_mut(16), 0));
    }
}

#[test]
fn a_kernel_prints_from_an_address_that_wraps() {
    in_child("limits::a_kernel_prints_from_an_address_that_wraps", &[], || {
        let context = Context::new();
        let text = module(
            ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n.global .align 1 .b8 s[4]={37,100,33,0};\n\
                .visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<3>;\nmov.u64 %rd1,s;\ncvta.global.u64 %rd1,%rd1;\n\
                ld.param.u64 %rd2,[p];\n{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f],%rd1; st.param.b64 [a],%rd2;\n\
                call (r),vprintf,(f,a); }\nret;\n}\n",
        );
        let kernel = Kernel::from_ptx(&text, "k");
        check(launch_with_one_thread(&kernel, u64::MAX));
        expect(unsafe { cuda().cuCtxSynchronize() }, 700);
        std::mem::forget(context);
    });
}

/// While the primary context ends, other threads can query its state. The host function for which the end waits may
/// itself wait for such a thread. NVIDIA's driver makes the thread wait for the host function.
#[test]
fn the_end_of_the_primary_context_does_not_block_queries() {
    if lacks_software() {
        return;
    }
    in_child(
        "limits::the_end_of_the_primary_context_does_not_block_queries",
        &[],
        || {
            use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
            use std::time::{Duration, Instant};
            static ASKED: AtomicBool = AtomicBool::new(false);
            static IN_TIME: AtomicBool = AtomicBool::new(false);
            unsafe extern "system" fn wait(_: *mut c_void) {
                let began = Instant::now();
                while !ASKED.load(SeqCst) && began.elapsed() < Duration::from_secs(10) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                IN_TIME.store(ASKED.load(SeqCst), SeqCst);
            }
            let cuda = cuda();
            for reset in [false, true] {
                ASKED.store(false, SeqCst);
                let mut context = null_mut();
                unsafe {
                    check(cuda.cuDevicePrimaryCtxRetain(&mut context, 0));
                    check(cuda.cuCtxSetCurrent(context));
                    check(cuda.cuLaunchHostFunc(null_mut(), Some(wait), null_mut()));
                }
                let other = std::thread::spawn(|| {
                    std::thread::sleep(Duration::from_millis(100));
                    let (mut flags, mut active) = (0, 0);
                    check(unsafe { crate::common::cuda().cuDevicePrimaryCtxGetState(0, &mut flags, &mut active) });
                    ASKED.store(true, SeqCst);
                });
                unsafe {
                    if reset {
                        check(cuda.cuDevicePrimaryCtxReset(0));
                    }
                    check(cuda.cuDevicePrimaryCtxRelease(0));
                    check(cuda.cuCtxSetCurrent(null_mut()));
                }
                other.join().unwrap();
                assert!(IN_TIME.load(SeqCst), "reset: {reset}");
            }
        },
    );
}
