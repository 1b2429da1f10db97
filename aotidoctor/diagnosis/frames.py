"""The frames of a stack that tell two failures apart: named alike on every machine, without those of frameworks.

After Socorro's lists. *Sentinel* frames are the machinery of failing (``abort``, ``__cxa_throw``, a failed check):
what lies inside them says how it was reported, not what went wrong. *Irrelevant* frames are in every stack: PyTorch's,
Python's, OpenMP's and those of the C library. *Prefix* frames (``memcpy``, ``free``) are kept, and say nothing without
the next one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aotidoctor.model.localization import Frame

MOST = 3
"""Frames in a signature: more of them tell callers apart, not failures."""

_SENTINEL = re.compile(
    r"^(?:(?:__GI_)?_*(?:abort|raise|gsignal|pthread_kill\w*|assert_fail\w*|fortify_fail\w*|chk_fail|stack_chk_fail)"
    r"|__libc_message\w*|malloc_printerr|__cxa_(?:throw|rethrow|call_terminate)|__gxx_personality\w*|_Unwind_\w+"
    r"|__cxxabiv1::\w+|__gnu_cxx::__verbose_terminate_handler|std::(?:terminate|__throw_\w+)"
    r"|c10::(?:detail::torch\w*Fail\w*|Error::Error|get_backtrace|\(anonymous namespace\)::.*[Bb]acktrace.*)"
    r"|<signal handler called>)"
)
_PREFIX = re.compile(
    r"^_*(?:GI_|libc_|int_)*(?P<name>mem(?:cpy|move|set|cmp|chr)|str(?:len|cmp|cpy|ncpy|dup)|free|malloc|calloc|realloc)"
    r"(?:_(?:avx|sse|evex|erms|unaligned|aligned|ssse|generic|vec|chk|consolidate|default)\w*)?$"
)
_IRRELEVANT = re.compile(
    r"^(?:\?\?|<unknown>|_start|main|__libc_start\w*|start_thread|clone\d?|__clone\w*|__restore_rt"
    r"|(?:std|c10|at|torch|caffe2|pybind11|__gnu_cxx|__cxxabiv1)::|void (?:std|c10|at|torch|pybind11)::"
    r"|operator (?:new|delete)|__cxa_|_?Py[A-Z_]\w*|_?Py\w+_|cfunction_|method_vectorcall|slot_tp|type_call|object_"
    r"|vectorcall|builtin_|run_mod|run_eval|pymain|GOMP_|gomp_|omp_|__kmp|libomp|_dl_|dl_|__dl|AOTInductorModel\w*"
    r"|aoti_torch_\w*|nanosleep|__nanosleep|clock_nanosleep|__GI___clock_nanosleep|poll|__poll|futex|__futex\w*|pthread_)"
)
_FRAMEWORK_FILE = re.compile(
    r"/torch/|/aotidoctor/|/lib/python3[\d.]*/(?!(?:site|dist)-packages/)|<frozen |/importlib/|"
    r"/(?:libc|libpthread|libpython|libstdc\+\+|libgcc_s|libgomp|ld-linux|libcudart|libcuda)[-.\w]*\.so|/libc10|/libtorch"
)
_PYTHON = re.compile(r'^ *File "(?P<file>[^"]+)", line \d+, in (?P<function>.+)$', re.MULTILINE)
_PLACED = re.compile(r"(?P<function>\S+) \((?=[^()/.]*[/.])(?P<file>[^()]*)\)$")
_LINE = re.compile(r":\d+$")
_CLONE = re.compile(r"(?:\.(?:isra|constprop|part|cold|lto_priv|_omp_fn|omp_fn|clone)(?:\.\d+)*)+|\[abi:\w+\]|@plt")
_LAMBDA = re.compile(r"\{lambda\([^{}]*\)#\d+\}|<lambda[^<>]*>|\{unnamed type#\d+\}|\$_\d+")
BUILD = re.compile(r"\bc[0-9a-z]{40,}\b")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_KERNEL = re.compile(r"\b((?:cpp|triton)_\w*?)_\d+\b")


def plain_kernel(name: str) -> str:
    """``cpp_fused_embedding_mul_0`` without its number, which is its place among the kernels of this one build."""
    return _KERNEL.sub(r"\1", name)


def normal_function(name: str) -> str:
    """A function's name without arguments, template arguments and what a build or an address adds."""
    text = re.sub(r" \[clone [^\]]*\]", "", name).replace("(anonymous namespace)::", "")
    text = _ADDRESS.sub("", BUILD.sub("", _LAMBDA.sub("{lambda}", _CLONE.sub("", text))))
    text = _without_nested(_without_nested(text, "(", ")"), "<", ">")
    return plain_kernel(text.removesuffix(" const").strip().split(" ")[-1])


def _without_nested(text: str, opening: str, closing: str) -> str:
    """``text`` without what stands between a pair, however deep; ``operator<`` and the like have no partner."""
    if text.count(opening) != text.count(closing):
        return text
    pattern = re.compile(rf"{re.escape(opening)}[^{re.escape(opening + closing)}]*{re.escape(closing)}")
    while (shorter := pattern.sub("", text)) != text:
        text = shorter
    return text


def top_frames(frames: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """At most three names out of pairs of function and file or library, innermost first."""
    last = max((at for at, (function, _) in enumerate(frames) if _SENTINEL.match(function)), default=-1)
    kept: list[str] = []
    own = 0
    for function, place in frames[last + 1 :]:
        prefix = _PREFIX.match(function)
        if prefix is not None:
            kept = kept or [prefix["name"]]
        elif function and not (_IRRELEVANT.match(function) or _FRAMEWORK_FILE.search(place)):
            name = normal_function(function)
            # Recursion would fill all places with one name.
            if name and kept[-1:] != [name]:
                own += 1
                kept.append(name)
        if own == MOST:
            break
    return tuple(kept)


def native_frames(frames: Iterable[Frame]) -> tuple[str, ...]:
    """Those of a native stack, innermost first."""
    return top_frames([(one.function or "", one.file or one.library or "") for one in frames])


def python_frames(traceback: str) -> tuple[str, ...]:
    """Those of a Python traceback, whose innermost frame comes last; of chained ones the last, which was raised."""
    found = list(_PYTHON.finditer(traceback.rpartition("Traceback (most recent call last)")[2]))
    return top_frames([(one["function"], one["file"]) for one in reversed(found)])


def logged_frames(frames: Sequence[str]) -> tuple[str, ...]:
    """Those of an event of a log: a symbol, ``file:line`` or ``function (file:line)``; lines say nothing elsewhere."""
    pairs = []
    for one in frames:
        placed = _PLACED.match(one)
        bare = _LINE.sub("", one)
        pairs.append((placed["function"], _LINE.sub("", placed["file"])) if placed else (bare.rpartition("/")[2], bare))
    return top_frames(pairs)
