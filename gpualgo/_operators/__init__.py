"""Operators: keys of their contents, captured values, and NumPy-2 rules for their compilation."""
