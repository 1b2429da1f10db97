"""Arithmetic of lanes as a GPU does it, for Triton's interpreter, which leaves it to NumPy.

Division of whole numbers is cut towards zero, bfloat16 is rounded to the nearest, and a whole number of 32 bits
remembers that it has overflowed, until an address is made of it.
"""

from __future__ import annotations

from typing import Any

_INT32 = 1 << 31


def patch_arithmetic(interpreter: Any) -> None:
    """Change the operations of the interpreter's builder in place."""
    import numpy as np
    import triton.language as tl

    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    _follow_overflow(builder, np, tl, handle)
    _round_bfloat16(builder, np, tl, handle)
    builder.create_idiv = lambda self, lhs, rhs: _divided(handle, np, lhs, rhs, quotient=True)
    builder.create_sdiv = builder.create_udiv = builder.create_idiv
    builder.create_srem = builder.create_urem = lambda self, lhs, rhs: _divided(handle, np, lhs, rhs, quotient=False)


def _divided(handle: Any, np: Any, lhs: Any, rhs: Any, *, quotient: bool) -> Any:
    """Integer division cut towards zero; NumPy's own rounds down, which is the same where nothing is negative."""
    a, b = lhs.data, rhs.data
    with np.errstate(all="ignore"):
        signed = np.issubdtype(a.dtype, np.signedinteger) and a.size and b.size and (a.min() < 0 or b.min() < 0)
        if not signed:
            data = a // b if quotient else a % b
        else:
            rest = np.fmod(a, b)
            data = (a - rest) // b if quotient else rest
    return handle(data.astype(np.result_type(a, b), copy=False), lhs.dtype.scalar, overflow_of(lhs, rhs))


def overflow_of(*handles: Any) -> dict[str, Any]:
    """The overflow that one of the operands remembers."""
    for one in handles:
        if "overflow" in one.attr:
            return {"overflow": one.attr["overflow"]}
    return {}


def _follow_overflow(builder: Any, np: Any, tl: Any, handle: Any) -> None:
    """Sums and products of signed 32-bit numbers are made in 64 bits where they may not fit."""
    small = (tl.int32,)

    def made(operation: Any, name: str) -> Any:
        def apply(self: Any, lhs: Any, rhs: Any) -> Any:
            dtype = lhs.dtype.scalar
            if dtype not in small or lhs.data.dtype != np.int32 or rhs.data.dtype != np.int32:
                return self.binary_op(lhs, rhs, operation)
            with np.errstate(over="ignore"):
                if _fits(lhs.data, rhs.data, name):
                    return handle(operation(lhs.data, rhs.data), dtype, overflow_of(lhs, rhs))
                wide = operation(lhs.data.astype(np.int64), rhs.data.astype(np.int64))
                data = wide.astype(np.int32)
            wrong = wide != data
            attr = overflow_of(lhs, rhs)
            if wrong.any():
                attr["overflow"] = (name, wrong, wide)
            return handle(data, dtype, attr)

        return apply

    builder.create_add = made(np.add, "+")
    builder.create_mul = made(np.multiply, "*")
    builder.create_sub = made(np.subtract, "-")


def _fits(a: Any, b: Any, name: str) -> bool:
    if not a.size or not b.size:
        return True
    left = max(-int(a.min()), int(a.max()))
    right = max(-int(b.min()), int(b.max()))
    return (left * right if name == "*" else left + right) < _INT32


def _round_bfloat16(builder: Any, np: Any, tl: Any, handle: Any) -> None:
    """To the nearest, ties to even, as the hardware does."""
    original = builder.cast_impl

    def cast(self: Any, src: Any, dst_type: Any) -> Any:
        source, target = src.dtype.scalar, dst_type.scalar
        if source == tl.bfloat16 and target == tl.float32:
            return handle((src.data.astype(np.uint32) << np.uint32(16)).view(np.float32), target)
        if source == tl.float32 and target == tl.bfloat16:
            bits = np.ascontiguousarray(src.data, dtype=np.float32).view(np.uint32)
            rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
            return handle(np.where(np.isnan(src.data), np.uint32(0x7FC0), rounded).astype(np.uint16), target)
        if tl.bfloat16 in {source, target}:
            if source == target:
                return handle(src.data, target)
            between = cast(self, src, tl.float32)
            return cast(self, between, dst_type)
        with np.errstate(all="ignore"):
            return original(self, src, dst_type)

    builder.cast_impl = cast
    fp_to_fp = builder.create_fp_to_fp

    def convert(self: Any, src: Any, dst_type: Any, mode: Any) -> Any:
        ordinary = (tl.bfloat16, tl.float32, tl.float16, tl.float64)
        if src.dtype.scalar in ordinary and dst_type.scalar in ordinary:
            return cast(self, src, dst_type)
        return fp_to_fp(self, src, dst_type, mode)

    builder.create_fp_to_fp = convert
