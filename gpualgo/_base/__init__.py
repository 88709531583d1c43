"""Helpers without dependencies on the rest of the package: dtypes, threads, caches, logging."""
