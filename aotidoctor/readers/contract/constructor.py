"""The constructor of the model: counts, input names, constants and call spec."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from aotidoctor.model.c10 import SCALAR_NAMES
from aotidoctor.model.contract import ConstantSpec
from aotidoctor.model.dtypes import ITEMSIZE
from aotidoctor.model.record import record
from aotidoctor.readers.contract.losses import Losses
from aotidoctor.readers.contract.text import Section

_BASE = re.compile(
    r"AOTInductorModelBase\(\s{0,80}(\d{1,6})\s{0,80},\s{0,80}(\d{1,6})\s{0,80},\s{0,80}"
    r"(\d{1,6})\b(?:\s{0,80},)?([^{]{0,4000})\{"
)
_INFO = re.compile(r"(inputs|constants|outputs)_info_\[(\d{1,6})\]\.(\w+) = (.*);$")
_ARGUMENTS = re.compile(r"device_str, (?:cubin_dir|std::move\(cubin_dir\))(?:, (?:true|false))?\)")
_FIELDS = {
    "inputs": frozenset(("name",)),
    "outputs": frozenset(("name",)),
    "constants": frozenset((
        "name", "dtype", "device_type", "offset", "data_size", "from_folded", "type", "shape", "stride", "layout",
        "opaque_metadata", "original_fqn",
    )),
}  # fmt: skip
_NEEDED = {field: field for field in ("dtype", "device_type", "offset", "data_size", "shape", "stride")}
_NEEDED["type"] = "kind"
_KIND = re.compile(r"static_cast<int32_t>\(torch::aot_inductor::ConstantType::(\w+)\)")
_RAW_STRING = re.compile(r'\s*R"\((.*?)\)"', re.DOTALL)
_PLAIN_STRING = re.compile(r'\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)
_DTYPE = re.compile(r"(?:cached_torch_dtype_|aoti_torch_dtype_|at::k)(\w+)")
_DEVICE = re.compile(r"(?:cached_torch_device_type_|aoti_torch_device_type_|at::k)(\w+)")
_KNOWN = ("update_constants_map(", "update_constants_array(", "this->kernels_", "in_spec_ =", "out_spec_ =", 'R"(')


@record
class Constructor:
    """What the constructor says. ``include_weights`` is None where it does not tell (before 2.5)."""

    n_inputs: int
    n_outputs: int
    n_constants: int
    include_weights: bool | None
    input_names: tuple[str, ...]
    constants: tuple[ConstantSpec, ...]
    in_spec: str | None
    out_spec: str | None
    losses: Losses


def parse_constructor(section: Section) -> Constructor | None:
    """Read the constructor; None when there is none."""
    base = _BASE.search(section.text)
    if base is None:
        return None
    losses = Losses("constructor")
    line = section.line + section.text.count("\n", 0, base.end())
    table = _info(section.text[base.end() :], line, losses)
    if _ARGUMENTS.fullmatch(" ".join(base[4].split())) is None:
        losses.note("constant", section.line, " ".join(base[0].split()))
    n_inputs, n_outputs, n_constants = (int(base[group]) for group in (1, 2, 3))
    return Constructor(
        n_inputs=n_inputs,
        n_outputs=n_outputs,
        n_constants=n_constants,
        include_weights=_include_weights(base[4]),
        input_names=tuple(_unquoted(row.get("name", "")) for row in _rows(table, "inputs")),
        constants=tuple(_constant(row, line, losses) for row in _rows(table, "constants")),
        in_spec=_spec(section.text, "in_spec_ ="),
        out_spec=_spec(section.text, "out_spec_ ="),
        losses=losses,
    )


_Table = dict[tuple[str, int], dict[str, str]]


def _info(text: str, line: int, losses: Losses) -> _Table:
    table: _Table = {}
    for offset, raw in enumerate(text.split("\n")):
        statement = raw.strip()
        found = _INFO.match(statement)
        if found is not None and found[3] in _FIELDS[found[1]]:
            table.setdefault((found[1], int(found[2])), {})[found[3]] = found[4]
        elif statement not in ("", ";", "}") and not statement.startswith(_KNOWN):
            losses.note(_fact(statement), line + offset, statement)
    return table


def _fact(statement: str) -> str:
    if "inputs_info" in statement:
        return "input"
    return "call-spec" if "_spec" in statement or statement.startswith('"') else "constant"


def _rows(table: _Table, kind: str) -> Iterator[dict[str, str]]:
    for key in sorted(table):
        if key[0] == kind:
            yield table[key]


def _include_weights(rest: str) -> bool | None:
    words = re.findall(r"\b(true|false)\b", rest)
    return words[-1] == "true" if words else None


def _constant(row: dict[str, str], line: int, losses: Losses) -> ConstantSpec:
    name = _unquoted(row.get("name", ""))
    spec = _read_constant(name, row)
    for field, attribute in _NEEDED.items():
        if getattr(spec, attribute) is None and field in row:
            losses.note("constant", line, f"{name}: {field} = {row[field]}")
    return spec


def _read_constant(name: str, row: dict[str, str]) -> ConstantSpec:
    return ConstantSpec(
        name=name,
        original_fqn=_unquoted(row["original_fqn"]) if "original_fqn" in row else name,
        dtype=dtype_name(row.get("dtype", "")),
        shape=_integers(row.get("shape")),
        stride=_integers(row.get("stride")),
        device_type=_device(row.get("device_type", "")),
        offset=_integer(row.get("offset")),
        data_size=_integer(row.get("data_size")),
        kind=_kind(row.get("type", "")),
        from_folded=row.get("from_folded") == "true",
        strided="layout_strided" in row.get("layout", "layout_strided"),
    )


def _kind(text: str) -> str | None:
    found = _KIND.fullmatch(text)
    return found[1].lower() if found is not None else None


def dtype_name(text: str) -> str | None:
    """``float32`` of ``cached_torch_dtype_float32``, ``aoti_torch_dtype_float32()`` or ``at::kFloat``."""
    found = _DTYPE.search(text)
    if found is None:
        return None
    name = SCALAR_NAMES.get(found[1], found[1].lower()) if "at::k" in text else found[1]
    return name if name in ITEMSIZE else None


def _device(text: str) -> str | None:
    found = _DEVICE.search(text)
    return found[1].lower() if found is not None else None


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == '"' == text[-1] else text


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() and len(text) < 20 else None


def _integers(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    values = [_integer(part.strip()) for part in text.strip("{} ").split(",") if part.strip()]
    known = [value for value in values if value is not None]
    return tuple(known) if len(known) == len(values) else None


def _spec(text: str, mark: str) -> str | None:
    """The text of a spec: one or several raw strings, or (before 2.6) one escaped string; None when it is empty."""
    at = text.find(mark)
    if at < 0:
        return None
    at += len(mark)
    pieces = []
    while (piece := _RAW_STRING.match(text, at)) is not None:
        pieces.append(piece[1])
        at = piece.end()
    plain = _PLAIN_STRING.match(text, at) if not pieces else None
    joined = "".join(pieces) if plain is None else _unescaped(plain[1])
    return joined or None


def _unescaped(text: str) -> str:
    try:
        value: str = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return text
    return value
