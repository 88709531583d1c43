"""Benchmarks: gpualgo beside its peers, each result checked before it is timed."""
