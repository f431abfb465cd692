//! The info log of `CU_JIT_LOG_VERBOSE`: the resources of each kernel, in the formats of ptxas and of NVIDIA's linker.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use crate::object::device::Device;
use engine::{Kernel, Program, Resources};
use image::link::Input;
use ptx::ir;

/// Bytes of constant bank 0 before the parameters of a kernel, on sm_90.
const BANK_HEADER: u64 = 528;
/// The owner of programs that are loaded only to be described.
const NO_OWNER: u64 = 0;
/// Limit on the functions that the kernels of a log reach, for each function of the module, in addition to
/// [`ANY_REACHED`]. Kernels after the limit are left out: describing each takes time for each function that it reaches.
const MOST_REACHED_EACH: usize = 64;
const ANY_REACHED: usize = 1 << 20;

/// Returns the lines of the compiler for a module, without a newline at the end.
pub(crate) fn of_compiler(module: &Arc<ir::Module>, device: &Device, took: Duration) -> String {
    let Some(program) = loaded(module) else {
        return String::new();
    };
    let mut log = format!("ptxas info    : {} bytes gmem", global_bytes(module));
    // From sm_90 on, the compiler names the target with architecture-specific features.
    let suffix = if device.profile.sm >= 90 { "a" } else { "" };
    let mut listed = BTreeSet::new();
    let kernels: Vec<_> = program.kernels().collect();
    let mut budget = Budget::of(module);
    let each = took.as_secs_f64() * 1e3 / kernels.len().max(1) as f64;
    // The compiler lists the kernels from the last to the first.
    for kernel in kernels.iter().rev().take_while(|kernel| budget.allows(kernel)) {
        let used = Resources::of(kernel);
        let name = kernel.name();
        // Writing to a string cannot fail.
        let _ = write!(
            log,
            "\nptxas info    : Compiling entry function '{name}' for 'sm_{}{suffix}'",
            device.profile.sm
        );
        properties(&mut log, name, used.frame_bytes, used.spilled_bytes);
        let _ = write!(
            log,
            "\nptxas info    : Used {} registers, used {} barriers",
            used.registers, used.barriers
        );
        if used.stack_bytes > 0 {
            let _ = write!(log, ", {} bytes cumulative stack size", used.stack_bytes);
        }
        if used.shared_bytes > 0 {
            let _ = write!(log, ", {} bytes smem", used.shared_bytes);
        }
        let _ = write!(log, "\nptxas info    : Compile time = {each:.3} ms");
        for (function, frame) in used.functions {
            if listed.insert(function.clone()) {
                properties(&mut log, &function, frame, 0);
            }
        }
    }
    log
}

/// The number of functions that the next kernels of a log may reach.
struct Budget(usize);

impl Budget {
    fn of(module: &ir::Module) -> Self {
        Budget(ANY_REACHED + MOST_REACHED_EACH * module.functions.len())
    }

    /// Counts the functions that a kernel reaches. Returns false if there are too many.
    fn allows(&mut self, kernel: &Kernel) -> bool {
        let left = self.0.checked_sub(kernel.reached());
        if left.is_none() {
            host::log!(
                "the verbose log leaves out `{}` and further kernels: they reach too many functions",
                kernel.name()
            );
        }
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

fn properties(log: &mut String, name: &str, frame: u64, spilled: u64) {
    let _ = write!(
        log,
        "\nptxas info    : Function properties for {name}\n\
         ptxas         .     {frame} bytes stack frame, {spilled} bytes spill stores, {spilled} bytes spill loads"
    );
}

/// Returns the lines of the linker for the module that it has linked from inputs, without a newline at the end. As the
/// linker of driver 580, begins with the kernels of the last input.
pub(crate) fn of_linker(module: &Arc<ir::Module>, inputs: &[Input]) -> String {
    let Some(program) = loaded(module) else {
        return String::new();
    };
    let mut log = format!("info    : {} bytes gmem", global_bytes(module));
    let mut input_of: HashMap<&str, usize> = HashMap::new();
    for (index, input) in inputs.iter().enumerate() {
        for function in input.module.functions.iter().filter(|f| f.code.is_some()) {
            input_of.entry(&function.name).or_insert(index);
        }
    }
    let mut kernels: Vec<_> = program.kernels().collect();
    kernels.sort_by_key(|kernel| Reverse(input_of.get(kernel.name()).copied()));
    let mut budget = Budget::of(module);
    for kernel in kernels.iter().take_while(|kernel| budget.allows(kernel)) {
        let used = Resources::of(kernel);
        let _ = write!(
            log,
            "\ninfo    : Function properties for '{}':\n\
             info    : used {} registers, used {} barriers, {} stack, {} bytes smem, {} bytes cmem[0], 0 bytes lmem",
            kernel.name(),
            used.registers,
            used.barriers,
            used.stack_bytes,
            used.shared_bytes,
            BANK_HEADER + kernel.param_bytes()
        );
    }
    log
}

/// Returns the module as a program of its own, which holds device memory for its variables until it is dropped.
fn loaded(module: &Arc<ir::Module>) -> Option<Arc<Program>> {
    Program::load(Arc::clone(module), NO_OWNER)
        .inspect_err(|error| host::log!("no verbose log: {error}"))
        .ok()
}

fn global_bytes(module: &ir::Module) -> u64 {
    let variables = module.variables.iter().filter(|v| v.space == ir::Space::Global);
    variables.map(|v| v.size).fold(0, u64::saturating_add)
}
