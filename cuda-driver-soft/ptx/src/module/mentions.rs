//! Finds the variables of ranges `a<n>` that a module uses: the names in its text that consist of the name of a range
//! and a number.

use std::collections::HashMap;

/// Digits of the largest number, `u32::MAX`.
const MOST_DIGITS: usize = 10;

/// The numbers that follow the name of each range, sorted: `a12` has 12 after `a` and 2 after `a1`.
pub(super) struct Mentions(HashMap<Vec<u8>, Vec<u32>>);

impl Mentions {
    /// Collects the numbers that follow the name of one of these ranges in the identifiers of a text. Identifiers in
    /// comments count, too.
    pub(super) fn of(text: &[u8], ranges: impl Iterator<Item = String>) -> Self {
        let is_part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'%');
        let mut numbers: HashMap<Vec<u8>, Vec<u32>> = ranges.map(|name| (name.into_bytes(), Vec::new())).collect();
        for word in text.split(|b| !is_part(b)) {
            let digits = word.iter().rev().take(MOST_DIGITS).take_while(|b| b.is_ascii_digit());
            for count in 1..=digits.count() {
                let (prefix, digits) = word.split_at(word.len() - count);
                // A number with leading zeros names another variable.
                if count > 1 && digits[0] == b'0' {
                    continue;
                }
                let Some(numbers) = numbers.get_mut(prefix) else {
                    continue;
                };
                numbers.extend(
                    str::from_utf8(digits)
                        .ok()
                        .and_then(|digits| digits.parse::<u32>().ok()),
                );
            }
        }
        for numbers in numbers.values_mut() {
            numbers.sort_unstable();
            numbers.dedup();
            numbers.shrink_to_fit();
        }
        Mentions(numbers)
    }

    /// Returns the numbers below `count` that follow `prefix` in a name, in order.
    pub(super) fn numbers(&self, prefix: &[u8], count: u32) -> &[u32] {
        let numbers = self.0.get(prefix).map_or(&[][..], Vec::as_slice);
        &numbers[..numbers.partition_point(|number| *number < count)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_of_the_range_are_found() {
        let text = b"a1 a10, [a2+4]; a02 a4294967295 a4 a b1 ba3 a3x a1\n%a0 // a7";
        let mentions = Mentions::of(text, ["a", "a1", "c"].map(str::to_owned).into_iter());
        assert_eq!(mentions.numbers(b"a", 10), [1, 2, 4, 7]);
        assert_eq!(mentions.numbers(b"a", u32::MAX), [1, 2, 4, 7, 10]);
        assert_eq!(mentions.numbers(b"a1", 1), [0]);
        assert_eq!(mentions.numbers(b"c", 10), [0; 0]);
        // Other names take no memory, however many the text has.
        assert_eq!(mentions.0.len(), 3);
    }
}
