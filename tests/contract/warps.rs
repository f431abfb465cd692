//! Tests of warp-wide operations (shuffles, votes, matches, reductions, barriers, elections) with all lanes and with
//! some, and of `lop3` with a predicate.

use crate::arguments;
use crate::common::gpu::Gpu;
use crate::common::has_architecture;
use crate::common::values::Random;

const MASKS: [u32; 8] = [
    u32::MAX,
    1,
    0x8000_0000,
    0xaaaa_aaaa,
    0x0000_ffff,
    0x00f0_0f01,
    0x7fff_fffe,
    0x1234_5678,
];

fn members(mask: u32) -> impl DoubleEndedIterator<Item = usize> + Clone {
    (0..32).filter(move |lane| mask >> lane & 1 != 0)
}

fn words(count: usize, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed);
    (0..count).map(|_| random.word()).collect()
}

fn numbers(count: usize, seed: u64) -> Vec<i32> {
    let words = words(count, seed);
    words.into_iter().map(u32::cast_signed).collect()
}

#[test]
fn shuffles() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("warp.ptx", "shuffles");
    let input = numbers(256, 1);
    let mut by: Vec<u32> = words(256, 2).iter().map(|b| b & 31).collect();
    // Warps whose lanes all use the same operand, as in most programs.
    by[..32].fill(3);
    by[32..64].fill(0);
    by[64..96].fill(16);
    let (data, amounts, out) = (gpu.upload(&input), gpu.upload(&by), gpu.alloc(256 * 80));
    let mut arguments = arguments![data, amounts, out];
    gpu.launch(kernel, [2, 1, 1], [128, 1, 1], 0, &mut arguments);
    let seen = gpu.read::<i32>(out, 256 * 20);
    for t in 0..256 {
        let (warp, lane, by) = (t & !31, t & 31, by[t] as usize);
        for (i, width) in [32, 16, 8, 4, 2].into_iter().enumerate() {
            let (first, at) = (lane & !(width - 1), lane & (width - 1));
            let from = [
                first + (by & (width - 1)),
                if at >= by { lane - by } else { lane },
                if at + by < width { lane + by } else { lane },
                // A source lane before the first lane of the segment counts as inside.
                if lane ^ by < first + width { lane ^ by } else { lane },
            ];
            for (mode, from) in from.into_iter().enumerate() {
                assert_eq!(
                    seen[t * 20 + i * 4 + mode],
                    input[warp + from],
                    "thread {t}, width {width}, mode {mode}, by {by}"
                );
            }
        }
    }
}

#[test]
fn source_lanes_outside_the_segment() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("warp.ptx", "shuffle_inside");
    let input: Vec<i32> = (1..=32).collect();
    let by: Vec<u32> = words(32, 3).iter().map(|b| b & 7).collect();
    let (data, amounts, out) = (gpu.upload(&input), gpu.upload(&by), gpu.alloc(256));
    let mut arguments = arguments![data, amounts, out];
    gpu.launch(kernel, [1, 1, 1], [32, 1, 1], 0, &mut arguments);
    let expected: Vec<i32> = (0..32_i32)
        .flat_map(|lane| {
            let by = by[lane as usize].cast_signed();
            let up = if lane % 8 >= by { lane - by + 1 } else { -(lane + 1) };
            let down = if lane % 8 + by < 8 { lane + by + 1 } else { -(lane + 1) };
            [up, down]
        })
        .collect();
    assert_eq!(gpu.read::<i32>(out, 64), expected);
}

#[test]
fn shuffles_of_wide_and_floating_point_values() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("warp.ptx", "shuffle_wide");
    let mut random = Random::new(4);
    let l: Vec<i64> = (0..64).map(|_| random.next().cast_signed()).collect();
    let d: Vec<f64> = (0..64).map(|i| f64::from(i) * 0.1 - 3.0).collect();
    let f: Vec<f32> = (0..64).map(|i| i as f32 * 0.3 + 1.0).collect();
    let (lo, dout, fo) = (gpu.alloc(512), gpu.alloc(512), gpu.alloc(256));
    let mut arguments = arguments![gpu.upload(&l), gpu.upload(&d), gpu.upload(&f), lo, dout, fo];
    gpu.launch(kernel, [1, 1, 1], [64, 1, 1], 0, &mut arguments);
    let expected: Vec<i64> = (0..64).map(|t| l[t ^ 5]).collect();
    assert_eq!(gpu.read::<i64>(lo, 64), expected);
    let expected: Vec<f64> = (0..64).map(|t| if t % 32 + 3 < 32 { d[t + 3] } else { d[t] }).collect();
    assert_eq!(gpu.read::<f64>(dout, 64), expected);
    let expected: Vec<f32> = (0..64).map(|t| f[t ^ 31]).collect();
    assert_eq!(gpu.read::<f32>(fo, 64), expected);
}

#[test]
fn shuffles_and_votes_of_some_lanes() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("warp.ptx", "members");
    let mixed = numbers(32, 5);
    for (input, mask) in [mixed, vec![1; 32], vec![-1; 32]]
        .into_iter()
        .flat_map(|input| MASKS.map(|mask| (input.clone(), mask)))
    {
        let (data, out) = (gpu.upload(&input), gpu.alloc(640));
        gpu.launch(kernel, [1, 1, 1], [32, 1, 1], 0, &mut arguments![data, mask, out]);
        let ballot = members(mask)
            .filter(|&lane| input[lane] > 0)
            .fold(0_u32, |b, lane| b | 1 << lane);
        let mut expected = vec![-1_i32; 160];
        for lane in members(mask) {
            let next = members(mask).find(|&m| m > lane).or(members(mask).next());
            expected[lane * 5..lane * 5 + 5].copy_from_slice(&[
                input[next.unwrap_or(lane)],
                i32::from(ballot == mask),
                i32::from(ballot != 0),
                i32::from(ballot == mask || ballot == 0),
                ballot.cast_signed(),
            ]);
        }
        assert_eq!(gpu.read::<i32>(out, 160), expected, "mask {mask:#x}");
    }
}

#[test]
fn two_sets_of_lanes() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("warp.ptx", "two_halves");
    let input = numbers(32, 6);
    let (data, out) = (gpu.upload(&input), gpu.alloc(128));
    gpu.launch(kernel, [1, 1, 1], [32, 1, 1], 0, &mut arguments![data, out]);
    let even = (0..32).step_by(2).map(|i| input[i]).max().unwrap_or(0);
    let odd = (1..32).step_by(2).fold(0_i32, |sum, i| sum.wrapping_add(input[i]));
    let expected: Vec<i32> = (0..32).map(|t| if t & 1 == 1 { odd } else { even }).collect();
    assert_eq!(gpu.read::<i32>(out, 32), expected);
}

#[test]
fn reductions_of_a_warp() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("warp.ptx", "reductions");
    let input = numbers(1024, 7);
    let (data, out) = (gpu.upload(&input), gpu.alloc(512));
    let mut arguments = arguments![data, out];
    gpu.launch(kernel, [4, 1, 1], [256, 1, 1], 0, &mut arguments);
    let expected: Vec<i32> = input
        .chunks(32)
        .flat_map(|warp| {
            [
                warp.iter().fold(0_i32, |a, b| a.wrapping_add(*b)),
                warp.iter().fold(i32::MAX, |a, b| a.min(*b)),
                warp.iter().fold(i32::MIN, |a, b| a.max(*b)),
                warp.iter().fold(0, |a, b| a ^ b),
            ]
        })
        .collect();
    assert_eq!(gpu.read::<i32>(out, 128), expected);
}

#[test]
fn prefix_sums() {
    for threads in [32, 96, 256, 1024] {
        let gpu = Gpu::new();
        let kernel = gpu.kernel("warp.ptx", "block_scan");
        let input = words(threads * 3, 8);
        let (data, out) = (gpu.upload(&input), gpu.alloc(threads * 12));
        let mut arguments = arguments![data, out];
        gpu.launch(kernel, [3, 1, 1], [threads as u32, 1, 1], 0, &mut arguments);
        let mut expected = Vec::new();
        for block in input.chunks(threads) {
            let mut sum = 0_u32;
            for x in block {
                sum = sum.wrapping_add(*x);
                expected.push(sum);
            }
        }
        assert_eq!(gpu.read::<u32>(out, threads * 3), expected);
    }
}

#[test]
fn compaction_of_nonzero_values() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("warp.ptx", "compact");
    // Numbered, so that the order within a warp shows.
    let input: Vec<u32> = words(1000, 9)
        .iter()
        .enumerate()
        .map(|(i, w)| if w % 3 == 0 { 0 } else { i as u32 + 1 })
        .collect();
    let (data, out, count) = (gpu.upload(&input), gpu.alloc(4000), gpu.upload(&[0_u32]));
    let mut arguments = arguments![data, 1000_u32, out, count];
    gpu.launch(kernel, [8, 1, 1], [128, 1, 1], 0, &mut arguments);
    let expected: Vec<u32> = input.iter().copied().filter(|x| *x != 0).collect();
    let found = gpu.read::<u32>(count, 1)[0] as usize;
    assert_eq!(found, expected.len());
    let mut seen = gpu.read::<u32>(out, found);
    for pair in seen.windows(2) {
        let same_warp = (pair[0] - 1) / 32 == (pair[1] - 1) / 32;
        assert!(!same_warp || pair[0] < pair[1], "{pair:?}");
    }
    seen.sort_unstable();
    assert_eq!(seen, expected);
}

#[test]
fn barriers_of_a_warp() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("warp.ptx", "sync_warp");
    let input = numbers(128, 10);
    let (data, out) = (gpu.upload(&input), gpu.alloc(512));
    let mut arguments = arguments![data, out];
    gpu.launch(kernel, [1, 1, 1], [128, 1, 1], 0, &mut arguments);
    let expected: Vec<i32> = (0..128)
        .map(|t: usize| input[t & !31 | (t + 4) & 31].wrapping_add(1 + 2 + 3))
        .collect();
    assert_eq!(gpu.read::<i32>(out, 128), expected);
}

#[test]
fn active_lanes() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("warp.ptx", "active");
    let out = gpu.alloc(128);
    gpu.launch(kernel, [1, 1, 1], [32, 1, 1], 0, &mut arguments![out]);
    assert_eq!(gpu.read::<u32>(out, 32), [1; 32]);
}

#[test]
fn shuffles_while_lanes_leave() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("warp.ptx", "leaving");
    let out = gpu.alloc(128);
    gpu.launch(kernel, [1, 1, 1], [32, 1, 1], 0, &mut arguments![out]);
    let mut x: Vec<i32> = (0..32).collect();
    for i in 0..31 {
        let old = x.clone();
        for lane in i..32 {
            x[lane] = old[i + (lane + 1 - i) % (32 - i)] + 1;
        }
    }
    assert_eq!(gpu.read::<i32>(out, 32), x);
}

#[test]
fn matches() {
    if !has_architecture(70) {
        return;
    }
    let gpu = Gpu::new();
    let kernel = gpu.kernel("match.sm_70.ptx", "matches");
    let few: Vec<u32> = words(32, 11).iter().map(|w| w % 5).collect();
    for (input, mask) in [few, vec![9; 32], (0..32).collect()]
        .into_iter()
        .flat_map(|input| MASKS.map(|mask| (input.clone(), mask)))
    {
        // The lower words differ between lanes 0 to 15 and 16 to 31, even if the upper words are equal.
        let wide: Vec<u64> = input
            .iter()
            .enumerate()
            .map(|(i, x)| u64::from(*x) << 32 | u64::from(i as u32 / 16 % 2))
            .collect();
        let (data, wide_data, out) = (gpu.upload(&input), gpu.upload(&wide), gpu.alloc(768));
        let mut arguments = arguments![data, wide_data, mask, out];
        gpu.launch(kernel, [1, 1, 1], [32, 1, 1], 0, &mut arguments);
        let mut expected = vec![0xdead_u32; 192];
        for lane in members(mask) {
            let alike =
                |same: &dyn Fn(usize) -> bool| members(mask).filter(|&m| same(m)).fold(0_u32, |b, m| b | 1 << m);
            let narrow = alike(&|m| input[m] == input[lane]);
            let broad = alike(&|m| wide[m] == wide[lane]);
            let all = |found: u32| if found == mask { mask } else { 0 };
            expected[lane * 6..lane * 6 + 6].copy_from_slice(&[
                narrow,
                broad,
                all(narrow),
                u32::from(narrow == mask),
                all(broad),
                u32::from(broad == mask),
            ]);
        }
        assert_eq!(gpu.read::<u32>(out, 192), expected, "mask {mask:#x}");
    }
}

#[test]
fn a_histogram_by_matching_lanes() {
    if !has_architecture(70) {
        return;
    }
    let gpu = Gpu::new();
    let kernel = gpu.kernel("match.sm_70.ptx", "matched_histogram");
    let input = words(2048, 12);
    for bins in [1_u32, 7, 300] {
        let (data, counts) = (gpu.upload(&input), gpu.upload(&vec![0_u32; bins as usize]));
        let mut arguments = arguments![data, counts, bins];
        gpu.launch(kernel, [8, 1, 1], [256, 1, 1], 0, &mut arguments);
        let mut expected = vec![0_u32; bins as usize];
        for x in &input {
            expected[(x % bins) as usize] += 1;
        }
        assert_eq!(gpu.read::<u32>(counts, bins as usize), expected);
    }
}

#[test]
fn lanes_that_wait_for_other_lanes() {
    if !has_architecture(70) {
        return;
    }
    let gpu = Gpu::new();
    let kernel = gpu.kernel("match.sm_70.ptx", "waiting_lanes");
    let (flag, out) = (gpu.upload(&[0_u32]), gpu.alloc(128));
    gpu.launch(kernel, [1, 1, 1], [32, 1, 1], 0, &mut arguments![flag, out]);
    let expected: Vec<u32> = (0..32).map(|t| if t < 16 { 16 } else { t }).collect();
    assert_eq!(gpu.read::<u32>(out, 32), expected);
}

#[test]
fn reductions_in_one_instruction() {
    if !has_architecture(80) {
        return;
    }
    let gpu = Gpu::new();
    let kernel = gpu.kernel("redux.sm_80.ptx", "reduce_members");
    let input = words(32, 13);
    for mask in MASKS {
        let (data, out) = (gpu.upload(&input), gpu.alloc(1024));
        let mut arguments = arguments![data, mask, out];
        gpu.launch(kernel, [1, 1, 1], [32, 1, 1], 0, &mut arguments);
        let all: Vec<u32> = members(mask).map(|m| input[m]).collect();
        let signed: Vec<i32> = all.iter().map(|x| x.cast_signed()).collect();
        let results = [
            all.iter().fold(0_u32, |a, b| a.wrapping_add(*b)),
            signed.iter().min().copied().unwrap_or(0).cast_unsigned(),
            signed.iter().max().copied().unwrap_or(0).cast_unsigned(),
            all.iter().min().copied().unwrap_or(0),
            all.iter().max().copied().unwrap_or(0),
            all.iter().fold(u32::MAX, |a, b| a & b),
            all.iter().fold(0, |a, b| a | b),
            all.iter().fold(0, |a, b| a ^ b),
        ];
        let mut expected = vec![0xdead_u32; 256];
        for lane in members(mask) {
            expected[lane * 8..lane * 8 + 8].copy_from_slice(&results);
        }
        assert_eq!(gpu.read::<u32>(out, 256), expected, "mask {mask:#x}");
    }
}

#[test]
fn one_lane_is_elected() {
    if !has_architecture(90) {
        return;
    }
    let gpu = Gpu::new();
    let kernel = gpu.kernel("elect.ptx", "elect");
    for mask in MASKS {
        let out = gpu.upload(&[77_u32; 64]);
        gpu.launch(kernel, [1, 1, 1], [32, 1, 1], 0, &mut arguments![mask, out]);
        let seen = gpu.read::<u32>(out, 64);
        let chosen: Vec<usize> = (0..32).filter(|t| seen[t * 2 + 1] == 1).collect();
        assert_eq!(chosen.len(), 1, "mask {mask:#x}: {seen:?}");
        assert!(mask >> chosen[0] & 1 == 1, "mask {mask:#x}: {seen:?}");
        for lane in 0..32 {
            let expected = if mask >> lane & 1 == 1 {
                [chosen[0] as u32, u32::from(lane == chosen[0])]
            } else {
                [77, 77]
            };
            assert_eq!(seen[lane * 2..lane * 2 + 2], expected, "mask {mask:#x}");
        }
    }
}

#[test]
fn logic_with_a_predicate() {
    if !has_architecture(90) {
        return;
    }
    let gpu = Gpu::new();
    let kernel = gpu.kernel("vectors.ptx", "majority");
    let mut input = words(96, 14);
    // No two of these values share a bit, so their majority is 0, once for an even thread and once for an odd one.
    input[..6].copy_from_slice(&[1, 2, 4, 8, 16, 32]);
    let (data, out) = (gpu.upload(&input), gpu.alloc(256));
    gpu.launch(kernel, [1, 1, 1], [32, 1, 1], 0, &mut arguments![data, out]);
    let expected: Vec<u32> = input
        .chunks(3)
        .enumerate()
        .flat_map(|(t, w)| {
            let most = w[0] & w[1] | w[0] & w[2] | w[1] & w[2];
            [most, u32::from(most != 0 || t % 2 == 1)]
        })
        .collect();
    assert_eq!(gpu.read::<u32>(out, 64), expected);
}
