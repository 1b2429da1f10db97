"""Any bytes give an ``Artifact``; so does any mutation of a package, of its archive or of its shared object."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from aotidoctor.model.artifact import Artifact
from aotidoctor.readers.package.blob import bytes_blob
from aotidoctor.readers.package.exported_program import parse_exported
from aotidoctor.readers.package.package_layout import first_line
from aotidoctor.readers.package.package_models import (
    gpu_targets,
    parse_extern_nodes,
    parse_kernel_information,
    parse_metadata,
)
from aotidoctor.readers.package.read_package import read_artifact, read_exported
from aotidoctor.readers.package.shared_object import read_shared_object
from aotidoctor.readers.package.zip_archive import duplicate_names, unsafe_names
from tests.artifacts.elfs import build_cubin, build_elf, build_fatbin
from tests.artifacts.packages import EXTERN, package_parts, program_json, program_parts
from tests.artifacts.zips import build_zip

FAST = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
PACKAGE = build_zip(package_parts(extern=EXTERN) + program_parts(prefix="model")[:1], zip64=True)
LIBRARY = build_elf()
LIBRARIES = (LIBRARY, build_elf(bits=32, machine=3, hash="sysv"), build_elf(big_endian=True, machine=22))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@st.composite
def mutations(draw, sources):
    """One of the sources with a few bytes overwritten, possibly cut, possibly with bytes inserted."""
    data = bytearray(draw(st.sampled_from(sources)))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data) - 1))
        patch = draw(
            st.one_of(st.binary(min_size=1, max_size=8), st.sampled_from([b"\xff" * 8, bytes(8), b"\xff\xff\xff\x7f"]))
        )
        data[at : at + len(patch)] = patch
    if draw(st.booleans()):
        del data[draw(st.integers(0, len(data))) :]
    return bytes(data)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("any") / "model.pt2"


def check(place, data: bytes) -> Artifact:
    place.write_bytes(data)
    found = read_artifact(str(place), crc_limit=1 << 20)
    assert isinstance(found, Artifact)
    assert found.size == len(data) or found.kind.value.endswith("directory")
    for text in (found.first_line, found.problem, *(member.name for member in found.members)):
        (text or "").encode()
    read_exported(str(place))
    return found


@FAST
@given(data=st.binary(max_size=300))
@example(data=b"PK\5\6" + bytes(18))
@example(data=b"PK\5\6" + b"\xff" * 18)
@example(data=b"\x7fELF" + b"\xff" * 100)
@example(data=b"MZ" + b"\xff" * 100)
@example(data=b"\xca\xfe\xba\xbe\0\0\0\2")
def test_any_bytes(place, data):
    check(place, data)


@FAST
@given(
    magic=st.sampled_from([b"PK\3\4", b"\x7fELF\2\1\1", b"MZ", b"\x80\2", b"\x08\x07\x12", b"\xcf\xfa\xed\xfe"]),
    data=st.binary(max_size=200),
)
def test_any_bytes_after_a_magic(place, magic, data):
    check(place, magic + data)


@FAST
@given(data=mutations([PACKAGE]))
def test_mutated_packages(place, data):
    check(place, data)


@settings(FAST, max_examples=400)
@given(data=mutations(LIBRARIES))
def test_mutated_shared_objects(data):
    found = read_shared_object(bytes_blob(data), "m.so")
    assert found.size == len(data)
    for symbol in found.undefined:
        symbol.name.encode()


@pytest.mark.parametrize("cut", range(0, len(LIBRARY), 37))
def test_every_cut_of_a_shared_object(cut):
    found = read_shared_object(bytes_blob(LIBRARY[:cut]), "m.so")
    assert found.truncated_at == cut or found.problem is not None


@FAST
@given(
    data=mutations(
        [
            build_cubin(90),
            build_fatbin(("elf", 90, build_cubin(90)), ("ptx", 90, b"x")),
            b"__CLANG_OFFLOAD_BUNDLE__" + bytes(64),
        ]
    )
)
def test_mutated_gpu_code(data):
    gpu_targets(bytes_blob(data))


@FAST
@given(value=JSON)
def test_any_json(value):
    data = json.dumps(value).encode()
    parse_metadata("m", data)
    parse_extern_nodes(data)
    parse_kernel_information(data)
    parse_exported("m", data)
    for shape in ({"nodes": value}, {"nodes": [value]}, {"nodes": [{"node": value}]}, {"graph_module": value}):
        parse_extern_nodes(json.dumps(shape).encode())
        parse_exported("m", json.dumps(shape).encode())


@FAST
@given(
    path=st.lists(
        st.sampled_from(["graph", "signature", "input_specs", "module_call_graph", "nodes"]), min_size=1, max_size=3
    ),
    value=JSON,
)
def test_programs_with_one_part_replaced(path, value):
    program = program_json()
    place = program["graph_module"]
    for key in path[:-1]:
        if isinstance(place, dict) and key in place:
            place = place[key]
    if isinstance(place, dict):
        place[path[-1]] = value
    facts = parse_exported("m", json.dumps(program).encode())
    if facts is not None:
        for text in (*facts.constant_inputs, *facts.constant_inputs.values(), *facts.ops, facts.in_spec or ""):
            text.encode()


@FAST
@given(data=st.binary(max_size=100))
@example(data=b"!\x1f!")
@example(data=b"\x1f\t!")
def test_first_line_has_no_control_characters(data):
    line = first_line(data)
    assert line is None or line.replace("\t", "").isprintable()


@FAST
@given(names=st.lists(st.text(max_size=12), max_size=10))
def test_names(names):
    assert set(unsafe_names(names)) <= set(names)
    assert set(duplicate_names(names)) <= set(names)
    assert set(duplicate_names([*names, *names])) >= {name for name in names if name and not name.endswith("/")}
