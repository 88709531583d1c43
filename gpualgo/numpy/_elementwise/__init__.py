"""Elementwise functions: ufuncs, functions composed of them, and user-defined ones."""
