//! Writes random kernels as PTX.

use super::operations::OPERATIONS;
use super::tree::{
    Condition, Elements, FORMULA_OPERATIONS, Formula, Index, KINDS, Kernel, Kind, LIMITS, Limited, Order, Rounds,
    SLOTS, SPECIALS, Statement, Term, VARIABLES, Value, Var, With,
};
use std::fmt::Write;

/// Number of elements of 16 bytes in the input; a power of two.
pub(crate) const ELEMENTS: u32 = 1024;
/// Number of counters for each operation; a power of two.
pub(crate) const COUNTERS: u32 = 64;
/// The operations of counters. A counter has one operation: operations of one kind can run in any order, but the order
/// of different operations matters.
const ATOMICS: [&str; 6] = ["add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32"];
/// Instructions whose results depend on the order of threads. `T`, `F` and `A` stand for the numbers of the destination
/// and the source, and for the address.
const ORDERED: [&str; 8] = [
    "atom.global.add.u32 %rT, A, %rF;",
    "atom.global.exch.b32 %rT, A, %rF;",
    "atom.global.max.s32 %rT, A, %rF;",
    "atom.global.cas.b32 %rT, A, %rT, %rF;",
    "atom.global.add.f32 %fT, A, %fF;",
    "red.global.add.f32 A, %fF;",
    "ld.volatile.global.b32 %rT, A;",
    "st.volatile.global.b32 A, %rF;",
];
/// Size in bytes of the counters of all operations, and of those that the instructions in [`ORDERED`] share.
pub(crate) const COUNTER_BYTES: u64 = 4 * COUNTERS as u64 * (ATOMICS.len() as u64 + 1);

/// Size in bytes of the input: the elements, and the bytes past the last one that a thread may read.
pub(crate) const INPUT_BYTES: u64 = 16 * ELEMENTS as u64 + 256;

/// Returns the size in bytes of a kernel's output. Its tables are for three orders of threads and five sizes of cells.
pub(crate) fn output_bytes(kernel: &Kernel) -> u64 {
    u64::from(first_table(kernel)) + 3 * 5 * u64::from(table_bytes(kernel.threads()))
}

/// Returns the offset of the tables in the output.
fn first_table(kernel: &Kernel) -> u32 {
    kernel.threads() * (16 * u32::from(SLOTS) + u32::from(VARIABLES) * 32)
}

/// Returns the size in bytes of a table with cells of up to 16 bytes.
fn table_bytes(threads: u32) -> u32 {
    16 * threads.next_multiple_of(4)
}

/// Returns the PTX of a kernel named `k` with the parameters `in`, `out`, `counters` and `len`.
pub(crate) fn ptx(kernel: &Kernel) -> String {
    let mut text = Text {
        lines: String::new(),
        labels: 0,
        loops: 0,
        counter: None,
        threads: [kernel.threads(), kernel.block_threads()],
        tables: first_table(kernel),
    };
    text.kernel(kernel);
    text.lines
}

/// Returns the value of the parameter `len`: the number of threads that a guarded kernel runs to its end.
pub(crate) fn length(kernel: &Kernel) -> u32 {
    kernel.threads() - kernel.threads() / 5
}

/// An access to an element whose index may be invalid.
struct Access {
    /// The guard of the instruction.
    guard: String,
    /// The label after the instruction, if a branch skips it.
    end: Option<u32>,
}

struct Text {
    lines: String,
    labels: u32,
    loops: u32,
    /// The number of the innermost loop.
    counter: Option<u32>,
    /// Number of threads of the grid, and of a block.
    threads: [u32; 2],
    /// Offset of the tables in the output.
    tables: u32,
}

impl Text {
    fn line(&mut self, line: impl AsRef<str>) {
        let _ = writeln!(self.lines, "    {}", line.as_ref());
    }

    fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    fn place(&mut self, label: u32) {
        let _ = writeln!(self.lines, "L{label}:");
    }

    fn kernel(&mut self, kernel: &Kernel) {
        let threads = kernel.block_threads();
        let mut body = Text {
            lines: String::new(),
            labels: self.labels,
            loops: 0,
            counter: None,
            threads: self.threads,
            tables: self.tables,
        };
        body.statements(&kernel.body);
        self.lines.push_str(
            ".version 8.0\n.target sm_90\n.address_size 64\n
.func (.reg .b32 %to) mix(.reg .b32 %from)
{
    .reg .b32 %a;
    mul.lo.u32 %a, %from, 0x9e3779b9;
    shr.u32 %to, %a, 15;
    xor.b32 %to, %to, %a;
    ret;
}
.func (.param .b32 to) fold(.param .b32 from)
{
    .reg .b32 %a, %n; .reg .pred %p;
    ld.param.b32 %a, [from];
    mov.u32 %n, 0;
FOLD:
    shr.u32 %a, %a, 5;
    add.u32 %n, %n, 1;
    setp.ne.u32 %p, %a, 0;
    @%p bra FOLD;
    st.param.b32 [to], %n;
    ret;
}
",
        );
        let _ = writeln!(
            self.lines,
            ".visible .entry k(.param .u64 in, .param .u64 out, .param .u64 counters, .param .u32 len)\n{{"
        );
        for kind in KINDS {
            self.line(format!(".reg .{} {}<{VARIABLES}>;", kind.bits(), kind.prefix()));
        }
        self.line(".reg .b64 %in, %out, %counters; .reg .b32 %gid, %lin, %len;");
        self.line(format!(".reg .b32 %n<{}>, %m<{}>;", body.loops + 1, body.loops + 1));
        self.line(format!(
            ".shared .align 16 .b8 part[{}]; .shared .align 4 .b32 total;",
            8 * threads
        ));
        self.line(format!(".shared .align 16 .b8 cells[{}];", 5 * table_bytes(threads)));
        self.line(format!(".local .align 16 .b8 frame[{}];", 16 * SLOTS));
        self.open();
        self.line("ld.param.u64 %in, [in]; cvta.to.global.u64 %in, %in;");
        self.line("ld.param.u64 %out, [out]; cvta.to.global.u64 %out, %out;");
        self.line("ld.param.u64 %counters, [counters]; cvta.to.global.u64 %counters, %counters;");
        self.line("ld.param.u32 %len, [len];");
        self.line("mov.u32 %i, %tid.x; mov.u32 %j, %ntid.x; mov.u32 %k, %tid.y; mad.lo.u32 %lin, %k, %j, %i;");
        self.line(format!(
            "mov.u32 %sum, %ctaid.x; mad.lo.u32 %gid, %sum, {threads}, %lin;"
        ));
        if kernel.guarded {
            self.line("setp.ge.u32 %c, %gid, %len; @%c bra END;");
        }
        self.close();
        self.open();
        self.start_values();
        self.close();
        self.lines.push_str(&body.lines);
        self.open();
        self.results(kernel);
        self.close();
        self.lines.push_str("END:\n    ret;\n}\n");
    }

    /// Fills all variables with numbers of the input, thread numbers and constants.
    fn start_values(&mut self) {
        self.line(format!(
            "and.b32 %i, %gid, {}; mul.wide.u32 %off, %i, 16; add.u64 %at, %in, %off;",
            ELEMENTS - 1
        ));
        for n in 0..VARIABLES {
            let at = u32::from(n) * 48;
            for kind in KINDS.into_iter().skip(1) {
                let (bits, prefix) = (kind.bits(), kind.prefix());
                self.line(format!("ld.global.{bits} {prefix}{n}, [%at+{at}];"));
            }
        }
        self.line("mov.u32 %r0, %gid; cvt.rn.f32.u32 %f0, %lin; cvt.u64.u32 %d0, %gid; cvt.rn.f64.u32 %g0, %gid;");
        self.line("mov.u32 %r1, 3; mov.b32 %f1, 0f3fc00000; mov.b64 %d1, 17; mov.b64 %g1, 0d4004000000000000;");
        for n in 0..VARIABLES {
            self.line(format!("setp.lt.s32 %p{n}, %r{n}, {};", 20 * u32::from(n)));
        }
    }

    /// Writes the results to the output.
    fn results(&mut self, kernel: &Kernel) {
        let first = 16 * u32::from(SLOTS) * kernel.threads();
        self.line(format!(
            "mul.wide.u32 %off, %gid, {}; add.u64 %at, %out, %off;",
            u32::from(VARIABLES) * 32
        ));
        for var in &kernel.results {
            let (bits, offset) = match var.kind {
                Kind::Long => ("b64", 0),
                Kind::Double => ("f64", 8),
                Kind::Word => ("b32", 16),
                Kind::Single => ("f32", 20),
                Kind::Pred => ("b32", 24),
                Kind::Half => ("b16", 28),
            };
            let mut value = name(*var);
            if var.kind == Kind::Pred {
                self.line(format!("selp.u32 %i, 1, 0, {value};"));
                value = "%i".to_string();
            }
            let at = first + u32::from(var.number) * 32 + offset;
            self.line(format!("st.global.{bits} [%at+{at}], {value};"));
        }
    }

    /// Begins a scope with registers of its own, as most registers of a program are written once.
    fn open(&mut self) {
        self.line("{ .reg .b32 %i, %j, %k, %sum; .reg .b64 %at, %off; .reg .pred %c, %e;");
    }

    fn close(&mut self) {
        self.line("}");
    }

    fn statements(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::If { .. } | Statement::Loop { .. } | Statement::Switch { .. } => self.nested(statement),
            statement => {
                self.open();
                self.simple(statement);
                self.close();
            }
        }
    }

    /// Writes a statement without statements inside.
    fn simple(&mut self, statement: &Statement) {
        match statement {
            Statement::Compute { op, to, from, guard } => {
                let to = to.iter().map(|v| name(*v));
                let operands: Vec<String> = to.chain(from.iter().map(|v| self.value(*v))).collect();
                self.line(format!(
                    "{}{} {};",
                    prefix(*guard),
                    OPERATIONS[*op].0,
                    operands.join(", ")
                ));
            }
            Statement::LoadInput {
                to,
                distance,
                index,
                guard,
            } => {
                let access = self.address("%in", *index, ELEMENTS, *distance, *guard);
                self.line(format!("{}ld.global{};", access.guard, load(*to, "%at")));
                self.end(access);
            }
            Statement::Walk { to, index, bit, by } => {
                let access = self.address("%in", *index, ELEMENTS, 16, None);
                self.line(format!("{}ld.global{};", access.guard, load(*to, "%at+16")));
                self.line(format!(
                    "mov.u32 %j, %ctaid.x; shr.u32 %j, %j, {bit}; and.b32 %j, %j, 1; setp.eq.u32 %e, %j, 0;"
                ));
                self.line(format!("@%e add.u64 %at, %at, {};", 16 * u32::from(*by)));
                self.line(format!("{}ld.global{};", access.guard, load(*to, "%at")));
                self.line(format!("{}ld.global{};", access.guard, load(*to, "%at+32")));
                self.end(access);
            }
            Statement::Store { from, slot, guard } => {
                self.own(*slot);
                self.line(format!("{}st.global{};", prefix(*guard), store(*from, "%at")));
            }
            Statement::Load { to, slot } => {
                self.own(*slot);
                self.line(format!("ld.global{};", load(*to, "%at")));
            }
            Statement::StoreCell { from, order, guard } => {
                self.cell(*from, *order);
                self.line(format!("{}st.global{};", prefix(*guard), store(*from, "%at")));
            }
            Statement::LoadCell { to, order, guard } => {
                self.cell(*to, *order);
                self.line(format!("{}ld.global{};", prefix(*guard), load(*to, "%at")));
            }
            Statement::SharedCell { from, to, wide } => {
                let table = from.bytes().trailing_zeros();
                let offset = table * table_bytes(self.threads[1]);
                let to = Elements {
                    first: Var {
                        number: *to,
                        ..from.first
                    },
                    ..*from
                };
                let at = if *wide {
                    self.line(format!(
                        "mov.u64 %at, cells; mul.wide.u32 %off, %lin, {};",
                        from.bytes()
                    ));
                    self.line("add.u64 %at, %at, %off;");
                    format!("%at+{offset}")
                } else {
                    self.line(format!("mov.u32 %i, cells; mad.lo.u32 %i, %lin, {}, %i;", from.bytes()));
                    format!("%i+{offset}")
                };
                self.line(format!("st.shared{};", store(*from, &at)));
                self.line(format!("ld.shared{};", load(to, &at)));
            }
            Statement::Local { from, to, slot, index } => {
                let mut at = format!("frame+{}", u32::from(*slot) * 16);
                if let Some(var) = index {
                    self.line(format!(
                        "and.b32 %i, %r{var}, {}; mul.wide.u32 %off, %i, 16;",
                        SLOTS - 1
                    ));
                    self.line("mov.u64 %at, frame; add.u64 %at, %at, %off;");
                    at = "%at".to_string();
                }
                self.line(format!("st.local{};", store(*from, &at)));
                self.line(format!("ld.local{};", load(*to, &at)));
            }
            Statement::Count { op, from, counter } => {
                let access = self.address("%counters", *counter, COUNTERS, 4, None);
                let (op, first) = (usize::from(*op), 4 * COUNTERS * u32::from(*op));
                self.line(format!(
                    "{}red.global.{} [%at+{first}], %r{from};",
                    access.guard, ATOMICS[op]
                ));
                self.end(access);
            }
            Statement::Ordered { op, from, to, counter } => {
                let access = self.address("%counters", *counter, COUNTERS, 4, None);
                let first = 4 * COUNTERS * ATOMICS.len() as u32;
                let text = ORDERED[usize::from(*op)].replace('A', &format!("[%at+{first}]"));
                let text = text.replace('T', &to.to_string()).replace('F', &from.to_string());
                self.line(format!("{}{text}", access.guard));
                self.end(access);
            }
            Statement::CountShared { op, from, to } => {
                self.line("setp.eq.u32 %c, %lin, 0; @%c st.shared.b32 [total], 100; bar.sync 0;");
                self.line(format!(
                    "red.shared.{} [total], %r{from}; bar.sync 0;",
                    ATOMICS[usize::from(*op)]
                ));
                self.line(format!("ld.shared.b32 %r{to}, [total]; bar.sync 0;"));
            }
            Statement::Exchange { from, to, index } => {
                let bits = from.kind.bits();
                self.line("shl.b32 %i, %lin, 3; mov.u32 %j, part; add.u32 %i, %i, %j;");
                self.line(format!("st.shared.{bits} [%i], {}; bar.sync 0;", name(*from)));
                self.close();
                self.open();
                match index {
                    Index::Thread { plus, .. } => self.line(format!("add.u32 %i, %lin, {plus};")),
                    Index::Same(n) => self.line(format!("mov.u32 %i, {n};")),
                    Index::Any(var) => self.line(format!("mov.u32 %i, %r{var};")),
                    Index::Formula(formula) => self.formula(*formula),
                    Index::Limited(limited) => self.limited(*limited, ELEMENTS),
                }
                // The index is taken modulo the block's size, which is not always a power of two.
                self.line("mov.u32 %j, %ntid.x; mov.u32 %k, %ntid.y; mul.lo.u32 %j, %j, %k;");
                // An address is affine only without the remainder, so there is a load with it and one without.
                self.line(
                    ".reg .b32 %x, %y, %z; .reg .pred %in_range; setp.lt.u32 %in_range, %i, %j; mov.u32 %y, part;",
                );
                self.line("mad.lo.u32 %x, %i, 8, %y; rem.u32 %z, %i, %j; mad.lo.u32 %z, %z, 8, %y;");
                self.line(format!("@%in_range ld.shared.{bits} {}, [%x];", name(*to)));
                self.line(format!("@!%in_range ld.shared.{bits} {}, [%z]; bar.sync 0;", name(*to)));
            }
            Statement::Shuffle {
                mode,
                from,
                to,
                by,
                variable,
                clamp,
            } => {
                let (mode, whole) = [("up", 0), ("down", 31), ("bfly", 31), ("idx", 31)][usize::from(*mode)];
                // The whole warp in half of the cases; else segments of 16, 8 or 4 lanes, or a mask that makes none.
                let clamp = match clamp {
                    0..4 => whole,
                    4 => 0x1000 | whole,
                    5 => 0x1800 | whole,
                    6 => 0x1c00 | whole,
                    _ => 0x0a0b,
                };
                let by = if *variable {
                    format!("%r{}", by % VARIABLES)
                } else {
                    by.to_string()
                };
                self.line(format!(
                    "shfl.sync.{mode}.b32 %r{to}|%e, %r{from}, {by}, {clamp}, 0xffffffff;"
                ));
                self.line(format!("selp.b32 %r{to}, %r{to}, 0, %e;"));
            }
            Statement::Vote { mode, from, to } => match mode {
                0 => self.line(format!("vote.sync.ballot.b32 %r{to}, %p{from}, 0xffffffff;")),
                1 => self.line(format!("vote.sync.any.pred %p{to}, %p{from}, 0xffffffff;")),
                2 => self.line(format!("vote.sync.all.pred %p{to}, !%p{from}, 0xffffffff;")),
                3 => self.line(format!("match.any.sync.b32 %r{to}, %r{from}, 0xffffffff;")),
                4 => self.line(format!("redux.sync.add.s32 %r{to}, %r{from}, 0xffffffff;")),
                5 => self.line(format!("redux.sync.max.u32 %r{to}, %r{from}, 0xffffffff;")),
                6 => self.line(format!("vote.sync.uni.pred %p{to}, %p{from}, 0xffffffff;")),
                7 => self.line(format!("activemask.b32 %r{to};")),
                8 => self.line("bar.warp.sync 0xffffffff;"),
                9 => self.line(format!("redux.sync.xor.b32 %r{to}, %r{from}, 0xffffffff;")),
                10 => self.line(format!("redux.sync.min.s32 %r{to}, %r{from}, 0xffffffff;")),
                11 => self.line(format!("elect.sync _|%p{to}, 0xffffffff;")),
                12 => self.line(format!("match.all.sync.b32 %r{to}|%p{from}, %r{from}, 0xffffffff;")),
                13 => self.line(format!("vote.sync.ballot.b32 %r{to}, !%p{from}, 0xffffffff;")),
                _ => self.line(format!("bar.red.popc.u32 %r{to}, 0, %p{from};")),
            },
            Statement::Call { function: 0, from, to } => self.line(format!("call (%r{to}), mix, (%r{from});")),
            Statement::Call { from, to, .. } => {
                self.line("{ .param .b32 a; .param .b32 b;");
                self.line(format!(
                    "st.param.b32 [a], %r{from}; call (b), fold, (a); ld.param.b32 %r{to}, [b]; }}"
                ));
            }
            Statement::Wild { to, index } => {
                self.line(format!(
                    "and.b32 %i, %r{index}, 0xfff; mul.wide.u32 %off, %i, 4; add.u64 %at, %in, %off;"
                ));
                // Far away, where no memory is.
                self.line(format!("shr.u32 %i, %r{index}, 27; setp.eq.u32 %c, %i, 5;"));
                self.line("selp.b64 %off, 0x10000000000, 0, %c; add.u64 %at, %at, %off;");
                self.line(format!("ld.global.b32 %r{to}, [%at];"));
            }
            Statement::If { .. } | Statement::Loop { .. } | Statement::Switch { .. } => {}
        }
    }

    /// Writes a statement with statements inside.
    fn nested(&mut self, statement: &Statement) {
        match statement {
            Statement::If { condition, then, other } => {
                let (skip, end) = (self.label(), self.label());
                self.open();
                self.condition(*condition);
                self.line(format!("@!%c bra L{skip};"));
                self.close();
                self.statements(then);
                if !other.is_empty() {
                    self.line(format!("bra L{end};"));
                }
                self.place(skip);
                self.statements(other);
                self.place(end);
            }
            Statement::Loop { rounds, leave, body } => {
                let (again, end) = (self.label(), self.label());
                self.loops += 1;
                let number = self.loops;
                match rounds {
                    Rounds::Fixed(n) => self.line(format!("mov.u32 %m{number}, {n};")),
                    Rounds::Var(var) => self.line(format!(
                        "and.b32 %m{number}, %r{var}, 7; add.u32 %m{number}, %m{number}, 1;"
                    )),
                }
                self.line(format!("mov.u32 %n{number}, 0;"));
                self.place(again);
                let outer = self.counter.replace(number);
                self.statements(body);
                self.counter = outer;
                if let Some(leave) = leave {
                    self.line(format!("@%p{leave} bra L{end};"));
                }
                self.line(format!("add.u32 %n{number}, %n{number}, 1;"));
                self.open();
                self.line(format!("setp.lt.u32 %c, %n{number}, %m{number}; @%c bra L{again};"));
                self.close();
                self.place(end);
            }
            Statement::Switch { on, cases } => {
                let labels: Vec<u32> = cases.iter().map(|_| self.label()).collect();
                let end = self.label();
                let names: Vec<String> = labels.iter().map(|l| format!("L{l}")).collect();
                self.open();
                self.line(format!("and.b32 %i, %r{on}, 3; min.u32 %i, %i, {};", cases.len() - 1));
                self.line(format!("T{end}: .branchtargets {};", names.join(", ")));
                self.line(format!("brx.idx %i, T{end};"));
                self.close();
                for (label, case) in labels.iter().zip(cases) {
                    self.place(*label);
                    self.statements(case);
                    self.line(format!("bra L{end};"));
                }
                self.place(end);
            }
            _ => {}
        }
    }

    /// Puts the address of one of `count` elements into `%at`.
    fn address(&mut self, base: &str, index: Index, count: u32, size: u32, guard: Option<(u8, bool)>) -> Access {
        let mask = count - 1;
        let mut access = Access {
            guard: prefix(guard),
            end: None,
        };
        match index {
            // There are always more elements than threads, but not always more counters.
            Index::Thread { factor: 1, plus } if base == "%in" => self.line(format!("add.u32 %i, %gid, {plus};")),
            Index::Thread { factor, plus } => self.line(format!(
                "mad.lo.u32 %i, %gid, {factor}, {plus}; and.b32 %i, %i, {mask};"
            )),
            Index::Same(n) => self.line(format!("mov.u32 %i, {};", u32::from(n) & mask)),
            Index::Any(var) => self.line(format!("and.b32 %i, %r{var}, {mask};")),
            Index::Limited(limited) => self.limited(limited, count),
            Index::Formula(formula) => {
                self.formula(formula);
                self.line(format!("setp.lt.u32 %c, %i, {count};"));
                if formula.branch || guard.is_some() {
                    let end = self.label();
                    self.line(format!("@!%c bra L{end};"));
                    access.end = Some(end);
                } else {
                    access.guard = "@%c ".to_string();
                }
            }
        }
        let signed = if base == "%in" { "s32" } else { "u32" };
        self.line(format!(
            "mul.wide.{signed} %off, %i, {size}; add.u64 %at, {base}, %off;"
        ));
        access
    }

    /// Ends an access that a branch may skip.
    fn end(&mut self, access: Access) {
        if let Some(label) = access.end {
            self.place(label);
        }
    }

    /// Puts the value of a formula into `%i`. Each step has a register of its own.
    fn formula(&mut self, formula: Formula) {
        self.line(".reg .b32 %t<8>;");
        self.line(format!("mov.u32 %t0, {};", SPECIALS[usize::from(formula.start)]));
        for (step, Term { op, with }) in formula.terms.into_iter().enumerate() {
            let operand = match with {
                With::Special(number) => {
                    self.line(format!("mov.u32 %t{}, {};", step + 4, SPECIALS[usize::from(number)]));
                    format!("%t{}", step + 4)
                }
                With::Number(number) => number.to_string(),
                With::Counter => self.counter.map_or("0".to_string(), |number| format!("%n{number}")),
            };
            let op = FORMULA_OPERATIONS[usize::from(op)];
            let third = if op.ends_with('+') { ", %lin" } else { "" };
            let op = op.trim_end_matches('+');
            self.line(format!("{op} %t{}, %t{step}, {operand}{third};", step + 1));
        }
        self.line("mov.u32 %i, %t3;");
    }

    /// Puts a limited thread number below `count` into `%i`.
    fn limited(&mut self, limited: Limited, count: u32) {
        let Limited {
            start,
            minus,
            limits,
            least,
            span,
        } = limited;
        let least = u32::from(least).min(count - 1);
        let most = (least + u32::from(span)).min(count - 1);
        self.line(".reg .b32 %t<8>;");
        self.line(format!(
            "mov.u32 %t2, {}; sub.u32 %t0, %t2, {minus};",
            SPECIALS[usize::from(start)]
        ));
        let limits = LIMITS[usize::from(limits)].replace('L', &least.to_string());
        self.line(limits.replace('M', &most.to_string()));
        if count < ELEMENTS {
            self.line(format!("and.b32 %i, %i, {};", count - 1));
        }
    }

    /// Puts the address of a place in the thread's part of the output into `%at`.
    fn own(&mut self, slot: u8) {
        let part = 16 * u32::from(SLOTS);
        let at = 16 * u32::from(slot);
        self.line(format!(
            "mul.wide.s32 %off, %gid, {part}; add.u64 %at, %out, %off; add.u64 %at, %at, {at};"
        ));
    }

    /// Puts the address of the thread's cell in a table for accesses to these elements into `%at`.
    fn cell(&mut self, elements: Elements, order: Order) {
        let bytes = elements.bytes();
        let [threads, _] = self.threads;
        let set = match order {
            Order::Forward => {
                self.line("mov.u32 %i, %gid;");
                0
            }
            Order::Backward => {
                self.line(format!("sub.u32 %i, {}, %gid;", threads - 1));
                5
            }
            Order::Swapped => {
                self.line("xor.b32 %i, %gid, 3;");
                10
            }
        };
        let table = set + bytes.trailing_zeros();
        let offset = self.tables + table * table_bytes(threads);
        self.line(format!(
            "mul.wide.s32 %off, %i, {bytes}; add.u64 %at, %out, %off; add.u64 %at, %at, {offset};"
        ));
    }

    fn condition(&mut self, condition: Condition) {
        match condition {
            Condition::Block { bit } => self.line(format!(
                "mov.u32 %i, %ctaid.x; shr.u32 %i, %i, {bit}; and.b32 %i, %i, 1; setp.eq.u32 %c, %i, 0;"
            )),
            Condition::FirstThreads(n) => self.line(format!("setp.lt.u32 %c, %lin, {n};")),
            Condition::Var { number, negated } => {
                let op = if negated { "not.pred" } else { "mov.pred" };
                self.line(format!("{op} %c, %p{number};"));
            }
        }
    }

    fn value(&mut self, value: Value) -> String {
        match value {
            Value::Var(var) => name(var),
            Value::Bits(Kind::Single, bits) => format!("0f{bits:08x}"),
            Value::Bits(Kind::Double, bits) => format!("0d{bits:016x}"),
            Value::Bits(_, bits) => bits.to_string(),
            Value::Special(number) => {
                let special = SPECIALS[usize::from(number)];
                if number < 5 {
                    self.line(format!("mov.u32 %sum, {special};"));
                    // If several operands use the register, all of them have the value of the last one.
                    "%sum".to_string()
                } else {
                    special.to_string()
                }
            }
        }
    }
}

fn name(var: Var) -> String {
    format!("{}{}", var.kind.prefix(), var.number)
}

fn prefix(guard: Option<(u8, bool)>) -> String {
    match guard {
        Some((number, negated)) => format!("@{}%p{number} ", if negated { "!" } else { "" }),
        None => String::new(),
    }
}

/// Returns the modifiers, the type and the operands of a load.
fn load(to: Elements, at: &str) -> String {
    let (modifier, registers) = list(to);
    format!("{modifier} {registers}, [{at}]")
}

/// Returns the modifiers, the type and the operands of a store.
fn store(from: Elements, at: &str) -> String {
    let (modifier, registers) = list(from);
    format!("{modifier} [{at}], {registers}")
}

/// Returns the modifiers with the type, and the registers.
fn list(Elements { first, stored, count }: Elements) -> (String, String) {
    let bits = stored.0;
    if count == 1 {
        return (format!(".{bits}"), name(first));
    }
    let registers: Vec<String> = (0..count)
        .map(|i| {
            let number = (first.number + i) % VARIABLES;
            name(Var { number, ..first })
        })
        .collect();
    (format!(".v{count}.{bits}"), format!("{{{}}}", registers.join(", ")))
}
