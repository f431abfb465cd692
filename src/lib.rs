//! The CUDA Driver API, checked.
