//! The local memory that a chain of calls needs.

use ptx::ir::{Body, Callee, FuncId, Module, Op};
use std::collections::HashMap;

/// Frames begin at multiples of this many bytes.
const FRAME_ALIGN: u64 = 16;

/// A node of the graph of calls: a function, or `None` for a call of any function whose address is taken.
type Node = Option<FuncId>;

/// Returns the size in bytes of the frames of the deepest chain of calls from the first of `functions`, which are all
/// that it can reach. The size is a multiple of 8, as compilers report it. A recursive function counts once, because
/// its depth is known only when it runs. Functions that call each other in a cycle count once each, even if no chain
/// without repetitions has all of them.
pub(crate) fn deepest(module: &Module, functions: &[FuncId]) -> u64 {
    let Some(&entry) = functions.first() else {
        return 0;
    };
    let body = |id: FuncId| -> Option<&Body> { module.functions.get(id.0 as usize)?.body() };
    let callees = |node: Node| -> Vec<Node> {
        // `functions` has all functions whose address is taken.
        let Some(id) = node else {
            return functions[1..].iter().copied().map(Some).collect();
        };
        let mut found = Vec::new();
        for inst in body(id).iter().flat_map(|b| &b.insts) {
            let Op::Call { callee, .. } = &inst.op else {
                continue;
            };
            match callee {
                Callee::Direct(id) => found.push(Some(*id)),
                Callee::Indirect { targets: Some(targets) } => found.extend(targets.iter().copied().map(Some)),
                Callee::Indirect { targets: None } => found.push(None),
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    };
    // Finds the strongly connected components (Tarjan), each after those that it calls. Without recursion, because a
    // chain can be arbitrarily long.
    let mut search = Search::default();
    let number = search.enter(Some(entry));
    let mut path = vec![(number, callees(Some(entry)))];
    while let Some((at, rest)) = path.last_mut() {
        let at = *at;
        if let Some(next) = rest.pop() {
            match search.numbers.get(&next) {
                Some(known) => search.note_call(at, *known),
                None => path.push((search.enter(next), callees(next))),
            }
            continue;
        }
        path.pop();
        if search.visits[at].lowest == at {
            search.close(at, |node| {
                let found = node.and_then(body)?;
                // Aligning a frame may move its base up. The entry's frame is the first.
                let align = if node == Some(entry) { 0 } else { found.frame_align };
                Some((
                    u64::from(found.frame_size),
                    u64::from(align).saturating_sub(FRAME_ALIGN),
                ))
            });
        }
        if let Some((caller, _)) = path.last() {
            search.note_call(*caller, at);
        }
    }
    search.visits[number].depth.unwrap_or(0).next_multiple_of(8)
}

/// The state of a node that the search has entered.
struct Visit {
    node: Node,
    /// The lowest number of a node of the same component that this node is known to reach.
    lowest: usize,
    /// The depth of the deepest callee in another component.
    below: u64,
    /// The depth of the component, once all of it is known.
    depth: Option<u64>,
}

#[derive(Default)]
struct Search {
    /// Indexes into `visits`.
    numbers: HashMap<Node, usize>,
    visits: Vec<Visit>,
    /// The numbers of the nodes whose component is not complete, in ascending order.
    open: Vec<usize>,
}

impl Search {
    fn enter(&mut self, node: Node) -> usize {
        let number = self.visits.len();
        self.numbers.insert(node, number);
        self.open.push(number);
        self.visits.push(Visit {
            node,
            lowest: number,
            below: 0,
            depth: None,
        });
        number
    }

    fn note_call(&mut self, caller: usize, callee: usize) {
        let Visit { lowest, depth, .. } = self.visits[callee];
        let caller = &mut self.visits[caller];
        match depth {
            Some(depth) => caller.below = caller.below.max(depth),
            None => caller.lowest = caller.lowest.min(lowest),
        }
    }

    /// Computes the depth of the component whose first node is `first`. `frame` returns the size of a function's frame,
    /// and the bytes that its alignment may take in addition.
    fn close(&mut self, first: usize, frame: impl Fn(Node) -> Option<(u64, u64)>) {
        let members = self.open.split_off(self.open.partition_point(|number| *number < first));
        let below = members
            .iter()
            .map(|number| self.visits[*number].below)
            .max()
            .unwrap_or(0);
        let frames: Vec<(u64, u64)> = members
            .iter()
            .filter_map(|number| frame(self.visits[*number].node))
            .collect();
        let depth = match (frames.as_slice(), below) {
            // No frame comes after this one.
            ([(size, align)], 0) => size.saturating_add(*align),
            _ => frames.iter().fold(below, |depth, (size, align)| {
                let size = size.next_multiple_of(FRAME_ALIGN);
                depth.saturating_add(size).saturating_add(*align)
            }),
        };
        for number in members {
            self.visits[number].depth = Some(depth);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Visiting all functions for each function that may call all of them would take minutes.
    #[test]
    fn functions_that_may_call_all_others_are_one_chain() {
        const FUNCTIONS: u32 = 20_000;
        let size = |number: u32| 16 * (number % 5 + 1);
        let function = |number: u32| {
            format!(
                ".func f{number}() {{ .reg .b64 r; .local .align 16 .b8 x[{}]; mov.u64 r, f{number};\n\
                 P: .callprototype _ (); call r, P; ret; }}\n",
                size(number)
            )
        };
        let functions: String = (0..FUNCTIONS).map(function).collect();
        let text = format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n{functions}\n\
             .entry k() {{ .reg .b64 r; mov.u64 r, f0; P: .callprototype _ (); call r, P; ret; }}\n"
        );
        let module = ptx::load(text.as_bytes(), &ptx::Limits::default())
            .expect("valid")
            .module;
        let reached: Vec<FuncId> = std::iter::once(FUNCTIONS).chain(0..FUNCTIONS).map(FuncId).collect();
        let expected: u32 = (0..FUNCTIONS).map(size).sum();
        assert_eq!(deepest(&module, &reached), u64::from(expected));
    }

    /// The path may enter a cycle at any of its functions, and what it enters first does not matter.
    #[test]
    fn functions_in_a_cycle_count_once_each() {
        let function = |name: &str, bytes: u32, callees: &[&str]| {
            let calls: String = callees.iter().map(|callee| format!("call {callee};")).collect();
            format!(".func {name}() {{ .local .align 16 .b8 x[{bytes}]; {calls} ret; }}\n")
        };
        for calls in ["call A; call C;", "call C; call A;"] {
            let functions = [
                function("A", 5_000, &["B"]),
                function("B", 16, &["A"]),
                function("C", 5_000, &["B"]),
            ];
            let text = format!(
                ".version 9.0\n.target sm_90\n.address_size 64\n.func A();\n.func B();\n{}\n.entry k() {{ {calls} ret; }}\n",
                functions.concat()
            );
            let module = ptx::load(text.as_bytes(), &ptx::Limits::default())
                .expect("valid")
                .module;
            let number = |name: &str| module.functions.iter().position(|f| &*f.name == name).expect("exists");
            let reached = ["k", "A", "B", "C"].map(|name| FuncId(number(name) as u32));
            assert_eq!(deepest(&module, &reached), 5_008 + 16 + 5_008, "{calls}");
        }
    }
}
