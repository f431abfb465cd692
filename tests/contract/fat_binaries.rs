//! Tests of fat binaries as images of modules and libraries: intact, wrapped and damaged.

use std::ffi::c_void;
use std::ptr::null_mut;

use cuda_driver::sys::*;

use crate::common::Codes;
use crate::common::gpu::Gpu;
use crate::{arguments, child, is, ok};

const PTX: &str = ".version 6.4\n.target sm_52\n.address_size 64\n\
    .visible .entry k(.param .u64 p)\n{\n.reg .b64 %d;\n.reg .b32 %r;\n\
    ld.param.u64 %d, [p];\nmov.u32 %r, 49;\nst.global.u32 [%d], %r;\nret;\n}\n";

/// Returns a fat binary with [`PTX`] as its only entry.
fn fat_binary() -> Vec<u8> {
    const HEADER: usize = 80;
    let padded = (PTX.len() + 1).next_multiple_of(8);
    let mut entry = vec![0; HEADER + padded];
    entry[..2].copy_from_slice(&1_u16.to_le_bytes());
    // In order: the header's size, the payload's size, the offset of the compiler's options, the architecture, the flags.
    for (at, value) in [(4, HEADER as u32), (8, padded as u32), (20, 64), (28, 52), (40, 0x11)] {
        entry[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    entry[HEADER..HEADER + PTX.len()].copy_from_slice(PTX.as_bytes());
    // Magic number, version 1, a header of 16 bytes, the size of the rest.
    let mut fat = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    fat.extend((entry.len() as u64).to_le_bytes());
    fat.extend(entry);
    fat
}

/// Loads an image with `cuModuleLoadData` and `cuModuleLoadFatBinary`, which must return the same code.
fn load(image: *const c_void) -> (u32, CUmodule) {
    let (mut module, mut other) = (null_mut(), null_mut());
    let code = crate::call!(cuModuleLoadData(&raw mut module, image)).0;
    let same = crate::call!(cuModuleLoadFatBinary(&raw mut other, image)).0;
    assert_eq!(code, same);
    if code == 0 {
        ok!(cuModuleUnload(other));
    }
    (code, module)
}

#[test]
fn modules_and_libraries() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let fat = fat_binary();
    let image: *const c_void = fat.as_ptr().cast();
    let (code, module) = load(image);
    c.is(0, "a module", code);
    let mut function = null_mut();
    is!(c, 0, cuModuleGetFunction(&raw mut function, module, c"k".as_ptr()));
    let out = gpu.alloc(4);
    gpu.launch(function, [1, 1, 1], [1, 1, 1], 0, &mut arguments![out]);
    c.that(gpu.read::<u32>(out, 1) == [49], || "the kernel stored no 49".to_owned());
    ok!(cuModuleUnload(module));
    // Libraries, but not modules, are loaded from the structure in which compilers wrap the address of a fat binary.
    let wrapper = [0x1_4662_43b1, image.expose_provenance() as u64, 0];
    let wrapper: *const c_void = wrapper.as_ptr().cast();
    c.is(200, "a module from a wrapper", load(wrapper).0);
    for (label, image) in [("a library", image), ("a library from a wrapper", wrapper)] {
        let (mut library, mut kernel) = (null_mut(), null_mut());
        let (none, values) = (null_mut(), null_mut());
        ok!(cuLibraryLoadData(
            &raw mut library,
            image,
            none,
            null_mut(),
            0,
            null_mut(),
            values,
            0
        ));
        let code = crate::call!(cuLibraryGetKernel(&raw mut kernel, library, c"k".as_ptr())).0;
        c.is(0, label, code);
        ok!(cuLibraryUnload(library));
    }
}

#[test]
fn damaged_headers() {
    // In a child process, because damaged headers can crash a driver. Driver 580 returns codes for these, but crashes on
    // some others.
    child!("damaged_headers", {
        let _gpu = Gpu::new();
        let mut c = Codes::new();
        for (label, code, at, bytes) in [
            ("format version 7", 200, 4, &[7, 0][..]),
            ("a header of no bytes", 209, 6, &[0, 0]),
            ("no entries", 209, 8, &[0; 8]),
        ] {
            let mut fat = fat_binary();
            fat[at..at + bytes.len()].copy_from_slice(bytes);
            let mut module = null_mut();
            let got = crate::call!(cuModuleLoadData(&raw mut module, fat.as_ptr().cast())).0;
            c.is(code, label, got);
        }
    });
}
