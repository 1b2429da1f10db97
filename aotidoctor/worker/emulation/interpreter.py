"""Triton's interpreter with checked memory, free block sizes, and reductions that go by whole slices.

``install`` changes the interpreter in place, once in a process: it is the child's own. Accesses go to the ``Memory`` of
the launch that runs; a pointer remembers its argument, and whole numbers of 32 bits remember that they have overflowed,
until an address is made of them.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from aotidoctor.worker.emulation.memory import Memory

_INT32 = 1 << 31


def _for_language() -> None:
    """Stands for a kernel whose names are those of this module."""


class Current:
    """The launch that runs: its memory, and what it reports."""

    memory: Memory | None = None
    on_assert: Any = None
    on_overflow: Any = None
    on_values: Any = None
    grid: tuple[int, int, int] = (1, 1, 1)
    asserts_seen: bool = False


def install(libdevice: Any) -> None:
    """Patch Triton's interpreter."""
    import triton._utils
    import triton.language
    from torch._inductor.runtime import triton_helpers
    from triton.language import core
    from triton.runtime import interpreter

    if getattr(interpreter, "aotidoctor_installed", False):
        return
    interpreter.aotidoctor_installed = True
    globals()["tl"], globals()["tl_core"] = triton.language, core
    for module in (triton._utils, core):
        if hasattr(module, "validate_block_shape"):
            module.validate_block_shape = _shape_size
    options = {"debug": True, "sanitize_overflow": False}
    interpreter.interpreter_builder.options = _with(interpreter.interpreter_builder.options, options)
    triton_helpers.libdevice = libdevice
    _patch_builder(interpreter)
    _patch_semantic(interpreter)
    _patch_reductions(interpreter)
    # For good: the interpreter would do and undo it for each call, and for each function that a kernel calls.
    interpreter._patch_lang(_for_language)
    interpreter.InterpretedFunction.__call__ = lambda self, *args, **kwargs: self.rewrite()(*args, **kwargs)


def _with(options: Any, changes: dict[str, Any]) -> Any:
    from dataclasses import replace

    return replace(options, **changes)


def _shape_size(shape: Any) -> int:
    """The number of elements; any sizes will do, the interpreter is NumPy."""
    size = 1
    for one in shape:
        if not isinstance(one, int):
            raise TypeError("a size that is not constant")
        size *= one
    return size


def current_line(filename: str) -> int | None:
    """The line of the kernel's file that is being carried out: the outermost frame in it."""
    frame: FrameType | None = sys._getframe(1)
    line = None
    while frame is not None:
        if frame.f_code.co_filename == filename:
            line = frame.f_lineno
        frame = frame.f_back
    return line


def _patch_builder(interpreter: Any) -> None:  # noqa: C901 - one function an access
    import numpy as np
    import triton.language as tl

    builder = interpreter.InterpreterBuilder
    handle = interpreter.TensorHandle
    np_dtype = interpreter._get_np_dtype

    def memory() -> Memory:
        if Current.memory is None:
            raise RuntimeError("no launch runs")
        return Current.memory

    def load(self: Any, ptrs: Any, mask: Any, other: Any, *_: Any, **__: Any) -> Any:
        dtype = ptrs.get_element_ty()
        given = other.data if other is not None else None
        marks = np.broadcast_to(mask.data, ptrs.data.shape)
        _see_overflow(ptrs, marks)
        values = memory().load(ptrs.data, marks, given, np_dtype(dtype), ptrs.attr.get("argument"))
        if Current.on_values is not None and dtype.is_floating():
            Current.on_values("load", values, dtype, None)
        return handle(values, dtype)

    def store(self: Any, ptrs: Any, value: Any, mask: Any, *_: Any, **__: Any) -> Any:
        marks = np.broadcast_to(mask.data, ptrs.data.shape)
        _see_overflow(ptrs, marks)
        if Current.on_values is not None and value.dtype.scalar.is_floating():
            Current.on_values("store", value.data, value.dtype.scalar, marks)
        wanted = np_dtype(ptrs.get_element_ty())
        data = value.data if value.data.dtype == wanted else value.data.astype(wanted)
        memory().store(ptrs.data, data, marks, ptrs.attr.get("argument"))

    def rmw(self: Any, op: Any, ptr: Any, val: Any, mask: Any, *_: Any) -> Any:
        _see_overflow(ptr, mask.data)
        name = str(getattr(op, "name", op)).lower()
        data = val.data.astype(np_dtype(ptr.get_element_ty()), copy=False)
        return handle(memory().update(ptr.data, data, mask.data, name, ptr.attr.get("argument")), val.dtype.scalar)

    def cas(self: Any, ptr: Any, cmp: Any, val: Any, *_: Any) -> Any:
        return handle(memory().swap(ptr.data, cmp.data, val.data, ptr.attr.get("argument")), cmp.dtype.scalar)

    def check(self: Any, condition: Any, message: str) -> None:
        if Current.on_assert is not None and not condition.data.all():
            Current.on_assert(~condition.data, message)

    builder.create_masked_load = load
    builder.create_masked_store = store
    builder.create_atomic_rmw = rmw
    builder.create_atomic_cas = cas
    builder.create_assert = check
    builder.create_assume = lambda self, condition: None
    _keep_argument(builder)
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
    return handle(data.astype(np.result_type(a, b), copy=False), lhs.dtype.scalar, _marks(lhs, rhs))


def _marks(*handles: Any) -> dict[str, Any]:
    """The overflow that one of the operands remembers."""
    for one in handles:
        if "overflow" in one.attr:
            return {"overflow": one.attr["overflow"]}
    return {}


def _keep_argument(builder: Any) -> None:
    """Pointers, and whole numbers that have overflowed, hand on what they remember."""
    for name in ("create_broadcast", "create_expand_dims", "create_splat", "create_bitcast", "create_reshape",
                 "create_int_cast", "create_trans"):  # fmt: skip
        original = getattr(builder, name)

        def kept(self: Any, *args: Any, original: Any = original, **kwargs: Any) -> Any:
            made = original(self, *args, **kwargs)
            source = args[1] if not hasattr(args[0], "attr") else args[0]
            if source.attr and made is not source:
                made.attr = {**source.attr, **made.attr}
            return made

        setattr(builder, name, kept)

    def addptr(self: Any, ptr: Any, offset: Any) -> Any:
        import numpy as np
        from triton.runtime.interpreter import TensorHandle

        size = max(1, ptr.get_element_ty().primitive_bitwidth // 8)
        steps = offset.data.astype(np.int64, copy=False).view(np.uint64)
        with np.errstate(over="ignore"):
            data = ptr.data + (steps if size == 1 else np.uint64(size) * steps)
        return TensorHandle(data, ptr.dtype, {**_marks(offset), **ptr.attr})

    builder.create_addptr = addptr


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
                    return handle(operation(lhs.data, rhs.data), dtype, _marks(lhs, rhs))
                wide = operation(lhs.data.astype(np.int64), rhs.data.astype(np.int64))
                data = wide.astype(np.int32)
            wrong = wide != data
            attr = _marks(lhs, rhs)
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


def _see_overflow(ptrs: Any, marks: Any) -> None:
    found = ptrs.attr.get("overflow")
    if found is not None and Current.on_overflow is not None:
        Current.on_overflow(*found, marks, ptrs.attr.get("argument"))


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


def _patch_semantic(interpreter: Any) -> None:
    """``tl.arange`` of any length: a block may be the whole grid."""
    import triton.language as tl
    from triton.language.semantic import TritonSemantic

    def arange(self: Any, start: int, end: int, *, ret_ty: Any = None) -> Any:
        block = ret_ty or tl.block_type(tl.int32, [end - start])
        return self.make_tensor(self.builder.create_make_range(None, start, end), block)

    TritonSemantic.arange = arange


def _patch_reductions(interpreter: Any) -> None:
    """A reduction with a function of the kernel's goes by halves, a scan by doubling steps: whole slices at a time."""
    import numpy as np

    def call(self: Any, left: Any, right: Any, like: Any) -> list[Any]:
        wrapped = [self.to_tensor(data, one.dtype) for data, one in zip((*left, *right), (*like, *like), strict=True)]
        made = self.combine_fn.rewrite()(*wrapped)
        made = made if isinstance(made, tuple | list) or hasattr(made, "values") else (made,)
        return [
            np.broadcast_to(one.handle.data, a.shape).astype(a.dtype, copy=False)
            for one, a in zip(made, left, strict=True)
        ]

    def generic_reduce(self: Any, given: Any) -> Any:
        original_axis = self.axis
        tensors, axis = self.unravel(given, self.axis)
        data = [np.moveaxis(one.handle.data, axis, 0) for one in tensors]
        rank = len(given[0].handle.data.shape)
        while len(data[0]) > 1:
            half = len(data[0]) // 2
            odd = [one[2 * half :] for one in data]
            data = call(self, [one[:half] for one in data], [one[half : 2 * half] for one in data], tensors)
            if len(odd[0]):
                data = [np.concatenate([one, last]) for one, last in zip(data, odd, strict=True)]
        made = []
        for one, like in zip(data, tensors, strict=True):
            result = one[0]
            if self.keep_dims:
                result = np.expand_dims(result, axis) if original_axis is not None else result.reshape((1,) * rank)
            elif original_axis is None:
                result = result.item()
            made.append(self.to_tensor(result, like.dtype))
        return made

    def generic_scan(self: Any, given: Any) -> Any:
        data = [np.moveaxis(one.handle.data, self.axis, 0).copy() for one in given]
        step = 1
        while step < len(data[0]):
            made = call(self, [one[:-step] for one in data], [one[step:] for one in data], given)
            data = [np.concatenate([one[:step], new]) for one, new in zip(data, made, strict=True)]
            step *= 2
        return [
            self.to_tensor(np.ascontiguousarray(np.moveaxis(one, 0, self.axis)), like.dtype)
            for one, like in zip(data, given, strict=True)
        ]

    interpreter.ReduceOps.generic_reduce = generic_reduce
    interpreter.ScanOps.generic_scan = generic_scan
