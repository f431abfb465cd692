#!/usr/bin/env bash
# Checks the binding crates with every set of features, because any two dependents may choose any features. Also checks
# that a program that asks for the linked driver is linked against it, and that one that does not ask is not.
#
# Exit code 75: a download failed three times.
set -euo pipefail
cd "$(dirname "$0")/.."

# For the feature bindgen: the pinned cuda.h and libclang.
variables=$(cargo xtask headers)
eval "$variables"

# feature_sets PACKAGE: prints each set of the package's features, separated by commas, after a `+`. `default` adds
# nothing to the other features.
feature_sets() {
    cargo metadata --no-deps --format-version 1 | python3 -c '
import itertools, json, sys
[package] = [p for p in json.load(sys.stdin)["packages"] if p["name"] == sys.argv[1]]
features = [f for f in package["features"] if f != "default"]
for count in range(len(features) + 1):
    for chosen in itertools.combinations(features, count):
        print("+" + ",".join(chosen))
' "$1"
}
for package in cuda-driver-sys cuda-driver; do
    sets=$(feature_sets "$package")
    for set in $sets; do
        echo "--- $package $set"
        cargo check --package "$package" --no-default-features --features "${set#+}"
    done
done

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
