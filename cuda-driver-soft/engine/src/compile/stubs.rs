//! Rarely run code, at the end of a section: exits, edges, branches at which lanes diverge, and instructions that the
//! interpreter runs.

use super::assembler::{Alu, Gpr, Label, Mem, When, Width, Word};
use super::emitter::Emitter;
use super::ranges::Checked;
use super::registers::{CONTEXT, State};
use super::sections::Restart;
use crate::code::compiled::{CompiledContext, Exit, MISSING};
use ptx::ir::{Inst, Reg};
use std::mem::offset_of;

/// Code that runs rarely, and is placed at the end.
pub(super) enum Stub {
    /// Runs an access in the interpreter, and then checks a range again.
    Retry(Box<Retry>),
    /// Leaves the compiled code.
    Exit {
        label: Label,
        state: State,
        live: Vec<Reg>,
        at: u32,
        exit: Exit,
        /// Number of instructions of the piece that do not run.
        rest: i32,
        /// The places at which the group begins again instead, if it can.
        again: Option<Restart>,
    },
    /// An edge to another block.
    Edge {
        label: Label,
        state: State,
        from: usize,
        to: usize,
    },
    /// Code that another file writes.
    Late {
        label: Label,
        state: State,
        write: Box<dyn FnOnce(&mut Emitter<'_>)>,
    },
    /// A branch at which the lanes of a whole group diverge.
    Part {
        label: Label,
        state: State,
        mask: Gpr,
        from: usize,
        to: [usize; 2],
    },
    /// Runs an instruction in the interpreter. For a memory instruction, `AX` has the address of one of the lanes that
    /// run; but if `lanes` is not `None`, `AX` has the lowest address of all lanes, and `lanes` has the step from lane
    /// to lane and the distance of the lowest address from that of the first lane.
    Interpret {
        label: Label,
        back: Label,
        before: State,
        after: State,
        scalars: Vec<Reg>,
        insts: (u32, u32),
        window: u32,
        lanes: Option<(i32, i32)>,
        results: Vec<Reg>,
    },
}

/// The state of a check when it fails.
#[derive(Debug)]
pub(super) struct Failure {
    /// The label to which the check jumps, and the registers there.
    pub(super) label: Label,
    pub(super) before: State,
    /// The number of the window.
    pub(super) window: u32,
    /// The distance in bytes from the address of the first lane to the first byte that the first access needs.
    pub(super) first: i32,
}

/// A failed check of a range, and the data for the code that tries the access again.
pub(super) struct Retry {
    pub(super) failure: Failure,
    pub(super) back: Label,
    pub(super) after: State,
    pub(super) scalars: Vec<Reg>,
    pub(super) insts: (u32, u32),
    pub(super) checked: Checked,
    pub(super) aligned: bool,
    /// The registers that are needed after the access, and the number of instructions of the piece that follow it.
    pub(super) live: Vec<Reg>,
    pub(super) rest: i32,
}

impl Emitter<'_> {
    /// Adds an edge to another block from code with empty registers, and returns its label.
    pub(super) fn edge_stub(&mut self, from: usize, to: usize) -> Label {
        let label = self.asm.label();
        let state = State::default();
        self.decide(to);
        self.push_stub(Stub::Edge { label, state, from, to });
        label
    }

    /// Adds code that runs rarely.
    pub(super) fn push_stub(&mut self, stub: Stub) {
        self.stubs.push((stub, self.masked));
    }

    /// Adds code that leaves with the present registers, and returns its label. `rest` is the number of interpreter
    /// instructions of the piece that do not run.
    pub(super) fn exit_stub(&mut self, live: &[Reg], at: u32, exit: Exit, rest: i32) -> Label {
        self.exit_or_restart(live, at, exit, rest, None)
    }

    /// As [`exit_stub`](Self::exit_stub), for groups that may begin again.
    pub(super) fn exit_or_restart(
        &mut self,
        live: &[Reg],
        at: u32,
        exit: Exit,
        rest: i32,
        again: Option<Restart>,
    ) -> Label {
        let label = self.asm.label();
        self.push_stub(Stub::Exit {
            label,
            state: self.state.clone(),
            live: live.to_vec(),
            at,
            exit,
            rest,
            again,
        });
        label
    }

    /// Writes the code of a stub.
    pub(super) fn stub(&mut self, stub: Stub) {
        match stub {
            Stub::Exit {
                label,
                state,
                live,
                at,
                exit,
                rest,
                again,
            } => {
                self.asm.bind(label);
                self.way_out(label);
                if let Some(restart) = again {
                    self.begin_again(restart);
                }
                self.leave(&state, &live, &live, at, exit, rest);
            }
            Stub::Edge { label, state, from, to } => {
                self.asm.bind(label);
                self.state = state;
                let length = self.asm.length();
                self.go(from, to);
                let target = self.label_of_block(to);
                if self.asm.length() == length {
                    self.asm.bind_to(label, target);
                } else {
                    self.asm.jump(target);
                }
            }
            Stub::Interpret {
                label,
                back,
                before,
                after,
                scalars,
                insts,
                window,
                lanes,
                results,
            } => {
                self.asm.bind(label);
                self.way_out(label);
                if let Some((step, lowest)) = lanes {
                    self.move_to_active(step, lowest);
                }
                self.flush(&before);
                for reg in &scalars {
                    self.spread(*reg, &before);
                }
                self.call_interpreter(insts, window, None);
                self.restore_scalars(&results);
                self.reload(&after);
                self.asm.jump(back);
            }
            Stub::Part {
                label,
                state,
                mask,
                from,
                to,
            } => {
                self.asm.bind(label);
                self.way_out(label);
                self.part_lanes(&state, mask, from, to);
            }
            Stub::Late { label, state, write } => {
                self.asm.bind(label);
                self.way_out(label);
                self.state = state;
                write(self);
            }
            Stub::Retry(retry) => {
                self.asm.bind(retry.failure.label);
                self.way_out(retry.failure.label);
                self.retry_stub(&retry);
            }
        }
    }

    /// Calls the interpreter for a range of instructions, and leaves if one raises a fault. If there is a window, `AX`
    /// must have the address of one of the lanes that run. All values must be in the frame, and the machine registers
    /// that hold values are lost. The code jumps to `missing` if lanes are missing at an instruction that runs for the
    /// whole warp.
    pub(super) fn call_interpreter(&mut self, (first, end): (u32, u32), window: u32, missing: Option<Label>) {
        self.keep_frames();
        let asm = &mut self.asm;
        asm.alu(Alu::Mov, Width::Bits64, Gpr::CX, Word::Gpr(Gpr::AX));
        asm.alu(Alu::Mov, Width::Bits64, Gpr::DI, Word::Gpr(CONTEXT));
        asm.constant(Gpr::SI, u64::from(first));
        asm.constant(Gpr::DX, u64::from(end));
        asm.constant(Gpr(8), u64::from(window));
        asm.vzeroupper();
        asm.call(Mem::at(CONTEXT, offset_of!(CompiledContext, interpret) as i32));
        if let Some(missing) = missing {
            asm.alu(Alu::Cmp, Width::Bits32, Gpr::AX, Word::Imm(MISSING as i32));
            asm.jump_when(When::Equal, missing);
        }
        asm.alu(Alu::Test, Width::Bits32, Gpr::AX, Word::Gpr(Gpr::AX));
        // The upper half of the result is the exit.
        asm.constant(Gpr::AX, (Exit::Fault as u64) << 32);
        asm.jump_when(When::NotEqual, self.epilogue);
    }

    /// Adds code at `label` that runs a step in the interpreter instead of the code up to here, and then continues
    /// here. Returns the label of this place. `before` are the registers where the code jumps to `label`; the present
    /// ones are expected here.
    pub(super) fn interpret_stub(
        &mut self,
        label: Label,
        step: usize,
        inst: &Inst,
        before: State,
        (window, lanes): (u32, Option<(i32, i32)>),
    ) -> Label {
        let back = self.asm.here();
        let after = self.state.clone();
        let scalars = self.scalar_sources(inst);
        let results = self.scalar_results(inst);
        let lanes = lanes.filter(|_| self.masked && window != u32::MAX);
        self.push_stub(Stub::Interpret {
            label,
            back,
            before,
            after,
            scalars,
            insts: self.insts(step),
            window,
            lanes,
            results,
        });
        back
    }
}
