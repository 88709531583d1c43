"""What may stand for an operator: lambdas, closures, functions, built-ins, ga.Operator."""

import operator

import numpy as np

import gpualgo as ga

x = np.arange(1, 11, dtype=np.int64)

# Python's and NumPy's own are recognised, and have their identities.
assert ga.reduce(x, None, operator.add) == 55
assert ga.reduce(x, None, np.maximum) == 10

# Closures hold scalars. Another value is another operator: no stale kernel is ever used.
for modulus in (7, 11):
    product = ga.reduce(x, None, lambda a, b: a * b % modulus)  # noqa: B023
    assert product == 3_628_800 % modulus


# Functions may call functions.
def greatest_common_divisor(a, b):
    while b != 0:
        a, b = b, a % b
    return a


def common_divisor(a, b):
    return abs(greatest_common_divisor(a, b))


assert ga.reduce(x * 12, None, common_divisor) == 12

# Operator says what a function alone cannot: what an empty reduction gives, and that the order of
# the elements may change.
gcd = ga.Operator(common_divisor, identity=0, commutative=True)
assert ga.reduce(np.empty(0, dtype=np.int64), None, gcd) == 0

# What cannot be compiled is named, with its source line and the reason.
try:
    ga.transform(lambda a: f"{a:.2f}", x)
except ga.CompileError as error:
    print(str(error).splitlines()[0])
