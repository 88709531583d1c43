"""`ShardedArray`: an array in contiguous pieces along one axis, one on each device."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from gpualgo._arrays.device_array import DeviceArray
from gpualgo._arrays.view import View, view_of
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline import checks
from gpualgo.shards import _devices
from gpualgo.shards._devices import Device, all_on_host, gpu, host, parse_devices, refuse_in_graph

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import SupportsIndex

    from gpualgo._base import annotations as ty


class ShardedArray:
    """An array cut into shards on several devices of one host; returned by `gpualgo.distribute`.

    Shards are contiguous along `axis` and in order, the first on ``devices[0]``. The array cannot
    be indexed.

    https://github.com/gpualgo/gpualgo/blob/main/docs/scale.md lists the functions that accept it.

    Attributes
    ----------
    shape, dtype, ndim, size, nbytes
        As for a NumPy array; of the whole array.
    axis : int
        The sharded axis.
    devices : tuple of str
        The device of each shard: ``"cuda:0"``; or ``"cpu:0"``, ``"cpu:1"``, which are all the CPU.
    shards : tuple of arrays
        NumPy arrays on the CPU; on GPUs arrays of the library of the distributed array, or
        `gpualgo.DeviceArray` if that was NumPy.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> x = ga.distribute(np.arange(5), ["cpu:0", "cpu:1"])
    >>> x
    ShardedArray(shape=(5,), dtype=int64, axis=0, cpu:0 [3], cpu:1 [2])
    >>> x.shards
    (array([0, 1, 2]), array([3, 4]))
    >>> int(ga.reduce(x)), ga.inclusive_scan(x).gather()
    (10, array([ 0,  1,  3,  6, 10]))
    """

    __slots__ = ("__weakref__", "axis", "dtype", "places", "shape", "shards")
    shards: tuple[Any, ...]
    places: tuple[Device, ...]
    axis: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def __init__(self, shards: Iterable[Any], places: Iterable[Device], axis: int) -> None:
        """Unchecked; use `from_shards` for arrays that may not fit together."""
        own = tuple(shards)
        first = view_of(own[0], "a shard")
        lengths = [shard.shape[axis] for shard in own]
        shape = (*first.shape[:axis], sum(lengths), *first.shape[axis + 1 :])
        values = axis, first.dtype, tuple(places), shape, own
        for name, value in zip(self.__slots__[1:], values, strict=True):
            object.__setattr__(self, name, value)  # read-only: a wrong shape would read elsewhere

    @classmethod
    def from_shards(cls, shards: Sequence[Any], axis: int = 0) -> ShardedArray:
        """Return the array whose shards along an axis are these arrays, without copying.

        Parameters
        ----------
        shards : list of arrays
            All with the same library, dtype and number of dimensions, and equal lengths along other
            axes. GPU arrays stay on their devices; host arrays are ``"cpu:0"``, ``"cpu:1"``, and so
            on.
        axis : int
            The axis along which the arrays are concatenated.

        Returns
        -------
        ShardedArray
            It shares memory with the arrays.

        Raises
        ------
        TypeError
            A shard is not an array, or libraries or dtypes differ.
        ValueError
            There are no shards, shapes differ, or some are on the host and others on GPUs.
        numpy.exceptions.AxisError
            The axis is out of range.
        """
        where = "from_shards"
        if isinstance(shards, np.ndarray) or not isinstance(shards, (list, tuple)) or not shards:
            raise TypeError(f"{where}: shards must be a list of arrays, at least one")
        views = [view_of(x, f"{where}: shard {i}") for i, x in enumerate(shards)]
        first = views[0]
        check_dtype(first.dtype, where)
        axis = checks.integer(axis, "axis", where)
        (axis,) = checks.axes_of(axis, len(first.shape), where)
        for i, view in enumerate(views):
            if view.dtype != first.dtype or view.library.name != first.library.name:
                raise TypeError(
                    f"{where}: shard {i} is {view.dtype} of {view.library.name} and the first "
                    f"{first.dtype} of {first.library.name}; convert it first"
                )
            if _other_extents(view.shape, axis) != _other_extents(first.shape, axis):
                raise ValueError(
                    f"{where}: shard {i} has shape {view.shape} and the first {first.shape}; they "
                    f"may differ along axis {axis} only"
                )
        if len({view.device == CPU for view in views}) > 1:
            raise ValueError(f"{where}: some shards are on the host and others on GPUs; move them")
        arrays = [plain(view) for view in views]
        places = [host(i) if v.device == CPU else gpu(v.device) for i, v in enumerate(views)]
        return cls(arrays, places, axis)

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of the devices."""
        return tuple(place.name for place in self.places)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths of the shards along `axis`."""
        return tuple(shard.shape[self.axis] for shard in self.shards)

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each shard begins along `axis`."""
        return tuple(accumulate(self.lengths, initial=0))[:-1]

    @property
    def library(self) -> Any:
        """The library of new arrays on the devices of the shards."""
        return view_of(self.shards[0], "a shard").library

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.size * self.dtype.itemsize

    if TYPE_CHECKING:  # lets type checkers accept it as an array

        @property
        def __cuda_array_interface__(self) -> Any: ...

    def __len__(self) -> int:
        return int(self.shape[0])

    def gather(self, device: str | int | None = None) -> Any:
        """Return all elements as one array in new memory.

        Parameters
        ----------
        device : str or int, optional
            A GPU, or ``"cpu"`` for a NumPy array, for which the host waits. By default the device
            of the first shard.

        Returns
        -------
        array
            A NumPy array on the CPU; on a GPU an array of the shards' library, or
            `gpualgo.DeviceArray` if they are NumPy arrays.

        Raises
        ------
        TypeError, ValueError, NoDeviceError
            `device` is not a valid device.
        RuntimeError
            It is called within `gpualgo.graph`, which cannot record it.
        MemoryError
            The array does not fit on the device.
        """
        refuse_in_graph("gather")
        target = self.places[0] if device is None else parse_devices([device], "gather", False)[0]
        if target.number == CPU and self.places[0].number != CPU:
            result = np.empty(self.shape, self.dtype)
            parts = zip(self.starts, self.lengths, strict=True)
            into = [_devices.cut(result, self.axis, i, i + length) for i, length in parts]
            all_on_host(self.shards, into)
            return result
        length, axis = self.shape[self.axis], self.axis
        return _devices.spread(self.shards, axis, [target], [length], axis, self.library)[0]

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(
            f"a ShardedArray's {name} cannot be set; use gpualgo.distribute to shard it "
            "again, or ShardedArray.from_shards"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.shards, self.places, self.axis)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a ShardedArray has no truth value; use len(x), or gpualgo.reduce(x, None, op)"
        )

    def __eq__(self, other: object) -> NoReturn:
        raise TypeError(
            "a ShardedArray cannot be compared by == or !=; use gpualgo.transform(lambda a, b: "
            "a == b, x, y), or `is` to know whether it is the same object"
        )

    __hash__ = object.__hash__

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            "a ShardedArray is not copied to the host implicitly; use x.gather('cpu'), or "
            "x.gather() for an array on the first device"
        )

    def __repr__(self) -> str:
        pairs = zip(self.devices, self.lengths, strict=True)
        shards = ", ".join(f"{name} [{length}]" for name, length in pairs)
        return f"ShardedArray(shape={self.shape}, dtype={self.dtype}, axis={self.axis}, {shards})"


def _other_extents(shape: tuple[int, ...], axis: int) -> tuple[int, tuple[int, ...]]:
    return len(shape), (*shape[:axis], *shape[axis + 1 :])


def check_dtype(dtype: np.dtype[Any], where: str) -> None:
    """Raise TypeError for structured dtypes and for dtypes that are not plain bytes."""
    if dtype.names is not None:
        raise TypeError(
            f"{where}: x has structured dtype {dtype}; distribute each field, and pass a tuple of "
            "them to functions"
        )
    if dtype.hasobject or not dtype.itemsize:
        raise TypeError(f"{where}: x has dtype {dtype}, whose items are not plain bytes")


def plain(view: View) -> Any:
    """Return an array that can be sliced: of NumPy, a known library, or a `DeviceArray`."""
    if view.device == CPU:
        return view.library.to_numpy(view.owner)
    if not view.library.has_producers or type(view.owner) is DeviceArray:
        return view.owner
    return DeviceArray(
        view.ptr, view.shape, view.strides, view.dtype, view.device, view.library.producer_stream,
        view.readonly, view.owner,
    )  # fmt: skip


# --- The public function `distribute`.


def distribute(
    x: ty.AnyArray | ShardedArray, devices: Sequence[str | int] | str | int | None = None, *,
    axis: SupportsIndex = 0,
) -> ShardedArray:  # fmt: skip
    """Return an array cut into equal shards along an axis, one on each of several devices.

    Parameters
    ----------
    x : array or ShardedArray
        A NumPy array, an array on one GPU, or a sharded array, which is sharded again. At least one
        dimension, any strides, any dtype that is neither structured nor has Python objects.
    devices : list of str or int, optional
        ``["cuda:0", "cuda:1"]`` or ``[0, 1]``: a shard for each, in this order; a device may be
        named several times. ``["cpu:0", "cpu:1"]`` are all the CPU, to test programs for several
        GPUs without a GPU. By default the devices of a ShardedArray, else all GPUs; the CPU if
        there is no GPU, or if it is the default device and `x` is a host array.
    axis : int
        The axis along which `x` is cut.

    Returns
    -------
    ShardedArray
        Shards are contiguous along the axis. Their lengths differ by at most one, the first ones
        being longer; if there are fewer rows than devices, the last are empty. Shards are new
        memory: NumPy arrays on the CPU; on GPUs arrays of the library of `x`, or
        `gpualgo.DeviceArray` for a NumPy array. The host does not wait for GPU arrays; copies
        follow the work queued on their streams.

    Raises
    ------
    TypeError
        `x` is not an array, its dtype is structured or has Python objects, or `devices` or `axis`
        has a wrong type.
    ValueError
        `x` has no dimension, `devices` is empty, names both GPUs and the CPU, or has an unknown
        name.
    RuntimeError
        It is called within `gpualgo.graph`, which cannot record it.
    NoDeviceError
        A named GPU does not exist.
    MemoryError
        A shard does not fit its device, which the message names; `x` is unchanged.

    Notes
    -----
    Shards are copied one at a time, so `x` may be larger than the memory of any GPU. Between GPUs
    they are copied directly over NVLink or PCIe; if GPUs cannot reach each other, through host
    memory. Shards are equal even if the GPUs are of different models.

    >>> x = ga.distribute(np.arange(12).reshape(3, 4), ["cpu:0", "cpu:1", "cpu:2"], axis=1)
    >>> [shard.shape for shard in x.shards]
    [(3, 2), (3, 1), (3, 1)]
    >>> ga.reduce(x, None, max, axis=1)
    array([ 3,  7, 11])
    """
    where = "distribute"
    refuse_in_graph(where)
    if isinstance(x, ShardedArray):
        pieces, old_axis, library, shape = x.shards, x.axis, x.library, x.shape
        is_host = x.places[0].number == CPU
    else:
        view = view_of(x, f"{where}: x")
        check_dtype(view.dtype, where)
        pieces, old_axis, library, shape = (plain(view),), 0, view.library, view.shape
        is_host = view.device == CPU
    if not shape:
        raise ValueError(
            f"{where}: x has no dimension that can be cut; pass an array that has dimensions"
        )
    own = x.places if devices is None and isinstance(x, ShardedArray) else None
    places = own or parse_devices(devices, where, is_host)
    (new_axis,) = checks.axes_of(checks.integer(axis, "axis", where), len(shape), where)
    lengths = _devices.shares(shape[new_axis], len(places))
    if len(pieces) == 1:
        old_axis = new_axis
    shards = _devices.spread(pieces, old_axis, places, lengths, new_axis, library)
    return ShardedArray(shards, places, new_axis)
