"""`ShardedArray`: an array in contiguous pieces along one axis, each on a device."""

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
from gpualgo.shards import _moving
from gpualgo.shards._devices import GPU, Host, Place, all_on_host, places_of, refuse_in_graph


class ShardedArray:
    """An array whose pieces lie on several devices of one host: what `gpualgo.distribute` gives.

    Pieces are contiguous along `axis` and in its order, the first on ``devices[0]``. It holds
    them; it cannot be indexed. Which functions take it: docs/scale.md.

    Attributes
    ----------
    shape, dtype, ndim, size, nbytes
        As NumPy's, of the whole array.
    axis : int
        The axis that is cut.
    devices : tuple of str
        A device for each shard: ``"cuda:0"``; or ``"cpu:0"``, ``"cpu:1"``, which are all the CPU.
    shards : tuple of arrays
        NumPy's on the CPU; on GPUs of the library of the array that was distributed, of NumPy
        arrays `gpualgo.DeviceArray`.

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
    places: tuple[Place, ...]
    axis: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def __init__(self, shards: Iterable[Any], places: Iterable[Place], axis: int) -> None:
        """Of arrays that are known to fit; others come by `from_shards`."""
        own = tuple(shards)
        first = view_of(own[0], "a shard")
        lengths = [shard.shape[axis] for shard in own]
        shape = (*first.shape[:axis], sum(lengths), *first.shape[axis + 1 :])
        _set_shards(self, own)
        _set_places(self, tuple(places))
        _set_axis(self, axis)
        _set_dtype(self, first.dtype)
        _set_shape(self, shape)

    @classmethod
    def from_shards(cls, shards: Sequence[Any], axis: int = 0) -> ShardedArray:
        """Return the array whose pieces along an axis are these arrays, where they lie.

        Parameters
        ----------
        shards : list of arrays
            Of one library, dtype and number of dimensions, the other extents equal. On GPUs each
            where it is; arrays of the host are ``"cpu:0"``, ``"cpu:1"``, and so on.
        axis : int
            The axis along which they follow each other.

        Returns
        -------
        ShardedArray
            It holds the arrays themselves: nothing is copied, and who writes to them writes to it.

        Raises
        ------
        TypeError
            A shard is no array, or libraries or dtypes differ.
        ValueError
            There are none, shapes do not fit, or some lie on the host and others on GPUs.
        numpy.exceptions.AxisError
            The axis is out of range.
        """
        where = "from_shards"
        if isinstance(shards, np.ndarray) or not isinstance(shards, (list, tuple)) or not shards:
            raise TypeError(f"{where}: shards must be a list of arrays, at least one")
        views = [view_of(x, f"{where}: shard {i}") for i, x in enumerate(shards)]
        first = views[0]
        check_dtype(first.dtype, where)
        found = checks.axis_of(checks.plain_axis(axis, where, "an int"), len(first.shape), where)
        if found is None:
            raise TypeError(f"{where}: axis must be an int, got None")
        for i, view in enumerate(views):
            if view.dtype != first.dtype or view.library.name != first.library.name:
                raise TypeError(
                    f"{where}: shard {i} is {view.dtype} of {view.library.name} and the first "
                    f"{first.dtype} of {first.library.name}; convert it first"
                )
            if _others(view.shape, found) != _others(first.shape, found):
                raise ValueError(
                    f"{where}: shard {i} has shape {view.shape} and the first {first.shape}; they "
                    f"may differ along axis {found} alone"
                )
        if len({view.device == CPU for view in views}) > 1:
            raise ValueError(f"{where}: some shards are on the host and others on GPUs; move them")
        arrays = [plain(view) for view in views]
        places = [Host(i) if v.device == CPU else GPU(v.device) for i, v in enumerate(views)]
        return cls(arrays, places, found)

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of the devices."""
        return tuple(place.name for place in self.places)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The extents of the shards along `axis`."""
        return tuple(shard.shape[self.axis] for shard in self.shards)

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each shard begins along `axis`."""
        return tuple(accumulate(self.lengths, initial=0))[:-1]

    @property
    def library(self) -> Any:
        """The library of new arrays that lie beside the shards."""
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

    if TYPE_CHECKING:  # functions take it where they take arrays, and give what it decides

        @property
        def __cuda_array_interface__(self) -> Any: ...

    def __len__(self) -> int:
        length: int = self.shape[0]
        return length

    def gather(self, device: Any = None) -> Any:
        """Return all elements as one array.

        Parameters
        ----------
        device : str or int, optional
            Where: a GPU, or ``"cpu"`` for a NumPy array, which is waited for. Without it the device
            of the first shard.

        Returns
        -------
        array
            New memory, in the library of the shards; of shards of the host, or on a GPU without
            one, as `gpualgo.distribute` would choose it.

        Raises
        ------
        TypeError, ValueError, NoDeviceError
            `device` names none.
        RuntimeError
            It is called within `gpualgo.graph`, which would not repeat it.
        MemoryError
            It does not fit there.
        """
        refuse_in_graph("gather")
        place = self.places[0] if device is None else places_of([device], "gather", False)[0]
        if place.number == CPU and self.places[0].number != CPU:
            on_host = np.empty(self.shape, self.dtype)
            parts = zip(self.starts, self.lengths, strict=True)
            into = [_moving.cut(on_host, self.axis, i, i + length) for i, length in parts]
            all_on_host(self.shards, into)
            return on_host
        (whole,) = _moving.spread(
            self.shards, self.axis, [place], [self.shape[self.axis]], self.axis, self.library
        )
        return whole

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(
            f"a ShardedArray's {name} cannot be set; gpualgo.distribute cuts it anew, and "
            "ShardedArray.from_shards makes one of other shards"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.shards, self.places, self.axis)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a ShardedArray is neither true nor false; use len(x), or gpualgo.reduce(x, None, op)"
        )

    def __eq__(self, other: object) -> NoReturn:
        raise TypeError(
            "a ShardedArray is not compared by == or !=; use gpualgo.transform(lambda a, b: "
            "a == b, x, y), or `is` to know whether it is the same object"
        )

    __hash__ = object.__hash__

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            "a ShardedArray is not copied to the host unasked; use x.gather('cpu'), or x.gather() "
            "for an array on the first device"
        )

    def __repr__(self) -> str:
        places = ", ".join(
            f"{place.name} [{length}]"
            for place, length in zip(self.places, self.lengths, strict=True)
        )
        return f"ShardedArray(shape={self.shape}, dtype={self.dtype}, axis={self.axis}, {places})"


# Attributes are set here and nowhere else: of another shape it would be read past its end.
_set_shards, _set_places, _set_axis, _set_dtype, _set_shape = (
    ShardedArray.__dict__[name].__set__ for name in ("shards", "places", "axis", "dtype", "shape")
)


def _others(shape: tuple[int, ...], axis: int) -> tuple[int, tuple[int, ...]]:
    return len(shape), (*shape[:axis], *shape[axis + 1 :])


def check_dtype(dtype: np.dtype[Any], where: str) -> None:
    """Raise TypeError for elements that are no numbers, or not plain bytes."""
    if dtype.names is not None:
        raise TypeError(
            f"{where}: x has structured dtype {dtype}; distribute each field, and pass a tuple of "
            "them to functions"
        )
    if dtype.hasobject or not dtype.itemsize:
        raise TypeError(f"{where}: x has dtype {dtype}, whose items are not plain bytes")


def plain(view: View) -> Any:
    """Return an array that can be sliced: NumPy's, a known library's, or gpualgo's own."""
    if view.device == CPU:
        return view.library.to_numpy(view.owner)
    if not view.library.has_producers or type(view.owner) is DeviceArray:
        return view.owner
    return DeviceArray(
        view.ptr, view.shape, view.strides, view.dtype, view.device, view.library.producer_stream,
        view.readonly, view.owner,
    )  # fmt: skip
