"""Functions that reduce to one number: sums, moments, extremes; also their nan variants."""
