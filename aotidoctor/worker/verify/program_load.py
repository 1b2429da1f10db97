"""Load an exported program as far as possible, without the verifier, which would stop at one violation.

Parts that cannot be read (weights, constants, sample inputs, an unknown dialect) are recorded and left out.

Rule L02: operators of the program that are not registered here. Each is recorded; then it is declared with the
arguments and results that the archive shows, and without any kernel, so that the program can be rebuilt around it and
the other rules can be checked. The program itself never runs in this process.
"""

from __future__ import annotations

import contextlib
import copy
import json
import re
import traceback
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from aotidoctor.program.signature_rules import add_missing_part
from aotidoctor.program.value_rules import add_empty, add_outside
from aotidoctor.worker.user_code import attribute_replaced
from aotidoctor.worker.verify.graph_rules import ProgramViolations, first_line

# Rule L02.
_TYPES = {
    "as_tensor": "Tensor",
    "as_tensors": "Tensor[]",
    "as_int": "SymInt",
    "as_sym_int": "SymInt",
    "as_ints": "SymInt[]",
    "as_sym_ints": "SymInt[]",
    "as_float": "float",
    "as_sym_float": "float",
    "as_floats": "float[]",
    "as_bool": "bool",
    "as_sym_bool": "bool",
    "as_bools": "bool[]",
    "as_string": "str",
    "as_strings": "str[]",
    "as_none": "Tensor?",
    "as_optional_tensor": "Tensor?",
    "as_optional_tensors": "Tensor?[]",
    "as_scalar_type": "ScalarType",
    "as_memory_format": "MemoryFormat",
    "as_layout": "Layout",
    "as_device": "Device",
}
_libraries: list[Any] = []


def declare_missing(serialized: Any, records: ProgramViolations) -> list[str]:
    """Record the missing operators and declare them; their names (``ns::op.overload``)."""
    missing: dict[str, Any] = {}
    for node in _nodes(serialized.graph_module.graph):
        parts = node.target.split(".")
        # ``torch.ops.ns.op.overload``, not functions and higher-order operators.
        if not node.target.startswith("torch.ops.") or len(parts) != 5 or parts[2] == "higher_order":
            continue
        name = f"{parts[2]}::{parts[3]}" + ("" if parts[4] == "default" else f".{parts[4]}")
        if name not in missing and not _is_registered(node.target):
            missing[name] = node
    for name, node in missing.items():
        output = next((item.value.name for item in node.outputs if hasattr(item.value, "name")), None)
        records.add(
            "L02",
            "operator-missing",
            node=output,
            target=name,
            observed=f"operator {name} is not registered in this process",
            expected="an operator that --setup or --custom-op-library registers",
        )
        # If the schema cannot be guessed, the program cannot be rebuilt, which is reported then.
        with contextlib.suppress(Exception):
            positional = [_argument(item) for item in node.inputs if not _is_keyword(item)]
            keywords = [_argument(item) for item in node.inputs if _is_keyword(item)]
            given = ", ".join([*positional, *(["*", *keywords] if keywords else [])])
            results = [_TYPES[item.type] for item in node.outputs if item.type != "as_none"]
            namespace, _, short = name.partition("::")
            library = torch.library.Library(namespace, "FRAGMENT")
            library.define(f"{short}({given}) -> ({', '.join(results)})")
            # The declaration would vanish with the object.
            _libraries.append(library)
    return list(missing)


def _nodes(graph: Any) -> Iterator[Any]:
    """Nodes of a serialised graph and of the graphs that it passes to higher-order operators."""
    for node in graph.nodes:
        yield node
        for argument in node.inputs:
            if argument.arg.type == "as_graph":
                yield from _nodes(argument.arg.value.graph)


def _is_registered(target: str) -> bool:
    found: Any = torch
    try:
        for name in target.split(".")[1:]:
            found = getattr(found, name)
    except (AttributeError, RuntimeError):
        return False
    return isinstance(found, torch._ops.OpOverload)


def _argument(item: Any) -> str:
    return f"{_TYPES[item.arg.type]} {item.name}"


def _is_keyword(item: Any) -> bool:
    """Whether the argument is keyword-only; its kind is recorded since torch 2.7."""
    kind = getattr(item, "kind", None)
    return getattr(kind, "name", "") == "KEYWORD"


# The program from its archive.
_LONGEST_TRACE = 8000
_OLD_MEMBER = "serialized_exported_program.json"
_OUTSIDE = re.compile(r"(\d+) not in VR\[")


@dataclass(slots=True, kw_only=True)
class LoadedProgram:
    """One program of the archive. ``program`` is None when torch could not rebuild it; ``problem`` is the reason."""

    name: str
    program: Any = None
    verifiers: list[Any] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    dialect_known: bool = True
    problem: str | None = None


def load_programs(path: Path, records: ProgramViolations) -> list[LoadedProgram]:
    """Load every program of the archive."""
    try:
        return [_from_old_archive(path, records)] if _is_old(path) else _from_archive(path, records)
    except _OtherLayoutError as error:
        # A layout that this torch does not know is no fault of the program.
        return [LoadedProgram(name="model", problem=str(error))] if str(error) else [_from_old_archive(path, records)]
    except Exception as error:
        return [_unreadable(error, records)]


class _OtherLayoutError(Exception):
    """Raised for another archive than that of torch 2.8 and later; with a text if this torch cannot read that."""


def _is_old(path: Path) -> bool:
    """Whether it is the archive of torch 2.6 and 2.7, which later releases read in another way."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _OLD_MEMBER in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def _from_archive(path: Path, records: ProgramViolations) -> list[LoadedProgram]:
    try:
        from torch.export.pt2_archive._package import PT2ArchiveReader
    except ImportError as error:
        reason = f"an archive of torch 2.8 or later, which torch {torch.__version__} does not read"
        raise _OtherLayoutError(reason) from error
    with verifier_off(), PT2ArchiveReader(str(path)) as reader:
        prefix, suffix = "models/", ".json"
        members = [name for name in reader.get_file_names() if name.startswith(prefix) and name.endswith(suffix)]
        if not members:
            raise _OtherLayoutError
        return [_load(reader, member[len(prefix) : -len(suffix)], member, records) for member in members]


def _from_old_archive(path: Path, records: ProgramViolations) -> LoadedProgram:
    """Load the archive of torch 2.7 and earlier, or anything else that torch itself can load."""
    try:
        with verifier_off():
            program = torch.export.load(str(path))
    except Exception as error:
        return _unreadable(error, records)
    return LoadedProgram(name="model", program=program, verifiers=[kind() for kind in program.verifiers])


def _unreadable(error: Exception, records: ProgramViolations) -> LoadedProgram:
    loaded = LoadedProgram(name="model")
    _not_loadable(error, loaded, records)
    return loaded


def verifier_off() -> contextlib.AbstractContextManager[None]:
    """Make programs without verification. This process is a child that ends with its job."""
    return attribute_replaced(torch.export.ExportedProgram, "validate", lambda _self: None)


def _load(reader: Any, name: str, member: str, records: ProgramViolations) -> LoadedProgram:
    from torch.export.pt2_archive import _package as package

    loaded = LoadedProgram(name=name)
    data = reader.read_bytes(member)
    serialized = _parse(data, member, loaded, records)
    if serialized is None:
        return loaded
    if not hasattr(package, "_load_state_dict"):
        # 2.8 reads all parts at once.
        raise _OtherLayoutError
    state = _part(lambda: package._load_state_dict(reader, name), "weights", records) or {}
    constants = _part(lambda: package._load_constants(reader, name), "constants", records) or {}
    sample = f"data/sample_inputs/{name}.pt"
    examples = _part(lambda: reader.read_bytes(sample), "sample-inputs", records)
    loaded.missing = declare_missing(serialized, records)
    # An empty range is recorded, and reversed: torch would refuse the whole program for it.
    for symbol, found in serialized.range_constraints.items():
        low, high = found.min_val, found.max_val
        if low is not None and high is not None and low > high:
            add_empty(symbol, low, high, records)
            found.min_val, found.max_val = high, low
    loaded.verifiers = _verifiers(serialized, loaded, records)
    try:
        loaded.program = _make(serialized, state, constants, examples, records)
    except Exception as error:
        _not_loadable(error, loaded, records)
    return loaded


def _parse(data: bytes, member: str, loaded: LoadedProgram, records: ProgramViolations) -> Any:
    from torch._export.serde import schema, serialize

    document: Any = None
    try:
        document = json.loads(data)
        # 2.8 has only the second of the two.
        if hasattr(serialize, "_bytes_to_dataclass"):
            return serialize._bytes_to_dataclass(schema.ExportedProgram, data)
        return serialize._dict_to_dataclass(schema.ExportedProgram, document)
    except Exception as error:
        loaded.problem = _later_schema(document, schema.SCHEMA_VERSION)
        if loaded.problem is not None:
            return None
        observed = f"{member}: {type(error).__name__}: {first_line(error)}"
        records.add("L01", "json", target=member, observed=observed, expected="the JSON of an exported program")
        loaded.problem = observed
        return None


def _later_schema(document: Any, ours: tuple[int, int]) -> str | None:
    """A message that the program was written by a later torch; None where it was not, or the version is missing."""
    version = document.get("schema_version") if isinstance(document, dict) else None
    theirs = (version.get("major"), version.get("minor")) if isinstance(version, dict) else ()
    if not all(isinstance(number, int) for number in theirs) or tuple(theirs) <= tuple(ours):
        return None
    known, written = (".".join(map(str, numbers)) for numbers in (ours, theirs))
    return f"a program of schema {written}, of a later release: torch {torch.__version__} reads up to {known}"


def _part(read: Callable[[], Any], what: str, records: ProgramViolations) -> Any:
    try:
        return read()
    except Exception as error:
        add_missing_part(what, f"{type(error).__name__}: {first_line(error)}", records)
        return None


def _verifiers(serialized: Any, loaded: LoadedProgram, records: ProgramViolations) -> list[Any]:
    """Instances of the verifiers that the archive names; unknown ones are recorded and left out."""
    from torch._export.verifier import load_verifier

    found = []
    for dialect in list(serialized.verifiers) or ["ATEN"]:
        observed = f"dialect {dialect!r}, for which no verifier is registered here"
        try:
            found.append(load_verifier(dialect)())
        except KeyError:
            loaded.dialect_known = False
            expected = "ATEN, TRAINING, or a dialect that --setup registers"
            records.add("G10", "dialect-unknown", target=dialect, observed=observed, expected=expected)
    serialized.verifiers = [verifier.dialect for verifier in found]
    return found


def _make(serialized: Any, state: Any, constants: Any, examples: Any, records: ProgramViolations) -> Any:
    from torch._export.serde.serialize import ExportedProgramDeserializer, SerializeError

    options: dict[str, Any] = {}
    while True:
        # A copy: the deserializer changes its argument.
        program = copy.deepcopy(serialized)
        try:
            return ExportedProgramDeserializer().deserialize(program, state, constants, examples, **options)
        except SerializeError as error:
            if options or "schema version" not in str(error):
                raise
            observed, expected = first_line(error), "a program of the same major version of the schema"
            records.add("L04", "schema-version", observed=observed, expected=expected)
            options = {"_unsafe_skip_version_check": True}
        except AssertionError as error:
            if not _widen(serialized, error, records):
                raise


def _widen(serialized: Any, error: AssertionError, records: ProgramViolations) -> bool:
    """Whether the sample's size was outside a range; that is recorded, and the range widened as needed."""
    found = _OUTSIDE.search(str(error))
    if found is None:
        return False
    size, widened = int(found[1]), False
    for symbol, bounds in serialized.range_constraints.items():
        low, high = bounds.min_val, bounds.max_val
        if (low is None or low <= size) and (high is None or size <= high):
            continue
        add_outside(symbol, size, low, high, records)
        bounds.min_val = None if low is None else min(low, size)
        bounds.max_val = None if high is None else max(high, size)
        widened = True
    return widened


def _not_loadable(error: Exception, loaded: LoadedProgram, records: ProgramViolations) -> None:
    """Record that the program cannot be loaded; the reason is the last line of a ``SerializeError``."""
    reason = [line for line in str(error).splitlines() if line.strip()] or [""]
    observed = f"{type(error).__name__}: {reason[-1][:500]}"
    node = None
    if reason[0].startswith("Failed deserializing node"):
        node = _quoted_name(reason[0])
    records.add(
        "L01",
        "node" if node else "program",
        node=node,
        observed=observed,
        expected="a program that this torch can rebuild",
    )
    loaded.problem = traceback.format_exc()[-_LONGEST_TRACE:]


def _quoted_name(text: str) -> str | None:
    """Name of the first output in the printed form of a serialised node, else its target."""
    for mark in ("as_tensor=TensorArgument(name='", "name='", "target='"):
        _, found, rest = text.rpartition(mark) if mark != "target='" else text.partition(mark)
        if found:
            return rest.partition("'")[0]
    return None
