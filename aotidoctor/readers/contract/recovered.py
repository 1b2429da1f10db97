"""The contract of a package without sources, from what its running code said when asked (worker job ``recover``).

Known: number of inputs, dtype, dims, bounds, constant strides and device type as far as the compiled checks go; the
call spec; names, types and sizes of constants. Not known: which dims share a symbol, trailing dims that no check
mentions, kernels, outputs and what the host must offer beyond the metadata.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.contract import ConstantSpec, Contract, Dim, HostNeeds, LeafSpec, OutputSpec
from aotidoctor.model.expr import Num
from aotidoctor.model.json_types import JsonObject, JsonValue, as_integer, as_list, as_object, objects, text_of
from aotidoctor.model.tree import Container, walk_call
from aotidoctor.model.treespec import SpecError, count_leaves, parse_call
from aotidoctor.readers.contract.leaf_order import LeafOrder, order_leaves
from aotidoctor.readers.contract.needs import isa_features
from aotidoctor.readers.contract.outputs import output_paths


def recovered_contract(model_name: str, result: JsonObject) -> Contract:
    """A ``Contract`` from the job's result; ``problems`` says what could not be learned."""
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
        leaves, order = _placed(args, kwargs, names, inputs, constants)
        problems += [order.problem] if order.problem is not None else []
    else:
        order = LeafOrder(input_of={}, certain=frozenset())
        leaves = tuple(
            _leaf(entry, at, names[at], index=at, path=f"args[{at}]", kind="tensor") for at, entry in enumerate(inputs)
        )
        problems.append("the package contains no readable call spec")
    return Contract(
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


def _placed(
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
    dims = tuple(map(_dim, objects(entry.get("dims"))))
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
        dims=dims if complete or dims else None,
        strides=strides if complete or strides else None,
        device_type=text_of(entry.get("device_type")),
        stride_exprs=tuple(None if stride is None else Num(stride) for stride in strides) if complete else None,
    )


def _dim(dim: JsonObject) -> Dim:
    static = as_integer(dim.get("static"))
    if static is not None:
        return Dim(static=static, expr=Num(static))
    among = tuple(size for size in map(as_integer, as_list(dim.get("among"))) if size is not None)
    return Dim(min=as_integer(dim.get("min")), max=as_integer(dim.get("max")), among=among)


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
