//! The repository's kernels in `tests/kernels`: results of simple ones, and a check that the engine can run all.

use super::{Arg, Bench, on_each_isa};

#[test]
fn vector_add() {
    on_each_isa(|isa| {
        let mut bench = Bench::file("vector_add", isa);
        let n = 1000usize;
        let a: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
        let b: Vec<f32> = (0..n).map(|i| 1.0 / (i + 1) as f32).collect();
        let (da, db) = (bench.put(&a, f32::to_le_bytes), bench.put(&b, f32::to_le_bytes));
        let dc = bench.bytes(4 * n as u64);
        let args = [Arg::U64(da), Arg::U64(db), Arg::U64(dc), Arg::U32(n as u32)];
        bench.run_well("vector_add", n.div_ceil(256) as u32, 256, &args);
        let c = bench.get(dc, n, f32::from_le_bytes);
        assert!((0..n).all(|i| c[i].to_bits() == (a[i] + b[i]).to_bits()));
    });
}

#[test]
fn saxpy_and_daxpy() {
    on_each_isa(|isa| {
        let mut bench = Bench::file("saxpy", isa);
        let n = 5000usize;
        let x: Vec<f32> = (0..n).map(|i| (i as f32).sqrt()).collect();
        let y: Vec<f32> = (0..n).map(|i| -(i as f32) / 3.0).collect();
        let (dx, dy) = (bench.put(&x, f32::to_le_bytes), bench.put(&y, f32::to_le_bytes));
        bench.run_well(
            "saxpy",
            3,
            96,
            &[Arg::F32(1.1), Arg::U64(dx), Arg::U64(dy), Arg::U64(n as u64)],
        );
        let got = bench.get(dy, n, f32::from_le_bytes);
        assert!((0..n).all(|i| got[i].to_bits() == 1.1f32.mul_add(x[i], y[i]).to_bits()));

        let x: Vec<f64> = (0..n).map(|i| (i as f64).sqrt()).collect();
        let y: Vec<f64> = (0..n).map(|i| -(i as f64) / 3.0).collect();
        let (dx, dy) = (bench.put(&x, f64::to_le_bytes), bench.put(&y, f64::to_le_bytes));
        bench.run_well(
            "daxpy",
            7,
            100,
            &[Arg::F64(1.1), Arg::U64(dx), Arg::U64(dy), Arg::U64(n as u64)],
        );
        let got = bench.get(dy, n, f64::from_le_bytes);
        assert!((0..n).all(|i| got[i].to_bits() == 1.1f64.mul_add(x[i], y[i]).to_bits()));
    });
}

#[test]
fn every_kernel_of_the_repository_can_be_run() {
    let folder = format!("{}/../../tests/kernels/generated", env!("CARGO_MANIFEST_DIR"));
    let (mut files, mut refused) = (0, Vec::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "ptx") {
            continue;
        }
        files += 1;
        let bench = Bench::text(&std::fs::read_to_string(&path).unwrap(), super::Isa::best());
        for kernel in bench.program.kernels() {
            if let Some(why) = kernel.unsupported() {
                refused.push(format!("{}: {}: {why}", path.display(), kernel.name()));
            }
        }
    }
    assert!(files > 10, "only {files} files");
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
