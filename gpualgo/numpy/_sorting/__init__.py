"""Functions that sort, and that search sorted arrays."""
