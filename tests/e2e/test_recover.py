"""A contract recovered from the running code agrees with the one its sources tell, as far as it goes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foundry import edit
from foundry.cases import Kit
from warm_python import python

from aotidoctor.readers.contract.read_contract import read_contract
from aotidoctor.readers.contract.sourceless_contract import recovered_contract
from aotidoctor.readers.package.read_package import read_artifact

pytestmark = pytest.mark.torch

PROGRAM = """
import json, os, sys
from pathlib import Path
import torch
from aotidoctor.model.jobs import Run
from aotidoctor.worker.recover import recover

class Silent:
    user_cwd = Path.cwd()
    def enter(self, stage): pass
    def put(self, **values): json.dumps(values)
    def warn(self, text): pass

asked = Run(package=sys.argv[1], kind=sys.argv[2])
Path(sys.argv[3]).write_text(json.dumps(recover(asked, Silent())))
os._exit(0)
"""


def ask(package: Path, where: Path, kind: str = "aoti-package") -> dict:
    answer = where / "answer.json"
    done = python(PROGRAM, package, kind, answer)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "input_handles" not in done.stderr  # the complaints are caught, not printed
    return json.loads(answer.read_text())


@pytest.mark.parametrize(
    "name", ["nested", "kwargs", "mlp", "div8", "constants", "embedding", "conv", "item", "external"]
)
def test_recovered_as_the_sources_tell(packages: Kit, case_dir: Path, name: str) -> None:
    package = packages.package(name)
    artifact = read_artifact(str(package))
    told = read_contract(artifact, artifact.models[0])
    bare = edit.write(case_dir / "model.pt2", edit.drop(edit.read(package), ".cpp"))
    found = recovered_contract("model", ask(bare, case_dir))
    assert found.source == "recovered"
    assert (found.n_inputs, found.n_outputs, found.n_constants) == (told.n_inputs, told.n_outputs, told.n_constants)
    assert found.problems == ()
    for mine, other in zip(found.leaves, told.leaves, strict=True):
        assert (mine.path, mine.kind, mine.dtype, mine.rank) == (other.path, other.kind, other.dtype, other.rank)
        assert (mine.strides, mine.device_type) == (other.strides, other.device_type)
        bounds = [(dim.static, dim.min, dim.max) for dim in mine.dims or ()]
        assert bounds == [(dim.static, dim.min, dim.max) for dim in other.dims or ()]
    assert [one.original_fqn for one in found.constants] == [one.original_fqn for one in told.constants]


def test_a_bare_library(packages: Kit, case_dir: Path) -> None:
    library = case_dir / "model.so"
    library.write_bytes(edit.find(edit.read(packages.package("mlp")), ".so")[1])
    answer = ask(library, case_dir, kind="bare-so")
    assert answer["n_inputs"] == 2
    assert [entry["complete"] for entry in answer["inputs"]] == [True, True]
