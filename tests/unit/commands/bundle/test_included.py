"""What is sent only when it is asked for."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from aotidoctor.commands.bundle import collect
from aotidoctor.commands.bundle.bundle_members import Absent, BundleContents, BundleJob, Material
from aotidoctor.commands.bundle.collect import included_files
from aotidoctor.model.artifact import CrcState, Member
from tests.unit.reports import builders


def job(tmp_path, *include, members=(), largest=1 << 20, inputs=True):
    (tmp_path / "m.pt2").write_bytes(b"0123WEIGHTS9")
    (tmp_path / "s.pt").write_bytes(b"values")
    report = builders.misleading()
    model = replace(builders.MODEL, members=tuple(members))
    artifact = replace(report.case.artifact, path=str(tmp_path / "m.pt2"), models=(model,))
    case = replace(report.case, artifact=artifact, inputs_path=str(tmp_path / "s.pt") if inputs else None)
    return BundleJob(
        material=Material(report=replace(report, case=case)), wanted=BundleContents(include=include, largest=largest)
    )


def member(tmp_path, name, size=7, offset=4):
    return Member(
        name=name, size=size, compressed_size=size, crc=CrcState.GOOD, data_offset=offset, path=str(tmp_path / "m.pt2")
    )


def told(found):
    return [(item.name, item.reason if isinstance(item, Absent) else item.data) for item in found]


def test_nothing_unasked(tmp_path):
    assert not list(included_files(job(tmp_path)))


def test_files_as_they_are(tmp_path):
    assert told(included_files(job(tmp_path, "package", "inputs"))) == [
        ("included/package/m.pt2", b"0123WEIGHTS9"),
        ("included/inputs/s.pt", b"values"),
    ]
    assert not list(included_files(job(tmp_path, "inputs", inputs=False)))


def test_what_is_too_large_or_no_file_is_told(tmp_path):
    asked = job(tmp_path, "package", "inputs", largest=6)
    assert told(included_files(asked)) == [
        ("included/package/m.pt2", "12 bytes, more than --max-size"),
        ("included/inputs/s.pt", b"values"),
    ]
    (tmp_path / "s.pt").unlink()
    assert told(included_files(asked))[1] == ("included/inputs/s.pt", "not a file")


@pytest.mark.parametrize(
    "name", ["model/data/weights/w_0", "model/data/constants/c_0", "model/data/aotinductor/model/a_weights.blob"]
)
def test_members_that_hold_weights(tmp_path, name):
    other = member(tmp_path, "model/data/aotinductor/model/a.wrapper.so")
    asked = job(tmp_path, "weights", members=[other, member(tmp_path, name)])
    assert told(included_files(asked)) == [("included/weights/" + name.rpartition("/")[2], b"WEIGHTS")]


@pytest.mark.parametrize(("size", "offset"), [(7, None), (8, 4)])
def test_weights_that_cannot_be_taken_out(tmp_path, size, offset):
    one = member(tmp_path, "m/data/weights/w_0", size, offset)
    found = told(included_files(job(tmp_path, "weights", members=[one], largest=7)))
    assert found == [("included/weights/w_0", "compressed, or more than --max-size")]


def test_weights_within_the_library_are_told_with_their_place(tmp_path):
    ((name, reason),) = told(included_files(job(tmp_path, "weights")))
    assert name == "weights"
    assert "(they are: so)" in reason


def test_a_large_package_is_not_read_in_full_for_its_digest(tmp_path, monkeypatch):
    asked = job(tmp_path)
    report = asked.material.report
    case = replace(report.case, artifact=replace(report.case.artifact, size=12, sha256=None))
    asked = replace(asked, material=Material(report=replace(report, case=case)))
    digests = []
    for most in (12, 11):
        monkeypatch.setattr(collect, "_MOST_HASHED", most)
        facts, *rest = collect._package_facts(asked)
        digests.append((facts.document["sha256"], "sha256 of the package" in [item.name for item in rest]))
    assert digests == [(hashlib.sha256(b"0123WEIGHTS9").hexdigest(), False), (None, True)]
