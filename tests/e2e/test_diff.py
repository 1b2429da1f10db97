"""``aotidoctor diff`` on real packages, bundles, reports and this host; nothing is run but ``run`` itself."""

from __future__ import annotations

import json
import shutil
import zipfile

import pytest
from typer.testing import CliRunner

from aotidoctor.cli import build_app

pytestmark = pytest.mark.torch


def call(*words):
    return CliRunner().invoke(build_app(), [str(word) for word in words])


def diff(*words):
    result = call("diff", *words, "--json")
    return result.exit_code, json.loads(result.stdout)


def test_two_packages(packages):
    status, found = diff(packages.package("mlp"), packages.package("kwargs"))
    assert status == 1
    leaves = {item["subject"] for item in found["differences"] if item["playbook"] == "input-kwargs"}
    assert leaves == {"kwargs['scale']", "kwargs['bias']"}


def test_a_package_and_its_copy(packages, tmp_path):
    model = packages.package("mlp")
    shutil.copy(model, tmp_path / "other.pt2")
    status, found = diff(model, tmp_path / "other.pt2")
    assert (status, found["differences"]) == (0, [])


def test_a_package_fits_the_host_that_built_it(packages):
    status, found = diff(packages.package("mlp"), "here")
    assert status == 0
    assert found["equal"]["fit"] > 10


def test_weights_of_which_the_archive_has_checksums(packages, tmp_path):
    model = packages.package("blob")
    changed = tmp_path / "changed.pt2"
    with zipfile.ZipFile(model) as old, zipfile.ZipFile(changed, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            new.writestr(item, bytes([data[0] ^ 1]) + data[1:] if item.filename.endswith(".blob") else data)
    status, found = diff(model, changed)
    assert status == 1
    assert [(item["subject"], item["playbook"]) for item in found["differences"] if item["level"] != "minor"] == [
        ("weights.blob", "weights-differ")
    ]

    bundle = tmp_path / "case.zip"
    assert call("check", model, "--report", f"bundle:{bundle}").exit_code == 0
    status, found = diff(bundle, changed)
    assert (status, next(item["playbook"] for item in found["differences"])) == (1, "weights-differ")


def test_works_there_fails_here(packages, tmp_path):
    import torch

    model, sample = packages.package("embedding"), packages.sample_path("embedding")
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    args, kwargs = packages.call("embedding")
    args = list(args)
    at = next(index for index, one in enumerate(args) if isinstance(one, torch.Tensor) and one.dtype == torch.int64)
    args[at] = args[at].to(torch.int32)
    torch.save({"args": tuple(args), "kwargs": kwargs}, tmp_path / "bad.pt")
    assert call("check", model, "-i", sample, "--report", f"json:{good}").exit_code == 0
    assert call("check", model, "-i", tmp_path / "bad.pt", "--report", f"json:{bad}").exit_code == 1
    status, found = diff(good, bad)
    assert status == 1
    first = found["differences"][0]
    assert (first["subject"], first["a"], first["b"]) == (f"args[{at}]: dtype", "int64", "int32")
    assert (first["playbook"], first["diagnosed"]) == ("input-dtype", "B")
    assert found["equal"]["host"] > 20


def test_a_bundle_against_a_report_of_the_same(packages, tmp_path):
    model, sample = packages.package("mlp"), packages.sample_path("mlp")
    bundle, report = tmp_path / "case.zip", tmp_path / "report.json"
    words = ("check", model, "-i", sample)
    assert call(*words, "--report", f"bundle:{bundle}", "--report", f"json:{report}").exit_code == 0
    status, found = diff(bundle, report)
    assert (status, found["a"]["kind"], found["b"]["kind"]) == (0, "bundle", "report")
    assert found["equal"]["package"] >= 1
    status, found = diff(bundle, "here")
    assert (status, found["differences"]) == (0, [])
    assert found["equal"]["fit"] > 10
