//! A parser of `cuda.h` that reads the names of declarations from the preprocessed text. Sizes and values come from the
//! C compiler.

use std::collections::BTreeMap;

/// A struct or union with its members.
#[derive(Debug, Default, Clone)]
pub(crate) struct Record {
    /// The name: `struct tag`, `union tag`, or the typedef of a record without a tag.
    pub(crate) c_name: String,
    pub(crate) members: Vec<Member>,
}

/// One member of a record.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    /// The name; `None` for an unnamed struct or union, whose members are accessed on the outer record.
    pub(crate) name: Option<String>,
    pub(crate) array: bool,
    /// The members of a record that is defined in place.
    pub(crate) inner: Option<Vec<Member>>,
}

/// The declarations of a header.
#[derive(Debug, Default)]
pub(crate) struct Header {
    /// Records by tag, or by typedef if they have no tag.
    pub(crate) records: BTreeMap<String, Record>,
    /// The enumerators of each enumeration, by its typedef, or by its tag if it has no typedef.
    pub(crate) enumerations: BTreeMap<String, Vec<String>>,
    /// Typedefs of types whose size the header defines.
    pub(crate) typedefs: Vec<String>,
    pub(crate) functions: Vec<String>,
    /// Macros without parameters and with a value.
    pub(crate) macros: Vec<String>,
}

/// Parses the part of the output of `cc -E -dD` that comes from a file of this name.
pub(crate) fn parse(preprocessed: &str, file: &str) -> Header {
    let mut header = Header::default();
    let mut macros: BTreeMap<String, bool> = BTreeMap::new();
    let mut declarations = String::new();
    let mut inside = false;
    for line in preprocessed.lines() {
        if let Some(marker) = line.strip_prefix("# ") {
            let path = marker.split('"').nth(1).unwrap_or_default();
            inside = path.rsplit(['/', '\\']).next() == Some(file);
        } else if let Some(definition) = line.strip_prefix("#define ").filter(|_| inside) {
            let (name, value) = definition.split_once(' ').unwrap_or((definition, ""));
            macros.insert(name.to_owned(), !name.contains('(') && !value.trim().is_empty());
        } else if let Some(name) = line.strip_prefix("#undef ") {
            macros.remove(name.trim());
        } else if inside {
            declarations.push_str(line);
            declarations.push('\n');
        }
    }
    header.macros = macros
        .into_iter()
        .filter_map(|(name, is_value)| is_value.then_some(name))
        .collect();
    let tokens = plain(&tokens(&declarations));
    let mut parser = Parser { tokens: &tokens, at: 0 };
    let mut second_names = Vec::new();
    while parser.at < tokens.len() {
        parser.declaration(&mut header, &mut second_names);
    }
    // `typedef struct tag name` names a type with a size if the struct is defined anywhere in the header.
    let defined = second_names
        .into_iter()
        .filter(|(tag, _)| header.records.contains_key(tag));
    let defined: Vec<String> = defined.map(|(_, name)| name).collect();
    header.typedefs.extend(defined);
    header
}

fn tokens(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut word = String::new();
    for c in text.chars().chain(['\n']) {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            found.push(core::mem::take(&mut word));
        }
        if !c.is_whitespace() {
            found.push(c.to_string());
        }
    }
    found
}

/// Removes attributes, alignments and calling conventions from declarations.
fn plain(tokens: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let mut parser = Parser { tokens, at: 0 };
    while parser.at < tokens.len() {
        match parser.peek() {
            "_Alignas" | "__attribute__" | "__declspec" => {
                parser.at += 1;
                parser.group();
            }
            "__stdcall" | "__cdecl" | "__extension__" => parser.at += 1,
            _ => found.push(parser.next()),
        }
    }
    found
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// A type that is defined where it is used.
enum Defined {
    Record {
        keyword: String,
        tag: Option<String>,
        members: Vec<Member>,
    },
    Enumeration {
        tag: Option<String>,
        values: Vec<String>,
    },
}

/// A parsed declaration.
#[derive(Default)]
struct Declared {
    typedef: bool,
    inline: bool,
    defined: Option<Defined>,
    /// The tag of a `struct tag` without a body.
    mentioned: Option<String>,
    declarators: Vec<Declarator>,
}

struct Declarator {
    name: String,
    array: bool,
    pointer: bool,
    function: bool,
}

struct Parser<'a> {
    tokens: &'a [String],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn next(&mut self) -> String {
        self.at += 1;
        self.tokens.get(self.at - 1).cloned().unwrap_or_default()
    }

    /// Skips a group in brackets that begins here, and returns its contents.
    fn group(&mut self) -> Vec<String> {
        let begin = self.at + 1;
        let mut depth = 0_usize;
        while self.at < self.tokens.len() {
            match self.next().as_str() {
                "(" | "{" | "[" => depth += 1,
                ")" | "}" | "]" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        self.tokens
            .get(begin..self.at.saturating_sub(1))
            .unwrap_or_default()
            .to_vec()
    }

    fn declaration(&mut self, header: &mut Header, second_names: &mut Vec<(String, String)>) {
        let declared = self.parse();
        for declarator in &declared.declarators {
            if declared.typedef {
                match &declared.mentioned {
                    Some(tag) if !declarator.pointer => {
                        second_names.push((tag.clone(), declarator.name.clone()));
                    }
                    _ => header.typedefs.push(declarator.name.clone()),
                }
            } else if declarator.function && !declared.inline {
                header.functions.push(declarator.name.clone());
            }
        }
        let typedef = declared.declarators.first().filter(|d| !d.pointer);
        let typedef = typedef.map(|declarator| declarator.name.clone());
        match declared.defined {
            Some(Defined::Record { keyword, tag, members }) => {
                let c_name = tag.as_ref().map(|tag| format!("{keyword} {tag}"));
                let c_name = c_name.or_else(|| typedef.clone()).unwrap_or_default();
                let name = tag.or(typedef).unwrap_or_default();
                header.records.insert(name, Record { c_name, members });
            }
            Some(Defined::Enumeration { tag, values }) => {
                let name = typedef.or(tag).unwrap_or_default();
                header.enumerations.insert(name, values);
            }
            None => {}
        }
    }

    /// Parses one declaration, up to its semicolon or the end of its body.
    fn parse(&mut self) -> Declared {
        let mut declared = Declared::default();
        let mut rest: Vec<String> = Vec::new();
        loop {
            match self.peek() {
                "" => break,
                ";" => {
                    self.at += 1;
                    break;
                }
                "typedef" => {
                    declared.typedef = true;
                    self.at += 1;
                }
                "inline" | "__inline__" | "__inline" => {
                    declared.inline = true;
                    self.at += 1;
                }
                "static" | "extern" => self.at += 1,
                "struct" | "union" => self.record(&mut declared),
                "enum" => self.enumeration(&mut declared),
                // This is the body of an inline function, which no semicolon follows.
                "{" => {
                    self.group();
                    break;
                }
                "(" => {
                    let inside = self.group();
                    rest.push("(".to_owned());
                    rest.extend(inside);
                    rest.push(")".to_owned());
                }
                // The number of elements comes from the compiler.
                "[" => {
                    self.group();
                    rest.push("[".to_owned());
                    rest.push("]".to_owned());
                }
                _ => rest.push(self.next()),
            }
        }
        declared.declarators = declarators(&rest);
        declared
    }

    fn record(&mut self, declared: &mut Declared) {
        let keyword = self.next();
        let tag = is_name(self.peek()).then(|| self.next());
        if self.peek() != "{" {
            declared.mentioned = tag;
            return;
        }
        let body = self.group();
        let mut inner = Parser { tokens: &body, at: 0 };
        let mut members = Vec::new();
        while inner.at < body.len() {
            let field = inner.parse();
            let inside = match field.defined {
                Some(Defined::Record { members, .. }) => Some(members),
                _ => None,
            };
            if field.declarators.is_empty() {
                members.push(Member {
                    name: None,
                    array: false,
                    inner: inside.clone(),
                });
            }
            for declarator in field.declarators {
                members.push(Member {
                    name: Some(declarator.name),
                    array: declarator.array,
                    inner: inside.clone().filter(|_| !declarator.pointer),
                });
            }
        }
        declared.defined = Some(Defined::Record { keyword, tag, members });
    }

    fn enumeration(&mut self, declared: &mut Declared) {
        self.at += 1;
        let tag = is_name(self.peek()).then(|| self.next());
        if self.peek() != "{" {
            return;
        }
        let body = self.group();
        let mut values = Vec::new();
        let mut begins = true;
        let mut depth = 0_usize;
        for token in &body {
            match token.as_str() {
                "(" => depth += 1,
                ")" => depth -= 1,
                "," if depth == 0 => begins = true,
                name if begins => {
                    values.push(name.to_owned());
                    begins = false;
                }
                _ => {}
            }
        }
        declared.defined = Some(Defined::Enumeration { tag, values });
    }
}

/// Returns the names that a declaration declares, from the tokens of its type and declarators.
fn declarators(tokens: &[String]) -> Vec<Declarator> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    for part in tokens.split(|token| {
        match token.as_str() {
            "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            _ => {}
        }
        depth == 0 && token == ","
    }) {
        let open = part.iter().position(|token| token == "(");
        let name = match open {
            // `(*name)(…)` is a pointer to a function, `name(…)` a function.
            Some(open) if part.get(open + 1).is_some_and(|t| t == "*") => part.get(open + 2),
            Some(open) => part.get(..open).and_then(<[String]>::last),
            None => {
                let end = part.iter().position(|token| token == "[");
                let end = end.unwrap_or(part.len());
                part.get(..end).and_then(<[String]>::last)
            }
        };
        if let Some(name) = name.filter(|name| is_name(name)) {
            found.push(Declarator {
                name: name.clone(),
                array: open.is_none() && part.iter().any(|token| token == "["),
                pointer: part.iter().any(|token| token == "*"),
                function: open.is_some_and(|o| part.get(o + 1).is_none_or(|t| t != "*")),
            });
        }
    }
    found
}

#[test]
fn declarations_of_every_form_are_read() {
    let text = "# 1 \"/usr/include/stdlib.h\" 1\nint not_ours(void);\n#define NOT_OURS 1\n\
        # 1 \"inc/cuda.h\" 1\n\
        #define CU_ONE 1\n#define CU_EMPTY \n#define CU_CALL(x) x\n#define CU_GONE 2\n#undef CU_GONE\n\
        typedef unsigned long long CUdeviceptr_v2;\ntypedef struct CUctx_st *CUcontext;\n\
        typedef void (*CUhostFn)(void *userData, int (*f)(int));\n\
        typedef enum CUe_enum { A = (1 << (2)), B, C = 0x4, } CUe;\n\
        typedef struct CUs_st { _Alignas(128) int a[3 - sizeof(int)], *b; union { int u; struct { int x; } v; }; \
        struct { int y; } w[2]; void (*f)(int, int); } CUs;\n\
        typedef union { char pad[64]; } CUu;\ntypedef struct CUs_st CUs_v1;\ntypedef struct CUopaque_st CUopaque;\n\
        CUresult cuInit(unsigned int Flags);\n\
        static inline CUresult cuWrapper(int (*f)(int)) { if (f) { return 0; } return 1; }\n\
        CUresult cuLast(CUhostFn fn, void (*other)(int), const CUs *s);\n";
    let header = parse(text, "cuda.h");
    assert_eq!(header.macros, ["CU_ONE"]);
    let typedefs = ["CUdeviceptr_v2", "CUcontext", "CUhostFn", "CUe", "CUs", "CUu", "CUs_v1"];
    assert_eq!(header.typedefs, typedefs);
    assert_eq!(header.enumerations["CUe"], ["A", "B", "C"]);
    assert_eq!(header.functions, ["cuInit", "cuLast"]);
    let record = &header.records["CUs_st"];
    assert_eq!(record.c_name, "struct CUs_st");
    let shape: Vec<(Option<&str>, bool, usize)> = record
        .members
        .iter()
        .map(|m| (m.name.as_deref(), m.array, m.inner.as_ref().map_or(0, Vec::len)))
        .collect();
    let expected = [
        (Some("a"), true, 0),
        (Some("b"), false, 0),
        (None, false, 2),
        (Some("w"), true, 1),
        (Some("f"), false, 0),
    ];
    assert_eq!(shape, expected);
    assert_eq!(header.records["CUu"].c_name, "CUu");
}
