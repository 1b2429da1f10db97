"""Load an exported program with mapped weights, and cut a part of one into a program of its own; job ``cut``.

The archive holds each storage as it is in memory, uncompressed. Such a member is mapped, privately: what the program
writes to its buffers stays in this process. Pages that are only read belong to the page cache and to all processes.
Checksums are not checked, as torch does not check them. All other members (compressed, misaligned, empty, pickled, of
another device) are left to torch. The cause of a failure that torch only logs goes into the message of the error.

Job ``cut``: any set of the program's operators is a program: what they take from the others becomes an input, and
what the others (or the caller) take from them an output. The inputs get the values that plain PyTorch computes for
them. The part is exported with the sizes, dtypes and strides that the whole was exported with, so that a call that
violates those violates them here as well. Sizes that were dynamic stay so; weights stay weights.
"""

from __future__ import annotations

import logging
import mmap
import typing
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

import torch

from aotidoctor.model.jobs import Cut
from aotidoctor.readers.package.blob import path_blob
from aotidoctor.readers.package.zip_archive import STORED, ZipEntry, read_zip_directory
from aotidoctor.worker.call import ModelCall, read_call
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.float64.float64_run import program_leaves
from aotidoctor.worker.user_code import attribute_replaced, load_setup

# Weights as views of the file, for torch.export.load to use in place of copies.
_ALIGNMENT = 16
_Build = Callable[[Any, Any, str], dict[str, Any]]


def map_payloads(path: Path) -> AbstractContextManager[None]:
    """Let ``torch.export.load(path)`` map the members that it can; torch before 2.9 copies all of them, as always."""
    try:
        from torch.export.pt2_archive import _package
    except ImportError:
        return nullcontext()
    original = getattr(_package, "_build_file_map", None)
    build = _builder(original, path) if original is not None else None
    return nullcontext() if build is None else attribute_replaced(_package, "_build_file_map", build)


def _builder(original: _Build, path: Path) -> _Build | None:
    """Stand-in for torch's ``_build_file_map`` (member name -> flat tensor); None where nothing can be mapped."""
    try:
        # The members that can be mapped, by their names below the archive's only folder.
        directory = read_zip_directory(path_blob(str(path), path.stat().st_size))
        entries = directory.entries if directory is not None else ()
        names = Counter(entry.name.partition("/")[2] for entry in entries)
        members = {
            name: entry
            for entry in entries
            if names[name := entry.name.partition("/")[2]] == 1
            and entry.method == STORED
            and entry.size == entry.compressed > 0
            and not (entry.encrypted or entry.mismatch)
        }
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError):
        return None

    def build(reader: Any, config: Any, folder: str) -> dict[str, Any]:
        made: dict[str, Any] = {}
        left: dict[str, Any] = {}
        for fqn, meta in config.config.items():
            if meta.use_pickle or meta.path_name in made:
                continue
            entry = members.get(f"{folder}{meta.path_name}")
            tensor = _map_member(data, entry, meta.tensor_meta) if entry is not None else None
            if tensor is None:
                left[fqn] = meta
            else:
                made[meta.path_name] = tensor
        return made | (original(reader, type(config)(config=left), folder) if left else {})

    return build


def _map_member(data: mmap.mmap, entry: ZipEntry, meta: Any) -> Any:
    """A flat tensor over a member's bytes; None where torch must make it."""
    from torch.export.pt2_archive import _package

    begin = entry.data_offset
    if begin is None or begin % _ALIGNMENT or meta is None or _package.deserialize_device(meta.device).type != "cpu":
        return None
    dtype = _package.deserialize_scalar_type(meta.dtype)
    if entry.size % dtype.itemsize or begin + entry.size > len(data):
        return None
    tensor = torch.frombuffer(data, dtype=dtype, count=entry.size // dtype.itemsize, offset=begin)
    return tensor.requires_grad_(True) if meta.requires_grad else tensor


# The program from its file.
_LONGEST = 400
_SCHEMA = "torch._export.serde.schema"


def _known_type_hints() -> AbstractContextManager[None]:
    """Let torch find out the types of each class of its schema once, not for each object: a quarter of the time."""
    original, known = typing.get_type_hints, dict[Any, dict[str, Any]]()

    def get_type_hints(obj: Any, *args: Any, **options: Any) -> dict[str, Any]:
        if getattr(obj, "__module__", None) != _SCHEMA:
            return original(obj, *args, **options)
        if obj not in known:
            known[obj] = original(obj, *args, **options)
        return known[obj]

    return attribute_replaced(typing, "get_type_hints", get_type_hints)


class _ExceptionCollector(logging.Handler):
    """Collects the exceptions that torch logs and then swallows."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.exceptions: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            self.exceptions.append(error)


def load_program(path: Path) -> Any:
    """Load an exported program with mapped weights, and raise the cause where torch only refers to its log.

    Raises:
        RuntimeError: the first cause that torch logged, such as an operator that is not registered.
    """
    collector = _ExceptionCollector()
    log = logging.getLogger("torch.export")
    log.addHandler(collector)
    try:
        with map_payloads(path), _known_type_hints():
            return torch.export.load(str(path))
    except RuntimeError as error:
        if not collector.exceptions:
            raise
        first = collector.exceptions[-1]
        while first.__cause__ is not None or first.__context__ is not None:
            first = first.__cause__ or first.__context__ or first
        reason = str(first).strip().partition("\n")[0] or type(first).__name__
        raise RuntimeError(reason[:_LONGEST]) from error
    finally:
        log.removeHandler(collector)


# Job cut. These compute nothing: they hold sizes, or check them.
_CHECKS = ("_assert", "sym_constrain", "assert_async")


class CannotCutError(Exception):
    """Raised when the part is no program; the text gives the reason."""


def cut(payload: Cut, channel: Channel) -> dict[str, Any]:
    """Write ``exported.pt2`` and ``sample.pt`` to ``payload.folder``; ``nodes`` are the operators to keep (None: all).

    The result's ``operators`` are the names of all operators in order, ``targets`` what they call; ``kept`` counts
    those of the part, ``inputs`` its inputs; ``problem`` is the reason why there is no such part.
    """
    load_setup(payload, channel)
    channel.enter("load_reference")
    program = torch.export.load(str(channel.user_cwd / payload.reference)).run_decompositions({})
    channel.enter("inputs")
    call = read_call(payload.inputs, channel)
    # Calls that compute tensors; a node that takes the results of another one apart belongs to that one.
    operators = [
        node
        for node in program.graph.nodes
        if node.op == "call_function"
        and not _takes_apart(node)
        and not any(word in str(node.target) for word in _CHECKS)
        and not _is_size(node.meta.get("val"))
    ]
    names = {"operators": [node.name for node in operators], "targets": [str(node.target) for node in operators]}
    channel.put(**names)
    wanted = set(payload.nodes) if payload.nodes is not None else {node.name for node in operators}
    channel.enter("reference")
    values = _values(program, call)
    channel.enter("cut")
    try:
        part, sample = _part(program, [node for node in operators if node.name in wanted], values)
    except CannotCutError as error:
        return {**names, "problem": str(error)}
    folder = Path(payload.folder)
    torch.export.save(part, folder / "exported.pt2")
    torch.save({"args": tuple(sample), "kwargs": {}}, folder / "sample.pt")
    return {**names, "kept": len(wanted), "inputs": len(sample)}


def _takes_apart(node: Any) -> bool:
    import operator

    return node.target is operator.getitem


def _is_size(value: Any) -> bool:
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool))


def _values(program: Any, call: ModelCall) -> dict[str, Any]:
    """Values that plain PyTorch computes for the nodes, by name; none behind a node that raises."""
    from torch.fx.node import map_arg

    flat = iter(program_leaves(program.call_spec.in_spec, call))
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    known: dict[str, Any] = {}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            spec = specs[node.name]
            if spec.kind.name == "USER_INPUT":
                known[node.name] = next(flat)
            else:
                held = program.state_dict if spec.target in program.state_dict else program.constants
                known[node.name] = held[spec.target]
        elif node.op == "get_attr":
            known[node.name] = getattr(program.graph_module, str(node.target))
        elif node.op == "call_function" and all(one.name in known for one in node.all_input_nodes):
            args, kwargs = map_arg((node.args, node.kwargs), lambda one: known[one.name])
            # The call may fail in PyTorch as well.
            with suppress(Exception), torch.no_grad():
                known[node.name] = node.target(*args, **kwargs)
    return known


def _part(program: Any, operators: list[Any], values: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The part, exported, and the values of its inputs within the whole."""
    part = _close_over(operators)
    graph, root = torch.fx.Graph(), torch.nn.Module()
    copies: dict[Any, Any] = {}
    inputs: list[Any] = []
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    outside = [one for node in part for one in node.all_input_nodes if one not in part]
    held = []
    for one in dict.fromkeys(outside):
        spec = specs.get(one.name)
        if one.op == "get_attr" or (spec is not None and spec.kind.name != "USER_INPUT"):
            held.append(one)
        else:
            copies[one] = graph.placeholder(f"in_{one.name}")
            inputs.append(one)
    for one in held:
        if one.op == "get_attr":
            setattr(root, str(one.target), getattr(program.graph_module, str(one.target)))
            copies[one] = graph.get_attr(str(one.target))
        else:
            copies[one] = _as_weight(root, graph, one.name, values[one.name])
    for node in program.graph.nodes:
        if node in part:
            copies[node] = graph.node_copy(node, lambda old: copies[old])
    # Tensors that nothing in the part uses, or that something outside uses.
    results = [
        copies[node]
        for node in program.graph.nodes
        if node in part
        and isinstance(node.meta.get("val"), torch.Tensor)
        and (not node.users or any(user not in part for user in node.users))
    ]
    if not results:
        raise CannotCutError("it has no results")
    graph.output(tuple(results))
    return _export_part(torch.fx.GraphModule(root, graph), inputs, values)


def _close_over(operators: list[Any]) -> dict[Any, None]:
    """The operators, the nodes of their sizes, and the nodes that take results apart."""
    part: dict[Any, None] = dict.fromkeys(operators)
    todo = list(operators)
    while todo:
        node = todo.pop()
        near = [one for one in node.all_input_nodes if one.op == "call_function" and _is_size(one.meta.get("val"))]
        near += [one for one in node.all_input_nodes if one.op == "call_function" and _takes_apart(one)]
        if isinstance(node.meta.get("val"), (list, tuple)):
            near += [one for one in node.users if _takes_apart(one)]
        if _takes_apart(node):
            near += [node.args[0]]
        todo += [one for one in near if one not in part]
        part.update(dict.fromkeys(near))
    return part


def _as_weight(root: Any, graph: Any, name: str, value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        raise CannotCutError(f"{name} is not a tensor")
    if isinstance(value, torch.nn.Parameter):
        root.register_parameter(name, value)
    else:
        root.register_buffer(name, value)
    return graph.get_attr(name)


def _export_part(module: Any, inputs: list[Any], values: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The exported module, with dtype, strides and static sizes of each input as in the whole; values of the inputs."""
    sample, examples, dynamic = [], [], []
    for node in inputs:
        if node.name not in values:
            raise CannotCutError(f"plain PyTorch does not reach {node.name}")
        value, planned = values[node.name], node.meta["val"]
        if not isinstance(value, torch.Tensor):
            raise CannotCutError(f"{node.name} is not a tensor")
        sample.append(value.detach())
        examples.append(_example(planned, value))
        dims = {at for at, size in enumerate(planned.shape) if isinstance(size, torch.SymInt)}
        dynamic.append(dict.fromkeys(dims, torch.export.Dim.AUTO) or None)
    try:
        with torch.no_grad():
            part = torch.export.export(module, tuple(examples), dynamic_shapes=tuple(dynamic) or None)
    except Exception as error:
        raise CannotCutError(f"it cannot be exported: {type(error).__name__}: {str(error)[:200]}") from error
    return part, sample


def _example(planned: Any, value: Any) -> Any:
    """A tensor as it was planned, with the existing values where they fit."""
    same_rank = planned.dim() == value.dim()
    sizes = [
        (value.shape[at] if same_rank else 4) if isinstance(size, torch.SymInt) else int(size)
        for at, size in enumerate(planned.shape)
    ]
    # Strides as the export saw them: they give the order of the dims in memory; of equal ones the first is the outer.
    nodes = [(stride, getattr(stride, "node", None)) for stride in planned.stride()]
    hints = [stride if node is None else getattr(node, "hint", None) for stride, node in nodes]
    strides = [int(hint) if hint is not None else 1 << 40 for hint in hints]
    order = sorted(range(len(sizes)), key=lambda at: (-strides[at], at))
    made = torch.empty([sizes[at] for at in order], dtype=planned.dtype, device=planned.device).fill_(0)
    made = made.permute([order.index(at) for at in range(len(order))])
    if list(value.shape) == sizes and value.dtype == planned.dtype:
        made.copy_(value)
    return made
