"""A random walk over calls: what `tests/contract/test_state.py` plays."""
