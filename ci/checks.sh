#!/usr/bin/env bash
# Runs the contract suite with all checks of kernels and streams but `leaks`, and fails if there is a finding that is
# not listed here, or without a filter if there is none for a listed one. Tests of faults run wrong kernels, but in child
# processes, whose findings do not count.
#
#     ci/checks.sh [FILTER]
set -uo pipefail
cd "$(dirname "$0")/.."

# Findings that are expected, with the test and the reason.
expected=(
    # graph_updates::single_nodes: a copy reads the memory that a kernel without an edge to the copy writes. The test
    # accepts every order.
    'race: `step`: a copy of 4 bytes reads 0x[0-9a-f]*, which `step` writes, and nothing orders them'
)

output=$(mktemp)
trap 'rm -f "$output"' EXIT
CUDA_SOFT_CHECK=memory,init,race,sync cargo test --workspace --test contract -- "$@" >"$output" 2>&1
code=$?
cat "$output"
[ "$code" = 0 ] || exit "$code"

findings=$(grep -a -o 'cuda-driver-soft: \(memory\|init\|race\|sync\): .*' "$output")
patterns=()
for pattern in "${expected[@]}"; do
    patterns+=(-e "$pattern")
    if [ $# = 0 ] && ! grep -q "$pattern" <<<"$findings"; then
        printf 'ci/checks.sh expects a finding that there is not:\n%s\n' "$pattern"
        exit 1
    fi
done
unexpected=$(grep -v "${patterns[@]}" <<<"$findings")
if [ -n "$unexpected" ]; then
    printf 'findings in kernels of the contract suite:\n%s\n' "$unexpected"
    exit 1
fi
echo "no findings but the expected ones"
