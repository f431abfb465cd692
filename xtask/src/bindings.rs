//! `cargo xtask bindings`: `cuda-driver-sys/src/generated/`.

use crate::generate::{self, render};
use crate::{api, headers, news, read, root, write};

/// Writes the committed bindings.
pub(crate) fn run() -> Result<(), String> {
    let model = generate::read_header(&headers::generator_input()?)?;
    let mut registry = api::registry()?;
    // The signatures are the header's; the registry has the rest.
    for entry in &mut registry {
        let declared = model.functions.iter().find(|d| d.name == entry.symbol);
        let declared = declared.ok_or_else(|| {
            format!(
                "{} is in functions.toml but not in cuda.h: run `cargo xtask api` first",
                entry.symbol
            )
        })?;
        entry.parameters.clone_from(&declared.parameters);
    }
    if registry.len() != model.functions.len() {
        return Err(format!(
            "functions.toml has {} functions, cuda.h {}: run `cargo xtask api` first",
            registry.len(),
            model.functions.len()
        ));
    }
    let header = read(&headers::current()?.join("cuda.h"))?;
    let inputs = format!("cuda.h {}", headers::current_stamp()?);
    for file in render::render(&model, &registry, &inputs) {
        write(
            &root().join("cuda-driver-sys/src/generated").join(file.name),
            &file.text,
        )?;
    }
    news::tell(&model, &registry, &header)
}
