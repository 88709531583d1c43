"""_algorithms."""
