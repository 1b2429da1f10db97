from __future__ import annotations

import json
import os
import resource
import stat
from contextlib import contextmanager

import pytest

from aotidoctor.commands.bundle import bundle_members
from aotidoctor.commands.bundle.bundle_members import BundleContents, Material
from aotidoctor.commands.bundle.make_bundle import BundleTarget, check_target, deliver, deliver_report
from aotidoctor.model.errors import CannotExamineError, UsageError
from tests.unit.commands.bundle.conftest import ENVIRON, HOST, members, with_path
from tests.unit.reports import builders

MATERIAL = Material(report=with_path(builders.misleading(), "/home/someone/m.pt2"))


def send(target, wanted=None, environ=ENVIRON):
    return deliver(MATERIAL, wanted or BundleContents(), target, environ, HOST)


def test_bundle_and_map(tmp_path):
    target = BundleTarget(path=tmp_path / "new" / "b.zip")
    bundle = send(target)
    assert target.path.read_bytes() == bundle.data
    assert stat.S_IMODE(target.map_file.stat().st_mode) == 0o600
    table = json.loads(target.map_file.read_text())
    assert table["schema"] == "aotidoctor.map/1"
    assert table["placeholders"]["<user-1>"] == "someone"
    assert sorted(os.listdir(tmp_path / "new")) == ["b.zip", "b.zip.map.json"]


def test_a_map_keeps_placeholders_stable(tmp_path):
    kept = tmp_path / "my.map.json"
    kept.write_text(
        bundle_members.map_text({"<user-1>": "otherone", "<user-2>": "someone", "<secret-1>": "hunter2-hunter2"})
    )
    bundle = send(BundleTarget(path=tmp_path / "b.zip", map_path=kept))
    assert b"/home/<user-2>/m.pt2" in members(bundle.data)["report.json"]
    table = json.loads(kept.read_text())["placeholders"]
    assert table["<user-1>"] == "otherone"
    assert table["<user>"] == "marianne"


def test_a_map_of_another_machine_gives_this_one_other_placeholders(tmp_path):
    kept = tmp_path / "my.map.json"
    kept.write_text(bundle_members.map_text({"<user>": "hildegard", "<host>": "redbird"}))
    send(BundleTarget(path=tmp_path / "b.zip", map_path=kept))
    table = json.loads(kept.read_text())["placeholders"]
    assert table["<user>"] == "hildegard"
    assert "marianne" in table.values()


def test_a_dry_run_writes_nothing(tmp_path):
    bundle = send(BundleTarget(path=tmp_path / "b.zip", dry=True))
    assert bundle.members
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("content", ["not json", "{}", '{"schema": "aotidoctor.map/2", "placeholders": {}}', "[1]", ""])
def test_what_is_no_map_is_not_overwritten(tmp_path, content):
    kept = tmp_path / "notes.txt"
    kept.write_text(content)
    with pytest.raises(UsageError, match="not overwritten"):
        send(BundleTarget(path=tmp_path / "b.zip", map_path=kept))
    assert kept.read_text() == content
    assert not (tmp_path / "b.zip").exists()


def test_a_map_that_is_a_link_or_a_folder_or_somebody_elses_is_not_used(tmp_path, monkeypatch):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in (link, folder):
        with pytest.raises(UsageError):
            send(BundleTarget(path=tmp_path / "b.zip", map_path=path))
    assert not (tmp_path / "target").exists()
    foreign = tmp_path / "foreign"
    foreign.write_text(bundle_members.map_text({}))
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(foreign).st_uid + 1)
    with pytest.raises(UsageError, match="a different user"):
        send(BundleTarget(path=tmp_path / "b.zip", map_path=foreign))


@contextmanager
def small_disk(most=1500):
    """Within: files have at most so many bytes. Of 1500 the map fits, the bundle does not.

    No fixture: it would still hold when pytest writes the outcome of the test, maybe to a larger file.
    """
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_leaves_nothing_half_written(tmp_path):
    with small_disk(), pytest.raises(CannotExamineError, match=r"could not write .*b.zip: File too large"):
        send(BundleTarget(path=tmp_path / "b.zip"))
    assert os.listdir(tmp_path) == []


def test_an_old_bundle_stays_when_the_new_one_cannot_be_written(tmp_path):
    target = BundleTarget(path=tmp_path / "b.zip")
    old = send(target).data
    with small_disk(), pytest.raises(CannotExamineError):
        send(target)
    assert target.path.read_bytes() == old


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_what_is_no_file_is_not_replaced_by_a_bundle(tmp_path, kind):
    place = tmp_path / "b.zip"
    (tmp_path / "mine").write_text("mine")
    {"pipe": os.mkfifo, "link": lambda path: path.symlink_to(tmp_path / "mine"), "folder": os.mkdir}[kind](place)
    before = os.lstat(place)
    target = BundleTarget(path=place)
    with pytest.raises(UsageError):
        check_target(target, ())
    with pytest.raises(CannotExamineError):
        # It has come there after that look.
        send(target)
    assert os.lstat(place) == before
    assert (tmp_path / "mine").read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == ["b.zip", "mine"]


def test_the_size_has_a_limit(tmp_path):
    with pytest.raises(CannotExamineError, match="more than --max-size"):
        send(BundleTarget(path=tmp_path / "b.zip"), BundleContents(largest=100))
    assert os.listdir(tmp_path) == []


def test_nothing_else_is_overwritten(tmp_path):
    package, other, target = tmp_path / "m.pt2", tmp_path / "other.txt", BundleTarget(path=tmp_path / "b.zip")
    package.write_text("x")
    other.write_text("x")
    for bad in (
        BundleTarget(path=package),
        BundleTarget(path=target.path, map_path=package),
        BundleTarget(path=other),
        BundleTarget(path=tmp_path),
    ):
        with pytest.raises(UsageError):
            check_target(bad, (str(package),))
    with pytest.raises(UsageError, match="one file"):
        check_target(BundleTarget(path=target.path, map_path=target.path), ())
    check_target(target, (str(package),))
    send(target)
    check_target(target, (str(package), None))


def test_as_a_kind_of_report(tmp_path):
    line = deliver_report(MATERIAL.report, tmp_path / "b.zip", ENVIRON, redact=True)
    assert "wrote" in line
    assert "b.zip.map.json" in line
    names = members((tmp_path / "b.zip").read_bytes())
    assert "case.json" in names
    assert any(name.startswith("logs/runs/R1.") for name in names)
    (tmp_path / "x").write_text("mine")
    with pytest.raises(UsageError):
        deliver_report(MATERIAL.report, tmp_path / "x", ENVIRON, redact=True)


def test_a_map_file_that_cannot_be_written_is_said(tmp_path):
    with small_disk(10), pytest.raises(CannotExamineError, match=r"could not write .*map.json: File too large"):
        send(BundleTarget(path=tmp_path / "b.zip"))
    assert os.listdir(tmp_path) == []
