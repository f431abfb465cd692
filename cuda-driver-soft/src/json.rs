//! Writes JSON objects as text.

use std::fmt::{Display, Write as _};

/// The largest absolute value up to which `f64` represents every integer exactly. Many readers of JSON use `f64` for
/// all numbers.
const EXACT: i64 = 1 << 53;

/// A JSON object that is being written.
#[derive(Clone, Debug)]
pub(crate) struct Object(String);

impl Object {
    pub(crate) fn new() -> Self {
        Object("{".into())
    }

    fn key(&mut self, key: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        quote(key, &mut self.0);
        self.0.push(':');
    }

    /// Adds a string.
    pub(crate) fn text(mut self, key: &str, value: &str) -> Self {
        self.key(key);
        quote(value, &mut self.0);
        self
    }

    /// Adds a number.
    pub(crate) fn number(mut self, key: &str, value: impl Display) -> Self {
        self.key(key);
        _ = write!(self.0, "{value}");
        self
    }

    /// Adds a value as a number if it is an integer that every reader keeps exact, else as a string.
    pub(crate) fn value(self, key: &str, value: &str) -> Self {
        match value.parse::<i64>() {
            Ok(number) if (-EXACT..=EXACT).contains(&number) => self.number(key, number),
            _ => self.text(key, value),
        }
    }

    /// Adds a list of numbers.
    pub(crate) fn numbers(mut self, key: &str, values: &[u32]) -> Self {
        self.key(key);
        _ = write!(self.0, "{values:?}");
        self
    }

    /// Adds a list of strings.
    pub(crate) fn texts(mut self, key: &str, values: impl IntoIterator<Item = String>) -> Self {
        self.key(key);
        self.0.push('[');
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            quote(&value, &mut self.0);
        }
        self.0.push(']');
        self
    }

    /// Adds an object.
    pub(crate) fn object(mut self, key: &str, value: Object) -> Self {
        self.key(key);
        self.0.push_str(&value.end());
        self
    }

    /// Adds a list of objects, each on a line of its own.
    pub(crate) fn objects(mut self, key: &str, values: impl Iterator<Item = Object>) -> Self {
        self.key(key);
        let values: Vec<String> = values.map(Object::end).collect();
        _ = write!(self.0, "[\n{}\n]", values.join(",\n"));
        self
    }

    /// Returns the text of the object.
    pub(crate) fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Appends a JSON string.
fn quote(text: &str, to: &mut String) {
    to.push('"');
    for c in text.chars() {
        match c {
            '"' => to.push_str("\\\""),
            '\\' => to.push_str("\\\\"),
            c if c < ' ' => _ = write!(to, "\\u{:04x}", u32::from(c)),
            c => to.push(c),
        }
    }
    to.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_each_kind() {
        let inner = Object::new().text("a\"b", "c\\d\n");
        let object = Object::new()
            .number("ts", 1.5)
            .value("small", "-7")
            .value("large", "18446744073709551615")
            .value("name", "CUDA_SUCCESS")
            .numbers("grid", &[1, 2, 3])
            .texts("list", ["x".into(), "y".into()])
            .object("args", inner)
            .objects("all", [Object::new(), Object::new()].into_iter());
        assert_eq!(
            object.end(),
            r#"{"ts":1.5,"small":-7,"large":"18446744073709551615","name":"CUDA_SUCCESS","grid":[1, 2, 3],"list":["x","y"],"args":{"a\"b":"c\\d\u000a"},"all":["#
                .to_owned()
                + "\n{},\n{}\n]}"
        );
        assert_eq!(Object::new().end(), "{}");
    }
}
