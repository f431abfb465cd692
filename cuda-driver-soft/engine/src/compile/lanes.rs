//! The places of a group's lanes in memory: one check of bounds and alignment for all of them.

use super::assembler::{Alu, Gpr, Label, Mem, Source, When, Width, Word};
use super::emitter::Emitter;
use super::ranges::{Checked, Memory};
use super::registers::{SOURCES, State, TEMP, WINDOWS, field};
use super::stubs::Failure;
use super::value::Value;
use crate::code::compiled::{CompiledContext, Window};
use crate::plan::shape::Shape;
use crate::plan::swapped::Swapped;
use iced_x86::Code;
use ptx::ir::{Inst, Op, Reg};
use std::mem::{offset_of, size_of};

impl Memory {
    /// Returns the places in the context of the length and the host address of shared or local memory.
    pub(super) fn fields(self) -> [Word; 2] {
        let [length, host] = match self {
            Memory::Local => [
                offset_of!(CompiledContext, local_length),
                offset_of!(CompiledContext, local),
            ],
            _ => [
                offset_of!(CompiledContext, shared_length),
                offset_of!(CompiledContext, shared),
            ],
        };
        [length, host].map(|offset| Word::Mem(field(offset)))
    }
}

/// The addresses of an access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    pub(super) memory: Memory,
    /// The addresses without the offset.
    pub(super) value: Value,
    /// Bytes added to each address.
    pub(super) offset: i32,
    /// Bytes that a lane accesses, which is also the alignment: a power of two of at most 16.
    pub(super) size: u32,
    /// True if all addresses are known to be aligned.
    pub(super) aligned: bool,
}

/// The arrangement of the lanes.
#[derive(Clone, Copy, Debug)]
enum Arrangement {
    /// All lanes are at one place.
    Same,
    /// Each lane is this number of bytes after the previous one.
    Step(i32),
    /// The lanes are equally spaced, but in another order: see [`Swapped`].
    Swapped(Swapped),
    /// Each lane has an index of this width, which is in memory.
    Each(Width, Mem),
}

/// Places in host memory that have been checked.
#[derive(Debug)]
pub(super) struct Places {
    first: Mem,
    arrangement: Arrangement,
    /// Bytes that a lane accesses.
    pub(super) size: u32,
    /// The memory of the places.
    memory: Memory,
    /// The check that this access made.
    check: Check,
}

/// A check that may fail, with the label of the code that runs then, the registers there, and the number of the window.
#[derive(Debug)]
enum Check {
    /// Another access has checked the range before.
    None,
    /// The check of this access alone. If there is a step, the window comes with the step from lane to lane and the
    /// distance of the lowest address from that of the first lane.
    One(Label, State, (u32, Option<(i32, i32)>)),
    /// The check of a range for this and other accesses.
    Range(Checked, Failure),
}

impl Addresses {
    /// Returns true if all lanes access one place.
    pub(super) fn are_same(&self) -> bool {
        self.value.is_uniform() && self.memory != Memory::Local
    }
}

impl Places {
    /// Returns the place of the first lane if all lanes have it.
    pub(super) fn same(&self) -> Option<Mem> {
        matches!(self.arrangement, Arrangement::Same).then_some(self.first)
    }

    /// Returns true for shared and local memory, which only the host thread that runs the block accesses.
    pub(super) fn are_of_block(&self) -> bool {
        self.memory != Memory::Global
    }

    /// Returns the host register that the places of lanes are relative to, and the offset, if each lane has an index.
    pub(super) fn indexed(&self) -> Option<Mem> {
        matches!(self.arrangement, Arrangement::Each(..)).then_some(self.first)
    }

    /// Returns the place of the lanes' indexes if they have 64 bits and no other access reads them.
    pub(super) fn own_indexes(&self) -> Option<Mem> {
        let own = field(offset_of!(CompiledContext, addresses));
        match self.arrangement {
            Arrangement::Each(Width::Bits64, indexes) if indexes == own => Some(own),
            _ => None,
        }
    }

    /// Returns the place of the first lane if the lanes follow each other without gaps.
    pub(super) fn row(&self) -> Option<Mem> {
        matches!(self.arrangement, Arrangement::Step(step) if step == self.size as i32).then_some(self.first)
    }

    /// Returns the place of the 8 lanes of part `part`, if they are in a row without gaps, but in another order, and
    /// the number that is combined with the number of each lane by exclusive or to get its place in this row.
    pub(super) fn swapped_row(&self, part: usize) -> Option<(Mem, usize)> {
        let Arrangement::Swapped(Swapped { step, swap, .. }) = self.arrangement else {
            return None;
        };
        let (part, swap) = (part ^ (swap / 8) as usize, swap as usize % 8);
        let row = self.first.plus((8 * part) as i32 * self.size as i32);
        (step == self.size).then_some((row, swap))
    }
}

/// Returns the distance between the first and the last lane of a group; `None` if it has more than 32 bits.
pub(super) fn whole_reach(step: i64, lanes: u32) -> Option<i32> {
    i32::try_from(step.checked_mul(i64::from(lanes) - 1)?).ok()
}

/// As [`whole_reach`], for addresses: `None` if the distance is too large to be added to an offset.
pub(super) fn reach(step: i64, lanes: u32) -> Option<i32> {
    // The limit is far below the maximum, so that the sums of the code do not overflow.
    whole_reach(step, lanes).filter(|reach| reach.unsigned_abs() < 1 << 28)
}

impl Emitter<'_> {
    /// Returns true if there is machine code for the places of these addresses.
    pub(super) fn has_places(&self, addresses: &Addresses) -> bool {
        let size = i64::from(addresses.size);
        let offset = addresses.offset.unsigned_abs() < 1 << 28;
        let narrow_local = addresses.memory == Memory::Local && addresses.value.width == Width::Bits32;
        offset
            && match addresses.value.shape {
                Shape::Uniform => true,
                _ if narrow_local => false,
                // Each lane has its own memory.
                Shape::Affine(_) if addresses.memory == Memory::Local => i64::from(addresses.offset) % size == 0,
                Shape::Affine(step) => step % size == 0 && reach(step, self.lanes).is_some(),
                // Alignment is checked for the addresses without the offset.
                Shape::Any => i64::from(addresses.offset) % size == 0,
            }
    }

    /// Adds the check of an access by all lanes of the group. The places may be relative to `AX`, which must be
    /// preserved until their last use.
    pub(super) fn checked(&mut self, addresses: &Addresses, inst: &Inst) -> Places {
        if let Some((checked, failed)) = self.hull(addresses, inst, matches!(inst.op, Op::St(_))) {
            return Places {
                first: Mem::at(checked.host, addresses.offset),
                arrangement: match addresses.value.shape {
                    Shape::Affine(step) => Arrangement::Step(step as i32),
                    _ => Arrangement::Same,
                },
                size: addresses.size,
                memory: addresses.memory,
                check: match failed {
                    Some(failure) => Check::Range(checked, failure),
                    None => Check::None,
                },
            };
        }
        self.checked_alone(addresses)
    }

    /// As [`checked`](Self::checked), but never shares a check with other accesses.
    pub(super) fn checked_alone(&mut self, addresses: &Addresses) -> Places {
        match addresses.value.shape {
            Shape::Uniform => self.check_range(addresses, None),
            Shape::Affine(step) if addresses.memory != Memory::Local => self.check_range(addresses, Some(step as i32)),
            Shape::Affine(_) => self.check_each(addresses),
            Shape::Any => match self.swapped(addresses) {
                Some(swapped) => self.check_swapped(addresses, swapped),
                None => self.check_each(addresses),
            },
        }
    }

    /// Returns the order of addresses of shared memory if they are those of [`Swapped`].
    fn swapped(&self, addresses: &Addresses) -> Option<Swapped> {
        let reg = addresses
            .value
            .register()
            .filter(|_| addresses.memory == Memory::Shared)?;
        let swapped = self.input.plan.swapped(self.shapes, reg)?;
        swapped.step.is_multiple_of(addresses.size).then_some(swapped)
    }

    /// Adds the code that runs if the check of an access fails. Call it after the code of the access.
    pub(super) fn failed(&mut self, step: usize, inst: &Inst, places: Places, aligned: bool, live: &[Reg], rest: u32) {
        match places.check {
            Check::None => {}
            Check::One(label, before, window) => {
                self.interpret_stub(label, step, inst, before, window);
            }
            Check::Range(checked, failure) => {
                self.retry(inst, checked, aligned, failure, live, rest);
            }
        }
    }

    /// Returns the place of a lane. Uses `CX`.
    pub(super) fn lane(&mut self, places: &Places, lane: u32) -> Mem {
        match places.arrangement {
            Arrangement::Same => places.first,
            Arrangement::Step(step) => places.first.plus(step * lane as i32),
            Arrangement::Swapped(Swapped { step, swap, .. }) => places.first.plus((step * (lane ^ swap)) as i32),
            Arrangement::Each(width, from) => {
                let at = from.plus((lane * width.bytes()) as i32);
                self.asm.alu(Alu::Mov, width, Gpr::CX, Word::Mem(at));
                Mem {
                    index: Some(Gpr::CX),
                    ..places.first
                }
            }
        }
    }

    /// Checks lanes that have one address, or a step between their addresses, by the range from the lowest to the
    /// highest.
    fn check_range(&mut self, addresses: &Addresses, step: Option<i32>) -> Places {
        self.copy_first_lane(addresses.value, Gpr::AX);
        let arrangement = match step {
            Some(step) => Arrangement::Step(step),
            None if addresses.memory == Memory::Local => {
                Arrangement::Each(Width::Bits64, field(offset_of!(CompiledContext, local_lanes)))
            }
            None => Arrangement::Same,
        };
        self.check_from(addresses, step, arrangement)
    }

    /// Checks lanes whose addresses are those of [`Swapped`]. The address of one lane that runs shows where the row
    /// begins.
    fn check_swapped(&mut self, addresses: &Addresses, swapped: Swapped) -> Places {
        let Swapped { step, swap, .. } = swapped;
        let width = addresses.value.width;
        let row = self.masked.then(|| self.rows_of(addresses.value, 0));
        match row {
            Some(row) => {
                self.load_first_active(width, row);
                self.asm.alu(Alu::Xor, Width::Bits64, Gpr::CX, Word::Imm(swap as i32));
                self.asm
                    .multiply(Width::Bits64, Gpr::CX, Word::Gpr(Gpr::CX), step as i32);
                self.asm.alu(Alu::Sub, width, Gpr::AX, Word::Gpr(Gpr::CX));
            }
            None => {
                let first = self.loaded(addresses.value, 0, 0);
                self.asm.first_element(width, Gpr::AX, first);
                self.asm.alu(Alu::Sub, width, Gpr::AX, Word::Imm((step * swap) as i32));
            }
        }
        self.check_from(addresses, Some(step as i32), Arrangement::Swapped(swapped))
    }

    /// Checks a range by the address of its first lane, which is in `AX`.
    fn check_from(&mut self, addresses: &Addresses, step: Option<i32>, arrangement: Arrangement) -> Places {
        let wide = Width::Bits64;
        let reach = reach(i64::from(step.unwrap_or(0)), self.lanes).unwrap_or(0);
        let lowest = reach.min(0);
        let span = reach.abs() + addresses.size as i32;
        let value = addresses.value;
        let (label, before) = (self.asm.label(), self.state.clone());
        let offset = addresses.offset + lowest;
        if offset != 0 {
            // Addresses of 32 bits wrap.
            self.asm.lea(value.width, Gpr::AX, Mem::at(Gpr::AX, offset));
        } else if value.width == Width::Bits32 {
            self.asm.alu(Alu::Mov, Width::Bits32, Gpr::AX, Word::Gpr(Gpr::AX));
        }
        if !addresses.aligned {
            let low = Word::Imm(addresses.size as i32 - 1);
            self.asm.alu(Alu::Test, Width::Bits32, Gpr::AX, low);
            self.asm.jump_when(When::NotEqual, label);
        }
        let window = self.window_of(addresses.memory);
        let to_host = if addresses.memory != Memory::Global && value.width == Width::Bits32 {
            let [length, host] = addresses.memory.fields();
            // The end of the access, computed in 64 bits so that it does not wrap.
            self.asm.lea(wide, Gpr::DX, Mem::at(Gpr::AX, span));
            self.asm.alu(Alu::Cmp, wide, Gpr::DX, length);
            self.asm.jump_when(When::Above, label);
            host
        } else {
            self.check_span(addresses.memory, span, window, label)
        };
        self.asm.alu(Alu::Add, wide, Gpr::AX, to_host);
        Places {
            first: Mem::at(Gpr::AX, -lowest),
            arrangement,
            size: addresses.size,
            memory: addresses.memory,
            check: Check::One(label, before, (window, step.map(|step| (step, lowest)))),
        }
    }

    /// Returns the number of a new window for an access to global memory; `u32::MAX` for others, which need none.
    pub(super) fn window_of(&mut self, memory: Memory) -> u32 {
        match memory {
            Memory::Global => self.new_window(),
            _ => u32::MAX,
        }
    }

    /// Checks that a number of bytes from the address in `AX` on are in the memory, or in the window of global memory,
    /// and jumps to `label` if they are not. Returns the distance from an address to its place. Uses `CX` and `DX`.
    pub(super) fn check_span(&mut self, memory: Memory, span: i32, window: u32, label: Label) -> Word {
        let wide = Width::Bits64;
        let (from, to_host) = if memory == Memory::Global {
            let [base, length, to_host] = window_fields(window);
            self.asm.alu(Alu::Mov, wide, Gpr::DX, length);
            self.asm.alu(Alu::Mov, wide, Gpr::DX, Word::Mem(Mem::at(Gpr::DX, 0)));
            self.asm.alu(Alu::Mov, wide, Gpr::CX, Word::Gpr(Gpr::AX));
            self.asm.alu(Alu::Sub, wide, Gpr::CX, base);
            (Gpr::CX, to_host)
        } else {
            let [length, to_host] = memory.fields();
            self.asm.alu(Alu::Mov, wide, Gpr::DX, length);
            (Gpr::AX, to_host)
        };
        self.asm.alu(Alu::Sub, wide, Gpr::DX, Word::Imm(span));
        self.asm.jump_when(When::Below, label);
        self.asm.alu(Alu::Cmp, wide, from, Word::Gpr(Gpr::DX));
        self.asm.jump_when(When::Above, label);
        to_host
    }

    /// Checks lanes that can have any addresses: no address may be less than the first address of the memory, or more
    /// than the last one at which an access fits. The sign bits of two differences show both.
    fn check_each(&mut self, addresses: &Addresses) -> Places {
        let Addresses {
            value, offset, size, ..
        } = *addresses;
        let (wide, width) = (Width::Bits64, value.width);
        let [index, limit, base] = SOURCES;
        // Addresses of 32 bits wrap, so that the offset has to be added first.
        let from = self.rows_of(value, if width == Width::Bits32 { offset } else { 0 });
        let from = self.active_addresses(width, from);
        let offset = if width == Width::Bits32 { 0 } else { offset };
        self.asm.alu(Alu::Mov, width, Gpr::AX, Word::Mem(from));
        if offset != 0 {
            self.asm.lea(wide, Gpr::AX, Mem::at(Gpr::AX, offset));
        }
        let (label, before) = (self.asm.label(), self.state.clone());
        let parts = 0..self.parts(width) as i32;
        let or = Code::VEX_Vpor_ymm_ymm_ymmm256;
        if !addresses.aligned && size > 1 {
            self.asm.load(TEMP, Source::Mem(from));
            for part in parts.clone().skip(1) {
                self.asm.vector(or, TEMP, TEMP, Source::Mem(from.plus(32 * part)));
            }
            let low = self.same_constant(width, u64::from(size) - 1);
            self.asm.test_bits(TEMP, low);
            self.asm.jump_when(When::NotEqual, label);
        }
        let subtract = match width {
            Width::Bits32 => Code::VEX_Vpsubd_ymm_ymm_ymmm256,
            Width::Bits64 => Code::VEX_Vpsubq_ymm_ymm_ymmm256,
        };
        let mut window = u32::MAX;
        let [mut length, mut to_host] = addresses.memory.fields();
        if addresses.memory != Memory::Global {
            self.asm.alu(Alu::Mov, wide, Gpr::DX, length);
            self.asm
                .constant(Gpr::CX, i64::from(offset).wrapping_neg().cast_unsigned());
        } else {
            let first;
            window = self.new_window();
            [first, length, to_host] = window_fields(window);
            self.asm.alu(Alu::Mov, wide, Gpr::DX, length);
            self.asm.alu(Alu::Mov, wide, Gpr::DX, Word::Mem(Mem::at(Gpr::DX, 0)));
            self.asm.alu(Alu::Mov, wide, Gpr::CX, first);
            self.asm.alu(Alu::Sub, wide, Gpr::CX, Word::Imm(offset));
        }
        self.asm.alu(Alu::Sub, wide, Gpr::DX, Word::Imm(size as i32));
        self.asm.jump_when(When::Below, label);
        self.asm.broadcast_gpr(width, limit, Gpr::DX);
        let based = width == Width::Bits64 && (addresses.memory == Memory::Global || offset != 0);
        if based {
            self.asm.broadcast_gpr(wide, base, Gpr::CX);
        }
        for part in parts.clone() {
            self.asm.load(index, Source::Mem(from.plus(32 * part)));
            if based {
                self.asm.vector(subtract, index, index, Source::Ymm(base));
            }
            if part == 0 {
                self.asm.load(TEMP, Source::Ymm(index));
            } else {
                self.asm.vector(or, TEMP, TEMP, Source::Ymm(index));
            }
            self.asm.vector(subtract, index, limit, Source::Ymm(index));
            self.asm.vector(or, TEMP, TEMP, Source::Ymm(index));
        }
        let sign = self.same_constant(width, 1 << (8 * width.bytes() - 1));
        self.asm.test_bits(TEMP, sign);
        self.asm.jump_when(When::NotEqual, label);
        let mut indexes = from;
        if addresses.memory == Memory::Local {
            let lanes = field(offset_of!(CompiledContext, local_lanes));
            indexes = field(offset_of!(CompiledContext, addresses));
            for part in parts {
                self.asm.load(index, Source::Mem(from.plus(32 * part)));
                let lanes = Source::Mem(lanes.plus(32 * part));
                self.asm.vector(Self::add_code(wide), index, index, lanes);
                self.asm.store_vector(indexes.plus(32 * part), index);
            }
        }
        self.asm.alu(Alu::Mov, wide, Gpr::AX, to_host);
        Places {
            first: Mem::at(Gpr::AX, offset),
            arrangement: Arrangement::Each(width, indexes),
            size,
            memory: addresses.memory,
            check: Check::One(label, before, (window, None)),
        }
    }

    /// Returns the place in memory of all lanes of a vector, after adding a number: the register's row, or a row in the
    /// context.
    fn rows_of(&mut self, value: Value, plus: i32) -> Mem {
        let row = field(offset_of!(CompiledContext, addresses));
        for part in 0..self.parts(value.width) {
            let to = row.plus(32 * part as i32);
            match self.source(value, part, 0) {
                Source::Mem(mem) if plus == 0 => return mem,
                source if plus != 0 => {
                    let number = self.same_constant(value.width, i64::from(plus).cast_unsigned());
                    let ymm = self.in_register(source, SOURCES[0]);
                    self.asm
                        .vector(Self::add_code(value.width), SOURCES[0], ymm, Source::Mem(number));
                    self.asm.store_vector(to, SOURCES[0]);
                }
                source => {
                    let ymm = self.in_register(source, SOURCES[0]);
                    self.asm.store_vector(to, ymm);
                }
            }
        }
        row
    }
}

/// Returns the fields of a window: the first address, the address of the length, and the distance to the host.
pub(super) fn window_fields(window: u32) -> [Word; 3] {
    let entry = window as usize * size_of::<Window<'_>>();
    [
        offset_of!(Window<'_>, base),
        offset_of!(Window<'_>, length),
        offset_of!(Window<'_>, to_host),
    ]
    .map(|offset| Word::Mem(Mem::at(WINDOWS, (entry + offset) as i32)))
}
