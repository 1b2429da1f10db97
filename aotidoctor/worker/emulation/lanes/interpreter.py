"""Triton's interpreter with checked memory, free block sizes, and reductions that go by whole slices.

``install`` changes the interpreter in place, once in a process: it is the child's own. Accesses go to the ``Memory`` of
the launch that runs; a pointer remembers its argument, and whole numbers of 32 bits remember that they have overflowed,
until an address is made of them.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from types import FrameType
from typing import Any

from aotidoctor.worker.emulation.lanes.lane_arithmetic import overflow_of, patch_arithmetic
from aotidoctor.worker.emulation.lanes.memory import Memory
from aotidoctor.worker.emulation.lanes.reductions import patch_reductions


def _for_language() -> None:
    """Stands for a kernel whose names are those of this module."""


class Current:
    """The launch that runs: its memory, and what it reports."""

    memory: Memory | None = None
    on_assert: Any = None
    on_overflow: Any = None
    on_values: Any = None


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
    builder = interpreter.interpreter_builder
    builder.options = replace(builder.options, debug=True, sanitize_overflow=False)
    triton_helpers.libdevice = libdevice
    _stand_in(libdevice)
    _patch_builder(interpreter)
    patch_arithmetic(interpreter)
    _patch_semantic(interpreter)
    patch_reductions(interpreter)
    # For good: the interpreter would do and undo it for each call, and for each function that a kernel calls.
    interpreter._patch_lang(_for_language)
    interpreter.InterpretedFunction.__call__ = lambda self, *args, **kwargs: self.rewrite()(*args, **kwargs)


def _stand_in(libdevice: Any) -> None:
    """In place of the modules by which users' kernels reach libdevice."""
    from triton.language import extra

    for place in (extra, getattr(extra, "cuda", None)):
        if place is not None:
            place.libdevice = libdevice
            sys.modules[f"{place.__name__}.libdevice"] = libdevice


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
        return TensorHandle(data, ptr.dtype, {**overflow_of(offset), **ptr.attr})

    builder.create_addptr = addptr


def _see_overflow(ptrs: Any, marks: Any) -> None:
    found = ptrs.attr.get("overflow")
    if found is not None and Current.on_overflow is not None:
        Current.on_overflow(*found, marks, ptrs.attr.get("argument"))


def _patch_semantic(interpreter: Any) -> None:
    """``tl.arange`` of any length: a block may be the whole grid."""
    import triton.language as tl
    from triton.language.semantic import TritonSemantic

    def arange(self: Any, start: int, end: int, *, ret_ty: Any = None) -> Any:
        block = ret_ty or tl.block_type(tl.int32, [end - start])
        return self.make_tensor(self.builder.create_make_range(None, start, end), block)

    TritonSemantic.arange = arange
