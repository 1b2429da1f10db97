"""Follow the statements of run_impl: how inputs become symbols, buffers, kernel calls and outputs."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import replace

from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.expr import Opaque
from aotidoctor.readers.contract.run_impl_records import (
    Body,
    TritonLaunch,
    alias_buffer,
    alias_subgraph_value,
    allocate_buffer,
    read_view,
    restride_buffer,
)
from aotidoctor.readers.contract.wrapper_statements import Statement, read_statements
from aotidoctor.readers.contract.wrapper_text import NotUnderstood, WrapperSection, fact_kind, is_runtime

MOST_CALLS = 20_000
_TOKEN = re.compile(r"\b(?:arg\w+|[a-z]+\d+)\b")
# Names of sizes; those of kernels, and those that a run computes.
_SIZE_NAME = re.compile(r"(?!buf|arg|var|tmp)[a-z]+\d+|[a-z]+\d+_\w+|\w+_(?:size|stride)_\d+|\w+_(?:[xyz]|r\d*_?)numel")
_SIZE_CALL = re.compile(r"(\w+)\.(size|stride)s\(\)\[(\d{1,3})\]$")
_PLAIN_VALUE = re.compile(r"true|false|-?[\d.]+(?:e[+-]?\d+)?f?|\w+|float\(\w+\)")
_GENERATED = ("cpp_", "call_", "aoti_torch_")
_AXES = 3
# Kinds of statements that use no input, whatever they mention.
_UNUSING = ("plain", "release", "shape", "alignment", "align", "branch", "align-branch")


def parse_body(section: WrapperSection, declared: Container[str] = frozenset()) -> Body:
    """Read ``run_impl`` in one pass. ``declared`` are functions that the wrapper declares as kernels."""
    reader = _BodyReader(declared)
    for one in read_statements(section):
        if len(reader.body.calls) >= MOST_CALLS:
            text = f"more than {MOST_CALLS:,} calls: not read beyond line {one.line:,}"
            reader.body.losses.note("call", one.line, text)
            break
        reader.read(one)
    return reader.body


class _BodyReader:
    """Put the facts of each statement into the body; each method returns None for a statement that is not its own."""

    def __init__(self, declared: Container[str]) -> None:
        self.body = Body(losses=NotUnderstood("body"))
        self._declared = declared
        # What launches in ``run_impl`` itself are made of: files, values of variables, arguments, grids.
        self._codes: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._arguments: dict[str, tuple[str, ...]] = {}
        self._grids: dict[str, tuple[str, ...]] = {}
        self._comment: Statement | None = None
        self._unpacking = True

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
