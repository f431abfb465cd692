#!/usr/bin/env bash
# The numbers that this project keeps to, measured in one run: what a clean build costs, what a call and a load cost.
# Sizes, crates and costs of calls are checked; a build's time depends on the machine and is only printed.
# With the argument `size`, only the clean build; with `abi`, also how long the check of every cuda.h takes (ends with 75 if
# a download failed).
set -euo pipefail
cd "$(dirname "$0")/.."

limit_crates=3
limit_rlib=12000000
failed=0

# Whether a figure is within its limit.
check() {
    local what=$1 figure=$2 limit=$3 verdict=
    if [ "$figure" -gt "$limit" ]; then
        verdict='  TOO MUCH'
        failed=1
    fi
    echo "$what: $figure, may be $limit$verdict"
}

echo "=== Clean debug build of cuda-driver and its dependencies, on $(nproc) cores"
third=$(cargo tree --quiet --package cuda-driver --edges normal,build --prefix none | sed 's/ (\*)$//' | sort -u | grep -vc "($PWD")
check "third-party crates" "$third" "$limit_crates"
# As a program gets it that depends on it: what does not change is not built incrementally.
export CARGO_TARGET_DIR=$PWD/target/numbers CARGO_INCREMENTAL=0
cargo fetch --quiet --locked
TIMEFORMAT='%R s (limit on 2 idle cores: 2.5 s), %U s of CPU'
for _ in 1 2 3; do
    rm -rf "$CARGO_TARGET_DIR"
    time cargo build --quiet --locked --package cuda-driver
done
rlib=0
for file in "$CARGO_TARGET_DIR"/debug/deps/*.rlib; do
    bytes=$(stat --format %s "$file")
    rlib=$((rlib + bytes))
    echo "$bytes bytes  $(basename "$file" | sed 's/-[0-9a-f]*\.rlib$//')"
done
check "bytes of rlib" "$rlib" "$limit_rlib"
rm -rf "$CARGO_TARGET_DIR"
unset CARGO_TARGET_DIR CARGO_INCREMENTAL
[ "${1:-}" = size ] && exit "$failed"

echo
echo "=== Calls and loading, over a driver that does nothing"
cargo run --quiet --release --package cuda-driver-benches || failed=1

if [ "${1:-}" = abi ]; then
    echo
    echo "=== Every cuda.h from CUDA 11.7 to 13.5 (limit: 60 s)"
    ci/abi.sh || exit
fi
exit "$failed"
