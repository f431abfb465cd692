//! Tests of `tex.grad`: the levels of a mipmapped array that gradients choose.

use std::fmt::Write as _;
use std::ptr::null_mut;

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::values::Recorded;
use crate::ok;
use crate::textures::{description, destroy_with_array, fill, plain, run, texture};

/// The number of gradients of a pattern.
const COUNT: usize = 128;

/// A texture of a mipmapped array of floats, with linear filtering.
pub(crate) struct Mipmap {
    /// The number of axes; 2 for a cube map.
    pub(crate) axes: usize,
    /// The number of texels along each axis.
    pub(crate) edge: usize,
    /// The number of levels.
    pub(crate) count: u32,
    /// The flags of a cube map, or 0.
    pub(crate) flags: u32,
    /// `maxAnisotropy`.
    pub(crate) ratio: u32,
}

impl Mipmap {
    /// Creates the texture. `texels` gets the number of a level and its size, and returns its texels.
    pub(crate) fn texture(&self, texels: impl Fn(u32, [usize; 3]) -> Vec<f32>) -> u64 {
        let dimension = |axis: usize| if axis < self.axes { self.edge } else { 0 };
        let cube = self.flags != 0;
        let descriptor = CUDA_ARRAY3D_DESCRIPTOR {
            Width: self.edge,
            Height: dimension(1),
            Depth: if cube { 6 } else { dimension(2) },
            Format: CUarray_format::CU_AD_FORMAT_FLOAT,
            NumChannels: 1,
            Flags: self.flags,
        };
        let mut mipmap = null_mut();
        ok!(cuMipmappedArrayCreate(
            &raw mut mipmap,
            &raw const descriptor,
            self.count
        ));
        for level in 0..self.count {
            let mut array = null_mut();
            ok!(cuMipmappedArrayGetLevel(&raw mut array, mipmap, level));
            let size = |axis: usize| dimension(axis).checked_shr(level).unwrap_or(0).max(1);
            let size = [size(0), size(1), if cube { 6 } else { size(2) }];
            let bytes: Vec<u8> = texels(level, size).into_iter().flat_map(f32::to_le_bytes).collect();
            fill(array, &bytes, size[0] * 4, size[1], size[2]);
        }
        let mut settings = plain();
        settings.addressMode = [CUaddress_mode::CU_TR_ADDRESS_MODE_WRAP; 3];
        settings.flags = CU_TRSF_NORMALIZED_COORDINATES;
        settings.filterMode = CUfilter_mode::CU_TR_FILTER_MODE_LINEAR;
        settings.mipmapFilterMode = CUfilter_mode::CU_TR_FILTER_MODE_LINEAR;
        settings.maxMipmapLevelClamp = 20.0;
        settings.maxAnisotropy = self.ratio;
        let mipmap = CUDA_RESOURCE_DESC_st__res__mipmap {
            hMipmappedArray: mipmap,
        };
        let resource = description(
            CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
            CUDA_RESOURCE_DESC_st__res { mipmap },
        );
        texture(&resource, &settings)
    }
}

/// Returns a texture whose texels have the number of their level.
pub(crate) fn levels(mipmap: &Mipmap) -> u64 {
    mipmap.texture(|level, size| vec![level as f32; size.into_iter().product()])
}

/// Returns the gradients of a pattern: three components along x, and three along y. Components beyond `axes` are 0.
fn gradients(axes: usize, pattern: u32) -> Vec<Vec<u32>> {
    let mut numbers = Recorded(5 + u64::from(pattern));
    let mut random = || (numbers.next() % 4096) as f32 / 4096.0;
    let gradient = |i: usize| {
        let mut parts = [0_f32; 6];
        for k in 0..axes {
            let (a, b) = (random(), random());
            let (x, y) = match pattern {
                0 => (if k == 0 { (i + 1) as f32 / 256.0 } else { 0.0 }, 0.0),
                1 => ((a - 0.5) * 0.5, (b - 0.5) * 0.5),
                2 => (if k == 0 { a * 0.5 } else { 0.0 }, if k == 1 { b * 0.5 } else { 0.0 }),
                _ => (
                    (a - 0.5) * (1 << (i % 8)) as f32 / 64.0,
                    (b - 0.5) / (1 << (i % 5)) as f32,
                ),
            };
            (parts[k], parts[3 + k]) = (x, y);
        }
        parts.map(f32::to_bits).to_vec()
    };
    (0..COUNT).map(gradient).collect()
}

#[test]
fn levels_match_a_gpus() {
    let gpu = Gpu::new();
    let solid = "{r0, r1, r2, r2}], {c0, c1, c2, c2}, {c3, c4, c5, c5};";
    let of = |axes, edge, count, flags| {
        levels(&Mipmap {
            axes,
            edge,
            count,
            flags,
            ratio: 0,
        })
    };
    let geometries = [
        ("1d", 1, of(1, 256, 9, 0), "{r0}], {c0}, {c3};"),
        ("2d", 2, of(2, 256, 9, 0), "{r0, r1}], {c0, c1}, {c3, c4};"),
        ("3d", 3, of(3, 32, 6, 0), solid),
        ("cube", 3, of(2, 64, 7, CUDA_ARRAY3D_CUBEMAP), solid),
    ];
    let mut wrong = String::new();
    let mut lines = 0;
    for line in include_str!("textures/gradients.txt").lines().skip(1) {
        lines += 1;
        let mut words = line.split_whitespace();
        let name = words.next().expect("a geometry");
        let pattern = words.next().and_then(|word| word.parse().ok()).expect("a pattern");
        let recorded: Vec<i32> = words.map(|word| word.parse().expect("a level")).collect();
        let &(_, axes, handle, operands) = geometries.iter().find(|g| g.0 == name).expect("a known geometry");
        // The direction into a cube map is (0.3, 0.4, 0.5). In the other geometries, the level does not depend on the
        // coordinates.
        let instruction = format!(
            "mov.b32 r0, 0f3e99999a; mov.b32 r1, 0f3ecccccd; mov.b32 r2, 0f3f000000; \
             tex.grad.{name}.v4.f32.f32 {{r0, r1, r2, r3}}, [h, {operands}"
        );
        let seen = run(&gpu, &instruction, handle, &gradients(axes, pattern));
        // Some roundings for three components, and for places on a cube, are not known: levels may differ by 2/256.
        let most = if axes == 3 { 2 } else { 0 };
        assert_eq!((recorded.len(), seen.len()), (COUNT, COUNT));
        for (i, (recorded, seen)) in recorded.iter().zip(seen).enumerate() {
            let seen = (f32::from_bits(seen[0]) * 256.0).round() as i32;
            if (seen - recorded).abs() > most {
                let _ = writeln!(
                    wrong,
                    "{name}, pattern {pattern}, gradient {i}: {seen}/256, not {recorded}/256"
                );
            }
        }
    }
    for (_, _, handle, _) in geometries {
        destroy_with_array(handle);
    }
    assert_eq!(lines, 16, "four patterns for each of four geometries");
    assert!(wrong.is_empty(), "{wrong}");
}
