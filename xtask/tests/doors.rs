//! Tests of the structure of the workspace: modules import only the modules that their crate's table allows, and files
//! import each other only in small cycles within one module.
//!
//! A room is a top-level module of a crate. The table `src/rooms.md` of each crate lists its rooms, and the
//! documentation of some crates includes it; a row is `| room | purpose | rooms that it may use |`.
//! The test reads the imports of every file, without its unit tests, and fails on an import that no row allows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The crates whose structure is checked, by their folders.
const CRATES: &[&str] = &[
    "",
    "benches",
    "cuda-doctor",
    "cuda-driver-hooks",
    "cuda-driver-soft",
    "cuda-driver-soft/engine",
    "cuda-driver-soft/host",
    "cuda-driver-soft/image",
    "cuda-driver-soft/libcuda",
    "cuda-driver-soft/ptx",
    "cuda-driver-sys",
    "xtask",
];

/// The maximum number of files in a cycle of imports, even between a parent and its child modules.
const LARGEST_CYCLE: usize = 4;

/// A module's path inside its crate; empty for the crate root.
type ModulePath = Vec<String>;

/// The modules of one crate that have their own file, with the paths that each of them names.
#[derive(Default)]
struct Crate {
    modules: BTreeMap<ModulePath, Module>,
}

#[derive(Default)]
struct Module {
    /// Child modules that have their own file.
    children: BTreeSet<String>,
    /// The names that the module re-exports, with the path of each original.
    exports: BTreeMap<String, ModulePath>,
    /// The modules that it re-exports with a glob.
    globs: Vec<ModulePath>,
    /// Names of the items in the file.
    defined: BTreeSet<String>,
    /// The paths that the file names, from the crate root.
    uses: BTreeSet<ModulePath>,
}

impl Crate {
    /// Reads the crate whose root is this file.
    fn read(root: &Path) -> Crate {
        let mut read = Crate::default();
        let folder = root.parent().expect("a file lies in a folder");
        read.file(root, folder, Vec::new());
        read
    }

    /// Reads the library or program of a package.
    fn of_package(folder: &str) -> Crate {
        let sources = workspace().join(folder).join("src");
        let library = sources.join("lib.rs");
        Crate::read(&if library.is_file() {
            library
        } else {
            sources.join("main.rs")
        })
    }

    /// Reads a file and the files of its child modules, which are in `folder`.
    fn file(&mut self, file: &Path, folder: &Path, path: ModulePath) {
        let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let tokens: TokenStream = text
            .parse()
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut module = self.modules.remove(&path).unwrap_or_default();
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for child in children(&tokens) {
            let name = child.name.trim_start_matches("r#").to_owned();
            module.children.insert(name.clone());
            let mut below = path.clone();
            below.push(name.clone());
            let (file, inside) = match child.file {
                Some(other) => {
                    // The children of a file with the attribute `path` are in the same folder.
                    let file = file.with_file_name(other);
                    let inside = file.parent().unwrap_or(folder).to_owned();
                    (file, inside)
                }
                None if folder.join(format!("{name}.rs")).is_file() => {
                    (folder.join(format!("{name}.rs")), folder.join(&name))
                }
                None => (folder.join(&name).join("mod.rs"), folder.join(&name)),
            };
            self.file(&file, &inside, below);
        }
        Reader {
            module: &mut module,
            file: &path,
        }
        .tokens(&tokens, &path);
        self.modules.insert(path, module);
    }

    /// Returns the module that defines the item of this path, after re-exports. Returns `None` if no module behind the
    /// re-exported globs defines it, for example because a macro does.
    fn origin(&self, path: &[String]) -> Option<ModulePath> {
        self.resolve(path, 0)
    }

    fn resolve(&self, path: &[String], depth: usize) -> Option<ModulePath> {
        let known = (0..=path.len())
            .rev()
            .find(|&n| self.modules.contains_key(&path[..n]))?;
        let (found, rest) = path.split_at(known);
        let module = &self.modules[found];
        let Some(name) = rest.first().filter(|_| depth < 16) else {
            return Some(found.to_vec());
        };
        if module.defined.contains(name) {
            return Some(found.to_vec());
        }
        let behind = |target: &ModulePath, rest: &[String]| {
            let target = [target, rest].concat();
            (target != path).then(|| self.resolve(&target, depth + 1))?
        };
        if let Some(target) = module.exports.get(name) {
            return behind(target, &rest[1..]);
        }
        if module.globs.is_empty() {
            return Some(found.to_vec());
        }
        let mut candidates = module.globs.iter().filter_map(|target| behind(target, rest));
        candidates.find(|origin| self.modules[origin].defined.contains(name))
    }

    /// Returns the rooms that each file below the crate root uses besides its own. Re-exports count as uses.
    fn rooms(&self) -> BTreeMap<&ModulePath, BTreeSet<String>> {
        let of = |(path, module)| {
            let (path, module): (&ModulePath, &Module) = (path, module);
            let room = path.first()?;
            let named = module.uses.iter().chain(module.exports.values()).chain(&module.globs);
            let used = named.filter_map(|used| self.origin(used)?.first().cloned());
            Some((path, used.filter(|used| used != room).collect()))
        };
        self.modules.iter().filter_map(of).collect()
    }

    /// Returns the modules that each module uses. Re-exports do not count.
    fn imports(&self) -> BTreeMap<ModulePath, BTreeSet<ModulePath>> {
        let of = |(path, module): (&ModulePath, &Module)| {
            let mut targets: BTreeSet<ModulePath> = module.uses.iter().filter_map(|used| self.origin(used)).collect();
            targets.remove(path);
            (path.clone(), targets)
        };
        self.modules.iter().map(of).collect()
    }
}

/// A declaration `mod name;`, with the file that an attribute `path` names.
struct Child {
    name: String,
    file: Option<String>,
}

fn children(tokens: &[TokenTree]) -> Vec<Child> {
    let mut found = Vec::new();
    for (i, window) in tokens.windows(3).enumerate() {
        let [TokenTree::Ident(word), TokenTree::Ident(name), TokenTree::Punct(end)] = window else {
            continue;
        };
        if word != "mod" || end.as_char() != ';' {
            continue;
        }
        let attributes = attributes_before(tokens, i);
        if attributes
            .iter()
            .any(|text| text.contains("cfg (test)") || text.contains("cfg(test)"))
        {
            continue;
        }
        let file = attributes.iter().find_map(|text| {
            let (_, value) = text.strip_prefix("path")?.split_once('"')?;
            Some(value.trim_end_matches('"').to_owned())
        });
        found.push(Child {
            name: name.to_string(),
            file,
        });
    }
    found
}

/// Returns the texts of the attributes of the item whose keyword is at `at`.
fn attributes_before(tokens: &[TokenTree], mut at: usize) -> Vec<String> {
    let mut found = Vec::new();
    while at > 0 {
        at -= 1;
        match &tokens[at] {
            TokenTree::Ident(word) if word == "pub" => {}
            TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => {}
            TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
                found.push(group.stream().to_string());
            }
            TokenTree::Punct(mark) if mark.as_char() == '#' => {}
            _ => break,
        }
    }
    found
}

/// Collects the names in the tokens of one file.
struct Reader<'a> {
    module: &'a mut Module,
    /// The path of the file's own module.
    file: &'a [String],
}

impl Reader<'_> {
    /// Collects the paths in `tokens`, which are in the module `path`.
    fn tokens(&mut self, tokens: &[TokenTree], path: &[String]) {
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Ident(word) if word == "mod" => {
                    // An inline module, in which `super` is the current module.
                    if let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(body))) =
                        (tokens.get(at + 1), tokens.get(at + 2))
                    {
                        let tested = attributes_before(tokens, at)
                            .iter()
                            .any(|text| text.contains("cfg (test)") || text.contains("cfg(test)"));
                        if !tested {
                            self.module.defined.insert(name.to_string());
                            let mut below = path.to_vec();
                            below.push(name.to_string());
                            let body: Vec<TokenTree> = body.stream().into_iter().collect();
                            self.tokens(&body, &below);
                        }
                        at += 3;
                        continue;
                    }
                    at += 1;
                }
                TokenTree::Ident(word) if word == "use" => {
                    let exported = matches!(
                        at.checked_sub(1).map(|before| &tokens[before]),
                        Some(TokenTree::Ident(before)) if before == "pub"
                    ) || matches!(
                        at.checked_sub(1).map(|before| &tokens[before]),
                        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis
                    );
                    let end = tokens[at..]
                        .iter()
                        .position(|t| matches!(t, TokenTree::Punct(p) if p.as_char() == ';'))
                        .map_or(tokens.len(), |n| at + n);
                    self.tree(&tokens[at + 1..end], path, None, exported && path == self.file);
                    at = end + 1;
                }
                TokenTree::Ident(_) => {
                    self.module.defined.extend(defined(tokens, at));
                    let after_path = at >= 2
                        && matches!(&tokens[at - 1], TokenTree::Punct(p) if p.as_char() == ':')
                        && matches!(&tokens[at - 2], TokenTree::Punct(p) if p.as_char() == ':');
                    let (words, next) = words(tokens, at);
                    if !after_path && words.len() > 1 {
                        self.named(&words, path);
                    }
                    at = next;
                }
                TokenTree::Group(group) => {
                    let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                    self.tokens(&inside, path);
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }

    /// Reads a tree of imports: `a::{b, c::*}`. `base` is the path before it, if it is in this crate.
    fn tree(&mut self, tokens: &[TokenTree], path: &[String], base: Option<&[String]>, exported: bool) {
        for branch in tokens.split(|t| matches!(t, TokenTree::Punct(p) if p.as_char() == ',')) {
            let (words, rest) = words(branch, 0);
            let full = match base {
                Some(base) => {
                    let mut full = base.to_vec();
                    full.extend(words.iter().filter(|word| *word != "self").cloned());
                    Some(full)
                }
                None => self.absolute(&words, path),
            };
            let Some(full) = full else { continue };
            let mut rest = &branch[rest.min(branch.len())..];
            while let [TokenTree::Punct(mark), after @ ..] = rest
                && mark.as_char() == ':'
            {
                rest = after;
            }
            match rest.first() {
                Some(TokenTree::Group(group)) => {
                    let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                    self.tree(&inside, path, Some(&full), exported);
                }
                Some(TokenTree::Punct(mark)) if mark.as_char() == '*' => {
                    if exported {
                        self.module.globs.push(full);
                    } else {
                        self.module.uses.insert(full);
                    }
                }
                Some(TokenTree::Ident(word)) if word == "as" => {
                    if let (true, Some(name)) = (exported, rest.get(1)) {
                        self.module.exports.insert(name.to_string(), full.clone());
                    } else {
                        self.module.uses.insert(full);
                    }
                }
                _ => match full.last().cloned() {
                    Some(name) if exported => {
                        self.module.exports.insert(name, full);
                    }
                    _ => {
                        self.module.uses.insert(full);
                    }
                },
            }
        }
    }

    fn named(&mut self, words: &[String], path: &[String]) {
        if let Some(full) = self.absolute(words, path) {
            self.module.uses.insert(full);
        }
    }

    /// Returns the path of `words` from the crate root, or `None` if they name nothing in this crate.
    fn absolute(&self, words: &[String], path: &[String]) -> Option<ModulePath> {
        let (first, rest) = words.split_first()?;
        let mut full = match first.as_str() {
            "crate" => Vec::new(),
            "self" => path.to_vec(),
            "super" => path[..path.len().checked_sub(1)?].to_vec(),
            child if path == self.file && self.module.children.contains(child) => {
                let mut full = path.to_vec();
                full.push(child.to_owned());
                full
            }
            _ => return None,
        };
        for word in rest {
            if word == "super" {
                full.pop();
            } else {
                full.push(word.clone());
            }
        }
        Some(full)
    }
}

/// Returns the name of the item whose keyword is at `at`; `None` if no item begins there.
fn defined(tokens: &[TokenTree], at: usize) -> Option<String> {
    const ITEMS: &[&str] = &[
        "struct",
        "enum",
        "union",
        "trait",
        "type",
        "fn",
        "const",
        "static",
        "macro_rules",
    ];
    let TokenTree::Ident(word) = &tokens[at] else {
        return None;
    };
    // The types `*const T` and `&'static T` and the expression `&raw const x` define nothing.
    let is_part = match at.checked_sub(1).map(|before| &tokens[before]) {
        Some(TokenTree::Punct(mark)) => ['*', '\''].contains(&mark.as_char()),
        Some(TokenTree::Ident(before)) => before == "raw",
        _ => false,
    };
    if is_part || !ITEMS.contains(&word.to_string().as_str()) {
        return None;
    }
    let name = match &tokens[at + 1..] {
        [TokenTree::Punct(mark), TokenTree::Ident(name), ..] if mark.as_char() == '!' => name,
        [TokenTree::Ident(mutable), TokenTree::Ident(name), ..] if mutable == "mut" => name,
        [TokenTree::Ident(name), ..] => name,
        // The type `fn(T)` or a block `const { … }`.
        _ => return None,
    };
    // In `const unsafe fn f()`, only `fn` is followed by the name.
    let name = name.to_string();
    (!["async", "extern", "fn", "unsafe"].contains(&name.as_str())).then_some(name)
}

/// Returns the words of the path that starts at `at`, and the position after it.
fn words(tokens: &[TokenTree], mut at: usize) -> (Vec<String>, usize) {
    let mut words = Vec::new();
    let colon = |t: Option<&TokenTree>| matches!(t, Some(TokenTree::Punct(p)) if p.as_char() == ':');
    while let Some(TokenTree::Ident(word)) = tokens.get(at) {
        words.push(word.to_string());
        at += 1;
        if colon(tokens.get(at)) && colon(tokens.get(at + 1)) {
            at += 2;
        } else {
            break;
        }
    }
    (words, at.max(1))
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the root files in the folders of [`CRATES`]: libraries, programs, tests and examples.
fn roots() -> Vec<String> {
    let mut found = Vec::new();
    for folder in CRATES {
        let mut candidates = vec!["src/lib.rs".to_owned(), "src/main.rs".to_owned()];
        for kind in ["tests", "examples"] {
            let entries = std::fs::read_dir(workspace().join(folder).join(kind));
            for entry in entries.into_iter().flatten().flatten() {
                let name = entry.file_name().into_string().expect("a file's name is Unicode");
                candidates.push(if name.ends_with(".rs") {
                    format!("{kind}/{name}")
                } else {
                    format!("{kind}/{name}/main.rs")
                });
            }
        }
        for candidate in candidates {
            let root = Path::new(folder).join(candidate);
            if workspace().join(&root).is_file() {
                found.push(root.display().to_string());
            }
        }
    }
    found.sort();
    found
}

/// Returns the rooms of a crate's table, each with the rooms that it may use. A crate of one file has no table.
fn allowed(folder: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let file = folder.join("src/rooms.md");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let names = |cell: &str| -> BTreeSet<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    text.lines()
        .filter(|line| line.starts_with("| `") || line.starts_with("| [`"))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let [_, room, _, uses, _] = cells[..] else {
                panic!("{}: a row has three cells: {line}", file.display())
            };
            let room = names(room).into_iter().next().expect("a row names a room");
            (room, names(uses))
        })
        .collect()
}

#[test]
fn items_are_found() {
    let text = "
        const fn a() -> &'static Other { &raw const other }
        const unsafe extern \"C\" fn b(f: fn(Other) -> *const Other) {}
        static mut C: fn(Other) = d;
        const _: () = const { Other };
        macro_rules! e { () => {} }
        pub(crate) type F = unsafe extern \"C\" fn(Other);
        struct G<'a>(&'a Other);";
    let tokens: Vec<TokenTree> = text.parse::<TokenStream>().expect("Rust").into_iter().collect();
    let mut module = Module::default();
    Reader {
        module: &mut module,
        file: &[],
    }
    .tokens(&tokens, &[]);
    let found: Vec<&str> = module.defined.iter().map(String::as_str).collect();
    assert_eq!(found, ["C", "F", "G", "_", "a", "b", "e"]);
}

#[test]
fn imports_go_through_allowed_doors() {
    let mut wrong = Vec::new();
    for folder in CRATES {
        let place = workspace().join(folder);
        let read = Crate::of_package(folder);
        let uses = read.rooms();
        let allowed = allowed(&place);
        let rooms: BTreeSet<&String> = uses.keys().filter_map(|path| path.first()).collect();
        for room in &rooms {
            if !allowed.contains_key(*room) {
                wrong.push(format!("{folder}/src/rooms.md has no row for `{room}`"));
            }
        }
        for room in allowed.keys().filter(|room| !rooms.contains(room)) {
            wrong.push(format!("{folder}/src/rooms.md: there is no module `{room}`"));
        }
        for (from, targets) in &uses {
            for to in targets {
                if !allowed.get(&from[0]).is_some_and(|uses| uses.contains(to)) {
                    wrong.push(format!("{folder}/src: `{}` uses `{to}`", from.join("::")));
                }
            }
        }
    }
    wrong.dedup();
    assert!(
        wrong.is_empty(),
        "the imports do not match the tables in src/rooms.md ({} differences); change an import or a table:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn rooms_do_not_use_each_other_in_cycles() {
    for folder in CRATES {
        let allowed = allowed(&workspace().join(folder));
        let cycles = cycles(&allowed);
        assert!(cycles.is_empty(), "{folder}/src/rooms.md allows cycles: {cycles:?}");
    }
}

#[test]
fn cycles_of_files_are_small_and_within_one_module() {
    let mut wrong = Vec::new();
    let (mut count, mut largest) = (0, 0);
    for root in roots() {
        let imports = Crate::read(&workspace().join(&root)).imports();
        for cycle in cycles(&imports) {
            count += 1;
            largest = largest.max(cycle.len());
            if cycle.len() > LARGEST_CYCLE || !is_family(&cycle) {
                let names: Vec<String> = cycle.iter().map(|path| path.join("::")).collect();
                wrong.push(format!("{root} ({} files): {}", cycle.len(), names.join(", ")));
            }
        }
    }
    println!("{count} cycles, the largest of {largest} files");
    assert!(wrong.is_empty(), "files import in cycles:\n{}", wrong.join("\n"));
}

/// Returns true if one of the files is the module that contains the others, or if all are parts of one module below the
/// crate root.
fn is_family(cycle: &[ModulePath]) -> bool {
    let below = |parent: &[String]| cycle.iter().all(|file| file.starts_with(parent));
    cycle.iter().any(|parent| below(parent)) || cycle[0].first().is_some_and(|room| below(std::slice::from_ref(room)))
}

/// Returns the cycles: the strongly connected components of more than one node.
fn cycles<T: Ord + Clone>(edges: &BTreeMap<T, BTreeSet<T>>) -> Vec<Vec<T>> {
    let reached_from = |start: &T| {
        let mut reached = BTreeSet::new();
        let mut open = vec![start];
        while let Some(node) = open.pop() {
            for next in edges.get(node).into_iter().flatten() {
                if reached.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        reached
    };
    let reached: BTreeMap<&T, BTreeSet<T>> = edges.keys().map(|n| (n, reached_from(n))).collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (node, targets) in &reached {
        let cycle: Vec<T> = targets
            .iter()
            .filter(|to| reached.get(to).is_some_and(|back| back.contains(*node)))
            .cloned()
            .collect();
        if cycle.len() > 1 && seen.insert(cycle[0].clone()) {
            found.push(cycle);
        }
    }
    found
}
