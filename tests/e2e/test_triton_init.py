"""Every base model gets a config that its own validator passes, or the reason why none can."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from foundry.cases import Kit
from foundry.models import BY_NAME

from aotidoctor.commands.triton import draw_config, judge_repository, server_names
from aotidoctor.triton.config_schema import parse_with_protobuf as parses
from aotidoctor.triton.servable import ConfigOptions

# Base models that 26.06 cannot serve, and the rule that says why.
UNSERVABLE = {
    "bfloat16": {"R18", "R23"},
    "complex": {"R18"},
    "constants": {"R14"},
    "cpponly": {"R8"},
    "external": {"R47"},
    "positions": {"R47"},
    # Its out spec leaves open what the outputs are that PyTorch refuses; no rule of the server is broken.
    "rescaled": set(),
    "fineops": {"R48"},
    "misbehave": {"R48"},
    "pickled": {"R47"},
    "scale": {"R48"},
    "total": {"R23"},
    "twoops": {"R48"},
}
BATCHED = ("crowd", "mlp")


def drawn(path, *, release="26.06", size=0, naming="ordinal"):
    wanted = ConfigOptions(max_batch_size=size, naming=naming)
    return draw_config(str(path), wanted, triton=release, argv=(), environ=os.environ)


def served(text: str, package: Path, folder: Path, release: str):
    (folder / "net" / "1").mkdir(parents=True)
    (folder / "net" / "config.pbtxt").write_text(text)
    shutil.copy(package, folder / "net" / "1" / "model.pt2")
    return judge_repository(
        str(folder / "net"), triton=release, argv=(), environ={**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    )


@pytest.mark.torch
@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_a_config_that_passes_or_the_reason(name: str, packages: Kit, case_dir: Path) -> None:
    package = packages.package(name)
    for naming in ("ordinal", "forward"):
        found = drawn(package, naming=naming)
        if name in UNSERVABLE:
            assert found.text is None
            assert {item.code.removeprefix("TRITON-") for item in found.report.findings} == UNSERVABLE[name]
            assert found.reasons
            continue
        assert found.text is not None, found.reasons
        assert parses(found.text).accepted is not False
        report = served(found.text, package, case_dir / naming, "26.06")
        assert (report.verdict, [item.code for item in report.findings if item.severity.rank > 0]) == ("healthy", [])


@pytest.mark.torch
@pytest.mark.parametrize("name", BATCHED)
def test_batches_as_large_as_were_compiled(name: str, packages: Kit, case_dir: Path) -> None:
    package = packages.package(name)
    found = drawn(package, size=64)
    assert found.text is not None
    assert served(found.text, package, case_dir, "26.06").verdict == "healthy"
    beyond = drawn(package, size=65)
    assert beyond.text is None
    assert any(reason.startswith("R32: ") and "Set max_batch_size: 64." in reason for reason in beyond.reasons)


@pytest.mark.torch
def test_a_static_package_is_not_batched(packages: Kit) -> None:
    found = drawn(packages.package("linear"), size=4)
    assert found.text is None
    assert found.reasons[0].startswith("R31: ")


@pytest.mark.torch
def test_names_of_real_packages(packages: Kit) -> None:
    report = server_names(str(packages.package("kwargs")), triton="26.05", argv=(), environ=os.environ)
    assert [row.names for row in report.names.inputs] == [
        ("INPUT__0", "ARGS[0]"),
        ("INPUT__1", "KWARGSscale"),
        ("INPUT__2", "KWARGSbias"),
    ]
    assert report.verdict == "healthy"
    constants = server_names(str(packages.package("constants")), triton="26.05", argv=(), environ=os.environ)
    assert (constants.verdict, [item.code for item in constants.findings]) == ("problem", ["TRITON-R14"])


@pytest.mark.torch
def test_the_old_releases_serve_two_inputs_only(packages: Kit, case_dir: Path) -> None:
    found = drawn(packages.package("mlp"), release="26.03")
    assert 'default_model_filename: "model.pt2"' in found.text
    assert served(found.text, packages.package("mlp"), case_dir, "26.03").verdict == "healthy"
    assert drawn(packages.package("linear"), release="26.03").reasons[0].startswith("R16: ")


@pytest.mark.torch
def test_the_report_as_json(packages: Kit) -> None:
    from aotidoctor.reports.json.json_report import render_json

    document = json.loads(render_json(drawn(packages.package("nested")).report))
    assert document["names"]["inputs"][2]["ordinal"] == "INPUT__2"
    assert document["extra"]["config"].startswith("# For Triton 26.06.")
