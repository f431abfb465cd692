//! Tests of accesses to shared memory in which thread `i` accesses the place of thread `i ^ swap`, its partner, as in
//! sorting networks. `swap` is a constant. Compiled code runs groups of 8 to 32 lanes. For such accesses it checks one
//! range for the whole group, and moves values between lanes. For addresses that follow no rule, it checks each of
//! them.

use super::compiled::{same_fault_in, same_in};

/// Returns code that gives each thread a place of `bytes` bytes, 4 or 8, in shared memory, and stores numbers there:
/// `%r10` if the place has 4 bytes, else `%r10` and `%r11`. Afterwards
/// * `%r10` and `%r11` are two numbers of the thread from the input,
/// * `%rd12` and `%r12` are the address of the first thread's place,
/// * `%rd11` and `%r14` are the offset of the thread's place, and `%rd13` and `%r13` its address,
/// * `%r20` and `%r21` are 0.
fn begin(bytes: u32) -> String {
    format!(
        "ld.global.v2.u32 {{%r10, %r11}}, [%rd6]; mov.u32 %r20, 0; mov.u32 %r21, 0; mov.u64 %rd12, part;
        mul.wide.u32 %rd11, %r6, {bytes}; add.u64 %rd13, %rd12, %rd11; mov.u32 %r12, part; mul.lo.u32 %r14, %r6, {bytes};
        add.u32 %r13, %r12, %r14; mov.b64 %rd14, {{%r10, %r11}}; st.shared.u{} [%rd13], {}; bar.sync 0;",
        8 * bytes,
        if bytes == 8 { "%rd14" } else { "%r10" },
    )
}

/// Stores `%r20` and `%r21`.
const STORE: &str = "mov.b64 %rd9, {%r20, %r21}; st.global.u64 [%rd3], %rd9;";

/// Block shapes whose threads all have partners: powers of two that are larger than each `swap`.
const BLOCKS: [(u32, u32); 2] = [(64, 1), (128, 1)];

/// Returns four pieces of code that compute the address of the partner's place in different ways, each with the name of
/// the register that holds the address.
fn partners(swap: u32, bytes: u32) -> [(String, &'static str); 4] {
    let distance = swap * bytes;
    [
        (
            format!("xor.b64 %rd15, %rd11, {distance}; add.u64 %rd16, %rd12, %rd15;"),
            "%rd16",
        ),
        (
            format!("xor.b32 %r15, %r14, {distance}; add.u32 %r16, %r15, %r12;"),
            "%r16",
        ),
        (
            format!("xor.b32 %r15, %r6, {swap}; mul.wide.u32 %rd15, %r15, {bytes}; add.u64 %rd16, %rd15, %rd12;"),
            "%rd16",
        ),
        (
            format!(
                "xor.b32 %r15, %r6, {swap}; shl.b32 %r17, %r15, {}; add.u32 %r16, %r12, %r17;",
                bytes.trailing_zeros()
            ),
            "%r16",
        ),
    ]
}

#[test]
fn loads_and_stores_of_partners() {
    for swap in [1, 2, 4, 11, 24, 32, 37] {
        for (number, (partner, at)) in partners(swap, 4).into_iter().enumerate() {
            let begin = begin(4);
            same_in(
                &BLOCKS,
                &format!("{begin} {partner} ld.shared.u32 %r20, [{at}]; xor.b32 %r21, %r20, %r10; {STORE}"),
            );
            if number % 2 == 0 {
                same_in(
                    &BLOCKS,
                    &format!(
                        "{begin} {partner} st.shared.u32 [{at} + 4], %r11; bar.sync 0; ld.shared.u32 %r20, [%r13]; {STORE}"
                    ),
                );
            }
        }
    }
}

/// A step of a sorting network. The lower thread of each pair compares the two values, and exchanges them if they are
/// in the wrong order, so that lanes diverge. With the second condition, at most one thread skips the exchange.
#[test]
fn lanes_exchange_values() {
    for swap in [1, 6, 16, 31] {
        for (partner, at) in partners(swap, 4) {
            for condition in ["lt.u32 %p1, %r18, %r19", "eq.u32 %p1, %r8, 13"] {
                let begin = begin(4);
                same_in(
                    &BLOCKS,
                    &format!(
                        "{begin} {partner} xor.b32 %r22, %r6, {swap}; setp.le.u32 %p2, %r22, %r6; @%p2 bra join;
                        ld.shared.u32 %r18, [{at}]; ld.shared.u32 %r19, [%r13]; setp.{condition}; @%p1 bra join;
                        st.shared.u32 [%r13], %r18; st.shared.u32 [{at}], %r19;
                        join: bar.sync 0; ld.shared.u32 %r20, [%r13]; {STORE}"
                    ),
                );
            }
        }
    }
}

/// Accesses to elements of 1 to 8 bytes and to vectors, and atomic operations. Before some of them, lanes diverge.
#[test]
fn other_accesses_of_partners() {
    for swap in [5, 16] {
        for (partner, at) in partners(swap, 8) {
            let begin = begin(8);
            for access in [
                "ld.shared.u64 %rd16, [@]; mov.b64 {%r20, %r21}, %rd16;",
                "ld.shared.v2.u32 {%r20, %r21}, [@];",
                "ld.shared.u16 %r20, [@]; ld.shared.s8 %r21, [@ + 3];",
                "setp.lt.u32 %p1, %r10, %r11; @%p1 bra join; st.shared.u64 [@], %rd5; join: bar.sync 0; ld.shared.v2.u32 {%r20, %r21}, [%r13];",
                "setp.lt.u32 %p1, %r10, %r11; @%p1 bra join; st.shared.v2.u32 [@], {%r11, %r0}; join: bar.sync 0;
                ld.shared.v2.u32 {%r20, %r21}, [%r13];",
                "setp.lt.u32 %p1, %r10, %r11; @%p1 bra join; red.shared.add.u32 [@], %r0; join: bar.sync 0;
                ld.shared.v2.u32 {%r20, %r21}, [%r13];",
            ] {
                let access = access
                    .replace('@', "\u{0}")
                    .replace("\u{0}%p1", "@%p1")
                    .replace('\u{0}', at);
                same_in(&BLOCKS, &format!("{begin} {partner} {access} {STORE}"));
            }
        }
    }
}

/// Addresses that are computed in a similar way, but are not those of partners. For example, the offset of a group's
/// first lane is not a multiple of the bytes of all its lanes, only some lanes change the address, or the address
/// depends on the path on which lanes have come. In one kernel they are those of partners, but some groups leave the
/// code before.
#[test]
fn other_orders() {
    let begin = begin(4);
    let end = format!("ld.shared.u32 %r20, [%r16]; {STORE}");
    for address in [
        "add.u32 %r15, %r14, 12; xor.b32 %r17, %r15, 4; add.u32 %r16, %r12, %r17;",
        "xor.b32 %r17, %r14, 4; add.u32 %r16, %r12, %r17; @%p1 add.u32 %r16, %r16, 8;",
        "xor.b32 %r17, %r14, %r2; and.b32 %r17, %r17, 0xfffffffc; add.u32 %r16, %r12, %r17;",
        "xor.b32 %r15, %r8, 3; xor.b32 %r17, %r15, 5; shl.b32 %r17, %r17, 2; add.u32 %r16, %r12, %r17;",
        "min.u32 %r15, %r6, 20; xor.b32 %r17, %r15, 1; shl.b32 %r18, %r17, 2; add.u32 %r16, %r12, %r18;",
        // The code assumes that the minimum is its first operand in all lanes of a group. Only then is `%r17` the same
        // in all lanes, and `%r16` the address of a partner.
        "min.u32 %r15, %r6, 20; sub.u32 %r22, %r15, %r6; shl.b32 %r17, %r22, 2; xor.b32 %r18, %r14, 4;
        add.u32 %r19, %r18, %r17; add.u32 %r16, %r12, %r19; bar.sync 0;",
        // Here the address does not depend on this assumption. Groups for which it does not hold leave the code before
        // the barrier, and may enter it again after it.
        "min.u32 %r15, %r6, 20; xor.b32 %r18, %r14, 4; add.u32 %r16, %r12, %r18; st.shared.u32 [%rd13], %r15; bar.sync 0;",
        "mov.u32 %r19, 8; @%p1 bra other; xor.b32 %r17, %r14, 8; add.u32 %r16, %r12, %r17; bra both;
        other: xor.b32 %r17, %r14, 8; add.u32 %r16, %r17, %r12; add.u32 %r16, %r16, %r19; both:",
    ] {
        same_in(
            &BLOCKS[..1],
            &format!(
                "{begin} st.shared.u32 [%rd13 + 256], %r11; bar.sync 0; setp.lt.u32 %p1, %r10, %r11; {address} {end}"
            ),
        );
    }
}

/// Faults: the places of some lanes are past the end of shared memory, or all addresses are misaligned.
#[test]
fn faults_of_partners() {
    for swap in [1, 16] {
        for offset in ["8128", "2"] {
            for (partner, at) in partners(swap, 4) {
                let begin = begin(4);
                for access in [
                    "ld.shared.u32 %r20, [@ + #];",
                    "st.shared.u32 [@ + #], %r0;",
                    "setp.lt.u32 %p1, %r8, 5; @%p1 bra join; ld.shared.u32 %r20, [@ + #]; join:",
                    "setp.lt.u32 %p1, %r10, %r11; @%p1 bra join; st.shared.u32 [@ + #], %r0; join:",
                ] {
                    let access = access.replace("[@", &format!("[{at}")).replace('#', offset);
                    same_fault_in(&BLOCKS, &format!("{begin} {partner} {access} {STORE}"));
                }
            }
        }
    }
}
