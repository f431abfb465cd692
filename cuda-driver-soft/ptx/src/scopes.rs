//! Symbols: the meaning of names, and the scopes of a function in which they are declared.

use crate::hash::NumberMap;
use crate::ir::{FuncId, InstId, Type, VarId};
use crate::names::Name;

/// The meaning of a name.
// `repr(u32)` makes copies faster. Symbols are copied for each operand. With a one-byte tag, several small stores would
// write the bytes that the copy then reads with one wide load, and the processor cannot forward such stores to the
// load.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Symbol {
    /// A register, or a range of registers.
    Reg {
        /// The first register.
        first: u32,
        ty: Type,
        /// Number of elements. A vector takes as many consecutive registers.
        vec: u8,
    },
    /// A variable of the module, or a `.shared`, `.global`, `.const` or `.tex` variable of a function.
    Variable {
        var: VarId,
        /// Bytes of an element.
        element: u32,
    },
    /// A `.local` or `.param` variable of the function.
    Frame {
        /// Offset in the frame, in bytes.
        offset: u32,
        /// Index of the declaration in `Ast::vars`.
        decl: u32,
        kind: FrameKind,
    },
    /// A parameter of a kernel.
    Param {
        /// Offset in the parameter buffer, in bytes.
        offset: u32,
        /// Index of the declaration in `Ast::vars`.
        decl: u32,
    },
    Function(FuncId),
    Label(InstId),
    /// A `.callprototype`: index into `Ast::prototypes`.
    Prototype(u32),
    /// `.branchtargets` or `.calltargets`: a range of `Ast::operands`.
    Targets {
        /// True for `.calltargets`.
        calls: bool,
        start: u32,
        len: u32,
    },
}

/// The kind of a variable in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// A `.local` variable.
    Local,
    /// A `.param` variable for a call in this function.
    Argument,
    /// A formal parameter of this function.
    Input,
    /// A return parameter of this function.
    Output,
}

/// A declared name, or a declared range of names with the same prefix.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Number of names: 1, or those of a range, which begin with number 0.
    count: u32,
    /// Distance between the registers, offsets or variables of neighbouring names of a range.
    step: u32,
    depth: u32,
    /// The symbol of the first name.
    symbol: Symbol,
}

impl Entry {
    /// Returns the symbol of the name of a range that has this number.
    fn symbol_of(&self, number: u32) -> Symbol {
        let distance = number * self.step;
        match self.symbol {
            Symbol::Reg { first, ty, vec } => Symbol::Reg {
                first: first + distance,
                ty,
                vec,
            },
            Symbol::Frame { offset, decl, kind } => Symbol::Frame {
                offset: offset + distance,
                decl,
                kind,
            },
            Symbol::Variable { var, element } => Symbol::Variable {
                var: VarId(var.0 + distance),
                element,
            },
            other => other,
        }
    }
}

/// The names of one function by scope.
#[derive(Debug)]
pub(crate) struct Scopes {
    /// Ranges of names by prefix.
    ranges: NumberMap<u32, Vec<Entry>>,
    /// Single names.
    singles: NumberMap<Name, Vec<Entry>>,
    /// For the prefix of single names with a number: the depths of the scopes that declare some, each with the lowest
    /// number.
    lowest: NumberMap<u32, Vec<(u32, u32)>>,
    /// The declarations in order, which are removed when their scope is closed.
    log: Vec<Name>,
    /// Length of `log` at the start of each open scope.
    marks: Vec<usize>,
}

impl Scopes {
    pub(crate) fn new() -> Self {
        Scopes {
            ranges: NumberMap::default(),
            singles: NumberMap::default(),
            lowest: NumberMap::default(),
            log: Vec::new(),
            marks: vec![0],
        }
    }

    /// Opens a scope in the current one.
    pub(crate) fn open(&mut self) {
        self.marks.push(self.log.len());
    }

    /// Closes the current scope and removes its declarations.
    pub(crate) fn close(&mut self) {
        let depth = self.depth();
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
                if let Some(lowest) = self.lowest.get_mut(&name.prefix) {
                    lowest.pop_if(|(at, _)| *at == depth);
                }
            }
        }
    }

    fn depth(&self) -> u32 {
        self.marks.len() as u32
    }

    /// Declares a name in the current scope. Returns false if that scope already has it.
    pub(crate) fn declare(&mut self, name: Name, symbol: Symbol) -> bool {
        let depth = self.depth();
        if let Some((_, at)) = self.lookup(name)
            && at == depth
        {
            return false;
        }
        self.singles.entry(name).or_default().push(Entry {
            count: 1,
            step: 0,
            depth,
            symbol,
        });
        if name.number != Name::PLAIN {
            let lowest = self.lowest.entry(name.prefix).or_default();
            match lowest.last_mut() {
                Some((at, number)) if *at == depth => *number = name.number.min(*number),
                _ => lowest.push((depth, name.number)),
            }
        }
        self.log.push(name);
        true
    }

    /// Declares the names with a prefix and the numbers below `count` in the current scope. The first one means
    /// `symbol`; the registers, offsets or variables of the others follow at distances of `step`. Returns false if that
    /// scope already has one of them.
    pub(crate) fn declare_range(&mut self, prefix: u32, count: u32, symbol: Symbol, step: u32) -> bool {
        if count == 0 {
            // An empty range declares nothing.
            return true;
        }
        let depth = self.depth();
        let ranges = self.ranges.entry(prefix).or_default();
        let lowest = self.lowest.get(&prefix).and_then(|lowest| lowest.last());
        let clash = ranges.last().is_some_and(|range| range.depth == depth)
            || lowest.is_some_and(|(at, number)| *at == depth && *number < count);
        if clash {
            return false;
        }
        ranges.push(Entry {
            count,
            step,
            depth,
            symbol,
        });
        self.log.push(Name { prefix, number: RANGE });
        true
    }

    /// Returns the meaning of a name in the innermost scope that has it, and the depth of that scope.
    fn lookup(&self, name: Name) -> Option<(Symbol, u32)> {
        let ranged = self.ranges.get(&name.prefix).and_then(|ranges| {
            ranges
                .iter()
                .rev()
                .find(|e| name.number < e.count)
                .map(|e| (e.symbol_of(name.number), e.depth))
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

    /// Returns the meaning of a name if the current scope declares it.
    pub(crate) fn innermost(&self, name: Name) -> Option<Symbol> {
        self.lookup(name)
            .filter(|(_, depth)| *depth == self.depth())
            .map(|(symbol, _)| symbol)
    }

    /// Returns the meaning of a name if it is in a declared range.
    pub(crate) fn get_ranged(&self, name: Name) -> Option<Symbol> {
        let ranges = self.ranges.get(&name.prefix)?;
        let ranged = ranges.iter().any(|e| name.number < e.count);
        if ranged { self.get(name) } else { None }
    }

    /// Returns the meaning of a name in the innermost scope that has it.
    pub(crate) fn get(&self, name: Name) -> Option<Symbol> {
        self.lookup(name).map(|(symbol, _)| symbol)
    }
}

/// The number that marks a range in the log. No name has it.
const RANGE: u32 = u32::MAX - 1;
