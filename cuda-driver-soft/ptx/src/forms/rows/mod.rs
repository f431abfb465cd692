//! The rows of the instruction table, grouped by subject.

mod asynchronous;
mod bits;
mod control;
mod float;
mod integer;
mod matrix;
mod memory;
mod movement;
mod multimem;
mod tensor;
mod texture;
mod video;
mod wgmma;

use super::row::Row;

/// All rows of the table, one slice per file.
pub(super) const GROUPS: [&[Row]; 13] = [
    integer::ROWS,
    bits::ROWS,
    float::ROWS,
    memory::ROWS,
    multimem::ROWS,
    movement::ROWS,
    control::ROWS,
    asynchronous::ROWS,
    tensor::ROWS,
    matrix::ROWS,
    wgmma::ROWS,
    video::ROWS,
    texture::ROWS,
];
