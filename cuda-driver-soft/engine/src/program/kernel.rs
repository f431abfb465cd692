//! A kernel of a program, and its properties.

use super::history::History;
use super::loaded::LoadedModule;
use super::reach::{reachable, variables_of};
use super::register_pressure;
use super::shared_layout::SharedLayout;
use super::stack_depth;
use crate::code::isa::Isa;
use crate::memory::buffer::MOST_LOCAL;
use crate::plan::Plan;
use crate::plan::ordered::{self, Order};
use crate::plan::shape::Group;
use ptx::ir::{Body, Directives, FuncId, Function, Operand, Space, Special, VarId};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// An entry function of a [`Program`](super::Program).
pub struct Kernel {
    loaded: Arc<LoadedModule>,
    id: FuncId,
    properties: OnceLock<Properties>,
    num_regs: OnceLock<u32>,
    order: OnceLock<Order>,
    history: History,
}

/// Properties found in all code that the kernel can reach.
#[derive(Debug)]
struct Properties {
    /// Functions that the kernel can reach, itself first.
    functions: Vec<FuncId>,
    shared: SharedLayout,
    local_bytes: u64,
    const_bytes: u32,
    unsupported: Option<String>,
    spins: bool,
    sees_other_blocks: bool,
    prints: bool,
    uses_heap: bool,
    uses_reserved_shared: bool,
}

impl Kernel {
    pub(super) fn new(loaded: Arc<LoadedModule>, id: FuncId) -> Self {
        Kernel {
            loaded,
            id,
            properties: OnceLock::new(),
            num_regs: OnceLock::new(),
            order: OnceLock::new(),
            history: History::default(),
        }
    }

    pub(crate) fn loaded(&self) -> &Arc<LoadedModule> {
        &self.loaded
    }

    pub(crate) fn id(&self) -> FuncId {
        self.id
    }

    /// Returns the instructions that the kernel has run.
    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    fn function(&self) -> &Function {
        &self.loaded.module.functions[self.id.0 as usize]
    }

    fn properties(&self) -> &Properties {
        self.properties.get_or_init(|| Properties::of(&self.loaded, self.id))
    }

    pub(crate) fn shared_layout(&self) -> &SharedLayout {
        &self.properties().shared
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.function().name
    }

    /// Returns the offset and the size in bytes of each parameter in the parameter buffer.
    pub fn params(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + '_ {
        self.function().params.iter().map(|p| (p.offset, p.size))
    }

    /// Returns the size of the parameter buffer in bytes.
    pub fn param_bytes(&self) -> u64 {
        self.function()
            .params
            .iter()
            .map(|p| p.offset + p.size)
            .max()
            .unwrap_or(0)
    }

    /// Returns the size in bytes of the kernel's variables in shared memory, without dynamic shared memory.
    pub fn shared_bytes(&self) -> u32 {
        self.properties().shared.fixed
    }

    /// Returns the size in bytes of the module's `.const` variables.
    pub fn const_bytes(&self) -> u32 {
        self.properties().const_bytes
    }

    /// Returns the local memory of a thread in bytes: the frames of the deepest chain of calls, in which a recursive
    /// function counts once. A kernel that needs more than a thread can have, about 512 KiB, cannot be launched.
    pub fn local_bytes(&self) -> u64 {
        self.properties().local_bytes
    }

    /// Returns the limit on the local memory of a thread in bytes: [`local_bytes`](Self::local_bytes) plus `limit` for
    /// further levels of recursion and for `alloca`, but no more than a thread can have.
    pub(crate) fn stack_bytes(&self, limit: u64) -> u64 {
        self.local_bytes().saturating_add(limit).min(MOST_LOCAL)
    }

    /// Returns true if the kernel may call `printf`.
    pub fn prints(&self) -> bool {
        self.properties().prints
    }

    /// Returns true if the kernel may call `malloc` or `free`.
    pub fn uses_heap(&self) -> bool {
        self.properties().uses_heap
    }

    /// Returns true if the kernel may use the reserved shared memory, through `%reserved_smem_offset_1` and similar
    /// registers.
    pub(crate) fn uses_reserved_shared(&self) -> bool {
        self.properties().uses_reserved_shared
    }

    /// Returns true if the frames fit into the local memory that a thread can have.
    pub fn fits_local_memory(&self) -> bool {
        self.local_bytes() <= MOST_LOCAL
    }

    /// Returns an estimate of the registers per thread, because this driver has no machine registers. The estimate is
    /// within the limits that the kernel's directives set.
    pub fn num_regs(&self) -> u32 {
        *self.num_regs.get_or_init(|| {
            let needed = self.loaded.registers(self.reachable());
            needed.min(register_pressure::limit(self.directives()))
        })
    }

    /// Returns the threads that a block may have: the product of `.maxntid`, at most 1024. `.reqntid` does not count:
    /// driver 580 checks it only when the kernel is launched.
    pub fn max_threads_per_block(&self) -> u32 {
        let product = |n: [u32; 3]| n.iter().fold(1u32, |a, b| a.saturating_mul(*b));
        let directives = &self.function().directives;
        directives.maxntid.map_or(1024, |n| product(n).min(1024))
    }

    /// Returns the kernel's directives, such as `.maxntid`.
    pub fn directives(&self) -> &Directives {
        &self.function().directives
    }

    /// Returns the architecture of `.target` (52 for `sm_52`), the value of `CU_FUNC_ATTRIBUTE_PTX_VERSION`.
    pub fn ptx_version(&self) -> u32 {
        self.loaded.module.target.sm
    }

    /// Returns an unsupported instruction that the kernel can reach, as "`cvta.shared.u32` (PTX line 4)", if there is
    /// one. Such a kernel cannot be launched.
    pub fn unsupported(&self) -> Option<&str> {
        self.properties().unsupported.as_deref()
    }

    /// Returns true if the kernel has accesses whose results depend on other threads, such as volatile loads and
    /// atomics, so that its loops may wait for these threads.
    pub(crate) fn spins(&self) -> bool {
        self.properties().spins
    }

    /// Returns true if the kernel has accesses to global memory whose results may depend on other blocks.
    pub(crate) fn sees_other_blocks(&self) -> bool {
        self.properties().sees_other_blocks
    }

    /// Returns the plan of the kernel's code as text, for debugging: for groups of `lanes` lanes along x. `whole` is
    /// true if the block's size along x is a multiple of `lanes`.
    pub fn describe_plan(&self, lanes: u32, whole: bool) -> String {
        let module = &self.loaded.module;
        let Some(plan) = self.function().body().and_then(|body| Plan::of(module, self.id, body)) else {
            return "too large to be compiled\n".to_string();
        };
        let functions = self
            .reachable()
            .iter()
            .filter_map(|id| module.functions[id.0 as usize].body());
        let lines = ordered::lines(module, functions);
        format!(
            "lines that keep the order of threads: {lines:?}\n{}",
            plan.print(Group { lanes, whole })
        )
    }

    /// Returns the order in which the lanes of a warp must run.
    pub(crate) fn order(&self) -> Order {
        *self.order.get_or_init(|| {
            let module = &self.loaded.module;
            let functions = self.reachable().iter();
            Order::of(
                module,
                functions.filter_map(|id| module.functions[id.0 as usize].body()),
            )
        })
    }

    /// Returns the number of functions that the kernel can reach, itself included.
    pub fn reached(&self) -> usize {
        self.reachable().len()
    }

    /// Returns the functions that the kernel can reach, itself first.
    pub(crate) fn reachable(&self) -> &[FuncId] {
        &self.properties().functions
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

impl Properties {
    fn of(loaded: &LoadedModule, entry: FuncId) -> Properties {
        let module = &loaded.module;
        let functions = reachable(module, entry, || loaded.functions_with_taken_addresses());
        let bodies: Vec<&Body> = functions
            .iter()
            .filter_map(|id| module.functions.get(id.0 as usize)?.body())
            .collect();
        let mut variables: Vec<VarId> = bodies.iter().flat_map(|b| variables_of(b)).collect();
        variables.sort_unstable();
        variables.dedup();
        // Driver 580 counts all `.const` variables of the module, used or not.
        let const_bytes = module
            .variables
            .iter()
            .filter(|v| v.space == Space::Const)
            .map(|v| v.size)
            .sum::<u64>();
        let unsupported = functions.iter().find_map(|id| match loaded.code(*id, Isa::best()) {
            Some(Err(unsupported)) => Some(unsupported.to_string()),
            _ => None,
        });
        // State spaces in which results depend on the order of accesses by several threads.
        let ordered: Vec<Space> = ordered::spaces_of_ordered(&bodies);
        // Functions provided by the driver have no body.
        let calls = |names: &[&str]| {
            let reachable = functions.iter().filter_map(|id| module.functions.get(id.0 as usize));
            let mut provided = reachable.filter(|f| f.body().is_none());
            provided.any(|f| names.contains(&f.name.as_str()))
        };
        Properties {
            prints: calls(&["vprintf"]),
            uses_heap: calls(&["malloc", "free"]),
            uses_reserved_shared: bodies
                .iter()
                .flat_map(|b| &b.insts)
                .flat_map(|i| &i.srcs)
                .any(|s| matches!(s, Operand::Special(Special::ReservedSmemOffset(_)))),
            local_bytes: stack_depth::deepest(module, &functions),
            const_bytes: u32::try_from(const_bytes).unwrap_or(u32::MAX),
            shared: SharedLayout::new(module, &variables),
            functions,
            unsupported,
            spins: !ordered.is_empty(),
            sees_other_blocks: ordered.iter().any(|s| matches!(s, Space::Global | Space::Generic)),
        }
    }
}
