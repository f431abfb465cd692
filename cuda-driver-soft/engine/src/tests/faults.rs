//! Faults of kernels, and their messages.

use super::{Arg, Bench};
use crate::{Fault, FaultKind, Isa, Launch, Options};
use ptx::ir::Space;

/// Runs the kernel `k` of a module in one warp, and returns its fault.
fn fault_of(ptx: &str) -> Fault {
    let bench = Bench::text(ptx, Isa::best());
    let execution = Bench::run(bench.launch("k", 1, 32, &[Arg::U64(0)]));
    execution.fault().expect("a fault")
}

#[test]
fn a_null_pointer() {
    let mut bench = Bench::file("faults", Isa::best());
    let out = bench.bytes(4);
    let launch = bench.launch("fault_read", 1, 1, &[Arg::U64(0), Arg::U64(out)]);
    let fault = Bench::run(launch).fault().expect("a fault");
    assert_eq!(
        fault.kind,
        FaultKind::IllegalAddress {
            address: 0,
            size: 4,
            write: false,
            space: Space::Global
        }
    );
    assert_eq!((fault.code(), fault.kernel.as_str()), (700, "fault_read"));
    let text = fault.to_string();
    assert!(
        text.contains("illegal read of 4 bytes at 0x0") && text.contains("a null pointer"),
        "{text}"
    );
    assert!(text.contains("block [0,0,0], thread [0,0,0]"), "{text}");
}

#[test]
fn the_first_byte_past_an_allocation() {
    let mut bench = Bench::file("vector_add", Isa::best());
    let n = 600u32;
    let (a, b) = (bench.bytes(4 * u64::from(n)), bench.bytes(4 * u64::from(n)));
    let c = bench.bytes(4 * u64::from(n) - 4);
    let args = [Arg::U64(a), Arg::U64(b), Arg::U64(c), Arg::U32(n)];
    let fault = Bench::run(bench.launch("vector_add", 3, 256, &args))
        .fault()
        .expect("a fault");
    let end = c + 4 * u64::from(n) - 4;
    assert_eq!(
        fault.kind,
        FaultKind::IllegalAddress {
            address: end,
            size: 4,
            write: true,
            space: Space::Global
        }
    );
    assert_eq!((fault.block, fault.thread), ([2, 0, 0], [87, 0, 0]));
    assert!(
        fault
            .to_string()
            .contains("0 bytes past the end of the 2396 bytes at 0x")
            && fault.to_string().contains("CUDA_SOFT_SLACK=512 allows such accesses"),
        "{fault}"
    );
}

#[test]
fn freed_memory() {
    let mut bench = Bench::file("vector_add", Isa::best());
    let a = bench.bytes(1024);
    crate::memory::address_space().free(a).unwrap();
    let args = [Arg::U64(a), Arg::U64(a), Arg::U64(a), Arg::U32(256)];
    let fault = Bench::run(bench.launch("vector_add", 1, 256, &args))
        .fault()
        .expect("a fault");
    assert_eq!(fault.code(), 700);
}

#[test]
fn an_address_past_the_window_of_shared_memory_has_its_own_code() {
    let mut bench = Bench::file("faults", Isa::best());
    let out = bench.bytes(4096);
    let index = u32::MAX / 8;
    let launch = bench.launch("fault_shared", 1, 32, &[Arg::U32(index), Arg::U64(out)]);
    let fault = Bench::run(launch).fault().expect("a fault");
    assert!(matches!(fault.kind, FaultKind::SharedOutOfRange { .. }), "{fault}");
    assert_eq!(fault.code(), 715);
}

#[test]
fn misaligned_and_trap() {
    let mut bench = Bench::file("faults", Isa::best());
    let p = bench.bytes(64);
    let launch = bench.launch("fault_misaligned", 1, 1, &[Arg::U64(p), Arg::U32(2), Arg::U64(p)]);
    let fault = Bench::run(launch).fault().expect("a fault");
    assert!(matches!(fault.kind, FaultKind::Misaligned { .. }), "{fault}");
    assert_eq!(fault.code(), 716);
    let launch = bench.launch("fault_trap", 1, 1, &[Arg::U32(1), Arg::U64(p)]);
    let fault = Bench::run(launch).fault().expect("a fault");
    assert_eq!((fault.kind.clone(), fault.code()), (FaultKind::Trap, 719));
}

#[test]
fn the_fault_of_the_lowest_block_is_reported() {
    // Every block faults; with several host threads any of them may be first.
    let bench = Bench::file("faults", Isa::best());
    let launch = bench.launch("fault_trap", 64, 32, &[Arg::U32(1), Arg::U64(0)]);
    let execution = launch.start();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| execution.work(u64::MAX));
        }
    });
    assert!(execution.is_finished());
    assert_eq!(execution.fault().expect("a fault").block, [0, 0, 0]);
}

#[test]
fn endless_recursion_faults() {
    let ptx = ".version 8.0\n.target sm_90\n.address_size 64
        .func deep(.reg .u64 %p) {
            .reg .b64 %q;
            .local .b8 room[64];
            add.u64 %q, %p, 1;
            call deep, (%q);
            ret;
        }
        .visible .entry k(.param .u64 out) {
            .reg .b64 %rd1;
            ld.param.u64 %rd1, [out];
            call deep, (%rd1);
            ret;
        }";
    let fault = fault_of(ptx);
    assert!(matches!(fault.kind, FaultKind::StackOverflow { .. }), "{fault}");
    assert_eq!(fault.code(), 700);
}

#[test]
fn a_call_of_an_invalid_address() {
    let ptx = ".version 8.0\n.target sm_90\n.address_size 64
        .visible .entry k(.param .u64 out) {
            .reg .b64 %rd1;
            mov.u64 %rd1, 1234;
        P: .callprototype _ ();
            call %rd1, P;
            ret;
        }";
    let fault = fault_of(ptx);
    assert_eq!(
        (fault.kind.clone(), fault.code()),
        (FaultKind::InvalidPc { address: 1234 }, 718)
    );
}

#[test]
fn a_branch_index_out_of_range() {
    let ptx = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {
            .reg .b32 %r1;
            mov.u32 %r1, 7;
        LABELS: .branchtargets A, B;
            brx.idx %r1, LABELS;
        A:
        B:
            ret;
        }";
    let fault = fault_of(ptx);
    assert_eq!(fault.code(), 718);
    let text = fault.to_string();
    assert!(
        text.contains("brx.idx with index 7, but its list has 2 labels"),
        "{text}"
    );
}

#[test]
fn a_failed_assertion() {
    let mut bench = Bench::file("assert", Isa::best());
    let data: Vec<u32> = (0..32).collect();
    let input = bench.put(&data, u32::to_le_bytes);
    let args = [Arg::U64(input), Arg::U32(5), Arg::U64(input), Arg::U32(32)];
    let fault = Bench::run(bench.launch("assert_below", 1, 32, &args))
        .fault()
        .expect("a fault");
    assert_eq!(fault.code(), 710);
    let lines = fault.assertion().expect("an assertion");
    let wanted: Vec<String> = (5..32)
        .map(|x| {
            format!("assert.cu:14: assert_below: block: [0,0,0], thread: [{x},0,0] Assertion `in[i] < limit` failed.")
        })
        .collect();
    assert_eq!(lines.lines().collect::<Vec<_>>(), wanted);
}

#[test]
fn unsupported_instructions_are_named_in_ptx() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {
            .reg .b32 %r<3>;
            mov.u32 %r1, 0;
            cvta.shared.u32 %r2, %r1;
            ret;
        }";
    let bench = Bench::text(text, Isa::best());
    let kernel = bench.program.kernel("k").expect("a kernel");
    assert_eq!(kernel.unsupported(), Some("`cvta.shared.u32` (PTX line 7)"));
    let launch = Launch {
        kernel,
        grid: [1; 3],
        block: [1; 3],
        dynamic_shared: 0,
        params: Box::default(),
        options: Options::default(),
    };
    let fault = launch.start().fault().expect("a fault");
    assert_eq!(
        fault.to_string(),
        "k: unsupported instruction `cvta.shared.u32` (PTX line 7, block [0,0,0], thread [0,0,0])"
    );
}
