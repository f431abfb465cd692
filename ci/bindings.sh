#!/usr/bin/env bash
# Regenerates the registry and the raw bindings from the pinned header with the pinned libclang, and fails if anything
# changes. Then builds with the feature `bindgen`, whose output for the same header must be the same.
#
# Exit code 75: a download failed three times.
set -euo pipefail
cd "$(dirname "$0")/.."

generated=(cuda-driver-sys/api/functions.toml cuda-driver-sys/src/generated)

variables=$(cargo xtask headers)
cargo xtask api
cargo xtask bindings

if [ -n "$(git status --porcelain -- "${generated[@]}")" ]; then
    git --no-pager diff --stat -- "${generated[@]}"
    git status --short -- "${generated[@]}"
    echo "The committed bindings differ from the generator's output. Run this and commit:" >&2
    echo "    cargo xtask api && cargo xtask bindings" >&2
    exit 1
fi
echo "the committed bindings are up to date"

eval "$variables"
out=$(cargo build --package cuda-driver-sys --features bindgen --message-format=json |
    sed -n 's|.*"out_dir":"\([^"]*/cuda-driver-sys-[^"]*\)".*|\1|p' | tail -n 1)
for file in cuda-driver-sys/src/generated/*.rs; do
    # The first line names the inputs.
    if ! diff <(tail -n +2 "$file") <(tail -n +2 "$out/$(basename "$file")"); then
        echo "the feature bindgen generates another $(basename "$file") than is committed" >&2
        exit 1
    fi
done
echo "the feature bindgen generates the committed bindings"

cargo test --package xtask
