"""Parse what the wrapper declares: the model's constructor, its input checks, where its constants are.

The constructor gives the number of inputs and outputs, the input names, the constants and the call spec.
``check_input_<i>`` (2.8 and later) and the single ``__check_inputs_outputs`` of 2.7 have the same lines; each names
its input by a local variable, so the lines are read without regard to the function around them.

The constructor also says whether the weights are with the code (``include_weights``). When they are not, the members
of the package show whether they are in a file beside it. When they are, the shared object holds either the weights
between two symbols, or only a marker, and the weights are appended to the file to be mapped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field

from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.contract import ConstantSpec
from aotidoctor.model.record import record
from aotidoctor.model.torch_names import DEVICE_TYPES, ITEMSIZE, SCALAR_NAMES
from aotidoctor.readers.contract.wrapper_text import NotUnderstood, WrapperSection

# Constructor.
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
    """Declarations of the constructor. ``include_weights`` is None where it is not given (before 2.5)."""

    n_inputs: int
    n_outputs: int
    n_constants: int
    include_weights: bool | None
    input_names: tuple[str, ...]
    constants: tuple[ConstantSpec, ...]
    in_spec: str | None
    out_spec: str | None
    losses: NotUnderstood


def parse_constructor(section: WrapperSection) -> Constructor | None:
    """Read the constructor; None when there is none."""
    base = _BASE.search(section.text)
    if base is None:
        return None
    losses = NotUnderstood("constructor")
    line = section.line + section.text.count("\n", 0, base.end())
    text = section.text[base.end() :]
    tables: dict[str, dict[int, dict[str, str]]] = {"inputs": {}, "constants": {}, "outputs": {}}
    for offset, raw in enumerate(text.split("\n")):
        statement = raw.strip()
        found = _INFO.match(statement)
        if found is not None and found[3] in _FIELDS[found[1]]:
            tables[found[1]].setdefault(int(found[2]), {})[found[3]] = found[4]
        elif statement not in ("", ";", "}") and not statement.startswith(_KNOWN):
            spec = "_spec" in statement or statement.startswith('"')
            fact = "input" if "inputs_info" in statement else "call-spec" if spec else "constant"
            losses.note(fact, line + offset, statement)
    if _ARGUMENTS.fullmatch(" ".join(base[4].split())) is None:
        losses.note("constant", section.line, " ".join(base[0].split()))
    n_inputs, n_outputs, n_constants = (int(base[group]) for group in (1, 2, 3))
    words = re.findall(r"\b(true|false)\b", base[4])
    return Constructor(
        n_inputs=n_inputs,
        n_outputs=n_outputs,
        n_constants=n_constants,
        include_weights=(words[-1] == "true" if words else None),
        input_names=tuple(_unquote(row.get("name", "")) for _, row in sorted(tables["inputs"].items())),
        constants=tuple(_constant(row, line, losses) for _, row in sorted(tables["constants"].items())),
        in_spec=_spec(section.text, "in_spec_ ="),
        out_spec=_spec(section.text, "out_spec_ ="),
        losses=losses,
    )


def _constant(row: dict[str, str], line: int, losses: NotUnderstood) -> ConstantSpec:
    name = _unquote(row.get("name", ""))
    kind, device = _KIND.fullmatch(row.get("type", "")), _DEVICE.search(row.get("device_type", ""))
    spec = ConstantSpec(
        name=name,
        original_fqn=_unquote(row["original_fqn"]) if "original_fqn" in row else name,
        dtype=dtype_name(row.get("dtype", "")),
        shape=_integers(row.get("shape")),
        stride=_integers(row.get("stride")),
        device_type=device[1].lower() if device is not None else None,
        offset=_integer(row.get("offset")),
        data_size=_integer(row.get("data_size")),
        kind=kind[1].lower() if kind is not None else None,
        from_folded=row.get("from_folded") == "true",
        strided="layout_strided" in row.get("layout", "layout_strided"),
    )
    for key, attribute in _NEEDED.items():
        if getattr(spec, attribute) is None and key in row:
            losses.note("constant", line, f"{name}: {key} = {row[key]}")
    return spec


def dtype_name(text: str) -> str | None:
    """``float32`` of ``cached_torch_dtype_float32``, ``aoti_torch_dtype_float32()`` or ``at::kFloat``."""
    found = _DTYPE.search(text)
    if found is None:
        return None
    name = SCALAR_NAMES.get(found[1], found[1].lower()) if "at::k" in text else found[1]
    return name if name in ITEMSIZE else None


def _unquote(text: str) -> str:
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
    joined = "".join(pieces)
    plain = _PLAIN_STRING.match(text, at) if not pieces else None
    if plain is not None:
        joined = plain[1]
        with suppress(ValueError):
            joined = json.loads(f'"{joined}"', strict=False)
    return joined or None


# Check functions: what the compiled code compares when its input checks are on.
_COMPARE = re.compile(r"if \((-?\d{1,19}) != (\w+)_(size|stride)\[(\d{1,3})\]\) \{$")
_BOUND = re.compile(r"if \((\w+)_size\[(\d{1,3})\] ([<>]) (-?\d{1,19})\) \{$")
_HANDLE = re.compile(r"(?:ConstantHandle|auto) (\w+) = (?:ConstantHandle\()?(input|output)_handles\[(\d{1,6})\]\)?;$")
_CHECKED_DTYPE = re.compile(r"int32_t (\w+)_expected_dtype = (aoti_torch_dtype_\w+)\(\);$")
_CHECKED_DEVICE = re.compile(r"int32_t (\w+)_expected_device_type = (\d{1,6});$")
_PLAIN = re.compile(
    r"(?:$|[{}]|\) \{|std::stringstream |ss <<|<< |throw |AOTI_TORCH_ERROR_CODE_CHECK\(|AOTI_NOINLINE |static |Aten|"
    r"void |"
    r"const static |return|if \(!_check_aoti|if \(\w+_expected_\w+ != |auto \w+_(?:size|stride) = |int32_t \w+;|"
    r"check_input_\d+\(|namespace |//|/\*|template|inputs_|output_handles)"
)


@record(kw_only=False, frozen=False)
class InputCheck:
    """Compiled comparisons of one input. Keys of ``static``, ``low``, ``high`` and ``strides`` are dim numbers."""

    index: int | None = None
    line: int | None = None
    dtype: str | None = None
    device_type: str | None = None
    static: dict[int, int] = field(default_factory=dict)
    low: dict[int, int] = field(default_factory=dict)
    high: dict[int, int] = field(default_factory=dict)
    strides: dict[int, int] = field(default_factory=dict)

    @property
    def dims_seen(self) -> int:
        """One more than the highest dim that any comparison mentions."""
        return 1 + max((dim for table in (self.static, self.low, self.high, self.strides) for dim in table), default=-1)


@record
class Checks:
    """All checks by the generated name of the input, and the statements that fit no rule."""

    inputs: dict[str, InputCheck]
    losses: NotUnderstood

    @property
    def has_lower_bounds(self) -> bool:
        """Whether lower bounds were compiled in at all: then every dim of every input has a comparison."""
        return any(check.low for check in self.inputs.values())


def parse_checks(section: WrapperSection) -> Checks:
    """Read all check functions."""
    inputs: dict[str, InputCheck] = {}
    outputs: set[str] = set()
    losses = NotUnderstood("checks")
    for offset, raw in enumerate(section.text.split("\n")):
        line = raw.strip()
        if _PLAIN.match(line) is not None:
            continue
        handle = _HANDLE.match(line)
        if handle is not None and handle[2] == "output":
            outputs.add(handle[1])
        elif handle is not None:
            check = inputs.setdefault(handle[1], InputCheck())
            check.index, check.line = int(handle[3]), section.line + offset
        elif not _read_line(line, inputs):
            losses.note("input-check", section.line + offset, line)
    return Checks(inputs={name: check for name, check in inputs.items() if name not in outputs}, losses=losses)


def _read_line(line: str, inputs: dict[str, InputCheck]) -> bool:
    """Read one comparison into ``inputs``; False when it is none that is known."""
    if found := _COMPARE.match(line):
        check = inputs.setdefault(found[2], InputCheck())
        table = check.static if found[3] == "size" else check.strides
        table[int(found[4])] = int(found[1])
        return True
    if found := _BOUND.match(line):
        check = inputs.setdefault(found[1], InputCheck())
        table = check.low if found[3] == "<" else check.high
        table[int(found[2])] = int(found[4])
        return True
    if found := _CHECKED_DTYPE.match(line):
        check = inputs.setdefault(found[1], InputCheck())
        check.dtype = dtype_name(found[2])
        return check.dtype is not None
    if found := _CHECKED_DEVICE.match(line):
        check = inputs.setdefault(found[1], InputCheck())
        check.device_type = DEVICE_TYPES.get(int(found[2]))
        return check.device_type is not None
    return False


# Location of the constants.
_ALIGNMENT = 64
_MARKER_ONLY = 64


def weights_location(model: ModelEntry, constants: Sequence[ConstantSpec], include_weights: bool | None) -> str:
    """``none``, ``so``, ``mmap``, ``blob``, ``disk``, ``external`` or ``unknown``.

    Constants that constant folding makes at load time (``from_folded``) need no place of their own.
    """
    own = [constant for constant in constants if not constant.from_folded]
    if not own:
        return "none"
    names = [member.name for member in model.members]
    if any(name.endswith("_weights.blob") for name in names):
        return "blob"
    if include_weights is False:
        return "disk" if any(name.endswith("weights_config.json") for name in names) else "external"
    if any(name.endswith("_serialized_weights.bin") for name in names):
        return "mmap"
    if include_weights is None:
        return model.weights_location
    spans = [so.constants_span for so in model.shared_objects if so.constants_span is not None]
    sizes = [constant.data_size for constant in own if constant.data_size is not None]
    if not spans:
        return "so" if any(name.endswith(".weights.o") for name in names) else model.weights_location
    if max(spans) >= sum(sizes) - _ALIGNMENT * len(sizes):
        return "so"
    return "mmap" if max(spans) <= _MARKER_ONLY else "unknown"
