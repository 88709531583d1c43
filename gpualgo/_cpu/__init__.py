"""The CPU backend: the algorithms in numba, without the GIL, on all cores."""
