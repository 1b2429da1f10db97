"""Packages of several releases against machines known from profiles. Expectations come from what those torches did."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from aotidoctor.commands.compat import compat
from aotidoctor.model.case import Host, TmpdirState, TorchBuild
from aotidoctor.model.errors import CannotExamineError, UsageError
from aotidoctor.model.fleet import HostVerdict
from aotidoctor.readers.host import profiles
from aotidoctor.readers.host.host_facts import read_host
from aotidoctor.reports.json.json_report import dump_json
from aotidoctor.reports.text import exit_status
from tests.every import every

DATA = Path(__file__).parents[2] / "data"
CUDA = str(DATA / "cuda" / "mlp.pt2")
V = DATA / "releases"
FULL = "ubuntu-22.04+x86-64-v4"


def answers(paths, hosts, torches=()):
    report = compat([str(path) for path in paths], hosts, torches, environ={})
    return report, {(Path(item.package).parts[-3], item.host): item for item in report.compat.answers}


def profile(tmp_path, name="host.json", **changes):
    host = Host(
        system="Linux", machine="x86_64", python="3.12.1", glibc="2.39", executable_stack=True,
        abi_versions={"GLIBC": "2.39", "GLIBCXX": "3.4.33", "CXXABI": "1.3.15", "GCC": "14.0.0", "GOMP": "5.1.2"},
        cpu_flags=frozenset(
            ["avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512_vnni", "amx_tile", "amx_bf16", "amx_int8"]
        ),
        torch=TorchBuild(version="2.13.0+cpu", path="/x"), memory_total=1 << 34, memory_available=1 << 33,
    )  # fmt: skip
    path = tmp_path / name
    path.write_text(dump_json(profiles.profile_document(replace(host, **changes), name)))
    return str(path)


# What these torches did with these packages.
@pytest.mark.parametrize(
    ("package", "torch", "answer"),
    [
        ("2.6.0/custop", "2.6", HostVerdict.RUNS), ("2.6.0/custop", "2.13", HostVerdict.RUNS),
        ("2.7.1/dyn", "2.13", HostVerdict.RUNS), ("2.7.1/dyn", "2.6", HostVerdict.RUNS),
        ("2.8.0/dyn", "2.6", HostVerdict.REFUSED), ("2.10.0/dyn", "2.6", HostVerdict.REFUSED), ("2.8.0/dyn", "2.8", HostVerdict.RUNS),
        ("2.8.0/custop", "2.13", HostVerdict.RUNS), ("2.12.1/custop", "2.8", HostVerdict.RUNS),
        ("2.12.1/custop", "2.7", HostVerdict.REFUSED), ("2.12.1/custop", "2.6", HostVerdict.REFUSED),
    ],
)  # fmt: skip
def test_a_release_loads_what_it_can(tmp_path, package, torch, answer):
    report, _ = answers([V / package / "model.pt2"], [profile(tmp_path)], [f"{torch}+cpu"])
    (item,) = report.compat.answers
    assert item.answer is answer
    assert item.causes == (("abi-mismatch",) if answer is HostVerdict.REFUSED else ())
    named = [diagnosis.cause for diagnosis in report.diagnoses if diagnosis.severity.value == "error"]
    assert named == list(item.causes)


RECORD = [
    (package, torch, end)
    for package, row in json.loads((V / "loads.json").read_text(encoding="utf-8")).items()
    for torch, end in row.items()
]


@every(("package", "torch", "end"), RECORD, chunks=2)
def test_what_is_foretold_is_what_each_release_did(tmp_path, package, torch, end):
    """``tests.trial_releases.kept`` has loaded and called each package with each of these releases."""
    report, _ = answers([V / package / "model.pt2"], [profile(tmp_path)], [f"{torch}+cpu"])
    (item,) = report.compat.answers
    assert item.answer is (HostVerdict.RUNS if end == "right" else HostVerdict.REFUSED), end


def test_the_record_has_packages_that_load_and_packages_that_do_not():
    ends = {end for _, _, end in RECORD}
    assert "right" in ends
    assert "wrong" not in ends
    assert any("undefined symbol" in end for end in ends)


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"machine": "aarch64"}, "platform-mismatch"),
        ({"glibc": "2.31", "abi_versions": {"GLIBC": "2.31", "GLIBCXX": "3.4.28", "CXXABI": "1.3.12", "GCC": "9"}},
         "abi-mismatch"),
        ({"cpu_flags": frozenset({"avx2", "fma"})}, "isa-mismatch"),
        ({"executable_stack": False, "executable_stack_why": "glibc 2.41"}, "executable-stack"),
        ({"libraries": {"libgomp.so.1": None, "libgcc_s.so.1": None}}, "missing-library"),
        ({"tmpdir": TmpdirState(path="/t", free_bytes=10)}, "tmpdir"),
        ({"memory_total": 1}, "out-of-memory"),
        ({"torch": None, "torch_problem": "torch is not installed"}, "toolchain-missing"),
    ],
)  # fmt: skip
def test_what_a_host_lacks_is_named(tmp_path, changes, cause):
    report, _ = answers([V / "2.6.0" / "emb" / "model.pt2"], [profile(tmp_path, **changes)])
    (item,) = report.compat.answers
    assert item.answer is HostVerdict.REFUSED
    assert cause in item.causes
    assert exit_status(report, "error") == 1


def test_a_gpu_package_needs_torch_driver_and_gpu(tmp_path):
    stated = profile(tmp_path)
    cpu, _ = answers([CUDA], [stated])
    assert cpu.compat.answers[0].causes == ("device-unavailable",)
    # A distribution and a release say nothing of GPU and driver, nor whether that torch is built for CUDA.
    document = json.loads(Path(stated).read_text())
    document["host"] = {key: item for key, item in document["host"].items() if key not in ("gpus", "cuda_driver")}
    Path(stated).write_text(json.dumps(document))
    report, _ = answers([CUDA], [stated], ["2.14"])
    assert report.compat.answers[0].answer is HostVerdict.UNKNOWN
    assert "gpus" in report.compat.answers[0].unknown[0]


def test_a_profile_that_says_little_gives_no_answer():
    report, _ = answers([V / "2.12.1" / "custop" / "model.pt2"], ["ubuntu-22.04"])
    (item,) = report.compat.answers
    assert item.answer is HostVerdict.UNKNOWN
    assert "torch" in item.unknown[0]
    assert exit_status(report, "error") == 3


def test_the_matrix_has_every_combination():
    report, found = answers(
        [V / "2.6.0" / "dyn" / "model.pt2", V / "2.12.1" / "custop" / "model.pt2"],
        ["debian-13", "aarch64"],
        ["2.8", "2.6"],
    )
    assert len(found) == len(report.compat.answers) == 8
    assert {item.answer for item in found.values()} == {HostVerdict.REFUSED}
    assert "platform-mismatch" in found["2.6.0", "aarch64 with torch 2.8"].causes
    assert "executable-stack" in found["2.6.0", "debian-13 with torch 2.8"].causes


@pytest.mark.parametrize(
    ("package", "torch", "told"), [("2.8.0", "2.10.0", 1), ("2.7.1", "2.10.0", 0), ("2.8.0", "2.11.0", 0)]
)
def test_the_import_that_a_release_forgets_comes_first(tmp_path, package, torch, told):
    report, _ = answers([V / package / "dyn" / "model.pt2"], [profile(tmp_path)], [torch])
    (item,) = report.compat.answers
    assert item.answer is HostVerdict.RUNS
    assert sum("codecache" in step for step in item.provided) == told


def test_one_bad_profile_costs_its_own_column_only(tmp_path):
    (tmp_path / "bad.json").write_text("{}")
    report, found = answers([V / "2.6.0" / "dyn" / "model.pt2"], [str(tmp_path / "bad.json"), "aarch64"])
    assert [item.answer for item in found.values()] == [HostVerdict.UNKNOWN, HostVerdict.REFUSED]
    assert exit_status(report, "error") == 4


@pytest.mark.parametrize(("hosts", "torches"), [(["no-such-host"], []), (["aarch64"], ["latest"]), (["here"], ["x"])])
def test_an_unknown_host_or_release_is_a_usage_error(hosts, torches):
    with pytest.raises(UsageError):
        compat([CUDA], hosts, torches, environ={})


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"schema": "aotidoctor.host/1"}', '{"schema": "aotidoctor.host/1", "host": {"system": 3}}',
     '{"schema": "aotidoctor.host/1", "host": {"machine": "x"}}', '{"schema": "other/1", "host": {}}',
     '{"schema":"aotidoctor.host/1","host":{"system":"Linux","machine":"x","cpu_flags":"avx"}}', "[" * 100_000],
)  # fmt: skip
def test_a_damaged_or_foreign_profile_is_told(tmp_path, text):
    (tmp_path / "host.json").write_text(text)
    with pytest.raises(CannotExamineError):
        profiles.read_profile(str(tmp_path / "host.json"))


def test_this_machine_survives_being_saved(tmp_path):
    host = read_host(artifact=None, environ=os.environ, survey=True)
    (tmp_path / "here.json").write_text(dump_json(profiles.profile_document(host, "here")))
    read = profiles.read_profile(str(tmp_path / "here.json"))
    assert read.unstated == frozenset()
    same = (
        "system",
        "machine",
        "cpu_flags",
        "glibc",
        "abi_versions",
        "libraries",
        "torch",
        "executable_stack",
        "tmpdir",
    )
    assert all(getattr(read, name) == getattr(host, name) for name in same)


def test_every_built_in_profile_can_be_read_and_has_a_source():
    assert len(profiles.built_in_profiles()) >= 8
    for name in profiles.built_in_profiles():
        assert profiles.built_in_profiles()[name]["source"]
        assert profiles.read_profile(name).profile == name
        assert json.loads(json.dumps(profiles.built_in_profiles()[name]))["host"].keys() <= set(
            Host.__dataclass_fields__
        )


def test_built_in_profiles_can_be_joined():
    host = profiles.read_profile(FULL)
    assert host.glibc == "2.35"
    assert "avx512f" in host.cpu_flags
