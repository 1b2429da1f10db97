"""The installed distributions that PyTorch's ``collect_env`` lists, read from the names of their folders."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

# Substrings of ``name==version``, as torch.utils.collect_env has them.
_WANTED = (
    "torch", "numpy", "triton", "optree", "mypy", "flake8", "onnx", "cuda-cudart", "cuda-cupti", "cuda-libraries",
    "cuda-opencl", "cuda-nvrtc", "cuda-runtime", "cublas", "cudnn", "cufft", "curand", "cusolver", "cusparse", "nccl",
    "nvjitlink", "nvtx", "mkl", "intel-openmp", "tbb", "dpcpp-cpp-rt", "intel-sycl-rt", "oneccl",
)  # fmt: skip
_METADATA = re.compile(r"(?P<name>.{1,100}?)-(?P<version>\d[^-]*)(?:-.*)?\.(?:dist|egg)-info")


def relevant_packages(search: Iterable[str]) -> dict[str, str]:
    """Name to version along ``search`` (``sys.path``), the first of each name; unreadable folders are left out."""
    found: dict[str, str] = {}
    for folder in search:
        for name, version in _listed(folder):
            if any(word in f"{name}=={version}" for word in _WANTED):
                found.setdefault(name, version)
    return dict(sorted(found.items()))


def _listed(folder: str) -> list[tuple[str, str]]:
    try:
        entries = os.listdir(folder or ".")  # noqa: PTH208 - names are enough, and there are thousands
    except OSError:
        return []
    matches = (_METADATA.fullmatch(entry) for entry in entries if entry.endswith("-info"))
    return [(match["name"].replace("_", "-"), match["version"]) for match in matches if match is not None]
