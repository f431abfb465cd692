//! Tensor maps: the checks of the manual. The engine knows what the bytes mean.

use cuda_driver_sys::{
    CUdevice_attribute as Attribute, CUtensorMapDataType as DataType, CUtensorMapInterleave,
};

use crate::object::context;
use crate::state::error::{Error, Result};
use engine::tensor_map::{BYTES, Mode, TensorMap, element_bytes};

const U4: u8 = DataType::CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B.0 as u8;
const U4_SPACED: u8 = DataType::CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B.0 as u8;
const U6_SPACED: u8 = DataType::CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B.0 as u8;
const INTERLEAVE_32B: u8 = CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_32B.0 as u8;
/// Addresses of devices have fewer bits than this.
const ADDRESS_BITS: u32 = 57;

/// A condition of the manual's; what is wrong goes to the log.
fn require(holds: bool, what: &str) -> Result<()> {
    if holds {
        return Ok(());
    }
    host::log!("tensor map: {what}");
    Err(Error::CUDA_ERROR_INVALID_VALUE)
}

/// The alignment in bytes of addresses and strides.
fn alignment(map: &TensorMap) -> u64 {
    let wide = map.interleave == INTERLEAVE_32B || matches!(map.data_type, U4_SPACED | U6_SPACED);
    if wide { 32 } else { 16 }
}

/// Bytes that `elements` elements take in a row of shared memory.
fn row_bytes(data_type: u8, elements: u64) -> u64 {
    match (element_bytes(data_type), data_type) {
        (Some(bytes), _) => bytes * elements,
        (None, U4) => elements / 2,
        // Each 16 elements have 16 bytes, gap included.
        (None, _) => elements,
    }
}

/// Encodes a map that all conditions hold for.
pub(crate) fn encode(map: &TensorMap) -> Result<[u8; BYTES]> {
    let device = context::current()?.device;
    if device.profile.sm < 90 {
        host::log!("tensor maps need compute capability 9.0");
        return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
    }
    let packed = element_bytes(map.data_type).is_none();
    // Newer architectures have types and swizzles of their own.
    let newest = if device.limit(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 10 {
        (U6_SPACED, 6)
    } else {
        (12, 3)
    };
    require(map.data_type <= newest.0, "no element type of this device")?;
    require(map.swizzle <= newest.1, "no swizzle of this device")?;
    require(
        !matches!(map.mode, Mode::Im2colWide | Mode::Im2colWide128) || device.profile.sm >= 100,
        "columns along the width need compute capability 10.0",
    )?;
    require(map.interleave <= 2, "no interleave")?;
    require(map.l2_promotion <= 3, "no L2 promotion")?;
    require(map.fill <= 1, "no fill")?;
    require(
        map.fill == 0 || matches!(map.data_type, 6..=12),
        "only floating-point types are filled with NaN",
    )?;
    let least = if map.interleave != 0 || map.mode != Mode::Tiled {
        3
    } else {
        1
    };
    require(
        (least..=5).contains(&map.rank),
        "this many dimensions there are not",
    )?;
    check_address(map, map.address)?;
    let rank = usize::from(map.rank);
    for (i, &dim) in map.dims[..rank].iter().enumerate() {
        require(
            (1..=1 << 32).contains(&dim),
            "a dimension is 0 or above 2^32",
        )?;
        let unit = match map.data_type {
            U4 => 2,
            U4_SPACED | U6_SPACED => 128,
            _ => 1,
        };
        require(
            i > 0 || dim.is_multiple_of(unit),
            "dimension 0 of a packed type ends inside a unit",
        )?;
    }
    for &stride in &map.strides[..rank - 1] {
        require(
            stride < 1 << 40 && stride.is_multiple_of(alignment(map)),
            "a stride is not aligned, or 2^40 or more",
        )?;
    }
    // As recorded: that of dimension 0, too, which nothing looks at unless elements are interleaved.
    for stride in &map.element_strides[..rank] {
        require(
            (1..=8).contains(stride),
            "an element stride is 0 or above 8",
        )?;
    }
    let inner = if map.mode == Mode::Tiled {
        for &elements in &map.boxes[..rank] {
            require(
                (1..=256).contains(&elements),
                "a dimension of the box is 0 or above 256",
            )?;
        }
        // Steps over elements leave elements out.
        let steps = map.element_strides[1..rank].iter();
        let rows = map.boxes[1..rank].iter().zip(steps);
        let rows: u64 = rows
            .map(|(n, step)| u64::from(*n).div_ceil((*step).into()))
            .product();
        let bytes = rows * row_bytes(map.data_type, map.boxes[0].into());
        require(
            bytes
                <= u64::from(
                    device
                        .limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
                ),
            "the box does not fit into shared memory",
        )?;
        map.boxes[0]
    } else {
        check_pixels(map)?;
        map.channels
    };
    let spaced = matches!(map.data_type, U4_SPACED | U6_SPACED);
    require(
        !spaced || inner == 128,
        "a box of a packed type is 128 elements wide",
    )?;
    require(
        !packed || map.interleave == 0 || map.data_type != U6_SPACED,
        "a packed type that cannot be interleaved",
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
        require(bytes <= span, "a row of the box is wider than the swizzle")?;
    }
    Ok(map.encode())
}

fn check_address(map: &TensorMap, address: u64) -> Result<()> {
    require(
        address.is_multiple_of(alignment(map)) && address >> ADDRESS_BITS == 0,
        "the address is not aligned, or none of a device",
    )
}

/// What columns of pixels ask for.
fn check_pixels(map: &TensorMap) -> Result<()> {
    require(
        (1..=256).contains(&map.channels),
        "channels of a pixel are 0 or above 256",
    )?;
    require(
        (1..=1024).contains(&map.pixels),
        "pixels of a column are 0 or above 1024",
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
    // The box reaches from the lower corner to the tensor's extent plus the upper one.
    let empty = (0..corners).any(|i| {
        i128::from(map.dims[1 + i]) + i128::from(map.upper[i]) - i128::from(map.lower[i]) <= 0
    });
    require(!empty, "the pixel box is empty")
}

/// `cuTensorMapReplaceAddress`
pub(crate) fn replace_address(bytes: &[u8; BYTES], address: u64) -> Result<[u8; BYTES]> {
    context::current()?;
    let map = TensorMap::decode(bytes);
    let map = map.ok_or_else(|| {
        host::log!("tensor map: these bytes are none");
        Error::CUDA_ERROR_INVALID_VALUE
    })?;
    check_address(&map, address)?;
    Ok(TensorMap { address, ..map }.encode())
}
