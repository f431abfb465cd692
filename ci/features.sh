#!/usr/bin/env bash
# Any two dependents may choose any features: checks the binding crates with every set of them, and that programs which
# ask for the linked driver start with it and others do not. Ends with 75 if a download failed three times.
set -euo pipefail
cd "$(dirname "$0")/.."

hack=$PWD/.cache/cargo-hack
if [ ! -x "$hack/bin/cargo-hack" ]; then
    for try in 1 2 3; do
        cargo install --quiet --locked --root "$hack" --version 0.6.46 cargo-hack && break
        if [ "$try" = 3 ]; then
            echo "ci/features.sh: cargo-hack 0.6.46 could not be installed" >&2
            exit 75
        fi
    done
fi

# For the feature bindgen: the pinned cuda.h and libclang.
variables=$(cargo xtask headers)
eval "$variables"

PATH=$hack/bin:$PATH
# `default` adds nothing to `loader`.
cargo hack check --package cuda-driver-sys --feature-powerset --exclude-features default
cargo hack check --package cuda-driver --feature-powerset

# No toolkit's libcuda.so here: the linker gets a stub that is made on the spot.
unset CUDA_PATH
export CARGO_TARGET_DIR=$PWD/target/linked
cargo test --manifest-path ci/linked/Cargo.toml
cargo test --manifest-path ci/linked/Cargo.toml --features loader
