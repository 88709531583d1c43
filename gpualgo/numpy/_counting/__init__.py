"""Functions that count integers, or samples in bins."""
