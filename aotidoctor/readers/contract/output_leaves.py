"""Describe outputs, results that custom operators promise, and buffers that are read before any write.

The shape and strides of a custom operator's result are asserted after each call, for the checks that
AOTI_RUNTIME_CHECK_INPUTS turns on; the element type shows in the pointer that the next kernel takes. Nothing in a
package compares them with what the operator returns.

``torch.empty`` compiles to an allocation and nothing else, and so do the results of all kernels; the difference is
whether a write comes before the first read. Pointers to const are reads, other pointers are writes. Where a call does
not show that (custom operators, in-place shims), its arguments count as written, so a finding is never a guess; a
buffer that is written in part counts as written. A pointwise read of ``torch.empty`` leaves no buffer: the compiler
puts a NaN constant in its place, see ``nan_constants``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from aotidoctor.model.artifact import ExternNode
from aotidoctor.model.contract import ConstantSpec, CustomCall, LeafSpec, OutputSpec, PromisedResult, earlier_names
from aotidoctor.model.inputs import SpecError, parse_spec, walk_leaves
from aotidoctor.model.torch_names import element_dtype
from aotidoctor.readers.contract.input_leaves import SymbolTable
from aotidoctor.readers.contract.kernel_calls import arguments_of, kind_of, node_index, triton_name, written_and_read
from aotidoctor.readers.contract.run_impl import Body, TritonLaunch
from aotidoctor.readers.contract.wrapper_statements import Statement

# Results of custom operators.
_POINTER = re.compile(r"\((?:const )?([\w:<>]+)\*\)\((\w+)\.data_ptr\(\)\)")
_NAME = re.compile(r"\b[a-z]+\d[\w]*\b")


def read_custom_calls(body: Body, nodes: Sequence[ExternNode]) -> Iterator[CustomCall]:
    """One entry per call of the proxy executor, in call order."""
    asserted = {item.name: item for item in body.assertions}
    known: dict[str, PromisedResult] = {}
    for at, call in enumerate(body.calls):
        index = node_index(call)
        if index is None or index >= len(nodes):
            continue
        node = nodes[index]
        given = arguments_of(call)
        arguments: list[PromisedResult | None] = []
        for name in given[: len(given) - len(node.output_names)]:
            # The result of an earlier custom operator that is passed on as it is; None for any other tensor.
            first = name
            while first not in known and first in body.renamed and first not in body.view_shapes:
                first = body.renamed[first]
            viewed = f"reinterpret_tensor_wrapper({name}," in call.arguments
            arguments.append(None if viewed else known.get(first))
        results = tuple(_result(name, body, at, asserted) for name in node.output_names)
        known |= {result.name: result for result in results}
        yield CustomCall(index=index, target=node.target, line=call.line, arguments=tuple(arguments), results=results)


def _result(name: str, body: Body, at: int, asserted: Mapping[str, Statement]) -> PromisedResult:
    names = _same_tensor(name, body.renamed)
    later = body.calls[at + 1 :]
    mentioned = {word for call in later for word in _NAME.findall(call.arguments)} | set(body.outputs.values())
    promised = asserted.get(name)
    return PromisedResult(
        name=name,
        dtype=_dtype(names, later) or (promised.dtype if promised is not None else None),
        shape=None if promised is None else promised.sizes,
        stride=None if promised is None else promised.strides,
        used=bool(names & mentioned),
    )


def _same_tensor(name: str, renamed: Mapping[str, str]) -> frozenset[str]:
    """``name`` and all names that its tensor gets later."""
    known = {name}
    for new, old in renamed.items():
        if old in known:
            known.add(new)
    return frozenset(known)


def element_type(name: str, body: Body) -> str | None:
    """The element type that the kernels use for ``name`` or another name of its tensor; None if none takes it."""
    return _dtype(_same_tensor(name, body.renamed), body.calls)


def _dtype(names: frozenset[str], calls: Sequence[Statement]) -> str | None:
    """The element type that the first kernel with the tensor as an argument uses; None if none takes it."""
    for call in calls:
        for kind, name in _POINTER.findall(call.arguments):
            if name in names:
                return element_dtype(kind)
    return None


# Reads before any write.
def unwritten_reads(events: Iterable[Statement], launches: Mapping[str, TritonLaunch]) -> tuple[str, ...]:
    """One text per buffer: ``buf0 read by aoti_torch_cpu_mm_out``, ``buf2 returned``."""
    fresh: dict[str, str] = {}
    roots: dict[str, str] = {}
    found: dict[str, str] = {}
    for event in events:
        match event.kind:
            case "allocate":
                fresh[event.name] = event.name
                roots[event.name] = event.name
            case "reuse" | "own" | "move" | "view":
                roots[event.name] = roots.get(event.source, event.source)
            case "output" | "copy":
                root = roots.get(event.name, event.name)
                if fresh.pop(root, None) is not None:
                    found[root] = f"{root} returned"
            case "call":
                written, read = written_and_read(event, launches)
                reader = triton_name(event) if kind_of(event) == "triton" else event.function
                written_roots = {roots.get(name, name) for name in written}
                read_roots = {roots.get(name, name) for name in read}
                for root in sorted((read_roots - written_roots) & fresh.keys()):
                    found.setdefault(root, f"{root} read by {reader}")
                for root in written_roots | read_roots:
                    fresh.pop(root, None)
    return tuple(found.values())


# Outputs: paths from the call spec, dtypes and shapes from run_impl.
# Operators whose result has the dtype of their first argument.
_PRESERVING = re.compile(r"^aoti_torch_[a-z]+_(?:mkldnn_)?_?(?:convolution(?:_pointwise)?|linear_pointwise)$")
# A view that is made for the call has the dtype of what it views.
_FIRST = re.compile(r"\s*(?:wrap_with_raii_handle_if_needed\()?(?:reinterpret_tensor_wrapper\()?(\w+)\s*,")
_DEEPEST = 8
_LITERALS = {"bool": "true|false", "int64": r"-?\d+(?:L|LL)?|[su]\d+", "float64": r"-?\d+\.\d*(?:e[+-]?\d+)?"}


def output_paths(out_spec: str | None, count: int) -> tuple[str, ...]:
    """Paths of ``count`` outputs (``result``, ``result[0]``, ``result['a']``), by position if the spec does not fit."""
    if out_spec is not None:
        try:
            paths = tuple(path for path, _ in walk_leaves(parse_spec(out_spec), "result"))
        except SpecError:
            paths = ()
        if len(paths) == count:
            return paths
    return tuple(f"result[{index}]" for index in range(count))


def build_outputs(
    paths: Sequence[str],
    body: Body,
    symbols: SymbolTable,
    leaves: Sequence[LeafSpec],
    constants: Sequence[ConstantSpec],
) -> Iterator[OutputSpec]:
    """One ``OutputSpec`` per output."""
    known: dict[str, LeafSpec | ConstantSpec] = {constant.name: constant for constant in constants}
    known |= {leaf.generated_name: leaf for leaf in leaves if leaf.generated_name is not None}
    asserted = {one.name: one for one in body.assertions}
    # A view of unknown shape does not have that of its tensor.
    sizes = {
        **{name: one.sizes for name, one in asserted.items()},
        **{name: one.shape for name, one in body.buffers.items()},
        **body.view_shapes,
    }
    # Where a statement about an output was not understood, an output that is not there is not None, but unknown.
    # Without any output nothing was read.
    lost = body.losses.found.get("output")
    complete = lost is None or lost.count <= sum(not name for name in body.outputs.values())
    for index, path in enumerate(paths):
        number = body.numbers.get(body.outputs.get(index, ""))
        if body.outputs and index not in body.outputs and complete:
            yield OutputSpec(index=index, path=path, kind="none")
        elif number is not None:
            # The dtype of the C++ literal; that of a symbol (``s77``) is int64.
            dtype = next((dtype for dtype, pattern in _LITERALS.items() if re.fullmatch(pattern, number)), None)
            yield OutputSpec(index=index, path=path, kind="number", dtype=dtype, shape=(), device_type="cpu")
        else:
            yield _output(index, path, body, symbols, known=known, asserted=asserted, sizes=sizes)


def _output(
    index: int,
    path: str,
    body: Body,
    symbols: SymbolTable,
    *,
    known: Mapping[str, LeafSpec | ConstantSpec],
    asserted: Mapping[str, Statement],
    sizes: Mapping[str, tuple[str, ...] | None],
) -> OutputSpec:
    """Follow the names of the tensor back; the first one with a buffer, a shape or a dtype decides each."""
    names = [body.outputs.get(index, "")]
    while (old := body.renamed.get(names[-1], body.like.get(names[-1]))) is not None and old not in names:
        names.append(old)
    origin = names[-1]
    buffer = next((body.buffers[name] for name in names if name in body.buffers), None)
    assertion = next((asserted[name] for name in names if name in asserted), None)
    viewed_as = next((body.view_dtypes[name] for name in names if name in body.view_dtypes), None)
    shown = next((sizes[name] for name in names if name in sizes), None)
    dtype = None
    if buffer is None and origin:
        dtype = element_type(origin, body) or element_type(names[0], body) or _preserved_dtype(origin, body)
    owner = known.get(origin, buffer)
    shape = tuple(str(symbols.read(size)) for size in shown) if shown is not None else None
    match owner:
        case LeafSpec(rank=int(), dims=tuple(dims)) if shape is None:
            shape = tuple(str(dim.static if dim.static is not None else dim.expr or "?") for dim in dims)
        case ConstantSpec(shape=tuple(own)) if shape is None:
            shape = tuple(map(str, own))
    # It is that tensor, or a view of it, and not a copy.
    shared = all(name in body.renamed for name in names[:-1])
    return OutputSpec(
        index=index,
        path=path,
        dtype=viewed_as
        or (owner.dtype if owner is not None else None)
        or dtype
        or (assertion.dtype if assertion is not None else None),
        shape=shape,
        device_type=owner.device_type if owner is not None else None,
        same_as=owner.path if isinstance(owner, LeafSpec) and shared else None,
    )


def _preserved_dtype(name: str, body: Body, depth: int = 0) -> str | None:
    """The dtype of the result of an operator that preserves the dtype of its first argument: that of the argument."""
    call = next(
        (one for one in body.calls if _PRESERVING.search(one.function) and f"&{name}_handle" in one.arguments), None
    )
    given = _FIRST.match(call.arguments) if call is not None else None
    if given is None or depth > _DEEPEST:
        return None
    *names, last = earlier_names(given[1], body.renamed)
    source = next((name for name in names if name in body.view_dtypes), last)
    made = body.buffers.get(source)
    known = body.view_dtypes.get(source) or element_type(source, body) or (made.dtype if made is not None else None)
    return known or _preserved_dtype(source, body, depth + 1)
