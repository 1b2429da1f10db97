"""The copy of a package beside the script: what it loses, and what it keeps."""

from __future__ import annotations

import io
import struct
import zipfile
from dataclasses import replace

import pytest

from aotidoctor.commands.repro.reduced_inputs import LIMIT, RANDOM, UNCHANGED, ZEROED, can_strip, copy_package
from aotidoctor.model.artifact import ArtifactKind, CrcState, Member
from tests.unit.reports import builders

CASE = builders.misleading().case
PREFIX = "model/data/aotinductor/model/"


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (CASE, None),
        (replace(CASE, model=replace(builders.MODEL, weights_location="external")), None),
        (replace(CASE, model=None), "not a package that can be rewritten"),
        (replace(CASE, artifact=replace(CASE.artifact, kind=ArtifactKind.BARE_SO)), "not a package that can be"),
        (replace(CASE, artifact=replace(CASE.artifact, size=LIMIT + 1)), "larger than 2 GiB"),
        (
            replace(CASE, model=replace(builders.MODEL, weights_location="unknown")),
            "location of its weights is unknown",
        ),
    ],
)
def test_what_can_be_taken_apart(case, reason):
    told = can_strip(case)
    assert (told is None) is (reason is None)
    assert reason is None or reason in told


def packed(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


def unpacked(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def constant(name, dtype, count):
    size = count * {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "int64": 8}[dtype]
    return replace(builders.CONTRACT.constants[0], name=name, original_fqn=name, dtype=dtype, data_size=size)


def case_of(path, members, *constants, location="blob"):
    path.write_bytes(packed(members))
    made = tuple(
        Member(
            name=name, size=len(data), compressed_size=len(data), crc=CrcState.GOOD, data_offset=None, path=str(path)
        )
        for name, data in members.items()
    )
    model = replace(builders.MODEL, members=made, weights_location=location)
    contract = replace(builders.CONTRACT, constants=constants)
    artifact = replace(CASE.artifact, path=str(path), members=made, models=(model,))
    return replace(CASE, artifact=artifact, model=model, contract=contract)


WEIGHTS = struct.pack("<3f", 7.0, 8.0, 9.0) + struct.pack("<2q", 5, 6)
CONSTANTS = (constant("w", "float32", 3), constant("ids", "int64", 2))
MEMBERS = {
    f"{PREFIX}a.wrapper.cpp": b"// code",
    f"{PREFIX}a_weights.blob": WEIGHTS,
    "model/data/sample_inputs/model.pt": b"private",
    "model/extra/notes": b"private",
    "model/models/model.json": b"{}",
    "model/version": b"0",
}


def test_zeroed_weights_and_nothing_that_the_failure_does_not_need(tmp_path):
    case = case_of(tmp_path / "m.pt2", MEMBERS, *CONSTANTS)
    assert copy_package(case, tmp_path / "copy.pt2", ZEROED) == "zeroed"
    assert unpacked(tmp_path / "copy.pt2") == {
        f"{PREFIX}a.wrapper.cpp": b"// code",
        f"{PREFIX}a_weights.blob": bytes(len(WEIGHTS)),
        "model/version": b"0",
    }


def test_kept_is_a_copy(tmp_path):
    case = case_of(tmp_path / "m.pt2", MEMBERS, *CONSTANTS)
    assert copy_package(case, tmp_path / "copy.pt2", UNCHANGED) == "kept"
    assert (tmp_path / "copy.pt2").read_bytes() == (tmp_path / "m.pt2").read_bytes()


@pytest.mark.parametrize(("dtype", "code"), [("float32", "f"), ("float64", "d"), ("float16", "e"), ("bfloat16", None)])
def test_random_weights_are_small_numbers_and_integers_stay(tmp_path, dtype, code):
    float_ = constant("w", dtype, 3)
    data = bytes(range(1, float_.data_size + 1)) + struct.pack("<2q", 5, 6)
    case = case_of(tmp_path / "m.pt2", {**MEMBERS, f"{PREFIX}a_weights.blob": data}, float_, CONSTANTS[1])
    assert copy_package(case, tmp_path / "copy.pt2", RANDOM) == "random floating-point values; integers kept"
    new = unpacked(tmp_path / "copy.pt2")[f"{PREFIX}a_weights.blob"]
    assert struct.unpack("<2q", new[float_.data_size :]) == (5, 6)
    raw = new[: float_.data_size]
    if code is None:
        # A bfloat16 is the upper half of a float32.
        raw, code = b"".join(b"\0\0" + raw[at : at + 2] for at in range(0, len(raw), 2)), "f"
    numbers = struct.unpack(f"<3{code}", raw)
    assert all(-0.1 <= number <= 0.1 for number in numbers)
    assert len(set(numbers)) == 3


def test_weights_that_are_not_found_are_not_said_to_be_gone(tmp_path):
    members = {name: data for name, data in MEMBERS.items() if not name.endswith(".blob")}
    case = case_of(tmp_path / "m.pt2", members, *CONSTANTS)
    with pytest.raises(ValueError, match="weights were not found"):
        copy_package(case, tmp_path / "copy.pt2", ZEROED)
    folded = tuple(replace(one, from_folded=True) for one in CONSTANTS)
    assert copy_package(case_of(tmp_path / "n.pt2", members, *folded), tmp_path / "copy.pt2", ZEROED) == "it ships none"


def test_files_of_weights_keep_their_form_with_zeros_in_it(tmp_path):
    saved = packed({"w/data.pkl": b"pickle", "w/data/0": b"\x01\x02", "w/data/0.txt": b"text", "w/version": b"3"})
    members = {"model/data/weights/w_0": saved, "model/data/weights/w_1": b"no zip", "model/data/weights/c.json": b"{}"}
    case = case_of(tmp_path / "m.pt2", members, *CONSTANTS, location="disk")
    assert copy_package(case, tmp_path / "copy.pt2", ZEROED) == "zeroed"
    found = unpacked(tmp_path / "copy.pt2")
    assert found["model/data/weights/c.json"] == b"{}"
    (tmp_path / "w_0").write_bytes(found["model/data/weights/w_0"])
    assert unpacked(tmp_path / "w_0") == {
        "w/data.pkl": b"pickle", "w/data/0": b"\0\0", "w/data/0.txt": b"text", "w/version": b"3",
    }  # fmt: skip
