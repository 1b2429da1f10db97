"""What a stamp needs of torch, in the process that is about to compile: the program as a file, and versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def save_program(program: Any, path: Path) -> None:
    """``torch.export.save``; it may warn of what it leaves out."""
    import warnings

    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(program, path)


def torch_version() -> str:
    """The version of torch, with its build."""
    import torch

    return str(torch.__version__)


def compiler_version() -> str | None:
    """The C++ compiler that AOTInductor would use, by the first line of its version; None where it does not say."""
    try:
        from torch._inductor.codecache import get_cpp_compiler  # type: ignore[attr-defined,unused-ignore]
        from torch._inductor.cpp_builder import get_compiler_version_info

        return str(get_compiler_version_info(get_cpp_compiler())).strip().splitlines()[0][:200]
    except Exception:
        return None
