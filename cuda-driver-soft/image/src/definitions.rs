//! The definitions of modules that will be linked together, and the conflicts between them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use ptx::ir::{Function, Linkage, Module, Variable};

/// Two definitions of one name that cannot be linked together.
///
/// `Display` prints the text of NVIDIA's linker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Two inputs define the name, and neither definition is `.weak` or `.common`.
    Duplicate {
        /// The name of the function or variable.
        symbol: String,
        /// The name of the new input.
        input: String,
        /// The name of the input that defines the symbol first.
        first: String,
    },
    /// The sizes of two definitions of a variable differ. Neither is `.common` without an initial value, and at most
    /// one is `.visible`.
    Size {
        /// The name of the variable.
        symbol: String,
        /// The name of the new input.
        input: String,
        /// The name of the input that defines the symbol first.
        first: String,
    },
    /// A `.common` variable without an initial value is larger than a definition that takes precedence over it.
    CommonTooLarge {
        /// The name of the variable.
        symbol: String,
        /// The name of the input with the `.common` variable.
        input: String,
    },
}

impl std::fmt::Display for Conflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Conflict::Duplicate { symbol, input, first } => {
                write!(
                    f,
                    "Multiple definition of '{symbol}' in '{input}', first defined in '{first}'"
                )
            }
            Conflict::Size { symbol, input, first } => {
                write!(
                    f,
                    "Size doesn't match for '{symbol}' in '{input}', first specified in '{first}'"
                )
            }
            Conflict::CommonTooLarge { symbol, input } => {
                write!(
                    f,
                    "Common symbol '{symbol}' in file '{input}' has larger size than initialization"
                )
            }
        }
    }
}

/// The precedence of a definition of a variable. Of several definitions, one with the highest precedence is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Precedence {
    /// `.common` without an initial value: the largest is chosen.
    Common,
    /// `.weak`, or `.common` with an initial value: the first is chosen.
    Weak,
    /// Any other definition. There is only one.
    Strong,
}

pub(crate) fn precedence(variable: &Variable) -> Precedence {
    match variable.linkage {
        Linkage::Common if variable.init.is_empty() => Precedence::Common,
        Linkage::Common | Linkage::Weak => Precedence::Weak,
        _ => Precedence::Strong,
    }
}

/// Returns true if other modules can refer to a symbol with this linkage.
pub(crate) fn is_global(linkage: Linkage) -> bool {
    linkage != Linkage::Internal
}

pub(crate) fn is_defined(variable: &Variable) -> bool {
    variable.linkage != Linkage::Extern
}

/// Returns true if the function is a definition that no other module may repeat.
pub(crate) fn is_strong(function: &Function) -> bool {
    function.code.is_some() && function.linkage == Linkage::Visible
}

/// The definitions of several inputs that do not conflict. A new input is compared with all of them in a time that
/// hardly depends on their number.
#[derive(Debug, Default)]
pub struct Definitions {
    /// The names of the inputs.
    inputs: Vec<String>,
    /// The input of each function that no other input may define.
    functions: HashMap<String, usize>,
    variables: HashMap<String, Earlier>,
}

/// Those definitions of a variable that can be the first to conflict with a new one. All definitions that are not
/// [`Precedence::Common`] have the same size, and no other definition is larger.
#[derive(Debug, Default)]
struct Earlier {
    /// The `.visible` definition.
    visible: Option<usize>,
    /// The first definition that is not [`Precedence::Common`], with its size.
    valued: Option<(u64, usize)>,
    /// The [`Precedence::Common`] definitions that are larger than all such definitions before them, with their sizes.
    commons: Vec<(u64, usize)>,
}

impl Definitions {
    /// Adds an input of this name after the others.
    ///
    /// # Errors
    /// Returns the first conflict with the definitions of the others. Then the input is not added.
    pub fn add(&mut self, input: &str, module: &Module) -> Result<(), Conflict> {
        let index = self.inputs.len();
        let functions = || module.functions.iter().filter(|f| is_strong(f));
        for function in functions() {
            if let Some(first) = self.functions.get(&function.name) {
                return Err(Conflict::Duplicate {
                    symbol: function.name.clone(),
                    input: input.to_owned(),
                    first: self.inputs[*first].clone(),
                });
            }
        }
        let shared = |v: &&Variable| is_global(v.linkage) && is_defined(v);
        let variables = || module.variables.iter().filter(shared);
        for variable in variables() {
            let earlier = self.variables.get(&variable.name);
            if let Some(conflict) = earlier.and_then(|earlier| self.conflict(earlier, variable, input)) {
                return Err(conflict);
            }
        }
        for function in functions() {
            self.functions.insert(function.name.clone(), index);
        }
        for variable in variables() {
            match self.variables.entry(variable.name.clone()) {
                Entry::Occupied(mut earlier) => earlier.get_mut().add(variable, index),
                Entry::Vacant(first) => first.insert(Earlier::default()).add(variable, index),
            }
        }
        self.inputs.push(input.to_owned());
        Ok(())
    }

    /// Returns the conflict of a new definition with the first of the others that it conflicts with.
    fn conflict(&self, earlier: &Earlier, new: &Variable, input: &str) -> Option<Conflict> {
        let (symbol, input) = (new.name.clone(), input.to_owned());
        let name = |index: usize| self.inputs[index].clone();
        let visible = earlier.visible.filter(|_| new.linkage == Linkage::Visible);
        if precedence(new) == Precedence::Common {
            let smaller = earlier.valued.filter(|(size, _)| new.size > *size);
            return smaller.map(|_| Conflict::CommonTooLarge { symbol, input });
        }
        let larger = earlier.commons.partition_point(|(size, _)| *size <= new.size);
        let larger = earlier.commons.get(larger).map(|(_, index)| *index);
        let other_size = earlier.valued.filter(|(size, _)| new.size != *size);
        let other_size = other_size.map(|(_, index)| index);
        let first = [visible, larger, other_size].into_iter().flatten().min()?;
        Some(if visible == Some(first) {
            Conflict::Duplicate {
                symbol,
                input,
                first: name(first),
            }
        } else if larger == Some(first) {
            let input = name(first);
            Conflict::CommonTooLarge { symbol, input }
        } else {
            Conflict::Size {
                symbol,
                input,
                first: name(first),
            }
        })
    }
}

impl Earlier {
    /// Adds a definition of an input.
    fn add(&mut self, variable: &Variable, input: usize) {
        if variable.linkage == Linkage::Visible {
            self.visible.get_or_insert(input);
        }
        if precedence(variable) != Precedence::Common {
            self.valued.get_or_insert((variable.size, input));
        } else if self.commons.last().is_none_or(|(size, _)| *size < variable.size) {
            self.commons.push((variable.size, input));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn module(text: &str) -> Arc<Module> {
        let text = format!(".version 8.0\n.target sm_80\n.address_size 64\n{text}");
        let limits = ptx::Limits {
            unresolved: true,
            ..ptx::Limits::default()
        };
        ptx::load(text.as_bytes(), &limits).expect("it is valid").module
    }

    #[test]
    fn the_first_function_that_is_defined_twice_is_named() {
        let all = |name: &str, numbers: std::ops::Range<usize>| {
            let functions = numbers.map(|number| format!(".visible .func f{number}() {{ ret; }}\n"));
            (name.to_owned(), module(&functions.collect::<String>()))
        };
        // Comparing all pairs of functions would take minutes.
        let others = [all("a", 0..20_000), all("b", 20_000..40_000)];
        let mut definitions = Definitions::default();
        for (name, module) in &others {
            assert_eq!(definitions.add(name, module), Ok(()));
        }
        let (name, module) = all("c", 39_990..60_000);
        let conflict = definitions
            .add(&name, &module)
            .expect_err("ten functions are defined twice");
        let expected = "Multiple definition of 'f39990' in 'c', first defined in 'b'";
        assert_eq!(conflict.to_string(), expected);
        // A refused input defines nothing.
        let (name, module) = all("d", 40_000..60_000);
        assert_eq!(definitions.add(&name, &module), Ok(()));
    }

    /// Adds definitions of one variable by inputs `a`, `b` and so on, and returns the error message of the last. The
    /// others must be accepted.
    fn last_message(definitions: &[&str]) -> Option<String> {
        let mut all = Definitions::default();
        let mut last = None;
        for (name, definition) in ('a'..).zip(definitions) {
            assert_eq!(last, None, "{definitions:?}");
            let (linkage, length) = definition.split_at(definition.len() - 3);
            let module = module(&format!("{linkage} .global .b32 w{length};"));
            last = all
                .add(&name.to_string(), &module)
                .err()
                .map(|conflict| conflict.to_string());
        }
        last
    }

    #[test]
    fn the_first_conflicting_variable_is_named() {
        let common = |input: &str| {
            let message = "has larger size than initialization";
            Some(format!("Common symbol 'w' in file '{input}' {message}"))
        };
        let size = |input: &str, first: &str| {
            let message = format!("Size doesn't match for 'w' in '{input}', first specified in '{first}'");
            Some(message)
        };
        let twice = |input: &str, first: &str| {
            let message = format!("Multiple definition of 'w' in '{input}', first defined in '{first}'");
            Some(message)
        };
        for (definitions, expected) in [
            (&[".common[1]", ".common[4]", ".common[2]", ".weak[3]"][..], common("b")),
            (&[".common[2]", ".common[1]", ".common[4]", ".weak[1]"], common("a")),
            (
                &[".common[4]", ".weak[4]", ".common[3]", ".visible[4]", ".weak[4]"],
                None,
            ),
            (&[".weak[4]", ".common[4]", ".weak[3]"], size("c", "a")),
            (&[".common[4]", ".weak[4]", ".weak[3]"], common("a")),
            (&[".weak[4]", ".weak[4]", ".common[5]"], common("c")),
            (&[".weak[4]", ".visible[4]", ".visible[4]"], twice("c", "b")),
            (&[".weak[4]", ".visible[4]", ".visible[5]"], size("c", "a")),
            (&[".visible[4]", ".weak[4]", ".visible[5]"], twice("c", "a")),
        ] {
            assert_eq!(last_message(definitions), expected, "{definitions:?}");
        }
    }

    #[test]
    fn repeated_definitions_do_not_add_up() {
        let mut definitions = Definitions::default();
        for linkage in [".common", ".weak"] {
            let module = module(&format!("{linkage} .global .b32 w;"));
            for _ in 0..1000 {
                assert_eq!(definitions.add("a", &module), Ok(()));
            }
        }
        let earlier = &definitions.variables["w"];
        assert_eq!((earlier.commons.len(), earlier.visible), (1, None));
        assert_eq!(earlier.valued, Some((4, 1000)));
    }
}
