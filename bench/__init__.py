"""Results, and what times the benchmark's rows in a checkout; the rows are in gpualgo/_bench/."""
