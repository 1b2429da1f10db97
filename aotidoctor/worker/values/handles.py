"""Tensor handles of the C interface as tensors of Python, without a copy.

An ``AtenTensorHandle`` is the address of an ``at::Tensor``. A second handle to the same tensor is made and given to
Python, which then owns it; the first one stays as it was.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

_POINTER = ctypes.sizeof(ctypes.c_void_p)


@cache
def _second_handle() -> Any:
    """The shim that makes another handle of a tensor; 2.6 has it under the second name only."""
    import torch

    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    names = ("aoti_torch_new_tensor_handle", "aoti_torch_assign_tensors_out")
    shim = next(library[name] for name in names if hasattr(library, name))
    shim.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    return shim


@cache
def _capsule() -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new


def tensor_of(handle: int) -> Any:
    """The tensor of ``handle``; None for a null handle or one that cannot be followed (undefined tensor)."""
    from torch._C import _aoti

    if handle == 0:
        return None
    copy = ctypes.c_void_p()
    if _second_handle()(handle, ctypes.byref(copy)) != 0 or not copy.value:
        return None
    try:
        return _aoti.alloc_tensor_by_stealing_from_void_ptr(_capsule()(copy.value, None, None))
    except RuntimeError:
        return None


def handle_at(address: int) -> int:
    """The handle stored at ``address``; 0 for a null address."""
    return ctypes.c_uint64.from_address(address).value if address else 0


def handles_at(address: int, count: int) -> list[int]:
    """``count`` handles stored one after the other."""
    return [handle_at(address + index * _POINTER) for index in range(count)] if address else []
