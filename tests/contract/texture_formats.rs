//! Tests of textures whose formats have a fixed number of channels: normalized integers, packed channels, and
//! compressed blocks. The hashes are of values that an H200 returned.

use std::ptr;

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::values::{Recorded, hash};
use crate::ok;
use crate::textures::run;

/// Creates an array, and copies `rows` rows of `bytes` bytes to it.
fn array(
    format: CUarray_format,
    channels: u32,
    size: [usize; 2],
    (bytes, rows): (usize, usize),
    data: &[u8],
) -> CUarray {
    let descriptor = CUDA_ARRAY3D_DESCRIPTOR {
        Width: size[0],
        Height: size[1],
        Depth: 0,
        Format: format,
        NumChannels: channels,
        Flags: 0,
    };
    let mut array = ptr::null_mut();
    ok!(cuArray3DCreate(&raw mut array, &raw const descriptor));
    assert!(bytes * rows <= data.len());
    ok!(cuMemcpy2D(&raw const *upload(array, bytes, rows, data)));
    array
}

/// Describes a copy of rows of bytes to an array.
fn upload(array: CUarray, bytes: usize, rows: usize, data: &[u8]) -> Box<CUDA_MEMCPY2D> {
    let copy = CUDA_MEMCPY2D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: data.as_ptr().cast(),
        srcPitch: bytes,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
        dstArray: array,
        WidthInBytes: bytes,
        Height: rows,
        ..Default::default()
    };
    Box::new(copy)
}

/// Creates a texture without filtering, with coordinates in texels; returns the code and the texture.
fn texture(array: CUarray, flags: u32) -> (CUresult, u64) {
    filtered(array, flags, 0, CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP)
}

/// Creates a texture with this filter and address mode, and a border color; returns the code and the texture.
fn filtered(array: CUarray, flags: u32, filter: u32, mode: CUaddress_mode) -> (CUresult, u64) {
    with_view(array, flags, filter, mode, ptr::null())
}

/// Creates a texture like [`filtered`], of a view unless it is null; returns the code and the texture.
fn with_view(
    array: CUarray,
    flags: u32,
    filter: u32,
    mode: CUaddress_mode,
    view: *const CUDA_RESOURCE_VIEW_DESC,
) -> (CUresult, u64) {
    let mut resource = CUDA_RESOURCE_DESC::default();
    resource.res.array.hArray = array;
    let settings = CUDA_TEXTURE_DESC {
        addressMode: [mode; 3],
        filterMode: CUfilter_mode(filter),
        borderColor: [0.3, -0.6, 0.8, 0.5],
        flags,
        ..Default::default()
    };
    let mut handle = 0;
    // SAFETY: the descriptions and the array are live.
    let code = unsafe { cuTexObjectCreate(&raw mut handle, &raw const resource, &raw const settings, view) };
    (code, handle)
}

/// Returns the first `count` texels, row by row, as the bits of floating-point numbers, and destroys the texture.
fn texels(gpu: &Gpu, texture: u64, width: usize, count: usize) -> Vec<[u32; 4]> {
    let center = |i: usize| (i as f32 + 0.5).to_bits();
    let rows: Vec<_> = (0..count).map(|i| vec![center(i % width), center(i / width)]).collect();
    let texels = run(gpu, "tex.2d.v4.f32.f32 {r0,r1,r2,r3}, [h, {c0,c1}];", texture, &rows);
    ok!(cuTexObjectDestroy(texture));
    texels
}

/// Returns a hash of the words of samples.
fn digest(samples: &[[u32; 4]]) -> u64 {
    hash(samples.iter().flatten().copied())
}

/// Returns the bytes of the image for a format. For BC6H and BC7, it has blocks of every mode.
fn image(format: CUarray_format) -> Vec<u8> {
    const MODES: [u8; 16] = [0, 1, 2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 3];
    let mut data: Vec<u8> = random(99 + u64::from(format.0), 256)
        .into_iter()
        .map(|word| word as u8)
        .collect();
    for (k, mode) in MODES.into_iter().enumerate() {
        let first = &mut data[16 * k];
        match format {
            CUarray_format::CU_AD_FORMAT_BC7_UNORM | CUarray_format::CU_AD_FORMAT_BC7_UNORM_SRGB => {
                *first = (u16::from(*first) << (k % 8 + 1)) as u8 | 1 << (k % 8);
            }
            CUarray_format::CU_AD_FORMAT_BC6H_UF16 | CUarray_format::CU_AD_FORMAT_BC6H_SF16 => {
                let kept = if mode < 2 { 3 } else { 31 };
                *first = *first & !kept | mode;
            }
            _ => {}
        }
    }
    data
}

#[test]
fn compressed_blocks() {
    let gpu = Gpu::new();
    for (format, channels, count, hash) in [
        (CUarray_format::CU_AD_FORMAT_BC1_UNORM, 4, 256, 0x276c_a8a7_8976_9263),
        (
            CUarray_format::CU_AD_FORMAT_BC1_UNORM_SRGB,
            4,
            16,
            0xbe6d_8b40_953d_0825,
        ),
        (CUarray_format::CU_AD_FORMAT_BC2_UNORM, 4, 256, 0x490d_568b_ff73_8a90),
        (
            CUarray_format::CU_AD_FORMAT_BC2_UNORM_SRGB,
            4,
            16,
            0x3922_ab21_1bb7_b902,
        ),
        (CUarray_format::CU_AD_FORMAT_BC3_UNORM, 4, 256, 0x0601_a709_65a3_665c),
        (
            CUarray_format::CU_AD_FORMAT_BC3_UNORM_SRGB,
            4,
            16,
            0x77f7_a2e3_9b92_bce7,
        ),
        (CUarray_format::CU_AD_FORMAT_BC4_UNORM, 1, 256, 0x4f39_486e_5695_2c5c),
        (CUarray_format::CU_AD_FORMAT_BC4_SNORM, 1, 256, 0xee37_947d_1b16_fa17),
        (CUarray_format::CU_AD_FORMAT_BC5_UNORM, 2, 256, 0xa08a_3f3a_7945_5dab),
        (CUarray_format::CU_AD_FORMAT_BC5_SNORM, 2, 256, 0xd1ff_81d2_3a4e_c823),
        (CUarray_format::CU_AD_FORMAT_BC6H_UF16, 3, 256, 0x762e_ec3c_3421_9325),
        (CUarray_format::CU_AD_FORMAT_BC6H_SF16, 3, 256, 0x2412_2bdb_c791_1325),
        (CUarray_format::CU_AD_FORMAT_BC7_UNORM, 4, 256, 0x6b31_c1d2_2ac3_3d0c),
        (
            CUarray_format::CU_AD_FORMAT_BC7_UNORM_SRGB,
            4,
            16,
            0x64d8_58e8_c2ef_0825,
        ),
    ] {
        let name = format.name().unwrap_or_default();
        let data = image(format);
        let short = name.contains("BC1") || name.contains("BC4");
        let bytes = if short { 32 } else { 64 };
        let array = array(format, channels, [16, 16], (bytes, 4), &data);
        let long = [0; 1024];
        // The 16 rows of texels are four rows of blocks, so a copy of 16 rows is refused.
        // SAFETY: the array and the bytes are live.
        let code = unsafe { cuMemcpy2D(&raw const *upload(array, bytes, 16, &long)) };
        assert_eq!(code, CUresult::CUDA_ERROR_INVALID_VALUE);
        let (plain, handle) = texture(array, 0);
        let handle = if name.contains("SRGB") {
            assert_eq!(plain, CUresult::CUDA_ERROR_INVALID_VALUE, "{name}");
            let (code, handle) = texture(array, CU_TRSF_SRGB);
            assert_eq!(code, CUresult::CUDA_SUCCESS, "{name}");
            handle
        } else {
            assert_eq!(plain, CUresult::CUDA_SUCCESS, "{name}");
            handle
        };
        let texels = texels(&gpu, handle, 16, count);
        assert_eq!(digest(&texels), hash, "{name}: {:x?}", &texels[..16]);
        let mut descriptor = CUDA_ARRAY3D_DESCRIPTOR::default();
        ok!(cuArray3DGetDescriptor(&raw mut descriptor, array));
        assert_eq!(
            (
                descriptor.Width,
                descriptor.Height,
                descriptor.Format,
                descriptor.NumChannels
            ),
            (16, 16, format, channels)
        );
        ok!(cuArrayDestroy(array));
    }
}

/// Returns the format of a view that reads an array of 32-bit integers as blocks of this format, and the number of
/// channels of that array.
fn view_of(format: CUarray_format) -> (CUresourceViewFormat, u32) {
    match format {
        CUarray_format::CU_AD_FORMAT_BC1_UNORM | CUarray_format::CU_AD_FORMAT_BC1_UNORM_SRGB => {
            (CUresourceViewFormat::CU_RES_VIEW_FORMAT_UNSIGNED_BC1, 2)
        }
        CUarray_format::CU_AD_FORMAT_BC2_UNORM => (CUresourceViewFormat::CU_RES_VIEW_FORMAT_UNSIGNED_BC2, 4),
        CUarray_format::CU_AD_FORMAT_BC3_UNORM => (CUresourceViewFormat::CU_RES_VIEW_FORMAT_UNSIGNED_BC3, 4),
        CUarray_format::CU_AD_FORMAT_BC4_UNORM => (CUresourceViewFormat::CU_RES_VIEW_FORMAT_UNSIGNED_BC4, 2),
        CUarray_format::CU_AD_FORMAT_BC4_SNORM => (CUresourceViewFormat::CU_RES_VIEW_FORMAT_SIGNED_BC4, 2),
        CUarray_format::CU_AD_FORMAT_BC5_UNORM => (CUresourceViewFormat::CU_RES_VIEW_FORMAT_UNSIGNED_BC5, 4),
        CUarray_format::CU_AD_FORMAT_BC5_SNORM => (CUresourceViewFormat::CU_RES_VIEW_FORMAT_SIGNED_BC5, 4),
        CUarray_format::CU_AD_FORMAT_BC6H_UF16 => (CUresourceViewFormat::CU_RES_VIEW_FORMAT_UNSIGNED_BC6H, 4),
        CUarray_format::CU_AD_FORMAT_BC6H_SF16 => (CUresourceViewFormat::CU_RES_VIEW_FORMAT_SIGNED_BC6H, 4),
        _ => (CUresourceViewFormat::CU_RES_VIEW_FORMAT_UNSIGNED_BC7, 4),
    }
}

#[test]
fn arrays_of_integers_are_viewed_as_compressed_blocks() {
    let gpu = Gpu::new();
    let integers = CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32;
    let clamp = CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP;
    for (format, channels, flags) in [
        (CUarray_format::CU_AD_FORMAT_BC1_UNORM, 4, 0),
        (CUarray_format::CU_AD_FORMAT_BC1_UNORM_SRGB, 4, CU_TRSF_SRGB),
        (CUarray_format::CU_AD_FORMAT_BC2_UNORM, 4, 0),
        (CUarray_format::CU_AD_FORMAT_BC3_UNORM, 4, 0),
        (CUarray_format::CU_AD_FORMAT_BC4_UNORM, 1, 0),
        (CUarray_format::CU_AD_FORMAT_BC4_SNORM, 1, 0),
        (CUarray_format::CU_AD_FORMAT_BC5_UNORM, 2, 0),
        (CUarray_format::CU_AD_FORMAT_BC5_SNORM, 2, 0),
        (CUarray_format::CU_AD_FORMAT_BC6H_UF16, 3, 0),
        (CUarray_format::CU_AD_FORMAT_BC6H_SF16, 3, 0),
        (CUarray_format::CU_AD_FORMAT_BC7_UNORM, 4, 0),
    ] {
        let name = format.name().unwrap_or_default();
        let data = image(format);
        let (view, elements) = view_of(format);
        let row = 16 * elements as usize;
        let blocks = array(format, channels, [16, 16], (row, 4), &data);
        let words = array(integers, elements, [4, 4], (row, 4), &data);
        let mut view_desc = CUDA_RESOURCE_VIEW_DESC {
            format: view,
            ..Default::default()
        };
        // The size of the view is in texels.
        for (size, code) in [(4, 1), (0, 1), (16, 0)] {
            (view_desc.width, view_desc.height) = (size, size);
            let (made, handle) = with_view(words, flags, 0, clamp, &raw const view_desc);
            assert_eq!(made, CUresult(code), "{name} of {size} x {size}");
            if code == 0 {
                let seen = texels(&gpu, handle, 16, 256);
                let (plain, handle) = texture(blocks, flags);
                assert_eq!(plain, CUresult::CUDA_SUCCESS, "{name}");
                // A view and an array may differ in the channels that the format lacks.
                for (seen, plain) in seen.iter().zip(texels(&gpu, handle, 16, 256)) {
                    let channels = channels as usize;
                    assert_eq!(seen[..channels], plain[..channels], "{name}");
                }
            }
        }
        ok!(cuArrayDestroy(blocks));
        ok!(cuArrayDestroy(words));
    }
}

#[test]
fn compressed_arrays_have_two_dimensions_and_are_no_surfaces() {
    let _gpu = Gpu::new();
    let create = |width, height, flags| {
        let descriptor = CUDA_ARRAY3D_DESCRIPTOR {
            Width: width,
            Height: height,
            Depth: 0,
            Format: CUarray_format::CU_AD_FORMAT_BC3_UNORM,
            NumChannels: 4,
            Flags: flags,
        };
        let mut array = ptr::null_mut();
        // SAFETY: both arguments are live.
        unsafe { cuArray3DCreate(&raw mut array, &raw const descriptor) }
    };
    // Sizes need not be multiples of 4.
    assert_eq!(create(10, 6, 0), CUresult::CUDA_SUCCESS);
    assert_eq!(create(16, 0, 0), CUresult::CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        create(16, 16, CUDA_ARRAY3D_SURFACE_LDST),
        CUresult::CUDA_ERROR_NOT_SUPPORTED
    );
}

#[test]
fn normalized_integers() {
    let gpu = Gpu::new();
    for number in CUarray_format::CU_AD_FORMAT_UNORM_INT8X1.0..=CUarray_format::CU_AD_FORMAT_SNORM_INT16X4.0 {
        let format = CUarray_format(number);
        let kind = number - CUarray_format::CU_AD_FORMAT_UNORM_INT8X1.0;
        let channels = 1usize << (kind % 3);
        let (signed, wide) = (kind >= 6, kind / 3 % 2 == 1);
        let values: Vec<u16> = (0..32u16).map(|i| i.wrapping_mul(0x1357) ^ (i << 12)).collect();
        let data: Vec<u8> = if wide {
            values.iter().flat_map(|value| value.to_le_bytes()).collect()
        } else {
            values.iter().map(|value| (value >> 4) as u8).collect()
        };
        let bytes = 8 * channels * if wide { 2 } else { 1 };
        let array = array(format, channels as u32, [8, 1], (bytes, 1), &data);
        let number = |i: usize| {
            let (value, largest) = match (signed, wide) {
                (false, false) => (f64::from(data[i]), 255.0),
                (false, true) => (f64::from(values[i]), 65535.0),
                (true, false) => (f64::from(data[i] as i8), 127.0),
                (true, true) => (f64::from(values[i] as i16), 32767.0),
            };
            ((value / largest).max(-1.0) as f32).to_bits()
        };
        let component = |x: usize, c: usize| if c < channels { number(x * channels + c) } else { 0 };
        let want: Vec<[u32; 4]> = (0..8).map(|x| std::array::from_fn(|c| component(x, c))).collect();
        // These formats are always read as floating-point numbers.
        for flags in [0, CU_TRSF_READ_AS_INTEGER] {
            let (code, handle) = texture(array, flags);
            assert_eq!(code, CUresult::CUDA_SUCCESS);
            assert_eq!(texels(&gpu, handle, 8, 8), want, "{format:?}, flags {flags}");
        }
        ok!(cuArrayDestroy(array));
    }
}

#[test]
fn packed_channels() {
    let gpu = Gpu::new();
    let words: Vec<u32> = (0..16u32).map(|i| 0x0123_4567 * (i * 3 + 1)).collect();
    let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let format = CUarray_format::CU_AD_FORMAT_UNORM_INT_101010_2;
    let array = array(format, 4, [16, 1], (64, 1), &data);
    let (code, handle) = texture(array, 0);
    assert_eq!(code, CUresult::CUDA_SUCCESS);
    let part = |word: u32, shift, most: u32| ((f64::from(word >> shift & most) / f64::from(most)) as f32).to_bits();
    let want: Vec<[u32; 4]> = words
        .iter()
        .map(|word| {
            [
                part(*word, 0, 1023),
                part(*word, 10, 1023),
                part(*word, 20, 1023),
                part(*word, 30, 3),
            ]
        })
        .collect();
    assert_eq!(texels(&gpu, handle, 16, 16), want);
    ok!(cuArrayDestroy(array));
}

/// Returns the pseudo-random numbers with which the samples were recorded.
fn random(seed: u64, count: usize) -> Vec<u32> {
    let mut numbers = Recorded(seed);
    (0..count).map(|_| numbers.next()).collect()
}

#[test]
fn filters_and_borders() {
    let gpu = Gpu::new();
    let mut wrong = Vec::new();
    for (format, filter, mode, flags, count, hash) in recorded() {
        let name = format.name().unwrap_or_default();
        let is_block = name.contains("BC");
        let channels = match name {
            _ if name.contains("BC4") || name.ends_with("X1") => 1,
            _ if name.contains("BC5") || name.ends_with("X2") => 2,
            _ if name.contains("BC6H") => 3,
            _ => 4,
        };
        let texel = match name {
            _ if name.contains("BC1") || name.contains("BC4") => 8,
            _ if is_block => 16,
            _ if name.contains("INT16") => 2 * channels,
            _ if name.contains("INT8") => channels,
            _ => 4,
        };
        let seed = u64::from(format.0) + if is_block { 7 } else { 0 };
        let data: Vec<u8> = random(seed, 1024).into_iter().map(|word| word as u8).collect();
        let (size, rows) = if is_block {
            ([8, 8], (2 * texel as usize, 2))
        } else {
            ([8, 4], (8 * texel as usize, 4))
        };
        let array = array(format, channels, size, rows, &data);
        let (code, handle) = filtered(array, flags, filter, CUaddress_mode(mode));
        assert_eq!(code, CUresult::CUDA_SUCCESS, "{name}");
        let at = |(word, size): (&u32, usize)| ((word % (256 * (size as u32 + 2))) as f32 / 256.0 - 1.0).to_bits();
        let points: Vec<Vec<u32>> = random(5, 2 * count)
            .chunks(2)
            .map(|pair| pair.iter().zip(size).map(at).collect())
            .collect();
        let samples = run(&gpu, "tex.2d.v4.f32.f32 {r0,r1,r2,r3}, [h, {c0,c1}];", handle, &points);
        if digest(&samples) != hash {
            wrong.push(format!(
                "{name} filter {filter} mode {mode} flags {flags}: {:x?}",
                &samples[..3]
            ));
        }
        ok!(cuTexObjectDestroy(handle));
        ok!(cuArrayDestroy(array));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The format, filter mode, address mode, flags, number of samples, and hash of the samples.
type RecordedSamples = (CUarray_format, u32, u32, u32, usize, u64);

/// Returns the recorded cases, with hashes of the samples that an H200 returned.
#[rustfmt::skip] // a table
fn recorded() -> Vec<RecordedSamples> {
    vec![
        (CUarray_format::CU_AD_FORMAT_UNORM_INT_101010_2, 1, 1, 0, 40, 0x333b_09ce_4abf_76a2),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT_101010_2, 1, 3, 0, 40, 0xeec9_1bac_4a4f_81bd),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT_101010_2, 0, 1, 0, 40, 0x7287_f720_12d8_7f58),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT_101010_2, 0, 3, 0, 40, 0x3e56_e607_68f1_0ad2),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT_101010_2, 1, 1, 16, 40, 0x333b_09ce_4abf_76a2),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT8X1, 1, 1, 0, 40, 0x5a09_dacc_feca_f2b8),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT8X1, 1, 3, 0, 40, 0x985e_8f4e_4d34_733d),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT8X1, 0, 1, 0, 40, 0x0347_5b0c_aa13_c4bf),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT8X1, 0, 3, 0, 40, 0x56e6_63e0_f324_525d),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT8X2, 1, 1, 0, 40, 0xb320_eb9c_e3e8_a855),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT8X2, 1, 3, 0, 40, 0x59dc_1f57_23e4_8dd1),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT8X2, 0, 1, 0, 40, 0x81f0_300a_c81c_936e),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT8X2, 0, 3, 0, 40, 0x256e_aa22_7d16_dbec),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT8X4, 1, 1, 0, 40, 0xa252_bdd6_4168_d91e),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT8X4, 1, 3, 0, 40, 0x5be2_bb90_7534_3f65),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT8X4, 0, 1, 0, 40, 0xf695_c782_5c99_df0a),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT8X4, 0, 3, 0, 40, 0xe137_c8b2_b206_ec79),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT16X1, 1, 1, 0, 40, 0x84f5_3f2b_d9f1_2bcc),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT16X1, 1, 3, 0, 40, 0x7eca_02ee_6f37_3299),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT16X1, 0, 1, 0, 40, 0x4007_7185_65f4_368d),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT16X1, 0, 3, 0, 40, 0x0d84_fb88_cb1e_c9f5),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT16X1, 1, 1, 16, 40, 0x84f5_3f2b_d9f1_2bcc),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT16X2, 1, 1, 0, 40, 0x2498_d553_c2f7_3b5d),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT16X2, 1, 3, 0, 40, 0x434a_f41c_77d9_67a4),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT16X2, 0, 1, 0, 40, 0x9265_ebe2_fe74_6c68),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT16X2, 0, 3, 0, 40, 0x46ca_3108_6999_3d27),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT16X2, 1, 1, 16, 40, 0x2498_d553_c2f7_3b5d),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT16X4, 1, 1, 0, 40, 0x1571_c6b2_b935_c944),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT16X4, 1, 3, 0, 40, 0x6647_9bef_22ed_dc0b),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT16X4, 0, 1, 0, 40, 0x23d2_04fb_1d6d_9ed9),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT16X4, 0, 3, 0, 40, 0x53d7_6b0b_4a4f_5c21),
        (CUarray_format::CU_AD_FORMAT_UNORM_INT16X4, 1, 1, 16, 40, 0x1571_c6b2_b935_c944),
        (CUarray_format::CU_AD_FORMAT_SNORM_INT8X1, 0, 1, 0, 40, 0x4cbf_cb3c_7c80_1656),
        (CUarray_format::CU_AD_FORMAT_SNORM_INT8X1, 0, 3, 0, 40, 0xd20e_82fc_8085_ea34),
        (CUarray_format::CU_AD_FORMAT_SNORM_INT8X2, 0, 1, 0, 40, 0xb3a1_643d_e457_b5b3),
        (CUarray_format::CU_AD_FORMAT_SNORM_INT8X2, 0, 3, 0, 40, 0x4d9a_b41a_d191_0cc9),
        (CUarray_format::CU_AD_FORMAT_SNORM_INT8X4, 0, 1, 0, 40, 0x0aa5_b0e6_1594_d1e4),
        (CUarray_format::CU_AD_FORMAT_SNORM_INT8X4, 0, 3, 0, 40, 0x0f3a_fdfd_c0bf_e2c6),
        (CUarray_format::CU_AD_FORMAT_SNORM_INT16X1, 1, 1, 0, 40, 0x1cb1_8c7a_1456_8dde),
        (CUarray_format::CU_AD_FORMAT_SNORM_INT16X1, 1, 3, 0, 40, 0xd9a0_888c_a609_966d),
        (CUarray_format::CU_AD_FORMAT_SNORM_INT16X1, 0, 1, 0, 40, 0xb8ff_42a0_1166_61c5),
        (CUarray_format::CU_AD_FORMAT_SNORM_INT16X1, 0, 3, 0, 40, 0x6535_2216_ce25_1821),
        (CUarray_format::CU_AD_FORMAT_SNORM_INT16X1, 1, 1, 16, 40, 0x1cb1_8c7a_1456_8dde),
        (CUarray_format::CU_AD_FORMAT_SNORM_INT16X2, 1, 1, 0, 40, 0xb5d3_fa9b_dacf_0307),
        (CUarray_format::CU_AD_FORMAT_SNORM_INT16X2, 1, 3, 0, 40, 0xf4cd_88a0_ffb5_3bc2),
        (CUarray_format::CU_AD_FORMAT_SNORM_INT16X2, 0, 1, 0, 40, 0x172e_cf5c_1de3_b409),
        (CUarray_format::CU_AD_FORMAT_SNORM_INT16X2, 0, 3, 0, 40, 0x72ff_00a4_8e6d_4f54),
        (CUarray_format::CU_AD_FORMAT_SNORM_INT16X2, 1, 1, 16, 40, 0xb5d3_fa9b_dacf_0307),
        (CUarray_format::CU_AD_FORMAT_SNORM_INT16X4, 1, 1, 0, 40, 0x160c_964a_c7a7_000d),
        (CUarray_format::CU_AD_FORMAT_SNORM_INT16X4, 1, 3, 0, 40, 0x8d9b_4f88_3824_9a9b),
        (CUarray_format::CU_AD_FORMAT_SNORM_INT16X4, 0, 1, 0, 40, 0x4d78_6680_48ed_f2eb),
        (CUarray_format::CU_AD_FORMAT_SNORM_INT16X4, 0, 3, 0, 40, 0x29a8_2c2c_ed52_cb35),
        (CUarray_format::CU_AD_FORMAT_SNORM_INT16X4, 1, 1, 16, 40, 0x160c_964a_c7a7_000d),
        (CUarray_format::CU_AD_FORMAT_BC1_UNORM, 1, 1, 0, 40, 0x35fc_d3aa_0e90_fee8),
        (CUarray_format::CU_AD_FORMAT_BC1_UNORM, 1, 3, 0, 40, 0xcf17_689b_919b_3d60),
        (CUarray_format::CU_AD_FORMAT_BC1_UNORM, 0, 3, 0, 20, 0x6d7e_8a5e_d282_4bcd),
        (CUarray_format::CU_AD_FORMAT_BC2_UNORM, 1, 1, 0, 40, 0x53d3_90f3_0bfe_ea4f),
        (CUarray_format::CU_AD_FORMAT_BC2_UNORM, 1, 3, 0, 40, 0x5827_fe4e_5005_c9e6),
        (CUarray_format::CU_AD_FORMAT_BC2_UNORM, 0, 3, 0, 20, 0x3be0_af87_c728_ea98),
        (CUarray_format::CU_AD_FORMAT_BC3_UNORM, 0, 3, 0, 20, 0x86b3_740c_a28b_4a8b),
        (CUarray_format::CU_AD_FORMAT_BC4_UNORM, 1, 1, 0, 40, 0x98d2_9abe_4694_0623),
        (CUarray_format::CU_AD_FORMAT_BC4_UNORM, 1, 3, 0, 40, 0xacb0_91a7_aa24_185e),
        (CUarray_format::CU_AD_FORMAT_BC4_UNORM, 0, 3, 0, 20, 0x5d1b_ce6f_80b3_ead2),
        (CUarray_format::CU_AD_FORMAT_BC4_SNORM, 1, 1, 0, 40, 0xe676_1cdd_7f33_5ab1),
        (CUarray_format::CU_AD_FORMAT_BC4_SNORM, 1, 3, 0, 40, 0x5b34_9a14_a419_1984),
        (CUarray_format::CU_AD_FORMAT_BC4_SNORM, 0, 3, 0, 20, 0x9ec4_9e1e_16f8_8442),
        (CUarray_format::CU_AD_FORMAT_BC5_UNORM, 1, 1, 0, 40, 0x5b28_c090_6a95_907b),
        (CUarray_format::CU_AD_FORMAT_BC5_UNORM, 1, 3, 0, 40, 0x0406_81ea_8eb1_8bd7),
        (CUarray_format::CU_AD_FORMAT_BC5_UNORM, 0, 3, 0, 20, 0xf9e3_bfd5_7e62_8679),
        (CUarray_format::CU_AD_FORMAT_BC5_SNORM, 1, 1, 0, 40, 0x3a88_2179_050f_3771),
        (CUarray_format::CU_AD_FORMAT_BC5_SNORM, 1, 3, 0, 40, 0xbe1c_2797_8c72_16d2),
        (CUarray_format::CU_AD_FORMAT_BC5_SNORM, 0, 3, 0, 20, 0xd60b_3daa_29a5_94dd),
        (CUarray_format::CU_AD_FORMAT_BC6H_UF16, 1, 1, 0, 40, 0x7619_c419_6709_1fa5),
        (CUarray_format::CU_AD_FORMAT_BC6H_UF16, 1, 3, 0, 40, 0x7af2_76e1_7700_1fa5),
        (CUarray_format::CU_AD_FORMAT_BC6H_UF16, 0, 3, 0, 20, 0x1916_7b6d_c968_2965),
        (CUarray_format::CU_AD_FORMAT_BC6H_SF16, 1, 1, 0, 40, 0x33fa_7297_3050_5fa5),
        (CUarray_format::CU_AD_FORMAT_BC6H_SF16, 1, 3, 0, 40, 0xa098_f148_5235_1fa5),
        (CUarray_format::CU_AD_FORMAT_BC6H_SF16, 0, 3, 0, 20, 0xefd0_9583_e874_a965),
        (CUarray_format::CU_AD_FORMAT_BC7_UNORM, 1, 1, 0, 40, 0x5a33_699a_1d74_79e0),
        (CUarray_format::CU_AD_FORMAT_BC7_UNORM, 1, 3, 0, 40, 0x5dd1_8c8d_4243_2f6b),
        (CUarray_format::CU_AD_FORMAT_BC7_UNORM, 0, 3, 0, 20, 0x806d_5975_88e1_686d),
    ]
}
