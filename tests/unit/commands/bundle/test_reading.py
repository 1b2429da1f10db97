"""Files from anybody: hostile archives, odd reports."""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import zipfile

import pytest

from aotidoctor.commands.analyze import analyze as analyze_module
from aotidoctor.commands.analyze.analyze import analyze, read_sent_file
from aotidoctor.model.errors import CannotExamineError
from tests.unit.commands.bundle.conftest import packed

REPORT = json.dumps({"schema": "aotidoctor.report/1", "command": "run", "findings": [], "diagnoses": []}).encode()


def test_a_bundle(at):
    sent = read_sent_file(at(packed({"report.json": REPORT, "a.txt": b"x"})))
    assert sent.members["a.txt"] == b"x"
    assert sent.problems == []
    assert sent.is_bundle


def test_a_bare_report(at):
    sent = read_sent_file(at(b" \n" + REPORT))
    assert not sent.is_bundle
    assert sent.report["command"] == "run"


@pytest.mark.parametrize(
    ("data", "observed"),
    [
        (b"", "0 bytes that is not an archive"),
        (b"hello", "not an archive"),
        (b"\x7fELF" + b"\0" * 99, "not an archive"),
        (b"{", "no JSON object"),
        (b'{"schema": "other/1"}', "'other/1'"),
        (b'{"a": ' * 5000, "no JSON object"),
        (packed({"report.json": REPORT}, manifest={"schema": "aotidoctor.bundle/2"}), "aotidoctor.bundle/2"),
        (packed({"report.json": REPORT}, manifest=[1]), "no JSON in bundle.json"),
        (packed({"a.txt": b"x"}), "no report.json"),
        (packed({"report.json": b"[]"}), "no JSON object"),
        (packed({"report.json": b"{}"}), "the schema 'None'"),
    ],
)
def test_what_is_neither_says_what_was_observed_and_expected(at, data, observed):
    with pytest.raises(CannotExamineError) as raised:
        read_sent_file(at(data))
    assert observed in str(raised.value)
    assert "expected" in str(raised.value)
    assert "b.zip" in str(raised.value)


def test_no_file_and_a_folder_and_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, said in (("none", "no such file"), (".", "no file"), ("pipe", "no file"), ("a\0b", "null")):
        with pytest.raises(CannotExamineError, match=said):
            read_sent_file(str(tmp_path / name))


def test_a_changed_member_is_not_believed(at):
    data = packed({"report.json": REPORT, "a.txt": b"before"})
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(stream, "w") as new:
        for name in old.namelist():
            new.writestr(name, b"after." if name == "a.txt" else old.read(name))
    sent = read_sent_file(at(stream.getvalue()))
    assert "a.txt" not in sent.members
    assert sent.problems == ["a.txt: its checksum is not the one in the manifest"]
    warnings = [item for item in analyze(at(stream.getvalue())).findings if item.code == "AD-BUN-002"]
    assert "checksum" in warnings[0].observed


def test_a_changed_report_cannot_be_examined(at):
    data = packed({"report.json": REPORT}, members=[{"name": "report.json", "sha256": "0" * 64}])
    with pytest.raises(CannotExamineError, match="agrees with its checksum"):
        read_sent_file(at(data))


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "C:/x", "..\\x"])
def test_names_that_lead_elsewhere_are_not_read(at, name):
    sent = read_sent_file(at(packed({"report.json": REPORT, name: b"evil"})))
    assert b"evil" not in sent.members.values()
    assert "unsafe name" in sent.problems[0]


def test_what_the_manifest_does_not_list_is_not_read(at):
    listed = [{"name": "report.json", "sha256": hashlib.sha256(REPORT).hexdigest()}]
    sent = read_sent_file(
        at(packed({"report.json": REPORT, "extra": b"x"}, members=[*listed, {"name": "gone", "sha256": ""}]))
    )
    assert sent.members.keys() == {"report.json"}
    assert set(sent.problems) == {"extra is not in the manifest", "gone: listed but missing"}


def test_two_members_of_one_name(at):
    stream = io.BytesIO(packed({"report.json": REPORT}))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("report.json", b"{}")
    with pytest.raises(CannotExamineError, match=r"two members called 'report\.json'"):
        read_sent_file(at(stream.getvalue()))


def test_a_bomb_costs_no_memory(at, monkeypatch):
    monkeypatch.setattr(analyze_module, "LARGEST_MEMBER", 1 << 20)
    sent = read_sent_file(at(packed({"report.json": REPORT, "zeros": b"\0" * (4 << 20), "a": b"x"})))
    assert sent.members.keys() == {"report.json", "a"}
    assert "4194304 bytes, more than is read" in sent.problems[0]


def test_a_bomb_that_lies_about_its_size(at):
    data = bytearray(packed({"report.json": REPORT, "zeros": b"\0" * (1 << 20)}))
    for signature, offset in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
        place = data.find(b"zeros", data.find(signature))
        while place >= 0:
            start = data.rfind(signature, 0, place)
            if start >= 0 and place - start in (30, 46):
                data[start + offset : start + offset + 4] = struct.pack("<I", 10)
            place = data.find(b"zeros", place + 1)
    sent = read_sent_file(at(bytes(data)))
    assert "zeros" not in sent.members


def test_all_members_together_have_a_limit(at, monkeypatch):
    monkeypatch.setattr(analyze_module, "LARGEST_ALL", 3000)
    sent = read_sent_file(at(packed({"report.json": REPORT, "a": b"x" * 2000, "b": b"y" * 2000})))
    assert sent.members.keys() == {"report.json", "a"}


def test_a_link_is_not_followed(at):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        link = zipfile.ZipInfo("report.json")
        link.external_attr = 0o120777 << 16
        listed = [{"name": "report.json", "sha256": hashlib.sha256(REPORT).hexdigest()}]
        archive.writestr("bundle.json", json.dumps({"schema": "aotidoctor.bundle/1", "members": listed}))
        archive.writestr(link, REPORT)
    with pytest.raises(CannotExamineError, match=r"no report\.json"):
        read_sent_file(at(stream.getvalue()))
