"""Array libraries: views of their arrays, and results in the caller's library."""
