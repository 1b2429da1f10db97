"""Any bytes are an InputSet or an InputsError, in bounded time."""

import io
import json
import pickle
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aotidoctor.model.errors import InputsError
from aotidoctor.model.inputs import InputSet
from aotidoctor.readers.inputs.pickle_machine import OPCODES, load_pickle
from aotidoctor.readers.inputs.read_inputs import read_inputs

DATA = Path(__file__).parents[1] / "data" / "inputs"
FILES = sorted(path.name for path in DATA.iterdir())
SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def outcome(tmp_path, data, *, trust=False):
    path = tmp_path / "sample"
    path.write_bytes(data)
    error = None
    try:
        inputs = read_inputs(str(path), trust_pickle=trust)
    except InputsError as caught:
        inputs, error = None, caught
    if error is not None:
        assert error.cause in ("inputs-file-corrupt", "inputs-file-unsafe", "inputs-file-format")
        assert all((error.subject, error.observed, error.expected))
    assert inputs is None or isinstance(inputs, InputSet)
    if inputs is not None:
        assert len(inputs.leaves()) >= len(inputs.tensors())
    return inputs


def zipped(data):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/data/0", bytes(48))
    return out.getvalue()


PREFIXES = st.sampled_from([b"", b"PK\x03\x04", b"\x80\x02", b"\x93NUMPY\x01\x00", b"\x10" + bytes(7) + b"{", b"["])


@SETTINGS
@given(prefix=PREFIXES, data=st.binary(max_size=300), trust=st.booleans())
def test_any_bytes(tmp_path, prefix, data, trust):
    outcome(tmp_path, prefix + data, trust=trust)


@SETTINGS
@given(name=st.sampled_from(FILES), data=st.data())
def test_files_with_changed_bytes(tmp_path, name, data):
    content = bytearray((DATA / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    outcome(tmp_path, bytes(content))


@SETTINGS
@given(name=st.sampled_from(FILES), part=st.floats(0, 1))
def test_files_cut_off_are_never_read(tmp_path, name, part):
    content = (DATA / name).read_bytes()
    cut = min(int(len(content) * part), len(content) - 1)
    if not name.endswith(".pkl"):
        assert outcome(tmp_path, content[:cut]) is None
    else:
        outcome(tmp_path, content[:cut])


def pickles_inside():
    for name in FILES:
        if zipfile.is_zipfile(DATA / name):
            with zipfile.ZipFile(DATA / name) as archive:
                (member,) = [item for item in archive.namelist() if item.endswith("data.pkl")]
                yield archive.read(member)


PICKLES = list(pickles_inside())
STEPS = st.one_of(
    st.sampled_from([bytes([code]) for code in OPCODES]),
    st.sampled_from([b"K\x00", b"K\x03", b"X\x01\x00\x00\x000", b"q\x00", b"h\x00", b"ctorch\nFloatStorage\n"]),
    st.sampled_from([b"ctorch._utils\n_rebuild_tensor_v2\n", b"ctorch._tensor\n_rebuild_from_type_v2\n", b")R"]),
    st.sampled_from([b"ctorch._utils\n_rebuild_parameter\n", b"ccollections\nOrderedDict\n", b"cos\nsystem\n"]),
)


@SETTINGS
@given(steps=st.lists(STEPS, max_size=40), trust=st.booleans())
def test_any_program(tmp_path, steps, trust):
    outcome(tmp_path, zipped(b"\x80\x02" + b"".join(steps) + b"."), trust=trust)


@SETTINGS
@given(data=st.data(), trust=st.booleans())
def test_spliced_pickles(tmp_path, data, trust):
    first, second = data.draw(st.sampled_from(PICKLES)), data.draw(st.sampled_from(PICKLES))
    head = first[: data.draw(st.integers(0, len(first)))]
    tail = second[data.draw(st.integers(0, len(second))) :]
    outcome(tmp_path, zipped(head + tail), trust=trust)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.binary(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)


@SETTINGS
@given(value=PLAIN, protocol=st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_pickles_of_plain_values_are_understood(value, protocol):
    data = pickle.dumps(value, protocol=protocol)
    loaded = load_pickle(data)
    assert (loaded.problem, loaded.end) == (None, len(data))
    assert loaded.foreign == ()


@SETTINGS
@given(document=st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["args", "kwargs", "tensor", "tuple", "shape", "data", "dtype", "x"]), inner, max_size=3),
    max_leaves=10,
))  # fmt: skip
def test_any_json(tmp_path, document):
    outcome(tmp_path, json.dumps(document).encode())


@pytest.mark.parametrize("name", FILES)
def test_every_stored_file_is_read_or_refused_for_a_reason(tmp_path, name):
    refused = {"state_dict.pt", "module.pt", "subclass.pt"}
    assert (outcome(tmp_path, (DATA / name).read_bytes()) is None) == (name in refused)
