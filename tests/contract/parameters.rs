//! Tests of kernel parameters of every type and layout.

use crate::arguments;
use crate::common::Codes;
use crate::common::gpu::{Arguments, Gpu};

/// Launches a kernel of `params.ptx` with one thread and returns the `count` 64-bit words that it writes. `send`
/// returns the arguments, given the address of the output.
fn received(gpu: &Gpu, name: &str, count: usize, send: impl FnOnce(u64) -> Arguments) -> Vec<u64> {
    let kernel = gpu.kernel("params.ptx", name);
    let out = gpu.upload(&vec![0xa5a5_a5a5_a5a5_a5a5_u64; count]);
    gpu.launch(kernel, [1, 1, 1], [1, 1, 1], 0, &mut send(out));
    gpu.read(out, count)
}

#[test]
fn scalars() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let seen = received(&gpu, "param_scalars", 12, |out| {
        arguments![
            out,
            -5_i8,
            250_u8,
            -30_000_i16,
            65_000_u16,
            -2_000_000_000_i32,
            4_000_000_000_u32,
            i64::MIN + 7,
            u64::MAX - 3,
            -1.5_f32,
            2.25e300_f64,
            true,
            77_u8
        ]
    });
    let expected = [
        -5_i64 as u64,
        250,
        -30_000_i64 as u64,
        65_000,
        -2_000_000_000_i64 as u64,
        4_000_000_000,
        (i64::MIN + 7) as u64,
        u64::MAX - 3,
        u64::from((-1.5_f32).to_bits()),
        2.25e300_f64.to_bits(),
        1,
        77,
    ];
    c.that(seen == expected, || format!("{seen:x?}\nexpected {expected:x?}"));
}

#[test]
fn vectors() {
    #[repr(C, align(16))]
    #[derive(Clone, Copy)]
    struct A16<T>(T);
    #[repr(C, align(8))]
    #[derive(Clone, Copy)]
    struct A8<T>(T);
    #[repr(C, align(4))]
    #[derive(Clone, Copy)]
    struct A4<T>(T);
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let seen = received(&gpu, "param_vectors", 31, |out| {
        arguments![
            out,
            10_u8,
            A16([1.0_f32, -2.0, 3.0, -4.0]),
            11_u8,
            A16([5.5_f64, -6.5]),
            12_u8,
            [7_i32, -8, 9],
            13_u8,
            A4([-10_i16, 11]),
            14_u8,
            A4([12_u8, 13, 200, 255]),
            15_u8,
            A16([u64::MAX, 1]),
            16_u8,
            A8([0.125_f32, -0.25]),
            17_u8,
            [-1_i8, 2, -3],
            18_u8
        ]
    });
    let f = |x: f32| u64::from(x.to_bits());
    let s = |x: i64| x as u64;
    let expected = [
        10,
        f(1.0),
        f(-2.0),
        f(3.0),
        f(-4.0),
        11,
        5.5_f64.to_bits(),
        (-6.5_f64).to_bits(),
        12,
        7,
        s(-8),
        9,
        13,
        s(-10),
        11,
        14,
        12,
        13,
        200,
        255,
        15,
        u64::MAX,
        1,
        16,
        f(0.125),
        f(-0.25),
        17,
        s(-1),
        2,
        s(-3),
        18,
    ];
    c.that(seen == expected, || format!("{seen:x?}\nexpected {expected:x?}"));
}

#[test]
fn a_struct_of_mixed_members() {
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Mixed {
        tag: u8,
        weight: f64,
        half: u16,
        scale: f32,
        count: u64,
        tail: [u8; 3],
    }
    let gpu = Gpu::new();
    let mut c = Codes::new();
    assert_eq!(size_of::<Mixed>(), 40);
    let mixed = Mixed {
        tag: 3,
        weight: -0.75,
        half: 54321,
        scale: 1e-3,
        count: 1 << 40,
        tail: [7, 8, 9],
    };
    let seen = received(&gpu, "param_struct", 11, |out| arguments![out, 200_u8, mixed, 201_u8]);
    let scale = u64::from(1e-3_f32.to_bits());
    let expected = [200, 3, (-0.75_f64).to_bits(), 54321, scale, 1 << 40, 7, 8, 9, 201, 40];
    c.that(seen == expected, || format!("{seen:x?}\nexpected {expected:x?}"));
}

#[test]
fn a_large_struct_read_by_index() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("params.ptx", "param_big");
    let mut words = [0_u32; 1000];
    for (i, word) in words.iter_mut().enumerate() {
        *word = (i as u32).wrapping_mul(2_654_435_761);
    }
    let out = gpu.alloc(256 * 4);
    gpu.launch(kernel, [2, 1, 1], [128, 1, 1], 0, &mut arguments![out, words, 37_u32]);
    let expected: Vec<u32> = (0..256).map(|t| words[t * 37 % 1000]).collect();
    assert_eq!(gpu.read::<u32>(out, 256), expected);
}

#[test]
fn forty_parameters() {
    let gpu = Gpu::new();
    let mut expected = Vec::new();
    let seen = received(&gpu, "param_many", 40, |out| {
        let mut arguments = arguments![out];
        for k in 0..10_u8 {
            let wide = u64::from(k) << 40 | 0x1234;
            let (single, double) = (f32::from(k) + 0.5, f64::from(k) * -1e100);
            arguments.push(k + 100);
            arguments.push(wide);
            arguments.push(single);
            arguments.push(double);
            expected.extend([u64::from(k + 100), wide, u64::from(single.to_bits()), double.to_bits()]);
        }
        arguments
    });
    assert_eq!(seen, expected);
}

#[test]
fn sixty_four_bits() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("params.ptx", "param_wide");
    let out = gpu.alloc(200 * 8);
    let (base, stride) = (0xffff_ffff_0000_0001_u64, 0x1_0000_0007_u64);
    gpu.launch(
        kernel,
        [2, 1, 1],
        [128, 1, 1],
        0,
        &mut arguments![out, base, stride, 200_u64],
    );
    let expected: Vec<u64> = (0..200_u64)
        .map(|i| base.wrapping_add(i.wrapping_mul(stride)))
        .collect();
    assert_eq!(gpu.read::<u64>(out, 200), expected);
}
