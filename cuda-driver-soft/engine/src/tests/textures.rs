//! Tests of textures on arrays whose texels do not all have memory.

use super::{Arg, Bench};
use crate::texture::{
    Address, Channel, Object, Plane, Read, Sampler, Storage, TexelArray, TextureShape, TileLayout, TileMemory,
    TilePart, Tiles, bind, new_handle, unbind,
};
use crate::{Isa, Progress};
use std::sync::Arc;

/// The number of texels of a row, and of rows.
const EDGE: u32 = 16;
/// The bytes of a tile, which is a row.
const TILE: u64 = 4 * EDGE as u64;

/// Runs a kernel of one thread that reads texel 5 of row `y` of a texture of floats, of which only the first row has
/// memory. If `linear` is true, texels are filtered; if `faults` is true, a read of a texel without memory is a fault.
/// Returns the first component of the result and the predicate, or the text of the fault.
fn read(instruction: &str, y: f32, linear: bool, faults: bool) -> Result<(f32, bool), String> {
    read_from(TextureShape::D2, instruction, y, linear, faults)
}

/// As [`read`], from an image of one layer or a seamless cube map.
fn read_from(
    shape: TextureShape,
    instruction: &str,
    y: f32,
    linear: bool,
    faults: bool,
) -> Result<(f32, bool), String> {
    let layers = if shape == TextureShape::Cube { 6 } else { 1 };
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
        .visible .entry k(.param .u64 out, .param .u64 tex, .param .f32 y) {{\n\
        .reg .pred %p; .reg .b32 %r<6>; .reg .f32 %x, %y, %f<5>; .reg .b64 %rd<2>, %t;\n\
        ld.param.u64 %rd1, [out]; ld.param.u64 %t, [tex]; ld.param.f32 %y, [y]; mov.f32 %x, 0f40B00000;\n\
        mov.u32 %r1, 5; cvt.rzi.s32.f32 %r2, %y;\n\
        {instruction}\n\
        selp.u32 %r3, 1, 0, %p; st.global.f32 [%rd1], %f1; st.global.u32 [%rd1+4], %r3; ret; }}"
    );
    let mut bench = Bench::text(&text, Isa::best());
    let out = bench.bytes(8);
    let address = bench.put(&[3.0_f32; EDGE as usize], f32::to_le_bytes);
    let part = TilePart {
        start: 0,
        bytes: TILE * u64::from(EDGE * layers),
        first: 0,
        layout: TileLayout::Line { from: 0, tile: TILE },
    };
    let tiles = Tiles::new(vec![part], faults);
    let keep = Arc::new(());
    tiles.set([(0, Some(TileMemory { address, keep }))]);
    let array = TexelArray {
        shape,
        channel: Channel::Float,
        channels: 1,
        storage: Storage::Channels,
        normalized: false,
        levels: vec![Plane {
            address: 0,
            size: [EDGE, EDGE, layers],
            pitch: TILE,
            slice: TILE * u64::from(EDGE),
        }],
        tiles: Some(Arc::new(tiles)),
    };
    let sampler = Sampler {
        modes: [Address::Clamp; 3],
        linear,
        normalized: false,
        read: Read::Element,
        border: [0.0; 4],
        mip_linear: false,
        bias: 0.0,
        clamp: [0.0; 2],
        anisotropy: None,
        seamless: true,
    };
    let handle = new_handle();
    bind(handle, Object::Texture(array, sampler));
    let execution = bench
        .launch("k", 1, 1, &[Arg::U64(out), Arg::U64(handle), Arg::F32(y)])
        .start();
    assert_eq!(execution.work(u64::MAX), Progress::Finished);
    unbind(handle);
    match execution.fault() {
        Some(fault) => Err(fault.to_string()),
        None => {
            let [value, resident] = bench.get(out, 2, u32::from_le_bytes)[..] else {
                unreachable!("two words")
            };
            Ok((f32::from_bits(value), resident == 1))
        }
    }
}

const FLOAT: &str = "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}|%p, [%t, {%x, %y}];";
const WHOLE: &str = "tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}|%p, [%t, {%r1, %r2}];";
/// Reads texel 5 of a row of face 0. `y` goes from 1 at the upper end of the face to -1 at the lower end.
const CUBE: &str = "mov.f32 %x, 0f3f800000; mov.f32 %f2, 0f3ea00000; mov.f32 %f3, 0f00000000;\n\
    tex.cube.v4.f32.f32 {%f1, %f2, %f3, %f4}|%p, [%t, {%x, %y, %f2, %f3}];";
const GATHER: &str = "tld4.r.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}|%p, [%t, {%x, %y}];";

#[test]
fn the_predicate_of_resident_texels() {
    for instruction in [FLOAT, WHOLE, GATHER] {
        // At 0.25, the gather reads the first row twice, because the row before it is clamped to it.
        assert_eq!(read(instruction, 0.25, false, false), Ok((3.0, true)), "{instruction}");
        assert_eq!(read(instruction, 7.5, false, false), Ok((0.0, false)), "{instruction}");
    }
    assert_eq!(read(FLOAT, 0.5, true, false), Ok((3.0, true)));
    // Half of the result comes from the second row.
    assert_eq!(read(FLOAT, 1.0, true, false), Ok((1.5, false)));
    // At the middle of a texel, the others have no weight.
    let middle = 1.0 - 1.0 / EDGE as f32;
    let cube = |y| read_from(TextureShape::Cube, CUBE, y, true, false);
    assert_eq!(cube(middle), Ok((3.0, true)));
    assert_eq!(cube(middle - 1.0 / EDGE as f32), Ok((1.5, false)));
    // Texels outside of the array count as resident.
    assert_eq!(read(WHOLE, 16.0, false, false), Ok((0.0, true)));
}

#[test]
fn a_fault_of_a_texel_without_memory() {
    for instruction in [FLOAT, WHOLE] {
        let text = read(instruction, 7.5, false, true).expect_err("a fault");
        let offset = 4 * (7 * EDGE + 5);
        let expected = format!("read of the texel at byte {offset} of an array, where no memory is mapped");
        assert!(text.contains(&expected), "{text}");
    }
}
