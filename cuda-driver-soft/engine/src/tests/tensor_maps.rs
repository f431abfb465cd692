//! Tests of tensor copies with maps that no encoder would write: kernels can change each field of a map.

use super::{Arg, Bench};
use crate::Isa;
use crate::tensor_map::{Mode, TensorMap};

/// A map of `f32` elements: rows of 16 elements and boxes of one row.
fn plain(address: u64) -> TensorMap {
    TensorMap {
        address,
        rank: 3,
        data_type: 7,
        dims: [16, 64, 1, 1, 1],
        strides: [64, 4096, 0, 0],
        boxes: [16, 1, 1, 1, 1],
        element_strides: [1; 5],
        ..TensorMap::default()
    }
}

/// Runs a copy with a map in global memory, from or to `bytes` bytes of shared memory. Returns the fault, if any, with
/// its code.
fn copy(copy: &str, bytes: u32, change: impl FnOnce(&mut TensorMap)) -> Option<(u32, String)> {
    let text = format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n.shared .align 1024 .b8 tile[{bytes}];\n\
        .visible .entry k(.param .u64 map) {{\n\
        .reg .b32 %tile, %c, %bar; .reg .b64 %map; ld.param.u64 %map, [map]; mov.u32 %tile, tile; mov.u32 %c, 0;\n\
        add.u32 %bar, %tile, {};\n{copy}\nret; }}",
        bytes - 8
    );
    let mut bench = Bench::text(&text, Isa::best());
    let mut map = plain(bench.bytes(4096));
    change(&mut map);
    let map = bench.put(&map.encode(), |byte| [byte]);
    let fault = Bench::run(bench.launch("k", 1, 1, &[Arg::U64(map)])).fault();
    fault.map(|fault| (fault.code(), fault.to_string()))
}

const LOAD: &str = "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes \
    [%tile], [%map, {%c, %c, %c}], [%bar];";
const COLUMNS: &str = "{ .reg .b16 %o; mov.u16 %o, 0; \
    cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes \
    [%tile], [%map, {%c, %c, %c}], [%bar], {%o}; }";
const STORE: &str = "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%map, {%c, %c, %c}], [%tile];";
const ADD: &str =
    "cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group [%map, {%c, %c, %c}], [%tile];";

#[test]
fn boxes_that_are_too_large() {
    assert_eq!(copy(LOAD, 1024, |_| ()), None);
    let too_large = |copy_text, why: &str, change: fn(&mut TensorMap)| {
        let (code, text) = copy(copy_text, 1024, change).expect("a fault");
        assert!(code == 715 && text.contains(why), "{code} {text}");
    };
    let dimension = "a dimension of the tensor map's box is not in 1..=256";
    // 2^16 rows of 2^16 bytes: the size does not fit in 32 bits.
    too_large(LOAD, dimension, |map| {
        (map.data_type, map.boxes) = (5, [8192, 256, 256, 1, 1]);
    });
    too_large(LOAD, dimension, |map| map.boxes[1] = 0);
    too_large(STORE, dimension, |map| map.boxes[1] = 257);
    let memory = "the tensor map's box exceeds the shared memory of a block";
    too_large(LOAD, memory, |map| map.boxes = [256, 256, 256, 1, 1]);
    // With padding, the rows take four times their bytes.
    too_large(STORE, memory, |map| {
        (map.swizzle, map.boxes) = (3, [8, 256, 64, 1, 1]);
    });
    too_large(COLUMNS, memory, |map| {
        (map.mode, map.channels, map.pixels) = (Mode::Im2col, 256, u16::MAX);
    });
    too_large(
        COLUMNS,
        "the tensor map's number of channels is not in 1..=256",
        |map| {
            (map.mode, map.channels, map.pixels) = (Mode::Im2col, 1 << 15, 1 << 15);
        },
    );
    // A smaller box exceeds only the shared memory that this block has.
    let (code, text) = copy(LOAD, 1024, |map| map.boxes[1] = 64).expect("a fault");
    assert!(code == 715 && text.contains("only 1024 bytes"), "{code} {text}");
}

#[test]
fn swizzled_rows_at_the_end_of_a_box() {
    // The fifth row, of 64 bytes, is in the second half of its 128 bytes, and the third row in the first half.
    for (rows, bytes) in [(5, 640), (3, 320), (1, 64)] {
        let rows = |map: &mut TensorMap| (map.swizzle, map.boxes[1]) = (3, rows);
        for text in [STORE, ADD] {
            assert_eq!(copy(text, bytes, rows), None);
            let (code, text) = copy(text, bytes - 16, rows).expect("a fault");
            assert!(
                code == 715 && text.contains(&format!("only {} bytes", bytes - 16)),
                "{code} {text}"
            );
        }
    }
}

#[test]
fn strides_that_are_not_multiples_of_16() {
    for text in [STORE, ADD, LOAD] {
        for stride in [3, 8, u64::MAX] {
            let (code, text) = copy(text, 1024, |map| map.strides[1] = stride).expect("a fault");
            assert!(
                code == 715 && text.contains("a stride of the tensor map"),
                "{code} {text}"
            );
        }
    }
    // The map does not use the stride of a fourth dimension.
    assert_eq!(copy(ADD, 1024, |map| map.strides[2] = 3), None);
}
