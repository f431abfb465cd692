//! Tests of loads and stores of 1 to 16 bytes: in global, shared, local and constant memory, and through generic
//! pointers.

use crate::arguments;
use crate::common::Codes;
use crate::common::gpu::{Gpu, Plain};
use crate::common::values::Random;

/// Checks that a `copy_…` kernel copies every element and changes none of the 64 bytes past the end.
fn copies<T: Plain>(kernel: &str) {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let function = gpu.kernel("memory.ptx", kernel);
    let mut random = Random::new(42);
    for n in [1_usize, 31, 100, 1000] {
        let bytes = n * size_of::<T>();
        let data: Vec<u8> = (0..bytes).map(|_| random.word() as u8).collect();
        let (input, out) = (gpu.upload(&data), gpu.upload(&vec![0x5a_u8; bytes + 64]));
        gpu.launch(
            function,
            [n.div_ceil(128) as u32, 1, 1],
            [128, 1, 1],
            0,
            &mut arguments![input, out, n as u32],
        );
        let seen = gpu.read::<u8>(out, bytes + 64);
        c.that(seen[..bytes] == data, || {
            format!("{kernel} of {n} elements: the copy differs")
        });
        c.that(seen[bytes..] == [0x5a; 64], || {
            format!("{kernel} of {n} elements wrote past the end")
        });
    }
}

#[test]
fn every_width() {
    copies::<u8>("copy_u8");
    copies::<u16>("copy_u16");
    copies::<u32>("copy_u32");
    copies::<u64>("copy_u64");
    copies::<[f32; 2]>("copy_v2");
    copies::<[f32; 4]>("copy_v4");
    copies::<[f64; 2]>("copy_f64x2");
    copies::<[u8; 4]>("copy_u8x4");
    copies::<[i16; 2]>("copy_s16x2");
}

#[test]
fn gather_and_scatter() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let mut random = Random::new(7);
    let n = 1000_usize;
    let data: Vec<u32> = (0..n).map(|_| random.word()).collect();
    let mut index: Vec<u32> = (0..n as u32).collect();
    for i in (1..n).rev() {
        index.swap(i, random.below(i as u32 + 1) as usize);
    }
    let gather = gpu.kernel("memory.ptx", "gather");
    let seen: Vec<u32> = gpu.table(gather, &[&data, &index], 1);
    let expected: Vec<u32> = index.iter().map(|&i| data[i as usize]).collect();
    c.that(seen == expected, || "gather returned other values".to_owned());
    let scatter = gpu.kernel("memory.ptx", "scatter");
    let back: Vec<u32> = gpu.table(scatter, &[&expected, &index], 1);
    c.that(back == data, || "scatter returned other values".to_owned());
}

#[test]
fn local_arrays() {
    let gpu = Gpu::new();
    let mut random = Random::new(8);
    let data: Vec<u64> = (0..500).map(|_| random.next()).collect();
    let kernel = gpu.kernel("memory.ptx", "local_array");
    let seen: Vec<u32> = gpu.table(kernel, &[&data], 1);
    let expected: Vec<u32> = data
        .iter()
        .enumerate()
        .map(|(i, x)| {
            let mut count = [0_u32; 16];
            for j in 0..16 {
                let nibble = (x >> (4 * j)) as usize & 15;
                count[nibble] += 1;
                count[(nibble + i) & 15] += 1;
            }
            count.iter().zip(1_u32..).map(|(n, w)| n * w * w).sum()
        })
        .collect();
    assert_eq!(seen, expected);
}

#[test]
fn dynamic_shared_memory() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("memory.ptx", "shared_dynamic");
    for m in [1_usize, 33, 128, 1024] {
        let data: Vec<f64> = (0..m).map(|i| i as f64 * 0.5 - 3.0).collect();
        let bytes: Vec<u8> = (0..m).map(|i| (i * 13 % 256) as u8).collect();
        let (a, b, out) = (gpu.upload(&data), gpu.upload(&bytes), gpu.alloc(m * 8));
        gpu.launch(
            kernel,
            [1, 1, 1],
            [m as u32, 1, 1],
            m as u32 * 9,
            &mut arguments![a, b, out],
        );
        let expected: Vec<f64> = (0..m)
            .map(|t| data[(t + 1) % m] + f64::from(bytes[(t + m - 1) % m]))
            .collect();
        assert_eq!(gpu.read::<f64>(out, m), expected, "{m} threads");
    }
}

#[test]
fn static_shared_memory() {
    let gpu = Gpu::new();
    let data: Vec<u32> = (0..1024).map(|i: u32| i.wrapping_mul(2_654_435_761)).collect();
    let (input, out) = (gpu.upload(&data), gpu.alloc(4096));
    let transpose = gpu.kernel("memory.ptx", "shared_transpose");
    gpu.launch(transpose, [1, 1, 1], [32, 8, 1], 0, &mut arguments![input, out]);
    let expected: Vec<u32> = (0..1024).map(|i| data[i % 32 * 32 + i / 32]).collect();
    assert_eq!(gpu.read::<u32>(out, 1024), expected, "shared_transpose");

    let large = gpu.kernel("memory.ptx", "shared_large");
    gpu.launch(large, [1, 1, 1], [256, 1, 1], 0, &mut arguments![input, out]);
    let expected: Vec<u32> = data[..256].iter().map(|x| x.wrapping_mul(40)).collect();
    assert_eq!(gpu.read::<u32>(out, 256), expected, "shared_large");
}

#[test]
fn generic_pointers() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("memory.ptx", "generic_pointer");
    let data: Vec<u32> = (0..256).map(|i| i * 5).collect();
    let (input, out) = (gpu.upload(&data), gpu.alloc(1024));
    gpu.launch(kernel, [1, 1, 1], [256, 1, 1], 0, &mut arguments![input, out]);
    let expected: Vec<u32> = data
        .iter()
        .zip(0_u32..)
        .map(|(x, t)| match x % 3 {
            0 => x + 7,
            1 => 2000 + t + 7,
            _ => 1007,
        })
        .collect();
    assert_eq!(gpu.read::<u32>(out, 256), expected);
}

#[test]
fn elements_indexed_by_a_register() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("subscript.ptx", "elements");
    let out = gpu.alloc(8 * 64);
    gpu.launch(kernel, [1, 1, 1], [8, 1, 1], 0, &mut arguments![out]);
    let seen = gpu.read::<u64>(out, 64);
    for t in 0..8 {
        let k = t % 4;
        let byte = if t == 3 { 3 } else { 77 };
        let expected = [
            k * k,
            (k + 2) * (k + 2),
            k * k,
            k * k,
            2 * k + 1,
            100 + (t ^ 7),
            byte,
            (k + 1) * (k + 1),
        ];
        assert_eq!(seen[t as usize * 8..][..8], expected, "thread {t}");
    }
}

#[test]
fn the_space_of_an_address() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let spaces = ["global", "const", "param", "local", "shared"];
    // The parameters of a kernel are in the window of `.param` and in that of `.global`.
    let variables = [
        ("param", "y", vec!["global", "param"]),
        ("const", "in_const", vec!["const"]),
        ("global", "in_global", vec!["global"]),
        ("local", "in_local", vec!["local"]),
        ("shared", "in_shared", vec!["shared"]),
    ];
    let mut body = String::new();
    for (i, (space, name, _)) in variables.iter().enumerate() {
        body += &format!("mov.b64 %a, {name}; cvta.{space}.u64 %a, %a;\n");
        for (j, asked) in spaces.iter().enumerate() {
            let at = 4 * (i * spaces.len() + j);
            body += &format!("isspacep.{asked} %p, %a; selp.u32 %r, 1, 0, %p; st.global.u32 [%out + {at}], %r;\n");
        }
    }
    let module = gpu.text(&format!(
        ".version 7.7\n.target sm_70\n.address_size 64\n.const .align 4 .b32 in_const[4];\n\
         .global .align 4 .b32 in_global[4];\n.visible .entry k(.param .u64 out, .param .u64 y) {{\n\
         .reg .pred %p; .reg .b64 %out, %a; .reg .b32 %r; .shared .align 4 .b32 in_shared[4];\n\
         .local .align 4 .b32 in_local[4];\nld.param.u64 %out, [out]; cvta.to.global.u64 %out, %out;\n{body}ret; }}\n"
    ));
    let out = gpu.upload(&vec![7_u32; variables.len() * spaces.len()]);
    gpu.launch(
        gpu.function(module, "k"),
        [1; 3],
        [1; 3],
        0,
        &mut arguments![out, 5_u64],
    );
    let seen = gpu.read::<u32>(out, variables.len() * spaces.len());
    for ((space, _, expected), row) in variables.iter().zip(seen.chunks(spaces.len())) {
        let found: Vec<_> = spaces
            .iter()
            .zip(row)
            .filter(|(_, flag)| **flag == 1)
            .map(|(name, _)| *name)
            .collect();
        c.that(found == *expected, || {
            format!("an address in .{space} is in {found:?}, expected {expected:?}")
        });
    }
}
