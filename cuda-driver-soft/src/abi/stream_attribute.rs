//! Exports that get, set and copy the attributes of streams.

use std::ffi::c_int;

use cuda_driver_sys::{CUlaunchAttributeID, CUlaunchAttributeValue, CUstream};

use super::exports;
use crate::call::stream;
use crate::object::stream_attribute::{self as attributes, StreamAttributeValue};
use crate::state::error::{Error, Result};

/// Returns a zero value of an attribute's type; `CUDA_ERROR_INVALID_VALUE` if streams do not have the attribute.
fn kind(attribute: CUlaunchAttributeID) -> Result<StreamAttributeValue> {
    attributes::kind(attribute).ok_or(Error::CUDA_ERROR_INVALID_VALUE)
}

exports! {
    fn cuStreamGetAttribute | cuStreamGetAttribute_ptsz [c, mode] (
        hstream: CUstream,
        attribute: CUlaunchAttributeID,
        out: *mut CUlaunchAttributeValue,
    ) {
        let stream = stream::named(hstream as usize, mode)?;
        // Driver 580 writes only the bytes of the value.
        match attributes::get(&stream, attribute)? {
            StreamAttributeValue::Window(bytes) => c.out(out.cast())?.set(bytes),
            StreamAttributeValue::Number(number) => c.out(out.cast::<c_int>())?.set(number),
            StreamAttributeValue::Domains(domains) => c.out(out.cast())?.set(domains),
        }
        Ok(())
    }

    fn cuStreamSetAttribute | cuStreamSetAttribute_ptsz [c, mode] (
        hstream: CUstream,
        attribute: CUlaunchAttributeID,
        value: *const CUlaunchAttributeValue,
    ) {
        let stream = stream::named(hstream as usize, mode)?;
        let value = match kind(attribute)? {
            StreamAttributeValue::Window(_) => StreamAttributeValue::Window(c.read(value.cast())?),
            StreamAttributeValue::Number(_) => {
                StreamAttributeValue::Number(c.read(value.cast::<c_int>())?)
            }
            StreamAttributeValue::Domains(_) => StreamAttributeValue::Domains(c.read(value.cast())?),
        };
        attributes::set(&stream, attribute, value)
    }

    fn cuStreamCopyAttributes | cuStreamCopyAttributes_ptsz [_c, mode] (
        to: CUstream,
        from: CUstream,
    ) {
        let (to, from) = (
            stream::named(to as usize, mode)?,
            stream::named(from as usize, mode)?,
        );
        attributes::copy(&to, &from)
    }
}
