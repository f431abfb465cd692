#!/usr/bin/env bash
# Checks the binding crates, cuda-driver-hooks and cuda-doctor with Rust 1.85, their declared `rust-version`. The
# compiler is Debian's package, which is unpacked into .cache/; nothing is installed.
#
# Exit code 75: a download failed three times. Exit code 1 if Debian no longer has the package.
set -euo pipefail
cd "$(dirname "$0")/.."

version=1.85.0+dfsg3-1~deb12u3
home=$PWD/.cache/rust-1.85
packages=(
    "rustc-web=$version" "cargo-web=$version" "libstd-rust-web-dev=$version" "libstd-rust-web-1.85=$version"
    libllvm19 libz3-4 libedit2 libhttp-parser2.9 libssh2-1 libpcre3
)

download() {
    local try is_updated=
    for try in 1 2 3; do
        if (cd "$home/debs" && apt-get download --quiet "${packages[@]}" 2>&1); then
            return 0
        fi
        # A stale package list names versions that are no longer available.
        apt-get update --quiet -o APT::Update::Error-Mode=any >/dev/null 2>&1 && is_updated=yes
        sleep $((try * 5))
    done
    if [ -n "$is_updated" ] && ! apt-cache madison rustc-web | grep -qF " $version "; then
        echo "ci/msrv.sh: Debian has no rustc-web $version any more; name another version" >&2
        exit 1
    fi
    echo "ci/msrv.sh: Debian's rustc-web $version could not be downloaded" >&2
    exit 75
}

if [ ! -e "$home/unpacked" ]; then
    mkdir -p "$home/debs"
    download
    for package in "$home"/debs/*.deb; do
        dpkg -x "$package" "$home/root"
    done
    rm -r "$home/debs"
    touch "$home/unpacked"
fi

export LD_LIBRARY_PATH=$home/root/usr/lib/x86_64-linux-gnu:$home/root/lib/x86_64-linux-gnu
export RUSTC=$home/root/usr/bin/rustc CARGO_TARGET_DIR=$PWD/target/rust-1.85
unset RUSTUP_TOOLCHAIN CARGO RUSTDOC
cargo=$home/root/usr/bin/cargo
"$RUSTC" --version
"$cargo" build --locked -p cuda-driver-sys -p cuda-driver-hooks -p cuda-driver -p cuda-doctor
"$cargo" check --locked -p cuda-driver-sys --no-default-features
