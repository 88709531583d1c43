"""Wrapped namespaces: NumPy's names call functions of this package, all else is delegated."""
