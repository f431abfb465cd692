//! Accesses to shared memory by which the lanes of a warp may exchange values without a barrier between them.
//!
//! Such code has a race, but a GPU runs the lanes of a warp in step as far as they take the same path, so that programs
//! rely on it. The interpreter does the same. Groups of lanes that run one after another would not.

use super::MOST_INSTS;
use super::class::{Class, Scheduled};
use super::defined::writes_of;
use super::flow::Flow;
use super::steps::{Layout, Step};
use ptx::ir::{Body, Inst, MemMods, Op, Operand, Reg, Space};
use std::collections::BTreeSet;

/// A place in shared memory that only the lane itself is expected to access: the register with its address, the offset,
/// and the size.
type Place = (u32, i64, u32);

/// The places in which a lane has stored since the last barrier.
type Places = BTreeSet<Place>;

/// The stores that lanes have done since the last barrier.
#[derive(Clone, PartialEq)]
enum Stores {
    /// Each lane has stored in the same places, whose address registers have not changed since: a load from one of them
    /// has the lane's own value. The places can differ between the rounds of a loop, which all lanes run together: one
    /// of these sets has them.
    Own {
        cases: Vec<Places>,
        /// The loop in whose rounds the places differ, as an index into [`Flow::loops`].
        of_loop: Option<usize>,
    },
    /// Other stores: some lanes have stored and others have not, or loads have the values of other lanes anyway.
    Others,
}

/// The kind of the latest access to shared memory since the last barrier. Both flags are true if it is a load on one
/// path to this point and a store on another.
#[derive(Clone, PartialEq, Default)]
struct Last {
    load: bool,
    store: bool,
}

/// Limit on the places that are told apart, and on the sets of them.
const MOST_PLACES: usize = 16;
/// Limit on the passes over a function. Most functions need as many as they have nested loops, and two more.
const MOST_PASSES: usize = 64;

/// Returns the modifiers of an access to shared memory whose order relative to other threads does not matter, and true
/// if it stores. Atomic operations store.
fn access(inst: &Inst) -> Option<(&MemMods, bool)> {
    let (mem, stores) = match (&inst.op, Class::of(&inst.op)) {
        (Op::Ld(m), Class::Load) => (m, false),
        (Op::St(m), Class::Store) => (m, true),
        (Op::Red { mem, .. } | Op::Atom { mem, .. }, _) => (mem, true),
        _ => return None,
    };
    (mem.space == Space::Shared).then_some((mem, stores))
}

/// Returns true for instructions at which the lanes of a warp wait for each other.
fn is_barrier(inst: &Inst) -> bool {
    matches!(
        Class::of(&inst.op),
        Class::Scheduled(
            Scheduled::BlockBarrier | Scheduled::ClusterBarrier | Scheduled::Collective | Scheduled::Matrix
        )
    )
}

/// Returns the place of an access; `None` if its address is not in a register, so that all lanes have the same one.
fn place(inst: &Inst, m: &MemMods) -> Option<Place> {
    match inst.srcs.first() {
        Some(Operand::Reg(Reg(address))) => Some((*address, m.offset, m.ty.size() * u32::from(m.vec))),
        _ => None,
    }
}

/// A loop around some blocks.
#[derive(Clone, Copy)]
struct Around {
    /// The index into [`Flow::loops`].
    number: usize,
    /// True if the loop has stores in shared memory, or barriers.
    has_stores: bool,
}

/// A state that instructions change and that paths join.
trait State: Clone + PartialEq + Default {
    /// Applies an instruction. Returns true if the instruction is one of those that are looked for.
    fn step(&mut self, inst: &Inst) -> bool;

    /// Joins the state at the end of another path to the same block. Lanes may have taken different paths.
    fn join(&mut self, from: &Self);

    /// Joins the state before the first round of a loop with the state at the end of a round. The lanes that run the
    /// loop together are in the same round.
    fn join_rounds(&mut self, end: &Self, around: Around);

    /// Changes the state for lanes that have left a loop, perhaps in different rounds.
    fn leave(&mut self, is_inside: impl FnOnce(usize) -> bool);
}

impl Default for Stores {
    /// Returns the state after a barrier.
    fn default() -> Self {
        Stores::Own {
            cases: vec![Places::new()],
            of_loop: None,
        }
    }
}

impl Stores {
    /// Adds a store of each lane in the same place.
    fn add(&mut self, place: Place) {
        let Stores::Own { cases, of_loop } = self else { return };
        for case in &mut *cases {
            case.insert(place);
        }
        cases.sort();
        cases.dedup();
        if cases.len() == 1 {
            *of_loop = None;
        }
        // Places with other addresses may be those of other lanes.
        let fits = |case: &Places| case.len() <= MOST_PLACES && case.iter().all(|other| other.0 == place.0);
        if !cases.iter().all(fits) {
            *self = Stores::Others;
        }
    }

    /// Returns true if a load can have the value of another lane.
    fn reach(&self, place: Option<Place>) -> bool {
        match self {
            Stores::Own { cases, .. } => cases.iter().any(|case| {
                let is_own = place.is_some_and(|place| case.contains(&place));
                !case.is_empty() && !is_own
            }),
            Stores::Others => true,
        }
    }
}

impl State for Stores {
    /// Looks for loads that can have the value of another lane.
    fn step(&mut self, inst: &Inst) -> bool {
        if is_barrier(inst) {
            *self = Stores::default();
        }
        let mut crosses = false;
        match access(inst) {
            Some((m, true)) => match place(inst, m) {
                Some(place) if inst.guard.is_none() && matches!(inst.op, Op::St(_)) => self.add(place),
                _ => *self = Stores::Others,
            },
            Some((m, false)) => crosses = self.reach(place(inst, m)),
            None => {}
        }
        writes_of(inst, |reg| {
            if let Stores::Own { cases, .. } = self
                && cases.iter().flatten().any(|place| place.0 == reg.0)
            {
                *self = Stores::Others;
            }
        });
        crosses
    }

    fn join(&mut self, from: &Stores) {
        if self != from {
            *self = Stores::Others;
        }
    }

    fn join_rounds(&mut self, end: &Stores, around: Around) {
        let (Stores::Own { cases, .. }, Stores::Own { cases: others, .. }) = (&mut *self, end) else {
            *self = Stores::Others;
            return;
        };
        if !around.has_stores {
            return;
        }
        cases.extend_from_slice(others);
        cases.sort();
        cases.dedup();
        let mut addresses = cases.iter().flatten().map(|place| place.0);
        let first = addresses.next();
        let is_own = cases.len() <= MOST_PLACES && addresses.all(|address| Some(address) == first);
        let of_loop = (cases.len() > 1).then_some(around.number);
        *self = match is_own {
            true => Stores::Own {
                cases: std::mem::take(cases),
                of_loop,
            },
            false => Stores::Others,
        };
    }

    fn leave(&mut self, is_inside: impl FnOnce(usize) -> bool) {
        if let Stores::Own {
            of_loop: Some(number), ..
        } = self
            && !is_inside(*number)
        {
            *self = Stores::Others;
        }
    }
}

impl State for Last {
    /// Looks for loads after a store, and stores after a load.
    fn step(&mut self, inst: &Inst) -> bool {
        if is_barrier(inst) {
            *self = Last::default();
        }
        let Some((_, store)) = access(inst) else {
            return false;
        };
        let before = std::mem::replace(self, Last { load: !store, store });
        if store { before.load } else { before.store }
    }

    fn join(&mut self, from: &Last) {
        self.load |= from.load;
        self.store |= from.store;
    }

    fn join_rounds(&mut self, end: &Last, _: Around) {
        self.join(end);
    }

    fn leave(&mut self, _: impl FnOnce(usize) -> bool) {}
}

/// Finds the states at the ends of all blocks. Returns the instructions that [`State::step`] looks for, or all accesses
/// to shared memory if that takes too long.
fn flow<'b, S: State>(layout: &Layout<'b>, flow: &Flow) -> Vec<&'b Inst> {
    let insts = |block: usize| {
        layout.steps[layout.steps_of(block)]
            .iter()
            .filter_map(|step| match step {
                Step::Plain(inst) => Some(*inst),
                Step::Branch { .. } => None,
            })
    };
    let stores = |inst: &Inst| is_barrier(inst) || access(inst).is_some_and(|(_, store)| store);
    let mut loop_at: Vec<Option<Around>> = vec![None; layout.blocks.len()];
    for (number, found) in flow.loops.iter().enumerate() {
        let has_stores = found.blocks.iter().any(|block| insts(*block).any(stores));
        loop_at[found.head] = Some(Around { number, has_stores });
    }
    let is_inside = |block: usize, number: usize| {
        let mut around = std::iter::successors(flow.loop_of[block], |inner| flow.loops[*inner].parent);
        around.any(|other| other == number)
    };
    let mut ends: Vec<Option<S>> = vec![None; layout.blocks.len()];
    for _ in 0..MOST_PASSES {
        let mut changed = false;
        let mut found: Vec<&Inst> = Vec::new();
        for block in &layout.order {
            let around = loop_at[*block];
            let mut before = (*block == 0).then(S::default);
            let mut rounds = None;
            for from in &flow.predecessors[*block] {
                let Some(mut end) = ends[*from].clone() else { continue };
                end.leave(|number| is_inside(*block, number));
                let is_round = around.is_some_and(|around| flow.loops[around.number].latches.contains(from));
                let begin: &mut Option<S> = if is_round { &mut rounds } else { &mut before };
                match begin {
                    Some(begin) => begin.join(&end),
                    None => *begin = Some(end),
                }
            }
            let Some(mut state) = before else { continue };
            if let (Some(end), Some(around)) = (rounds, around) {
                state.join_rounds(&end, around);
            }
            found.extend(insts(*block).filter(|inst| state.step(inst)));
            changed |= ends[*block].as_ref() != Some(&state);
            ends[*block] = Some(state);
        }
        if !changed {
            return found;
        }
    }
    let all = layout.order.iter().flat_map(|block| insts(*block));
    all.filter(|inst| access(inst).is_some()).collect()
}

/// Returns the lines of the accesses to shared memory that lanes must run in step, in ascending order: if any load may
/// have a value that another lane has stored since the last barrier, all loads that follow a store, and all stores that
/// follow a load. Loads that follow each other may run in any order; so may stores, unless they are to the same place.
/// Returns the lines of all these accesses if the function is too large to analyse.
pub(super) fn lines(body: &Body) -> Vec<u32> {
    let is_store = |inst: &Inst| access(inst).is_some_and(|(_, store)| store);
    if !body.insts.iter().any(is_store) {
        return Vec::new();
    }
    // Finding the loops of larger functions could take very long, and they are not compiled anyway.
    if body.insts.len() > MOST_INSTS {
        return ascending(body.insts.iter().filter(|inst| access(inst).is_some()));
    }
    let layout = Layout::of(body);
    let successors: Vec<Vec<usize>> = layout.blocks.iter().map(|b| b.successors.clone()).collect();
    let control = Flow::of(&successors, &layout.order);
    if flow::<Stores>(&layout, &control).is_empty() {
        return Vec::new();
    }
    ascending(flow::<Last>(&layout, &control).into_iter())
}

/// Returns the lines of some instructions, each once, in ascending order.
fn ascending<'b>(insts: impl Iterator<Item = &'b Inst>) -> Vec<u32> {
    let mut lines: Vec<u32> = insts.map(|inst| inst.line).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}
