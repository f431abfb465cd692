#!/usr/bin/env bash
# Runs the unit tests of the software driver and of its engine, and the driver's test program `driver`, under
# AddressSanitizer and ThreadSanitizer. Not part of ci/run.sh, because each sanitizer needs a build of its own.
#
# ci/sanitizers.sh [address|thread] [FILTER...]
#
# AddressSanitizer needs only Rust. ThreadSanitizer needs an instrumented standard library; otherwise it reports locks
# and channels as races. To build one, install Debian's Rust with its sources, which ci/platforms.sh also uses, and
# clang for the runtime: rustc-web cargo-web rust-web-src clang-19 libclang-rt-19-dev.
set -uo pipefail
cd "$(dirname "$0")/.."

target=x86_64-unknown-linux-gnu
which=(address thread)
case ${1-} in
    address | thread)
        which=("$1")
        shift
        ;;
esac

export RUSTC_BOOTSTRAP=1
# Without leak detection, which would report the tables that live as long as the process.
export ASAN_OPTIONS="detect_leaks=0:quarantine_size_mb=16:allocator_may_return_null=1"
export TSAN_OPTIONS="second_deadlock_stack=1:allocator_may_return_null=1"
# Instrumented code is slow to compile with full optimisation.
config=(
    --config 'profile.dev.debug="line-tables-only"'
    --config 'profile.dev.package.cuda-driver-soft-engine.opt-level=1'
    --config 'profile.dev.package.cuda-driver-soft-ptx.opt-level=1'
)
tests=(-p cuda-driver-soft -p cuda-driver-soft-engine --lib --test driver)

address() {
    RUSTFLAGS="-Zsanitizer=address" CARGO_TARGET_DIR=target/sanitizers/address \
        cargo test --target "$target" --no-fail-fast "${config[@]}" "${tests[@]}" "$@"
}

thread() {
    local tool
    for tool in /usr/bin/cargo clang-19; do
        command -v "$tool" >/dev/null || {
            echo "ci/sanitizers.sh: ThreadSanitizer needs $tool" >&2
            return 77
        }
    done
    RUSTFLAGS="-Zsanitizer=thread -Zexternal-clangrt -Clinker=clang-19 -Clink-arg=-fsanitize=thread" \
        PATH=/usr/bin:/bin CARGO_TARGET_DIR=target/sanitizers/thread \
        cargo test -Zbuild-std=std,panic_unwind,test --target "$target" --no-fail-fast "${config[@]}" "${tests[@]}" "$@"
}

failed=0
for sanitizer in "${which[@]}"; do
    printf '\n=== %s\n' "$sanitizer"
    "$sanitizer" "$@" || failed=$?
done
exit "$failed"
