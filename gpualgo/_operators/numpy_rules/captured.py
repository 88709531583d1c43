"""Intrinsics that load captured arrays and numbers from the words that a call passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir as llvm
from numba import types
from numba.core import cgutils

from gpualgo._operators.captured import Slot
from gpualgo._operators.numbers import Number
from gpualgo._operators.numpy_rules.types import Weak, scalar_type

_word = llvm.IntType(64)


def array_intrinsic(slot: Slot, arrayobj: Any, make: Callable[..., Any], words: Any) -> Any:
    """Return the intrinsic that returns a captured array, read-only; words(builder) points to word
    0.
    """
    element = scalar_type(slot.dtype_name)
    layout = "C" if slot.is_contiguous else "A"
    ty = types.Array(element, slot.ndim, layout, readonly=True)

    def captured(typingctx: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            start = words(builder)

            def word(index: int) -> Any:
                address = builder.gep(start, [llvm.Constant(_word, slot.first_word + index)])
                loaded = builder.load(address)
                # The words do not change while a kernel runs.
                loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
                return loaded

            data_type = context.get_data_type(element)
            shape = [word(1 + axis) for axis in range(slot.ndim)]
            strides = [word(1 + slot.ndim + axis) for axis in range(slot.ndim)]
            array = context.make_array(ty)(context, builder)
            arrayobj.populate_array(
                array,
                data=builder.inttoptr(word(0), data_type.as_pointer()),
                shape=shape,
                strides=strides,
                itemsize=context.get_constant(types.intp, context.get_abi_sizeof(data_type)),
                meminfo=None,
            )
            return array._getvalue()

        return ty(), generate

    return make(captured)


def number_intrinsic(number: Number, make: Callable[..., Any], word: Any) -> Any:
    """Return the intrinsic that returns a data number; word(builder, i) loads word i."""
    ty = scalar_type(number.kind)
    if isinstance(ty, Weak):
        words = frozenset((number.first_word,))
        ty = Weak(ty.kind, None, words, number.bounds, number.is_exponent)

    def captured(typingctx: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            words = [word(builder, number.first_word + i) for i in range(number.num_words)]
            buffer = cgutils.alloca_once(builder, llvm.ArrayType(_word, len(words)))
            for i, value in enumerate(words):
                indices = [llvm.Constant(llvm.IntType(32), n) for n in (0, i)]
                builder.store(value, builder.gep(buffer, indices))
            kind = ty.native if isinstance(ty, Weak) else ty
            data_type = context.get_data_type(kind)
            data = builder.load(builder.bitcast(buffer, data_type.as_pointer()))
            model = context.data_model_manager[kind]
            return model.from_data(builder, data)

        return ty(), generate

    return make(captured)
