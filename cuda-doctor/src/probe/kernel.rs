//! Runs the test kernel on one device.

use std::io::Write;

use cuda_driver::sys::library::{Source, set_default};
use cuda_driver::sys::{CUresult, Function};
use cuda_driver::{Context, Device, DeviceBuffer, Error, JitError, LaunchConfig, Module, Stream};

use super::open::Open;
use super::progress::{begin, complete};
use super::task::Place;
use crate::call_failure::{call_failure, failure_of};
use crate::findings::{CallFailure, KernelResult};

/// The test kernel: sets `values[i] = 3 * values[i] + i` for the first `count` values. Its PTX version and target are
/// older than every supported driver, so that each driver can compile it.
const PTX: &str = "
.version 6.0
.target sm_30
.address_size 64

.visible .entry cuda_doctor(.param .u64 values, .param .u32 count)
{
    .reg .pred %outside;
    .reg .b32  %i, %block, %size, %count, %value;
    .reg .b64  %values, %offset;

    mov.u32        %block, %ctaid.x;
    mov.u32        %size, %ntid.x;
    mov.u32        %i, %tid.x;
    mad.lo.u32     %i, %block, %size, %i;
    ld.param.u32   %count, [count];
    setp.ge.u32    %outside, %i, %count;
    @%outside ret;

    ld.param.u64   %values, [values];
    cvta.to.global.u64 %values, %values;
    mul.wide.u32   %offset, %i, 4;
    add.u64        %values, %values, %offset;
    ld.global.u32  %value, [%values];
    mad.lo.u32     %value, %value, 3, %i;
    st.global.u32  [%values], %value;
    ret;
}
";

/// The number of values: not a multiple of [`BLOCK`], so that some threads of the last block have no value.
const COUNT: u32 = 1000;

/// The number of threads of a block.
const BLOCK: u32 = 64;

/// Runs the kernel and reports the result.
pub(super) fn run(place: &Place, ordinal: u32, open: Open<'_>, output: &mut dyn Write) {
    let result = match run_steps(place, ordinal, open, output) {
        Ok(result) => result,
        Err(failure) => KernelResult::Failed(failure),
    };
    complete(&Some(result), output);
}

fn run_steps(place: &Place, ordinal: u32, open: Open<'_>, output: &mut dyn Write) -> Result<KernelResult, CallFailure> {
    let mut step = |name: &str| begin(name, &None::<KernelResult>, output);
    let failed = |error: Error| call_failure(&error);

    step("loading the driver");
    let library = open(place).map_err(not_loaded)?;
    set_default(Source::library(library)).map_err(|error| not_loaded(error.to_string()))?;
    step("cuInit");
    // SAFETY: cuInit takes no pointer.
    let code = unsafe { library.cuInit(0) };
    if code != CUresult::CUDA_SUCCESS {
        return Err(failure_of(library, code, Function::cuInit));
    }
    step("creating a context");
    let device = Device::get(ordinal).map_err(failed)?;
    let context = Context::create(device).map_err(failed)?;
    step("compiling the test kernel");
    let module = Module::from_ptx(&context, PTX).map_err(|error| with_log(&error))?;
    let kernel = module.function("cuda_doctor").map_err(failed)?;
    step("copying to the device");
    let values: Vec<u32> = (0..COUNT).map(input).collect();
    let buffer = DeviceBuffer::from_slice(&context, &values).map_err(failed)?;
    step("launching the test kernel");
    let stream = Stream::new(&context).map_err(failed)?;
    let config = LaunchConfig {
        grid: COUNT.div_ceil(BLOCK).into(),
        block: BLOCK.into(),
        ..LaunchConfig::default()
    };
    // SAFETY: the arguments have the types of the kernel's parameters, and the buffer holds `COUNT` values.
    unsafe { kernel.launch(&stream, config, (buffer.ptr(), COUNT)) }.map_err(failed)?;
    step("waiting for the test kernel");
    stream.synchronize().map_err(failed)?;
    step("copying from the device");
    let actual = buffer.to_vec().map_err(failed)?;
    Ok(compare(&actual))
}

/// Returns the failure of a compilation, with the compiler's log at the end of its message.
fn with_log(error: &JitError) -> CallFailure {
    let mut failure = call_failure(&error.error());
    for line in error.error_log().lines() {
        failure.message.push_str("; ");
        failure.message.push_str(line.trim());
    }
    failure
}

fn input(index: u32) -> u32 {
    index.wrapping_mul(2_654_435_761)
}

fn compare(actual: &[u32]) -> KernelResult {
    for (index, actual) in (0..).zip(actual.iter().copied()) {
        let expected = input(index).wrapping_mul(3).wrapping_add(index);
        if actual != expected {
            return KernelResult::Wrong {
                index,
                expected,
                actual,
            };
        }
    }
    KernelResult::Correct
}

/// Returns the failure to load a driver in this process, although an earlier process loaded it.
fn not_loaded(message: String) -> CallFailure {
    let code = CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
    CallFailure {
        function: Function::cuInit.name().to_owned(),
        code: code.0,
        name: Some("CUDA_ERROR_SHARED_OBJECT_INIT_FAILED".to_owned()),
        message: format!("the driver could not be loaded again: {message}"),
    }
}
