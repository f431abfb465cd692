//! Tests of textures: samples as an H200 returned them, and objects, references and their arguments.

use std::fmt::Write as _;
use std::ptr;

use cuda_driver::sys::*;

use crate::arguments;
use crate::common::Codes;
use crate::common::gpu::Gpu;
use crate::{is, ok};

/// The texels of a case.
struct Texels {
    format: &'static str,
    channels: u32,
    /// The width, height and depth; for a mipmapped array, the width, height and number of levels.
    size: [usize; 3],
    flags: u32,
    mipmapped: bool,
    /// The bytes of all texels, packed into words of four.
    words: Vec<u32>,
}

/// A texture, an instruction, and the samples that an H200 returned.
struct Case {
    name: &'static str,
    texels: Texels,
    settings: CUDA_TEXTURE_DESC,
    instruction: &'static str,
    /// The coordinates of each sample, and its channels, as bits.
    samples: Vec<(Vec<u32>, Vec<u32>)>,
}

impl Case {
    /// Returns true if results equal the recorded ones: bit for bit, except with linear filters both within levels and
    /// between them.
    ///
    /// The rounding of the weights is known there only to one part in 256, and the texels differ by about ten.
    fn agree(&self, recorded: &[u32], seen: &[u32]) -> bool {
        if !self.name.starts_with("levels_1_1") {
            return seen[..recorded.len()] == *recorded;
        }
        let close = |(a, b): (&u32, &u32)| (f32::from_bits(*a) - f32::from_bits(*b)).abs() < 0.1;
        recorded.iter().zip(seen).all(close)
    }
}

fn number<T: std::str::FromStr>(text: Option<&str>) -> T {
    let value = text.and_then(|text| text.parse().ok());
    value.unwrap_or_else(|| panic!("not a number in the recorded file: {text:?}"))
}

fn hex(text: &str) -> Vec<u32> {
    let word = |word| u32::from_str_radix(word, 16);
    text.split_whitespace()
        .map(|w| word(w).unwrap_or_else(|error| panic!("not a hexadecimal word in the recorded file: {w}: {error}")))
        .collect()
}

/// Reads the cases of the recorded file.
fn cases() -> Vec<Case> {
    let text = include_str!("textures/recorded.txt");
    let mut before = Vec::new();
    let blocks = text.split("\n= ").skip(1);
    blocks
        .map(|block| {
            let mut lines = block.lines();
            let mut line = |start: &str| {
                let line = lines.next().unwrap_or_default();
                line.strip_prefix(start)
                    .unwrap_or_else(|| panic!("the recorded file needs a line with `{start}` here: {line}"))
            };
            let name = line("");
            let mut array = line("array ").split_whitespace();
            let format = array.next().unwrap_or_default();
            let channels = number(array.next());
            let size = [(); 3].map(|()| number(array.next()));
            let flags = number(array.next());
            let mipmapped = array.next().is_some();
            let words = line("texels ");
            if words != "as before" {
                before = hex(words);
            }
            let mut read = line("read ").split_whitespace();
            let mode = CUaddress_mode(number(read.next()));
            let filter = CUfilter_mode(number(read.next()));
            let read_flags = number(read.next());
            let border = hex(read.next().unwrap_or_default())[0];
            read.next();
            let mip_filter = CUfilter_mode(number(read.next()));
            let levels: Vec<f32> = read.map(|w| f32::from_bits(hex(w)[0])).collect();
            let settings = CUDA_TEXTURE_DESC {
                addressMode: [mode; 3],
                filterMode: filter,
                flags: read_flags,
                maxAnisotropy: 0,
                mipmapFilterMode: mip_filter,
                mipmapLevelBias: levels[0],
                minMipmapLevelClamp: levels[1],
                maxMipmapLevelClamp: levels[2],
                borderColor: [f32::from_bits(border), 0.0, 0.0, 0.0],
                reserved: [0; 12],
            };
            let instruction = line("");
            let sample = |line: &'static str| {
                let (at, is) = line.split_once('>').unwrap_or_default();
                (hex(at), hex(is))
            };
            Case {
                name,
                texels: Texels {
                    format,
                    channels,
                    size,
                    flags,
                    mipmapped,
                    words: before.clone(),
                },
                settings,
                instruction,
                samples: lines.filter(|l| l.contains('>')).map(sample).collect(),
            }
        })
        .collect()
}

fn format(name: &str) -> (CUarray_format, usize) {
    match name {
        "u8" => (CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8, 1),
        "s8" => (CUarray_format::CU_AD_FORMAT_SIGNED_INT8, 1),
        "u16" => (CUarray_format::CU_AD_FORMAT_UNSIGNED_INT16, 2),
        "s16" => (CUarray_format::CU_AD_FORMAT_SIGNED_INT16, 2),
        "half" => (CUarray_format::CU_AD_FORMAT_HALF, 2),
        "u32" => (CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32, 4),
        "f32" => (CUarray_format::CU_AD_FORMAT_FLOAT, 4),
        _ => panic!("unknown format {name}"),
    }
}

/// Fills an array from its start with rows of `width` bytes.
pub(crate) fn fill(array: CUarray, bytes: &[u8], width: usize, height: usize, depth: usize) {
    let copy = CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: bytes.as_ptr().cast(),
        srcPitch: width,
        srcHeight: height,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
        dstArray: array,
        WidthInBytes: width,
        Height: height,
        Depth: depth,
        ..Default::default()
    };
    assert!(width * height * depth <= bytes.len());
    ok!(cuMemcpy3D(&raw const copy));
}

pub(crate) fn description(kind: CUresourcetype, res: CUDA_RESOURCE_DESC_st__res) -> CUDA_RESOURCE_DESC {
    CUDA_RESOURCE_DESC {
        resType: kind,
        res,
        flags: 0,
    }
}

fn of_array(array: CUarray) -> CUDA_RESOURCE_DESC {
    let array = CUDA_RESOURCE_DESC_st__res__array { hArray: array };
    description(
        CUresourcetype::CU_RESOURCE_TYPE_ARRAY,
        CUDA_RESOURCE_DESC_st__res { array },
    )
}

impl Texels {
    /// Creates an array, or a mipmapped one, with these texels.
    fn make(&self) -> CUDA_RESOURCE_DESC {
        let (format, bytes) = format(self.format);
        let texel = bytes * self.channels as usize;
        let data: Vec<u8> = self.words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let [width, height, depth] = self.size;
        let descriptor = CUDA_ARRAY3D_DESCRIPTOR {
            Width: width,
            Height: height,
            Depth: if self.mipmapped { 0 } else { depth },
            Format: format,
            NumChannels: self.channels,
            Flags: self.flags,
        };
        if !self.mipmapped {
            let mut array = ptr::null_mut();
            ok!(cuArray3DCreate(&raw mut array, &raw const descriptor));
            fill(array, &data, width * texel, height.max(1), depth.max(1));
            return of_array(array);
        }
        let mut mipmap = ptr::null_mut();
        ok!(cuMipmappedArrayCreate(
            &raw mut mipmap,
            &raw const descriptor,
            depth as u32
        ));
        let mut rest = &data[..];
        for level in 0..depth {
            let mut array = ptr::null_mut();
            ok!(cuMipmappedArrayGetLevel(&raw mut array, mipmap, level as u32));
            let (width, height) = ((width >> level).max(1), (height >> level).max(1));
            fill(array, rest, width * texel, height, 1);
            rest = &rest[width * height * texel..];
        }
        let mipmap = CUDA_RESOURCE_DESC_st__res__mipmap {
            hMipmappedArray: mipmap,
        };
        description(
            CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
            CUDA_RESOURCE_DESC_st__res { mipmap },
        )
    }
}

/// Generates a kernel that runs an instruction for each of n rows of eight words, and stores four words per row.
pub(crate) fn kernel(gpu: &Gpu, instruction: &str) -> CUfunction {
    let ptx = format!(
        ".version 7.8\n.target sm_75\n.address_size 64\n\
         .visible .entry k(.param .u64 ph, .param .u64 pin, .param .u64 pout, .param .u32 pn) {{\n\
         .reg .b64 h, a, o, t, q<4>; .reg .b32 c<8>, r<4>, i, n, m; .reg .b16 s<4>; .reg .pred p;\n\
         ld.param.u64 h, [ph]; ld.param.u64 a, [pin]; ld.param.u64 o, [pout]; ld.param.u32 n, [pn];\n\
         mov.u32 i, %ctaid.x; mov.u32 m, %ntid.x; mul.lo.u32 i, i, m; mov.u32 m, %tid.x; add.u32 i, i, m;\n\
         setp.ge.u32 p, i, n; @p ret;\n\
         mul.wide.u32 t, i, 32; add.u64 a, a, t; mul.wide.u32 t, i, 16; add.u64 o, o, t;\n\
         ld.global.v4.b32 {{c0, c1, c2, c3}}, [a]; ld.global.v4.b32 {{c4, c5, c6, c7}}, [a+16];\n\
         mov.u32 r0, 0xdeadbeef; mov.u32 r1, r0; mov.u32 r2, r0; mov.u32 r3, r0;\n\
         {instruction}\n\
         st.global.v4.b32 [o], {{r0, r1, r2, r3}}; ret; }}\n"
    );
    let module = gpu.text(&ptx);
    gpu.function(module, "k")
}

/// Returns the instruction's results for each row.
pub(crate) fn run(gpu: &Gpu, instruction: &str, handle: u64, rows: &[Vec<u32>]) -> Vec<[u32; 4]> {
    let function = kernel(gpu, instruction);
    let rows: Vec<[u32; 8]> = rows
        .iter()
        .map(|row| std::array::from_fn(|i| row.get(i).copied().unwrap_or(0)))
        .collect();
    let (input, out) = (gpu.upload(&rows), gpu.alloc(rows.len() * 16));
    let count = rows.len() as u32;
    gpu.launch(
        function,
        [count.div_ceil(64), 1, 1],
        [64, 1, 1],
        0,
        &mut arguments![handle, input, out, count],
    );
    gpu.read(out, rows.len())
}

pub(crate) fn texture(resource: &CUDA_RESOURCE_DESC, settings: &CUDA_TEXTURE_DESC) -> u64 {
    let mut handle = 0;
    ok!(cuTexObjectCreate(&raw mut handle, resource, settings, ptr::null()));
    handle
}

/// Destroys a texture and its array or mipmapped array.
///
/// Tests with many arrays destroy them and do not leave them to the context: on an H200 with driver 580, `cuCtxDestroy`
/// of a context with many arrays corrupted the heap of the process while other threads used the driver (in 15 of 150
/// runs; in none of 36 since the tests destroy the arrays).
pub(crate) fn destroy_with_array(texture: u64) {
    let mut resource = CUDA_RESOURCE_DESC::default();
    ok!(cuTexObjectGetResourceDesc(&raw mut resource, texture));
    ok!(cuTexObjectDestroy(texture));
    match resource.resType {
        // The type names the valid member of the union.
        CUresourcetype::CU_RESOURCE_TYPE_ARRAY => ok!(cuArrayDestroy(resource.res.array.hArray)),
        CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => {
            ok!(cuMipmappedArrayDestroy(resource.res.mipmap.hMipmappedArray));
        }
        other => panic!("a texture of {other:?} has no array"),
    }
}

#[test]
fn samples_match_a_gpus() {
    let cases = cases();
    assert!(cases.len() > 100, "only {} cases", cases.len());
    let mut wrong = String::new();
    let gpu = Gpu::new();
    for case in &cases {
        let handle = texture(&case.texels.make(), &case.settings);
        let rows: Vec<_> = case.samples.iter().map(|(at, _)| at.clone()).collect();
        let seen = run(&gpu, case.instruction, handle, &rows);
        assert!(!rows.is_empty(), "{} has no samples", case.name);
        for ((at, is), seen) in case.samples.iter().zip(seen) {
            if !case.agree(is, &seen) {
                let _ = writeln!(wrong, "{} at {at:x?}: {seen:x?}, not {is:x?}", case.name);
            }
        }
        destroy_with_array(handle);
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A view of a layered array shows only its own layers. Integer coordinates of other layers read zeros.
#[test]
fn views_of_some_layers() {
    let gpu = Gpu::new();
    let layers = Texels {
        format: "f32",
        channels: 1,
        size: [2, 2, 4],
        flags: CUDA_ARRAY3D_LAYERED,
        mipmapped: false,
        words: (0..16_u8).map(|i| f32::from(1 + i / 4).to_bits()).collect(),
    };
    let resource = layers.make();
    for (first, last, seen) in [
        (0, 0, [1.0, 0.0, 0.0, 0.0, 0.0]),
        (1, 1, [2.0, 0.0, 0.0, 0.0, 0.0]),
        (1, 2, [2.0, 3.0, 0.0, 0.0, 0.0]),
        (0, 3, [1.0, 2.0, 3.0, 4.0, 0.0]),
        (0, 4, [1.0, 2.0, 3.0, 4.0, 0.0]),
    ] {
        let view = CUDA_RESOURCE_VIEW_DESC {
            format: CUresourceViewFormat::CU_RES_VIEW_FORMAT_FLOAT_1X32,
            width: 2,
            height: 2,
            depth: 4,
            firstLayer: first,
            lastLayer: last,
            ..Default::default()
        };
        let mut handle = 0;
        ok!(cuTexObjectCreate(
            &raw mut handle,
            &raw const resource,
            &plain(),
            &raw const view
        ));
        let instruction = "tex.a2d.v4.f32.s32 {r0, r1, r2, r3}, [h, {c0, c1, c1, c1}];";
        let rows: Vec<Vec<u32>> = (0..5).map(|layer| vec![layer, 1]).collect();
        let samples: Vec<f32> = run(&gpu, instruction, handle, &rows)
            .iter()
            .map(|sample| f32::from_bits(sample[0]))
            .collect();
        assert_eq!(samples, seen, "layers {first} to {last}");
        ok!(cuTexObjectDestroy(handle));
    }
    // The resource is an array.
    ok!(cuArrayDestroy(resource.res.array.hArray));
}

/// Describes a texture without filtering, whose coordinates are not normalized.
pub(crate) fn plain() -> CUDA_TEXTURE_DESC {
    CUDA_TEXTURE_DESC {
        addressMode: [CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP; 3],
        ..Default::default()
    }
}

fn floats(count: u16) -> Vec<u32> {
    (0..count).map(|i| f32::from(i).to_bits()).collect()
}

#[test]
fn textures_of_linear_memory() {
    let gpu = Gpu::new();
    let memory = gpu.upload(&floats(64));
    let linear = CUDA_RESOURCE_DESC_st__res__linear {
        devPtr: memory,
        format: CUarray_format::CU_AD_FORMAT_FLOAT,
        numChannels: 1,
        sizeInBytes: 40,
    };
    let resource = description(
        CUresourcetype::CU_RESOURCE_TYPE_LINEAR,
        CUDA_RESOURCE_DESC_st__res { linear },
    );
    let handle = texture(&resource, &plain());
    let fetch = "tex.1d.v4.f32.s32 {r0,r1,r2,r3}, [h, {c0}];";
    let rows: Vec<Vec<u32>> = [0, 1, 9, 10, 1000, -1_i32, i32::MAX]
        .map(|i| vec![i.cast_unsigned()])
        .to_vec();
    let seen: Vec<f32> = run(&gpu, fetch, handle, &rows)
        .iter()
        .map(|r| f32::from_bits(r[0]))
        .collect();
    assert_eq!(seen, [0.0, 1.0, 9.0, 0.0, 0.0, 0.0, 0.0]);

    let pitch = CUDA_RESOURCE_DESC_st__res__pitch2D {
        devPtr: memory,
        format: CUarray_format::CU_AD_FORMAT_FLOAT,
        numChannels: 1,
        width: 6,
        height: 8,
        pitchInBytes: 32,
    };
    let resource = description(
        CUresourcetype::CU_RESOURCE_TYPE_PITCH2D,
        CUDA_RESOURCE_DESC_st__res { pitch2D: pitch },
    );
    let mut settings = plain();
    settings.filterMode = CUfilter_mode::CU_TR_FILTER_MODE_LINEAR;
    let handle = texture(&resource, &settings);
    let at = |x: f32, y: f32| vec![x.to_bits(), y.to_bits()];
    let rows = vec![at(0.5, 0.5), at(1.0, 1.0), at(5.9, 7.9), at(-3.0, 2.5)];
    let sample = "tex.2d.v4.f32.f32 {r0,r1,r2,r3}, [h, {c0,c1}];";
    let seen: Vec<f32> = run(&gpu, sample, handle, &rows)
        .iter()
        .map(|r| f32::from_bits(r[0]))
        .collect();
    assert_eq!(seen, [0.0, 4.5, 61.0, 16.0]);
}

#[test]
fn objects_and_their_arguments() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let texels = Texels {
        format: "f32",
        channels: 1,
        size: [8, 8, 0],
        flags: 0,
        mipmapped: false,
        words: floats(64),
    };
    let resource = texels.make();
    let mut object = 0;
    let mut create = |c: &mut Codes, code: u32, of: &CUDA_RESOURCE_DESC, how: &dyn Fn(&mut CUDA_TEXTURE_DESC)| {
        let mut settings = plain();
        how(&mut settings);
        is!(
            c,
            code,
            cuTexObjectCreate(&raw mut object, of, &raw const settings, ptr::null())
        );
        object
    };
    create(&mut c, 0, &resource, &|_| {});
    create(&mut c, 1, &resource, &|s| s.addressMode[1] = CUaddress_mode(7));
    create(&mut c, 1, &resource, &|s| s.filterMode = CUfilter_mode(3));
    create(&mut c, 1, &resource, &|s| s.mipmapFilterMode = CUfilter_mode(5));
    create(&mut c, 1, &resource, &|s| s.flags = CU_TRSF_SEAMLESS_CUBEMAP);
    create(&mut c, 1, &resource, &|s| s.flags = 0x80);
    create(&mut c, 0, &resource, &|s| s.flags = 0x2c);
    create(&mut c, 1, &resource, &|s| s.reserved[0] = 1);
    create(&mut c, 0, &resource, &|s| s.maxAnisotropy = 100_000);
    create(&mut c, 1, &of_array(ptr::null_mut()), &|_| {});
    let memory = gpu.alloc(4096);
    let linear = |address, format, channels, bytes| {
        let linear = CUDA_RESOURCE_DESC_st__res__linear {
            devPtr: address,
            format,
            numChannels: channels,
            sizeInBytes: bytes,
        };
        description(
            CUresourcetype::CU_RESOURCE_TYPE_LINEAR,
            CUDA_RESOURCE_DESC_st__res { linear },
        )
    };
    let float = CUarray_format::CU_AD_FORMAT_FLOAT;
    for (code, of) in [
        (0, linear(memory, float, 1, 40)),
        (0, linear(memory, float, 1, 42)),
        (0, linear(memory, float, 1, 0)),
        (1, linear(memory + 16, float, 1, 40)),
        (1, linear(memory + 256, float, 1, 40)),
        (1, linear(0, float, 1, 40)),
        (1, linear(memory, float, 3, 40)),
        (1, linear(memory, CUarray_format(0x99), 1, 40)),
        (1, linear(memory, float, 1, 1 << 40)),
    ] {
        create(&mut c, code, &of, &|_| {});
    }
    let pitch = |width, height, pitch| {
        let plane = CUDA_RESOURCE_DESC_st__res__pitch2D {
            devPtr: memory,
            format: float,
            numChannels: 1,
            width,
            height,
            pitchInBytes: pitch,
        };
        description(
            CUresourcetype::CU_RESOURCE_TYPE_PITCH2D,
            CUDA_RESOURCE_DESC_st__res { pitch2D: plane },
        )
    };
    for (code, of) in [
        (0, pitch(8, 8, 32)),
        (0, pitch(8, 8, 64)),
        (1, pitch(8, 8, 48)),
        (1, pitch(8, 8, 16)),
        (1, pitch(8, 70_000, 32)),
        (1, pitch(200_000, 8, 1 << 20)),
    ] {
        create(&mut c, code, &of, &|_| {});
    }
    let object = create(&mut c, 0, &resource, &|s| {
        s.filterMode = CUfilter_mode::CU_TR_FILTER_MODE_LINEAR;
        s.maxAnisotropy = 4;
    });
    let mut of = of_array(ptr::null_mut());
    is!(c, 0, cuTexObjectGetResourceDesc(&raw mut of, object));
    // SAFETY: the resource is an array, as requested above.
    let same = unsafe { of.res.array.hArray == resource.res.array.hArray };
    c.that(same && of.flags == 0, || {
        "the object has another array or flags".to_owned()
    });
    let mut read = plain();
    is!(c, 0, cuTexObjectGetTextureDesc(&raw mut read, object));
    c.that(read.filterMode.0 == 1 && read.maxAnisotropy == 4, || {
        format!("{read:?}, expected filter mode 1 and anisotropy 4")
    });
    is!(c, 1, cuTexObjectGetResourceDesc(&raw mut of, 0));
    is!(c, 1, cuTexObjectGetResourceDesc(ptr::null_mut(), object));
    for _ in 0..2 {
        is!(c, 0, cuTexObjectDestroy(object));
    }
    is!(c, 0, cuTexObjectDestroy(0));
    is!(c, 0, cuSurfObjectDestroy(0));
    let mut surface = 0;
    is!(c, 0, cuSurfObjectCreate(&raw mut surface, &raw const resource));
    is!(c, 0, cuSurfObjectGetResourceDesc(&raw mut of, surface));
    is!(c, 0, cuSurfObjectDestroy(surface));
    let of_nothing = of_array(ptr::null_mut());
    is!(c, 1, cuSurfObjectCreate(&raw mut surface, &raw const of_nothing));
    let of_memory = linear(memory, float, 1, 40);
    is!(c, 1, cuSurfObjectCreate(&raw mut surface, &raw const of_memory));
}

#[test]
fn linear_textures_have_a_maximum_width() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    for (format, channels, code, most) in [
        ("u8", 1, 0, 1 << 30),
        ("u8", 4, 0, 1 << 30),
        ("u16", 4, 0, 1 << 29),
        ("f32", 1, 0, 1 << 30),
        ("f32", 2, 0, 1 << 29),
        ("u32", 4, 0, 1 << 28),
        ("f32", 3, 1, 77),
        ("f32", 0, 1, 77),
    ] {
        let mut width = 77;
        is!(
            c,
            code,
            cuDeviceGetTexture1DLinearMaxWidth(&raw mut width, self::format(format).0, channels, 0)
        );
        c.that(width == most, || {
            format!("{format} x {channels}: {width}, expected {most}")
        });
    }
}

/// A module with references, and kernels that use them.
const REFERENCES: &str = "
.version 7.8
.target sm_75
.address_size 64
.global .texref tr;
.global .surfref sr;
.visible .entry t(.param .u64 po) {
    .reg .b64 o; .reg .b32 r<4>; .reg .f32 x;
    ld.param.u64 o, [po];
    mov.f32 x, 0f3FC00000;
    tex.1d.v4.u32.f32 {r0, r1, r2, r3}, [tr, {x}];
    st.global.v4.b32 [o], {r0, r1, r2, r3};
    ret;
}
.visible .entry u(.param .u64 po) {
    .reg .b64 o, h; .reg .b32 r<4>; .reg .f32 x;
    ld.param.u64 o, [po];
    mov.f32 x, 0f40200000;
    mov.u64 h, tr;
    tex.1d.v4.u32.f32 {r0, r1, r2, r3}, [h, {x}];
    st.global.v4.b32 [o], {r0, r1, r2, r3};
    ret;
}
.visible .entry s(.param .u64 po) {
    .reg .b64 o; .reg .b32 r<4>;
    ld.param.u64 o, [po];
    mov.u32 r1, 8;
    suld.b.1d.b32.clamp r0, [sr, {r1}];
    add.u32 r0, r0, 1;
    sust.b.1d.b32.clamp [sr, {r1}], r0;
    st.global.b32 [o], r0;
    ret;
}
";

#[test]
fn references_of_a_module() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let module = gpu.text(REFERENCES);
    let (mut texture, mut again, mut surface) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    is!(c, 0, cuModuleGetTexRef(&raw mut texture, module, c"tr".as_ptr()));
    is!(c, 0, cuModuleGetTexRef(&raw mut again, module, c"tr".as_ptr()));
    c.that(texture == again, || {
        "the second query returned another handle".to_owned()
    });
    is!(c, 500, cuModuleGetTexRef(&raw mut again, module, c"nope".as_ptr()));
    is!(c, 500, cuModuleGetTexRef(&raw mut again, module, c"sr".as_ptr()));
    is!(c, 500, cuModuleGetSurfRef(&raw mut surface, module, c"tr".as_ptr()));
    is!(c, 0, cuModuleGetSurfRef(&raw mut surface, module, c"sr".as_ptr()));
    is!(c, 1, cuModuleGetTexRef(ptr::null_mut(), module, c"tr".as_ptr()));
    let (mut address, mut bytes) = (0, 0);
    is!(
        c,
        1,
        cuModuleGetGlobal(&raw mut address, &raw mut bytes, module, c"tr".as_ptr())
    );
    let out = gpu.alloc(64);
    let launch = |gpu: &Gpu, name: &str| {
        let function = gpu.function(module, name);
        gpu.launch(function, [1, 1, 1], [1, 1, 1], 0, &mut arguments![out]);
        gpu.read::<u32>(out, 4)
    };
    // Nothing is bound yet.
    c.that(launch(&gpu, "t") == [0; 4], || {
        "samples of an unbound texture are not zeros".to_owned()
    });
    let mut texels = Texels {
        format: "f32",
        channels: 1,
        size: [4, 0, 0],
        flags: 0,
        mipmapped: false,
        words: floats(4),
    };
    // SAFETY: the resource is an array.
    let array = unsafe { texels.make().res.array.hArray };
    (texels.format, texels.flags) = ("u32", CUDA_ARRAY3D_SURFACE_LDST);
    // SAFETY: the resource is an array.
    let writable = unsafe { texels.make().res.array.hArray };
    is!(c, 0, cuTexRefSetArray(texture, array, CU_TRSA_OVERRIDE_FORMAT));
    c.that(launch(&gpu, "t") == [1f32.to_bits(), 0, 0, 0], || {
        "the sample is not from the bound array".to_owned()
    });
    c.that(launch(&gpu, "u")[0] == 2f32.to_bits(), || {
        "the sample through a reference in a register is not from the bound array".to_owned()
    });
    let mut bound = ptr::null_mut();
    is!(c, 0, cuTexRefGetArray(&raw mut bound, texture));
    c.that(bound == array, || "cuTexRefGetArray returned another array".to_owned());
    is!(c, 1, cuTexRefGetAddress(&raw mut address, texture));
    is!(c, 1, cuTexRefSetFlags(texture, 0x40));
    is!(c, 0, cuTexRefSetFlags(texture, CU_TRSF_NORMALIZED_COORDINATES));
    is!(
        c,
        1,
        cuTexRefSetAddressMode(texture, 3, CUaddress_mode::CU_TR_ADDRESS_MODE_WRAP)
    );
    // The normalized coordinate 1.5 is wrapped to 0.5, the start of texel 2 of 4.
    for dimension in 0..2 {
        is!(
            c,
            0,
            cuTexRefSetAddressMode(texture, dimension, CUaddress_mode::CU_TR_ADDRESS_MODE_WRAP)
        );
    }
    c.that(launch(&gpu, "t")[0] == 2f32.to_bits(), || {
        "the normalized coordinate was not wrapped to texel 2".to_owned()
    });
    is!(c, 1, cuTexRefSetFormat(texture, CUarray_format::CU_AD_FORMAT_FLOAT, 3));
    is!(c, 400, cuTexRefSetArray(ptr::null_mut(), array, 0));
    is!(c, 400, cuTexRefSetArray(texture, ptr::null_mut(), 0));
    // For memory, the offset is the distance from an aligned address.
    let memory = gpu.upload(&floats(64));
    let mut offset = 99;
    is!(c, 0, cuTexRefSetAddress(&raw mut offset, texture, memory + 4, 12));
    c.that(offset == 4, || format!("offset {offset}, expected 4"));
    is!(c, 1, cuTexRefSetAddress(ptr::null_mut(), texture, memory + 4, 12));
    is!(c, 0, cuTexRefGetAddress(&raw mut address, texture));
    c.that(address == memory, || {
        format!("the reference's address is {address:#x}, expected the aligned address {memory:#x}")
    });
    is!(c, 1, cuTexRefGetArray(&raw mut bound, texture));

    is!(c, 1, cuSurfRefSetArray(surface, array, 0));
    is!(c, 1, cuSurfRefSetArray(surface, writable, 1));
    is!(c, 0, cuSurfRefSetArray(surface, writable, 0));
    let expected = 2f32.to_bits() + 1;
    c.that(launch(&gpu, "s")[0] == expected, || {
        "the kernel did not change the bound surface".to_owned()
    });
    let mut back = [0u32; 4];
    is!(c, 0, cuMemcpyAtoH(back.as_mut_ptr().cast(), writable, 0, 16));
    c.that(back[2] == expected && back[1] == 1f32.to_bits(), || {
        format!("texels {back:x?}, expected {expected:x} in the third and an unchanged second")
    });

    let mut own = ptr::null_mut();
    is!(c, 0, cuTexRefCreate(&raw mut own));
    let (mut kind, mut channels) = (CUarray_format(0), 0);
    is!(c, 0, cuTexRefGetFormat(&raw mut kind, &raw mut channels, own));
    c.that(kind == CUarray_format::CU_AD_FORMAT_FLOAT && channels == 1, || {
        format!("{kind:?} x {channels}, expected one float")
    });
    is!(c, 0, cuTexRefDestroy(own));
}
