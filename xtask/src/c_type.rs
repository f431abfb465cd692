//! The C types of parameters.

/// A type of the bindings: a base type and the number of pointers to it.
#[derive(Debug, Clone)]
pub(crate) struct CType {
    /// The name of the base type in the bindings, for instance `c_uint` or `CUstream`.
    pub(crate) base: String,
    /// True if the innermost pointer points to constant data.
    pub(crate) constant: bool,
    /// The number of pointers; 0 for the base type itself.
    pub(crate) pointers: usize,
}

impl CType {
    /// Reads a type as the bindings write it, for instance `*mut *const c_char`.
    pub(crate) fn parse(text: &str) -> Self {
        let (mut base, mut constant, mut pointers) = (text, false, 0);
        loop {
            if let Some(rest) = base.strip_prefix("*mut ") {
                (base, constant) = (rest, false);
            } else if let Some(rest) = base.strip_prefix("*const ") {
                (base, constant) = (rest, true);
            } else {
                break;
            }
            pointers += 1;
        }
        Self {
            base: base.to_owned(),
            constant,
            pointers,
        }
    }

    /// Returns true if C's type is an integer that can hold flags.
    pub(crate) fn is_number(&self) -> bool {
        const NUMBERS: &[&str] = &["c_int", "c_uint", "c_ulonglong", "cuuint64_t"];
        NUMBERS.contains(&self.base.as_str())
    }

    pub(crate) fn is_void(&self) -> bool {
        self.base == "c_void"
    }

    pub(crate) fn is_char(&self) -> bool {
        self.base == "c_char"
    }

    /// Returns true if a parameter of this type can be a truth value in C, or a pointer to one.
    pub(crate) fn is_truth(&self) -> bool {
        self.pointers < 2 && ["c_int", "c_uint"].contains(&self.base.as_str())
    }

    /// Returns the base type in a checked call.
    pub(crate) fn base(&self) -> String {
        match self.base.as_str() {
            "c_void" | "c_char" | "usize" | "f32" => self.base.clone(),
            "c_int" => "i32".to_owned(),
            "c_uint" | "cuuint32_t" => "u32".to_owned(),
            "c_ushort" => "u16".to_owned(),
            "c_uchar" => "u8".to_owned(),
            "c_ulonglong" | "cuuint64_t" => "u64".to_owned(),
            other => format!("sys::{other}"),
        }
    }

    /// Returns the whole type in a checked call.
    pub(crate) fn rust(&self) -> String {
        self.with_pointers(self.pointers)
    }

    /// Returns the type that the outermost pointer points to.
    pub(crate) fn pointee(&self) -> String {
        self.with_pointers(self.pointers.saturating_sub(1))
    }

    fn with_pointers(&self, pointers: usize) -> String {
        let mut out = self.base();
        for level in 0..pointers {
            let constant = self.constant && level == 0;
            out = format!("*{} {out}", if constant { "const" } else { "mut" });
        }
        out
    }

    /// Returns the Rust type of the elements that the pointer points to: a byte for C's `void`.
    pub(crate) fn element(&self) -> String {
        if self.is_void() && self.pointers == 1 {
            "u8".to_owned()
        } else {
            self.pointee()
        }
    }
}
