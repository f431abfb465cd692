//! `cargo xtask every-header`: fetches the header package of every CUDA release from 11.7 to 13.5 into `.cache/`.
//!
//! The bindings are compared with each of them (`ci/abi.sh`); none is ever committed. There is no CUDA 12.7.

use crate::headers::{self, Package};

/// CUDA 11 and 12 keep `cuda.h` here in their packages.
const OLD: &str = "nvidia/cuda_runtime/include/cuda.h";
/// CUDA 13 keeps it here.
const NEW: &str = "nvidia/cu13/include/cuda.h";

/// Package, version, where `cuda.h` is, and that file's SHA-256.
const RELEASES: &[(&str, &str, &str, &str)] = &[
    (
        "nvidia-cuda-runtime-cu11",
        "11.7.99",
        OLD,
        "99de1be9b7f3536a84f947852cdf896892f20aff0d80c3f611cb3f249b203e1d",
    ),
    (
        "nvidia-cuda-runtime-cu11",
        "11.8.89",
        OLD,
        "b30a4a84da0bd6d034933fc430955a46432b219d1a61f9a9875b31e8b0494c12",
    ),
    (
        "nvidia-cuda-runtime-cu12",
        "12.0.146",
        OLD,
        "de37c3f9139ede5375831663175ff278542d23f607bf1d5f087eb9e666686c9f",
    ),
    (
        "nvidia-cuda-runtime-cu12",
        "12.1.105",
        OLD,
        "08063f8f80fdaa01152c3c517ed44e6c223ebc2a534e44ab2eaf7305154dc092",
    ),
    (
        "nvidia-cuda-runtime-cu12",
        "12.2.140",
        OLD,
        "a2b4436404c3a9a4231d667c811f24e9ddac256ab3f30c7a486120550abd78d5",
    ),
    (
        "nvidia-cuda-runtime-cu12",
        "12.3.101",
        OLD,
        "da37ad1f695dfebe30a9d0856c0eacb002b8eaa11e43bdd338feaed25a622cdb",
    ),
    (
        "nvidia-cuda-runtime-cu12",
        "12.4.127",
        OLD,
        "dbd3ae3677ecf076f6b2a0971d42b2dd5b9d5f1ccdf34e74774a16fc2df7cac1",
    ),
    (
        "nvidia-cuda-runtime-cu12",
        "12.5.82",
        OLD,
        "52b817f04d0a2a436c544875a29c073bbd1554160330c9244020e4f9e04df13e",
    ),
    (
        "nvidia-cuda-runtime-cu12",
        "12.6.77",
        OLD,
        "7313ec1a0642c1a02736b6178136eaa9df5e048a8b9707e43ad2119c1c677bcb",
    ),
    (
        "nvidia-cuda-runtime-cu12",
        "12.8.90",
        OLD,
        "4568cc9e7a321e47707cd6403980f21ac2e2e55170500d0e0a3f54feb03a9acb",
    ),
    (
        "nvidia-cuda-runtime-cu12",
        "12.9.79",
        OLD,
        "fda3285d055a9f05e40cd76352f9f073d0ab45d42fb5bb0db4bb33b0df506d28",
    ),
    (
        "nvidia-cuda-runtime",
        "13.0.96",
        NEW,
        "64025f81a9d6d2b10e9e11654f3523e5b046d01b883f0b9ca474e463274b80d4",
    ),
    (
        "nvidia-cuda-runtime",
        "13.1.80",
        NEW,
        "756c5d0b68c4bf33d279419d5db479d63263abe80c1e476f8899f4b077215bf5",
    ),
    (
        "nvidia-cuda-runtime",
        "13.2.86",
        NEW,
        "673873a292718591d75ea3c2e65330b1f8f8278eac3c96b32245418fb0817851",
    ),
    (
        "nvidia-cuda-runtime",
        "13.3.29",
        NEW,
        "31df84e16179b6d97db4b3c0bae7697392a370b41983f4a8962f0e5a8069b577",
    ),
    (
        "nvidia-cuda-runtime",
        "13.4.92",
        NEW,
        "7a79d67ca888061b1dfbe4739b51ad64f85a2f3ad874947ce09b2c635b4c7072",
    ),
    (
        "nvidia-cuda-runtime",
        "13.5.37",
        NEW,
        "f4250132eae986e244c693f562f81bdaa919c378665228bece23182da33a39b0",
    ),
];

/// Fetches all of them, and prints where each header is.
pub(crate) fn run() -> Result<(), String> {
    for &(name, version, holds, sha256) in RELEASES {
        let package = Package {
            name,
            version,
            holds,
            sha256: Some(sha256),
        };
        println!("{}", headers::fetch(&package)?.display());
    }
    Ok(())
}
