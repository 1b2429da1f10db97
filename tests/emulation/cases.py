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
from oracle import Access, access_of

ACCESS = ("out-of-bounds", "misaligned")


@dataclass(frozen=True, kw_only=True)
class Case:
    """``kinds``: one of these must be found first; None where the addresses are right.

    ``facts`` say what was done, ``causes`` what the diagnosis may be called; empty where there is nothing to diagnose.
    """

    id: str
    model: str
    inputs: Callable[[tuple[Any, ...]], tuple[Any, ...]] = lambda args: args
    edit: Callable[[str], tuple[str, int]] | None = None
    kinds: tuple[str, ...] | None = None
    facts: dict[str, Any] | None = None
    kernel: str | None = None
    causes: tuple[str, ...] = ()


def resized(args, dyn, factor):
    """The sample with other dynamic sizes: rows repeated, so that indices stay good."""
    changed = []
    for given, dims in zip(args, dyn or (None,) * len(args), strict=True):
        tensor = given
        for dim in dims or {}:
            # 512 is the least of the upper bounds.
            rows = torch.arange(min(tensor.shape[dim] * factor // 2 + 1, 512)) % tensor.shape[dim]
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
    cases += [Case(id=f"{name}-offset", model=name, inputs=shifted) for name in OFFSETS]
    return cases


# Inputs that begin in the midst of another tensor, at no round address.
OFFSETS = ("pointwise", "softmax", "embedding", "gather", "half", "int8", "layernorm", "mutate")


def shifted(args):
    """The same values, in views that begin at the second element of their memory."""
    return tuple(torch.cat([one.reshape(-1)[:1], one.reshape(-1)])[1:].view(one.shape) for one in args)


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
                    kinds=("device-assert",),
                    facts={"element": index, "argument": at, "input": at, "lanes": lanes},
                    causes=("cuda-device-assert", "index-out-of-range"),
                )
            )
    cases += [
        Case(
            id=f"{name}-{at}-{str(dtype)[6:]}", model=name, inputs=cast(at, dtype),
            kinds=("out-of-bounds",), facts={"input": at}, causes=("input-dtype",),
        )
        for name, at, dtype in NARROW
    ]  # fmt: skip
    cases += [
        Case(
            id=f"{name}-{at}-short{dim}", model=name, inputs=cut(at, dim, rows), kinds=("out-of-bounds",),
            facts={"input": at}, causes=("input-shape-disagree" if _is_dynamic(name, at, dim) else "input-shape",),
        )
        for name, at, dim, rows in SHORT
    ]  # fmt: skip
    cases += [
        Case(id=f"{name}-{at}-transposed", model=name, inputs=transposed(at), causes=("input-stride",))
        for name, at in TRANSPOSED
    ]
    cases += [Case(id=f"{name}-beyond", model=name, inputs=rows_of(1025), causes=("input-range",)) for name in RANGED]
    return cases


def _is_dynamic(name, at, dim):
    dyn = MODELS[name][2]
    return dyn is not None and dyn[at] is not None and dim in dyn[at]


# Every access is inside all the same: only the contract tells that the numbers are wrong.
TRANSPOSED = (
    ("pointwise", 0), ("pointwise", 1), ("softmax", 0), ("gather", 0), ("cat", 1), ("two_sizes", 0), ("half", 0),
    ("bmm", 1), ("cumsum", 0), ("mean_cols", 0), ("layernorm", 0), ("int8", 0),
)  # fmt: skip
RANGED = ("pointwise", "softmax", "cat", "half", "embedding", "bmm", "layernorm", "cumsum", "pool", "upsample")


def transposed(at):
    """Argument ``at`` with its last two dims laid out the other way round."""

    def change(args):
        tensor = args[at].transpose(-1, -2).contiguous().transpose(-1, -2)
        return (*args[:at], tensor, *args[at + 1 :])

    return change


def rows_of(rows):
    """Every argument with that many rows."""
    return lambda args: tuple(one[torch.arange(rows) % one.shape[0]] for one in args)


def edits(wrapper: str, name: str) -> list[Case]:
    """Faults in the kernels of one wrapper: masks taken away, offsets and strides wrong, types narrowed."""
    cases: list[Case] = []
    for start, kernel in kernels_of(wrapper):
        lines = kernel.split("\n")
        for number, line in enumerate(lines):
            for word, changed, kinds in _wrong(line, lines):
                cases.append(
                    Case(
                        id=f"{name}-{start}-{number}-{word}",
                        model=name,
                        edit=_replace(start, number, changed),
                        kinds=kinds,
                        facts={"word": word, "start": start, "number": number},
                        kernel=re.findall(r"async_compile\.triton\('(\w+)'", kernel)[0],
                        causes=CAUSES[word],
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
        "module": (
            "import triton.language as tl",
            "import triton.language as tl; from triton.language.core import builtins as os",
        ),
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


# So far from the first element that no allocation of these models reaches it.
FAR, BEFORE, STEP = 1_000_000_000, 1_000_000, 10_000_019
# An index times this does not fit 32 bits from index 22 on.
WIDE = 100_000_000


CAUSES = {
    **dict.fromkeys(("unmasked", "shifted", "before", "stride", "one"), ("cuda-illegal-access",)),
    "everywhere": ("cuda-race",),
    "narrow": ("codegen-bug",),
    # Which of two equal indices stays may be what the model means: a remark.
    "plain": (),
}


def _wrong(line: str, lines: list[str]) -> list[tuple[str, str, tuple[str, ...]]]:
    """``(word, changed line, kinds of findings)``: what each does to which lanes is in ``truth``."""
    access = access_of(line)
    if access is None:
        return []
    pointer = re.search(rf"\b{access.argument} \+ ", line)
    index = _index(line, pointer.end())
    made: list[tuple[str, str, tuple[str, ...]]] = []
    outside = ("out-of-bounds",)

    def changed(text):
        return line[: pointer.end()] + text + line[pointer.end() + len(index) :]

    plain = any(one.strip() == "xoffset = tl.program_id(0) * XBLOCK" for one in lines)
    plain = plain and not any("_BLOCK" in one for one in lines)
    # One element a lane, in order.
    direct = plain and any(one.strip() == f"{access.index} = xindex" for one in lines)
    if direct and access.mask == "xmask":
        # The last block of the grid is not full: the lanes beyond it go astray.
        made.append(("unmasked", re.sub(r", xmask\b", ", None", line, count=1), outside))
    if access.what == "store" and direct:
        # Every program writes to the first elements.
        made.append(("everywhere", changed(f"({access.index} % 8)"), ("race",)))
    if access.what == "atomic_add":
        made.append(
            (
                "plain",
                re.sub(r", sem='relaxed'", "", line.replace("tl.atomic_add", "tl.store")),
                ("duplicate-index", "race"),
            )
        )
    made.append(("shifted", changed(f"({FAR} + {index})"), outside))
    made.append(("before", changed(f"({index} - {BEFORE})"), outside))
    stepped = re.sub(r"\b(\d+)\*([xyr]\d?_?\d)\b", rf"{STEP}*\2", index, count=1)
    if stepped != index:
        made.append(("stride", changed(stepped), outside))
    # As many lanes as there are programs: too few for the faults below.
    few = "num_programs" in line
    if re.fullmatch(r"\(?[\w\s+*]+\)?", index) and "tmp" not in index and "ks" not in index and not few:
        # Sizes of 64 bits make indices of 64 bits.
        if not any("'i64'" in one for one in lines):
            made.append(("narrow", changed(f"(({index}) * {WIDE} // {WIDE})"), ("out-of-bounds", "int32-overflow")))
        made.append(("one", changed(f"({index} + tl.where({_chosen(lines, access)}, {FAR}, 0))"), outside))
    return made


def _chosen(lines: list[str], access: Access) -> str:
    """One lane: the second of each axis that the access has."""
    names = ["yindex", "xindex", *(["r0_index"] if "r0_mask" in (access.mask or "") else [])]
    axes = [axis for axis in names if any(one.strip().startswith(f"{axis} = ") for one in lines)]
    own = [one.strip().split(" = ")[0] for one in lines if "tl.program_id(0) * BLOCK" in one]
    return " & ".join(f"({axis} == 1)" for axis in axes or own)


def _index(line: str, start: int) -> str:
    """The text of an index that begins there, up to the comma behind it."""
    depth = 0
    for at in range(start, len(line)):
        depth += line[at] in "(["
        depth -= line[at] in ")]"
        if depth < 0 or (line[at] == "," and depth == 0):
            return line[start:at]
    return line[start:]


def kernels_of(wrapper: str) -> list[tuple[int, str]]:
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
