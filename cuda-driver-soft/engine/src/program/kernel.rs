//! A kernel of a program, and what can be said of it before it runs.

use super::stack_depth;
use crate::code::isa::Isa;
use crate::memory::buffer::MOST_LOCAL;
use crate::ops::atomic::order_matters;
use crate::program::Image;
use ptx::ir::{
    Body, Callee, Directives, FuncId, Function, Op, Operand, Order, RegClass, RelocTarget, Space,
    Special, VarId,
};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// An entry function of a [`Program`](super::Program).
pub struct Kernel {
    image: Arc<Image>,
    id: FuncId,
    info: OnceLock<Info>,
}

/// What a look at all reachable code says.
#[derive(Debug)]
struct Info {
    /// Functions that may run, the kernel first.
    functions: Vec<FuncId>,
    shared: SharedLayout,
    local_bytes: u64,
    const_bytes: u32,
    num_regs: u32,
    unsupported: Option<String>,
    spins: bool,
    sees_other_blocks: bool,
    prints: bool,
    uses_heap: bool,
    uses_reserved_shared: bool,
}

/// Where the `.shared` variables of a kernel are in the block's shared memory.
#[derive(Debug, Default)]
pub(crate) struct SharedLayout {
    offsets: HashMap<VarId, u32>,
    /// Bytes of variables that have a size.
    pub(crate) fixed: u32,
    /// Offset of the dynamic part.
    pub(crate) dynamic: u32,
}

impl SharedLayout {
    /// Offset of a variable that the kernel uses.
    pub(crate) fn offset(&self, var: VarId) -> Option<u32> {
        self.offsets.get(&var).copied()
    }
}

impl Kernel {
    pub(super) fn new(image: Arc<Image>, id: FuncId) -> Self {
        Kernel {
            image,
            id,
            info: OnceLock::new(),
        }
    }

    pub(crate) fn image(&self) -> &Arc<Image> {
        &self.image
    }

    pub(crate) fn id(&self) -> FuncId {
        self.id
    }

    fn function(&self) -> &Function {
        &self.image.module.functions[self.id.0 as usize]
    }

    fn info(&self) -> &Info {
        self.info.get_or_init(|| Info::of(&self.image, self.id))
    }

    pub(crate) fn shared_layout(&self) -> &SharedLayout {
        &self.info().shared
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.function().name
    }

    /// Offset and size in bytes of each parameter in the parameter buffer.
    pub fn params(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + '_ {
        self.function().params.iter().map(|p| (p.offset, p.size))
    }

    /// Bytes of the parameter buffer.
    pub fn param_bytes(&self) -> u64 {
        self.function()
            .params
            .iter()
            .map(|p| p.offset + p.size)
            .max()
            .unwrap_or(0)
    }

    /// Bytes of shared memory that the kernel's variables take; dynamic shared memory is not counted.
    pub fn shared_bytes(&self) -> u32 {
        self.info().shared.fixed
    }

    /// Bytes of the `.const` variables that the kernel uses.
    pub fn const_bytes(&self) -> u32 {
        self.info().const_bytes
    }

    /// Bytes of local memory of a thread: of the deepest chain of calls, with one level of a recursive function. More
    /// than a thread can have, about 512 KiB, cannot be launched.
    pub fn local_bytes(&self) -> u64 {
        self.info().local_bytes
    }

    /// Bytes of local memory that a thread may use: what the calls that are known take, and `limit` for those that are
    /// not.
    pub(crate) fn stack_bytes(&self, limit: u64) -> u64 {
        self.local_bytes().saturating_add(limit).min(MOST_LOCAL)
    }

    /// It may print.
    pub fn prints(&self) -> bool {
        self.info().prints
    }

    /// It may allocate from the heap, or free.
    pub fn uses_heap(&self) -> bool {
        self.info().uses_heap
    }

    /// It may use the shared memory that the system keeps for itself, through `%reserved_smem_offset_1` and its like.
    pub(crate) fn uses_reserved_shared(&self) -> bool {
        self.info().uses_reserved_shared
    }

    /// Its frames fit into the local memory that a thread can have.
    pub fn fits_local_memory(&self) -> bool {
        self.local_bytes() <= MOST_LOCAL
    }

    /// Registers of a thread: an estimate, since nothing here assigns machine registers; not above `.maxnreg`.
    pub fn num_regs(&self) -> u32 {
        let most = self.function().directives.maxnreg.unwrap_or(u32::MAX);
        self.info().num_regs.min(most.max(1))
    }

    /// Threads that a block may have, by `.maxntid`; at most 1024. As recorded, what `.reqntid` requires is looked at when
    /// the kernel is launched, and not before.
    pub fn max_threads_per_block(&self) -> u32 {
        let product = |n: [u32; 3]| n.iter().fold(1u32, |a, b| a.saturating_mul(*b));
        let directives = &self.function().directives;
        directives.maxntid.map_or(1024, |n| product(n).min(1024))
    }

    /// `.maxntid` and the like.
    pub fn directives(&self) -> &Directives {
        &self.function().directives
    }

    /// The architecture of `.target`, as 52 for `sm_52`: what `CU_FUNC_ATTRIBUTE_PTX_VERSION` answers.
    pub fn ptx_version(&self) -> u32 {
        self.image.module.target.sm
    }

    /// An instruction that the kernel may reach and this driver cannot run: such a kernel is not launched.
    pub fn unsupported(&self) -> Option<&str> {
        self.info().unsupported.as_deref()
    }

    /// It has loads that see what other threads do, so that its loops may wait for them.
    pub(crate) fn spins(&self) -> bool {
        self.info().spins
    }

    /// The same for threads of other blocks.
    pub(crate) fn sees_other_blocks(&self) -> bool {
        self.info().sees_other_blocks
    }

    /// Functions that may run, the kernel first.
    pub(crate) fn reachable(&self) -> &[FuncId] {
        &self.info().functions
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

impl Info {
    fn of(image: &Image, entry: FuncId) -> Info {
        let module = &image.module;
        let functions = reachable(image, entry);
        let bodies: Vec<&Body> = functions
            .iter()
            .filter_map(|id| module.functions.get(id.0 as usize)?.body())
            .collect();
        let mut variables: Vec<VarId> = bodies.iter().flat_map(|b| variables_of(b)).collect();
        variables.sort_unstable();
        variables.dedup();
        let used = |space: Space| {
            variables
                .iter()
                .copied()
                .filter(move |v| module.variables[v.0 as usize].space == space)
        };
        // As recorded: those of the module, whether or not this kernel uses them.
        let const_bytes = module
            .variables
            .iter()
            .filter(|v| v.space == Space::Const)
            .map(|v| v.size)
            .sum::<u64>();
        let mut shared = SharedLayout::default();
        let mut dynamic_align = 16;
        for id in used(Space::Shared) {
            let variable = &module.variables[id.0 as usize];
            if variable.size == 0 {
                dynamic_align = dynamic_align.max(variable.align);
            } else {
                let at = u64::from(shared.fixed).next_multiple_of(variable.align.max(1));
                shared.offsets.insert(id, at as u32);
                shared.fixed = u32::try_from(at + variable.size).unwrap_or(u32::MAX);
            }
        }
        shared.dynamic = u64::from(shared.fixed)
            .next_multiple_of(dynamic_align)
            .min(u64::from(u32::MAX)) as u32;
        for id in used(Space::Shared).filter(|v| module.variables[v.0 as usize].size == 0) {
            shared.offsets.insert(id, shared.dynamic);
        }
        let unsupported =
            functions
                .iter()
                .find_map(|id| match image.code(*id, Isa::best(), false) {
                    Some(Err(cannot)) => Some(cannot.to_string()),
                    _ => None,
                });
        // Where a thread sees, or makes seen, in which order others did something.
        let ordered = bodies
            .iter()
            .flat_map(|b| &b.insts)
            .filter_map(|i| match &i.op {
                Op::Ld(m) if m.order != Order::Weak => Some(m.space),
                Op::Mbarrier { .. } => Some(Space::Shared),
                Op::Bulk {
                    to,
                    reduce: Some((op, ty)),
                    ..
                } => order_matters(*op, *ty, false, Order::Weak).then_some(*to),
                Op::Atom { op, mem } | Op::Red { op, mem } => {
                    let used = i.dsts.iter().any(Option::is_some);
                    order_matters(*op, mem.ty, used, mem.order).then_some(mem.space)
                }
                _ => None,
            });
        let ordered: Vec<Space> = ordered.collect();
        let words = |c: &RegClass| match c {
            RegClass::Pred => 0,
            RegClass::B16 | RegClass::B32 => 1,
            RegClass::B64 => 2,
            RegClass::B128 => 4,
        };
        let registers = bodies
            .iter()
            .map(|b| b.registers.iter().map(words).sum::<u32>())
            .max()
            .unwrap_or(0);
        // Functions that the driver provides have no body.
        let calls = |names: &[&str]| {
            let reachable = functions
                .iter()
                .filter_map(|id| module.functions.get(id.0 as usize));
            let mut provided = reachable.filter(|f| f.body().is_none());
            provided.any(|f| names.contains(&f.name.as_str()))
        };
        Info {
            prints: calls(&["vprintf"]),
            uses_heap: calls(&["malloc", "free"]),
            uses_reserved_shared: bodies
                .iter()
                .flat_map(|b| &b.insts)
                .flat_map(|i| &i.srcs)
                .any(|s| matches!(s, Operand::Special(Special::ReservedSmemOffset(_)))),
            local_bytes: stack_depth::deepest(module, &functions),
            const_bytes: u32::try_from(const_bytes).unwrap_or(u32::MAX),
            // PTX is close to single assignment: about a third of its registers are alive at a time.
            num_regs: (registers / 3 + 8).clamp(8, 255),
            functions,
            shared,
            unsupported,
            spins: !ordered.is_empty(),
            sees_other_blocks: ordered
                .iter()
                .any(|s| matches!(s, Space::Global | Space::Generic)),
        }
    }
}

/// The functions that a call chain from `entry` may reach; any whose address is taken, once there is an indirect call.
fn reachable(image: &Image, entry: FuncId) -> Vec<FuncId> {
    let module = &image.module;
    let mut found = vec![entry];
    let mut known = HashSet::from([entry]);
    let mut next = 0;
    let mut indirect = false;
    let mut taken: Vec<FuncId> = module
        .variables
        .iter()
        .flat_map(|v| &v.relocs)
        .filter_map(|r| match r.target {
            RelocTarget::Function(f) => Some(f),
            RelocTarget::Variable(_) => None,
        })
        .collect();
    while next < found.len() {
        let body = module
            .functions
            .get(found[next].0 as usize)
            .and_then(|f| f.body());
        next += 1;
        let mut add = |id: FuncId, found: &mut Vec<FuncId>| {
            if known.insert(id) {
                found.push(id);
            }
        };
        for inst in body.iter().flat_map(|b| &b.insts) {
            match &inst.op {
                Op::Call {
                    callee: Callee::Direct(id),
                    ..
                } => add(*id, &mut found),
                Op::Call {
                    callee:
                        Callee::Indirect {
                            targets: Some(targets),
                        },
                    ..
                } => {
                    targets.iter().for_each(|id| add(*id, &mut found));
                }
                Op::Call {
                    callee: Callee::Indirect { targets: None },
                    ..
                } => indirect = true,
                _ => {}
            }
            taken.extend(inst.srcs.iter().filter_map(|s| match s {
                Operand::Address(ptx::ir::Address::Function(id)) => Some(*id),
                _ => None,
            }));
        }
        if indirect {
            taken.drain(..).for_each(|id| add(id, &mut found));
        }
    }
    found
}

fn variables_of(body: &Body) -> impl Iterator<Item = VarId> + '_ {
    body.insts
        .iter()
        .flat_map(|i| &i.srcs)
        .filter_map(|s| match s {
            Operand::Address(ptx::ir::Address::Variable { var, .. }) => Some(*var),
            _ => None,
        })
}
