"""The ufuncs, declared by name for type checkers; a test compares the names with the table."""

from __future__ import annotations

from gpualgo.numpy._elementwise.ufuncs import UFUNCS, UFunc

abs: UFunc
absolute: UFunc
acos: UFunc
acosh: UFunc
add: UFunc
arccos: UFunc
arccosh: UFunc
arcsin: UFunc
arcsinh: UFunc
arctan: UFunc
arctan2: UFunc
arctanh: UFunc
asin: UFunc
asinh: UFunc
atan: UFunc
atan2: UFunc
atanh: UFunc
bitwise_and: UFunc
bitwise_count: UFunc
bitwise_invert: UFunc
bitwise_left_shift: UFunc
bitwise_not: UFunc
bitwise_or: UFunc
bitwise_right_shift: UFunc
bitwise_xor: UFunc
cbrt: UFunc
ceil: UFunc
conj: UFunc
conjugate: UFunc
copysign: UFunc
cos: UFunc
cosh: UFunc
deg2rad: UFunc
degrees: UFunc
divide: UFunc
divmod: UFunc
equal: UFunc
exp: UFunc
exp2: UFunc
expm1: UFunc
fabs: UFunc
float_power: UFunc
floor: UFunc
floor_divide: UFunc
fmax: UFunc
fmin: UFunc
fmod: UFunc
gcd: UFunc
greater: UFunc
greater_equal: UFunc
heaviside: UFunc
hypot: UFunc
invert: UFunc
isfinite: UFunc
isinf: UFunc
isnan: UFunc
lcm: UFunc
left_shift: UFunc
less: UFunc
less_equal: UFunc
log: UFunc
log10: UFunc
log1p: UFunc
log2: UFunc
logaddexp: UFunc
logaddexp2: UFunc
logical_and: UFunc
logical_not: UFunc
logical_or: UFunc
logical_xor: UFunc
maximum: UFunc
minimum: UFunc
mod: UFunc
multiply: UFunc
negative: UFunc
nextafter: UFunc
not_equal: UFunc
positive: UFunc
pow: UFunc
power: UFunc
rad2deg: UFunc
radians: UFunc
reciprocal: UFunc
remainder: UFunc
right_shift: UFunc
rint: UFunc
sign: UFunc
signbit: UFunc
sin: UFunc
sinh: UFunc
sqrt: UFunc
square: UFunc
subtract: UFunc
tan: UFunc
tanh: UFunc
true_divide: UFunc
trunc: UFunc

globals().update(UFUNCS)

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "conj",
    "conjugate",
    "copysign",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "divide",
    "divmod",
    "equal",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "gcd",
    "greater",
    "greater_equal",
    "heaviside",
    "hypot",
    "invert",
    "isfinite",
    "isinf",
    "isnan",
    "lcm",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "power",
    "rad2deg",
    "radians",
    "reciprocal",
    "remainder",
    "right_shift",
    "rint",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "true_divide",
    "trunc",
]
