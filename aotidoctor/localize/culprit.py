"""Whose code a stack stands in: a compiled kernel's, an operator's, libtorch's, or none that can be told.

Only what is inside the frame of the compiled model counts, where the stack shows it:

- ``kernel``: a generated function (``cpp_fused_…``), and nothing but libraries that everybody calls inside it.
- ``operator``: a library that is neither PyTorch's nor everybody's, or Python code that the model called. ``proved``
  when the model's call of an operator is seen around it.
- ``libtorch``: nothing but PyTorch's own libraries.
- ``runtime``: the package's own code around its kernels.
- ``unknown``: the stack ends before any of these, or a frame cannot be told to be anybody's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from aotidoctor.model.localization import Frame
from aotidoctor.model.record import record

KERNEL, OPERATOR, LIBTORCH, RUNTIME, UNKNOWN = "kernel", "operator", "libtorch", "runtime", "unknown"
_KERNEL = re.compile(r"^((?:cpp|triton)_\w+)(?:\.\w+)*(?:\(.*)?(?: \[clone .*\])?$")
_MODEL = re.compile(r"\bAOTInductorModel(?:Base|Container)?\b|^AOTInductorModelContainer\w+$")
_DISPATCH = re.compile(
    r"\bOSSProxyExecutor::call_function\b|\bDispatcher::callBoxed\b"
    r"|^aoti_torch_(?:proxy_executor_call_function|call_dispatcher)\b"
)
_TORCH = re.compile(r"/torch/(?:lib/|_C\.)|(?:^|/)lib(?:torch|c10|caffe2|shm|aoti_)[^/]*\.so")
_PYTHON = re.compile(r"(?:^|/)(?:libpython[^/]*\.so[^/]*|python[\d.]*|_ctypes\.[^/]*\.so)$")
# What fails in them was asked for by the frame around.
_SHARED = re.compile(
    r"(?:^|/)(?:lib(?:c|m|dl|rt|pthread|util|stdc\+\+|c\+\+|c\+\+abi|gcc_s|gomp|omp|iomp5|asan|tsan|ubsan|unwind"
    r"|c_malloc_debug|mkl\w{0,40}|openblas\w{0,40}|blas|lapack|numa|tbb\w{0,40}|cuda\w{0,40}|cublas\w{0,40}|cudnn\w{0,40}|nv\w{1,40}|nccl|ffi)"
    r"|ld-linux[^/.]{0,40}|ld-musl[^/.]{0,40})(?:[-.][\w.-]{0,80})?\.so[^/]*$|\[vdso\]|linux-vdso"
)


@record
class Culprit:
    """``frame`` decides; ``kernel`` is the kernel's name, ``library`` the operator's library (None: Python code)."""

    where: str
    frame: Frame | None = None
    kernel: str | None = None
    library: str | None = None
    proved: bool = False


def culprit(frames: Sequence[Frame], package: Collection[str] = ()) -> Culprit:
    """The verdict on one stack, innermost frame first. ``package`` are base names of the package's own files."""
    end = next((index for index, frame in enumerate(frames) if is_model(frame)), None)
    inner = frames[:end]
    own = next((frame for frame in inner if kernel_of(frame) is not None), None)
    foreign = [frame for frame in inner if _is_foreign(frame, package)]
    if own is not None and not any(frame.index < own.index for frame in foreign):
        return Culprit(where=KERNEL, frame=own, kernel=kernel_of(own), proved=True)
    if foreign:
        return _operator(foreign, inner, reached=end is not None)
    if any(_is_unplaced(frame, package) for frame in inner):
        return Culprit(where=UNKNOWN, frame=frames[0])
    torch = next((frame for frame in inner if _TORCH.search(frame.library or "")), None)
    if torch is not None:
        return Culprit(where=LIBTORCH, frame=torch)
    if end is not None:
        return Culprit(where=RUNTIME, frame=frames[end])
    return Culprit(where=UNKNOWN, frame=frames[0] if frames else None)


def _operator(foreign: Sequence[Frame], inner: Sequence[Frame], *, reached: bool) -> Culprit:
    """The library that PyTorch called is the operator's; one that this library called is not.

    Without the model's frame the stack leads out to the interpreter that runs us all: the innermost counts then.
    """
    native = [frame for frame in foreign if not is_python(frame)]
    if not reached:
        first = native[0] if native else None
        return Culprit(where=OPERATOR if first else UNKNOWN, frame=first or foreign[0], library=_library(first))
    outermost = foreign[-1]
    proved = any(_DISPATCH.search(frame.function or "") for frame in inner if frame.index > outermost.index)
    if is_python(outermost):
        named = next((frame for frame in foreign if (frame.file or "").endswith(".py")), outermost)
        return Culprit(where=OPERATOR, frame=named, proved=proved)
    deciding = next(frame for frame in native if frame.library == outermost.library)
    return Culprit(where=OPERATOR, frame=deciding, library=_library(deciding), proved=proved)


def kernel_of(frame: Frame) -> str | None:
    """The kernel that the frame is in, without the suffixes of the compiler (``._omp_fn.0``)."""
    found = _KERNEL.match(frame.function or "")
    return found[1] if found else None


def is_python(frame: Frame) -> bool:
    """The interpreter, or a Python file."""
    return _PYTHON.search(frame.library or "") is not None or (frame.file or "").endswith(".py")


def is_model(frame: Frame) -> bool:
    """The compiled model's own frame, around its kernels and calls."""
    return _MODEL.search(frame.function or "") is not None


def _is_foreign(frame: Frame, package: Collection[str]) -> bool:
    """Code of neither PyTorch, nor the package, nor a library that everybody calls."""
    if frame.library is None:
        return (frame.file or "").endswith(".py") and not (frame.file or "").startswith(("torch/", "aotidoctor/"))
    mine = base(frame.library) in package or frame.library.endswith(".wrapper.so")
    return not mine and not _TORCH.search(frame.library) and not _SHARED.search(frame.library)


def _is_unplaced(frame: Frame, package: Collection[str]) -> bool:
    """A source file of which nobody says what library it went into."""
    name = base(frame.file or "")
    return frame.library is None and name.endswith((".cpp", ".cc", ".cxx", ".c", ".cu")) and name not in package


def _library(frame: Frame | None) -> str | None:
    return base(frame.library) if frame is not None and frame.library is not None else None


def base(path: str) -> str:
    """The last part of a path."""
    return path.rpartition("/")[2]
