"""Functions that choose elements: those that are not zero, or where a condition is true."""
