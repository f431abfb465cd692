//! Types whose values can be copied to a device and back.
#![forbid(unsafe_code)]

use bytemuck::{AnyBitPattern, NoUninit};

/// A type whose values can be copied to a device: any type that implements [`bytemuck::NoUninit`], which includes every
/// [`bytemuck::Pod`] type.
///
/// All bytes of a value are read, so the type must not have padding. Examples are numbers, `bool`, arrays of such
/// types, the types of [`vector`](crate::vector), and with the feature `bytemuck` of their crates the types of `half`
/// and `num-complex` and most types of `glam` (`Vec3A` has padding).
///
/// This trait is implemented for every such type; its purpose is the compiler's message for other types. Generic code
/// needs only the trait of `bytemuck`:
///
/// ```
/// use cuda_driver::bytemuck::NoUninit;
/// use cuda_driver::{Context, DeviceBuffer, Result};
///
/// fn upload<T: NoUninit>(context: &Context, values: &[T]) -> Result<DeviceBuffer<T>> {
///     DeviceBuffer::from_slice(context, values)
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "values of `{Self}` cannot be copied to a device",
    label = "does not implement `bytemuck::NoUninit`",
    note = "for a `repr(C)` struct without padding write `#[derive(Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]`",
    note = "for a type of another crate, such as `half`, turn on that crate's feature `bytemuck`"
)]
pub trait Upload: NoUninit {}

#[diagnostic::do_not_recommend]
impl<T: NoUninit> Upload for T {}

/// A type whose values can be copied from a device: any type that implements [`bytemuck::AnyBitPattern`], which
/// includes every [`bytemuck::Pod`] type.
///
/// A device can write any bytes, so any bytes must be a valid value of the type. This excludes `bool`, `char`,
/// references and enums: copy the bytes of a `bool` as `u8`, with [`DeviceSlice::cast`](crate::DeviceSlice::cast).
///
/// This trait is implemented for every such type; its purpose is the compiler's message for other types. Generic code
/// needs only the trait of `bytemuck`.
#[diagnostic::on_unimplemented(
    message = "values of `{Self}` cannot be copied from a device, which can write any bytes",
    label = "does not implement `bytemuck::AnyBitPattern`",
    note = "for a `repr(C)` struct of numbers write `#[derive(Clone, Copy, bytemuck::AnyBitPattern)]`, or `bytemuck::Pod` if it \
            has no padding",
    note = "for a type of another crate, such as `half`, turn on that crate's feature `bytemuck`",
    note = "for `bool`, `char` and enums copy integers instead, and convert them"
)]
pub trait Download: AnyBitPattern {}

#[diagnostic::do_not_recommend]
impl<T: AnyBitPattern> Download for T {}
