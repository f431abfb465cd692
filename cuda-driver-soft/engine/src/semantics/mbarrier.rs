//! `mbarrier` objects: the arrivals and bytes for which a phase still waits. An object is 64 bits wide, and programs
//! treat it as opaque.

/// Number of bits of a count of arrivals.
const COUNT: u32 = 20;
const ONES: u64 = (1 << COUNT) - 1;
/// Number of bits of the count of transactions (bytes). The count is negative if more bytes have arrived than were
/// expected so far.
const TX: u32 = 22;
const TX_ONES: u64 = (1 << TX) - 1;
/// The bit that holds the parity of the phase.
const PHASE: u64 = 1 << 63;

/// Splits an object into its parts, from the lowest bit: arrivals that a phase expects, pending arrivals, pending
/// transactions, and the phase bit.
fn parts(object: u64) -> (u64, u64, u64, u64) {
    (
        object & ONES,
        object >> COUNT & ONES,
        object >> (2 * COUNT) & TX_ONES,
        object & PHASE,
    )
}

/// Joins the parts of an object.
fn object((expected, pending, transactions, phase): (u64, u64, u64, u64)) -> u64 {
    phase | (transactions & TX_ONES) << (2 * COUNT) | (pending & ONES) << COUNT | expected & ONES
}

/// Joins the parts of an object, and starts the next phase if nothing is pending.
fn settled(parts: (u64, u64, u64, u64)) -> u64 {
    let (expected, pending, transactions, phase) = parts;
    if pending & ONES == 0 && transactions & TX_ONES == 0 {
        object((expected, expected, 0, phase ^ PHASE))
    } else {
        object(parts)
    }
}

/// `mbarrier.init`: returns the new object.
pub fn init(count: u32) -> u64 {
    let count = u64::from(count);
    object((count, count, 0, 0))
}

/// `mbarrier.expect_tx`: returns the object after it. The phase ends when all threads and all these bytes have arrived.
pub fn expect_tx(before: u64, transactions: u32) -> u64 {
    let (expected, pending, tx, phase) = parts(before);
    settled((expected, pending, tx.wrapping_add(u64::from(transactions)), phase))
}

/// `mbarrier.complete_tx`: returns the object after it.
pub fn complete_tx(before: u64, transactions: u32) -> u64 {
    let (expected, pending, tx, phase) = parts(before);
    settled((expected, pending, tx.wrapping_sub(u64::from(transactions)), phase))
}

/// `mbarrier.arrive`: returns the object after it. The state that the instruction returns is the object before it.
pub fn arrive(before: u64, count: u32) -> u64 {
    let (expected, pending, tx, phase) = parts(before);
    settled((expected, pending.wrapping_sub(u64::from(count)), tx, phase))
}

/// `mbarrier.arrive_drop`: returns the object after it. Later phases expect fewer arrivals.
pub fn arrive_drop(before: u64, count: u32) -> u64 {
    let (expected, pending, tx, phase) = parts(before);
    let count = u64::from(count);
    settled((expected.wrapping_sub(count), pending.wrapping_sub(count), tx, phase))
}

/// `mbarrier.test_wait` with a state: returns true if the phase of the state is complete.
pub fn is_over(object: u64, state: u64) -> bool {
    (object ^ state) & PHASE != 0
}

/// `mbarrier.test_wait.parity`: returns true if the last phase of this parity is complete.
pub fn is_parity_over(object: u64, parity: u32) -> bool {
    u32::from(object & PHASE != 0) != parity & 1
}

/// `mbarrier.pending_count`: returns the pending arrivals in a state.
pub fn pending_count(state: u64) -> u32 {
    parts(state).1 as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_end_when_all_have_arrived() {
        let mut object = init(3);
        let first = object;
        assert_eq!(pending_count(first), 3);
        object = arrive(object, 1);
        let second = object;
        assert_eq!(pending_count(second), 2);
        assert!(!is_over(object, first) && !is_parity_over(object, 0));
        // The phase before the first counts as complete.
        assert!(is_parity_over(object, 1));
        object = arrive(object, 2);
        assert!(is_over(object, first) && is_over(object, second) && is_parity_over(object, 0));
        assert!(!is_parity_over(object, 1));
        assert_eq!(pending_count(object), 3);
        object = arrive(arrive_drop(object, 1), 2);
        assert!(is_parity_over(object, 1));
        assert_eq!(pending_count(object), 2);
    }

    #[test]
    fn transactions_hold_a_phase() {
        let mut object = init(1);
        object = expect_tx(object, 1024);
        object = arrive(object, 1);
        assert!(!is_parity_over(object, 0));
        object = complete_tx(object, 1000);
        assert!(!is_parity_over(object, 0));
        object = complete_tx(object, 24);
        assert!(is_parity_over(object, 0));
        // Bytes may arrive before they are expected.
        object = complete_tx(object, 16);
        object = arrive(expect_tx(object, 16), 1);
        assert!(is_parity_over(object, 1));
        // The thread that expects them may even be the last to act on the phase.
        object = arrive(complete_tx(object, 16), 1);
        assert!(!is_parity_over(object, 0));
        object = expect_tx(object, 16);
        assert!(is_parity_over(object, 0));
        assert_eq!(object, arrive(init(1), 1));
    }
}
