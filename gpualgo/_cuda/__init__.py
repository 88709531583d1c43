"""The CUDA backend: compiling, caching and launching kernels."""
