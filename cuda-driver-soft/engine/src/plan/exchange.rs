//! Accesses to shared memory by which the lanes of a warp may exchange values without a barrier between them.
//!
//! Such code has a race, but a GPU runs the lanes of a warp in step as far as they take the same path, so that programs
//! rely on it. The interpreter does the same. Groups of lanes that run one after another would not.

use super::class::{Class, Scheduled};
use super::defined::writes_of;
use super::steps::{Layout, Step};
use ptx::ir::{Body, Inst, MemMods, Op, Operand, Space};

/// An access that only knows its own lane's values if an earlier store has the same one: its address, offset and size.
#[derive(Clone, Copy, PartialEq)]
struct Place {
    address: Operand,
    offset: i64,
    bytes: u32,
}

/// The stores that other lanes may have done since the last barrier.
#[derive(Clone, PartialEq, Default)]
struct Stores {
    /// The places of stores whose address registers have not changed since.
    places: Vec<Place>,
    /// True if there are other stores.
    others: bool,
}

/// The kinds of the last access to shared memory since the last barrier.
#[derive(Clone, Copy, PartialEq, Default)]
struct Last {
    load: bool,
    store: bool,
}

/// Limit on the places that are told apart.
const MOST_PLACES: usize = 16;

/// Returns the modifiers of a weak load or store in shared memory, and true for a store.
fn access(inst: &Inst) -> Option<(&MemMods, bool)> {
    let is_shared = |m: &MemMods| m.space == Space::Shared;
    match (&inst.op, Class::of(&inst.op)) {
        (Op::Ld(m), Class::Load) if is_shared(m) => Some((m, false)),
        (Op::St(m), Class::Store) if is_shared(m) => Some((m, true)),
        _ => None,
    }
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

impl Place {
    fn of(inst: &Inst, m: &MemMods) -> Option<Place> {
        Some(Place {
            address: inst.srcs.first().copied()?,
            offset: m.offset,
            bytes: m.ty.size() * u32::from(m.vec),
        })
    }
}

impl Stores {
    fn is_empty(&self) -> bool {
        self.places.is_empty() && !self.others
    }

    /// Returns true if a load at a place can have the value of another lane. A load from a place with the address of
    /// all stores is taken for one of the lane's own value.
    fn reach(&self, place: Option<Place>) -> bool {
        let own = place.is_some_and(|place| {
            matches!(place.address, Operand::Reg(_))
                && self.places.contains(&place)
                && self.places.iter().all(|other| other.address == place.address)
        });
        !self.is_empty() && (self.others || !own)
    }

    fn add(&mut self, place: Option<Place>) {
        match place {
            Some(place) if self.places.contains(&place) => {}
            Some(place) if self.places.len() < MOST_PLACES => self.places.push(place),
            _ => self.others = true,
        }
    }

    fn join(&mut self, from: &Stores) {
        self.others |= from.others;
        from.places.iter().for_each(|place| self.add(Some(*place)));
    }

    /// Applies an instruction. Returns true if it is a load that can have the value of another lane.
    fn step(&mut self, inst: &Inst) -> bool {
        if is_barrier(inst) {
            *self = Stores::default();
        }
        let mut crosses = false;
        match access(inst) {
            Some((m, true)) => self.add(Place::of(inst, m)),
            Some((m, false)) => crosses = self.reach(Place::of(inst, m)),
            None => {}
        }
        writes_of(inst, |reg| {
            let before = self.places.len();
            self.places.retain(|place| place.address != Operand::Reg(reg));
            self.others |= self.places.len() < before;
        });
        crosses
    }
}

impl Last {
    fn join(&mut self, from: &Last) {
        self.load |= from.load;
        self.store |= from.store;
    }

    /// Applies an instruction. Returns true if it is a load after a store, or a store after a load.
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
}

/// Applies the instructions of each block to a state until the states at the begins of the blocks no longer change.
/// Returns the instructions for which `step` is then true.
fn flow<'b, S: Clone + PartialEq + Default>(
    layout: &Layout<'b>,
    join: impl Fn(&mut S, &S),
    step: impl Fn(&mut S, &Inst) -> bool,
) -> Vec<&'b Inst> {
    let mut begins = vec![S::default(); layout.blocks.len()];
    let mut found: Vec<&Inst> = Vec::new();
    let mut changed = true;
    while changed {
        changed = false;
        found.clear();
        for block in &layout.order {
            let mut state = begins[*block].clone();
            for number in layout.steps_of(*block) {
                if let Step::Plain(inst) = layout.steps[number]
                    && step(&mut state, inst)
                {
                    found.push(inst);
                }
            }
            for next in &layout.blocks[*block].successors {
                let before = begins[*next].clone();
                join(&mut begins[*next], &state);
                changed |= begins[*next] != before;
            }
        }
    }
    found
}

/// Returns the lines of the accesses to shared memory that lanes must run in step, in ascending order: if any load may
/// have a value that another lane has stored since the last barrier, all loads that follow a store, and all stores that
/// follow a load. Loads that follow each other may run in any order; so may stores, unless they are to the same place.
pub(super) fn lines(body: &Body) -> Vec<u32> {
    let is_store = |inst: &Inst| access(inst).is_some_and(|(_, store)| store);
    if !body.insts.iter().any(is_store) {
        return Vec::new();
    }
    let layout = Layout::of(body);
    if flow(&layout, Stores::join, Stores::step).is_empty() {
        return Vec::new();
    }
    let mut lines: Vec<u32> = flow(&layout, Last::join, Last::step)
        .iter()
        .map(|inst| inst.line)
        .collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}
