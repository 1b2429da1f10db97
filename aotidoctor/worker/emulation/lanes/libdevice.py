"""Stand-ins for CUDA's libdevice, which Triton's interpreter does not have: the same functions by NumPy and torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Name in libdevice to name in NumPy.
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


class Libdevice:
    """Looks like the module; a function that is not known raises when it is called."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """A function of that name."""
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *values, **_: _call(name, values)


def _call(name: str, values: tuple[Any, ...]) -> Any:
    import numpy as np
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle, interpreter_semantic

    given = [interpreter_semantic.to_tensor(value) for value in values]
    arrays = np.broadcast_arrays(*(one.handle.data for one in given))
    scalar = next((one.dtype for one in given if one.dtype.is_floating()), given[0].dtype)
    with np.errstate(all="ignore"):
        data = computed(name, list(arrays))
    if name in _TESTS:
        kept, dtype = data.astype(np.int32), tl.int32
    elif name in ("llrint", "llround"):
        kept, dtype = data.astype(np.int64), tl.int64
    else:
        kept, dtype = data.astype(arrays[0].dtype, copy=False), scalar
    like = max(given, key=lambda one: one.handle.data.size)
    shape = list(like.type.shape) if like.type.is_block() else None
    return tl.tensor(TensorHandle(kept, dtype), tl.block_type(dtype, shape) if shape else dtype)


def computed(name: str, arrays: list[Any]) -> Any:
    """The function of these arrays of one shape. Raises ``NotImplementedError``."""
    import numpy as np
    import torch

    if name in _NUMPY:
        return getattr(np, _NUMPY[name])(*arrays)
    if name in _TESTS:
        return getattr(np, _TESTS[name])(*arrays)
    if name in _TORCH:
        tensor = torch.from_numpy(np.ascontiguousarray(arrays[0]))
        return _torch_function(_TORCH[name])(tensor).numpy()
    match name:
        case "rsqrt":
            return 1 / np.sqrt(arrays[0])
        case "llrint":
            return np.rint(arrays[0])
        case "round" | "llround":
            whole = np.trunc(arrays[0])
            return whole + np.copysign(np.abs(arrays[0] - whole) >= 0.5, arrays[0])
        case "tgamma":
            return _gamma(arrays[0])
        case "fma":
            return arrays[0] * arrays[1] + arrays[2]
        case "exp10":
            return 10.0 ** arrays[0]
        case _:
            raise NotImplementedError(f"libdevice.{name}")


def _gamma(x: Any) -> Any:
    """From the logarithm of its absolute value; below 0 it changes its sign at each whole number, where it has none."""
    import numpy as np
    import torch

    size = torch.from_numpy(np.ascontiguousarray(x, dtype=np.float64)).lgamma().exp().numpy()
    low = np.floor(x)
    signed = np.where((x < 0) & (low % 2 != 0), -size, size)
    return np.where((x < 0) & (x == low), np.nan, signed).astype(x.dtype)


def _torch_function(name: str) -> Callable[..., Any]:
    import torch

    function: Callable[..., Any] = getattr(torch.special, name, None) or getattr(torch, name)
    return function
