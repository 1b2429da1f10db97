"""A watched program that is run again: what it finds around it."""

from __future__ import annotations

import getpass
import os

import pytest

from aotidoctor.model.run import Exited, ProgramToWatch
from aotidoctor.runner.watch_again import watch_again


def told(environ):
    script = 'echo "$TORCHINDUCTOR_CACHE_DIR|$TMPDIR"; exit 3'
    done = watch_again(ProgramToWatch(argv=("/bin/sh", "-c", script), limit=60.0), environ)
    assert done.ending == Exited(code=3, done=False)
    cache, _, temporary = done.streams[0].head.decode().strip().partition("|")
    return cache, temporary


@pytest.fixture
def environ(tmp_path):
    (tmp_path / "tmp").mkdir()
    kept = {name: value for name, value in os.environ.items() if name != "TORCHINDUCTOR_CACHE_DIR"}
    return {**kept, "TMPDIR": str(tmp_path / "tmp")}


def test_it_has_a_temporary_directory_of_its_own_and_the_compile_cache_that_it_had(environ, tmp_path):
    own = tmp_path / "tmp" / f"torchinductor_{getpass.getuser()}"
    own.mkdir()
    cache, temporary = told(environ)
    assert cache == str(own)
    assert temporary != environ["TMPDIR"]
    assert [path.name for path in (tmp_path / "tmp").iterdir()] == [own.name]


def test_without_a_compile_cache_it_gets_none(environ):
    assert told(environ)[0] == ""


def test_a_compile_cache_that_the_user_named_stays(environ, tmp_path):
    (tmp_path / "tmp" / f"torchinductor_{getpass.getuser()}").mkdir()
    assert told({**environ, "TORCHINDUCTOR_CACHE_DIR": "/elsewhere"})[0] == "/elsewhere"
