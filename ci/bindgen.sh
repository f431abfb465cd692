#!/usr/bin/env bash
# Tests the feature `bindgen` with the header of every CUDA release since 11.7, with headers that it must refuse, and
# with headers that contain something new.
#
# With an argument, only headers whose path contains it are used (`ci/bindgen.sh cu12-12.9`). Exit code 75: a download
# failed three times.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$PWD/target/bindgen
mkdir -p "$work"
variables=$(cargo xtask headers)
eval "$variables"
current=$CUDA_PATH
headers=$(cargo xtask every-header)
headers=$(grep -F -- "${1:-/}" <<<"$headers") || {
    echo "no header's path contains $1" >&2
    exit 2
}
version=$(sed -n 's/^#define CUDA_VERSION //p' "$current/include/cuda.h")
newer=$((version + 10))

# build: checks both crates and prints the generator's output folder. Checking is enough, because it compiles everything
# that the generator writes, including the assertions about layouts.
build() {
    cargo check --quiet --package cuda-driver --features bindgen --message-format=json-render-diagnostics \
        >"$work/messages" 2>"$work/errors" || {
        echo "cargo ended with $?" >>"$work/errors"
        return 1
    }
    sed -n 's|.*"out_dir":"\([^"]*/cuda-driver-sys-[^"]*\)".*|\1|p' "$work/messages" | tail -n 1
}

# refused WORDS…: fails unless the build fails without a panic, with a message that contains all of the words.
refused() {
    local words
    if build >/dev/null; then
        echo "the build should have failed"
        exit 1
    fi
    for words in "$@"; do
        if ! grep -qF -- "$words" "$work/errors"; then
            echo "the build failed without saying: $words"
            cat "$work/errors"
            exit 1
        fi
    done
    if grep -F 'panicked' "$work/errors"; then
        exit 1
    fi
    grep -m 1 '^error' "$work/errors" || true
}

for header in $headers; do
    CUDA_PATH=$(dirname "$(dirname "$header")")
    export CUDA_PATH
    out=$(build) || {
        cat "$work/errors"
        exit 1
    }
    # No header is newer than the committed bindings, so none adds anything. The first line names the inputs.
    for file in cuda-driver-sys/src/generated/*.rs; do
        diff <(tail -n +2 "$file") <(tail -n +2 "$out/$(basename "$file")")
    done
    echo "built with $header"
done

echo "--- no header"
CUDA_PATH=$work/nothing refused "CUDA_PATH is set" "cuda.h" "$work/nothing"

off='switch the feature `bindgen` off'
echo "--- no libclang"
LIBCLANG_PATH=$work/nothing CUDA_PATH=$current refused "LIBCLANG_PATH ($work/nothing)" "Install it" "$off"

echo "--- libclang without its own headers"
# Hides the clang of this machine, which bindgen would ask for the folders of its headers.
CLANG_PATH=$(type -P true) BINDGEN_EXTRA_CLANG_ARGS="-resource-dir $work/nothing" CUDA_PATH=$current \
    refused "stddef.h" "libclang-common" "$off"

echo "--- a toolkit that only pkg-config knows"
if command -v pkg-config >/dev/null; then
    mkdir -p "$work/pkgconfig"
    printf 'Name: cuda\nDescription: x\nVersion: 99.9\nincludedir=%s\n' "$work/elsewhere" >"$work/pkgconfig/cuda-99.9.pc"
    (
        unset CUDA_PATH CUDA_HOME
        export PKG_CONFIG_LIBDIR=$work/pkgconfig
        rm -rf "$work/elsewhere" && mkdir "$work/elsewhere"
        cp "$current"/include/{cuda,cudaTypedefs}.h "$work/elsewhere/"
        out=$(build) || {
            cat "$work/errors"
            exit 1
        }
        grep -F "$work/elsewhere/cuda.h" "$out/functions.rs"
    )
else
    echo "needs pkg-config"
fi

echo "--- a header that changes under the build"
toolkit=$work/toolkit
rm -rf "$toolkit" && mkdir "$toolkit" && cp -r "$current/include" "$toolkit/include"
export CUDA_PATH=$toolkit
build >/dev/null || {
    cat "$work/errors"
    exit 1
}
# Changes that the next build must notice: a value, a field's offset, a parameter, a parameter's pointee, a record's
# size.
sleep 1
sed -i -e 's/^\( *CU_CTX_SCHED_YIELD *= *\)0x02/\10x03/' \
    -e 's/^\( *\)float hitRatio;/\1double hitRatio;/' \
    -e 's/^CUresult CUDAAPI cuDeviceGetName(char \*name, int len,/CUresult CUDAAPI cuDeviceGetName(char *name, size_t len,/' \
    -e 's/^CUresult CUDAAPI cuDeviceGetCount(int \*count)/CUresult CUDAAPI cuDeviceGetCount(unsigned long long *count)/' \
    -e 's/^\( *unsigned char _oversize\)\[RESOURCE_ABI_BYTES\]/\1[136]/' \
    "$toolkit/include/cuda.h"
refused "CU_CTX_SCHED_YIELD is 2, but 3 in the header" "CUaccessPolicyWindow" "cuDeviceGetName takes" \
    "cuDeviceGetCount takes (pointer to 32-bit integer), but (pointer to 64-bit integer) in the header" \
    "CUdevResource_st has size 144 and alignment 8, but 240 and 8 in the header" "$toolkit/include/cuda.h" "$off"

echo "--- a newer header"
cp "$current/include/cuda.h" "$toolkit/include/cuda.h"
sed -i -e "s/^#define CUDA_VERSION $version/#define CUDA_VERSION $newer/" \
    -e 's/^CUresult CUDAAPI cuInit(unsigned int Flags);/typedef enum CUnovelty_enum { CU_NOVELTY_SMALL = 1, CU_NOVELTY_GREAT = 2 } CUnovelty;\ntypedef struct CUnoveltyParams_st { CUnovelty kind; unsigned int reserved[3]; } CUnoveltyParams;\nCUresult CUDAAPI cuNoveltyAdd(CUnovelty kind, const CUnoveltyParams *params);\nCUresult CUDAAPI cuNoveltyForget(CUnovelty kind);\n&/' \
    "$toolkit/include/cuda.h"
# number VERSION: sets the version that cudaTypedefs.h gives for cuNoveltyAdd. It gives none for cuNoveltyForget, which
# is thus as new as the header.
number() {
    sed -i '/PFN_cuNovelty/d' "$toolkit/include/cudaTypedefs.h"
    echo "typedef CUresult (CUDAAPI *PFN_cuNoveltyAdd_v$1)(CUnovelty kind, const CUnoveltyParams *params);" >"$work/typedef"
    sed -i "/PFN_cuInit_v2000)/r $work/typedef" "$toolkit/include/cudaTypedefs.h"
}
number "$newer"
out=$(build) || {
    cat "$work/errors"
    exit 1
}
grep -q "cuNoveltyAdd(kind: CUnovelty, params: \*const CUnoveltyParams) cuNoveltyAdd $newer" "$out/functions.rs"
grep -q "cuNoveltyForget(kind: CUnovelty) cuNoveltyForget $newer" "$out/functions.rs"
grep -q 'CU_NOVELTY_GREAT = 2' "$out/enumerations.rs"
grep -q 'pub struct CUnoveltyParams_st' "$out/records.rs"
grep -q 'CUnoveltyParams_st: 16, 4' "$out/layout.rs"
echo "its functions, enumeration and record are there"

echo "--- cudaTypedefs.h changes under the build"
sleep 1
number "$version"
out=$(build) || {
    cat "$work/errors"
    exit 1
}
grep "cuNoveltyAdd(kind: CUnovelty, params: \*const CUnoveltyParams) cuNoveltyAdd $version" "$out/functions.rs"
