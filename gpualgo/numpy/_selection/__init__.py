"""Functions that select elements: non-zero ones, or those where a condition is true."""
