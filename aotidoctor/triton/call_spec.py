"""Parse what each release of Triton accepts from a package: call spec, tensor names, element types and dims.

The call spec is parsed as Triton's backend does it (26.05 and later). The backend knows tuples, lists and dicts;
whatever has no type is a tensor to it, also None and numbers. It stops at the first thing it does not know; here
parsing goes on, so that all of them are reported at once. The batch dim is not compared here.

=========  =======  ==================================================================================
up to      2.66     the platform is not known
26.02
26.03      2.67     first ``torch_aoti``; looks for model.pt unless ``default_model_filename`` is set; two inputs only
26.04      2.68     model.pt2 is the default and is detected; still two inputs only
26.05      2.69     call spec parsed: ARGS, KWARGS, RESULT, INPUT__n, OUTPUT__n; no batching, parameters ignored
26.06      2.70     batching of the first dimension, sequence batching with state
26.07      2.71     parameters act; MODEL_INIT_LIBRARY
26.11      2.75     bfloat16 inputs and outputs
=========  =======  ==================================================================================
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from aotidoctor.model.contract import Dim
from aotidoctor.model.errors import UsageError
from aotidoctor.model.expr import linear, solve
from aotidoctor.model.record import JsonValue, record
from aotidoctor.model.serving_config import Given, Position, TensorConfig
from aotidoctor.triton.serving import Release

# Releases.
FIRST_RELEASE = "26.03"
# From this release on requests are merged along dim 0, and the answer is split again.
SPLITS_SINCE = "26.06"
_SERVERS = {
    "26.02": "2.66",
    "26.03": "2.67",
    "26.04": "2.68",
    "26.05": "2.69",
    "26.06": "2.70",
    "26.07": "2.71",
    "26.08": "2.72",
    "26.09": "2.73",
    "26.10": "2.74",
    "26.11": "2.75",
}
KNOWN_RELEASES = tuple(Release(name=name, server=server) for name, server in _SERVERS.items())
NEWEST_RELEASE = KNOWN_RELEASES[-1]


def find_release(text: str | None) -> Release:
    """Release called ``26.05``; the newest known for None. Raises UsageError for any other text."""
    if text is None:
        return NEWEST_RELEASE
    found = re.fullmatch(r"(\d\d)\.(\d\d)(?:-py3\S*)?", text.strip())
    if found is None or not 1 <= int(found[2]) <= 12 or int(found[1]) < 18:
        raise UsageError(f"{text!r} is not a release of Triton; write year and month, such as {NEWEST_RELEASE.name}")
    name = f"{found[1]}.{found[2]}"
    known = next((release for release in KNOWN_RELEASES if release.name == name), None)
    return known or Release(name=name, known=Release(name=name).key < NEWEST_RELEASE.key)


def unknown_release_note(release: Release) -> str | None:
    """Note about a release that the rules do not cover; None for one that they cover."""
    if release.known:
        return None
    newest = NEWEST_RELEASE.name
    return f"Triton {release.name} is newer than {newest}, the newest that the rules cover; judged as that one"


# Element types of Triton and of torch.
BFLOAT16_SINCE = "26.11"
_TYPES: Mapping[str, str] = {
    "TYPE_BOOL": "bool",
    "TYPE_UINT8": "uint8",
    "TYPE_INT8": "int8",
    "TYPE_INT16": "int16",
    "TYPE_INT32": "int32",
    "TYPE_INT64": "int64",
    "TYPE_FP16": "float16",
    "TYPE_FP32": "float32",
    "TYPE_FP64": "float64",
}
_BFLOAT16 = {"TYPE_BF16": "bfloat16"}


def data_types(release: Release) -> Mapping[str, str]:
    """Types that the backend accepts, with torch's name of each."""
    return {**_TYPES, **_BFLOAT16} if release.since(BFLOAT16_SINCE) else _TYPES


def data_type_of(dtype: str | None, release: Release) -> str | None:
    """Triton's name of a dtype, None where it has none."""
    return next((name for name, torch_name in data_types(release).items() if torch_name == dtype), None)


# Dims of the config against the dims that were compiled, one tensor at a time.
VARIABLE = -1


@record
class DimMismatch:
    """One difference between dims. ``dim`` counts in the compiled shape, None where the number of dims differs.

    ``kind``: ``rank``, ``batch-written`` (the batch dim stands in dims), ``batch-missing`` (dims leave out the first
    dim, and nothing is batched), ``scalar`` (one element for a tensor without dims), ``size``, ``wider`` (any size for
    a static dim), ``range``, ``below-two`` (1 where 2 was compiled as the least, which runs right), ``multiple``.
    """

    kind: str
    observed: str
    expected: str
    at: Position
    dim: int | None = None


def compare_dims(tensor: TensorConfig, compiled: Sequence[Dim], *, batched: bool) -> tuple[DimMismatch, ...]:
    """Compare a tensor of the config, as the backend sees it, with the compiled dims."""
    given = tensor.shape
    expected = compiled[1:] if batched else compiled
    if len(given) != len(expected) or (batched and not compiled):
        other = "rank"
        if batched and compiled and _fits(given, compiled):
            other = "batch-written"
        elif not batched and compiled and _fits(given, compiled[1:]):
            other = "batch-missing"
        elif not batched and not compiled and [item.value for item in given] == [1]:
            other = "scalar"
        observed = f"[{', '.join(str(item.value) for item in given)}]" + (" after the batch dim" if batched else "")
        place = given[0].at if given else tensor.at
        return (DimMismatch(kind=other, observed=observed, expected=dims_text(compiled), at=place),)
    return tuple(
        DimMismatch(kind=kind, observed=str(item.value), expected=dim_text(spec), at=item.at, dim=dim)
        for dim, (item, spec) in enumerate(zip(given, expected, strict=True), start=1 if batched else 0)
        if (kind := _kind(item.value, spec)) is not None
    )


def _fits(given: Sequence[Given[int]], compiled: Sequence[Dim]) -> bool:
    """Whether the sizes can be those of the dims; ``-1`` stands for a dynamic one."""
    return len(given) == len(compiled) and all(
        spec.static in (None, item.value) for item, spec in zip(given, compiled, strict=True)
    )


def _kind(value: int, spec: Dim) -> str | None:
    if spec.static is not None:
        return None if value == spec.static else "wider" if value == VARIABLE else "size"
    if value == VARIABLE:
        return None
    if spec.max is not None and value > spec.max:
        return "range"
    if spec.min is not None and value < spec.min:
        return "below-two" if (value, spec.min) == (1, 2) else "range"
    if spec.expr is not None and linear(spec.expr) is not None and solve(spec.expr, value) is None:
        return "multiple" if spec.expr.symbols else None
    return None


def fixed_symbols(
    tensor: TensorConfig, compiled: Sequence[Dim], *, batched: bool
) -> Iterator[tuple[str, int, Given[int]]]:
    """Yield ``(symbol, value, place)`` for each dynamic dim that has one size in the config."""
    expected = compiled[1:] if batched else compiled
    if len(tensor.shape) != len(expected):
        return
    for given, spec in zip(tensor.shape, expected, strict=True):
        solved = solve(spec.expr, given.value) if spec.static is None and spec.expr is not None else None
        if solved is not None and given.value != VARIABLE:
            yield solved[0], solved[1], given


def dims_text(dims: Sequence[Dim]) -> str:
    """Format dims: ``[s17:2..64, 1024]``."""
    return f"[{', '.join(map(dim_text, dims))}]"


def dim_text(dim: Dim) -> str:
    """Format a dim: ``16``, ``s77:2..64``, ``s77``, ``?``."""
    if dim.static is not None:
        return str(dim.static)
    name = str(dim.expr) if dim.expr is not None else ""
    bounded = dim.min is not None or dim.max is not None
    limits = f"{'' if dim.min is None else dim.min}..{'' if dim.max is None else dim.max}" if bounded else ""
    return f"{name}:{limits}" if name and limits else name or limits or "?"


# The call spec.
_KINDS = {"builtins.dict": "dict", "builtins.list": "list", "builtins.tuple": "tuple"}
_DEEPEST = 200


@record
class SpecNode:
    """Node of a call spec. ``kind``: ``dict``, ``list``, ``tuple``, ``tensor``, or ``other`` (unknown to the backend).

    ``path`` is the user's. ``number`` counts tensors in flattening order, None for containers. ``type`` is the type's
    serialised name.
    """

    kind: str
    path: str
    type: str | None = None
    keys: tuple[str, ...] = ()
    children: tuple[SpecNode, ...] = ()
    number: int | None = None


@record
class SpecFailure:
    """Reason why the backend does not parse the spec. ``rule`` is its id, ``detail`` the message in the server's log.

    ``path`` is the user's path of the place where it stops, and ``found`` what is there.
    """

    rule: str
    detail: str
    path: str
    found: str


@record
class ParsedSpec:
    """A parsed spec. ``root`` is None where the text is no spec. The backend stops at the first of ``failures``."""

    root: SpecNode | None
    failures: tuple[SpecFailure, ...] = ()


@record
class SpecName:
    """A name that the backend makes, with its node: a tensor, or a container that it takes for one."""

    name: str
    node: SpecNode


def parse_inputs(text: str) -> ParsedSpec:
    """Parse the spec of the inputs: a tuple of args and kwargs."""
    parsed = _parse(text, "inputs")
    root = parsed.root
    if root is None or parsed.failures:
        return parsed
    problem = None
    if root.kind != "tuple":
        problem = f'Unexpected input call specification type "{_spec_text(root)}". Expected type is "builtins_tuple".'
    elif len(root.children) != 2:
        problem = (
            "Unexpected number of children in input call specification. Expected structure to contain two children, "
            f"but got {len(root.children)}."
        )
    elif (root.children[0].kind, root.children[1].kind) != ("tuple", "dict"):
        kinds = ", ".join(_spec_text(child) for child in root.children)
        problem = f"Unexpected input call specification structure. Expected tuple[tuple, dict], got [{kinds}]."
    if problem is None:
        return parsed
    return ParsedSpec(
        root=root, failures=(SpecFailure(rule="R9", detail=problem, path=root.path, found=_spec_text(root)),)
    )


def parse_outputs(text: str) -> ParsedSpec:
    """Parse the spec of the results."""
    return _parse(text, "result")


def input_names(root: SpecNode) -> tuple[SpecName, ...]:
    """Names of the inputs in the order of their ordinals: ``ARGS[1][a]``, ``KWARGSmask``.

    A keyword is written without brackets, and what is inside of it is not looked at.
    """
    args, kwargs = root.children
    positional = [SpecName(name=f"ARGS{suffix}", node=node) for suffix, node in _suffixes(args)]
    keywords = [
        SpecName(name=f"KWARGS{key}", node=kwargs.children[at] if at < len(kwargs.children) else kwargs)
        for at, key in enumerate(kwargs.keys)
    ]
    return (*positional, *keywords)


def output_names(root: SpecNode) -> tuple[SpecName, ...]:
    """Names of the outputs: ``RESULT`` for a result that is no container, else ``RESULT[0]``, ``RESULT[a]``."""
    if not root.children:
        return (SpecName(name="RESULT", node=root),)
    return tuple(SpecName(name=f"RESULT{suffix}", node=node) for suffix, node in _suffixes(root))


def walk(node: SpecNode) -> Iterator[SpecNode]:
    """Yield the node and all below it, in order."""
    yield node
    for child in node.children:
        yield from walk(child)


def _suffixes(node: SpecNode) -> list[tuple[str, SpecNode]]:
    """Names below ``node``. A child without names of its own, an empty dict among them, counts as one tensor."""
    if node.kind == "tensor":
        return []
    if node.kind == "dict" and len(node.keys) != len(node.children):
        return []
    labels = node.keys if node.kind == "dict" else [str(at) for at in range(len(node.children))]
    found: list[tuple[str, SpecNode]] = []
    for label, child in zip(labels, node.children, strict=True):
        below = _suffixes(child)
        found.extend((f"[{label}]{suffix}", item) for suffix, item in below or [("", child)])
    return found


def _spec_text(node: SpecNode) -> str:
    return node.type or "tensor" if node.kind == "other" else node.kind


def _parse(text: str, root: str) -> ParsedSpec:
    reader = _SpecReader()
    top, problem = None, "Expected [version, spec] array."
    try:
        document = _json(text)
        if isinstance(document, list) and len(document) == 2:
            top = reader.read(document[1], root, 0)
    except (ValueError, RecursionError) as error:
        problem = str(error)
    if top is None:
        return ParsedSpec(root=None, failures=(SpecFailure(rule="R9", detail=problem, path=root, found="no spec"),))
    return ParsedSpec(root=top, failures=tuple(reader.failures))


def _json(text: str) -> JsonValue:
    """JSON as RapidJSON reads it. Raises ValueError.

    A member that is given twice counts the first time, and half of a surrogate pair is no text.
    """
    value: JsonValue = json.loads(text, object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


class _SpecReader:
    def __init__(self) -> None:
        self.failures: list[SpecFailure] = []
        self._tensors = 0

    def read(self, node: JsonValue, path: str, depth: int) -> SpecNode:
        """The node at ``path``. Raises ValueError for one that is no object."""
        if not isinstance(node, dict) or depth > _DEEPEST:
            raise ValueError("a node is not an object" if depth <= _DEEPEST else "nested too deeply to be followed")
        kind = node.get("type")
        if not isinstance(kind, str):
            self._tensors += 1
            return SpecNode(kind="tensor", path=path, number=self._tensors - 1)
        known = _KINDS.get(kind, "other")
        if known == "other":
            self._fail("R9", f"Value of `type` property ('{kind}') is unsupported.", path, kind)
        before = len(self.failures)
        keys = self._keys(node.get("context"), known, path)
        children = node.get("children_spec")
        below = children if isinstance(children, list) else []
        if len(self.failures) == before and isinstance(children, list):
            if known in ("list", "tuple") and not children:
                words = "must have at least one entry when 'type' is 'builtins.list' or 'builtins.tuple'."
                self._fail("R10", f"Property 'children_spec' {words}", path, f"an empty {known}")
            if known == "dict" and len(children) != len(keys):
                words = "Number of entries in 'children_spec' does not match number of entries in 'context'."
                self._fail("R9", words, path, known)
        labels = [repr(key) for key in keys] if len(keys) == len(below) else [str(at) for at in range(len(below))]
        nodes = []
        for at, (child, label) in enumerate(zip(below, labels, strict=True)):
            place = f"{path}[{label}]"
            if not depth and path == "inputs":
                # The two below the root of the inputs are called args and kwargs.
                place = ("args", "kwargs")[at] if at < 2 else f"inputs[{at}]"
            if isinstance(child, dict):
                nodes.append(self.read(child, place, depth + 1))
            else:
                self._fail("R9", f"Child spec at index {at} is not an object.", place, "no spec")
                nodes.append(SpecNode(kind="other", path=place))
        return SpecNode(
            kind=known,
            path=path,
            type=kind,
            keys=tuple(key for key in keys if isinstance(key, str)),
            children=tuple(nodes),
        )

    def _keys(self, context: JsonValue, kind: str, path: str) -> list[JsonValue]:
        """The context as a list; that of a type the backend does not know only where it is one."""
        try:
            value = _json(context) if isinstance(context, str) and context != "null" else context
        except ValueError:
            value = None
        if not isinstance(value, list):
            wrong = kind != "other" and isinstance(context, str) and context != "null"
            if wrong:
                self._fail("R9", "Failed to parse 'context' property string as JSON array.", path, kind)
            return []
        for at, key in enumerate(value) if kind != "other" else ():
            if not isinstance(key, str):
                self._fail("R11", f"Context entry at index {at} is not a string.", path, f"the key {json.dumps(key)}")
                break
        return value

    def _fail(self, rule: str, detail: str, path: str, found: str) -> None:
        self.failures.append(SpecFailure(rule=rule, detail=detail, path=path, found=found))
