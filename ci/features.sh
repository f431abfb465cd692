#!/usr/bin/env bash
# Checks the binding crates with every set of features, because any two dependents may choose any features. Also checks
# that a program that asks for the linked driver is linked against it, and that one that does not ask is not.
#
# Exit code 75: a download failed three times.
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
        sleep $((try * 5))
    done
fi

# For the feature bindgen: the pinned cuda.h and libclang.
variables=$(cargo xtask headers)
eval "$variables"

PATH=$hack/bin:$PATH
# `default` adds nothing to `loader`.
cargo hack check --package cuda-driver-sys --feature-powerset --exclude-features default
cargo hack check --package cuda-driver --feature-powerset

# The linker must not use a toolkit's libcuda.so: it gets a stub that is made by the build.
unset CUDA_PATH
export CARGO_TARGET_DIR=$PWD/target/linked
cargo test --manifest-path ci/linked/Cargo.toml
cargo test --manifest-path ci/linked/Cargo.toml --features loader

# If the library that the linker was given moves, the next build must not keep a dangling link.
toolkit=$CARGO_TARGET_DIR/toolkit
# linked TOOLKIT: links the programs again and prints the library that the linker was given.
linked() {
    cargo clean --quiet --manifest-path ci/linked/Cargo.toml --package linked
    CUDA_PATH=$1 cargo build --quiet --manifest-path ci/linked/Cargo.toml --message-format=json-render-diagnostics |
        sed -n 's|.*"out_dir":"\([^"]*/cuda-driver-sys-[^"]*\)".*|\1/linked/libcuda.so|p' | tail -n 1
}
rm -rf "$toolkit" && mkdir -p "$toolkit/lib64/stubs"
stub=$(linked "")
cp "$stub" "$toolkit/lib64/stubs/libcuda.so"
given=$(readlink -f "$(linked "$toolkit")")
if [ "$given" != "$(readlink -f "$toolkit")/lib64/stubs/libcuda.so" ]; then
    echo "ci/features.sh: the linker was given $given, not the library of CUDA_PATH" >&2
    exit 1
fi
rm -r "$toolkit"
readlink -f "$(linked "$toolkit")"
