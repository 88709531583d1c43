"""How a call of NumPy's goes: arguments, who answers, results, the table of all functions."""
