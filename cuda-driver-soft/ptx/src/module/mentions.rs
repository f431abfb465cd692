//! The names of a text that end with a number: the variables of a range `a<n>` that the module uses.

use std::collections::HashMap;

/// The digits of the largest number.
const MOST_DIGITS: usize = 10;

/// The numbers at the end of names by what precedes them, sorted: `a12` has 12 after `a` and 2 after `a1`.
pub(super) struct Mentions<'a>(HashMap<&'a [u8], Vec<u32>>);

impl<'a> Mentions<'a> {
    /// Finds the identifiers of a text, also in its comments.
    pub(super) fn of(text: &'a [u8]) -> Self {
        let is_part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'%');
        let mut numbers: HashMap<&[u8], Vec<u32>> = HashMap::new();
        for word in text.split(|b| !is_part(b)) {
            let digits = word.iter().rev().take(MOST_DIGITS).take_while(|b| b.is_ascii_digit());
            for count in 1..=digits.count() {
                let (prefix, digits) = word.split_at(word.len() - count);
                // A number with leading zeros names another variable.
                if count > 1 && digits[0] == b'0' {
                    continue;
                }
                let number: Option<u32> = str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
                numbers.entry(prefix).or_default().extend(number);
            }
        }
        for numbers in numbers.values_mut() {
            numbers.sort_unstable();
            numbers.dedup();
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
        let mentions = Mentions::of(b"a1 a10, [a2+4]; a02 a4294967295 a4 a b1 ba3 a3x a1\n%a0 // a7");
        assert_eq!(mentions.numbers(b"a", 10), [1, 2, 4, 7]);
        assert_eq!(mentions.numbers(b"a", u32::MAX), [1, 2, 4, 7, 10]);
        assert_eq!(mentions.numbers(b"a1", 1), [0]);
        assert_eq!(mentions.numbers(b"c", 10), [0; 0]);
    }
}
