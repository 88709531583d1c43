"""_operators."""
