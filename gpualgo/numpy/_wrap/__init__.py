"""NumPy's namespace answered here: what is taken by our functions, the rest handed on."""
