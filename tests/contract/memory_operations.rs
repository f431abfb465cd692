//! Tests of streams that write values to memory and wait for values.

use std::ffi::c_void;
use std::ptr;
use std::thread::sleep;
use std::time::Duration;

use cuda_driver::sys::*;

use crate::common::Codes;
use crate::common::gpu::Gpu;
use crate::{arguments, call, child, is, ok};

// Flags of a wait: the comparisons `GEQ`, `EQ`, `AND` and `NOR` of `CUstreamWaitValue_flags`.
const REACHED: u32 = 0;
const EQUAL: u32 = 1;
const AND: u32 = 2;
const NOR: u32 = 3;

fn stream() -> CUstream {
    let mut stream = ptr::null_mut();
    ok!(cuStreamCreate(&raw mut stream, 1));
    stream
}

/// Page-locked memory with one 64-bit word in use, zero at first.
struct Shared(*mut u64);

impl Shared {
    fn new() -> Self {
        let mut memory = ptr::null_mut();
        ok!(cuMemHostAlloc(&raw mut memory, 4096, 0));
        let shared = Shared(memory.cast());
        shared.set(0);
        shared
    }

    fn address(&self) -> CUdeviceptr {
        self.0 as CUdeviceptr
    }

    fn set(&self, value: u64) {
        // SAFETY: the word is in this test's page-locked memory. The device may read it at the same time.
        unsafe { self.0.write_volatile(value) };
    }

    fn get(&self) -> u64 {
        // SAFETY: the word is in this test's page-locked memory.
        unsafe { self.0.read_volatile() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        ok!(cuMemFreeHost(self.0.cast()));
    }
}

fn is_idle(stream: CUstream) -> bool {
    match call!(cuStreamQuery(stream)).0 {
        0 => true,
        600 => false,
        code => panic!("cuStreamQuery: {code}"),
    }
}

#[test]
fn values_are_written_in_stream_order() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let (stream, memory, host) = (stream(), gpu.upload(&[0_u32; 1024]), Shared::new());
    ok!(cuStreamWriteValue32(stream, memory, 5, 0));
    ok!(cuMemcpyDtoDAsync(memory + 8, memory, 4, stream));
    ok!(cuStreamWriteValue32(stream, memory, 6, 0));
    let long = 0x1122_3344_5566_7788;
    ok!(cuStreamWriteValue64(stream, memory + 16, long, 0));
    ok!(cuStreamWriteValue32(stream, host.address(), 8, 0));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(gpu.read::<u32>(memory, 6), [6, 0, 5, 0, 0x5566_7788, 0x1122_3344]);
    assert_eq!(host.get(), 8);
    is!(c, 0, cuStreamWriteValue32(ptr::null_mut(), memory, 7, 0));

    let (mut managed, mut plain) = (0, 0_u64);
    ok!(cuMemAllocManaged(&raw mut managed, 64, 1));
    let plain = &raw mut plain as CUdeviceptr;
    for address in [0, 0x1000, memory + 2, memory + 4096, managed, plain] {
        is!(c, 1, cuStreamWriteValue32(stream, address, 1, 0));
        is!(c, 1, cuStreamWaitValue32(stream, address, 1, EQUAL));
    }
    for address in [memory + 4092, memory + 12] {
        is!(c, 1, cuStreamWriteValue64(stream, address, 1, 0));
        is!(c, 1, cuStreamWaitValue64(stream, address, 1, EQUAL));
    }
    for flags in [1, 2] {
        is!(c, 1, cuStreamWriteValue32(stream, memory, 1, flags));
    }
    for flags in [4, 5, 6, 7, 8] {
        is!(c, 1, cuStreamWaitValue32(stream, memory, 1, flags));
    }
    is!(c, 0, cuStreamSynchronize(stream));
    ok!(cuMemFree(managed));
    ok!(cuStreamDestroy(stream));
}

/// Returns true if a stream that waits for `value` with `flags` continues when the word in memory is `found`. `wide`
/// selects a wait for 64 bits.
///
/// `should` is the expected result: if it is true, the stream has more time to continue. At the end, `release` is
/// written to memory, a value that ends the wait.
fn continues(found: u64, value: u64, flags: u32, wide: bool, (should, release): (bool, u64)) -> bool {
    let (stream, host) = (stream(), Shared::new());
    host.set(found);
    if wide {
        ok!(cuStreamWaitValue64(stream, host.address(), value, flags));
    } else {
        let value = value as u32;
        ok!(cuStreamWaitValue32(stream, host.address(), value, flags));
    }
    let mut idle = false;
    // On a busy device a stream may need a long time to continue.
    for _ in 0..if should { 10_000 } else { 5 } {
        sleep(Duration::from_millis(1));
        idle = is_idle(stream);
        if idle {
            break;
        }
    }
    host.set(release);
    ok!(cuStreamSynchronize(stream));
    ok!(cuStreamDestroy(stream));
    idle
}

#[test]
fn streams_wait_for_values() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    for (found, value, flags, release, passes) in [
        (5, 5, REACHED, 5, true),
        (4, 5, REACHED, 5, false),
        (0x8000_0004, 5, REACHED, 5, true),
        (0x8000_0005, 5, REACHED, 5, false),
        (0xffff_ffff, 0, REACHED, 1, false),
        (0, 0xffff_ffff, REACHED, 0, true),
        (5, 4, EQUAL, 4, false),
        (6, 2, AND, 2, true),
        (4, 3, AND, 1, false),
        (0xffff_fff0, 0x0f, NOR, 0, false),
        (0xffff_fff0, 0x0e, NOR, 0, true),
        (0xffff_ffff, 0, NOR, 0, false),
    ] {
        let got = continues(found, value, flags, false, (passes, release));
        c.that(got == passes, || {
            format!("a wait for {value:#x} with flags {flags} finds {found:#x} and continues: {got}")
        });
    }
    for (found, value, passes) in [
        (1 << 40, 1 << 40, true),
        ((1 << 40) - 1, 1 << 40, false),
        (0x8000_0000_0000_0001, 2, true),
        (0x7fff_ffff_ffff_ffff, u64::MAX, false),
    ] {
        let got = continues(found, value, REACHED, true, (passes, value));
        c.that(got == passes, || {
            format!("a wait for {value:#x} finds {found:#x} and continues: {got}")
        });
    }
}

#[test]
fn any_change_of_memory_releases_a_stream() {
    // In a process of its own: on a GPU streams share hardware queues, and a waiting stream blocks the others in its
    // queue.
    child!("any_change_of_memory_releases_a_stream", {
        release_each_other();
    });
}

fn release_each_other() {
    let gpu = Gpu::new();
    let write = gpu.kernel("faults.ptx", "fault_write");
    let (waiting, other) = (stream(), stream());
    let memory = gpu.upload(&[0_u32; 16]);
    let mut event = ptr::null_mut();
    ok!(cuEventCreate(&raw mut event, 0));
    let values = [11_u32, 22, 33, 44];
    for (turn, value) in values.into_iter().enumerate() {
        ok!(cuStreamWaitValue32(waiting, memory, value, EQUAL));
        ok!(cuMemcpyDtoDAsync(memory + 8, memory, 4, waiting));
        ok!(cuEventRecord(event, waiting));
        sleep(Duration::from_millis(2));
        assert_eq!(call!(cuEventQuery(event)).0, 600, "turn {turn}");
        let data = [value; 1];
        match turn {
            0 => ok!(cuStreamWriteValue32(other, memory, value, 0)),
            1 => ok!(cuMemcpyHtoDAsync(memory, data.as_ptr().cast::<c_void>(), 4, other)),
            2 => {
                let mut arguments = arguments![memory, value];
                let mut pointers = arguments.pointers();
                let arguments = pointers.as_mut_ptr();
                ok!(cuLaunchKernel(
                    write,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    0,
                    other,
                    arguments,
                    ptr::null_mut()
                ));
            }
            _ => ok!(cuMemsetD32Async(memory, value, 1, other)),
        }
        ok!(cuEventSynchronize(event));
        assert_eq!(gpu.read::<u32>(memory + 8, 1), [value]);
    }
    // Two streams that release each other in turn.
    gpu.write(memory, &[0_u32; 4]);
    for round in 1..=20_u32 {
        ok!(cuStreamWriteValue32(waiting, memory, round, 0));
        ok!(cuStreamWaitValue32(waiting, memory + 4, round, REACHED));
        ok!(cuStreamWaitValue32(other, memory, round, REACHED));
        ok!(cuStreamWriteValue32(other, memory + 4, round, 0));
    }
    ok!(cuStreamSynchronize(waiting));
    assert_eq!(gpu.read::<u32>(memory, 2), [20, 20]);
    ok!(cuStreamDestroy(waiting));
    ok!(cuStreamDestroy(other));
    ok!(cuEventDestroy(event));
}

#[test]
fn batches_of_operations() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let (stream, memory) = (stream(), gpu.upload(&[0_u32; 64]));
    type Kind = CUstreamBatchMemOpType;
    let new = |kind: Kind, address: CUdeviceptr, value: u64, flags: u32| {
        let mut params = CUstreamBatchMemOpParams::default();
        params.waitValue.operation = kind;
        // The parameters of waits and of writes have the same layout.
        params.waitValue.address = address;
        params.waitValue.anonymous1.value64 = value;
        params.waitValue.flags = flags;
        params
    };
    let barrier = |flags: u32| {
        let mut params = CUstreamBatchMemOpParams::default();
        params.memoryBarrier.operation = Kind::CU_STREAM_MEM_OP_BARRIER;
        params.memoryBarrier.flags = flags;
        params
    };
    let mut all = [
        new(Kind::CU_STREAM_MEM_OP_WRITE_VALUE_32, memory, 11, 0),
        new(Kind::CU_STREAM_MEM_OP_WRITE_VALUE_64, memory + 8, 12 << 32, 0),
        barrier(0),
        new(Kind::CU_STREAM_MEM_OP_WAIT_VALUE_32, memory, 11, EQUAL),
    ];
    is!(c, 0, cuStreamBatchMemOp(stream, 4, all.as_mut_ptr(), 0));
    is!(c, 0, cuStreamSynchronize(stream));
    assert_eq!(gpu.read::<u32>(memory, 4), [11, 0, 0, 12]);
    is!(c, 0, cuStreamBatchMemOp(stream, 0, all.as_mut_ptr(), 0));
    is!(c, 1, cuStreamBatchMemOp(stream, 1, all.as_mut_ptr(), 1));
    let mut many = vec![all[0]; 257];
    is!(c, 0, cuStreamBatchMemOp(stream, 255, many.as_mut_ptr(), 0));
    is!(c, 1, cuStreamBatchMemOp(stream, 256, many.as_mut_ptr(), 0));
    is!(c, 1, cuStreamBatchMemOp(stream, 257, many.as_mut_ptr(), 0));
    for (flags, code) in [(1, 0), (2, 1)] {
        let mut one = barrier(flags);
        is!(c, code, cuStreamBatchMemOp(stream, 1, &raw mut one, 0));
    }
    // If one operation is invalid, none is done.
    for kind in [0, 9] {
        let mut two = [
            new(Kind::CU_STREAM_MEM_OP_WRITE_VALUE_32, memory, 77, 0),
            new(CUstreamBatchMemOpType(kind), memory, 0, 0),
        ];
        is!(c, 1, cuStreamBatchMemOp(stream, 2, two.as_mut_ptr(), 0));
    }
    is!(c, 0, cuStreamSynchronize(stream));
    assert_eq!(gpu.read::<u32>(memory, 1), [11]);
    ok!(cuStreamDestroy(stream));
}
