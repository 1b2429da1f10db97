"""The operators and source lines behind a call: provenance in the package, comments above the call, kernel names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from aotidoctor.localize.blame.failure import DIVISION, INDEX
from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.contract import KernelCall

# Operators that take an index from data, or divide, as they stand in the names of kernels; the longest first.
_INDEXING = (
    "index_put_with_sort_quantized", "_embedding_bag_forward_only", "_unsafe_masked_index_put_accumulate",
    "_unsafe_masked_index", "_unsafe_index_put", "_unsafe_index", "nll_loss2d_forward", "nll_loss_forward",
    "embedding_dense_backward", "embedding_bag", "embedding", "scatter_reduce", "scatter_add", "scatter",
    "index_reduce", "index_select", "index_copy", "index_fill", "index_add", "index_put", "index", "take_along_dim",
    "take", "gather", "grid_sampler_2d", "grid_sampler_3d", "max_unpool2d", "max_unpool3d", "select_scatter", "select",
)  # fmt: skip
_DIVIDING = ("floor_divide", "remainder", "fmod", "div", "floordiv", "mod")
_OF_KIND: Mapping[str, tuple[str, ...]] = {INDEX: _INDEXING, DIVISION: _DIVIDING}
# Embeddings take no negative index; where one is counted from the end, it was another operator.
NEVER_WRAP = ("embedding", "embedding_bag", "_embedding_bag_forward_only", "gather")
# What divides with the functions of generated code.
NOT_BY: Mapping[str, tuple[str, ...]] = {
    "remainder_integral": ("floor_divide", "div", "floordiv"),
    "floor_divide_integral": ("remainder", "fmod", "mod"),
    "mod": ("floor_divide", "div", "floordiv"),
}
_FUSED = re.compile(r"^(?:cpp|triton(?:_[a-z]+)?)_fused_(.+)_\d+$")
_FRAME = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+), in [^\n]*(?:\n +(?!File)(?P<code>[^\n]*))?')
_LIBRARY = re.compile(r"/(?:site|dist)-packages/torch/|<eval_with_key>|/torch/nn/")
_MOST_LINES = 3


def operators(
    call: KernelCall, kind: str, information: Mapping[str, tuple[str, ...]], unlikely: Sequence[str] = ()
) -> tuple[str, ...]:
    """ATen names that can be meant: those of the call which take an index, or divide.

    ``unlikely`` are names that something about the check speaks against: they are only given if there is no other.
    """
    found = _named(call, _OF_KIND[kind], information)
    return tuple(name for name in found if name.removeprefix("aten.") not in unlikely) or found


def _named(call: KernelCall, wanted: Sequence[str], information: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    nodes = [re.sub(r"_\d+$", "", node) for node in information.get("post_grad_nodes", ())]
    for names in ([origin.removeprefix("aten.") for origin in call.origins], nodes):
        chosen = [name for name in names if name.rstrip("_") in wanted]
        if chosen:
            return tuple(dict.fromkeys(f"aten.{name}" for name in chosen))
    fused = _FUSED.match(call.name)
    return () if fused is None else tuple(f"aten.{name}" for name in _words(fused[1], wanted))


def _words(text: str, wanted: Sequence[str]) -> list[str]:
    """``index_put`` of ``add_index_put_remainder``, in the order of the text."""
    found: list[tuple[int, str]] = []
    for name in wanted:
        mark = re.compile(rf"(?<![a-zA-Z0-9]){re.escape(name)}(?![a-zA-Z0-9])")
        found += [(one.start(), name) for one in mark.finditer(text)]
        text = mark.sub(lambda one: "#" * len(one[0]), text)
    return list(dict.fromkeys(name for _, name in sorted(found)))


def information_of(model: ModelEntry | None, call: KernelCall) -> Mapping[str, tuple[str, ...]]:
    """What ``kernel_information.json`` says of the kernel; nothing where it speaks of several calls of that name."""
    if model is None:
        return {}
    found = [facts for key, facts in model.kernel_information.items() if key.rpartition(":")[0] == call.name]
    return found[0] if len(found) == 1 else {}


def source_lines(information: Mapping[str, tuple[str, ...]], chosen: Sequence[str]) -> tuple[str, ...]:
    """``model.py:12``: the user's line, of the operator where the stack traces tell it apart, else all of them."""
    traces = information.get("stack_traces", ())
    words = [re.escape(name.removeprefix("aten.").strip("_")) for name in chosen]
    telling = [
        trace for trace in traces if words and re.search(rf"\b(?:{'|'.join(words)})\b", " ".join(_code_of(trace)))
    ]
    lines = dict.fromkeys(line for trace in (telling or traces) if (line := _user_line(trace)) is not None)
    return tuple(lines) if len(lines) <= _MOST_LINES else ()


def _code_of(trace: str) -> list[str]:
    return [found["code"] or "" for found in _FRAME.finditer(trace)]


def _user_line(trace: str) -> str | None:
    """The innermost line outside of torch itself."""
    frames = [found for found in _FRAME.finditer(trace) if _LIBRARY.search(found["file"]) is None]
    return f"{frames[-1]['file'].rpartition('/')[2]}:{frames[-1]['line']}" if frames else None
