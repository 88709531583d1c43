"""The public function `distribute`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpualgo._arrays.view import view_of
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline import checks
from gpualgo.shards import _moving
from gpualgo.shards._devices import places_of, refuse_in_graph
from gpualgo.shards._shards import ShardedArray, check_dtype, plain

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import SupportsIndex

    from gpualgo._base import annotations as ty

_WHERE = "distribute"


def distribute(
    x: ty.AnyArray | ShardedArray, devices: Sequence[str | int] | str | int | None = None, *,
    axis: SupportsIndex = 0,
) -> ShardedArray:  # fmt: skip
    """Cut an array into equal pieces along an axis, one on each of several devices.

    Parameters
    ----------
    x : array or ShardedArray
        A NumPy array, an array on one GPU, or one that is sharded already and is to be cut anew.
        Any shape of one dimension or more, any strides, any dtype of plain bytes.
    devices : list of str or int, optional
        ``["cuda:0", "cuda:1"]`` or ``[0, 1]``: as many pieces, in this order. A device may be named
        more than once: its pieces share it. ``["cpu:0", "cpu:1"]`` are the CPU several times, to
        test programs for several GPUs without one. Without it those of a ShardedArray; else all
        GPUs, or the CPU where there is none, or where it is the default device and `x` is an array
        of the host.
    axis : int
        The axis that is cut.

    Returns
    -------
    ShardedArray
        Pieces are contiguous along the axis and differ in length by one at most, the first ones
        being the longer; where there are fewer rows than devices the last are empty. They are new
        memory: NumPy arrays on the CPU; on GPUs arrays of the library of `x`, of a NumPy array
        `gpualgo.DeviceArray`. Of arrays on GPUs nothing is waited for; what is queued on their
        streams by now is seen.

    Raises
    ------
    TypeError
        `x` is no array, has structured dtype or holds Python objects, or devices or axis are of a
        wrong type.
    ValueError
        `x` has no dimension, no device is named, GPUs and the CPU are named together, or a name is
        unknown.
    RuntimeError
        It is called within `gpualgo.graph`, which would not repeat it.
    NoDeviceError
        A GPU is named that is not there.
    numpy.exceptions.AxisError
        The axis is out of range.
    MemoryError
        A piece does not fit its device, which the message names; `x` is as it was.

    Notes
    -----
    A piece at a time goes to its GPU, so that `x` may be larger than any of them. Between GPUs
    pieces go by peer copies over NVLink or PCIe; where GPUs cannot reach each other the driver
    takes them through the host's memory. GPUs may be of different models: shares are equal
    nevertheless.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> x = ga.distribute(np.arange(12).reshape(3, 4), ["cpu:0", "cpu:1", "cpu:2"], axis=1)
    >>> [shard.shape for shard in x.shards]
    [(3, 2), (3, 1), (3, 1)]
    >>> ga.reduce(x, None, max, axis=1)
    array([ 3,  7, 11])
    """
    refuse_in_graph(_WHERE)
    if isinstance(x, ShardedArray):
        pieces, old, library, is_host = x.shards, x.axis, x.library, x.places[0].number == CPU
        shape = x.shape
    else:
        view = view_of(x, f"{_WHERE}: x")
        check_dtype(view.dtype, _WHERE)
        pieces, library, is_host, shape = (
            (plain(view),),
            view.library,
            view.device == CPU,
            view.shape,
        )
        old = 0
    if not shape:
        raise ValueError(f"{_WHERE}: x has no dimension that could be cut; pass an array of one")
    if devices is None and isinstance(x, ShardedArray):
        places = x.places
    else:
        places = places_of(devices, _WHERE, is_host)
    new = checks.axis_of(checks.plain_axis(axis, _WHERE, "an int"), len(shape), _WHERE)
    if new is None:
        raise TypeError(f"{_WHERE}: axis must be an int, got None")
    lengths = _moving.shares(shape[new], len(places))
    if len(pieces) == 1:
        old = new
    made = _moving.spread(pieces, old, places, lengths, new, library)
    return ShardedArray(made, places, new)
