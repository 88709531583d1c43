"""Functions of order statistics: medians, quantiles and percentiles."""
