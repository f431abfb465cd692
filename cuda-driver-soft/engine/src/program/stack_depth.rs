//! The local memory that a chain of calls needs.

use ptx::ir::{Body, Callee, FuncId, Module, Op};
use std::collections::HashMap;

/// Frames begin at multiples of this many bytes.
const FRAME_ALIGN: u64 = 16;

/// Returns the size in bytes of the frames of the deepest chain of calls from the first of `functions`, which are all
/// that it can reach. The size is a multiple of 8, as compilers report it. A recursive function counts once, because
/// its depth is known only when it runs. If several functions call each other in a cycle, the result can be less than
/// the longest chain: a function's depth is computed once, without the functions that are on the path at that time.
pub(crate) fn deepest(module: &Module, functions: &[FuncId]) -> u64 {
    let Some(&entry) = functions.first() else {
        return 0;
    };
    let body = |id: FuncId| -> Option<&Body> { module.functions.get(id.0 as usize)?.body() };
    // The direct callees of a function, and true if it may call all other functions.
    let callees = |id: FuncId| -> (Vec<FuncId>, bool) {
        let (mut found, mut any) = (Vec::new(), false);
        for inst in body(id).iter().flat_map(|b| &b.insts) {
            let Op::Call { callee, .. } = &inst.op else {
                continue;
            };
            match callee {
                Callee::Direct(id) => found.push(*id),
                Callee::Indirect { targets: Some(targets) } => found.extend(targets),
                // Any function whose address is taken may be the target, and `functions` has them all.
                Callee::Indirect { targets: None } => any = true,
            }
        }
        found.sort_unstable();
        found.dedup();
        (found, any)
    };
    // Depth first, without recursion, because a chain can be arbitrarily long. Functions on the current path have no
    // depth yet.
    let mut depths: HashMap<FuncId, Option<u64>> = HashMap::from([(entry, None)]);
    let mut path = vec![(entry, callees(entry), 0u64)];
    // All functions that may call all others take them from one list, so each function is taken once.
    let mut others = functions[1..].iter().copied();
    let mut largest = 0;
    while let Some((id, (rest, any), below)) = path.last_mut() {
        let next = rest.pop().or_else(|| if *any { others.next() } else { None });
        if let Some(next) = next {
            match depths.get(&next) {
                Some(known) => *below = (*below).max(known.unwrap_or(0)),
                None => {
                    depths.insert(next, None);
                    path.push((next, callees(next), 0));
                }
            }
            continue;
        }
        if *any {
            *below = (*below).max(largest);
        }
        let (size, align) = body(*id).map_or((0, 0), |b| (b.frame_size, b.frame_align));
        let (mut depth, id) = (u64::from(size), *id);
        if *below > 0 {
            depth = depth.next_multiple_of(FRAME_ALIGN).saturating_add(*below);
        }
        path.pop();
        let Some((_, _, below)) = path.last_mut() else {
            return depth.next_multiple_of(8);
        };
        // Aligning this frame may move its base up.
        let depth = depth.saturating_add(u64::from(align).saturating_sub(FRAME_ALIGN));
        *below = (*below).max(depth);
        largest = largest.max(depth);
        depths.insert(id, Some(depth));
    }
    0
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
}
