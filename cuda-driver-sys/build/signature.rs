//! Compares the signatures of a function in two headers. They agree if parameters are passed in the same way, and the
//! targets of pointers have the same size, alignment and kind at every level.

use std::fmt;

use syn::{GenericArgument, PathArguments, PointerMutability, ReturnType, Type};

use super::model::Model;

/// Records behind a pointer that a later header replaced by larger ones with the same members: the earlier tag and the
/// committed one. An earlier driver accesses only the bytes of its own record.
const REPLACED_RECORDS: &[(&str, &str)] = &[
    ("CUkernelNodeAttrValue_union", "CUlaunchAttributeValue_union"),
    ("CUstreamAttrValue_union", "CUlaunchAttributeValue_union"),
];

/// The class of a type in a call.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Class {
    /// An integer or an enumeration with this number of bits.
    Integer(u32),
    Pointer {
        is_const: bool,
        to: Box<Class>,
    },
    /// The parameters and the result.
    Callback(Vec<Class>, Option<Box<Class>>),
    Record {
        name: String,
        size: u64,
        align: u64,
    },
    /// A type of which only the name is known.
    Named(String),
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(bits) => write!(f, "{bits}-bit integer"),
            Self::Pointer { is_const, to } => {
                write!(f, "pointer to {}{to}", if *is_const { "const " } else { "" })
            }
            Self::Callback(takes, returns) => {
                write!(f, "callback ({})", List(takes))?;
                returns.iter().try_for_each(|class| write!(f, " -> {class}"))
            }
            Self::Record { name, size, align } => {
                write!(f, "{name} of {size} bytes aligned to {align}")
            }
            Self::Named(name) => f.write_str(name),
        }
    }
}

/// A list separated by commas.
struct List<'a>(&'a [Class]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, class) in self.0.iter().enumerate() {
            write!(f, "{}{class}", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// Returns the parameters of a function in two headers, if they differ.
pub(crate) fn difference(
    ours: &[(String, String)],
    known: &Model,
    theirs: &[(String, String)],
    header: &Model,
) -> Option<(String, String)> {
    let ours = classes(ours, known);
    let theirs = classes(theirs, header);
    let agree = all_agree(&ours, &theirs);
    (!agree).then(|| (List(&ours).to_string(), List(&theirs).to_string()))
}

fn classes(parameters: &[(String, String)], model: &Model) -> Vec<Class> {
    let types = parameters.iter().map(|(_, text)| syn::parse_str(text));
    types
        .zip(parameters)
        .map(|(ty, (_, text))| match ty {
            Ok(ty) => class(&ty, model),
            Err(_) => Class::Named(text.clone()),
        })
        .collect()
}

fn class(ty: &Type, model: &Model) -> Class {
    match ty {
        Type::Ptr(pointer) => Class::Pointer {
            is_const: matches!(pointer.mutability, PointerMutability::Const(_)),
            to: Box::new(class(&pointer.elem, model)),
        },
        Type::FnPtr(callback) => Class::Callback(
            callback.inputs.iter().map(|input| class(&input.ty, model)).collect(),
            match &callback.output {
                ReturnType::Default => None,
                ReturnType::Type(_, ty) => Some(Box::new(class(ty, model))),
            },
        ),
        Type::Path(path) => {
            let Some(last) = path.path.segments.last() else {
                return Class::Named(String::new());
            };
            if let PathArguments::AngleBracketed(inside) = &last.arguments {
                // `Option` of a callback: a callback that may be null has the same class.
                if let Some(GenericArgument::Type(inside)) = inside.args.first() {
                    return class(inside, model);
                }
            }
            named(&last.ident.to_string(), model)
        }
        other => Class::Named(super::model::type_text(other)),
    }
}

fn named(name: &str, model: &Model) -> Class {
    if let Some(alias) = model.aliases.iter().find(|alias| alias.name == name) {
        return class(&alias.target, model);
    }
    let is_enumeration = model
        .enumerations
        .iter()
        .any(|one| one.name == name || one.tag.as_deref() == Some(name));
    if is_enumeration {
        return Class::Integer(32);
    }
    if let Some(layout) = model.layouts.get(name) {
        return Class::Record {
            name: name.to_owned(),
            size: layout.size,
            align: layout.align,
        };
    }
    match name {
        "c_char" | "c_schar" | "c_uchar" | "i8" | "u8" => Class::Integer(8),
        "c_short" | "c_ushort" | "i16" | "u16" => Class::Integer(16),
        "c_int" | "c_uint" | "i32" | "u32" => Class::Integer(32),
        "c_longlong" | "c_ulonglong" | "isize" | "usize" | "i64" | "u64" => Class::Integer(64),
        other => Class::Named(other.to_owned()),
    }
}

fn all_agree(ours: &[Class], theirs: &[Class]) -> bool {
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| agree(ours, theirs))
}

fn agree(ours: &Class, theirs: &Class) -> bool {
    match (ours, theirs) {
        (
            Class::Pointer { is_const, to },
            Class::Pointer {
                is_const: theirs,
                to: their_to,
            },
        ) => {
            // The driver must not write where callers of these bindings expect it only to read.
            (*theirs || !is_const) && agree(to, their_to)
        }
        (Class::Callback(ours, returned), Class::Callback(theirs, returns)) => {
            let returned = returned.as_deref().map(std::slice::from_ref);
            let returns = returns.as_deref().map(std::slice::from_ref);
            all_agree(ours, theirs) && all_agree(returned.unwrap_or_default(), returns.unwrap_or_default())
        }
        (
            Class::Record { name, size, align },
            Class::Record {
                name: their_name,
                size: their_size,
                align: their_align,
            },
        ) => {
            // `merge::differences` compares records of the same name, with their expected differences.
            name == their_name
                || (size, align) == (their_size, their_align)
                || REPLACED_RECORDS.contains(&(their_name.as_str(), name.as_str()))
        }
        _ => ours == theirs,
    }
}
