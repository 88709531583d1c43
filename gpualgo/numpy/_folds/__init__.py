"""Shared parts of reductions, scans and ufunc methods: axes, masks, dtypes."""
