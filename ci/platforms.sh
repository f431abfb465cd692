#!/usr/bin/env bash
# Tests the binding crates on other platforms: `ci/platforms.sh aarch64 | windows | nowhere`.
#
# aarch64: built for aarch64 Linux, tested under qemu. windows: built for x86_64-pc-windows-gnu, tested under wine.
# nowhere: checked for a target that cannot load libraries. The first two also compare the layouts of every header
# package (`cargo xtask every-header`) with that platform's C compiler.
#
# Missing Debian packages (Debian's Rust, cross compilers, qemu, wine) are installed, which needs root. Builds are
# kept in target/platforms, or in the folder that PLATFORMS_WORK names.
#
# Exit code 75: a download failed three times. Exit code 77: this machine cannot run the step, for the reason printed.
set -euo pipefail
cd "$(dirname "$0")/.."

work=${PLATFORMS_WORK:-$PWD/target/platforms}
mkdir -p "$work"
# One command for all packages, so that common dependencies are built once. Under qemu, full optimisation makes the
# software driver no faster, but doubles its build time.
test=(
    cargo test --no-fail-fast --package cuda-driver-sys --package cuda-driver-hooks --package cuda-driver
    --package cuda-driver-test-other-crates
    --config profile.dev.package.cuda-driver-soft-engine.opt-level=1
    --config profile.dev.package.cuda-driver-soft-ptx.opt-level=1
)

# need PACKAGE...: installs the missing packages.
need() {
    local package missing=() try
    for package in "$@"; do
        dpkg-query --show --showformat '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} = 0 ] && return
    if [ "$(id -u)" != 0 ]; then
        echo "ci/platforms.sh: needs the packages ${missing[*]}"
        exit 77
    fi
    # Only one installation at a time: several of these scripts may run at once.
    (
        flock 9
        for try in 1 2 3; do
            # A stale package list names compilers that are too old or no longer available.
            apt-get -qq update || true
            apt-get -qq install --yes --no-install-recommends "${missing[@]}" >"$work/apt.log" 2>&1 && exit
            sleep $((try * 5))
        done
        exit 1
    ) 9>"$work/apt.lock" && return
    tail -n 5 "$work/apt.log" >&2
    echo "ci/platforms.sh: ${missing[*]} could not be installed" >&2
    exit 75
}

# debian_rust PLATFORM: selects Debian's Rust, which has or can build the standard library of other targets. Each
# platform has its own build folder: cargo gives procedural macros the same file with and without RUSTC_BOOTSTRAP, and
# rustc with one setting cannot load a crate that was compiled with the other.
debian_rust() {
    export PATH=/usr/bin:/bin CARGO_TARGET_DIR=$work/$1 CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0
    unset RUSTUP_TOOLCHAIN RUSTC RUSTDOC CARGO
    rustc --version
}

# headers TARGET RUNNER: compares every header, as that target's C compiler reads it, with the bindings of this machine.
# The bindings' tests, which are also compiled for that target, assert that their layouts there are the same.
headers() {
    cargo xtask every-header >/dev/null
    CUDA_ABI_TARGET=$1 CUDA_ABI_RUNNER=$2 \
        cargo test --quiet --workspace --test abi_headers -- --include-ignored --nocapture
}

# Registers qemu with the kernel as the interpreter of aarch64 programs, because tests start programs.
binfmt() {
    local table=/proc/sys/fs/binfmt_misc
    [ -e "$table/register" ] || mount -t binfmt_misc none "$table" 2>/dev/null || true
    [ -e "$table/qemu-aarch64" ] && return
    printf '%s' ':qemu-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:/usr/bin/qemu-aarch64:F' \
        2>/dev/null >"$table/register" || true
    if [ ! -e "$table/qemu-aarch64" ]; then
        echo "ci/platforms.sh: this machine does not let aarch64 programs be run by qemu (binfmt_misc)"
        exit 77
    fi
}

aarch64() {
    dpkg --print-foreign-architectures | grep -qx arm64 || [ "$(id -u)" != 0 ] || dpkg --add-architecture arm64
    need rustc-web cargo-web gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user libstd-rust-web-dev:arm64
    headers aarch64-unknown-linux-gnu qemu-aarch64
    binfmt
    debian_rust aarch64
    aarch64-linux-gnu-gcc -std=c11 -O2 -fPIC -shared cuda-driver-sys/tests/abi_by_value/stub.c -o "$work/abi_stub.so"
    export CUDA_ABI_STUB=$work/abi_stub.so
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    # Without this limit the software driver reserves a terabyte of addresses, which takes ten seconds under qemu.
    ulimit -v $((64 << 20))
    "${test[@]}" --target aarch64-unknown-linux-gnu
}

windows() {
    local wine=/usr/lib/wine/wine64 system
    need rustc-web cargo-web rust-web-src mingw-w64 wine wine64
    export WINEPREFIX=$work/wine WINEDEBUG=-all
    system=$WINEPREFIX/drive_c/windows/system32
    [ -d "$system" ] || "$wine" wineboot --init >/dev/null 2>&1
    # The standard library imports this function from a library that wine 8 does not have.
    cat >"$work/bcryptprimitives.c" <<'END'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count)
{
    return SystemFunction036(bytes, (ULONG)count);
}
END
    x86_64-w64-mingw32-gcc -shared "$work/bcryptprimitives.c" -o "$system/bcryptprimitives.dll" -ladvapi32
    x86_64-w64-mingw32-gcc -std=c11 -O2 -shared cuda-driver-sys/tests/abi_by_value/stub.c -o "$work/abi_stub.dll"
    rm -f "$system/nvcuda.dll"
    headers x86_64-pc-windows-gnu "$wine"
    debian_rust windows
    export RUSTC_BOOTSTRAP=1 CUDA_ABI_STUB="Z:$work/abi_stub.dll"
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=$wine
    local std=(-Zbuild-std=std,panic_unwind,test --target x86_64-pc-windows-gnu)
    "${test[@]}" "${std[@]}"
    # This test puts a driver into the system folder, and cannot delete it while it is loaded.
    "${test[@]}" "${std[@]}" --test abi_system32 -- --include-ignored
    rm -f "$system/nvcuda.dll"
    # A program that is linked against the driver starts only if the driver is present.
    local linked=$CARGO_TARGET_DIR/x86_64-pc-windows-gnu/debug/examples/linked.exe
    cargo build "${std[@]}" --package cuda-driver-sys --features link --example linked
    if "$wine" "$linked"; then
        echo "ci/platforms.sh: the linked program started without a driver" >&2
        exit 1
    fi
    cp "$work/abi_stub.dll" "$system/nvcuda.dll"
    "$wine" "$linked" | grep -F 'system32\nvcuda.dll'
    rm -f "$system/nvcuda.dll"
}

nowhere() {
    need rustc-web cargo-web rust-web-src
    debian_rust nowhere
    export RUSTC_BOOTSTRAP=1
    local std=(-Zbuild-std=std,panic_abort --target wasm32-unknown-unknown)
    cargo check "${std[@]}" --package cuda-driver-sys --no-default-features
    cargo check "${std[@]}" --package cuda-driver-sys
    cargo check "${std[@]}" --package cuda-driver
}

case ${1:-} in
    aarch64 | windows | nowhere) "$1" ;;
    *)
        echo "usage: ci/platforms.sh aarch64 | windows | nowhere" >&2
        exit 2
        ;;
esac
