#!/usr/bin/env bash
# Regenerates the registry and the raw bindings from the pinned header with the pinned libclang, and fails unless that
# changes nothing. Then builds and tests with the feature `bindgen`, which reads the same header.
# Ends with 75 if a download failed three times.
set -euo pipefail
cd "$(dirname "$0")/.."

generated=(cuda-driver-sys/api/functions.toml cuda-driver-sys/src/generated)

variables=$(cargo xtask headers)
cargo xtask api
cargo xtask bindings

if [ -n "$(git status --porcelain -- "${generated[@]}")" ]; then
    git --no-pager diff --stat -- "${generated[@]}"
    git status --short -- "${generated[@]}"
    echo "The committed bindings are not what the generator makes of the header. Run this and commit:" >&2
    echo "    cargo xtask api && cargo xtask bindings" >&2
    exit 1
fi
echo "the committed bindings are up to date"

eval "$variables"
cargo test --package cuda-driver-sys --features bindgen
cargo test --package xtask
