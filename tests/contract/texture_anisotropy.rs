//! Tests of anisotropic filtering: `tex.grad` with textures whose `maxAnisotropy` is 1 to 16.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::texture_gradients::{Mipmap, levels};
use crate::textures::{destroy_with_array, run};

/// The value of the one texel that is not 0.
const IMPULSE: f32 = 65536.0;

/// The size of the textures for `line` and `plane`, in texels.
const EDGE: usize = 128;

/// A texture of the test, and the instruction that samples it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Sampled {
    axes: usize,
    edge: usize,
    count: u32,
    flags: u32,
    ratio: u32,
    /// The level with the one texel that is not 0. `None` for texels that have the number of their level.
    impulse: Option<u32>,
    instruction: &'static str,
}

impl Sampled {
    fn texture(&self) -> u64 {
        let mipmap = Mipmap {
            axes: self.axes,
            edge: self.edge,
            count: self.count,
            flags: self.flags,
            ratio: self.ratio,
        };
        let Some(impulse) = self.impulse else {
            return levels(&mipmap);
        };
        mipmap.texture(|level, [width, height, _]| {
            let mut texels = vec![0.0; width * height];
            if level == impulse {
                texels[height / 2 * width + width / 2] = IMPULSE;
            }
            texels
        })
    }
}

/// Recorded results.
struct Case<'a> {
    /// The kind of the case and its numbers.
    name: String,
    /// The operands of the instruction for each result.
    rows: Vec<Vec<u32>>,
    results: Vec<&'a str>,
    /// The value of one unit of the results.
    unit: f32,
    /// The largest allowed difference in units: some roundings are unknown, and directions are known to 2/64.
    most: i32,
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

/// Reads the case of a line.
fn case(line: &str) -> (Sampled, Case<'_>) {
    const LINE: &str = "tex.grad.2d.v4.f32.f32 {r0, r1, r2, r3}, [h, {c0, c1}], {c2, c3}, {c4, c5};";
    let words: Vec<&str> = line.split_whitespace().collect();
    let gradients = |count: usize| -> Vec<u32> { words[2..][..count].iter().map(|word| bits(word)).collect() };
    let of_levels = |axes, edge: usize, flags, instruction| Sampled {
        axes,
        edge,
        count: edge.ilog2() + 1,
        flags,
        ratio: number(words[1]) as u32,
        impulse: None,
        instruction,
    };
    let of_impulse = |count, level| Sampled {
        count,
        impulse: Some(level),
        ..of_levels(2, EDGE, 0, LINE)
    };
    // The level does not depend on the coordinates; the direction into a cube map is (0.3, 0.4, 0.5).
    let (sampled, rows, first) = match words[0] {
        "level" => (
            of_levels(
                2,
                256,
                0,
                "tex.grad.2d.v4.f32.f32 {r0, r1, r2, r3}, [h, {c4, c4}], {c0, c1}, {c2, c3};",
            ),
            vec![gradients(4)],
            6,
        ),
        "one" => (
            of_levels(
                1,
                256,
                0,
                "tex.grad.1d.v4.f32.f32 {r0, r1, r2, r3}, [h, {c4}], {c0}, {c1};",
            ),
            vec![gradients(2)],
            4,
        ),
        "cube" => (
            of_levels(
                2,
                64,
                CUDA_ARRAY3D_CUBEMAP,
                "mov.b32 r0, 0f3e99999a; mov.b32 r1, 0f3ecccccd; mov.b32 r2, 0f3f000000; \
                 tex.grad.cube.v4.f32.f32 {r0, r1, r2, r3}, [h, {r0, r1, r2, r2}], {c0, c1, c2, c2}, {c3, c4, c5, c5};",
            ),
            vec![gradients(6)],
            8,
        ),
        "line" => {
            let at = |i: i32| vec![place(i), place(0), bits(words[4]), 0, 0, bits(words[5])];
            let sampled = of_impulse(number(words[2]) as u32, number(words[3]) as u32);
            (sampled, (-16..=16).map(at).collect(), 6)
        }
        "plane" => {
            let at = |i: i32| {
                let at = [place(4 * (i % 5) - 8), place(4 * (i / 5) - 8)];
                at.into_iter().chain(gradients(4)).collect()
            };
            (of_impulse(1, 0), (0..25).map(at).collect(), 6)
        }
        other => panic!("unknown kind of case: {other:?}"),
    };
    let (unit, most) = match words[0] {
        "line" => (1.0, IMPULSE as i32 / 128),
        "plane" => (1.0, IMPULSE as i32 / 32),
        _ => (1.0 / 256.0, 4),
    };
    let case = Case {
        name: words[..first].join(" "),
        rows,
        results: words[first..].to_vec(),
        unit,
        most,
    };
    assert_eq!(case.rows.len(), case.results.len(), "{line}");
    (sampled, case)
}

#[test]
fn results_match_a_gpus() {
    let gpu = Gpu::new();
    let mut groups: BTreeMap<Sampled, Vec<Case<'_>>> = BTreeMap::new();
    let recorded = include_str!("textures/anisotropy.txt");
    for line in recorded.lines().filter(|line| !line.starts_with('#')) {
        let (sampled, case) = case(line);
        groups.entry(sampled).or_default().push(case);
    }
    let mut wrong = String::new();
    let mut cases = 0;
    for (sampled, group) in groups {
        let handle = sampled.texture();
        let rows: Vec<Vec<u32>> = group.iter().flat_map(|case| case.rows.clone()).collect();
        let mut seen = run(&gpu, sampled.instruction, handle, &rows).into_iter();
        for case in &group {
            for (i, (recorded, seen)) in case.results.iter().zip(&mut seen).enumerate() {
                let seen = (f32::from_bits(seen[0]) / case.unit).round() as i32;
                if (seen - number(recorded)).abs() > case.most {
                    let _ = writeln!(wrong, "{}, result {i}: {seen}, not {recorded}", case.name);
                }
            }
        }
        cases += group.len();
        destroy_with_array(handle);
    }
    assert!(cases > 400, "only {cases} cases");
    assert!(wrong.is_empty(), "{wrong}");
}
