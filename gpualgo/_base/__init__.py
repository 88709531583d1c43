"""_base."""
