//! Makes random kernels: the same kernel for the same seed, on every machine.

use super::operations::{OPERATIONS, kind_of};
use super::tree::{
    Condition, Elements, FORMULA_OPERATIONS, Formula, Index, KINDS, Kernel, Kind, LIMITS, Limited, Order, Rounds,
    SLOTS, SPECIALS, Statement, Term, VARIABLES, Value, Var, With,
};

/// A generator of random numbers (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Returns a number below `n`.
    fn below(&mut self, n: usize) -> usize {
        (self.bits() >> 33) as usize % n
    }

    fn small(&mut self, n: u8) -> u8 {
        self.below(usize::from(n)) as u8
    }

    /// Returns true in one of `n` calls on average.
    fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Sizes of blocks. All but the last three consist of whole warps.
const BLOCKS: [[u32; 2]; 12] = [
    [32, 1],
    [64, 1],
    [96, 1],
    [128, 1],
    [16, 4],
    [32, 2],
    [8, 8],
    [48, 2],
    [1, 32],
    [33, 1],
    [50, 1],
    [20, 3],
];

/// Returns the kernel with this seed.
pub(crate) fn kernel(seed: u64) -> Kernel {
    let mut random = Random::new(seed);
    let block = random.pick(&BLOCKS);
    let guarded = random.once_in(4);
    let mut generator = Generator {
        // In a warp with missing lanes, `.sync` instructions must not name all lanes.
        collectives: (block[0] * block[1]).is_multiple_of(32),
        wild: random.once_in(4),
        ordered: random.once_in(4),
        hides: random.once_in(2),
        last: None,
        left: 10 + random.below(50),
        random,
    };
    let mut body = generator.edges();
    body.extend(generator.statements(0, !guarded));
    Kernel {
        grid: 1 + generator.random.below(4) as u32,
        block,
        guarded,
        body,
        results: generator.results(),
    }
}

struct Generator {
    random: Random,
    collectives: bool,
    /// True if the kernel may have instructions whose results depend on the order of threads.
    ordered: bool,
    /// True if the kernel may read outside of its input.
    wild: bool,
    /// True if no statement stores floating-point variables, and only some variables are results: the bits of a NaN in
    /// the others need not be the same in all engines.
    hides: bool,
    /// The last variable that was computed, which the next instruction often reads.
    last: Option<Var>,
    /// Number of statements that may still be made.
    left: usize,
}

impl Generator {
    /// Makes statements. `together` is true if all threads of the block come here, the same number of times.
    fn statements(&mut self, depth: usize, together: bool) -> Vec<Statement> {
        let count = if depth == 0 {
            self.left
        } else {
            1 + self.random.below(8)
        };
        let mut made = Vec::new();
        for _ in 0..count {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            made.push(self.statement(depth, together));
        }
        made
    }

    /// Makes the beginning of some kernels: up to three loads from the input, most of them at limited indexes. Compiled
    /// code assumes that limits do not apply; only before the first effect can it begin again without this assumption.
    fn edges(&mut self) -> Vec<Statement> {
        let count = self.random.below(2) * self.random.below(4);
        let mut made = Vec::new();
        for _ in 0..count {
            let load = if self.random.once_in(3) {
                self.walk()
            } else {
                let index = Index::Limited(self.limited());
                self.load_input(index)
            };
            made.push(match self.random.below(4) {
                0 => Statement::If {
                    condition: Condition::FirstThreads(self.random.small(130)),
                    then: vec![load],
                    other: Vec::new(),
                },
                1 => Statement::Loop {
                    rounds: Rounds::Fixed(1 + self.random.small(3)),
                    leave: self.random.once_in(3).then(|| self.number()),
                    body: vec![load, self.compute()],
                },
                _ => load,
            });
        }
        made
    }

    fn load_input(&mut self, index: Index) -> Statement {
        let to = self.elements();
        Statement::LoadInput {
            to,
            distance: to.bytes().max(1 << self.random.below(5)),
            index,
            guard: self.guard(),
        }
    }

    fn walk(&mut self) -> Statement {
        Statement::Walk {
            to: self.elements(),
            index: self.index(),
            bit: self.random.small(2),
            by: self.random.small(4),
        }
    }

    fn limited(&mut self) -> Limited {
        Limited {
            start: self.random.small(SPECIALS.len() as u8),
            minus: self.random.small(40),
            limits: self.random.small(LIMITS.len() as u8),
            least: self.random.small(70),
            span: self.random.small(255),
        }
    }

    fn statement(&mut self, depth: usize, together: bool) -> Statement {
        let nests = depth < 4;
        match self.random.below(40) {
            0..=3 if nests => self.branch(depth, together),
            4..=6 if nests => self.repeat(depth, together),
            7 if nests && self.random.once_in(2) => Statement::Switch {
                on: self.number(),
                cases: (0..4).map(|_| self.statements(depth + 1, false)).collect(),
            },
            8 | 9 => {
                let index = self.index();
                self.load_input(index)
            }
            10 => self.walk(),
            11 => Statement::Store {
                from: self.stored_elements(),
                slot: self.random.small(SLOTS),
                guard: self.guard(),
            },
            12 => Statement::StoreCell {
                from: self.stored_elements(),
                order: self.order(),
                guard: self.guard(),
            },
            13 => match self.random.below(3) {
                0 => Statement::Load {
                    to: self.elements(),
                    slot: self.random.small(SLOTS),
                },
                1 => Statement::LoadCell {
                    to: self.elements(),
                    order: self.order(),
                    guard: self.guard(),
                },
                _ => Statement::SharedCell {
                    from: self.stored_elements(),
                    to: self.number(),
                    wide: self.random.once_in(2),
                },
            },
            14 if !self.ordered => Statement::Local {
                from: self.stored_elements(),
                to: self.elements(),
                slot: self.random.small(SLOTS),
                index: self.random.once_in(2).then(|| self.number()),
            },
            14 | 15 if self.ordered => Statement::Ordered {
                op: self.random.small(8),
                from: self.number(),
                to: self.number(),
                counter: self.index(),
            },
            15 => Statement::Count {
                op: self.random.small(6),
                from: self.number(),
                counter: self.index(),
            },
            16..=17 if together => {
                let from = self.stored_variable();
                Statement::Exchange {
                    from,
                    to: self.of_kind(from.kind),
                    index: self.index(),
                }
            }
            18 if together && self.random.once_in(2) => Statement::CountShared {
                op: self.random.small(6),
                from: self.number(),
                to: self.number(),
            },
            18 | 19 if together && self.collectives => Statement::Shuffle {
                mode: self.random.small(4),
                from: self.number(),
                to: self.number(),
                by: self.random.small(32),
                variable: self.random.once_in(4),
                clamp: self.random.small(8),
            },
            20 if together && self.collectives => Statement::Vote {
                mode: self.random.small(16),
                from: self.number(),
                to: self.number(),
            },
            21 => Statement::Call {
                function: self.random.small(2),
                from: self.number(),
                to: self.number(),
            },
            22 if self.wild => Statement::Wild {
                to: self.number(),
                index: self.number(),
            },
            _ => self.compute(),
        }
    }

    fn compute(&mut self) -> Statement {
        let is_float = |op: usize| OPERATIONS[op].1.to_ascii_lowercase().contains(['f', 'g']);
        let mut op = self.random.below(OPERATIONS.len());
        while self.hides && !is_float(op) && !self.random.once_in(3) {
            op = self.random.below(OPERATIONS.len());
        }
        let (to, from) = OPERATIONS[op].1.split_once(':').unwrap_or_default();
        let from = from
            .bytes()
            .enumerate()
            .map(|(at, letter)| self.value(at, letter))
            .collect();
        let to: Vec<Var> = to.bytes().map(|letter| self.of_kind(kind_of(letter).0)).collect();
        self.last = to.first().copied().or(self.last);
        Statement::Compute {
            op,
            to,
            from,
            guard: self.guard(),
        }
    }

    fn value(&mut self, at: usize, letter: u8) -> Value {
        let (kind, small) = kind_of(letter);
        // Predicates and operands with capital letters are never constants, and first operands rarely are.
        let constant = kind != Kind::Pred && letter.is_ascii_lowercase();
        if !constant || (at == 0 && !self.random.once_in(8)) || !self.random.once_in(3) {
            return match kind {
                Kind::Word if self.random.once_in(4) => Value::Special(self.random.small(SPECIALS.len() as u8)),
                _ => Value::Var(match self.last {
                    Some(last) if last.kind == kind && self.random.once_in(2) => last,
                    _ => self.of_kind(kind),
                }),
            };
        }
        let mut bits = self.random.bits();
        if small {
            return Value::Bits(kind, bits % 36);
        }
        // Most numbers in programs are small.
        if matches!(kind, Kind::Half | Kind::Word | Kind::Long) && !self.random.once_in(4) {
            bits %= 65;
        } else if self.random.once_in(3) && matches!(kind, Kind::Single | Kind::Double) {
            let number = (bits % 33) as f64 / 4.0 - 4.0;
            bits = match kind {
                Kind::Single => u64::from((number as f32).to_bits()),
                _ => number.to_bits(),
            };
        }
        Value::Bits(kind, bits & u64::MAX >> (64 - 8 * kind.size()))
    }

    fn branch(&mut self, depth: usize, together: bool) -> Statement {
        let condition = match self.random.below(4) {
            0 => Condition::Block {
                bit: self.random.small(2),
            },
            1 => Condition::FirstThreads(self.random.small(130)),
            _ => Condition::Var {
                number: self.number(),
                negated: self.random.once_in(2),
            },
        };
        let together = together && matches!(condition, Condition::Block { .. });
        Statement::If {
            condition,
            then: self.statements(depth + 1, together),
            other: if self.random.once_in(2) {
                self.statements(depth + 1, together)
            } else {
                Vec::new()
            },
        }
    }

    fn repeat(&mut self, depth: usize, together: bool) -> Statement {
        let rounds = if self.random.once_in(3) {
            Rounds::Var(self.number())
        } else {
            Rounds::Fixed(1 + self.random.small(6))
        };
        let leave = self.random.once_in(4).then(|| self.number());
        let together = together && leave.is_none() && matches!(rounds, Rounds::Fixed(_));
        Statement::Loop {
            rounds,
            leave,
            body: self.statements(depth + 1, together),
        }
    }

    fn index(&mut self) -> Index {
        match self.random.below(7) {
            6 => Index::Limited(self.limited()),
            0 | 1 => Index::Thread {
                factor: self.random.pick(&[1, 1, 1, 2, 3]),
                plus: self.random.small(16),
            },
            2 => Index::Same(self.random.small(200)),
            3 | 4 => Index::Formula(Formula {
                start: self.random.small(SPECIALS.len() as u8),
                terms: [(); 3].map(|()| self.term()),
                branch: self.random.once_in(2),
            }),
            _ => Index::Any(self.number()),
        }
    }

    fn term(&mut self) -> Term {
        Term {
            op: self.random.small(FORMULA_OPERATIONS.len() as u8),
            with: match self.random.below(4) {
                0 => With::Special(self.random.small(SPECIALS.len() as u8)),
                1 => With::Counter,
                _ => With::Number(self.random.small(20)),
            },
        }
    }

    /// Returns the variables whose values the kernel writes at the end.
    fn results(&mut self) -> Vec<Var> {
        let variables = KINDS
            .iter()
            .flat_map(|kind| (0..VARIABLES).map(|number| Var { kind: *kind, number }));
        let mut wanted = |var: &Var| match var.kind {
            _ if !self.hides => true,
            Kind::Single => self.random.once_in(8),
            _ => self.random.once_in(2),
        };
        variables.filter(|var| wanted(var)).collect()
    }

    fn guard(&mut self) -> Option<(u8, bool)> {
        let guarded = self.random.once_in(6);
        guarded.then(|| (self.number(), self.random.once_in(2)))
    }

    fn number(&mut self) -> u8 {
        self.random.small(VARIABLES)
    }

    fn of_kind(&mut self, kind: Kind) -> Var {
        Var {
            kind,
            number: self.number(),
        }
    }

    fn order(&mut self) -> Order {
        self.random.pick(&[Order::Forward, Order::Backward, Order::Swapped])
    }

    fn elements(&mut self) -> Elements {
        let first = self.memory_variable();
        self.elements_from(first)
    }

    fn stored_elements(&mut self) -> Elements {
        let first = self.stored_variable();
        self.elements_from(first)
    }

    fn elements_from(&mut self, first: Var) -> Elements {
        let stored = self.random.pick(first.kind.stored());
        let count = self.random.pick(&[1, 1, 1, 2, 4]);
        let most = (16 / stored.1) as u8;
        Elements {
            first,
            stored,
            count: count.min(most),
        }
    }

    /// Returns a variable whose value a statement stores.
    fn stored_variable(&mut self) -> Var {
        let var = self.memory_variable();
        match var.kind {
            Kind::Single | Kind::Double if self.hides => Var {
                kind: Kind::Word,
                ..var
            },
            _ => var,
        }
    }

    fn memory_variable(&mut self) -> Var {
        let kind = KINDS[1 + self.random.below(KINDS.len() - 1)];
        self.of_kind(kind)
    }
}
