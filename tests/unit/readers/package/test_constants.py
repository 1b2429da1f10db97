"""The bytes of constants, in each place where a package may have them."""

from __future__ import annotations

import json
import struct

import pytest

from aotidoctor.model.contract import ConstantSpec
from aotidoctor.readers.package.constants import read_constants
from aotidoctor.readers.package.read_package import read_artifact
from tests.artifacts.elfs import ElfSpec, build_elf
from tests.artifacts.packages import archive_parts, model_parts, write_zip
from tests.artifacts.zips import Part, build_zip

ONE, TWO = b"\1" * 16 + bytes(48), b"\2" * 64
FOLDER = "model/data/aotinductor/model"


def spec(name, size, **changes):
    told = {"dtype": "float32", "shape": (4,), "stride": (1,), "data_size": size, "offset": 0}
    return ConstantSpec(name=name, original_fqn=name, **{**told, **changes})


SPECS = (spec("a", 64), spec("folded", 64, from_folded=True), spec("b", 64))


def read(tmp_path, location, parts, specs=SPECS):
    artifact = read_artifact(write_zip(tmp_path / "m.pt2", parts))
    return read_constants(artifact, artifact.models[0], specs, location)


def contents(found):
    return {name: item.content.read_at(0, 1 << 20) if item.content else item.problem for name, item in found.items()}


def test_in_the_library(tmp_path):
    found = read(tmp_path, "so", model_parts(constants=ONE + TWO) + archive_parts())
    assert contents(found) == {"a": ONE, "b": TWO}
    assert (found["a"].dtype, found["a"].shape, found["a"].content.size) == ("float32", (4,), 64)


def test_reading_stays_inside(tmp_path):
    found = read(tmp_path, "so", model_parts(constants=ONE + TWO) + archive_parts())
    assert found["a"].content.read_at(60, 100) == ONE[60:]
    assert found["a"].content.read_at(64, 1) == found["a"].content.read_at(-1, 1) == b""


def test_appended_to_it(tmp_path):
    magic = 0x1122334455667788
    weights = ONE + TWO + struct.pack("<Q", magic)
    marker = struct.pack("<2Q", len(weights), magic)
    found = read(tmp_path, "mmap", model_parts(constants=marker, appended=weights) + archive_parts())
    assert contents(found) == {"a": ONE, "b": TWO}


def test_beside_it(tmp_path):
    parts = model_parts(extra=[("cabc.wrapper_weights.blob", ONE + TWO)]) + archive_parts()
    assert contents(read(tmp_path, "blob", parts)) == {"a": ONE, "b": TWO}


def saved(data):
    return build_zip([Part("w/data.pkl", b"."), Part("w/data/0", data), Part("w/version", b"3")])


def test_one_file_each(tmp_path):
    table = {"a": ["weight_0", [2, 2], [1, 2], 3], "b": ["weight_1", [4], [1], 0]}
    parts = [
        *model_parts(extra=[("weights_config.json", json.dumps(table).encode())]),
        Part("model/data/weights/weight_0", saved(ONE)),
        Part("model/data/weights/weight_1", b"no archive"),
        *archive_parts(),
    ]
    found = read(tmp_path, "disk", parts)
    assert contents(found) == {"a": ONE, "b": "model/data/weights/weight_1 is not a torch.save file with one tensor"}
    assert (found["a"].shape, found["a"].stride, found["a"].offset) == ((2, 2), (1, 2), 3)


@pytest.mark.parametrize(
    ("location", "parts", "text"),
    [
        ("external", model_parts(), "the package ships no weights"),
        ("unknown", model_parts(), "their location is unknown (unknown)"),
        ("so", model_parts(constants=ONE), "64 bytes of constants, 128 expected"),
        ("so", model_parts(constants=None), "the library does not record where its constants are"),
        ("so", model_parts(so=b"\x7fELF" + bytes(60)), "the constants were not found"),
        ("so", model_parts(so=build_elf(ElfSpec())[:200]), "the constants were not found"),
        ("mmap", model_parts(constants=struct.pack("<2Q", 1 << 40, 5)), "of appended weights cannot be in"),
        ("mmap", model_parts(constants=b"\1" * 8), "of appended weights cannot be in"),
        ("blob", model_parts(), "there is no readable _weights.blob member"),
        ("disk", model_parts(), "weights_config.json"),
        ("disk", model_parts(extra=[("weights_config.json", b'{"a": 5, "b": ["../x", 1, 2, 3]}')]), "names no member"),
    ],
)
def test_what_is_not_there(location, parts, text, tmp_path):
    found = contents(read(tmp_path, location, [*parts, *archive_parts()]))
    assert set(found) == {"a", "b"}
    assert all(text in str(reason) for reason in found.values()), found


def test_sizes_that_are_not_told(tmp_path):
    found = read(tmp_path, "so", model_parts(constants=ONE + TWO) + archive_parts(), (spec("a", None),))
    assert contents(found) == {"a": "the package does not record the sizes of its constants"}


def test_in_a_directory(tmp_path):
    folder = tmp_path / "unpacked"
    for part in [*model_parts(constants=ONE + TWO), *archive_parts()]:
        path = folder / str(part.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(part.data)
    artifact = read_artifact(str(folder))
    assert contents(read_constants(artifact, artifact.models[0], SPECS, "so")) == {"a": ONE, "b": TWO}
