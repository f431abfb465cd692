//! Grids of so many small blocks that a worker takes several at a time.

use super::{Arg, Bench};
use crate::grid::queue::{BlockQueue, Taken};
use crate::{Engine, FaultKind, Isa, Progress};

const BLOCKS: u32 = 512;

fn bench(body: &str) -> Bench {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {{
            .reg .b64 %rd<5>; .reg .b32 %r<9>; .reg .pred %p<5>;
            ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; {body} ret; }}"
    );
    Bench::text(&text, Isa::best())
}

const ENGINES: [Engine; 2] = [Engine::Interpreter, Engine::Compiled { lanes: 16 }];

#[test]
fn a_block_waits_for_a_later_one() {
    // Block 200 waits for block 203. The other blocks have few instructions, and the kernel has only weak loads.
    for engine in ENGINES {
        let mut bench = bench(
            "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; mov.u32 %r3, 1; setp.ne.u32 %p1, %r1, 200; @%p1 bra set;
            wait: ld.global.u32 %r2, [%rd1 + 812]; setp.eq.u32 %p2, %r2, 0; @%p2 bra wait;
            set: st.global.u32 [%rd3], %r3;",
        );
        let out = bench.put(&[0; BLOCKS as usize], u32::to_le_bytes);
        let mut launch = bench.launch("k", BLOCKS, 32, &[Arg::U64(out)]);
        launch.options.engine = engine;
        let execution = launch.start();
        while execution.work(1 << 16) != Progress::Finished {}
        assert_eq!(execution.fault().map(|f| f.to_string()), None);
        assert_eq!(
            bench.get(out, BLOCKS as usize, u32::from_le_bytes),
            [1; BLOCKS as usize]
        );
    }
}

#[test]
fn the_lowest_fault_is_reported() {
    for engine in ENGINES {
        for threads in [1, 4] {
            let bench = bench(
                "setp.eq.u32 %p1, %r1, 301; @%p1 bra bad; setp.ne.u32 %p1, %r1, 299; @%p1 bra end; mov.u32 %r2, 0;
                slow: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 20000; @%p2 bra slow; trap;
                bad: ld.global.u32 %r2, [%rd1]; end:",
            );
            let mut launch = bench.launch("k", BLOCKS, 32, &[Arg::U64(0)]);
            launch.options.engine = engine;
            let execution = launch.start();
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| while execution.work(1 << 12) != Progress::Finished {});
                }
            });
            let fault = execution.fault().expect("a fault");
            assert_eq!((fault.kind, fault.block), (FaultKind::Trap, [299, 0, 0]), "{engine:?}");
            let all = u64::from(BLOCKS);
            assert_eq!(execution.started.queue.progress(), (all, all), "{engine:?}");
        }
    }
}

/// Counts `finished` blocks in progress as finished, and takes up to `most` new ones. Returns the number of the first
/// and the number after the last; `None` if there are no new blocks to take.
fn taken(queue: &BlockQueue, most: u64, finished: u64) -> Option<(u64, u64)> {
    match queue.take("k", most, finished) {
        Some(Taken::New(numbers, _)) => Some((numbers.start, numbers.end)),
        _ => None,
    }
}

#[test]
fn blocks_that_were_put_back_run_once() {
    let queue = BlockQueue::new((256, 1), 256, 1_000, false);
    assert_eq!(taken(&queue, 8, 0), Some((0, 8)));
    // Block 0 finds no memory. No other block is in progress, so blocks run alone from then on.
    queue.settle(1..8, 0);
    assert!(queue.put_back(0, false));
    let mut seen = Vec::new();
    let mut finished = 0;
    while let Some((first, end)) = taken(&queue, 8, finished) {
        seen.extend(first..end);
        finished = end - first;
    }
    assert_eq!(seen, (0..256).collect::<Vec<u64>>());
    assert_eq!(queue.progress(), (256, 256));
    assert!(queue.is_finished());
}

#[test]
fn cancelled_blocks_count_once() {
    let queue = BlockQueue::new((256, 1), 256, 1_000, false);
    let [mut finished, mut begun] = [0; 2];
    for (first, end) in [(0, 8), (8, 16), (16, 24)] {
        assert_eq!(taken(&queue, 8, 0), Some((first, end)));
        begun += end - first;
    }
    // Block 10 faults: the blocks after it are cancelled, and those before it run.
    queue.settle(4..8, 0);
    queue.cancel_from(10);
    assert_eq!(queue.progress(), (256 - 24, 256));
    queue.settle(11..16, 3);
    finished += 5 + 3;
    assert_eq!(queue.progress().0, 256 - begun + finished);
    queue.settle(16..24, 0);
    assert_eq!(queue.progress().0, 256 - begun + finished + 8);
    // Blocks 0 to 3 are in progress, and 4 to 7 were put back.
    for number in 4..8 {
        assert_eq!(taken(&queue, 8, 0), Some((number, number + 1)));
    }
    assert_eq!(taken(&queue, 8, 8), None);
    assert!(queue.is_finished());
    assert_eq!(queue.progress(), (256, 256));
}
