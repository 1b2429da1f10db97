"""Load an exported program with mapped weights, and cut a part of one into a program of its own; job ``cut``.

The archive keeps each storage as it is in memory, uncompressed. Such a member is mapped, privately: what the program
writes to its buffers stays in this process. Pages that are only read belong to the page cache and to all processes.
Checksums are not looked at, as torch does not look at them. Whatever is not like that (compressed, misaligned, empty,
pickled, of another device) is left to torch. What torch only logs about a failure goes into the words of the error.

Job ``cut``: any set of the program's operators is a program: what they take from the others becomes an input, and
what the others (or the caller) take from them an output. The inputs get the values that plain PyTorch computes for
them, and the part is exported with the sizes, dtypes and strides that the whole was exported with, so that a call
that does not keep to those does not keep to them here either. Sizes that were dynamic stay so; weights stay weights.
"""

from __future__ import annotations

import logging
import mmap
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aotidoctor.model.jobs import Cut
from aotidoctor.readers.package.blob import path_blob
from aotidoctor.readers.package.zip_archive import STORED, ZipEntry, read_zip_directory
from aotidoctor.worker.call import ModelCall, read_call
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.user_code import load_setup

# Weights as views of the file, for torch.export.load to use in place of copies.

_ALIGNMENT = 16
_Build = Callable[[Any, Any, str], dict[str, Any]]


@contextmanager
def map_payloads(path: Path) -> Iterator[None]:
    """While this is entered, ``torch.export.load(path)`` maps what it can. Torch before 2.9 copies as ever."""
    try:
        from torch.export.pt2_archive import _package
    except ImportError:
        yield
        return
    original = getattr(_package, "_build_file_map", None)
    build = _builder(original, path) if original is not None else None
    if build is None:
        yield
        return
    _package._build_file_map = build
    try:
        yield
    finally:
        _package._build_file_map = original


def _builder(original: _Build, path: Path) -> _Build | None:
    """Stands for torch's function: member name -> flat tensor of one storage; None where nothing can be mapped."""
    try:
        members = _members(path)
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
            tensor = _tensor(data, entry, meta.tensor_meta) if entry is not None else None
            if tensor is None:
                left[fqn] = meta
            else:
                made[meta.path_name] = tensor
        return made | (original(reader, type(config)(config=left), folder) if left else {})

    return build


def _members(path: Path) -> dict[str, ZipEntry]:
    """The members that can be mapped, by their names below the archive's only folder."""
    directory = read_zip_directory(path_blob(str(path), path.stat().st_size))
    entries = directory.entries if directory is not None else ()
    names = Counter(entry.name.partition("/")[2] for entry in entries)
    return {
        name: entry
        for entry in entries
        if names[name := entry.name.partition("/")[2]] == 1
        and entry.method == STORED
        and entry.size == entry.compressed > 0
        and not (entry.encrypted or entry.mismatch)
    }


def _tensor(data: mmap.mmap, entry: ZipEntry, meta: Any) -> Any:
    """The flat tensor over a member's bytes; None where torch is to make it."""
    import torch
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


class _Logged(logging.Handler):
    """Keeps the exceptions that are logged and then swallowed."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.seen: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            self.seen.append(error)


def load_program(path: Path) -> Any:
    """``torch.export.load`` with mapped weights. It says "please check the warnings above" where it knows better.

    Raises:
        RuntimeError: what was behind that: the first cause, such as an operator that nobody has registered.
    """
    import torch

    logged = _Logged()
    log = logging.getLogger("torch.export")
    log.addHandler(logged)
    try:
        with map_payloads(path):
            return torch.export.load(str(path))
    except RuntimeError as error:
        if not logged.seen:
            raise
        first = logged.seen[-1]
        while first.__cause__ is not None or first.__context__ is not None:
            first = first.__cause__ or first.__context__ or first
        said = str(first).strip().partition("\n")[0] or type(first).__name__
        raise RuntimeError(f"{said[:_LONGEST]}") from error
    finally:
        log.removeHandler(logged)


# Job cut.

# Of these nothing is computed: they hold sizes, or check them.
_CHECKS = ("_assert", "sym_constrain", "assert_async")


class CannotCutError(Exception):
    """The part is no program; the text says why."""


def cut(payload: Cut, channel: Channel) -> dict[str, Any]:
    """Write ``exported.pt2`` and ``sample.pt`` to ``payload.folder``; ``nodes`` are the operators to keep.

    Without ``nodes`` all are kept. The result's ``operators`` are the names of all operators in order, ``targets`` what
    they call; ``kept`` counts those of the part, ``inputs`` its inputs; ``problem`` says why there is no such part.
    """
    load_setup(payload, channel)
    channel.enter("load_reference")
    import torch

    program = torch.export.load(str(channel.user_cwd / payload.reference)).run_decompositions({})
    channel.enter("inputs")
    call = read_call(payload.inputs, channel)
    operators = [node for node in program.graph.nodes if _is_operator(node)]
    told = {"operators": [node.name for node in operators], "targets": [str(node.target) for node in operators]}
    channel.put(**told)
    wanted = set(payload.nodes) if payload.nodes is not None else {node.name for node in operators}
    channel.enter("reference")
    values = _values(program, call)
    channel.enter("cut")
    try:
        part, sample = _part(program, [node for node in operators if node.name in wanted], values)
    except CannotCutError as error:
        return {**told, "problem": str(error)}
    folder = Path(payload.folder)
    torch.export.save(part, folder / "exported.pt2")
    torch.save({"args": tuple(sample), "kwargs": {}}, folder / "sample.pt")
    return {**told, "kept": len(wanted), "inputs": len(sample)}


def _is_operator(node: Any) -> bool:
    """A call that computes tensors; what takes the results of another one apart belongs to that one."""
    if node.op != "call_function" or _takes_apart(node) or any(word in str(node.target) for word in _CHECKS):
        return False
    return not _is_size(node.meta.get("val"))


def _takes_apart(node: Any) -> bool:
    import operator

    return node.target is operator.getitem


def _is_size(value: Any) -> bool:
    import torch

    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool))


def _values(program: Any, call: ModelCall) -> dict[str, Any]:
    """What plain PyTorch computes for each node, by name; nothing behind one that raises."""
    import torch
    from torch.fx.node import map_arg

    from aotidoctor.worker.float64.float64_run import program_leaves

    flat = iter(program_leaves(program.call_spec.in_spec, call))
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    known: dict[str, Any] = {}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            spec = specs[node.name]
            known[node.name] = (
                next(flat)
                if spec.kind.name == "USER_INPUT"
                else (
                    program.state_dict[spec.target]
                    if spec.target in program.state_dict
                    else program.constants[spec.target]
                )
            )
        elif node.op == "get_attr":
            known[node.name] = getattr(program.graph_module, str(node.target))
        elif node.op == "call_function":
            if not all(one.name in known for one in node.all_input_nodes):
                continue
            args, kwargs = map_arg((node.args, node.kwargs), lambda one: known[one.name])
            try:
                with torch.no_grad():
                    known[node.name] = node.target(*args, **kwargs)
            except Exception:  # noqa: S112 - a call that fails in PyTorch, too
                continue
    return known


def _part(program: Any, operators: list[Any], values: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The part, exported, and the inputs that its operators had within the whole."""
    import torch

    kept = _close_over(operators)
    graph, root = torch.fx.Graph(), torch.nn.Module()
    copies: dict[Any, Any] = {}
    inputs: list[Any] = []
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    outside = [one for node in kept for one in node.all_input_nodes if one not in kept]
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
        if node in kept:
            copies[node] = graph.node_copy(node, lambda old: copies[old])
    graph.output(tuple(copies[node] for node in _results(program, kept)))
    sample = [_of(one, values) for one in inputs]
    module = torch.fx.GraphModule(root, graph)
    return _export_part(module, inputs, sample), sample


def _close_over(operators: list[Any]) -> dict[Any, None]:
    """With the sizes that they are given, and what takes their results apart."""
    kept: dict[Any, None] = dict.fromkeys(operators)
    todo = list(operators)
    while todo:
        node = todo.pop()
        near = [one for one in node.all_input_nodes if one.op == "call_function" and _is_size(one.meta.get("val"))]
        near += [one for one in node.all_input_nodes if one.op == "call_function" and _takes_apart(one)]
        if isinstance(node.meta.get("val"), (list, tuple)):
            near += [one for one in node.users if _takes_apart(one)]
        if _takes_apart(node):
            near += [node.args[0]]
        todo += [one for one in near if one not in kept]
        kept.update(dict.fromkeys(near))
    return kept


def _results(program: Any, kept: dict[Any, None]) -> list[Any]:
    """Tensors that nothing of the part takes, or that something outside does."""
    import torch

    found = [
        node
        for node in program.graph.nodes
        if node in kept
        and isinstance(node.meta.get("val"), torch.Tensor)
        and (not node.users or any(user not in kept for user in node.users))
    ]
    if not found:
        raise CannotCutError("it has no results")
    return found


def _as_weight(root: Any, graph: Any, name: str, value: Any) -> Any:
    import torch

    if not isinstance(value, torch.Tensor):
        raise CannotCutError(f"{name} is not a tensor")
    if isinstance(value, torch.nn.Parameter):
        root.register_parameter(name, value)
    else:
        root.register_buffer(name, value)
    return graph.get_attr(name)


def _of(node: Any, values: dict[str, Any]) -> Any:
    import torch

    if node.name not in values:
        raise CannotCutError(f"plain PyTorch does not reach {node.name}")
    value = values[node.name]
    if not isinstance(value, torch.Tensor):
        raise CannotCutError(f"{node.name} is not a tensor")
    return value.detach()


def _export_part(module: Any, inputs: list[Any], sample: list[Any]) -> Any:
    """Exported with what the whole was exported with: dtype, strides and static sizes of each input."""
    import torch

    examples, dynamic = [], []
    for node, value in zip(inputs, sample, strict=True):
        planned = node.meta["val"]
        examples.append(_example(planned, value))
        dims = {at for at, size in enumerate(planned.shape) if isinstance(size, torch.SymInt)}
        dynamic.append(dict.fromkeys(dims, torch.export.Dim.AUTO) or None)
    try:
        with torch.no_grad():
            return torch.export.export(module, tuple(examples), dynamic_shapes=tuple(dynamic) or None)
    except Exception as error:
        raise CannotCutError(f"it cannot be exported: {type(error).__name__}: {str(error)[:200]}") from error


def _example(planned: Any, value: Any) -> Any:
    """A tensor as it was planned, with the values that there are, as far as they fit."""
    import torch

    same_rank = planned.dim() == value.dim()
    sizes = [
        (value.shape[at] if same_rank else 4) if isinstance(size, torch.SymInt) else int(size)
        for at, size in enumerate(planned.shape)
    ]
    order = sorted(range(len(sizes)), key=lambda at: _rank(planned.stride()[at], at), reverse=True)
    made = torch.empty([sizes[at] for at in order], dtype=planned.dtype, device=planned.device).fill_(0)
    back = [order.index(at) for at in range(len(order))]
    made = made.permute(back)
    if list(value.shape) == sizes and value.dtype == planned.dtype:
        made.copy_(value)
    return made


def _rank(stride: Any, at: int) -> tuple[int, int]:
    """Where a dim is in memory: by its stride, at the value that an export saw; the outer one first."""
    node = getattr(stride, "node", None)
    hint = getattr(node, "hint", None) if node is not None else stride
    return (int(hint) if hint is not None else 1 << 40, -at)
