//! Counters compared with the values of Nsight Compute for the same kernels.
//!
//! nvcc 13.0 has compiled `ncu/kernels.cu` for sm_90 with `-lineinfo`. `ncu/kernels.ptx` is the PTX text, and
//! `ncu/values.txt` has the values that Nsight Compute (ncu) counted on an H200.

use super::{Arg, Bench, Dim};
use crate::Isa;
use crate::count::{Counters, Profile};
use std::collections::BTreeMap;

/// Returns the counters of each kernel.
fn counted() -> BTreeMap<&'static str, Counters> {
    let mut bench = Bench::text(include_str!("ncu/kernels.ptx"), Isa::best());
    let zeros = vec![0u32; 1 << 20];
    let [a, b, c, d, e] = std::array::from_fn(|_| bench.put(&zeros, u32::to_le_bytes)).map(Arg::U64);
    let values: Vec<u32> = (0..256).map(|i| i * 5 % 32 / 4).collect();
    let filled = Arg::U64(bench.put(&values, u32::to_le_bytes));
    let launches: [(&str, Dim, Dim, &[Arg]); 12] = [
        ("copy_row", 4.into(), 256.into(), &[a, b]),
        ("copy_stride", 4.into(), 256.into(), &[a, b]),
        ("copy_offset", 4.into(), 256.into(), &[a, b]),
        ("wide", 2.into(), 64.into(), &[a, b, c, b]),
        ("transpose", 1.into(), (32, 32).into(), &[a, b]),
        ("shared_wide", 1.into(), 32.into(), &[a]),
        ("branches", 2.into(), 64.into(), &[d]),
        ("atomics", 1.into(), 32.into(), &[d, e]),
        ("histogram", 1.into(), 256.into(), &[e, filled]),
        ("reduce", 1.into(), 256.into(), &[a, b, Arg::U32(200)]),
        ("local_array", 1.into(), 64.into(), &[e, filled]),
        ("matmul", (2, 2).into(), (16, 16).into(), &[a, b, c, Arg::U32(32)]),
    ];
    let mut all = BTreeMap::new();
    for (name, grid, block, arguments) in launches {
        let profile = Profile::new();
        let mut launch = bench.launch(name, grid, block, arguments);
        launch.options.observers = profile.observers();
        let execution = Bench::run(launch);
        assert_eq!(execution.fault().map(|f| f.to_string()), None);
        all.insert(name, profile.take().remove(0).total);
    }
    all
}

/// Counters of PTX instructions here that equal ncu's counters of machine instructions, except those in [`DIFFERENT`].
const SAME: [&str; 17] = [
    "global_load_requests",
    "global_load_sectors",
    "global_load_bytes",
    "global_store_requests",
    "global_store_sectors",
    "global_store_bytes",
    "local_load_requests",
    "local_load_sectors",
    "local_store_requests",
    "local_store_sectors",
    "shared_load_requests",
    "shared_load_wavefronts",
    "shared_load_conflicts",
    "shared_store_requests",
    "shared_store_wavefronts",
    "shared_store_conflicts",
    "shared_bytes",
];

/// Counters in [`SAME`] that differ because ptxas changes the code: kernel, counter, value here, value of ncu.
/// `count/ncu.md` has the reasons.
const DIFFERENT: [(&str, &str, u64, u64); 8] = [
    // Loads of neighbouring words become one wide load.
    ("matmul", "shared_load_requests", 2048, 1280),
    ("matmul", "shared_load_wavefronts", 2048, 1536),
    ("reduce", "shared_load_requests", 8, 2),
    ("reduce", "shared_load_wavefronts", 8, 2),
    // The array is in registers.
    ("local_array", "local_load_requests", 8, 0),
    ("local_array", "local_load_sectors", 32, 0),
    ("local_array", "local_store_requests", 8, 0),
    ("local_array", "local_store_sectors", 128, 0),
];

#[test]
fn memory_counters_are_those_of_nsight_compute() {
    for name in SAME {
        assert!(Counters::NAMES.iter().any(|(own, _)| *own == name), "no counter {name}");
    }
    let mut values: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for line in include_str!("ncu/values.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let parts: Vec<&str> = line.split(' ').collect();
        values.insert((parts[0], parts[1]), parts[2].parse().unwrap());
    }
    let all = counted();
    let mut different = Vec::new();
    for (kernel, counters) in &all {
        let metrics = Counters::NAMES.iter().map(|(_, metric)| *metric);
        for ((name, value), metric) in counters
            .values()
            .zip(metrics)
            .filter(|((name, _), _)| SAME.contains(name))
        {
            let theirs = values.get(&(*kernel, metric)).copied().unwrap_or(0.0) as u64;
            if value != theirs {
                different.push((*kernel, name, value, theirs));
            }
        }
        // Arithmetic is the same, too. The counters count instructions of warps, and ncu those of threads.
        let threads = |counter: u64| counter as f64 * 32.0;
        for (value, metric) in [
            (counters.fp64, "smsp__sass_thread_inst_executed_op_fp64_pred_on.sum"),
            (counters.fp32, "smsp__sass_thread_inst_executed_op_fp32_pred_on.sum"),
        ] {
            // In `reduce`, some additions run in one thread only.
            if *kernel != "reduce" {
                let theirs = values.get(&(*kernel, metric)).copied().unwrap_or(0.0);
                assert_eq!(threads(value), theirs, "{kernel} {metric}");
            }
        }
    }
    let mut wanted = DIFFERENT.to_vec();
    wanted.sort_unstable();
    different.sort_unstable();
    assert_eq!(different, wanted);
    // ncu counts reductions separately, and ptxas combines `atomicMax` of all threads on one address: 1 sector, not 32.
    let of = |metric: &str| values.get(&("atomics", metric)).copied().unwrap_or(0.0) as u64;
    let sum = |what: &str| {
        let kinds = ["atom", "red"].map(|kind| format!("l1tex__t_{what}_pipe_lsu_mem_global_op_{kind}.sum"));
        kinds.iter().map(|metric| of(metric.as_str())).sum::<u64>()
    };
    assert_eq!(all["atomics"].global_atomic_requests, sum("requests"));
    assert_eq!(all["atomics"].global_atomic_sectors, sum("sectors") - 1 + 32);
    assert_eq!(all["histogram"].shared_atomic_requests, 8);
}
