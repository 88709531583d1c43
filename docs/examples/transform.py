"""A function of each element, or of the elements of several arrays that broadcast."""

import math

import numpy as np

import gpualgo as ga

celsius = np.linspace(-40, 40, 9, dtype=np.float32)

# Literals are weak, as in NumPy 2: float32 stays float32.
fahrenheit = ga.transform(lambda c: c * 1.8 + 32.0, celsius)
assert fahrenheit.dtype == np.float32
assert np.allclose(fahrenheit, celsius * 1.8 + 32)

# Several arrays broadcast: a row and a column make a table.
x = np.linspace(-1, 1, 5)
y = np.linspace(-1, 1, 3)[:, np.newaxis]
distance = ga.transform(lambda a, b: math.sqrt(a * a + b * b), x, y)
assert distance.shape == (3, 5)
assert np.allclose(distance, np.hypot(x, y))

# A condition on missing values, with a scalar of yours in the operator.
fill = -99.0
holes = np.array([1.0, np.nan, 3.0])
assert ga.transform(lambda a: fill if a != a else a, holes).tolist() == [1.0, -99.0, 3.0]

# Into an array that you have; it may be the input itself.
ga.transform(lambda a: a * a, x, out=x)
assert x.tolist() == [1.0, 0.25, 0.0, 0.25, 1.0]

print(f"{celsius[0]:.0f} °C is {fahrenheit[0]:.0f} °F")
