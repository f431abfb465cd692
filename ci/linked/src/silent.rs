//! A program with the feature `link` that does not ask for the linked driver.

use cuda_driver_sys::DEFAULT;

fn main() {
    // SAFETY: cuInit takes no pointers.
    let code = unsafe { DEFAULT.cuInit(0) };
    println!("{code:?}");
    if let Some(error) = DEFAULT.load_error() {
        println!("{error}");
    }
}
