"""The public function `distribute`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpualgo._arrays.view import view_of
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline import checks
from gpualgo.shards import _moving
from gpualgo.shards._devices import parse_devices, refuse_in_graph
from gpualgo.shards._shards import ShardedArray, check_dtype, plain

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import SupportsIndex

    from gpualgo._base import annotations as ty

_NAME = "distribute"


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
    numpy.exceptions.AxisError
        The axis is out of range.
    MemoryError
        A shard does not fit its device, which the message names; `x` is unchanged.

    Notes
    -----
    Shards are copied one at a time, so `x` may be larger than the memory of any GPU. Between GPUs
    they are copied directly over NVLink or PCIe; if GPUs cannot reach each other, through host
    memory. Shards are equal even if the GPUs are of different models.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> x = ga.distribute(np.arange(12).reshape(3, 4), ["cpu:0", "cpu:1", "cpu:2"], axis=1)
    >>> [shard.shape for shard in x.shards]
    [(3, 2), (3, 1), (3, 1)]
    >>> ga.reduce(x, None, max, axis=1)
    array([ 3,  7, 11])
    """
    refuse_in_graph(_NAME)
    if isinstance(x, ShardedArray):
        pieces, old_axis, library, is_host = x.shards, x.axis, x.library, x.places[0].number == CPU
        shape = x.shape
    else:
        view = view_of(x, f"{_NAME}: x")
        check_dtype(view.dtype, _NAME)
        pieces, library, is_host, shape = (
            (plain(view),),
            view.library,
            view.device == CPU,
            view.shape,
        )
        old_axis = 0
    if not shape:
        raise ValueError(
            f"{_NAME}: x has no dimension that can be cut; pass an array that has dimensions"
        )
    if devices is None and isinstance(x, ShardedArray):
        places = x.places
    else:
        places = parse_devices(devices, _NAME, is_host)
    new_axis = checks.axis_of(checks.plain_axis(axis, _NAME, "an int"), len(shape), _NAME)
    if new_axis is None:
        raise TypeError(f"{_NAME}: axis must be an int, got None")
    lengths = _moving.shares(shape[new_axis], len(places))
    if len(pieces) == 1:
        old_axis = new_axis
    shards = _moving.spread(pieces, old_axis, places, lengths, new_axis, library)
    return ShardedArray(shards, places, new_axis)
