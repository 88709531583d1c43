"""numpy_rules."""
