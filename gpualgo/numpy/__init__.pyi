"""Types of gpualgo.numpy: results for NumPy arrays, and Any for those of other libraries.

Each function that is declared here has the parameters of its implementation; others are imported.
"""

from typing import Any, Literal, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from gpualgo._algorithms.top_k import TopK
from gpualgo._base.annotations import Side, TopMode
from gpualgo.numpy._call import NotTaken as NotTaken
from gpualgo.numpy._counting import histogram_bin_edges as histogram_bin_edges
from gpualgo.numpy._elementwise import angle as angle
from gpualgo.numpy._elementwise import clip as clip
from gpualgo.numpy._elementwise import fix as fix
from gpualgo.numpy._elementwise import isclose as isclose
from gpualgo.numpy._elementwise import nan_to_num as nan_to_num
from gpualgo.numpy._elementwise import sinc as sinc
from gpualgo.numpy._elementwise import vectorize as vectorize
from gpualgo.numpy._products import dot as dot
from gpualgo.numpy._reductions import average as average
from gpualgo.numpy._reductions import count_nonzero as count_nonzero
from gpualgo.numpy._scans import trapezoid as trapezoid
from gpualgo.numpy._selection import where as where
from gpualgo.numpy._sets import unique as unique
from gpualgo.numpy._ufuncs import UFunc
from gpualgo.numpy._wrap import Namespace as Namespace
from gpualgo.numpy._wrap import wrap as wrap

_Value = TypeVar("_Value", bound=np.generic)
_Inexact = TypeVar("_Inexact", bound=np.inexact[Any])
_Floating = TypeVar("_Floating", bound=np.floating[Any])
_Array: TypeAlias = np.ndarray[Any, np.dtype[_Value]]
_Host: TypeAlias = np.ndarray[Any, Any]
_Method: TypeAlias = Literal[
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf",
    "hazen", "weibull", "linear", "median_unbiased", "normal_unbiased", "lower", "higher",
    "midpoint", "nearest",
]  # fmt: skip

def inner(a: Any, b: Any, /) -> Any: ...
def vdot(a: Any, b: Any, /) -> Any: ...
def round(a: Any, decimals: Any = ..., out: Any = ...) -> Any: ...
def around(a: Any, decimals: Any = ..., out: Any = ...) -> Any: ...
@overload
def sort(
    a: _Array[_Value], axis: Any = ..., kind: Any = ..., order: Any = ..., *, stable: Any = ...,
    descending: Any = ...,
) -> _Array[_Value]: ...  # fmt: skip
@overload
def sort(
    a: Any, axis: Any = ..., kind: Any = ..., order: Any = ..., *, stable: Any = ...,
    descending: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def partition(
    a: _Array[_Value], kth: Any, axis: Any = ..., kind: Any = ..., order: Any = ...,
) -> _Array[_Value]: ...  # fmt: skip
@overload
def partition(a: Any, kth: Any, axis: Any = ..., kind: Any = ..., order: Any = ...) -> Any: ...
@overload
def argsort(
    a: _Host, axis: Any = ..., kind: Any = ..., order: Any = ..., *, stable: Any = ...,
    descending: Any = ...,
) -> NDArray[np.int64]: ...  # fmt: skip
@overload
def argsort(
    a: Any, axis: Any = ..., kind: Any = ..., order: Any = ..., *, stable: Any = ...,
    descending: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def argpartition(
    a: _Host, kth: Any, axis: Any = ..., kind: Any = ..., order: Any = ...,
) -> NDArray[np.int64]: ...  # fmt: skip
@overload
def argpartition(a: Any, kth: Any, axis: Any = ..., kind: Any = ..., order: Any = ...) -> Any: ...
@overload
def lexsort(
    keys: _Host | tuple[_Host, ...] | list[_Host], axis: Any = ...,
) -> NDArray[np.int64]: ...  # fmt: skip
@overload
def lexsort(keys: Any, axis: Any = ...) -> Any: ...
@overload
def searchsorted(a: _Host, v: _Host, side: Side = ..., sorter: Any = ...) -> NDArray[np.int64]: ...
@overload
def searchsorted(a: Any, v: Any, side: Side = ..., sorter: Any = ...) -> Any: ...
@overload
def digitize(x: _Host, bins: Any, right: Any = ...) -> NDArray[np.int64]: ...
@overload
def digitize(x: Any, bins: Any, right: Any = ...) -> Any: ...
def top_k(
    a: Any, k: Any, /, *, axis: Any = ..., mode: TopMode = ..., sorted: Any = ...,
) -> TopK: ...  # fmt: skip
@overload
def cumsum(a: _Host, axis: Any = ..., dtype: Any = ..., out: Any = ...) -> _Host: ...
@overload
def cumsum(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ...) -> Any: ...
@overload
def cumprod(a: _Host, axis: Any = ..., dtype: Any = ..., out: Any = ...) -> _Host: ...
@overload
def cumprod(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ...) -> Any: ...
@overload
def nancumsum(a: _Host, axis: Any = ..., dtype: Any = ..., out: Any = ...) -> _Host: ...
@overload
def nancumsum(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ...) -> Any: ...
@overload
def nancumprod(a: _Host, axis: Any = ..., dtype: Any = ..., out: Any = ...) -> _Host: ...
@overload
def nancumprod(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ...) -> Any: ...
@overload
def cumulative_sum(
    x: _Host, /, *, axis: Any = ..., dtype: Any = ..., out: Any = ...,
    include_initial: Any = ...,
) -> _Host: ...  # fmt: skip
@overload
def cumulative_sum(
    x: Any, /, *, axis: Any = ..., dtype: Any = ..., out: Any = ..., include_initial: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def cumulative_prod(
    x: _Host, /, *, axis: Any = ..., dtype: Any = ..., out: Any = ...,
    include_initial: Any = ...,
) -> _Host: ...  # fmt: skip
@overload
def cumulative_prod(
    x: Any, /, *, axis: Any = ..., dtype: Any = ..., out: Any = ..., include_initial: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def diff(
    a: _Host, n: Any = ..., axis: Any = ..., prepend: Any = ..., append: Any = ...,
) -> _Host: ...  # fmt: skip
@overload
def diff(a: Any, n: Any = ..., axis: Any = ..., prepend: Any = ..., append: Any = ...) -> Any: ...
@overload
def ediff1d(ary: _Host, to_end: Any = ..., to_begin: Any = ...) -> _Host: ...
@overload
def ediff1d(ary: Any, to_end: Any = ..., to_begin: Any = ...) -> Any: ...
@overload
def compress(
    condition: Any, a: _Array[_Value], axis: Any = ..., out: Any = ...,
) -> _Array[_Value]: ...  # fmt: skip
@overload
def compress(condition: Any, a: Any, axis: Any = ..., out: Any = ...) -> Any: ...
@overload
def extract(condition: Any, arr: _Array[_Value]) -> _Array[_Value]: ...
@overload
def extract(condition: Any, arr: Any) -> Any: ...
@overload
def nonzero(a: _Host) -> tuple[NDArray[np.int64], ...]: ...
@overload
def nonzero(a: Any) -> Any: ...
@overload
def flatnonzero(a: _Host) -> NDArray[np.int64]: ...
@overload
def flatnonzero(a: Any) -> Any: ...
@overload
def argwhere(a: _Host) -> NDArray[np.int64]: ...
@overload
def argwhere(a: Any) -> Any: ...
def unique_all(x: Any) -> Any: ...
def unique_counts(x: Any) -> Any: ...
def unique_inverse(x: Any) -> Any: ...
def unique_values(x: Any) -> Any: ...
@overload
def isin(
    element: _Host, test_elements: Any, assume_unique: Any = ..., invert: Any = ..., *,
    kind: Any = ...,
) -> NDArray[np.bool_]: ...  # fmt: skip
@overload
def isin(
    element: Any, test_elements: Any, assume_unique: Any = ..., invert: Any = ..., *,
    kind: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def union1d(ar1: _Host, ar2: _Host) -> _Host: ...
@overload
def union1d(ar1: Any, ar2: Any) -> Any: ...
@overload
def setdiff1d(ar1: _Host, ar2: _Host, assume_unique: Any = ...) -> _Host: ...
@overload
def setdiff1d(ar1: Any, ar2: Any, assume_unique: Any = ...) -> Any: ...
@overload
def setxor1d(ar1: _Host, ar2: _Host, assume_unique: Any = ...) -> _Host: ...
@overload
def setxor1d(ar1: Any, ar2: Any, assume_unique: Any = ...) -> Any: ...
@overload
def intersect1d(
    ar1: _Host, ar2: _Host, assume_unique: Any = ..., return_indices: Literal[False] = ...,
) -> _Host: ...  # fmt: skip
@overload
def intersect1d(ar1: Any, ar2: Any, assume_unique: Any = ..., return_indices: Any = ...) -> Any: ...
@overload
def bincount(x: _Host, /, weights: Any = ..., minlength: Any = ...) -> _Host: ...
@overload
def bincount(x: Any, /, weights: Any = ..., minlength: Any = ...) -> Any: ...
@overload
def histogram(
    a: _Host, bins: Any = ..., range: Any = ..., density: Any = ..., weights: Any = ...,
) -> tuple[_Host, _Host]: ...  # fmt: skip
@overload
def histogram(
    a: Any, bins: Any = ..., range: Any = ..., density: Any = ..., weights: Any = ...,
) -> Any: ...  # fmt: skip
def histogram2d(
    x: Any, y: Any, bins: Any = ..., range: Any = ..., density: Any = ..., weights: Any = ...,
) -> tuple[Any, Any, Any]: ...  # fmt: skip
def histogramdd(
    sample: Any, bins: Any = ..., range: Any = ..., density: Any = ..., weights: Any = ...,
) -> tuple[Any, Any]: ...  # fmt: skip
@overload
def sum(
    a: _Array[_Inexact], axis: None = ..., dtype: None = ..., out: None = ...,
    keepdims: Literal[False] = ..., initial: Any = ..., where: Any = ...,
) -> _Inexact: ...  # fmt: skip
@overload
def sum(
    a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ...,
    initial: Any = ..., where: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def prod(
    a: _Array[_Inexact], axis: None = ..., dtype: None = ..., out: None = ...,
    keepdims: Literal[False] = ..., initial: Any = ..., where: Any = ...,
) -> _Inexact: ...  # fmt: skip
@overload
def prod(
    a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ...,
    initial: Any = ..., where: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def nansum(
    a: _Array[_Inexact], axis: None = ..., dtype: None = ..., out: None = ...,
    keepdims: Literal[False] = ..., initial: Any = ..., where: Any = ...,
) -> _Inexact: ...  # fmt: skip
@overload
def nansum(
    a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ...,
    initial: Any = ..., where: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def nanprod(
    a: _Array[_Inexact], axis: None = ..., dtype: None = ..., out: None = ...,
    keepdims: Literal[False] = ..., initial: Any = ..., where: Any = ...,
) -> _Inexact: ...  # fmt: skip
@overload
def nanprod(
    a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ...,
    initial: Any = ..., where: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def mean(
    a: _Array[_Inexact], axis: None = ..., dtype: None = ..., out: None = ...,
    keepdims: Literal[False] = ..., *, where: Any = ...,
) -> _Inexact: ...  # fmt: skip
@overload
def mean(
    a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., *,
    where: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def nanmean(
    a: _Array[_Inexact], axis: None = ..., dtype: None = ..., out: None = ...,
    keepdims: Literal[False] = ..., *, where: Any = ...,
) -> _Inexact: ...  # fmt: skip
@overload
def nanmean(
    a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., *,
    where: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def std(
    a: _Array[_Floating], axis: None = ..., dtype: None = ..., out: None = ..., ddof: Any = ...,
    keepdims: Literal[False] = ..., *, where: Any = ..., mean: Any = ..., correction: Any = ...,
) -> _Floating: ...  # fmt: skip
@overload
def std(
    a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., ddof: Any = ...,
    keepdims: Any = ..., *, where: Any = ..., mean: Any = ..., correction: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def var(
    a: _Array[_Floating], axis: None = ..., dtype: None = ..., out: None = ..., ddof: Any = ...,
    keepdims: Literal[False] = ..., *, where: Any = ..., mean: Any = ..., correction: Any = ...,
) -> _Floating: ...  # fmt: skip
@overload
def var(
    a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., ddof: Any = ...,
    keepdims: Any = ..., *, where: Any = ..., mean: Any = ..., correction: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def nanstd(
    a: _Array[_Floating], axis: None = ..., dtype: None = ..., out: None = ..., ddof: Any = ...,
    keepdims: Literal[False] = ..., *, where: Any = ..., mean: Any = ..., correction: Any = ...,
) -> _Floating: ...  # fmt: skip
@overload
def nanstd(
    a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., ddof: Any = ...,
    keepdims: Any = ..., *, where: Any = ..., mean: Any = ..., correction: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def nanvar(
    a: _Array[_Floating], axis: None = ..., dtype: None = ..., out: None = ..., ddof: Any = ...,
    keepdims: Literal[False] = ..., *, where: Any = ..., mean: Any = ..., correction: Any = ...,
) -> _Floating: ...  # fmt: skip
@overload
def nanvar(
    a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., ddof: Any = ...,
    keepdims: Any = ..., *, where: Any = ..., mean: Any = ..., correction: Any = ...,
) -> Any: ...  # fmt: skip
def real(val: Any) -> Any: ...
def imag(val: Any) -> Any: ...
def isposinf(x: Any, out: Any = ...) -> Any: ...
def isneginf(x: Any, out: Any = ...) -> Any: ...
def any(
    a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., *, where: Any = ...,
) -> Any: ...  # fmt: skip
def all(
    a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., *, where: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def max(
    a: _Array[_Value], axis: None = ..., out: None = ..., keepdims: Literal[False] = ...,
    initial: Any = ..., where: Any = ...,
) -> _Value: ...  # fmt: skip
@overload
def max(
    a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ...,
    where: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def min(
    a: _Array[_Value], axis: None = ..., out: None = ..., keepdims: Literal[False] = ...,
    initial: Any = ..., where: Any = ...,
) -> _Value: ...  # fmt: skip
@overload
def min(
    a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ...,
    where: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def amax(
    a: _Array[_Value], axis: None = ..., out: None = ..., keepdims: Literal[False] = ...,
    initial: Any = ..., where: Any = ...,
) -> _Value: ...  # fmt: skip
@overload
def amax(
    a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ...,
    where: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def amin(
    a: _Array[_Value], axis: None = ..., out: None = ..., keepdims: Literal[False] = ...,
    initial: Any = ..., where: Any = ...,
) -> _Value: ...  # fmt: skip
@overload
def amin(
    a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ...,
    where: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def nanmax(
    a: _Array[_Value], axis: None = ..., out: None = ..., keepdims: Literal[False] = ...,
    initial: Any = ..., where: Any = ...,
) -> _Value: ...  # fmt: skip
@overload
def nanmax(
    a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ...,
    where: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def nanmin(
    a: _Array[_Value], axis: None = ..., out: None = ..., keepdims: Literal[False] = ...,
    initial: Any = ..., where: Any = ...,
) -> _Value: ...  # fmt: skip
@overload
def nanmin(
    a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ...,
    where: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def ptp(
    a: _Array[_Value], axis: None = ..., out: None = ..., keepdims: Literal[False] = ...,
) -> _Value: ...  # fmt: skip
@overload
def ptp(a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ...) -> Any: ...
@overload
def argmax(
    a: _Host, axis: None = ..., out: None = ..., *, keepdims: Literal[False] = ...,
) -> np.int64: ...  # fmt: skip
@overload
def argmax(a: Any, axis: Any = ..., out: Any = ..., *, keepdims: Any = ...) -> Any: ...
@overload
def argmin(
    a: _Host, axis: None = ..., out: None = ..., *, keepdims: Literal[False] = ...,
) -> np.int64: ...  # fmt: skip
@overload
def argmin(a: Any, axis: Any = ..., out: Any = ..., *, keepdims: Any = ...) -> Any: ...
@overload
def nanargmax(
    a: _Host, axis: None = ..., out: None = ..., *, keepdims: Literal[False] = ...,
) -> np.int64: ...  # fmt: skip
@overload
def nanargmax(a: Any, axis: Any = ..., out: Any = ..., *, keepdims: Any = ...) -> Any: ...
@overload
def nanargmin(
    a: _Host, axis: None = ..., out: None = ..., *, keepdims: Literal[False] = ...,
) -> np.int64: ...  # fmt: skip
@overload
def nanargmin(a: Any, axis: Any = ..., out: Any = ..., *, keepdims: Any = ...) -> Any: ...
@overload
def median(
    a: _Array[_Inexact], axis: None = ..., out: None = ..., overwrite_input: Any = ...,
    keepdims: Literal[False] = ...,
) -> _Inexact: ...  # fmt: skip
@overload
def median(
    a: Any, axis: Any = ..., out: Any = ..., overwrite_input: Any = ..., keepdims: Any = ...,
) -> Any: ...  # fmt: skip
@overload
def nanmedian(
    a: _Array[_Inexact], axis: None = ..., out: None = ..., overwrite_input: Any = ...,
    keepdims: Literal[False] = ...,
) -> _Inexact: ...  # fmt: skip
@overload
def nanmedian(
    a: Any, axis: Any = ..., out: Any = ..., overwrite_input: Any = ..., keepdims: Any = ...,
) -> Any: ...  # fmt: skip
def percentile(
    a: Any, q: Any, axis: Any = ..., out: Any = ..., overwrite_input: Any = ...,
    method: _Method = ..., keepdims: Any = ..., *, weights: Any = ...,
) -> Any: ...  # fmt: skip
def quantile(
    a: Any, q: Any, axis: Any = ..., out: Any = ..., overwrite_input: Any = ...,
    method: _Method = ..., keepdims: Any = ..., *, weights: Any = ...,
) -> Any: ...  # fmt: skip
def nanpercentile(
    a: Any, q: Any, axis: Any = ..., out: Any = ..., overwrite_input: Any = ...,
    method: _Method = ..., keepdims: Any = ..., *, weights: Any = ...,
) -> Any: ...  # fmt: skip
def nanquantile(
    a: Any, q: Any, axis: Any = ..., out: Any = ..., overwrite_input: Any = ...,
    method: _Method = ..., keepdims: Any = ..., *, weights: Any = ...,
) -> Any: ...  # fmt: skip

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
