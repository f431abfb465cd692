#!/usr/bin/env bash
# All of CI. Run it locally as `ci/run.sh`.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo test --workspace
