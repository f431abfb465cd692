//! The launches of a profile, by kernel and source line.

use std::collections::BTreeMap;

use engine::count::{Counters, LaunchProfile};

/// The launches of a profile. `Display` prints them as a table.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// The launches, in the order of their start.
    pub launches: Vec<LaunchProfile>,
}

/// The sum of all launches of one kernel. Kernels of the same name in different modules count as one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KernelReport<'r> {
    /// Name of the kernel.
    pub name: &'r str,
    /// The launches of the kernel.
    pub launches: Vec<&'r LaunchProfile>,
    /// The sum of all launches.
    pub total: Counters,
    /// The source lines that have instructions, sorted by file and line.
    pub lines: Vec<LineReport<'r>>,
}

/// The counters of one source line.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LineReport<'r> {
    /// Name of the CUDA source file; `None` if the instructions have no `.loc`.
    pub file: Option<&'r str>,
    /// Line in the CUDA source, or in the PTX text if `file` is `None`.
    pub line: u32,
    /// The opcodes of this line's instructions in the first launch, in the order of the PTX text.
    pub opcodes: Vec<&'r str>,
    /// The counters.
    pub counters: Counters,
}

impl Report {
    /// Returns the launches of a kernel and their sum; `None` if it was not launched.
    pub fn kernel(&self, name: &str) -> Option<KernelReport<'_>> {
        self.kernels().into_iter().find(|kernel| kernel.name == name)
    }

    /// Returns the kernels, in the order of their first launch.
    pub fn kernels(&self) -> Vec<KernelReport<'_>> {
        let mut kernels: Vec<KernelReport<'_>> = Vec::new();
        for launch in &self.launches {
            match kernels.iter_mut().find(|kernel| kernel.name == launch.kernel) {
                Some(kernel) => kernel.launches.push(launch),
                None => kernels.push(KernelReport {
                    name: &launch.kernel,
                    launches: vec![launch],
                    total: Counters::default(),
                    lines: Vec::new(),
                }),
            }
        }
        for kernel in &mut kernels {
            kernel.sum();
        }
        kernels
    }
}

impl KernelReport<'_> {
    /// Adds up the launches.
    fn sum(&mut self) {
        let mut lines: BTreeMap<(Option<&str>, u32), LineReport<'_>> = BTreeMap::new();
        for (i, launch) in self.launches.iter().enumerate() {
            self.total += launch.total;
            for inst in &launch.instructions {
                let (file, line) = match &inst.place {
                    Some(place) => (Some(place.file.as_str()), place.line),
                    None => (None, inst.ptx_line),
                };
                let sum = lines.entry((file, line)).or_insert_with(|| LineReport {
                    file,
                    line,
                    opcodes: Vec::new(),
                    counters: Counters::default(),
                });
                sum.counters += inst.counters;
                if i == 0 {
                    sum.opcodes.push(&inst.opcode);
                }
            }
        }
        self.lines = lines.into_values().collect();
    }
}
