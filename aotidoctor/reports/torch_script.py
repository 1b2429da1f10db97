"""A short script that makes the same call with torch alone, from metadata: inputs are made up, shapes and types kept.

It is written, never run: ``aotidoctor repro`` builds one that is certified. Names and values of others are written as
Python literals, so that nothing in them can become code.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import TypeVar

from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.contract import Dim, LeafSpec
from aotidoctor.model.inputs import LeafValue, PlainValue, TensorDesc
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.model.tree import MAPPINGS, Container, Leaf, Tree
from aotidoctor.reports.contract_view import is_ordinary
from aotidoctor.reports.text import one_line

T = TypeVar("T")

# Leaves of a call; a longer script helps nobody.
LEAVES = 120
_PLAIN = frozenset(("int", "float", "bool", "str", "None"))
_DTYPES = frozenset((
    "float64", "float32", "float16", "bfloat16", "complex128", "complex64", "int64", "int32", "int16", "int8",
    "uint8", "uint16", "uint32", "uint64", "bool", "float8_e4m3fn", "float8_e5m2",
))  # fmt: skip
_FLOATS = frozenset(("float64", "float32", "float16", "bfloat16", "complex128", "complex64"))
_DEVICES = ("cpu", "cuda", "xpu", "mps")


@record
class Script:
    """``text`` is Python; ``notes`` say what it leaves open."""

    text: str
    notes: tuple[str, ...]


def script(report: Report) -> Script | None:
    """The script; None where there is nothing to load or its call is not known."""
    case = report.case
    load = _load(report)
    if load is None:
        return None
    call = _given(report) or _expected(report)
    if call is None:
        return None
    arguments, notes = call
    head = ["import torch", "import torch._inductor", ""]
    if case.contract is not None and case.contract.custom_ops:
        notes = [*notes, "its custom operators must be registered before the package is loaded"]
        head.append(f"# custom operators that must be registered: {one_line(', '.join(case.contract.custom_ops), 300)}")
    return Script(text="\n".join([*head, load, *arguments, "print(model(*args, **kwargs))"]), notes=tuple(notes))


def _load(report: Report) -> str | None:
    artifact, options = report.case.artifact, report.case.options
    path = _text(artifact.path)
    if artifact.kind is ArtifactKind.BARE_SO:
        return f"model = torch._export.aot_load({path}, {_text(options.device or 'cpu')})"
    if artifact.kind not in (ArtifactKind.AOTI_PACKAGE, ArtifactKind.AOTI_DIRECTORY):
        return None
    name = report.case.model.name if report.case.model is not None else "model"
    more = f", model_name={_text(name)}" if name != "model" else ""
    device = (options.device or "").partition(":")[2]
    more += f", device_index={device}" if device.isdecimal() else ""
    return f"model = torch._inductor.aoti_load_package({path}{more})"


def _text(text: str) -> str:
    return ascii(one_line(text, 400))


def _given(report: Report) -> tuple[list[str], list[str]] | None:
    """The call that was made, of its metadata."""
    found = report.case.inputs
    if found is None:
        return None
    count = len(found.leaves())
    if count > LEAVES:
        return None
    notes = [
        "the values are made up, integers within the given range: a failure that needs certain values may not show"
    ]
    other = [value.type for _, value in found.leaves() if isinstance(value, PlainValue) and _literal(value) is None]
    notes += [f"None replaces {one_line(', '.join(sorted(set(other))), 200)}"] if other else []
    args: Tree[LeafValue] = found.args
    kwargs: Tree[LeafValue] = found.kwargs
    named = _tree(kwargs, _leaf)
    shown = [f"args = {_as_tuple(_tree(args, _leaf))}", f"kwargs = {named if named.startswith('{') else '{}'}"]
    return shown, [*notes, *_strange((args, kwargs))]


def _expected(report: Report) -> tuple[list[str], list[str]] | None:
    """A call as the contract wants it, where no inputs are known."""
    contract = report.case.contract
    if contract is None or contract.args is None or contract.kwargs is None or len(contract.leaves) > LEAVES:
        return None
    leaves = contract.leaves
    args: Tree[int] = contract.args
    kwargs: Tree[int] = contract.kwargs

    def leaf(index: int) -> str:
        return _spec(leaves[index]) if 0 <= index < len(leaves) else "None"

    shown = [f"args = {_as_tuple(_tree(args, leaf))}", f"kwargs = {_tree(kwargs, leaf)}"]
    return shown, ["no inputs were given: these are the smallest that the contract allows, with made-up values"]


def _as_tuple(text: str) -> str:
    return f"({text[1:-1]},)" if text.startswith("[") and len(text) > 2 else "()" if text == "[]" else text


def _tree(tree: Tree[T], shown: Callable[[T], str]) -> str:
    match tree:
        case Leaf(value=value):
            return shown(value)
        case Container():
            return _joined(tree.type, tree.keys, [_tree(child, shown) for child in tree.children])


def _joined(kind: str, keys: tuple[str | int, ...], children: list[str]) -> str:
    if keys and kind in MAPPINGS:
        pairs = zip(keys, children, strict=False)
        return "{" + ", ".join(f"{key!a}: {child}" for key, child in pairs) + "}"
    if kind in MAPPINGS:
        return "{}"
    inner = ", ".join(children)
    if kind == "tuple":
        return f"({inner},)" if children else "()"
    return f"[{inner}]"


def _strange(trees: Iterable[Tree[LeafValue]]) -> list[str]:
    """Containers that a plain script cannot make."""
    known = {"tuple", "list", *MAPPINGS}
    kinds = sorted({kind for tree in trees for kind in _kinds(tree) if kind not in known})
    return [f"lists replace {one_line(', '.join(kinds), 200)}"] if kinds else []


def _kinds(tree: Tree[LeafValue]) -> Iterable[str]:
    if isinstance(tree, Container):
        yield tree.type
        for child in tree.children:
            yield from _kinds(child)


def _leaf(value: LeafValue) -> str:
    match value:
        case PlainValue():
            return _literal(value) or "None"
        case TensorDesc():
            return _tensor(value)


def _literal(value: PlainValue) -> str | None:
    """The value as the file has it, only where it is a literal of Python."""
    if value.type not in _PLAIN:
        return None
    try:
        return ascii(ast.literal_eval(value.text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _tensor(value: TensorDesc) -> str:
    text = _within(value) or _made(value.dtype, value.shape, value.device)
    if is_ordinary(value) or value.stride is None or value.layout != "strided":
        return text
    return f"torch.empty_strided({value.shape}, {value.stride}, {_options(value.dtype, value.device)}).copy_({text})"


def _within(value: TensorDesc) -> str | None:
    """Values of the range that was given: integers from the lowest to the highest, NaN or Inf where there was any."""
    stats = value.stats
    if stats is None or value.numel == 0:
        return None
    sizes, options = f"{value.shape}", _options(value.dtype, value.device)
    if value.dtype in _FLOATS:
        word = "nan" if stats.nan else "inf" if stats.inf else ""
        return f"torch.full({sizes}, float('{word}'), {options})" if word else None
    if not isinstance(stats.low, int) or not isinstance(stats.high, int) or value.dtype not in _DTYPES:
        return None
    if stats.low == stats.high or value.numel == 1:
        return f"torch.full({sizes}, {stats.high}, {options})"
    span = f"torch.linspace({stats.low}, {stats.high}, {value.numel}, dtype=torch.float64)"
    return f"{span}.reshape({sizes}).to({options})"


def _spec(spec: LeafSpec) -> str:
    if spec.kind != "tensor" or spec.dims is None:
        return "None"
    return _made(spec.dtype or "float32", tuple(_size(dim) for dim in spec.dims), spec.device_type or "cpu")


def _size(dim: Dim) -> int:
    if dim.static is not None:
        return dim.static
    return 2 if dim.min is None else max(dim.min, 1)


def _made(dtype: str, shape: tuple[int, ...], device: str) -> str:
    sizes = f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
    options = _options(dtype, device)
    return f"torch.{'rand' if dtype in _FLOATS else 'ones'}({sizes}, {options})"


def _options(dtype: str, device: str) -> str:
    named = dtype if dtype in _DTYPES else "float32"
    kind, _, index = device.partition(":")
    where = device if kind in _DEVICES and (not index or index.isdecimal()) else "cpu"
    return f"dtype=torch.{named}" + (f", device={where!r}" if where != "cpu" else "")
