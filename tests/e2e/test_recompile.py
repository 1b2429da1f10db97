"""Compile the exported program again: a package of another compiler, a compiler that is wrong, values from the printer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from foundry.cases import Case, Kit, called, given
from foundry.place import cache_dir
from warm import line

from aotidoctor.model.jobs import InputsSource, Recompile, Run, UserCode
from aotidoctor.model.run import Request
from aotidoctor.runner.runner import Runner

pytestmark = pytest.mark.torch

SECONDS = 590
# The wrapper is most of what is compiled, and is not what is wrong: the kernels have options of their own.
QUICK = """
from torch._inductor import config

config.aot_inductor.compile_wrapper_opt_level = "O0"
"""
# The operator itself stays as it is: only what the compiler makes of it is wrong.
KERNEL = "cpp_fused_add_gelu_mean_mul_0"
WRONG_LOWERING = """
import torch
from torch._inductor import lowering

erf = torch.ops.aten.erf.default
right = lowering.lowerings[erf]
lowering.lowerings[erf] = lambda x: lowering.lowerings[torch.ops.aten.mul.Tensor](right(x), 1.02)
"""
WRONG_PASS = """
import torch
from torch._inductor import config

def wrong(graph):
    for node in graph.nodes:
        if node.target is torch.ops.aten.add.Tensor and node.args[1] == 1:
            node.args = (node.args[0], 1.02)

config.post_grad_custom_post_pass = wrong
"""
WRONG_DECOMPOSITION = """
import torch
from torch._inductor import decomposition

def wrong(x, approximate="none"):
    return x * torch.sigmoid(1.702 * x)

decomposition.decompositions[torch.ops.aten.gelu.default] = wrong
decomposition.fast_random_decomps.cache_clear()
"""


GELU = called("gelu", "wronggelu", options=("--reference", "{exported:wronggelu}"))


@pytest.fixture
def home() -> Path:
    """A cache that outlives the tests: precompiled headers take half a minute. What a search answered does not."""
    where = cache_dir() / "xdg"
    shutil.rmtree(where / "aotidoctor" / "bisect", ignore_errors=True)
    return where


def examine(case: Case, kit: Kit, where: Path, home: Path, *options: str) -> dict:
    """The report of ``aotidoctor run``."""
    call = case.make(kit, where)
    assert not call.env
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(home))
        return json.loads(line()("run", *call.arguments(), "--format", "json", *options).stdout)


def found(report: dict, code: str) -> dict:
    items = [item for item in report["findings"] if item["code"] == code]
    assert items, report["not_checked"]
    return items[-1]


def test_the_compiler_of_this_host_is_right(packages: Kit, case_dir: Path, home: Path) -> None:
    report = examine(GELU, packages, case_dir, home)
    item = found(report, "AD-RUN-017")
    assert (item["kind"], item["facts"]["same_sources"]) == ("agrees", False), item
    assert item["facts"]["first_difference"]
    first = report["diagnoses"][0]
    assert (first["cause"], first["status"], first["subject"]) == ("numeric-difference", "confirmed", KERNEL)
    assert "compile" in first["remedy"]["text"].lower()
    assert not any(one["code"] == "AD-RUN-018" for one in report["findings"])
    again = examine(GELU, packages, case_dir, home)
    assert [run["id"] for run in again["runs"] if run["probe"] == "recompiled"] != []
    assert len([run for run in again["runs"] if run["probe"] == "recompiled"]) == 1  # kept: called, not compiled


def test_the_lowering_that_is_wrong_here(packages: Kit, case_dir: Path, home: Path) -> None:
    setup = case_dir / "wrong_lowering.py"
    setup.write_text(WRONG_LOWERING + QUICK)
    report = examine(GELU, packages, case_dir, home, "--setup", str(setup), "--budget", "500s")
    assert found(report, "AD-RUN-017")["kind"] == "differs"
    item = found(report, "AD-RUN-018")
    assert (item["kind"], item["subject"]) == ("found", "aten.erf.default"), item
    assert item["facts"]["subsystem"] == "lowerings"
    assert item["facts"]["without_passes"] == "bad"
    stages = [(row["name"], row["verdict"], row["first"]) for row in report["localization"]["stages"]]
    assert stages == [
        ("eager", "not looked at", False),
        ("exported", "not looked at", False),
        ("decomposed", "agrees", False),
        ("lowered", "differs", True),
        ("without passes", "differs", False),
        ("one step off", "agrees", False),
        ("package", "differs", False),
    ]
    first = report["diagnoses"][0]
    told = (first["cause"], first["subject"], first["status"])
    assert told == ("codegen-bug", "aten.erf.default", "confirmed"), report["diagnoses"]


def test_the_pass_that_is_wrong_here(packages: Kit, case_dir: Path, home: Path) -> None:
    setup = case_dir / "wrong_pass.py"
    setup.write_text(WRONG_PASS + QUICK)
    report = examine(GELU, packages, case_dir, home, "--setup", str(setup), "--budget", "500s")
    item = found(report, "AD-RUN-018")
    assert (item["kind"], item["subject"]) == ("found", "post_grad_custom_post_pass"), item
    assert (item["facts"]["subsystem"], item["facts"]["without_passes"]) == ("post_grad_passes", "good")
    assert (report["diagnoses"][0]["cause"], report["diagnoses"][0]["status"]) == ("codegen-bug", "confirmed")
    stages = [(row["name"], row["verdict"], row["first"]) for row in report["localization"]["stages"]]
    assert stages[2:] == [
        ("decomposed", "agrees", False),
        ("lowered", "differs", True),
        ("without passes", "agrees", False),
        ("one step off", "agrees", False),
        ("package", "differs", False),
    ]


def test_values_from_the_printer(packages: Kit, case_dir: Path, home: Path) -> None:
    case = given("printed", "numeric", lambda x, h: (-x, h), options=("--reference", "{exported:numeric}"))
    report = examine(case, packages, case_dir, home, "--skip-probes", "kernel_values")
    item = found(report, "AD-RUN-016")
    assert (item["kind"], item["facts"]["kernel"]) == ("nan", "cpp_fused_add_log_0"), item
    assert (item["facts"]["nan"], item["facts"]["method"]) == (64, "value printer")


def test_a_decomposition_is_turned_off(packages: Kit, case_dir: Path, home: Path, runner: Runner) -> None:
    setup, target = case_dir / "wrong_decomposition.py", case_dir / "made.pt2"
    setup.write_text(WRONG_DECOMPOSITION + QUICK)
    folder = packages.package("wronggelu").parent
    switch = {"backend": "aot_eager_decomp_partition", "subsystem": "decomposition", "max": -1}
    compile_ = Recompile(
        reference=str(folder / "exported.pt2"),
        target=str(target),
        cache=str(home / "aotidoctor" / "compiler"),
        config=None,
        bisect=switch,
        code=UserCode(setup=str(setup)),
    )
    call = Run(
        package=str(target), inputs=InputsSource(path=str(folder / "sample.pt")), reference=str(folder / "exported.pt2")
    )
    made = runner.run(Request(probe="test", job="recompile", payload=compile_, timeout=SECONDS))
    assert made.error is None, made.error
    names = [step["name"] for step in made.result["switchable"]["decomposition"]]
    assert any("aten.gelu" in name for name in names)
    ran = runner.run(Request(probe="test", job="run", payload=call))
    assert ran.result["reference"]["agrees"] is True
