//! Finds environment variables that affect CUDA programs, and describes their effects.

use super::surroundings::Surroundings;
use crate::findings::Variable;

/// The variables, each with its effect.
const VARIABLES: [(&str, &str); 17] = [
    (
        "CUDA_DRIVER",
        "chooses the driver in programs that support the software driver: software, system or a path",
    ),
    (
        "CUDA_DRIVER_LIBRARY",
        "names the driver's library for cuda-driver; nothing else is searched",
    ),
    ("LD_LIBRARY_PATH", "folders that the system's loader searches first"),
    (
        "LD_PRELOAD",
        "libraries that are loaded before the program and may replace the driver's functions",
    ),
    (
        "CUDA_VISIBLE_DEVICES",
        "the devices that the driver shows, in this order; an empty list or -1 hides all",
    ),
    ("CUDA_DEVICE_ORDER", "the order of the devices"),
    (
        "NVIDIA_VISIBLE_DEVICES",
        "the devices that NVIDIA's container toolkit adds to a container",
    ),
    (
        "NVIDIA_DRIVER_CAPABILITIES",
        "the driver's parts that NVIDIA's container toolkit adds; CUDA needs compute",
    ),
    ("CUDA_MODULE_LOADING", "lazy or eager loading of kernels"),
    ("CUDA_LAUNCH_BLOCKING", "1 makes each launch wait for its kernel"),
    ("CUDA_CACHE_DISABLE", "1 compiles PTX again in each process"),
    ("CUDA_CACHE_PATH", "the folder for compiled PTX"),
    (
        "CUDA_FORCE_PTX_JIT",
        "1 ignores machine code in programs and compiles their PTX",
    ),
    ("CUDA_DISABLE_PTX_JIT", "1 forbids compiling PTX"),
    (
        "CUDA_MPS_PIPE_DIRECTORY",
        "the folder of the Multi-Process Service that programs connect to",
    ),
    (
        "CUDA_INJECTION64_PATH",
        "a library that the driver loads into each program, for profilers",
    ),
    ("CUDA_COREDUMP_FILE", "the file for core dumps of the GPU"),
];

/// The beginning of the names of the software driver's variables.
const SOFTWARE: &str = "CUDA_SOFT_";

/// Finds the variables that are set.
pub(super) fn find(surroundings: &Surroundings) -> Vec<Variable> {
    let known = VARIABLES.iter().filter_map(|(name, effect)| {
        let value = surroundings.variables.get(*name)?;
        Some(Variable {
            name: (*name).to_owned(),
            value: value.clone(),
            effect: (*effect).to_owned(),
        })
    });
    let software = surroundings
        .variables
        .iter()
        .filter(|(name, _)| name.starts_with(SOFTWARE));
    let software = software.map(|(name, value)| Variable {
        name: name.clone(),
        value: value.clone(),
        effect: "a setting of the software driver".to_owned(),
    });
    known.chain(software).collect()
}
