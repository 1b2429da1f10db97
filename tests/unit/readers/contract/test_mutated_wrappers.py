"""A generator that writes one statement in another way: nothing that the contract loses by it is lost in silence.

Every form of statement in the texts of all releases is changed slightly, one at a time. Then either the contract holds
all facts that it held before, or the statement is among those that are reported as not read.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aotidoctor.readers.contract.read_contract import read_contract
from aotidoctor.readers.package.read_package import read_artifact
from tests.artifacts.cuda_wrappers import written_by

DATA = Path(__file__).parents[3] / "data"
SHAPE = (
    (re.compile(r'"[^"]*"'), '""'),
    (re.compile(r"\{[^{}]*\}"), "{}"),
    (re.compile(r"\b(?:aoti_torch_(?:cpu|cuda)_|cpp_fused|call_triton|triton_poi|lab)\w*"), "K"),
    (re.compile(r"\b(?:\w*buf|\w*arg|s|u|var_|int_array_|_tensor_constant|tmp_\w*?)\d+\w*"), "N"),
    (re.compile(r"\b\w*(?:weight|bias|count|total)\w*"), "W"),
    (re.compile(r"\b(?:float|int64_t|int32_t|bool|double|float32|int64|kFloat|kLong|kBool)\b"), "T"),
    (re.compile(r"\d+"), "0"),
    (re.compile(r"(?:N|W|K\(.*?\))(?:, (?:N|W))+"), "N"),
)
# In these nothing of the contract is written, or what is written there is the text of a message.
UNREAD = re.compile(
    r"^(?:$|//|/\*|\*|ss << |<< |throw |std::stringstream|#|\}|\{|import |from |def |tl\.|@|tmp\d|'''|async_|(?:in|out)_spec_)"
)
TENSOR = re.compile(r"\b(?:buf|arg)\d+(?:_\d+)?\b")
CHANGES = {
    "argument": lambda text: re.sub(r"(\)+;?\s*(?://.*)?\{?)$", r", 7\1", text, count=1),
    "macro": lambda text: (
        text.replace("AOTI_TORCH_ERROR_CODE_CHECK(", "NEW_STATUS_CHECK(")
        if "AOTI_TORCH_ERROR_CODE_CHECK(" in text
        else f"NEW_STATUS_CHECK({text.removesuffix(';')});"
    ),
    "suffix": lambda text: re.sub(r"\b([A-Za-z_]\w*)\(", r"\1_v2(", text, count=1),
    "member": lambda text: re.sub(r"([.>])([a-z_]\w*)", r"\1\2_v2", text, count=1),
    "type": lambda text: re.sub(
        r"^(\s*)(?:\[\[maybe_unused\]\] )?[A-Za-z_][\w:&]* (?=\w+(?:\[\])? ?[=(;])", r"\1NewType ", text
    ),
    "field": lambda text: re.sub(r"(\.\w+) = ", r"\1_v2 = ", text, count=1),
}


def shape_of(statement: str) -> str:
    text = statement.strip()
    for pattern, by in SHAPE:
        text = pattern.sub(by, text)
    return text[:120]


def facts_of(contract) -> set[tuple[object, ...]]:
    """Everything that a check may use, one fact each; calls by their place, as another name is no loss."""
    facts: set[tuple[object, ...]] = {
        ("in_spec", contract.in_spec),
        ("out_spec", contract.out_spec),
        ("weights", contract.weights),
        ("counts", contract.n_inputs, contract.n_outputs, contract.n_constants),
    }
    for leaf in contract.leaves:
        facts |= {("leaf", leaf.path, "dtype", leaf.dtype), ("leaf", leaf.path, "device", leaf.device_type)}
        facts |= {("leaf", leaf.path, "rank", leaf.rank), ("leaf", leaf.path, "strides", leaf.strides)}
        facts |= {("leaf", leaf.path, at, dim.static, dim.min, dim.max) for at, dim in enumerate(leaf.dims or ())}
        facts |= {("leaf", leaf.path, at, str(dim.expr)) for at, dim in enumerate(leaf.dims or ())}
    for output in contract.outputs:
        facts.add(("output", output.index, output.kind, output.same_as))
        facts |= {("output", output.index, output.dtype), ("output", output.index, output.shape)}
    for at, call in enumerate(contract.kernels):
        facts |= {("call", at), ("launch", at, call.grid, call.warps, call.shared, call.guarded)}
        facts.add(("code", at, call.device_code))
        facts |= {("argument", at, name) for text in call.arguments for name in TENSOR.findall(text)}
    facts |= {("constant", item) for item in contract.constants}
    facts |= {("symbol", item.name, item.definition) for item in contract.symbols}
    facts |= {("buffer", name, kind) for name, kind in contract.buffer_devices.items()}
    return {fact for fact in facts if fact[-1] is not None}


def texts():
    for path in sorted((DATA / "releases").glob("*/wrappers/*.cpp")):
        yield f"{path.parts[-3]} {path.stem}", path.read_text(encoding="utf-8")
    for path in sorted((DATA / "releases").glob("*/*/model.pt2")):
        yield f"{path.parts[-3]} {path.parts[-2]}", read_artifact(str(path)).models[0].wrapper_cpp
    cuda = read_artifact(str(DATA / "cuda" / "mlp.pt2")).models[0].wrapper_cpp
    for minor in range(6, 16):
        yield f"2.{minor} cuda", written_by(minor, cuda)
    yield "2.15 cuda tuned", written_by(15, cuda, tuned=True)


def forms():
    """``(where, text, line)`` of the first statement of each form, in the parts that hold the contract."""
    seen = set()
    for where, text in texts():
        lines = text.split("\n")
        start = next(at for at, line in enumerate(lines) if "AOTInductorModelBase(" in line)
        end = next(at for at, line in enumerate(lines) if re.match(r"\} // \w+::run_impl", line))
        in_comment = False
        for at in range(start, end):
            line = lines[at]
            in_comment = (in_comment or line.strip().startswith("/*")) and "*/" not in line
            shape = shape_of(line)
            if in_comment or UNREAD.match(line.strip()) is not None or shape in seen:
                continue
            seen.add(shape)
            yield where, lines, at


@pytest.fixture(scope="module")
def all_forms():
    return list(forms())


@pytest.mark.parametrize("kind", sorted(CHANGES))
def test_what_a_changed_statement_loses_is_reported(kind, all_forms, make_entry, make_artifact):
    def read(lines):
        entry = make_entry("\n".join(lines))
        return read_contract(make_artifact(entry), entry)

    silent, reported = [], 0
    known = {}
    for where, lines, at in all_forms:
        changed = CHANGES[kind](lines[at])
        if changed == lines[at]:
            continue
        if where not in known:
            contract = read(lines)
            known[where] = (facts_of(contract), contract.unknown_lines)
        facts, unknown = known[where]
        contract = read([*lines[:at], changed, *lines[at + 1 :]])
        if contract is None or contract.unknown_lines > unknown:
            reported += 1
        elif facts - facts_of(contract):
            lost = sorted(map(str, facts - facts_of(contract)))[:2]
            silent.append((where, changed.strip(), lost))
    assert not silent, "\n".join(map(str, silent))
    assert reported > 5
