"""DLPack both ways: capsules and producers, versioned and not, on the host and on a GPU."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from support import BFLOAT16, DTYPES, assert_same, random_array, since_numpy

import gpualgo as ga
from gpualgo._arrays import dlpack
from gpualgo._arrays.device_array import DeviceArray
from gpualgo._arrays.view import as_view

Host = np.ndarray[Any, Any]


class Old:
    """A producer from before versions, which takes no stream on the host."""

    def __init__(self, array: Host) -> None:
        self._array = array

    def __dlpack__(self, stream: None = None) -> Any:
        assert stream is None
        return self._array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class New(Old):
    """A producer that knows versions."""

    def __dlpack__(self, *, stream: None = None, max_version: Any = None) -> Any:  # type: ignore[override]
        assert stream is None
        assert max_version >= (1, 0)
        return versioned(self._array)


class Elsewhere(Old):
    """A producer on a device of another maker."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 10, 0


def versioned(array: Host) -> Any:
    """Return a capsule with a version, where this NumPy makes one."""
    return array.__dlpack__(**({"max_version": (1, 0)} if dlpack.KNOWS_VERSIONS else {}))


def capsules(array: Host) -> list[Any]:
    """Return every form in which an array comes by DLPack."""
    if not array.flags.writeable:
        return [versioned(array), New(array)] if dlpack.KNOWS_VERSIONS else []
    return [versioned(array), array.__dlpack__(), New(array), Old(array)]


def fields_of(capsule: Any) -> Any:
    return dlpack._fields(capsule, dlpack._name_of(capsule))[0]


@pytest.mark.parametrize("dtype", [t for t in DTYPES if t != BFLOAT16], ids=str)
def test_every_dtype(dtype: np.dtype[Any]) -> None:
    x = random_array((3, 5), dtype)
    for form in capsules(x):
        view = as_view(form, "x")
        assert_same(view.owner, x)
        assert view.owner.ctypes.data == x.ctypes.data


def test_bfloat16() -> None:
    x = random_array(7, BFLOAT16)
    for form in capsules(x.view(np.uint16))[:2]:
        fields_of(form).code = 4
        assert_same(as_view(form, "x").owner, x)
        assert_same(np.asarray(ga.transform(lambda a: a, form)), x)


LAYOUTS = {
    "plain": lambda x: x,
    "step": lambda x: x[:, ::3],
    "reversed": lambda x: x[::-1, ::-2],
    "fortran": lambda x: x.T,
    "broadcast": lambda x: np.broadcast_to(x[0], (4, 12)),
    "0-d": lambda x: x[1, 2, ...],
    "empty": lambda x: x[:, 3:3],
    "one": lambda x: x[2:3, 4:5],
    "new axes": lambda x: x[None, :, None],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout(layout: str) -> None:
    x = LAYOUTS[layout](np.arange(120, dtype=np.int32).reshape(10, 12))
    for form in capsules(x):
        view = as_view(form, "x")
        assert_same(view.owner, x)
        if x.size:
            assert view.owner.strides == x.strides or 1 in x.shape


@pytest.mark.parametrize("offset", [0, 8])
def test_byte_offset_and_no_strides(offset: int) -> None:
    x = np.arange(12.0)
    capsule = x.__dlpack__()
    fields = fields_of(capsule)
    fields.data -= offset
    fields.byte_offset = offset
    fields.strides = None
    assert_same(as_view(capsule, "x").owner, x)


@since_numpy("2.1")
def test_readonly() -> None:
    x = np.arange(5)
    x.flags.writeable = False
    for form in capsules(x):
        view = as_view(form, "x")
        assert view.readonly
        assert not view.owner.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            ga.transform(lambda a: a, np.arange(5), out=form)


def test_outputs() -> None:
    x = np.arange(5)
    for number in range(4):
        target = np.zeros(5, x.dtype)
        ga.transform(lambda a: a + 1, x, out=capsules(target)[number])
        assert_same(target, x + 1)


def test_a_capsule_holds_its_memory_and_lets_go() -> None:
    class Owned(np.ndarray[Any, Any]):
        pass

    x = np.arange(1000).view(Owned)
    seen = weakref.ref(x)
    view = as_view(x.__dlpack__(), "x")
    del x
    gc.collect()
    assert seen() is not None
    assert view.owner.sum() == 499500
    del view
    gc.collect()
    assert seen() is None


def test_a_capsule_can_be_used_again() -> None:
    capsule = np.arange(4).__dlpack__()
    assert int(ga.reduce(capsule)) == int(ga.reduce(capsule)) == 6
    assert np.from_dlpack(Consumed(capsule)).sum() == 6
    with pytest.raises(ValueError, match="consumed"):
        ga.reduce(capsule)


class Consumed:
    """Hands out one capsule."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.mark.parametrize(
    ("field", "value", "error", "match"),
    [
        ("lanes", 4, TypeError, "4 lanes"),
        ("code", 3, TypeError, "type code 3"),
        ("code", 17, TypeError, "type code 17"),
        ("bits", 12, TypeError, "12 bits"),
        ("bits", 128, TypeError, "dtype"),
        ("device_type", 10, TypeError, "device type 10"),
        ("data", None, ValueError, "no memory"),
    ],
)
def test_what_is_refused(field: str, value: Any, error: type[Exception], match: str) -> None:
    for capsule in (np.arange(6).__dlpack__(), versioned(np.arange(6))):
        setattr(fields_of(capsule), field, value)
        with pytest.raises(error, match=match):
            ga.reduce(capsule)


@since_numpy("2.1")
def test_a_version_too_new() -> None:
    capsule = np.arange(6).__dlpack__(max_version=(1, 0))
    address = dlpack._pointer_of(capsule, b"dltensor_versioned")
    version = dlpack._Version.from_address(address)
    version.major = 2
    with pytest.raises(ValueError, match=r"version 2\.\d+"):
        ga.reduce(capsule)
    version.major = 1


def test_other_capsules_and_devices() -> None:
    import datetime

    with pytest.raises(TypeError, match=r"datetime\.datetime_CAPI"):
        ga.reduce(datetime.datetime_CAPI)  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="device type 10"):
        ga.reduce(Elsewhere(np.arange(3)))


def exported(array: Host, readonly: bool = False) -> Any:
    """Return a DeviceArray over host memory, of which only the export is tested."""
    return DeviceArray(
        array.ctypes.data, array.shape, array.strides, array.dtype, 3, 0, readonly, array
    )


@pytest.mark.parametrize("version", [None, (1, 0)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_export_of_every_dtype(dtype: np.dtype[Any], version: Any) -> None:
    x = random_array((4, 6), dtype)[::-1, ::2]
    capsule = exported(x).__dlpack__(stream=-1, max_version=version)
    tensor = dlpack.read(capsule)
    assert (tensor.ptr, tensor.shape, tensor.strides) == (x.ctypes.data, x.shape, x.strides)
    assert (tensor.dtype, tensor.device_type, tensor.device_id) == (dtype, 2, 3)
    fields_of(capsule).device_type, fields_of(capsule).device_id = 1, 0
    assert_same(as_view(capsule, "x").owner, x)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_export_of_every_layout(layout: str) -> None:
    x = LAYOUTS[layout](np.arange(120, dtype=np.int32).reshape(10, 12))
    tensor = dlpack.read(exported(x).__dlpack__(stream=-1))
    assert tensor.shape == x.shape
    assert tensor.ptr == (x.ctypes.data if x.size else 0)
    pairs = zip(tensor.shape, tensor.strides, x.strides, strict=True)
    assert not x.size or all(n == 1 or got == want for n, got, want in pairs)


@since_numpy("2.1")
def test_export_read_only() -> None:
    x = exported(np.arange(3), readonly=True)
    assert dlpack.read(x.__dlpack__(stream=-1, max_version=(1, 1))).readonly
    assert not dlpack.read(
        exported(np.arange(3)).__dlpack__(stream=-1, max_version=(1, 1))
    ).readonly
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__(stream=-1)


def test_export_where_numpy_knows_no_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dlpack, "KNOWS_VERSIONS", False)
    x = np.arange(3)
    capsule = exported(x).__dlpack__(stream=-1, max_version=(1, 0))
    assert dlpack._name_of(capsule) == b"dltensor"
    assert dlpack.read(capsule).ptr == x.ctypes.data
    with pytest.raises(BufferError, match=r"NumPy 2\.1"):
        exported(x, readonly=True).__dlpack__(stream=-1, max_version=(1, 0))


def test_export_refuses() -> None:
    x = exported(np.arange(3))
    assert x.__dlpack_device__() == (2, 3)
    for options in ({"copy": True}, {"dl_device": (1, 0)}):
        with pytest.raises(BufferError, match="cuda:3"):
            x.__dlpack__(stream=-1, **options)
    for stream in (0, -2, 1.0, True):
        with pytest.raises(ValueError, match="stream"):
            x.__dlpack__(stream=stream)
    with pytest.raises((BufferError, RuntimeError)):  # while the capsule dies in its hands
        np.from_dlpack(exported(np.zeros(0)))
    with pytest.raises(BufferError):
        exported(np.zeros(3, "f4,i4")).__dlpack__(stream=-1)
    assert x.__dlpack__(stream=-1, dl_device=(2, 3), copy=False) is not None


def test_export_holds_the_array_until_the_consumer_is_done() -> None:
    class Owned(np.ndarray[Any, Any]):
        pass

    x = np.arange(10).view(Owned)
    seen = weakref.ref(x)
    for is_consumed in (False, True):
        capsule = exported(x).__dlpack__(stream=-1)
        fields = fields_of(capsule)
        fields.device_type, fields.device_id = 1, 0
        array = np.from_dlpack(Consumed(capsule)) if is_consumed else None
        del capsule
        gc.collect()
    del x
    gc.collect()
    assert seen() is not None
    assert array is not None
    assert array.sum() == 45
    del array
    gc.collect()
    assert seen() is None
