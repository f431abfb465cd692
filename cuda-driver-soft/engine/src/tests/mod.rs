//! Tests of the engine, which run PTX text without a driver, and their helpers.

mod block_shapes;
mod bulk;
mod checks;
mod checks_of_mbarriers;
mod cluster;
mod compiled;
mod compiled_again;
mod compiled_arithmetic;
mod compiled_atomics;
mod compiled_barriers;
mod compiled_branches;
mod compiled_collectives;
mod compiled_faults;
mod compiled_masks;
mod compiled_order;
mod compiled_regions;
mod compiled_swapped;
mod counters;
mod faults;
mod hostile;
mod kernels;
mod large_kernels;
mod matrix;
mod ncu;
#[path = "../../../../tests/common/needs.rs"]
mod needs;
mod observe;
mod operands;
mod scheduling;
mod several_blocks;
mod stack;
mod stops;
mod tensor_maps;
mod textures;
mod tier;
mod together;
mod typical;
#[cfg(target_arch = "x86_64")]
mod upper_halves;
mod video;
mod waiting;
mod wgmma;

use crate::memory::{AllocationKind, address_space};
use crate::{Execution, Isa, Launch, Options, Program, Progress};

use std::sync::{Arc, Once};

/// A loaded program and device memory, which is freed on drop.
struct Bench {
    program: Arc<Program>,
    isa: Isa,
    owned: Vec<u64>,
}

/// An argument of a launch.
#[derive(Clone, Copy)]
enum Arg {
    U32(u32),
    U64(u64),
    F32(f32),
    F64(f64),
}

impl Bench {
    /// Loads PTX text.
    fn text(ptx: &str, isa: Isa) -> Self {
        // Code for sm_90a runs only on sm_90.
        let sm = if ptx.contains(".target sm_90a") { 90 } else { 120 };
        let limits = ptx::Limits {
            sm,
            ..ptx::Limits::default()
        };
        let loaded = ptx::load(ptx.as_bytes(), &limits).unwrap_or_else(|f| panic!("{}", f.log));
        Bench {
            program: Program::load(loaded.module, 77).unwrap(),
            isa,
            owned: Vec::new(),
        }
    }

    /// Loads a module of the repository's kernels, which are in `tests/kernels`.
    fn file(name: &str, isa: Isa) -> Self {
        let path = format!(
            "{}/../../tests/kernels/generated/{name}.ptx",
            env!("CARGO_MANIFEST_DIR")
        );
        Self::text(
            &std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}")),
            isa,
        )
    }

    /// Allocates device memory, and returns its address.
    fn bytes(&mut self, bytes: u64) -> u64 {
        let address = address_space().alloc(AllocationKind::Device, 77, bytes).unwrap();
        self.owned.push(address);
        address
    }

    /// Copies values to new device memory, and returns its address.
    fn put<T: Copy, const N: usize>(&mut self, values: &[T], to_bytes: fn(T) -> [u8; N]) -> u64 {
        let bytes: Vec<u8> = values.iter().flat_map(|v| to_bytes(*v)).collect();
        let address = self.bytes(bytes.len() as u64);
        address_space().write(address, &bytes).unwrap();
        address
    }

    /// Reads `count` values from device memory.
    fn get<T, const N: usize>(&self, address: u64, count: usize, from_bytes: fn([u8; N]) -> T) -> Vec<T> {
        let mut bytes = vec![0; count * N];
        address_space().read(address, &mut bytes).unwrap();
        bytes
            .chunks_exact(N)
            .map(|c| from_bytes(c.try_into().unwrap()))
            .collect()
    }

    /// Returns a launch with a large budget and default options, which a test may change.
    fn launch(&self, kernel: &str, grid: impl Into<Dim>, block: impl Into<Dim>, args: &[Arg]) -> Launch {
        let kernel = self
            .program
            .kernel(kernel)
            .unwrap_or_else(|| panic!("no kernel {kernel}"));
        assert_eq!(kernel.unsupported(), None);
        assert_eq!(args.len(), kernel.params().count(), "arguments of {}", kernel.name());
        let mut params = vec![0; kernel.param_bytes() as usize];
        for ((offset, size), arg) in kernel.params().zip(args) {
            let bytes = match arg {
                Arg::U32(v) => v.to_le_bytes().to_vec(),
                Arg::U64(v) => v.to_le_bytes().to_vec(),
                Arg::F32(v) => v.to_le_bytes().to_vec(),
                Arg::F64(v) => v.to_le_bytes().to_vec(),
            };
            assert_eq!(bytes.len() as u64, size, "size of a parameter of {}", kernel.name());
            params[offset as usize..(offset + size) as usize].copy_from_slice(&bytes);
        }
        let options = Options {
            isa: self.isa,
            budget: Some(1_000_000_000),
            ..Options::default()
        };
        Launch {
            kernel,
            grid: grid.into().0,
            block: block.into().0,
            dynamic_shared: 0,
            params: params.into(),
            options,
        }
    }

    /// Runs a launch to its end on this thread.
    fn run(launch: Launch) -> Arc<Execution> {
        let execution = launch.start();
        assert_eq!(execution.work(u64::MAX), Progress::Finished);
        assert!(execution.is_finished());
        execution
    }

    /// Runs a launch to its end on this thread, and panics on a fault.
    fn run_well(&self, kernel: &str, grid: impl Into<Dim>, block: impl Into<Dim>, args: &[Arg]) {
        let execution = Self::run(self.launch(kernel, grid, block, args));
        assert_eq!(execution.fault().map(|f| f.to_string()), None);
    }

    /// Runs `k(u64 out)` with each instruction set of this CPU, in slices of about this many instructions. Returns
    /// `count` words of `out`, which must be the same with all of them.
    fn words(text: &str, grid: u32, block: u32, count: usize, slice: u64) -> Vec<u32> {
        let mut all: Vec<Vec<u32>> = Vec::new();
        on_each_isa(|isa| {
            let mut bench = Bench::text(text, isa);
            let out = bench.put(&vec![0; count], u32::to_le_bytes);
            let execution = bench.launch("k", grid, block, &[Arg::U64(out)]).start();
            while execution.work(slice) != Progress::Finished {}
            assert_eq!(execution.fault().map(|f| f.to_string()), None);
            let got = bench.get(out, count, u32::from_le_bytes);
            assert_eq!(got, *all.first().unwrap_or(&got), "{isa:?}");
            all.push(got);
        });
        all.swap_remove(0)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for address in self.owned.drain(..) {
            let _ = address_space().free(address);
        }
    }
}

/// One to three dimensions.
struct Dim([u32; 3]);

impl From<u32> for Dim {
    fn from(x: u32) -> Self {
        Dim([x, 1, 1])
    }
}

impl From<(u32, u32)> for Dim {
    fn from((x, y): (u32, u32)) -> Self {
        Dim([x, y, 1])
    }
}

impl From<(u32, u32, u32)> for Dim {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Dim([x, y, z])
    }
}

/// Returns true if kernels can be compiled for this CPU. Otherwise prints, once, what the tests need.
fn can_compile() -> bool {
    static SAID: Once = Once::new();
    let can = Isa::available().any(|isa| isa == Isa::Wide);
    if !can {
        SAID.call_once(|| needs::needs("a CPU for which kernels are compiled"));
    }
    can
}

/// Returns a number of a pseudo-random sequence.
fn random(state: &mut u64) -> u32 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as u32
}

/// Returns the registers `%name0`, `%name1` and so on as a list in PTX.
fn list(name: &str, count: usize) -> String {
    let all: Vec<String> = (0..count).map(|i| format!("%{name}{i}")).collect();
    all.join(", ")
}

/// Runs a test once for each instruction set of this CPU.
fn on_each_isa(mut test: impl FnMut(Isa)) {
    for isa in Isa::available() {
        test(isa);
    }
}
