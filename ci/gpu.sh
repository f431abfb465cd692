#!/usr/bin/env bash
# Runs the tests and examples on a GPU machine without Rust: builds them into a folder here, which is copied there.
#
# ci/gpu.sh pack [FOLDER]  builds the contract tests, the other tests of the binding crates that use a driver, the tests
#                          of cuda-doctor's reports, the examples, and a program that is linked against the driver into
#                          FOLDER (default target/gpu-pack) and the archive FOLDER.tar.xz (56 MiB at most).
# ci/gpu.sh run [FOLDER]   runs the programs in FOLDER on the system's driver; needs a GPU, no Rust.
#
# The folder contains this script as `run` and is all that a GPU machine needs: unpack the archive there and start
# FOLDER/run.
#
# CUDA_DRIVER chooses a driver other than the system's (`software`, or a path).
set -euo pipefail

limit_mib=56

pack() {
    local here folder
    here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
    folder=$(realpath --canonicalize-missing -- "${1:-$here/target/gpu-pack}")
    cd "$here"
    rm -rf "$folder"
    mkdir -p "$folder/tests" "$folder/examples"
    local built=$here/target/gpu-pack.json
    # Most of each program is the software driver, which a GPU machine does not use: optimise it for size.
    local crate release=(--release --message-format=json-render-diagnostics)
    for crate in "" -engine -host -image -ptx; do
        release+=(--config "profile.release.package.cuda-driver-soft$crate.opt-level=\"s\"")
    done
    cargo test "${release[@]}" --no-run -p cuda-driver -p cuda-driver-test-other-crates --test '*' >"$built"
    cargo test "${release[@]}" --no-run -p cuda-driver-sys -p cuda-driver-hooks -p cuda-doctor \
        --test abi_drivers --test hooks --test situations >>"$built"
    cargo build "${release[@]}" -p cuda-driver -p cuda-driver-sys -p cuda-driver-hooks --examples >>"$built"
    # Without CUDA_PATH the linker gets a stub instead of this machine's driver.
    env -u CUDA_PATH cargo build --release --target-dir target/linked --manifest-path ci/linked/Cargo.toml --bin linked
    cp target/linked/release/linked "$folder/examples/"
    strip "$folder/examples/linked"
    python3 - "$built" <<'PYTHON' | while IFS=$'\t' read -r kind name path; do
import json, sys
for line in open(sys.argv[1]):
    m = json.loads(line)
    if m.get("reason") != "compiler-artifact" or not m.get("executable"):
        continue
    kind = m["target"]["kind"][0]
    if kind in ("test", "example"):
        print(kind, m["target"]["name"], m["executable"], sep="\t")
PYTHON
        cp "$path" "$folder/${kind}s/$name"
        strip "$folder/${kind}s/$name"
    done
    for kind in tests examples; do
        cp tests/kernels/generated/*.ptx "$folder/$kind/"
    done
    find tests/kernels -maxdepth 1 -name '*.ptx' -exec cp {} "$folder/tests/" \;
    cp ci/gpu.sh "$folder/run"
    # The programs have most of their code in common, so a compressed archive is a small part of the folder.
    XZ_OPT="-6 -T0" tar --create --xz --file "$folder.tar.xz" --directory "$(dirname "$folder")" "$(basename "$folder")"
    local kib
    kib=$(du -k "$folder.tar.xz" | cut -f1)
    echo "packed $(find "$folder/tests" -type f ! -name '*.ptx' | wc -l) test programs and" \
        "$(find "$folder/examples" -type f ! -name '*.ptx' | wc -l) examples into $folder.tar.xz: $((kib / 1024)) MiB"
    if [ "$kib" -gt $((limit_mib * 1024)) ]; then
        echo "ci/gpu.sh: the archive is larger than $limit_mib MiB" >&2
        exit 1
    fi
}

run() {
    local folder=$1 passed=0 failed=0 ignored=0 code program name
    local broken=()
    export CUDA_DRIVER=${CUDA_DRIVER:-system} CONTRACT_DIGESTS=1
    echo "driver: CUDA_DRIVER=$CUDA_DRIVER"
    if command -v nvidia-smi >/dev/null; then
        nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || true
    fi
    output=$(mktemp)
    trap 'rm -f "$output"' EXIT
    for program in "$folder"/tests/* "$folder"/examples/*; do
        [[ -x $program && $program != *.ptx ]] || continue
        name=${program#"$folder"/}
        printf '\n--- %s\n' "$name"
        if [[ $name = examples/linked && $CUDA_DRIVER != system ]]; then
            echo "needs the system's driver, against which this example is linked"
            continue
        fi
        code=0
        timeout 300 "$program" >"$output" 2>&1 || code=$?
        cat "$output"
        if [[ $code != 0 ]]; then
            broken+=("$name (exit $code)")
            # An example has no list of tests.
            if [[ $name = tests/* ]]; then alone "$program"; fi
        fi
        while read -r line; do
            [[ $line =~ ([0-9]+)\ passed\;\ ([0-9]+)\ failed\;\ ([0-9]+)\ ignored ]] || continue
            passed=$((passed + BASH_REMATCH[1]))
            failed=$((failed + BASH_REMATCH[2]))
            ignored=$((ignored + BASH_REMATCH[3]))
        done < <(grep '^test result:' "$output" || true)
    done
    printf '\ntests: %d passed, %d failed, %d ignored\n' "$passed" "$failed" "$ignored"
    for name in "${broken[@]}"; do
        echo "FAILED: $name"
    done
    [[ ${#broken[@]} = 0 && $passed -gt 0 ]]
}

# Runs each test that did not pass in a failed program again, in a process of its own: a fault is sticky in its process,
# so the tests after it fail too, and after a crash they do not run at all.
alone() {
    local program=$1 name text
    for name in $("$program" --list 2>/dev/null | sed -n 's/: test$//p'); do
        grep -qxF "test $name ... ok" "$output" && continue
        grep -qF "test $name ... ignored" "$output" && continue
        if text=$(timeout 60 "$program" --exact "$name" 2>&1); then
            echo "alone: ok      $name"
        else
            echo "alone: FAILED  $name"
            printf '%s\n' "$text" | grep -vE '^$|^running|^test |^failures:|^---- |^note: run with' || true
        fi
    done
}

if [ "$(basename "$0")" = run ]; then
    run "$(cd "$(dirname "$0")" && pwd)"
    exit
fi
case ${1:-} in
    pack) pack "${2:-}" ;;
    run) run "$(cd "${2:-$(dirname "$0")/../target/gpu-pack}" && pwd)" ;;
    *)
        echo "usage: ci/gpu.sh pack|run [FOLDER]" >&2
        exit 2
        ;;
esac
