"""One value from many: over all elements, over axes, with an operator of your own."""

import operator

import numpy as np

import gpualgo as ga

data = np.random.default_rng(0).random((365, 24), dtype=np.float32)  # a value for each hour

total = ga.reduce(data, 0.0, lambda a, b: a + b)
peak_of_each_day = ga.reduce(data, None, max, axis=1)
assert np.isclose(total, data.sum())
assert np.array_equal(peak_of_each_day, data.max(axis=1))

# The accumulator has the dtype of x unless you choose another.
counts = np.full(1000, 200, dtype=np.uint8)
assert ga.reduce(counts, dtype=np.int64) == 200_000

# An operator that skips missing values: NaN alone differs from itself.
data[100:110] = np.nan
largest = ga.reduce(data, None, lambda a, b: b if a != a or b > a else a)
assert largest == np.nanmax(data)

# The elements keep their order, so the operator need not commute: this one finds the last value
# that is not zero.
readings = np.array([3, 0, 7, 0, 5, 0, 0], dtype=np.int32)
assert ga.reduce(readings, None, lambda a, b: a if b == 0 else b) == 5

# Of nothing comes `init`, or the operator's identity.
assert ga.reduce(np.empty(0, dtype=np.int32), None, operator.mul) == 1

print(f"total {total:.1f}, largest {largest:.4f}, first day's peak {peak_of_each_day[0]:.4f}")
