"""Functions that count: integers, and samples in bins."""
