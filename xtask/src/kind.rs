//! The directions of parameters, as `annotations.toml` names them, and the types that they fit.

use crate::c_type::CType;

/// The number of elements of an array.
#[derive(Debug, Clone)]
pub(crate) enum Count {
    /// The value of a parameter minus a number.
    Parameter {
        name: String,
        less: usize,
    },
    /// The value that a parameter points to; the call may change it.
    Pointer {
        name: String,
    },
    Fixed(usize),
}

/// The direction of a parameter; see the head of `annotations.toml`.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Value,
    Destroyed,
    Released,
    Raw,
    In { optional: bool },
    InOut { optional: bool },
    Out { name: Option<String>, owner: Owner },
    Truth,
    OutArray(usize),
    Text,
    String { count: String },
    Str { optional: bool },
    Slice { count: Count, optional: bool },
    SliceMut { count: Count, optional: bool },
    Bytes { count: Count },
    Buffer { count: Count },
    Vector { count: String },
    List { count: String },
    Copied { count: String },
}

/// The owner of a returned value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Nobody, because the value is neither a handle nor an address.
    Nobody,
    /// The caller, who destroys it.
    Caller,
    /// The driver, or an earlier owner.
    Other,
    /// The object whose handle this parameter takes.
    Parameter(String),
}

impl Kind {
    /// Reads a direction. The error is the reason why there is no such direction.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        const UNKNOWN: &str = "there is no such direction";
        let (text, optional) = match text.strip_suffix('?') {
            Some(text) => (text, true),
            None => (text, false),
        };
        let (word, count) = match text.split_once('[') {
            Some((word, rest)) => (word, Some(rest.strip_suffix(']').ok_or(UNKNOWN)?)),
            None => (text, None),
        };
        let kind = match (word, count) {
            ("destroyed", None) => Self::Destroyed,
            ("released", None) => Self::Released,
            ("raw", None) => Self::Raw,
            ("in", None) => Self::In { optional },
            ("inout", None) => Self::InOut { optional },
            ("text", None) => Self::Text,
            ("bool", None) => Self::Truth,
            ("str", None) => Self::Str { optional },
            ("string", Some(count)) => Self::String {
                count: count.to_owned(),
            },
            ("vec", Some(count)) => Self::Vector {
                count: count.to_owned(),
            },
            ("list", Some(count)) => Self::List {
                count: count.to_owned(),
            },
            ("copied", Some(count)) => Self::Copied {
                count: count.to_owned(),
            },
            ("bytes", Some(count)) => Self::Bytes {
                count: Count::parse(count).ok_or(UNKNOWN)?,
            },
            ("buf", Some(count)) => Self::Buffer {
                count: Count::parse(count).ok_or(UNKNOWN)?,
            },
            ("in", Some(count)) => Self::Slice {
                count: Count::parse(count).ok_or(UNKNOWN)?,
                optional,
            },
            ("out", Some(count)) => match Count::parse(count).ok_or(UNKNOWN)? {
                Count::Fixed(count) => Self::OutArray(count),
                count => Self::SliceMut { count, optional },
            },
            (word, None) => {
                let (word, owner) = match word.split_once('@') {
                    Some((word, owner)) => (word, Some(owner.to_owned())),
                    None => (word, None),
                };
                let (word, name) = match word.split_once(':') {
                    Some((word, name)) => (word, Some(name.to_owned())),
                    None => (word, None),
                };
                let owner = match (word, owner) {
                    ("out", None) => Owner::Nobody,
                    ("new", None) => Owner::Caller,
                    ("lent", None) => Owner::Other,
                    ("lent", Some(owner)) => Owner::Parameter(owner),
                    ("out" | "new", Some(_)) => return Err("only lent values belong to a parameter"),
                    _ => return Err(UNKNOWN),
                };
                Self::Out { name, owner }
            }
            _ => return Err(UNKNOWN),
        };
        let may_be_optional = matches!(
            kind,
            Self::In { .. }
                | Self::InOut { .. }
                | Self::Str { .. }
                | Self::Slice { .. }
                | Self::SliceMut { .. }
                | Self::Out { .. }
                | Self::List { .. }
                | Self::Copied { .. }
        );
        if optional && !may_be_optional {
            return Err("it cannot be optional");
        }
        Ok(kind)
    }

    /// Checks that a parameter of this type can have the direction. The error is the reason why it cannot.
    pub(crate) fn fits(&self, ty: &CType) -> Result<(), &'static str> {
        let fits = |fits: bool, why| if fits { Ok(()) } else { Err(why) };
        let is_value = ty.pointers == 1 && !ty.is_void();
        match self {
            Self::Value => return Ok(()),
            Self::Destroyed | Self::Released => {
                return fits(ty.pointers == 0, "only a handle passed by value can be destroyed");
            }
            Self::Truth if ty.is_truth() && ty.pointers == 0 => return Ok(()),
            _ if ty.pointers == 0 => return Err("it is passed by value"),
            Self::Raw | Self::In { .. } | Self::Str { .. } | Self::Slice { .. } | Self::Bytes { .. } => {}
            // `const T **` returns a pointer to constant data.
            Self::Out { .. } | Self::Text | Self::Copied { .. } if ty.pointers > 1 => {}
            _ if ty.constant => return Err("the target is constant"),
            _ => {}
        }
        match self {
            Self::Value | Self::Destroyed | Self::Released | Self::Raw => Ok(()),
            Self::In { .. } | Self::InOut { .. } | Self::OutArray(_) | Self::Vector { .. } => {
                fits(is_value, "it is not a pointer to values")
            }
            Self::List { .. } => fits(ty.pointers == 1, "it is not a pointer to values"),
            Self::Out { .. } => fits(is_value || ty.pointers == 2, "it is not a pointer to a value"),
            Self::Slice { .. } | Self::SliceMut { .. } => {
                let addresses = ty.pointers == 2 && ty.is_void();
                fits(is_value || addresses, "it is not an array of values or addresses")
            }
            Self::Truth => fits(ty.is_truth(), "it is not a pointer to an integer"),
            Self::Copied { .. } => {
                let array = ty.pointers == 2 && ty.constant && !ty.is_void();
                fits(array, "it is not a pointer to an array")
            }
            Self::Text => fits(
                ty.is_char() && ty.constant && ty.pointers == 2,
                "it is not a pointer to a string",
            ),
            Self::Str { .. } => fits(ty.is_char() && ty.constant && ty.pointers == 1, "it is not a string"),
            Self::String { .. } => fits(ty.is_char() && ty.pointers == 1, "it is not a text buffer"),
            Self::Bytes { .. } => fits(ty.is_void() && ty.pointers == 1, "it is not a pointer to bytes"),
            Self::Buffer { .. } => {
                let bytes = ty.is_void() || ty.is_char();
                fits(bytes && ty.pointers == 1, "it is not a buffer of bytes")
            }
        }
    }
}

impl Count {
    /// Returns true if this parameter holds the count.
    pub(crate) fn is(&self, parameter: &str) -> bool {
        match self {
            Self::Parameter { name, .. } | Self::Pointer { name } => name == parameter,
            Self::Fixed(_) => false,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if let Ok(count) = text.parse() {
            return Some(Self::Fixed(count));
        }
        if let Some(name) = text.strip_prefix('*') {
            return Some(Self::Pointer { name: name.to_owned() });
        }
        Some(match text.split_once('-') {
            Some((name, less)) => Self::Parameter {
                name: name.to_owned(),
                less: less.parse().ok()?,
            },
            None => Self::Parameter {
                name: text.to_owned(),
                less: 0,
            },
        })
    }
}
