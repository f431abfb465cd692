//! Moves between memory, where the elements of one lane follow each other, and vector registers, each of which has the
//! same element of several lanes.
//!
//! An access moves *columns* of 32 or 64 bits. An access of less than 4 bytes moves one column, of which only a part is
//! used; any other access moves as many as its size needs. Elements of less than 4 bytes are parts of columns.

use super::assembler::{Mem, Source, Width, Ymm};
use super::emitter::Emitter;
use super::lanes::Places;
use super::registers::{SOURCES, TEMP};
use iced_x86::Code;

/// Exchanges the middle two quarters of a vector of 64-bit elements.
const SWAP_MIDDLE: u32 = 0b11_01_10_00;
/// The even elements of two vectors, for `vshufps`.
const EVEN: u32 = 0b10_00_10_00;
/// The odd elements of two vectors.
const ODD: u32 = 0b11_01_11_01;

const LOW_PS: Code = Code::VEX_Vunpcklps_ymm_ymm_ymmm256;
const HIGH_PS: Code = Code::VEX_Vunpckhps_ymm_ymm_ymmm256;
const LOW_PD: Code = Code::VEX_Vunpcklpd_ymm_ymm_ymmm256;
const HIGH_PD: Code = Code::VEX_Vunpckhpd_ymm_ymm_ymmm256;

impl Emitter<'_> {
    /// Loads columns of 32 bits for the 8 lanes of part `part`. If an access has less than 4 bytes, its column is
    /// extended, by its sign if `signed` is true.
    pub(super) fn load_columns32(&mut self, places: &Places, part: usize, d: &[Ymm], signed: bool) {
        let lane = 8 * part as u32;
        let [low, high, other] = SOURCES;
        let row = places.row().map(|row| row.plus((lane * places.size) as i32));
        if let (4, Some((row, swap))) = (places.size, places.swapped_row(part)) {
            return self.swap_elements(d[0], Source::Mem(row), swap);
        }
        match (places.size, row) {
            (size @ (1 | 2), row) => {
                let code = match (size, signed) {
                    (1, false) => Code::VEX_Vpmovzxbd_ymm_xmmm64,
                    (1, true) => Code::VEX_Vpmovsxbd_ymm_xmmm64,
                    (_, false) => Code::VEX_Vpmovzxwd_ymm_xmmm128,
                    (_, true) => Code::VEX_Vpmovsxwd_ymm_xmmm128,
                };
                let source = row.map_or_else(
                    || {
                        let zero = Code::VEX_Vpxor_ymm_ymm_ymmm256;
                        self.asm.vector(zero, low, low, Source::Ymm(low));
                        for i in 0..8 {
                            let at = self.lane(places, lane + i);
                            self.asm.insert(size, low, at, i);
                        }
                        Source::Ymm(low)
                    },
                    Source::Mem,
                );
                self.asm.widen(code, d[0], source);
            }
            (4, Some(row)) => self.asm.load(d[0], Source::Mem(row)),
            (4, None) => {
                for (half, first) in [(low, lane), (high, lane + 4)] {
                    let at = self.lane(places, first);
                    self.asm.load_low(4, half, at);
                    for i in 1..4 {
                        let at = self.lane(places, first + i);
                        self.asm.insert(4, half, at, i);
                    }
                }
                self.asm.insert_upper(d[0], low, Source::Ymm(high));
            }
            (8, row) => {
                match row {
                    Some(row) => {
                        self.asm.load(low, Source::Mem(row));
                        self.asm.load(high, Source::Mem(row.plus(32)));
                    }
                    None => {
                        self.load_pairs(places, lane, low, other);
                        self.load_pairs(places, lane + 4, high, other);
                    }
                }
                for (d, elements) in d.iter().zip([EVEN, ODD]) {
                    let high = Source::Ymm(high);
                    let code = Code::VEX_Vshufps_ymm_ymm_ymmm256_imm8;
                    self.asm.vector_imm(code, TEMP, low, high, elements);
                    self.swap_middle(*d, TEMP);
                }
            }
            _ => {
                for (d, i) in d.iter().zip(lane..) {
                    let at = self.lane(places, i);
                    self.asm.load_low(16, *d, at);
                    let at = self.lane(places, i + 4);
                    self.asm.insert_upper(*d, *d, Source::Mem(at));
                }
                let [a, b, c, e] = [0, 1, 2, 3].map(|i| d[i]);
                self.asm.vector(LOW_PS, TEMP, a, Source::Ymm(b));
                self.asm.vector(HIGH_PS, low, a, Source::Ymm(b));
                self.asm.vector(LOW_PS, high, c, Source::Ymm(e));
                self.asm.vector(HIGH_PS, other, c, Source::Ymm(e));
                self.asm.vector(LOW_PD, a, TEMP, Source::Ymm(high));
                self.asm.vector(HIGH_PD, b, TEMP, Source::Ymm(high));
                self.asm.vector(LOW_PD, c, low, Source::Ymm(other));
                self.asm.vector(HIGH_PD, e, low, Source::Ymm(other));
            }
        }
    }

    /// Loads columns of 64 bits for the 4 lanes of part `part`.
    pub(super) fn load_columns64(&mut self, places: &Places, part: usize, d: &[Ymm]) {
        let lane = 4 * part as u32;
        let [low, high, other] = SOURCES;
        let row = places.row().map(|row| row.plus((lane * places.size) as i32));
        match (places.size, row) {
            (8, Some(row)) => self.asm.load(d[0], Source::Mem(row)),
            (8, None) => self.load_pairs(places, lane, d[0], other),
            _ => {
                for (to, first) in [(low, lane), (high, lane + 2)] {
                    let at = self.lane(places, first);
                    self.asm.load_low(16, to, at);
                    let at = self.lane(places, first + 1);
                    self.asm.insert_upper(to, to, Source::Mem(at));
                }
                for (d, code) in d.iter().zip([LOW_PD, HIGH_PD]) {
                    self.asm.vector(code, TEMP, low, Source::Ymm(high));
                    self.swap_middle(*d, TEMP);
                }
            }
        }
    }

    /// Loads 8 bytes for each of 4 lanes into `d`, which is not `other`.
    fn load_pairs(&mut self, places: &Places, first: u32, d: Ymm, other: Ymm) {
        for (half, first) in [(d, first), (other, first + 2)] {
            let at = self.lane(places, first);
            self.asm.load_low(8, half, at);
            let at = self.lane(places, first + 1);
            self.asm.insert(8, half, at, 1);
        }
        self.asm.insert_upper(d, d, Source::Ymm(other));
    }

    /// Copies elements of 32 bits in another order: `swap` is combined with the number of each element by exclusive or.
    fn swap_elements(&mut self, d: Ymm, from: Source, swap: usize) {
        let mut from = from;
        if swap & 4 != 0 {
            const HALVES: u32 = 0b01_00_11_10;
            self.asm.unary_imm(Code::VEX_Vpermq_ymm_ymmm256_imm8, d, from, HALVES);
            from = Source::Ymm(d);
        }
        if swap & 3 != 0 {
            let order = (0..4).map(|i| ((i ^ (swap & 3)) as u32) << (2 * i)).sum();
            self.asm.unary_imm(Code::VEX_Vpshufd_ymm_ymmm256_imm8, d, from, order);
        } else if swap == 0 {
            self.asm.load(d, from);
        }
    }

    fn swap_middle(&mut self, d: Ymm, a: Ymm) {
        let code = Code::VEX_Vpermq_ymm_ymmm256_imm8;
        self.asm.unary_imm(code, d, Source::Ymm(a), SWAP_MIDDLE);
    }

    /// Stores columns of 32 bits of the 8 lanes of part `part`, in the order of the lanes. If an access has less than 4
    /// bytes, its column must be extended with zeros. Of four columns, the vectors of the last two are overwritten.
    pub(super) fn store_columns32(&mut self, places: &Places, part: usize, columns: &[Ymm]) {
        let lane = 8 * part as u32;
        let [low, high, other] = SOURCES;
        let row = places.row().map(|row| row.plus((lane * places.size) as i32));
        // Only whole columns can be stored for some lanes.
        let row = row.filter(|_| !self.masked || (places.size == 4 && columns.len() == 1));
        if let (4, [column], Some((row, swap))) = (places.size, columns, places.swapped_row(part)) {
            if swap != 0 {
                self.swap_elements(high, Source::Ymm(*column), swap);
            }
            return self.store_swapped(part, swap, row, *column);
        }
        if row.is_none() {
            self.begin_stores(places, lane..lane + 8);
        }
        match (places.size, columns) {
            (size @ (1 | 2), [column]) => {
                self.asm.upper_half(low, *column);
                self.asm
                    .vector_low(Code::VEX_Vpackusdw_xmm_xmm_xmmm128, low, *column, low);
                match row {
                    Some(row) => {
                        if size == 1 {
                            self.asm.vector_low(Code::VEX_Vpackuswb_xmm_xmm_xmmm128, low, low, low);
                        }
                        self.asm.store_low(8 * size, row, low);
                    }
                    None => {
                        for i in 0..8 {
                            let at = self.lane_to_store(places, lane + i);
                            self.asm.extract(size, at, low, 2 / size * i);
                        }
                    }
                }
            }
            (4, [column]) => match row {
                Some(row) => self.store_active(Width::Bits32, part, places, row, *column),
                None => {
                    self.asm.upper_half(high, *column);
                    for (half, first) in [(*column, lane), (high, lane + 4)] {
                        for i in 0..4 {
                            let at = self.lane_to_store(places, first + i);
                            self.asm.extract(4, at, half, i);
                        }
                    }
                }
            },
            (8, [a, b]) => {
                self.asm.vector(LOW_PS, low, *a, Source::Ymm(*b));
                self.asm.vector(HIGH_PS, high, *a, Source::Ymm(*b));
                match row {
                    Some(row) => self.store_halves_together(row, low, high),
                    None => {
                        for first in [lane, lane + 4] {
                            for i in 0..4 {
                                let at = self.lane_to_store(places, first + i);
                                self.asm.extract(8, at, [low, high][i as usize / 2], i % 2);
                            }
                            self.asm.upper_half(low, low);
                            self.asm.upper_half(high, high);
                        }
                    }
                }
            }
            (_, [a, b, c, d]) => {
                let (c, d) = (*c, *d);
                self.asm.vector(LOW_PS, TEMP, *a, Source::Ymm(*b));
                self.asm.vector(HIGH_PS, low, *a, Source::Ymm(*b));
                self.asm.vector(LOW_PS, high, c, Source::Ymm(d));
                self.asm.vector(HIGH_PS, other, c, Source::Ymm(d));
                self.asm.vector(LOW_PD, c, TEMP, Source::Ymm(high));
                self.asm.vector(HIGH_PD, TEMP, TEMP, Source::Ymm(high));
                self.asm.vector(LOW_PD, d, low, Source::Ymm(other));
                self.asm.vector(HIGH_PD, low, low, Source::Ymm(other));
                let lanes = [c, TEMP, d, low];
                for (from, i) in lanes.into_iter().zip(lane..) {
                    let at = self.lane_to_store(places, i);
                    self.asm.store_low(16, at, from);
                }
                for (from, i) in lanes.into_iter().zip(lane + 4..) {
                    let at = self.lane_to_store(places, i);
                    self.asm.store_upper(at, from);
                }
            }
            _ => debug_assert!(false, "the size determines the number of columns"),
        }
    }

    /// Stores columns of 64 bits of the 4 lanes of part `part`, in the order of the lanes.
    pub(super) fn store_columns64(&mut self, places: &Places, part: usize, columns: &[Ymm]) {
        let lane = 4 * part as u32;
        let [low, high, _] = SOURCES;
        let row = places.row().map(|row| row.plus((lane * places.size) as i32));
        let row = row.filter(|_| columns.len() == 1);
        if row.is_none() {
            self.begin_stores(places, lane..lane + 4);
        }
        match (columns, row) {
            ([column], Some(row)) => self.store_active(Width::Bits64, part, places, row, *column),
            ([column], None) => {
                self.asm.upper_half(high, *column);
                for i in 0..4 {
                    let at = self.lane_to_store(places, lane + i);
                    self.asm.extract(8, at, [*column, high][i as usize / 2], i % 2);
                }
            }
            ([a, b], _) => {
                self.asm.vector(LOW_PD, low, *a, Source::Ymm(*b));
                self.asm.vector(HIGH_PD, high, *a, Source::Ymm(*b));
                for i in 0..4 {
                    let at = self.lane_to_store(places, lane + i);
                    let from = [low, high][i as usize % 2];
                    if i < 2 {
                        self.asm.store_low(16, at, from);
                    } else {
                        self.asm.store_upper(at, from);
                    }
                }
            }
            _ => debug_assert!(false, "an access has at most two columns of 64 bits"),
        }
    }

    /// Stores the lower halves of two vectors, followed by their upper halves.
    fn store_halves_together(&mut self, to: Mem, a: Ymm, b: Ymm) {
        let code = Code::VEX_Vperm2f128_ymm_ymm_ymmm256_imm8;
        const LOWER: u32 = 0x20;
        const UPPER: u32 = 0x31;
        self.asm.vector_imm(code, TEMP, a, Source::Ymm(b), LOWER);
        self.asm.store_vector(to, TEMP);
        self.asm.vector_imm(code, TEMP, a, Source::Ymm(b), UPPER);
        self.asm.store_vector(to.plus(32), TEMP);
    }
}
