"""Shared parts of sorts and searches: lexicographic orders, gathers."""
