//! `cargo xtask generate`: writes the committed generated files, except those of `directions` and `kernels`.

use std::path::{Path, PathBuf};

use crate::bindings::render;
use crate::files::{Output, root};
use crate::registry::Registry;
use crate::{api_md, checked, checks, functions_toml, headers, ptx_md, trace_table};

/// The folders that hold nothing but files of this task.
const FOLDERS: &[&str] = &[
    "cuda-driver-sys/src/generated",
    "src/checked/generated",
    "tests/checked_calls/generated",
    "cuda-driver-soft/src/trace/generated",
];

/// Writes the files, and removes those that are no longer generated.
pub(crate) fn run() -> Result<(), String> {
    let registry = Registry::read()?;
    checks::check(&registry)?;
    let calls = checked::calls(&registry)?;
    let mut files = vec![
        Output::new("cuda-driver-sys/api/functions.toml", functions_toml::text(&registry)?),
        Output::new(
            "cuda-driver-soft/src/trace/generated/shown.rs",
            trace_table::text(&registry)?,
        ),
    ];
    files.extend(bindings(&registry)?);
    files.extend(checked::files(&registry, &calls)?);
    for file in &files {
        file.write()?;
    }
    for folder in FOLDERS {
        remove_others(Path::new(folder), &files)?;
    }
    // The tables below run examples of the software driver, which is built from the files above.
    let api = api_md::Table::read(&registry, &calls)?;
    let forms = ptx_md::Forms::read()?;
    Output::new("API.md", api.text()).write()?;
    Output::new("PTX.md", forms.text()).write()?;
    println!("API.md: {}", api.summary());
    println!("PTX.md: {}", forms.summary());
    Ok(())
}

/// Returns the raw bindings.
fn bindings(registry: &Registry) -> Result<Vec<Output>, String> {
    let folder = PathBuf::from("cuda-driver-sys/src/generated");
    let inputs = format!("cuda.h {}", headers::current_stamp()?);
    let files = render::render(&registry.header, &registry.functions, &inputs);
    Ok(files
        .into_iter()
        .map(|file| Output::new(folder.join(file.name), file.text))
        .collect())
}

/// Removes the files of a folder that are not among `files`.
fn remove_others(folder: &Path, files: &[Output]) -> Result<(), String> {
    let absolute = root().join(folder);
    let error = |e| format!("{}: {e}", absolute.display());
    for entry in std::fs::read_dir(&absolute).map_err(error)? {
        let name = entry.map_err(error)?.file_name();
        if !files.iter().any(|file| file.path == folder.join(&name)) {
            let path = absolute.join(&name);
            std::fs::remove_file(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        }
    }
    Ok(())
}
