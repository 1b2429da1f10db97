"""`check`, `inspect` and `compat` of artifacts of torch.compile: healthy ones, and what their loaders refuse."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import aotidoctor
from aotidoctor.cli import build_app
from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case, Host, Options
from aotidoctor.model.evidence import Severity
from aotidoctor.model.other_artifacts import CALLABLE_FORMS, FORMS, USES, Precompiled
from aotidoctor.probes.plain_run import reason_not_to_run
from aotidoctor.probes.probe import History
from tests.artifacts.precompiled import CODE, cache_of, content, flipped, made_for_cuda, mega_cache, unpack

FN = content("aot_fn")
X, Y = ({"tensor": {"dtype": "float32", "shape": shape}} for shape in ([4, 8], [8, 4]))


def tensor(*shape, dtype="float32", **more):
    return {"tensor": {"dtype": dtype, "shape": list(shape), **more}}


@pytest.fixture
def host(tmp_path):
    """A profile of the host that made the files, with changes."""

    def profile(torch="2.13.0+cpu", python="3.11.7", threads=2, **more):
        facts = {
            "system": "Linux", "machine": "x86_64", "python": python, "threads": threads, "cores": threads,
            "torch": {"version": torch, "path": "", "cuda": None, **more.pop("built", {})}, **more,
        }  # fmt: skip
        path = tmp_path / "host.json"
        path.write_text(json.dumps({"schema": "aotidoctor.host/1", "name": "there", "host": facts}))
        return str(path)

    return profile


@pytest.fixture
def check(tmp_path, host):
    def checked(data, *args, on=None, kwargs=None):
        (tmp_path / "m.bin").write_bytes(data)
        (tmp_path / "x.json").write_text(json.dumps({"args": list(args), "kwargs": kwargs or {}}))
        given = {"inputs": tmp_path / "x.json"} if args or kwargs else {}
        return aotidoctor.check(tmp_path / "m.bin", host=on or host(), **given)

    return checked


def test_call_that_the_function_was_made_for_is_healthy(check):
    assert check(FN, X, Y).verdict == "healthy"
    # A Python function takes its arguments by name as well.
    assert check(FN, X, kwargs={"y": Y}).verdict == "healthy"
    assert check(content("aot_closure"), X).verdict == "healthy"
    assert check(content("standalone_aot"), X, Y).verdict == "healthy"
    assert check(content("standalone_cache"), X, Y).verdict == "healthy"
    assert check(content("aot_dynamic"), tensor(5, 6), tensor(6, 5)).verdict == "healthy"
    assert check(content("aot_dynamic"), tensor(5, 6), tensor(6, 5), kwargs={"scale": 7}).verdict == "healthy"
    assert check(content("aot_tree"), [X, tensor(3)], {"a": X}, 2.5).verdict == "healthy"
    # The compiled function looks at the keys that it reads.
    assert check(content("aot_tree"), [X, tensor(3)], {"a": X, "b": Y}, 2.5).verdict == "healthy"
    # One of the two functions takes any batch.
    assert check(content("aot_module_many"), tensor(7, 8)).verdict == "healthy"


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "cause", "subject"),
    [
        ("aot_fn", [tensor(5, 8), Y], {}, "input-shape", "args[0].shape[0]"),
        ("aot_fn", [tensor(4, 8, dtype="float64"), Y], {}, "input-dtype", "args[0]"),
        ("aot_fn", [tensor(1, 4, 8), Y], {}, "input-rank", "args[0]"),
        ("aot_fn", [X], {}, "input-count", "args[1]"),
        ("aot_fn", [X, Y], {"z": X}, "input-kwargs", "kwargs['z']"),
        ("aot_dynamic", [tensor(5, 6), tensor(7, 5)], {}, "input-shape-disagree", "args[1].shape[0]"),
        ("aot_dynamic", [tensor(1, 6), tensor(6, 1)], {}, "input-range", "args[0].shape[0]"),
        ("aot_dynamic", [tensor(100, 90), tensor(90, 100)], {}, "input-range", "args[0].shape[1]"),
        ("aot_dynamic", [tensor(5, 6), tensor(6, 5)], {"flag": False}, "input-constant-changed", "kwargs['flag']"),
        ("aot_tree", [[X, tensor(3)], {"a": X}, 3.0], {}, "input-constant-changed", "args[2]"),
        ("aot_tree", [[X, tensor(3)], {"b": X}, 2.5], {}, "input-tree", "args[1]"),
        ("aot_module_many", [tensor(7, 9)], {}, "input-shape", "args[0].shape[1]"),
        ("aot_module_many", [tensor(1, 8)], {}, "input-range", "args[0].shape[0]"),
        ("standalone_aot", [tensor(5, 8), Y], {}, "input-shape-disagree", "args[1].shape[1]"),
        ("standalone_cache", [tensor(5, 8), Y], {}, "input-shape-disagree", "args[1].shape[1]"),
    ],
)
def test_guard_that_would_refuse_is_named_before_the_call(check, name, args, kwargs, cause, subject):
    report = check(content(name), *args, kwargs=kwargs)
    assert (report.verdict, report.cause, report.diagnoses[0].subject) == ("problem", cause, subject)


def test_requires_grad_is_a_guard(check, monkeypatch):
    from dataclasses import replace

    from aotidoctor.readers.inputs import read_inputs

    real = read_inputs.read_inputs
    grown = lambda *a, **k: real(*a, **k).with_tensors(lambda one: replace(one, requires_grad=True))  # noqa: E731
    monkeypatch.setattr(read_inputs, "read_inputs", grown)
    report = check(FN, X, Y)
    assert (report.cause, report.diagnoses[0].subject) == ("input-layout", "args[0]")
    assert ".detach()" in report.diagnoses[0].remedy.text


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (FN[:10000], "artifact-corrupt"),
        (flipped(FN, 12000), "artifact-corrupt"),
        (b"PT2AOT\x02" + FN, "artifact-corrupt"),
        (b"PT2AOT\x01" + FN, "abi-mismatch"),
        (FN.replace(b"3.11.7", b"3.10.7"), "abi-mismatch"),
        (FN.replace(b"2.13.0+cpu", b"2.12.0+cpu"), "abi-mismatch"),
        (made_for_cuda(FN), "device-unavailable"),
        (content("standalone_cache")[:5000], "artifact-corrupt"),
        (flipped(content("standalone_aot"), 5000), "artifact-corrupt"),
        (flipped(content("mega_cache"), 9000), "artifact-corrupt"),
        (mega_cache({"inductor": []}), "artifact-incomplete"),
        (CODE.replace("BACKEND", "BACKEN").encode(), "artifact-corrupt"),
    ],
)
def test_fault_of_the_file_has_its_cause(check, data, cause):
    report = check(data)
    assert (report.verdict, report.cause) == ("problem", cause)


def test_versions_are_those_of_the_file(check):
    (finding,) = [one for one in check(FN.replace(b"2.13.0+cpu", b"2.12.0+cpu")).findings if one.code == "AD-HOST-006"]
    assert (finding.facts["made"], finding.facts["here"]) == ("2.12.0+cpu", "2.13.0+cpu")


GPU = {"index": 0, "name": "NVIDIA H100 80GB HBM3", "compute_capability": "90"}


@pytest.mark.parametrize(
    ("made", "here", "causes"),
    [
        ({}, {}, {"abi-mismatch", "triton-version", "gpu-arch-mismatch"}),
        ({"toolkit": b"13.0", "triton": b"K\x03K\x07\x86", "gpu": GPU["name"].encode()}, {}, set()),
        ({"toolkit": b"13.0", "triton": b"K\x03K\x07\x86"}, {}, {"gpu-arch-mismatch"}),
        ({"toolkit": b"13.0", "gpu": GPU["name"].encode()}, {}, {"triton-version"}),
    ],
)
def test_file_for_a_gpu_wants_the_same_toolkit_triton_and_gpu(check, host, made, here, causes):
    on = host(built={"cuda": "13.0"}, gpus=[GPU], cuda_driver="580.1", packages={"triton": "3.7.1"}, **here)
    assert {one.cause for one in check(made_for_cuda(FN, **made), on=on).diagnoses} == causes


def test_guards_hold_the_number_of_threads(check, host):
    report = check(FN, on=host(threads=8))
    assert report.cause == "threads-exceed-build"
    assert "torch.set_num_threads(2)" in report.diagnoses[0].remedy.text
    # Not only more: fewer are refused as well.
    assert check(FN, on=host(threads=1)).cause == "threads-exceed-build"


def test_what_the_process_must_bring_is_a_note(check):
    notes = {item.kind: item for item in check(content("aot_closure"), X).findings if item.code == "AD-HOST-016"}
    assert {kind: item.severity for kind, item in notes.items()} == {
        "external": Severity.INFO,
        "grad-mode": Severity.INFO,
    }
    assert notes["external"].subject == "lin"


def test_only_a_hash_of_torch_is_not_compared_and_that_is_reported(check):
    reasons = {item.name: item.reason for item in check(content("standalone_aot"), X, Y).not_checked}
    assert "torch_key" in reasons["abi_mismatch"]


def test_folders_and_pairs(tmp_path, host):
    unpack(tmp_path / "art")
    assert aotidoctor.check(tmp_path / "art", host=host()).verdict == "healthy"
    for path in (tmp_path / "art" / "fxgraph").rglob("*"):
        if path.is_file():
            path.unlink()
    assert aotidoctor.check(tmp_path / "art", host=host()).cause == "artifact-incomplete"
    (tmp_path / "pair").mkdir()
    (tmp_path / "pair" / "m.cache").write_bytes(cache_of(CODE))
    assert aotidoctor.check(tmp_path / "pair" / "m.cache", host=host()).cause == "artifact-incomplete"
    (tmp_path / "pair" / "m.py").write_text(CODE)
    assert aotidoctor.check(tmp_path / "pair" / "m.cache", host=host()).verdict == "healthy"
    (tmp_path / "x.json").write_text(json.dumps({"args": [None, tensor(5, 8)]}))
    report = aotidoctor.check(tmp_path / "pair" / "m.py", tmp_path / "x.json", host=host())
    assert (report.cause, report.diagnoses[0].subject) == ("input-shape", "args[1].shape[0]")


def test_moved_cache_of_vllm_is_a_warning(tmp_path, host):
    folder = tmp_path / "rank_0_0" / "backbone"
    folder.mkdir(parents=True)
    (folder / "artifact_a").write_bytes(content("standalone_aot"))
    (folder / "vllm_compile_cache.py").write_text("{((1, 2), 0, 'inductor'): ('a', '/old/backbone/artifact_a')}")
    report = aotidoctor.check(tmp_path, host=host())
    (finding,) = [item for item in report.findings if item.severity is not Severity.INFO]
    assert (report.verdict, finding.kind, finding.subject) == ("healthy", "stale-path", "/old/backbone/artifact_a")


def test_inspect_has_the_function_in_every_format(tmp_path):
    (tmp_path / "m.bin").write_bytes(content("aot_dynamic"))
    report = aotidoctor.inspect(tmp_path / "m.bin")
    found = json.loads(report.to_json())["artifact"]["precompiled"]
    assert (found["form"], found["functions"][0]["torch"]) == ("aot-compile", "2.13.0+cpu")
    leaves = json.loads(report.to_json())["contract"]["leaves"]
    assert [leaf["path"] for leaf in leaves] == ["args[0]", "args[1]", "kwargs['scale']", "kwargs['flag']"]
    for text in (report.to_text(), report.to_markdown(), report.to_html()):
        assert "scale=2, flag=True" in text


@pytest.mark.parametrize(
    ("torch", "answer"), [("2.13.0+cpu", "runs"), ("2.14.1+cu130", "refused"), ("2.15.0+cpu", "refused")]
)
def test_compat_compares_what_the_loader_compares(tmp_path, host, torch, answer):
    (tmp_path / "m.bin").write_bytes(FN)
    words = ["compat", str(tmp_path / "m.bin"), "--host", host(torch=torch), "--json"]
    found = json.loads(CliRunner().invoke(build_app(), words).stdout)["compat"]
    assert [one["answer"] for one in found["answers"]] == [answer]
    assert found["needs"][0]["exactly"] == "torch 2.13.0+cpu, Python 3.11.7, 2 threads"


@pytest.mark.parametrize("words", [["run", "--plan"], ["repro"]])
def test_what_runs_packages_says_what_it_is_instead(tmp_path, words):
    (tmp_path / "m.bin").write_bytes(FN)
    result = CliRunner().invoke(build_app(), [*words, str(tmp_path / "m.bin")])
    assert "aot_compile" in result.output


def test_nothing_is_loaded_without_trust(tmp_path):
    (tmp_path / "m.bin").write_bytes(FN)
    (tmp_path / "x.json").write_text(json.dumps({"args": [X, Y]}))
    report = aotidoctor.diagnose(tmp_path / "m.bin", tmp_path / "x.json")
    assert report.runs == ()
    assert "--trust-pickle" in (report.cannot_examine or "") or report.verdict == "problem"


def test_log_of_a_guard_over_threads_has_the_cause_of_the_check(tmp_path):
    (tmp_path / "x.log").write_text(
        'Traceback (most recent call last):\n  File "/srv/torch/_dynamo/aot_compile.py", line 243, in __call__\n'
        "RuntimeError: GuardManager check failed, reason: GuardDebugInfo(\nresult=0,\n"
        "verbose_code_parts=['GLOBAL_STATE changed: num_threads '],\nnum_guards_executed=2,\nuser_stack=None)\n"
    )
    report = aotidoctor.classify(tmp_path / "x.log")
    assert report.cause == "threads-exceed-build"
    assert "aotidoctor inspect FILE" in report.diagnoses[0].remedy.command


@pytest.mark.parametrize("form", sorted(FORMS.keys() - CALLABLE_FORMS))
def test_what_no_tensors_call_says_how_it_is_used(form):
    artifact = Artifact(path="m", kind=ArtifactKind.COMPILE_CACHE, size=1, precompiled=Precompiled(form=form))
    assert USES[form] in reason_not_to_run(
        Case(artifact=artifact, host=Host(system="Linux", machine="x86_64", python="3.11"), options=Options()),
        History(),
    )
