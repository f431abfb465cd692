//! Tests of tensor copies (`cp.async.bulk.tensor`), which need sm_90: boxes and columns of pixels (the im2col mode), in
//! both directions, with every element type, fill and swizzle of sm_90, reductions, and copies to several blocks of a
//! cluster.

mod faults;
mod kernels;
mod maps;
mod model;
mod reductions;

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::values::Random;
use crate::common::{architecture, needs};
use crate::ok;
use kernels::{Copy, difference, loads_and_stores};
use model::{Pixels, TILE, TYPES, Tensor};

/// Returns true if the device has tensor copies; otherwise reports that it has none.
fn has_tensor_copies() -> bool {
    let has = architecture() >= 90;
    if !has {
        needs("a device of sm_90 or later, which has tensor copies");
    }
    has
}

/// Returns bytes whose values are normal numbers in every floating-point type.
fn bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..count).map(|_| (0x20 + random.below(0x40)) as u8).collect()
}

/// A context with the kernels, and the differences found so far.
struct Bench {
    gpu: Gpu,
    module: CUmodule,
    wrong: Vec<String>,
}

impl Bench {
    fn new() -> Self {
        let gpu = Gpu::new();
        let module = gpu.text(&loads_and_stores());
        Bench {
            gpu,
            module,
            wrong: Vec::new(),
        }
    }

    fn note(&mut self, what: &str, got: Option<&[u8]>, want: &[u8]) {
        let text = match got {
            Some(got) => difference(got, want),
            None => Some("the barrier still waits for bytes".to_owned()),
        };
        if let Some(text) = text {
            self.wrong.push(format!("{what}: {text}"));
        }
    }

    /// Compares a load of a box with the model.
    fn load(&mut self, tensor: &Tensor, at: &[i32], start: usize) {
        let memory = bytes(tensor.bytes, 7);
        self.load_from(&memory, tensor, at, start);
    }

    fn load_from(&mut self, memory: &[u8], tensor: &Tensor, at: &[i32], start: usize) {
        let address = self.gpu.upload(memory);
        let elements = tensor.tile(at, start);
        let kernel = self.gpu.function(self.module, &format!("load{}", at.len()));
        let copy = Copy {
            map: tensor.tiled(address),
            bytes: tensor.signalled(&elements),
            at,
            offsets: &[],
            start,
        };
        let got = copy.load(&self.gpu, kernel);
        ok!(cuMemFree(address));
        let what = format!("load {tensor:?} at {at:?} to {start}");
        self.note(&what, got.as_deref(), &tensor.loaded(memory, &elements));
    }

    /// Compares a load of columns with the model.
    fn load_columns(&mut self, tensor: &Tensor, pixels: &Pixels, at: &[i32], offsets: &[u16]) {
        let memory = bytes(tensor.bytes, 8);
        let address = self.gpu.upload(&memory);
        let elements = tensor.pixels(pixels, at, offsets, 0);
        let kernel = self.gpu.function(self.module, &format!("columns{}", at.len()));
        let copy = Copy {
            map: tensor.im2col(address, pixels),
            bytes: tensor.signalled(&elements),
            at,
            offsets,
            start: 0,
        };
        let got = copy.load(&self.gpu, kernel);
        ok!(cuMemFree(address));
        let what = format!("load {tensor:?} {pixels:?} at {at:?} + {offsets:?}");
        self.note(&what, got.as_deref(), &tensor.loaded(&memory, &elements));
    }

    /// Compares a store with the model: of a box, or of columns if `pixels` is given. Skips negative coordinates, at
    /// which a store faults.
    fn store(&mut self, tensor: &Tensor, pixels: Option<&Pixels>, at: &[i32], start: usize) {
        if at.iter().any(|at| *at < 0) {
            return;
        }
        let (memory, shared) = (bytes(tensor.bytes, 9), bytes(TILE, 10));
        let address = self.gpu.upload(&memory);
        let (elements, map, name) = match pixels {
            None => (tensor.tile(at, start), tensor.tiled(address), "store"),
            Some(pixels) => (
                tensor.pixels(pixels, at, &[], start),
                tensor.im2col(address, pixels),
                "columns_out",
            ),
        };
        let kernel = self.gpu.function(self.module, &format!("{name}{}", at.len()));
        let copy = Copy {
            map,
            bytes: 0,
            at,
            offsets: &[],
            start,
        };
        copy.store(&self.gpu, kernel, &shared);
        let got = self.gpu.read::<u8>(address, memory.len());
        ok!(cuMemFree(address));
        let want = tensor.stored(&memory, &shared, &elements, |_, new| new);
        self.note(
            &format!("store {tensor:?} {pixels:?} at {at:?} from {start}"),
            Some(&got),
            &want,
        );
    }

    fn done(self) {
        let count = self.wrong.len();
        let some: Vec<&str> = self.wrong.iter().take(8).map(String::as_str).collect();
        assert!(count == 0, "{count} copies differ:\n{}", some.join("\n"));
    }
}

#[test]
fn interleaved_tensors() {
    if !has_tensor_copies() {
        return;
    }
    let mut bench = Bench::new();
    for (slice, swizzle) in [(16, 0), (16, 32), (16, 64), (16, 128), (32, 32)] {
        for rank in 3..=5 {
            let (dims, boxes) = ([40, 5, 4, 3, 2], [16, 3, 2, 2, 2]);
            let mut tensor = Tensor::interleaved(slice, &dims[..rank], &boxes[..rank]);
            tensor.swizzle = swizzle;
            let places = [[0, 0, 0, 0, 0], [7, 2, 1, 0, 0], [30, 0, 1, 1, 0], [-8, 0, -1, 0, 0]];
            for at in &places {
                bench.load(&tensor, &at[..rank], 256);
            }
            tensor.steps[0] = 2;
            bench.load(&tensor, &places[1][..rank], 0);
        }
    }
    bench.done();
}

#[test]
fn the_device_has_tensor_maps() {
    let mut value = -1;
    let expected = i32::from(architecture() >= 90);
    let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED;
    ok!(cuDeviceGetAttribute(&raw mut value, attribute, 0));
    assert_eq!(value, expected);
}

/// The dimensions of a tensor, the dimensions of a box, and the coordinates of boxes.
type Shape = (&'static [u64], &'static [u32], &'static [&'static [i32]]);

/// Tensors and boxes of 1 to 5 dimensions, with coordinates of boxes inside, partly outside and fully outside.
#[rustfmt::skip] // a table
const SHAPES: &[Shape] = &[
    // Not 200: an H200 stores all 16 bytes of the last chunk of a row.
    (&[208], &[64], &[&[0], &[16], &[-32], &[160], &[-64], &[208]]),
    (&[48, 20], &[32, 7], &[&[0, 0], &[16, 3], &[-16, -2], &[32, 18], &[0, -7], &[0, 20], &[16, -100]]),
    (&[32, 5, 6], &[16, 3, 4], &[&[0, 0, 0], &[16, 2, 2], &[-16, -1, -1], &[32, 4, 5], &[16, -2, 3]]),
    (&[32, 4, 3, 5], &[32, 3, 2, 3], &[&[0, 0, 0, 0], &[16, 1, 1, 2], &[-16, -1, -1, -1], &[0, 3, 2, 4]]),
    (&[16, 3, 4, 3, 4], &[16, 2, 3, 2, 3], &[&[0, 0, 0, 0, 0], &[0, 1, 1, 1, 1], &[0, -1, 2, -1, 3], &[16, 0, 0, 0, 0]]),
];

#[test]
fn boxes_of_every_type() {
    if !has_tensor_copies() {
        return;
    }
    let mut bench = Bench::new();
    for ty in TYPES {
        // The six types of 4 bytes differ only in conversions, so two places of each are enough.
        let most = if ty.1 == 4 { 2 } else { usize::MAX };
        for (dims, boxes, places) in SHAPES {
            let tensor = Tensor::new(ty, dims, boxes);
            for at in places.iter().take(most) {
                bench.load(&tensor, at, 0);
                bench.store(&tensor, None, at, 0);
            }
        }
    }
    bench.done();
}

#[test]
fn elements_outside_become_nan() {
    if !has_tensor_copies() {
        return;
    }
    let mut bench = Bench::new();
    for ty in &TYPES[6..] {
        for (dims, boxes, places) in SHAPES {
            let mut tensor = Tensor::new(*ty, dims, boxes);
            tensor.nan = true;
            for at in places.iter().skip(1).take(2) {
                bench.load(&tensor, at, 0);
            }
        }
    }
    bench.done();
}

/// Bits of numbers for the f32 and tf32 types: numbers that are exact in tf32, ones that round or overflow, infinities,
/// a zero, and subnormal numbers. Loads round to tf32, but even the `FTZ` types keep subnormal numbers.
const SPECIAL: [u32; 16] = [
    0x3f80_0000,
    0x3f80_1000,
    0x3f80_0fff,
    0x3f80_3000,
    0xbf80_1000,
    0x7f7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x0000_0001,
    0x0000_1000,
    0x007f_ffff,
    0x8000_0fff,
    0x0080_0000,
    0x8000_0000,
    0x3f80_1fff,
    0xff7f_efff,
];

#[test]
fn single_precision_types_convert() {
    if !has_tensor_copies() {
        return;
    }
    let mut bench = Bench::new();
    for index in [7, 10, 11, 12] {
        let tensor = Tensor::new(TYPES[index], &[16, 2], &[16, 2]);
        let mut memory = bytes(tensor.bytes, 11);
        for (to, word) in memory.chunks_exact_mut(4).zip(SPECIAL) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bench.load_from(&memory, &tensor, &[0, 0], 0);
    }
    bench.done();
}

#[test]
fn strides_of_elements() {
    if !has_tensor_copies() {
        return;
    }
    let mut bench = Bench::new();
    for steps in [[1, 2, 1], [1, 3, 2], [1, 8, 1], [1, 1, 5], [3, 2, 2]] {
        let mut tensor = Tensor::new(TYPES[1], &[32, 21, 9], &[16, 8, 6]);
        tensor.steps = steps.to_vec();
        for at in [[0, 0, 0], [16, 3, 1], [-16, -3, -2], [0, 17, 7]] {
            bench.load(&tensor, &at, 0);
            bench.store(&tensor, None, &at, 0);
        }
    }
    bench.done();
}

#[test]
fn swizzles() {
    if !has_tensor_copies() {
        return;
    }
    let mut bench = Bench::new();
    for swizzle in [32, 64, 128] {
        for ty in [TYPES[0], TYPES[6], TYPES[7], TYPES[4]] {
            let row = (swizzle / ty.1) as u32;
            let mut tensor = Tensor::new(ty, &[u64::from(row) * 2, 40], &[row, 33]);
            tensor.swizzle = swizzle;
            for (at, start) in [([0, 0], 0), ([0, 3], 1024), ([0, -5], 128), ([row as i32, 20], 384)] {
                bench.load(&tensor, &at, start);
                bench.store(&tensor, None, &at, start);
            }
        }
    }
    bench.done();
}

#[test]
fn swizzled_rows_shorter_than_the_span() {
    if !has_tensor_copies() {
        return;
    }
    let mut bench = Bench::new();
    for (swizzle, row) in [(32, 16), (64, 16), (64, 48), (128, 16), (128, 64), (128, 96)] {
        let mut tensor = Tensor::new(TYPES[0], &[128, 20], &[row, 17]);
        tensor.swizzle = swizzle;
        for start in [0, 256] {
            bench.load(&tensor, &[0, 1], start);
            bench.store(&tensor, None, &[16, 1], start);
        }
    }
    bench.done();
}

/// Calls `each` with tensors of images, pixel boxes, and the coordinates and offsets of columns.
fn columns(swizzle: usize, steps: u32, mut each: impl FnMut(&Tensor, &Pixels, &[i32], &[u16])) {
    let pixels = |lower: &[i32], upper: &[i32], count| Pixels {
        lower: lower.to_vec(),
        upper: upper.to_vec(),
        channels: 16,
        count,
    };
    let tensor = |dims: &[u64]| {
        let mut tensor = Tensor::new(TYPES[6], dims, &vec![1; dims.len()]);
        tensor.swizzle = swizzle;
        let last = dims.len() - 1;
        tensor.steps[1..last].fill(steps);
        tensor
    };
    let three = tensor(&[32, 9, 4]);
    let four = tensor(&[32, 7, 6, 3]);
    let five = tensor(&[16, 5, 4, 3, 2]);
    // Filters of width 3 (in one dimension of the last box, of width 2): with a border of 1, without a border, and with
    // a border of 2 on one side.
    each(&three, &pixels(&[-1], &[-1], 20), &[0, -1, 0], &[0]);
    each(&three, &pixels(&[-1], &[-1], 20), &[16, 3, 1], &[2]);
    each(&three, &pixels(&[0], &[-2], 24), &[0, 5, 2], &[1]);
    for offsets in [[0, 0], [1, 1], [2, 2], [2, 0]] {
        each(&four, &pixels(&[-1, -1], &[-1, -1], 64), &[0, -1, -1, 0], &offsets);
        each(&four, &pixels(&[0, 0], &[-2, -2], 32), &[16, 1, 2, 1], &offsets);
        each(&four, &pixels(&[-2, 0], &[0, -2], 32), &[0, -2, 3, 2], &offsets);
    }
    for offsets in [[0, 0, 0], [1, 2, 1]] {
        each(
            &five,
            &pixels(&[-1, -1, -1], &[-1, -1, -1], 100),
            &[0, 2, -1, 1, 0],
            &offsets,
        );
        each(
            &five,
            &pixels(&[0, 0, 0], &[-2, -2, -1], 30),
            &[0, 0, 1, 0, 0],
            &offsets,
        );
    }
}

#[test]
fn columns_of_pixels() {
    if !has_tensor_copies() {
        return;
    }
    let mut bench = Bench::new();
    for (swizzle, steps) in [(0, 1), (32, 1), (0, 2)] {
        columns(swizzle, steps, |tensor, pixels, at, offsets| {
            bench.load_columns(tensor, pixels, at, offsets);
        });
    }
    bench.done();
}

#[test]
fn columns_of_pixels_to_global_memory() {
    if !has_tensor_copies() {
        return;
    }
    let mut bench = Bench::new();
    for swizzle in [0, 32] {
        columns(swizzle, 1, |tensor, pixels, at, offsets| {
            if offsets.iter().all(|offset| *offset == 0) {
                bench.store(tensor, Some(pixels), at, 0);
            }
        });
    }
    bench.done();
}
