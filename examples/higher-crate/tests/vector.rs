//! Tests of vectors and of their kernels. They run on the software driver, so they need no GPU; with
//! `CUDA_DRIVER=system` they run on one.

use cuda_driver_soft::{Checks, Prefer};
use higher_crate::Gpu;

fn gpu() -> Gpu {
    let driver = cuda_driver_soft::from_env(Prefer::Software).expect("a driver");
    driver.install().expect("no other driver should be in use");
    Gpu::new().expect("a device")
}

/// Returns `count` small integers, whose sums are exact.
fn values(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i % 7) as f32).collect()
}

#[test]
fn axpy_adds_a_multiple() {
    let gpu = gpu();
    let (x, mut y) = (gpu.vector(&values(1000)).unwrap(), gpu.vector(&[1.0; 1000]).unwrap());
    gpu.axpy(2.0, &x, &mut y).unwrap();
    let expected: Vec<f32> = values(1000).iter().map(|x| 1.0 + 2.0 * x).collect();
    assert_eq!(y.to_vec().unwrap(), expected);
}

#[test]
fn vectors_of_another_gpu_are_rejected() {
    let (gpu, other) = (gpu(), gpu());
    let (x, mut y) = (gpu.vector(&[1.0]).unwrap(), other.vector(&[2.0]).unwrap());
    assert!(gpu.sum(&y).is_err() && other.sum(&x).is_err());
    assert!(gpu.axpy(1.0, &x, &mut y).is_err() && other.axpy(1.0, &x, &mut y).is_err());
    assert_eq!(y.to_vec().unwrap(), [2.0]);
}

#[test]
fn sums_of_lengths_around_a_block() {
    let gpu = gpu();
    for count in [0, 1, 255, 256, 257, 1000] {
        let values = values(count);
        let x = gpu.vector(&values).unwrap();
        assert_eq!(gpu.sum(&x).unwrap(), values.iter().sum::<f32>(), "{count} values");
    }
}

/// The software driver counts the same accesses on every machine.
#[test]
fn axpy_moves_each_sector_once() {
    let gpu = gpu();
    if !cuda_driver::sys::DEFAULT.is_software() {
        println!("needs the software driver, which counts memory accesses");
        return;
    }
    let (x, mut y) = (gpu.vector(&values(1024)).unwrap(), gpu.vector(&values(1024)).unwrap());
    let profile = cuda_driver_soft::profile();
    gpu.axpy(2.0, &x, &mut y).unwrap();
    let report = profile.finish();
    let total = report.kernel("axpy").expect("a launch").total;
    // 1024 values of 4 bytes are 128 sectors of 32 bytes. `x` and `y` are read, and `y` is written.
    assert_eq!((total.global_load_sectors, total.global_store_sectors), (256, 128));
}

#[test]
fn sum_has_no_bank_conflicts() {
    let gpu = gpu();
    if !cuda_driver::sys::DEFAULT.is_software() {
        println!("needs the software driver, which counts memory accesses");
        return;
    }
    let x = gpu.vector(&values(1000)).unwrap();
    let profile = cuda_driver_soft::profile();
    gpu.sum(&x).unwrap();
    let report = profile.finish();
    assert_eq!(report.kernel("sum").expect("a launch").total.bank_conflicts(), 0);
}

/// There are no data races, no reads of uninitialised memory, and no barriers that only some threads reach.
#[test]
fn kernels_have_no_races() {
    let gpu = gpu();
    if !cuda_driver::sys::DEFAULT.is_software() {
        println!("needs the software driver, which checks memory accesses and barriers");
        return;
    }
    let checks = cuda_driver_soft::check(Checks::RACE | Checks::INIT | Checks::SYNC).unwrap();
    let (x, mut y) = (gpu.vector(&values(1000)).unwrap(), gpu.vector(&values(1000)).unwrap());
    gpu.axpy(2.0, &x, &mut y).unwrap();
    gpu.sum(&y).unwrap();
    assert_eq!(checks.finish(), []);
}

#[test]
#[should_panic(expected = "differ in length")]
fn lengths_must_be_equal() {
    let gpu = gpu();
    let mut y = gpu.vector(&values(3)).unwrap();
    let _ = gpu.axpy(1.0, &gpu.vector(&values(2)).unwrap(), &mut y);
}
