//! What a name stands for, in the scopes of a function and in the module.

use super::names::{FastMap, Name, Names};
use crate::ir::{FuncId, InstId, Special, Type, VarId};

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Symbol {
    /// A register, or the first of a range of them; a vector takes `vec` registers in a row.
    Reg {
        first: u32,
        ty: Type,
        vec: u8,
    },
    /// A variable of the module, or a `.shared`, `.global`, `.const` one of a function. `element` in bytes.
    Variable {
        var: VarId,
        element: u32,
    },
    /// A `.local` or `.param` variable of the function: bytes of its frame.
    Frame {
        offset: u32,
        /// Its declaration: index into the module's declarations.
        decl: u32,
        kind: FrameKind,
    },
    /// A parameter of a kernel: bytes of the launch's parameter buffer.
    Param {
        offset: u32,
        element: u32,
    },
    Function(FuncId),
    Label(InstId),
    /// Index into the module's prototypes.
    Prototype(u32),
    /// `.branchtargets` or `.calltargets`: range of the module's operands.
    Targets {
        calls: bool,
        start: u32,
        len: u32,
    },
}

/// What a variable in the frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    Local,
    /// `.param` of a call that this function makes.
    Argument,
    /// A formal parameter of this function.
    Input,
    /// A return parameter of this function.
    Output,
}

/// A declared name, or a declared range of names with the same prefix.
#[derive(Clone, Copy, Debug)]
struct Entry {
    first: u32,
    count: u32,
    depth: u32,
    symbol: Symbol,
}

/// The names of one function, by scope.
#[derive(Debug)]
pub(super) struct Scopes {
    /// Ranges of names, by prefix.
    ranges: FastMap<u32, Vec<Entry>>,
    /// Single names.
    singles: FastMap<Name, Vec<Entry>>,
    /// What was declared, in order, so that leaving a scope can take it back.
    log: Vec<Name>,
    /// Length of `log` at the start of each open scope.
    marks: Vec<usize>,
}

impl Scopes {
    pub(super) fn new() -> Self {
        Scopes {
            ranges: FastMap::default(),
            singles: FastMap::default(),
            log: Vec::new(),
            marks: vec![0],
        }
    }

    pub(super) fn open(&mut self) {
        self.marks.push(self.log.len());
    }

    pub(super) fn close(&mut self) {
        let mark = self.marks.pop().unwrap_or(0);
        for name in self.log.drain(mark..).rev() {
            if name.number == RANGE {
                if let Some(ranges) = self.ranges.get_mut(&name.prefix) {
                    ranges.pop();
                }
            } else if let Some(entries) = self.singles.get_mut(&name) {
                entries.pop();
                if entries.is_empty() {
                    self.singles.remove(&name);
                }
            }
        }
    }

    fn depth(&self) -> u32 {
        self.marks.len() as u32
    }

    /// Declares a name in the innermost scope; false if that scope has it already.
    pub(super) fn declare(&mut self, name: Name, symbol: Symbol) -> bool {
        let depth = self.depth();
        if let Some((_, at)) = self.lookup(name)
            && at == depth
        {
            return false;
        }
        self.singles.entry(name).or_default().push(Entry {
            first: name.number,
            count: 1,
            depth,
            symbol,
        });
        self.log.push(name);
        true
    }

    /// Declares registers `prefix` + `first` to `prefix` + (`first` + `count` - 1); false if one is there already.
    pub(super) fn declare_range(
        &mut self,
        prefix: u32,
        first: u32,
        count: u32,
        symbol: Symbol,
    ) -> bool {
        let depth = self.depth();
        let end = first.saturating_add(count);
        let ranges = self.ranges.entry(prefix).or_default();
        let clash = ranges
            .iter()
            .any(|e| e.depth == depth && e.first < end && first < e.first.saturating_add(e.count))
            || {
                let taken = |all: &Vec<Entry>| all.iter().any(|e| e.depth == depth);
                // By whichever is less: the names of the range, or the single names there are.
                if (count as usize) < self.singles.len() {
                    let mut names = (first..end).map(|number| Name { prefix, number });
                    names.any(|name| self.singles.get(&name).is_some_and(taken))
                } else {
                    let mut singles = self.singles.iter();
                    singles.any(|(n, all)| {
                        n.prefix == prefix && (first..end).contains(&n.number) && taken(all)
                    })
                }
            };
        if clash {
            return false;
        }
        ranges.push(Entry {
            first,
            count,
            depth,
            symbol,
        });
        self.log.push(Name {
            prefix,
            number: RANGE,
        });
        true
    }

    /// The innermost meaning of a name, and the depth at which it was declared.
    fn lookup(&self, name: Name) -> Option<(Symbol, u32)> {
        let ranged = self.ranges.get(&name.prefix).and_then(|ranges| {
            ranges
                .iter()
                .rev()
                .find(|e| name.number.wrapping_sub(e.first) < e.count)
                .map(|e| {
                    let symbol = match e.symbol {
                        Symbol::Reg { first, ty, vec } => Symbol::Reg {
                            first: first + (name.number - e.first) * u32::from(vec),
                            ty,
                            vec,
                        },
                        other => other,
                    };
                    (symbol, e.depth)
                })
        });
        if self.singles.is_empty() {
            return ranged;
        }
        let single = self
            .singles
            .get(&name)
            .and_then(|all| all.last())
            .map(|e| (e.symbol, e.depth));
        match (ranged, single) {
            (Some(a), Some(b)) => Some(if a.1 > b.1 { a } else { b }),
            (a, b) => a.or(b),
        }
    }

    /// The meaning of a name in the innermost scope itself.
    pub(super) fn innermost(&self, name: Name) -> Option<Symbol> {
        self.lookup(name)
            .filter(|(_, depth)| *depth == self.depth())
            .map(|(symbol, _)| symbol)
    }

    /// The meaning of a name as one of a range.
    pub(super) fn get_ranged(&self, name: Name) -> Option<Symbol> {
        let ranges = self.ranges.get(&name.prefix)?;
        let ranged = ranges
            .iter()
            .any(|e| name.number.wrapping_sub(e.first) < e.count);
        if ranged { self.get(name) } else { None }
    }

    /// The innermost meaning of a name.
    pub(super) fn get(&self, name: Name) -> Option<Symbol> {
        self.lookup(name).map(|(symbol, _)| symbol)
    }
}

/// The number that marks a range in the log: no name has it.
const RANGE: u32 = u32::MAX - 1;

/// A special register: its type, whether it has elements, and since when it is there (PTX version times ten, lowest
/// architecture).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SpecialReg {
    pub(super) register: Special,
    pub(super) ty: Type,
    pub(super) vector: bool,
    pub(super) ptx: u32,
    pub(super) sm: u32,
}

/// The special registers that occur in a module.
pub(super) fn specials(names: &Names) -> FastMap<Name, SpecialReg> {
    use Special::*;
    use Type::{Pred, U32, U64};
    let mut map = FastMap::default();
    let mut add = |text: &str, register: Special, ty: Type, vector: bool, (ptx, sm): (u32, u32)| {
        if let Some(name) = names.find(text.as_bytes()) {
            let special = SpecialReg {
                register,
                ty,
                vector,
                ptx,
                sm,
            };
            map.insert(name, special);
        }
    };
    for (text, register, since) in [
        ("%tid", Tid(0), (10, 0)),
        ("%ntid", Ntid(0), (10, 0)),
        ("%ctaid", Ctaid(0), (10, 0)),
        ("%nctaid", Nctaid(0), (10, 0)),
        ("%clusterid", Clusterid(0), (78, 90)),
        ("%nclusterid", Nclusterid(0), (78, 90)),
        ("%cluster_ctaid", ClusterCtaid(0), (78, 90)),
        ("%cluster_nctaid", ClusterNctaid(0), (78, 90)),
    ] {
        add(text, register, U32, true, since);
    }
    for (text, register, ty, since) in [
        ("%laneid", Laneid, U32, (13, 0)),
        ("%warpid", Warpid, U32, (13, 0)),
        ("%nwarpid", Nwarpid, U32, (20, 20)),
        ("%smid", Smid, U32, (13, 0)),
        ("%nsmid", Nsmid, U32, (20, 20)),
        ("%gridid", Gridid, U32, (10, 0)),
        ("%cluster_ctarank", ClusterCtarank, U32, (78, 90)),
        ("%cluster_nctarank", ClusterNctarank, U32, (78, 90)),
        ("%is_explicit_cluster", IsExplicitCluster, Pred, (78, 90)),
        ("%lanemask_eq", LanemaskEq, U32, (20, 20)),
        ("%lanemask_le", LanemaskLe, U32, (20, 20)),
        ("%lanemask_lt", LanemaskLt, U32, (20, 20)),
        ("%lanemask_ge", LanemaskGe, U32, (20, 20)),
        ("%lanemask_gt", LanemaskGt, U32, (20, 20)),
        ("%clock", Clock, U32, (10, 0)),
        ("%clock_hi", ClockHi, U32, (50, 20)),
        ("%clock64", Clock64, U64, (20, 20)),
        ("%globaltimer", Globaltimer, U64, (31, 30)),
        ("%globaltimer_lo", GlobaltimerLo, U32, (31, 30)),
        ("%globaltimer_hi", GlobaltimerHi, U32, (31, 30)),
        ("%total_smem_size", TotalSmemSize, U32, (41, 20)),
        ("%dynamic_smem_size", DynamicSmemSize, U32, (41, 20)),
        ("%aggr_smem_size", AggrSmemSize, U32, (81, 90)),
        (
            "%reserved_smem_offset_begin",
            ReservedSmemOffset(0),
            U32,
            (76, 80),
        ),
        (
            "%reserved_smem_offset_end",
            ReservedSmemOffset(1),
            U32,
            (76, 80),
        ),
        (
            "%reserved_smem_offset_cap",
            ReservedSmemOffset(2),
            U32,
            (76, 80),
        ),
        (
            "%reserved_smem_offset_0",
            ReservedSmemOffset(3),
            U32,
            (76, 80),
        ),
        (
            "%reserved_smem_offset_1",
            ReservedSmemOffset(4),
            U32,
            (76, 80),
        ),
        ("%current_graph_exec", CurrentGraphExec, U64, (80, 50)),
    ] {
        add(text, register, ty, false, since);
    }
    for i in 0..8 {
        add(
            &format!("%pm{i}"),
            Pm(i),
            U32,
            false,
            if i < 4 { (13, 0) } else { (30, 20) },
        );
        add(&format!("%pm{i}_64"), Pm64(i), U64, false, (40, 50));
    }
    for i in 0..32 {
        add(&format!("%envreg{i}"), Envreg(i), U32, false, (10, 0));
    }
    map
}

/// The special register's element `.x`, `.y` or `.z`; `None` is `.w`, which is 0.
pub(super) fn element(register: Special, element: u8) -> Option<Special> {
    use Special::*;
    if element > 2 {
        return None;
    }
    Some(match register {
        Tid(_) => Tid(element),
        Ntid(_) => Ntid(element),
        Ctaid(_) => Ctaid(element),
        Nctaid(_) => Nctaid(element),
        Clusterid(_) => Clusterid(element),
        Nclusterid(_) => Nclusterid(element),
        ClusterCtaid(_) => ClusterCtaid(element),
        ClusterNctaid(_) => ClusterNctaid(element),
        other => other,
    })
}
