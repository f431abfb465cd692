//! Lowers the video instructions, whose operands can have selectors such as `.b0` and `.h1`.

use crate::ast::{self, Digits, Inst, OperandKind, Selector};
use crate::forms::{Form, Lowering};
use crate::ir::{Op, VideoInst, VideoPart, VideoThen};

use super::walker::Walker;

impl Walker<'_> {
    /// Checks and lowers a video instruction.
    pub(super) fn video(&mut self, inst: &Inst, form: &Form, operands: &[ast::Operand]) {
        let fitting = form.candidates.iter().find(|c| c.operands.len() == operands.len());
        let Some((specs, Lowering::Video(video))) = fitting.map(|c| (&c.operands, &c.lowering)) else {
            self.errors.mismatch = true;
            return self.note_unknown(operands);
        };
        let mut video = *video;
        let mut minus = [false; 4];
        for (index, (operand, spec)) in operands.iter().zip(specs).enumerate() {
            let (kind, selector) = match operand.kind {
                OperandKind::Name(name, Selector::Part(digits)) => {
                    (OperandKind::Name(name, Selector::None), Some(digits))
                }
                OperandKind::Neg(name, selector) if matches!(video, VideoInst::Mad(_)) => {
                    minus[index % 4] = true;
                    match selector {
                        Selector::Part(digits) => (OperandKind::Name(name, Selector::None), Some(digits)),
                        other => (OperandKind::Name(name, other), None),
                    }
                }
                kind => (kind, None),
            };
            let packed = matches!(video, VideoInst::Halves(..) | VideoInst::Bytes(..));
            if packed && matches!(kind, OperandKind::Int(_)) {
                self.say(operand.pos, wrong(index));
            }
            self.operand(index, &ast::Operand { kind, pos: operand.pos }, spec);
            if let Some(digits) = selector
                && let Err(message) = select(&mut video, index, operands.len(), digits, self.name)
            {
                self.say(operand.pos, message);
            }
        }
        if let VideoInst::Mad(mad) = &mut video {
            let [d, a, b, c] = minus;
            (mad.negate_product, mad.negate_c) = (a != b, c);
            if d || mad.negate_product && mad.negate_c {
                let message = "Operand negation limited to either (source A xor source B) or source C";
                self.say(inst.pos, message.to_owned());
            }
            if mad.plus_one && (mad.negate_product || mad.negate_c) {
                let message = "Conflicting use of '.po' modifier with operand negation";
                self.say(inst.pos, message.to_owned());
            }
        }
        self.emit(inst, Op::Video(video));
    }
}

/// Returns the message for a selector that the instruction does not have. Constants in packed instructions get the same
/// message.
fn wrong(index: usize) -> String {
    format!("Incorrect video selector for operand {index}")
}

/// Sets the selector of an operand in the instruction. Returns a message if it is not allowed there.
fn select(video: &mut VideoInst, index: usize, operands: usize, digits: Digits, name: &str) -> Result<(), String> {
    if index == 3 {
        return Err("Video selector is not allowed on 'source C' operand".to_owned());
    }
    match video {
        VideoInst::Scalar(_, v) => {
            let part = part(digits).ok_or_else(|| wrong(index))?;
            match index {
                0 if operands < 4 => return Err(not_on_destination(name)),
                0 if v.then != VideoThen::Nothing => {
                    let message = "Video instruction cannot have destination selector and secondary operation";
                    return Err(message.to_owned());
                }
                0 => v.then = VideoThen::Merge(part),
                1 => v.a.0 = part,
                _ => v.b.0 = part,
            }
        }
        VideoInst::Mad(v) => {
            let part = part(digits).ok_or_else(|| wrong(index))?;
            match index {
                0 => return Err(not_on_destination(name)),
                1 => v.a.0 = part,
                _ => v.b.0 = part,
            }
        }
        VideoInst::Halves(_, v) => {
            elements(digits, true, index, (&mut v.mask, &mut v.a, &mut v.b))?;
        }
        VideoInst::Bytes(_, v) => {
            elements(digits, false, index, (&mut v.mask, &mut v.a, &mut v.b))?;
        }
    }
    Ok(())
}

fn not_on_destination(name: &str) -> String {
    format!("Video selector is not allowed on destination for instruction '{name}'")
}

/// Returns the part that a selector such as `.b2` or `.h1` names.
fn part(digits: Digits) -> Option<VideoPart> {
    use VideoPart::{B0, B1, B2, B3, H0, H1};
    let choices: &[VideoPart] = if digits.halves { &[H0, H1] } else { &[B0, B1, B2, B3] };
    let part = choices.get(usize::from(digits.digits[0]))?;
    (digits.count == 1).then_some(*part)
}

/// Sets a selector such as `.h10` or `.b7654`: a mask for the result, and for a source one element of the operands for
/// each element of the result, the highest first.
fn elements<const N: usize>(
    digits: Digits,
    halves: bool,
    index: usize,
    (mask, a, b): (&mut u8, &mut [u8; N], &mut [u8; N]),
) -> Result<(), String> {
    let written = &digits.digits[..usize::from(digits.count)];
    if digits.halves != halves {
        return Err(wrong(index));
    }
    if index == 0 {
        let descending = written.windows(2).all(|w| w[0] > w[1]);
        if !descending || usize::from(written[0]) >= N {
            return Err(wrong(index));
        }
        *mask = written.iter().fold(0, |mask, digit| mask | 1 << digit);
        return Ok(());
    }
    if written.len() != N || written.iter().any(|digit| usize::from(*digit) >= 2 * N) {
        return Err(wrong(index));
    }
    let to = if index == 1 { a } else { b };
    for (element, digit) in to.iter_mut().rev().zip(written) {
        *element = *digit;
    }
    Ok(())
}
