//! Raw bindings to the CUDA Driver API.
