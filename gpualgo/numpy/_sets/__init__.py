"""Functions of arrays as sets: distinct elements, what is in one, both or either."""
