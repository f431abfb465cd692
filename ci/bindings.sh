#!/usr/bin/env bash
# Builds with the feature `bindgen` and the pinned header and libclang, and fails unless the output equals the committed
# bindings. Then runs the tests of the generator. Exits with status 75 if a download failed three times.
set -euo pipefail
cd "$(dirname "$0")/.."

variables=$(cargo xtask headers)
eval "$variables"
out=$(cargo build --package cuda-driver-sys --features bindgen --message-format=json-render-diagnostics |
    sed -n 's|.*"out_dir":"\([^"]*/cuda-driver-sys-[^"]*\)".*|\1|p' | tail -n 1)
for file in cuda-driver-sys/src/generated/*.rs; do
    # The first line names the inputs.
    if ! diff <(tail -n +2 "$file") <(tail -n +2 "$out/$(basename "$file")"); then
        echo "the feature bindgen makes a different $(basename "$file") from the same header" >&2
        exit 1
    fi
done
echo "the feature bindgen makes the committed bindings"

cargo test --package xtask
