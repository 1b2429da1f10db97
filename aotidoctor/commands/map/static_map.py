"""Draw the map of a package from its files alone: what each call reads and writes, where it comes from, what lives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import isqrt, prod

from aotidoctor.commands.map.buffer_lifetimes import Lifetime, bytes_in, lifetimes_of, storage_bytes
from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.localize.blame.package_program import PackageProgram, program_of
from aotidoctor.localize.call_timeline import origin_of
from aotidoctor.model.case import Case
from aotidoctor.model.contract import KernelCall
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.evidence import plural
from aotidoctor.model.expr import evaluate
from aotidoctor.model.package_map import MapBuffer, MapCall, MapKernel, MapLine, MemoryPeak, PackageMap, alive_bytes
from aotidoctor.model.record import as_list, as_object
from aotidoctor.model.torch_names import ITEMSIZE
from aotidoctor.probes.payload import device_of
from aotidoctor.program.archive_graph import source_line
from aotidoctor.readers.contract.run_impl import Body, parse_body
from aotidoctor.readers.contract.wrapper_text import find_sections
from aotidoctor.readers.package.blob import as_text
from aotidoctor.readers.package.constants import read_program_archive

# Products: the two factors are the last two arguments that are tensors, the result is the first.
_PRODUCTS = ("_mm_out", "_addmm_out", "_bmm_out", "_baddbmm_out")
_LONGEST_LINE = 200
_MOST_NODES = 100_000
_NAMED = 8
LINELESS = "the package does not tell its source lines: compile it with INDUCTOR_PROVENANCE=1, or give --reference"


def draw_static_map(case: Case) -> PackageMap:
    """The map of ``case`` without a run; sizes are numbers where the inputs or the package tell them.

    Raises:
        CannotExamineError: there is no wrapper.cpp that can be read.
    """
    program, model = program_of(case), case.model
    if program is None or model is None or model.wrapper_cpp is None or not program.contract.kernels:
        what = "no calls" if program is not None and model is not None and model.wrapper_cpp else "no wrapper.cpp"
        raise CannotExamineError(f"{case.artifact.path}: there is {what} of a model in it, so there is nothing to map")
    body = parse_body(find_sections(model.wrapper_cpp).body, model)
    memory = lifetimes_of(body)
    places = node_places(case.options.reference)
    calls = tuple(_calls(program, places, memory))
    buffers = _buffers(program, memory, calls, body)
    calls = tuple(_with_sizes(call, buffers, program) for call in calls)
    peak, calls = memory_over_calls(buffers, calls)
    notes = [*(() if any(call.where for call in calls) else (LINELESS,)), *size_notes(buffers)]
    if program.contract.unknown_lines:
        notes.append(f"{program.contract.unknown_lines} statements of the wrapper were not understood")
    return PackageMap(
        package=case.artifact.path,
        model_name=program.contract.model_name,
        device=device_of(case),
        inputs=case.inputs_path,
        reference=case.options.reference,
        symbols=dict(program.sizes),
        calls=calls,
        buffers=buffers,
        kernels=_kernels(program, calls),
        lines=lines_of(calls, {where: text for where, text in places.values() if text}),
        peak=peak,
        notes=tuple(notes),
    )


def size_notes(buffers: tuple[MapBuffer, ...]) -> tuple[str, ...]:
    """What is said of buffers without a number as their size."""
    unknown = [one.name for one in buffers if one.bytes is None and one.size is None]
    open_sizes = sum(one.bytes is None and one.size is not None for one in buffers)
    notes = []
    if open_sizes:
        notes.append(f"the sizes of {plural(open_sizes, 'buffer')} depend on the inputs: --inputs determines them")
    if unknown:
        notes.append(f"{plural(len(unknown), 'buffer')} without a known size: {', '.join(unknown[:_NAMED])}")
    return tuple(notes)


# Where calls come from.
def node_places(reference: str | None) -> dict[str, tuple[str, str]]:
    """Node of the exported program to ``model.py:12`` and the text of that line; empty where there is no program."""
    archive = read_program_archive(reference) if reference is not None else ""
    if isinstance(archive, str):
        return {}
    graph = as_object(as_object(archive.document.get("graph_module")).get("graph"))
    found: dict[str, tuple[str, str]] = {}
    for value in as_list(graph.get("nodes"))[:_MOST_NODES]:
        node = as_object(value)
        line = source_line(as_text(as_object(node.get("metadata")).get("stack_trace")).splitlines())
        if line is None:
            continue
        place = f"{line.file.rpartition('/')[2]}:{line.line}"[:_LONGEST_LINE], line.text
        for output in as_list(node.get("outputs")):
            union = as_object(output)
            for one in (union.get("as_tensor"), *as_list(union.get("as_tensors"))):
                if name := as_text(as_object(one).get("name")):
                    found[name] = place
    return found


def _calls(
    program: PackageProgram, places: Mapping[str, tuple[str, str]], memory: Mapping[str, Lifetime]
) -> Iterator[MapCall]:
    known = program.leaves.keys() | program.constants.keys() | memory.keys()
    for at, call in enumerate(program.contract.kernels):
        origin = origin_of(program.case, call.name, call)
        written = _roots(program, program.tensors_written(at), known)
        read = _roots(program, program.taken(at), known)
        if call.kind == "custom":
            # Its arguments may be written to: the wrapper does not tell.
            read = tuple(dict.fromkeys((*read, *(name for name in written if memory.get(name) is None))))
            written = tuple(name for name in written if name in memory)
        by_node = [places[node][0] for node in call.source_nodes if node in places]
        where = [origin.where] if origin.where is not None else by_node
        yield MapCall(
            index=at,
            name=call.name,
            kind=call.kind,
            line=call.line,
            operators=origin.operators or call.origins,
            nodes=call.source_nodes,
            where=tuple(dict.fromkeys(where)),
            reads=read,
            writes=written,
            grid=call.grid,
        )


def _roots(program: PackageProgram, names: tuple[str, ...], known: frozenset[str] | set[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(root for root in map(program.root, names) if root in known))


def lines_of(calls: tuple[MapCall, ...], texts: Mapping[str, str]) -> tuple[MapLine, ...]:
    """The source lines of ``calls`` in the order in which they come first."""
    found: dict[str, list[MapCall]] = {}
    for call in calls:
        for where in call.where:
            found.setdefault(where, []).append(call)
    return tuple(
        MapLine(
            where=where,
            text=texts.get(where, ""),
            nodes=tuple(dict.fromkeys(node for call in made for node in call.nodes)),
            calls=tuple(call.index for call in made),
            seconds=sum(call.time.seconds for call in made if call.time is not None) or None,
        )
        for where, made in found.items()
    )


def _kernels(program: PackageProgram, calls: tuple[MapCall, ...]) -> tuple[MapKernel, ...]:
    by_name: dict[str, list[int]] = {}
    for call in calls:
        by_name.setdefault(call.name, []).append(call.index)
    return tuple(
        MapKernel(
            name=body.name,
            kind=body.kind,
            member=body.member,
            line=body.line,
            lines=body.lines,
            calls=tuple(by_name.get(body.name, ())),
        )
        for body in program.contract.bodies
    )


# Buffers.
def _buffers(
    program: PackageProgram, memory: Mapping[str, Lifetime], calls: tuple[MapCall, ...], body: Body
) -> tuple[MapBuffer, ...]:
    written: dict[str, list[int]] = {}
    read: dict[str, list[int]] = {}
    for call in calls:
        for name in call.writes:
            written.setdefault(name, []).append(call.index)
        for name in call.reads:
            read.setdefault(name, []).append(call.index)
    end = max(0, len(calls) - 1)
    returned = {program.root(name) for name in body.outputs.values()}
    found = [*_constants(program), *_inputs(program)]
    for name, one in memory.items():
        made, used = written.get(name, []), read.get(name, [])
        last = max((*made, *used), default=one.last)
        is_short = bool(made) and last <= made[0] + 1
        found.append(
            MapBuffer(
                name=name,
                label=name,
                role="output" if name in returned else "temporary" if is_short else "activation",
                dtype=one.dtype,
                shape=None if one.shape is None else tuple(map(str, one.shape)),
                size=None if one.size is None else str(one.size),
                bytes=bytes_in(one.size, program.sizes),
                device=one.device,
                names=one.names[1:],
                first=one.first,
                last=one.last,
                pool=one.pool,
            )
        )
    return tuple(
        replace(
            buffer,
            last=buffer.last if buffer.name in memory else end,
            written=tuple(written.get(buffer.name, ())),
            read=tuple(read.get(buffer.name, ())),
        )
        for buffer in found
    )


def _constants(program: PackageProgram) -> Iterator[MapBuffer]:
    for one in program.contract.constants:
        shape = None if one.shape is None else tuple(map(str, one.shape))
        size, item = one.data_size, ITEMSIZE.get(one.dtype or "")
        if size is None and item is not None and one.shape is not None:
            size = item * prod(one.shape)
        yield MapBuffer(
            name=one.name,
            label=one.fqn,
            role="weight",
            dtype=one.dtype,
            shape=shape,
            size=None if size is None else str(size),
            bytes=size,
            device=one.device_type,
        )


def _inputs(program: PackageProgram) -> Iterator[MapBuffer]:
    for name, leaf in program.leaves.items():
        shape = None
        if leaf.dims is not None and leaf.rank is not None:
            shape = tuple(str(dim.static if dim.static is not None else dim.expr or "?") for dim in leaf.dims)
        size = storage_bytes(leaf.dtype, None if shape is None else tuple(map(parse_expr, shape)))
        yield MapBuffer(
            name=name,
            label=leaf.path,
            role="input",
            dtype=leaf.dtype,
            shape=shape,
            size=None if size is None else str(size),
            bytes=bytes_in(size, program.sizes),
            device=leaf.device_type,
        )


def _with_sizes(call: MapCall, buffers: tuple[MapBuffer, ...], program: PackageProgram) -> MapCall:
    sizes = {buffer.name: buffer for buffer in buffers}
    operations = _operations(program.call(call.index), sizes, program)
    return replace(call, moved=moved_bytes(call, sizes), operations=operations)


def moved_bytes(call: MapCall, buffers: Mapping[str, MapBuffer]) -> int | None:
    """Bytes that ``call`` reads and writes; None where it has no buffer, or one without a known size."""
    touched = [buffers[name].bytes for name in (*call.reads, *call.writes) if name in buffers]
    known = [size for size in touched if size is not None]
    return sum(known) if known and len(known) == len(touched) else None


def _operations(call: KernelCall, buffers: Mapping[str, MapBuffer], program: PackageProgram) -> int | None:
    """``2*m*n*k`` of a matrix product, from the elements of its three matrices: their product is ``(m*n*k)**2``."""
    if not call.name.endswith(_PRODUCTS):
        return None
    roots = [root for root in map(program.root, call.arguments) if root in buffers]
    if len(roots) < 3:
        return None
    counts = []
    for name in (roots[0], roots[-2], roots[-1]):
        shape = buffers[name].shape
        sizes = [evaluate(parse_expr(text), program.sizes) for text in shape or ()]
        if not sizes or any(size is None for size in sizes):
            return None
        counts.append([size for size in sizes if size is not None])
    batch = counts[0][0] if "bmm" in call.name else 1
    if batch == 0 or ("bmm" in call.name and any(len(one) != 3 for one in counts)):
        return None
    # The batch is in all three, and in their product twice too often.
    total = prod(map(prod, counts)) // batch**3
    return 2 * isqrt(total) * batch


# Memory over the call.
def memory_over_calls(
    buffers: tuple[MapBuffer, ...], calls: tuple[MapCall, ...]
) -> tuple[MemoryPeak, tuple[MapCall, ...]]:
    """The peak, and ``calls`` with the bytes that live during each."""
    own = [one for one in buffers if one.role not in ("weight", "input") and one.pool is None]
    made = [replace(call, alive=alive) for call, alive in zip(calls, alive_bytes(own, len(calls)), strict=True)]
    top = max(made, key=lambda call: call.alive, default=None)
    there = [one for one in own if top is not None and one.first <= top.index <= one.last]
    return MemoryPeak(
        call=top.index if top is not None else None,
        bytes=top.alive if top is not None else 0,
        weights=sum(one.bytes or 0 for one in buffers if one.role == "weight"),
        inputs=sum(one.bytes or 0 for one in buffers if one.role == "input"),
        alive=tuple(one.name for one in sorted(there, key=lambda one: one.bytes or 0, reverse=True)),
        unknown=tuple(one.name for one in buffers if one.bytes is None),
    ), tuple(made)
