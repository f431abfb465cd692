#!/usr/bin/env bash
# Compares sizes and times with this project's limits: `ci/numbers.sh [build] [calls] [abi]`; default: build calls.
#
# build: third-party crates, size and time of a clean debug build. calls: the cost of calls and of loading, with a
# driver that does nothing. abi: the duration of `ci/abi.sh` (exit code 75: a download failed).
#
# The script fails if crates or bytes are over their limit. The time limits are for an idle machine: a time over its
# limit prints a warning. Because the machine may be busy, a build fails the script only if its time and its CPU time
# are over four times the limit, and calls only if figures are over twice their limits in all three runs. The time of
# `abi` never fails it.
set -euo pipefail
cd "$(dirname "$0")/.."

limit_crates=3
limit_rlib=12000000
limit_build_ms=2500
failed=0

# check NAME FIGURE LIMIT: prints a figure and its limit; over the limit the script fails.
check() {
    local name=$1 figure=$2 limit=$3 verdict=
    if [ "$figure" -gt "$limit" ]; then
        verdict='  FAILED: over the limit'
        failed=1
    fi
    echo "$name: $figure, limit $limit$verdict"
}

# time_ms FIGURE LIMIT NAME: prints a time and its limit; returns success if the time is over four times the limit.
time_ms() {
    local figure=$1 limit=$2 name=$3 verdict=
    if [ "$figure" -gt "$limit" ]; then
        verdict='  warning: over the limit'
    fi
    echo "$name: $figure ms, limit $limit ms$verdict"
    [ "$figure" -gt $((4 * limit)) ]
}

build() {
    local file bytes rlib=0 wall cpu best_wall=1000000000 best_cpu=1000000000 third times
    echo "=== Clean debug build of cuda-driver and its dependencies, on $(nproc) cores (the best of three)"
    third=$(cargo tree --quiet --package cuda-driver --edges normal,build --prefix none | sed 's/ (\*)$//' | sort -u | grep -vc "($PWD")
    check "third-party crates" "$third" "$limit_crates"
    # Without incremental compilation, as for a dependency.
    local -x CARGO_TARGET_DIR=$PWD/target/numbers CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=full
    local TIMEFORMAT='%R %U %S'
    cargo fetch --quiet --locked
    for _ in 1 2 3; do
        rm -rf "$CARGO_TARGET_DIR"
        # Cargo's output goes to the terminal, the output of `time` to the variable.
        exec 3>&2
        times=$({ time cargo build --quiet --locked --package cuda-driver >&3 2>&3; } 2>&1)
        exec 3>&-
        read -r wall cpu < <(awk '{ printf "%d %d\n", $1 * 1000, ($2 + $3) * 1000 }' <<<"$times")
        best_wall=$((wall < best_wall ? wall : best_wall))
        best_cpu=$((cpu < best_cpu ? cpu : best_cpu))
    done
    if time_ms "$best_wall" "$limit_build_ms" "time" && [ "$best_cpu" -gt $((4 * limit_build_ms)) ]; then
        echo "FAILED: over four times the limit"
        failed=1
    fi
    echo "CPU: $best_cpu ms"
    for file in "$CARGO_TARGET_DIR"/debug/deps/*.rlib; do
        bytes=$(stat --format %s "$file")
        rlib=$((rlib + bytes))
        echo "$bytes bytes  $(basename "$file" | sed 's/-[0-9a-f]*\.rlib$//')"
    done
    check "bytes of rlib" "$rlib" "$limit_rlib"
    rm -rf "$CARGO_TARGET_DIR"
}

calls() {
    echo "=== Calls and loading, over a driver that does nothing"
    for _ in 1 2 3; do
        cargo run --quiet --release --package cuda-driver-benches && return
    done
    failed=1
}

abi() {
    echo "=== Every cuda.h"
    ci/abi.sh
}

[ $# -gt 0 ] || set -- build calls
for part in "$@"; do
    case $part in
        build | calls | abi) "$part" ;;
        *)
            echo "usage: ci/numbers.sh [build] [calls] [abi]" >&2
            exit 2
            ;;
    esac
    echo
done
exit "$failed"
