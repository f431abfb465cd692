//! The referee's forms of instructions: PTX text, operands, and the reference function of each.
//!
//! In the text, `%d0 %w0 %h0` are the first operand in 64, 32 and 16 bits (the digits 1 and 2 stand for the second and
//! third), `%q2` is the low bit of the third as a predicate, and `%D %W %H %P` are the result in 64, 32 and 16 bits and
//! as a predicate. `%V`, `%x` and `%Q` are scratch registers, and `%o` is the address where the result will be stored.

mod atomic;
mod compare;
mod cvt;
mod float;
pub(crate) mod form;
mod integer;
mod list;
mod video;

use form::Form;
use list::List;

/// Returns all forms of the referee.
pub(crate) fn all() -> Vec<Form> {
    let mut list = List::default();
    float::single(&mut list);
    float::double(&mut list);
    float::halves(&mut list);
    float::approximate(&mut list);
    integer::integers(&mut list);
    integer::bit_forms(&mut list);
    cvt::conversions(&mut list);
    compare::comparisons(&mut list);
    video::video(&mut list);
    atomic::atomics(&mut list);
    list.0
}
