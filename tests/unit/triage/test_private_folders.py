"""A kept package is executed: folders for this user alone, and nothing taken that others may have written."""

from __future__ import annotations

import os
import stat

import pytest

from aotidoctor.triage.compile_cache import CompileCache, is_private, make_private


@pytest.fixture(params=[0o000, 0o002, 0o077, 0o277])
def umask(request, tmp_path):
    """Set once there is a folder to write to."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(root):
    return {stat.S_IMODE(path.lstat().st_mode) for path in (root, *root.rglob("*")) if path.is_dir()}


def test_each_level_is_private_whatever_the_umask(umask, tmp_path):
    root = tmp_path / "aotidoctor"
    make_private(root / "recompiled" / "key", root)
    assert modes(root) == {0o700}
    assert is_private(root / "recompiled" / "key", root)


def test_a_level_that_others_could_write_is_closed(tmp_path):
    root = tmp_path / "aotidoctor"
    root.mkdir()
    root.chmod(0o775)
    make_private(root / "recompiled", root)
    assert modes(root) == {0o700}


def kept(tmp_path):
    cache = CompileCache(tmp_path / "aotidoctor")
    package = cache.begin("key")
    package.write_bytes(b"code")
    return cache, cache.commit("key", package, {"a": 1}).package


def test_an_entry_is_taken(tmp_path):
    cache, package = kept(tmp_path)
    assert cache.take("key").package == package
    assert modes(cache.root) == {0o700}


@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
@pytest.mark.parametrize("name", ["model.pt2", "facts.json", "."])
def test_an_entry_that_others_can_write_is_not_taken(mode, name, tmp_path):
    cache, package = kept(tmp_path)
    (package.parent / name).chmod(mode | 0o100)
    assert cache.take("key") is None
    assert not package.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("name", ["model.pt2", "facts.json", ".", ".."])
def test_an_entry_of_somebody_else_is_not_taken(name, tmp_path):
    cache, package = kept(tmp_path)
    os.chown(package.parent / name, 12345, 12345)
    assert cache.take("key") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_nothing_is_kept_in_a_folder_of_somebody_else(tmp_path):
    root = tmp_path / "aotidoctor"
    root.mkdir()
    os.chown(root, 12345, 12345)
    with pytest.raises(PermissionError):
        CompileCache(root).begin("key")


def test_a_link_to_a_package_is_not_taken(tmp_path):
    cache, package = kept(tmp_path)
    elsewhere = tmp_path / "elsewhere.pt2"
    package.rename(elsewhere)
    package.symlink_to(elsewhere)
    assert cache.take("key") is None


def test_answers_that_others_can_write_are_not_taken(tmp_path):
    cache = CompileCache(tmp_path / "aotidoctor")
    cache.remember("key", {"a": "good"})
    assert cache.answers("key") == {"a": "good"}
    (cache.root / "bisect" / "key.json").chmod(0o666)
    assert cache.answers("key") == {}
