"""``wrapper.cpp`` and its neighbours to a ``Contract``.

The generated wrapper says everything that the compiled code expects of its caller; nobody else writes it down. It is
read as text, section by section, and nothing is executed. Statements in the parts that hold the contract which fit no
rule are counted by the kind of fact that may be lost with them, so that a new version of the generator shows up in the
report instead of in a wrong answer. Not read, on purpose: the folding of constants, which runs when the package is
loaded, and the runtime's own code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aotidoctor.model.artifact import Artifact, ModelEntry
from aotidoctor.model.contract import Contract, LeafSpec, Reading, Symbol
from aotidoctor.model.record import record
from aotidoctor.model.tree import Container, walk_call
from aotidoctor.model.treespec import SpecError, count_leaves, parse_call
from aotidoctor.readers.contract.body import parse_body
from aotidoctor.readers.contract.body_records import Body
from aotidoctor.readers.contract.checks_section import parse_checks
from aotidoctor.readers.contract.constructor import Constructor, parse_constructor
from aotidoctor.readers.contract.custom_calls import read_custom_calls
from aotidoctor.readers.contract.dataflow import unwritten_reads
from aotidoctor.readers.contract.implied import has_open_strides, is_described, with_implied_dtypes
from aotidoctor.readers.contract.incomplete import Declared, note_incomplete
from aotidoctor.readers.contract.kernel_sources import read_kernel_sources
from aotidoctor.readers.contract.kernels import arguments_of, kind_of, read_kernels, triton_name, written_and_read
from aotidoctor.readers.contract.launch import Launch
from aotidoctor.readers.contract.leaf_order import order_leaves
from aotidoctor.readers.contract.leaves import Sources, build_leaves, infer_shared, tensor_leaf
from aotidoctor.readers.contract.losses import Losses
from aotidoctor.readers.contract.needs import read_needs
from aotidoctor.readers.contract.outputs import build_outputs, output_paths
from aotidoctor.readers.contract.symbols import SymbolTable, read_symbols
from aotidoctor.readers.contract.text import Wrapper, compile_command, find_sections
from aotidoctor.readers.contract.weight_mapping import weights_location


@record
class _Call:
    """The call spec and what could not be read of it."""

    args: Container[int] | None
    kwargs: Container[int] | None
    leaves: tuple[LeafSpec, ...]
    problems: tuple[str, ...]
    readings: tuple[Reading, ...] = ()


def read_contract(artifact: Artifact, model: ModelEntry) -> Contract | None:
    """The contract of ``model``; None when it has no ``wrapper.cpp`` or none that can be recognised."""
    if model.wrapper_cpp is None:
        return None
    wrapper = find_sections(model.wrapper_cpp)
    constructor = parse_constructor(wrapper.constructor)
    return None if constructor is None else _contract(artifact, model, wrapper, constructor)


def _contract(artifact: Artifact, model: ModelEntry, wrapper: Wrapper, constructor: Constructor) -> Contract:
    body = parse_body(wrapper.body, Declared(model))
    triton, triton_losses = _launches(wrapper)
    launches = {**triton, **body.launches}
    checks = parse_checks(wrapper.checks)
    symbols = read_symbols(body)
    note_incomplete(wrapper, constructor, checks, body, symbols=symbols, launches=launches)
    unread = tuple(
        item for part in (constructor.losses, checks.losses, triton_losses, body.losses) for item in part.items()
    )
    sources = Sources(
        names=constructor.input_names,
        checks=checks,
        body=body,
        symbols=symbols,
        mutated=_mutated(body, launches),
    )
    call = _call(artifact, model, constructor, sources)
    texts = _kernel_texts(model)
    facts = read_kernel_sources(texts, launches, model.wrapper_member)
    kernels = read_kernels(body.calls, launches, model.extern_nodes, symbols.aliases)
    command = wrapper.command or next(filter(None, map(compile_command, texts.values())), "")
    contract = Contract(
        model_name=model.name,
        source="wrapper.cpp",
        args=call.args,
        kwargs=call.kwargs,
        leaves=call.leaves,
        n_inputs=constructor.n_inputs,
        n_outputs=constructor.n_outputs,
        n_constants=constructor.n_constants,
        outputs=build_outputs(
            output_paths(constructor.out_spec, constructor.n_outputs), body, symbols, call.leaves, constructor.constants
        ),
        symbols=list_symbols(call.leaves, symbols.definitions),
        constants=constructor.constants,
        kernels=kernels,
        bound_checks=facts.bounds,
        custom_ops=_custom_ops(model),
        custom_calls=read_custom_calls(body, model.extern_nodes),
        needs=read_needs(
            model,
            command,
            facts,
            kernels=kernels,
            launches=launches,
            unwritten=unwritten_reads(body.events, launches),
        ),
        weights=weights_location(model, constructor.constants, constructor.include_weights),
        in_spec=constructor.in_spec,
        out_spec=constructor.out_spec,
        member=model.wrapper_member,
        unknown_lines=sum(item.count for item in unread),
        problems=(*call.problems, *_rank_problems(call.leaves)),
        readings=call.readings,
        open_leaves=call.problems[0] if call.readings else None,
        bodies=facts.bodies,
        renamed=body.renamed,
        views=frozenset(body.view_shapes),
        buffer_devices={name: buffer.device_type for name, buffer in body.buffers.items()},
        unread=unread,
    )
    return _implied(contract, body, symbols, texts)


def _launches(wrapper: Wrapper) -> tuple[Mapping[str, Launch], Losses]:
    """The functions that launch Triton kernels; a model without any does not pay for their reader."""
    if "void call_" not in wrapper.launches.text:
        return {}, Losses("launches")
    from aotidoctor.readers.contract.launches import read_launches  # noqa: PLC0415

    found = read_launches(wrapper.launches, wrapper.head)
    return found.kernels, found.losses


def _implied(contract: Contract, body: Body, symbols: SymbolTable, texts: Mapping[str, str]) -> Contract:
    """What only the use of an input tells of it, where no check does: the readers of that are imported when needed."""
    leaves = contract.tensor_leaves()
    if not all(map(is_described, leaves)):
        from aotidoctor.readers.contract.implied_products import with_implied_products  # noqa: PLC0415

        contract = with_implied_dtypes(with_implied_products(contract, body, symbols))
    if any(leaf.has_open_sizes for leaf in leaves):
        from aotidoctor.readers.contract.implied_reads import with_implied_reads  # noqa: PLC0415

        contract = with_implied_reads(contract, texts)
    if any(map(has_open_strides, leaves)):
        from aotidoctor.readers.contract.implied_walks import with_implied_walks  # noqa: PLC0415

        contract = with_implied_walks(contract, body, symbols, texts)
    return contract


def _kernel_texts(model: ModelEntry) -> Mapping[str, str]:
    """All sources that may hold kernels: with ``package_cpp_only`` they stand in the wrapper itself."""
    texts = dict(model.kernel_sources)
    if model.wrapper_cpp is not None and model.wrapper_member is not None:
        texts[model.wrapper_member] = model.wrapper_cpp
    return texts


def _mutated(body: Body, launches: Mapping[str, Launch]) -> frozenset[str]:
    """Inputs that a generated C++ or Triton kernel takes as something to write to."""
    written: set[str] = set()
    for call in body.calls:
        kind = kind_of(call)
        if kind == "triton" and triton_name(call) not in launches:
            # Before 2.7 a launch does not tell what is only read; what is updated is given twice.
            names = arguments_of(call)
            written |= {name for name in names if names.count(name) > 1}
        elif kind in ("cpp", "triton"):
            written |= written_and_read(call, launches)[0]
    return frozenset(written & body.unpacked.keys())


def _custom_ops(model: ModelEntry) -> tuple[str, ...]:
    """Operators that the proxy executor must find registered; those of ATen itself always are."""
    targets = dict.fromkeys(node.target for node in model.extern_nodes)
    return tuple(target for target in targets if not target.startswith(("aten::", "torch.ops.aten.")))


def _call(artifact: Artifact, model: ModelEntry, constructor: Constructor, sources: Sources) -> _Call:
    try:
        args, kwargs = parse_call(constructor.in_spec or "")
    except SpecError as error:
        flat = tuple(
            tensor_leaf(at, sources, index=at, path=f"args[{at}]", kind="tensor", triton_names=(f"INPUT__{at}",))
            for at in range(len(sources.names))
        )
        reason = (
            f"the call spec cannot be read: {error}" if constructor.in_spec else "the package contains no call spec"
        )
        return _Call(args=None, kwargs=None, leaves=tuple(infer_shared(flat)), problems=(reason,))
    total = count_leaves(args) + count_leaves(kwargs)
    known = _constant_leaves(artifact, model, constructor.in_spec, args, kwargs)
    order = order_leaves(sources.names, total, constructor.constants, known)
    leaves = infer_shared(build_leaves(args, kwargs, order, sources))
    problems = (order.problem,) if order.problem is not None else ()
    return _Call(args=args, kwargs=kwargs, leaves=tuple(leaves), problems=problems, readings=order.readings)


def _constant_leaves(
    artifact: Artifact, model: ModelEntry, in_spec: str | None, args: Container[int], kwargs: Container[int]
) -> frozenset[int] | None:
    """Leaves that an exported program in the same archive, of the same name and spec, shows to be constants."""
    for exported in artifact.exported:
        if exported.in_spec == in_spec and exported.name in (model.name, "model") and exported.constant_inputs:
            return frozenset(index for path, index in walk_call(args, kwargs) if path in exported.constant_inputs)
    return None


def _rank_problems(leaves: Sequence[LeafSpec]) -> tuple[str, ...]:
    """Inputs of which the wrapper shows some dims but not how many there are."""
    return tuple(
        f"the rank of {leaf.path} is not certain: its checks show {len(leaf.dims or ())} dims"
        for leaf in leaves
        if leaf.input_index is not None and leaf.rank is None
    )


def list_symbols(leaves: Sequence[LeafSpec], definitions: Mapping[str, str]) -> tuple[Symbol, ...]:
    """Symbols in the order of their definition, with the dims that show them."""
    places: dict[str, list[str]] = {}
    for leaf in leaves:
        for dim, size in enumerate(leaf.dims or ()):
            if size.expr is not None and size.static is None:
                for name in sorted(size.expr.symbols):
                    places.setdefault(name, []).append(f"{leaf.path}.shape[{dim}]")
    names = [*definitions, *(name for name in places if name not in definitions)]
    return tuple(
        Symbol(name=name, definition=definitions.get(name, ""), appears_in=tuple(places.get(name, ())))
        for name in names
    )
