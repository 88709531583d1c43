"""Functions that work element by element: ufuncs, what is made of them, and the user's own."""
