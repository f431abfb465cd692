//! The declarations of a header, sorted by kind.

use std::collections::BTreeMap;

use syn::{Expr, Item, Lit, Stmt, Type};

/// The declarations of one header.
#[derive(Debug, Default, Clone)]
pub(crate) struct Model {
    /// Macros with an integer value.
    pub(crate) constants: Vec<Constant>,
    /// C enumerations, in header order.
    pub(crate) enumerations: Vec<Enumeration>,
    /// Structs and unions, in header order.
    pub(crate) records: Vec<Record>,
    /// Typedefs, in header order.
    pub(crate) aliases: Vec<Alias>,
    /// Exported functions, sorted by name.
    pub(crate) functions: Vec<Declaration>,
    /// Size, alignment and field offsets of the records, by name.
    pub(crate) layouts: BTreeMap<String, Layout>,
}

/// One integer macro.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Constant {
    pub(crate) name: String,
    pub(crate) ty: String,
    pub(crate) value: i128,
}

/// One C enumeration; every value is a 32-bit pattern, both in signed and in unsigned enumerations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Enumeration {
    /// The typedef.
    pub(crate) name: String,
    /// The tag, if it differs from the typedef.
    pub(crate) tag: Option<String>,
    pub(crate) values: Vec<(String, u32)>,
}

/// One struct or union, as bindgen wrote it.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) item: Item,
}

/// One typedef.
#[derive(Debug, Clone)]
pub(crate) struct Alias {
    pub(crate) name: String,
    pub(crate) target: Type,
}

/// One exported function; parameter types are Rust's, without paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Declaration {
    pub(crate) name: String,
    pub(crate) parameters: Vec<(String, String)>,
}

/// Layout of a record on a 64-bit target, in bytes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) size: u64,
    pub(crate) align: u64,
    pub(crate) offsets: Vec<(String, u64)>,
}

/// Returns true for enumerators that mark the end of an enumeration. Their values change when a release adds
/// enumerators, so a program that uses one would be wrong on a newer driver.
fn is_sentinel(enumerator: &str) -> bool {
    // These also end in `_MAX`, but are real values.
    const MEANT: &[&str] = &[
        "CU_CTX_LMEM_RESIZE_TO_MAX",
        "CU_ATOMIC_OPERATION_INTEGER_MAX",
        "CU_ATOMIC_OPERATION_FLOAT_MAX",
    ];
    const COUNTS: &[&str] = &["CU_JIT_NUM_OPTIONS", "CU_JIT_NUM_INPUT_TYPES", "CU_LIBRARY_NUM_OPTIONS"];
    COUNTS.contains(&enumerator) || (enumerator.ends_with("_MAX") && !MEANT.contains(&enumerator))
}

impl Model {
    /// Sorts bindgen's output.
    ///
    /// # Errors
    /// An item of a kind or form that the generator does not support, because no known header has one.
    pub(crate) fn from_bindgen(file: &syn::File) -> Result<Self, String> {
        let mut model = Self::default();
        let mut typedefs: Vec<(String, String)> = Vec::new();
        let mut enumerators: Vec<&syn::ItemImpl> = Vec::new();
        for item in &file.items {
            match item {
                Item::Const(item) if item.ident == "_" => model.add_layout(&item.expr)?,
                Item::Const(item) => model.constants.push(Constant {
                    name: item.ident.to_string(),
                    ty: type_text(&item.ty),
                    value: integer(&item.expr)?,
                }),
                Item::Type(item) => {
                    model.aliases.push(Alias {
                        name: item.ident.to_string(),
                        target: (*item.ty).clone(),
                    });
                }
                Item::Use(item) => typedefs.push(use_alias(item)?),
                Item::Struct(item) if matches!(item.fields, syn::Fields::Unnamed(_)) => {
                    model.enumerations.push(Enumeration {
                        name: item.ident.to_string(),
                        tag: None,
                        values: Vec::new(),
                    });
                }
                Item::Struct(item) => {
                    model.records.push(Record {
                        name: item.ident.to_string(),
                        item: Item::Struct(item.clone()),
                    });
                }
                Item::Union(item) => {
                    model.records.push(Record {
                        name: item.ident.to_string(),
                        item: Item::Union(item.clone()),
                    });
                }
                Item::Impl(item) => enumerators.push(item),
                Item::ForeignMod(item) => {
                    for foreign in &item.items {
                        let syn::ForeignItem::Fn(function) = foreign else {
                            return Err("the header exports an item that is not a function".to_owned());
                        };
                        model.functions.push(declaration(&function.sig)?);
                    }
                }
                other => {
                    return Err(format!("bindgen wrote an item of an unexpected kind: {other:?}"));
                }
            }
        }
        for item in enumerators {
            model.add_enumerators(item)?;
        }
        model.name_enumerations(typedefs);
        super::unnamed::call_by_member(&mut model)?;
        model.functions.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(model)
    }

    fn add_enumerators(&mut self, item: &syn::ItemImpl) -> Result<(), String> {
        let name = type_text(&item.self_ty);
        let enumeration = self
            .enumerations
            .iter_mut()
            .find(|e| e.name == name)
            .ok_or_else(|| format!("an impl of {name}, which is not an enumeration"))?;
        for inner in &item.items {
            let syn::ImplItem::Const(constant) = inner else {
                return Err(format!("an impl of {name} contains more than constants"));
            };
            let Expr::Call(call) = &constant.expr else {
                return Err(format!("{} is not written as {name}(number)", constant.ident));
            };
            let value = integer(call.args.first().ok_or("an enumerator without a value")?)?;
            let enumerator = constant.ident.to_string();
            if !is_sentinel(&enumerator) {
                enumeration.values.push((enumerator, pattern(value)?));
            }
        }
        Ok(())
    }

    /// Names enumerations: the typedef becomes the name, the tag its alias, and further typedefs become type aliases.
    fn name_enumerations(&mut self, typedefs: Vec<(String, String)>) {
        for (target, alias) in typedefs {
            let untagged = self
                .enumerations
                .iter_mut()
                .find(|e| e.name == target && e.tag.is_none());
            match untagged {
                Some(enumeration) => {
                    enumeration.tag = Some(target);
                    enumeration.name = alias;
                }
                None => self.aliases.push(Alias {
                    name: alias,
                    target: syn::parse_str(&target).unwrap_or_else(|_| syn::parse_quote!(u32)),
                }),
            }
        }
    }

    fn add_layout(&mut self, expr: &Expr) -> Result<(), String> {
        let Expr::Block(block) = expr else {
            return Err("a layout check that is not a block".to_owned());
        };
        for statement in &block.block.stmts {
            let Stmt::Expr(Expr::Index(index), _) = statement else {
                return Err("a layout check of an unknown form".to_owned());
            };
            let (Expr::Array(array), Expr::Binary(difference)) = (&*index.expr, &*index.index) else {
                return Err("a layout check of an unknown form".to_owned());
            };
            let Some(Expr::Lit(syn::ExprLit {
                lit: Lit::Str(text), ..
            })) = array.elems.first()
            else {
                return Err("a layout check without its text".to_owned());
            };
            let value = u64::try_from(integer(&difference.right)?).map_err(|e| e.to_string())?;
            let text = text.value();
            if let Some(name) = text.strip_prefix("Size of ") {
                self.layouts.entry(name.to_owned()).or_default().size = value;
            } else if let Some(name) = text.strip_prefix("Alignment of ") {
                self.layouts.entry(name.to_owned()).or_default().align = value;
            } else if let Some((name, field)) = text
                .strip_prefix("Offset of field: ")
                .and_then(|rest| rest.split_once("::"))
            {
                self.layouts
                    .entry(name.to_owned())
                    .or_default()
                    .offsets
                    .push((field.to_owned(), value));
            } else {
                return Err(format!("a layout check of an unknown form: {text}"));
            }
        }
        Ok(())
    }
}

/// Returns a value as the 32-bit pattern that crosses the ABI.
fn pattern(value: i128) -> Result<u32, String> {
    u32::try_from(value)
        .or_else(|_| i32::try_from(value).map(|value| value as u32))
        .map_err(|_| format!("the enumerator value {value} does not fit 32 bits"))
}

fn integer(expr: &Expr) -> Result<i128, String> {
    match expr {
        Expr::Lit(syn::ExprLit { lit: Lit::Int(int), .. }) => int.base10_parse().map_err(|e| e.to_string()),
        Expr::Unary(syn::ExprUnary {
            op: syn::UnOp::Neg(_),
            expr,
            ..
        }) => integer(expr).map(|v| -v),
        other => Err(format!("not an integer: {other:?}")),
    }
}

fn use_alias(item: &syn::ItemUse) -> Result<(String, String), String> {
    if let syn::UseTree::Path(path) = &item.tree {
        if let syn::UseTree::Rename(rename) = &*path.tree {
            return Ok((rename.ident.to_string(), rename.rename.to_string()));
        }
    }
    Err("a `use` item of another form than `use self::Tag as Typedef`".to_owned())
}

fn declaration(signature: &syn::Signature) -> Result<Declaration, String> {
    let name = signature.ident.to_string();
    match &signature.output {
        syn::ReturnType::Type(_, ty) if type_text(ty) == "CUresult" => {}
        _ => return Err(format!("{name} does not return CUresult")),
    }
    let mut parameters = Vec::new();
    for input in &signature.inputs {
        let syn::FnArg::Typed(typed) = input else {
            return Err(format!("{name} takes self"));
        };
        let syn::Pat::Ident(ident) = &*typed.pat else {
            return Err(format!("{name} has a parameter without a name"));
        };
        parameters.push((ident.ident.to_string(), type_text(&typed.ty)));
    }
    Ok(Declaration { name, parameters })
}

/// Returns a type as source text, without the paths that bindgen writes.
pub(crate) fn type_text(ty: &Type) -> String {
    match ty {
        Type::Ptr(pointer) => {
            // `quote!` separates the tokens: `* const T`.
            let kind = if quote::quote!(#pointer).to_string().starts_with("* const") {
                "*const"
            } else {
                "*mut"
            };
            format!("{kind} {}", type_text(&pointer.elem))
        }
        Type::Path(path) if path.path.segments.iter().all(|s| s.arguments.is_empty()) => path
            .path
            .segments
            .last()
            .map(|s| s.ident.to_string())
            .unwrap_or_default(),
        Type::Array(array) => {
            let length = &array.len;
            format!("[{}; {}]", type_text(&array.elem), quote::quote!(#length))
        }
        other => quote::quote!(#other).to_string(),
    }
}
