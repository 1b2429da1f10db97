"""Patch Triton's interpreter: checked memory, free block sizes, a GPU's arithmetic, whole slices, libdevice.

``install_interpreter`` changes the interpreter in place, once in a process: it is the child's own. Accesses go to the
memory of the launch that runs; a pointer remembers its argument.

Integer division truncates towards zero, bfloat16 is rounded to the nearest, and a 32-bit integer remembers that it has
overflowed, until an address is made of it. Reductions and scans with a function of the kernel process whole slices at
a time. CUDA's libdevice is replaced by the same functions of NumPy and torch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np
import torch

from aotidoctor.worker.emulation.checked_memory import LaunchMemory


# Arithmetic of lanes, for which Triton's interpreter uses NumPy.
def patch_arithmetic(interpreter: Any) -> None:
    """Change the operations of the interpreter's builder in place."""
    import triton.language as tl

    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    _follow_overflow(builder, tl, handle)
    _round_bfloat16(builder, tl, handle)
    builder.create_idiv = lambda self, lhs, rhs: _divided(handle, lhs, rhs, quotient=True)
    builder.create_sdiv = builder.create_udiv = builder.create_idiv
    builder.create_srem = builder.create_urem = lambda self, lhs, rhs: _divided(handle, lhs, rhs, quotient=False)


def _divided(handle: Any, lhs: Any, rhs: Any, *, quotient: bool) -> Any:
    """Integer division that truncates towards zero; NumPy's rounds down: the same where nothing is negative."""
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
    """The attribute with the overflow that one of the operands remembers."""
    for one in handles:
        if "overflow" in one.attr:
            return {"overflow": one.attr["overflow"]}
    return {}


def _follow_overflow(builder: Any, tl: Any, handle: Any) -> None:
    """Compute sums and products of signed 32-bit numbers in 64 bits where they may not fit."""

    def made(operation: Any, name: str) -> Any:
        def apply(self: Any, lhs: Any, rhs: Any) -> Any:
            dtype = lhs.dtype.scalar
            if dtype != tl.int32 or lhs.data.dtype != np.int32 or rhs.data.dtype != np.int32:
                return self.binary_op(lhs, rhs, operation)
            left, right = (max(-int(one.min()), int(one.max())) if one.size else 0 for one in (lhs.data, rhs.data))
            with np.errstate(over="ignore"):
                if (left * right if name == "*" else left + right) < 1 << 31:
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


def _round_bfloat16(builder: Any, tl: Any, handle: Any) -> None:
    """Round bfloat16 to the nearest, ties to even, as the hardware does."""
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


def patch_reductions(interpreter: Any) -> None:
    """Let reductions with a function of the kernel go by halves and scans by doubling steps: whole slices at a time."""

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


# Replacements of libdevice. Name in libdevice to name in NumPy.
_NUMPY = {
    "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2", "log10": "log10", "log1p": "log1p",
    "sqrt": "sqrt", "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
    "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint", "nearbyint": "rint", "abs": "abs",
    "fabs": "abs", "cbrt": "cbrt", "fast_expf": "exp", "fast_logf": "log", "fast_sinf": "sin", "fast_cosf": "cos",
    "pow": "power", "atan2": "arctan2", "fmod": "fmod", "copysign": "copysign", "hypot": "hypot",
    "nextafter": "nextafter", "div_rn": "divide", "fmin": "fmin", "fmax": "fmax",
}  # fmt: skip
_TORCH = {
    "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "lgamma": "lgamma", "j0": "bessel_j0",
    "j1": "bessel_j1", "cyl_bessel_i0": "i0", "cyl_bessel_i1": "i1", "erfcx": "erfcx", "y0": "bessel_y0",
    "y1": "bessel_y1", "normcdfinv": "ndtri", "normcdf": "ndtr",
}  # fmt: skip
_TESTS = {"isnan": "isnan", "isinf": "isinf", "signbit": "signbit", "isfinited": "isfinite", "finitef": "isfinite"}


# The keys above, and what ``compute`` has besides.
LIBDEVICE = frozenset((*_NUMPY, *_TORCH, *_TESTS, "rsqrt", "llrint", "round", "llround", "tgamma", "fma", "exp10"))


class Libdevice:
    """Replacement of the module; a function that is not known raises when it is called."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """A function of that name."""
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *values, **_: _call(name, values)


def _call(name: str, values: tuple[Any, ...]) -> Any:
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle, interpreter_semantic

    given = [interpreter_semantic.to_tensor(value) for value in values]
    arrays = np.broadcast_arrays(*(one.handle.data for one in given))
    scalar = next((one.dtype for one in given if one.dtype.is_floating()), given[0].dtype)
    with np.errstate(all="ignore"):
        data = compute(name, list(arrays))
    if name in _TESTS:
        data, dtype = data.astype(np.int32), tl.int32
    elif name in ("llrint", "llround"):
        data, dtype = data.astype(np.int64), tl.int64
    else:
        data, dtype = data.astype(arrays[0].dtype, copy=False), scalar
    like = max(given, key=lambda one: one.handle.data.size)
    shape = list(like.type.shape) if like.type.is_block() else None
    return tl.tensor(TensorHandle(data, dtype), tl.block_type(dtype, shape) if shape else dtype)


def compute(name: str, arrays: list[Any]) -> Any:
    """The libdevice function ``name`` of these arrays of one shape. Raises ``NotImplementedError``."""
    if name in _NUMPY:
        return getattr(np, _NUMPY[name])(*arrays)
    if name in _TESTS:
        return getattr(np, _TESTS[name])(*arrays)
    if name in _TORCH:
        tensor = torch.from_numpy(np.ascontiguousarray(arrays[0]))
        function = getattr(torch.special, _TORCH[name], None) or getattr(torch, _TORCH[name])
        return function(tensor).numpy()
    match name:
        case "rsqrt":
            return 1 / np.sqrt(arrays[0])
        case "llrint":
            return np.rint(arrays[0])
        case "round" | "llround":
            whole = np.trunc(arrays[0])
            return whole + np.copysign(np.abs(arrays[0] - whole) >= 0.5, arrays[0])
        case "tgamma":
            # From the logarithm of its absolute value; below 0 the sign changes at each whole number, its poles.
            x = arrays[0]
            size = torch.from_numpy(np.ascontiguousarray(x, dtype=np.float64)).lgamma().exp().numpy()
            low = np.floor(x)
            signed = np.where((x < 0) & (low % 2 != 0), -size, size)
            return np.where((x < 0) & (x == low), np.nan, signed).astype(x.dtype)
        case "fma":
            return arrays[0] * arrays[1] + arrays[2]
        case "exp10":
            return 10.0 ** arrays[0]
        case _:
            raise NotImplementedError(f"libdevice.{name}")


class CurrentLaunch:
    """The launch that runs: its memory, and its callbacks."""

    memory: LaunchMemory | None = None
    on_assert: Any = None
    on_overflow: Any = None
    on_values: Any = None


def install_interpreter(libdevice: Any) -> None:
    """Patch Triton's interpreter."""
    import triton._utils
    import triton.language
    from torch._inductor.runtime import triton_helpers
    from triton.language import core, extra
    from triton.language.semantic import TritonSemantic
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
    # In place of the modules by which users' kernels reach libdevice.
    for place in (extra, getattr(extra, "cuda", None)):
        if place is not None:
            place.libdevice = libdevice
            sys.modules[f"{place.__name__}.libdevice"] = libdevice
    _patch_builder(interpreter)
    patch_arithmetic(interpreter)
    # ``tl.arange`` of any length: a block may be the whole grid.
    TritonSemantic.arange = lambda self, start, end, *, ret_ty=None: self.make_tensor(
        self.builder.create_make_range(None, start, end),
        ret_ty or triton.language.block_type(triton.language.int32, [end - start]),
    )
    patch_reductions(interpreter)
    # Once for all: the interpreter would do and undo it for each call, and for each function that a kernel calls.
    # It patches the names that a function's module has; here these are ``tl`` and ``tl_core`` of this module.
    interpreter._patch_lang(install_interpreter)
    interpreter.InterpretedFunction.__call__ = lambda self, *args, **kwargs: self.rewrite()(*args, **kwargs)


def _shape_size(shape: Any) -> int:
    """The number of elements; any sizes will do, the interpreter is NumPy."""
    size = 1
    for one in shape:
        if not isinstance(one, int):
            raise TypeError("a size that is not constant")
        size *= one
    return size


def current_line(filename: str) -> int | None:
    """The line of the kernel's file that runs: that of the outermost frame in it."""
    frame: FrameType | None = sys._getframe(1)
    line = None
    while frame is not None:
        if frame.f_code.co_filename == filename:
            line = frame.f_lineno
        frame = frame.f_back
    return line


def _patch_builder(interpreter: Any) -> None:
    builder = interpreter.InterpreterBuilder
    handle = interpreter.TensorHandle
    np_dtype = interpreter._get_np_dtype

    def memory() -> LaunchMemory:
        if CurrentLaunch.memory is None:
            raise RuntimeError("no launch runs")
        return CurrentLaunch.memory

    def load(self: Any, ptrs: Any, mask: Any, other: Any, *_: Any, **__: Any) -> Any:
        dtype = ptrs.get_element_ty()
        given = other.data if other is not None else None
        marks = np.broadcast_to(mask.data, ptrs.data.shape)
        _see_overflow(ptrs, marks)
        values = memory().load(ptrs.data, marks, given, np_dtype(dtype), ptrs.attr.get("argument"))
        if CurrentLaunch.on_values is not None and dtype.is_floating():
            CurrentLaunch.on_values("load", values, dtype, None)
        return handle(values, dtype)

    def store(self: Any, ptrs: Any, value: Any, mask: Any, *_: Any, **__: Any) -> Any:
        marks = np.broadcast_to(mask.data, ptrs.data.shape)
        _see_overflow(ptrs, marks)
        if CurrentLaunch.on_values is not None and value.dtype.scalar.is_floating():
            CurrentLaunch.on_values("store", value.data, value.dtype.scalar, marks)
        dtype = np_dtype(ptrs.get_element_ty())
        data = value.data if value.data.dtype == dtype else value.data.astype(dtype)
        memory().store(ptrs.data, data, marks, ptrs.attr.get("argument"))

    def rmw(self: Any, op: Any, ptr: Any, val: Any, mask: Any, *_: Any) -> Any:
        _see_overflow(ptr, mask.data)
        name = str(getattr(op, "name", op)).lower()
        data = val.data.astype(np_dtype(ptr.get_element_ty()), copy=False)
        return handle(memory().update(ptr.data, data, mask.data, name, ptr.attr.get("argument")), val.dtype.scalar)

    def check(self: Any, condition: Any, message: str) -> None:
        if CurrentLaunch.on_assert is not None and not condition.data.all():
            CurrentLaunch.on_assert(~condition.data, message)

    builder.create_masked_load = load
    builder.create_masked_store = store
    builder.create_atomic_rmw = rmw
    builder.create_atomic_cas = lambda self, ptr, cmp, val, *_: handle(
        memory().swap(ptr.data, cmp.data, val.data, ptr.attr.get("argument")), cmp.dtype.scalar
    )
    builder.create_assert = check
    builder.create_assume = lambda self, condition: None
    _keep_argument(builder)


def _keep_argument(builder: Any) -> None:
    """Let operations pass on the argument of a pointer and the overflow of an integer."""
    for name in ("create_broadcast", "create_expand_dims", "create_splat", "create_bitcast", "create_reshape",
                 "create_int_cast", "create_trans"):  # fmt: skip
        original = getattr(builder, name)

        def keep(self: Any, *args: Any, original: Any = original, **kwargs: Any) -> Any:
            made = original(self, *args, **kwargs)
            source = args[1] if not hasattr(args[0], "attr") else args[0]
            if source.attr and made is not source:
                made.attr = {**source.attr, **made.attr}
            return made

        setattr(builder, name, keep)

    def addptr(self: Any, ptr: Any, offset: Any) -> Any:
        from triton.runtime.interpreter import TensorHandle

        size = max(1, ptr.get_element_ty().primitive_bitwidth // 8)
        steps = offset.data.astype(np.int64, copy=False).view(np.uint64)
        with np.errstate(over="ignore"):
            data = ptr.data + (steps if size == 1 else np.uint64(size) * steps)
        return TensorHandle(data, ptr.dtype, {**overflow_of(offset), **ptr.attr})

    builder.create_addptr = addptr


def _see_overflow(ptrs: Any, marks: Any) -> None:
    found = ptrs.attr.get("overflow")
    if found is not None and CurrentLaunch.on_overflow is not None:
        CurrentLaunch.on_overflow(*found, marks, ptrs.attr.get("argument"))
