//! Attributes of streams.

use std::ffi::c_int;

use cuda_driver_sys::{CUlaunchAttributeID, CUlaunchAttributeValue, CUstream};

use super::exports;
use crate::driver::error::{Error, Result};
use crate::driver::process::driver_without_fault;
use crate::driver::stream;
use crate::driver::stream_attribute::{self as attributes, Value};

/// What kind of value an attribute has.
fn kind(attribute: CUlaunchAttributeID) -> Result<Value> {
    attributes::kind(attribute.0).ok_or(Error::INVALID_VALUE)
}

exports! {
    fn cuStreamGetAttribute | cuStreamGetAttribute_ptsz [c, mode] (hstream: CUstream, attribute: CUlaunchAttributeID, out: *mut CUlaunchAttributeValue) {
        driver_without_fault()?;
        let stream = stream::named(hstream as usize, mode)?;
        // As recorded: no more is written than the value has.
        match attributes::get(&stream, attribute.0)? {
            Value::Window(bytes) => c.out(out.cast())?.set(bytes),
            Value::Number(number) => c.out(out.cast::<c_int>())?.set(number),
            Value::Domains(domains) => c.out(out.cast())?.set(domains),
        }
        Ok(())
    }

    fn cuStreamSetAttribute | cuStreamSetAttribute_ptsz [c, mode] (hstream: CUstream, attribute: CUlaunchAttributeID, value: *const CUlaunchAttributeValue) {
        driver_without_fault()?;
        let stream = stream::named(hstream as usize, mode)?;
        let value = match kind(attribute)? {
            Value::Window(_) => Value::Window(c.read(value.cast())?),
            Value::Number(_) => Value::Number(c.read(value.cast::<c_int>())?),
            Value::Domains(_) => Value::Domains(c.read(value.cast())?),
        };
        attributes::set(&stream, attribute.0, value)
    }

    fn cuStreamCopyAttributes | cuStreamCopyAttributes_ptsz [_c, mode] (to: CUstream, from: CUstream) {
        driver_without_fault()?;
        let (to, from) = (stream::named(to as usize, mode)?, stream::named(from as usize, mode)?);
        attributes::copy(&to, &from);
        Ok(())
    }
}
