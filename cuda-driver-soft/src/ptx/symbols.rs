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
            || self.singles.iter().any(|(n, all)| {
                n.prefix == prefix
                    && (first..end).contains(&n.number)
                    && all.iter().any(|e| e.depth == depth)
            });
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

/// A special register: its type and how many elements it has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SpecialReg {
    pub(super) register: Special,
    pub(super) ty: Type,
    pub(super) vector: bool,
}

/// The special registers that occur in a module.
pub(super) fn specials(names: &Names) -> FastMap<Name, SpecialReg> {
    use Special::*;
    let mut map = FastMap::default();
    let mut add = |text: &str, register: Special, ty: Type, vector: bool| {
        if let Some(name) = names.find(text.as_bytes()) {
            map.insert(
                name,
                SpecialReg {
                    register,
                    ty,
                    vector,
                },
            );
        }
    };
    for (text, register) in [
        ("%tid", Tid(0)),
        ("%ntid", Ntid(0)),
        ("%ctaid", Ctaid(0)),
        ("%nctaid", Nctaid(0)),
        ("%clusterid", Clusterid(0)),
        ("%nclusterid", Nclusterid(0)),
        ("%cluster_ctaid", ClusterCtaid(0)),
        ("%cluster_nctaid", ClusterNctaid(0)),
    ] {
        add(text, register, Type::U32, true);
    }
    for (text, register) in [
        ("%laneid", Laneid),
        ("%warpid", Warpid),
        ("%nwarpid", Nwarpid),
        ("%smid", Smid),
        ("%nsmid", Nsmid),
        ("%gridid", Gridid),
        ("%cluster_ctarank", ClusterCtarank),
        ("%cluster_nctarank", ClusterNctarank),
        ("%lanemask_eq", LanemaskEq),
        ("%lanemask_le", LanemaskLe),
        ("%lanemask_lt", LanemaskLt),
        ("%lanemask_ge", LanemaskGe),
        ("%lanemask_gt", LanemaskGt),
        ("%clock", Clock),
        ("%clock_hi", ClockHi),
        ("%globaltimer_lo", GlobaltimerLo),
        ("%globaltimer_hi", GlobaltimerHi),
        ("%total_smem_size", TotalSmemSize),
        ("%aggr_smem_size", AggrSmemSize),
        ("%dynamic_smem_size", DynamicSmemSize),
        ("%reserved_smem_offset_begin", ReservedSmemOffset(0)),
        ("%reserved_smem_offset_end", ReservedSmemOffset(1)),
        ("%reserved_smem_offset_cap", ReservedSmemOffset(2)),
        ("%reserved_smem_offset_0", ReservedSmemOffset(3)),
        ("%reserved_smem_offset_1", ReservedSmemOffset(4)),
    ] {
        add(text, register, Type::U32, false);
    }
    add("%is_explicit_cluster", IsExplicitCluster, Type::Pred, false);
    for (text, register) in [
        ("%clock64", Clock64),
        ("%globaltimer", Globaltimer),
        ("%current_graph_exec", CurrentGraphExec),
    ] {
        add(text, register, Type::U64, false);
    }
    for i in 0..8 {
        add(&format!("%pm{i}"), Pm(i), Type::U32, false);
        add(&format!("%pm{i}_64"), Pm64(i), Type::U64, false);
    }
    for i in 0..32 {
        add(&format!("%envreg{i}"), Envreg(i), Type::U32, false);
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
