"""Packages that were compiled here: kept, checked, bounded."""

from __future__ import annotations

import os
import time

import pytest

from aotidoctor.triage import compile_cache
from aotidoctor.triage.compile_cache import CompileCache, compiler_of, key_of, open_cache


@pytest.fixture
def cache(tmp_path):
    return CompileCache(tmp_path / "cache")


def store(cache, key, content=b"package", **facts):
    target = cache.begin(key)
    target.write_bytes(content)
    return cache.commit(key, target, facts)


def test_an_entry_comes_back(cache):
    assert cache.take("k") is None
    store(cache, "k", b"bytes", seconds=2.5)
    kept = cache.take("k")
    assert (kept.package.read_bytes(), kept.facts["seconds"]) == (b"bytes", 2.5)


def test_a_damaged_entry_is_made_again(cache):
    kept = store(cache, "k")
    kept.package.write_bytes(b"other")
    assert cache.take("k") is None
    assert not kept.package.exists()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"sha256": 5}'])
def test_facts_that_cannot_be_read(cache, text):
    kept = store(cache, "k")
    (kept.package.parent / "facts.json").write_text(text)
    assert cache.take("k") is None


def test_a_compile_that_left_nothing_makes_no_entry(cache):
    with pytest.raises(FileNotFoundError):
        cache.commit("k", cache.begin("k"), {})
    assert cache.take("k") is None


def test_discarding(cache):
    target = cache.begin("k")
    header = cache.compiler / "precompiled_headers" / "x.gch"
    old = header.with_name("old.gch")
    header.parent.mkdir(parents=True)
    for one in (header, old):
        one.write_bytes(b"torso")
    os.utime(old, (1, 1))
    cache.discard(target, headers=False)
    assert header.exists()
    target = cache.begin("k")
    os.utime(header)
    cache.discard(target, headers=True)
    assert (header.exists(), old.exists()) == (False, True)
    assert list((cache.root / "recompiled").iterdir()) == []


def test_the_oldest_go_when_it_is_too_big(cache, monkeypatch):
    monkeypatch.setattr(compile_cache, "LIMIT", 60_000)
    for number, key in enumerate("abc"):
        folder = store(cache, key, b"x" * 15_000).package.parent
        os.utime(folder, (number, number))
    os.utime(cache.take("a").package.parent, (time.time(), time.time()))
    store(cache, "d", b"x" * 15_000)
    assert [key for key in "abcd" if cache.take(key) is not None] in (["a", "d"], ["a", "c", "d"])
    assert cache.take("b") is None


def test_what_the_compiler_left_is_bounded_and_headers_stay(cache, monkeypatch):
    monkeypatch.setattr(compile_cache, "COMPILER_LIMIT", 10_000)
    cache.begin("k")
    for name in ("c7", "precompiled_headers"):
        (cache.compiler / name).mkdir()
        (cache.compiler / name / "file").write_bytes(b"x" * 20_000)
    store(cache, "k")
    assert [entry.name for entry in cache.compiler.iterdir()] == ["precompiled_headers"]


def test_answers(cache):
    assert cache.answers("k") == {}
    cache.remember("k", {"lowerings:-1": "good"})
    assert cache.answers("k") == {"lowerings:-1": "good"}
    (cache.root / "bisect" / "k.json").write_text("nonsense")
    assert cache.answers("k") == {}


def test_answers_that_cannot_be_kept_are_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    CompileCache(tmp_path / "file").remember("k", {"a": "good"})


def test_the_key_follows_content_and_settings(tmp_path, monkeypatch):
    program, setup = tmp_path / "exported.pt2", tmp_path / "setup.py"
    program.write_bytes(b"1")
    setup.write_text("a")
    files = (str(program), str(setup), None)
    first = key_of("2.13", {"printer": 0}, files=files)
    assert key_of("2.13", {"printer": 0}, files=files) == first
    assert key_of("2.14", {"printer": 0}, files=files) != first
    assert key_of("2.13", {"printer": 2}, files=files) != first
    monkeypatch.setenv("TORCHINDUCTOR_MAX_AUTOTUNE", "1")
    assert key_of("2.13", {"printer": 0}, files=files) != first
    monkeypatch.delenv("TORCHINDUCTOR_MAX_AUTOTUNE")
    setup.write_text("b")
    assert key_of("2.13", {"printer": 0}, files=files) != first


def test_where_it_is(tmp_path):
    assert open_cache({"XDG_CACHE_HOME": str(tmp_path)}).root == tmp_path / "aotidoctor"
    assert open_cache({"HOME": str(tmp_path)}).root == tmp_path / ".cache" / "aotidoctor"


def test_the_compiler(tmp_path, monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    compiler = tmp_path / "g++"
    compiler.write_text("")
    assert str(compiler) in compiler_of({"g++": str(compiler)})
    assert compiler_of({"g++": None}) is None
    assert compiler_of({"g++": str(tmp_path / "gone")}) is None
