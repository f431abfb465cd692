//! Tests the merge of a user's header into the committed bindings with the fetched headers.

use std::path::{Path, PathBuf};

use crate::bindings::merge::{left_out, merge, version};
use crate::bindings::registry::Entry;
use crate::bindings::{self, Input, Model, committed, render};
use crate::files::{read, root};
use crate::headers;

/// Returns the input for the headers; prints a note and returns `None` if they have not been fetched.
fn inputs() -> Option<(Input, PathBuf)> {
    if !headers::are_fetched() {
        println!("needs the headers: run `cargo xtask headers`");
        return None;
    }
    let current = headers::generator_input().expect("the headers are there");
    Some((current, headers::frozen().expect("the headers are there")))
}

fn header(input: &Input, include: &Path) -> (Model, String) {
    let input = Input {
        include: include.to_owned(),
        ..input.clone()
    };
    let model = bindings::read_header(&input).expect("a header of NVIDIA's");
    (
        model,
        read(&include.join("cudaTypedefs.h")).expect("it lies beside cuda.h"),
    )
}

fn committed_bindings() -> (Model, Vec<Entry>) {
    committed::read_folder(&root().join("cuda-driver-sys/src/generated")).expect("the committed bindings")
}

/// Returns all rendered files, without the first lines, which name the inputs.
fn rendered(model: &Model, registry: &[Entry]) -> Vec<(&'static str, String)> {
    let files = render::render(model, registry, "");
    files
        .into_iter()
        .map(|file| {
            (
                file.name,
                file.text.split_once('\n').expect("a first line").1.to_owned(),
            )
        })
        .collect()
}

#[test]
fn committed_bindings_are_read_back_as_they_were_written() {
    let (model, registry) = committed_bindings();
    for (name, text) in rendered(&model, &registry) {
        let file = read(&root().join("cuda-driver-sys/src/generated").join(name)).expect("a committed file");
        assert!(
            file.split_once('\n').expect("a first line").1 == text,
            "{name} is not read back as it was written"
        );
    }
}

#[test]
fn headers_agree_and_an_older_one_adds_nothing() {
    let Some((input, frozen)) = inputs() else {
        return;
    };
    let (ours, registry) = committed_bindings();
    for include in [input.include.clone(), frozen] {
        let (theirs, typedefs) = header(&input, &include);
        assert_eq!(left_out(&ours, &registry, &theirs), [""; 0]);
        let merged = merge(ours.clone(), registry.clone(), &theirs, &typedefs);
        let (model, entries) = merged.unwrap_or_else(|differences| panic!("{}", differences.join("\n")));
        assert!(
            rendered(&model, &entries) == rendered(&ours, &registry),
            "{} added something",
            version(&theirs)
        );
    }
}

#[test]
fn functions_of_a_vendor_are_left_out_and_named() {
    let Some((input, _)) = inputs() else {
        return;
    };
    let (ours, registry) = committed_bindings();
    let (mut theirs, _) = header(&input, &input.include);
    let mut function = theirs.functions[0].clone();
    function.name = "cuVendorInit".to_owned();
    theirs.functions.push(function);
    assert_eq!(left_out(&ours, &registry, &theirs), ["cuVendorInit"]);
    // In a newer header, an unknown function is NVIDIA's.
    let mut constants = theirs.constants.iter_mut();
    let version = constants.find(|constant| constant.name == "CUDA_VERSION");
    version.expect("a header has it").value += 10;
    assert_eq!(left_out(&ours, &registry, &theirs), [""; 0]);
}

#[test]
fn a_newer_header_adds_what_it_has() {
    let Some((input, frozen)) = inputs() else {
        return;
    };
    let (old, _) = header(&input, &frozen);
    // One item of each kind that the last header of CUDA 12 lacks.
    let has = |model: &Model| {
        [
            model
                .enumerations
                .iter()
                .any(|one| one.name == "CUgraphRecaptureStatus"),
            model.records.iter().any(|one| one.name == "CUcheckpointGpuPair_st"),
            model.aliases.iter().any(|one| one.name == "CUcheckpointGpuPair"),
            model
                .constants
                .iter()
                .any(|one| one.name == "CU_MEM_CREATE_USAGE_GPU_DIRECT_RDMA_OVER_PCIE"),
        ]
    };
    assert_eq!(has(&old), [false; 4]);
    let (_, mut old_registry) = committed_bindings();
    let all = old_registry.len();
    old_registry.retain(|entry| old.functions.iter().any(|function| function.name == entry.symbol));
    let known = old_registry.len();
    assert!(known < all);
    let (new, new_typedefs) = header(&input, &input.include);
    let (model, entries) = merge(old, old_registry, &new, &new_typedefs)
        .unwrap_or_else(|differences| panic!("{}", differences.join("\n")));
    // The plain names are the same: those of CUDA 12 keep their meaning, the others mean the first variant.
    let (_, mut committed) = committed_bindings();
    // The group and the description of a newer function are not in the header.
    let added = entries.iter().filter(|entry| entry.group.is_empty());
    assert_eq!(added.count(), committed.len() - known);
    for (entry, committed) in entries.iter().zip(&mut committed) {
        if entry.group.is_empty() {
            committed.group.clear();
            committed.does.clear();
        }
        assert_eq!(entry, committed);
    }
    assert_eq!(entries.len(), committed.len());
    assert_eq!(has(&model), [true; 4]);
}

#[test]
fn a_header_with_differences_is_refused() {
    let (ours, registry) = committed_bindings();
    let mut theirs = ours.clone();
    theirs.enumerations[0].values[0].1 += 1;
    let layout = theirs.layouts.get_mut("CUuuid_st").expect("a record of the header");
    layout.size += 1;
    // This size changed between releases, but never to this value.
    let layout = theirs
        .layouts
        .get_mut("CUdevResource_st")
        .expect("a record of the header");
    layout.size = 152;
    let layout = theirs
        .layouts
        .get_mut("CUmemLocation_st__localized")
        .expect("a record of the header");
    layout.size += 1;
    // The size before CUDA 13.1, but a field that never moved.
    let layout = theirs
        .layouts
        .get_mut("CUdevSmResource_st")
        .expect("a record of the header");
    layout.size = 12;
    layout.offsets[1].1 += 4;
    let mut function = bindings::model::Declaration {
        name: registry[0].symbol.clone(),
        parameters: registry[0].parameters.clone(),
    };
    function.parameters.push(("more".to_owned(), "c_int".to_owned()));
    theirs.functions.push(function);
    let differences = merge(ours, registry, &theirs, "").expect_err("six differences");
    assert_eq!(
        differences,
        [
            "CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS is 1, but 2 in the header",
            "CUdevResource_st has size 144 and alignment 8, but 152 and 8 in the header",
            "CUdevSmResource_st::minSmPartitionSize is at 4, but at 8 in the header",
            "CUmemLocation_st__localized has size 2 and alignment 1, but 3 and 1 in the header",
            "CUuuid_st has size 16 and alignment 1, but 17 and 1 in the header",
            "cuArray3DCreate takes (pointer to pointer to CUarray_st, pointer to const CUDA_ARRAY3D_DESCRIPTOR_v1_st of 24 \
             bytes aligned to 4), but (pointer to pointer to CUarray_st, pointer to const \
             CUDA_ARRAY3D_DESCRIPTOR_v1_st of 24 bytes aligned to 4, 32-bit integer) in the header",
        ]
    );
}

#[test]
fn records_without_a_name_are_named_after_their_member() {
    let names = |before: &str| {
        let source = format!(
            "pub struct R {{ {before} pub anonymous1: R__bindgen_ty_2, pub m: [R__bindgen_ty_3; 2] }}
             pub union R__bindgen_ty_1 {{ pub b: u8 }}
             pub union R__bindgen_ty_2 {{ pub s: R__bindgen_ty_2__bindgen_ty_1 }}
             pub struct R__bindgen_ty_2__bindgen_ty_1 {{ pub b: u8 }}
             pub struct R__bindgen_ty_3 {{ pub b: u8 }}"
        );
        let file = syn::parse_file(&source).expect("Rust");
        let records = Model::from_bindgen(&file).map(|model| model.records);
        records.map(|all| all.into_iter().map(|record| record.name).collect::<Vec<_>>())
    };
    assert_eq!(
        names("pub k: R__bindgen_ty_1,"),
        Ok(["R", "R__k", "R__anonymous1", "R__s", "R__m"]
            .map(str::to_owned)
            .to_vec())
    );
    assert_eq!(
        names("pub k: R__bindgen_ty_1, pub e: R__bindgen_ty_4,"),
        Err("R__bindgen_ty_4, the type of R__e, is not a record".to_owned())
    );
    assert_eq!(names(""), Err("R__bindgen_ty_1 is not the type of a member".to_owned()));
}

/// The aliases of `numbered.rs` number the unnamed records of each record in the order of the header, as bindgen does.
#[test]
fn numbered_names_follow_the_order_of_the_header() {
    let (model, _) = committed_bindings();
    let position = |name: &str| model.records.iter().position(|record| record.name == name);
    let text = read(&root().join("cuda-driver-sys/src/numbered.rs")).expect("a committed file");
    let text = text.replace("=\n   ", "=");
    let mut targets = Vec::new();
    let (mut last_parent, mut last_number, mut last_position) = (String::new(), 0, None);
    for line in text.lines().filter_map(|line| line.strip_prefix("pub type ")) {
        let (alias, target) = line.trim_end_matches(';').split_once(" = ").expect("an alias");
        let (parent, number) = alias.rsplit_once("__bindgen_ty_").expect("a number");
        // The aliases of the records inside a numbered record stand between it and the next.
        if parent != last_parent && !last_parent.starts_with(&format!("{parent}__")) {
            (last_number, last_position) = (0, None);
        } else if parent != last_parent {
            let mut siblings = targets.iter().filter(|(other, _, _)| other == parent);
            (_, last_number, last_position) = siblings.next_back().cloned().expect("a sibling");
        }
        let number: u32 = number.parse().expect("a number");
        let here = position(target);
        assert!(here.is_some() && here > last_position, "{alias} = {target}");
        assert_eq!(number, last_number + 1, "{alias}");
        assert!(
            target.starts_with(parent.split("__").next().unwrap_or_default()),
            "{alias}"
        );
        targets.push((parent.to_owned(), number, here));
        (last_parent, last_number, last_position) = (parent.to_owned(), number, here);
    }
    let unnamed = |name: &str| name.contains("__");
    let all = model.records.iter().filter(|record| unnamed(&record.name)).count();
    assert_eq!(targets.len(), all);
}

#[test]
fn generated_files_name_the_bindgen_that_is_locked() {
    let lock = read(&root().join("Cargo.lock")).expect("the lock file is committed");
    let package = lock
        .split("\n\n")
        .find(|package| package.contains("name = \"bindgen\"\n"));
    let version = package.and_then(|package| package.split("version = \"").nth(1)?.split('"').next());
    let version = version.expect("the lock file has bindgen");
    assert!(
        bindings::render::GENERATOR.ends_with(&format!("(bindgen {version})")),
        "bindgen is {version} now"
    );
}

/// The names and types of parameters.
type Parameters = Vec<(String, String)>;

/// A change behind a pointer is a difference.
#[test]
fn targets_of_pointers_are_compared() {
    let (ours, registry) = committed_bindings();
    let found = |change: &dyn Fn(&mut Model, &mut Parameters), symbol: &str| {
        let mut theirs = ours.clone();
        let entry = registry.iter().find(|entry| entry.symbol == symbol);
        let mut parameters = entry.expect("an export").parameters.clone();
        change(&mut theirs, &mut parameters);
        theirs.functions.push(bindings::model::Declaration {
            name: symbol.to_owned(),
            parameters,
        });
        bindings::merge::differences(&ours, &registry, &theirs)
    };
    let ty = |index: usize, ty: &str| {
        let ty = ty.to_owned();
        move |_: &mut Model, all: &mut Parameters| all[index].1.clone_from(&ty)
    };
    assert_eq!(
        found(&ty(0, "*mut c_ulonglong"), "cuDeviceGetCount"),
        ["cuDeviceGetCount takes (pointer to 32-bit integer), but (pointer to 64-bit integer) in the header"]
    );
    // A target that the driver may now write is a difference; one that it only reads is not.
    assert_eq!(
        found(&ty(1, "*mut c_void"), "cuMemcpyHtoD_v2").len(),
        1,
        "const was removed"
    );
    assert!(found(&ty(0, "*const c_int"), "cuDeviceGetCount").is_empty());
    // An alias of the same type.
    assert!(found(&ty(0, "*mut CUdevice"), "cuDeviceGetCount").is_empty());
    let callback = |theirs: &mut Model, _: &mut Parameters| {
        let alias = theirs.aliases.iter_mut().find(|one| one.name == "CUhostFn");
        alias.expect("a callback").target = syn::parse_quote!(Option<unsafe extern "system" fn(userData: u32)>);
    };
    assert_eq!(found(&callback, "cuLaunchHostFunc").len(), 1);
    // A smaller record, with a name from an earlier header and with an unknown name.
    let smaller = |name: &'static str| {
        move |theirs: &mut Model, all: &mut Parameters| {
            let layout = theirs.layouts["CUaccessPolicyWindow_st"].clone();
            theirs.layouts.insert(name.to_owned(), layout);
            all[2].1 = format!("*const {name}");
        }
    };
    let earlier = smaller("CUstreamAttrValue_union");
    assert!(found(&earlier, "cuStreamSetAttribute").is_empty());
    let unknown = smaller("CUstreamAttrValue_v9_union");
    assert_eq!(found(&unknown, "cuStreamSetAttribute").len(), 1);
}

#[test]
fn a_function_that_the_typedefs_forget_is_as_new_as_the_header() {
    let (ours, registry) = committed_bindings();
    let mut theirs = ours.clone();
    let constants = &mut theirs.constants;
    let version = constants.iter_mut().find(|one| one.name == "CUDA_VERSION");
    version.expect("it has one").value = 99_010;
    for name in ["cuNoveltyAdd", "cuNoveltyForget"] {
        theirs.functions.push(bindings::model::Declaration {
            name: name.to_owned(),
            parameters: Vec::new(),
        });
    }
    let typedefs = "typedef CUresult (CUDAAPI *PFN_cuNoveltyAdd_v99000)(void);\n";
    let (_, entries) = merge(ours, registry, &theirs, typedefs).expect("nothing differs");
    let since = |name: &str| entries.iter().find(|one| one.symbol == name).map(|one| one.since);
    assert_eq!(since("cuNoveltyAdd"), Some(99_000));
    assert_eq!(since("cuNoveltyForget"), Some(99_010));
}
