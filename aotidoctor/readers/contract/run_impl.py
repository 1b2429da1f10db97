"""Follow the statements of run_impl: how inputs become symbols, buffers, kernel calls and outputs.

A reused buffer and a new handle are the same tensor; a view is the same memory in another form; a copy, and what a
subgraph takes or returns, have the dtype and shape of the first and perhaps its memory.
"""

from __future__ import annotations

import re
from dataclasses import field, replace
from functools import cached_property

from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.expr import Opaque
from aotidoctor.model.record import record
from aotidoctor.readers.contract.wrapper_statements import Statement, read_statements
from aotidoctor.readers.contract.wrapper_text import NotUnderstood, WrapperSection, fact_kind, is_runtime


@record
class TritonLaunch:
    """A Triton kernel.

    ``inputs`` are the positions of parameters that are only read; ``source`` is the Triton source and ``line`` where it
    begins; ``embedded``: the device code is inside the shared object; ``guarded``: an empty grid is not launched.
    """

    name: str
    grid: tuple[str, ...]
    warps: str | None
    shared: str | None
    device_code: str | None
    embedded: bool
    guarded: bool
    inputs: frozenset[int]
    source: str
    line: int


@record
class Buffer:
    """An allocated buffer: element type, shape and strides as the wrapper writes them, device type."""

    dtype: str
    shape: tuple[str, ...] | None
    device_type: str
    strides: tuple[str, ...] | None = None


@record(kw_only=False, frozen=False)
class Body:
    """Contents of ``run_impl``.

    ``definitions`` are the locals that hold sizes, in order; ``renamed`` maps a name to the one whose tensor it took or
    views (then ``view_shapes`` has its shape); ``like`` maps a name to one of the same dtype and shape whose memory it
    may not share (a copy, or what a subgraph takes or returns); ``numbers`` are the tensors made of a number of the
    program, with its C++ text; ``view_dtypes`` are the dtypes of views with another than their tensor; ``launches`` are
    those of packages before 2.7, by kernel and line; ``used`` are the names that any statement but a check mentions
    once the inputs are unpacked; ``events`` are the allocations, renamings, views, calls, releases and outputs in
    order, for the analysis of the flow of data; ``losses`` are the statements that were not understood.
    """

    losses: NotUnderstood
    unpacked: dict[str, tuple[int, int]] = field(default_factory=dict)
    constants: set[str] = field(default_factory=set)
    definitions: dict[str, str] = field(default_factory=dict)
    assertions: list[Statement] = field(default_factory=list)
    alignments: dict[str, int] = field(default_factory=dict)
    arrays: dict[str, tuple[str, ...]] = field(default_factory=dict)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    like: dict[str, str] = field(default_factory=dict)
    view_shapes: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    outputs: dict[int, str] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)
    calls: list[Statement] = field(default_factory=list)
    events: list[Statement] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    view_dtypes: dict[str, str] = field(default_factory=dict)
    launches: dict[str, TritonLaunch] = field(default_factory=dict)


# Aliases: new names for tensors.
_RESTRIDED = re.compile(r"(\w+)_handle, (\w+), \w+, &\1_handle_restrided")
_VIEW_DTYPE = re.compile(r"(.+), \w+?_dtype_(\w+?)(?:\(\))?, &(\w+)")
_LONGEST = 20_000


def alias_buffer(body: Body, one: Statement, shape: tuple[str, ...] | None = None) -> None:
    """Make ``one.name`` the tensor of ``one.source``, or a ``view`` of it with ``shape``."""
    body.events.append(one)
    body.renamed[one.name] = one.source
    same = one.kind != "view"
    if not same:
        body.view_shapes[one.name] = shape
    origin = body.buffers.get(one.source)
    if origin is not None:
        body.buffers[one.name] = Buffer(
            dtype=origin.dtype,
            shape=origin.shape if same else shape,
            device_type=origin.device_type,
            strides=origin.strides if same else None,
        )


def alias_subgraph_value(body: Body, one: Statement) -> None:
    """Make a name a value that a subgraph takes or returns: of the dtype, shape and perhaps memory of another."""
    name, source = one.name.removesuffix("_handle"), tensor_below(one.source)
    body.events.append(replace(one, name=name, source=source))
    if name not in body.like or source in body.buffers:
        # Of several branches, or the start and the rounds of a loop, one with a buffer has the most facts.
        body.like[name] = source


def allocate_buffer(body: Body, one: Statement) -> bool:
    """Make ``one.name`` a new buffer, or a part of another; whether its shape is known."""
    shape, strides = body.arrays.get(one.size_array), body.arrays.get(one.stride_array)
    owner = body.buffers.get(one.source)
    kind = one.device_type if owner is None else owner.device_type
    own = None if one.source else strides
    body.buffers[one.name] = Buffer(dtype=one.dtype or "", shape=shape, device_type=kind, strides=own)
    # One without elements is never read before it is written.
    if "0L" not in (shape or ()):
        body.events.append(one)
    return shape is not None or bool(one.source)


def restride_buffer(body: Body, call: Statement) -> bool:
    """Read ``call`` where it gives a buffer another shape; whether it does."""
    restrided = call.function == "aoti_torch_as_strided" and len(call.arguments) < _LONGEST
    padded = _RESTRIDED.fullmatch(call.arguments) if restrided else None
    old = body.buffers.get(padded[1]) if padded is not None else None
    if padded is None or old is None:
        return False
    shape = body.arrays.get(padded[2])
    body.buffers[padded[1]] = Buffer(dtype=old.dtype, shape=shape, device_type=old.device_type)
    return True


def read_view(body: Body, call: Statement) -> bool:
    """Read ``call`` where it makes a view with another dtype; whether it does."""
    viewing = call.function.endswith("_view_dtype") and len(call.arguments) < _LONGEST
    view = _VIEW_DTYPE.fullmatch(call.arguments) if viewing else None
    if view is None:
        return False
    alias_buffer(body, replace(call, kind="view", name=view[3], source=tensor_below(view[1])))
    body.view_dtypes[view[3]] = view[2]
    return True


def tensor_below(text: str) -> str:
    """The tensor that an expression views, or its name."""
    _, view, inside = text.partition("reinterpret_tensor_wrapper(")
    return inside.partition(",")[0] if view else text


# The statements.
MOST_CALLS = 20_000
_TOKEN = re.compile(r"\b(?:arg\w+|[a-z]+\d+)\b")
# Names of sizes; those of kernels, and those that a run computes.
_SIZE_NAME = re.compile(r"(?!buf|arg|var|tmp)[a-z]+\d+|[a-z]+\d+_\w+|\w+_(?:size|stride)_\d+|\w+_(?:[xyz]|r\d*_?)numel")
_SIZE_CALL = re.compile(r"(\w+)\.(size|stride)s\(\)\[(\d{1,3})\]$")
_PLAIN_VALUE = re.compile(r"true|false|-?[\d.]+(?:e[+-]?\d+)?f?|\w+|float\(\w+\)")
_GENERATED = ("cpp_", "call_", "aoti_torch_")
_AXES = 3
_EXTERN = re.compile(r'extern "C"\s+(?:[\w*]+\s+)+?(\w+)\(')
# Kinds of statements that use no input, whatever they mention.
_UNUSING = ("plain", "release", "shape", "alignment", "align", "branch", "align-branch")


def parse_body(section: WrapperSection, model: ModelEntry | None = None) -> Body:
    """Read ``run_impl`` in one pass. The sources of ``model`` declare functions that are kernels."""
    reader = _BodyReader(model)
    for one in read_statements(section):
        if len(reader.body.calls) >= MOST_CALLS:
            text = f"more than {MOST_CALLS:,} calls: not read beyond line {one.line:,}"
            reader.body.losses.note("call", one.line, text)
            break
        reader.read(one)
    return reader.body


class _BodyReader:
    """Put the facts of each statement into the body; each method returns None for a statement that is not its own."""

    def __init__(self, model: ModelEntry | None) -> None:
        self.body = Body(losses=NotUnderstood("body"))
        self._model = model
        # What launches in ``run_impl`` itself are made of: files, values of variables, arguments, grids.
        self._codes: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._arguments: dict[str, tuple[str, ...]] = {}
        self._grids: dict[str, tuple[str, ...]] = {}
        self._comment: Statement | None = None
        self._unpacking = True

    @cached_property
    def _declared(self) -> frozenset[str]:
        # Only asked for when a call has an unfamiliar name.
        texts = (self._model.wrapper_cpp or "", *self._model.kernel_sources.values()) if self._model is not None else ()
        return frozenset(found[1] for text in texts for found in _EXTERN.finditer(text))

    def read(self, one: Statement) -> None:
        """Read one statement."""
        if one.text == "inputs.clear();":
            self._unpacking = False
        understood = self._read_name(one)
        uses = understood is None or one.text.startswith(("aoti_torch_", "AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_"))
        if uses and not self._unpacking and one.kind not in _UNUSING:
            self.body.used.update(_TOKEN.findall(one.text))
        if understood is None:
            understood = self._read_value(one)
        if not understood:
            self.body.losses.note(fact_kind(one.text), one.line, one.text)

    def _read_name(self, one: Statement) -> bool | None:
        """Read inputs, constants, checks and new names of tensors: none of them uses a tensor."""
        body = self.body
        match one.kind:
            case "origins":
                self._comment = one
            case "input":
                body.unpacked[one.name] = (one.index, one.line)
            case "constant":
                body.constants.add(one.name)
            case "assert":
                body.assertions.append(one)
            case "alignment":
                if one.operator == "input":
                    body.alignments[one.name] = int(one.value)
            case "allocate" if not one.source:
                return allocate_buffer(body, one)
            case "own" if one.source not in body.renamed and one.source not in body.buffers:
                pass
            case "reuse" | "own":
                alias_buffer(body, one)
            case "move":
                alias_subgraph_value(body, one)
            case "value":
                return one.name.endswith("numel") and body.definitions.get(one.name, one.value) == one.value
            case _:
                return None
        return True

    def _read_value(self, one: Statement) -> bool:
        body = self.body
        match one.kind:
            case "unknown":
                return False
            case "arguments" | "grid" | "pointer" | "code" | "start":
                return self._prepare_launch(one)
            case "array":
                body.arrays[one.name] = one.values
            case "allocate":
                return allocate_buffer(body, one)
            case "view":
                alias_buffer(body, one, body.arrays.get(one.size_array))
                if f" {one.source}.reset();" in one.text:
                    body.events.append(replace(one, kind="release", name=one.source))
            case "release":
                body.events.append(one)
            case "scalar":
                body.numbers[one.name] = one.value
            case "number":
                return self._define(one)
            case "output" | "copy" | "other-output":
                return self._put_out(one)
            case "call":
                own = one.checked or one.kernels or one.function.startswith(_GENERATED)
                return (own or one.function in self._declared) and self._call(one)
        return True

    def _define(self, one: Statement) -> bool:
        if one.source in ("int64_t", "auto", "double") and _SIZE_NAME.fullmatch(one.name) is not None:
            size = _SIZE_CALL.match(one.value)
            text = one.value if size is None else f"{size[1]}_{size[2]}[{size[3]}]"
            self.body.definitions.setdefault(one.name, text)
            return True
        if not one.name.startswith("var_"):
            return one.source == "float" and one.value.startswith("float(")
        self._values[one.name] = one.value
        plain = one.source != "auto" or _PLAIN_VALUE.fullmatch(one.value) is not None
        return plain or not isinstance(parse_expr(one.value), Opaque)

    def _put_out(self, one: Statement) -> bool:
        outputs, name = self.body.outputs, one.name
        if one.kind == "copy":
            outputs[one.index] = f"output_handles[{one.index}]"
            self.body.like[outputs[one.index]] = name
        elif one.same is not None or name:
            outputs[one.index] = name = outputs.get(one.same, "") if one.same is not None else name
        else:
            if one.kind != "output":
                outputs[one.index] = ""
            return one.kind == "output"
        self.body.events.append(replace(one, name=name))
        return True

    def _prepare_launch(self, one: Statement) -> bool:
        """Read a launch before 2.7, or what prepares it; ``launches`` has one for each call: each has its own grid."""
        match one.kind:
            case "code":
                self._codes[one.name] = one.value.rpartition("/")[2]
            case "pointer":
                self._values[one.name] = one.source
            case "arguments":
                names = [name.removeprefix("&") for name in one.values]
                self._arguments[one.name] = tuple(self._values.get(name, name) for name in names)
                return all(name in self._values for name in names)
            case "grid":
                if len(one.values) != _AXES:
                    return False
                self._grids[one.name] = one.values
            case "start":
                warps, shared, arguments = one.values
                if not (one.name in self._codes and one.source in self._grids and arguments in self._arguments):
                    return False
                self.body.launches[f"{one.name}@{one.line}"] = TritonLaunch(
                    name=one.name,
                    grid=self._grids[one.source],
                    warps=warps,
                    shared=shared,
                    device_code=self._codes[one.name],
                    embedded=False,
                    guarded=True,
                    inputs=frozenset(),
                    source="",
                    line=one.line,
                )
                given = ", ".join(self._arguments[arguments])
                return self._call(replace(one, kind="call", function=f"call_{one.name}", arguments=given))
        return True

    def _call(self, one: Statement) -> bool:
        if one.function.startswith("aoti_torch_item_"):
            # A tensor that is passed to a kernel as a number.
            tensor, _, number = one.arguments.partition(", &")
            self._values[number] = tensor
        if restride_buffer(self.body, one) or is_runtime(one.function):
            return True
        if self._comment is not None:
            one = replace(one, origins=self._comment.origins, source_nodes=self._comment.source_nodes)
            self._comment = None
        self.body.calls.append(one)
        if not read_view(self.body, one):
            self.body.events.append(one)
            return not one.function.endswith("_view_dtype")
        return True
