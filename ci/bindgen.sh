#!/usr/bin/env bash
# The feature `bindgen` with the header of every CUDA release from 11.7 to 13.5, and with headers that it has to refuse
# or to take something new from. Ends with 75 if a download failed three times.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$PWD/target/bindgen
mkdir -p "$work"
variables=$(cargo xtask headers)
eval "$variables"
current=$CUDA_PATH
headers=$(cargo xtask every-header)

# build: both crates; prints the folder that the generator wrote to. Checking is enough: all that the generator writes is
# seen by the compiler then, its assertions about layouts too.
build() {
    cargo check --quiet --package cuda-driver --features bindgen --message-format=json-render-diagnostics \
        >"$work/messages" 2>"$work/errors" || {
        echo "cargo ended with $?" >>"$work/errors"
        return 1
    }
    sed -n 's|.*"out_dir":"\([^"]*/cuda-driver-sys-[^"]*\)".*|\1|p' "$work/messages" | tail -n 1
}

# refused WORDS…: the build fails, and what it says contains each of the words.
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
    grep -m 1 '^error' "$work/errors" || true
}

for header in $headers; do
    CUDA_PATH=$(dirname "$(dirname "$header")")
    export CUDA_PATH
    out=$(build) || {
        cat "$work/errors"
        exit 1
    }
    # None of them is newer than the committed bindings, so none adds anything. The first line names the inputs.
    for file in cuda-driver-sys/src/generated/*.rs; do
        diff <(tail -n +2 "$file") <(tail -n +2 "$out/$(basename "$file")")
    done
    echo "built with $header"
done

echo "--- no header"
CUDA_PATH=$work/nothing refused "CUDA_PATH is set" "cuda.h" "$work/nothing"

echo "--- no libclang"
LIBCLANG_PATH=$work/nothing CUDA_PATH=$current refused libclang LIBCLANG_PATH

echo "--- a header that changes under the build"
toolkit=$work/toolkit
rm -rf "$toolkit" && mkdir "$toolkit" && cp -r "$current/include" "$toolkit/include"
export CUDA_PATH=$toolkit
build >/dev/null || {
    cat "$work/errors"
    exit 1
}
# What the next build must notice: a value, a field's place, a parameter.
sleep 1
sed -i -e 's/^\( *CU_CTX_SCHED_YIELD *= *\)0x02/\10x03/' \
    -e 's/^\( *\)float hitRatio;/\1double hitRatio;/' \
    -e 's/^CUresult CUDAAPI cuDeviceGetName(char \*name, int len,/CUresult CUDAAPI cuDeviceGetName(char *name, size_t len,/' \
    "$toolkit/include/cuda.h"
refused CU_CTX_SCHED_YIELD CUaccessPolicyWindow cuDeviceGetName "$toolkit/include/cuda.h" 'switch the feature'

echo "--- a newer header"
cp "$current/include/cuda.h" "$toolkit/include/cuda.h"
sed -i -e 's/^#define CUDA_VERSION 13050/#define CUDA_VERSION 13060/' \
    -e 's/^CUresult CUDAAPI cuInit(unsigned int Flags);/typedef enum CUnovelty_enum { CU_NOVELTY_SMALL = 1, CU_NOVELTY_GREAT = 2 } CUnovelty;\ntypedef struct CUnoveltyParams_st { CUnovelty kind; unsigned int reserved[3]; } CUnoveltyParams;\nCUresult CUDAAPI cuNoveltyAdd(CUnovelty kind, const CUnoveltyParams *params);\n&/' \
    "$toolkit/include/cuda.h"
echo 'typedef CUresult (CUDAAPI *PFN_cuNoveltyAdd_v13060)(CUnovelty kind, const CUnoveltyParams *params);' >"$work/typedef"
sed -i "/PFN_cuInit_v2000)/r $work/typedef" "$toolkit/include/cudaTypedefs.h"
out=$(build) || {
    cat "$work/errors"
    exit 1
}
grep -q 'cuNoveltyAdd(kind: CUnovelty, params: \*const CUnoveltyParams) cuNoveltyAdd 13060' "$out/functions.rs"
grep -q 'CU_NOVELTY_GREAT = 2' "$out/enumerations.rs"
grep -q 'pub struct CUnoveltyParams_st' "$out/records.rs"
grep -q 'CUnoveltyParams_st: 16, 4' "$out/layout.rs"
echo "its function, enumeration and record are there"
