//! Copies of rows, rectangles and boxes between host memory, device memory and arrays.

mod array;
mod copy_3d;
mod placed;
mod side;

pub use copy_3d::Copy3d;
pub use side::{Source, Target};
