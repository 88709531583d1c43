"""Functions of elements of given ranks: medians, quantiles and percentiles."""
