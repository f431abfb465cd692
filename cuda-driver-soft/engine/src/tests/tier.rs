//! Tests of the choice between interpreter and machine code, by the numbers of instructions that each has run.

use super::{Arg, Bench, can_compile};
use crate::{Counts, Engine, Isa};

/// `work` stores a number that a loop computes. `video` does the same with an instruction that has no machine code.
const KERNELS: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry work(.param .u64 out, .param .u32 rounds) {
    .reg .b64 %rd<4>; .reg .b32 %r<10>; .reg .pred %p;
    ld.param.u64 %rd0, [out]; ld.param.u32 %r1, [rounds];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mov.u32 %r8, %tid.y; mov.u32 %r9, %ntid.y;
    mad.lo.u32 %r2, %r2, %r9, %r8; mad.lo.u32 %r0, %r2, %r3, %r4;
    mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1;
    mov.u32 %r5, %r0; mov.u32 %r6, 0;
again: mul.lo.u32 %r5, %r5, 1664525; xor.b32 %r5, %r5, %r6; add.u32 %r6, %r6, 1;
    setp.lt.u32 %p, %r6, %r1; @%p bra again;
    st.global.u32 [%rd1], %r5; ret;
}
.visible .entry video(.param .u64 out, .param .u32 rounds) {
    .reg .b64 %rd<4>; .reg .b32 %r<8>; .reg .pred %p;
    ld.param.u64 %rd0, [out]; ld.param.u32 %r1, [rounds];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r0, %r2, %r3, %r4;
    mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1;
    mov.u32 %r5, %r0; mov.u32 %r6, 0;
again: vabsdiff4.u32.u32.u32.add %r5, %r5, %r6, %r5; add.u32 %r6, %r6, 1;
    setp.lt.u32 %p, %r6, %r1; @%p bra again;
    st.global.u32 [%rd1], %r5; ret;
}
";

/// A program with both kernels, and memory for their results.
struct Kernels {
    bench: Bench,
    out: u64,
}

const MOST_THREADS: u32 = 1 << 17;

impl Kernels {
    /// Returns `None` on a CPU for which nothing is compiled.
    fn new() -> Option<Self> {
        can_compile().then(|| {
            let mut bench = Bench::text(KERNELS, Isa::Wide);
            let out = bench.bytes(u64::from(4 * MOST_THREADS));
            Kernels { bench, out }
        })
    }

    /// Runs a kernel, and returns its counts and results.
    fn run(&self, kernel: &str, grid: u32, block: (u32, u32), rounds: u32, engine: Engine) -> (Counts, Vec<u32>) {
        let args = [Arg::U64(self.out), Arg::U32(rounds)];
        let mut launch = self.bench.launch(kernel, grid, block, &args);
        launch.options.engine = engine;
        let execution = Bench::run(launch);
        assert_eq!(execution.fault(), None);
        let threads = grid * block.0 * block.1;
        let results = self.bench.get(self.out, threads as usize, u32::from_le_bytes);
        (execution.counts(), results)
    }
}

#[test]
fn kernels_are_compiled_once_they_have_run_often() {
    let Some(kernels) = Kernels::new() else { return };
    let (mut interpreted, mut compiled) = (0, 0);
    let (_, expected) = kernels.run("work", 2, (64, 1), 100, Engine::Interpreter);
    for _ in 0..100 {
        let (counts, results) = kernels.run("work", 2, (64, 1), 100, Engine::Auto);
        assert_eq!(results, expected);
        if counts.compiled == 0 {
            interpreted += 1;
            assert_eq!(compiled, 0, "the kernel was interpreted after it had been compiled");
        } else {
            compiled += 1;
            // Only the first access to an allocation calls the interpreter.
            assert!(counts.called <= 2, "{counts:?}");
            assert!(counts.compiled > counts.all * 9 / 10, "{counts:?}");
        }
    }
    assert!(interpreted >= 3 && compiled >= 50, "{interpreted}, {compiled}");
}

#[test]
fn a_kernel_with_a_large_grid_is_compiled_at_once() {
    let Some(kernels) = Kernels::new() else { return };
    // The kernel has just been loaded, so it is compiled in its first launch.
    let (counts, results) = kernels.run("work", 512, (256, 1), 3, Engine::Auto);
    assert!(counts.compiled > 0, "{counts:?}");
    assert_eq!(results, kernels.run("work", 512, (256, 1), 3, Engine::Interpreter).1);
}

#[test]
fn rare_launches_are_interpreted() {
    let Some(kernels) = Kernels::new() else { return };
    for _ in 0..20 {
        let (counts, _) = kernels.run("work", 1, (32, 1), 2, Engine::Auto);
        assert_eq!(counts.compiled, 0);
        assert!(counts.all > 0);
    }
}

#[test]
fn instructions_without_machine_code_keep_a_kernel_interpreted() {
    let Some(kernels) = Kernels::new() else { return };
    let (counts, expected) = kernels.run("video", 512, (256, 1), 20, Engine::Auto);
    assert_eq!(counts.compiled, 0);
    // It is compiled if a launch asks for it.
    let (counts, results) = kernels.run("video", 512, (256, 1), 20, Engine::Compiled { lanes: 16 });
    assert!(counts.compiled > 0 && counts.called > counts.all / 8, "{counts:?}");
    assert_eq!(results, expected);
}

#[test]
fn blocks_whose_rows_fit_groups_of_lanes_are_compiled() {
    let Some(kernels) = Kernels::new() else { return };
    for (block, compiles) in [
        ((64, 4), true),
        ((8, 8), true),
        ((24, 4), true),
        ((40, 1), true),
        ((12, 8), false),
    ] {
        let grid = MOST_THREADS / (block.0 * block.1);
        let (counts, results) = kernels.run("work", grid, block, 3, Engine::Auto);
        assert_eq!(counts.compiled > 0, compiles, "{block:?}");
        assert_eq!(results, kernels.run("work", grid, block, 3, Engine::Interpreter).1);
    }
}

#[test]
fn the_same_launches_make_the_same_choices() {
    let run = || {
        let kernels = Kernels::new()?;
        let counts = (0..40).map(|round| kernels.run("work", 2, (64, 1), 10 * round, Engine::Auto).0);
        Some(counts.collect::<Vec<_>>())
    };
    assert_eq!(run(), run());
}

#[test]
fn leaving_code_takes_its_exits() {
    let Some(kernels) = Kernels::new() else { return };
    let (compiled, expected) = kernels.run("work", 4, (64, 1), 100, Engine::Compiled { lanes: 16 });
    let (leaving, results) = kernels.run("work", 4, (64, 1), 100, Engine::Leaving { lanes: 16 });
    assert_eq!(results, expected);
    // A warp enters the code repeatedly, and leaves at each backward jump.
    assert!(
        leaving.compiled > 0 && leaving.compiled < compiled.compiled,
        "{leaving:?}, {compiled:?}"
    );
}
