"""Functions of what stands before or beside: running sums, differences of neighbours."""
