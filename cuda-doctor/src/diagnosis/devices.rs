//! Finds problems with the devices and with the test kernel, and reports the software driver.

use cuda_driver::sys::CUresult;

use super::problem::{Cause, Problem, Severity};
use crate::attributes::COMPUTE_MODE;
use crate::findings::{CallFailure, Choice, Device, Ending, Findings, KernelResult, KernelRun, LibraryKind};

/// The compute mode that allows no process.
const PROHIBITED: i32 = 2;

/// The advice for errors of a GPU.
const RESET: &str = "reset the GPU (nvidia-smi --gpu-reset) or restart the machine. If it happens again, the GPU may be \
    defective; the system's log (dmesg) shows its errors as Xid.";

/// Returns the problems with the devices.
pub(super) fn problems(findings: &Findings) -> Vec<Problem> {
    let mut problems: Vec<Problem> = findings
        .kernel_runs
        .iter()
        .filter_map(|run| kernel(findings, run))
        .collect();
    if problems.is_empty() {
        problems.extend(software(findings));
    }
    problems
}

fn kernel(findings: &Findings, run: &KernelRun) -> Option<Problem> {
    let ordinal = run.ordinal;
    let restart = if is_software(findings) {
        "report this as a bug of the software driver."
    } else {
        RESET
    };
    let (cause, text, advice) = match (&run.ending, &run.result) {
        (Ending::TimedOut { step, seconds }, _) => (
            Cause::Crash,
            format!("did not answer within {seconds} seconds: {step}"),
            restart.to_owned(),
        ),
        (Ending::Crashed { step, status, output }, _) => (
            Cause::Crash,
            format!("ended the process with {status}: {step}; {output}")
                .trim_end_matches("; ")
                .to_owned(),
            restart.to_owned(),
        ),
        (Ending::NotStarted { message }, _) => (
            Cause::Crash,
            format!("was not tried, because no process could be started: {message}"),
            String::new(),
        ),
        (_, Some(KernelResult::Failed(failure))) => (
            Cause::Kernel,
            failure.message.clone(),
            failed(findings, device(findings, ordinal), failure, restart),
        ),
        (
            _,
            Some(KernelResult::Wrong {
                index,
                expected,
                actual,
            }),
        ) => (
            Cause::Kernel,
            format!("stored {actual} instead of {expected} as value {index}"),
            restart.to_owned(),
        ),
        (_, Some(KernelResult::Correct)) => return None,
        (_, None) => (Cause::Kernel, "gave no result".to_owned(), restart.to_owned()),
    };
    Some(Problem::new(
        cause,
        Severity::Broken,
        format!("The test kernel on device {ordinal}: {text}."),
        advice,
    ))
}

fn device(findings: &Findings, ordinal: u32) -> Option<&Device> {
    findings.driver.devices.iter().find(|device| device.ordinal == ordinal)
}

fn failed(findings: &Findings, device: Option<&Device>, failure: &CallFailure, otherwise: &str) -> String {
    let is_prohibited = device.is_some_and(|device| device.attributes.get(COMPUTE_MODE) == Some(&PROHIBITED));
    if is_prohibited {
        return "allow processes on the device: nvidia-smi --compute-mode=0 (as root).".to_owned();
    }
    let advice = match CUresult(failure.code) {
        CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND if findings.system.container.is_some() => {
            "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility, which adds libnvidia-ptxjitcompiler.so.1."
        }
        CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND => {
            "install the driver again: libnvidia-ptxjitcompiler.so.1, which compiles PTX, is missing."
        }
        CUresult::CUDA_ERROR_JIT_COMPILATION_DISABLED => "unset CUDA_DISABLE_PTX_JIT.",
        CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU if findings.variable("CUDA_DISABLE_PTX_JIT").is_some() => {
            "unset CUDA_DISABLE_PTX_JIT."
        }
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
            "end other programs that use the device's memory (nvidia-smi lists them)."
        }
        CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE => {
            "end the program that uses the device exclusively (nvidia-smi lists it), or share it: nvidia-smi --compute-mode=0."
        }
        CUresult::CUDA_ERROR_MPS_CONNECTION_FAILED | CUresult::CUDA_ERROR_MPS_SERVER_NOT_READY => {
            "start the Multi-Process Service (nvidia-cuda-mps-control -d), or unset CUDA_MPS_PIPE_DIRECTORY."
        }
        _ => otherwise,
    };
    advice.to_owned()
}

fn is_software(findings: &Findings) -> bool {
    let library = findings.driver.library.as_ref();
    library.is_some_and(|library| library.kind == LibraryKind::Software)
}

/// Reports the software driver: as a note if the user asked for it, otherwise as a missing GPU.
fn software(findings: &Findings) -> Option<Problem> {
    if !is_software(findings) {
        return None;
    }
    let is_asked_for = findings.choice != Choice::Search || findings.variable("CUDA_DRIVER") == Some("software");
    let text = "The driver is the software driver: kernels give correct results, on the CPU.";
    Some(if is_asked_for {
        Problem::new(Cause::SoftwareDriver, Severity::Note, text, "")
    } else {
        Problem::new(
            Cause::SoftwareDriver,
            Severity::NoGpu,
            text,
            "nothing, if programs are meant to run on the CPU: with CUDA_DRIVER=software this program then exits with 0. \
             To use a GPU, remove the software driver's folder from LD_LIBRARY_PATH.",
        )
    })
}
