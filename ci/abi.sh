#!/usr/bin/env bash
# Compares the bindings with every cuda.h since CUDA 11.7, as the C compiler reads it. The comparison, without downloads
# and the build, should take at most a minute on an idle machine; if it takes longer, the script prints a warning.
# Exit code 75: a download failed three times.
set -euo pipefail
cd "$(dirname "$0")/.."

limit=60
cargo xtask every-header
cargo test --workspace --test abi_headers --no-run
start=$SECONDS
cargo test --workspace --test abi_headers -- --include-ignored --nocapture
took=$((SECONDS - start))
echo "the check took $took s, limit $limit s$([ "$took" -le "$limit" ] || echo '  warning: over the limit')"
