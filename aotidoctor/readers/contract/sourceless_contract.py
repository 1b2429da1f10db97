"""Build a contract where wrapper.cpp is missing or incomplete: from answers, library texts, or inputs.

From the answers of the running code (worker job ``recover``). Known: number of inputs, dtype, dims, bounds, constant
strides and device type as far as the compiled checks go; the call spec; names, types and sizes of constants. Not
known: which dims share a symbol, trailing dims that no check mentions, kernels, outputs and what the host must offer
beyond the metadata.

From a bare library that is not loaded. The compiled checks print what they expected, so their messages are in the
library: ``input_handles[0]: unmatched dim value at 1, ``, and apart from them, each once for all inputs, ``expected:
12, `` and ``(at::kFloat), ``. So each dim is known to be fixed or not, and what a fixed one may be; a dtype is
certain where only one is ever expected. A library of torch 2.6 holds no checks: then the call is known, and nothing
of its tensors.

From the inputs, which leaves are tensors. The generated names allow several readings of the call spec when parameters
are missing among the constants (unused, inlined or folded ones leave no trace). The reading under which tensors stand
where tensors were given is the right one: the runtime itself takes the tensors of a call in their order, whatever the
leaves are called.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from aotidoctor.model.contract import ConstantSpec, Dim, HostNeeds, LeafSpec, ModelContract, OutputSpec, Reading
from aotidoctor.model.expr import Num
from aotidoctor.model.inputs import (
    Container,
    InputSet,
    LeafValue,
    PlainValue,
    SpecError,
    TensorDesc,
    count_leaves,
    parse_call,
    walk_call,
)
from aotidoctor.model.record import JsonObject, JsonValue, as_integer, as_list, as_object, objects, text_of
from aotidoctor.model.torch_names import SCALAR_NAMES
from aotidoctor.readers.contract.input_leaves import LeafOrder, order_leaves
from aotidoctor.readers.contract.output_leaves import output_paths
from aotidoctor.readers.contract.read_contract import isa_features


# From the answers of the running code.
def recovered_contract(model_name: str, result: JsonObject) -> ModelContract:
    """A ``ModelContract`` from the job's result; ``problems`` lists what could not be found out."""
    inputs = objects(result.get("inputs"))
    names = [text_of(entry.get("name")) or f"arg{at}_1" for at, entry in enumerate(inputs)]
    constants = tuple(map(_constant, objects(result.get("constants"))))
    n_inputs, n_outputs = as_integer(result.get("n_inputs")) or len(inputs), as_integer(result.get("n_outputs"))
    problems = [text for text in map(text_of, as_list(result.get("problems"))) if text is not None]
    spec = [text_of(part) for part in as_list(result.get("call_spec"))]
    in_spec, out_spec = (spec[0], spec[1]) if len(spec) == 2 else (None, None)
    try:
        args, kwargs = parse_call(in_spec or "")
    except SpecError:
        args, kwargs = None, None
    if args is not None and kwargs is not None:
        leaves, order = _place_leaves(args, kwargs, names, inputs, constants)
        problems += [order.problem] if order.problem is not None else []
    else:
        order = LeafOrder(input_of={}, certain=frozenset())
        leaves = tuple(
            _leaf(entry, at, names[at], index=at, path=f"args[{at}]", kind="tensor") for at, entry in enumerate(inputs)
        )
        problems.append("the package contains no readable call spec")
    return ModelContract(
        model_name=model_name,
        source="recovered",
        args=args,
        kwargs=kwargs,
        leaves=leaves,
        n_inputs=n_inputs,
        n_outputs=n_outputs,
        n_constants=as_integer(result.get("n_constants")),
        outputs=tuple(
            OutputSpec(index=at, path=path) for at, path in enumerate(output_paths(out_spec, n_outputs or 0))
        ),
        constants=constants,
        needs=_needs(result.get("metadata")),
        weights="none" if result.get("n_constants") == 0 else "unknown",
        in_spec=in_spec,
        out_spec=out_spec,
        problems=tuple(problems),
        readings=order.readings,
        open_leaves=order.problem if order.readings else None,
    )


def _place_leaves(
    args: Container[int],
    kwargs: Container[int],
    names: Sequence[str],
    inputs: Sequence[JsonObject],
    constants: Sequence[ConstantSpec],
) -> tuple[tuple[LeafSpec, ...], LeafOrder]:
    order = order_leaves(names, count_leaves(args) + count_leaves(kwargs), constants, None)
    leaves = []
    for path, index in walk_call(args, kwargs):
        at, kind = order.input_of.get(index), order.kind(index)
        if at is None:
            leaves.append(LeafSpec(index=index, path=path, kind=kind, triton_names=(f"INPUT__{index}",)))
        else:
            leaves.append(_leaf(inputs[at], at, names[at], index=index, path=path, kind=kind))
    return tuple(leaves), order


def _leaf(entry: JsonObject, at: int, name: str, *, index: int, path: str, kind: str) -> LeafSpec:
    dims = []
    for dim in objects(entry.get("dims")):
        static = as_integer(dim.get("static"))
        among = tuple(size for size in map(as_integer, as_list(dim.get("among"))) if size is not None)
        bounded = Dim(min=as_integer(dim.get("min")), max=as_integer(dim.get("max")), among=among)
        dims.append(bounded if static is None else Dim(static=static, expr=Num(static)))
    strides = tuple(as_integer(stride) for stride in as_list(entry.get("strides")))
    complete = entry.get("complete") is True
    return LeafSpec(
        index=index,
        path=path,
        kind=kind,
        input_index=at,
        generated_name=name,
        triton_names=(f"INPUT__{index}",),
        dtype=text_of(entry.get("dtype")),
        rank=len(dims) if complete else None,
        dims=tuple(dims) if complete or dims else None,
        strides=strides if complete or strides else None,
        device_type=text_of(entry.get("device_type")),
        stride_exprs=tuple(None if stride is None else Num(stride) for stride in strides) if complete else None,
    )


def _constant(entry: JsonObject) -> ConstantSpec:
    name = text_of(entry.get("name")) or ""
    return ConstantSpec(
        name=name,
        original_fqn=text_of(entry.get("original_fqn")) or name,
        dtype=text_of(entry.get("dtype")),
        data_size=as_integer(entry.get("data_size")),
        kind=text_of(entry.get("kind")),
        from_folded=entry.get("from_folded") is True,
    )


def _needs(metadata: JsonValue) -> HostNeeds:
    values = as_object(metadata)
    return HostNeeds(
        device_type=text_of(values.get("AOTI_DEVICE_KEY")),
        compute_capability=text_of(values.get("AOTI_COMPUTE_CAPABILITY")) or None,
        isa=isa_features(text_of(values.get("AOTI_CPU_ISA")) or ""),
    )


# From the texts of a bare library.
MOST_INPUTS = 10_000
MOST_NAMES = 100_000
_CONSTANT = re.compile(rb"[A-Za-z_][\w.]{0,500}")
_NO_IDENTIFIER = re.compile(r"\W")
_SPEC = b'[1, {"type": '
_BEGINNINGS = (b"arg", b"output", b"expected", b"(at::k", _SPEC, b"input_handles[")
_NAME = re.compile(rb"arg(\d{1,6})_1")
_OF_INPUT = re.compile(
    rb"input_handles\[(\d{1,6})\]: (?:unmatched dtype|(?P<what>unmatched (?:dim|stride) value|dim value is too \w{5})"
    rb" at (?P<dim>\d{1,3})), "
)
_EXPECTED = re.compile(rb"expected(?P<how>: | it to be >= | to be <= )(?P<value>\d{1,18}), ")
_DTYPE = re.compile(rb"\(at::k(\w{1,30})\), ")
_FIXED, _LOW, _HIGH = b": ", b" it to be >= ", b" to be <= "


@dataclass(slots=True)
class _Texts:
    """The texts of interest, each kind in the order of the file."""

    specs: list[str] = field(default_factory=list)
    numbers: set[int] = field(default_factory=set)
    dtypes: set[str] = field(default_factory=set)
    typed: set[int] = field(default_factory=set)
    fixed: dict[int, set[int]] = field(default_factory=dict)
    low: dict[int, set[int]] = field(default_factory=dict)
    high: dict[int, set[int]] = field(default_factory=dict)
    stepped: dict[int, set[int]] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    n_outputs: int = 0
    expected: dict[bytes, set[int]] = field(default_factory=dict)


def library_contract(found: Iterable[bytes], name: str) -> ModelContract | None:
    """The contract as far as it follows from the texts of a library, in their order; None where they contradict."""
    texts = _Texts()
    _take(found, texts)
    call = next((spec for spec in texts.specs if _leaves(spec) is not None), None)
    n_leaves = _leaves(call) if call is not None else None
    checked = {*texts.typed, *texts.fixed, *texts.low, *texts.high}
    n_inputs = max(checked) + 1 if checked else len(texts.numbers)
    if call is None or n_leaves is None or not n_inputs <= min(n_leaves, MOST_INPUTS):
        return None
    names = [f"arg{number}_1" for number in sorted(texts.numbers)]
    if len(names) != n_inputs or (not checked and n_inputs != n_leaves):
        # An input that no text mentions may be a tensor or not.
        return None
    after = texts.specs[texts.specs.index(call) + 1 :]
    inputs: list[JsonValue] = [_input(at, one, texts) for at, one in enumerate(names)]
    result: JsonObject = {
        "n_inputs": n_inputs,
        "n_outputs": texts.n_outputs or None,
        "call_spec": [call, after[0] if after else ""],
        "inputs": inputs,
        "constants": [{"name": name, "original_fqn": fqn} for name, fqn in _constant_names(texts.names)],
        "problems": ["read from the texts of a library: no kernels, no strides, no sizes of outputs and constants"],
    }
    return replace(recovered_contract(name, result), source="library")


def _leaves(spec: str) -> int | None:
    try:
        args, kwargs = parse_call(spec)
    except SpecError:
        return None
    return count_leaves(args) + count_leaves(kwargs)


def _constant_names(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """``(l1_weight, l1.weight)`` for each constant; the linker keeps one text of a name that is the same in both."""
    at = 0
    while at < len(texts):
        name = texts[at]
        other = texts[at + 1] if at + 1 < len(texts) else ""
        paired = other != name and _NO_IDENTIFIER.sub("_", other) == name
        yield name, other if paired else name
        at += 2 if paired else 1


def _take(found: Iterable[bytes], texts: _Texts) -> None:
    before_outputs = False
    for text in found:
        # Most are none of these, and of code for a GPU there are many.
        if not before_outputs and not text.startswith(_BEGINNINGS):
            continue
        if text.startswith(b"arg") and (name := _NAME.fullmatch(text)) is not None:
            texts.numbers.add(int(name[1]))
            texts.names.clear()
            before_outputs = texts.n_outputs == 0
        elif text.startswith(b"output") and text == b"output%d" % texts.n_outputs:
            texts.n_outputs += 1
            before_outputs = False
        elif text.startswith(b"expected") and (expected := _EXPECTED.fullmatch(text)) is not None:
            texts.expected.setdefault(expected["how"], set()).add(int(expected["value"]))
        elif text.startswith(b"(at::k") and (dtype := _DTYPE.fullmatch(text)) is not None:
            texts.dtypes.add(dtype[1].decode())
        elif text.startswith(_SPEC):
            texts.specs.append(text.decode(errors="replace"))
        elif text.startswith(b"input_handles[") and (one := _OF_INPUT.fullmatch(text)) is not None:
            at = int(one[1])
            if one["dim"] is None:
                texts.typed.add(at)
            else:
                kinds = {b"unmatched dim value": texts.fixed, b"dim value is too small": texts.low}
                kinds |= {b"dim value is too large": texts.high, b"unmatched stride value": texts.stepped}
                dims = kinds.get(one["what"], {})
                dims.setdefault(at, set()).add(int(one["dim"]))
        elif before_outputs and _CONSTANT.fullmatch(text) is not None and len(texts.names) < MOST_NAMES:
            texts.names.append(text.decode())


def _input(at: int, name: str, texts: _Texts) -> JsonObject:
    seen = texts.fixed.get(at, set()) | texts.low.get(at, set()) | texts.high.get(at, set())
    rank = max(seen, default=-1) + 1
    # A dim that is not fixed has a least size where any has one; a constant stride shows one that has none.
    complete = len(seen) == rank and rank > 0 and max(texts.stepped.get(at, ()), default=-1) < rank
    complete = complete and (bool(texts.low) or rank - 1 in texts.stepped.get(at, ()))
    dtype = SCALAR_NAMES.get(next(iter(texts.dtypes))) if len(texts.dtypes) == 1 and at in texts.typed else None
    dims: list[JsonValue] = []
    for dim in range(rank):
        # A fixed one has one of the sizes and strides that are ever expected; of bounds the widest is certain.
        sizes = sorted(texts.expected.get(_FIXED, ()))
        low = texts.expected.get(_LOW, ()) if dim in texts.low.get(at, ()) else ()
        high = texts.expected.get(_HIGH, ()) if dim in texts.high.get(at, ()) else ()
        if dim in texts.fixed.get(at, ()):
            dims.append({"static": sizes[0]} if len(sizes) == 1 else {"among": [*sizes]})
        else:
            dims.append({"min": min(low, default=None), "max": max(high, default=None)})
    return {"name": name, "dtype": dtype, "dims": dims, "strides": [None] * rank, "complete": complete}


# From the inputs: which leaves are tensors.
def resolve_leaves(contract: ModelContract, inputs: InputSet) -> ModelContract:
    """``contract`` in the reading that fits ``inputs`` best; unchanged where nothing is open or several fit alike.

    Leaves are certain afterwards if every one of them fits, or if all inputs find tensors of their dtype and rank: then
    what does not fit is a fault of the call.
    """
    if not contract.readings:
        return contract
    given = dict(inputs.leaves())
    tensors: dict[int | None, LeafSpec] = {leaf.input_index: leaf for leaf in contract.tensor_leaves()}
    scores = [_score(reading, contract.leaves, tensors, given) for reading in contract.readings]
    best = max(scores)
    if scores.count(best) > 1:
        return contract
    reading = contract.readings[scores.index(best)]
    certain = best[0] == len(contract.leaves) or best[1] == 2 * len(tensors)
    leaves = []
    for leaf in contract.leaves:
        # What the wrapper says of input ``at``, under the names of the leaf.
        at = reading[leaf.index]
        kind = leaf.kind if not certain else "constant" if at is None else "tensor"
        spec = tensors[at] if at is not None else LeafSpec(index=leaf.index, path=leaf.path, kind=kind)
        leaves.append(replace(spec, index=leaf.index, path=leaf.path, kind=kind, triton_names=leaf.triton_names))
    paths = {tensors[leaf.input_index].path: leaf.path for leaf in leaves if leaf.input_index is not None}
    symbols = []
    for symbol in contract.symbols:
        places = [place.rpartition(".shape[") for place in symbol.appears_in]
        renamed = tuple(f"{paths.get(path, path)}{mark}{dim}" for path, mark, dim in places)
        symbols.append(replace(symbol, appears_in=renamed))
    return replace(
        contract,
        leaves=tuple(leaves),
        outputs=tuple(replace(one, same_as=paths.get(one.same_as or "", one.same_as)) for one in contract.outputs),
        symbols=tuple(symbols),
        readings=() if certain else contract.readings,
        problems=tuple(text for text in contract.problems if not certain or text != contract.open_leaves),
        open_leaves=None if certain else contract.open_leaves,
    )


def _score(
    reading: Reading, leaves: Sequence[LeafSpec], tensors: Mapping[int | None, LeafSpec], given: Mapping[str, LeafValue]
) -> tuple[int, int, int]:
    """Leaves that are what the reading says, tensors of the dtype and rank it says, and flags that it takes for flags.

    The last decides only where a tensor is missing: a None in its place is likelier than a True or a number.
    """
    kinds = details = flags = 0
    for leaf in leaves:
        if leaf.path not in given:
            continue
        value, spec = given[leaf.path], tensors.get(reading[leaf.index])
        kinds += isinstance(value, TensorDesc) == (spec is not None)
        flags += spec is None and isinstance(value, PlainValue) and value.type not in ("None", "NoneType")
        if spec is not None and isinstance(value, TensorDesc):
            details += (value.dtype == spec.dtype) + (len(value.shape) == spec.rank)
    return kinds, details, flags
