"""Calls of NumPy's functions: arguments, dispatch, results, and the table of all functions."""
