"""Hooks on the calls that a loaded package makes: to its own kernels and to PyTorch's C shims.

A package calls ``cpp_fused_*`` and ``aoti_torch_*`` through slots of its global offset table, which the dynamic linker
filled in. Pointing such a slot at a stub of our own shows every call, with nothing compiled again and nothing about
the package changed but that slot. The stub writes the call down (``trace``) or calls a Python function (``watch``), and
then jumps to where the slot pointed: no frame is added, so exceptions pass as if it were not there.

x86-64 and aarch64 Linux; elsewhere, and for packages without such slots, ``HooksUnavailableError`` says why.
"""

from __future__ import annotations

from aotidoctor.worker.hooks.callbacks import Call, watch
from aotidoctor.worker.hooks.slots import HooksUnavailableError
from aotidoctor.worker.hooks.trace import start_trace

__all__ = ["Call", "HooksUnavailableError", "start_trace", "watch"]
