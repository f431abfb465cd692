//! Tests of anisotropic filtering: `tex.grad` with textures whose `maxAnisotropy` is 2 or more.

use std::collections::HashMap;
use std::fmt::Write as _;

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::ok;
use crate::texture_gradients::{Mipmap, levels};
use crate::textures::run;

/// The value of the one texel that is not 0.
const IMPULSE: f32 = 65536.0;

/// The size of the textures for `line` and `plane`, in texels.
const EDGE: usize = 128;

/// Returns a texture of zeros whose level `only` has one other texel, in the middle.
fn impulse(ratio: u32, count: u32, only: u32) -> u64 {
    let mipmap = Mipmap {
        axes: 2,
        edge: EDGE,
        count,
        flags: 0,
        ratio,
    };
    mipmap.texture(|level, [width, height, _]| {
        let mut texels = vec![0.0; width * height];
        if level == only {
            texels[height / 2 * width + width / 2] = IMPULSE;
        }
        texels
    })
}

/// Returns coordinates that are this many half texels from the middle of the middle texel.
fn place(halves: i32) -> u32 {
    ((EDGE as f32 / 2.0 + 0.5 + halves as f32 / 2.0) / EDGE as f32).to_bits()
}

fn bits(word: &str) -> u32 {
    u32::from_str_radix(word, 16).expect("the bits of a number")
}

fn number(word: &str) -> i32 {
    word.parse().expect("a number")
}

#[test]
fn results_match_a_gpus() {
    let mut gpu = Gpu::new();
    let mut wrong = String::new();
    let mut cases = 0;
    let mut textures: HashMap<[u32; 4], u64> = HashMap::new();
    for line in include_str!("textures/anisotropy.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ratio = number(words[1]) as u32;
        let mut of_level = |axes: usize, edge: usize, flags| {
            let mipmap = Mipmap {
                axes,
                edge,
                count: edge.ilog2() + 1,
                flags,
                ratio,
            };
            *textures
                .entry([axes as u32, edge as u32, flags, ratio])
                .or_insert_with(|| levels(&mipmap))
        };
        let gradients = |first: usize, count: usize| words[first..][..count].iter().map(|word| bits(word)).collect();
        // The texture, the instruction, its operands, the first of the recorded results, the texels of one unit of them,
        // and the largest difference in these units. Some roundings are unknown, and directions are known to 2/64.
        let (handle, instruction, rows, first, unit, most): (_, _, Vec<Vec<u32>>, _, _, _) = match words[0] {
            "level" => (
                of_level(2, 256, 0),
                "tex.grad.2d.v4.f32.f32 {r0, r1, r2, r3}, [h, {r0, r1}], {c0, c1}, {c2, c3};",
                vec![gradients(2, 4)],
                6,
                1.0 / 256.0,
                4,
            ),
            "one" => (
                of_level(1, 256, 0),
                "tex.grad.1d.v4.f32.f32 {r0, r1, r2, r3}, [h, {r0}], {c0}, {c1};",
                vec![gradients(2, 2)],
                4,
                1.0 / 256.0,
                4,
            ),
            "cube" => (
                of_level(2, 64, CUDA_ARRAY3D_CUBEMAP),
                "tex.grad.cube.v4.f32.f32 {r0, r1, r2, r3}, [h, {r0, r1, r2, r2}], {c0, c1, c2, c2}, {c3, c4, c5, c5};",
                vec![gradients(2, 6)],
                8,
                1.0 / 256.0,
                4,
            ),
            "line" => {
                let at = |i: i32| vec![place(i), place(0), bits(words[4]), 0, 0, bits(words[5])];
                (
                    impulse(ratio, number(words[2]) as u32, number(words[3]) as u32),
                    "tex.grad.2d.v4.f32.f32 {r0, r1, r2, r3}, [h, {c0, c1}], {c2, c3}, {c4, c5};",
                    (-16..=16).map(at).collect(),
                    6,
                    1.0,
                    IMPULSE as i32 / 128,
                )
            }
            "plane" => {
                let at = |i: i32| {
                    let gradients: Vec<u32> = gradients(2, 4);
                    let at = [place(4 * (i % 5) - 8), place(4 * (i / 5) - 8)];
                    at.into_iter().chain(gradients).collect()
                };
                (
                    impulse(ratio, 1, 0),
                    "tex.grad.2d.v4.f32.f32 {r0, r1, r2, r3}, [h, {c0, c1}], {c2, c3}, {c4, c5};",
                    (0..25).map(at).collect(),
                    6,
                    1.0,
                    IMPULSE as i32 / 32,
                )
            }
            other => panic!("{other:?} is no kind of case"),
        };
        // A level does not depend on the coordinates; the direction into a cube map is (0.3, 0.4, 0.5).
        let instruction =
            format!("mov.b32 r0, 0f3e99999a; mov.b32 r1, 0f3ecccccd; mov.b32 r2, 0f3f000000; {instruction}");
        let seen = run(&mut gpu, &instruction, handle, &rows);
        let recorded = &words[first..];
        assert_eq!(recorded.len(), seen.len(), "{line}");
        for (i, (recorded, seen)) in recorded.iter().zip(seen).enumerate() {
            let seen = (f32::from_bits(seen[0]) / unit).round() as i32;
            if (seen - number(recorded)).abs() > most {
                let _ = writeln!(
                    wrong,
                    "{}, result {i}: {seen}, not {recorded}",
                    words[..first].join(" ")
                );
            }
        }
        if matches!(words[0], "line" | "plane") {
            ok!(cuTexObjectDestroy(handle));
        }
        cases += 1;
    }
    for handle in textures.into_values() {
        ok!(cuTexObjectDestroy(handle));
    }
    assert!(cases > 400, "{cases} cases");
    assert!(wrong.is_empty(), "{wrong}");
}
