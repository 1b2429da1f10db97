"""The GPU suite's own parts, on a machine without a GPU: seeding, recording, and one fault from end to end."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from aotidoctor.diagnosis.playbooks import load_playbooks
from aotidoctor.model.jobs import Run
from aotidoctor.model.run import ChildError, Exited, NotStarted, OutOfMemory, Signalled, TimedOut
from aotidoctor.readers.package.read_package import read_artifact
from tests.gpu import faults, machine, run
from tests.gpu.recording import from_json, to_json
from tests.unit.probes.outcomes import outcome

DATA = Path(__file__).parents[1] / "data" / "cuda"
NAMES = [fault.name for fault in faults.FAULTS]


def test_what_is_asked_for_is_there():
    """The faults that a GPU suite must seed."""
    wanted = {
        "cpu_tensor_in", "wrong_dtype", "index_with_assert", "index_without_assert", "empty_dim", "wrong_stride",
        "user_triton_out_of_bounds", "nan_in_one_kernel", "out_of_memory", "other_arch",
    }  # fmt: skip
    assert wanted <= set(NAMES)
    assert len(set(NAMES)) == len(NAMES)


def test_expected_causes_are_causes():
    known = {playbook.cause for playbook in load_playbooks()} | {faults.HEALTHY, "user-triton-kernel"}
    assert {cause for fault in faults.FAULTS for cause in (*fault.causes, *fault.cpu)} <= known


@pytest.mark.torch
def test_every_seed_and_model_is_there():
    build = pytest.importorskip("tests.gpu.build")
    assert {fault.inputs for fault in faults.FAULTS} <= build.SEEDS.keys()
    assert {fault.model for fault in faults.FAULTS} <= build._models("cpu").keys()


@pytest.mark.torch
def test_seeds():
    torch = pytest.importorskip("torch")
    from tests.gpu import build

    x, ids = torch.rand(8, 16), torch.arange(8)
    _, swapped = build.transposed(ids, x)
    assert (swapped.shape, swapped.stride()) == ((8, 16), (1, 8))
    assert build.empty(x)[0].shape == (0, 16)
    assert build.doubles(x)[0].dtype == torch.float64
    assert build.bad_index(ids, x)[0].max() == build.ROWS
    assert build.wild_index(ids, x)[0].max() > 1 << 39
    assert ids.max() == 7
    assert build.negative(x)[0].min() == -100


@pytest.mark.parametrize("name", ["mlp", "gpu_const", "two_kernels"])
def test_device_code_for_another_gpu(name, tmp_path):
    faults.other_arch(DATA / f"{name}.pt2", tmp_path / "other.pt2")
    before, after = (read_artifact(str(path)).models[0] for path in (DATA / f"{name}.pt2", tmp_path / "other.pt2"))
    assert (before.gpu_targets, after.gpu_targets) == (("sm_90a",), ("sm_70",))
    assert after.metadata == before.metadata


@pytest.mark.parametrize("abi", [7, 8])
def test_both_forms_of_the_flags(abi):
    from aotidoctor.readers.package.package_models import _elf_target

    head = bytearray(64)
    head[:9] = b"\x7fELF\x02\x01\x01" + bytes((51, abi))
    head[18:20] = (190).to_bytes(2, "little")
    head[48:52] = (0x5A04 | 0x8 if abi >= 8 else 0x500000 | 0x85A).to_bytes(4, "little")
    assert _elf_target(bytes(head)) == "sm_90a"
    assert _elf_target(faults.for_capability(bytes(head), 70)) == "sm_70"


def test_what_is_no_device_code():
    with pytest.raises(ValueError, match="no 64-bit ELF"):
        faults.for_capability(b"MZ" + bytes(64), 70)


def test_without_a_cubin(tmp_path):
    faults.without_cubin(DATA / "mlp.pt2", tmp_path / "less.pt2")
    (gone,) = set(faults.members(DATA / "mlp.pt2")) - set(faults.members(tmp_path / "less.pt2"))
    assert gone.endswith(".cubin")


ENDED = outcome(error=ChildError(type="E", message="m", traceback="t"), stage="run1", stderr_tail="x", argv=("a", "b"))


@pytest.mark.parametrize(
    "ending",
    [
        Exited(code=1, done=False),
        Signalled(signal=6, name="SIGABRT", core_dumped=True),
        TimedOut(limit=3.0),
        OutOfMemory(reason="limit"),
        NotStarted(reason="no"),
    ],
)
def test_an_outcome_survives_its_record(ending):
    request = replace(ENDED.request, payload=Run(package="m.pt2", observe=("values",)))
    known = replace(ENDED, request=request, ending=ending, warnings=("w",), stages={"load": 0.5}, took_effect=True)
    assert from_json(json.loads(json.dumps(to_json(known)))) == known


def test_unknown_faults_are_an_error():
    with pytest.raises(ValueError, match="no fault is called nope"):
        faults.chosen(("nope",), "cuda")


def test_on_the_cpu_only_what_exists_there():
    names = {fault.name for fault in faults.chosen((), "cpu")}
    assert "other_arch" not in names
    assert {"index_with_assert", "nan_in_one_kernel"} <= names


def test_without_a_gpu_it_says_so(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(run, "describe", lambda: {"problem": "torch sees no CUDA device"})
    assert run.main(["--out", str(tmp_path / "out")]) == 0
    assert "skipped: torch sees no CUDA device" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


def test_wheels_beside_it_are_importable(monkeypatch, tmp_path):
    (tmp_path / "thing-1-py3-none-any.whl").write_bytes(b"")
    (tmp_path / "native-1-cp312-linux_x86_64.whl").write_bytes(b"")
    monkeypatch.setattr(machine, "WHEELS", tmp_path)
    paths = machine.environment()["PYTHONPATH"]
    assert ("thing-1" in paths, "native-1" in paths) == (True, False)


@pytest.mark.torch
def test_one_fault_from_end_to_end(tmp_path, capsys):
    pytest.importorskip("torch")
    status = run.main(["--out", str(tmp_path), "--device", "cpu", "index_with_assert"])
    assert (status, capsys.readouterr().out.split()[:2]) == (0, ["right", "index_with_assert"])
    recorded = sorted((tmp_path / "index_with_assert").glob("[0-9]*.json"))
    first = json.loads(recorded[0].read_text(encoding="utf-8"))
    assert (first["rung"], first["device"], first["machine"]["gpu"]) == ("plain_run", "cpu", None)
    assert from_json(first["outcome"]).error.type == "RuntimeError"
    assert first["evidence"][0]["facts"]["symptom"] == "index-out-of-bounds"
    with zipfile.ZipFile(tmp_path / "outcomes.zip") as archive:
        assert f"index_with_assert/{recorded[0].name}" in archive.namelist()
