"""Compilation of operators by numba with NumPy 2's types and arithmetic."""
