#!/usr/bin/env bash
# Runs all of CI, here or on CI's machine, where `.ci/run` calls this script.
#
# A failed step does not stop the others. The last lines list the failed steps, the skipped steps (the output of each
# gives its reason), and the tests that need something that this machine does not have. With CI=true a skipped step is a
# failure, unless it was skipped because a download failed three times (exit code 75).
set -uo pipefail
cd "$(dirname "$0")/.."

root=$PWD
cache=$root/.cache
clone=$root/target/clean-clone
log=$root/target/ci.log
mkdir -p "$cache" "$root/target"
: >"$log"
# A slow registry must not fail a step.
export CARGO_NET_RETRY=10
# Crates do not change between steps, so incremental data would only fill the disk; so would debug information that a
# backtrace does not need.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=line-tables-only

failed=() skipped=() not_downloaded=() timed=()

# step NAME COMMAND...: runs the command. Exit code 75 means that a download failed, 77 that the step does not apply
# here.
step() {
    local name=$1 start=$SECONDS code=0
    shift
    printf '\n=== %s\n' "$name"
    "$@" 2>&1 | tee -a "$log" || code=${PIPESTATUS[0]}
    ended "$name" "$code" $((SECONDS - start))
}
ended() {
    timed+=("$3 s  $1")
    case $2 in
        0) ;;
        75) not_downloaded+=("$1") ;;
        77) skipped+=("$1") ;;
        *) failed+=("$1 (exit $2)") ;;
    esac
}

# parallel NAME COMMAND...: like step, but runs the command in the background, together with other commands that do not
# use all processors. `finish_parallel` waits for them and prints their output one after another.
parallel_logs=$root/target/ci-parallel
parallel_steps=()
rm -rf "$parallel_logs" && mkdir -p "$parallel_logs"
parallel() {
    local name=$1 number=${#parallel_steps[@]}
    shift
    parallel_steps+=("$name")
    (
        start=$SECONDS code=0
        "$@" >"$parallel_logs/$number.log" 2>&1 || code=$?
        echo "$code $((SECONDS - start))" >"$parallel_logs/$number.end"
    ) &
}
finish_parallel() {
    local number code seconds
    wait
    for number in "${!parallel_steps[@]}"; do
        printf '\n=== %s\n' "${parallel_steps[number]}"
        tee -a "$log" <"$parallel_logs/$number.log"
        code=1 seconds=0
        read -r code seconds <"$parallel_logs/$number.end"
        ended "${parallel_steps[number]}" "$code" "$seconds"
    done
    parallel_steps=()
}

# Copies the files of a `git clone` of this working tree: tracked files and new files that git does not ignore, without
# build outputs.
clean_clone() {
    rm -rf "$clone" && mkdir -p "$clone"
    git ls-files -z --cached --others --exclude-standard | xargs -0 ls -d 2>/dev/null | tar -cf - -T - | tar -xf - -C "$clone"
    echo "$(find "$clone" -type f | wc -l) files"
    for tool in clang nvcc libclang.so libcuda.so.1; do
        if command -v "$tool" >/dev/null || ldconfig -p 2>/dev/null | grep -q "$tool"; then
            echo "note: this machine has $tool"
        else
            echo "no $tool on this machine"
        fi
    done
}

# Runs a command of the README in the clean clone, without environment variables that could help it.
readme_command() {
    grep -qxF "$1" "$clone/README.md" || { echo "README.md has no line \`$1\`"; return 1; }
    local start=$SECONDS code=0
    (cd "$clone" && env -u CARGO_TARGET_DIR -u CUDA_PATH -u CUDA_HOME -u CUDA_DRIVER LIBCLANG_PATH=/nonexistent bash -ec "$1") || code=$?
    echo "\`$1\` took $((SECONDS - start)) s"
    return "$code"
}

# Runs the contract suite with each value of CUDA_SOFT_ENGINE but the default, which the README's tests use. `compiled`:
# all kernels are compiled to machine code where that is possible. `leaving`: the same, but each check in compiled code
# fails, so that the interpreter continues. `interpreter`: none is.
engines() {
    local engine
    for engine in compiled leaving interpreter; do
        (cd "$clone" && CUDA_SOFT_ENGINE=$engine cargo test --workspace --test contract) || return
    done
}

# Compares the results of random kernels in the interpreter and as machine code. The step with the tests has built the
# program.
random_kernels() {
    "$clone/target/debug/examples/random_kernels" 4000 1000000
}

# Runs the tests that need the fetched cuda.h: those that compile C against it, including the C program that uses the
# software libcuda.so.1, and those of the generator. The command names the whole workspace like the README's, because
# other packages would mean other features and another build.
with_header() {
    ls -d "$cache"/nvidia-cuda-runtime-13* >/dev/null || return 75
    ln -sfn "$cache" "$clone/.cache"
    (cd "$clone" && cargo test --workspace --test c_program --test param_layout --bin xtask -- --nocapture)
}

# Runs a CI script in the clean clone, so that it uses the clone's test builds; builds for other platforms are kept
# outside the clone.
in_clone() {
    ln -sfn "$cache" "$clone/.cache"
    PLATFORMS_WORK=$root/target/platforms "$clone/ci/$1" "${@:2}"
}

# Checks in the clean clone, where the software driver is built already, that the generator changes and adds no file.
generated() {
    ln -sfn "$cache" "$clone/.cache"
    (cd "$clone" && cargo xtask generate) || return
    local changed
    changed=$({
        git ls-files --cached --others --exclude-standard
        # The repository's .gitignore files apply in the clone.
        git --git-dir="$(git rev-parse --absolute-git-dir)" --work-tree="$clone" ls-files --others --exclude-standard
    } | sort -u | while read -r file; do
        [ ! -e "$file" ] && [ ! -e "$clone/$file" ] || cmp -s "$file" "$clone/$file" || echo "$file"
    done)
    [ -z "$changed" ] || { printf '%s\n' "$changed"; echo "generated files are stale; run: cargo xtask generate"; return 1; }
}

# The scripts build the same packages in the same folder, with different values of CUDA_PATH.
headers_and_features() {
    local bindgen=0
    ci/bindgen.sh || bindgen=$?
    ci/features.sh || {
        local features=$?
        # A failure counts more than a missing download.
        [[ $bindgen != 0 && $bindgen != 75 ]] || return "$features"
    }
    return "$bindgen"
}

# The sys crate stays small: at most four packages in its default tree, itself included.
few_packages() {
    local tree
    tree=$(cargo tree --quiet -p cuda-driver-sys -e normal,build --prefix none | sort -u) || return
    echo "$tree"
    [ "$(echo "$tree" | wc -l)" -le 4 ]
}

# Builds the folder for a GPU machine, checks the size of its archive, and runs its programs here on the software driver
# without Rust.
gpu_pack() {
    "$clone/ci/gpu.sh" pack "$root/target/gpu-pack" || return
    (cd / && env -i PATH=/usr/bin:/bin CUDA_DRIVER=software "$root/target/gpu-pack/run")
}

step "format" cargo fmt --all --check
step "clippy" cargo clippy --workspace --all-targets -- -D warnings
step "documentation" env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
step "default dependencies" few_packages
step "licences and sources of dependencies" ci/dependencies.sh
step "numbers: a clean build" ci/numbers.sh build
step "rustc 1.85" ci/msrv.sh
step "kernels match NVRTC's output" cargo xtask kernels --check
step "CUDA header" cargo xtask headers
step "directions match NVIDIA's Python bindings" cargo xtask directions --check
step "result codes match the manual" cargo xtask results
step "clean clone" clean_clone
step "README: the example" readme_command "cargo run --release --example vector_add"
step "README: the tests" readme_command "cargo test --workspace"
step "the contract suite with each engine" engines
step "the contract suite with all checks of kernels" in_clone checks.sh
step "random kernels with each engine" random_kernels
step "C program over libcuda.so.1, and the generator" with_header
step "generated files are up to date" generated
step "GPU pack" gpu_pack
step "numbers: calls and loading" in_clone numbers.sh calls
step "ABI: every cuda.h since 11.7" in_clone abi.sh
step "ABI: NVIDIA's drivers 450 to 555" in_clone drivers.sh
parallel "feature bindgen with every cuda.h, every set of features, and a linked program" headers_and_features
# Its tests run as a part of the workspace's: `tests/higher_crate.rs` contains its sources.
parallel "the example crate" env CARGO_TARGET_DIR="$root/target/higher-crate" cargo check --tests --manifest-path examples/higher-crate/Cargo.toml
parallel "a target without dynamic libraries" in_clone platforms.sh nowhere
parallel "aarch64 Linux" in_clone platforms.sh aarch64
parallel "Windows" in_clone platforms.sh windows
finish_parallel

printf '\n=== Summary\n'
printf '%s\n' "${timed[@]}"
awk '/^test result:/ { for (i = 2; i <= NF; i++) { if ($i ~ /^passed/) p += $(i-1); if ($i ~ /^failed/) f += $(i-1); if ($i ~ /^ignored/) g += $(i-1) } }
     END { printf "tests: %d passed, %d failed, %d ignored\n", p, f, g }' "$log"
if grep -q '^test .* \.\.\. ignored' "$log"; then
    echo "ignored tests, which other steps may run:"
    grep '^test .* \.\.\. ignored' "$log" | sort | uniq -c
fi
if grep -q '^needs ' "$log"; then
    echo "skipped because this machine lacks something:"
    grep '^needs ' "$log" | sort | uniq -c
fi
if grep -q 'warning: over the limit' "$log"; then
    echo "times over the limit for an idle machine:"
    grep 'warning: over the limit' "$log"
fi
status=0
for name in "${not_downloaded[@]}"; do echo "skipped: $name (a download failed three times)"; done
for name in "${skipped[@]}"; do
    echo "skipped: $name"
    [ "${CI:-}" = true ] && status=1
done
# The summary is all that some CI services show, so it repeats why tests failed.
if grep -qa '^test .* FAILED$' "$log"; then
    echo "failed tests:"
    grep -a '^test .* FAILED$' "$log" | sort | uniq -c
    grep -a -A 4 -E "^thread '.*panicked at|^error(\[|:)|signal: " "$log" | head -n 60
fi
for name in "${failed[@]}"; do
    echo "FAILED: $name"
    status=1
done
[ "${#not_downloaded[@]}" = 0 ] && [ "${#skipped[@]}" = 0 ] && echo "nothing was skipped"
[ "$status" = 0 ] && echo "CI passed" || echo "CI failed"
exit "$status"
