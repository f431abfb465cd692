//! Tests of the limits of local, shared and heap memory and of the print buffer, and of host memory that can be
//! registered.

use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cuda_driver::sys::*;

use crate::common::gpu::{Arguments, Gpu};
use crate::common::{Codes, is_software, needs};
use crate::{arguments, call, child, is, ok};

/// Loads this text, with a head, as PTX. Returns the code, and the kernel `k` if the load succeeded.
fn load(text: &str) -> (u32, CUfunction) {
    let text =
        CString::new(format!(".version 7.7\n.target sm_52\n.address_size 64\n{text}")).expect("no NUL byte in PTX");
    let (mut module, mut function) = (ptr::null_mut(), ptr::null_mut());
    let code = call!(cuModuleLoadData(&raw mut module, text.as_ptr().cast())).0;
    if code == 0 {
        ok!(cuModuleGetFunction(&raw mut function, module, c"k".as_ptr()));
    }
    (code, function)
}

/// Returns a lock for tests with large stacks: a GPU reserves a stack for every thread that can be resident, which
/// takes most of its memory.
fn large_stacks() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the PTX of a kernel whose threads write their number to the last 128 bytes of an array of `bytes` bytes in
/// `space`, read it back and store it in their element of `p`.
fn with_array(space: &str, bytes: u64) -> String {
    let last = bytes - 128;
    format!(
        ".visible .entry k(.param .u64 p)\n{{\n.reg .b64 %rd<5>; .reg .b32 %r<4>;\n.{space} .align 8 .b8 s[{bytes}];\n\
        ld.param.u64 %rd1,[p];\nmov.u32 %r1,%tid.x;\nmul.wide.u32 %rd2,%r1,4;\nmov.u64 %rd3,s;\nadd.s64 %rd4,%rd3,%rd2;\n\
        st.{space}.u32 [%rd4+{last}],%r1;\nld.{space}.u32 %r2,[%rd4+{last}];\nadd.s64 %rd1,%rd1,%rd2;\n\
        st.global.u32 [%rd1],%r2;\nret;\n}}\n"
    )
}

fn attribute(function: CUfunction, attribute: CUfunction_attribute) -> i64 {
    let mut value = -1;
    ok!(cuFuncGetAttribute(&raw mut value, attribute, function));
    value.into()
}

fn limit(limit: CUlimit) -> usize {
    let mut value = 0;
    ok!(cuCtxGetLimit(&raw mut value, limit));
    value
}

/// Launches one block of 32 threads and waits; returns the codes of both calls.
fn run(function: CUfunction, shared: u32, mut arguments: Arguments) -> (u32, u32) {
    let mut pointers = arguments.pointers();
    let launched = call!(cuLaunchKernel(
        function,
        1,
        1,
        1,
        32,
        1,
        1,
        shared,
        ptr::null_mut(),
        pointers.as_mut_ptr(),
        ptr::null_mut()
    ));
    (launched.0, call!(cuCtxSynchronize()).0)
}

/// Runs a kernel of [`with_array`]; returns the codes of [`run`], and whether each thread stored its number.
fn run_with_array(gpu: &Gpu, function: CUfunction, shared: u32) -> ((u32, u32), bool) {
    let out = gpu.upload(&[u32::MAX; 32]);
    let codes = run(function, shared, arguments![out]);
    let stored = gpu.read::<u32>(out, 32).into_iter().eq(0..32);
    ok!(cuMemFree(out));
    (codes, stored)
}

#[test]
fn local_memory() {
    let _large_stacks = large_stacks();
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let size = CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES;
    let stack = CUlimit::CU_LIMIT_STACK_SIZE;
    let mut largest = 0;
    for bytes in [1024, 100_000, 262_144, 523_000] {
        let (code, function) = load(&with_array("local", bytes));
        c.that(code == 0, || format!("{bytes} bytes load: {code}"));
        let seen = attribute(function, size);
        c.that(seen as u64 == bytes, || format!("{bytes} bytes: {seen}"));
        let (codes, stored) = run_with_array(&gpu, function, 0);
        if codes == (2, 0) && !is_software() {
            // The stacks of all threads that a large GPU runs at once are as large as its memory, which other tests
            // use.
            needs(&format!("more free memory: {bytes} bytes of local memory a thread"));
            continue;
        }
        c.that((codes, stored) == ((0, 0), true), || {
            format!("{bytes} bytes run: {codes:?}, {stored}")
        });
        largest = bytes.next_multiple_of(16);
        // The launch enlarges the stack if necessary.
        let seen = limit(stack) as u64;
        c.that(seen == largest, || format!("{bytes} bytes: stack {seen}"));
    }
    for bytes in [524_272, 524_288, 600_000, 16_777_216] {
        let (code, function) = load(&with_array("local", bytes));
        c.that(code == 0, || format!("{bytes} bytes load: {code}"));
        let (codes, stored) = run_with_array(&gpu, function, 0);
        c.that((codes, stored) == ((1, 0), false), || {
            format!("{bytes} bytes run: {codes:?}, {stored}")
        });
    }
    let seen = limit(stack) as u64;
    c.that(seen == largest, || format!("at the end: stack {seen}"));
}

#[test]
fn shared_memory() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let mut most = 0;
    let optin = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
    ok!(cuDeviceGetAttribute(&raw mut most, optin, 0));
    let fixed = CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES;
    let dynamic = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    // The driver accepts more than 48 KiB of variables, which ptxas refuses.
    for bytes in [1000, 48 << 10, 60 << 10, most] {
        let (code, function) = load(&with_array("shared", bytes as u64));
        c.that(code == 0, || format!("{bytes} bytes load: {code}"));
        let usual = if bytes <= 48 << 10 { 48 << 10 } else { most };
        let seen = (attribute(function, fixed), attribute(function, dynamic));
        c.that(seen == (bytes.into(), (usual - bytes).into()), || {
            format!("{bytes} bytes: {seen:?}")
        });
        let left = most - bytes;
        is!(c, 1, cuFuncSetAttribute(function, dynamic, left + 1));
        is!(c, 0, cuFuncSetAttribute(function, dynamic, left));
        for (shared, expected) in [(0, 0), (left as u32, 0), (left as u32 + 1, 1)] {
            let (codes, stored) = run_with_array(&gpu, function, shared);
            c.that((codes, stored) == ((expected, 0), expected == 0), || {
                format!("{bytes} and {shared} bytes: {codes:?}, {stored}")
            });
        }
    }
    for bytes in [most as u64 + 1, 300_000, 2_000_000_000] {
        let (code, _) = load(&with_array("shared", bytes));
        c.that(code == 218, || format!("{bytes} bytes load: {code}"));
    }
}

/// A kernel that sums the numbers up to `p[0]` by recursion, with 256 bytes of local memory per level, into `p[1]`.
const SUM: &str = ".visible .func (.param .b32 r) f(.param .b32 n)\n{\n.reg .b64 %rd<4>; .reg .b32 %r<6>; .reg .pred %p<2>;\n\
    .local .align 8 .b8 s[256];\nld.param.u32 %r1,[n];\nand.b32 %r5,%r1,63;\nmul.wide.u32 %rd1,%r5,4;\nmov.u64 %rd2,s;\n\
    add.s64 %rd3,%rd2,%rd1;\nst.local.u32 [%rd3],%r1;\nmov.u32 %r2,0;\nsetp.eq.u32 %p1,%r1,0;\n@%p1 bra E;\nsub.u32 %r3,%r1,1;\n\
    { .param .b32 a; .param .b32 b; st.param.b32 [a],%r3; call (b),f,(a); ld.param.b32 %r2,[b]; }\n\
    E: ld.local.u32 %r4,[%rd3];\nadd.u32 %r2,%r2,%r4;\nst.param.b32 [r],%r2;\nret;\n}\n\
    .visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<2>; .reg .b32 %r<3>;\nld.param.u64 %rd1,[p];\nld.global.u32 %r1,[%rd1];\n\
    { .param .b32 a; .param .b32 b; st.param.b32 [a],%r1; call (b),f,(a); ld.param.b32 %r2,[b]; }\nst.global.u32 [%rd1+4],%r2;\nret;\n}\n";

/// Returns the codes of launch and synchronisation, and the sum of the numbers up to `n`, or 0 if a call failed.
fn sum_to(gpu: &Gpu, n: u32) -> ((u32, u32), u32) {
    let (code, function) = load(SUM);
    assert_eq!(code, 0);
    let place = gpu.upload(&[n, 0]);
    let codes = run(function, 0, arguments![place]);
    let sum = if codes == (0, 0) {
        gpu.read::<u32>(place, 2)[1]
    } else {
        0
    };
    (codes, sum)
}

#[test]
fn recursion_within_the_stack_limit() {
    let _large_stacks = large_stacks();
    let gpu = Gpu::new();
    assert_eq!(sum_to(&gpu, 1), ((0, 0), 1));
    ok!(cuCtxSetLimit(CUlimit::CU_LIMIT_STACK_SIZE, 16_384));
    assert_eq!(sum_to(&gpu, 20), ((0, 0), 210));
    ok!(cuCtxSetLimit(CUlimit::CU_LIMIT_STACK_SIZE, 131_072));
    assert_eq!(sum_to(&gpu, 300), ((0, 0), 45_150));
}

#[test]
fn recursion_beyond_the_stack_limit() {
    let _large_stacks = large_stacks();
    child!("recursion_beyond_the_stack_limit", {
        let gpu = Gpu::new();
        assert_eq!(sum_to(&gpu, 2000), ((0, 700), 0));
    });
}

/// A kernel that allocates 64 bytes, stores the address in `p[0]`, and frees it `p[1]` times.
const ALLOCATE: &str = ".extern .func (.param .b64 r) malloc(.param .b64 s);\n.extern .func free(.param .b64 a);\n\
    .visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<5>; .reg .b32 %r<2>; .reg .pred %p<3>;\nld.param.u64 %rd1,[p];\n\
    mov.u32 %r1,%tid.x;\nsetp.ne.u32 %p2,%r1,0;\n@%p2 bra E;\nld.global.u64 %rd2,[%rd1+8];\nmov.u64 %rd4,64;\n\
    { .param .b64 a; .param .b64 b; st.param.b64 [a],%rd4; call (b),malloc,(a); ld.param.b64 %rd3,[b]; }\nst.global.u64 [%rd1],%rd3;\n\
    L: setp.eq.u64 %p1,%rd2,0;\n@%p1 bra E;\n{ .param .b64 a; st.param.b64 [a],%rd3; call free,(a); }\nsub.u64 %rd2,%rd2,1;\nbra L;\n\
    E: ret;\n}\n";

#[test]
fn heap_memory_belongs_to_kernels() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let heap = CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE;
    let (code, function) = load(ALLOCATE);
    assert_eq!(code, 0);
    // The limit can be set while a kernel with `malloc` is loaded but has not been launched.
    is!(c, 0, cuCtxSetLimit(heap, 16 << 20));
    let place = gpu.upload(&[0_u64, 0]);
    assert_eq!(run(function, 0, arguments![place]), (0, 0));
    let address = gpu.read::<u64>(place, 1)[0];
    c.that(address != 0, || "malloc returned NULL".to_owned());
    is!(c, 1, cuCtxSetLimit(heap, 32 << 20));
    let (mut base, mut size, mut word) = (0, 0, 0_u32);
    let word: *mut c_void = (&raw mut word).cast();
    is!(c, 500, cuMemGetAddressRange(&raw mut base, &raw mut size, address));
    is!(c, 1, cuMemcpyDtoH(word, address, 4));
    is!(c, 1, cuMemFree(address));
    let kind = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    is!(c, 1, cuPointerGetAttribute(word, kind, address));
    gpu.write(place, &[0_u64, 1]);
    assert_eq!(run(function, 0, arguments![place]), (0, 0));
}

#[test]
fn heap_memory_freed_twice() {
    child!("heap_memory_freed_twice", {
        let gpu = Gpu::new();
        let (code, function) = load(ALLOCATE);
        assert_eq!(code, 0);
        let place = gpu.upload(&[0_u64, 2]);
        assert_eq!(run(function, 0, arguments![place]), (0, 719));
    });
}

#[test]
fn registration() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    const BYTES: usize = 1 << 20;
    let mut memory = vec![1_u8; BYTES];
    let start = memory.as_mut_ptr();
    // Starts at the next page, because an earlier page may also hold memory of other tests.
    let own: *mut c_void = start.wrapping_add(start.align_offset(4096)).cast();
    let at = |offset: usize| own.wrapping_byte_add(offset);
    let mut flags = 0;
    for (asked, code, seen) in [
        (0, 0, 2),
        (1, 0, 3),
        (2, 0, 2),
        (3, 0, 3),
        (8, 0, 2),
        (9, 0, 3),
        (4, 1, 0),
        (16, 1, 0),
        (u32::MAX, 1, 0),
    ] {
        is!(c, code, cuMemHostRegister(own, 8192, asked));
        if code == 0 {
            is!(c, 0, cuMemHostGetFlags(&raw mut flags, own));
            c.that(flags == seen, || format!("flags {asked}: {flags}"));
            is!(c, 0, cuMemHostUnregister(own));
        }
    }
    // The address and the length can be unaligned.
    is!(c, 0, cuMemHostRegister(at(5), 99, 0));
    is!(c, 1, cuMemHostUnregister(at(8)));
    is!(c, 0, cuMemHostUnregister(at(5)));
    // Invalid lengths, and addresses of no memory or of memory that the driver allocated.
    is!(c, 1, cuMemHostRegister(ptr::null_mut(), 64, 0));
    is!(c, 1, cuMemHostRegister(own, 0, 0));
    is!(c, 1, cuMemHostRegister(own, usize::MAX, 0));
    is!(c, 2, cuMemHostRegister(own, 1 << 46, 0));
    is!(c, 1, cuMemHostRegister(4096 as *mut c_void, 4096, 0));
    let device = gpu.alloc(4096);
    let (mut pinned, mut managed) = (ptr::null_mut(), 0);
    ok!(cuMemHostAlloc(&raw mut pinned, 8192, 0));
    ok!(cuMemAllocManaged(&raw mut managed, 65_536, 1));
    is!(c, 1, cuMemHostRegister(device as *mut c_void, 4096, 0));
    is!(c, 1, cuMemHostRegister(pinned, 4096, 0));
    is!(c, 1, cuMemHostRegister(managed as *mut c_void, 4096, 0));
    is!(c, 1, cuMemHostUnregister(pinned));
    // Overlapping ranges.
    is!(c, 0, cuMemHostRegister(own, 8192, 0));
    is!(c, 712, cuMemHostRegister(own, 8192, 0));
    is!(c, 712, cuMemHostRegister(at(4096), 64, 0));
    is!(c, 712, cuMemHostRegister(own, 65_536, 0));
    is!(c, 712, cuMemHostRegister(at(4096), 65_536, 0));
    is!(c, 0, cuMemHostRegister(at(8192), 64, 0));
    is!(c, 1, cuMemFreeHost(own));
    is!(c, 1, cuMemFree(own as u64));
    is!(c, 1, cuMemHostUnregister(at(16)));
    is!(c, 0, cuMemHostUnregister(own));
    is!(c, 713, cuMemHostUnregister(own));
    is!(c, 713, cuMemHostUnregister(at(500_000)));
    is!(c, 1, cuMemHostUnregister(ptr::null_mut()));
    is!(c, 0, cuMemHostUnregister(at(8192)));
}

#[test]
fn the_size_of_the_print_buffer_is_fixed_by_a_launch() {
    // In a child process, so that the kernel's output is captured.
    child!("the_size_of_the_print_buffer_is_fixed_by_a_launch", {
        let gpu = Gpu::new();
        let mut c = Codes::new();
        let fifo = CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE;
        let kernel = gpu.kernel("print.ptx", "print_threads");
        is!(c, 0, cuCtxSetLimit(fifo, 1 << 20));
        gpu.launch(kernel, [1, 1, 1], [1, 1, 1], 0, &mut arguments![0_u64]);
        is!(c, 1, cuCtxSetLimit(fifo, 2 << 20));
        let size = limit(fifo);
        c.that(size == 1 << 20, || format!("{size} bytes"));
    });
}
