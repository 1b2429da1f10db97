"""Can a program be compiled for the GPU of this host? It takes more than for a CPU, and what is missing has a name."""

from __future__ import annotations

from collections.abc import Callable

from aotidoctor.model.case import Case
from aotidoctor.model.host import Host

_COMPILERS = ("CXX", "g++", "clang++")
_TRITON = ("triton", "pytorch-triton")
_NEEDS: tuple[tuple[Callable[[Host], bool], str], ...] = (
    (lambda host: bool(host.gpus), "a GPU (the NVIDIA driver lists none)"),
    (lambda host: host.torch is not None and host.torch.cuda is not None, "a PyTorch with CUDA"),
    (lambda host: any(name in host.packages for name in _TRITON), "Triton (pip install triton)"),
    (lambda host: bool(host.tools.get("ptxas")), "ptxas (it comes with Triton's wheel and with the CUDA toolkit)"),
    (
        lambda host: bool(host.tools.get("cuda.h")),
        "cuda.h of the CUDA toolkit (conda install -c nvidia cuda-toolkit; CUDA_HOME names its folder)",
    ),
    (
        lambda host: any(host.tools.get(name) for name in _COMPILERS),
        "a C++ compiler (apt-get install g++, or conda install cxx-compiler)",
    ),
)


def lacking(case: Case) -> str | None:
    """What is missing here, each thing by name; None where nothing is."""
    missing = [words for there, words in _NEEDS if not there(case.host)]
    return f"compiling for CUDA is not possible on this host, which lacks: {', '.join(missing)}" if missing else None
