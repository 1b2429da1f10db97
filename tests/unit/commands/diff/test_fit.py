"""A package against a host: the checks of the host, asked of another host's report."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from aotidoctor.commands.diff.compare_documents import ComparedSource, compare_sources
from aotidoctor.model.case import Gpu, TmpdirState, TorchBuild
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.reports.page import compared_page
from tests.unit.checks import package_builders as packages
from tests.unit.commands.diff.documents import document, source
from tests.unit.reports import builders

NEEDS = {"isa": ("avx512f",), "device_type": "cpu"}


def package(art=None, **more):
    case = packages.case(art, **more)
    report = builders.report(case=case, command="inspect")
    return replace(source(report, "m.pt2", "package", ("package",)), case=case)


def host(**more):
    report = builders.environment()
    report = replace(report, case=replace(report.case, host=packages.host(**more)))
    return source(report, "there.json", "host", ("host",))


def test_it_fits():
    found = compare_sources(package(contract=packages.contract(NEEDS)), host())
    assert found.differences == ()
    assert found.equal["fit"] > 15
    head = compared_page.difference_headline(found)
    assert head.word == "FITS"
    assert "nothing was run" in head.text


@pytest.mark.parametrize("package_first", [True, False])
def test_instructions_that_the_host_lacks(package_first):
    sides = [package(contract=packages.contract(NEEDS)), host(cpu_flags=frozenset({"avx2", "fma"}))]
    found = compare_sources(*(sides if package_first else sides[::-1]))
    first = found.differences[0]
    assert (first.area, first.playbook, first.level) == ("fit", "isa-mismatch", "decisive")
    assert "AD-HOST-002" in first.codes
    assert "avx512f" in (first.b if package_first else first.a)
    head = compared_page.difference_headline(found)
    assert head.word == "DOES NOT FIT"
    assert "isa-mismatch" in head.text


def test_another_architecture():
    found = compare_sources(package(), host(machine="aarch64"))
    assert "platform-mismatch" in {item.playbook for item in found.matters}


def test_no_torch_and_no_room_to_unpack():
    no_torch = compare_sources(package(), host(torch=None, torch_problem="not installed"))
    assert [(item.playbook, item.level) for item in no_torch.matters] == [("toolchain-missing", "relevant")]
    assert compared_page.difference_headline(no_torch).word == "MAY NOT FIT"
    noexec = compare_sources(package(), host(tmpdir=TmpdirState(path="/tmp", noexec=True, problem="mounted noexec")))
    assert [item.playbook for item in noexec.matters] == ["tmpdir"]


def test_libraries_are_not_claimed_to_be_there_when_nobody_looked():
    found = compare_sources(package(), host(symbols_checked=0))
    asked = [line for line in found.unknown if line.startswith("fit: missing_library")]
    assert len(asked) == 1
    assert "not resolved" in asked[0]
    assert "could not be run" in compared_page.difference_headline(found).text


def test_a_gpu_of_another_capability():
    needs = {"device_type": "cuda", "compute_capability": "90"}
    values = {**packages.VALUES, "AOTI_DEVICE_KEY": "cuda", "AOTI_COMPUTE_CAPABILITY": "90"}
    folder = packages.FOLDER
    model = packages.entry(
        metadata=(packages.metadata(packages.META, values), packages.metadata(values=values)),
        gpu_code=(f"{folder}k.cubin",),
        gpu_targets=("sm_90",),
    )
    torch = TorchBuild(version="2.13.0+cu128", path="/site/torch", cuda="12.8", cxx11_abi=True)
    gpus = (Gpu(index=0, name="NVIDIA A100", compute_capability="80"),)
    side = package(packages.artifact(model), contract=packages.contract(needs))
    found = compare_sources(side, host(torch=torch, gpus=gpus, cuda_driver="570.10"))
    assert "gpu-arch-mismatch" in {item.playbook for item in found.matters}


def test_a_host_that_is_none():
    there = host()
    broken = json.loads(json.dumps(document(builders.environment())))
    broken["host"]["cores"] = "two"
    with pytest.raises(CannotExamineError, match=r"host: observed .*cores.*expected the record of a host"):
        compare_sources(package(), replace(there, node=replace(there.node, value=broken)))


def test_two_packages_are_not_asked_to_fit():
    one, two = package(), package(contract=packages.contract(NEEDS))
    assert isinstance(one, ComparedSource)
    assert "fit" not in compare_sources(one, two).equal
