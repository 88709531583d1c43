"""Functions that make one number of many: sums, moments, extreme elements; NaN left out or not."""
