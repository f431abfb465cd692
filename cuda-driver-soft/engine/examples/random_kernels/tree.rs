//! Random kernels as trees, which are easy to shrink.
//!
//! A kernel has no data races: a thread writes only its own part of the output and of shared memory, reads the parts of
//! other threads only after a barrier, and updates common counters with operations whose order does not matter. Only
//! [`Statement::Ordered`] depends on the order of threads. Barriers and collectives are only at places that all threads
//! of a block reach.

/// Number of variables of each type.
pub(crate) const VARIABLES: u8 = 5;

/// The type of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `%p`, predicates.
    Pred,
    /// `%h`, 16 bits.
    Half,
    /// `%r`, integers of 32 bits.
    Word,
    /// `%d`, integers of 64 bits.
    Long,
    /// `%f`, `.f32`.
    Single,
    /// `%g`, `.f64`.
    Double,
}

/// All types of variables.
pub(crate) const KINDS: [Kind; 6] = [
    Kind::Pred,
    Kind::Half,
    Kind::Word,
    Kind::Long,
    Kind::Single,
    Kind::Double,
];

impl Kind {
    /// Returns the prefix of the registers' names.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Kind::Pred => "%p",
            Kind::Half => "%h",
            Kind::Word => "%r",
            Kind::Long => "%d",
            Kind::Single => "%f",
            Kind::Double => "%g",
        }
    }

    /// Returns the type of the registers in PTX.
    pub(crate) fn bits(self) -> &'static str {
        match self {
            Kind::Pred => "pred",
            Kind::Half => "b16",
            Kind::Word => "b32",
            Kind::Long => "b64",
            Kind::Single => "f32",
            Kind::Double => "f64",
        }
    }

    /// Returns the types that loads and stores of variables of this type can have.
    pub(crate) fn stored(self) -> &'static [Stored] {
        match self {
            Kind::Pred => &[],
            Kind::Half => &[("b16", 2), ("u8", 1), ("s8", 1), ("b16", 2)],
            Kind::Word => &[("b32", 4), ("b32", 4), ("u8", 1), ("s8", 1), ("u16", 2), ("s16", 2)],
            Kind::Long => &[("b64", 8), ("b64", 8), ("u32", 4), ("s32", 4), ("s16", 2), ("u8", 1)],
            Kind::Single => &[("f32", 4)],
            Kind::Double => &[("f64", 8)],
        }
    }

    /// Returns the size in bytes. Predicates are never in memory; their size is not used.
    pub(crate) fn size(self) -> u32 {
        match self {
            Kind::Pred | Kind::Half => 2,
            Kind::Word | Kind::Single => 4,
            Kind::Long | Kind::Double => 8,
        }
    }
}

/// The type of a load or store, and its size in bytes.
pub(crate) type Stored = (&'static str, u32);

/// Elements in memory that one instruction loads or stores. They belong to variables with consecutive numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Elements {
    /// The variable of the first element.
    pub(crate) first: Var,
    pub(crate) stored: Stored,
    /// Number of elements.
    pub(crate) count: u8,
}

impl Elements {
    /// Returns the size of all elements in bytes.
    pub(crate) fn bytes(self) -> u32 {
        self.stored.1 * u32::from(self.count)
    }
}

/// The order of the threads to which the cells of a table belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Forward,
    Backward,
    /// Forward, but each four neighbours in reverse order.
    Swapped,
}

/// A variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Var {
    pub(crate) kind: Kind,
    pub(crate) number: u8,
}

/// A source operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    Var(Var),
    /// An immediate, with the bits of its type.
    Bits(Kind, u64),
    /// A 32-bit property of the thread: an index into [`SPECIALS`].
    Special(u8),
}

/// 32-bit properties of the thread. The last three are in registers that the kernel declares: the thread's number in
/// the grid, its number in its block, and the parameter `len`.
pub(crate) const SPECIALS: [&str; 8] = [
    "%tid.x", "%tid.y", "%ctaid.x", "%ntid.x", "%laneid", "%gid", "%lin", "%len",
];

/// The element that an instruction accesses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Index {
    /// The thread's number in the grid, times a factor, plus a number.
    Thread { factor: u8, plus: u8 },
    /// The same element for all threads.
    Same(u8),
    /// Any element: a variable, made valid by a mask.
    Any(u8),
    /// The result of a formula over thread numbers. An invalid index skips an access to global memory. Programs compute
    /// most indexes like this.
    Formula(Formula),
    /// A thread number that is limited with minima and maxima, as at the edges of an image.
    Limited(Limited),
}

/// A thread number minus a number, limited with minima and maxima.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limited {
    /// An index into [`SPECIALS`].
    pub(crate) start: u8,
    pub(crate) minus: u8,
    /// An index into [`LIMITS`].
    pub(crate) limits: u8,
    /// The least result.
    pub(crate) least: u8,
    /// The distance of the greatest result from the least one.
    pub(crate) span: u8,
}

/// Instructions that limit `%t0`. `L` and `M` stand for the least and the greatest result, and `%len` is less than the
/// number of elements.
pub(crate) const LIMITS: [&str; 5] = [
    "max.s32 %t1, %t0, L; min.s32 %i, %t1, M;",
    "min.s32 %t1, M, %t0; max.s32 %i, L, %t1;",
    "min.u32 %i, %t0, M;",
    "max.s32 %t1, %t0, L; min.u32 %i, %t1, %len;",
    "cvt.s64.s32 %off, %t0; max.s64 %off, %off, L; min.s64 %off, %off, M; cvt.u32.u64 %i, %off;",
];

/// A formula over thread numbers and loop counters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Formula {
    /// An index into [`SPECIALS`].
    pub(crate) start: u8,
    pub(crate) terms: [Term; 3],
    /// True if a branch skips the access for invalid indexes; otherwise a guard does.
    pub(crate) branch: bool,
}

/// A step of a formula: an index into [`FORMULA_OPERATIONS`], and its second operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Term {
    pub(crate) op: u8,
    pub(crate) with: With,
}

/// The second operand of a step of a formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum With {
    /// An index into [`SPECIALS`].
    Special(u8),
    Number(u8),
    /// The counter of the innermost loop, or 0.
    Counter,
}

/// The operations of formulas. They have two operands, except `mad`: its `+` stands for a third one, the thread's
/// number in its block.
pub(crate) const FORMULA_OPERATIONS: [&str; 16] = [
    "add.u32",
    "add.u32",
    "sub.u32",
    "mul.lo.u32",
    "mul.lo.u32",
    "shl.b32",
    "shr.u32",
    "shr.s32",
    "and.b32",
    "or.b32",
    "xor.b32",
    "min.s32",
    "max.s32",
    "rem.u32",
    "div.u32",
    "mad.lo.u32+",
];

/// A condition of a branch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Condition {
    /// A bit of the block's number is 0: the same in all threads of a block.
    Block { bit: u8 },
    /// The thread's number in its block is less than a number.
    FirstThreads(u8),
    /// A predicate.
    Var { number: u8, negated: bool },
}

/// The number of rounds of a loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rounds {
    /// The same number in all threads.
    Fixed(u8),
    /// The low three bits of a variable, plus one: differs from thread to thread.
    Var(u8),
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Statement {
    /// An instruction that computes; `op` is an index into [`OPERATIONS`](super::operations::OPERATIONS).
    Compute {
        op: usize,
        to: Vec<Var>,
        from: Vec<Value>,
        guard: Option<(u8, bool)>,
    },
    /// A load from the input, which is only read. The distance of elements is a power of two, at least their size.
    LoadInput {
        to: Elements,
        distance: u32,
        index: Index,
        guard: Option<(u8, bool)>,
    },
    /// Three loads from the input. After the first one, the address moves by a number of elements if a bit of the
    /// block's number is 0.
    Walk {
        to: Elements,
        index: Index,
        bit: u8,
        by: u8,
    },
    /// A store to the thread's part of the output, at one of [`SLOTS`] places.
    Store {
        from: Elements,
        slot: u8,
        guard: Option<(u8, bool)>,
    },
    /// A load from the thread's part of the output.
    Load { to: Elements, slot: u8 },
    /// A store to the thread's cell in a table of the output whose cells have the size of the access.
    StoreCell {
        from: Elements,
        order: Order,
        guard: Option<(u8, bool)>,
    },
    /// A load from such a cell.
    LoadCell {
        to: Elements,
        order: Order,
        guard: Option<(u8, bool)>,
    },
    /// A store to such a cell in shared memory, and a load from it. With `wide` the address has 64 bits.
    SharedCell { from: Elements, to: u8, wide: bool },
    /// A store to local memory and a load from it. With `index` the place depends on a variable.
    Local {
        from: Elements,
        to: Elements,
        slot: u8,
        index: Option<u8>,
    },
    /// Updates a counter in global memory, without a result.
    Count { op: u8, from: u8, counter: Index },
    /// An access to a counter in global memory whose result depends on the order of threads.
    Ordered { op: u8, from: u8, to: u8, counter: Index },
    /// Updates a counter in shared memory, whose value all threads read after a barrier.
    CountShared { op: u8, from: u8, to: u8 },
    /// Stores to the thread's place in shared memory, waits, reads another thread's place, and waits. The index is
    /// taken modulo the number of places.
    Exchange { from: Var, to: Var, index: Index },
    /// A shuffle. `by` is the second operand, or if `variable` is true the number of the variable with it; `clamp`
    /// selects the third operand.
    Shuffle {
        mode: u8,
        from: u8,
        to: u8,
        by: u8,
        variable: bool,
        clamp: u8,
    },
    /// A vote, match, reduction, election or barrier of the warp, a read of its active mask, or a reduction over the
    /// block.
    Vote { mode: u8, from: u8, to: u8 },
    /// A call of a small function.
    Call { function: u8, from: u8, to: u8 },
    /// A branch.
    If {
        condition: Condition,
        then: Vec<Statement>,
        other: Vec<Statement>,
    },
    /// A loop. With `leave`, threads for which the predicate is true leave after a round.
    Loop {
        rounds: Rounds,
        leave: Option<u8>,
        body: Vec<Statement>,
    },
    /// A jump through a table, by the low two bits of a variable.
    Switch { on: u8, cases: Vec<Vec<Statement>> },
    /// A load that may be outside of the input.
    Wild { to: u8, index: u8 },
}

/// Number of places of 16 bytes in a thread's part of the output, and in its local memory.
pub(crate) const SLOTS: u8 = 4;

/// A kernel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kernel {
    pub(crate) grid: u32,
    pub(crate) block: [u32; 2],
    /// True if threads past the length of the data return first.
    pub(crate) guarded: bool,
    pub(crate) body: Vec<Statement>,
    /// The variables whose values are written to the output at the end.
    pub(crate) results: Vec<Var>,
}

impl Kernel {
    /// Returns the number of threads of a block.
    pub(crate) fn block_threads(&self) -> u32 {
        self.block[0] * self.block[1]
    }

    /// Returns the number of threads.
    pub(crate) fn threads(&self) -> u32 {
        self.grid * self.block_threads()
    }

    /// Returns the number of statements.
    pub(crate) fn size(&self) -> usize {
        size(&self.body)
    }
}

fn size(statements: &[Statement]) -> usize {
    let inside = |statement: &Statement| match statement {
        Statement::If { then, other, .. } => size(then) + size(other),
        Statement::Loop { body, .. } => size(body),
        Statement::Switch { cases, .. } => cases.iter().map(|c| size(c)).sum(),
        _ => 0,
    };
    statements.iter().map(|s| 1 + inside(s)).sum()
}
