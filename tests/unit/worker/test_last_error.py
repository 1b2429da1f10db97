"""The last message of compiled code, asked of a library that is loaded already."""

from __future__ import annotations

import _ctypes
import ctypes
import subprocess
import sys

import pytest

from aotidoctor.probes import plain_run
from tests.unit.probes.outcomes import case, raised

pytest.importorskip("torch")

from aotidoctor.worker.load_package import last_error

SAYS = """
static const char *said = "index out of bounds: 0 <= tmp4 < 100";
int AOTInductorGetLastError(const char **text) { *text = said; return 0; }
"""
FAILED = "run_func_( container_handle_, ...) API call failed at model_container_runner.cpp, line 152"


@pytest.mark.skipif(sys.platform != "linux", reason="mapped files are listed in /proc")
@pytest.mark.parametrize(("source", "told"), [(SAYS, "index out of bounds: 0 <= tmp4 < 100"), ("int nothing;", None)])
def test_the_library_is_asked_where_it_can_answer(tmp_path, source, told):
    assert last_error() is None, "nothing is loaded"
    folder = tmp_path / "data" / "aotinductor" / "model"
    folder.mkdir(parents=True)
    (folder / "x.c").write_text(source)
    path = folder / "x.wrapper.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", path, folder / "x.c"], check=True)
    handle = ctypes.CDLL(str(path))._handle
    try:
        assert last_error() == told
    finally:
        _ctypes.dlclose(handle)


def test_what_it_says_is_the_reason_where_the_exception_has_none():
    told = raised(FAILED, result={"last_error": "index out of bounds: 0 <= tmp4 < 100"})
    assert plain_run.read_ending("AD-RUN-001", case(), told).facts["symptom"] == "index-out-of-bounds"
    alone = raised(FAILED, result={"last_error": None})
    assert plain_run.read_ending("AD-RUN-001", case(), alone).facts["symptom"] == "other"
