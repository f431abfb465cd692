//! The names of a text that end with a number: the variables of a range `a<n>` that the module uses.

/// The identifiers that end with a digit, sorted.
pub(super) struct Mentions<'a>(Vec<&'a [u8]>);

impl<'a> Mentions<'a> {
    /// Finds the identifiers of a text, also in its comments.
    pub(super) fn of(text: &'a [u8]) -> Self {
        let is_part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'%');
        let words = text.split(|b| !is_part(b));
        let mut names: Vec<_> = words.filter(|w| w.last().is_some_and(u8::is_ascii_digit)).collect();
        names.sort_unstable();
        names.dedup();
        Mentions(names)
    }

    /// Returns the numbers below `count` that follow `prefix` in a name, in order.
    pub(super) fn numbers(&self, prefix: &[u8], count: u32) -> Vec<u32> {
        let first = self.0.partition_point(|name| *name < prefix);
        let names = self.0[first..].iter().map_while(|name| name.strip_prefix(prefix));
        let number = |digits: &[u8]| {
            let number: u32 = str::from_utf8(digits).ok()?.parse().ok()?;
            // A number with a sign or leading zeros names another variable.
            (number.to_string().as_bytes() == digits && number < count).then_some(number)
        };
        let mut numbers: Vec<u32> = names.filter_map(number).collect();
        numbers.sort_unstable();
        numbers
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
        assert_eq!(mentions.numbers(b"c", 10), []);
    }
}
