//! Runs a random kernel in the interpreter and as machine code, and compares faults and the bytes of memory.

use super::generate::Random;
use super::text;
use super::tree::Kernel;
use cuda_driver_soft_engine::memory::{AllocationKind, address_space};
use cuda_driver_soft_engine::{Engine, Isa, Launch, Options, Program, Progress};
use std::sync::Arc;

/// A way in which the engine runs a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tier {
    /// The instruction set of the handlers.
    pub(crate) isa: Isa,
    /// The engine.
    pub(crate) engine: Engine,
}

impl Tier {
    /// Returns the ways that this CPU supports: the interpreter for each instruction set, and machine code for several
    /// sizes of groups. The first one, an interpreter, is the reference.
    pub(crate) fn all() -> Vec<Tier> {
        let tier = |isa, engine| Tier { isa, engine };
        let compiled = [
            Engine::Compiled { lanes: 32 },
            Engine::Compiled { lanes: 16 },
            Engine::Compiled { lanes: 8 },
            Engine::Leaving { lanes: 32 },
        ];
        let compiled = compiled.map(|engine| tier(Isa::Wide, engine));
        let compiled = compiled
            .into_iter()
            .filter(|tier| Isa::available().any(|isa| isa == tier.isa));
        Isa::available()
            .map(|isa| tier(isa, Engine::Interpreter))
            .chain(compiled)
            .collect()
    }

    fn options(self) -> Options {
        Options {
            isa: self.isa,
            engine: self.engine,
            budget: Some(100_000_000),
            ..Options::default()
        }
    }
}

/// The result of a launch: its memory and its fault.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outcome {
    output: Vec<u8>,
    counters: Vec<u8>,
    fault: Option<String>,
}

/// The end of a kernel that has the same results in all ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// All threads ended.
    Returned,
    /// The kernel raised a fault.
    Faulted,
}

/// Runs a kernel in all ways.
///
/// # Errors
/// Returns text that names the first difference, or the error of a kernel that cannot be loaded.
pub(crate) fn compare(kernel: &Kernel, tiers: &[Tier]) -> Result<End, String> {
    let text = text::ptx(kernel);
    let loaded =
        ptx::load(text.as_bytes(), &ptx::Limits::default()).map_err(|f| format!("cannot be loaded: {}", f.log))?;
    let program = Program::load(loaded.module, 0).map_err(|error| error.to_string())?;
    let (reference, others) = tiers.split_first().ok_or("no tiers")?;
    // The same memory for all runs, so that faults name the same addresses.
    let memory = Buffers {
        input: Memory::new(text::INPUT_BYTES),
        output: Memory::new(text::output_bytes(kernel)),
        counters: Memory::new(text::COUNTER_BYTES),
    };
    memory.input.write(&input());
    let expected = run(kernel, &program, &memory, *reference);
    for tier in others {
        let found = run(kernel, &program, &memory, *tier);
        if let Some(what) = difference(kernel, &expected, &found) {
            return Err(format!("{tier:?} differs from {reference:?}: {what}"));
        }
    }
    Ok(if expected.fault.is_some() {
        End::Faulted
    } else {
        End::Returned
    })
}

fn difference(kernel: &Kernel, expected: &Outcome, found: &Outcome) -> Option<String> {
    let first = |a: &[u8], b: &[u8]| a.iter().zip(b).position(|(a, b)| a != b);
    if expected.fault != found.fault {
        return Some(format!("fault {:?}, not {:?}", found.fault, expected.fault));
    }
    // After a fault, programs can no longer read the memory, and other groups of the warp may have run further.
    if expected.fault.is_some() {
        return None;
    }
    if let Some(at) = first(&expected.output, &found.output) {
        let own = 16 * usize::from(super::tree::SLOTS);
        let stored = own * kernel.threads() as usize;
        let each = usize::from(super::tree::VARIABLES) * 32;
        let results = each * kernel.threads() as usize;
        let place = match at.checked_sub(stored) {
            None => format!("place {} of thread {}", at % own / 16, at / own),
            Some(at) if at >= results => format!("byte {} of the tables", at - results),
            Some(at) => {
                let name = ["%d", "%d", "%g", "%g", "%r", "%f", "%p", "%h"][at % 32 / 4];
                format!("{name}{} of thread {}", at % each / 32, at / each)
            }
        };
        let bytes = |from: &[u8]| {
            from[at..]
                .iter()
                .take(8)
                .map(|b| format!("{b:02x}"))
                .collect::<String>()
        };
        let (new, old) = (bytes(&found.output), bytes(&expected.output));
        return Some(format!("output byte {at}, {place}: {new}, not {old}"));
    }
    let at = first(&expected.counters, &found.counters)?;
    Some(format!("counter {}", at / 4))
}

/// The memory of a launch.
struct Buffers {
    input: Memory,
    output: Memory,
    counters: Memory,
}

/// Memory that is freed when it is dropped.
struct Memory {
    address: u64,
    bytes: u64,
}

impl Memory {
    fn new(bytes: u64) -> Self {
        let address = address_space()
            .alloc(AllocationKind::Device, 0, bytes)
            .unwrap_or_else(|error| panic!("{error}"));
        Memory { address, bytes }
    }

    fn write(&self, content: &[u8]) {
        address_space()
            .write(self.address, content)
            .unwrap_or_else(|error| panic!("{error}"));
    }

    fn fill(&self, byte: u8) {
        self.write(&vec![byte; self.bytes as usize]);
    }

    fn read(&self) -> Vec<u8> {
        let mut content = vec![0; self.bytes as usize];
        address_space()
            .read(self.address, &mut content)
            .unwrap_or_else(|error| panic!("{error}"));
        content
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // Fails only if the memory was freed before.
        let _ = address_space().free(self.address);
    }
}

/// Returns numbers of many kinds: any bits, small integers, floating-point numbers from -8 to 17, infinities and NaNs.
fn input() -> Vec<u8> {
    let mut random = Random::new(1);
    let mut bytes = Vec::new();
    while bytes.len() < text::INPUT_BYTES as usize {
        let bits = random.bits();
        let element: [u64; 2] = match bits % 5 {
            0 => [random.bits(), random.bits()],
            1 => [random.bits() % 100, random.bits() % 7],
            2 => [(bits >> 40) as f64 / 1e6, -1.5].map(f64::to_bits),
            // Infinities, and NaNs with any payload: two of `.f32`, and one of `.f64`.
            3 => {
                let signs = 1 << 63 | 1 << 31;
                let kept = if bits >> 40 & 1 == 0 { signs } else { u64::MAX };
                let [two, one] = [0, 1].map(|_| random.bits() & kept);
                [two | 0x7f80_0000_7f80_0000, one | 0x7ff0 << 48]
            }
            _ => [0, 1].map(|_| {
                let pair = [0, 1].map(|_| ((random.bits() >> 50) as f32 / 1000.0 - 8.0).to_bits());
                u64::from(pair[0]) << 32 | u64::from(pair[1])
            }),
        };
        bytes.extend(element.iter().flat_map(|e| e.to_le_bytes()));
    }
    bytes.truncate(text::INPUT_BYTES as usize);
    bytes
}

fn run(kernel: &Kernel, program: &Arc<Program>, memory: &Buffers, tier: Tier) -> Outcome {
    let Buffers {
        input,
        output,
        counters,
    } = memory;
    output.fill(0x5a);
    counters.fill(0);
    let addresses = [input, output, counters].map(|memory| memory.address.to_le_bytes());
    let mut params = addresses.concat();
    params.extend(text::length(kernel).to_le_bytes());
    let launch = Launch {
        kernel: program.kernel("k").unwrap_or_else(|| panic!("the kernel is called k")),
        grid: [kernel.grid, 1, 1],
        block: [kernel.block[0], kernel.block[1], 1],
        dynamic_shared: 0,
        params: params.into(),
        options: tier.options(),
    };
    let execution = launch.start();
    assert_eq!(execution.work(u64::MAX), Progress::Finished);
    Outcome {
        output: output.read(),
        counters: counters.read(),
        fault: execution.fault().map(|fault| fault.to_string()),
    }
}
