"""Healthy calls, faults by input and faults in the text of kernels, each with what must be found, by construction.

A fault by input names the kind of finding, and what of it follows from the input: the element (``offset``) or the
buffer. A fault in a kernel is an edit of one line of its Triton text; the finding must name that kernel and that line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from models import MODELS, made

ACCESS = ("out-of-bounds", "misaligned")


@dataclass(frozen=True, kw_only=True)
class Case:
    """``kinds``: one of these must be found first; None for a healthy call. ``facts`` must hold of that finding."""

    id: str
    model: str
    inputs: Callable[[tuple[Any, ...]], tuple[Any, ...]] = lambda args: args
    edit: Callable[[str], tuple[str, int]] | None = None
    kinds: tuple[str, ...] | None = None
    facts: dict[str, Any] | None = None
    kernel: str | None = None


def resized(args, dyn, factor):
    """The sample with other dynamic sizes: rows repeated, so that indices stay good."""
    changed = []
    for given, dims in zip(args, dyn or (None,) * len(args), strict=True):
        tensor = given
        for dim in dims or {}:
            rows = torch.arange(tensor.shape[dim] * factor // 2 + 1) % tensor.shape[dim]
            tensor = tensor.index_select(dim, rows)
        changed.append(tensor)
    return tuple(changed)


def healthy() -> list[Case]:
    """Each model on its sample, and with about half and three times as many rows."""
    cases = []
    for name, (_, _, dyn) in MODELS.items():
        cases.append(Case(id=f"{name}-sample", model=name))
        if dyn:
            cases += [
                Case(id=f"{name}-{word}", model=name, inputs=lambda args, d=dyn, f=factor: resized(args, d, f))
                for word, factor in (("less", 1), ("more", 5))
            ]
    return cases


def put(at, index, value):
    """Argument ``at`` with one element changed."""

    def change(args):
        tensor = args[at].clone()
        tensor[index] = value
        return (*args[:at], tensor, *args[at + 1 :])

    return change


def cast(at, dtype):
    return lambda args: (*args[:at], args[at].to(dtype), *args[at + 1 :])


def cut(at, dim, rows):
    """Argument ``at`` too short: the sizes of the others are believed."""
    return lambda args: (*args[:at], args[at].narrow(dim, 0, rows).clone(), *args[at + 1 :])


# model, argument, an index, the size of the table, how many lanes read each index.
INDEXED = (
    ("embedding", 0, (2, 3), 100, 24),
    ("embedding_linear", 0, (4,), 100, 16),
    ("gather", 1, (3, 2), 40, 1),
    ("index_select", 1, (5,), 50, 1),
    ("scatter", 1, (2, 1), 20, 1),
    ("scatter_add", 1, (9,), 30, 4),
    ("index_put", 1, (7,), 30, 4),
    ("positions", 0, (1, 5), 50, 1),
    ("positions", 1, (2,), 30, 12),
)
# model, argument, dtype: narrower than the kernel reads.
NARROW = (
    ("embedding", 0, torch.int32), ("gather", 1, torch.int32), ("index_select", 1, torch.int32),
    ("scatter", 1, torch.int32), ("index_put", 1, torch.int32), ("scatter_add", 1, torch.int32),
    ("positions", 0, torch.int32), ("pointwise", 0, torch.float16), ("pointwise", 1, torch.float16),
    ("softmax", 0, torch.float16), ("cat", 0, torch.float16), ("cat", 1, torch.bfloat16), ("mutate", 1, torch.float16),
    ("layernorm", 0, torch.float16), ("pad", 0, torch.float16), ("two_sizes", 0, torch.float16),
    ("half", 0, torch.int8), ("cumsum", 0, torch.float16), ("upsample", 0, torch.float16), ("pool", 0, torch.bfloat16),
)  # fmt: skip
# model, argument, dim, rows: fewer than another input makes the wrapper believe.
SHORT = (
    ("pointwise", 1, 0, 7), ("pointwise", 1, 1, 30), ("cat", 1, 0, 5), ("cat", 1, 1, 18), ("mutate", 1, 0, 5),
    ("gather", 1, 0, 6), ("scatter", 2, 0, 5), ("scatter", 1, 0, 5), ("bfloat16", 1, 0, 3), ("scatter_add", 2, 0, 60),
    ("index_put", 2, 0, 8), ("embedding_linear", 1, 0, 4), ("positions", 1, 0, 3), ("softmax", 0, 1, 60),
    ("layernorm", 0, 2, 40), ("pad", 0, 3, 8), ("two_sizes", 1, 1, 9), ("half", 0, 1, 39), ("int8", 1, 0, 30),
    ("mean_cols", 0, 1, 20), ("static_pointwise", 0, 0, 900), ("split_sum", 0, 0, 200000), ("upsample", 0, 3, 8),
    ("pool", 0, 2, 10), ("index_select", 0, 0, 20),
)  # fmt: skip


def by_input() -> list[Case]:
    """Ids out of range, below it, of another dtype; inputs that are too short for the sizes of another."""
    cases = []
    for name, at, index, size, lanes in INDEXED:
        for word, value in (("beyond", size), ("far", size + 10**6), ("negative", -size - 1)):
            cases.append(
                Case(
                    id=f"{name}-{at}-{word}",
                    model=name,
                    inputs=put(at, index, value),
                    kinds=("device-assert", *ACCESS, "operator-refused"),
                    facts={"element": index, "argument": at, "lanes": lanes},
                )
            )
    cases += [
        Case(
            id=f"{name}-{at}-{str(dtype)[6:]}", model=name, inputs=cast(at, dtype),
            kinds=("device-assert", *ACCESS, "operator-refused"), facts={"input": at},
        )
        for name, at, dtype in NARROW
    ]  # fmt: skip
    cases += [
        Case(id=f"{name}-{at}-short{dim}", model=name, inputs=cut(at, dim, rows), kinds=ACCESS, facts={"input": at})
        for name, at, dim, rows in SHORT
    ]
    return cases


def edits(wrapper: str, name: str) -> list[Case]:
    """Faults in the kernels of one wrapper: masks taken away, offsets and strides wrong, types narrowed."""
    cases: list[Case] = []
    for start, kernel in _kernels(wrapper):
        lines = kernel.split("\n")
        for number, line in enumerate(lines):
            for word, changed, kinds in _wrong(line, lines):
                cases.append(
                    Case(
                        id=f"{name}-{start}-{number}-{word}",
                        model=name,
                        edit=_replace(start, number, changed),
                        kinds=kinds,
                        facts={"word": word},
                        kernel=re.findall(r"async_compile\.triton\('(\w+)'", kernel)[0],
                    )
                )
    return cases


def hostile() -> list[Case]:
    """Wrappers that nobody compiled: what cannot be carried out is said, and nothing else is."""
    texts = {
        "endless": (
            "xoffset = tl.program_id(0) * XBLOCK",
            "xoffset = tl.program_id(0) * XBLOCK; [0 for _ in iter(int, 1)]",
        ),
        "loop": ("xmask = xindex < xnumel", "while True: xmask = xindex < xnumel"),
        "import": ("import triton.language as tl", "import os as tl"),
        "syntax": ("xmask = xindex < xnumel", "xmask = = xindex"),
        "grid": ("uint32_t grid_0 = ((xnumel + (256 - 1)) / (256));", "uint32_t grid_0 = 2147483647L*xnumel;"),
        "size": ("const int64_t int_array_0[] = {s", "const int64_t int_array_0[] = {1000000000000L*s"),
        "negative": ("const int64_t int_array_0[] = {s", "const int64_t int_array_0[] = {-1L*s"),
        "zero": ("/ (256));", "/ (0));"),
    }
    return [
        Case(id=f"hostile-{word}", model="pointwise", edit=lambda text, p=pair: (text.replace(*p), 0), kinds=())
        for word, pair in texts.items()
    ]


_ACCESS = re.compile(r"(tl\.(?:load|store|atomic_add))\((\w+) \+ \((.*?)\), ")


def _wrong(line: str, lines: list[str]) -> list[tuple[str, str, tuple[str, ...]]]:
    found = _ACCESS.search(line)
    if found is None:
        return []
    made: list[tuple[str, str, tuple[str, ...]]] = []
    plain = "xoffset = tl.program_id(0) * XBLOCK" in "\n".join(lines) and not any("_BLOCK" in one for one in lines)
    # One element a lane, in order.
    direct = plain and any(one.strip() == f"{found[3]} = xindex" for one in lines)
    if direct and line.rstrip().endswith(", xmask)"):
        # The last block of the grid is not full: the lanes beyond it go astray.
        made.append(("unmasked", line.replace(", xmask)", ", None)"), ("out-of-bounds",)))
    if found[1] == "tl.store" and direct:
        # Every program writes to the first elements.
        made.append(("everywhere", line.replace(f"({found[3]})", f"({found[3]} % 8)"), ("race",)))
    far = line.replace(f"{found[2]} + ({found[3]}), ", f"{found[2]} + (1000000000 + {found[3]}), ", 1)
    before = line.replace(f"{found[2]} + ({found[3]}), ", f"{found[2]} + ({found[3]} - 1000000), ", 1)
    return [*made, ("shifted", far, ("out-of-bounds",)), ("before", before, ("out-of-bounds",))]


def _kernels(wrapper: str) -> list[tuple[int, str]]:
    """``(line, text)`` of the comment of each kernel."""
    return [
        (wrapper.count("\n", 0, found.start()) + 1, found[0])
        for found in re.finditer(r"async_compile\.triton\(.*?''', device_str='cuda'\)", wrapper, re.DOTALL)
    ]


def _replace(start: int, number: int, changed: str) -> Callable[[str], tuple[str, int]]:
    def edit(wrapper: str) -> tuple[str, int]:
        lines = wrapper.split("\n")
        at = start - 1 + number
        assert lines[at] != changed
        lines[at] = changed
        return "\n".join(lines), at + 1

    return edit


def sample(case: Case):
    """The model, and the inputs of the case."""
    model, args = made(case.model)
    return model, case.inputs(args)
