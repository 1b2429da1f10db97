"""What decides an answer as one number: the same for the same, another for anything else."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace

import pytest

from aotidoctor.fleet import cache
from aotidoctor.fleet.cache import NotReadableError, Settings, answer_key, content_digest, host_digest
from aotidoctor.fleet.items import FleetItem
from tests.unit.reports import builders


def test_a_file_has_the_sha256_of_its_bytes(tmp_path):
    data = os.urandom((1 << 20) + 7)
    (tmp_path / "m.pt2").write_bytes(data)
    assert content_digest(str(tmp_path / "m.pt2")) == (hashlib.sha256(data).hexdigest(), len(data))
    (tmp_path / "empty").touch()
    assert content_digest(str(tmp_path / "empty")) == (hashlib.sha256().hexdigest(), 0)


def test_a_bare_library_a_pipe_and_what_is_absent_have_none(tmp_path):
    (tmp_path / "m.so").write_bytes(b"\x7fELF and more")
    with pytest.raises(NotReadableError, match="files next to it"):
        content_digest(str(tmp_path / "m.so"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotReadableError, match="not a regular file"):
        content_digest(str(tmp_path / "pipe"))
    with pytest.raises(FileNotFoundError):
        content_digest(str(tmp_path / "absent"))


def test_a_large_file_is_known_by_its_version_and_not_read_in_full(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "MOST_HASHED", 3 << 20)
    path = tmp_path / "models" / "m.pt2"
    path.parent.mkdir()
    path.write_bytes(bytes(4 << 20))
    read = []
    monkeypatch.setattr(
        cache, "read_range", lambda at, size, start: read.append((size, start)) or os.pread(at, size, start)
    )
    first, size = content_digest(str(path))
    assert (first.startswith(cache.DIGEST_VERSION), size, read) == (True, 4 << 20, [(1 << 20, 3 << 20)])
    assert content_digest(str(path)) == (first, size)
    assert content_digest(str(path.parent))[0].startswith(cache.DIGEST_VERSION)
    with path.open("r+b") as stream:
        stream.seek(-1, os.SEEK_END)
        stream.write(b"x")
    assert content_digest(str(path))[0] != first


def folder(path):
    (path / "sub").mkdir(parents=True)
    (path / "sub" / "b").write_bytes(b"beta")
    (path / "a").write_bytes(b"alpha")
    return path


def test_a_folder_is_the_names_and_contents_below_it(tmp_path):
    one, other = folder(tmp_path / "one"), folder(tmp_path / "other")
    first = content_digest(str(one))
    assert first == content_digest(str(other))
    assert first[1] == len(b"beta") + len(b"alpha")
    os.mkfifo(other / "pipe")
    (other / "dangling").symlink_to(other / "absent")
    assert content_digest(str(other)) == first, "only files are read"


@pytest.mark.parametrize(
    "change",
    [
        lambda path: (path / "a").rename(path / "c"),
        lambda path: (path / "a").write_bytes(b"alphA"),
        lambda path: (path / "sub" / "b").rename(path / "b"),
        lambda path: (path / "sub" / "empty").touch(),
    ],
)
def test_any_change_below_a_folder_changes_its_digest(tmp_path, change):
    path = folder(tmp_path / "model")
    before = content_digest(str(path))
    change(path)
    assert content_digest(str(path))[0] != before[0]


def test_a_folder_of_too_many_files_has_no_digest(tmp_path, monkeypatch):
    path = folder(tmp_path / "model")
    monkeypatch.setattr(cache, "MOST_FILES", 2)
    content_digest(str(path))
    (path / "third").touch()
    with pytest.raises(NotReadableError, match="more than 2 files"):
        content_digest(str(path))


def test_a_machine_is_not_what_it_does_just_now():
    host = builders.HOST
    busy = replace(host, memory_available=1, tmpdir=replace(host.tmpdir, free_bytes=5))
    assert host_digest(busy) == host_digest(host)
    assert host_digest(replace(host, glibc="2.37")) != host_digest(host)
    assert host_digest(replace(host, tmpdir=replace(host.tmpdir, path="/var/tmp"))) != host_digest(host)


ITEM = FleetItem(command="check", path="m.pt2", inputs="x.pt")


@pytest.mark.parametrize(
    ("item", "settings", "same"),
    [
        (replace(ITEM, labels={"team": "a"}, expected="healthy"), Settings(), True),
        (replace(ITEM, path="renamed.pt2"), Settings(), True),
        (replace(ITEM, path="m.so"), Settings(), False),
        (replace(ITEM, inputs=None, reference="x.pt"), Settings(), False),
        (replace(ITEM, command="run"), Settings(), False),
        (ITEM, Settings(item_timeout=1.0), True),
        (ITEM, Settings(timeout=1.0, repeat=3), True),
        (ITEM, Settings(device="cuda"), False),
    ],
)
def test_the_key_has_what_decides_the_answer(item, settings, same):
    first = answer_key(ITEM, ["1", "2"], Settings(), "host")
    assert (answer_key(item, ["1", "2"], settings, "host") == first) is same
    assert (
        answer_key(ITEM, ["2", "1"], Settings(), "host") != first != answer_key(ITEM, ["1", "2"], Settings(), "other")
    )


def test_what_a_run_may_take_decides_what_is_executed():
    item = replace(ITEM, command="run")
    first = answer_key(item, ["1", "2"], Settings(), "host")
    assert answer_key(item, ["1", "2"], Settings(timeout=1.0), "host") != first
    assert answer_key(item, ["1", "2"], Settings(item_timeout=1.0), "host") == first
