//! Tests of the check for races: accesses of warps to single places, rows and lines.

use super::{Conflict, Effect, LANES, LaneMaps, Places, Races, Values, WarpAccess, shared_address};
use crate::check::lines::Patterns;
use crate::check::order::{BlockOrder, Reach};
use crate::check::stamp::Strength;

/// Stored values that are not known, which count as different.
struct Different;

impl Values for Different {
    fn get(&self, _: usize, _: u64, _: u32) -> Option<u32> {
        None
    }
}

struct Equal;

impl Values for Equal {
    fn get(&self, _: usize, _: u64, bytes: u32) -> Option<u32> {
        Some(if bytes == 4 { 0x0101_0101 } else { 1 })
    }
}

struct Bench {
    races: Races,
    patterns: Patterns,
    blocks: Vec<BlockOrder>,
    found: Vec<Conflict>,
}

fn bench() -> Bench {
    Bench {
        races: Races::default(),
        patterns: Patterns::default(),
        blocks: (0..3).map(|block| BlockOrder::new(block, block, 64)).collect(),
        found: Vec::new(),
    }
}

fn row(first: u64) -> [u64; LANES] {
    std::array::from_fn(|i| first + 4 * i as u64)
}

impl Bench {
    fn run(&mut self, block: usize, access: WarpAccess<'_>, values: &dyn Values) -> usize {
        let before = self.found.len();
        let addresses = access.places.all();
        let request = (access.lanes, &addresses, access.bytes);
        let order = &mut self.blocks[block];
        match self.patterns.of_request(access.site, access.effect, request) {
            Some((_, pattern, maps)) => {
                let pattern = (Some(pattern), maps);
                self.races.access(order, &access, pattern, values, &mut self.found);
            }
            None => {
                let pattern = (None, &mut self.patterns.maps);
                self.races.access(order, &access, pattern, values, &mut self.found);
            }
        }
        self.found.len() - before
    }

    fn read(&mut self, block: usize, warp: u8, addresses: &[u64; LANES]) -> usize {
        self.run(block, access(warp, addresses, Effect::Read, Strength::Weak), &Different)
    }

    fn write(&mut self, block: usize, warp: u8, addresses: &[u64; LANES]) -> usize {
        self.run(
            block,
            access(warp, addresses, Effect::Write, Strength::Weak),
            &Different,
        )
    }

    fn atomic(&mut self, block: usize, warp: u8, addresses: &[u64; LANES]) -> usize {
        let one = WarpAccess {
            lanes: 1,
            ..access(warp, addresses, Effect::Update, Strength::Strong)
        };
        self.run(block, one, &Different)
    }

    fn barrier(&mut self, block: usize) {
        for warp in 0..2 {
            self.blocks[block].arrive(0, warp, false);
        }
        self.blocks[block].open(0);
    }
}

fn access(warp: u8, addresses: &[u64; LANES], effect: Effect, strong: Strength) -> WarpAccess<'_> {
    WarpAccess {
        warp,
        lanes: !0,
        places: Places::of(addresses),
        bytes: 4,
        effect,
        strong,
        release: None,
        pending: false,
        site: u32::from(warp) + 1,
    }
}

#[test]
fn warps_of_a_block_need_a_barrier() {
    for start in [4096, 4096 + 4, shared_address(0, 0), shared_address(0, 8)] {
        let mut bench = bench();
        assert_eq!(bench.write(0, 0, &row(start)), 0);
        bench.barrier(0);
        assert_eq!(bench.read(0, 1, &row(start)), 0);
        assert_ne!(bench.write(0, 0, &row(start)), 0, "the reads are not ordered");
        bench.barrier(0);
        assert_eq!(bench.write(0, 1, &row(start)), 0);
        assert_ne!(bench.read(0, 0, &row(start)), 0);
    }
}

#[test]
fn a_strong_write_does_not_hide_a_weak_one() {
    let strided = std::array::from_fn(|i| 4096 + 8 * i as u64);
    let bytes = std::array::from_fn(|i| 4096 + i as u64);
    for (addresses, size) in [
        (row(4096), 4),
        (row(4096 + 4), 4),
        (strided, 4),
        (bytes, 1),
        ([4096; LANES], 4),
    ] {
        let lanes = if addresses[0] == addresses[1] { 1 } else { !0 };
        let of = |effect, strong| WarpAccess {
            bytes: size,
            lanes,
            ..access(0, &addresses, effect, strong)
        };
        for (first, races) in [
            (Strength::Weak, true),
            (Strength::InBlock, true),
            (Strength::Strong, false),
        ] {
            for effect in [Effect::Read, Effect::Update, Effect::Write] {
                let mut bench = bench();
                assert_eq!(bench.run(0, of(Effect::Write, first), &Different), 0);
                bench.barrier(0);
                for _ in 0..2 {
                    assert_eq!(bench.run(0, of(Effect::Update, Strength::Strong), &Different), 0);
                }
                let found = bench.run(1, of(effect, Strength::Strong), &Different);
                assert_eq!(found != 0, races, "{addresses:?}, {first:?}, {effect:?}");
            }
        }
        // A barrier orders both.
        let mut bench = bench();
        bench.run(0, of(Effect::Write, Strength::Weak), &Different);
        bench.run(0, of(Effect::Update, Strength::Strong), &Different);
        bench.barrier(0);
        let other = WarpAccess {
            warp: 1,
            ..of(Effect::Update, Strength::Strong)
        };
        assert_eq!(bench.run(0, other, &Different), 0, "{addresses:?}");
    }
}

#[test]
fn lanes_of_a_warp_need_synchronisation() {
    let mut bench = bench();
    let reversed = std::array::from_fn(|i| 4096 + 4 * (31 - i) as u64);
    bench.write(0, 0, &row(4096));
    bench.blocks[0].sync_lanes(0, !0);
    assert_eq!(bench.read(0, 0, &reversed), 0);
    assert_eq!(bench.read(0, 0, &row(4096)), 0);
    assert_ne!(bench.write(0, 0, &row(4096)), 0);
}

#[test]
fn blocks_need_a_fence_and_a_location() {
    let (data, flag) = (row(4096), [64; LANES]);
    for fenced in [true, false] {
        let mut bench = bench();
        bench.write(0, 0, &data);
        bench.barrier(0);
        if fenced {
            bench.blocks[0].fence(0, 1, Reach::Device);
        }
        assert_eq!(bench.atomic(0, 0, &flag), 0);
        assert_eq!(bench.atomic(1, 0, &flag), 0);
        bench.barrier(1);
        assert_eq!(bench.read(1, 1, &data) == 0, fenced);
        assert_ne!(bench.read(2, 0, &data), 0);
    }
}

#[test]
fn nothing_is_kept_that_only_threads_of_ended_blocks_can_acquire() {
    let mut bench = bench();
    let (shared, global) = (shared_address(0, 0), 64);
    bench.blocks[0].fence(0, 1, Reach::Block);
    bench.atomic(0, 0, &[global; LANES]);
    for reach in Reach::ALL {
        bench.blocks[0].fence(0, 1, reach);
    }
    bench.atomic(0, 0, &[shared; LANES]);
    assert!(!bench.races.published.is_empty());
    bench.races.end_block(0, 1024);
    assert!(bench.races.published.is_empty());
    // Other blocks acquire what is published to the device.
    bench.atomic(0, 0, &[global; LANES]);
    bench.races.end_block(0, 1024);
    assert!(!bench.races.published.is_empty());
}

#[test]
fn a_cluster_ends_with_its_last_block() {
    let mut races = Races::default();
    for _ in 0..2 {
        assert!(!races.end_block_of_cluster(4, 2));
        assert!(!races.end_block_of_cluster(6, 2));
        assert!(races.end_block_of_cluster(4, 2));
        assert!(races.end_block_of_cluster(6, 2));
    }
}

#[test]
fn equal_values_do_not_race_and_different_ones_do() {
    for addresses in [[4096; LANES], row(4096), row(4096 + 4)] {
        let mut bench = bench();
        let write = access(0, &addresses, Effect::Write, Strength::Weak);
        assert_eq!(bench.run(0, write, &Equal), 0);
        assert_eq!(bench.run(1, write, &Equal), 0);
        assert_ne!(bench.run(2, write, &Different), 0);
    }
}

#[test]
fn strong_accesses_do_not_race_with_each_other() {
    let mut bench = bench();
    let at = [4096; LANES];
    bench.atomic(0, 0, &at);
    assert_eq!(
        bench.run(1, access(0, &at, Effect::Read, Strength::Strong), &Different),
        0
    );
    assert_ne!(bench.read(1, 0, &at), 0);
}

#[test]
fn a_strong_read_does_not_hide_a_weak_one() {
    // A row of words, and words that have cells or marks of their own.
    for start in [4096, 4096 + 4] {
        for synchronised in [false, true] {
            let mut bench = bench();
            let at = row(start);
            assert_eq!(bench.read(0, 0, &at), 0);
            if synchronised {
                bench.barrier(0);
            }
            let strong = access(0, &at, Effect::Read, Strength::Strong);
            assert_eq!(bench.run(0, strong, &Different), 0);
            assert_ne!(
                bench.atomic(1, 0, &at),
                0,
                "start {start}, synchronised: {synchronised}"
            );
        }
    }
}

#[test]
fn neighbouring_bytes_are_different_locations() {
    let mut bench = bench();
    let bytes = std::array::from_fn(|i| 4096 + i as u64);
    let write = |warp| WarpAccess {
        bytes: 1,
        ..access(warp, &bytes, Effect::Write, Strength::Weak)
    };
    assert_eq!(bench.run(0, write(0), &Different), 0);
    assert_ne!(bench.run(0, write(1), &Different), 0);
    let words: [u64; LANES] = std::array::from_fn(|i| 4096 + i as u64 / 4 * 4);
    bench.barrier(0);
    assert_eq!(bench.read(0, 0, &words), 0);
    assert_ne!(bench.run(0, write(0), &Different), 0);
}

#[test]
fn a_row_replaces_the_accesses_to_bytes() {
    for full in [false, true] {
        let mut bench = bench();
        if full {
            bench.patterns.maps = LaneMaps::full();
        }
        let bytes = std::array::from_fn(|i| 4096 + i as u64);
        let write = WarpAccess {
            bytes: 1,
            ..access(0, &bytes, Effect::Write, Strength::Weak)
        };
        assert_eq!(bench.run(0, write, &Different), 0);
        bench.barrier(0);
        assert_eq!(bench.write(0, 0, &row(4096)), 0);
        assert_eq!(bench.read(1, 0, &row(4096)), 1, "full: {full}");
    }
}

#[test]
fn wide_accesses_conflict_in_each_word() {
    let mut bench = bench();
    let quads: [u64; LANES] = std::array::from_fn(|i| 4096 + 16 * i as u64);
    let write = WarpAccess {
        bytes: 16,
        ..access(0, &quads, Effect::Write, Strength::Weak)
    };
    assert_eq!(bench.run(0, write, &Different), 0);
    let one = WarpAccess {
        lanes: 1 << 5,
        ..access(1, &[4096 + 16 * 5 + 12; LANES], Effect::Read, Strength::Weak)
    };
    assert_eq!(bench.run(0, one, &Different), 1);
    let conflict = bench.found[0];
    assert_eq!(conflict.address, 4096 + 16 * 5 + 12);
    assert_eq!((conflict.earlier.lanes, conflict.later.lanes), (1 << 5, 1 << 5));
}

/// Random accesses give the same conflicts, in the same order, as if each word were checked on its own.
#[test]
fn accesses_that_are_checked_together_have_the_same_conflicts() {
    let mut state = 7u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut conflicts, mut clean) = (0, 0);
    for round in 0..150 {
        let mut benches = [bench(), bench()];
        benches[1].patterns.maps = LaneMaps::full();
        // The accesses of the kernel: their patterns and effects.
        let sites: Vec<_> = (0..4 + random(4))
            .map(|site| {
                let pattern = random(9);
                let bytes = [4, 4, 4, 8, 16, 1, 1, 2][random(8) as usize];
                let mask = [!0, !0, !0, 0xffff, 0x8000_0fff][random(5) as usize];
                let update = random(12) == 0;
                let writes = random(4) == 0;
                (site as u32 + 1, pattern, bytes, mask, (update, writes, random(3) == 0))
            })
            .collect();
        for step in 0..160 {
            let block = random(3) as usize;
            match random(10) {
                0..=1 => benches.iter_mut().for_each(|b| b.barrier(block)),
                2 => {
                    let warp = random(2) as u8;
                    let lanes = if random(3) == 0 { 0xff } else { !0 };
                    benches.iter_mut().for_each(|b| b.blocks[block].sync_lanes(warp, lanes));
                }
                3 if random(4) == 0 => {
                    let warp = random(2) as u8;
                    benches
                        .iter_mut()
                        .for_each(|b| b.blocks[block].fence(warp, !0, Reach::Device));
                }
                _ => {
                    let (site, pattern, bytes, lanes, (update, writes, equal)) =
                        sites[random(sites.len() as u64) as usize];
                    let warp = random(2);
                    let own = (block as u64 * 2 + warp) * 128;
                    let first = 4096 + [own, own, 0, 4, 64][random(5) as usize];
                    let size = u64::from(bytes);
                    let addresses: [u64; LANES] = std::array::from_fn(|lane| {
                        let lane = lane as u64;
                        first
                            + match pattern {
                                0..=1 => lane * size,
                                2 => lane % 16 * size + lane / 16 * 256,
                                3 => lane % 16 * size,
                                4 => lane / 16 * 64,
                                5 => lane * 68 / 4 * size.min(4),
                                6 => lane % 4 * 132 / size * size + lane / 4 * size,
                                7 => 128,
                                _ => (31 - lane) * size,
                            }
                    });
                    let (effect, strong) = match (update, writes) {
                        (true, _) => (Effect::Update, Strength::Strong),
                        (_, true) => (Effect::Write, Strength::Weak),
                        _ if random(40) == 0 => (Effect::Read, Strength::InBlock),
                        _ => (Effect::Read, Strength::Weak),
                    };
                    let access = WarpAccess {
                        warp: warp as u8,
                        lanes,
                        places: Places::of(&addresses),
                        bytes,
                        effect,
                        strong,
                        release: None,
                        pending: false,
                        site,
                    };
                    let values: &dyn Values = if equal { &Equal } else { &Different };
                    let found = benches.each_mut().map(|b| b.run(block, access, values));
                    assert_eq!(
                        benches[0].found, benches[1].found,
                        "round {round}, step {step}: {access:?}"
                    );
                    conflicts += found[0];
                    clean += usize::from(found[0] == 0);
                }
            }
        }
    }
    assert!(
        conflicts > 1000 && clean > 1000,
        "{conflicts} conflicts, {clean} accesses without"
    );
}
