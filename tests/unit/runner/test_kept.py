"""Which requests may share one load."""

from __future__ import annotations

from pathlib import Path

import pytest

from aotidoctor.model.jobs import Run, UserCode
from aotidoctor.model.run import Request
from aotidoctor.runner.run_dir import make_run_dir
from aotidoctor.runner.start_child import ResidentModel, load_key


@pytest.fixture
def package(tmp_path: Path) -> str:
    path = tmp_path / "model.pt2"
    path.write_bytes(b"PK")
    return str(path)


def key(package: str, *, job: str = "run", env: dict | None = None, memory_limit: int | None = None, **payload):
    payload = Run(package=package, **payload)
    return load_key(Request(probe="x", job=job, payload=payload, env=env or {}, memory_limit=memory_limit))


@pytest.mark.parametrize(
    "changes",
    [
        {"calls": 7, "observe": [], "perturb": 90, "trace": True, "inputs": None},
        {"treatment": [{"op": "cast", "path": "args[0]", "dtype": "float32"}, {"op": "threads", "n": 1}]},
        {"env": {"AOTI_RUNTIME_CHECK_INPUTS": "1"}},
        {"threads": 1},
    ],
)
def test_what_comes_after_the_load_is_shared(package: str, changes: dict) -> None:
    assert key(package, **changes) == key(package) is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"model_name": "other"},
        {"code": UserCode(setup="ops.py")},
        {"code": UserCode(custom_op_libraries=("libops.so",))},
        {"treatment": [{"op": "load_weights", "from": "disk"}]},
        {"treatment": [{"op": "tmpdir"}]},
        {"weights": "/models/weights.pt"},
        {"memory_limit": 1 << 30},
    ],
)
def test_what_comes_before_it_is_not(package: str, changes: dict) -> None:
    assert key(package, **changes) not in (None, key(package))


@pytest.mark.parametrize("changes", [{"job": "recover"}, {"env": {"TMPDIR": "/x"}}, {"package": ""}])
def test_some_requests_share_nothing(package: str, changes: dict) -> None:
    assert key(**{"package": package, **changes}) is None
    assert key(package + ".gone") is None


def test_a_package_that_was_written_anew_is_another(package: str) -> None:
    before = key(package)
    Path(package).write_bytes(b"PK\x03")
    assert key(package) != before


@pytest.mark.parametrize(("kept", "asked", "serves"), [(None, 1, True), (1, 1, True), (1, None, False), (2, 1, False)])
def test_a_number_of_threads_that_was_set_is_not_taken_back(tmp_path, kept, asked, serves) -> None:
    keeper = ResidentModel(key="k", threads=kept, of=1, pid=2, run_dir=make_run_dir(tmp_path, "R1", None))
    assert keeper.serves(Request(probe="x", job="run", payload=Run(threads=asked)), "k") is serves
    assert not keeper.serves(Request(probe="x", job="run", payload=Run(threads=kept)), "other")
