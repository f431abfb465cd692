//! Machine instructions on parts of vector registers: halves, single elements, and the elements or bits that a mask
//! selects.

use super::assembler::{Assembler, Mem, Source, Width, Ymm};
use super::encoding::Operand;
use iced_x86::Code;

impl Assembler {
    /// Sets the lower half to 4, 8 or 16 bytes of memory, and the bytes above them to zero.
    pub(super) fn load_low(&mut self, bytes: u32, d: Ymm, from: Mem) {
        let code = match bytes {
            4 => Code::VEX_Vmovd_xmm_rm32,
            8 => Code::VEX_Vmovq_xmm_xmmm64,
            _ => Code::VEX_Vmovups_xmm_xmmm128,
        };
        self.push(code, &[d.low(), from.operand()]);
    }

    /// Replaces an element of 1, 2, 4 or 8 bytes in the lower half by one in memory, and sets the upper half to zero.
    pub(super) fn insert(&mut self, bytes: u32, d: Ymm, from: Mem, at: u32) {
        let code = match bytes {
            1 => Code::VEX_Vpinsrb_xmm_xmm_r32m8_imm8,
            2 => Code::VEX_Vpinsrw_xmm_xmm_r32m16_imm8,
            4 => Code::VEX_Vpinsrd_xmm_xmm_rm32_imm8,
            _ => Code::VEX_Vpinsrq_xmm_xmm_rm64_imm8,
        };
        self.push(
            code,
            &[d.low(), d.low(), from.operand(), Operand::Number(at.cast_signed())],
        );
    }

    /// Stores an element of 1, 2, 4 or 8 bytes of the lower half.
    pub(super) fn extract(&mut self, bytes: u32, to: Mem, from: Ymm, at: u32) {
        let code = match bytes {
            1 => Code::VEX_Vpextrb_r32m8_xmm_imm8,
            2 => Code::VEX_Vpextrw_r32m16_xmm_imm8,
            4 => Code::VEX_Vpextrd_rm32_xmm_imm8,
            _ => Code::VEX_Vpextrq_rm64_xmm_imm8,
        };
        self.push(code, &[to.operand(), from.low(), Operand::Number(at.cast_signed())]);
    }

    /// Replaces the upper half by the lower half of another register, or by 16 bytes of memory. The lower half comes
    /// from `low`.
    pub(super) fn insert_upper(&mut self, d: Ymm, low: Ymm, upper: Source) {
        let code = Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8;
        self.push(code, &[d.whole(), low.whole(), upper.low(), Operand::Number(1)]);
    }

    /// Stores the lower half, or its first 8 bytes.
    pub(super) fn store_low(&mut self, bytes: u32, to: Mem, from: Ymm) {
        let code = match bytes {
            8 => Code::VEX_Vmovq_xmmm64_xmm,
            _ => Code::VEX_Vmovups_xmmm128_xmm,
        };
        self.push(code, &[to.operand(), from.low()]);
    }

    /// Stores the elements whose highest bit is set in a mask.
    pub(super) fn store_masked(&mut self, width: Width, to: Mem, mask: Ymm, from: Ymm) {
        let code = match width {
            Width::Bits32 => Code::VEX_Vmaskmovps_m256_ymm_ymm,
            Width::Bits64 => Code::VEX_Vmaskmovpd_m256_ymm_ymm,
        };
        self.push(code, &[to.operand(), mask.whole(), from.whole()]);
    }

    /// Stores the upper half.
    pub(super) fn store_upper(&mut self, to: Mem, from: Ymm) {
        let code = Code::VEX_Vextracti128_xmmm128_ymm_imm8;
        self.push(code, &[to.operand(), from.whole(), Operand::Number(1)]);
    }

    /// Adds an instruction with two sources on lower halves. It sets the upper half of the result to zero.
    pub(super) fn vector_low(&mut self, code: Code, d: Ymm, a: Ymm, b: Ymm) {
        self.push(code, &[d.low(), a.low(), b.low()]);
    }

    /// Tests the bits of `from` that are set in a vector in memory. The condition is `Equal` if none of them is set.
    pub(super) fn test_bits(&mut self, from: Ymm, bits: Mem) {
        let code = Code::VEX_Vptest_ymm_ymmm256;
        self.push(code, &[from.whole(), bits.operand()]);
    }
}
