//! The software driver as `libcuda.so.1`.
