//! The bytes of a type that are padding, according to the generated table of layouts. They must not be read: a value
//! that is moved may lose them.

use std::any::type_name;
use std::ptr;

use crate::enumeration::Field;

/// The types under the path that `layout.rs` uses.
mod records {
    pub(crate) use cuda_driver::sys::*;
}

#[path = "../../cuda-driver-sys/src/generated/layout.rs"]
#[rustfmt::skip]
mod layout;

/// Sets the bytes of a value of this type that are not padding to true.
fn mark(ty: &str, data: &mut [bool]) {
    if let Some((element, count)) = ty
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']')?.rsplit_once("; "))
    {
        let count: usize = count.parse().expect("the length of an array");
        let size = data.len() / count.max(1);
        data.chunks_mut(size.max(1)).for_each(|one| mark(element, one));
        return;
    }
    // A record's type is a path. Pointers and functions are not paths, although theirs contain paths.
    let is_path = ty.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':');
    let fields = ty.rsplit("::").next().filter(|_| is_path).and_then(layout::fields);
    match fields {
        Some(fields) if !is_union(&fields) => {
            for (offset, size, ty) in fields {
                mark(ty, &mut data[offset..offset + size]);
            }
        }
        // All bytes of a union are kept when it is moved, and those of numbers and pointers are values.
        _ => data.fill(true),
    }
}

/// Returns true if fields overlap.
fn is_union(fields: &[Field]) -> bool {
    fields.windows(2).any(|pair| pair[1].0 < pair[0].0 + pair[0].1)
}

/// Returns, for each byte of a type, true if it is not padding.
fn data<T>() -> Vec<bool> {
    let mut data = vec![false; size_of::<T>()];
    mark(type_name::<T>(), &mut data);
    data
}

/// Returns the bytes of a value, with zeros for its padding.
pub(crate) fn bytes<T>(value: &T) -> Vec<u8> {
    let at = ptr::from_ref(value).cast::<u8>();
    let byte = |(index, is_data)| {
        // SAFETY: the byte is inside the value and not padding.
        if is_data { unsafe { at.add(index).read() } } else { 0 }
    };
    data::<T>().into_iter().enumerate().map(byte).collect()
}

/// Sets the padding in the bytes of values of this type to zeros, to compare them with those of [`bytes`].
pub(crate) fn clear<T>(bytes: &mut [u8]) {
    let data = data::<T>();
    for (byte, is_data) in bytes.iter_mut().zip(data.iter().cycle()) {
        if !is_data {
            *byte = 0;
        }
    }
}

#[test]
fn only_padding_is_left_out() {
    use cuda_driver::sys::*;
    let padding = |data: Vec<bool>| -> Vec<usize> { (0..data.len()).filter(|index| !data[*index]).collect() };
    assert_eq!(padding(data::<CUDA_ARRAY3D_DESCRIPTOR>()), [36, 37, 38, 39]);
    assert_eq!(padding(data::<CUDA_KERNEL_NODE_PARAMS>()), [36, 37, 38, 39]);
    assert_eq!(padding(data::<[CUDA_ARRAY3D_DESCRIPTOR; 2]>()).len(), 8);
    for whole in [
        data::<*mut CUDA_ARRAY3D_DESCRIPTOR>(),
        data::<CUDA_ARRAY_DESCRIPTOR>(),
        data::<[u16; 5]>(),
    ] {
        assert_eq!(padding(whole), []);
    }
}
