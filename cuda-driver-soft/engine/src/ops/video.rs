//! Handlers of the video instructions, such as `vadd4.u32.u32.u32.sat`.

use crate::code::handlers::{Body, Copies, Handlers, Rare};
use crate::code::inst::{Flow, Inst};
use crate::code::machine::Machine;
use crate::code::registers::{Lane, Regs};
use crate::lanes::Mask;
use crate::semantics::video::video;
use ptx::ir::{Compare, Video, VideoEach, VideoInst, VideoMad, VideoOp, VideoPacked, VideoPart, VideoThen};

/// Returns the handlers of all video instructions: `a`, `b` and `c` are the sources, `d` is the result, and `imm` is
/// the instruction as [`pack`] encodes it.
pub(crate) fn handlers() -> Handlers {
    Rare::compile::<RunVideo>()
}

struct RunVideo;

impl Body for RunVideo {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        _m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        let video_inst = unpack(inst.imm);
        // SAFETY: the slots are of this frame and rows of 32 bits, as promised by the caller.
        let (a, b, c) = unsafe {
            (
                u32::read(regs, inst.a),
                u32::read(regs, inst.b),
                u32::read(regs, inst.c),
            )
        };
        let result = std::array::from_fn(|i| video(video_inst, a[i], b[i], c[i]));
        // SAFETY: as above.
        unsafe { u32::merge(regs, inst.d, result, mask) };
        Flow::Next
    }
}

/// A sequence of small numbers in 64 bits, from the lowest bit up.
#[derive(Clone, Copy)]
struct Bits {
    bits: u64,
    /// The number of bits that were written or read.
    at: u32,
}

impl Bits {
    fn put(&mut self, value: impl Into<u64>, width: u32) {
        self.bits |= value.into() << self.at;
        self.at += width;
    }

    fn take(&mut self, width: u32) -> u64 {
        let value = self.bits >> self.at & ((1 << width) - 1);
        self.at += width;
        value
    }

    fn flag(&mut self) -> bool {
        self.take(1) != 0
    }
}

const COMPARES: [Compare; 6] = {
    use Compare::*;
    [Eq, Ne, Lt, Le, Gt, Ge]
};

fn put_compare(bits: &mut Bits, compare: Compare) {
    let index = COMPARES.iter().position(|c| *c == compare).unwrap_or(0);
    bits.put(index as u64, 3);
}

fn compare(bits: &mut Bits) -> Compare {
    COMPARES[bits.take(3) as usize % COMPARES.len()]
}

fn put_part(bits: &mut Bits, part: VideoPart) {
    let index = VideoPart::ALL.iter().position(|p| *p == part).unwrap_or(0);
    bits.put(index as u64, 3);
}

fn part(bits: &mut Bits) -> VideoPart {
    VideoPart::ALL[bits.take(3) as usize % VideoPart::ALL.len()]
}

/// Encodes an instruction in 64 bits.
pub(crate) fn pack(video_inst: VideoInst) -> u64 {
    let bits = &mut Bits { bits: 0, at: 0 };
    match video_inst {
        VideoInst::Scalar(op, v) => {
            bits.put(0u64, 2);
            let (number, wrap, set) = match op {
                VideoOp::Add => (0u64, false, Compare::Eq),
                VideoOp::Sub => (1, false, Compare::Eq),
                VideoOp::AbsDiff => (2, false, Compare::Eq),
                VideoOp::Min => (3, false, Compare::Eq),
                VideoOp::Max => (4, false, Compare::Eq),
                VideoOp::Shl { wrap } => (5, wrap, Compare::Eq),
                VideoOp::Shr { wrap } => (6, wrap, Compare::Eq),
                VideoOp::Set(compare) => (7, false, compare),
            };
            bits.put(number, 3);
            bits.put(wrap, 1);
            put_compare(bits, set);
            for (part, signed) in [v.a, v.b] {
                put_part(bits, part);
                bits.put(signed, 1);
            }
            bits.put(v.signed, 1);
            bits.put(v.sat, 1);
            let (then, part) = match v.then {
                VideoThen::Nothing => (0u64, VideoPart::Word),
                VideoThen::Add => (1, VideoPart::Word),
                VideoThen::Min => (2, VideoPart::Word),
                VideoThen::Max => (3, VideoPart::Word),
                VideoThen::Merge(part) => (4, part),
            };
            bits.put(then, 3);
            put_part(bits, part);
        }
        VideoInst::Mad(v) => {
            bits.put(1u64, 2);
            for (part, signed) in [v.a, v.b] {
                put_part(bits, part);
                bits.put(signed, 1);
            }
            for flag in [v.negate_product, v.negate_c, v.plus_one, v.sat] {
                bits.put(flag, 1);
            }
            bits.put(v.shift, 4);
        }
        VideoInst::Halves(op, v) => {
            bits.put(2u64, 2);
            put_packed(bits, op, &v);
        }
        VideoInst::Bytes(op, v) => {
            bits.put(3u64, 2);
            put_packed(bits, op, &v);
        }
    }
    bits.bits
}

fn put_packed<const N: usize>(bits: &mut Bits, op: VideoEach, v: &VideoPacked<N>) {
    let (number, set) = match op {
        VideoEach::Add => (0u64, Compare::Eq),
        VideoEach::Sub => (1, Compare::Eq),
        VideoEach::Avrg => (2, Compare::Eq),
        VideoEach::AbsDiff => (3, Compare::Eq),
        VideoEach::Min => (4, Compare::Eq),
        VideoEach::Max => (5, Compare::Eq),
        VideoEach::Set(compare) => (6, compare),
    };
    bits.put(number, 3);
    put_compare(bits, set);
    for element in v.a.iter().chain(&v.b) {
        bits.put(*element, 3);
    }
    for flag in [v.a_signed, v.b_signed, v.signed, v.sat, v.add] {
        bits.put(flag, 1);
    }
    bits.put(v.mask, 4);
}

/// Decodes an instruction that [`pack`] encoded.
fn unpack(bits: u64) -> VideoInst {
    let bits = &mut Bits { bits, at: 0 };
    match bits.take(2) {
        0 => {
            let (number, wrap, set) = (bits.take(3), bits.flag(), compare(bits));
            let op = match number {
                0 => VideoOp::Add,
                1 => VideoOp::Sub,
                2 => VideoOp::AbsDiff,
                3 => VideoOp::Min,
                4 => VideoOp::Max,
                5 => VideoOp::Shl { wrap },
                6 => VideoOp::Shr { wrap },
                _ => VideoOp::Set(set),
            };
            let (a, b) = ((part(bits), bits.flag()), (part(bits), bits.flag()));
            let (signed, sat) = (bits.flag(), bits.flag());
            let then = match (bits.take(3), part(bits)) {
                (0, _) => VideoThen::Nothing,
                (1, _) => VideoThen::Add,
                (2, _) => VideoThen::Min,
                (3, _) => VideoThen::Max,
                (_, part) => VideoThen::Merge(part),
            };
            let v = Video {
                a,
                b,
                signed,
                sat,
                then,
            };
            VideoInst::Scalar(op, v)
        }
        1 => VideoInst::Mad(VideoMad {
            a: (part(bits), bits.flag()),
            b: (part(bits), bits.flag()),
            negate_product: bits.flag(),
            negate_c: bits.flag(),
            plus_one: bits.flag(),
            sat: bits.flag(),
            shift: bits.take(4) as u32,
        }),
        2 => {
            let (op, v) = packed(bits);
            VideoInst::Halves(op, v)
        }
        _ => {
            let (op, v) = packed(bits);
            VideoInst::Bytes(op, v)
        }
    }
}

fn packed<const N: usize>(bits: &mut Bits) -> (VideoEach, VideoPacked<N>) {
    let (number, set) = (bits.take(3), compare(bits));
    let op = match number {
        0 => VideoEach::Add,
        1 => VideoEach::Sub,
        2 => VideoEach::Avrg,
        3 => VideoEach::AbsDiff,
        4 => VideoEach::Min,
        5 => VideoEach::Max,
        _ => VideoEach::Set(set),
    };
    let mut elements = || std::array::from_fn(|_| bits.take(3) as u8);
    let (a, b) = (elements(), elements());
    let v = VideoPacked {
        a,
        b,
        a_signed: bits.flag(),
        b_signed: bits.flag(),
        signed: bits.flag(),
        sat: bits.flag(),
        add: bits.flag(),
        mask: bits.take(4) as u8,
    };
    (op, v)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_survives_packing() {
        let scalar = Video {
            a: (VideoPart::H1, true),
            b: (VideoPart::B3, false),
            signed: false,
            sat: true,
            then: VideoThen::Merge(VideoPart::B2),
        };
        let packed = VideoPacked {
            a: [7, 0, 5, 2],
            b: [1, 6, 3, 4],
            a_signed: false,
            b_signed: true,
            signed: true,
            sat: false,
            mask: 0b1010,
            add: true,
        };
        let halves = VideoPacked {
            a: [3, 0],
            b: [1, 2],
            a_signed: true,
            b_signed: false,
            signed: false,
            sat: true,
            mask: 0b10,
            add: false,
        };
        let mad = VideoMad {
            a: (VideoPart::B1, false),
            b: (VideoPart::Word, true),
            negate_product: true,
            negate_c: false,
            plus_one: false,
            sat: true,
            shift: 15,
        };
        let mut all = vec![
            VideoInst::Mad(mad),
            VideoInst::Mad(VideoMad {
                negate_product: false,
                negate_c: true,
                shift: 7,
                ..mad
            }),
        ];
        for op in [
            VideoOp::Add,
            VideoOp::Sub,
            VideoOp::AbsDiff,
            VideoOp::Min,
            VideoOp::Max,
            VideoOp::Shl { wrap: true },
            VideoOp::Shl { wrap: false },
            VideoOp::Shr { wrap: true },
            VideoOp::Set(Compare::Ge),
        ] {
            all.push(VideoInst::Scalar(op, scalar));
            for then in [VideoThen::Nothing, VideoThen::Add, VideoThen::Min, VideoThen::Max] {
                all.push(VideoInst::Scalar(op, Video { then, ..scalar }));
            }
        }
        for op in [
            VideoEach::Add,
            VideoEach::Sub,
            VideoEach::Avrg,
            VideoEach::AbsDiff,
            VideoEach::Min,
            VideoEach::Max,
            VideoEach::Set(Compare::Ne),
        ] {
            all.push(VideoInst::Bytes(op, packed));
            all.push(VideoInst::Halves(op, halves));
        }
        for video_inst in all {
            assert_eq!(unpack(pack(video_inst)), video_inst);
        }
    }
}
