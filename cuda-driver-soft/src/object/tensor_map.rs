//! Tensor maps: the checks that the CUDA manual requires. The engine defines the encoding.

use cuda_driver_sys::{CUdevice_attribute as Attribute, CUtensorMapDataType as DataType, CUtensorMapInterleave};

use crate::object::context;
use crate::state::error::{Error, Result};
use engine::tensor_map::{BYTES, Mode, TensorMap, element_bytes};

const U4: u8 = DataType::CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B.0 as u8;
const U4_SPACED: u8 = DataType::CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B.0 as u8;
const U6_SPACED: u8 = DataType::CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B.0 as u8;
const INTERLEAVE_32B: u8 = CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_32B.0 as u8;
/// Number of bits of a device address.
const ADDRESS_BITS: u32 = 57;

/// Returns `CUDA_ERROR_INVALID_VALUE` and logs the problem if a condition of the manual does not hold.
fn require(holds: bool, problem: &str) -> Result<()> {
    if holds {
        return Ok(());
    }
    host::log!("tensor map: {problem}");
    Err(Error::CUDA_ERROR_INVALID_VALUE)
}

/// Returns the required alignment of addresses and strides in bytes.
fn alignment(map: &TensorMap) -> u64 {
    let wide = map.interleave == INTERLEAVE_32B || matches!(map.data_type, U4_SPACED | U6_SPACED);
    if wide { 32 } else { 16 }
}

/// Returns the size of `elements` elements in a row of shared memory, in bytes.
fn row_bytes(data_type: u8, elements: u64) -> u64 {
    match (element_bytes(data_type), data_type) {
        (Some(bytes), _) => bytes * elements,
        (None, U4) => elements / 2,
        // 16 elements take 16 bytes including padding.
        (None, _) => elements,
    }
}

/// Encodes a map after checking it. Returns `CUDA_ERROR_NOT_SUPPORTED` below compute capability 9.0, and
/// `CUDA_ERROR_INVALID_VALUE` if the map violates a condition of the manual.
pub(crate) fn encode(map: &TensorMap) -> Result<[u8; BYTES]> {
    let device = context::current()?.device;
    if device.profile.sm < 90 {
        host::log!("tensor maps need compute capability 9.0 or higher");
        return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
    }
    let packed = element_bytes(map.data_type).is_none();
    // Newer architectures have additional types and swizzles.
    let newest = if device.limit(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 10 {
        (U6_SPACED, 6)
    } else {
        (12, 3)
    };
    require(
        map.data_type <= newest.0,
        "the element type is unknown or not supported by this device",
    )?;
    require(
        map.swizzle <= newest.1,
        "the swizzle mode is unknown or not supported by this device",
    )?;
    require(
        !matches!(map.mode, Mode::Im2colWide | Mode::Im2colWide128) || device.profile.sm >= 100,
        "im2col-wide mode needs compute capability 10.0 or higher",
    )?;
    require(map.interleave <= 2, "unknown interleave mode")?;
    require(map.l2_promotion <= 3, "unknown L2 promotion")?;
    require(map.fill <= 1, "unknown out-of-bounds fill")?;
    require(
        map.fill == 0 || matches!(map.data_type, 6..=12),
        "only floating-point types can be filled with NaN",
    )?;
    let least = if map.interleave != 0 || map.mode != Mode::Tiled {
        3
    } else {
        1
    };
    require(
        (least..=5).contains(&map.rank),
        "the rank must be 1 to 5, or 3 to 5 with interleaving or im2col",
    )?;
    check_address(map, map.address)?;
    let rank = usize::from(map.rank);
    for (i, &dim) in map.dims[..rank].iter().enumerate() {
        require((1..=1 << 32).contains(&dim), "a dimension is not in 1..=2^32")?;
        let unit = match map.data_type {
            U4 => 2,
            U4_SPACED | U6_SPACED => 128,
            _ => 1,
        };
        require(
            i > 0 || dim.is_multiple_of(unit),
            "dimension 0 of a packed type is not a multiple of 2 (16U4_ALIGN8B) or 128 (the other packed types)",
        )?;
    }
    for &stride in &map.strides[..rank - 1] {
        require(
            stride < 1 << 40 && stride.is_multiple_of(alignment(map)),
            "a stride is not below 2^40, or not a multiple of 16 bytes (32 bytes for 32-byte interleaving and the \
             packed types with ALIGN16B)",
        )?;
    }
    // Driver 580 also checks the element stride of dimension 0, which is used only with interleaving.
    for stride in &map.element_strides[..rank] {
        require((1..=8).contains(stride), "an element stride is not in 1..=8")?;
    }
    let inner = if map.mode == Mode::Tiled {
        for &elements in &map.boxes[..rank] {
            require(
                (1..=256).contains(&elements),
                "a dimension of the box is not in 1..=256",
            )?;
        }
        // Element strides above 1 skip elements.
        let steps = map.element_strides[1..rank].iter();
        let rows = map.boxes[1..rank].iter().zip(steps);
        let rows: u64 = rows.map(|(n, step)| u64::from(*n).div_ceil((*step).into())).product();
        let bytes = rows * row_bytes(map.data_type, map.boxes[0].into());
        require(
            bytes <= u64::from(device.limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)),
            "the box exceeds the shared memory of a multiprocessor",
        )?;
        map.boxes[0]
    } else {
        check_pixels(map)?;
        map.channels
    };
    let spaced = matches!(map.data_type, U4_SPACED | U6_SPACED);
    require(
        !spaced || inner == 128,
        "the box of this packed type must be 128 elements wide",
    )?;
    require(
        !packed || map.interleave == 0 || map.data_type != U6_SPACED,
        "this packed type cannot be interleaved",
    )?;
    let bytes = row_bytes(map.data_type, inner.into());
    require(
        bytes.is_multiple_of(16),
        "a row of the box is not a multiple of 16 bytes",
    )?;
    if map.interleave == 0 {
        let span = match map.swizzle {
            0 => u64::MAX,
            1 => 32,
            2 => 64,
            _ => 128,
        };
        require(bytes <= span, "a row of the box is wider than the span of the swizzle")?;
    }
    Ok(map.encode())
}

fn check_address(map: &TensorMap, address: u64) -> Result<()> {
    require(
        address.is_multiple_of(alignment(map)) && address >> ADDRESS_BITS == 0,
        "the address is not below 2^57, or not a multiple of 16 bytes (32 bytes for 32-byte interleaving and the \
         packed types with ALIGN16B)",
    )
}

/// Checks the channels, the pixels and the pixel box of an im2col map.
fn check_pixels(map: &TensorMap) -> Result<()> {
    require(
        (1..=256).contains(&map.channels),
        "the number of channels per pixel is not in 1..=256",
    )?;
    require(
        (1..=1024).contains(&map.pixels),
        "the number of pixels per column is not in 1..=1024",
    )?;
    let (corners, range) = match (map.mode, map.rank) {
        (Mode::Im2col, 4) => (2, -128..=127),
        (Mode::Im2col, 5) => (3, -16..=15),
        _ => (1, i16::MIN..=i16::MAX),
    };
    let all = map.lower[..corners].iter().chain(&map.upper[..corners]);
    let mut all = all.copied();
    require(
        all.all(|corner| range.contains(&corner)),
        "a corner of the pixel box is out of range",
    )?;
    // The box extends from the lower corner to the tensor's extent plus the upper corner.
    let empty =
        (0..corners).any(|i| i128::from(map.dims[1 + i]) + i128::from(map.upper[i]) - i128::from(map.lower[i]) <= 0);
    require(!empty, "the pixel box is empty")
}

/// `cuTensorMapReplaceAddress`
pub(crate) fn replace_address(bytes: &[u8; BYTES], address: u64) -> Result<[u8; BYTES]> {
    context::current()?;
    let map = TensorMap::decode(bytes);
    let map = map.ok_or_else(|| {
        host::log!("these bytes are not an encoded tensor map");
        Error::CUDA_ERROR_INVALID_VALUE
    })?;
    check_address(&map, address)?;
    Ok(TensorMap { address, ..map }.encode())
}
